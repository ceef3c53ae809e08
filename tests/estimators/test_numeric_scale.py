"""Numbers of tables as scores or mixtures: densities, draws, means of skewed columns with ties."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import roots_legendre

from skrbm import TabularRBM
from skrbm.estimators.tables.mixtures import (
    MAPS,
    MixtureScale,
    ScoresWithAtoms,
    normal_scale,
    scale_from,
)
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


def uncoupled(X, **params):
    """Machine in which every column has the distribution of its scores, whatever the others are."""
    rbm = fitted(X, n_iter=0, **params)
    rbm.components_ = np.zeros_like(rbm.components_)
    rbm.intercept_visible_ = np.zeros_like(rbm.intercept_visible_)
    rbm.noise_variance_ = np.ones_like(rbm.noise_variance_)
    return rbm


def scale_of(rbm, name):
    return scale_from(rbm._data["table"]["scores"][list(rbm.feature_names_in_).index(name)])


def nodes(rbm, name):
    """Nodes and weights of Gauss and Legendre's rule between the jumps of a column's density, and
    its atoms.
    """
    scale = scale_of(rbm, name)
    scores, atoms = (
        (NormalScores(**scale.rest), scale.atoms) if scale.is_mixture else (scale, np.empty(0))
    )
    ends = np.unique(np.append(scores.edges, scores.inverse(np.linspace(-40, 40, 400))))
    x, weights = roots_legendre(20)
    half = np.diff(ends)[:, None] / 2
    between = (ends[:-1, None] + half * (1 + x)).ravel()
    return np.append(between, atoms), np.append(half * weights, np.ones(len(atoms)))


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


def test_scores_with_atoms_are_those_of_the_other_values():
    """Slips: the scale of the scores left out of the slope, atoms among the scores, the mean of the
    scores as the origin."""
    values = skewed(2000)["debt"].to_numpy()
    scale, is_zero = normal_scale(values, np.ones(2000)), values == 0
    assert isinstance(scale, ScoresWithAtoms)
    np.testing.assert_array_equal(scale.atoms, [0])
    z = scale.forward(values)
    np.testing.assert_array_equal(z[is_zero], scale.center[0])
    np.testing.assert_allclose([z.mean(), z.var()], [0, 1], atol=0.01)
    others = NormalScores.of(values[~is_zero], np.ones((~is_zero).sum())).forward(values[~is_zero])
    assert np.corrcoef(z[~is_zero], others)[0, 1] == pytest.approx(1)
    np.testing.assert_allclose(scale.values(z), values, rtol=1e-12)
    x, step = values[~is_zero], 1e-7 * values[~is_zero]
    slope = (scale.forward(x + step) - scale.forward(x - step)) / (2 * step)
    close = np.isclose(np.log(slope), scale.log_slope(z[~is_zero]), rtol=0, atol=1e-4)
    assert close.mean() > 0.95  # but for numbers at the edges of bins
    assert (scale.log_slope(z)[is_zero] == 0).all()


@pytest.mark.parametrize(
    ("values", "has_atoms"),
    [
        (np.repeat(np.arange(8.0), [400, *(60 - 5 * np.arange(7))]), False),  # all values repeat
        (np.append(np.zeros(90), np.arange(1, 9)), False),  # eight other rows
        (np.append(np.zeros(15), np.arange(1.0, 86)), False),  # zeros in 15 % of the rows
        (np.append(np.zeros(25), np.arange(1.0, 76)), True),
        (np.append(np.resize([-1.0, 99.0], 60), np.arange(40.0)), True),
    ],
)
def test_very_frequent_values_are_atoms_of_normal_scores(values, has_atoms):
    """Slips: an atom of few rows; no other values; one atom of two."""
    scale = normal_scale(values, np.ones(len(values)))
    assert scale.is_mixture == has_atoms
    if has_atoms:
        values, counts = np.unique(values, return_counts=True)
        np.testing.assert_array_equal(scale.atoms, values[counts > 5])


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
    X = skewed()
    X["debt"] = np.exp(5 + np.random.default_rng(1).normal(size=N_ROWS))
    rbm = fitted(X)
    scores = [scale_of(rbm, name) for name in ("debt", "income")]
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


@pytest.mark.parametrize("numeric_scale", ["normal", "mixture"])
def test_draws_have_the_distribution_of_the_column(numeric_scale):
    """For every seed: zeros by four standard errors of data and draws, the rest by Kolmogorov and
    Smirnov. Slips: a number between zero and the least debt, and negative ones.
    """
    X = skewed(2000)
    drawn = uncoupled(X, numeric_scale=numeric_scale).sample(2000, 1, random_state=0)
    is_zero = (X["debt"] == 0).mean()
    error = 4 * np.sqrt(is_zero * (1 - is_zero) / 2000)
    assert abs((drawn["debt"] == 0).mean() - is_zero) < error
    for name in ("debt", "income"):
        if numeric_scale == "normal":
            assert drawn[name].between(X[name].min(), X[name].max()).all()
        assert drawn[name].min() >= 0
        own, other = (table[name][table[name] > 0] for table in (X, drawn))
        assert stats.ks_2samp(own, other).pvalue > 1e-4
    values = [2003, 2005, 2006, 2009]
    rbm = fitted(X.assign(year=np.resize(values, 2000)), n_iter=1, numeric_scale=numeric_scale)
    years = rbm.sample(300, 5, random_state=0)["year"]
    assert (
        years.isin(values).mean() > 0.98
    )  # a mixture's next one may be another, as one row in 2,001
    assert set(values) <= set(years)


@pytest.mark.slow
def test_large_debts_are_drawn_as_often_as_they_occur():
    """Slip: normal scores of all debts, of which half are zero: a 99 % quantile lower by a third."""
    rng = np.random.default_rng(0)
    level = rng.integers(3, size=3000)
    is_zero = rng.random(3000) < np.array([0.9, 0.5, 0.2])[level]
    debt = np.where(is_zero, 0, np.exp(5 + level + rng.normal(size=3000)))
    X = pd.DataFrame({"debt": debt, "level": level.astype(str)})
    X["noise"], X["size"] = rng.normal(size=3000), level + rng.normal(size=3000) / 2
    drawn = TabularRBM(16, n_iter=30, random_state=0).fit(X).sample(10_000, 100, random_state=0)
    ratio = drawn["debt"].quantile(0.99) / X["debt"].quantile(0.99)
    assert 0.8 < ratio < 1.25


@pytest.mark.parametrize("numeric_scale", ["normal", "mixture"])
@pytest.mark.parametrize("name", ["debt", "income"])
def test_means_are_of_numbers(name, numeric_scale):
    """By five standard errors. Slip: the number of the mean score, which is the median."""
    X = skewed()
    rbm, mean = uncoupled(X, numeric_scale=numeric_scale), X[name].mean()
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
@pytest.mark.parametrize("numeric_scale", ["normal", "mixture"])
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
def test_hostile_columns_leave_the_others_alone(column, numeric_scale):
    """Slips: a division by a cell of no width, and a range that overflows."""
    n = len(column) * 20
    X = pd.DataFrame({"x": np.resize(column, n), "y": np.random.default_rng(0).normal(size=n)})
    rbm = TabularRBM(2, n_iter=2, random_state=0, numeric_scale=numeric_scale).fit(X)
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
    with pytest.warns(UserWarning, match=r"columns \['income'\] are more than 3 standard dev"):
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


# Mixtures: atoms with a probability, modes, and maps with a slope.


@pytest.mark.parametrize("kind", MAPS)
def test_map_of_a_mixture_has_its_slope_and_its_inverse(kind):
    """Slips: the slope of the argument's unit or of the result's scale left out."""
    y = np.random.default_rng(0).normal(size=N_ROWS)
    x = {
        "linear": 3 + y,
        "log": np.exp(2 * y),
        "logit": 1 / (1 + np.exp(y)),
        "asinh": np.sinh(3 * y),
    }
    scale = MixtureScale.of(x[kind], np.ones(N_ROWS))
    assert (scale.kind, len(scale.atoms)) == (kind, 0)
    z = scale.forward(x[kind])
    np.testing.assert_allclose(scale.values(z), x[kind], rtol=1e-9)
    step = 1e-6 * np.exp(-scale.log_slope(z))
    slope = (scale.forward(x[kind] + step) - scale.forward(x[kind] - step)) / (2 * step)
    np.testing.assert_allclose(np.log(slope), scale.log_slope(z), atol=1e-6)


def test_frequent_values_are_atoms_and_neighbours_are_not():
    """Slips: whole numbers, of which each neighbour is as frequent, as atoms among a density."""
    rng = np.random.default_rng(0)
    counts, debts = rng.poisson(9, 2000).astype(float), skewed(2000)["debt"].to_numpy()
    for values, atoms in (
        (counts, []),
        (debts, [0.0]),
        (np.resize([1.0, 2.0, 7.0], 60), [1, 2, 7]),
    ):
        assert MixtureScale.of(values, np.ones(len(values))).atoms.tolist() == atoms


@pytest.mark.parametrize("numeric_scale", ["mixture"])
def test_atom_and_density_have_a_probability_of_one_and_draws_agree(numeric_scale):
    """Slip: the density of zero in place of its probability: if zeros are a bin of normal scores, 22 %
    of the density lies between zero and half of the least debt, of which no sample takes a value.
    """
    X = skewed()[["debt"]]
    rbm = fitted(X, numeric_scale=numeric_scale, n_iter=20)
    grid = np.exp(np.linspace(-20, 25, 20_001))
    density = np.exp(rbm.log_likelihood(pd.DataFrame({"debt": grid})))
    of_debts = trapezoid(density * grid, np.log(grid))
    of_zero = np.exp(rbm.log_likelihood(pd.DataFrame({"debt": [0.0]})))[0]
    assert abs(of_debts + of_zero - 1) < 1e-6
    drawn = rbm.sample(2000, 50, random_state=0)["debt"]
    error = 4 * np.sqrt(of_zero * (1 - of_zero) / 2000)
    assert abs((drawn == 0).mean() - of_zero) < error


@pytest.mark.parametrize("numeric_scale", ["normal", "mixture"])
def test_a_debt_next_to_zero_moves_the_likelihood_by_its_own_row(numeric_scale):
    """Slip: a narrow bin of many zeros, by which a row gains twelve nats. The density of one debt in
    400 may rise by the logarithm of what it is divided by.
    """
    X = skewed()
    X.loc[X["debt"].to_numpy().argmax(), "debt"] = 1.0
    near = X.replace({"debt": {1.0: 1e-9}})
    before, after = (
        fitted(x, n_iter=0, numeric_scale=numeric_scale).log_likelihood(x).mean() for x in (X, near)
    )
    assert abs(after - before) < 2 * np.log(1e9) / N_ROWS


@pytest.mark.slow
@pytest.mark.parametrize("numeric_scale", ["mixture"])
def test_a_mode_tells_its_category(numeric_scale):
    """Slip: two modes that are one hump of scores, "normal": .974 of the truth's .9997."""
    rng = np.random.default_rng(0)
    is_large = rng.random(1000) < 0.5
    size = np.where(is_large, 70, 50) + 5 * rng.normal(size=1000)
    X = pd.DataFrame({"size": size, "kind": np.where(is_large, "large", "small")})
    rbm = fitted(X, 16, n_iter=100, numeric_scale=numeric_scale)
    proba = rbm.conditional_proba(X.iloc[:2].assign(size=[50.0, 70.0]), "kind")
    assert (proba[[0, 1], [1, 0]] > 0.98).all()


