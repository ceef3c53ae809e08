"""Learning: fit, partial_fit and what they carry on."""

from __future__ import annotations

import time
from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context

from skrbm.core.likelihood import monitor
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.initialization import (
    balanced,
    column_statistics,
    initial_machine,
    initial_particles,
)
from skrbm.core.training.loop import Trainer, TrainingState
from skrbm.core.training.negative_phase import ALGORITHMS
from skrbm.core.training.optimizer import SGD
from skrbm.estimators.arrays import ModelArrays
from skrbm.estimators.validation import (
    check_parameter,
    check_width,
    floating_type,
    restored_on_error,
    warn_user,
)

SMALL = 2**12  # number of weights


class Learner(ModelArrays):
    """Estimator that learns its arrays from data, all at once or in a stream."""

    n_components: int
    learning_rate: float
    batch_size: int
    n_iter: int
    algorithm: str
    n_gibbs_steps: int
    n_particles: int | None
    centering: bool
    shuffle: bool
    verbose: int
    _offsets: tuple[Any, Any]

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to data, from a new start.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data; integers, booleans and memory maps are cast one mini-batch at a time.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : object
            Fitted estimator. After an interrupt (with a warning) or a divergence it keeps the
            last good parameters.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the estimator is then left as it was.
        DivergenceError
            If the parameters do not stay finite.
        """
        with restored_on_error(self):
            X = self._check_X(X, reset=True)
            machine, state = self._start(X)
            self._train(machine, state, X, self.n_iter, watch=True)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Make one pass over some rows, going on from the present parameters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Any number of rows; they are visited in mini-batches of `batch_size`. Their pass is
            watched, and recorded in `history_`, only if `verbose`.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : object
            Estimator with chains, random stream and parameters moved on.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the estimator is then left as it was.
        DivergenceError
            If the parameters do not stay finite.
        """
        with restored_on_error(self):
            if self.__sklearn_is_fitted__():
                X = self._check_X(X, reset=not hasattr(self, "n_features_in_"))
                machine, state = self._resume(X)
            else:
                X = self._check_X(X, reset=True)
                machine, state = self._start(X)
            self._train(machine, state, X, 1, watch=False)
        return self

    def _start(self, X: Any) -> tuple[Machine, TrainingState]:
        """Machine that resembles the data's statistics, new chains and streams."""
        self._open_streams()
        mean, variance = column_statistics(X)
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
        hidden = self._hidden_type(np.zeros(self.n_components))
        machine = balanced(initial_machine(visible, hidden, self._rng), mean)
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
        self.n_iter_, self.history_, self._offsets = 0, _empty_history(), (None, None)
        self._n_components = self.n_components
        n_particles = self.n_particles or self.batch_size
        return machine, TrainingState(initial_particles(machine, n_particles, self._rng))

    def _resume(self, X: Any) -> tuple[Machine, TrainingState]:
        """Machine that the public arrays are, with its chains and streams."""
        varying = getattr(self, "_varying", True)
        if np.size(varying) not in (1, X.shape[1]):
            varying = True
        if self._visible_type.states is None:  # what was constant at first may vary now
            varying = varying | (X.max(axis=0) > X.min(axis=0))
        machine = self._machine(varying=varying)
        check_width(X, machine.visible.n_units, self)
        n_hidden = machine.hidden.n_units
        if self.n_components not in (n_hidden, getattr(self, "_n_components", self.n_components)):
            raise ValueError(
                f"n_components={self.n_components} was changed since fit, but components_ has "
                f"{n_hidden} rows. Call fit to start anew, or set n_components={n_hidden} to go on."
            )
        if not hasattr(self, "_rng"):
            self._open_streams()
        if not hasattr(self, "_offsets"):
            self.n_iter_, self.history_, self._offsets = 0, _empty_history(), (None, None)
        self._n_components, self._varying = self.n_components, varying
        self.history_ = {name: list(column) for name, column in self.history_.items()}
        offsets = self._offsets
        if tuple(map(np.size, offsets)) != machine.weights.shape:
            offsets = (None, None)
        return machine, TrainingState(self._present_particles(machine), *offsets)

    def _present_particles(self, machine: Machine) -> Array:
        """Chains as they are; new ones where `n_particles` asks for more or the width changed."""
        n_hidden = machine.hidden.n_units
        if np.shape(getattr(self, "h_samples_", ()))[1:] == (n_hidden,):
            particles = check_parameter(self, "h_samples_", 2).astype(machine.weights.dtype)
            n_particles = self.n_particles or len(particles)
        else:
            particles = np.empty((0, n_hidden), dtype=machine.weights.dtype)
            n_particles = self.n_particles or self.batch_size
        n_missing = max(n_particles - len(particles), 0)
        more = initial_particles(machine, n_missing, self._rng)
        return np.concatenate([particles[:n_particles], more])

    def _train(
        self, machine: Machine, state: TrainingState, X: Any, n_iter: int, *, watch: bool
    ) -> None:
        """Train a copy of the machine, and make it public whatever stops the training."""
        dtype = check_parameter(self, "components_", 2).dtype
        # Small models spend their time outside the products: double precision costs nothing.
        working = np.float64 if machine.weights.size <= SMALL else dtype
        machine = machine.astype(working, copy=True)
        state.particles = state.particles.astype(working)
        trainer = Trainer(
            ALGORITHMS[self.algorithm](n_gibbs_steps=self.n_gibbs_steps),
            SGD(self.learning_rate),
            self.batch_size,
            shuffle=self.shuffle,
            centering=self.centering,
            precision=dtype,
        )
        rng = deepcopy(self._rng)
        begin = time.perf_counter()
        try:
            for _ in trainer.run(machine, state, X, n_iter, rng):
                self.n_iter_ += 1
                if watch or self.verbose:
                    begin = self._report(monitor(machine, X), begin)
        except KeyboardInterrupt:
            warn_user("Training interrupted by user.", UserWarning)
        finally:
            self._publish(machine.astype(dtype))
            self.h_samples_, self._rng = state.particles.astype(dtype, copy=False), rng
            self._offsets = (state.visible_offset, state.hidden_offset)

    def _report(self, score: float, begin: float) -> float:
        """Add a pass to the history, print its line, and return the time at its end."""
        end = time.perf_counter()
        self.history_["pseudo_likelihood"].append(score)
        self.history_["time"].append(end - begin)
        if self.verbose:
            print(
                f"[{type(self).__name__}] Iteration {self.n_iter_}, "
                f"pseudo-likelihood = {score:.2f}, time = {end - begin:.2f}s",
                flush=True,
            )
        return end


def _empty_history() -> dict[str, list[float]]:
    return {"pseudo_likelihood": [], "time": []}
