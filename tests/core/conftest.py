import os

import numpy as np
import pytest


@pytest.fixture
def seed():
    """Seed of models and random streams; SKRBM_TEST_SEED chooses another, which must do as well."""
    return int(os.environ.get("SKRBM_TEST_SEED", "0"))


@pytest.fixture
def rng(seed):
    """Random stream of a test."""
    return np.random.default_rng([seed, 1])
