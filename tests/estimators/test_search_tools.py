"""Searches, unions and columns: side by side, they find what they find in turn."""

import joblib
import numpy as np
import pytest
from estimators.instances import draw
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401, importing enables
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skrbm import BernoulliRBM, SpinRBM

X = draw("bernoulli", 60, 6)
RBM = BernoulliRBM(2, n_iter=2, random_state=0)
GRID = {"learning_rate": [0.1, 0.4], "n_components": [2, 4]}
HALVING = {"resource": "n_iter", "min_resources": 2, "max_resources": 8, "factor": 2}
SEARCHES = {
    "grid": lambda **jobs: GridSearchCV(RBM, GRID, cv=2, **jobs),
    "halving": lambda **jobs: HalvingGridSearchCV(
        RBM, GRID, cv=2, random_state=0, **HALVING, **jobs
    ),
    "randomized": lambda **jobs: RandomizedSearchCV(
        RBM, {"learning_rate": loguniform(0.01, 1)}, n_iter=4, cv=2, random_state=0, **jobs
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("search", SEARCHES)
def test_searches_find_the_same_side_by_side(search, backend):
    """Catches state that fits share, streams that depend on the order, objects not pickled."""
    serial = SEARCHES[search]().fit(X)
    with joblib.parallel_config(backend=backend):
        parallel = SEARCHES[search](n_jobs=2).fit(X)
    scores = [found.cv_results_["mean_test_score"] for found in (serial, parallel)]
    assert len(scores[0]) >= 4
    np.testing.assert_array_equal(*scores)
    assert parallel.best_params_ == serial.best_params_
    np.testing.assert_array_equal(parallel.transform(X), serial.transform(X))


def test_halving_gives_the_last_candidates_the_most_passes():
    found = SEARCHES["halving"]().fit(X)
    assert sorted(set(found.cv_results_["n_resources"])) == [2, 4, 8]
    assert found.best_estimator_.n_iter_ == 8


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_optuna_scores_a_grid_as_a_grid_search_does(n_jobs):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        settings = {name: trial.suggest_categorical(name, GRID[name]) for name in GRID}
        return cross_val_score(clone(RBM).set_params(**settings), X, cv=2).mean()

    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.GridSampler(GRID, seed=0)
    )
    study.optimize(objective, n_jobs=n_jobs)
    search = SEARCHES["grid"]().fit(X)
    expected = dict(
        zip(
            map(str, search.cv_results_["params"]),
            search.cv_results_["mean_test_score"],
            strict=True,
        )
    )
    found = {
        str({name: trial.params[name] for name in GRID}): trial.value for trial in study.trials
    }
    assert found == expected


def test_columns_are_transformed_on_their_own():
    columns = ColumnTransformer(
        [("first", RBM, [0, 1, 2]), ("rest", MinMaxScaler((-1, 1)), [3, 4, 5])]
    )
    features = columns.fit_transform(X)
    alone = clone(RBM).fit_transform(X[:, :3])
    np.testing.assert_allclose(features[:, :2], alone, rtol=0, atol=1e-12)
    assert columns.get_feature_names_out()[0] == "first__bernoullirbm0"


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.slow), "threading"])
def test_unions_are_the_same_side_by_side(backend):
    spins = make_pipeline(MinMaxScaler((-1, 1)), SpinRBM(3, n_iter=2, random_state=0))
    serial = FeatureUnion([("bernoulli", RBM), ("spin", spins)]).fit(X)
    with joblib.parallel_config(backend=backend):
        parallel = clone(serial).set_params(n_jobs=2).fit(X)
        np.testing.assert_array_equal(parallel.transform(X), serial.transform(X))
    assert len(serial.get_feature_names_out()) == 5


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_come_out_of_pipelines(library):
    pytest.importorskip(library)
    pipeline = make_pipeline(MinMaxScaler(), clone(RBM))
    features = pipeline.fit_transform(X)
    frame = clone(pipeline).set_output(transform=library).fit_transform(X)
    assert list(frame.columns) == ["bernoullirbm0", "bernoullirbm1"]
    np.testing.assert_allclose(frame.to_numpy(), features, rtol=0, atol=1e-12)
