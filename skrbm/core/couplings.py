"""Fields and interactions of a machine's visible units with the hidden ones summed out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any, final

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, sum_log_two_cosh
from skrbm.core.units import Units

ORDERS = (2, 3)
LAST_FREQUENCY = 26.0  # where 1 / sinh(pi t / 2) is below 1e-17
SATURATION = 20.0  # where log(2 cosh x) is |x| to 1e-17
N_HERMITE_NODES = 64  # of the average over a normal variable
SPAN = 2 * np.sqrt(3.0)  # of a uniform variable, in its standard deviations
NORMAL_REACH = 9.0  # standard deviations, beyond which a normal variable is once in 1e18 times
N_OWN_NODES = 16  # of the average of a number's own energy, at most of second order
SMALL_PHASE = 1e-2  # below which the next term of the series is a^5 / 840 = 1e-13
N_BLOCK_FREQUENCIES = 2**10  # at a time: their waves stay in the cache


@final
@dataclass(frozen=True, eq=False)
class EffectiveCouplings:
    r"""Fields and interactions of visible units with the hidden ones summed out.

    .. math::

        \log p(v) = \mathrm{const} + \sum_i f_i s_i + \sum_{i < j} J_{ij} s_i s_j
        + \sum_{i < j < k} K_{ijk} s_i s_j s_k + \dots

    where :math:`s` is -1 or +1 for the lower and the higher state of a unit with two states, and
    1 or 0 for each column of a categorical unit, over whose columns every coefficient sums to zero. A
    number with bounds, taken to be uniform between them, or without, taken to be standard normal, is
    measured from its mean in standard deviations; a coefficient is then the part of the interaction
    that is linear in it.

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
    feature_of_column : ndarray of shape (n_columns,)
        Number of the feature, which is one unit, that each column belongs to.
    features : ndarray of shape (n_features,)
        Names of the features, or their numbers.
    columns : ndarray of shape (n_columns,)
        Names of the columns, such as "port=Southampton", or their numbers.
    """

    fields: Array
    pairs: Array
    triples: Array | None
    method: str
    feature_of_column: Array
    features: Array
    columns: Array

    @property
    def strengths(self) -> Array:
        r"""Root mean squares of the pairs of features' interactions, (n_features, n_features).

        In nats, over all states alike: :math:`|J_{ij}|` of two units with two states, and

        .. math:: \sqrt{\frac{1}{q_i q_j} \sum_{a, b} J_{ij}(a, b)^2}

        of categorical ones with q_i and q_j values.
        """
        counts = np.bincount(self.feature_of_column, minlength=len(self.features))
        return self.norms() / np.sqrt(np.maximum(np.outer(counts, counts), 1))

    def norms(self, is_counted: Array | None = None) -> Array:
        r"""Compute Frobenius norms of the pairs of features' interactions.

        Parameters
        ----------
        is_counted : ndarray of bool of shape (n_columns,), default=None
            Columns to sum over; None for all.

        Returns
        -------
        norms : ndarray of shape (n_features, n_features)
            Symmetric, in nats; zero on the diagonal.
        """
        belongs = self.feature_of_column[:, None] == np.arange(len(self.features))
        if is_counted is not None:
            belongs = belongs & is_counted[:, None]
        squares = belongs.T @ self.pairs**2 @ belongs
        return np.asarray(np.sqrt((squares + squares.T) / 2))  # symmetric to the bit

    def between(self, feature: Any, other: Any) -> Array:
        """Give the interactions of the values of two features.

        Parameters
        ----------
        feature, other : object
            Names in `features`.

        Returns
        -------
        pairs : ndarray of shape (n_columns_of_feature, n_columns_of_other)
            In nats, in the order of `columns`.

        Raises
        ------
        ValueError
            If there is no feature of that name.
        """
        rows, columns = self._columns_of(feature), self._columns_of(other)
        return np.asarray(self.pairs[np.ix_(rows, columns)])

    def _columns_of(self, feature: Any) -> Array:
        names = self.features.tolist()
        if feature not in names:
            raise ValueError(f"Expected the name of a feature, one of {names}, got {feature!r}.")
        return np.flatnonzero(self.feature_of_column == names.index(feature))


def effective_couplings(
    machine: Machine, order: int = 2, method: str = "auto", max_products: float = 1e13
) -> EffectiveCouplings:
    r"""Zero-sum interactions of the visible units up to an order.

    A coefficient is an average over independent states of all other units: uniform ones [1]_, or
    standard normal numbers where there are no bounds. A hidden
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
        Visible units with two states, one-hot columns or numbers. Hidden units with more than two
        states have couplings by the method "gaussian" alone: exact ones if they are normal given the
        visible ones, since their log-partition is then a square.
    order : {2, 3}, default=2
        Largest number of units that interact.
    method : {"auto", "exact", "gaussian"}, default="auto"
        "gaussian" takes the sum of the other units, which may not be numbers, for a normal variable;
        "auto" does so where the exact integral would take too many products.
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
    machine = machine.astype(np.float64)
    senders = _Senders(machine)
    n_products = senders.n_nodes.sum() * len(senders.unit_of_column) ** order
    if not senders.has_two_states:
        if method == "exact" or len(senders.numbers.columns):
            raise ValueError(
                f"Exact couplings, and those of real values, need hidden units that have two states, got "
                f"{type(machine.hidden).__name__} units. For visible units with states use the method "
                f"'gaussian', which is exact for hidden units that are normal."
            )
        method = "gaussian"
    elif method == "auto":
        is_affordable = n_products <= max_products
        method = "exact" if is_affordable or len(senders.numbers.columns) else "gaussian"
    add = {"exact": _integrate, "gaussian": _average_normal}[method]
    shape = senders.unit_of_column.shape
    sums = [np.zeros(shape * n) for n in range(1, order + 1)]
    add(senders, sums)
    sums[0][senders.value_columns] += senders.linear
    sums[0][senders.numbers.columns] += senders.numbers.linear
    unit = senders.unit_of_column
    is_same = unit[:, None] == unit
    sums[1][is_same] = 0
    if order > 2:
        sums[2][is_same[:, :, None] | is_same[:, None, :] | is_same] = 0
    triples = sums[2] if order > 2 else None
    numbers = np.arange(machine.visible.n_units), np.arange(len(unit))
    return EffectiveCouplings(sums[0], sums[1], triples, method, unit, *numbers)