def test_atoms_outside_of_the_range_of_the_map_keep_their_order():
    # Slip: an atom above one, whose log-odds are undefined, at the low end.
    rng = np.random.default_rng(0)
    shares = 1 / (1 + np.exp(-2 * rng.normal(size=400)))
    x = np.concatenate([shares, np.full(100, 2.0), np.full(100, -1.0)])
    values, counts = np.unique(x, return_counts=True)
    scale = MixtureScale.of(values, counts)
    assert scale.kind == "logit"
    scores = scale.forward(np.array([-1.0, 0.01, 0.99, 2.0]))
    assert (np.diff(scores) > 0).all()


@pytest.mark.parametrize("codes", [(0.0, 1.0), (998.0, 999.0), (5.0, 5.5, 6.0)])
def test_neighbouring_codes_are_atoms(codes):
    # Slip: a comparison with the neighbours that are atoms themselves, which leaves none.
    rng = np.random.default_rng(0)
    x = np.concatenate([*(np.full(150, code) for code in codes), np.exp(rng.normal(3, 0.5, 1000))])
    scale = MixtureScale.of(*np.unique(x, return_counts=True))
    np.testing.assert_array_equal(scale.atoms, codes)
    many_zeros = np.repeat(np.arange(30.0), [600, *(60 - 2 * np.arange(29))])
    assert MixtureScale.of(*np.unique(many_zeros, return_counts=True)).atoms.tolist() == [0]


