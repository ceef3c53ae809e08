"""Data of modes that lie far apart, as real tables have them: fits by defaults, and likelihoods."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from estimators.instances import without
from scipy import sparse
from scipy.special import expit, logsumexp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from skrbm import (
    AnnealingWarning,
    BernoulliRBM,
    GaussianBernoulliRBM,
    RBMClassifier,
    SpinRBM,
    TabularRBM,
)
from skrbm.core.chains.jumps import propose
from skrbm.core.units import Bernoulli
from skrbm.estimators.fitting.tracked_likelihood import LikelihoodRecorder
from skrbm.estimators.inference.log_partition import warn_if_ends_differ
from skrbm.estimators.labels.label_model import LabelModel

NOISE = 0.02


@pytest.fixture
def rng(seed):
    return np.random.default_rng([seed, 1])


def clusters(shares, rng, n_columns=50, n_rows=1000):
    """Bits that repeat the pattern of a row's cluster with some noise, and their log-likelihood."""
    patterns = rng.random((len(shares), n_columns)) < 0.5
    patterns[1] = ~patterns[0]
    of_row = rng.choice(len(shares), n_rows, p=shares)
    X = patterns[of_row] ^ (rng.random((n_rows, n_columns)) < NOISE)
    n_wrong = (X[:, None] != patterns).sum(axis=2)
    n_right = n_columns - n_wrong
    likelihood = np.log(shares) + n_wrong * np.log(NOISE) + n_right * np.log(1 - NOISE)
    return X.astype(float), float(logsumexp(likelihood, axis=1).mean())


def exact_mean(rbm, X):
    return float(rbm.log_likelihood(X, rbm.log_partition("exact")).mean())


@pytest.mark.parametrize(
    ("estimator", "shares"),
    [
        (BernoulliRBM, (0.5, 0.5)),
        (BernoulliRBM, (0.4, 0.3, 0.3)),
        (SpinRBM, (0.5, 0.5)),
        (SpinRBM, (0.8, 0.2)),
    ],
)
def test_clusters_that_were_not_found_before(estimator, shares, rng):
    """Within 2 nats of the truth by defaults, where independent bits are 10 to 29 below.

    Slip: chains that never jump to the data.
    """
    X, truth = clusters(np.array(shares), rng)
    if estimator is SpinRBM:
        X = 2 * X - 1
    rbm = without(estimator, "clusters")(10, random_state=0).fit(X)
    assert exact_mean(rbm, X) > truth - 2


def test_many_units_do_not_throw_a_rare_cluster_about(rng):
    """Its rows, 5 % of all, are less likely than the others. They were e^46 times as likely.

    Slips: steps of all units' weights together as long as those of few; one look in sixteen updates.
    """
    X, _ = clusters(np.array([0.95, 0.05]), rng)
    rbm = without(BernoulliRBM, "clusters")(256, random_state=0).fit(X)
    is_common = (np.median(X, axis=0) != X).sum(axis=1) < X.shape[1] / 2
    free_energy = rbm.free_energy(X)
    assert free_energy[is_common].mean() < free_energy[~is_common].mean()


def rare(kind, rng):
    """Bits of 2,000 rows, six of which are far from the others, and which these are."""
    is_rare = np.zeros(2000, dtype=bool)
    is_rare[rng.choice(2000, 6, replace=False)] = True
    pattern = rng.random(60) < 0.5 if kind == "opposite" else np.zeros(60, dtype=bool)
    bits = (pattern ^ is_rare[:, None]) ^ (rng.random((2000, 60)) < NOISE)
    return bits.astype(float), is_rare


@pytest.mark.slow
@pytest.mark.parametrize("fit_seed", range(2))
@pytest.mark.parametrize("kind", ["opposite", "all ones"])
@pytest.mark.parametrize("estimator", [BernoulliRBM, SpinRBM])
def test_a_rare_group_neither_takes_the_model_over_nor_is_taken_for_normal(
    estimator, kind, fit_seed, rng
):
    """By defaults: six of 2,000 rows were e^16 times as likely as they should be, in silence.

    Slip: chains that jump to rows of the mini-batch alone: up to 94 nats below independent bits.
    """
    X, is_rare = rare(kind, rng)
    p = X.mean(axis=0)
    independent = (X @ np.log(p) + (1 - X) @ np.log1p(-p)).mean()
    X = 2 * X - 1 if estimator is SpinRBM else X
    rbm = estimator(random_state=fit_seed).fit(X)
    rows = np.concatenate([X[is_rare], X[:60]])
    log_z = rbm.log_partition("ais", n_temperatures=1000, X=rows)  # to 0.02 nats
    assert rbm.log_likelihood(X, log_z).mean() > independent
    free_energy = rbm.free_energy(X)
    assert (free_energy[is_rare][:, None] > free_energy[~is_rare]).mean() > 0.99