@final
class _Senders:
    """Signals of every value of every visible unit to the hidden units.

    All values of units with states stand one after the other, each with the number of its `unit`
    among these. Hidden units add `log_partition` at the bias and the sum of what is sent to log p, and
    a part that is linear in what is sent, which is in `linear` together with the visible units' own:
    of two states log 2cosh(bias + sum of sent). `columns` are the values that stand for columns of the
    layer, `value_columns`: all of a categorical unit, the higher one of two states. `numbers` are the
    other units.
    """

    def __init__(self, machine: Machine) -> None:
        visible, n_hidden = machine.visible, machine.hidden.n_columns
        form = _two_state_form(machine.hidden)
        self.has_two_states = form is not None
        self.log_partition = sum_log_two_cosh if form else machine.hidden.log_partition
        one, zero = np.ones(n_hidden), np.zeros(n_hidden)
        slope, bias, share = (one, zero, zero) if form is None else form
        unit: list[int] = []
        columns: list[int] = []
        value_columns: list[int] = []
        sent, own = [np.zeros((0, len(slope)))], [np.zeros(0)]
        self.unit_of_column = np.empty(visible.n_columns, dtype=np.intp)
        for i in range(visible.n_units):
            values, layer, places = visible.unit_values(i), visible.take(i), visible.unit_columns(i)
            self.unit_of_column[places] = i
            if values is None and len(places) == 1:
                continue
            n_values, n_own = (0, 0) if values is None else values.shape
            if (n_values, n_own) not in {(2, 1), (n_own, n_own)} or not n_own:
                raise ValueError(
                    f"Couplings need visible units that have two states, one-hot columns or real "
                    f"values, got unit {i} of {type(visible).__name__} units, which is none of these."
                )
            begin = len(unit)
            columns += [begin + 1] if n_own == 1 else range(begin, begin + n_values)
            value_columns += places.tolist()
            sent.append(layer.signal(values) @ machine.weights[places])
            own.append(-layer.energy(values))
            unit += [i] * n_values
        _, self.unit = np.unique(np.array(unit, np.intp), return_inverse=True)
        self.columns = np.array(columns, np.intp)
        self.value_columns = np.array(value_columns, np.intp)
        self.first = np.flatnonzero(np.diff(self.unit, prepend=-1))
        self.numbers = _Numbers(machine, slope, share)
        self.bias = bias + self.numbers.mean_sent
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
        period = largest + self.numbers.largest_sent + np.abs(self.bias) + SATURATION
        return np.asarray(np.ceil(LAST_FREQUENCY * period / (2 * np.pi)), dtype=int)


