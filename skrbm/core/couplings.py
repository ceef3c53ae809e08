"""Effective fields and interactions of the visible units, marginalized over the hidden units."""

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
LAST_FREQUENCY = 26.0  # 1 / sinh(pi t / 2) is below 1e-17 for larger t
SATURATION = 20.0  # log(2 cosh x) equals |x| to 1e-17 for |x| above this
NORMAL_RULE = hermegauss(64)  # nodes and weights of the average over a normal variable
SPAN = 2 * np.sqrt(3.0)  # range of a uniform variable, in standard deviations
NORMAL_BOUND = 9.0  # standard deviations; a normal variable exceeds it with probability 1e-19
N_UNIFORM_NODES = 16  # for the average of the energy, a polynomial of at most second order
N_NORMAL_NODES = 1025  # many, since the energies of mixtures are not polynomials
SMALL_PHASE = 1e-2  # the series is used below this; its remainder is at most a^5 / 840 = 1e-13
N_BLOCK_FREQUENCIES = 2**10  # frequencies at a time; their arrays fit the cache


@final
@dataclass(frozen=True, eq=False)
class EffectiveCouplings:
    r"""Effective fields and interactions of visible units, marginalized over the hidden units.

    .. math::

        \log p(v) = \mathrm{const} + \sum_i f_i s_i + \sum_{i < j} J_{ij} s_i s_j
        + \sum_{i < j < k} K_{ijk} s_i s_j s_k + \dots

    where the sums are over columns. For a two-state unit, :math:`s` is -1 in the lower state and +1
    in the higher state. For a categorical unit, :math:`s` is 0 or 1 in each column, and the
    coefficients sum to zero over the columns. For a real-valued unit, :math:`s` is the value of the
    unit, standardized to mean zero and variance one under a reference distribution. This
    distribution is uniform if the unit has two bounds, and standard normal otherwise. Terms of
    second or higher order in the value of a real-valued unit are omitted.

    Parameters
    ----------
    fields : ndarray of shape (n_columns,)
        Fields, in nats.
    pairs : ndarray of shape (n_columns, n_columns)
        Pair interactions, in nats. The matrix is symmetric. Its entries for two columns of the same
        unit are zero.
    triples : ndarray of shape (n_columns, n_columns, n_columns) or None
        Triple interactions, in nats. The array is symmetric. Its entries are zero if two of the
        columns belong to the same unit. If the order is 2, it is None.
    method : {"exact", "gaussian"}
        Method by which `effective_couplings` computed the coefficients.
    feature_of_column : ndarray of shape (n_columns,)
        Index of the feature to which each column belongs; each feature is one unit.
    features : ndarray of shape (n_features,)
        Names of the features, or their indices.
    columns : ndarray of shape (n_columns,)
        Names of the columns, such as "port=Southampton", or their indices.
    has_two_states : ndarray of bool of shape (n_columns,), default=None
        Mask of the columns that are all of a feature with two states. If None, there are none.
    """

    fields: Array
    pairs: Array
    triples: Array | None
    method: str
    feature_of_column: Array
    features: Array
    columns: Array
    has_two_states: Array | None = None

    @property
    def strengths(self) -> Array:
        r"""Root mean square of the interactions between each pair of features, in nats.

        The matrix has shape (n_features, n_features) and a zero diagonal. The mean is over all
        pairs of a column of one feature and a column of the other feature. For two units with one
        column each (two states or real values), the result is :math:`|J_{ij}|`. For categorical
        units with :math:`q_i` and :math:`q_j` values, it is

        .. math:: \sqrt{\frac{1}{q_i q_j} \sum_{a, b} J_{ij}(a, b)^2}

        where :math:`J_{ij}(a, b)` is the interaction between value a of unit i and value b of
        unit j.
        """
        counts = np.bincount(self.feature_of_column, minlength=len(self.features))
        return self.norms() / np.sqrt(np.maximum(np.outer(counts, counts), 1))

    def norms(self, included: Array | None = None) -> Array:
        r"""Compute Frobenius norms of the interactions between pairs of features.

        Parameters
        ----------
        included : ndarray of bool of shape (n_columns,), default=None
            Mask of the columns to sum over. If None, all columns are included.

        Returns
        -------
        norms : ndarray of shape (n_features, n_features)
            Symmetric matrix of norms, in nats, with a zero diagonal.

        Raises
        ------
        ValueError
            If `included` is not boolean or has a wrong shape.
        """
        belongs = self.feature_of_column[:, None] == np.arange(len(self.features))
        if included is not None:
            mask, shape = np.asarray(included), self.feature_of_column.shape
            if mask.dtype != bool or mask.shape != shape:
                raise ValueError(
                    f"included expected to be boolean and of shape {shape}, True for columns to "
                    f"sum over, got {mask.dtype} of shape {mask.shape}."
                )
            belongs = belongs & mask[:, None]
        squares = belongs.T @ self.pairs**2 @ belongs
        return np.sqrt((squares + squares.T) / 2)  # symmetric to the bit

    def between(self, feature: Any, other: Any) -> Array:
        """Return the pair interactions between the columns of two features.

        Parameters
        ----------
        feature, other : object
            Names of the features, as in `features`.

        Returns
        -------
        pairs : ndarray of shape (n_columns_of_feature, n_columns_of_other)
            Pair interactions in nats. The columns of each feature are in the order of `columns`.

        Raises
        ------
        ValueError
            If one of the names is not the name of a feature.
        """
        rows, columns = self._columns_of(feature), self._columns_of(other)
        return self.pairs[np.ix_(rows, columns)]

    def _columns_of(self, feature: Any) -> Array:
        names = self.features.tolist()
        if feature not in names:
            raise ValueError(f"Expected the name of a feature, one of {names}, got {feature!r}.")
        return np.flatnonzero(self.feature_of_column == names.index(feature))