@pytest.mark.slow
def test_more_passes_over_wide_rows_are_better():
    """A row gains 30 nats from the tenth to the thirtieth; with longer steps it gained 9.

    Slip: twice as long steps along directions that lead.
    """
    rng = np.random.default_rng(0)
    odds = rng.normal(1.5, 0.5, 1000) * rng.normal(size=(5000, 1))
    X = (rng.random(odds.shape) < expit(odds)).astype(np.float32)
    early, late = (
        BernoulliRBM(n_iter=n_iter, random_state=0).fit(X).score(X[:1000]) for n_iter in (10, 30)
    )
    assert late > early + 15


@pytest.mark.slow
def test_a_fit_that_has_lost_its_rows_is_warned_of(rng):
    """Catches a run that ran away in silence, and one that is right being blamed."""
    X, _ = clusters(np.array([0.5, 0.5]), rng)
    without(BernoulliRBM, "clusters")(10, random_state=0).fit(X)
    rbm = without(BernoulliRBM, "clusters", "jumps")(10, n_iter=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"at least .* Reduce learning_rate=0\.4"):
        rbm.fit(X)
    p = X.mean(axis=0)
    assert exact_mean(rbm, X) < float((X @ np.log(p) + (1 - X) @ np.log1p(-p)).mean())


def numbers(shares, rng, n_rows=1000):
    """Numbers in clusters that are 57 to 126 standard deviations apart, and their log-likelihood."""
    centers = 40.0 * np.eye(len(shares), 10)
    if len(shares) == 2:
        centers[0], centers[1] = 0, 40
    X = centers[rng.choice(len(shares), n_rows, p=shares)] + rng.normal(size=(n_rows, 10))
    squares = ((X[:, None] - centers) ** 2).sum(axis=2) / 2
    likelihood = np.log(shares) - squares - 5 * np.log(2 * np.pi)
    return X, float(logsumexp(likelihood, axis=1).mean())


NUMBERS = {"two": (0.5, 0.5), "rare": (0.95, 0.05), "five": (0.2,) * 5}


@pytest.mark.filterwarnings("ignore:The fit is worse than a kernel")  # one unit, five clusters
@pytest.mark.parametrize("n_components", [1, 5, 18])
@pytest.mark.parametrize("shares", NUMBERS.values(), ids=NUMBERS)
def test_clusters_of_numbers(shares, n_components, rng):
    """Within 1 nat of the truth by defaults, where independent numbers are 20 to 29 below.

    Slips: a start of one mode; variances whose steps do not allow for the modes' odds; chains that
    start elsewhere, or jump to the rows of a mini-batch alone.
    """
    X, truth = numbers(np.array(shares), rng)
    rbm = GaussianBernoulliRBM(n_components, random_state=0).fit(X)
    allowed = 30 if n_components < len(shares) - 1 else 1
    assert exact_mean(rbm, X) > truth - allowed


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["pcd", "cd", "pt", "exact"])
@pytest.mark.parametrize("shares", NUMBERS.values(), ids=NUMBERS)
def test_clusters_of_numbers_by_every_algorithm(shares, algorithm, rng):
    """And longer: contrastive divergence does not see how the modes weigh."""
    X, truth = numbers(np.array(shares), rng)
    rbm = GaussianBernoulliRBM(5, n_iter=25, algorithm=algorithm, random_state=0).fit(X)
    assert exact_mean(rbm, X) > truth - (8 if algorithm == "cd" else 1)


SHARES = NUMBERS | {"one of fifty": (0.98, 0.02), "eight": (0.125,) * 8}


BITS = [  # every two of groups, states and numbers of units meet
    pytest.param(SHARES[name], estimator, (2, 10)[(i + j) % 2], id=f"{name}-{estimator.__name__}")
    for i, name in enumerate(SHARES)
    for j, estimator in enumerate((BernoulliRBM, SpinRBM))
]


