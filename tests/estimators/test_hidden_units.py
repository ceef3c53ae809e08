"""Hidden units with real values in every estimator: each route works, or is refused by name."""

import pickle

import numpy as np
import pandas as pd
import pytest
from estimators.instances import arrays, assert_same_arrays, learned_bits
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skrbm import (
    BernoulliRBM,
    DivergenceError,
    GaussianBernoulliRBM,
    RBMClassifier,
    RBMImputer,
    RBMOutlierDetector,
    SpinRBM,
    TabularRBM,
    chain_diagnostics,
    effective_couplings,
    to_bernoulli,
)
from skrbm.core.likelihood.pseudo import pseudo_likelihood
from skrbm.core.numerics import apart_from, dense
from skrbm.core.units import HIDDEN_TYPES

FITS = {
    "bernoulli-drelu": (BernoulliRBM, "drelu"),
    "spin-gaussian": (SpinRBM, "gaussian"),
    "cho-relu": (GaussianBernoulliRBM, "relu"),
    "table-drelu": (TabularRBM, "drelu"),
}


def rows_for(cls, n_rows=60, seed=0):
    """Rows of correlated columns in the domain of an estimator."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 1)) + rng.normal(size=(n_rows, 5))
    X = {BernoulliRBM: 1.0 * (X > 0), SpinRBM: np.where(X > 0, 1.0, -1.0)}.get(cls, X)
    if cls is TabularRBM:
        X = X.astype(object)
        X[:, 0] = np.where(X[:, 0] > 0, "up", "down")
    return X


@pytest.fixture(params=FITS)
def fitted(request):
    """Estimator that has made a few epochs, and its rows."""
    cls, hidden = FITS[request.param]
    X = rows_for(cls)
    kinds = {"kinds": {0: "categorical"}} if cls is TabularRBM else {}
    return cls(3, hidden_units=hidden, n_iter=3, random_state=0, **kinds).fit(X), X


@pytest.mark.slow
def test_every_method_answers_finite_numbers(fitted):
    # Slip: a route that lists two states of every hidden unit.
    rbm, X = fitted
    H = rbm.transform(X)
    is_table = isinstance(rbm, TabularRBM)
    answers = [H, rbm.score_samples(X), rbm.free_energy(X), rbm.energy(X, H)]
    answers += [rbm.log_partition(m, n_temperatures=60).value for m in ("ais", "bar", "auto")]
    answers += [rbm.log_partition("reverse_ais", n_temperatures=60).std_error]
    answers += [rbm.log_likelihood(X, 100.0), rbm.h_samples_]
    answers += [np.concatenate(list(chain_diagnostics(rbm, n_steps=20).traces.values()))]
    tables = [rbm.sample(4, 5), rbm.sample(4, 5, n_temperatures=3), rbm.inverse_transform(H)]
    tables += [rbm.gibbs(X), rbm.impute(X, n_gibbs_steps=3)]
    answers += [table[:, 1:] if is_table else table for table in tables]
    for answer in answers:
        assert np.isfinite(np.asarray(answer, dtype=np.float64)).all()
    if rbm.hidden_units == "relu":
        assert (H > 0).all()


def test_public_arrays_are_the_model(fitted):
    # Slips: a curvature that is carried in a private array alone; a stream that is not resumed.
    rbm, X = fitted
    twin = clone(rbm)
    for name in ("columns_", "kinds_", "categories_", "n_features_in_", "_data"):  # of a table
        if hasattr(rbm, name):
            setattr(twin, name, getattr(rbm, name))
    for name in rbm._public_names:
        setattr(twin, name, getattr(rbm, name))
    np.testing.assert_array_equal(twin.free_energy(X), rbm.free_energy(X))
    copied = pickle.loads(pickle.dumps(rbm)).partial_fit(X)
    rbm.partial_fit(X)
    for name in rbm._public_names:
        np.testing.assert_array_equal(getattr(copied, name), getattr(rbm, name), err_msg=name)
    sides = {"threshold_hidden_", "asymmetry_hidden_"}
    assert (sides <= arrays(rbm).keys()) == (rbm.hidden_units == "drelu")
    rbm.set_params(hidden_units="binary").fit(X)
    assert not sides & arrays(rbm).keys()


@pytest.mark.parametrize(
    "options", [{"algorithm": "cd"}, {"algorithm": "pt"}, {"optimizer": "adam"}]
)
@pytest.mark.parametrize("hidden", HIDDEN_TYPES)
def test_algorithms_move_every_parameter(hidden, options):
    X = rows_for(SpinRBM)
    rbm = SpinRBM(3, hidden_units=hidden, n_iter=0, random_state=0).fit(X)
    before = arrays(rbm)
    after = arrays(rbm.set_params(warm_start=True, n_iter=3, **options).fit(X))
    for name in rbm._public_names:
        assert np.isfinite(after[name]).all()
        assert (before[name] != after[name]).any(), name


@pytest.mark.parametrize("hidden", HIDDEN_TYPES)
def test_exact_training_reaches_the_likelihood_of_the_rows(hidden):
    # Slips: a gradient without one of the parameters; steps that overshoot where states are large.
    X = np.repeat([[0.0, 0, 1], [1, 1, 0], [1, 1, 1]], [20, 10, 10], axis=0)
    options = {"algorithm": "exact", "n_iter": 100, "random_state": 0}
    rbm = BernoulliRBM(2, hidden_units=hidden, **options).fit(X)
    entropy = -(0.5 * np.log(0.5) + 0.5 * np.log(0.25))
    likelihood = rbm.log_likelihood(X).mean()
    assert -entropy - 0.15 < likelihood < -entropy


@pytest.mark.parametrize(
    "options",
    [
        {"missing": "marginalize", "centering": False},
        {"early_stopping": True, "track_likelihood": True},
        {"momentum": 0.5, "l1": 1e-3, "l2": 1e-3, "max_norm": 1.0, "average": False},
    ],
    ids=lambda options: next(iter(options)),
)
def test_training_options_go_with_real_hidden_units(options):
    X = rows_for(BernoulliRBM)
    if "missing" in options:
        X[::3, 1] = np.nan
    rbm = BernoulliRBM(3, hidden_units="drelu", n_iter=3, random_state=0, **options).fit(X)
    assert np.isfinite(rbm.score_samples(X)).all()
    assert_same_arrays(clone(rbm).fit(X), rbm)


@pytest.mark.slow
def test_meta_estimators_take_real_hidden_units():
    X = rows_for(BernoulliRBM)
    y = X[:, 0].astype(int)
    rbm = BernoulliRBM(3, hidden_units="drelu", learning_rate=1, n_iter=30, random_state=0)
    classifier = RBMClassifier(rbm).fit(X, y)
    assert classifier.score(X, y) > 0.95
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1)
    X[0, 1] = np.nan
    assert np.isfinite(RBMImputer(rbm, random_state=0).fit_transform(X)).all()
    detector = RBMOutlierDetector(rbm).fit(X[1:])
    assert set(detector.predict(X[1:])) <= {-1, 1}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("before", "after"), [("binary", "relu"), ("relu", "gaussian")])
def test_training_does_not_continue_with_other_hidden_units(before, after, method):
    """Slip: weights and chains of other units, which need no other arrays, in silence."""
    X = rows_for(BernoulliRBM)
    options = {"n_iter": 2, "learning_rate": 0.01, "warm_start": True, "random_state": 0}
    rbm = BernoulliRBM(2, hidden_units=before, **options).fit(X)
    with pytest.raises(ValueError, match=f"hidden_units='{after}' was changed since fit"):
        getattr(rbm.set_params(hidden_units=after), method)(X)
    assert rbm.set_params(warm_start=False).fit(X).n_iter_ == 2


@pytest.mark.parametrize("method", ["transform", "score_samples", "partial_fit", "fit"])
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("hidden_units", "binary", "relu"), ("parameterization", "cho", "goodfellow")],
)
def test_fitted_arrays_keep_their_meaning(name, before, after, method):
    """Slip: features and likelihoods of another model, in silence. Arrays assigned by hand may have
    any meaning, and a change that is taken back does no harm.
    """
    X = rows_for(GaussianBernoulliRBM)
    options = {name: before, "n_iter": 2, "warm_start": True, "random_state": 0}
    rbm = GaussianBernoulliRBM(2, **options).fit(X)
    with pytest.raises(ValueError, match=f"{name}='{after}' was changed since fit"):
        getattr(rbm.set_params(**{name: after}), method)(X)
    getattr(rbm.set_params(**{name: before}), method)(X)
    rbm.set_params(**{name: after}).components_ = rbm.components_ / 2
    if name == "parameterization":  # chains of other hidden units cannot go on
        getattr(rbm, method)(X)
    assert np.isfinite(rbm.score_samples(X)).all()


def test_a_change_of_hidden_units_does_not_discard_the_model():
    """Slip: training that starts anew, because an array of the new units is missing."""
    X = rows_for(BernoulliRBM)
    rbm = BernoulliRBM(2, n_iter=2, random_state=0).fit(X).set_params(hidden_units="drelu")
    with pytest.raises(ValueError, match="hidden_units='drelu' was changed since fit"):
        rbm.partial_fit(X)
    with pytest.raises(ValueError, match="hidden_units='drelu' was changed since fit"):
        rbm.set_params(warm_start=True).fit(X)
    assert rbm.set_params(warm_start=False).fit(X).threshold_hidden_.shape == (2,)
    assigned = BernoulliRBM(2, n_iter=2, random_state=0)
    assigned.components_ = np.zeros((2, X.shape[1]))
    assert assigned.partial_fit(X).n_iter_ == 1  # not all arrays are there


def test_unknown_hidden_units_are_refused_by_name():
    with pytest.raises(ValueError, match=r"'hidden_units' parameter of BernoulliRBM must be a str"):
        BernoulliRBM(hidden_units="softplus").fit(rows_for(BernoulliRBM))


def test_weights_without_a_distribution_are_refused_by_name():
    # Slip: chains that run away, and likelihoods of a density that has no integral.
    X = rows_for(GaussianBernoulliRBM)
    rbm = GaussianBernoulliRBM(2, hidden_units="gaussian", n_iter=2, random_state=0).fit(X)
    rbm.components_ = 100 * rbm.components_
    message = "^Gaussian visible and Gaussian hidden units may have no joint distribution"
    for call in (rbm.free_energy, rbm.partial_fit):
        with pytest.raises(ValueError, match=message):
            call(X)


def test_training_stays_where_the_distribution_exists():
    # Slip: a step beyond, after which all chains run away. Rows of one strong factor.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) * [3.0, 2.0, -4.0, 1.0] + 0.05 * rng.normal(size=(300, 4))
    for optimizer, rate in (("sgd", 0.4), ("adam", 0.1)):
        rbm = GaussianBernoulliRBM(2, hidden_units="gaussian", n_iter=5, random_state=0)
        rbm.set_params(optimizer=optimizer, learning_rate=rate).fit(X)
        assert 0.5 < rbm._model.machine().lost_curvature < 0.96


@pytest.mark.parametrize("hidden", ["gaussian", "relu", "drelu"])
@pytest.mark.parametrize("n_components", [4, 40])
@pytest.mark.parametrize("learning_rate", [1e3, 1e100])
def test_divergence_keeps_finite_parameters(hidden, n_components, learning_rate):
    # Slip: the singular values of weights that overflow, which NumPy cannot compute.
    options = {"hidden_units": hidden, "learning_rate": learning_rate, "random_state": 0}
    rbm = GaussianBernoulliRBM(n_components, batch_size=10, **options)
    X = np.random.default_rng(0).normal(size=(200, 40))
    with pytest.raises(DivergenceError, match=r"epoch \d+.*Reduce learning_rate"):
        rbm.fit(X)
    assert all(np.isfinite(array).all() for array in arrays(rbm).values())


@pytest.mark.slow
@pytest.mark.parametrize("parameterization", ["cho", "krizhevsky", "goodfellow"])
def test_strong_factors_are_learned_up_to_the_bound(parameterization):
    """Long training stays near the most likely machine within the bound; it left by 4,000 nats.

    Slip: variances that are learned at constant weights, which are clipped afterwards.
    """
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(5, 30))
    X = rng.normal(size=(4000, 5)) @ loadings + 0.5 * rng.normal(size=(4000, 30))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rbm = GaussianBernoulliRBM(
        5, hidden_units="gaussian", parameterization=parameterization, n_iter=40, random_state=1
    )
    with pytest.warns(ConvergenceWarning, match="strong factor"):
        rbm.fit(X)
    power = {"krizhevsky": 0.5}.get(parameterization, 1.0)
    U = rbm.components_.T / rbm.noise_variance_[:, None] ** power
    precision = np.diag(1 / rbm.noise_variance_) - U @ U.T
    learned, independent = (
        np.linalg.slogdet(P)[1] / 2 - np.einsum("ij,jk,ik->i", X, P, X).mean() / 2
        for P in (precision, np.eye(30))
    )
    assert learned > independent + 24


def test_factors_beyond_the_bound_are_warned_of():
    """Fifty columns with correlations of .5: normal hidden units reach .27, in silence before.

    Slips: a warning wherever the bound is reached, also for a type that learns the factor.
    """
    rng = np.random.default_rng(1)
    X = np.sqrt(0.5) * (rng.normal(size=(1000, 1)) + rng.normal(size=(1000, 50)))
    options = {"n_iter": 15, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="strong factor of X: .* Set hidden_units='drelu'"):
        GaussianBernoulliRBM(2, hidden_units="gaussian", **options).fit(X)
    GaussianBernoulliRBM(2, hidden_units="drelu", **options).fit(X)
    GaussianBernoulliRBM(2, hidden_units="gaussian", **options).fit(X[:, :10])
    # Slip: chains of contrastive divergence, which do not sample the model, in the comparison.
    X = rng.normal(size=(2000, 1)) * 4 / np.sqrt(5) + rng.normal(size=(2000, 5))
    GaussianBernoulliRBM(1, hidden_units="gaussian", algorithm="cd", **options).fit(X)


@pytest.mark.parametrize("algorithm", ["cd", "exact"])
def test_initial_states_of_absent_chains_do_not_scale_the_steps(algorithm):
    """Slip: hidden states from before training among those that set the scale."""
    X = np.random.default_rng(0).normal(size=(200, 5))
    if algorithm == "exact":
        X = (X > 0) * 1.0
    kind = BernoulliRBM if algorithm == "exact" else GaussianBernoulliRBM
    options = {"hidden_units": "relu", "algorithm": algorithm, "n_iter": 2, "random_state": 0}
    one, other = kind(2, warm_start=True, **options).fit(X), kind(2, **options).fit(X)
    other.h_samples_ = 1e3 + other.h_samples_
    other.set_params(warm_start=True)
    np.testing.assert_array_equal(one.fit(X).components_, other.fit(X).components_)


def test_exact_sums_over_real_layers_are_refused_by_name():
    X = rows_for(GaussianBernoulliRBM)
    rbm = GaussianBernoulliRBM(2, hidden_units="relu", algorithm="exact", n_iter=1)
    with pytest.raises(ValueError, match="2 hidden ReLU, continuous, units"):
        rbm.fit(X)


def test_too_many_states_are_described_in_the_words_of_the_user():
    """Slips: names of internal classes; fewer components, which cannot make real numbers few."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    table = TabularRBM(30, algorithm="exact", n_iter=1)
    fewer = r" Enumeration is possible with fewer hidden units\. Use method='ais'"
    with pytest.raises(
        ValueError, match=rf"3 visible Gaussian, .* 30 hidden Bernoulli units\.{fewer}"
    ):
        table.fit(X)
    with pytest.raises(ValueError, match="3 visible Mixture, continuous, units and 30"):
        table.set_params(numeric_scale="mixture").fit(X)
    mixed = pd.DataFrame(X, columns=list("abc")).assign(color=list("xyxx") * 10)
    with pytest.raises(ValueError, match="4 visible Categorical and Gaussian, continuous, units"):
        table.set_params(numeric_scale="standard").fit(mixed)
    with pytest.raises(
        ValueError, match=r" 30 hidden Gaussian, continuous, units\. Use method='ais'"
    ):
        table.set_params(hidden_units="gaussian").fit(X)


