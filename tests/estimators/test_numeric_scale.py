"""Numbers of tables as normal scores: densities, draws and means of skewed columns with ties."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import roots_legendre

from skrbm import TabularRBM
from skrbm.estimators.tables.scores import NormalScores

N_ROWS = 400


def skewed(n_samples=N_ROWS, seed=0):
    """Debts, most of them zero, incomes that are log-normal, and a category that tells of both."""
    rng = np.random.default_rng(seed)
    state = rng.random(n_samples) < 0.4
    debt = np.where(state, np.exp(5 + rng.normal(size=n_samples)), 0)
    income = np.exp(3 + state + rng.normal(size=n_samples) / 2)
    return pd.DataFrame({"debt": debt, "income": income, "owns": np.where(state, "yes", "no")})


def fitted(X=None, n_components=4, **params):
    options = {"n_iter": 5, "random_state": 0} | params
    return TabularRBM(n_components, **options).fit(skewed() if X is None else X)


def uncoupled(X):
    """Machine in which every column has the distribution of its scores, whatever the others are."""
    rbm = fitted(X, n_iter=0)
    rbm.components_ = np.zeros_like(rbm.components_)
    rbm.intercept_visible_ = np.zeros_like(rbm.intercept_visible_)
    rbm.noise_variance_ = np.ones_like(rbm.noise_variance_)
    return rbm


def nodes(rbm, name):
    """Nodes and weights of Gauss and Legendre's rule between the jumps of a column's density."""
    scores = NormalScores(**rbm._data["table"]["scores"][list(rbm.feature_names_in_).index(name)])
    ends = np.unique(np.append(scores.edges, scores.inverse(np.linspace(-40, 40, 400))))
    x, weights = roots_legendre(20)
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + x)).ravel(), (half * weights).ravel()


@pytest.mark.parametrize("name", ["debt", "income"])
def test_slope_of_scores_is_their_derivative(name):
    """Slips: the slope of the next cell, and tails in the place of each other."""
    values = skewed()[name].to_numpy()
    scores = NormalScores.of(values, np.ones(len(values)))
    assert len(scores.singles) > 3
    z = stats.norm.ppf((np.arange(500) + 0.5) / 500) * 2
    x = scores.inverse(z)
    np.testing.assert_allclose(scores.forward(x), z, rtol=0, atol=1e-9)
    step = 1e-6 / np.exp(scores.log_slope(z))
    slope = (scores.forward(x + step) - scores.forward(x - step)) / (2 * step)
    is_inner = np.abs(scores.scores[:, None] - z).min(axis=0) > 1e-5
    np.testing.assert_allclose(np.log(slope)[is_inner], scores.log_slope(z)[is_inner], atol=1e-5)
    np.testing.assert_allclose(scores.values(scores.forward(values)), values, rtol=1e-12)


def test_columns_that_are_normal_are_standardised():
    """Slip: Akaike's price of a cell left out, so that noise is learned by heart."""
    columns = 100 + 15 * np.random.default_rng(0).normal(size=(50, N_ROWS))
    scores = [NormalScores.of(values, np.ones(len(values))).forward(values) for values in columns]
    standard = (columns - columns.mean(axis=1, keepdims=True)) / columns.std(axis=1, keepdims=True)
    assert (np.abs(scores - standard).max(axis=1) < 1e-10).mean() > 0.5


@pytest.mark.parametrize("name", ["debt", "income"])
def test_density_of_a_skewed_number_and_a_category_integrates_to_one(name):
    """Slip: densities of the scores."""
    X = skewed()[[name, "owns"]]
    rbm = fitted(X, n_iter=0)
    rbm.components_ = np.random.default_rng(0).normal(size=rbm.components_.shape)
    grid, weights = nodes(rbm, name)
    total = sum(
        weights @ np.exp(rbm.log_likelihood(pd.DataFrame({name: grid, "owns": owns})))
        for owns in ("yes", "no")
    )
    assert abs(total - 1) < 1e-6


@pytest.mark.slow
def test_energies_and_likelihoods_are_of_the_numbers():
    """Slips: energies, or the score of known values beside missing ones, without the slope."""
    X, rbm = skewed(), fitted()
    scores = [NormalScores(**own) for own in rbm._data["table"]["scores"][:2]]
    slopes = [own.log_slope(own.forward(X[name])) for own, name in zip(scores, X, strict=False)]
    z = X.assign(**{n: own.forward(X[n]) for own, n in zip(scores, X, strict=False)})
    twin = fitted(z, numeric_scale="standard", n_iter=0)
    for name in ("components_", "intercept_hidden_", "intercept_visible_", "noise_variance_"):
        setattr(twin, name, getattr(rbm, name))
    twin._data["table"]["origin"][:], twin._data["table"]["scale"][:] = 0, 1
    for method in ("log_likelihood", "score_samples"):
        change = getattr(rbm, method)(X) - getattr(twin, method)(z)
        np.testing.assert_allclose(change, np.sum(slopes, axis=0), rtol=0, atol=1e-8)
    h = np.zeros((N_ROWS, 4))
    gap = rbm.energy(X, h) - rbm.free_energy(X) - (twin.energy(z, h) - twin.free_energy(z))
    np.testing.assert_allclose(gap, 0, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        rbm.log_likelihood(X) + rbm.free_energy(X), -float(rbm.log_partition()), rtol=0, atol=1e-8
    )
    holes = X.assign(debt=np.nan)
    change = rbm.score_samples(holes) - twin.score_samples(z.assign(debt=np.nan))
    np.testing.assert_allclose(change, slopes[1], rtol=0, atol=1e-8)


