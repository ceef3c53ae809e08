"""Attributes that a fit leaves, the one place that writes them, and none before the end."""

import ast
from pathlib import Path

import joblib
import numpy as np
import pytest
from estimators.instances import KINDS, bits, draw, new
from sklearn.base import clone

import skrbm
from skrbm import (
    DivergenceError,
    RBMClassifier,
    RBMImputer,
    RBMOutlierDetector,
    TabularRBM,
)
from skrbm.core.interrupts import deferred_interrupts
from skrbm.estimators.fitting.callbacks import FitTask
from skrbm.estimators.fitting.fit import Fit
from skrbm.estimators.fitting.problem import RowProblem
from skrbm.estimators.fitting.start_fit import start_fit

FITTED = {kind: lambda kind=kind: (new(kind, n_iter=2), draw(kind)) for kind in KINDS} | {
    "tempering": lambda: (new("spin", algorithm="pt", n_iter=2), draw("spin")),
    "table": lambda: (TabularRBM(3, n_iter=2), draw("cho")),
    "classifier": lambda: (RBMClassifier(new("cho", n_iter=2)), draw("cho"), np.arange(47) % 3),
    "imputer": lambda: (RBMImputer(new("bernoulli", n_iter=2)), draw("bernoulli")),
    "detector": lambda: (RBMOutlierDetector(new("bernoulli", n_iter=2)), draw("bernoulli")),
}
ESTIMATORS = Path(skrbm.__file__).parent / "estimators"
# Places that write attributes of an estimator elsewhere than in its constructor.
WRITERS = {
    "input/validation.py:write_attributes": "the result of a fit, or the copy that a fit works on",
    "input/validation.py:restored_on_error": "puts back what an imputer or a detector has begun",
    "inference/model.py:_stream": "inference opens the streams of arrays assigned by hand",
    "conversion.py:_assign": "a new estimator",
    "parameters.py:with_constructor": "the constructor of a class",
    "docstrings.py:complete": "the docstring of a class",
    "docstrings.py:inherit_docstring": "the docstring of a class",
    "tables/frames.py:written": "columns of a table",
    "imputer.py:fit": "trains an estimator of its own",
    "outliers.py:fit": "trains an estimator of its own",
}
CALLBACKS = "_callback_fit_ctx", "_skl_callbacks_to_teardown"  # of scikit-learn, during a fit
OTHERS = {  # objects whose attributes are written that are no estimators
    *("tags", "tags.input_tags", "tags.transformer_tags", "method", "unwrap(method)"),
    *("state", "rows", "self.state", "self.recorder.history"),
}


@pytest.fixture(params=FITTED)
def fitted(request):
    """Unfitted estimator, and its training data."""
    estimator, *data = FITTED[request.param]()
    return estimator.fit(*data), data


def private(estimator):
    return [name for name in vars(estimator) if name.startswith("_")]


def test_a_fitted_estimator_carries_four_private_attributes_at_most(fitted):
    """Slip: one more for a number that training, chains or statistics could hold."""
    estimator, data = fitted
    four = {"_streams", "_data", "_chains", "_training_state"}
    inner = getattr(estimator, "estimator_", estimator)
    for own in (estimator, inner):
        assert len(private(own)) <= 4
    assert four >= set(private(inner))
    if hasattr(estimator, "partial_fit"):
        assert four >= set(private(estimator.partial_fit(*data)))


def test_private_attributes_are_plain_data(fitted):
    """Slip: an object of a class of the package, which no format of pickles but its own holds."""

    def check(value):
        if isinstance(value, dict):
            value = [*value, *value.values()]
        if isinstance(value, list | tuple):
            for entry in value:
                check(entry)
        else:
            assert not type(value).__module__.startswith("skrbm"), value

    estimator, _ = fitted
    for own in (estimator, getattr(estimator, "estimator_", estimator)):
        for name in private(own):
            check(getattr(own, name))


class Watching:
    """Task that looks at the estimator after every epoch, and may end the fit by an error."""

    def __init__(self, estimator, error=None):
        self.estimator, self.error, self.seen = estimator, error, []

    def begin_epoch(self): ...

    def end_epoch(self, attributes):
        self.seen.append(bits(self.estimator, without=CALLBACKS))
        if self.error is not None:
            raise self.error

    def end(self, attributes): ...


