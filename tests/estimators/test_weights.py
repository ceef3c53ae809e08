"""Rows of weight k are k copies, in all that a fit and a score do with them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from estimators.instances import (
    DISCRETE_KINDS,
    ESTIMATORS,
    KINDS,
    assert_same_arrays,
    draw,
    held_out_split,
    learned_bits,
    new,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skrbm import (
    BernoulliRBM,
    GaussianBernoulliRBM,
    OverfittingWarning,
    RBMClassifier,
    RBMOutlierDetector,
    TabularRBM,
)
from skrbm.core.likelihood.pseudo import monitored_rows
from skrbm.estimators.fitting.problem import RowProblem

EXACT = {"algorithm": "exact", "batch_size": 10**6, "n_iter": 10, "random_state": 0}
BAD = {
    "negative": ([1.0, -1.0, 1.0, 1.0], "-1"),
    "all zero": ([0.0, 0.0, 0.0, 0.0], "zero"),
    "missing": ([1.0, np.nan, 1.0, 1.0], "NaN"),
    "infinite": ([1.0, np.inf, 1.0, 1.0], "infinity"),
    "beyond doubles": (
        [1e308, 1e308, 1.0, 1.0],
        r"range of double precision, got values from 1 to 1e\+308",
    ),
    "too small": (
        [1e-310, 0.0, 0.0, 0.0],
        r"range of double precision, got values from 0 to 1e-310",
    ),
    "too few": ([1.0, 1.0, 1.0], r"\(3,\)"),
    "a column": ([[1.0], [1.0], [1.0], [1.0]], "1D"),
}


@pytest.mark.parametrize("scale", [1e-300, 1e160, 1e300])
def test_only_ratios_of_weights_matter_at_any_scale(scale):
    """Slips: squares of weights that overflow or vanish, whole numbers of rows beyond 64 bits, and
    shares of labels that do not sum to one.
    """
    X, y, weights = draw("bernoulli", 40), np.arange(40) % 5 == 0, 1.0 + np.arange(40) % 4
    big, rbm = weights * max(1.0, scale), BernoulliRBM(3, n_iter=2, random_state=0)
    expected = clone(rbm).fit(X, sample_weight=weights / weights.sum()).score_samples(X)
    got = clone(rbm).fit(X, sample_weight=weights * scale).score_samples(X)
    tolerance = 0.2 if scale > 1 else 1e-6  # many rows tell rare values better than few
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)
    assert np.isfinite(TabularRBM(2, n_iter=2).fit(X * 1.0, sample_weight=big).score(X))
    classifier = RBMClassifier(clone(rbm).set_params(n_iter=0))
    biases = [
        clone(classifier).fit(X, y, sample_weight=own).intercept_label_
        for own in (weights * scale, weights)
    ]
    np.testing.assert_allclose(*biases, rtol=0, atol=1e-6)
    detector = RBMOutlierDetector(clone(rbm)).fit(X, sample_weight=weights * scale)
    assert np.isfinite(detector.offset_)


def weighted(kind, n_samples=40):
    """Rows, weights from 0 to 3, and the copies that they stand for."""
    X = draw(kind, n_samples)
    weights = np.arange(n_samples) % 4
    return X, weights, np.repeat(X, weights, axis=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"centering": False, "optimizer": "adam", "learning_rate": 0.01},
        {"average": False, "momentum": 0.5, "l2": 0.01},
    ],
    ids=["defaults", "adam", "penalties"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_weight_is_a_number_of_copies(kind, options):
    """Slips: starts, offsets, steps, penalties or recorded scores of unweighted rows; rows of
    weight zero that count.
    """
    X, weights, copies = weighted(kind)
    one = new(kind, **EXACT | options).fit(X, sample_weight=weights)
    other = new(kind, **EXACT | options).fit(copies)
    assert_same_arrays(one, other, rtol=0, atol=1e-10)
    for name in ("pseudo_likelihood", "mean_activation", "learning_rate"):
        np.testing.assert_allclose(one.history_[name], other.history_[name], rtol=0, atol=1e-9)
    score = one.score(X, sample_weight=weights)
    np.testing.assert_allclose(score, one.score(copies), rtol=0, atol=1e-10)
    np.testing.assert_allclose(one._data["all"][0], len(copies))


@pytest.mark.parametrize("kind", DISCRETE_KINDS)
def test_weights_of_sparse_rows_are_those_of_dense_ones(kind):
    """Slip: a product of a sparse mini-batch that forgets the weights."""
    X, weights, _ = weighted(kind)
    options = EXACT | {"algorithm": "pcd", "batch_size": 7}
    one = new(kind, **options).fit(X, sample_weight=weights)
    other = new(kind, **options).fit(sparse.csr_array(X), sample_weight=weights)
    assert_same_arrays(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_weight_zero_leave_no_trace(kind):
    """Slip: absent rows that are part of a mini-batch, of the statistics or of a split."""
    X, weights, _ = weighted(kind)
    options = {"early_stopping": True, "n_iter": 3, "random_state": 0}
    one = new(kind, **options).fit(X, sample_weight=weights)
    other = new(kind, **options).fit(X[weights > 0], sample_weight=weights[weights > 0])
    assert learned_bits(one) == learned_bits(other)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_one_are_no_weights(kind):
    """Slip: mini-batches of another length of step than unweighted ones."""
    X, _, _ = weighted(kind)
    one = new(kind, n_iter=3, random_state=0).fit(X, sample_weight=np.full(40, 7.0))
    other = new(kind, n_iter=3, random_state=0).fit(X)
    assert_same_arrays(one, other, rtol=0, atol=1e-2 if kind == "spin" else 1e-3)
    exact = [new(kind, **EXACT) for _ in range(2)]
    for rbm, weight in zip(exact, (1.0, None), strict=True):
        rbm.partial_fit(X, sample_weight=weight).partial_fit(X[:7])
    assert_same_arrays(*exact, rtol=0, atol=1e-10)


def test_held_out_rows_are_weighted():
    """Slip: weights of the training rows for those held out, or none."""
    X, weights, _ = weighted("bernoulli", 90)
    X, weights = X[weights > 0], weights[weights > 0]
    rbm = BernoulliRBM(3, early_stopping=True, n_iter=1, random_state=0)
    rbm.fit(X, sample_weight=weights)
    learned, held_out = held_out_split(rbm, len(X))
    machine = rbm._model.machine()
    scores, weight = monitored_rows(machine, X[held_out], len(learned), weights[held_out])
    score = np.average(scores, weights=weight)
    np.testing.assert_allclose(rbm.history_["validation_pseudo_likelihood"], [score], atol=1e-9)
    energies = [
        np.average(rbm.free_energy(X[rows]), weights=weights[rows]) for rows in (held_out, learned)
    ]
    gap = energies[0] - energies[1]
    np.testing.assert_allclose(rbm.history_["free_energy_gap"], [gap], rtol=0, atol=1e-9)


def test_stream_of_single_rows_is_weighted():
    """Slip: weights compared with the mean of every call, which makes them all one."""
    X = draw("bernoulli", 20)
    streams = []
    for weights in (np.ones(20), np.arange(20) % 4 + 1.0):
        rbm = BernoulliRBM(2, algorithm="exact", random_state=0)
        for row, weight in zip(X, weights, strict=True):
            rbm.partial_fit(row[None], sample_weight=[weight])
        streams.append(rbm.intercept_visible_)
    assert np.abs(streams[0] - streams[1]).max() > 0.01


@pytest.mark.parametrize("n_rows", [1, 20])
@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_statistics_of_a_stream_are_weighted(scale, n_rows):
    """Slip: a call of small weights counts as many rows as it has."""
    X = np.random.default_rng(0).normal([0, 0, 5], size=(100, 3))
    X[50:] += 5
    weights = np.repeat([0.01, 1.99], 50) * scale
    rbm = GaussianBernoulliRBM(2, random_state=0)
    for begin in range(0, len(X), n_rows):
        rows = slice(begin, begin + n_rows)
        rbm.partial_fit(X[rows], sample_weight=weights[rows])
    size, mean, variance = rbm._data["all"]
    expected = np.average(X, axis=0, weights=weights)
    np.testing.assert_allclose(size, max(weights.sum(), weights.sum() ** 2 / (weights**2).sum()))
    np.testing.assert_allclose(mean, expected)
    expected = np.average((X - expected) ** 2, axis=0, weights=weights)
    np.testing.assert_allclose(variance, expected)


@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
def test_large_weights_of_a_constant_column_keep_its_bias_finite(kind):
    """Slip: n / (n + 1) that is rounded to 1, and an error that advises to scale bits."""
    X = draw(kind, 30)
    X[:, 1] = X.min()
    rbm = new(kind, 3, n_iter=2, random_state=0).fit(X, sample_weight=np.full(30, 1e15))
    assert np.isfinite(rbm.intercept_visible_).all()


@pytest.mark.parametrize("scale", [1e155, 1e300])
def test_large_weights_of_rows_with_missing_values_do_not_overflow(scale):
    """Slip: a product of two sums of weights, whose overflow NumPy reports."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[::3, 0] = np.nan
    rbm = GaussianBernoulliRBM(2, missing="marginalize", random_state=0)
    for rows in (X[:10], X[10:]):
        rbm.partial_fit(rows, sample_weight=np.full(len(rows), scale))
    np.testing.assert_allclose(rbm._data["all"][1], np.nanmean(X, axis=0))


