"""Layers of units: one file for each type, all with the interface of `Units`."""

from skrbm.core.units.base import EveryPair, ShiftedUnits, Units
from skrbm.core.units.bernoulli import Bernoulli
from skrbm.core.units.categorical import Categorical
from skrbm.core.units.composite import Composite
from skrbm.core.units.gaussian import PARAMETERIZATIONS, Gaussian
from skrbm.core.units.interval import Interval
from skrbm.core.units.linear import LinearUnits
from skrbm.core.units.mixture import Mixture
from skrbm.core.units.real import DReLU, ReLU, StandardGaussian
from skrbm.core.units.spin import Spin
from skrbm.core.units.support import Metric, QuadratureError, Support, UnknownRangeError

# Types of hidden units beside the two-state ones, by the values of the parameter `hidden_units`.
HIDDEN_TYPES: dict[str, type[Units]] = {
    "gaussian": StandardGaussian,
    "relu": ReLU,
    "drelu": DReLU,
}

__all__ = [
    "HIDDEN_TYPES",
    "PARAMETERIZATIONS",
    "Bernoulli",
    "Categorical",
    "Composite",
    "DReLU",
    "EveryPair",
    "Gaussian",
    "Interval",
    "LinearUnits",
    "Metric",
    "Mixture",
    "QuadratureError",
    "ReLU",
    "ShiftedUnits",
    "Spin",
    "StandardGaussian",
    "Support",
    "Units",
    "UnknownRangeError",
]
