"""Outlier detection: scores, thresholds and scikit-learn's contract."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from estimators.instances import KINDS, draw, new
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score

from skrbm import BernoulliRBM, DomainWarning, RBMOutlierDetector, TabularRBM
from skrbm.estimators.fitting.fit import Fit
from skrbm.estimators.outliers import _quantile


def fitted(kind="bernoulli", **params):
    """Detector, and its training rows: 40 of them, hardly two alike where they are real."""
    X = draw(kind, 40)
    return RBMOutlierDetector(new(kind, n_iter=2, random_state=0), **params).fit(X), X


@pytest.mark.parametrize("criterion", ["free_energy", "pseudo_likelihood"])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_model(kind, criterion):
    """Slips: the sign of either score, or of the distance from the threshold."""
    detector, X = fitted(kind, criterion=criterion)
    rbm = detector.estimator_
    expected = -rbm.free_energy(X) if criterion == "free_energy" else rbm.score_samples(X)
    np.testing.assert_array_equal(detector.score_samples(X), expected)
    np.testing.assert_allclose(detector.decision_function(X), expected - detector.offset_)
    assert (detector.predict(X) == np.where(expected < detector.offset_, -1, 1)).all()


@pytest.mark.parametrize("contamination", [0.05, 0.1, 0.3, 0.5])
def test_threshold_leaves_a_share_of_the_rows_out(contamination):
    """Slips: a quantile from above, or one row more or less by rounding."""
    detector, X = fitted("krizhevsky", contamination=contamination)
    assert (detector.predict(X) == -1).sum() == 40 * contamination
    assert (detector.fit_predict(X) == detector.predict(X)).all()


@pytest.mark.parametrize("rbm", [new("cho", random_state=0), TabularRBM(3, random_state=0)])
def test_a_frozen_estimator_is_not_trained_again(rbm):
    """Slips: an argument y that a frozen estimator expects, a parameter set on it in `fit` or in a
    score."""
    X = draw("cho")
    rbm = clone(rbm).fit(X)
    detector = RBMOutlierDetector(FrozenEstimator(rbm)).fit(X)
    expected = RBMOutlierDetector(clone(rbm)).fit(X)  # the same seed
    np.testing.assert_array_equal(detector.score_samples(X), -rbm.free_energy(X))
    assert detector.offset_ == expected.offset_
    detector = RBMOutlierDetector(FrozenEstimator(rbm), criterion="pseudo_likelihood").fit(X)
    np.testing.assert_array_equal(detector.score_samples(X), rbm.score_samples(X))


def test_rows_that_are_all_alike_have_no_outliers():
    """Slip: a threshold at the scores themselves, of which rounding takes some away."""
    X = np.repeat([[0.0, 1.0, 1.0]], 11, axis=0)
    detector = RBMOutlierDetector(BernoulliRBM(2, n_iter=1, random_state=0)).fit(X)
    assert (detector.predict(X) == 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_weight_is_a_number_of_copies(kind):
    """Slips: a threshold of unweighted rows, ties that are cut apart."""
    X, weights = draw(kind, 40), np.arange(40) % 4
    rbm = new(kind, algorithm="exact", batch_size=1000, n_iter=5, random_state=0)
    one = RBMOutlierDetector(rbm).fit(X, sample_weight=weights)
    other = RBMOutlierDetector(rbm).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X), rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.offset_, other.offset_, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (np.eye(4), BernoulliRBM),
        (np.eye(4) > 0, BernoulliRBM),
        (sparse.csr_array(np.eye(4)), BernoulliRBM),
        (2.0 * np.eye(4), TabularRBM),
        ((-np.eye(4)).tolist(), TabularRBM),
        (0.5 * np.eye(4), TabularRBM),
    ],
)
def test_model_is_chosen_by_the_values(X, expected):
    """Slips: real numbers taken for probabilities, from below or above; flags for categories; normal
    scores, which pull extreme values in."""
    rbm = RBMOutlierDetector().fit(X).estimator_
    assert type(rbm) is expected
    assert getattr(rbm, "numeric_scale", "standard") == "standard"


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


def table_of_few_values(rng, n_rows=400):
    """Two columns of few values that are equal but for rare rows, and a number."""
    few = rng.choice([-0.4, 0.0, 2.5], n_rows)
    return np.column_stack([few, few, rng.standard_normal(n_rows)])


@pytest.mark.parametrize("container", [np.asarray, list, pd.DataFrame])
def test_numbers_of_few_values_are_categories(container, rng):
    """Slip: three values as numbers, under which a rare combination looks like a common one."""
    X = table_of_few_values(rng)
    rbm = RBMOutlierDetector().fit(container(X)).estimator_
    assert rbm.kinds_ == ["categorical", "categorical", "numeric"]
    numbers = RBMOutlierDetector().fit(container(X[:30])).estimator_
    assert numbers.kinds_ == ["categorical", "categorical", "numeric"]
    assert RBMOutlierDetector().fit(container(X[:29])).estimator_.kinds_ == ["numeric"] * 3


@pytest.mark.parametrize("criterion", ["free_energy", "pseudo_likelihood"])
@pytest.mark.parametrize("container", [np.asarray, list, pd.DataFrame])
def test_new_values_lower_the_score(container, criterion, rng):
    """Slips: no penalty; a value that was learned is penalized, or a missing one."""
    X = table_of_few_values(rng)
    detector = RBMOutlierDetector(criterion=criterion).fit(container(X))
    rows = np.array([[2.5, 2.5, 0.0], [2.5, 9.0, 0.0], [7.0, 9.0, 0.0]])
    scores = detector.score_samples(container(rows))
    np.testing.assert_allclose(np.diff(scores), -np.log(401), rtol=1e-5)
    rbm, own = detector.estimator_, container(X)
    scores = rbm.score_samples(own) if criterion == "pseudo_likelihood" else -rbm.free_energy(own)
    assert detector.score_samples(container(X)).min() == pytest.approx(scores.min())
    if criterion == "pseudo_likelihood":
        missing = np.array([[2.5, np.nan, 0.0]])
        score = detector.score_samples(container(missing))
        np.testing.assert_array_equal(score, rbm.score_samples(container(missing)))


def test_a_rare_combination_of_values_is_found(rng):
    X = table_of_few_values(rng)
    X[:, 2] = rng.random(len(X))
    X[:2, :2] = [[-0.4, 2.5], [0.0, -0.4]]
    scores = RBMOutlierDetector().fit(X).score_samples(X)
    assert set(np.argsort(scores)[:2]) == {0, 1}


@pytest.mark.parametrize("contamination", [0, -0.1, 0.6, 1.0])
def test_contamination_has_to_be_a_share_below_a_half(contamination):
    """Slip: any number up to one."""
    detector, X = fitted()
    before = vars(detector).copy()
    detector.set_params(contamination=contamination)
    with pytest.raises(ValueError, match="contamination"):
        detector.fit(X)
    assert all(vars(detector)[name] is before[name] for name in ("estimator_", "offset_"))


@pytest.mark.parametrize("params", [{"criterion": "energy"}, {"estimator": 3}])
def test_parameters_that_mean_nothing_are_refused(params):
    """Slips: a criterion that is not known taken for the free energy; any object an estimator."""
    with pytest.raises(ValueError, match=next(iter(params))):
        RBMOutlierDetector(**params).fit(np.eye(4))


def test_rows_unlike_the_others_are_found():
    """Slip: scores of the wrong sign, or an offset of another model."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((200, 1)) < 0.5, 20, axis=1) ^ (rng.random((200, 20)) < 0.05)
    X[:10] = rng.random((10, 20)) < 0.5
    rbm = BernoulliRBM(5, n_iter=30, random_state=0)
    detector = RBMOutlierDetector(rbm, contamination=0.05).fit(X)
    assert (detector.predict(X[:10]) == -1).mean() >= 0.8