def test_rows_of_tiny_weight_do_not_set_the_scale_of_a_stream():
    """Slip: rows of weight 1e-6 among the first ones set the variance of the noise for good."""
    X = np.random.default_rng(0).normal(size=(100, 3))
    wild = np.insert(X, [2, 7, 9], 300.0, axis=0)
    weights = np.where(wild[:, 0] == 300, 1e-6, 1.0)
    streams = []
    for rows, own in ((X, np.ones(len(X))), (wild, weights)):
        rbm = GaussianBernoulliRBM(2, random_state=0)
        for row, weight in zip(rows, own, strict=True):
            rbm.partial_fit(row[None], sample_weight=[weight])
        streams.append(rbm.log_likelihood(X).mean())
    np.testing.assert_allclose(*streams, rtol=0, atol=0.3)


def test_small_weights_are_shares_of_rows():
    """Slip: weights of a sum of one taken for a single row, whose statistics say little."""
    X, weights, _ = weighted("bernoulli")
    X, weights = X[weights > 0], weights[weights > 0].astype(float)
    rbm = new("bernoulli", n_iter=1)
    for given, n_rows in (
        (weights, weights.sum()),
        (weights / weights.sum(), weights.sum() ** 2 / (weights**2).sum()),
        (None, len(X)),
    ):
        problem = RowProblem.of(rbm, X, given, is_planned=True)
        np.testing.assert_allclose(problem.statistics[0], n_rows)


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "score"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_weights_that_mean_nothing_are_refused(estimator, method, case):
    """Slip: a check of the weights after the estimator has changed."""
    X = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]])
    rbm = estimator(2, check_input="ignore", random_state=0).fit(X)
    before = learned_bits(rbm)
    weights, match = BAD[case]
    with pytest.raises(ValueError, match=match):
        getattr(rbm, method)(X, sample_weight=weights)
    assert learned_bits(rbm) == before


