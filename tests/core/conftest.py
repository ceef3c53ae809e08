import numpy as np
import pytest


@pytest.fixture
def rng(seed):
    """Random stream of a test."""
    return np.random.default_rng([seed, 1])
