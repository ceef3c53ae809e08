"""Initial machine whose hidden units represent the leading factors of numeric columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp

from skrbm.core.centering import recenter
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.start.initialization import initial_hidden_layer
from skrbm.core.training.start.numeric_rows import NumericRows
from skrbm.core.units import Units
from skrbm.core.units.support import SMALLEST_SHARE

N_FACTOR_STEPS = 20  # steps of factor analysis
# Largest share of the hidden units that represent factors, and smallest variance of a factor, relative
# to the noise. With a share of 0.75, or smaller factors, clusters with factors of their own are
# learned worse. With at most 64 units for factors, fits of 256 units gain 4 nats on breast cancer
# after ten epochs, and lose 2 to 10 on five factors, bursts and random walks.
FACTOR_UNITS_SHARE, MIN_FACTOR_VARIANCE = 0.5, 2.0
# Range of the displacements of a factor, in standard deviations, and smallest and largest distance
# of two displacements, in standard deviations of the noise: with larger ones, the columns would have
# several modes.
FACTOR_RANGE, MIN_FACTOR_STEP, MAX_FACTOR_STEP = 6.0, 1.0, 2.0
MIN_GAIN = 1.0  # nats by which factors must make a row more likely than independent columns do


def factor_machine(
    rows: NumericRows, hidden: type[Units], n_hidden: int
) -> tuple[Machine, float] | None:
    r"""Machine whose hidden units represent the leading factors of the numeric columns.

    From small random weights, strong correlations of many columns are learned slowly: the more
    the columns have in common, the shorter are the steps that do not overshoot. Factor analysis
    [1]_ describes the columns in one go, by

    .. math:: v = \mu + \sigma \Bigl(\sum_k x_k u_k + \epsilon\Bigr), \qquad
        x_k \sim \mathcal{N}(0, s_k), \qquad \epsilon \sim \mathcal{N}(0, 1)

    with orthonormal directions :math:`u_k`. A group of :math:`m_k` hidden units represents
    :math:`x_k`. All units of a group have the weights :math:`\delta_k u_k`, so that :math:`n` active
    units move the visible means by :math:`\delta_k (n - m_k / 2) \sigma u_k`. The log-odds of the
    units, with the visible units at their means, form an arithmetic sequence:

    .. math:: a_j = -\delta_k^2 \left(1 + \frac1{s_k}\right) \left(j - \frac{m_k + 1}2\right)

    The number of active units is then distributed as

    .. math:: p(n) \propto e_n(e^{a_1}, \dots, e^{a_m})\, e^{\delta_k^2 (n - m_k / 2)^2 / 2}

    where :math:`e_n` is an elementary symmetric polynomial, and the displacements have
    approximately the distribution of :math:`x_k`. If there are too few hidden units for small
    steps :math:`\delta_k`, the noise is larger than factor analysis estimates. Of several numbers
    of factors, the one whose machine has the largest likelihood is chosen.

    Parameters
    ----------
    rows : NumericRows
        Rows to search.
    hidden : type
        Type of the hidden units; it must have two states.
    n_hidden : int
        Number of hidden units of the machine to train, of which at most the share
        `FACTOR_UNITS_SHARE` represents factors.

    Returns
    -------
    machine : Machine
        Plain machine that has only hidden units of factors.
    gain : float
        Mean log-likelihood of the rows under the machine, minus that under independent columns, in
        nats. None is returned in place of both results if the gain is less than `MIN_GAIN`.

    References
    ----------
    .. [1] Barber (2012), "Bayesian reasoning and machine learning", Cambridge University Press,
       section 21.2.
    """
    n_units = int(FACTOR_UNITS_SHARE * n_hidden)
    best, largest = None, MIN_GAIN
    for noise, directions, deviations in _factors(rows.covariance, len(rows.rows), n_units):
        visible, fields = rows.layer_and_fields(noise, directions)
        machine, log_z = _machine(visible, hidden, fields, deviations, n_units)
        gain = rows.gain(machine, log_z)
        if gain >= largest:
            best, largest = machine, gain
    return None if best is None else (recenter(best, None, None), largest)


def _factors(covariance: Array, n_rows: int, n_units: int) -> Iterator[tuple[Array, Array, Array]]:
    """Factors for decreasing numbers of them: each number is half the one before.

    `covariance` is that of columns of unit variance. Yields the variances of the noise, the
    directions of the factors as columns, and their standard deviations relative to the noise.
    """
    loadings = _loadings(covariance, n_rows)
    n_factors = min(loadings.shape[1], n_units)
    while n_factors:
        some = loadings[:, :n_factors]
        noise = _noise(covariance, some)
        spread = np.linalg.svd(some / np.sqrt(noise)[:, None], compute_uv=False).sum()
        step = FACTOR_RANGE * spread / n_units
        noise = np.minimum(noise * max(1, step / MAX_FACTOR_STEP) ** 2, 1)
        scaled = some / np.sqrt(noise)[:, None]
        directions, deviations, _ = np.linalg.svd(scaled, full_matrices=False)
        if deviations[-1] ** 2 >= MIN_FACTOR_VARIANCE:
            yield noise, directions, deviations
        n_factors //= 2


def _loadings(covariance: Array, n_rows: int) -> Array:
    """Loadings of the factors, of shape (n_columns, n_factors), from the largest to the smallest.

    The number of factors is the number of eigenvalues of the covariance matrix that are larger
    than all eigenvalues of independent columns, if these are many. There are fewer factors than
    columns.
    """
    n_columns = len(covariance)
    edge = (1 + np.sqrt(n_columns / n_rows)) ** 2
    n_factors = int(np.count_nonzero(np.linalg.eigvalsh(covariance) > edge))
    n_factors = min(n_factors, n_columns - 1)
    loadings = np.zeros((n_columns, n_factors))
    ridge = SMALLEST_SHARE * np.eye(n_columns)
    noise = np.minimum(1 / np.linalg.inv(covariance + ridge).diagonal(), 1)
    for _ in range(N_FACTOR_STEPS if n_factors else 0):
        root = np.sqrt(noise)
        values, vectors = np.linalg.eigh(covariance / np.outer(root, root))
        loadings = root[:, None] * vectors * np.sqrt(np.maximum(values - 1, 0))
        loadings = loadings[:, : -n_factors - 1 : -1]
        noise = _noise(covariance, loadings)
    return loadings


def _noise(covariance: Array, loadings: Array) -> Array:
    """Variance of each column that the factors do not explain, at most 1."""
    unexplained = covariance.diagonal() - np.square(loadings).sum(axis=1)
    return np.clip(unexplained, SMALLEST_SHARE, 1)


def _machine(
    visible: Units, hidden: type[Units], fields: Array, deviations: Array, n_units: int
) -> tuple[Machine, float]:
    """Centered machine of factors, and the logarithm of its partition function.

    `fields`, of shape (n_visible, n_factors), are the fields that move the visible means by one
    standard deviation of the noise along a direction; `deviations` are those of the factors. At
    most `n_units` hidden units are divided among the factors in proportion to `deviations`.
    """
    free = n_units - len(deviations)
    n_of_factor = 1 + np.floor(free * deviations / deviations.sum()).astype(int)
    most = np.ceil(FACTOR_RANGE * deviations / MIN_FACTOR_STEP).astype(int)
    n_of_factor = np.minimum(n_of_factor, most)
    steps = np.where(n_of_factor > 1, FACTOR_RANGE / n_of_factor, 2) * deviations
    places = [np.arange(n) - (n - 1) / 2 for n in n_of_factor]
    slopes = steps**2 * (1 + 1 / deviations**2)
    log_odds = [-slope * place for slope, place in zip(slopes, places, strict=True)]
    log_z = visible.log_partition(visible.zero_field(1))[0]
    for step, odds in zip(steps, log_odds, strict=True):
        n_active = np.arange(len(odds) + 1) - len(odds) / 2
        log_z += logsumexp(_log_symmetric(odds) + (step * n_active) ** 2 / 2)
    low, distance = hidden.support.low, hidden.support.high - hidden.support.low
    layer = initial_hidden_layer(hidden, int(n_of_factor.sum()))
    bias = np.concatenate(log_odds) / distance - layer.parameters["bias"]
    layer = layer.recentered(np.full_like(bias, low + distance / 2), bias)
    return Machine(visible, layer, np.repeat(fields * steps, n_of_factor, axis=1) / distance), log_z


def _log_symmetric(x: Array) -> Array:
    """Logarithms of the elementary symmetric polynomials of exp(x), of orders 0 to len(x)."""
    logs = np.full(len(x) + 1, -np.inf)
    logs[0] = 0
    for value in x:
        logs[1:] = np.logaddexp(logs[1:], logs[:-1] + value)
    return logs
