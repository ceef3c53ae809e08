"""Elementwise functions against independent ones, draws against their law."""

import numpy as np
import pytest
from core.models import assert_mean
from scipy import sparse

from skrbm.core.numerics import (
    average_rows,
    draw_bernoulli,
    draw_normal,
    log_two_cosh,
    spread_rows,
)

LARGE = 1e30


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_two_cosh_neither_overflows_nor_loses_digits(dtype):
    # Slips: log(2 cosh(x)), which overflows at 89 or 710; exp(x) added to 1 before the logarithm.
    x = np.concatenate([np.linspace(-800, 800, 4001), [-LARGE, LARGE]]).astype(dtype)
    actual = log_two_cosh(x)
    assert actual.dtype == dtype
    expected = np.logaddexp(x.astype(np.float64), -x.astype(np.float64))
    tolerance = 4 * np.finfo(dtype).eps * np.maximum(np.abs(x.astype(np.float64)), 1)
    assert np.all(np.abs(actual - expected) <= tolerance)


def test_bernoulli_draws_have_their_probabilities(rng):
    # Slip: a comparison with <=, or of the complement.
    probability = np.array([0.0, 0.01, 0.3, 0.5, 0.9, 1.0])
    draws = draw_bernoulli(np.tile(probability, (20_000, 1)), rng)
    assert not draws[:, 0].any()
    assert draws[:, -1].all()
    assert_mean(draws, probability)


@pytest.mark.parametrize("shape", [(7, 3), (1, 1)])
def test_both_precisions_draw_the_same_numbers(shape, seed, rng):
    # Slip: rng.random(dtype=float32), which takes another number of bits from the stream.
    probability = rng.random(shape).astype(np.float32)
    mean, deviation = rng.normal(size=shape).astype(np.float32), np.ones(shape[1], np.float32)
    one, other = np.random.default_rng(seed), np.random.default_rng(seed)
    np.testing.assert_array_equal(
        draw_bernoulli(probability, one), draw_bernoulli(probability.astype(np.float64), other)
    )
    single = draw_normal(mean, deviation, one)
    double = draw_normal(mean.astype(np.float64), deviation.astype(np.float64), other)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=0, atol=16 * np.finfo(np.float32).eps)
    assert one.random() == other.random()


def test_normal_draws_have_mean_and_standard_deviation(rng):
    # Slips: the variance in place of the standard deviation; no noise.
    mean, deviation = np.array([-1.0, 0.0, 3.0]), np.array([0.3, 1.0, 2.5])
    residual = draw_normal(np.tile(mean, (20_000, 1)), deviation, rng) - mean
    assert_mean(residual, 0)
    assert_mean(residual**2, deviation**2)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_average_rows_is_the_mean(container, rng):
    # Slip: a sum in place of a mean.
    rows, probabilities = rng.integers(0, 3, (9, 4)).astype(float), rng.dirichlet(np.ones(9))
    np.testing.assert_allclose(average_rows(container(rows)), rows.mean(axis=0), atol=1e-12)
    weighted = np.average(rows, axis=0, weights=probabilities)
    np.testing.assert_allclose(average_rows(container(rows), probabilities), weighted, atol=1e-12)


@pytest.mark.parametrize(
    ("n_samples", "n_rows"), [(1, 1), (1, 100), (100, 100), (101, 100), (999, 7)]
)
def test_spread_rows_are_evenly_spaced_and_no_more_than_asked_for(n_samples, n_rows):
    rows = np.arange(n_samples)[:, None]
    spread = spread_rows(rows, n_rows)
    assert 1 <= len(spread) <= n_rows
    assert len(np.unique(np.diff(spread, axis=0))) <= 1
    assert n_samples - spread[-1, 0] <= -(-n_samples // n_rows)