@final
class _Numbers:
    """Signals of visible units with real values to the hidden units.

    With s a number's distance from its mean in standard deviations, uniform where it has bounds, else
    normal: it sends a hidden unit `slope` times s, and the mean of what all send is `mean_sent`.
    `linear` is the mean of s times the part of log p that is the number's own or linear in what it
    sends.
    """

    def __init__(self, machine: Machine, slope: Array, share: Array) -> None:
        visible = machine.visible
        columns: list[int] = []
        is_bounded: list[bool] = []
        slopes, linear = [], []
        self.mean_sent = np.zeros(len(slope))
        for i in range(visible.n_units):
            (place, *others), layer = visible.unit_columns(i).tolist(), visible.take(i)
            if others or visible.unit_values(i) is not None:
                continue
            weights = machine.weights[[place]]
            s, shares, states = _reference_nodes(layer)
            # Signals are affine in the states.
            origin = shares @ layer.signal(states) @ weights
            sent = (shares * s) @ layer.signal(states) @ weights
            self.mean_sent += slope * origin
            is_bounded.append(bool(np.isfinite(layer.column_bounds).all()))
            columns.append(place)
            linear.append((shares * s) @ -layer.energy(states) + sent @ share)
            slopes.append(sent * slope)
        self.columns, self.linear = np.array(columns, np.intp), np.array(linear)
        self.is_bounded = np.array(is_bounded, dtype=bool)
        self.slope = np.reshape(slopes, (-1, len(slope)))  # (n_numbers, n_hidden)

    @property
    def largest_sent(self) -> Array:
        """Bound of what all numbers send to each hidden unit, but for one part in 1e18."""
        reach = np.where(self.is_bounded, SPAN / 2, NORMAL_REACH)
        return np.asarray(reach @ np.abs(self.slope))

    def transforms(self, t: Array, j: int) -> tuple[Array, Array]:
        """Means of exp(i t u) and of s exp(i t u), where u is sent to hidden unit j: (n_numbers, n_t).

        The second is divided by the first.
        """
        y = self.slope[:, j, None] * t
        mean, ratio = np.exp(-(y**2) / 2), y.copy()
        a = SPAN / 2 * y[self.is_bounded]
        sinc = np.sinc(a / np.pi)
        sinc[sinc == 0] = np.finfo(float).tiny
        is_small = np.abs(a) < SMALL_PHASE
        far = np.where(is_small, 1, a)
        # Minus the derivative of sin(a) / a.
        slope = np.where(is_small, a / 3 - a**3 / 30, (np.sin(far) / far - np.cos(far)) / far)
        mean[self.is_bounded], ratio[self.is_bounded] = sinc, SPAN / 2 * slope / sinc
        return mean, 1j * ratio


def _reference_nodes(layer: Units) -> tuple[Array, Array, Array]:
    """Nodes s of the distribution that a number is averaged over, their shares, and its states there."""
    (low,), (high,) = layer.column_bounds
    if np.isfinite(high - low):
        s, weights = leggauss(N_OWN_NODES)
        s, states = s * SPAN / 2, (low + high) / 2 + (high - low) / 2 * s
    else:
        s, weights = hermegauss(N_OWN_NODES)
        states = s
    return s, weights / weights.sum(), states[:, None]


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
            number_means, number_ratios = senders.numbers.transforms(t, j)
            total *= np.prod(number_means, axis=0)
            # A ratio to the mean takes the unit itself out of the product over all.
            ratios = np.empty((len(sums[0]), len(t)), dtype=complex)
            ratios[senders.value_columns] = (waves / means[senders.unit] - 1)[senders.columns]
            ratios[senders.numbers.columns] = number_ratios
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
    if len(senders.numbers.columns):
        raise ValueError(
            "Couplings of real values are computed exactly, got the method 'gaussian' for them."
        )
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
