"""Learning: fit, partial_fit and what they carry on."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.model_selection import train_test_split

from skrbm.core.interrupts import deferred_interrupts
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.sampling import Ladder
from skrbm.core.training.loop import Trainer
from skrbm.core.training.monitoring import Plateau
from skrbm.core.training.negative_phase import ALGORITHMS, NegativePhase
from skrbm.core.training.optimizer import OPTIMIZERS, Schedule
from skrbm.core.training.state import TrainingState
from skrbm.core.training.transforms import Constraints, Penalties
from skrbm.estimators.callbacks import FitTask, with_callbacks
from skrbm.estimators.starting import Carried, Starter, fingerprint
from skrbm.estimators.validation import InterruptWarned, check_parameter, restored_on_error
from skrbm.estimators.watch import Watch

SMALL = 2**12  # number of weights
SMALLEST_BATCH, LARGEST_BATCH = 20, 100


class Learner(Starter):
    """Estimator that learns its arrays from data, all at once or in a stream."""

    learning_rate: float
    batch_size: int | str
    n_iter: int
    algorithm: str
    n_gibbs_steps: int
    n_temperatures: int
    centering: bool
    optimizer: str
    momentum: float
    learning_rate_schedule: str
    power_t: float
    l1: float
    l2: float
    sparsity_target: float
    sparsity_cost: float
    max_norm: float | None
    max_gradient_norm: float | None
    shuffle: bool
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    warm_start: bool
    verbose: int

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to data, from a new start unless `warm_start`.

        With scikit-learn 1.9 or later, callbacks set by `set_callbacks` are called around every
        pass, and may end the fit.

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
            last good parameters, with `early_stopping` the best ones.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the estimator is then left as it was.
        DivergenceError
            If the parameters do not stay finite, or explode.
        """
        task = FitTask(self, X, y, self.n_iter)
        with restored_on_error(self):
            X, machine, carried = self._prepare(X, goes_on=self.warm_start)
            carried["slowdown"] = 1.0
            self._train(machine, carried, X, self.n_iter, task, is_planned=True)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Make one pass over some rows, going on from the present parameters.

        The run has no plan: no rows are held out, and a learning rate that would fall to zero
        at the end stays as it is.

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
            If the parameters do not stay finite, or explode.
        """
        with restored_on_error(self):
            X, machine, carried = self._prepare(X, goes_on=True)
            self._train(machine, carried, X, 1, FitTask(), is_planned=False)
        return self

    def _batch_rows(self, n_samples: int) -> int:
        """Largest number of rows in a mini-batch."""
        if isinstance(self.batch_size, str):  # "auto": a hundred updates in a pass
            return min(max(n_samples // 100, SMALLEST_BATCH), LARGEST_BATCH)
        return self.batch_size

    def _ladder(self) -> Ladder:
        """Temperatures as they are; new ones where another number is asked for."""
        betas: Any = getattr(self, "_betas", ())
        return (
            Ladder(betas) if len(betas) == self.n_temperatures else Ladder.of(self.n_temperatures)
        )

    def _negative_phase(self, ladder: Ladder) -> NegativePhase:
        """Algorithm with those of all settings that it has."""
        settings: dict[str, Any] = {
            "n_gibbs_steps": lambda: self.n_gibbs_steps,
            "base": lambda: self._base_layer(self._first_statistics),
            "ladder": lambda: ladder,
        }
        algorithm = ALGORITHMS[self.algorithm]
        return algorithm(**{f.name: settings[f.name]() for f in fields(algorithm)})

    def _trainer(
        self, machine: Machine, phase: NegativePhase, batch_rows: int, precision: Any
    ) -> Trainer:
        """Training algorithm of the present settings."""
        limits = {}
        for name, (low, high) in self._visible_type.limits(self._statistics[2]).items():
            present = machine.parameters.get(f"visible_{name}")
            if present is not None:  # values assigned by hand are left where they are
                limits[f"visible_{name}"] = np.minimum(low, present), np.maximum(high, present)
        is_discrete = None not in (machine.visible.states, machine.hidden.states)
        is_rounded = machine.weights.size > SMALL and is_discrete and not phase.is_exact
        return Trainer(
            phase,
            self.learning_rate,
            batch_rows,
            optimizer=OPTIMIZERS[self.optimizer](self.momentum),
            schedule=Schedule(self.learning_rate_schedule, self.power_t),
            average=self.average,
            penalties=Penalties(self.l1, self.l2, self.sparsity_target, self.sparsity_cost),
            max_gradient_norm=self.max_gradient_norm,
            constraints=Constraints(self.max_norm, limits),
            shuffle=self.shuffle,
            centering=self.centering,
            variance=self._statistics[2].astype(machine.dtype),
            precision=precision,
            states=np.dtype(np.float32) if is_rounded else machine.dtype,
        )

    def _split(self, n_samples: int) -> tuple[Array, Array] | tuple[None, None]:
        """Numbers of the rows to learn from and of those held out, the same in every fit."""
        if not self.early_stopping:
            return None, None
        rows = train_test_split(
            np.arange(n_samples),
            test_size=self.validation_fraction,
            random_state=self._validation_seed,
        )
        return np.sort(rows[0]), np.sort(rows[1])

    def _watch(self, X: Any, held_out: Array | None, *, is_planned: bool) -> Watch:
        """Observer of a run, which ends one only if that has a plan."""
        watch = Watch(type(self).__name__, self.history_, bool(self.verbose))
        watch.slows_down = self.learning_rate_schedule == "adaptive"
        if is_planned and (watch.slows_down or self.early_stopping):
            watch.plateau = Plateau(self.tol, self.n_iter_no_change)
        if held_out is not None:
            watch.held_out = X[held_out]
        return watch

    def _train(
        self,
        machine: Machine,
        carried: Carried,
        X: Any,
        n_iter: int,
        task: FitTask,
        *,
        is_planned: bool,
    ) -> None:
        """Train a copy of the machine, and make it public whatever stops the training."""
        dtype = check_parameter(self, "components_", 2).dtype
        # Small models spend their time outside the products: double precision costs nothing.
        working = np.float64 if machine.weights.size <= SMALL else dtype
        ladder = self._ladder()
        phase = self._negative_phase(ladder)
        rows, held_out = self._split(X.shape[0]) if is_planned else (None, None)
        batch_rows = self._batch_rows(X.shape[0] if rows is None else len(rows))
        particles = self._particles(machine, phase.n_chains, batch_rows)
        machine = machine.astype(working, copy=True)
        trainer = self._trainer(machine, phase, batch_rows, dtype)
        state = TrainingState(particles.astype(trainer.states), **carried)
        watch = self._watch(X, held_out, is_planned=is_planned)
        self._rng = rng = deepcopy(self._rng)

        def outcome() -> dict[str, Any]:
            return self._outcome(machine, state, phase.n_chains, dtype) | {"_betas": ladder.betas}

        def snapshot() -> dict[str, Any]:
            others = "_rng", "_sampling_rng", "_annealing_rng", "history_"
            return deepcopy(outcome() | {name: getattr(self, name) for name in others})

        with deferred_interrupts() as interrupts:
            run = trainer.run(
                machine,
                state,
                X,
                n_iter,
                rng,
                rows=rows,
                is_planned=is_planned,
                after_update=interrupts.check,
            )
            try:
                with InterruptWarned():
                    for _ in range(n_iter):
                        task.begin_pass()
                        next(run)
                        self.n_iter_ += 1
                        notes = phase.finish_pass()
                        is_over = (is_planned or self.verbose) and watch.see(
                            state.averaged(machine), state, X, self.n_iter_, notes
                        )
                        if task.end_pass(snapshot) or is_over:
                            break
            finally:
                if watch.best is not None:
                    machine, state.average, state.memory = watch.best, None, {}
                self.__dict__.update(outcome())
            task.end(snapshot)
            with InterruptWarned():
                interrupts.check()

    def _outcome(
        self, machine: Machine, state: TrainingState, n_chains: int, dtype: Any
    ) -> dict[str, Any]:
        """Attributes that training has arrived at: public arrays, chains and what is carried on."""
        public = self._public_arrays(state.averaged(machine).astype(dtype))
        carried = vars(state) | {
            "raw": None if state.average is None else machine.parameters,
            "published": fingerprint(public),
        }
        chains = carried.pop("particles").astype(dtype)
        n_particles = len(chains) // n_chains
        return public | {
            "h_samples_": chains[:n_particles],
            "_replicas": chains[n_particles:],
            "_carried": carried,
        }