def test_atoms_in_single_precision_have_their_probability():
    # Slip: a comparison of a rounded state with an atom in double precision.
    rng = np.random.default_rng(0)
    x = np.where(rng.random(1000) < 0.5, 0.1, rng.normal(size=1000)).astype(np.float32)
    frame = pd.DataFrame({"x": x, "y": rng.choice(list("ab"), 1000)})
    rbm = TabularRBM(4, numeric_scale="mixture", n_iter=5, random_state=0).fit(frame)
    atoms = pd.DataFrame({"x": np.full(2, 0.1, np.float32), "y": ["a", "b"]})
    probability = np.exp(rbm.log_likelihood(atoms)).sum()
    np.testing.assert_allclose(probability, (x == np.float32(0.1)).mean(), atol=0.05)


def test_constant_column_is_drawn_as_it_is():
    """Slip: a column without variance as a normal law of deviation one."""
    X = pd.DataFrame({"x": np.full(50, 7.0), "y": np.random.default_rng(0).normal(size=50)})
    with pytest.warns(UserWarning, match="constant"):
        rbm = fitted(X, numeric_scale="mixture")
    assert (rbm.sample(100, 5, random_state=0)["x"] == 7).all()


@pytest.mark.slow
@pytest.mark.parametrize("numeric_scale", ["normal", "mixture"])
def test_conditional_mean_of_a_mixture_counts_its_atom(numeric_scale):
    """Slips: the mean of the logarithms, and the atom as one of the nodes of the density."""
    X, rbm = skewed(), fitted(n_iter=20, numeric_scale=numeric_scale)
    rtol = 1e-4
    if numeric_scale == "normal":  # whose density is interpolated linearly
        (debts, weights), rtol = nodes(rbm, "debt"), 1e-3
    else:
        debts = np.append(np.exp(np.linspace(-10, 25, 4001)), 0.0)
        weights = np.append(np.gradient(np.linspace(-10, 25, 4001)) * debts[:-1], 1.0)
    scale = scale_of(rbm, "debt")
    numbers = scale.values(scale.forward(debts))
    for row, mean in enumerate(rbm.conditional_mean(X[:3], "debt")):
        free_energy = rbm.free_energy(X.iloc[[row] * len(debts)].assign(debt=debts))
        share = weights * np.exp(free_energy.min() - free_energy)
        np.testing.assert_allclose(mean, share @ numbers / share.sum(), rtol=rtol)


