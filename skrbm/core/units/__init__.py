"""Layers of units: one file for each type, all of them answering the same questions."""

from skrbm.core.units.answers import Metric, QuadratureError
from skrbm.core.units.base import Units
from skrbm.core.units.bernoulli import Bernoulli
from skrbm.core.units.checks import check_units
from skrbm.core.units.gaussian import PARAMETERIZATIONS, Gaussian
from skrbm.core.units.spin import Spin

__all__ = [
    "PARAMETERIZATIONS",
    "Bernoulli",
    "Gaussian",
    "Metric",
    "QuadratureError",
    "Spin",
    "Units",
    "check_units",
]
