"""Elementwise functions against independent ones, and work on rows."""

import numpy as np
import pytest
from scipy import sparse

from skrbm.core.machine import TURNED_ROWS, Machine
from skrbm.core.numerics import (
    every_kth_row,
    expm1,
    logistic,
    spread_rows,
    sum_log_two_cosh,
)
from skrbm.core.units import Bernoulli
from skrbm.core.units.linear import row_dots

LARGE = 1e30


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 2, 3, 64, 65, 127, 1000, 4097])
def test_sum_of_log_two_cosh_neither_overflows_nor_loses_digits(dtype, width, rng):
    # Slips: log(2 cosh(x)), which overflows at 89 or 710; a product of more factors than single
    # precision can hold; the last columns left out.
    sizes = np.array([0, 1e-3, 1, 30, 800, 1e10, LARGE])
    x = rng.uniform(-1, 1, (len(sizes), width)) * sizes[:, None]
    x = x.astype(dtype)
    expected = np.logaddexp(x.astype(np.float64), -x.astype(np.float64)).sum(axis=1)
    actual = sum_log_two_cosh(x.copy())
    assert actual.dtype == np.float64
    np.testing.assert_allclose(actual, expected, rtol=16 * np.finfo(dtype).eps)


@pytest.mark.parametrize("n_vectors", [None, 1, 5])
def test_row_products_are_inner_products(n_vectors, rng):
    rows = rng.normal(size=(5, 3))
    vectors = rng.normal(size=3 if n_vectors is None else (n_vectors, 3))
    expected = np.diag(rows @ np.broadcast_to(vectors, rows.shape).T)
    np.testing.assert_allclose(row_dots(rows, vectors), expected)
    if n_vectors is None:
        np.testing.assert_allclose(row_dots(sparse.csr_array(rows), vectors), expected)


@pytest.mark.parametrize(
    ("n_samples", "n_rows"), [(1, 1), (1, 100), (100, 100), (101, 100), (999, 7)]
)
def test_every_kth_row_is_evenly_spaced_and_no_more_are_chosen_than_asked_for(n_samples, n_rows):
    rows = np.arange(n_samples)[:, None]
    spread = every_kth_row(rows, n_rows)
    assert 1 <= len(spread) <= n_rows
    assert len(np.unique(np.diff(spread, axis=0))) <= 1
    assert n_samples - spread[-1, 0] <= -(-n_samples // n_rows)


@pytest.mark.parametrize(
    ("n_samples", "n_rows"), [(0, 5), (1, 1), (100, 100), (101, 100), (999, 7), (30, 1)]
)
def test_spread_rows_are_one_of_each_block(n_samples, n_rows):
    # Slips: a place beyond the last block, which is shorter; more rows than blocks.
    step = max(1, -(-n_samples // n_rows))
    spread = spread_rows(np.arange(n_samples), n_rows)
    np.testing.assert_array_equal(spread // step, np.arange(-(-n_samples // step)))


@pytest.mark.parametrize("period", [2, 3, 7, 12, 24])
@pytest.mark.parametrize("step", [2, 3, 4, 12, 24, 365, "resonant"])
def test_spread_rows_of_periodic_ones_are_of_all_phases(period, step):
    # Slips: every kth row, all of them of one phase; places that follow the golden ratio, which
    # advance by a multiple of the period if a block has a Fibonacci number of periods.
    n_rows = 100 * period
    step = 610 * period if step == "resonant" else step
    phases = spread_rows(np.arange(n_rows * step) % period, n_rows)
    counts = np.bincount(phases, minlength=period)
    assert 50 <= counts.min() <= counts.max() <= 150


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_spread_rows_of_all_containers_are_the_same(container):
    rows = np.arange(600.0).reshape(200, 3)
    spread = spread_rows(container(rows), 30)
    expected = rows[spread_rows(np.arange(200), 30)]
    np.testing.assert_array_equal(spread.toarray() if sparse.issparse(spread) else spread, expected)
    assert spread_rows(None, 30) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", range(1, 18))
def test_logistic_of_a_column_in_its_place(n_columns, dtype, rng):
    # Slip: NumPy 2.4's negative, wrong in place for a column of four (float32) or eight (float64).
    rows = rng.normal(size=(20, n_columns)).astype(dtype)
    expected = 1 / (1 + np.exp(-rows[:, :1]))
    np.testing.assert_allclose(logistic(rows[:, :1]), expected, rtol=1e-6)
    np.testing.assert_allclose(rows[:, :1], expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logistic_keeps_the_digits_of_small_probabilities(dtype):
    # Slips: half of one plus tanh, which rounds them away; warnings where the exponential overflows.
    x = np.linspace(-80, 200, 10_001).astype(dtype)
    expected = (1 / (1 + np.exp(-x.astype(np.longdouble)))).astype(float)
    actual = logistic(x)
    assert actual is x
    np.testing.assert_allclose(actual, expected, rtol=8 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("largest", [1e-30, 1e-3, 0.0624, 1.0, 50.0])
def test_expm1_keeps_its_digits(dtype, largest):
    # Slip: the exponential minus one, or a series that is too short for its range.
    x = np.linspace(-largest, largest, 10_001).astype(dtype)
    expected = np.expm1(x.astype(np.longdouble)).astype(float)
    actual = expm1(x, largest)
    assert actual is x
    np.testing.assert_allclose(actual, expected, rtol=3 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [0, 1, 2, TURNED_ROWS, TURNED_ROWS + 1])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_are_the_same_wherever_the_matrix_lies(order, n_rows, dtype, rng):
    # Slips: an answer that is not turned back, an `out` that is not written.
    rows = rng.normal(size=(n_rows, 7)).astype(dtype)
    matrix = np.asarray(rng.normal(size=(7, 5)), dtype=dtype, order=order)
    expected = np.einsum("ij,jk->ik", rows.astype(np.float64), matrix.astype(np.float64))
    room = np.full((n_rows + 2, 5), np.nan, dtype)
    machine = Machine(Bernoulli(np.zeros(7, dtype)), Bernoulli(np.zeros(5, dtype)), matrix)
    for out in (None, room[:n_rows]):
        product = machine.hidden_field(rows, out)
        assert product.dtype == dtype
        assert product.flags.c_contiguous
        np.testing.assert_allclose(product, expected, rtol=0, atol=20 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(room[:n_rows], product)
    assert np.isnan(room[n_rows:]).all()
