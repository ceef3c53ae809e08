"""Update rules, schedules, averages, penalties, early stopping and the guard, as users meet them."""

import itertools
import math
import re
import warnings
from unittest import mock

import numpy as np
import oracles
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators.instances import (
    DISCRETE_KINDS,
    KINDS,
    PARAMETERS,
    arrays,
    assert_same_arrays,
    assigned,
    draw,
    held_out_split,
    learned_bits,
    new,
    random_machine,
    without,
)
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from skrbm import (
    BernoulliRBM,
    DivergenceError,
    GaussianBernoulliRBM,
    OverfittingWarning,
    TabularRBM,
)
from skrbm.core.likelihood.pseudo import monitored_rows
from skrbm.core.training.monitoring import MIN_STOPPING_UPDATES, epoch_scores
from skrbm.core.training.negative_phase import ALGORITHMS
from skrbm.core.training.optimizer import OPTIMIZERS, SCHEDULES
from skrbm.core.training.update import Trainer
from skrbm.estimators.fitting.recording import RowRecorder

FORMS = [(kind, form) for kind in KINDS for form in ("dense", "sparse")]
FORMS = [(kind, form) for kind, form in FORMS if kind in DISCRETE_KINDS or form == "dense"]
SEARCHED = ("bernoulli", "spin", "cho")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def two_pictures(n_visible=30, n_samples=60, noise=0.1, seed=0):
    """Binary rows around two opposite pictures."""
    rng = np.random.default_rng(seed)
    picture = rng.random(n_visible) < 0.5
    rows = picture ^ (rng.random((n_samples, 1)) < 0.5)
    return (rows ^ (rng.random(rows.shape) < noise)).astype(float)


def two_clusters(kind, n_samples=300):
    """Rows in the domain of some units, around two opposite ones."""
    rng = np.random.default_rng(0)
    side, noise = rng.random((n_samples, 1)) < 0.5, rng.random((n_samples, 4))
    if kind in DISCRETE_KINDS:
        low, high = random_machine(kind)[0].visible_values
        return np.where(side ^ (noise < 0.1), high, low)
    return np.where(side, 1, -1) * np.array([1, 1, -1, 1]) + rng.normal(0, 0.8, noise.shape)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_every_algorithm_and_every_schedule_learns_by_every_rule(kind, form):
    """Catches descent, a step that a rule takes along another parameter's direction, and rows of
    sparse data that are taken for others: the exact likelihood of correlated rows has to rise over
    that of independent features, which no constant and no random step does.
    """
    pairs = list(itertools.product(OPTIMIZERS, ALGORITHMS))
    schedules = list(itertools.islice(itertools.cycle(SCHEDULES), len(pairs)))
    met = zip((rule for rule, _ in pairs), schedules, strict=True)
    assert set(met) == set(itertools.product(OPTIMIZERS, SCHEDULES))
    dtype = np.float32 if form == "sparse" or kind == "cho" else np.float64
    X = two_clusters(kind).astype(dtype)
    data = sp.csr_array(X) if form == "sparse" else X
    start = new(kind, n_iter=0, random_state=0)
    independent = without(type(start), "clusters", "factors", "sources")(**start.get_params())
    independent = independent.fit(data).log_likelihood(X).mean()
    for (optimizer, algorithm), schedule in zip(pairs, schedules, strict=True):
        rbm = new(
            kind,
            algorithm=algorithm,
            optimizer=optimizer,
            learning_rate_schedule=schedule,
            momentum=0.5,
            n_iter=10,
            n_temperatures=3,
            random_state=0,
        )
        part = 1 if kind in DISCRETE_KINDS else 4  # of rates that momentum doubles
        rate = 0.03 if optimizer == "adam" else rbm.learning_rate / part
        rbm.set_params(learning_rate=rate).fit(data)
        assert {array.dtype for array in arrays(rbm).values()} == {np.dtype(dtype)}
        gain = rbm.log_likelihood(X).mean() - independent
        assert gain > 0.3, f"{algorithm}, {optimizer}, {schedule}: {gain:.3f} nats"


