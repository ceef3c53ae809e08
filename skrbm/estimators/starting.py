"""Where training starts, and where it goes on."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from typing import Any

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.initialization import (
    column_statistics,
    initial_machine,
    initial_particles,
    merged_statistics,
)
from skrbm.estimators.arrays import ModelArrays
from skrbm.estimators.validation import check_parameter, check_width, floating_type, warn_user
from skrbm.estimators.watch import empty_history

CHAINS = ("h_samples_", "_replicas", "_betas")

Carried = dict[str, Any]  # of the training state, but for the particles


class Starter(ModelArrays):
    """Estimator whose training starts from data's statistics or from its own arrays."""

    n_components: int
    n_particles: int | None
    average: bool
    _carried: Carried

    def _prepare(self, X: Any, *, goes_on: bool) -> tuple[Any, Machine, Carried]:
        """Checked data with the machine to train, and what its training carries on."""
        if goes_on and self.__sklearn_is_fitted__():
            X = self._check_X(X, reset=not hasattr(self, "n_features_in_"))
            return X, *self._resume(X)
        X = self._check_X(X, reset=True)
        return X, self._start(X), {}

    def _start(self, X: Any) -> Machine:
        """Machine that resembles the data's statistics, new chains and streams."""
        self._open_streams()
        mean, variance = column_statistics(X)
        self._statistics = self._first_statistics = (X.shape[0], mean, variance)
        self._varying = (variance > 0) | (X.shape[0] == 1)
        if self._visible_type.states is None and not self._varying.all():
            warn_user(
                f"Features {np.flatnonzero(~self._varying)[:10].tolist()} of X are constant; their "
                f"noise_variance_ stays at 1. Drop them, for example with "
                f"sklearn.feature_selection.VarianceThreshold.",
                UserWarning,
            )
        options = self._unit_options(self._varying)
        visible = self._visible_type.start(mean, variance, X.shape[0], **options)
        machine = initial_machine(
            visible, self._hidden_type, self.n_components, mean, variance, self._rng
        )
        dtype = floating_type(X, np.float64)
        with np.errstate(over="ignore", under="ignore"):
            self._publish(machine.astype(dtype))
        try:
            self._machine()
        except ValueError as error:
            raise ValueError(
                f"The statistics of X are beyond the range of {dtype}: {error} Rescale X, for "
                f"example with sklearn.preprocessing.StandardScaler."
            ) from error
        self.n_iter_, self.history_ = 0, empty_history()
        self._n_components = self.n_components
        for name in CHAINS:
            self.__dict__.pop(name, None)
        return machine

    def _resume(self, X: Any) -> tuple[Machine, Carried]:
        """Machine that the public arrays are, with its chains and streams."""
        statistics = (X.shape[0], *column_statistics(X))
        varying = getattr(self, "_varying", True)
        is_known = np.size(varying) in (1, X.shape[1])
        varying = not is_known or varying | (statistics[2] > 0)  # what was constant may vary now
        machine = self._machine(varying=varying)
        check_width(X, machine.visible.n_units, self)
        n_hidden = machine.hidden.n_units
        if self.n_components not in (n_hidden, getattr(self, "_n_components", self.n_components)):
            raise ValueError(
                f"n_components={self.n_components} was changed since fit, but components_ has "
                f"{n_hidden} rows. Call fit to start anew, or set n_components={n_hidden} to go on."
            )
        self._ensure_streams()
        if not hasattr(self, "_carried"):
            self.n_iter_, self.history_, self._carried = 0, empty_history(), {}
        self._n_components, self._varying = self.n_components, varying
        before = getattr(self, "_statistics", None)
        if before is not None and len(before[1]) == X.shape[1]:
            self._statistics = merged_statistics(before, statistics)
        else:
            self._statistics = self._first_statistics = statistics
        self.history_ = {name: list(column) for name, column in self.history_.items()}
        return self._raw(machine)

    def _raw(self, machine: Machine) -> tuple[Machine, Carried]:
        """Machine behind the public average, and what its training carries on.

        Arrays that were edited since are what training goes on from, without the momentum and
        the average that led to others.
        """
        carried = dict(self._carried)
        raw, published = carried.pop("raw", None), carried.pop("published", None)
        carried = deepcopy(carried)
        public = {name: getattr(self, name) for name in ("components_", *self._layer_arrays)}
        if published != fingerprint(public):
            carried |= {"memory": {}, "average": None}
            offsets: Any = carried.get("visible_offset"), carried.get("hidden_offset")
            if tuple(map(np.size, offsets)) != machine.weights.shape:
                carried["visible_offset"] = carried["hidden_offset"] = None
        elif self.average and raw is not None and raw.keys() == machine.parameters.keys():
            machine = machine.astype(raw["weights"].dtype, copy=True)
            machine.assign(raw)
        else:  # average or learn_variance were changed
            carried["average"] = None
        return machine, carried

    def _particles(self, machine: Machine, n_chains: int, batch_rows: int) -> Array:
        """Chains as they are; new ones where more are asked for or the width changed."""
        n_hidden = machine.hidden.n_units
        old = np.empty((0, n_hidden), dtype=machine.dtype)
        if np.shape(getattr(self, "h_samples_", ()))[1:] == (n_hidden,):
            old = check_parameter(self, "h_samples_", 2).astype(machine.dtype)
        n_particles = self.n_particles or len(old) or batch_rows
        base = self._base_layer(self._statistics)
        n_missing = max(n_particles - len(old), 0)
        more = initial_particles(machine, base, n_missing, self._rng)
        n_replicas = (n_chains - 1) * n_particles
        replicas = getattr(self, "_replicas", old[:0])
        if replicas.shape != (n_replicas, n_hidden):
            replicas = initial_particles(machine, base, n_replicas, self._rng)
        return np.concatenate([old[:n_particles], more, replicas])


def fingerprint(arrays: dict[str, Array]) -> bytes:
    """Digest of arrays by which edited ones are told from those that training left."""
    digest = hashlib.blake2b(digest_size=16)
    for array in map(np.asarray, arrays.values()):
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array.T).data)
    return digest.digest()
