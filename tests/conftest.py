"""Settings that must be made before SciPy is imported, and marks of scikit-learn's own tests."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # without it, one of scikit-learn's common checks skips


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "thread_unsafe: from scikit-learn's test files; not to run in parallel threads"
    )