# The parameterisations of one energy share their options; the gate searches them too.
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] * (k not in SEARCHED)) for k in KINDS]
)
@pytest.mark.parametrize("option", PARAMETERS)
def test_every_option_can_be_searched(kind, option):
    """Catches options that are not stored as given, or change when cloned."""
    rbm = new(kind, n_iter=1, n_particles=5, random_state=0)
    grid = {option: PARAMETERS[option].usual}
    search = GridSearchCV(rbm, grid, cv=2, error_score="raise").fit(draw(kind))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_options_are_all_searched():
    others = {"missing", "n_jobs", "verbose", "track_likelihood", "draw_states"}
    assert BernoulliRBM().get_params().keys() == PARAMETERS.keys() | others


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skrbm.OverfittingWarning")  # of 200 rows
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_precisions_agree_over_a_hundred_updates(kind, optimizer):
    """Catches other random numbers in single precision, and a memory of another precision. The
    model is too large to be trained in double precision whatever the data's.
    """
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0 if kind == "spin" else 0.0, 1.0], (200, 70))
    X[:, 35:] = X[:, :35]
    rate = 0.001 if optimizer == "adam" else 0.02
    options = {"optimizer": optimizer, "learning_rate": rate, "momentum": 0.5, "batch_size": 20}
    fits = [
        new(kind, 60, **options, n_iter=10, n_particles=20, random_state=0).fit(X.astype(dtype))
        for dtype in (np.float32, np.float64)
    ]
    single, double = map(arrays, fits)
    # a draw that falls within the rounding of its probability may differ, and all after it a little
    assert (single.pop("h_samples_") != double.pop("h_samples_")).mean() < 0.02
    for name, array in double.items():
        np.testing.assert_allclose(single[name], array, rtol=0, atol=1e-3, err_msg=name)


@pytest.mark.parametrize("algorithm", ["cd", "pcd"])
@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
def test_gray_values_are_drawn_as_states_unless_they_are_means(kind, algorithm):
    # Slips: drawn once for all passes, drawn though draw_states is False, sparse rows drawn, random
    # numbers taken for rows that are states, values outside drawn.
    rng = np.random.default_rng(0)
    gray = rng.uniform(-1 if kind == "spin" else 0, 1, (40, 6))
    options = {"algorithm": algorithm, "n_iter": 3, "random_state": 0, "check_input": "ignore"}

    def learned(X, draw_states):
        return new(kind, 4, **options, draw_states=draw_states).fit(X)

    for X in (np.where(gray > 0.5, 1.0, gray.min().round()), sp.csr_array(gray), gray + 2):
        assert_same_arrays(learned(X, True), learned(X, False))
    drawn, seen = learned(gray, True), []
    assert (drawn.components_ != learned(gray, False).components_).any()
    batches = Trainer.update

    def update(self, machine, state, v, *args):
        seen.append(np.array(v))
        batches(self, machine, state, v, *args)

    with mock.patch.object(Trainer, "update", update):
        rbm = new(kind, 4, **options, shuffle=False, batch_size=40).fit(gray)
    assert np.isin(seen, rbm._visible_type.support.values).all()
    assert (seen[0] != seen[1]).any()


@pytest.mark.slow
def test_drawn_gray_values_leave_no_hidden_unit_dead():
    X = load_digits().data / 16
    means, draws = (
        BernoulliRBM(128, n_iter=30, draw_states=on, random_state=0).fit(X).transform(X)
        for on in (False, True)
    )
    assert (means.std(axis=0) < 0.02).sum() > 10
    assert (draws.std(axis=0) > 0.02).all()


# Schedules and averages


def test_schedules_lower_the_recorded_rate_as_they_say():
    X = two_pictures()
    rates = {}
    for schedule in SCHEDULES:
        rbm = BernoulliRBM(
            3,
            learning_rate=0.1,
            learning_rate_schedule=schedule,
            n_iter=5,
            batch_size=10,
            verbose=1,
        )
        rates[schedule] = (
            rbm.set_params(tol=1e9, n_iter_no_change=2).fit(X).history_["learning_rate"]
        )
    last = np.array([6, 12, 18, 24, 30]) - 1  # of the updates of each pass
    np.testing.assert_allclose(rates["constant"], 0.1)
    np.testing.assert_allclose(rates["linear"], 0.1 * (1 - last / 30))
    # the first score is a rise over nothing
    np.testing.assert_allclose(rates["adaptive"], [0.1, 0.1, 0.1, 0.02, 0.02])