def test_conversion_of_real_hidden_units_is_refused_by_name():
    rbm = SpinRBM(2, hidden_units="relu", n_iter=1, random_state=0).fit(rows_for(SpinRBM))
    with pytest.raises(ValueError, match=r"Expected hidden_units='binary', .* got 'relu'"):
        to_bernoulli(rbm)


def test_states_below_zero_of_rectified_units_are_refused_by_name():
    X = rows_for(SpinRBM)
    rbm = SpinRBM(2, hidden_units="relu", n_iter=1, check_input="raise", random_state=0).fit(X)
    with pytest.raises(ValueError, match="ReLU units expect values of at least 0, but H has"):
        rbm.energy(X, np.full((len(X), 2), -1.0))
    with pytest.raises(ValueError, match="H contains infinity"):
        rbm.energy(X, np.full((len(X), 2), np.inf))


def test_binary_hidden_units_are_the_default():
    X = rows_for(SpinRBM)
    one, other = (
        SpinRBM(2, n_iter=2, random_state=0, **o) for o in ({}, {"hidden_units": "binary"})
    )
    assert learned_bits(one.fit(X)) == learned_bits(other.fit(X))


@pytest.mark.slow
def test_patterns_of_a_hopfield_network_are_recovered():
    """Gaussian hidden units learn the couplings that the rows were drawn with."""
    rng = np.random.default_rng(0)
    weights = rng.choice([-1.0, 1.0], (2, 12)) * [[0.32], [0.28]]
    network = SpinRBM(2, hidden_units="gaussian", random_state=0)
    network.components_ = weights
    network.intercept_visible_, network.intercept_hidden_ = np.zeros(12), np.zeros(2)
    X, held_out = (network.sample(2000, 100, n_temperatures=5) for _ in range(2))
    rbm = SpinRBM(2, hidden_units="gaussian", n_iter=15, random_state=0).fit(X)
    best = network.log_likelihood(held_out).mean()
    assert best - rbm.log_likelihood(held_out).mean() < 0.05
    learned, true = (effective_couplings(model).pairs for model in (rbm, network))
    assert np.corrcoef(learned.ravel(), true.ravel())[0, 1] > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("hidden", HIDDEN_TYPES)
