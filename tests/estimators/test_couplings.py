"""Effective couplings of estimators."""

from itertools import product

import numpy as np
import oracles
import pytest
from estimators.instances import assigned, random_machine

from skrbm import BernoulliRBM, TabularRBM, effective_couplings, to_spin


def test_bits_have_the_couplings_of_the_spins_that_they_are():
    # Slip: the coupling of products of bits, which are a quarter of the states.
    rbm = assigned(random_machine("bernoulli", 6, 4, scale=1.5)[0])
    ours, twin = (effective_couplings(model, order=3) for model in (rbm, to_spin(rbm)))
    for name in ("fields", "pairs", "triples"):
        np.testing.assert_allclose(getattr(ours, name), getattr(twin, name), rtol=0, atol=1e-12)
    assert np.abs(ours.pairs).max() > 0.1


def test_two_bits_have_half_the_log_odds_ratio_over_two():
    # Slip: the pairs of bits' states swapped.
    p = random_machine("bernoulli", 2, 3, scale=2.0)[0]
    log_p = -oracles.free_energy(p, oracles.visible_states(p)).reshape(2, 2)
    expected = (log_p[0, 0] + log_p[1, 1] - log_p[0, 1] - log_p[1, 0]) / 4
    assert effective_couplings(assigned(p)).pairs[0, 1] == pytest.approx(expected, abs=1e-12)


def test_what_has_no_couplings_is_refused():
    rbm = assigned(random_machine("cho")[0])
    with pytest.raises(
        ValueError, match=r"got GaussianBernoulliRBM with numbers that are not scaled.*TabularRBM"
    ):
        effective_couplings(rbm)
    table = TabularRBM(2, hidden_units="gaussian", n_iter=1, random_state=0)
    table.fit(np.random.default_rng(0).normal(size=(40, 3)))
    with pytest.raises(ValueError, match=r"have two states, got Gaussian units\.$"):
        effective_couplings(table)  # "gaussian" would be refused as well
    with pytest.raises(ValueError, match="'order' parameter"):
        effective_couplings(assigned(random_machine("spin")[0]), order=4)


def table_of_all_values():
    """Every row of a table whose units are in another order than its columns, and a wild model."""
    values = [list("abc"), [False, True], list("xy")]
    rows = np.array(list(product(*values)), dtype=object)
    kinds = {0: "categorical", 1: "binary", 2: "categorical"}
    rbm = TabularRBM(3, kinds=kinds, n_iter=1, random_state=0).fit(rows)
    rng = np.random.default_rng(0)
    rbm.components_ = rng.normal(0, 2, rbm.components_.shape)
    return rbm, rows


def test_strengths_are_of_the_columns_of_the_table():
    # Slips: flags, which are the first units, taken for the first column; a norm that grows with
    # the number of values.
    rbm, rows = table_of_all_values()
    log_p = -rbm.free_energy(rows).reshape(3, 2, 2)
    couplings = effective_couplings(rbm)
    for i, j, rest in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        pair = log_p.mean(axis=rest)
        pair = pair - pair.mean(axis=0) - pair.mean(axis=1)[:, None] + pair.mean()
        expected = np.sqrt(np.mean(pair**2))
        assert couplings.strengths[i, j] == pytest.approx(expected, abs=1e-10)
        assert couplings.strengths[j, i] == pytest.approx(expected, abs=1e-10)
        between = couplings.between(i, j)
        np.testing.assert_allclose(
            between, pair[-between.shape[0] :, -between.shape[1] :], atol=1e-10
        )
    np.testing.assert_array_equal(np.diag(couplings.strengths), 0)


def test_couplings_carry_the_names_of_the_table():
    pd = pytest.importorskip("pandas")
    _, rows = table_of_all_values()
    named = pd.DataFrame(rows, columns=["p", "q", "r"]).astype({"q": bool})
    couplings = effective_couplings(TabularRBM(1, n_iter=1, random_state=0).fit(named))
    assert couplings.features.tolist() == ["p", "q", "r"]
    assert couplings.columns.tolist() == ["q=True", "p=a", "p=b", "p=c", "r=x", "r=y"]
    assert couplings.feature_of_column.tolist() == [1, 0, 0, 0, 2, 2]
    assert couplings.between("p", "r").shape == (3, 2)
    with pytest.raises(ValueError, match=r"one of \['p', 'q', 'r'\], got 's'"):
        couplings.between("p", "s")
    bits = BernoulliRBM(2, n_iter=1).fit(pd.DataFrame(np.eye(3), columns=["u", "v", "w"]))
    assert effective_couplings(bits).columns.tolist() == ["u", "v", "w"]
    bits.components_, bits.intercept_visible_ = np.ones((2, 4)), np.zeros(4)
    assert effective_couplings(bits).features.tolist() == [0, 1, 2, 3]


def test_couplings_of_mixed_tables_name_the_columns_that_act_on_each_other():
    # Slips: units, flags first and numbers last, taken for columns; numbers left out.
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    side = rng.random(400) < 0.5
    names = ["share", "height", "species", "alone", "adult"]
    columns = [rng.random(400), side + rng.normal(0, 0.3, 400), None, rng.normal(size=400), side]
    table = pd.DataFrame(dict(zip(names, columns, strict=True)))
    table["species"] = np.where(rng.random(400) < 0.1, ~side, side).astype(str)
    kinds = {"share": ("interval", 0.0, 1.0)}
    rbm = TabularRBM(6, kinds=kinds, n_iter=50, random_state=0).fit(table)
    couplings = effective_couplings(rbm)
    assert couplings.features.tolist() == names
    linked = {"height", "species", "adult"}
    is_linked = np.array([[a != b and {a, b} <= linked for a in names] for b in names])
    others = couplings.strengths[~is_linked]
    assert couplings.strengths[is_linked].min() > 3 * others.max()
    assert couplings.between("height", "species").shape == (1, 2)


@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
def test_a_constant_column_has_no_couplings(order):
    # Slip: a column with one category taken for a unit of two states, the higher one in the next column.
    pd = pytest.importorskip("pandas")
    letters = np.array(["u", "v", "w"])[np.random.default_rng(0).integers(3, size=60)]
    X = pd.DataFrame({"a": "x", "b": letters})[order]
    couplings = effective_couplings(TabularRBM(3, n_iter=3, random_state=0).fit(X))
    np.testing.assert_allclose(couplings.between("a", "b"), np.zeros((1, 3)), atol=1e-12)
    np.testing.assert_allclose(couplings.fields[order.index("a") * 3], 0, atol=1e-12)
    assert abs(couplings.fields).max() > 0.01
