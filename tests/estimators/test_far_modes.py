"""Data of modes that lie far apart, as real tables have them: fits by defaults, and likelihoods."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from skrbm import AnnealingWarning, BernoulliRBM, GaussianBernoulliRBM, SpinRBM
from skrbm.core.training import loop
from skrbm.estimators import tracking

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
def test_clusters_of_bits(estimator, shares, rng):
    """Within 2 nats of the truth by defaults, where independent bits are 10 to 29 below.

    Slip: chains that never jump to the data.
    """
    X, truth = clusters(np.array(shares), rng)
    if estimator is SpinRBM:
        X = 2 * X - 1
    rbm = estimator(10, random_state=0).fit(X)
    assert exact_mean(rbm, X) > truth - 2


def test_many_units_do_not_throw_a_rare_cluster_about(rng):
    """Its rows, 5 % of all, are less likely than the others. They were e^46 times as likely.

    Slips: steps of all units' weights together as long as those of few; one look in sixteen updates.
    """
    X, _ = clusters(np.array([0.95, 0.05]), rng)
    rbm = BernoulliRBM(256, random_state=0).fit(X)
    is_common = (np.median(X, axis=0) != X).sum(axis=1) < X.shape[1] / 2
    free_energy = rbm.free_energy(X)
    assert free_energy[is_common].mean() < free_energy[~is_common].mean()


@pytest.mark.slow
def test_a_fit_that_has_lost_its_rows_is_warned_of(rng, monkeypatch):
    """Catches a run that ran away in silence, and one that is right being blamed."""
    X, _ = clusters(np.array([0.5, 0.5]), rng)
    BernoulliRBM(10, random_state=0).fit(X)
    monkeypatch.setattr(loop, "jump_to_data", lambda *_: None)
    with pytest.warns(ConvergenceWarning, match=r"at least .* Reduce learning_rate=0\.4"):
        rbm = BernoulliRBM(10, n_iter=20, random_state=0).fit(X)
    p = X.mean(axis=0)
    assert exact_mean(rbm, X) < float((X @ np.log(p) + (1 - X) @ np.log1p(-p)).mean())


@pytest.mark.slow
def test_clusters_of_numbers(rng):
    # Slip: as above.
    X = rng.normal(size=(1000, 10)) + np.where(rng.random((1000, 1)) < 0.5, 0, 40)
    truth = -np.log(2) - 5 * np.log(2 * np.pi * np.e)
    rbm = GaussianBernoulliRBM(4, n_iter=20, random_state=0).fit(X)
    assert exact_mean(rbm, X) > truth - 5  # ten independent numbers are 29 below


@pytest.mark.slow
def test_a_rare_cluster_of_numbers(rng):
    # Slip: variances whose steps do not allow for heavy tails, and are thrown about: 20 nats lower.
    X = rng.normal(size=(1000, 10)) + np.where(rng.random((1000, 1)) < 0.95, 0, 40)
    independent = -0.5 * np.log(2 * np.pi * np.e * X.var(axis=0)).sum()
    fits = [GaussianBernoulliRBM(18, n_iter=50, random_state=s).fit(X) for s in range(3)]
    assert np.mean([exact_mean(rbm, X) for rbm in fits]) > independent


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.95, 0.05), (0.4, 0.3, 0.3)])
def test_a_tracked_likelihood_has_all_modes(shares, rng, monkeypatch):
    """Also that of the first passes, which the way from independent features leads to.

    Slip: chains that neither jump to the rows nor start from draws around them.
    """
    monkeypatch.setattr(tracking, "MANY_STATES", 0)
    X, _ = clusters(np.array(shares), rng)
    rbm = BernoulliRBM(10, n_iter=20, track_likelihood=True, random_state=0).fit(X)
    assert abs(rbm.history_["log_likelihood"][-1] - exact_mean(rbm, X)) < 0.3
    assert rbm.history_["log_likelihood_std_error"][-1] < 0.1


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
    rbm.n_components = rbm._n_components = 11
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
    with pytest.warns(AnnealingWarning, match=r"is too low: rows .* Increase n_temperatures=2"):
        rbm.log_partition("ais", n_temperatures=2, X=np.eye(9)[:, :1] * np.ones(40))