@pytest.mark.filterwarnings("ignore:The model does not represent")  # relu, of strong factors
@pytest.mark.parametrize("numeric_scale", ["normal", "mixture", "standard"])
@pytest.mark.parametrize("hidden_units", ["binary", "gaussian", "relu", "drelu"])
def test_conditional_means_of_rows_together_are_those_of_each_row(hidden_units, numeric_scale):
    """Slip: the quadrature nodes of the first row for all rows."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=400)
    X = np.column_stack([np.exp(z), 2 * z + 0.3 * rng.normal(size=400)])
    options = {"hidden_units": hidden_units, "numeric_scale": numeric_scale, "random_state": 0}
    rbm = TabularRBM(3, n_iter=3, **options).fit(X)
    try:
        together = rbm.conditional_mean(X[:4], 0)
    except ValueError:
        assert numeric_scale == "mixture"  # has no known range
        assert hidden_units != "binary"
        return
    alone = [rbm.conditional_mean(X[[i]], 0)[0] for i in range(4)]
    np.testing.assert_allclose(together, alone, rtol=1e-6)
    assert np.ptp(together) > 0.01


def test_numbers_beyond_the_domain_of_a_scale_are_not_likely():
    """Slip: the slope at the end of the domain, by which impossible numbers are the likeliest."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.gamma(0.3, size=1000), rng.normal(size=1000)])
    rbm = TabularRBM(8, numeric_scale="mixture", n_iter=10, random_state=0).fit(X)
    energies = rbm.free_energy([[-1000.0, 0.0], [-1e-9, 0.0]])
    assert (energies > np.quantile(rbm.free_energy(X), 0.99)).all()


