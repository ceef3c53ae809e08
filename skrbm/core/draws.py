"""Random draws that agree for single and double precision, and random streams."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skrbm.core.numerics import Array, is_array, row_blocks

MIN_WORD_DRAWS = 2**12  # with fewer draws, one double-precision number for each is faster
# Largest numbers below 2^16, by the size in bytes of their type. With this factor, a probability of
# 1 leaves the same draw undecided as one just below 1, which single precision may have rounded up.
BELOW_N_WORDS = {
    np.dtype(t).itemsize: float(np.nextafter(t(2**16), t(0))) for t in (np.float32, np.float64)
}


def draw_bernoulli(probability: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
    """Draw independent Bernoulli variables with the given probabilities.

    Single and double precision use the same random numbers. Probabilities are compared with these
    numbers without being rounded. For fewer than `MIN_WORD_DRAWS` draws, and on a device, each
    probability is compared with a random number in double precision. Otherwise, each probability is
    compared with 16 random bits; the few draws that these bits do not decide use 53 further bits.

    Parameters
    ----------
    probability : ndarray
        Probabilities in single or double precision, in an array of at least one dimension.
    rng : numpy.random.Generator
        Source of random numbers.
    out : ndarray, default=None
        Output array of the same shape, either boolean or numeric (with draws of 1 and 0). It may be
        `probability` itself.

    Returns
    -------
    draws : ndarray of bool, or of the dtype of `out`
        Draws, of the same shape as `probability`.
    """
    if not isinstance(probability, np.ndarray):
        uniform = _device_generator(probability, rng).random(probability.shape)
        return np.less(uniform, probability, out=out)
    out = np.empty(probability.shape, dtype=bool) if out is None else out
    size = probability.size
    if size < MIN_WORD_DRAWS:
        return np.less(rng.random(probability.shape), probability, out=out)
    n_words = BELOW_N_WORDS[probability.itemsize]
    first, places, rests = 0, [], []
    for rows in row_blocks(probability):
        threshold = (probability[rows] * n_words).astype(np.int32)
        bits = _random_bits(rng, -(-threshold.size // 4)).view(np.uint16)[: threshold.size]
        words = bits.astype(np.int32).reshape(threshold.shape)
        (undecided,) = (words == threshold).ravel().nonzero()
        if len(undecided):
            places.append(first + undecided)
            exact = probability[rows].ravel()[undecided] * 2.0**16
            rests.append(exact - threshold.ravel()[undecided])
        np.less(words, threshold, out=out[rows])
        first += threshold.size
    # The number of words is the same in every precision. It is far above the expected number of
    # undecided draws.
    spare = _random_bits(rng, 16 + size // 2**14)
    if places:
        rest = np.concatenate(rests)
        if len(rest) > len(spare):
            spare = _random_bits(rng, len(rest))
        out.flat[np.concatenate(places)] = (spare[: len(rest)] >> 11) * 2.0**-53 < rest
    return out


def draw_normal(mean: Array, standard_deviation: Array, rng: np.random.Generator) -> Array:
    """Draw independent normal variables, in place of their means.

    The noise is drawn in double precision. On the host, it is cast to the dtype of `mean` before it
    is scaled and added; on a device, the sum is cast.

    Parameters
    ----------
    mean : ndarray of shape (n_samples, n_units)
        Means. The array is overwritten with the draws.
    standard_deviation : ndarray of shape (n_units,) or (n_samples, n_units)
        Standard deviations.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    draws : ndarray of shape (n_samples, n_units)
        The same array.
    """
    if not isinstance(mean, np.ndarray):
        noise = _device_generator(mean, rng).standard_normal(mean.shape) * standard_deviation
        noise += mean
        mean[...] = noise
        return mean
    deviation = np.broadcast_to(standard_deviation, mean.shape)
    for rows in row_blocks(mean):
        noise = rng.standard_normal(mean[rows].shape).astype(mean.dtype, copy=False)
        noise *= deviation[rows]
        mean[rows] += noise
    return mean


def draw_uniform(shape: tuple[int, ...], rng: np.random.Generator, array: Array) -> Array:
    """Draw uniform numbers in [0, 1), in double precision, on the host or the device of `array`.

    Parameters
    ----------
    shape : tuple of int
        Shape of the draws.
    rng : numpy.random.Generator
        Source of random numbers.
    array : ndarray
        NumPy array, or array on a device, whose library then draws the numbers.

    Returns
    -------
    draws : ndarray
        Draws, of the given shape.
    """
    generator = rng if isinstance(array, np.ndarray) else _device_generator(array, rng)
    return generator.random(shape)


def draw_exponential(shape: int | tuple[int, ...], rng: np.random.Generator, array: Array) -> Array:
    """Draw exponential variables with mean one; the arguments are those of `draw_uniform`."""
    if isinstance(array, np.ndarray):
        return rng.standard_exponential(shape)
    return -np.log1p(-_device_generator(array, rng).random(shape))


def draw_permutation(n_rows: int, rng: np.random.Generator, array: Any) -> Array:
    """Draw a permutation of the integers below `n_rows`, on the host or the device of `array`."""
    if isinstance(array, np.ndarray) or not is_array(array):  # rows may be in another container
        return rng.permutation(n_rows)
    return np.argsort(_device_generator(array, rng).random(n_rows))


def new_streams(rng: np.random.Generator, n_streams: int) -> list[np.random.Generator]:
    """Create independent random streams, seeded by draws from `rng`.

    `Generator.spawn` is not used, since its result is not reproducible for a copy of a generator:
    before NumPy 2, copies lose the seed sequence.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the seeds, whose state advances.
    n_streams : int
        Number of streams.

    Returns
    -------
    streams : list of numpy.random.Generator
        Streams, which depend only on the state of `rng`.
    """
    seeds = rng.integers(2**32, size=(n_streams, 4), dtype=np.uint64)
    return [np.random.default_rng(seed) for seed in seeds]


def _device_generator(array: Any, rng: np.random.Generator) -> Any:
    """Random generator of the library of a device array, seeded by a draw from `rng`.

    A new generator is created for each call. The state of `rng` therefore determines all later
    draws, on the host and on a device.
    """
    random = sys.modules[type(array).__module__.partition(".")[0]].random
    seed = int(rng.integers(2**63))
    philox = getattr(random, "Philox4x3210", None)  # CuPy's default generator is slow to seed
    return random.default_rng(seed) if philox is None else random.Generator(philox(seed))


def _random_bits(rng: np.random.Generator, n_words: int) -> NDArray[np.uint64]:
    """Draw words of 64 random bits, if possible without the overhead of `rng.integers`."""
    if isinstance(rng.bit_generator, np.random.MT19937):  # its raw words have 32 bits
        return rng.integers(2**64, size=n_words, dtype=np.uint64)
    return rng.bit_generator.random_raw(n_words)
