"""Whatever comes in: a clear error or finite numbers. SKRBM_EXAMPLES=20000 makes it a long run."""

import os
import traceback
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from estimators.instances import DISCRETE_KINDS, KINDS, PARAMETERS, arrays, new

from skrbm import DivergenceError

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

N_EXAMPLES = int(os.environ.get("SKRBM_EXAMPLES", "300"))
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
USUAL_LAYOUTS = ("C", "F", "strided", "reversed", "list", "csr", "csc", "coo")
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


def mostly(likely, unlikely):
    """A strategy that seldom is the other one."""
    return st.integers(0, 7).flatmap(lambda choice: unlikely if choice == 7 else likely)


@st.composite
def settings_of_models(draw):
    """A few parameters, of which at most one seldom is invalid."""
    names = draw(st.lists(st.sampled_from(list(PARAMETERS)), max_size=5, unique=True))
    options = {
        name: draw(st.sampled_from(PARAMETERS[name].usual + PARAMETERS[name].extreme))
        for name in names
    }
    if names and draw(mostly(st.just(False), st.just(True))):
        options[names[0]] = draw(st.sampled_from(PARAMETERS[names[0]].invalid))
    return {"n_components": 2, "random_state": 0} | options


@st.composite
def tables(draw, kind, n_features=None):
    """Rows of any numeric type, layout and size, seldom sparse for units that must be dense."""
    n_rows = draw(mostly(st.integers(2, 12), st.integers(0, 1)))
    if n_features is None:
        n_features = draw(mostly(st.integers(1, 6), st.just(0)))
    elements = {
        "binary": st.sampled_from([0.0, 1.0]),
        "spins": st.sampled_from([-1.0, 1.0]),
        "unit": st.floats(0, 1, width=32),
        "normal": st.floats(-5, 5, width=32),
        "large": st.sampled_from([0.0, 1.0, 1e30, -1e30, 1e-40, 5e-324]),
        "hostile": st.sampled_from(EXTREMES),
    }[draw(st.sampled_from(["binary", "spins", "unit", "normal", "large", "hostile"]))]
    X = draw(npst.arrays(np.float64, (n_rows, n_features), elements=elements))
    dtype = draw(mostly(st.sampled_from(["f8", "f4"]), st.sampled_from(DTYPES)))
    usual = USUAL_LAYOUTS if kind in DISCRETE_KINDS else USUAL_LAYOUTS[:5]
    layout = draw(mostly(st.sampled_from(usual), st.sampled_from(list(LAYOUTS))))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = X.astype(dtype)
        try:
            return LAYOUTS[layout](X)
        except (TypeError, ValueError):  # SciPy has no sparse arrays of this type
            return X


def outcome(call, *args):
    """What a call returns, or the error that was meant to be raised for such input."""
    try:
        return call(*args)
    except ERRORS as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        is_refusal = "sklearn" in place.filename or place.line.startswith("raise ")
        if not is_refusal or not str(error):
            raise AssertionError("an accident, not a refusal") from error
        return error


def assert_finite(result):
    for array in result if isinstance(result, list) else [result]:
        assert np.isfinite(np.asarray(array, dtype=np.float64)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@settings(
    max_examples=N_EXAMPLES,
    deadline=30_000,
    derandomize="SKRBM_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_anything_gives_a_clear_error_or_finite_numbers(data):
    kind = data.draw(st.sampled_from(KINDS))
    rbm = new(kind, **data.draw(settings_of_models()))
    X = data.draw(tables(kind))
    fitted = outcome(rbm.fit, X)
    assert_finite(list(arrays(rbm).values()))
    if isinstance(fitted, Exception):
        names = {name for name in vars(rbm) if name.endswith("_")}
        event("refused" if not names else "diverged")
        assert not names or isinstance(fitted, DivergenceError)
        return
    rows = data.draw(mostly(tables(kind, rbm.n_features_in_), tables(kind)))
    names = st.lists(st.sampled_from(list(METHODS)), min_size=1, max_size=4, unique=True)
    for name in data.draw(names):
        result = outcome(METHODS[name], rbm, rows)
        if not isinstance(result, Exception):
            assert_finite(result)
