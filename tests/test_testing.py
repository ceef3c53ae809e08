"""check_units passes every unit type of the package and finds a slip in any answer."""

import subprocess
import sys

import broken_units
import numpy as np
import pytest
from core.test_units import UNITS

from skrbm.core.units import Bernoulli
from skrbm.testing import check_units


@pytest.mark.every_kind
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("with_offset", [False, True])
def test_every_unit_type_passes(name, with_offset, seed):
    rng = np.random.default_rng(seed)
    check_units(UNITS[name](rng, lambda n: rng.normal(size=n) if with_offset else None), rng)


@pytest.mark.parametrize(
    ("units", "words"), broken_units.BROKEN.items(), ids=lambda item: type(item).__name__
)
def test_a_slip_in_any_answer_is_found_and_named(units, words, seed):
    assert words in broken_units.refusal(units, seed)


@pytest.mark.slow
def test_slips_are_found_without_assert_statements():
    # Slip: `assert`, which python -O leaves out.
    done = subprocess.run(
        [sys.executable, "-O", broken_units.__file__], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(broken_units.BROKEN)
    assert [line for line in lines if not line.endswith(": refused")] == []


@pytest.mark.parametrize(
    ("units", "rng", "message"),
    [
        (Bernoulli(np.array([1, -1])), np.random.default_rng(0), "got bias of type int64"),
        (Bernoulli(np.ones(2, dtype=np.float32)), np.random.default_rng(0), "type float32"),
        (Bernoulli([1.0, -1.0]), np.random.default_rng(0), "got bias of type list"),
        (Bernoulli, np.random.default_rng(0), "'units' .* an instance of .*Units"),
        ("x", np.random.default_rng(0), "'units' .* Got 'x'"),
        (Bernoulli(np.ones(2)), 0, "'rng' .* an instance of .*Generator'. Got 0"),
        (Bernoulli(np.ones(2)), None, "'rng' .* Got None"),
    ],
)
def test_arguments_of_other_types_are_named(units, rng, message):
    # Slips: integers, which a correct method is blamed for; an AttributeError.
    with pytest.raises(ValueError, match=message):
        check_units(units, rng)