@pytest.mark.slow
@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize(
    ("model", "method"),
    [
        (RBMClassifier(BernoulliRBM(2, random_state=0)), "fit"),
        (RBMClassifier(BernoulliRBM(2, random_state=0)), "partial_fit"),
        (RBMOutlierDetector(BernoulliRBM(2, random_state=0)), "fit"),
        (TabularRBM(2, random_state=0), "fit"),
        (TabularRBM(2, random_state=0), "partial_fit"),
    ],
)
def test_models_of_models_refuse_them_too(model, method, case):
    """Slips: weights of zero or less that reach the machine, or leave an attribute behind."""
    X, y = np.eye(4), [0, 1, 0, 1]
    model = clone(model).fit(X, y)
    before = vars(model).copy()
    weights, match = BAD[case]
    with pytest.raises(ValueError, match=match):
        getattr(model, method)(X, y, sample_weight=weights)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_weights_are_routed_through_pipelines_and_searches():
    """Slip: a method that does not name the weights, which are then not routed."""
    X, weights, _ = weighted("bernoulli", 60)
    halves = (slice(30, 60), slice(0, 30)), (slice(0, 30), slice(30, 60))
    with sklearn.config_context(enable_metadata_routing=True):
        rbm = BernoulliRBM(2, n_iter=2, random_state=0)
        rbm.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(rbm, {"l2": [0.0]}, cv=2).fit(X, sample_weight=weights)
        pipeline = make_pipeline(FunctionTransformer(), rbm).fit(X, sample_weight=weights)
    expected = [
        BernoulliRBM(2, n_iter=2, random_state=0)
        .fit(X[train], sample_weight=weights[train])
        .score(X[test], sample_weight=weights[test])
        for train, test in halves
    ]
    scores = [search.cv_results_[f"split{split}_test_score"][0] for split in (0, 1)]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    direct = BernoulliRBM(2, n_iter=2, random_state=0).fit(X, sample_weight=weights)
    assert_same_arrays(search.best_estimator_, direct)
    assert_same_arrays(pipeline[-1], direct)


