"""RBMImputer: the manners of scikit-learn's imputers, and values that mean something."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skrbm import BernoulliRBM, GaussianBernoulliRBM, RBMImputer, SpinRBM, TabularRBM
from skrbm.core.machine import Machine

RNG = np.random.default_rng(0)
TWINS = np.repeat(RNG.random((200, 3)) < 0.5, 2, axis=1).astype(float)
HOLES = RNG.random(TWINS.shape) < 0.15
INCOMPLETE = np.where(HOLES, np.nan, TWINS)


def imputer(n_iter=100, **options):
    return RBMImputer(BernoulliRBM(12, n_iter=n_iter, random_state=0), random_state=0, **options)


@parametrize_with_checks(
    [RBMImputer(GaussianBernoulliRBM(3, n_iter=2, learning_rate=1e-3), n_gibbs_steps=5)]
)
def test_common_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "fitted"), [(INCOMPLETE, INCOMPLETE), (INCOMPLETE, TWINS)])
def test_missing_twins_are_read_off_the_other(rows, fitted):
    """Catches a machine that learns what was filled in at first, and chains that never move it."""
    step = imputer(150).fit(fitted)
    filled = step.transform(rows)
    np.testing.assert_array_equal(filled[~HOLES], TWINS[~HOLES])
    readable = HOLES & ~HOLES[:, [1, 0, 3, 2, 5, 4]]
    wrong = (filled.round() != TWINS)[readable].mean()
    by_mean = (SimpleImputer().fit(fitted).transform(rows).round() != TWINS)[readable].mean()
    assert wrong < 0.1
    assert by_mean > 0.3
    assert step.estimator_.score(TWINS) > -0.7  # -2 log 2 each for twins that are not


@pytest.mark.parametrize("estimator", [BernoulliRBM, SpinRBM, GaussianBernoulliRBM])
def test_every_model_can_impute(estimator):
    X = INCOMPLETE * 2 - 1 if estimator is SpinRBM else INCOMPLETE
    filled = RBMImputer(estimator(4, n_iter=3, random_state=0)).fit_transform(X)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[~HOLES], X[~HOLES])


def test_transform_is_a_function_and_a_seed_repeats_the_fit():
    one, other = imputer(5).fit(INCOMPLETE), imputer(5).fit(INCOMPLETE)
    first = one.transform(INCOMPLETE)
    np.testing.assert_array_equal(one.transform(INCOMPLETE), first)
    np.testing.assert_array_equal(other.transform(INCOMPLETE), first)
    np.testing.assert_array_equal(imputer(5).fit_transform(INCOMPLETE), first)


def test_a_row_alone_or_among_complete_ones_is_filled_in_alike():
    """Catches draws that complete rows take part in, and a stream that goes on from call to call."""
    step, row = imputer(5).fit(INCOMPLETE), np.flatnonzero(HOLES.any(axis=1))[3]
    alone = step.transform(INCOMPLETE[[row]])
    step.transform(INCOMPLETE)
    among = np.concatenate([TWINS[:7], INCOMPLETE[[row]], TWINS[7:]])
    np.testing.assert_array_equal(step.transform(among)[[7]], alone)


@pytest.mark.slow
def test_a_row_among_others_is_filled_in_alike_but_for_monte_carlo_error():
    """Catches chains or averages that mix rows, and a start whose law depends on their number."""
    step = imputer(100, n_gibbs_steps=20, n_chains=3).fit(INCOMPLETE)
    rows = INCOMPLETE[HOLES.any(axis=1)][:6]
    gaps = []
    for seed in range(40):
        step._seed = seed
        among, reverse = step.transform(rows), step.transform(rows[::-1])[::-1]
        step._seed = 1000 + seed
        alone = np.concatenate([step.transform(row[None]) for row in rows])
        gaps.append([among - alone, reverse - alone])
    gaps = np.array(gaps)
    limit = stats.t.isf(stats.norm.sf(4), len(gaps) - 1)
    assert (np.abs(gaps.mean(axis=0)) <= limit * stats.sem(gaps, axis=0) + 1e-9).all()


def test_complete_rows_train_as_fit_does():
    fitted = BernoulliRBM(12, n_iter=5, random_state=0).fit(TWINS)
    trained = imputer(5).fit(TWINS).estimator_
    np.testing.assert_array_equal(trained.components_, fitted.components_)
    np.testing.assert_array_equal(imputer(5).fit(TWINS).transform(TWINS), TWINS)


def test_estimator_is_cloned_and_its_passes_are_counted():
    rbm = BernoulliRBM(3, n_iter=4, random_state=0)
    step = RBMImputer(rbm).fit(INCOMPLETE)
    assert not hasattr(rbm, "components_")
    assert step.estimator_.n_iter_ == 4
    step = RBMImputer(rbm.set_params(n_iter=0)).fit(INCOMPLETE)
    assert step.estimator_.n_iter_ == 0
    assert np.isfinite(step.transform(INCOMPLETE)).all()


def test_another_mark_may_stand_for_missing_values():
    marked = np.where(HOLES, -1, TWINS)
    filled = imputer(5, missing_values=-1).fit_transform(marked)
    np.testing.assert_array_equal(filled, imputer(5).fit_transform(INCOMPLETE))
    # Slip: scikit-learn's advice to use an imputer.
    with pytest.raises(ValueError, match=r"marked by missing_values=-1, got NaN\. Replace NaN"):
        imputer(5, missing_values=-1).fit(INCOMPLETE)
    with pytest.raises(ValueError, match=r"marked by missing_values=-1, got NaN\. Replace NaN"):
        imputer(5, missing_values=-1).fit(marked).transform(INCOMPLETE)


@pytest.mark.parametrize("keep", [False, True])
def test_features_without_any_known_value_are_dropped_or_zero(keep):
    X = np.insert(INCOMPLETE, 2, np.nan, axis=1)
    step = imputer(5, keep_empty_features=keep).fit(X)
    assert step.estimator_.n_features_in_ == 6
    if keep:
        filled = step.transform(X)
        assert (filled[:, 2] == 0).all()
    else:
        with pytest.warns(UserWarning, match=r"without observed values in fit: \[2\]"):
            filled = step.transform(X)
    assert filled.shape[1] == 6 + keep
    names = [f"x{i}" for i in range(7) if keep or i != 2]
    assert list(step.get_feature_names_out()) == names
    with pytest.raises(ValueError, match=r"observed value in some feature.*missing_values=nan"):
        imputer().fit(np.full((3, 2), np.nan))


@pytest.mark.slow
@pytest.mark.parametrize("mark", [np.nan, -1])
def test_known_values_of_features_that_were_empty_in_fit_are_kept(mark):
    """Catches a column that is zero whatever it holds; SimpleImputer keeps what is known."""
    X = np.where(np.isnan(INCOMPLETE), mark, INCOMPLETE)
    step = imputer(5, keep_empty_features=True, missing_values=mark)
    step.fit(np.insert(X, 2, mark, axis=1))
    column = np.where(HOLES[:, 0], mark, 1 + np.arange(len(X)))
    rows = np.insert(X, 2, column, axis=1)
    filled = step.transform(rows)
    by_mean = SimpleImputer(keep_empty_features=True, missing_values=mark)
    expected = by_mean.fit(np.insert(X, 2, mark, axis=1)).transform(rows)
    np.testing.assert_array_equal(filled[:, 2], expected[:, 2])
    np.testing.assert_array_equal(np.delete(filled, 2, axis=1), step.fit(X).transform(X))
    single = step.fit(np.insert(X, 2, mark, axis=1)).transform(rows.astype(np.float32))
    assert single.dtype == np.float32


def test_indicator_columns_follow():
    frame = pd.DataFrame(INCOMPLETE, columns=list("abcdef"))
    frame["a"] = TWINS[:, 0]
    step = imputer(5, add_indicator=True).set_output(transform="pandas").fit(frame)
    filled = step.transform(frame)
    expected = MissingIndicator().fit(frame)
    assert list(filled.columns) == [*frame.columns, *expected.get_feature_names_out()]
    np.testing.assert_array_equal(filled.iloc[:, 6:], expected.transform(frame))


def test_precision_and_pandas_na_are_kept_and_understood():
    single = INCOMPLETE.astype(np.float32)
    assert imputer(3).fit_transform(single).dtype == np.float32
    frame = pd.DataFrame(INCOMPLETE).astype("Int64")
    np.testing.assert_array_equal(
        imputer(3).fit_transform(frame), imputer(3).fit_transform(INCOMPLETE)
    )


@pytest.mark.slow
def test_pipelines_and_searches_take_it_as_a_step():
    y = TWINS[:, 0].astype(int)
    pipeline = make_pipeline(imputer(20), LogisticRegression())
    assert pipeline.fit(INCOMPLETE, y).score(INCOMPLETE, y) > 0.9
    search = GridSearchCV(pipeline, {"rbmimputer__estimator__n_components": [2, 8]}, cv=2)
    assert search.fit(INCOMPLETE, y).best_score_ > 0.8
    scaled = make_pipeline(
        StandardScaler(), RBMImputer(GaussianBernoulliRBM(4, n_iter=3, random_state=0))
    )
    assert np.isfinite(scaled.fit_transform(INCOMPLETE)).all()


def test_bad_parameters_and_data_are_refused_and_leave_no_trace():
    for params, name in (
        ({"estimator": LogisticRegression()}, "estimator"),
        ({"n_gibbs_steps": 0}, "n_gibbs_steps"),
        ({"missing_values": "?"}, "missing_values"),
        ({"add_indicator": 3}, "add_indicator"),
    ):
        step = clone(imputer()).set_params(**params)
        with pytest.raises(ValueError, match=f"'{name}' parameter"):
            step.fit(INCOMPLETE)
        assert not hasattr(step, "estimator_")
    for data, message in (
        (np.where(HOLES, np.inf, TWINS), "contains infinity"),
        (sp.csr_array(TWINS), "[Ss]parse"),
    ):
        step = imputer()
        with pytest.raises((ValueError, TypeError), match=message):
            step.fit(data)
        assert not hasattr(step, "n_features_in_")
    with pytest.raises(NotFittedError):
        imputer().transform(INCOMPLETE)


def test_an_interrupt_ends_the_fit_and_keeps_what_was_learned(monkeypatch):
    step, calls = imputer(50), []

    hidden_field = Machine.hidden_field

    def interrupted(machine, v, out=None):
        calls.append(1)
        if len(calls) == 300:
            raise KeyboardInterrupt
        return hidden_field(machine, v, out=out)

    monkeypatch.setattr(Machine, "hidden_field", interrupted)
    with pytest.warns(UserWarning, match="interrupted by user"):
        step.fit(INCOMPLETE)
    monkeypatch.undo()
    assert 0 < step.estimator_.n_iter_ < 50
    assert np.isfinite(step.transform(INCOMPLETE)).all()


@pytest.mark.slow
def test_tables_come_out_as_they_came_in_and_filled():
    """Twins of words and numbers: catches columns in another order, and types that are lost."""
    rng = np.random.default_rng(0)
    state = rng.integers(3, size=300)
    X = pd.DataFrame(
        {
            "size": pd.Categorical(np.array(["small", "medium", "large"])[state]),
            "price": 100.0 * state + rng.normal(0, 5, 300),
            "count": pd.array(state * 10, dtype="Int64"),
        }
    )
    is_missing = rng.random(X.shape) < 0.1
    holes = X.mask(is_missing)
    rbm = TabularRBM(8, n_iter=60, random_state=0)
    step = RBMImputer(rbm, n_chains=3, n_gibbs_steps=20, random_state=0)
    filled = step.fit(holes).transform(holes)
    pd.testing.assert_series_equal(filled.dtypes, X.dtypes)
    for j, name in enumerate(X):
        pd.testing.assert_series_equal(filled[name][~is_missing[:, j]], X[name][~is_missing[:, j]])
    readable = is_missing[:, 0] & ~is_missing[:, 1:].any(axis=1)
    assert (filled["size"][readable] == X["size"][readable]).mean() > 0.9
    readable = is_missing[:, 1] & ~is_missing[:, [0, 2]].any(axis=1)
    assert np.abs(filled["price"][readable] - X["price"][readable]).mean() < 30
    assert list(step.get_feature_names_out()) == list(X)
    pd.testing.assert_frame_equal(step.transform(holes), filled)
    with pytest.raises(ValueError, match="Imputation of tables expected add_indicator=False"):
        RBMImputer(rbm, add_indicator=True).fit(holes)


@pytest.mark.parametrize("missing", [False, True])
def test_training_options_of_the_estimator_hold(missing):
    """Catches a loop of one's own in which nothing stops early, and no history is kept."""
    rbm = BernoulliRBM(
        4, n_iter=50, early_stopping=True, n_iter_no_change=2, tol=10, random_state=0
    )
    step = RBMImputer(rbm).fit(INCOMPLETE if missing else TWINS)
    assert step.estimator_.n_iter_ == 10  # two epochs of nine updates from update 75 on
    assert len(step.estimator_.history_["validation_pseudo_likelihood"]) == step.estimator_.n_iter_


def test_missing_values_of_pandas_are_nan():
    """Slip: the truth of NA, which there is not."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    X[3, 0] = np.nan
    options = {"n_gibbs_steps": 2, "random_state": 0}
    one = RBMImputer(GaussianBernoulliRBM(2, n_iter=1, random_state=0), **options)
    other = clone(one).set_params(missing_values=pd.NA)
    np.testing.assert_array_equal(one.fit_transform(X), other.fit_transform(X))