def test_stream_without_a_plan_keeps_the_rate():
    """Catches a rate that falls to zero within every chunk of a stream."""
    linear, constant = (
        BernoulliRBM(3, learning_rate_schedule=schedule, batch_size=10, random_state=0)
        .partial_fit(two_pictures())
        .partial_fit(two_pictures(seed=1))
        for schedule in ("linear", "constant")
    )
    assert_same_arrays(linear, constant)


def test_adaptive_rate_that_is_gone_ends_the_fit():
    rbm = BernoulliRBM(
        3, learning_rate=3e-6, learning_rate_schedule="adaptive", tol=1e9, n_iter_no_change=1
    )
    assert rbm.set_params(n_iter=50).fit(two_pictures()).n_iter_ == 3  # 3e-6, 3e-6, 6e-7


def test_average_is_public_and_training_goes_on_behind_it(kind):
    """Catches averages that feed back into training, and an average that is never published."""
    X = draw(kind)
    options = {"learning_rate_schedule": "constant", "batch_size": 20, "random_state": 0}
    raw, averaged = (new(kind, average=average, **options) for average in (False, True))
    path = []
    for _ in range(6):
        raw.partial_fit(X[:20])
        averaged.partial_fit(X[:20])
        path.append(raw.components_)
    assert joined(raw._training_state["visible_offset"]) == joined(
        averaged._training_state["visible_offset"]
    )
    np.testing.assert_allclose(
        averaged._training_state["parameters"]["weights"].T, raw.components_, rtol=1e-9
    )
    t = np.arange(1, 7)
    weights = t * (t + 1) * (t + 2)
    expected = np.tensordot(weights / weights.sum(), path, 1)
    np.testing.assert_allclose(averaged.components_, expected, atol=1e-12)


def joined(array):
    return array.round(9).tolist()


def test_edited_arrays_are_what_training_goes_on_from(kind):
    """Catches a hidden copy of the parameters that outlives an edit, and momentum that does."""
    X = draw(kind)
    rbm = new(kind, momentum=0.9, learning_rate=0.01, random_state=0).fit(X)
    rbm.components_[:] = 0.5
    rbm.set_params(learning_rate=0.0).partial_fit(X)
    np.testing.assert_allclose(rbm.components_, 0.5, rtol=1e-12)


def test_memory_does_not_outlive_what_it_is_about(kind):
    X = draw(kind)
    one, other = (new(kind, random_state=0).fit(X) for _ in range(2))
    other.set_params(average=False).partial_fit(X)
    assert "average" not in other._training_state["parts"]
    other.components_ = one.components_[:2]
    other.intercept_hidden_ = one.intercept_hidden_[:2]
    other.set_params(n_components=2, average=True).partial_fit(X)
    assert other.components_.shape == (2, 4)


def test_what_is_learned_may_change_between_passes():
    """Catches an average or a raw copy of parameters that are no longer, or not yet, learned."""
    X = draw("cho")
    rbm = GaussianBernoulliRBM(3, momentum=0.5, random_state=0).partial_fit(X)
    before = rbm.set_params(learn_variance=False).noise_variance_
    np.testing.assert_allclose(rbm.partial_fit(X).noise_variance_, before, rtol=1e-12)
    rbm.set_params(learn_variance=True, n_iter=0, warm_start=True).fit(X)
    assert (rbm.set_params(n_iter=1).fit(X).noise_variance_ != before).all()


# Early stopping and warm starts


