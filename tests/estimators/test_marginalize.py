"""Missing values in training, features and scores."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators.instances import KINDS, assert_same_arrays, draw, new
from estimators.test_tabular import ROWS, discrete, fitted, law, mixed

from skrbm import BernoulliRBM, TabularRBM
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
    for call in (rbm.fit, rbm.partial_fit, rbm.fit(X).transform, rbm.score_samples):
        with pytest.raises(ValueError, match="contains NaN"):
            call(holes)
    rbm.set_params(missing="marginalize")
    for call in (rbm.free_energy, rbm.gibbs, rbm.log_likelihood):
        with pytest.raises(ValueError, match="contains NaN"):
            call(holes)
    for call in (rbm.fit, rbm.transform, rbm.score_samples):
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


@pytest.mark.slow
def test_rows_with_grey_values_and_holes_say_nothing_of_ties():
    """Two features are equal where both are known; elsewhere one is grey and the other missing.

    Catches draws of what is missing that are given grey means and not the states that are learned.
    """
    bits = np.repeat([[0.0, 0.0], [1.0, 1.0]], 250, axis=0)
    grey = np.tile([0.5, np.nan], (500, 1))
    rbm = BernoulliRBM(2, algorithm="exact", n_iter=60, missing="marginalize", random_state=0)
    p_untied = np.exp(rbm.fit(np.concatenate([bits, grey])).log_likelihood([[0, 1], [1, 0]]))
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
    """Catches NaN in the start, and categories that are lost."""
    X = mixed().assign(age=np.nan, port=pd.Categorical([None] * 200, categories=["C", "S"]))
    X["note"] = pd.Series([None] * 200, dtype=object)
    with pytest.warns(UserWarning, match="observed value|constant") as caught:
        rbm = fitted(X)
    assert any(
        "Columns ['port', 'age', 'note'] of X have no observed value" in str(w.message)
        for w in caught
    )
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