@pytest.mark.parametrize(("kind", "bound"), [("log", 0.0), ("logit", 0.0), ("logit", 1.0)])
def test_numbers_beyond_the_domain_are_less_likely_with_their_distance(kind, bound):
    """Slips: one density for all of them, above that at the end of the domain; a slope of another
    function than of the numbers, by which the density at the end has a jump.
    """
    y = np.random.default_rng(0).normal(size=N_ROWS)
    rbm = uncoupled(pd.DataFrame({"x": MAPS[kind].inverse(y)}), numeric_scale="mixture")
    scale = MixtureScale(**rbm._data["table"]["scores"][0])
    assert scale.kind == kind
    distance = np.append(0, np.geomspace(1e-3, 1e300, 50))
    x = np.append(np.nextafter(bound, 0.5), bound + (distance if bound else -distance))
    log_density = rbm.log_likelihood(pd.DataFrame({"x": x}))
    assert abs(log_density[1] - log_density[0]) < 1e-9
    assert (np.diff(log_density[1:]) < 0).all()
    assert log_density[1] < rbm.log_likelihood(pd.DataFrame({"x": MAPS[kind].inverse(y)})).min()
    log_slope = scale.log_slope(scale.forward(x))
    step = 1e-6 * np.exp(-log_slope)
    slope = (scale.forward(x + step) - scale.forward(x - step)) / (2 * step)
    np.testing.assert_allclose(np.log(slope), log_slope, atol=1e-5)