def test_features_that_vary_only_without_weight_are_constant():
    """Slip: the variance of absent rows, which a Gaussian unit would start from."""
    X = draw("krizhevsky", 20)
    weights = np.arange(20) < 10
    X[weights, 0] = 1.0
    with pytest.warns(UserWarning, match=r"Features \[0\] of X are constant"):
        GaussianBernoulliRBM(2, n_iter=1, random_state=0).fit(X, sample_weight=weights)


def a_table(n_samples=120, seed=0):
    """Skewed numbers with zeros, and categories, of 40 rows as 0, 1 or 2 copies."""
    rng = np.random.default_rng(seed)
    debt = np.where(rng.random(n_samples) < 0.3, 0.0, rng.lognormal(size=n_samples))
    X = pd.DataFrame({"debt": debt, "port": np.array(list("CQS"))[rng.integers(3, size=n_samples)]})
    return X, np.arange(n_samples) % 3


@pytest.mark.parametrize("numeric_scale", ["normal", "mixture", "standard"])
@pytest.mark.parametrize("scale", [1, 1e-3])
def test_weight_of_a_row_of_a_table_is_a_number_of_copies(numeric_scale, scale):
    """Slips: scales, maps and categories of all rows alike, and weights below one that are too few
    rows for a map. Equal weights of at most one are as good as none.
    """
    X, weights = a_table()
    copies = X.loc[np.repeat(X.index, weights)]
    rbm = TabularRBM(2, numeric_scale=numeric_scale, **EXACT | {"n_iter": 0})
    one = clone(rbm).fit(X, sample_weight=weights * 1.0)
    twin = clone(rbm).fit(copies)
    np.testing.assert_allclose(one.score_samples(X), twin.score_samples(X), rtol=0, atol=1e-9)
    equal, plain = clone(rbm).fit(X, sample_weight=np.full(len(X), scale)), clone(rbm).fit(X)
    np.testing.assert_allclose(equal.transform(X), plain.transform(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, np.ndarray])
