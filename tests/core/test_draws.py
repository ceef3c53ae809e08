"""Draws against their law, and streams that do not depend on what they are copies of."""

import copy
import pickle

import numpy as np
import pytest
from core.models import assert_mean

from skrbm.core.draws import draw_bernoulli, draw_normal, new_streams


def test_copies_of_a_stream_open_the_same_new_streams(seed):
    # Slip: Generator.spawn, whose children NumPy 1 takes from the system in a copy.
    rng = np.random.default_rng(seed)
    rng.random(3)
    copies = copy.deepcopy(rng), pickle.loads(pickle.dumps(rng)), rng
    draws = [[stream.random() for stream in new_streams(c, 5)] for c in copies]
    assert draws[0] == draws[1] == draws[2]
    assert len(set(draws[0])) == 5
    assert new_streams(rng, 1)[0].random() not in draws[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [10, 20_000])
def test_bernoulli_draws_have_their_probabilities(n_rows, dtype, rng):
    # Slips: a comparison with <=, or of the complement; 16 bits taken for the whole number.
    probability = np.array([0.0, 0.01, 0.3, 0.5, 0.9, 1.0], dtype)
    draws = [
        draw_bernoulli(np.tile(probability, (n_rows, 1)), rng) for _ in range(40_000 // n_rows)
    ]
    draws = np.concatenate(draws)
    assert not draws[:, 0].any()
    assert draws[:, -1].all()
    assert_mean(draws, probability.astype(np.float64))


class Raw:
    """Generator whose first words are given, and the others random."""

    def __init__(self, word, n_words, rng):
        self.first, self.rest, self.bit_generator = np.full(n_words, word), rng, self

    def random_raw(self, n_words):
        given, self.first = self.first[:n_words], self.first[n_words:]
        rest = self.rest.bit_generator.random_raw(n_words - len(given))
        return np.concatenate([given, rest]).astype(np.uint64)


@pytest.mark.parametrize("n_ones", [0, 1, 30_000])
def test_bernoulli_draws_settle_what_16_bits_leave_open(n_ones, rng):
    # Slips: open draws always true (a bias of up to 2^-16); settled with another's probability; the
    # last few forgotten, where their number is not one of whole words; by bits that chose them.
    # With every word equal to the leading 16 bits of a third of the probabilities, all those are
    # settled by further bits.
    probability = np.full(90_003, 2.0**-16 * 0.25)
    probability[:n_ones] = 1
    draws = draw_bernoulli(probability, Raw(np.uint64(0), -(-90_003 // 4), rng))
    assert draws[:n_ones].all()
    assert_mean(draws[n_ones:, None], 0.25)


def test_what_is_certain_is_drawn_whatever_the_bits(rng):
    # Slips: one is 2^16, which wraps to zero; its open draws left to chance.
    probability = np.tile(np.array([0, 1], np.float32), 10_000)
    draws = draw_bernoulli(probability, Raw(np.uint64(2**64 - 1), 5000, rng))
    np.testing.assert_array_equal(draws, probability)


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_bernoulli_draws_have_all_bits_of_any_generator(bits):
    # Slip: words of 32 bits, of which every second half is zero.
    rng = np.random.Generator(bits(0))
    assert_mean(draw_bernoulli(np.full((20_000, 8), 0.3), rng), 0.3)


@pytest.mark.parametrize("shape", [(7, 3), (1, 1), (300, 70), (2000, 1000)])
def test_both_precisions_draw_the_same_numbers(shape, seed, rng):
    # Slip: rng.random(dtype=float32), which takes another number of bits from the stream.
    probability = rng.random(shape).astype(np.float32)
    probability.flat[::5] = 1
    mean, deviation = rng.normal(size=shape).astype(np.float32), np.ones(shape[1], np.float32)
    one, other = np.random.default_rng(seed), np.random.default_rng(seed)
    double = np.where(probability == 1, 1 - 1e-9, probability.astype(np.float64))
    np.testing.assert_array_equal(draw_bernoulli(probability, one), draw_bernoulli(double, other))
    double = mean.astype(np.float64)
    single = draw_normal(mean, deviation, one)
    double = draw_normal(double, deviation.astype(np.float64), other)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=0, atol=16 * np.finfo(np.float32).eps)
    assert one.random() == other.random()


def normal_draws(array, stream, out=None):
    """Normal draws with means and standard deviations `array`, in place of the means in `out`."""
    out = np.empty_like(array) if out is None else out
    out[...] = array
    return draw_normal(out, array, stream)


@pytest.mark.parametrize("shape", [(7, 3), (333, 70), (6, 30_000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_draws_are_written_where_they_are_asked_for(shape, dtype, seed, rng):
    # Slips: a copy of strided columns is written; the array that is asked about is overwritten
    # before it is read; blocks of another order than the whole.
    probability = rng.random(shape).astype(dtype)
    for draw in (draw_bernoulli, normal_draws):
        expected = draw(probability, np.random.default_rng(seed))
        wide = np.zeros((shape[0], 2 * shape[1] + 1), dtype)
        itself = probability.copy()
        for out, array in ((wide[:, 1::2], probability), (itself, itself)):
            assert draw(array, np.random.default_rng(seed), out=out) is out
            np.testing.assert_array_equal(out, expected)
        assert not wide[:, ::2].any()


def test_normal_draws_have_mean_and_standard_deviation(rng):
    # Slips: the variance in place of the standard deviation; no noise.
    mean, deviation = np.array([-1.0, 0.0, 3.0]), np.array([0.3, 1.0, 2.5])
    residual = draw_normal(np.tile(mean, (20_000, 1)), deviation, rng) - mean
    assert_mean(residual, 0)
    assert_mean(residual**2, deviation**2)
