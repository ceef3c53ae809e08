"""The examples of scaling out: many processes find, to the bit or nearly, what one finds."""

import os
import runpy
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from estimators.instances import draw
from sklearn.model_selection import GridSearchCV

from skrbm import BernoulliRBM

EXAMPLES = Path(__file__).parents[1] / "examples" / "scaling"
X = draw("bernoulli", 60, 6)


def example(name):
    """Names that a script defines."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.fixture(scope="module")
def cluster():
    """Two processes that listen on this machine alone."""
    distributed = pytest.importorskip("distributed")
    options = example("search_on_dask")["HERE"]
    with distributed.LocalCluster(**options) as cluster:
        assert cluster.scheduler_address.startswith("tcp://127.0.0.1:")
        yield cluster


@pytest.mark.slow
def test_a_search_on_a_cluster_finds_what_it_finds_in_one_process(cluster):
    """Seen to fail with random_state=None: catches streams that depend on where a fit runs."""
    rbm = BernoulliRBM(2, n_iter=2, random_state=0)
    search = GridSearchCV(rbm, {"learning_rate": [0.1, 0.4, 0.8]}, cv=2)
    (alone, _), (found, _) = example("search_on_dask")["run"](search, X, cluster.scheduler_address)
    scores = [result.cv_results_["mean_test_score"] for result in (alone, found)]
    np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(found.transform(X), alone.transform(X))
    tasks = cluster.scheduler.cumulative_worker_metrics
    assert any("execute" in str(key) for key in tasks), "nothing ran on the cluster"


@pytest.mark.slow
def test_a_search_on_ray_finds_what_it_finds_in_one_process():
    """Seen to fail without n_jobs, where ray's backend works in this process."""
    pytest.importorskip("ray")
    rbm = BernoulliRBM(2, n_iter=2, random_state=0)
    search = GridSearchCV(rbm, {"learning_rate": [0.1, 0.4, 0.8]}, cv=2)
    names = example("search_on_ray")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ray itself
        with names["cluster"]():
            nodes = names["ray"].nodes()
            assert [node["NodeManagerAddress"] for node in nodes] == ["127.0.0.2"]
            with joblib.parallel_config(backend="ray", n_jobs=-1):
                processes = joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(4))
            assert os.getpid() not in processes
            (alone, _), (found, _) = names["run"](search, X)
    scores = [result.cv_results_["mean_test_score"] for result in (alone, found)]
    np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(found.transform(X), alone.transform(X))


def test_row_groups_of_a_file_are_learned_as_the_same_blocks_in_memory_are(tmp_path):
    """Seen to fail with the row groups in reverse, and with features of the first one alone."""
    parquet = pytest.importorskip("pyarrow.parquet")
    names, path = example("stream_from_parquet"), tmp_path / "rows.parquet"
    names["write_rows"](path, 3, n_rows=50, n_features=6)
    rows = parquet.read_table(path).to_pandas()
    in_memory = [rows[begin : begin + 50] for begin in (0, 50, 100)]
    from_file = names["train"](lambda: names["blocks"](path), 3, 2)
    expected = names["train"](lambda: in_memory, 3, 2)
    np.testing.assert_array_equal(from_file.components_, expected.components_)
    names["write_features"](from_file, path, tmp_path / "features.parquet")
    features = parquet.read_table(tmp_path / "features.parquet").to_pandas()
    assert list(features) == list(from_file.get_feature_names_out())
    np.testing.assert_allclose(features, from_file.transform(rows), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_partitions_have_the_features_and_scores_of_their_rows(cluster):
    """Seen to fail with the blocks' order reversed."""
    da = pytest.importorskip("dask.array")
    from distributed import Client

    rbm = BernoulliRBM(3, n_iter=2, random_state=0).fit(X)
    names, blocks = example("transform_partitions"), da.from_array(X, chunks=(25, -1))
    with Client(cluster.scheduler_address):
        features, scores = names["features"](rbm, blocks), names["scores"](rbm, blocks)
        assert features.shape == (60, 3)
        assert scores.numblocks == (3,)
        np.testing.assert_allclose(features.compute(), rbm.transform(X), atol=1e-12)
        np.testing.assert_allclose(scores.compute(), rbm.score_samples(X), atol=1e-9)


@pytest.mark.slow
def test_a_stream_of_blocks_resumes_to_the_bit_after_a_kill(tmp_path):
    """Seen to fail with a checkpoint of `components_` and intercepts alone."""
    pytest.importorskip("dask.array")
    names, path = example("stream_with_checkpoints"), tmp_path / "killed"
    whole, _ = names["train"](tmp_path / "whole", 3, 2)
    size = ["--blocks", "3", "--passes", "2", "--dies-after", "4"]
    script = [sys.executable, EXAMPLES / "stream_with_checkpoints.py", "--path", path, *size]
    died = subprocess.run(
        script,
        cwd=EXAMPLES.parents[1],
        env=os.environ | {"PYTHONPATH": str(EXAMPLES.parents[1])},
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    assert joblib.load(path)[1] == 3  # the fourth block was learned, and not saved
    resumed, _ = names["train"](path, 3, 2)
    assert joblib.hash(vars(resumed)) == joblib.hash(vars(whole))


def test_optuna_gives_up_on_models_that_lag_behind():
    """Seen to fail with reports of the wrong sign."""
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = example("optuna_pruning")["run"](X[:40], X[40:], n_trials=10, n_passes=5)
    complete, pruned = (
        [trial for trial in study.trials if trial.state == state]
        for state in (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    )
    assert len(complete) + len(pruned) == 10
    assert pruned
    for trial in complete:
        assert trial.intermediate_values[4] == trial.value
    for trial in pruned:
        last, value = max(trial.intermediate_values.items())
        others = [
            other.intermediate_values[last] for other in complete if other.number < trial.number
        ]
        assert last < 4
        assert value < max(others)
    assert study.best_trial in complete