@pytest.mark.parametrize("n_iter", [10, 50])
def test_clusters_of_bits_are_learned_by_default(hidden, n_iter):
    # Slips: full steps of thresholds and asymmetries, which add up over the units; steps that do not
    # become shorter: after 50 epochs, gaussian ends .37 and drelu .49 nats below the truth.
    rng, shares, noise = np.random.default_rng(0), (0.4, 0.3, 0.2, 0.1), 0.02
    centers = rng.random((4, 10)) < 0.5
    group = rng.choice(4, 2000, p=shares)
    X = 1.0 * (centers[group] ^ (rng.random((2000, 10)) < noise))
    means = np.abs(centers - noise)
    given_group = X @ np.log(means.T) + (1 - X) @ np.log(1 - means.T)
    truth = logsumexp(given_group + np.log(shares), axis=1).mean()
    rbm = BernoulliRBM(20, hidden_units=hidden, n_iter=n_iter, random_state=0).fit(X)
    assert rbm.log_likelihood(X, rbm.log_partition("exact")).mean() > truth - 0.2


@pytest.mark.slow
def test_a_factor_model_is_recovered():
    """Two Gaussian layers learn the covariance of the rows: most of what factors tell."""
    rng = np.random.default_rng(0)
    loadings, noise = rng.normal(size=(8, 2)), rng.uniform(0.5, 1, 8)
    C = loadings @ loadings.T + np.diag(noise)
    X, held_out = (rng.multivariate_normal(np.zeros(8), C, n) for n in (2000, 2000))
    rbm = GaussianBernoulliRBM(2, hidden_units="gaussian", n_iter=30, random_state=0).fit(X)
    U = rbm.components_.T / rbm.noise_variance_[:, None]
    precision = np.diag(1 / rbm.noise_variance_) - U @ U.T
    best, learned, independent = (
        np.linalg.slogdet(P)[1] / 2 - np.einsum("ij,jk,ik->i", held_out, P, held_out).mean() / 2
        for P in (np.linalg.inv(C), precision, np.diag(1 / X.var(axis=0)))
    )
    assert learned > best - 0.15 * (best - independent)


