"""Whatever comes in: a clear error or finite numbers. SKRBM_EXAMPLES=20000 makes it a long run."""

import os
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from estimators.instances import KINDS, arrays, new

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

N_EXAMPLES = int(os.environ.get("SKRBM_EXAMPLES", "150"))
ERRORS = (ValueError, TypeError)  # NotFittedError is a ValueError
DTYPES = ("f8", "f4", "f2", "i8", "i1", "u1", "?", "c16", "O", ">f8")
EXTREMES = (0.0, 1.0, -1.0, 0.5, 255.0, 1e30, -1e30, 1e300, 5e-324, 1e-40, np.nan, np.inf, -np.inf)
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: X[::-1, ::-1],
    "list": lambda X: X.tolist(),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "1-D": np.ravel,
    "3-D": lambda X: X[None],
}
PARAMETERS = {
    "learning_rate": (0.4, 0, 1e-3, 10.0, 1e10, -1.0, "fast"),
    "batch_size": ("auto", 1, 3, 1000, 0, 2.5),
    "n_iter": (1, 2, 0, -1),
    "algorithm": ("pcd", "cd", "pt", "exact", "ml"),
    "n_gibbs_steps": (1, 3, 0),
    "n_particles": (None, 1, 7, 0),
    "n_temperatures": (2, 5, 1),
    "centering": (True, False, "yes"),
    "optimizer": ("sgd", "nesterov", "adam", "lbfgs"),
    "momentum": (0.0, 0.9, 1.0),
    "learning_rate_schedule": ("linear", "constant", "invscaling", "adaptive", "cosine"),
    "average": (True, False),
    "l1": (0.0, 1.0, -1.0),
    "l2": (0.0, 1e3),
    "sparsity_cost": (0.0, 1.0),
    "max_norm": (None, 1e-3, 0.0),
    "max_gradient_norm": (None, 1e-3),
    "shuffle": (True, False),
    "early_stopping": (False, True),
    "validation_fraction": (0.1, 0.9, 1.0),
    "check_input": ("ignore", "warn", "raise"),
    "warm_start": (False, True),
    "verbose": (0,),
    "random_state": (0, None, "seed"),
}
METHODS = {
    "transform": lambda rbm, X: rbm.transform(X),
    "inverse_transform": lambda rbm, X: rbm.inverse_transform(X),
    "score_samples": lambda rbm, X: rbm.score_samples(X),
    "score": lambda rbm, X: rbm.score(X),
    "free_energy": lambda rbm, X: rbm.free_energy(X),
    "energy": lambda rbm, X: rbm.energy(X, rbm.transform(X)),
    "gibbs": lambda rbm, X: rbm.gibbs(X),
    "sample": lambda rbm, X: rbm.sample(n_gibbs_steps=2, init=X),
    "tempered sample": lambda rbm, X: rbm.sample(2, 2, n_temperatures=3),
    "inpaint": lambda rbm, X: rbm.inpaint(X, np.ones(rbm.n_features_in_, bool), n_gibbs_steps=2),
    "impute": lambda rbm, X: rbm.impute(X, n_gibbs_steps=2),
    "log_likelihood": lambda rbm, X: rbm.log_likelihood(X),
    "log_partition": lambda rbm, X: rbm.log_partition("ais", n_chains=3, n_temperatures=5).value,
    "partial_fit": lambda rbm, X: list(arrays(rbm.partial_fit(X)).values()),
}


@st.composite
def tables(draw, n_features=None):
    """Rows of any numeric type, layout and size."""
    width = st.integers(0, 6) if n_features is None else st.just(n_features)
    shape = (draw(st.integers(0, 12)), draw(width))
    domain = draw(st.sampled_from(["binary", "unit", "normal", "extreme"]))
    elements = {
        "binary": st.sampled_from([0.0, 1.0]),
        "unit": st.floats(0, 1, width=32),
        "normal": st.floats(-5, 5, width=32),
        "extreme": st.sampled_from(EXTREMES),
    }[domain]
    X = draw(npst.arrays(np.float64, shape, elements=elements))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = X.astype(draw(st.sampled_from(DTYPES)))
        try:
            return LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](X)
        except (TypeError, ValueError):  # SciPy has no sparse arrays of this type
            return X


def outcome(call, *args):
    """What a call returns, or the error that it is allowed to raise."""
    try:
        return call(*args)
    except ERRORS as error:
        return error


def assert_finite(result):
    for array in result if isinstance(result, list) else [result]:
        assert np.isfinite(np.asarray(array, dtype=np.float64)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@settings(
    max_examples=N_EXAMPLES,
    deadline=10_000,
    derandomize="SKRBM_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_anything_gives_a_clear_error_or_finite_numbers(data):
    options = data.draw(
        st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in PARAMETERS.items()})
    )
    kind = data.draw(st.sampled_from(KINDS))
    rbm = new(kind, data.draw(st.sampled_from([2, 1, 5, 0])), **{"random_state": 0, **options})
    X = data.draw(tables())
    fitted = outcome(rbm.fit, X)
    if isinstance(fitted, Exception):
        assert str(fitted)
        names = {name for name in vars(rbm) if name.endswith("_")}
        assert not names or "diverged" in str(fitted)
        return
    assert_finite(list(arrays(rbm).values()))
    width = rbm.n_features_in_ if data.draw(st.booleans()) else None
    rows = data.draw(tables(width))
    for name in data.draw(st.lists(st.sampled_from(list(METHODS)), max_size=4, unique=True)):
        result = outcome(METHODS[name], rbm, rows)
        if not isinstance(result, Exception):
            assert_finite(result)