def test_early_stopping_ends_in_time_and_keeps_the_best(kind, monkeypatch):
    """Catches the last parameters left in place of the best, and held-out rows that are learned."""
    X, record, seen = draw(kind, 100), RowRecorder.record, []

    def noted(*args):
        seen.append(record(*args))
        return seen[-1]

    monkeypatch.setattr(RowRecorder, "record", noted)
    rbm = new(
        kind, 30, early_stopping=True, validation_fraction=0.6, n_iter=300, n_iter_no_change=5
    )
    rbm.set_params(learning_rate=1.0, batch_size=5, random_state=2, track_likelihood=False).fit(X)
    scores = np.array(rbm.history_["validation_pseudo_likelihood"])
    assert rbm.n_iter_ == len(scores) == len(seen) < 300
    np.testing.assert_allclose([score.mean for score in seen], scores, rtol=0, atol=1e-9)
    best = int(np.argmax(scores))
    rows = np.array([score.rows for score in seen])
    gain = rows - rows[best]
    error = gain.std(axis=1, ddof=1) / np.sqrt(60)
    is_worse = gain.mean(axis=1) + stats.t.ppf(0.95, 59) * error <= rbm.tol
    is_worse[best] = False
    assert is_worse[-1]
    is_worse[: math.ceil(MIN_STOPPING_UPDATES / 8) - 1] = False  # 8 updates an epoch
    assert is_worse[best:].sum() == 5  # and no epoch more than those that end it
    kept = np.flatnonzero(gain.mean(axis=1) + 0.5 * error >= 0)[-1]
    _, held_out = held_out_split(rbm, len(X))
    assert len(held_out) == 60
    np.testing.assert_allclose(
        monitored_rows(rbm._model.machine(), X[held_out], 40)[0].mean(), scores[kept], atol=1e-9
    )
    assert len(rbm.history_["free_energy_gap"]) == rbm.n_iter_


@pytest.mark.slow
@pytest.mark.parametrize("tracked", [None, False])
def test_ten_held_out_rows_do_not_end_a_fit_that_still_improves(tracked):
    """By means of ten rows, or by epochs of the first updates, fits ended 3 nats below the last
    epoch.
    """
    losses = []
    for seed in range(8):
        rng = np.random.default_rng([seed, 11])
        X = (load_digits().data > 7).astype(float)[rng.permutation(1797)]
        options = {"n_iter": 60, "early_stopping": True, "random_state": seed}
        rbm = BernoulliRBM(10, track_likelihood=tracked, **options).fit(X[:100])
        same = BernoulliRBM(10, n_iter_no_change=60, **options).fit(X[:100])
        ends = [model.log_likelihood(X[100:]).mean() for model in (rbm, same)]
        losses.append(ends[1] - ends[0])
    assert max(losses) < 0.5


def test_held_out_rows_are_not_learned_from():
    """Catches a split that is recorded but not respected: a row that is held out may be anything.
    The start takes the mean of all rows, hence one that leaves it alone.
    """
    X = two_pictures()
    rbm = BernoulliRBM(3, early_stopping=True, n_iter=3, random_state=0)
    fitted = rbm.fit(X)
    _, held_out = held_out_split(rbm, len(X))
    X[held_out] = X[held_out[::-1]]
    again = BernoulliRBM(3, early_stopping=True, n_iter=3, random_state=0).fit(X)
    np.testing.assert_allclose(
        again._training_state["visible_offset"], fitted._training_state["visible_offset"]
    )