@pytest.mark.filterwarnings("ignore:Features .* are constant")
@pytest.mark.parametrize("estimator", [TabularRBM, partial(BernoulliRBM, missing="marginalize")])
def test_missing_values_are_refused_before_training(estimator, monkeypatch):
    """Slips: minutes of training before the error, a model whose parameter has changed, and advice that
    leads nowhere.
    """
    X = np.where(np.arange(120).reshape(40, 3) % 7 == 0, np.nan, np.arange(3) == 1.0)
    detector = RBMOutlierDetector(estimator(2, n_iter=1, random_state=0))
    with monkeypatch.context() as patch:
        patch.setattr(Fit, "run", None)
        with pytest.raises(ValueError, match="contains NaN"):
            detector.fit(X)
    fitted = detector.fit(np.nan_to_num(X))
    assert fitted.estimator_.missing == "marginalize"
    by_column = clone(detector).set_params(criterion="pseudo_likelihood").fit(X)
    assert by_column.predict(X).shape == (40,)
    is_complete = ~np.isnan(X).any(axis=1)
    assert np.isfinite(clone(detector).fit(X, sample_weight=is_complete).offset_)


def test_categories_that_are_unknown_are_refused_with_advice():
    """Slip: advice on a model that the detector keeps to itself."""
    X = pd.DataFrame({"port": ["C", "Q"] * 20})
    detector = RBMOutlierDetector(TabularRBM(2, n_iter=1, random_state=0)).fit(X)
    with pytest.raises(ValueError, match=r"RBMOutlierDetector\(criterion='pseudo_likelihood'\)"):
        detector.predict(pd.DataFrame({"port": ["S"]}))


