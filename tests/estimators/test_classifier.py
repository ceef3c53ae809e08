"""The classifier against the enumerated joint, and what it promises about rows and labels."""

import pickle
import signal
import tracemalloc
from datetime import date, datetime
from functools import partial

import joblib
import numpy as np
import oracles
import pandas as pd
import pytest
from core.labelled import Labelled, finite_differences
from core.models import visible_states
from estimators.instances import DISCRETE_KINDS, KINDS, assigned, draw, new, random_machine, topics
from scipy import sparse
from scipy.special import expit, logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score, train_test_split

from skrbm import BernoulliRBM, RBMClassifier, TabularRBM
from skrbm.core.training.monitoring import Plateau
from skrbm.core.training.parts.guard import DivergenceError
from skrbm.core.training.update import Trainer
from skrbm.estimators.labels.label_model import LabelModel

FAST = {"n_iter": 3, "random_state": 0}
EXACT = {"algorithm": "exact", "batch_size": 10**6, "n_iter": 10, "random_state": 0}
ARRAYS = ("label_components_", "intercept_label_")


def by_hand(kind, labels=("a", "b", "c"), seed=0):
    """Classifier whose arrays are assigned, and the same as an oracle."""
    p, _, _ = random_machine(kind, seed=seed)
    rng = np.random.default_rng(seed)
    q = Labelled(p, rng.normal(0, 1, (len(labels), 3)), rng.normal(0, 1, len(labels)), np.zeros(3))
    classifier = RBMClassifier()
    classifier.estimator_, classifier.classes_ = assigned(p, random_state=0), np.array(labels)
    classifier.label_components_, classifier.intercept_label_ = q.weights.T.copy(), q.bias.copy()
    return classifier, q