@pytest.mark.parametrize("is_fitted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_written_before_the_end(kind, is_fitted, monkeypatch):
    """Slip: streams, statistics, history or numbers of features written by what starts a fit."""
    X = draw(kind)
    rbm = new(kind, n_iter=2, random_state=0)
    if is_fitted:
        rbm.fit(X)
    monkeypatch.setattr(FitTask, "end_epoch", lambda task, attributes: watching.end_epoch(None))
    for call in (rbm.fit, rbm.partial_fit):
        before = bits(rbm)
        watching = Watching(rbm, RuntimeError("disk full"))
        with pytest.raises(RuntimeError, match="disk full"):
            call(draw(kind))
        assert watching.seen == [before]
        assert bits(rbm) == before


def test_a_start_can_be_run_twice():
    """Slip: a fit that trains in the arrays, or draws from the stream, of what it starts from."""
    rbm = new("cho", algorithm="pt", n_temperatures=3, n_iter=3, random_state=0)
    X = draw("cho")
    X[:5, 0] = np.nan
    rbm.set_params(missing="marginalize").fit(X)
    problem = RowProblem.of(rbm.set_params(warm_start=True), X, None, is_planned=True)
    start, results = start_fit(problem), []
    for _ in range(2):
        with deferred_interrupts() as interrupts:
            fit = Fit.of(problem, start)
            fit.run(FitTask(), interrupts)
        attributes = fit.attributes()
        attributes["history_"].pop("time")
        results.append(joblib.hash(attributes))
    assert results[0] == results[1]


def test_names_of_features_are_forgotten_by_a_fit_without_names():
    """Slip: what scikit-learn deletes from the copy that a fit works on is left on the estimator."""
    pandas = pytest.importorskip("pandas")
    X = draw("bernoulli")
    for estimator, *others in ((new("bernoulli"),), (RBMClassifier(new("bernoulli")), X[:, 0])):
        estimator.fit(pandas.DataFrame(X, columns=list("abcd")), *others)
        assert list(estimator.feature_names_in_) == list("abcd")
        assert not hasattr(estimator.fit(X, *others), "feature_names_in_")


def test_a_diverged_fit_can_be_told_from_a_failed_one():
    """Slip: a result that is not written because the fit ends by an error."""
    rbm = new("cho", learning_rate=1e300, random_state=0)
    with pytest.raises(DivergenceError):
        rbm.fit(draw("cho"))
    assert np.isfinite(rbm.components_).all()
    assert not hasattr(clone(rbm), "components_")


def written(function):
    """Objects, as the source names them, whose attributes a function writes."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield ast.unparse(node.value)
        elif isinstance(node, ast.Call):
            name, first = ast.unparse(node.func), ast.unparse(node.args[0]) if node.args else ""
            if name in ("setattr", "delattr"):
                yield first
            elif name.startswith("vars(") and name.endswith((".update", ".pop", ".clear")):
                yield name


def is_estimator(cls):
    return any("Mixin" in name or "RBM" in name for name in map(ast.unparse, cls.bases))


def test_one_function_writes_what_a_fit_has_learned():
    """Slips: `vars(rbm).update`, `rbm._data = ...` or `self.n_iter_ = ...` anywhere else."""
    found = set()
    for path in ESTIMATORS.rglob("*.py"):
        tree = ast.parse(path.read_text())
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        own = {id(f) for cls in classes if is_estimator(cls) for f in ast.walk(cls)}
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and function.name != "__init__":
                objects = set(written(function)) - OTHERS
                if objects - (set() if id(function) in own else {"self"}):
                    found.add(f"{path.relative_to(ESTIMATORS).as_posix()}:{function.name}")
    assert found == set(WRITERS)


def arrays_in(value):
    """Arrays anywhere in nested plain data."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for other in value.values():
            yield from arrays_in(other)
    elif isinstance(value, list | tuple):
        for other in value:
            yield from arrays_in(other)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_fitted_estimator_carries_no_row_of_its_data(method):
    # Slip: anchors of the chains' jumps that stay in the state, and in every pickle.
    X = np.random.default_rng(0).normal(size=(60, 5))
    rbm = getattr(skrbm.GaussianBernoulliRBM(3, random_state=0), method)(X)
    wide = [array for array in arrays_in(vars(rbm)) if array.shape[-1:] == (5,)]
    assert len(wide) > 3  # means and variances, at least
    for array in wide:
        rows = array.reshape(-1, 5)
        assert not (rows[:, None] == X).all(axis=2).any()