@pytest.mark.parametrize("numeric_scale", ["normal", "mixture"])
@pytest.mark.parametrize("hidden_units", ["gaussian", "relu", "drelu"])
def test_pseudo_likelihood_of_atoms_and_modes_is_that_of_a_fine_grid(hidden_units, numeric_scale):
    # Slips: a refusal, since the energy is not convex; atoms without a mass.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 0] = np.where(rng.random(60) < 0.4, 0, np.exp(X[:, 0]))
    X[:, 1:] += 5 * rng.integers(2, size=(60, 1))
    rbm = TabularRBM(
        2, hidden_units=hidden_units, numeric_scale=numeric_scale, n_iter=5, random_state=0
    ).fit(X)
    assert np.isfinite(rbm.history_["pseudo_likelihood"]).all()
    assert np.isfinite(rbm.log_likelihood(X, rbm.log_partition("ais", n_temperatures=100))).all()
    machine = rbm._model.machine()
    v, grid = dense(rbm._model.check_X(X))[:8], np.linspace(-40, 40, 160_001)
    expected = np.zeros(len(v))
    for unit in range(3):
        atoms = machine.visible.unit_atoms(unit)
        values = np.concatenate([atoms, apart_from(atoms, grid)])
        log_measure = np.where(np.arange(len(values)) < len(atoms), 0, np.log(grid[1] - grid[0]))
        for row, states in enumerate(v):
            rows = np.repeat(states[None], len(values), axis=0)
            rows[:, machine.visible.unit_columns(unit)] = values[:, None]
            log_sum = logsumexp(log_measure - machine.free_energy(rows))
            expected[row] -= machine.free_energy(states[None])[0] + log_sum
    actual = pseudo_likelihood(machine, v)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-8)


def test_scores_of_rows_too_far_for_a_quadrature_are_refused():
    # Slip: the number of a row taken for that of a unit, which raises an IndexError.
    X = np.random.default_rng(0).normal(size=(1000, 3))
    rbm = GaussianBernoulliRBM(2, hidden_units="relu", n_iter=1, random_state=0).fit(X)
    X[3] = 1e6
    with pytest.raises(ValueError, match="unit of standard deviation"):
        rbm.score_samples(X)