def effective_couplings(
    machine: Machine, order: int = 2, method: str = "auto"
) -> EffectiveCouplings:
    r"""Fields and interactions of the visible units up to a given order, in the zero-sum gauge.

    The coefficients are defined by averages over the states of the visible units. In these
    averages, the units are independent. They are uniformly distributed [1]_ or, if they are
    real-valued without two bounds, standard normal. A hidden unit with the bias b and the states -1
    and +1 contributes :math:`\log 2 \cosh(b + \sum_k u_k)` to the log-probability, where
    :math:`u_k` is the input from visible unit k. If this term is written as a Fourier integral over
    the frequency t, the average (in angle brackets) factorizes over the units:

    .. math::

        J_{ij} = -\frac{1}{2} \int \frac{\mathrm{Re} \left( e^{i t b} D_i(t) D_j(t)
        \prod_{k \ne i, j} \langle e^{i t u_k} \rangle \right)}{t \sinh(\pi t / 2)} \, dt,
        \qquad D_i = e^{i t u_i} - \langle e^{i t u_i} \rangle

    Outside of the brackets, :math:`u_i` is the input from the higher state of a two-state unit, or
    from the category to which the coefficient belongs. For a real-valued unit with the standardized
    value :math:`s_i`, :math:`D_i` is replaced by :math:`\langle s_i e^{i t u_i} \rangle`.

    The integrals are summed over the hidden units. They are computed by the midpoint rule, whose
    error is of the order of the rounding errors. The number of nodes for a hidden unit grows
    linearly with an upper bound on the magnitude of its total input, including the bias. It does
    not depend on the number of states of the visible layer.

    Parameters
    ----------
    machine : Machine
        Machine with two-state, one-hot or real-valued visible units. If a hidden unit does not have
        two states in one column, "gaussian" is the only available method. It is exact for hidden
        units that are normal given the visible units, since their log-partition is quadratic.
    order : {2, 3}, default=2
        Largest number of interacting units.
    method : {"auto", "exact", "gaussian"}, default="auto"
        "exact" computes the integrals. "gaussian" approximates the sum of the inputs from all
        visible units except the interacting ones by a normal variable; it does not support
        real-valued visible units. "auto" uses "exact" if each hidden unit has two states in one
        column, and "gaussian" otherwise.

    Returns
    -------
    couplings : EffectiveCouplings
        Couplings in double precision.

    Raises
    ------
    ValueError
        If a visible unit has neither two states in one column, nor one-hot columns, nor real values
        in one column. If `method` is "exact" and a hidden unit does not have two states in one
        column. If a visible unit is real-valued, and either `method` is "gaussian" or a hidden unit
        does not have two states in one column.

    References
    ----------
    .. [1] Decelle, Furtlehner, Navas Gómez, Seoane (2024), "Inferring effective couplings with
       restricted Boltzmann machines", SciPost Physics 16, 095.
       :doi:`10.21468/SciPostPhys.16.4.095`
    """
    machine = machine.astype(np.float64)
    signals = _VisibleSignals(machine)
    if method == "auto":  # "gaussian" takes 5 to 100 times as long for common weights
        method = "exact" if signals.has_two_states else "gaussian"
    if not signals.has_two_states and (method == "exact" or len(signals.reals.columns)):
        advice = " Use the method 'gaussian', which is exact for hidden units that are normal."
        raise ValueError(
            f"Exact couplings, and couplings of real values, need hidden units that have two "
            f"states, got {machine.hidden.type_name} units."
            f"{advice if machine.visible.is_discrete else ''}"
        )
    add = {"exact": _integrate, "gaussian": _average_normal}[method]
    unit = machine.visible.by_column(np.arange(machine.visible.n_units))
    sums = [np.zeros(unit.shape * n) for n in range(1, order + 1)]
    add(signals, sums)
    sums[0][signals.value_columns] += signals.linear
    sums[0][signals.reals.columns] += signals.reals.linear
    is_same = unit[:, None] == unit
    sums[1][is_same] = 0
    if order > 2:
        sums[2][is_same[:, :, None] | is_same[:, None, :] | is_same] = 0
    triples = sums[2] if order > 2 else None
    indices = np.arange(machine.visible.n_units), np.arange(len(unit))
    values = map(machine.visible.unit_values, range(machine.visible.n_units))
    of_unit = np.array([v is not None and v.shape == (2, 1) for v in values])
    return EffectiveCouplings(sums[0], sums[1], triples, method, unit, *indices, of_unit[unit])


