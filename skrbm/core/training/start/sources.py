"""Initial machine whose hidden units represent independent two-state sources of numeric columns."""

from __future__ import annotations

import numpy as np
from scipy.linalg import polar
from scipy.special import expit, logit

from skrbm.core.centering import recenter
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.start.factors import MAX_FACTOR_STEP, MIN_FACTOR_STEP
from skrbm.core.training.start.initialization import initial_hidden_layer
from skrbm.core.training.start.numeric_rows import NumericRows
from skrbm.core.units import Units
from skrbm.core.units.support import SMALLEST_SHARE

MAX_SOURCE_COLUMNS = 64  # numeric columns up to which sources are searched, which takes 70 ms then
N_ICA_STEPS, N_MIXTURE_STEPS = 20, 50  # steps of independent component analysis, and of mixtures
# Smallest variance of a principal component, relative to the largest, and smallest probability of a
# state of a source. Rarer states are outliers or groups of rows, which the search for clusters finds.
MIN_COMPONENT_VARIANCE, MIN_STATE_PROBABILITY = 1e-3, 0.05
# Nats, and standard errors, by which a mixture must make other rows more likely than a normal
# distribution does. In normal rows, none of 64 directions reaches these bounds.
MIN_SOURCE_GAIN, MIN_STANDARD_ERRORS = 0.01, 3.0
HALVES = slice(0, None, 2), slice(1, None, 2)  # rows to fit, and rows to judge


def source_machine(
    rows: NumericRows, hidden: type[Units], n_hidden: int
) -> tuple[Machine, float] | None:
    r"""Machine whose hidden units represent independent two-state sources of the numeric columns.

    If columns are uncorrelated, small random weights are near a saddle point of the likelihood, and
    hardly anything is learned for many epochs. Independent component analysis [1]_ finds directions
    in which the rows are not normally distributed. Along such a direction, a hidden unit with the
    probability :math:`a_k` moves the visible means by :math:`\delta_k`:

    .. math:: v = \mu + \sigma \Bigl(\sum_k (h_k - a_k) \delta_k u_k + \epsilon\Bigr), \qquad
        h_k \sim \mathcal{B}(a_k), \qquad \epsilon \sim \mathcal{N}(0, 1)

    with orthonormal directions :math:`u_k`. The log-odds of the units, with the visible units at
    their means, are :math:`\log \frac{a_k}{1 - a_k} - (\frac12 - a_k) \delta_k^2`. The displacements
    and probabilities are those of mixtures of two normal distributions of equal variances. Larger
    displacements than `MAX_FACTOR_STEP` are reduced, and the noise is increased.

    Parameters
    ----------
    rows : NumericRows
        Rows to search.
    hidden : type
        Type of the hidden units; it must have two states.
    n_hidden : int
        Number of hidden units of the machine to train.

    Returns
    -------
    machine : Machine
        Plain machine that has one hidden unit per source.
    gain : float
        Mean log-likelihood of the rows under the machine, minus that under independent columns, in
        nats. None is returned in place of both results if no sources are found, or if there are more
        than `MAX_SOURCE_COLUMNS` columns.

    References
    ----------
    .. [1] Hyvärinen and Oja (2000), "Independent component analysis: algorithms and applications",
       Neural Networks 13 (4-5), 411-430, eq. 23. :doi:`10.1016/S0893-6080(00)00026-5`
    """
    found = _sources(rows, n_hidden) if len(rows.columns) <= MAX_SOURCE_COLUMNS else None
    if found is None:
        return None
    loadings, probability = found
    spread = np.square(loadings) @ (probability * (1 - probability))
    noise = np.clip(1 - spread, SMALLEST_SHARE, 1)
    steps = np.linalg.norm(loadings / np.sqrt(noise)[:, None], axis=0)
    kept = steps >= MIN_FACTOR_STEP
    if not kept.any():
        return None
    loadings, probability, steps = loadings[:, kept], probability[kept], steps[kept]
    directions, _ = polar(loadings / np.sqrt(noise)[:, None] / steps)
    visible, fields = rows.layer_and_fields(noise, directions * steps)
    low, distance = hidden.support.low, hidden.support.high - hidden.support.low
    log_odds = logit(probability) - (0.5 - probability) * steps**2
    layer = initial_hidden_layer(hidden, len(steps))
    layer = layer.recentered(
        low + distance * probability, log_odds / distance - layer.parameters["bias"]
    )
    machine = Machine(visible, layer, fields / distance)
    log_z = visible.log_partition(visible.zero_field(1))[0]
    log_z += (np.square(probability * steps) / 2 - probability * log_odds).sum()
    log_z -= np.log1p(-probability).sum()
    return recenter(machine, None, None), rows.gain(machine, log_z)


