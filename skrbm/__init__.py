"""Restricted Boltzmann machines for scikit-learn."""

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
from skrbm.estimators.spin import SpinRBM
from skrbm.estimators.validation import DomainWarning

__version__ = "0.1.0"

__all__ = [
    "BernoulliRBM",
    "CenteredParameters",
    "DivergenceError",
    "DomainWarning",
    "GaussianBernoulliRBM",
    "SpinRBM",
    "recenter",
    "to_bernoulli",
    "to_spin",
    "uncenter",
]