def test_draws_have_the_distribution_of_the_column():
    """For every seed: zeros by four standard errors of data and draws, the rest by Kolmogorov and
    Smirnov. Slips: a number between zero and the least debt, and negative ones.
    """
    X = skewed(2000)
    drawn = uncoupled(X).sample(2000, 1, random_state=0)
    is_zero = (X["debt"] == 0).mean()
    error = 4 * np.sqrt(is_zero * (1 - is_zero) / 2000)
    assert abs((drawn["debt"] == 0).mean() - is_zero) < error
    for name in ("debt", "income"):
        assert drawn[name].between(X[name].min(), X[name].max()).all()
        own, other = (table[name][table[name] > 0] for table in (X, drawn))
        assert stats.ks_2samp(own, other).pvalue > 1e-4
    years = X.assign(year=np.resize([2003, 2005, 2006, 2009], 2000))
    assert set(fitted(years, n_iter=1).sample(300, 5, random_state=0)["year"]) == {
        2003,
        2005,
        2006,
        2009,
    }


@pytest.mark.parametrize("name", ["debt", "income"])
def test_means_are_of_numbers(name):
    """By five standard errors. Slip: the number of the mean score, which is the median."""
    X = skewed()
    rbm, mean = uncoupled(X), X[name].mean()
    holes = X.iloc[:20].assign(**{name: np.nan})
    exact = rbm.conditional_mean(holes, name)
    np.testing.assert_allclose(exact, exact[0], rtol=1e-12)
    assert abs(exact[0] / mean - 1) < 0.05  # cells are coarser than values
    filled = rbm.impute(holes, random_state=0)[name]
    error = X[name].std() / np.sqrt(20 * 10 * 50)
    assert abs(filled.mean() - exact[0]) < 5 * error


@pytest.mark.slow
def test_conditional_mean_is_that_of_the_density():
    """Of numbers as they are drawn, in the range of the column. Slip: means of scores."""
    X, rbm = skewed(), fitted(n_iter=20)
    rbm.components_ = rbm.components_ + np.random.default_rng(0).normal(size=rbm.components_.shape)
    grid, weights = nodes(rbm, "income")
    drawn = np.clip(grid, X["income"].min(), X["income"].max())
    for row, mean in enumerate(rbm.conditional_mean(X[:5], "income")):
        others = X.iloc[[row] * len(grid)].assign(income=grid)
        density = weights * np.exp(-rbm.free_energy(others) + rbm.free_energy(others).min())
        expected = density @ drawn / density.sum()
        assert abs(mean - expected) < 2e-3 * X["income"].std()


@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [
        [0.0, 1.0],
        [0.0] * 99 + [1.0],
        [1.0, 2.0, 3.0, 1e300],
        [1.0, 1.0, np.nan, 7.0],
        [-1e306, 0.0, 1e306],
        [1.0, np.nextafter(1, 2), 1.0, 3.0],
        np.exp(np.linspace(-300, 300, 50)),
    ],
    ids=["two", "one other", "far", "missing", "too far", "near", "wide"],
)
@pytest.mark.filterwarnings("ignore:Features")
def test_hostile_columns_leave_the_others_alone(column):
    """Slips: a division by a cell of no width, and a range that overflows."""
    n = len(column) * 20
    X = pd.DataFrame({"x": np.resize(column, n), "y": np.random.default_rng(0).normal(size=n)})
    rbm = TabularRBM(2, n_iter=2, random_state=0).fit(X)
    assert np.isfinite(rbm.transform(X)).all()
    assert np.isfinite(rbm.score_samples(X)).all()
    drawn = rbm.sample(50, 5, random_state=0)
    assert np.isfinite(drawn.to_numpy()).all()
    filled, is_known = rbm.impute(X), X.notna().to_numpy()
    assert np.isfinite(filled.to_numpy()).all()
    np.testing.assert_array_equal(filled.to_numpy()[is_known], X.to_numpy()[is_known])


def test_first_rows_tell_the_scale():
    """Slip: a map of the last rows, so that features of the same rows change."""
    X = skewed()
    rbm = TabularRBM(4, random_state=0).partial_fit(X[:200])
    before = rbm._data["table"]["scores"][1]["edges"].copy()
    rbm.partial_fit(X[200:].assign(income=9 * X["income"]))
    np.testing.assert_array_equal(rbm._data["table"]["scores"][1]["edges"], before)


def test_single_precision_and_other_scales():
    """Slips: scores in double precision, and the parameter without effect."""
    X = skewed().astype({"debt": np.float32, "income": np.float32})
    rbm = fitted(X)
    assert rbm.transform(X).dtype == np.float32
    assert rbm.sample(5, 5)["income"].dtype == np.float32
    standard = fitted(X, numeric_scale="standard").sample(500, 20, random_state=0)
    assert (standard["debt"] < 0).any()
    with pytest.raises(ValueError, match="'numeric_scale' parameter"):
        fitted(numeric_scale="robust")