def _sources(rows: NumericRows, n_most: int) -> tuple[Array, Array] | None:
    """Loadings of at most `n_most` sources, as columns, and probabilities of their higher state.

    Mixtures that are fitted to one half of the rows must predict the other half better than normal
    distributions do.
    """
    scaled, sample_weight = rows.scaled, rows.sample_weight
    weights = np.ones(len(scaled)) if sample_weight is None else sample_weight
    if not all(weights[half].any() for half in HALVES):
        return None
    values, vectors = np.linalg.eigh(rows.covariance)
    is_kept = values > MIN_COMPONENT_VARIANCE * values[-1]
    values, vectors = values[is_kept], vectors[:, is_kept]
    centered = scaled - np.average(scaled, axis=0, weights=sample_weight)
    white = centered @ (vectors / np.sqrt(values))
    first, second = (weights[half] / weights[half].sum() for half in HALVES)
    rotation = _independent_components(white[HALVES[0]], first)
    probability, low, high, noise = _mixtures(white[HALVES[0]] @ rotation, first)
    y = white[HALVES[1]] @ rotation
    gains = np.square(y) / 2 - np.log(noise) / 2
    gains += np.logaddexp(
        np.log(probability) - np.square(y - high) / (2 * noise),
        np.log1p(-probability) - np.square(y - low) / (2 * noise),
    )
    gain = second @ gains
    error = np.sqrt(np.square(second) @ np.square(gains - gain))
    is_found = gain > np.maximum(MIN_SOURCE_GAIN, MIN_STANDARD_ERRORS * error)
    is_found &= np.minimum(probability, 1 - probability) >= MIN_STATE_PROBABILITY
    best = np.argsort(np.where(is_found, -gain, np.inf))[: min(n_most, is_found.sum())]
    probability, distance = probability[best], (high - low)[best]
    variance = probability * (1 - probability)
    most = MAX_FACTOR_STEP / np.sqrt(1 + variance * MAX_FACTOR_STEP**2)
    loadings = (vectors * np.sqrt(values)) @ rotation[:, best]
    return loadings * np.minimum(distance, most), probability


def _independent_components(white: Array, weights: Array) -> Array:
    r"""Orthogonal matrix whose columns are directions of the largest approximate negentropy.

    The negentropy of a variable with the cumulants :math:`\kappa_3` and :math:`\kappa_4` is
    approximately :math:`\kappa_3^2 / 12 + \kappa_4^2 / 48`. With the fourth cumulant alone, sources
    whose states have the probabilities 0.2 and 0.8 would not be found, because it is almost zero.
    `white` are rows with the identity as their covariance matrix, and `weights` their
    probabilities.
    """
    rotation = np.eye(white.shape[1])
    for _ in range(N_ICA_STEPS):
        y = white @ rotation
        square = np.square(y)
        third, fourth = weights @ (square * y), weights @ np.square(square) - 3
        weighted = weights[:, None] * square
        gradient = third / 2 * (white.T @ weighted)
        gradient += fourth / 6 * (white.T @ (weighted * y) - 3 * rotation)
        rotation, _ = polar(gradient)
    return rotation


def _mixtures(x: Array, weights: Array) -> tuple[Array, Array, Array, Array]:
    """Mixtures of two normal distributions of equal variances, one for each column of `x`.

    Returns the probability of the component with the larger mean, the two means, and the variance.
    """
    responsibility = (x > 0).astype(np.float64)
    square = weights @ np.square(x)
    for _ in range(N_MIXTURE_STEPS):
        probability = np.clip(weights @ responsibility, SMALLEST_SHARE, 1 - SMALLEST_SHARE)
        high = weights @ (responsibility * x) / probability
        low = weights @ ((1 - responsibility) * x) / (1 - probability)
        between = probability * np.square(high) + (1 - probability) * np.square(low)
        noise = np.maximum(square - between, SMALLEST_SHARE)
        field = (high - low) * (x - (high + low) / 2) / noise
        responsibility = expit(logit(probability) + field)
    return probability, low, high, noise
