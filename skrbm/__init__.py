"""Restricted Boltzmann machines for scikit-learn."""

from skrbm._version import __version__
from skrbm.core.couplings import EffectiveCouplings
from skrbm.core.diagnostics import ChainDiagnostics
from skrbm.core.hidden_unit_reports import HiddenUnitReport
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.training.parts.guard import DivergenceError
from skrbm.display.curves import FreeEnergyDisplay, TrainingCurveDisplay
from skrbm.display.hidden_units import HiddenUnitDisplay
from skrbm.display.images import ComponentsDisplay, SamplesDisplay
from skrbm.display.logos import LogoDisplay
from skrbm.display.matrices import CouplingsDisplay
from skrbm.estimators.bernoulli_rbm import BernoulliRBM
from skrbm.estimators.classifier import RBMClassifier
from skrbm.estimators.conversion import to_bernoulli, to_spin
from skrbm.estimators.fitting.checkpoint import Checkpoint
from skrbm.estimators.gaussian_rbm import GaussianBernoulliRBM
from skrbm.estimators.imputer import RBMImputer
from skrbm.estimators.inference.mixing import chain_diagnostics
from skrbm.estimators.inference.public_couplings import effective_couplings
from skrbm.estimators.inference.reports import hidden_unit_report
from skrbm.estimators.inference.scoring import log_likelihood_scorer
from skrbm.estimators.input.validation import (
    AnnealingWarning,
    DomainWarning,
    OverfittingWarning,
    VersionWarning,
)
from skrbm.estimators.outliers import RBMOutlierDetector
from skrbm.estimators.spin_rbm import SpinRBM
from skrbm.estimators.tabular_rbm import TabularRBM

__all__ = [
    "AnnealingWarning",
    "BernoulliRBM",
    "ChainDiagnostics",
    "Checkpoint",
    "ComponentsDisplay",
    "CouplingsDisplay",
    "DivergenceError",
    "DomainWarning",
    "EffectiveCouplings",
    "FreeEnergyDisplay",
    "GaussianBernoulliRBM",
    "HiddenUnitDisplay",
    "HiddenUnitReport",
    "LogPartition",
    "LogoDisplay",
    "OverfittingWarning",
    "RBMClassifier",
    "RBMImputer",
    "RBMOutlierDetector",
    "SamplesDisplay",
    "SpinRBM",
    "TabularRBM",
    "TrainingCurveDisplay",
    "VersionWarning",
    "__version__",
    "chain_diagnostics",
    "effective_couplings",
    "hidden_unit_report",
    "log_likelihood_scorer",
    "to_bernoulli",
    "to_spin",
]