@pytest.mark.parametrize(
    ("contamination", "n_outliers"),
    [(0.005, 0), (0.01, 1), (0.05, 1), (0.11, 11), (0.2, 11), (0.31, 31), (0.5, 31)],
)
@pytest.mark.parametrize("scale", [1, 0.1])
def test_share_of_outliers_is_at_most_what_was_asked_for(contamination, n_outliers, scale):
    """Slip: rows of one score that are all flagged where the first of them reach the share: 10.6 % for
    1 %.
    """
    scores = np.repeat([-9.0, -5.0, -3.0, 0.0], [1, 10, 20, 69])[
        np.random.default_rng(0).permutation(100)
    ]
    weights = None if scale == 1 else np.full(100, scale)
    assert (scores < _quantile(scores, weights, contamination)).sum() == n_outliers


def test_numbers_between_zero_and_one_are_no_bits(rng):
    """Rows near the middle, beside uniform ones; as means of bits, these were the likelier ones."""
    X, new = (0.4 + 0.2 * rng.random((n_rows, 4)) for n_rows in (300, 100))
    scores = RBMOutlierDetector().fit(X).score_samples(np.vstack([new, rng.random((100, 4))]))
    assert roc_auc_score(np.repeat([True, False], 100), scores) > 0.9


def test_default_model_is_that_of_the_copies_for_which_weights_stand(rng):
    """Slips: rows of weight zero that choose the model; as many rows as there are weights."""
    bits = (rng.random((60, 3)) < 0.5) * 1.0
    weight = np.append(np.ones(60), 0)
    detector = RBMOutlierDetector().fit(np.vstack([bits, [[7, 7, 7]]]), sample_weight=weight)
    assert isinstance(detector.estimator_, BernoulliRBM)
    rows = np.stack([np.arange(12) % 4, rng.normal(size=12)], axis=1)
    one = RBMOutlierDetector().fit(rows, sample_weight=np.full(12, 10))
    other = RBMOutlierDetector().fit(np.repeat(rows, 10, axis=0))
    assert one.estimator_.kinds_ == other.estimator_.kinds_ == ["categorical"] * 2
    assert one._log_rows == other._log_rows
    fewer = RBMOutlierDetector().fit(rows, sample_weight=np.full(12, 9))
    assert fewer.estimator_.kinds_ == ["categorical", "numeric"]


@pytest.mark.parametrize("criterion", ["free_energy", "pseudo_likelihood"])
def test_new_categories_are_left_out_and_lower_the_score(criterion, rng):
    """Slips: an error; a score that rises with each term that is left out; a missing value taken for
    a new one; a bare error about text where the encoding has taken it for missing.
    """
    X = pd.DataFrame(table_of_few_values(rng), columns=["few", "same", "number"])
    X["port"] = rng.choice(list("CQS"), len(X))
    detector = RBMOutlierDetector(criterion=criterion).fit(X)
    rows = X.iloc[:3].astype({"few": object})
    text, missing = rows.copy(), rows.copy()
    text.loc[0, "few"] = text.loc[1, "port"] = "new"
    missing.loc[0, "few"] = missing.loc[1, "port"] = None
    scores = detector.score_samples(text)
    assert scores[2] == pytest.approx(detector.score_samples(X)[2], rel=1e-12)
    marginal = clone(detector.estimator_).set_params(missing="marginalize")
    for name, value in vars(detector.estimator_).items():
        if name.endswith("_") or name == "_data":
            setattr(marginal, name, value)
    if criterion == "free_energy":
        expected = marginal.log_likelihood(missing, 0.0)
        with pytest.raises(ValueError, match="contains NaN, None or an unknown category"):
            detector.score_samples(missing)
    else:
        expected = marginal.score_samples(missing)
    np.testing.assert_allclose(scores[:2], expected[:2] - np.log(401), rtol=1e-9)


