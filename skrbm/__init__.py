"""Restricted Boltzmann machines for scikit-learn."""

from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.training.loop import DivergenceError
from skrbm.estimators.bernoulli import BernoulliRBM
from skrbm.estimators.conversion import (
    CenteredParameters,
    recenter,
    to_bernoulli,
    to_spin,
    uncenter,
)
from skrbm.estimators.gaussian import GaussianBernoulliRBM
from skrbm.estimators.imputer import RBMImputer
from skrbm.estimators.scoring import log_likelihood_scorer
from skrbm.estimators.spin import SpinRBM
from skrbm.estimators.validation import AnnealingWarning, DomainWarning

__version__ = "0.1.0"

__all__ = [
    "AnnealingWarning",
    "BernoulliRBM",
    "CenteredParameters",
    "DivergenceError",
    "DomainWarning",
    "GaussianBernoulliRBM",
    "LogPartition",
    "RBMImputer",
    "SpinRBM",
    "log_likelihood_scorer",
    "recenter",
    "to_bernoulli",
    "to_spin",
    "uncenter",
]