@pytest.mark.parametrize(("shares", "estimator", "n_components"), BITS)
def test_clusters_of_bits(shares, estimator, n_components, rng):
    """Within half a nat of the truth by defaults, where independent bits are 2 to 29 below.

    Slips: a start of one mode; jumps to the rows of a mini-batch alone.
    """
    X, truth = clusters(np.array(shares), rng, n_rows=2000)
    if estimator is SpinRBM:
        X = 2 * X - 1
    rbm = estimator(n_components, random_state=0).fit(X)
    allowed = 30 if n_components < len(shares) - 1 else 0.5
    assert exact_mean(rbm, X) > truth - allowed


@pytest.mark.parametrize("dtype", [np.float32, bool])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_clusters_of_any_array(dtype, container, rng):
    X, truth = clusters(np.array((0.95, 0.05)), rng)
    rbm = BernoulliRBM(5, random_state=0).fit(container(X.astype(dtype)))
    assert exact_mean(rbm, X) > truth - 0.5


def test_clusters_of_one_hot_rows_by_few_units_and_passes(rng):
    """Five of them are no less likely than by scikit-learn's class, -17.5 nats on average.

    Slip: a start of one mode, -17.6 to -23.9.
    """
    X, _ = clusters(np.full(5, 0.2), rng)
    X = np.hstack([X, 1 - X])
    assert exact_mean(BernoulliRBM(5, random_state=0).fit(X), X) > -13


@pytest.mark.parametrize("edits", [False, True])
def test_a_stream_of_clusters(edits, rng):
    """The modes of its first rows are known to the end, unless the arrays are others.

    Slips: modes or odds that only the first call knows; modes of a model of another width.
    """
    X, truth = numbers(np.array((0.8, 0.2)), rng)
    rbm = GaussianBernoulliRBM(5, random_state=0)
    for begin in (0, 300, 600):
        rbm.partial_fit(X[begin : begin + 300])
    assert rbm._data["kurtosis"].min() > 12.7
    if edits:
        X = np.hstack([X, X[:, :1]])
        rbm.components_ = np.hstack([rbm.components_, rbm.components_[:, :1]])
        rbm.intercept_visible_ = np.append(rbm.intercept_visible_, rbm.intercept_visible_[0])
        rbm.noise_variance_ = np.append(rbm.noise_variance_, rbm.noise_variance_[0])
        rbm.n_features_in_ = 11
        rbm.partial_fit(X)
        assert np.isfinite(rbm.score_samples(X)).all()
    else:
        for _ in range(10):
            rbm.partial_fit(X)
        assert exact_mean(rbm, X) > truth - 2


@pytest.mark.parametrize(
    "estimator",
    [
        TabularRBM(2, n_iter=1, kinds=dict.fromkeys(range(4), "categorical")),
        TabularRBM(2, n_iter=1, kinds={0: "categorical", **dict.fromkeys(range(1, 4), "numeric")}),
        RBMClassifier(GaussianBernoulliRBM(2, n_iter=1)),
        GaussianBernoulliRBM(2, n_iter=1, learn_variance=False),
        GaussianBernoulliRBM(2, n_iter=1, variance_rate=0),
        TabularRBM(2, n_iter=1),
    ],
)
def test_modes_of_mixed_tables_and_of_known_variances_are_not_looked_for(estimator, rng):
    # Slips: tables of several kinds, whose columns of few values have gaps; labels.
    estimator.fit(1.0 * rng.integers(2, size=(200, 4)), rng.integers(2, size=200))
    is_labelled = hasattr(estimator, "estimator_")
    model = LabelModel(estimator) if is_labelled else estimator._model
    assert model.machine().visible.value_step is None


@pytest.mark.parametrize(
    ("estimator", "step"),
    [
        (BernoulliRBM(2, n_iter=0), 1),
        (SpinRBM(2, n_iter=0), 2),
        (GaussianBernoulliRBM(2, n_iter=0), 0),
        (TabularRBM(2, n_iter=0, kinds=dict.fromkeys(range(4), "numeric")), 0),
        (TabularRBM(2, n_iter=0, kinds=dict.fromkeys(range(4), "binary")), 1),
    ],
)
def test_modes_are_looked_for(estimator, step, rng):
    X = rng.choice([-1.0, 1.0] if step == 2 else [0.0, 1.0], (200, 4))
    X += 0.1 * rng.normal(size=X.shape) if step == 0 else 0  # numbers of few values are atoms
    assert estimator.fit(X)._model.machine().visible.value_step == step