def test_threshold_counts_new_categories_of_the_training_rows(rng):
    """Slip: a threshold without the penalty that the same rows have later."""
    X = pd.DataFrame({"port": rng.choice(list("CQS"), 400, p=[0.5, 0.45, 0.05])})
    X["number"] = rng.normal(size=400)
    kinds = {"port": ("categorical", ["C", "Q"])}
    for unknown in ("nearest", "missing"):
        rbm = TabularRBM(2, kinds=kinds, handle_unknown=unknown, n_iter=2, random_state=0)
        detector = RBMOutlierDetector(rbm, criterion="pseudo_likelihood")
        with pytest.warns(DomainWarning, match="neither declared"):
            detector.fit(X)
        is_new = (X["port"] == "S").to_numpy()
        assert (detector.predict(X[is_new]) == -1).all()  # not more normal, with either setting
        assert 0.09 < (detector.predict(X) == -1).mean() <= 0.1


def test_rows_of_new_categories_alone_have_the_energy_of_no_value(rng):
    """Slip: zero in place of log Z where the row is too wide for an exact sum."""
    X = pd.DataFrame(rng.choice(list("abcdefgh"), (300, 5))).add_prefix("site")
    detector = RBMOutlierDetector().fit(X)
    new = X.iloc[:2].copy()
    new.iloc[0] = "new"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = detector.score_samples(new)[0]
    expected = detector.estimator_.log_partition("ais", random_state=0).value - 5 * np.log(301)
    assert score == pytest.approx(expected, abs=0.2)


def test_numbers_outside_their_interval_are_mentioned_once(rng):
    """Slip: rows that are encoded for their scores, and again for their new values."""
    X = pd.DataFrame({"share": rng.random(100), "port": rng.choice(list("CQ"), 100)})
    rbm = TabularRBM(2, kinds={"share": "interval"}, handle_unknown="nearest", n_iter=1)
    for criterion in ("free_energy", "pseudo_likelihood"):
        detector = RBMOutlierDetector(rbm, criterion=criterion).fit(X)
        with pytest.warns(DomainWarning) as heard:
            detector.score_samples(X.assign(share=1.5))
        assert len(heard) == 1
    rbm.set_params(missing="marginalize")
    detector = RBMOutlierDetector(rbm, criterion="pseudo_likelihood").fit(X)
    with pytest.warns(DomainWarning) as heard:
        detector.score_samples(X.assign(share=1.5, port=None))
    assert len(heard) == 1


def test_columns_of_few_values_are_found_by_name(rng):
    """Slip: positions, which the names of other columns are."""
    X = pd.DataFrame({1: rng.integers(0, 3, 400), 0: 10 * rng.normal(size=400)})
    assert RBMOutlierDetector().fit(X).estimator_.kinds_ == ["categorical", "numeric"]


@pytest.mark.parametrize("handle_unknown", ["nearest", "missing"])
def test_new_categories_are_no_missing_values(handle_unknown, rng):
    """Slip: an error in place of a lower score where missing values are refused."""
    X = pd.DataFrame({"port": rng.choice(list("CQS"), 200), "number": rng.normal(size=200)})
    options = {"missing": "raise", "handle_unknown": handle_unknown, "n_iter": 2}
    rbm = TabularRBM(2, random_state=0, **options)
    detector = RBMOutlierDetector(rbm, criterion="pseudo_likelihood").fit(X)
    assert (detector.predict(X[:3].assign(port="new")) == -1).all()
    with pytest.raises(ValueError, match="needs complete rows"):
        detector.predict(X[:3].assign(port=None))


@pytest.mark.parametrize("is_weighted", [False, True])
def test_close_scores_of_many_rows_are_no_ties(is_weighted):
    """Slip: a chain of rows, each within the rounding error of the next, as one tie."""
    scores = (355 + 40 * np.random.default_rng(0).normal(size=100_000)).astype(np.float32)
    weights = np.ones(len(scores)) if is_weighted else None
    share = (scores < _quantile(scores, weights, 0.1)).mean()
    assert 0.0995 < share <= 0.1
    tied = np.repeat(np.float32([1, 2, 3]), [50, 100, 850])  # equal rows are alike
    assert (tied < _quantile(tied, None, 0.1)).sum() == 50


@pytest.mark.parametrize("container", [np.asarray, list, pd.Series])
@pytest.mark.parametrize("values", [np.arange(20.0), np.arange(20) % 2])
def test_rows_of_one_dimension_are_refused(container, values):
    """Slip: the values of missing columns counted, an IndexError."""
    with pytest.raises(ValueError, match=r"Expected (2D array|a 2-dimensional container)"):
        RBMOutlierDetector().fit(container(values))