def labelled(kind="bernoulli", n_samples=60):
    """Rows, and labels that depend on them."""
    X = draw(kind, n_samples)
    return X, np.array(["no", "yes", "so"])[np.argsort(np.argsort(X @ [1, 2, 3, -1])) * 3 // len(X)]


def everything(classifier):
    """Public arrays of a classifier and of its estimator."""
    rbm = classifier.estimator_
    own = [getattr(classifier, name) for name in ARRAYS]
    return own + [getattr(rbm, name) for name in rbm._public_names]


def centered(label_weights):
    """The same in the zero-sum gauge, (n_classes, n_components)."""
    return label_weights - label_weights.mean(axis=0)


def assert_same(one, other, atol=0.0):
    for left, right in zip(everything(one), everything(other), strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_of_labels_are_those_of_the_enumerated_joint(kind):
    """Slips: the label's bias left out, classes in another order than the columns."""
    classifier, q = by_hand(kind)
    X = visible_states(q.features, np.random.default_rng(0))
    expected = softmax(q.log_joint(X), axis=1)
    np.testing.assert_allclose(classifier.predict_proba(X), expected, rtol=0, atol=1e-10)
    log_proba = classifier.predict_log_proba(X)
    np.testing.assert_allclose(log_proba, np.log(expected), rtol=0, atol=1e-9)
    assert (classifier.predict(X) == classifier.classes_[expected.argmax(axis=1)]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_means_with_the_label_summed_out(kind):
    """Slip: hidden means of the machine without labels."""
    classifier, q = by_hand(kind)
    X, h = visible_states(q.features, np.random.default_rng(0)), oracles.hidden_states(q.features)
    energy = oracles.energy(q.features, X, h)[:, None]
    law = softmax((q.weights @ h.T + q.bias[:, None] - energy).reshape(len(X), -1), axis=1)
    expected = law.reshape(len(X), 3, -1).sum(axis=1) @ h
    np.testing.assert_allclose(classifier.transform(X), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("y", [None, "b"])
def test_samples_have_the_law_of_the_joint_or_of_their_label(y):
    """Slips: labels that move where they are held, features of another label."""
    classifier, q = by_hand("bernoulli")
    states = oracles.visible_states(q.features)
    joint = softmax(q.log_joint(states))
    X, labels = classifier.sample(4000, y, n_gibbs_steps=30, random_state=0)
    if y is not None:
        assert (labels == y).all()
        joint = joint * [0, 1, 0] / joint[:, 1].sum()
    for k, label in enumerate("abc"):
        for i in range(4):
            p = (joint[:, k] * states[:, i]).sum()
            share = (X[:, i] * (labels == label)).mean()
            assert abs(share - p) <= 4 * np.sqrt(p * (1 - p) / 4000) + 1e-12


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("kind", KINDS)
def test_weight_is_a_number_of_copies(kind, class_weight):
    """Slips: starts of labels, gradients or records of unweighted rows; absent rows that count."""
    X, y = labelled(kind)
    y[::7] = "?"
    weights = np.arange(60) % 4
    copies = np.repeat(np.arange(60), weights)
    new_one = RBMClassifier(
        new(kind, **EXACT), unlabeled="?", class_weight=class_weight, generative_weight=0.3
    )
    one = clone(new_one).fit(X, y, sample_weight=weights)
    if class_weight is not None:  # balanced by the rows, not by their weights
        share = {c: (y[weights > 0] == c).sum() for c in one.classes_}
        n_known = sum(share.values())
        new_one.set_params(class_weight={c: n_known / (3 * n) for c, n in share.items()})
    other = new_one.fit(X[copies], y[copies])
    assert_same(one, other, atol=1e-10)
    for name in ("log_loss", "accuracy"):
        np.testing.assert_allclose(one.history_[name], other.history_[name], rtol=0, atol=1e-9)


def test_weight_of_a_class_is_that_of_its_rows():
    """Slips: weights of classes ignored, or of rows without a label too."""
    X, y = labelled()
    y[::7] = "?"
    factors = {"no": 2.0, "yes": 0.5, "so": 3.0}
    classifier = RBMClassifier(new("bernoulli", **EXACT), unlabeled="?", generative_weight=0.3)
    one = clone(classifier).set_params(class_weight=factors).fit(X, y)
    other = classifier.fit(X, y, sample_weight=[factors.get(label, 1.0) for label in y])
    assert_same(one, other, atol=1e-12)


def test_weights_of_classes_serve_chunks_of_a_stream_that_lack_some():
    """Slip: a weighted class sought in each chunk, which refused chunks without it."""
    X, y = labelled()
    classes, weights = ["no", "so", "yes"], {"so": 3.0}
    classifier = RBMClassifier(new("bernoulli", **EXACT), class_weight=weights)
    for label in ("no", "so"):
        rows = (y == label) | (y == "yes")
        one = clone(classifier).partial_fit(X[rows], y[rows], classes=classes)
        factors = [weights.get(y_, 1.0) for y_ in y[rows]]
        other = clone(classifier).set_params(class_weight=None)
        other.partial_fit(X[rows], y[rows], classes=classes, sample_weight=factors)
        assert_same(one, other, atol=1e-12)
    with pytest.raises(ValueError, match="not in class_weight"):
        clone(classifier).set_params(class_weight={"sow": 3.0}).fit(X, y)


@pytest.mark.parametrize("weight", [-1, np.nan, np.inf, "a", None])
def test_bad_weights_of_classes_are_named(weight):
    """Slips: sample_weight, which was not passed, blamed; NumPy's words about text."""
    classifier = RBMClassifier(new("bernoulli", **FAST), class_weight={0: weight, 1: 1})
    for call in (classifier.fit, partial(classifier.partial_fit, classes=[0, 1])):
        with pytest.raises(ValueError, match=rf"class_weight expected .* got \{{0: .?{weight}.?,"):
            call(np.eye(4), [0, 1, 0, 1])
    classifier.set_params(class_weight={0: 0}).partial_fit(np.eye(4), [0, 1, 0, 1], classes=[0, 1])


@pytest.mark.parametrize("kind", DISCRETE_KINDS)
def test_sparse_rows_are_learned_like_dense_ones(kind):
    """Slips: labels in other columns, or rows of a block mixed up."""
    X, y = labelled(kind)
    one = RBMClassifier(new(kind, **FAST)).fit(X, y)
    other = RBMClassifier(new(kind, **FAST)).fit(sparse.csr_array(X), y)
    assert_same(one, other, atol=1e-9)
    np.testing.assert_allclose(
        one.predict_proba(X), one.predict_proba(sparse.csr_matrix(X)), atol=1e-12
    )


def test_visible_biases_matter_to_no_label_and_are_left_alone():
    """Slip: a discriminative gradient with the features' own moments."""
    X, y = labelled()
    start = RBMClassifier(new("bernoulli", n_iter=0, random_state=0)).fit(X, y)
    rbm = new("bernoulli", centering=False, learning_rate=1, **FAST)
    classifier = RBMClassifier(rbm, generative_weight=0.0).fit(X, y)
    before = classifier.predict_proba(X)
    biases = classifier.estimator_.intercept_visible_
    np.testing.assert_allclose(biases, start.estimator_.intercept_visible_, rtol=0, atol=1e-12)
    classifier.estimator_.intercept_visible_ = biases + 1
    np.testing.assert_array_equal(classifier.predict_proba(X), before)


def test_rows_without_a_label_teach_what_the_labels_stand_for():
    """Slip: rows without a label that are left out, or count as a class."""
    rng = np.random.default_rng(0)
    pictures = rng.random((2, 30)) < 0.5
    truth = rng.integers(2, size=200)
    X = pictures[truth] ^ (rng.random((200, 30)) < 0.25)
    y = np.where(np.arange(200) < 4, truth, -1)
    y[:2], X[:2] = [0, 1], pictures  # both classes
    rbm = BernoulliRBM(10, learning_rate=1, n_iter=30, random_state=0)
    both = RBMClassifier(rbm, unlabeled=-1).fit(X, y)
    assert both.classes_.tolist() == [0, 1]
    assert both.score(X, truth) > 0.9


@pytest.mark.parametrize(
    ("generative", "weight", "expected"), [(0.2, None, (0.4, 0.3)), (0.8, 2.0, (1.0, 1.0))]
)
def test_labels_count_by_their_mean_over_labelled_rows(generative, weight, expected):
    """Slips: labels diluted by rows without one; weights of rows not counted; only the last rows; a
    likelihood that outweighs a plain machine's.
    """
    classifier, q = by_hand("bernoulli")
    rate = 1e-6
    exact = {"algorithm": "exact", "centering": False, "average": False, "batch_size": 100}
    classifier.estimator_.set_params(learning_rate=rate, **exact)
    classifier.set_params(unlabeled="?", discriminative_weight=0.7, generative_weight=generative)
    X = draw("bernoulli", 12)
    y = np.array(["a", "?", "?", "c"] * 3)
    is_known = y != "?"
    numbers = np.searchsorted(classifier.classes_, y)

    def objective(q, rows, discriminative, generative):
        log_joint, known = q.log_joint(X), rows[is_known[rows]]
        log_free, own = logsumexp(log_joint, axis=1), log_joint[known, numbers[known]]
        log_joint = np.where(is_known, log_joint[np.arange(12), numbers % 3], log_free)
        likelihood = (log_joint[rows] - q.log_partition()).mean()
        return discriminative * (own - log_free[known]).mean() + generative * likelihood

    # Of twelve rows six have labels, of the eighteen rows after the second call twelve.
    for rows, discriminative, own in zip(
        (np.arange(12), np.flatnonzero(is_known)), (0.7, 1.5 * 0.7), expected, strict=True
    ):
        weights = {"discriminative": discriminative, "generative": own}
        gradient = finite_differences(q, partial(objective, rows=rows, **weights))
        before = centered(classifier.label_components_.T)
        sample_weight = None if weight is None else np.full(len(rows), weight)
        classifier.partial_fit(X[rows], y[rows], sample_weight=sample_weight)
        step = (classifier.label_components_.T - before) / rate
        np.testing.assert_allclose(step, centered(gradient["label_weights"]), rtol=0, atol=1e-5)


def test_partial_fit_resumes_bit_for_bit_after_pickling():
    """Slips: averages, chains, streams or momentum that are lost or shared with the original."""
    X, y = labelled()
    one = RBMClassifier(new("bernoulli", momentum=0.5, random_state=0))
    one.partial_fit(X[:30], y[:30], classes=["yes", "so", "no"])
    other, before = pickle.loads(pickle.dumps(one)), everything(one)
    kept = [array.copy() for array in before]
    fitted = one.estimator_
    assert_same(one.partial_fit(X[30:], y[30:]), other.partial_fit(X[30:], y[30:]))
    for array, copy in zip(before, kept, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert one.estimator_ is not fitted
    assert one.n_iter_ == 2


@pytest.mark.parametrize(
    ("kind", "algorithm"), [*((kind, "pcd") for kind in KINDS), ("bernoulli", "pt")]
)
def test_warm_starts_are_one_long_fit(kind, algorithm):
    """Slips: arrays that training itself has left taken for edited ones, without its momentum;
    temperatures or hot chains that are lost.
    """
    X, y = labelled(kind)
    options = {"learning_rate_schedule": "constant", "momentum": 0.5, "random_state": 0}
    options |= {"algorithm": algorithm, "n_temperatures": 3}
    once = RBMClassifier(new(kind, n_iter=4, **options)).fit(X, y)
    warm = RBMClassifier(new(kind, n_iter=1, warm_start=True, **options))
    for _ in range(4):
        warm.fit(X, y)
    assert_same(warm, once, atol=1e-9)
    assert warm.n_iter_ == len(warm.history_["log_loss"]) == 4


@pytest.mark.slow
def test_early_stopping_keeps_the_best_log_loss_of_held_out_rows(monkeypatch):
    """Slips: the last parameters kept, rows without a label held out."""
    X, y = labelled(n_samples=300)
    y = np.random.default_rng(0).permutation(y)  # there is nothing to learn
    y[::3] = "?"
    monkeypatch.setattr(Plateau, "kept_errors", -1.0)  # the best is kept, not one about as good
    rbm = new("bernoulli", 20, early_stopping=True, learning_rate=20, n_iter=100, random_state=0)
    rbm.set_params(validation_fraction=0.5)
    classifier = RBMClassifier(rbm.set_params(n_iter_no_change=4), unlabeled="?").fit(X, y)
    losses = classifier.history_["validation_log_loss"]
    assert (
        classifier.n_iter_ == len(losses) == len(classifier.history_["validation_accuracy"]) < 100
    )
    assert np.argmin(losses) < len(losses) - 1
    seed = classifier.estimator_._streams["validation_seed"]
    _, held_out = train_test_split(np.flatnonzero(y != "?"), test_size=0.5, random_state=seed)
    log_proba = classifier.predict_log_proba(X[held_out])
    own = log_proba[np.arange(len(held_out)), np.searchsorted(classifier.classes_, y[held_out])]
    np.testing.assert_allclose(-own.mean(), min(losses), rtol=0, atol=1e-9)
    worse = RBMClassifier(rbm.set_params(early_stopping=False)).fit(X, y)
    assert "validation_log_loss" not in worse.history_


def test_early_stopping_keeps_the_best_of_an_earlier_fit():
    """Slip: a warm start that forgets what was best, and publishes what it makes worse."""
    X, y = labelled(n_samples=90)
    rbm = new("bernoulli", 20, early_stopping=True, learning_rate=2, n_iter=20, random_state=0)
    classifier = RBMClassifier(rbm).fit(X, y)
    best, before = min(classifier.history_["validation_log_loss"]), everything(classifier)
    rbm.set_params(warm_start=True, l2=0.4, n_iter=3)
    after = classifier.fit(X, y)
    assert min(after.history_["validation_log_loss"][-3:]) > best
    for array, kept in zip(everything(after), before, strict=True):
        np.testing.assert_allclose(array, kept, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_that_diverges_leaves_no_trace_of_its_rows(kind):
    """Slips: statistics of the rows, or numbers of their labels, that are counted all the same."""
    X, y = labelled(kind)
    classifier = RBMClassifier(new(kind, **FAST)).fit(X, y)
    before, data = everything(classifier), classifier.estimator_._data
    classifier.estimator_.set_params(learning_rate=1e30)
    with pytest.raises(DivergenceError, match="epoch 1"):
        classifier.partial_fit(X[:20], y[:20])
    assert joblib.hash(classifier.estimator_._data) == joblib.hash(data)
    for array, kept in zip(everything(classifier), before, strict=True):
        np.testing.assert_allclose(array, kept, rtol=0, atol=1e-12)


def test_an_interrupt_keeps_what_was_learned(monkeypatch):
    """Slips: an update that is lost or half done, an interrupt that is not named."""
    X, y = labelled()
    update, machines = Trainer.update, []

    def interrupted(trainer, machine, *arguments):
        machines.append(machine)
        if len(machines) == 7:
            signal.raise_signal(signal.SIGINT)
        update(trainer, machine, *arguments)

    monkeypatch.setattr(Trainer, "update", interrupted)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        rbm = BernoulliRBM(3, batch_size=12, n_iter=100, average=False, random_state=0)
        with pytest.warns(UserWarning, match=r"Training interrupted by user\."):
            classifier = RBMClassifier(rbm).fit(X, y)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert classifier._training_state["n_updates"] == 7
    assert classifier.n_iter_ == classifier.estimator_.n_iter_ == 1  # of five updates
    assert np.isfinite(classifier.predict_proba(X)).all()


def test_a_gaussian_stream_starts_anew_until_its_scale_is_known():
    """Slip: the variance of the first two rows as that of all."""
    X, y = labelled("cho")
    rbm = new("cho", learning_rate=0.0, n_iter=0, random_state=0)
    whole = RBMClassifier(rbm).fit(X, y).estimator_
    stream = RBMClassifier(rbm).partial_fit(X[:2], y[:2], classes=np.unique(y))
    assert np.abs(np.log(stream.estimator_.noise_variance_ / whole.noise_variance_)).max() > 0.1
    stream.partial_fit(X[2:], y[2:])
    np.testing.assert_allclose(stream.estimator_.noise_variance_, whole.noise_variance_, rtol=1e-9)


def test_arrays_assigned_by_hand_are_what_a_stream_goes_on_from():
    """Slip: a stream that asks for what only a fit leaves."""
    classifier, _ = by_hand("bernoulli")
    classifier.estimator_.set_params(learning_rate=0.0)
    before = everything(classifier)
    classifier.partial_fit(np.eye(4), ["a", "b", "c", "a"])
    proba = classifier.predict_proba(np.eye(4))
    again, _ = by_hand("bernoulli")
    np.testing.assert_allclose(proba, again.predict_proba(np.eye(4)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(everything(classifier)[2], before[2], rtol=0, atol=1e-12)
    assert classifier.n_iter_ == 1


def test_further_classes_are_sent_to_what_learns_them():
    """Slip: classes of the first partial_fit, which fit does not have."""
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    classifier = RBMClassifier(new("bernoulli", warm_start=True, **FAST)).fit(X, y)
    with pytest.raises(ValueError, match=r"got \[2\]\. To learn .* in the first partial_fit\.$"):
        classifier.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match=r"got \[2\]\. Set warm_start=False of the estimator"):
        classifier.fit(X, y + 1)
    classifier.set_params(estimator__warm_start=False).fit(X, y + 1)
    np.testing.assert_array_equal(classifier.classes_, [1, 2])


@pytest.mark.parametrize("method", ["predict_proba", "transform", "sample"])
@pytest.mark.parametrize(
    ("name", "after"), [("hidden_units", "relu"), ("parameterization", "goodfellow")]
)
def test_fitted_arrays_of_a_classifier_keep_their_meaning(name, after, method):
    """Seen to fail where only an estimator of its own was checked: probabilities of another model,
    in silence. Arrays assigned by hand may have any meaning, and a change that is taken back does
    no harm.
    """
    X, y = labelled()
    classifier = RBMClassifier(new("cho", **FAST)).fit(X, y)
    rbm, argument = classifier.estimator_, 3 if method == "sample" else X
    before = getattr(rbm, name)
    rbm.set_params(**{name: after})
    with pytest.raises(ValueError, match=f"{name}='{after}' was changed since fit"):
        getattr(classifier, method)(argument)
    rbm.set_params(**{name: before})
    getattr(classifier, method)(argument)
    rbm.set_params(**{name: after}).components_ = rbm.components_ / 2
    getattr(classifier, method)(argument)


def test_another_number_of_components_needs_a_new_start():
    """Slip: a warm start that ignores it."""
    X, y = labelled()
    rbm = new("bernoulli", **FAST)
    classifier = RBMClassifier(rbm).fit(X, y)
    rbm.set_params(n_components=5, warm_start=True)
    with pytest.raises(ValueError, match="n_components=5 was changed since fit"):
        classifier.fit(X, y)
    rbm.set_params(warm_start=False)
    assert classifier.fit(X, y).estimator_.components_.shape == (5, 4)


@pytest.mark.slow
def test_many_classes_take_memory_for_a_few_rows_at_a_time():
    """Slip: an array of rows times classes times hidden units, here of 336 megabytes."""
    X, y = np.random.default_rng(0).integers(0, 2, (2100, 20)), np.arange(2100) % 1000
    classifier = RBMClassifier(BernoulliRBM(20, n_iter=0, random_state=0)).fit(X, y)
    tracemalloc.start()
    proba = classifier.predict_proba(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-9)
    assert peak < 100e6


def test_precision_is_that_of_the_rows():
    """Slip: that of the raw parameters, which are double where that costs nothing."""
    X, y = labelled()
    classifier = RBMClassifier(new("bernoulli", **FAST)).fit(X.astype(np.float32), y)
    for _ in range(3):
        assert {array.dtype for array in everything(classifier)} == {np.dtype(np.float32)}
        classifier.partial_fit(X, y)
    assert classifier.predict_proba(X.astype(np.float32)).dtype == np.float32


def test_digits_are_learned():
    """Slip: labels and features of different rows side by side after a shuffle."""
    X, y = load_digits(return_X_y=True)
    rbm = BernoulliRBM(50, learning_rate=5, n_iter=5, random_state=0)
    assert RBMClassifier(rbm).fit(X[::2] / 16, y[::2]).score(X[1::2] / 16, y[1::2]) > 0.93


def test_topics_of_few_documents_are_learned():
    """Seen to fail, with accuracies of 0.44 to 0.55, where steps were proportional to variances."""
    rng = np.random.default_rng(0)
    X, y = topics(rng, 500)
    classifier = RBMClassifier(BernoulliRBM(64, random_state=0)).fit(X, y)
    assert classifier.score(*topics(rng, 1000)) > 0.9


BAD = {
    "one class": ({}, ["a"] * 4, "at least two classes, got 1 class"),
    "missing labels": ({}, [0.0, 1.0, np.nan, 1.0], "y contains NaN"),
    "real numbers": ({}, [0.1, 1.2, 0.3, 0.4], "Unknown label type"),
    "too few": ({}, [0, 1, 1], "inconsistent numbers of samples"),
    "no labels": ({"unlabeled": -1}, [-1] * 4, "at least two classes, got 0 class"),
    "weights": ({"discriminative_weight": -1}, [0, 1, 0, 1], "'discriminative_weight' parameter"),
    "class weights": ({"class_weight": "even"}, [0, 1, 0, 1], "'class_weight' parameter of RBM"),
    "estimator": ({"estimator": 3}, [0, 1, 0, 1], "'estimator' parameter"),
    "its parameters": ({"estimator": BernoulliRBM(n_iter=-1)}, [0, 1, 0, 1], "'n_iter' parameter"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_learned_is_refused_and_changes_nothing(case):
    """Slips: each of the checks left out; what a failed fit leaves behind, here a number of features."""
    params, y, match = BAD[case]
    classifier = RBMClassifier(new("bernoulli", **FAST)).fit(np.eye(4), [0, 1, 0, 1])
    classifier.set_params(**params)
    before = vars(classifier).copy()
    with pytest.raises(ValueError, match=match):
        classifier.fit(np.eye(4, 5), y)
    assert vars(classifier).keys() == before.keys()
    assert all(vars(classifier)[name] is value for name, value in before.items())


def test_weights_that_leave_one_class_are_refused():
    """Slip: rows of weight zero that count as labelled."""
    with pytest.raises(ValueError, match="at least two classes, got 1 class"):
        RBMClassifier(new("bernoulli", **FAST)).fit(np.eye(4), [0, 1, 0, 1], [1, 0, 1, 0])


@pytest.mark.parametrize(
    "mark", [None, np.nan, np.float32("nan"), np.datetime64("NaT"), pd.NA, pd.NaT]
)
@pytest.mark.parametrize("dtype", [object, "string", "category", "Int64", float])
def test_every_missing_value_marks_rows_without_a_label(mark, dtype):
    """Slips: NaN sought in text, and pandas' NA compared."""
    X, y = labelled(n_samples=30)
    has_text = dtype in (object, "string", "category")
    y = pd.Series(np.array(["a", "b"])[np.arange(30) % 2] if has_text else np.arange(30) % 2)
    gaps = np.arange(30) % 5 == 0
    y = y.astype(dtype).mask(gaps, mark if dtype is object else None)
    unlabeled = np.nan if mark is None else mark
    classifier = RBMClassifier(new("bernoulli", **FAST), unlabeled=unlabeled).fit(X, y)
    assert list(classifier.classes_) == (["a", "b"] if has_text else [0, 1])
    counts = classifier.estimator_._data
    np.testing.assert_array_equal(counts["label_weights"], [12, 12])
    assert counts["unlabeled_weight"] == gaps.sum()


@pytest.mark.parametrize("labels", [["a", None], ["a", 1], [pd.NA, "a"]])
def test_labels_of_several_types_are_refused_by_name(labels):
    """Slip: the TypeError of the sort, which names neither y nor the cure."""
    y = np.array(labels * 2, dtype=object)
    fitted = RBMClassifier(new("bernoulli", **FAST)).fit(np.eye(4), ["a", "b"] * 2)
    partial_fit = partial(RBMClassifier().partial_fit, classes=["a", "b"])
    for method in (RBMClassifier().fit, partial_fit, fitted.score):
        with pytest.raises(ValueError, match=r"y expected labels of one type.*unlabeled=np\.nan"):
            method(np.eye(4), y)
    with pytest.raises(ValueError, match="classes expected labels of one type"):
        RBMClassifier().partial_fit(np.eye(4), ["a", "b"] * 2, classes=y[:2])


def test_stream_has_to_know_its_classes():
    """Slips: classes of the first rows taken for all, labels placed where they do not belong, other
    classes in a later call.
    """
    X, y = np.eye(4), [1, 3, 1, 3]
    with pytest.raises(ValueError, match="classes expected to be all labels"):
        RBMClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"among the classes \[0 1\], got \[3\]"):
        RBMClassifier().partial_fit(X, y, classes=[0, 1])
    classifier = RBMClassifier(new("bernoulli", **FAST)).partial_fit(X, y, classes=[3, 1, 2])
    assert classifier.classes_.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"among the classes \[1 2 3\], got \[0\]"):
        classifier.partial_fit(X, [0, 1, 1, 1])
    with pytest.raises(ValueError, match="those of the first call"):
        classifier.partial_fit(X, y, classes=[1, 3])
    with pytest.raises(ValueError, match="among the classes"):
        classifier.sample(2, y=7)
    with pytest.raises(ValueError, match=r"one label or n_samples=3 labels, got shape \(2,\)"):
        classifier.sample(3, y=[0, 1])
    assert classifier.sample(y=[3, 1], n_gibbs_steps=1)[1].tolist() == [3, 1]


@pytest.mark.parametrize(
    "labels", [[False, True], [1.0, 2.0], ["a", "b"], np.array(["2020", "2021"], "M8[Y]")]
)
def test_samples_are_drawn_for_an_item_of_the_classes(labels):
    """Slip: items of NumPy that are neither numbers nor text."""
    rbm = new("bernoulli", **FAST)
    classifier = RBMClassifier(rbm, unlabeled=None).fit(np.eye(4), np.array(labels)[[0, 1, 0, 1]])
    for label in (classifier.classes_[1], classifier.classes_[1:]):
        assert (classifier.sample(2, label, n_gibbs_steps=1)[1] == label).all()


@pytest.mark.parametrize("mark", [np.nan, -1])
def test_marks_in_lists_of_text_are_no_labels(mark):
    """Slip: a mark that NumPy converts to text beside other text, and a class of that name."""
    X, y = np.eye(6), ["cat", "dog", mark] * 2
    classifier = RBMClassifier(new("bernoulli", **FAST), unlabeled=mark)
    assert classifier.fit(X, y).classes_.tolist() == ["cat", "dog"]
    expected = clone(classifier).fit(X, pd.Series(y, dtype=object))
    np.testing.assert_array_equal(classifier.label_components_, expected.label_components_)
    assert classifier.score(X, y) == expected.score(X, np.array(y, dtype=object))
    stream = clone(classifier).partial_fit(X, y, classes=["cat", "dog", mark])
    assert stream.classes_.tolist() == ["cat", "dog"]
    assert clone(classifier).fit(X, ["cat", "dog"] * 3).classes_.dtype.kind == "U"
    with pytest.raises(ValueError, match=r"the text .* to which NumPy converts it"):
        clone(classifier).fit(X, np.array(y))
    text = [str(mark), "dog"] * 3  # is a label in a list
    assert clone(classifier).fit(X, text).classes_.tolist() == sorted(text[:2])


@pytest.mark.parametrize("mark", [None, np.nan, "?"])
def test_score_is_the_accuracy_of_the_labeled_rows(mark):
    """Slips: labels that None made objects, which scikit-learn refuses; weights of other rows."""
    X = pd.DataFrame(np.random.default_rng(0).random((60, 4)) < 0.5)
    y = pd.Series(np.where(X[0] ^ (np.arange(60) % 5 == 0), 1, 0), dtype=object)
    y[::3], is_labelled = mark, np.arange(60) % 3 > 0
    if mark == "?":
        y[is_labelled] = y[is_labelled].map({0: "no", 1: "yes"})
    classifier = RBMClassifier(new("bernoulli", **FAST), unlabeled=mark or np.nan).fit(X, y)
    hits = classifier.predict(X[is_labelled]) == y[is_labelled]
    assert classifier.score(X, y) == classifier.score(X[is_labelled], y[is_labelled]) == hits.mean()
    weights = np.arange(1.0, 61)
    expected = np.average(hits, weights=weights[is_labelled])
    assert classifier.score(X, y, sample_weight=weights) == pytest.approx(expected)
    for form in (sparse.csr_array, sparse.coo_matrix, sparse.dia_array):
        assert classifier.score(form(X.to_numpy(float)), y.tolist()) == hits.mean()
    assert np.isfinite(cross_val_score(classifier, X[is_labelled], y[is_labelled], cv=2)).all()
    with pytest.raises(ValueError, match=r"got 20 rows .*unlabeled="):
        classifier.score(X[::3], y[::3])


def test_early_stopping_counts_the_labeled_rows():
    rbm = new("bernoulli", early_stopping=True, validation_fraction=0.9)
    y = np.full(60, -1)
    y[:2] = [0, 1]
    with pytest.raises(ValueError, match=r"validation_fraction=0\.9 of 2 labeled rows"):
        RBMClassifier(rbm, unlabeled=-1).fit(np.eye(60), y)


def test_arrays_of_the_label_have_to_fit():
    """Slip: only one of the two arrays compared."""
    classifier, _ = by_hand("bernoulli")
    classifier.intercept_label_ = np.zeros(2)
    with pytest.raises(ValueError, match=r"label_components_ of shape \(3, 3\).*\(3,\), got"):
        classifier.predict(np.eye(4))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of 50 steps
def test_mixed_tables_have_labels_too():
    """Slips: columns of categories beside the label's, samples that are not rows of the table."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.integers(0, 3, 200), rng.random(200) < 0.5])
    y = np.where((X[:, 0] > 0) ^ (X[:, 1] == 2), "odd", "even")
    kinds = {0: "numeric", 1: "categorical", 2: "binary"}
    rbm = TabularRBM(10, kinds=kinds, optimizer="adam", learning_rate=0.03, random_state=0)
    classifier = RBMClassifier(rbm.set_params(n_iter=30)).fit(X, y)
    assert classifier.score(X, y) > 0.95
    drawn, labels = classifier.sample(500, n_gibbs_steps=50, random_state=0)
    assert set(drawn[:, 1]) == {0, 1, 2}
    assert set(labels) == {"odd", "even"}


def test_given_labels_of_tables_are_held():
    """Slip: the number of the label's first column, taken for that of its unit."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    X = pd.DataFrame({"of y": np.array(["u", "v"])[y], "other": rng.choice(list("abcdef"), 100)})
    rbm = TabularRBM(3, n_iter=60, random_state=0)
    classifier = RBMClassifier(rbm, generative_weight=1.0).fit(X, y)
    for label in (0, 1):
        drawn, labels = classifier.sample(200, label, n_gibbs_steps=20)
        assert (labels == label).all()
        assert (drawn["of y"] == "uv"[label]).mean() > 0.9


@pytest.mark.parametrize("algorithm", ["pcd", "cd"])
def test_groups_of_a_class_are_sampled_as_often_as_they_are_probable(algorithm):
    """Gibbs steps given the label do not lead from one group to the other."""
    rng = np.random.default_rng(0)
    groups = np.repeat([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [3, 3, 12], axis=1)
    of_group = rng.choice(3, 900, p=[0.35, 0.15, 0.5])
    X = np.abs(groups[of_group] - (rng.random((900, 18)) < 0.03))
    rbm = BernoulliRBM(6, algorithm=algorithm, n_iter=60, random_state=0)
    classifier = RBMClassifier(rbm, generative_weight=1.0).fit(X, of_group == 2)
    rbm, h = classifier.estimator_, oracles.states((0, 1), 6)
    field = h @ rbm.components_ + rbm.intercept_visible_
    log_law = h @ (rbm.intercept_hidden_ + classifier.label_components_[:, 0])
    expected = softmax(log_law + np.logaddexp(0, field).sum(axis=1)) @ expit(field)
    drawn, _ = classifier.sample(2000, False, n_gibbs_steps=20, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), expected, rtol=0, atol=0.05)


@pytest.mark.parametrize("n_classes", [3, 12, 30])
def test_text_is_no_label_of_a_number(n_classes):
    """Slip: NumPy's comparison as text, in which "10" comes before "2"."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % n_classes
    X = rng.choice([0.0, 1.0], (200, 3))
    classifier = RBMClassifier(BernoulliRBM(2, n_iter=1, random_state=0)).fit(X, y)
    for label in ("1", "2", "10"):
        with pytest.raises(ValueError, match=r"(?s)y expected labels among the classes .*\]\.$"):
            classifier.sample(1, label)
        with pytest.raises(
            ValueError, match=r"(?s)y expected labels among the classes .*partial_fit"
        ):
            classifier.partial_fit(X[:1], [label])
    numbers = [2.0, np.int8(2), 2]
    assert [classifier.sample(1, y, n_gibbs_steps=1)[1][0] for y in numbers] == [2, 2, 2]


DATES = {
    "date": date(2020, 1, 2),
    "datetime": datetime(2020, 1, 2),
    "pandas": pd.Timestamp("2020-01-02"),
    "days": np.datetime64("2020-01-02"),
    "nanoseconds": np.datetime64("2020-01-02", "ns"),
}


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
@pytest.mark.parametrize("mark", DATES.values(), ids=DATES)
def test_dates_of_every_unit_are_labels_and_marks(unit, mark):
    """Slip: a mark of rows without labels that becomes a class, since it has another unit."""
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype=f"M8[{unit}]")
    X = np.random.default_rng(0).choice([0.0, 1.0], (60, 3))
    rbm = BernoulliRBM(2, n_iter=1, random_state=0)
    classifier = RBMClassifier(rbm, unlabeled=mark).fit(X, np.tile(days, 20))
    assert (classifier.classes_ == days[[0, 2]]).all()
    classifier = RBMClassifier(rbm).fit(X, np.tile(days, 20))
    assert (classifier.sample(3, mark, n_gibbs_steps=1)[1] == days[1]).all()
    assert (classifier.sample(2, [mark, mark], n_gibbs_steps=1)[1] == days[1]).all()


def test_classes_are_finite():
    X = np.random.default_rng(0).choice([0.0, 1.0], (20, 3))
    rbm = BernoulliRBM(2, n_iter=1, random_state=0)
    for unlabeled, bad in ((None, np.nan), (-1, np.nan), (-1, np.inf)):
        classifier = RBMClassifier(rbm, unlabeled=unlabeled)
        with pytest.raises(ValueError, match="Input classes contains"):
            classifier.partial_fit(X, np.arange(20) % 2, classes=[0.0, 1.0, bad])


def far_classes():
    """Bits whose two classes are far apart, and their labels."""
    rng = np.random.default_rng(0)
    y = rng.random(1000) < 0.4
    return 1.0 * ((rng.random((1000, 30)) < 0.02) ^ y[:, None]), y.astype(int)


@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_classes_are_drawn_as_often_as_the_model_says(seed, weight):
    """A class came up in .991 of the samples and had .035 of the probability."""
    rbm = BernoulliRBM(5, n_iter=20, random_state=seed)
    classifier = RBMClassifier(rbm, generative_weight=weight).fit(*far_classes())
    machine, h = LabelModel(classifier).machine(), oracles.states((0, 1), 5)
    log_joint = -machine.transposed.free_energy(h)
    of_labels = softmax(h @ classifier.label_components_ + classifier.intercept_label_, axis=1)
    expected = softmax(log_joint) @ of_labels
    _, drawn = classifier.sample(2000, n_gibbs_steps=100, random_state=0)
    np.testing.assert_allclose(np.bincount(drawn, minlength=2) / 2000, expected, atol=0.04)


@pytest.mark.slow
def test_samples_from_chains_that_stay_are_warned_of():
    """Slips: the mixing of the machine without labels; a cure that is no parameter of the method.

    Labels that are held are not warned of.
    """
    y = np.random.default_rng(0).integers(2, size=1000)
    rows = 1.0 * ((load_digits().data[:1000] > 7) ^ (y[:, None] == 1))
    rbm = BernoulliRBM(512, n_iter=20, random_state=0)
    classifier = RBMClassifier(rbm, generative_weight=1.0).fit(rows, y)
    with pytest.warns(
        ConvergenceWarning, match=r"after 50 Gibbs steps, .*Condition on labels by y="
    ):
        classifier.sample(3000, n_gibbs_steps=10)
    classifier.sample(10, 1, n_gibbs_steps=10)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_likelihood_that_would_not_be_tracked_is_refused(method):
    """Slip: an option that does nothing, in silence."""
    classifier = RBMClassifier(new("bernoulli", track_likelihood=True, **FAST))
    options = {"classes": [1, 3]} if method == "partial_fit" else {}
    with pytest.raises(ValueError, match=r"track_likelihood .*RBMClassifier.*log-loss"):
        getattr(classifier, method)(np.eye(4), [1, 3, 1, 3], **options)
    assert not hasattr(classifier, "classes_")


def test_stream_of_rows_without_labels_trains():
    """Slips: class weights of no labels; the mark of missing labels as one of the classes."""
    X, y = np.eye(6), np.array([0, 1, 0, 1, -1, -1])
    options = {"unlabeled": -1, "class_weight": "balanced"}
    classifier = RBMClassifier(new("bernoulli", **FAST), **options)
    classifier.partial_fit(X, y, classes=np.unique(y)).partial_fit(X, np.full(6, -1))
    assert classifier.classes_.tolist() == [0, 1]
    assert np.isfinite(classifier.predict_proba(X)).all()
    floats = np.where(y < 0, np.nan, y)
    classifier = RBMClassifier(new("bernoulli", **FAST), unlabeled=np.nan)
    classifier.partial_fit(X, floats, classes=np.unique(floats))
    classifier.partial_fit(X, floats, classes=[0, 1])
    assert classifier.classes_.tolist() == [0, 1]
    classifier = RBMClassifier(new("bernoulli", **FAST), unlabeled=np.nan)
    classifier.partial_fit(X, y * 1.0, classes=np.array([-1, 0, 1, None], dtype=object))
    assert classifier.classes_.dtype == np.int64
    objects = np.array([None if label < 0 else label for label in y.tolist()], dtype=object)
    assert clone(classifier).fit(X, objects).classes_.tolist() == [0, 1]


def test_features_are_in_the_container_that_is_set():
    """Slip: `transform` of a mix-in, which scikit-learn does not wrap."""
    X = pd.DataFrame(np.eye(4), columns=list("abcd"))
    classifier = RBMClassifier(new("bernoulli", **FAST)).set_output(transform="pandas")
    features = classifier.fit_transform(X, [0, 1, 0, 1])
    pd.testing.assert_frame_equal(classifier.transform(X), features)
    assert features.columns.tolist() == classifier.get_feature_names_out().tolist()


def test_warm_start_needs_a_model_of_the_same_kind():
    """Slips: parameters of another class in the old model; arrays that the old one does not have;
    weights of the old one for other hidden units or another parameterization.
    """
    X, y, options = np.eye(4), [0, 1, 0, 1], FAST | {"warm_start": True}
    classifier = RBMClassifier(new("bernoulli", **options)).fit(X, y)
    classifier.set_params(estimator=new("spin", **options)).fit(2 * X - 1, y)
    anew = RBMClassifier(new("spin", **options)).fit(2 * X - 1, y)
    assert type(classifier.estimator_) is type(anew.estimator_)
    np.testing.assert_array_equal(classifier.label_components_, anew.label_components_)
    for hidden in ("gaussian", "drelu"):
        classifier.set_params(estimator__hidden_units=hidden).fit(2 * X - 1, y)
        anew = RBMClassifier(new("spin", hidden_units=hidden, **options)).fit(2 * X - 1, y)
        np.testing.assert_array_equal(classifier.label_components_, anew.label_components_)
    assert (
        classifier.estimator_.threshold_hidden_.shape
        == classifier.estimator_.intercept_hidden_.shape
    )
    classifier.estimator_.set_params(hidden_units="relu")
    with pytest.raises(ValueError, match="hidden_units='relu' was changed since fit"):
        classifier.partial_fit(2 * X - 1, y)
    classifier = RBMClassifier(new("cho", **options)).fit(X, y)
    classifier.set_params(estimator__parameterization="goodfellow").fit(X, y)
    anew = RBMClassifier(new("goodfellow", **options)).fit(X, y)
    np.testing.assert_array_equal(classifier.label_components_, anew.label_components_)


def test_a_frozen_estimator_is_refused():
    """Slip: a clone that is the fitted estimator itself, whose classes are unknown."""
    X = draw("bernoulli")
    frozen = FrozenEstimator(new("bernoulli").fit(X))
    with pytest.raises(ValueError, match="'estimator' parameter of RBMClassifier must be"):
        RBMClassifier(frozen).fit(X, X[:, 0])


MIXED = pd.DataFrame({"size": np.linspace(-1, 3, 30), "port": pd.Categorical(list("abc") * 10)})


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (np.tile(np.eye(3), (10, 1)), BernoulliRBM),
        (np.tile(np.eye(3, dtype=bool), (10, 1)).tolist(), BernoulliRBM),
        (MIXED[["size"]].clip(0, 1), BernoulliRBM),
        (MIXED[["size"]].clip(0, 1).to_numpy() * np.float32(1 + 1e-7), BernoulliRBM),
        (sparse.csr_array(np.tile(2 * np.eye(3), (10, 1))), BernoulliRBM),
        (MIXED[["size"]], TabularRBM),
        (MIXED[["size"]].to_numpy(), TabularRBM),
        (MIXED, TabularRBM),
    ],
)
@pytest.mark.filterwarnings("ignore:Bernoulli units expect")
def test_the_default_estimator_is_chosen_by_the_values(X, expected):
    """Slips: text refused; numbers of any size learned as means of bits; 1 plus its rounding."""
    y = np.arange(30) % 3
    assert type(RBMClassifier().fit(X, y).estimator_) is expected
    stream = RBMClassifier().partial_fit(X, y, classes=[0, 1, 2])
    assert type(stream.partial_fit(X, y).estimator_) is expected
    assert stream.predict_proba(X).shape == (30, 3)


def test_defaults_learn_tables():
    """Logistic regression of standardized features reaches -.073 nats, BernoulliRBM -.75."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    log_loss = cross_val_score(RBMClassifier(), X, y, scoring="neg_log_loss")
    assert log_loss.mean() > -0.1
