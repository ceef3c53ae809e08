"""Unit types with one slip each, and the words that should name it; run as a script, all at once."""

import re
from dataclasses import dataclass, replace

import numpy as np

from skrbm.core.numerics import copy_into
from skrbm.core.units import (
    Bernoulli,
    Categorical,
    DReLU,
    EveryPair,
    Gaussian,
    Interval,
    LinearUnits,
    ReLU,
    ShiftedUnits,
    Spin,
    Support,
)
from skrbm.core.units.columns import WideUnits
from skrbm.testing import check_units

BIAS = np.array([-0.7, 0.4])


class ForgottenTwo(Spin):
    """The sigmoid of a spin without its factor two."""

    def expectation(self, x):
        return np.tanh(x / 2)


class SamplerOfTheMean(Gaussian):
    def sample(self, field, rng, out=None):
        return self.mean(field, out=out)


class SamplerOfBits(Spin):
    def sample(self, field, rng, out=None):
        return copy_into(np.maximum(super().sample(field, rng), 0), out)


class SharedNumbers(Bernoulli):
    def draw(self, x, rng):
        return (rng.random((len(x), 1)) < self.expectation(x)).astype(x.dtype)


class FixedNumbers(Bernoulli):
    def draw(self, x, rng):
        return super().draw(x, np.random.default_rng(0))


class OwnNumbers(Bernoulli):
    def draw(self, x, rng):
        return super().draw(x, np.random.default_rng())


class FixedMeanAndSample(Bernoulli):
    def mean_and_sample(self, field, rng, out=(None, None)):
        return super().mean_and_sample(field, np.random.default_rng(0), out)


class ForgottenPlace(Gaussian):
    def mean(self, field, out=None):
        return super().mean(field)


class UniformNoise(Gaussian):
    """Noise of the right variance that is not normal."""

    def sample(self, field, rng, out=None):
        width = np.sqrt(12 * np.exp(self.log_variance))
        noise = width * (rng.random(field.shape) - 0.5)
        return copy_into((self.mean(field) + noise).astype(field.dtype), out)


class Overflow(Bernoulli):
    """The mean as a ratio of exponentials."""

    def expectation(self, x):
        return np.exp(x) / (1 + np.exp(x))


class OverflowOfSum(Bernoulli):
    """The logarithm of a sum of exponentials."""

    def log_normaliser(self, x):
        return np.log1p(np.exp(x)).sum(axis=1, dtype=np.float64)


class LostDigits(Spin):
    """Correct in double precision alone."""

    def expectation(self, x):
        large = x.dtype.type(3e4)
        return (np.tanh(x) + large) - large


class FlatEnergy(Bernoulli):
    def energy(self, states):
        return super().energy(states)[:, None]


class NoNumber(Gaussian):
    """NaN in both of the answers that are compared."""

    def energy(self, states):
        return np.full_like(states[:, 0], np.nan)

    def log_partition(self, field):
        return np.full_like(field[:, 0], np.nan)


class WrongSupport(Interval):
    """Nodes between 0 and 2."""

    def conditional_values(self, states, low, high):
        values, log_measure = super().conditional_values(states, low, high)
        return 2 * values, log_measure + np.log(2)


class WideSupport(Interval):
    support = Support(0.0, 2.0)


class Shifted(ShiftedUnits):
    """Every pair, with an error in the changes and a factor of the shifts of the sums."""

    error, factor = 1e-4, 1

    def log_partitions(self, shifts):
        return EveryPair(self.units, self.field).log_partitions(shifts)

    def log_partition_changes(self, shifts):
        return EveryPair(self.units, self.field).log_partition_changes(shifts) + self.error

    def sums(self, shifts, weights, layer):
        return EveryPair(self.units, self.field).sums(self.factor * shifts, weights, layer)


class ShiftedSums(Shifted):
    error, factor = 0, 1.001


class WrongShift(Bernoulli):
    def shifted(self, field):
        return Shifted(self, field)


class WrongSums(Bernoulli):
    def shifted(self, field):
        return ShiftedSums(self, field)


class WrongChange(Bernoulli):
    def log_partition_change(self, *arguments):
        return super().log_partition_change(*arguments) + 1e-4


class WrongMeanAndSample(Bernoulli):
    def mean_and_sample(self, field, rng, out=(None, None)):
        return self.mean(field), self.sample(-field, rng)


class WrongCount(Bernoulli):
    n_states = 2  # whatever the number of units


class WrongUnitCount(Bernoulli):
    def n_unit_states(self, index):
        return 2 * self.n_units


class WrongUnitStates(Bernoulli):
    def unit_states(self, index, numbers):
        return super().unit_states(index, 1 - numbers)


class ForgottenUnitOffset(Bernoulli):
    def fields_and_energies(self, weights):
        values = self.unit_values(0)
        return values @ weights, self.energy(values)


class WrongUnitEnergies(Bernoulli):
    def fields_and_energies(self, weights):
        fields, energies = super().fields_and_energies(weights)
        return fields, -energies


class WrongUnitMean(Spin):
    def unit_mean(self, probability):
        return probability[:, 1:]


class WrongStates(Bernoulli):
    def states(self, begin, end):
        return super().states(begin, end)[:, ::-1]


class WrongBounds(Bernoulli):
    def field_bounds(self, weights):
        low, high = super().field_bounds(weights)
        return low / 2, high / 2


class HalfVariance(Gaussian):
    """The published factor of four in the gradient of sigma."""

    def moments(self, states, sample_weight):
        moments = super().moments(states, sample_weight)
        return moments | {"log_variance": moments["log_variance"] / 4}


class ForgottenSignal(Gaussian):
    is_signal_fixed = True