@pytest.mark.parametrize("kind", ["asinh", "linear"])
def test_numbers_that_overflow_in_the_unit_of_a_map_have_finite_densities(kind):
    """Slip: an infinite argument of the inverse hyperbolic sine, and a warning of NumPy."""
    rng = np.random.default_rng(0)
    x = (rng.standard_t(1.2, N_ROWS) if kind == "asinh" else rng.normal(size=N_ROWS)) / 100
    rbm = uncoupled(pd.DataFrame({"x": x}), numeric_scale="mixture")
    assert rbm._data["table"]["scores"][0]["kind"] == kind
    scores = rbm.log_likelihood(pd.DataFrame({"x": [1.0, 1e100, 1.7e308]}))
    assert np.isfinite(scores).all()
    assert (np.diff(scores)[: None if kind == "asinh" else 1] < 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_atoms_that_an_outlier_brings_together_stay_apart(dtype):
    """Slip: places that are equal after rounding, of which only one value is ever drawn."""
    values = np.array([0, 1, 2, 1e9 if dtype == np.float32 else 1e20])
    x = np.repeat(values, [400, 300, 200, 100])
    X = np.column_stack([x, np.random.default_rng(0).normal(size=1000)]).astype(dtype)
    options = {"numeric_scale": "mixture", "missing": "marginalize", "random_state": 0}
    rbm = TabularRBM(2, n_iter=5, **options).fit(X)
    rows = np.array([[value, np.nan] for value in values], dtype)
    shares = np.exp(rbm.log_likelihood(rows))
    np.testing.assert_allclose(shares, [0.4, 0.3, 0.2, 0.1], atol=0.05)
    others = np.array([[0.5, np.nan], [-3, np.nan]], dtype)  # not atoms, whatever they round to
    assert (rbm.log_likelihood(others) < -10).all()
    drawn = rbm.sample(1000, random_state=0)[:, 0]
    assert all((drawn == value).any() for value in values.astype(dtype))


@pytest.mark.parametrize("scale", ["rounding", "tiny"])
def test_values_that_differ_by_rounding_or_are_tiny_have_finite_densities(scale):
    """Slips: bins without width; slopes that overflow."""
    rng = np.random.default_rng(0)
    values = [0.5, 0.8 - 1.2e-16, 0.8, 0.8 + 1.2e-16, 0.9]
    x = rng.choice(values, 300) if scale == "rounding" else rng.normal(size=300) * 1e-310
    X = np.column_stack([x, rng.normal(size=300)])
    rbm = TabularRBM(2, n_iter=2, random_state=0).fit(X)
    assert np.isfinite(rbm.free_energy(X)).all()
    assert np.isfinite(rbm.score_samples(X)).all()
    assert np.isfinite(rbm.sample(10, 10, random_state=0)).all()


@pytest.mark.parametrize("x", [1e16 + 2 * np.arange(1000), 1.7e18 + 500 * np.arange(1000)])
def test_large_integers_are_not_taken_for_rounding(x):
    """Slip: neighbours that are merged one after the other, until one value is left."""
    X = np.column_stack([x, np.random.default_rng(0).normal(size=1000)])
    rbm = TabularRBM(2, kinds={0: "numeric"}, n_iter=2, random_state=0).fit(X)
    sample = rbm.sample(50, 10, random_state=0)
    assert len(np.unique(sample[:, 0])) > 40


@pytest.mark.parametrize(("atom", "noise"), [(0.0, 1e-9), (0.3, 3e-8)])
def test_rounding_noise_beside_an_atom_is_no_outlier(atom, noise):
    """Slip: numbers that round to the place of an atom far from it, as where there are only atoms."""
    rng = np.random.default_rng(0)
    x = rng.normal(1.5, 1, size=1000)
    x[:400], x[400:430] = atom, atom + noise * (1 + rng.random(30))
    X = np.column_stack([x, rng.normal(size=1000)]).astype(np.float32)
    rbm = TabularRBM(2, numeric_scale="mixture", n_iter=5, random_state=0).fit(X)
    assert np.abs(rbm.sample(500, 10, random_state=0)[:, 0]).max() < 1.5 * np.abs(X[:, 0]).max()
    assert (rbm.log_likelihood(X[400:430]) > -10).all()


def test_values_one_spacing_apart_are_no_bins():
    """Slip: a bin as narrow as a rounding error, with a density of 1e16."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=900)
    near = np.array([np.nextafter(0.3, 0), 0.3, np.nextafter(0.3, 1)])
    x[:450] = np.repeat(near, 150)
    X = np.column_stack([x, rng.normal(size=900)])
    rbm = TabularRBM(2, n_iter=2, random_state=0).fit(X)
    assert rbm.log_likelihood(X).max() < 20


@pytest.mark.parametrize("shares", [(0.3, 0.7), (0.95, 0.05), (0.6, 0.3, 0.1), (0.2,) * 5])
def test_samples_of_few_values_have_their_frequencies(shares):
    """Slip: a normal distribution, whose variance collapses onto the values; then all were ones."""
    rng = np.random.default_rng(0)
    values = np.array([0, 1, 2, 5, 7])[: len(shares)]
    X = pd.DataFrame({"n": rng.choice(values, 3000, p=shares), "x": rng.normal(size=3000)})
    X["x"] += X["n"] / X["n"].std()
    rbm = TabularRBM(4, random_state=0).fit(X)
    assert rbm.kinds_ == ["numeric", "numeric"]
    drawn = rbm.sample(3000, 100, random_state=0)["n"]
    assert drawn.dtype == X["n"].dtype
    assert set(drawn) == set(values)
    np.testing.assert_allclose(
        [(drawn == value).mean() for value in values],
        [(X["n"] == value).mean() for value in values],
        atol=0.04,
    )
    mean = rbm.conditional_mean(X[:1000], "n").mean()
    assert mean == pytest.approx(X["n"][:1000].mean(), abs=0.1 * X["n"].std())


@pytest.mark.parametrize("numeric_scale", ["normal", "mixture"])
@pytest.mark.parametrize("n_rare", [1, 3])
def test_a_rare_value_keeps_its_probability(n_rare, numeric_scale):
    """Slip: standard deviations, of which a rare value has tens: .05, 2e-8 or 4e-19 for .0007."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": np.arange(1500) < n_rare, "x": rng.normal(size=1500)}).astype(float)
    rbm = TabularRBM(4, numeric_scale=numeric_scale, n_iter=5, random_state=0).fit(X)
    assert rbm.kinds_ == ["numeric", "numeric"]
    found = np.exp(rbm.log_likelihood(pd.DataFrame({"n": [1.0], "x": [np.nan]})))
    np.testing.assert_allclose(found, n_rare / 1500, rtol=0.3)


