"""What training begins from: a new machine, or the one that an estimator is."""

from __future__ import annotations

from copy import deepcopy
from functools import cached_property
from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.parallel import one_blas_thread
from skrbm.core.training.negative_phase import NegativePhase
from skrbm.core.training.parts.penalties import Penalties
from skrbm.core.training.start.clusters import find_modes
from skrbm.core.training.start.initialization import (
    initial_machine,
    initial_particles,
    resting_layer,
)
from skrbm.core.training.start.pretraining import (
    likeliest_means,
    log_likelihood,
    pretrained_machine,
    widened,
)
from skrbm.core.training.start.statistics import column_kurtosis, merged_statistics
from skrbm.core.units import Units
from skrbm.estimators.fitting.history import empty_history
from skrbm.estimators.fitting.resume import Plan, check_plan
from skrbm.estimators.inference.model import Model, Statistics, fingerprint
from skrbm.estimators.input.rows import row_statistics, split_rows
from skrbm.estimators.input.validation import (
    check_parameter,
    check_width,
    floating_type,
    parameter_shape,
    warn_user,
)

FEW_ROWS = 20  # tell a feature's variance within a factor of two
ROW_STATISTICS = "_statistics", "_first_statistics", "_varying", "_kurtosis", "_least_kurtosis"
CHAINS = "h_samples_", "_replicas", "_betas"

Carried = dict[str, Any]  # plain data, which every format of pickles can hold