def test_rows_of_a_table_without_weight_leave_no_trace(library):
    """Slips: samples up to 10,000 times too large, and categories of rows that do not count."""
    X, weights = a_table()
    X.loc[weights == 0, "debt"] *= 1e4
    X.loc[weights == 0, "port"] = "nowhere"
    if library is pl.DataFrame:
        X = pl.DataFrame(X.to_dict("list"))
    elif library is np.ndarray:
        X = X.to_numpy()
    kinds = {0 if library is np.ndarray else "debt": "numeric"}
    kinds |= {1 if library is np.ndarray else "port": "categorical"}
    rbm = TabularRBM(2, kinds=kinds, handle_unknown="error", n_iter=2, random_state=0)
    for model in (rbm, RBMClassifier(rbm)):
        if model is rbm:
            fitted = clone(model).fit(X, sample_weight=weights)
        else:
            fitted = clone(model).fit(X, np.arange(120) % 2, sample_weight=weights).estimator_
        assert list(fitted.categories_[1]) == ["C", "Q", "S"]
        drawn = fitted.sample(200, 5)
        debt = drawn.to_numpy()[:, 0] if library is not np.ndarray else drawn[:, 0]
        assert debt.astype(float).max() < 50


def test_weight_of_a_class_of_a_table_is_that_of_its_rows():
    """Slip: maps that rows of a class without weight, or of twice the weight, have a say in."""
    X, y = a_table()[0], np.arange(120) // 40
    rbm = TabularRBM(2, **EXACT | {"n_iter": 0})
    by_class = RBMClassifier(rbm, class_weight={0: 1, 1: 2, 2: 3}).fit(X, y)
    by_row = RBMClassifier(rbm).fit(X, y, sample_weight=1.0 + y)
    np.testing.assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))
    plain = RBMClassifier(rbm).fit(X, y)
    assert np.abs(by_row.predict_proba(X) - plain.predict_proba(X)).max() > 0.01


def test_start_at_clusters_has_their_weights():
    """Slip: modes and first chains that follow the numbers of rows."""
    rng, group = np.random.default_rng(0), np.repeat([0, 1], 200)
    X = (rng.random((400, 40)) < np.where(group[:, None], 0.97, 0.03)) * 1.0
    weights = np.where(group, 1, 9)
    rbm = BernoulliRBM(8, n_iter=0, n_particles=500, random_state=0).fit(X, sample_weight=weights)
    chains = rbm.inverse_transform(rbm.h_samples_).mean(axis=1)
    assert (chains > 0.5).mean() == pytest.approx(0.1, abs=0.05)
    score = np.average(rbm.log_likelihood(X), weights=weights)
    other = BernoulliRBM(8, n_iter=0, random_state=0).fit(np.repeat(X, weights, axis=0))
    assert score > np.average(other.log_likelihood(X), weights=weights) - 0.2


def test_warnings_count_weights_as_copies():
    """Slips: as many rows as there are weights; a bound that heavy weights make too certain."""
    rng = np.random.default_rng(0)
    X = np.unique((rng.random((40, 12)) < 0.5) * 1.0, axis=0)
    with pytest.warns(OverfittingWarning):
        BernoulliRBM(64, n_iter=600, random_state=0).fit(X, sample_weight=np.ones(len(X)))
    BernoulliRBM(64, n_iter=600, random_state=0).fit(X, sample_weight=np.full(len(X), 200))
    rng = np.random.default_rng(7)
    rng.random((500, 10))
    weights, X = np.exp(3 * rng.normal(size=500)), rng.normal(size=(500, 4))
    GaussianBernoulliRBM(8, n_iter=10, random_state=0).fit(X, sample_weight=weights)


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_of_almost_all_the_weight(kind):
    """Slip: an average over the columns that is weighted by variances rounded to zero."""
    weights = np.ones(len(draw(kind)))
    weights[0] = 1e18
    rbm = new(kind, n_iter=1, random_state=0).fit(draw(kind), sample_weight=weights)
    assert np.isfinite(rbm.components_).all()


def test_batches_of_negligible_weight_train_nothing():
    # Slip: a mean with weights that are all rounded to zero, and advice about the learning rate.
    X = np.random.default_rng(0).random((30, 4)) < 0.5
    weights = np.r_[1e300, np.full(29, 1e-300)]
    rbm = BernoulliRBM(2, batch_size=10, n_iter=2, random_state=0).fit(X, sample_weight=weights)
    assert np.isfinite(rbm.components_).all()