class LostPrecision(Bernoulli):
    def expectation(self, x):
        return super().expectation(x).astype(np.float64)


class Probabilities(Bernoulli):
    """Weights of the rows taken for probabilities."""

    def moments(self, states, sample_weight):
        return {"bias": sample_weight @ states - self.offset}


class BentSignal(Gaussian):
    def signal(self, states):
        return super().signal(states) + 1e-3 * states**2


class KeptOffset(Bernoulli):
    def recentered(self, offset, field):
        return super().recentered(self.offset, field)


class HeatedMean(Gaussian):
    def heated(self, temperature):
        heated = super().heated(temperature)
        return replace(heated, bias=heated.bias / temperature)


class InfiniteStart(Bernoulli):
    @classmethod
    def start(cls, mean, variance, n_samples, **options):
        return cls(np.log(mean) - np.log1p(-mean), **options)


class GreedyGauge(Categorical):
    """Zero mean of every column, in place of every unit."""

    def gauge(self, rows):
        return rows - rows.mean(axis=1, keepdims=True)


class SharedColumns(Categorical):
    def unit_columns(self, index):
        return WideUnits.unit_columns(self, index) % 3


@dataclass(frozen=True, eq=False)
class WithoutQuadrature(LinearUnits):
    support = Support(0.0, 1.0)

    def log_normaliser(self, x):
        return Interval(self.bias).log_normaliser(x)

    def expectation(self, x):
        return Interval(self.bias).expectation(x)

    def draw(self, x, rng):
        return Interval(self.bias).draw(x, rng)


class OtherSide(DReLU):
    """The curvature of one side taken for the other's."""

    def energy(self, states):
        return super().energy(-states) - 2 * states @ self.bias


class SteepTail(DReLU):
    @property
    def tail_curvature(self):
        return np.ones_like(self.bias)


class ForgottenCurvature(Gaussian):
    """The gradient of the signal's slope alone."""

    def scale_gradient(self, work):
        return {name: 2 * array for name, array in super().scale_gradient(work).items()}


class NormalMean(ReLU):
    """The mean of the law before it is cut."""

    def expectation(self, x):
        return x


class AnyTempering(Gaussian):
    is_tempered_exactly = True


def gaussian(kind):
    return kind(BIAS, np.array([0.3, -0.5]), parameterization="cho")


BROKEN = {
    ForgottenTwo(BIAS): "mean differs",
    gaussian(SamplerOfTheMean): "sample misses moment 2",
    SamplerOfBits(BIAS): "sample drew other values",
    SharedNumbers(BIAS): "sample drew units with a correlation of",
    FixedNumbers(BIAS): "sample drew the same states with another",
    OwnNumbers(BIAS): "sample drew other states with an equal",
    FixedMeanAndSample(BIAS): "mean_and_sample drew the same states with another",
    gaussian(ForgottenPlace): "mean in place",
    gaussian(UniformNoise): "sample misses moment 4",
    Overflow(BIAS): "mean given large fields returned",
    OverflowOfSum(BIAS): "log_partition given large fields returned",
    LostDigits(BIAS): "mean of single precision differs",
    FlatEnergy(BIAS[:1]): "energy expected shape",
    gaussian(NoNumber): "energy of single precision differs",
    WrongSupport(BIAS): "conditional_values: the sum",
    WideSupport(BIAS): "log_partition differs",
    WrongShift(BIAS): "log_partition_changes, compared with its default,",
    WrongSums(BIAS): "sums, result 0, compared with its default,",
    WrongChange(BIAS): "log_partition_change, compared with its default,",
    WrongUnitCount(BIAS): "n_unit_states expected 2, got",
    WrongUnitStates(BIAS): "unit_states",
    ForgottenUnitOffset(BIAS, offset=-BIAS): "fields_and_energies: fields",
    WrongUnitEnergies(BIAS): "fields_and_energies: energies",
    WrongUnitMean(BIAS): "unit_mean",
    WrongMeanAndSample(BIAS): "mean_and_sample misses moment 1",
    WrongCount(BIAS): "n_states expected 4",
    WrongStates(BIAS): "states expected",
    WrongBounds(BIAS): "field_bounds do not bound",
    gaussian(HalfVariance): "gradient in log_variance from moments",
    gaussian(ForgottenSignal): "gradient in log_variance from moments",
    LostPrecision(BIAS): "mean of single precision returned float64",
    Probabilities(BIAS, offset=BIAS): "gradient in bias from moments",
    gaussian(BentSignal): "log_partition differs",
    KeptOffset(BIAS): "recentered: offset",
    gaussian(HeatedMean): "heated, up to a constant,",
    InfiniteStart(BIAS): "start made bias infinite",
    GreedyGauge(np.arange(5.0), (3, 2)): "gauge: the removed field",
    SharedColumns(np.arange(5.0), (3, 2)): "unit_columns",
    OtherSide(BIAS, -BIAS, 0.5 * BIAS): "log_partition differs",
    SteepTail(BIAS, -BIAS, 0.5 * BIAS): "tail_curvature differs",
    gaussian(ForgottenCurvature): "scale_gradient in log_variance",
    NormalMean(BIAS): "mean differs",
    gaussian(AnyTempering): "tempered: energy",
    WithoutQuadrature(BIAS): "WithoutQuadrature units have no quadrature",
}


def refusal(units, seed=0):
    """What `check_units` says of a layer."""
    try:
        with np.errstate(all="ignore"):
            check_units(units, np.random.default_rng(seed))
    except (AssertionError, ValueError) as error:
        return str(error)
    return "nothing"


if __name__ == "__main__":
    for units, words in BROKEN.items():
        is_named = re.search(words, refusal(units)) is not None
        print(f"{type(units).__name__}: {'refused' if is_named else refusal(units)}")
