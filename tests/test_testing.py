"""check_units passes every unit type of the package and finds a slip in any answer."""

import subprocess
import sys

import broken_units
import numpy as np
import pytest
from core.test_units import UNITS

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
