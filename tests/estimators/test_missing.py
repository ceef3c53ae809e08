"""Inpainting and imputation against enumerated conditional laws."""

import numpy as np
import oracles
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators.instances import DISCRETE_KINDS, KINDS, assigned, new, random_machine
from scipy.special import softmax

from skrbm import BernoulliRBM, DomainWarning, GaussianBernoulliRBM, TabularRBM
from skrbm.estimators.inference.model import ArrayModel

N_DRAWS = 20_000


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def mild(kind, n_visible=5, n_hidden=3):
    """Model whose Gibbs chains forget within a few steps."""
    return random_machine(kind, n_visible, n_hidden, scale=0.7)


def conditional_mean(p, row, is_known):
    """E[v | known units] by enumeration, or for Gaussian units by a grid over the one unknown."""
    if p.is_gaussian:
        grid = np.linspace(-60, 60, 20_001)
        states = np.tile(row, (len(grid), 1))
        states[:, ~is_known] = grid[:, None]
    else:
        states = oracles.states(p.visible_values, len(row))
        states = states[(states[:, is_known] == row[is_known]).all(axis=1)]
    return softmax(-oracles.free_energy(p, states)) @ states


@pytest.mark.parametrize("kind", DISCRETE_KINDS)
def test_inpainted_samples_have_the_conditional_law(kind):
    """Total variation below 0.02, as the known features of the row and not of others say."""
    p, v, _ = mild(kind)
    is_known = np.array([True, False, True, False, False])
    X = np.repeat(v[:1], N_DRAWS, axis=0)
    draws = assigned(p, random_state=0).inpaint(X, is_known, n_gibbs_steps=30)
    states = oracles.states(p.visible_values, 5)
    law = oracles.model_probabilities(p) * (states == v[0])[:, is_known].all(axis=1)
    counts = (draws[:, None] == states[None]).all(axis=2).mean(axis=0)
    assert np.abs(counts - law / law.sum()).sum() / 2 < 0.02


@pytest.mark.every_kind
def test_inpainted_means_are_conditional_means(kind):
    p, v, _ = mild(kind)
    is_known = np.array([True, True, True, True, False])
    filled = assigned(p, random_state=0).inpaint(v[:3], is_known, method="mean", n_gibbs_steps=800)
    expected = [conditional_mean(p, row, is_known) for row in v[:3]]
    tolerance = 0.1 * (1 + np.exp(p.log_variance.max() / 2) if p.is_gaussian else 1)
    np.testing.assert_allclose(filled, expected, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(filled[:, :4], v[:3, :4])


@pytest.mark.parametrize("algorithm", ["pcd", "cd", "exact"])
@pytest.mark.parametrize("share", [0.3, 0.05])
def test_missing_values_are_in_distant_groups_as_often_as_the_model_says(algorithm, share):
    """Clamped Gibbs steps do not lead from one group to the other."""
    rng = np.random.default_rng(0)
    groups = np.repeat([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0]], [3, 3, 10], axis=1)
    X = groups[(rng.random(600) < share).astype(int)]
    X = np.abs(X - (rng.random(X.shape) < 0.03))
    rbm = BernoulliRBM(5, algorithm=algorithm, n_iter=60, random_state=0).fit(X)
    is_known = np.arange(16) < 6
    rows = np.repeat(groups[:1], 2**10, axis=0)
    rows[:, 6:] = oracles.states((0, 1), 10)
    expected = softmax(-rbm.free_energy(rows)) @ rows[:, 6:]
    options = {"method": "mean", "n_chains": 500, "random_state": 0}
    mean = rbm.inpaint(groups[:1], is_known, n_gibbs_steps=20, **options)[0, 6:]
    np.testing.assert_allclose(mean, expected, rtol=0, atol=0.06)
    assert 0.02 < expected.mean() < 0.5


def test_rare_groups_are_drawn_as_often_as_they_are_probable():
    """Slip: sixteen anchors for each row, often none in the rare group (28 % of its draws less)."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 1500)
    is_other = (group == 1) ^ (rng.random(1500) < 0.1)
    numbers = group * 3 + 0.3 * rng.normal(size=1500)
    X = pd.DataFrame({"group": ["abc"[k] for k in group], "x": numbers, "is other": is_other})
    rbm = TabularRBM(5, numeric_scale="standard", n_iter=30, random_state=0).fit(X)
    row = pd.DataFrame({"group": [None], "x": [np.nan], "is other": [False]})
    each = pd.concat([row.assign(group=k) for k in "abc"])
    law = softmax(rbm.log_likelihood(each))
    rows = row.iloc[np.zeros(20_000, dtype=int)]
    drawn = rbm.impute(rows, method="sample", n_gibbs_steps=2, random_state=0)["group"]
    shares = [(drawn == k).mean() for k in "abc"]
    assert law[1] < 0.1
    np.testing.assert_allclose(shares, law, rtol=0.12)


def test_anchors_agree_with_the_known_values():
    """Known bits name one of 40 groups; from any anchors, 42 % of the other bits are wrong."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, (40, 60)).astype(float)
    X = np.abs(groups[rng.integers(0, 40, 4000)] - (rng.random((4000, 60)) < 0.02))
    rbm = BernoulliRBM(60, n_iter=50, random_state=0).fit(X)
    is_known = np.arange(60) < 20
    drawn = rbm.inpaint(groups, is_known, n_gibbs_steps=1, random_state=0)
    assert (drawn != groups)[:, ~is_known].mean() < 0.25


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("magnitude", [1e19, 1e154, 1e308])
def test_overflowing_energies_end_in_results_or_in_the_error_of_parameters(kind, magnitude):
    """Slip: weights of anchors that are NaN, as an index that is out of bounds."""
    p, v, _ = mild(kind)
    rbm = assigned(p, random_state=0, algorithm="cd")
    rbm.components_ = magnitude * np.sign(rbm.components_)
    message = "X or the parameters"
    try:
        assert np.isfinite(rbm.inpaint(v, np.arange(5) < 2)).all()
    except ValueError as error:
        message = str(error)
    assert "X or the parameters" in message


