"""The mathematics of restricted Boltzmann machines; never imports scikit-learn."""
