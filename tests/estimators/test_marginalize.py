"""Missing values in training, features and scores."""

from itertools import product

import numpy as np
import oracles
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators.instances import KINDS, assert_same_arrays, draw, learned_bits, new
from estimators.test_tabular import ROWS, discrete, fitted, law, mixed
from scipy.special import logsumexp

from skrbm import (
    AnnealingWarning,
    BernoulliRBM,
    GaussianBernoulliRBM,
    RBMClassifier,
    TabularRBM,
    log_likelihood_scorer,
)
from skrbm.estimators.input.formats import ArrayRows


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def with_holes(X, share=0.3, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


@pytest.mark.slow
def test_exact_training_recovers_the_law_of_the_complete_data():
    """What is missing depends on what is known; 4 standard errors of the best estimate there is.

    Complete rows alone, and holes filled by the most frequent value, are far off. Catches a positive
    phase at the first draws, which leaves the columns independent where they are missing.
    """
    rng, n_samples = np.random.default_rng(0), 20_000
    joint = np.array([[0.30, 0.05, 0.15], [0.05, 0.25, 0.20]])
    cells = rng.choice(6, n_samples, p=joint.ravel())
    X = pd.DataFrame(
        {"a": np.array(["x", "y"])[cells // 3], "b": np.array(["u", "v", "w"])[cells % 3]}
    )
    is_missing = rng.random(n_samples) < np.where(X["a"] == "x", 0.05, 0.55)
    holes = X.assign(b=X["b"].mask(is_missing))
    every = pd.DataFrame({"a": list("xxxyyy"), "b": list("uvwuvw")})

    rbm = TabularRBM(
        3, algorithm="exact", learning_rate=2, n_iter=20, batch_size=500, random_state=0
    )
    learned = np.exp(rbm.fit(holes).log_likelihood(every))
    shares = np.bincount(cells, minlength=6) / n_samples
    known = np.bincount(cells[~is_missing], minlength=6)
    best = np.repeat(shares.reshape(2, 3).sum(axis=1), 3) * known
    best /= np.repeat(known.reshape(2, 3).sum(axis=1), 3)
    error = np.sqrt(shares * (1 - shares) / known)
    assert (np.abs(best - shares) < 4 * error).all()
    assert (np.abs(learned - shares) < 4 * error + 0.005).all()
    for filled in (holes.dropna(), holes.fillna({"b": holes["b"].mode()[0]})):
        best_of_filled = filled.groupby(["a", "b"]).size() / len(filled)
        assert (np.abs(best_of_filled.to_numpy() - shares) > 8 * error).any()


def test_missing_values_are_refused_unless_they_are_to_be_summed_over(kind):
    X = draw(kind)
    holes = with_holes(X)
    rbm = new(kind, n_iter=2, random_state=0)
    for call in (
        rbm.fit,
        rbm.partial_fit,
        rbm.fit(X).transform,
        rbm.score_samples,
        rbm.log_likelihood,
    ):
        with pytest.raises(ValueError, match="contains NaN"):
            call(holes)
    rbm.set_params(missing="marginalize")
    for call in (rbm.free_energy, rbm.gibbs):
        with pytest.raises(ValueError, match="contains NaN"):
            call(holes)
    for call in (rbm.fit, rbm.transform, rbm.score_samples, rbm.log_likelihood):
        with pytest.raises(ValueError, match="infinity"):
            call(np.where(np.isnan(holes), np.inf, X))


def test_complete_rows_train_alike_whether_holes_are_allowed_or_not(kind):
    """Catches random numbers that are drawn for nothing."""
    X = draw(kind)
    one, other = (
        new(kind, n_iter=3, random_state=0, missing=missing).fit(X).partial_fit(X)
        for missing in ("raise", "marginalize")
    )
    assert_same_arrays(one, other)
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


@pytest.mark.slow
def test_every_model_learns_from_holes(kind):
    """Rows whose twins are missing: the score of what they were rises as from complete rows."""
    rng = np.random.default_rng(0)
    X = np.repeat(draw(kind, 200, 3), 2, axis=1)
    X = X + 0.1 * rng.standard_normal(X.shape) if kind not in ("bernoulli", "spin") else X
    n_iter = 60 if kind in ("bernoulli", "spin") else 20
    options = {"n_iter": n_iter, "n_particles": 20, "random_state": 0, "missing": "marginalize"}
    independent = new(kind, 6, **options | {"n_iter": 0}).fit(X).score(X)
    complete = new(kind, 6, **options).fit(X).score(X)
    rbm = new(kind, 6, early_stopping=False, **options).fit(with_holes(X, 0.2))
    assert rbm.score(X) > independent + 0.5 * (complete - independent)
    before = rbm.components_.copy()
    rbm.partial_fit(with_holes(X, 0.2, seed=1))
    assert (rbm.components_ != before).any()
    assert np.isfinite(rbm.score_samples(with_holes(X))).all()


def test_defaults_learn_from_rows_most_of_which_is_missing():
    """Clusters, of which a quarter is observed: 80 % of the gain of complete rows.

    Without the initial values in the first updates, it is 45 %.
    """

    class Redrawn(BernoulliRBM):
        _left_out = frozenset({"initial values"})

    rng = np.random.default_rng(0)
    centers = rng.random((4, 40)) < 0.5
    X = (centers[rng.integers(0, 4, 3000)] ^ (rng.random((3000, 40)) < 0.1)).astype(float)
    train, test = X[:2000], X[2000:]
    holes = with_holes(train, 0.75)
    independent, incomplete, redrawn, complete = (
        estimator(10, n_iter=n_iter, missing="marginalize", random_state=0)
        .fit(rows)
        .log_likelihood(test)
        .mean()
        for estimator, rows, n_iter in (
            (BernoulliRBM, train, 0),
            (BernoulliRBM, holes, 10),
            (Redrawn, holes, 10),
            (BernoulliRBM, train, 10),
        )
    )
    assert incomplete - independent > 0.8 * (complete - independent)
    assert redrawn - independent < 0.6 * (complete - independent)


@pytest.mark.slow
def test_rows_with_gray_values_and_holes_say_nothing_of_ties():
    """Two features are equal where both are known; elsewhere one is gray and the other missing.

    Catches draws of what is missing that are given gray means and not the states that are learned.
    """
    bits = np.repeat([[0.0, 0.0], [1.0, 1.0]], 250, axis=0)
    gray = np.tile([0.5, np.nan], (500, 1))
    rbm = BernoulliRBM(2, algorithm="exact", n_iter=60, missing="marginalize", random_state=0)
    p_untied = np.exp(rbm.fit(np.concatenate([bits, gray])).log_likelihood([[0, 1], [1, 0]]))
    assert p_untied.sum() < 0.1


@pytest.mark.every_kind
def test_seed_repeats_training_from_holes(kind):
    holes = with_holes(draw(kind))
    one, other = (
        new(kind, n_iter=3, random_state=0, missing="marginalize", early_stopping=True).fit(holes)
        for _ in range(2)
    )
    assert_same_arrays(one, other)
    np.testing.assert_array_equal(one.transform(holes), other.transform(holes))
    np.testing.assert_array_equal(one.transform(holes), one.transform(holes))


def test_features_and_scores_are_averaged_over_what_is_missing():
    """Against sums over the missing value; 5 standard errors of ten draws, averaged over 200 rows."""
    rbm = discrete()
    p = pd.Series(np.exp(law(rbm)))
    is_row = (ROWS["color"] == "red") & (ROWS["size"] == 2)
    shares = (p[is_row] / p[is_row].sum()).to_numpy()
    rows = ROWS[is_row]
    holes = pd.DataFrame(
        {"color": "red", "size": [2] * 200, "is_new": pd.array([None] * 200, dtype="boolean")}
    )
    features = rbm.transform(rows)
    expected = shares @ features
    spread = np.sqrt(shares @ (features - expected) ** 2)
    error = 5 * spread / np.sqrt(10 * len(holes))
    assert (np.abs(rbm.transform(holes).mean(axis=0) - expected) < error).all()
    p_known = np.zeros(len(rows))
    for name in ("color", "size"):  # known columns alone are scored
        rest = ROWS.drop(columns=name).apply(tuple, axis=1)
        p_known += np.log(p / p.groupby(rest).transform("sum"))[is_row].to_numpy()
    expected, spread = shares @ p_known, np.sqrt(shares @ (p_known - shares @ p_known) ** 2)
    assert abs(rbm.score_samples(holes).mean() - expected) < 5 * spread / np.sqrt(2000)


@pytest.mark.parametrize("method", ["transform", "score_samples"])
def test_rows_are_looked_through_for_missing_values_once(method, monkeypatch):
    # Slip: every function that needs the mask makes its own.
    looks, observed_units = [], ArrayRows.observed_units

    def counted(*args):
        looks.append(args)
        return observed_units(*args)

    monkeypatch.setattr(ArrayRows, "observed_units", counted)
    X = draw("bernoulli").astype(float)
    rbm = BernoulliRBM(2, n_iter=1, random_state=0, missing="marginalize").fit(X)
    for rows in (X, with_holes(X)):
        looks.clear()
        getattr(rbm, method)(rows)
        assert len(looks) == 1


@pytest.mark.slow
def test_columns_without_a_known_value_are_kept():
    """Slips: NaN in the start; categories that are lost; a second warning, of constants."""
    X = mixed().assign(age=np.nan, port=pd.Categorical([None] * 200, categories=["C", "S"]))
    X["note"] = pd.Series([None] * 200, dtype=object)
    message = r"Columns \['port', 'age', 'note'\] of X have no observed value"
    with pytest.warns(UserWarning, match=message) as caught:
        rbm = fitted(X)
    assert not any("constant" in str(warning.message) for warning in caught)
    for array in (rbm.components_, rbm.intercept_visible_, rbm.transform(X), rbm.score_samples(X)):
        assert np.isfinite(array).all()
    filled = rbm.impute(X, method="sample", n_gibbs_steps=5)
    assert set(filled["port"]) == {"C", "S"}
    assert filled["age"].notna().all()
    assert filled["note"].isna().all()


def test_holes_of_frames_are_missing_whatever_they_are_called():
    X = mixed()
    marks = (None, np.nan, pd.NA)
    holes = [X.astype(object).assign(port=X["port"].astype(object)) for _ in marks]
    for table, mark in zip(holes, marks, strict=True):
        table.loc[:50, "port"] = mark
    kinds = {"age": "numeric", "alone": "binary", "fare": "numeric", "share": ("interval", 0, 100)}
    rbms = [fitted(table, kinds=kinds, n_iter=2) for table in holes]
    for rbm in rbms[1:]:
        np.testing.assert_array_equal(rbm.components_, rbms[0].components_)


def test_sparse_rows_train_as_they_did():
    X = sp.csr_array(draw("bernoulli"))
    one, other = (
        BernoulliRBM(2, n_iter=2, random_state=0, missing=missing).fit(X)
        for missing in ("raise", "marginalize")
    )
    assert_same_arrays(one, other)
    broken = X.astype(float)
    broken.data[0] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        other.fit(broken)


@pytest.mark.parametrize("n_components", [3, 13])
def test_log_likelihood_of_observed_values_sums_over_missing_ones(kind, n_components):
    """The states of 3 hidden units are summed over; of 13, those of a bit, and numbers by quadrature.

    Two numbers of a row are annealed.
    """
    X = draw(kind, n_samples=8)
    rbm = new(kind, n_components, n_iter=3, random_state=0, missing="marginalize").fit(X)
    holes, exact = X.copy(), rbm.log_partition("exact")
    holes[1:, 2] = np.nan
    is_real = kind in oracles.GAUSSIAN_ENERGIES
    values = np.linspace(-60, 60, 6001) if is_real else (np.unique(X) if kind == "spin" else (0, 1))
    step = values[1] - values[0] if is_real else 1
    completed = np.repeat(X[1:, None], len(values), axis=1)
    completed[:, :, 2] = values
    terms = rbm.log_likelihood(completed.reshape(-1, X.shape[1]), exact).reshape(len(X) - 1, -1)
    expected = logsumexp(terms, axis=1) + np.log(step)
    actual, error = rbm.log_likelihood(holes, exact, return_std=True)
    np.testing.assert_array_equal(actual[0], rbm.log_likelihood(X[:1], exact)[0])
    assert error[0] == 0
    assert not error.any()
    np.testing.assert_allclose(actual[1:], expected, rtol=0, atol=1e-6)
    if is_real and n_components == 13:
        terms = np.repeat(holes[1:3, None], len(values[::20]), axis=1)
        terms[:, :, 1] = values[::20]
        terms = rbm.log_likelihood(terms.reshape(-1, X.shape[1]), exact).reshape(2, -1)
        expected = logsumexp(terms, axis=1) + np.log(20 * step)
        holes[1:3, 1] = np.nan
        actual, error = rbm.log_likelihood(holes[1:3], exact, return_std=True)
        assert (error > 0).all()
        assert (np.abs(actual - expected) < 5 * error).all()


@pytest.mark.parametrize("n_missing", [12, 13])
def test_many_missing_bits_are_annealed_and_few_are_summed_over(n_missing):
    X = (np.random.default_rng(0).random((60, 15)) < 0.4).astype(float)
    X[::2, :6] = 1
    rbm = BernoulliRBM(13, n_iter=20, random_state=0, missing="marginalize").fit(X)
    holes, exact = X[:2].copy(), rbm.log_partition("exact")
    holes[:, 1 : 1 + n_missing] = np.nan
    states = oracles.states((0, 1), n_missing)
    actual, error = rbm.log_likelihood(holes, exact, return_std=True)
    assert (error > 0).all() == (n_missing == 13)
    for row, value, std_error in zip(X, actual, error, strict=False):
        completed = np.repeat(row[None], len(states), axis=0)
        completed[:, 1 : 1 + n_missing] = states
        expected = logsumexp(rbm.log_likelihood(completed, exact))
        assert abs(value - expected) < 5 * std_error + 1e-9
    again = rbm.log_likelihood(holes, exact)
    np.testing.assert_array_equal(again, actual)
    others = [rbm.log_likelihood(holes, exact, random_state=seed) for seed in (1, 2)]
    assert (others[0] == others[1]).all() == (n_missing == 12)


@pytest.mark.parametrize("n_components", [4, 13])
@pytest.mark.parametrize("scale", ["normal", "standard", "mixture"])
def test_log_likelihood_of_incomplete_rows_of_a_table(scale, n_components):
    """Against a sum over categories, and an integral over a skewed number on a stretched grid."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(["x", "y", "z"], 200), "b": rng.normal(0, 1, 200)})
    X["b"] = np.exp(X["b"] + (X["a"] == "y"))
    rbm = TabularRBM(n_components, n_iter=20, numeric_scale=scale, random_state=0).fit(X)
    exact = rbm.log_partition("exact")
    holes = X[:2].copy()
    holes.loc[0, "a"], holes.loc[1, "b"] = None, np.nan
    actual, error = rbm.log_likelihood(holes, exact, return_std=True)
    every = pd.concat([X[:1]] * 3).assign(a=["x", "y", "z"])
    np.testing.assert_allclose(actual[0], logsumexp(rbm.log_likelihood(every, exact)), atol=1e-9)
    nodes = np.linspace(-12, 12, 12_001)
    numbers, slopes = np.sinh(nodes), np.log(np.cosh(nodes))
    every = pd.concat([X[1:2]] * len(nodes)).assign(b=numbers)
    terms = rbm.log_likelihood(every, exact) + slopes + np.log(nodes[1] - nodes[0])
    assert not error.any()
    assert actual[1] == pytest.approx(logsumexp(terms), abs=1e-3)
    unknown = X[:1].assign(a="unknown")
    np.testing.assert_array_equal(rbm.log_likelihood(unknown, exact), actual[:1])
    nothing = rbm.log_likelihood(X[:1].assign(a=None, b=np.nan), exact, return_std=True)
    np.testing.assert_array_equal(nothing, 0)


def test_log_likelihood_of_incomplete_rows_keeps_the_precision_and_refuses_infinity():
    # Slips: double precision if one value is missing; inf, and a bare RuntimeWarning.
    X = draw("bernoulli").astype(np.float32)
    rbm = BernoulliRBM(13, n_iter=1, random_state=0, missing="marginalize").fit(X)
    holes = with_holes(X).astype(np.float32)
    for result in rbm.log_likelihood(holes, 100.0, return_std=True):
        assert result.dtype == np.float32
    rbm.components_ = np.full_like(rbm.components_, 3e38)
    holes[:, 0] = np.nan  # complete rows are checked elsewhere
    with pytest.raises(ValueError, match="finite"):
        rbm.log_likelihood(holes, 100.0)


def test_rows_without_values_are_not_annealed():
    # Slip: a warning of row 0, whose likelihood is one whatever its chains do.
    X = (np.random.default_rng(0).random((60, 20)) < 0.4).astype(float)
    rbm = BernoulliRBM(13, n_iter=1, random_state=0, missing="marginalize").fit(X)
    rbm.components_ = np.where(np.arange(20) % 2, 8.0, -8.0) * np.ones((13, 1))
    holes = np.where(np.arange(3)[:, None] == 0, np.nan, X[:3])
    actual, error = rbm.log_likelihood(holes, 1e4, n_chains=30, n_temperatures=2, return_std=True)
    assert actual[0] == error[0] == 0


def test_few_effective_chains_of_incomplete_rows_warn():
    X = (np.random.default_rng(0).random((60, 20)) < 0.4).astype(float)
    rbm = BernoulliRBM(13, n_iter=1, random_state=0, missing="marginalize").fit(X)
    rbm.components_ = np.where(np.arange(20) % 2, 8.0, -8.0) * np.ones((13, 1))
    holes = X[:3].copy()
    holes[1:, 2:] = np.nan
    with pytest.warns(
        AnnealingWarning, match=r"of 2 of 2 annealed rows .* is row 1: .*Increase n_"
    ):
        rbm.log_likelihood(holes, 1e4, n_chains=30, n_temperatures=2)


def test_scorer_accepts_missing_values_of_a_model_that_sums_over_them():
    X = draw("bernoulli")
    rbm = BernoulliRBM(3, n_iter=2, random_state=0, missing="marginalize").fit(X)
    holes = with_holes(X)
    expected = rbm.log_likelihood(holes, rbm.log_partition("exact")).mean()
    np.testing.assert_allclose(log_likelihood_scorer(rbm, holes), expected)


@pytest.mark.parametrize("n_chains", [7, 9, 11, 25])
def test_means_of_missing_bits_are_at_most_one(n_chains):
    """Slip: a sum of quotients, which rounding takes beyond the largest state."""
    rbm = BernoulliRBM(1, n_iter=1, random_state=0).fit(np.ones((50, 2)))
    rbm.intercept_visible_ = np.full(2, 40.0)
    assert rbm.impute([[1, np.nan]], n_chains=n_chains, random_state=0)[0, 1] <= 1


@pytest.mark.parametrize("estimator", ["gaussian", "table"])
def test_statistics_of_a_stream_are_those_of_its_observed_values(estimator):
    """Slip: rows that count for columns in which they have no value."""
    rng = np.random.default_rng(0)
    X = rng.normal([50, -3], [1, 2], (200, 2))
    first = X[:30].copy()
    first[5:, 0] = np.nan
    first[:5, 1] = np.nan
    both = np.concatenate([first, X])
    options = {"missing": "marginalize", "random_state": 0}
    rbm = (
        GaussianBernoulliRBM(1, **options)
        if estimator == "gaussian"
        else TabularRBM(1, numeric_scale="standard", kinds={0: "numeric", 1: "numeric"}, **options)
    )
    rbm.partial_fit(first).partial_fit(X)
    n_rows, mean, variance = rbm._data["all"]
    expected = both
    if estimator == "table":  # in units of the first rows
        expected = (both - np.nanmean(first, axis=0)) / np.nanstd(first, axis=0)
    assert n_rows == 230
    np.testing.assert_array_equal(rbm._data["observed_weight"], [205, 225])
    np.testing.assert_allclose(mean, np.nanmean(expected, axis=0), atol=1e-9)
    np.testing.assert_allclose(variance, np.nanvar(expected, axis=0), rtol=1e-9)


def test_few_observed_values_of_first_rows_do_not_set_the_scale():
    """Slip: a new start, after few rows, from statistics in which missing values count as zeros."""
    X = np.random.default_rng(0).normal(50, 1, (200, 2))
    first = X[:10].copy()
    first[:, 0] = np.nan
    rbm = GaussianBernoulliRBM(1, missing="marginalize", random_state=0)
    with pytest.warns(UserWarning, match="constant"):
        rbm.partial_fit(first)
    rbm.partial_fit(X)
    np.testing.assert_allclose(rbm.noise_variance_, 1, atol=0.2)


def late_blocks(first):
    """Blocks of a stream; in the first ten, the second column has the values of `first`."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(20, 50))
    X = np.stack([50 + 5 * z, 1000 + 2 * z, z], axis=2) + rng.normal(size=(20, 50, 3))
    X[:10, :, 1] = np.nan
    X[:10, : len(first), 1] = first
    return X


@pytest.mark.filterwarnings("ignore:Features .* are constant", "ignore:Columns .* no observed")
@pytest.mark.parametrize(
    ("estimator", "first"),
    [
        *product(["gaussian", "table"], [[], [0.0] * 50, [7.0], [999, 1001, 1000.5]]),
        ("classifier", [0.0] * 50),  # labeled rows are complete
    ],
)
def test_columns_that_are_observed_late_start_from_their_values(estimator, first):
    """Slips: the start of an absent column kept (500,000 nats a row), offsets of absent values."""
    X, options = late_blocks(first), {"random_state": 0}
    if estimator == "classifier":
        classifier = RBMClassifier(GaussianBernoulliRBM(4, **options))
        for rows in X[:12]:
            classifier.partial_fit(rows, np.arange(50) % 2, classes=[0, 1])
        rbm = classifier.estimator_
    else:
        kind = {"gaussian": GaussianBernoulliRBM, "table": TabularRBM}[estimator]
        rbm = kind(4, missing="marginalize", average=True, **options)
        for rows in X[:12]:
            rbm.partial_fit(rows)
    log_p = rbm.log_likelihood(X[12:].reshape(-1, 3)).mean()
    # With values in all blocks -7.2; a few first values that are far from the others widen the scale.
    assert log_p > (-11.5 if 0 < len(first) < 50 else -7.3)


@pytest.mark.filterwarnings("ignore:Features .* are constant")
@pytest.mark.parametrize("values", [[0.01] + [0.0] * 49, np.linspace(-1e-12, 1e-12), [1.0] * 50])
def test_columns_that_vary_within_their_first_scale_keep_it(values):
    """Slip: the scale of a few values that hardly differ, for rows that differ more."""
    X = np.random.default_rng(0).normal(size=(20, 50, 3))
    X[:10, :, 1], X[10, :, 1] = 0, values
    rbm = GaussianBernoulliRBM(3, random_state=0)
    for rows in X[:10]:
        rbm.partial_fit(rows)
    weights = rbm.components_[:, 1].copy()
    rbm.partial_fit(X[10])
    assert np.abs(rbm.components_[:, 1] - weights).max() < np.abs(weights).max() / 2
    for rows in X[11:]:
        rbm.partial_fit(rows)
    assert rbm.log_likelihood(X[11:].reshape(-1, 3)).mean() > -4.4


@pytest.mark.filterwarnings("ignore:Features .* are constant")
def test_the_base_of_tempering_has_the_columns_that_are_observed_late():
    """Slip: a base far from the model, between which no states are swapped."""
    rbm = GaussianBernoulliRBM(4, algorithm="pt", missing="marginalize", random_state=0)
    for rows in late_blocks([]):
        rbm.partial_fit(rows)
    np.testing.assert_allclose(rbm._data["first"][1], [50, 1000, 0], atol=2)
    assert np.diff(rbm._chains["betas"]).max() < 0.9


@pytest.mark.filterwarnings("ignore:Features .* are constant")
@pytest.mark.parametrize("factor", [1e25, 1e-25, 1e4])
def test_a_call_that_fails_keeps_the_columns_that_it_would_have_started(factor):
    """Slips: scales beyond single precision; columns of a call that diverges in its only epoch."""
    X = np.random.default_rng(0).normal(size=(2, 50, 3)).astype(np.float32)
    X[0, :, 1], X[1, :, 1] = np.nan, factor * X[1, :, 1]
    rbm = GaussianBernoulliRBM(2, missing="marginalize", random_state=0).partial_fit(X[0])
    before = learned_bits(rbm)
    rbm.set_params(learning_rate=1e15 if factor == 1e4 else 0.1)
    with pytest.raises(ValueError, match=r"diverged" if factor == 1e4 else "beyond the range"):
        rbm.partial_fit(X[1])
    assert learned_bits(rbm) == before


@pytest.mark.filterwarnings("ignore:Features .* are constant", "ignore:Numeric columns")
@pytest.mark.parametrize("estimator", [GaussianBernoulliRBM, TabularRBM])
@pytest.mark.parametrize("unknown", [[0], [0, 1], [0, 1, 2, 3]])
def test_columns_that_are_no_longer_observed_change_no_statistics(estimator, unknown):
    """Slip: the redundancy of columns without values in a call, which made all parameters NaN."""
    X = np.random.default_rng(0).normal(size=(200, 4))
    rbm = estimator(2, missing="marginalize", random_state=0).partial_fit(X)
    redundancy = rbm._data["redundancy"]
    X[:, unknown] = np.nan
    X[0, 0] = np.nan
    rbm.partial_fit(X)
    assert np.isfinite(rbm.components_).all()
    np.testing.assert_allclose(rbm._data["redundancy"], redundancy, atol=0.1)


@pytest.mark.filterwarnings("ignore:Features .* are constant", "ignore:Numeric columns")
@pytest.mark.parametrize("estimator", [GaussianBernoulliRBM, TabularRBM])
def test_columns_that_only_odd_rows_have_are_learned(estimator):
    """No row with a value of them is among every kth row. Slips: parameters of NaN, or of 1e305."""
    X = np.random.default_rng(0).normal(size=(2000, 6))
    X[::2, :4], X[:, 5] = np.nan, 3
    rbm = estimator(2, n_iter=1, missing="marginalize", random_state=0).fit(X)
    np.testing.assert_allclose(rbm._data["redundancy"], 1, atol=0.5)
    assert np.isfinite(rbm.components_).all()


def test_streams_go_on_after_arrays_of_another_width():
    """Slip: the kurtosis of other columns, where a column has no value to merge with it."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    rbm = GaussianBernoulliRBM(2, missing="marginalize", n_iter=1, random_state=0).fit(X[:, :3])
    rbm.components_, rbm.intercept_visible_ = np.zeros((2, 4)), np.zeros(4)
    rbm.noise_variance_ = np.ones(4)
    X[:, 0] = np.nan
    assert np.isfinite(rbm.partial_fit(X).components_).all()


@pytest.mark.filterwarnings("ignore:The sum over the missing values")
def test_rare_modes_count_for_the_rows_that_are_in_them():
    """Slip: annealed chains that never reach a mode of 2 % of the rows, without a large error."""
    rng = np.random.default_rng(0)
    pattern, is_rare = rng.random(60) < 0.5, rng.random(1000) < 0.02
    X = 1.0 * (np.where(is_rare[:, None], pattern, ~pattern) ^ (rng.random((1000, 60)) < 0.03))
    rbm = BernoulliRBM(14, missing="marginalize", n_iter=10, random_state=0).fit(X)
    is_missing = rng.random(60) < 0.7
    rows = np.where(is_missing, np.nan, X[is_rare][:4])
    value, error = rbm.log_likelihood(rows, n_temperatures=3000, return_std=True)
    h = (np.arange(2**14)[:, None] >> np.arange(14)) & 1
    field, bias = h @ rbm.components_ + rbm.intercept_visible_, h @ rbm.intercept_hidden_
    weight = bias + np.logaddexp(0, field[:, is_missing]).sum(axis=1)
    known = field[:, ~is_missing] @ rows[:, ~is_missing].T
    exact = logsumexp(known + weight[:, None], axis=0) - rbm.log_partition().value
    assert (np.abs(value - exact) < 4.5 * error + 0.1).all()
    assert (error < 0.5).all()