@pytest.mark.every_kind
def test_known_values_stay_to_the_bit_and_unknown_ones_do_not_matter(kind):
    # Slips: the mask read the other way round; the start taken from what is unknown.
    p, v, _ = mild(kind)
    rng = np.random.default_rng(0)
    mask = rng.random(v.shape) < 0.5
    spoilt = np.where(mask, v, rng.choice([np.nan, np.inf, 1e300, -5.0], v.shape))
    rbm = assigned(p)
    for method in ("sample", "mean"):
        one, other = (rbm.inpaint(X, mask, method=method, random_state=0) for X in (v, spoilt))
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one[mask], v[mask])
        assert np.isfinite(one).all()
    hidden = np.where(mask, v, np.nan)
    np.testing.assert_array_equal(
        rbm.impute(hidden, random_state=0),
        rbm.inpaint(hidden, mask, method="mean", random_state=0),
    )


def test_rows_without_missing_values_are_returned_and_draw_nothing(kind):
    p, v, _ = mild(kind)
    rbm = assigned(p, random_state=0)
    rbm._model.inference_rng()
    before = rbm._streams["inference"].bit_generator.state
    np.testing.assert_array_equal(rbm.impute(v), v)
    np.testing.assert_array_equal(rbm.inpaint(v, np.ones(5, bool)), v)
    assert rbm._streams["inference"].bit_generator.state == before
    assert rbm.impute(v) is not v


@pytest.mark.every_kind
def test_multiple_imputations_spread_as_the_conditional_law(kind):
    # Slip: copies of one draw, or means.
    p, v, _ = mild(kind)
    X = v[:2].copy()
    X[:, 4] = np.nan
    draws = assigned(p, random_state=0).impute(X, n_imputations=100, n_gibbs_steps=20)
    assert draws.shape == (100, 2, 5)
    is_known = np.arange(5) < 4
    np.testing.assert_array_equal(
        draws[:, :, is_known], np.broadcast_to(X[:, is_known], (100, 2, 4))
    )
    expected = np.array([conditional_mean(p, row, is_known)[4] for row in v[:2]])
    error = draws[:, :, 4].std(axis=0) / 10
    assert (np.abs(draws[:, :, 4].mean(axis=0) - expected) < 5 * error + 0.05).all()
    if not p.is_gaussian:
        assert set(np.unique(draws)) <= set(p.visible_values)


@pytest.mark.slow
def test_seed_repeats_and_successive_calls_differ(kind):
    p, v, _ = mild(kind)
    rbm, mask = assigned(p, random_state=0), np.arange(5) < 2
    calls = (
        lambda **options: rbm.inpaint(v, mask, **options),
        lambda **options: rbm.impute(np.where(mask, v, np.nan), **options),
        lambda **options: rbm.sample(20, 10, n_temperatures=3, **options),
    )
    for call in calls:
        np.testing.assert_array_equal(call(random_state=3), call(random_state=3))
        assert (call(random_state=3) != call(random_state=4)).any()
        assert (call() != call()).any()


def test_rows_are_filled_in_blocks_without_a_seam(kind, monkeypatch):
    p, v, _ = mild(kind)
    mask = np.random.default_rng(0).random(v.shape) < 0.5
    monkeypatch.setattr(ArrayModel, "block_rows", 7)
    filled = assigned(p).inpaint(v, mask, random_state=0)
    np.testing.assert_array_equal(filled[mask], v[mask])
    assert filled.shape == v.shape


@pytest.mark.parametrize("kind", DISCRETE_KINDS)
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, np.float32, np.int64])
def test_form_of_the_rows_does_not_matter(kind, form):
    p, v, _ = mild(kind)
    mask = np.arange(5) < 3
    data = form(v) if sp.issparse(form(v)) else v.astype(form)
    rbm = assigned(p)
    expected = rbm.inpaint(v, mask, random_state=0)
    filled = rbm.inpaint(data, mask, random_state=0)
    np.testing.assert_array_equal(filled, expected)
    assert filled.dtype == (np.float32 if form is np.float32 else np.float64)