def test_history_is_about_the_rows_that_are_learned(kind):
    """Catches held-out rows in the training curve and on both sides of the gap."""
    X = draw(kind, 60)
    rbm = new(kind, early_stopping=True, validation_fraction=0.5, n_iter=1, random_state=0).fit(X)
    learned, held_out = held_out_split(rbm, len(X))
    machine, history = rbm._model.machine(), rbm.history_
    expected = rbm.score_samples(X[learned]).mean()
    np.testing.assert_allclose(history["pseudo_likelihood"], [expected], rtol=1e-6)
    gap = machine.free_energy(X[held_out]).mean() - machine.free_energy(X[learned]).mean()
    np.testing.assert_allclose(history["free_energy_gap"], [gap], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_gap_of_chains_is_recorded_where_they_move(algorithm):
    """Catches the free energy of chains that rest where they started, taken for the model's."""
    rbm = BernoulliRBM(3, algorithm=algorithm, n_iter=2, random_state=0).fit(draw("bernoulli"))
    assert ("chain_gap" in rbm.history_) == (algorithm in ("pcd", "pt"))


def test_gap_of_tempered_chains_is_that_at_temperature_one():
    # Slip: the chains of all temperatures, whose free energies are higher.
    X = draw("bernoulli", 60)
    rbm = BernoulliRBM(3, algorithm="pt", n_iter=1, average=False, random_state=0).fit(X)
    expected = epoch_scores(rbm._model.machine(), X, rbm.h_samples_)["chain_gap"]
    np.testing.assert_allclose(rbm.history_["chain_gap"], expected, atol=1e-5)


def test_early_stopping_without_scores_is_warned_of():
    """Slip: a fit that ends after ten epochs, because NaN never exceeds the best score."""
    options = {"early_stopping": True, "warm_start": True, "learning_rate": 0, "n_iter": 2}
    rbm = assigned(random_machine("cho")[0], random_state=0, **options)
    rbm.components_ = np.full((3, 4), 1e6)  # too large for a quadrature
    is_bad = pytest.warns(ConvergenceWarning, match="worse than a model of independent features")
    with is_bad, pytest.warns(ConvergenceWarning, match=r"score for early_stopping .* is NaN"):
        rbm.fit(draw("cho", 60))


def test_early_stopping_keeps_the_best_of_an_earlier_fit(kind):
    """Catches a warm start that forgets what was best, and publishes what it makes worse."""
    X = np.repeat(draw(kind, 200, n_visible=1), 4, axis=1)
    X += 0.0 if kind in DISCRETE_KINDS else np.random.default_rng(0).normal(size=X.shape)
    rbm = new(kind, early_stopping=True, validation_fraction=0.3, random_state=0).fit(X)
    _, held_out = held_out_split(rbm, len(X))
    before = rbm.score(X[held_out])
    rbm.set_params(warm_start=True, l2=10.0, n_iter=3).fit(X)
    assert rbm.score(X[held_out]) >= before - 1e-9


def test_a_bound_of_the_norms_holds_in_mid_stream():
    """Catches an average of weights from before the bound that is published beyond it."""
    X = two_pictures()
    rbm = BernoulliRBM(3, n_iter=20, random_state=0).fit(X)
    assert np.linalg.norm(rbm.components_, axis=1).max() > 1
    rbm.set_params(max_norm=0.5).partial_fit(X)
    assert np.linalg.norm(rbm.components_, axis=1).max() <= 0.5 * (1 + 1e-12)


def test_warm_start_goes_on(kind):
    """Catches a warm start from new arrays, chains or streams."""
    X = draw(kind)
    options = {"learning_rate_schedule": "constant", "n_iter": 2, "random_state": 0}
    warm = new(kind, warm_start=True, **options).fit(X).fit(X)
    streamed = new(kind, **options)
    for _ in range(4):
        streamed.partial_fit(X)
    assert warm.n_iter_ == len(warm.history_["time"]) == 4
    assert_same_arrays(warm, streamed, rtol=1e-9)
    cold = new(kind, **options).fit(X).fit(X)
    assert cold.n_iter_ == 2


def test_warm_start_takes_arrays_assigned_by_hand(kind):
    p, v, _ = random_machine(kind)
    rbm = assigned(p, warm_start=True, learning_rate=0, n_iter=1).fit(v)
    np.testing.assert_allclose(rbm.components_, p.weights.T, rtol=1e-12)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_watching_and_stopping_do_not_move_the_random_stream(early_stopping):
    X = two_pictures()
    options = {"early_stopping": early_stopping, "n_iter": 3, "random_state": 0}
    quiet, loud = (BernoulliRBM(3, verbose=verbose, **options).fit(X) for verbose in (0, 1))
    assert learned_bits(quiet) == learned_bits(loud)


# The guard


def test_explosion_of_finite_parameters_is_named_and_undone():
    """Catches a model of finite but absurd weights that is returned silently."""
    rbm = BernoulliRBM(3, learning_rate=1e9, random_state=0)
    with pytest.raises(
        DivergenceError, match=r"epoch 1: the weights became so large.*learning_rate=1000000000"
    ):
        rbm.fit(two_pictures())
    assert np.abs(rbm.components_).max() < 20
    assert rbm.n_iter_ == 0


@pytest.mark.slow
def test_learned_variances_do_not_collapse():
    """Catches the likelihood of repeated rows, which has no bound, followed to infinity."""
    X = np.tile([[-1.0], [1.0]], (50, 1))
    rbm = GaussianBernoulliRBM(1, learning_rate=1e-3, batch_size=100, algorithm="exact")
    rbm.set_params(variance_rate=1e5)
    rbm.components_, rbm.intercept_visible_ = np.array([[2.0]]), np.array([-1.0])
    rbm.intercept_hidden_, rbm.noise_variance_ = np.zeros(1), np.array([2e-4])
    for _ in range(200):
        rbm.partial_fit(X)
    np.testing.assert_allclose(rbm.noise_variance_, 1e-4, rtol=0.01)  # of the variance, which is 1
    rbm.noise_variance_[:] = 1e-5  # by hand: not raised to the bound
    np.testing.assert_allclose(rbm.partial_fit(X).noise_variance_, 1e-5, rtol=0.01)


@pytest.mark.parametrize("unit", [1.0, 2.0**-260])
@pytest.mark.parametrize("parameterization", oracles.GAUSSIAN_ENERGIES)
def test_gaussian_learning_does_not_depend_on_the_units_of_measurement(parameterization, unit):
    """Catches steps that are too long for small features and too short for large ones, and squares
    of slopes that overflow."""
    X = draw(parameterization, 200)
    scale = unit * np.array([2.0**-20, 1, 2.0**10, 2.0**-3])
    one, other = (
        new(parameterization, n_iter=3, random_state=0).fit(data) for data in (X, X * scale)
    )
    np.testing.assert_allclose(other.noise_variance_, one.noise_variance_ * scale**2, rtol=1e-9)
    np.testing.assert_allclose(
        other.score_samples(X * scale), one.score_samples(X) - np.log(scale).sum(), atol=1e-6
    )


def test_variance_has_a_rate_of_its_own():
    X = draw("cho", 200)
    moves = []
    for rate in (0.0, 0.5, 1.0):
        rbm = GaussianBernoulliRBM(3, variance_rate=rate, n_iter=0, random_state=0).fit(X)
        start = rbm.noise_variance_
        rbm.set_params(batch_size=200).partial_fit(X)
        moves.append(np.log(rbm.noise_variance_ / start))
    np.testing.assert_allclose(moves[0], 0, atol=1e-12)  # a variance is the exponential of its log
    np.testing.assert_allclose(moves[1], moves[2] / 2, rtol=1e-9)


# Overfitting


def noisy_sites(n_rows, rng):
    """Thirty columns of eight values that have nothing in common."""
    return pd.DataFrame(rng.integers(8, size=(n_rows, 30))).astype(str).add_prefix("site")


def test_a_fit_to_nothing_but_noise_warns_of_new_rows_and_names_the_cure():
    """Rows that were not learned were 2 nats less likely than by independent features, in silence."""
    X = noisy_sites(300, np.random.default_rng(0))
    with pytest.warns(OverfittingWarning) as heard:
        TabularRBM(128, n_iter=20, random_state=0).fit(X)
    (message,) = [str(warning.message) for warning in heard]
    form = r".* 300 rows are few .* l2=0\.03, or reduce n_components=128 or n_iter=20\."
    assert re.fullmatch(form, message)
    for options in ({"l2": 0.1}, {"early_stopping": True}):
        TabularRBM(128, n_iter=20, random_state=0, **options).fit(X)


def test_a_fit_that_new_rows_gain_from_does_not_warn():
    # Slips: all weights counted, which are 8 for each row; a gain in units of the scaled values.
    X = (load_digits().data > 7).astype(float)
    BernoulliRBM(128, n_iter=10, random_state=0).fit(X[:1000])
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 20))
    X = pd.DataFrame(1e6 * (z + rng.normal(size=z.shape))).add_prefix("number")
    TabularRBM(128, n_iter=10, random_state=0).fit(X)