@pytest.mark.filterwarnings("ignore:The fit is worse than a kernel")  # and rightly so
def test_a_start_that_weights_may_not_have_is_none(rng):
    # Slip: weights that the first update cuts to a tenth, around variances of a cluster.
    X, _ = numbers(np.array(NUMBERS["two"]), rng)
    independent = -0.5 * np.log(2 * np.pi * np.e * X.var(axis=0)).sum()
    rbm = GaussianBernoulliRBM(5, max_norm=10, random_state=0).fit(X)
    assert np.linalg.norm(rbm.components_, axis=1).max() < 10.001
    assert exact_mean(rbm, X) > independent - 1


def test_a_start_that_costs_more_than_it_gains_is_none(rng):
    # Slip: weights that training does not shrink in time.
    X, _ = clusters(np.array((0.4, 0.3, 0.3)), rng)
    norms = []
    for l2 in (1e-4, 1.0):
        rbm = BernoulliRBM(5, l2=l2, n_iter=0, random_state=0).fit(X)
        norms.append(np.linalg.norm(rbm.components_))
    assert norms[0] > 10 > norms[1]
    other = without(BernoulliRBM, "clusters")(5, l2=1.0, n_iter=0, random_state=0).fit(X)
    np.testing.assert_array_equal(other.components_, rbm.components_)


def test_rows_held_out_are_not_learned_in_advance(rng):
    """Of few rows with much noise, their score is no better than that of others.

    Slip: all rows looked at, 2 to 8 nats better.
    """
    patterns = rng.random((2, 200)) < 0.5
    X, others = (
        (patterns[rng.integers(2, size=n)] ^ (rng.random((n, 200)) < 0.2)).astype(float)
        for n in (150, 500)
    )
    options = {"early_stopping": True, "validation_fraction": 0.4, "n_iter": 1}
    gaps = []
    for seed in range(4):
        rbm = BernoulliRBM(5, random_state=seed, **options).fit(X)
        score = rbm.history_["validation_pseudo_likelihood"][-1]
        gaps.append(score - rbm.score_samples(others).mean())
    assert np.mean(gaps) < 1


def test_modes_are_learned_by_one_thread(rng):
    # Slip: as many as there are, which wait for each other between products of a few rows.
    seen, X = [], clusters(np.array((0.5, 0.5)), rng)[0]

    class Looking(Bernoulli):
        def moments(self, *args):  # before the first update, for that alone
            pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
            seen.extend(pool["num_threads"] for pool in pools)
            return super().moments(*args)

    class LookingRBM(BernoulliRBM):
        _hidden_type = Looking

    with threadpool_limits(2):
        LookingRBM(2, n_iter=0).fit(X)
    assert set(seen) == {1}


def test_chains_start_in_all_clusters(rng):
    # Slip: draws with the data's means and variances, which lie in none.
    X, _ = numbers(np.array(NUMBERS["five"]), rng)
    rbm = GaussianBernoulliRBM(5, n_iter=0, n_particles=200, random_state=0).fit(X)
    v = rbm.intercept_visible_ + rbm.h_samples_ @ rbm.components_
    cluster = np.abs(v[:, None] - 40 * np.eye(5, 10)).max(axis=2)
    assert cluster.min(axis=1).max() < 2
    assert np.bincount(cluster.argmin(axis=1)).min() > 20


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.95, 0.05), (0.4, 0.3, 0.3)])
def test_a_tracked_likelihood_has_all_modes(shares, rng, monkeypatch):
    """All that rows are in; also those of the first epochs, which the way from the base leads to.

    Slip: chains that neither jump to the rows nor start from draws around them.
    """
    monkeypatch.setattr(LikelihoodRecorder, "max_states", 0)
    X, _ = clusters(np.array(shares), rng)
    rbm = without(BernoulliRBM, "clusters")(
        10, n_iter=20, track_likelihood=True, random_state=0
    ).fit(X)
    share = share_near(rbm, X)
    assert share > 0.4
    tracked = rbm.history_["log_likelihood"][-1]
    assert abs(tracked + np.log(share) - exact_mean(rbm, X)) < 0.3
    assert rbm.history_["log_likelihood_std_error"][-1] < 0.1