@final
class Beginning:
    """Machine from which training begins.

    Parameters
    ----------
    model : Model
        Of the estimator, whose statistics, streams and history are opened or continued.
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Rows to learn from.
    sample_weight : ndarray of shape (n_samples,) or None
        Their weights.
    scores : tuple of str
        Columns of a new history.
    resumes : bool
        Whether to go on from the public arrays.
    plan : dict or None
        Of a fit that was under way, which goes on as if it had never stopped.
    holds_out : bool
        Whether some rows are not learned from.
    candidates : ndarray of shape (n_candidates,) or None
        Numbers of the rows that these are chosen from; None for all.

    Attributes
    ----------
    machine : Machine
        Plain.
    carried : dict
        What training goes on with beside the machine.
    before : dict
        Statistics without these rows, to go back to.
    statistics : tuple of float, ndarray and ndarray
        Of these rows.
    rows_of_modes : ndarray of shape (n_samples, n_visible) or None
        Some rows, if they are in modes that lie far apart, for new chains to start from.
    """

    def __init__(
        self,
        model: Model,
        X: Any,
        sample_weight: Array | None,
        scores: tuple[str, ...],
        *,
        resumes: bool,
        plan: Plan | None,
        holds_out: bool,
        candidates: Array | None,
    ) -> None:
        self.model, self.rbm, self.X, self._scores = model, model.rbm, X, scores
        self._holds_out, self._candidates = holds_out, candidates
        self.before: dict[str, Any] = {}
        self.carried: Carried = {}
        self.rows_of_modes: Array | None = None
        statistics = self.statistics = row_statistics(X, sample_weight)
        if plan is not None:
            check_plan(plan, model.owner, statistics)
            machine = model.machine(varying=self.rbm._varying)
            self.machine = machine.astype(plan["parameters"]["weights"].dtype, copy=True)
            self.machine.assign(plan["parameters"])
        elif resumes:
            self.machine, self.carried = self._resume(statistics)
        else:
            self.rbm._model.open_streams()
            self._open_history()
            self.machine = self._start(self._known(statistics))
        if plan is None:
            least = getattr(self.rbm, "_least_kurtosis", 0.0)
            self.rbm._kurtosis = np.maximum(self._kurtosis(sample_weight), least)

    def _start(self, statistics: Statistics) -> Machine:
        """Machine that resembles some statistics, and new chains."""
        rbm, model = self.rbm, self.model
        n_samples, _, variance = rbm._statistics = rbm._first_statistics = statistics
        rbm._varying = (variance > 0) | (n_samples == 1)
        constant = rbm._row_format.constant_features(rbm, rbm._varying)
        if constant:
            warn_user(
                f"Features {constant[:10]} of X are constant; their "
                f"noise_variance_ stays at 1. Drop them, for example with "
                f"sklearn.feature_selection.VarianceThreshold.",
                UserWarning,
            )
        visible = model.base_layer(statistics, rbm._varying)
        machine = self._pretrained(visible, statistics)
        if machine is None:
            hidden = resting_layer(rbm._hidden_type, rbm.n_components)
            machine = initial_machine(visible, hidden, *model.moments(statistics), rbm._rng)
        dtype = floating_type(self.X, np.float64)
        with np.errstate(over="ignore", under="ignore"):
            model.publish(machine.astype(dtype))
        try:
            model.machine()
        except ValueError as error:
            raise ValueError(
                f"The statistics of X are beyond the range of {dtype}: {error} Rescale X, for "
                f"example with sklearn.preprocessing.StandardScaler."
            ) from error
        rbm._n_components = rbm.n_components
        for name in CHAINS:
            vars(rbm).pop(name, None)
        return machine

    def _pretrained(self, visible: Units, statistics: Statistics) -> Machine | None:
        """Machine that has the modes of the rows already, if they are far apart.

        Training does not find these by itself: variances fall before the weights lead to all modes,
        or weights are held back by what they do to the modes' odds.
        """
        rbm, n_hidden = self.rbm, self.rbm.n_components
        n_samples, mean, variance = statistics
        rbm._least_kurtosis = 0.0
        step = _value_step(visible)
        if step is None or "clusters" in rbm._left_out:
            return None
        most, (rows, _), spawned = max(n_hidden, 2), self.split, rbm._rng.spawn(1)[0]
        with one_blas_thread():  # products are small
            modes = find_modes(self.X, rows, mean, variance, step, most, spawned)
            if modes is None:
                return None
            own = self.model.base_layer((n_samples, modes.origin, modes.variance), rbm._varying)
            kind, rng = rbm._hidden_type, rbm._rng
            machine = pretrained_machine(visible, own, kind, modes, n_hidden, variance, rng)
        if machine is None or not self._is_allowed(machine, visible, modes.rows):
            return None
        if "kurtosis" not in rbm._left_out:
            rbm._least_kurtosis = modes.kurtosis(variance)
        self.carried = {"parts": {"jumps": {"modes": likeliest_means(machine)}}}
        self.rows_of_modes = modes.rows
        return widened(machine, n_hidden, mean, variance, rng)

    def _is_allowed(self, machine: Machine, independent: Units, v: Array) -> bool:
        """Whether weights are in their bounds, and worth what they cost."""
        rbm, weights = self.rbm, machine.weights
        if rbm.max_norm is not None and np.linalg.norm(weights, axis=0).max() > rbm.max_norm:
            return False
        cost = Penalties(rbm.l1, rbm.l2).of_weights(machine)
        alone = -independent.energy(v).mean() - independent.log_partition(independent.zero_field(1))
        return bool(log_likelihood(machine, v) - alone[0] >= cost)

    @cached_property
    def split(self) -> tuple[Array | None, Array | None]:
        """Numbers of the rows to learn from and of those held out; None for all, and for none."""
        if not self._holds_out:
            return None, None
        return split_rows(self.rbm, self.X.shape[0], self._candidates)

    def _resume(self, statistics: Statistics) -> tuple[Machine, Carried]:
        """Machine behind the public arrays, and what its training carries on."""
        rbm, model, width = self.rbm, self.model, self.X.shape[1]
        self.before = {name: getattr(rbm, name) for name in ROW_STATISTICS if hasattr(rbm, name)}
        varying = self.before.get("_varying", True)
        is_known = np.size(varying) in (1, width)
        varying = not is_known or varying | (statistics[2] > 0)  # what was constant may vary now
        machine = model.machine(varying=varying)
        n_hidden, n_columns = parameter_shape(rbm, "components_", 2)
        check_width(self.X, n_columns, rbm)
        if rbm.n_components not in (n_hidden, getattr(rbm, "_n_components", rbm.n_components)):
            raise ValueError(
                f"n_components={rbm.n_components} was changed since fit, but components_ has "
                f"{n_hidden} rows. Call fit to start anew, or set n_components={n_hidden} to go on."
            )
        rbm._model.ensure_streams()
        if not hasattr(model.owner, "_carried"):
            self._open_history()
        rbm._n_components, rbm._varying = rbm.n_components, varying
        before = self.before.get("_statistics")
        if before is not None and len(before[1]) == width:
            rbm._statistics = merged_statistics(before, statistics)
        else:
            rbm._statistics = rbm._first_statistics = self._known(statistics)
        carried = model.owner._carried
        is_published = carried.get("published") == fingerprint(model.public)
        is_open = is_published and before is not None and before[0] < FEW_ROWS
        if is_open and machine.visible.bounds(model.moments(rbm._statistics)[1]):
            # the first rows of a stream, which were few, have set a scale that lasts
            return self._start(rbm._statistics), self.carried
        return raw_machine(machine, carried, is_published=is_published, averages=rbm.average)

    def _kurtosis(self, sample_weight: Array | None) -> Array:
        """Tails of the columns, about the mean of all rows so far."""
        n_samples, mean, variance = self.rbm._statistics
        if (
            self.machine.visible.is_signal_fixed or "kurtosis" in self.rbm._left_out
        ):  # no parameter is measured in them
            return np.zeros_like(mean)
        kurtosis = column_kurtosis(self.X, mean, variance, sample_weight)
        share = self.statistics[0] / n_samples
        if share < 1 and "_kurtosis" in self.before:
            ratio = self.before["_statistics"][2] / np.where(variance > 0, variance, np.inf)
            kurtosis = share * kurtosis + (1 - share) * ratio**2 * self.before["_kurtosis"]
        return kurtosis

    def _open_history(self) -> None:
        owner = self.model.owner
        owner.n_iter_, owner.history_, owner._carried = 0, empty_history(*self._scores), {}

    def _known(self, statistics: Statistics) -> Statistics:
        known: Statistics = self.rbm._model.with_known_means(statistics)
        return known