@final
class _VisibleSignals:
    """Inputs to the hidden units from the visible units, for each value of a discrete unit.

    The values of all discrete units are concatenated; `unit` contains, for each value, the index of
    its unit among the discrete units. `sent`, of shape (n_values, n_hidden), contains the inputs
    from each value. Let x be `bias` plus the sum of the inputs from all units. The hidden units
    contribute two terms to log p: ``log_partition(x)`` and a term that is linear in the inputs. For
    two-state hidden units, ``log_partition(x)`` is the sum of log 2cosh x over the hidden units.
    For other hidden units, the linear term is zero.

    `columns` contains the indices of the values that have a column in the layer: all values of a
    categorical unit, and the higher value of a two-state unit. For each of these values,
    `value_columns` contains its column in the layer, and `linear` contains the linear term minus
    the energy. The average of this difference over all values of the unit is subtracted from it.
    `reals` contains the inputs from the real-valued units.
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
        reals: list[int] = []
        sent, energies = [np.zeros((0, len(slope)))], [np.zeros(0)]
        for i in range(visible.n_units):
            values, layer, places = visible.unit_values(i), visible.take(i), visible.unit_columns(i)
            width = len(places)
            if values is None and width == 1:
                reals.append(i)
                continue
            if values is None or values.shape not in {(2, 1), (width, width)}:
                raise ValueError(
                    f"Couplings need visible units that have two states, one-hot columns or real "
                    f"values, got unit {i} of {type(visible).__name__} units."
                )
            unit += [i] * len(values)
            columns += range(len(unit) - width, len(unit))  # of two states, the higher one
            value_columns += places.tolist()
            sent.append(layer.signal(values) @ machine.weights[places])
            energies.append(layer.energy(values))
        _, self.unit = np.unique(np.array(unit, np.intp), return_inverse=True)
        self.columns = np.array(columns, np.intp)
        self.value_columns = np.array(value_columns, np.intp)
        self.first = np.flatnonzero(np.diff(self.unit, prepend=-1))
        self.reals = _RealSignals(machine, reals, slope, share)
        self.bias = bias + self.reals.mean_sent
        raw = np.concatenate(sent)
        linear = raw @ share - np.concatenate(energies)
        self.linear = (linear - self.mean(linear)[self.unit])[self.columns]
        self.sent = raw * slope  # (n_values, n_hidden)

    def mean(self, values: Array) -> Array:
        """Unweighted average over the values of each unit, along the first axis."""
        counts = np.bincount(self.unit).reshape(-1, *[1] * (values.ndim - 1))
        return np.add.reduceat(values, self.first, axis=0) / counts

    @property
    def n_nodes(self) -> Array:
        """Number of frequencies at which each hidden unit's integrand is evaluated, (n_hidden,)."""
        largest = np.maximum.reduceat(np.abs(self.sent), self.first, axis=0).sum(axis=0)
        period = largest + self.reals.largest_sent + np.abs(self.bias) + SATURATION
        return np.asarray(np.ceil(LAST_FREQUENCY * period / (2 * np.pi)), dtype=int)


