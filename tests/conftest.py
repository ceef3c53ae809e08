"""Settings that must be made before SciPy is imported, random streams, marks of scikit-learn."""

import os
import re

os.environ["SCIPY_ARRAY_API"] = "1"  # without it, one of scikit-learn's common checks skips
if "PYTEST_XDIST_WORKER" in os.environ:  # workers whose threads wait for each other are slower
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

QUICK_KIND = "bernoulli"


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "thread_unsafe: from scikit-learn's test files; not to run in parallel threads"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Let tests that take time for every kind of units have one of them by default."""
    for item in items:
        is_quick = QUICK_KIND in re.split(r"[\[\]-]", item.name)
        if item.get_closest_marker("every_kind") and not is_quick:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def seed():
    """Seed of models and random streams; SKRBM_TEST_SEED chooses another, which must do as well."""
    return int(os.environ.get("SKRBM_TEST_SEED", "0"))


@pytest.fixture(autouse=True)
def _global_stream(seed):
    """Make what random_state=None gives to an estimator a matter of the seed alone."""
    np.random.seed(seed)  # noqa: NPY002, scikit-learn's None means this stream