def _value_step(visible: Units) -> float | None:
    """Distance of the values of a column; 0 for numbers of learned variance, None for others.

    Tables are among the others: what looks like a gap are the few values of a column.
    """
    if visible.n_units == visible.n_columns and len(visible.support.values) == 2:
        return visible.support.high - visible.support.low
    steps = visible.metric(None).parameters.get("log_variance", 0)
    return 0.0 if "log_variance" in visible.parameters and np.any(steps) else None


def first_particles(
    model: Model, machine: Machine, phase: NegativePhase, n_batch: int, rows: Array | None
) -> Array:
    """Chains as they are; new ones where more are asked for or the width changed.

    Parameters
    ----------
    model : Model
        Whose estimator has them.
    machine : Machine
        That they sample.
    phase : NegativePhase
        Says how many chains belong to a particle.
    n_batch : int
        Number of particles, if none is set and there are none.
    rows : ndarray of shape (n_samples, n_visible) or None
        Where new ones of the model itself start; None for draws with the data's statistics.

    Returns
    -------
    particles : ndarray of shape (n_chains * n_particles, n_hidden)
        Those of the model itself first.
    """
    rbm, n_hidden = model.rbm, machine.hidden.n_columns
    old = np.empty((0, n_hidden), dtype=machine.dtype)
    if np.shape(getattr(rbm, "h_samples_", ()))[1:] == (n_hidden,):
        old = check_parameter(rbm, "h_samples_", 2).astype(machine.dtype)
    n_particles = rbm.n_particles or len(old) or n_batch
    base = model.base_layer(rbm._statistics)
    n_missing = max(n_particles - len(old), 0)
    if rows is None:
        more = initial_particles(machine, base, n_missing, rbm._rng)
    else:
        more = machine.sample_hidden(rbm._rng.choice(rows, n_missing), rbm._rng)
    n_replicas = (phase.n_chains - 1) * n_particles
    replicas = getattr(rbm, "_replicas", old[:0])
    if replicas.shape != (n_replicas, n_hidden):
        replicas = initial_particles(machine, base, n_replicas, rbm._rng)
    return np.concatenate([old[:n_particles], more, replicas])


def raw_machine(
    machine: Machine, carried: Carried, *, is_published: bool, averages: bool
) -> tuple[Machine, Carried]:
    """Machine behind a public average, and what its training carries on.

    Parameters
    ----------
    machine : Machine
        Of the public arrays.
    carried : dict
        What training left beside them.
    is_published : bool
        Whether they are what training left. Arrays that were edited since are what it goes on
        from, without the momentum and the average that led to others.
    averages : bool
        Whether it goes on to average.

    Returns
    -------
    machine : Machine
        To go on from.
    carried : dict
        A copy, of what goes with that machine.
    """
    carried = dict(carried)
    raw = carried.pop("raw", None)
    carried.pop("published", None)
    carried = deepcopy(carried)
    if not is_published:
        carried["memory"] = {}
        carried.get("parts", {}).pop("average", None)
        carried.get("parts", {}).get("jumps", {}).pop("modes", None)
        offsets: Any = carried.get("visible_offset"), carried.get("hidden_offset")
        if tuple(map(np.size, offsets)) != machine.weights.shape:
            carried["visible_offset"] = carried["hidden_offset"] = None
    elif averages and raw is not None and raw.keys() == machine.parameters.keys():
        machine = machine.astype(raw["weights"].dtype, copy=True)
        machine.assign(raw)
    else:  # average or learn_variance were changed
        carried.get("parts", {}).pop("average", None)
    return machine, carried