@final
class _RealSignals:
    """Inputs that the real-valued visible units send to the hidden units.

    Let s be the standardized value of a unit, which has a uniform distribution if the unit has two
    bounds and a normal distribution otherwise. The input from the unit to a hidden unit is `slope`
    times s plus a constant; `mean_sent` is the sum of these constants over the units. The other
    terms of log p are minus the energy of the unit and the linear terms of the hidden units.
    `linear` is the coefficient of s in these terms, computed as the average of s times the terms.
    `columns` contains the column of each unit in the layer; `units` contains the units' indices.
    """

    def __init__(self, machine: Machine, units: list[int], slope: Array, share: Array) -> None:
        visible, slopes, linear = machine.visible, [], []
        self.columns = np.array([visible.unit_columns(i)[0] for i in units], np.intp)
        low, high = visible.column_bounds
        self.is_bounded = np.isfinite(high - low)[self.columns]
        self.mean_sent = np.zeros(len(slope))
        for i, weights in zip(units, machine.weights[self.columns, None], strict=True):
            layer = visible.take(i)
            s, shares, states = _reference_nodes(layer)
            signal = layer.signal(states)  # affine in the states
            sent = (shares * s) @ signal @ weights
            self.mean_sent += slope * (shares @ signal @ weights)
            linear.append((shares * s) @ -layer.energy(states) + sent @ share)
            slopes.append(sent * slope)
        self.linear = np.array(linear)
        self.slope = np.reshape(slopes, (-1, len(slope)))  # (n_reals, n_hidden)

    @property
    def largest_sent(self) -> Array:
        """Bound on the absolute deviation of each hidden unit's input from `mean_sent`.

        The input is the sum over the real-valued units. The bound is exceeded with a probability
        below 1e-18. The result has shape (n_hidden,).
        """
        largest = np.where(self.is_bounded, SPAN / 2, NORMAL_BOUND)
        return largest @ np.abs(self.slope)

    def transforms(self, t: Array, j: int) -> tuple[Array, Array]:
        """Means of exp(i t u), and ratios of the means of s exp(i t u) and exp(i t u).

        `t`, of shape (n_t,), contains frequencies. s is the standardized value of a real-valued
        unit, and u is its input to hidden unit j, minus the mean input. Both results have shape
        (n_reals, n_t).
        """
        y = self.slope[:, j, None] * t
        mean, ratio = np.exp(-(y**2) / 2), y.copy()
        a = SPAN / 2 * y[self.is_bounded]
        sinc = np.sinc(a / np.pi)
        sinc[sinc == 0] = np.finfo(float).tiny
        is_small = np.abs(a) < SMALL_PHASE
        far = np.where(is_small, 1, a)
        # Minus the derivative of sinc(a) = sin(a) / a.
        slope = np.where(is_small, a / 3 - a**3 / 30, (np.sin(far) / far - np.cos(far)) / far)
        mean[self.is_bounded], ratio[self.is_bounded] = sinc, SPAN / 2 * slope / sinc
        return mean, 1j * ratio


def _reference_nodes(layer: Units) -> tuple[Array, Array, Array]:
    """Quadrature nodes of a unit's standardized value, their weights, and the states at the nodes.

    The arrays have the shapes (n_nodes,), (n_nodes,) and (n_nodes, 1).
    """
    (low,), (high,) = layer.column_bounds
    if np.isfinite(high - low):
        s, weights = leggauss(N_UNIFORM_NODES)
        s, states = s * SPAN / 2, (low + high) / 2 + (high - low) / 2 * s
    else:
        states = s = np.linspace(-NORMAL_BOUND, NORMAL_BOUND, N_NORMAL_NODES)
        weights = np.exp(-(s**2) / 2)
    return s, weights / weights.sum(), states[:, None]