def test_streams_do_not_keep_the_rate_of_an_adaptive_fit():
    """Slip: a factor that only fit sets back, and that no parameter can raise again."""
    X = (np.random.default_rng(0).random((300, 10)) < 0.3) * 1.0
    options = {"learning_rate_schedule": "adaptive", "n_iter_no_change": 1, "random_state": 0}
    rbm = BernoulliRBM(4, n_iter=100, **options).fit(X)
    assert rbm.history_["learning_rate"][-1] < 0.01
    rbm.set_params(learning_rate=0.3, verbose=1).partial_fit(X)
    assert rbm.history_["learning_rate"][-1] == 0.3


def test_pretrained_machines_are_recorded_as_they_are():
    """Slip: weights of the initialization in all that is computed from the exchanged machine."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, (1000, 1))
    X = np.where(rng.random((1000, 12)) < 0.97, group, 1 - group).astype(float)
    options = {"average": False, "l2": 0.02, "track_likelihood": True, "random_state": 0}
    rbm = BernoulliRBM(1, n_iter=50, **options).fit(X)
    assert rbm.history_["log_likelihood"][-1] == pytest.approx(rbm.log_likelihood(X).mean())


@pytest.mark.parametrize("parameterization", ["cho", "krizhevsky", "goodfellow"])
@pytest.mark.parametrize("rows", ["clusters", "far rows"])
def test_a_constant_column_changes_nothing_but_its_own_density(rows, parameterization):
    """Slip: a variance of rounding errors within the clusters, by which pretraining is given up."""
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0, 0, 0], [10, 10, 0, 0], [0, 10, 10, 5], [20, 0, 0, 0]])
    if rows == "clusters":
        X = centers[rng.integers(0, 4, 800)] + rng.normal(size=(800, 4))
    else:
        X = rng.normal(size=(500, 4))
        X[:3] += 200
    scores = []
    for value in (0.0, 3.0):
        rbm = GaussianBernoulliRBM(8, parameterization=parameterization, random_state=0)
        with pytest.warns(UserWarning, match="constant"):
            rbm.fit(np.column_stack([X, np.full(len(X), value)]))
        scores.append(rbm.log_likelihood(np.column_stack([X, np.full(len(X), value)])).mean())
    assert scores[0] == pytest.approx(scores[1], abs=0.3)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("sizes", [[6, 94], [7] * 14, [1000, 1300, 1000], [20_000, 20_300]])
def test_constants_of_a_stream_stay_constant(sizes, is_weighted):
    """Slips: a variance of the rounding errors of two means, or of the values themselves."""
    rng = np.random.default_rng(0)
    rbm = GaussianBernoulliRBM(4, random_state=0)
    for size in sizes:
        factor = rng.uniform(1, 2, (size, 1))
        constants = np.full((size, 4), [0.1, 3, -7.3, 1e6 + 0.1])
        constants = np.hstack([constants, constants * factor / factor])
        weight = rng.random(size) if is_weighted else None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Features")
            rbm.partial_fit(
                np.column_stack([rng.normal(size=(size, 2)), constants]), sample_weight=weight
            )
    np.testing.assert_array_equal(rbm.noise_variance_[2:], 1)
    np.testing.assert_array_equal(rbm._data["is_varying"], [True] * 2 + [False] * 8)


def test_columns_that_change_between_the_blocks_of_a_stream_are_learned():
    """Slip: a column taken for constant, because it is so in each block."""
    rng = np.random.default_rng(0)
    site = np.repeat([0, 1] * 20, 100)
    X = np.column_stack([rng.normal(size=4000), 1e-3 * site])
    rbm = GaussianBernoulliRBM(4, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Features")
        for block in np.split(X, 40):
            rbm.partial_fit(block)
    assert rbm.noise_variance_[1] < 1e-5


@pytest.mark.parametrize("sizes", [[100] * 11, [50, 100], [100, 4000]])
def test_a_column_that_was_narrow_in_the_first_block_is_learned(sizes):
    """Slip: a scale of the first block, which training increases slowly. Rows have -400 nats then."""
    rng = np.random.default_rng(0)
    rbm = GaussianBernoulliRBM(4, batch_size=10, random_state=0)
    for number, size in enumerate(sizes):
        X = rng.normal(size=(size, 3))
        X[:, 2] *= 1 if number else 0.03
        rbm.partial_fit(X)
    test = rng.normal(size=(2000, 3))
    expected = -1.5 * np.log(2 * np.pi * np.e)
    assert rbm.log_likelihood(test).mean() > expected - 0.3


@pytest.mark.parametrize("rows", [slice(None), slice(1)])
def test_a_column_that_was_wide_in_the_first_block_is_learned(rows):
    """Slips: a scale, or the variance in the metric, of one bad first block or row.

    The likelihood is 2.6 or 0.4 nats smaller then.
    """
    likelihoods = []
    for factor in (1, 300):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(4000, 1)) + 0.5 * rng.normal(size=(4000, 2))
        first = X[:100].copy()
        first[rows, 0] *= factor
        rbm = GaussianBernoulliRBM(4, batch_size=10, random_state=0).partial_fit(first)
        for block in np.split(X[100:3000], 29):
            rbm.partial_fit(block)
        likelihoods.append(rbm.log_likelihood(X[3000:]).mean())
    assert likelihoods[1] == pytest.approx(likelihoods[0], abs=0.1)


def test_one_wide_block_in_mid_stream_does_not_set_the_scale():
    """Slip: a column initialized anew whenever its variance grows."""
    rng = np.random.default_rng(0)
    rbm = GaussianBernoulliRBM(4, batch_size=10, random_state=0)
    for number in range(40):
        X = rng.normal(size=(100, 3))
        X[:, 2] *= 100 if number == 20 else 1
        rbm.partial_fit(X)
    assert rbm.noise_variance_[2] < 3


def test_rare_rows_of_any_precision_are_found():
    """Slip: rows of rare groups in the precision of the data."""
    X = np.random.default_rng(0).normal(size=(500, 4))
    X[:3] += 200
    one = GaussianBernoulliRBM(8, n_iter=1, random_state=0).fit(X)
    other = GaussianBernoulliRBM(8, n_iter=1, random_state=0).fit(X.astype(np.longdouble))
    np.testing.assert_allclose(one.components_, other.components_, rtol=1e-6, atol=1e-9)


def test_a_warm_start_with_other_units_names_the_way_out():
    """Slip: the advice to call fit, which was called."""
    rbm = BernoulliRBM(3, warm_start=True, n_iter=1, random_state=0).fit(np.eye(4))
    with pytest.raises(ValueError, match="Set warm_start=False and call fit to train a new model"):
        rbm.set_params(n_components=4).fit(np.eye(4))
    with pytest.raises(ValueError, match="Call fit to train a new model"):
        rbm.set_params(warm_start=False).partial_fit(np.eye(4))


@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e-13, np.float32), (1e10, np.float32), (1e78, np.float64)]
)
def test_units_of_measurement_do_not_matter(scale, dtype):
    """Slips: fourth powers of deviations in steps, or in the ranges of quadratures."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)) @ rng.normal(size=(4, 80)) + 0.3 * rng.normal(size=(600, 80))
    X = (X / X.std(axis=0)).astype(dtype)
    scores = []
    for unit in (1, scale):
        rows = (X * unit).astype(dtype)
        rbm = GaussianBernoulliRBM(80, n_iter=5, random_state=0).fit(rows)
        scores.append(rbm.score(rows) + 80 * np.log(unit))
    assert scores[0] == pytest.approx(scores[1], abs=3)