@pytest.mark.parametrize(
    "mask",
    [
        np.ones(4, bool),
        np.ones((3, 5), bool),
        np.ones((50, 1), bool),
        np.ones(5),
        np.ones(5, int),
        [True] * 6,
    ],
)
def test_masks_of_another_shape_or_type_are_refused(mask):
    p, v, _ = mild("bernoulli")
    with pytest.raises(
        ValueError, match=r"mask expected to be boolean and of shape \(50, 5\) or \(5,\)"
    ):
        assigned(p).inpaint(v, mask)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_known_values_have_to_be_finite(value):
    p, v, _ = mild("bernoulli")
    v[1, 1] = value
    with pytest.raises(ValueError, match="Observed values of X expected to be finite"):
        assigned(p).inpaint(v, np.ones(5, bool))
    if not np.isnan(value):
        with pytest.raises(ValueError, match="Observed values of X expected to be finite"):
            assigned(p).impute(v)


def test_known_values_are_compared_with_the_domain():
    p, v, _ = mild("bernoulli")
    v[0, 0] = 7
    with pytest.warns(DomainWarning, match="from 0 to 7"):
        assigned(p).inpaint(v, np.ones(5, bool))
    mask = np.arange(5) > 0
    assert assigned(p).inpaint(v, mask).max() == 1  # what is unknown may be anything


@pytest.mark.parametrize(
    ("method", "arguments", "name"),
    [
        ("inpaint", {"mask": [True] * 5, "method": "mode"}, "method"),
        ("inpaint", {"mask": [True] * 5, "n_gibbs_steps": 0}, "n_gibbs_steps"),
        ("impute", {"n_imputations": 0}, "n_imputations"),
        ("sample", {"n_temperatures": 0}, "n_temperatures"),
    ],
)
def test_bad_arguments_are_named(method, arguments, name):
    p, v, _ = mild("bernoulli")
    rbm = assigned(p)
    with pytest.raises(ValueError, match=rf"'{name}' parameter of .*{method}"):
        getattr(rbm, method)(*([] if method == "sample" else [v]), **arguments)


@pytest.mark.slow
# Eight hidden units do not represent the narrow distribution of the second half.
@pytest.mark.filterwarnings("ignore:The fit is worse than a kernel density estimate")
def test_learned_structure_fills_in_what_means_cannot():
    """Features that copy each other: the missing one is read off its twin."""
    rng = np.random.default_rng(0)
    half = rng.random((300, 4)) < 0.5
    X = np.concatenate([half, half], axis=1).astype(float)
    rbm = BernoulliRBM(16, n_iter=100, random_state=0).fit(X)
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    wrong = (rbm.impute(holes, random_state=0).round() != X)[np.isnan(holes)].mean()
    assert wrong < 0.15
    real = rng.normal(size=(500, 1)) * [1.0, 1.0, -1.0] + 0.1 * rng.normal(size=(500, 3))
    model = GaussianBernoulliRBM(8, n_iter=100, random_state=0).fit(real)
    holes = real.copy()
    holes[:, 2] = np.nan
    error = np.sqrt(np.mean((model.impute(holes, random_state=0) - real)[:, 2] ** 2))
    assert error < 0.6 * real[:, 2].std()


def test_unfitted_estimators_say_so(kind):
    rbm = new(kind, 2)
    for call in (lambda: rbm.impute([[0.0]]), lambda: rbm.inpaint([[0.0]], [True])):
        with pytest.raises(Exception, match="not fitted"):
            call()


def test_impute_warns_once_of_one_cause():
    rbm = BernoulliRBM(2, n_iter=1, random_state=0).fit(np.eye(3))
    with pytest.warns(DomainWarning) as caught:
        rbm.impute([[np.nan, 2.0, 0.0]])
    assert len(caught) == 1


def test_none_in_a_list_is_missing():
    """Catches a comparison of None with numbers, raised as it is."""
    rbm = BernoulliRBM(2, n_iter=1, random_state=0).fit(np.eye(3))
    completed, expected = (
        rbm.impute([[missing, 1.0, 0.0]], random_state=0) for missing in (None, np.nan)
    )
    np.testing.assert_array_equal(completed, expected)
    with pytest.raises(ValueError, match="X contains NaN"):
        rbm.transform([[None, 1.0, 0.0]])


def test_missing_values_are_drawn_in_the_mode_of_the_known_ones(seed):
    """Two far modes, any one of five values known: a twentieth of the rows was filled in the other.

    Slip: chains that start from independent features.
    """
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random((1000, 1)) < 0.5, 1.0, -1.0)
    X = 10 * sign + rng.normal(size=(1000, 5))
    rbm = GaussianBernoulliRBM(8, n_iter=5, random_state=0).fit(X)
    known = rng.random(X.shape) < 0.4
    rows = known.any(axis=1)
    filled = rbm.impute(np.where(known, X, np.nan)[rows], random_state=0)
    assert (np.sign(filled) == sign[rows]).all()