def _two_state_form(hidden: Units) -> tuple[Array, Array, Array] | None:
    """Coefficients of log-partitions of the form log 2cosh(slope x + bias) + share x + constant.

    The field is x. The result contains `slope`, `bias` and `share`, each of shape (n_units,). The
    result is None if any unit does not have two states in a single column.
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


def _integrate(signals: _VisibleSignals, sums: list[Array]) -> None:
    """Add the integrals over the frequencies, for all hidden units, to `sums` in place.

    `sums` contains the fields, the pairs and, if the order is 3, the triples.
    """
    for j, n_nodes in enumerate(signals.n_nodes):
        step = LAST_FREQUENCY / n_nodes
        for begin in range(0, n_nodes, N_BLOCK_FREQUENCIES):
            # Midpoints avoid t = 0, where the integrand is 0 / 0.
            t = step * (np.arange(begin, min(begin + N_BLOCK_FREQUENCIES, n_nodes)) + 0.5)
            waves = np.exp(1j * signals.sent[:, j, None] * t)
            means = signals.mean(waves)
            means[means == 0] = np.finfo(float).tiny
            total = np.exp(1j * signals.bias[j] * t) * np.prod(means, axis=0)
            total *= -step / (t * np.sinh(np.pi / 2 * t))
            real_means, real_ratios = signals.reals.transforms(t, j)
            total *= np.prod(real_means, axis=0)
            # Dividing by a unit's mean removes its factor from the product over all units.
            ratios = np.empty((len(sums[0]), len(t)), dtype=complex)
            ratios[signals.value_columns] = (waves / means[signals.unit] - 1)[signals.columns]
            ratios[signals.reals.columns] = real_ratios
            first = total * ratios
            sums[0] += first.real.sum(axis=1)
            sums[1] += _real_product(first, ratios)
            for i, row in enumerate(ratios if len(sums) > 2 else ()):
                sums[2][i] += _real_product(row * first, ratios)


def _real_product(a: Array, b: Array) -> Array:
    """Real part of a @ b.T."""
    return a.real @ b.real.T - a.imag @ b.imag.T


def _average_normal(signals: _VisibleSignals, sums: list[Array]) -> None:
    """Write the coefficients to `sums` in place, with a normal approximation of the inputs.

    For each set of interacting units, the sum of the inputs from all other visible units is
    approximated by a normal variable with the same mean and variance.
    """
    if len(signals.reals.columns):
        raise ValueError(
            "Couplings of real values are computed exactly, got the method 'gaussian' for them."
        )
    mean = signals.mean(signals.sent)
    deviation = signals.sent - mean[signals.unit]
    variance = signals.mean(deviation**2)
    bias = signals.bias + mean.sum(axis=0)
    unit = signals.unit[signals.columns]
    for n_others, total in enumerate(sums):
        for others in permutations(range(len(mean)), n_others):
            rest = variance.sum(axis=0) - variance[list(others)].sum(axis=0) - variance
            spread = np.sqrt(np.maximum(rest, 0))[signals.unit]
            values = [np.flatnonzero(signals.unit == other) for other in others]
            averages = np.empty((*map(len, values), len(signals.unit)))
            for index in np.ndindex(averages.shape[:-1]):
                chosen = [of_unit[k] for of_unit, k in zip(values, index, strict=True)]
                shift = bias + deviation[chosen].sum(axis=0)
                averages[index] = _normal_average(signals, shift + deviation, spread)
            for axis in range(n_others):
                averages -= averages.mean(axis=axis, keepdims=True)
            averages -= signals.mean(averages.T)[signals.unit].T
            # A two-state unit has one column, for its higher state.
            kept = [np.isin(of_unit, signals.columns) for of_unit in values]
            kept.append(np.isin(np.arange(len(signals.unit)), signals.columns))
            places = [np.flatnonzero(unit == other) for other in others]
            total[np.ix_(*places, np.arange(len(unit)))] = averages[np.ix_(*kept)]


def _normal_average(signals: _VisibleSignals, mean: Array, spread: Array) -> Array:
    """Average of log_partition(mean + spread z) over a standard normal variable z."""
    nodes, weights = NORMAL_RULE
    averages = [signals.log_partition(mean + node * spread) for node in nodes]
    return weights @ averages / weights.sum()