def test_scores_of_small_single_precision_numbers_are_those_of_large_ones():
    """Slip: squares of weights, and of their inverses, that do not fit single precision."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(300, 5))
    scores = []
    for unit in (1, 1e-10):
        rows = (X / X.std(axis=0) * unit).astype(np.float32)
        rbm = GaussianBernoulliRBM(6, hidden_units="gaussian", n_iter=5, random_state=0).fit(rows)
        scores.append(rbm.score(rows) + 5 * np.log(unit))
    assert scores[0] == pytest.approx(scores[1], abs=0.05)


def test_streams_of_single_rows_are_guarded():
    """Slip: weights that explode unseen, because the rows do not differ from their mean."""
    rng = np.random.default_rng(0)
    bits = (rng.random((200, 8)) < 0.3) * 1.0
    rbm = BernoulliRBM(6, l2=10, random_state=0)

    def stream():
        for row in bits:
            rbm.partial_fit(row[None])

    with pytest.raises(DivergenceError, match="Reduce learning_rate"):
        stream()
    assert np.abs(rbm.components_).max() < 1e8


@pytest.mark.parametrize(("n_rows", "share"), [(1, 0.1), (40, 0.99)])
def test_too_few_rows_for_early_stopping_are_refused_by_name(n_rows, share):
    """Slips: the names of parameters of another function; a smaller share of a single row."""
    rbm = BernoulliRBM(4, early_stopping=True, validation_fraction=share)
    remedy = "Set early_" if n_rows == 1 else "Reduce validation_fraction, or set early_"
    message = rf"got validation_fraction={share} of {n_rows} rows\. {remedy}stopping=False"
    with pytest.raises(ValueError, match=message):
        rbm.fit(np.ones((n_rows, 6)))