def test_few_values_have_probabilities_beside_densities():
    """Slips: parts of the layer in another order, a slope of the map for values that are atoms."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.integers(0, 3, 200), "x": rng.normal(size=200)})
    rbm = TabularRBM(2, n_iter=2, random_state=0).fit(X)
    assert rbm.columns_.tolist() == ["x", "n"]
    rbm.components_ = rng.normal(size=rbm.components_.shape)
    grid = np.linspace(-40, 40, 40_001)
    total = sum(
        trapezoid(np.exp(rbm.log_likelihood(pd.DataFrame({"n": n, "x": grid}))), grid)
        for n in range(3)
    )
    assert total == pytest.approx(1, abs=0.02)  # all other numbers have the rest
    assert total < 1


@pytest.mark.parametrize("numeric_scale", ["normal", "mixture"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_atoms_are_the_same_in_both_precisions(dtype, numeric_scale):
    """Slip: numbers compared in the precision of the rows, so that all of them were unknown."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([0.1, 0.2, 0.3], 300), rng.normal(size=300)])
    X[rng.random(300) < 0.3, 1] = 0.1
    rbm = TabularRBM(4, numeric_scale=numeric_scale, n_iter=2, random_state=0).fit(X.astype(dtype))
    # Beside other values, an atom that was learned in single precision is that number alone.
    rows = X[X[:, 1] != 0.1] if dtype == np.float32 else X
    single, double = (rbm.score_samples(rows.astype(kind)) for kind in (np.float32, np.float64))
    np.testing.assert_allclose(single, double, atol=1e-3)


@pytest.mark.parametrize("name", ["codes", "counts", "modes", "zeros", "debts", "normal"])
def test_expected_numbers_are_averages_of_the_numbers_of_normal_scores(name):
    """Slips: Gauss and Hermite's rule, for polynomials, where numbers are steps: .25 deviations;
    the same quantiles for all draws, which leave out the tails: a third of the mean of debts."""
    rng = np.random.default_rng(0)
    x = {
        "codes": rng.integers(0, 6, 4000),
        "counts": rng.poisson(3, 4000),
        "modes": np.where(rng.random(4000) < 0.5, -3, 3) + 0.3 * rng.normal(size=4000),
        "zeros": np.where(rng.random(4000) < 0.6, 0, rng.exponential(size=4000)),
        "debts": np.exp(2 * rng.normal(size=4000)),
        "normal": rng.normal(size=4000),
    }[name].astype(float)
    scores, fine = NormalScores.of(x, np.ones(4000)), stats.norm.ppf((np.arange(5000) + 0.5) / 5000)
    for deviation in (1.0, 0.3, 0.05):
        mean = np.linspace(-2.5, 2.5, 101) * np.sqrt(max(1 - deviation**2, 0.01))
        expected = [scores.values(m + deviation * fine).mean() for m in mean]
        draws = rng.normal(mean, deviation, (400, len(mean)))
        of_draws = np.array([scores.expected_values(mean, drawn, deviation) for drawn in draws])
        error = 5 * of_draws.std(axis=0) / 20 + 1e-3 * x.std()
        assert (np.abs(of_draws.mean(axis=0) - expected) < error).all()
        assert of_draws.std(axis=0).max() < 0.1 * x.std()
    # The draw is at the end of a range, whose quantile is infinite.
    of_means = scores.expected_values(mean, mean, deviation)
    np.testing.assert_allclose(of_means, expected, rtol=0, atol=0.5 * x.std())