def share_near(rbm, X):
    """Probability of the hidden states around the rows; training has yet to remove the others."""
    n_hidden = len(rbm.components_)
    h = 1.0 * (np.arange(2**n_hidden)[:, None] >> np.arange(n_hidden) & 1)
    field = rbm.intercept_visible_ + h @ rbm.components_
    log_weight = h @ rbm.intercept_hidden_ + np.logaddexp(0, field).sum(axis=1)
    distance = np.abs(expit(field)[:, None] - np.unique(X[:200], axis=0)).sum(axis=2).min(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    return weight[distance < 10].sum() / weight.sum()


def twin(rbm):
    """Unfitted estimator with nothing but the public arrays of another one."""
    other = type(rbm)(rbm.n_components, random_state=0)
    for name in rbm._public_names:
        setattr(other, name, getattr(rbm, name))
    return other


def one_number():
    """A number that is around 0 or, 50 times as often, around 20."""
    rbm = GaussianBernoulliRBM(1, random_state=0)
    rbm.components_, rbm.intercept_hidden_ = np.array([[20.0]]), np.array([np.log(50) - 200])
    rbm.intercept_visible_, rbm.noise_variance_ = np.zeros(1), np.ones(1)
    return rbm


@pytest.fixture(params=["bits", "bits assigned", "number assigned"])
def far_modes(request, seed):
    """Models of two far modes, of unequal weight."""
    if request.param == "number assigned":
        return one_number()
    rng = np.random.default_rng([seed, 2])
    X = (rng.random((1000, 1)) < 0.3) ^ (rng.random((1000, 40)) < 0.01)
    rbm = BernoulliRBM(8, random_state=0).fit(X)
    return rbm if request.param == "bits" else twin(rbm)


@pytest.mark.slow
def test_far_modes_are_in_the_partition_function(far_modes):
    """Both ways, and with no other states than the public arrays say of.

    Slips: no jumps; anchors of one mode alone; a base of chains that are stuck in it.
    """
    exact = far_modes.log_partition("exact").value
    for method in ("ais", "reverse_ais"):
        result = far_modes.log_partition(method, n_temperatures=1000)
        assert abs(result.value - exact) < 4.5 * result.std_error
        assert result.std_error < 0.2


def test_a_mode_far_from_all_rows_is_in_the_partition_function():
    """Of a fitted model too: chains that have not been there do not tell, others do.

    Slip: jumps to draws given the persistent chains alone.
    """
    rng = np.random.default_rng(5)
    X, _ = clusters(np.array([0.5, 0.5]), rng)
    rbm = BernoulliRBM(10, n_iter=3, random_state=0).fit(X)
    # A hidden unit that is on in the second of two equal halves of the model, without a row.
    far = rng.random(50) < 0.5
    weights = 16.0 * far - 8.0
    free_energy = rbm.log_partition("exact").value
    rbm.components_ = np.vstack([rbm.components_, weights])
    rbm.h_samples_ = np.hstack([rbm.h_samples_, np.zeros((len(rbm.h_samples_), 1))])
    rbm.intercept_hidden_ = np.append(rbm.intercept_hidden_, 0.0)
    rbm.n_components = 11
    alone = rbm.log_partition("exact").value
    rbm.intercept_hidden_[-1] -= alone - free_energy
    exact = rbm.log_partition("exact").value
    result = rbm.log_partition("ais", n_temperatures=1000)
    assert exact > free_energy + 0.5
    assert abs(result.value - exact) < 5 * result.std_error


def test_tempered_samples_visit_far_modes_as_they_weigh():
    rbm = one_number()
    share = (rbm.sample(1000, 100, n_temperatures=5, random_state=0) > 10).mean()
    assert abs(share - 50 / 51) < 4 * np.sqrt(50) / 51 / np.sqrt(1000)


def test_an_estimate_below_what_known_states_add_is_warned_of():
    """Catches log Z from chains that all miss a mode, agreed upon by all of them."""
    rbm = BernoulliRBM(2, random_state=0)
    rbm.components_ = np.full((2, 40), 2.0)
    rbm.intercept_visible_, rbm.intercept_hidden_ = np.full(40, -2.0), np.full(2, -35.0)
    with pytest.warns(
        AnnealingWarning, match=r"is too low: training rows .* Increase n_temperatures=2"
    ):
        rbm.log_partition("ais", n_temperatures=2, X=np.eye(9)[:, :1] * np.ones(40))


def test_missing_values_do_not_hide_the_clusters(rng):
    """A tenth of the cells: the exact mean over complete rows was 7 nats below the distribution's.

    Slips: a search for clusters that gives up, or that looks at complete rows alone.
    """
    sign = np.where(rng.random((1000, 1)) < 0.5, 1, -1)
    X = 30 * sign + rng.normal(size=(1000, 6))
    squares = ((X[:, None] - 30 * np.array([[1], [-1]])) ** 2).sum(axis=2) / 2
    expected = (np.logaddexp(*-squares.T) - np.log(2) - 3 * np.log(2 * np.pi)).mean()
    with_missing = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    rbm = GaussianBernoulliRBM(8, n_iter=10, missing="marginalize", random_state=0)
    assert exact_mean(rbm.fit(with_missing), X) == pytest.approx(expected, abs=0.3)


def test_a_fit_with_missing_values_that_has_lost_its_rows_is_warned_of(rng):
    # Slip: no comparison with independent features where values are missing.
    X, _ = clusters(np.array([0.5, 0.5]), rng)
    X[rng.random(X.shape) < 0.05] = np.nan
    rbm = without(BernoulliRBM, "clusters", "jumps")(10, n_iter=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match="worse than a model of independent features"):
        rbm.set_params(missing="marginalize").fit(X)


def test_a_wide_fit_that_is_worse_than_independent_features_is_warned_of():
    """Slip: a bound of log Z that is 60 nats loose for 256 hidden units. The fit loses 3 nats."""
    X = StandardScaler().fit_transform(load_wine().data)
    with pytest.warns(ConvergenceWarning, match=r"is at least [1-5]\.\d+ nats lower"):
        without(GaussianBernoulliRBM, "factors")(512, n_iter=2, random_state=5).fit(X)


# The fit without factors is worse indeed.
@pytest.mark.filterwarnings("ignore:The fit is worse than a kernel density estimate")
@pytest.mark.parametrize("estimator", [GaussianBernoulliRBM, TabularRBM])
def test_factors_are_learned_by_default(estimator, rng):
    """Slips: no factors; chains that do not start at rows. Without factors, 1 to 4 nats are lost."""
    X = rng.standard_normal((1000, 1)) + 0.3 * rng.standard_normal((1000, 20))
    means = [
        exact_mean(kind(16, n_iter=10, random_state=0).fit(X), X)
        for kind in (estimator, without(estimator, "factors"))
    ]
    assert means[0] > means[1] + 1


def test_factors_of_every_fourth_row_are_learned(rng):
    """Slip: searched in every second row, which are never those: half a nat is lost."""
    n_rows = 4000
    loadings = 3 * rng.normal(size=12)
    factor = np.where(np.arange(n_rows) % 4 == 1, rng.normal(size=n_rows), 0)
    X = np.outer(factor, loadings) + rng.normal(size=(n_rows, 12))
    periodic, shuffled = (
        exact_mean(GaussianBernoulliRBM(16, n_iter=5, random_state=0).fit(rows), X)
        for rows in (X, rng.permutation(X))
    )
    assert periodic > shuffled - 0.2


@pytest.mark.parametrize("estimator", [GaussianBernoulliRBM, TabularRBM])
def test_sources_of_uncorrelated_columns_are_learned_by_default(estimator, rng):
    """Slip: no sources. Fits then stay at the saddle point of small weights, and lose a nat."""
    states = np.where(rng.random((2000, 8)) < 0.5, -1.0, 1.0)
    X = (states + 0.5 * rng.normal(size=(2000, 8))) @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    options = {"numeric_scale": "standard"} if estimator is TabularRBM else {}
    means = [
        exact_mean(kind(16, n_iter=10, random_state=0, **options).fit(X), X)
        for kind in (estimator, without(estimator, "sources"))
    ]
    assert means[0] > means[1] + 1


def test_units_beside_factors_leave_their_distribution(rng):
    """Slip: weights in proportion to the noise, whose coupling along the factor costs 16 nats."""
    X = rng.normal(size=(1500, 1)) + 0.05 * rng.normal(size=(1500, 5))
    start = GaussianBernoulliRBM(50, n_iter=0, random_state=0).fit(X)
    independent = -np.log(2 * np.pi * np.e * X.var(axis=0)).sum() / 2
    assert start.log_likelihood(X).mean() > independent + 5


def test_factors_within_clusters_are_learned(rng):
    """Slip: steps of the log-variances ten times shorter than far modes need: 4 nats are lost."""
    centers, loadings = 2 * rng.normal(size=(5, 30)), 0.7 * rng.normal(size=(5, 3, 30))
    of_row = rng.integers(5, size=2000)
    within = np.einsum("nk,nkj->nj", rng.normal(size=(2000, 3)), loadings[of_row])
    X = centers[of_row] + within + 0.5 * rng.normal(size=(2000, 30))
    means = [
        exact_mean(kind(16, n_iter=10, random_state=0).fit(X), X)
        for kind in (GaussianBernoulliRBM, without(GaussianBernoulliRBM, "kurtosis"))
    ]
    assert means[0] > means[1] - 2


@pytest.mark.slow
def test_columns_that_determine_each_other_are_learned(rng):
    """Slip: steps that do not shorten while chains lag: variances oscillate, and nats are lost."""
    t = np.linspace(0, 1, 100)
    size, phase = rng.normal(size=(600, 1)), rng.uniform(size=(600, 1))
    X = size * np.sin(2 * np.pi * (t + phase)) + 0.05 * rng.normal(size=(600, 100))
    means = [
        kind(random_state=0).fit(X).log_likelihood(X).mean()
        for kind in (TabularRBM, without(TabularRBM, "redundancy"))
    ]
    assert means[0] > means[1] + 3


@pytest.mark.parametrize("algorithm", ["pcd", "cd", "pt", "exact"])
def test_only_steps_of_persistent_chains_are_shorter_for_redundant_columns(algorithm, rng):
    """Slip: shorter steps for the exact gradient, which no chain delays."""
    X = rng.normal(size=(200, 1)) + 0.05 * rng.normal(size=(200, 5))
    weights = []
    for kind in (GaussianBernoulliRBM, without(GaussianBernoulliRBM, "redundancy")):
        rbm = kind(4, algorithm=algorithm, n_iter=0, random_state=0).fit(X)
        rbm.noise_variance_ *= 0.01
        weights.append(rbm.partial_fit(X).components_)
    assert np.array_equal(*weights) == (algorithm in ("cd", "exact"))


def test_factors_obey_the_bound_of_the_weights(rng):
    X = rng.standard_normal((1000, 1)) + 0.3 * rng.standard_normal((1000, 20))
    bounded = [
        kind(16, n_iter=0, max_norm=0.1, random_state=0).fit(X)
        for kind in (GaussianBernoulliRBM, without(GaussianBernoulliRBM, "factors"))
    ]
    np.testing.assert_array_equal(*(rbm.components_ for rbm in bounded))


@pytest.mark.parametrize("name", ["rotated sources", "bursts"])
def test_heavy_tails_are_not_damped_away(name, rng):
    """Slip: rows with large gradients of their own damped. Fits then lose 5 nats."""
    if name == "rotated sources":
        X = rng.laplace(size=(2000, 50)) ** 3 @ np.linalg.qr(rng.normal(size=(50, 50)))[0]
    else:
        size = rng.choice([1, 6], p=[0.9, 0.1], size=(2000, 1))
        X = size * rng.normal(size=(2000, 50)).cumsum(axis=1)
    X = StandardScaler().fit_transform(X)
    means = [
        exact_mean(kind(16, n_iter=10, random_state=0).fit(X), X)
        for kind in (GaussianBernoulliRBM, without(GaussianBernoulliRBM, "damping"))
    ]
    assert means[0] > means[1] - 1


@pytest.mark.parametrize("name", ["rings", "clusters within clusters"])
def test_a_fit_that_misses_the_shape_of_numbers_is_warned_of(name, rng):
    """Slip: a comparison with independent numbers alone, than which these fits are better."""
    if name == "rings":
        angle, radius = 2 * np.pi * rng.random(2000), rng.choice([1.0, 3.0], 2000)
        X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        X += 0.1 * rng.normal(size=X.shape)
    else:
        outer, inner = 30 * rng.normal(size=(3, 10)), 3 * rng.normal(size=(3, 3, 10))
        i, j = rng.integers(3, size=(2, 2000))
        X = outer[i] + inner[i, j] + 0.5 * rng.normal(size=(2000, 10))
    rbm = GaussianBernoulliRBM(16, random_state=0)
    with pytest.warns(ConvergenceWarning, match="worse than a kernel density estimate"):
        rbm.fit(X)
    factors = rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 10)) + rng.normal(size=(1000, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rbm.fit(factors)


@pytest.mark.filterwarnings("ignore:Two estimates disagree")  # annealing may miss a mode
@pytest.mark.parametrize("fit_seed", range(3))
def test_ratios_of_five_far_modes_are_within_their_error(fit_seed, rng):
    """Bennett's ratio was 2.5 to 7 nats too low, by 10 to 33 of its standard errors.

    Slip: jumps on the last rung alone, from which exchanges bring no mode down in so few steps.
    """
    X, _ = clusters(np.full(5, 0.2), rng)
    rbm = BernoulliRBM(8, n_iter=3, random_state=fit_seed).fit(X)
    result = rbm.log_partition("bar", n_temperatures=1000)
    assert result.std_error < 0.5
    assert abs(result.value - rbm.log_partition("exact").value) < 4.5 * result.std_error


@pytest.mark.parametrize("method", ["reverse_ais", "bar"])
def test_estimates_that_annealing_contradicts_are_warned_of(method, rng):
    """Both start where the data are, and agreed on 164 and 166 nats of 180.

    Slips: one direction alone; an error of many nats that allows for everything.
    """
    X, _ = clusters(np.full(2, 0.5), rng)
    rbm = BernoulliRBM(8, n_iter=3, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forward, result = (rbm.log_partition(m, n_temperatures=1000) for m in ("ais", method))
        warn_if_ends_differ(replace(result, std_error=0.1), forward)
    for gap in (-3.0, 3.0):
        moved = replace(result, value=result.value + gap, std_error=5.0)
        with pytest.warns(AnnealingWarning, match="Two estimates disagree") as found:
            warn_if_ends_differ(moved, forward)
        assert len(found) == 1


def excess_without_data(rbm, X, rng):
    """How much modes far from all rows, found by mean-field iterations, add to log Z, in nats."""
    machine = rbm._model.machine()
    v = X.mean(axis=0) + 4 * X.std(axis=0) * rng.normal(size=(1000, X.shape[1]))
    for _ in range(200):
        v = machine.mean_visible(machine.mean_hidden(v))
    far = v[np.argsort(machine.free_energy(v))[: len(X)]]
    near, both = (
        logsumexp(propose(machine, rows, 8_000, rng)[1]) for rows in (X, np.concatenate([X, far]))
    )
    return both - near


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The model is probably overfitted")
@pytest.mark.parametrize(
    ("load", "n_seeds", "most"), [(load_iris, 12, 1), (load_breast_cancer, 6, 5)]
)
def test_fits_of_many_units_keep_no_mode_without_data(load, n_seeds, most, rng):
    """Without extrapolated rows, two of the fits of breast cancer have 13 and 20 nats there."""
    X = StandardScaler().fit_transform(load().data)
    excess = [
        excess_without_data(GaussianBernoulliRBM(256, n_iter=30, random_state=seed).fit(X), X, rng)
        for seed in range(n_seeds)
    ]
    assert max(excess) < most


@pytest.mark.slow
def test_a_mode_without_data_is_warned_of(rng):
    """Slips: bounds of log Z from the rows and the chains alone; a margin of 7 nats."""
    X, n_units, n_beyond = StandardScaler().fit_transform(load_iris().data), 64, 32
    fitted = GaussianBernoulliRBM(n_units, n_iter=30, random_state=0).fit(X)
    wide = GaussianBernoulliRBM(n_units + n_beyond, n_iter=0, warm_start=True, random_state=0)
    rbm = wide.fit(X)
    for name in ("noise_variance_", "intercept_visible_"):
        setattr(rbm, name, getattr(fitted, name))
    # Together, the further units move the mean by eight along the first principal axis. They are
    # not active at any row.
    step = 8 * np.linalg.svd(X)[2][0] / n_beyond
    rbm.components_ = np.vstack([fitted.components_, *[step] * n_beyond])
    bias = -n_beyond * (step**2 / fitted.noise_variance_).sum() / 2
    rbm.intercept_hidden_ = np.append(fitted.intercept_hidden_, np.full(n_beyond, bias))
    rbm.intercept_hidden_[n_units:] -= (excess_without_data(rbm, X, rng) - 14) / n_beyond
    rbm.set_params(n_iter=1, learning_rate=1e-9)
    with pytest.warns(ConvergenceWarning, match="worse than a model of independent features"):
        rbm.fit(X)
    assert excess_without_data(rbm, X, rng) > 10
    with pytest.warns(AnnealingWarning):
        rbm.log_partition("ais", n_temperatures=600, random_state=0)
