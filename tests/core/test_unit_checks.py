"""check_units passes every unit type of the package and finds a slip in any answer."""

import numpy as np
import pytest
from core.test_units import UNITS

from skrbm.core.units import Gaussian, check_units

SLIPS = {  # answer: what is wrong with it, and the broken promise that is named
    "mean": (lambda answer: answer + 0.1, "mean"),
    "log_partition": (lambda answer: answer + 0.1, "log_partition"),
    "log_partition_shift": (lambda answer: answer + 0.1, "log_partition_shift"),
    "sample": (lambda answer: 1.2 * answer, "sample misses moment"),
    "signal": (lambda answer: answer + 0.01 * answer**2, "differs"),
    "moments": (lambda answer: (answer[0], 2 * answer[1]), "gradient in log_variance from moments"),
    "mean_moments": (lambda answer: (answer[0] + 1, answer[1]), "gradient in bias from mean_mom"),
    "gradient": (lambda answer: {"bias": answer["bias"]}, "differ in keys"),
    "recentered": (lambda answer: answer.map_arrays(lambda a: 1.1 * a), "recentered"),
    "alternatives": (lambda answer: (answer[0], answer[1] + 0.1), "alternatives: quadrature"),
    "start": (lambda answer: answer.map_arrays(lambda a: a + np.inf), "start made bias infinite"),
}


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("with_offset", [False, True])
def test_every_unit_type_passes(name, with_offset, rng):
    offset = rng.normal(size=2) if with_offset else None
    check_units(UNITS[name](rng.normal(size=2), rng, offset=offset), rng)


@pytest.mark.parametrize("answer", SLIPS)
def test_a_slip_in_any_answer_is_found_and_named(answer, rng, monkeypatch):
    original = getattr(Gaussian, answer)
    spoil, message = SLIPS[answer]

    def spoilt(*args, **kwargs):
        return spoil(original(*args, **kwargs))

    if answer == "start":  # bound to the class already
        spoilt = staticmethod(spoilt)
    monkeypatch.setattr(Gaussian, answer, spoilt)
    units = Gaussian(rng.normal(size=2), rng.normal(0, 0.7, 2), parameterization="cho")
    with pytest.raises(AssertionError, match=message):
        check_units(units, rng)


def test_draws_outside_the_states_are_found(rng, monkeypatch):
    units = UNITS["spin"](rng.normal(size=2), rng)
    original = type(units).sample
    monkeypatch.setattr(
        type(units), "sample", lambda self, field, rng: np.maximum(original(self, field, rng), 0)
    )
    with pytest.raises(AssertionError, match="outside"):
        check_units(units, rng)


def test_weights_that_are_taken_for_probabilities_are_found(rng, monkeypatch):
    units = UNITS["spin"](rng.normal(size=2), rng, offset=rng.normal(size=2))
    monkeypatch.setattr(type(units), "moments", lambda self, s, p: (p @ s - self.offset,))
    with pytest.raises(AssertionError, match="gradient in bias from moments"):
        check_units(units, rng)


def test_precision_that_is_lost_is_found(rng, monkeypatch):
    units = UNITS["bernoulli"](rng.normal(size=2), rng)
    original = type(units).mean
    monkeypatch.setattr(
        type(units), "mean", lambda self, field: original(self, field).astype(np.float64)
    )
    with pytest.raises(AssertionError, match=r"mean of single precision returned float64"):
        check_units(units, rng)
