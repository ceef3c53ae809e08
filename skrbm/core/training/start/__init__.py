"""Initialization of training: statistics of the data, initial machine, clusters, pretraining."""
