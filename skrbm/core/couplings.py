"""Fields and interactions of a machine's visible units with the hidden ones summed out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import final

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, sum_log_two_cosh
from skrbm.core.units import Units

ORDERS = (2, 3)
LAST_FREQUENCY = 26.0  # where 1 / sinh(pi t / 2) is below 1e-17
SATURATION = 20.0  # where log(2 cosh x) is |x| to 1e-17
N_HERMITE_NODES = 64  # of the average over a normal variable
N_BLOCK_FREQUENCIES = 2**10  # at a time: their waves stay in the cache


@final
@dataclass(frozen=True, eq=False)
class EffectiveCouplings:
    r"""Fields and interactions of visible units with the hidden ones summed out.

    .. math::

        \log p(v) = \mathrm{const} + \sum_i f_i s_i + \sum_{i < j} J_{ij} s_i s_j
        + \sum_{i < j < k} K_{ijk} s_i s_j s_k + \dots

    where :math:`s` is -1 or +1 for the lower and the higher state of a unit with two states, and
    1 or 0 for each column of a categorical unit, over whose columns every coefficient sums to zero.

    Parameters
    ----------
    fields : ndarray of shape (n_columns,)
        In nats.
    pairs : ndarray of shape (n_columns, n_columns)
        Symmetric; zero between the columns of one unit.
    triples : ndarray of shape (n_columns, n_columns, n_columns) or None
        Symmetric; zero where two columns are of one unit. None unless asked for.
    method : {"exact", "gaussian"}
        Where they come from.
    """

    fields: Array
    pairs: Array
    triples: Array | None
    method: str


def effective_couplings(
    machine: Machine, order: int = 2, method: str = "auto", max_products: float = 1e13
) -> EffectiveCouplings:
    r"""Zero-sum interactions of the visible units up to an order.

    A coefficient is an average over independent, uniform states of all other units [1]_. A hidden
    unit adds :math:`\log 2 \cosh(b + \sum_k u_k)`, where :math:`u_k` is what visible unit k sends
    to it; its Fourier transform makes of the average a product over units, so that

    .. math::

        J_{ij} = -\frac{1}{2} \int \frac{\mathrm{Re} \left( e^{i t b} D_i(t) D_j(t)
        \prod_{k \ne i, j} \langle e^{i t u_k} \rangle \right)}{t \sinh(\pi t / 2)} \, dt,
        \qquad D_i = e^{i t u_i} - \langle e^{i t u_i} \rangle

    summed over hidden units. The midpoint rule gives the integral to rounding, at a cost that grows
    with the sum of the weights and not with the number of states.

    Parameters
    ----------
    machine : Machine
        Visible units with two states or one-hot columns. Hidden units with more than two states
        have couplings by the method "gaussian" alone: exact ones if they are normal given the
        visible ones, since their log-partition is then a square.
    order : {2, 3}, default=2
        Largest number of units that interact.
    method : {"auto", "exact", "gaussian"}, default="auto"
        "gaussian" takes the sum of the other units for a normal variable; "auto" does so where
        the exact integral would take too many products.
    max_products : float, default=1e13
        Complex multiplications of an exact integral that "auto" allows: minutes.

    Returns
    -------
    couplings : EffectiveCouplings
        In double precision.

    Raises
    ------
    ValueError
        If the visible layer has units of other types, or the hidden ones have no such method.

    References
    ----------
    .. [1] Decelle, Furtlehner, Navas Gómez, Seoane (2024), "Inferring effective couplings with
       restricted Boltzmann machines", SciPost Physics 16, 095.
       :doi:`10.21468/SciPostPhys.16.4.095`
    """
    senders = _Senders(machine.astype(np.float64))
    n_products = senders.n_nodes.sum() * len(senders.columns) ** order
    if not senders.has_two_states:
        if method == "exact":
            raise ValueError(
                f"Exact couplings need hidden units that have two states, got {senders.hidden_name} "
                f"units. Use the method 'gaussian', which is exact for hidden units that are normal."
            )
        method = "gaussian"
    elif method == "auto":
        method = "exact" if n_products <= max_products else "gaussian"
    add = {"exact": _integrate, "gaussian": _average_normal}[method]
    shape = (len(senders.columns),)
    sums = [np.zeros(shape * n) for n in range(1, order + 1)]
    add(senders, sums)
    sums[0] += senders.linear
    unit = senders.unit[senders.columns]
    is_same = unit[:, None] == unit
    sums[1][is_same] = 0
    if order > 2:
        sums[2][is_same[:, :, None] | is_same[:, None, :] | is_same] = 0
    return EffectiveCouplings(sums[0], sums[1], sums[2] if order > 2 else None, method)


@final
class _Senders:
    """Signals of every value of every visible unit to the hidden units.

    All values stand one after the other, each with the number of its `unit`. Hidden units add
    `log_partition` at the bias and the sum of what is sent to log p, and a part that is linear in
    what is sent, which is in `linear` together with the visible units' own: of two states
    log 2cosh(bias + sum of sent). `columns` are the values that stand for the columns: all of a
    categorical unit, the higher one of two states.
    """

    def __init__(self, machine: Machine) -> None:
        self.hidden_name, n_hidden = type(machine.hidden).__name__, machine.hidden.n_columns
        form = _two_state_form(machine.hidden)
        self.has_two_states = form is not None
        self.log_partition = sum_log_two_cosh if form else machine.hidden.log_partition
        one, zero = np.ones(n_hidden), np.zeros(n_hidden)
        slope, bias, share = (one, zero, zero) if form is None else form
        self.bias = np.asarray(bias)
        sent, own = [], []
        unit: list[int] = []
        columns: list[int] = []
        for i in range(machine.visible.n_units):
            values, layer = machine.visible.unit_values(i), machine.visible.take(i)
            n_values, n_own = (0, 0) if values is None else values.shape
            if values is None or (n_values, n_own) not in {(2, 1), (n_own, n_own)}:
                raise ValueError(
                    f"Couplings need visible units that have two states or one-hot columns, got "
                    f"unit {i} of {type(machine.visible).__name__} units, which is neither."
                )
            begin = len(unit)
            columns += [begin + 1] if n_own == 1 else range(begin, begin + n_values)
            sent.append(layer.signal(values) @ machine.weights[machine.visible.unit_columns(i)])
            own.append(-layer.energy(values))
            unit += [i] * n_values
        self.unit, self.columns = np.array(unit), np.array(columns)
        self.first = np.flatnonzero(np.diff(self.unit, prepend=-1))
        raw = np.concatenate(sent)
        linear = np.concatenate(own) + raw @ share
        self.linear = (linear - self.mean(linear)[self.unit])[self.columns]
        self.sent = raw * slope  # (n_values, n_hidden)

    def mean(self, values: Array) -> Array:
        """Average over the values of each unit along the first axis, all alike."""
        counts = np.bincount(self.unit).reshape(-1, *[1] * (values.ndim - 1))
        return np.add.reduceat(values, self.first, axis=0) / counts

    @property
    def n_nodes(self) -> Array:
        """Number of frequencies that the integral of each hidden unit needs."""
        largest = np.maximum.reduceat(np.abs(self.sent), self.first, axis=0).sum(axis=0)
        period = largest + np.abs(self.bias) + SATURATION
        return np.asarray(np.ceil(LAST_FREQUENCY * period / (2 * np.pi)), dtype=int)


def _two_state_form(hidden: Units) -> tuple[Array, Array, Array] | None:
    """Slope, bias and share of log-partitions log 2cosh(slope x + bias) + share x + const.

    None if a unit has other states than two.
    """
    forms = []
    for j in range(hidden.n_units):
        values, layer = hidden.unit_values(j), hidden.take(j)
        if values is None or values.shape != (2, 1):
            return None
        signal, energy = layer.signal(values)[:, 0], layer.energy(values)
        forms.append((np.ptp(signal) / 2, (energy[0] - energy[1]) / 2, signal.mean()))
    slope, bias, share = np.array(forms).T
    return slope, bias, share


def _integrate(senders: _Senders, sums: list[Array]) -> None:
    """Add the integrals over frequencies of all hidden units."""
    for j, n_nodes in enumerate(senders.n_nodes):
        step = LAST_FREQUENCY / n_nodes
        for begin in range(0, n_nodes, N_BLOCK_FREQUENCIES):
            # Midpoints: the integrand need not be known where it is 0 / 0.
            t = step * (np.arange(begin, min(begin + N_BLOCK_FREQUENCIES, n_nodes)) + 0.5)
            waves = np.exp(1j * senders.sent[:, j, None] * t)
            means = senders.mean(waves)
            means[means == 0] = np.finfo(float).tiny
            total = np.exp(1j * senders.bias[j] * t) * np.prod(means, axis=0)
            total *= -step / (t * np.sinh(np.pi / 2 * t))
            # A ratio to the mean takes the unit itself out of the product over all.
            ratios = (waves / means[senders.unit] - 1)[senders.columns]
            first = total * ratios
            sums[0] += first.real.sum(axis=1)
            sums[1] += _real_product(first, ratios)
            for i, row in enumerate(ratios if len(sums) > 2 else ()):
                sums[2][i] += _real_product(row * first, ratios)


def _real_product(a: Array, b: Array) -> Array:
    """Real part of a @ b.T."""
    return np.asarray(a.real @ b.real.T - a.imag @ b.imag.T)


def _average_normal(senders: _Senders, sums: list[Array]) -> None:
    """Put averages in which the sum of the other units is a normal variable."""
    mean = senders.mean(senders.sent)
    deviation = senders.sent - mean[senders.unit]
    variance = senders.mean(deviation**2)
    bias = senders.bias + mean.sum(axis=0)
    unit = senders.unit[senders.columns]
    for n_others, total in enumerate(sums):
        for others in permutations(range(len(mean)), n_others):
            rest = variance.sum(axis=0) - variance[list(others)].sum(axis=0) - variance
            spread = np.sqrt(np.maximum(rest, 0))[senders.unit]
            values = [np.flatnonzero(senders.unit == other) for other in others]
            averages = np.empty((*map(len, values), len(senders.unit)))
            for index in np.ndindex(averages.shape[:-1]):
                chosen = [own[k] for own, k in zip(values, index, strict=True)]
                shift = bias + deviation[chosen].sum(axis=0)
                averages[index] = _normal_average(senders, shift + deviation, spread)
            for axis in range(n_others):
                averages -= averages.mean(axis=axis, keepdims=True)
            averages -= senders.mean(averages.T)[senders.unit].T
            # Of two states, the higher one stands for the only column.
            kept = [np.isin(own, senders.columns) for own in values]
            kept.append(np.isin(np.arange(len(senders.unit)), senders.columns))
            places = [np.flatnonzero(unit == other) for other in others]
            total[np.ix_(*places, np.arange(len(unit)))] = averages[np.ix_(*kept)]


def _normal_average(senders: _Senders, mean: Array, spread: Array) -> Array:
    """Average of the log-partition at mean + spread z over normal z, summed over hidden units."""
    nodes, weights = hermegauss(N_HERMITE_NODES)
    averages = [senders.log_partition(mean + node * spread) for node in nodes]
    return np.asarray(weights @ averages / weights.sum())
