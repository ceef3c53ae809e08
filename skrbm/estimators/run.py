"""A fit as a thing: it starts or resumes, makes its passes, and publishes what it arrives at."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, final

import numpy as np

from skrbm.core.centering import gauged
from skrbm.core.interrupts import deferred_interrupts
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.sampling import Ladder
from skrbm.core.training.holes import CompletedRows
from skrbm.core.training.initialization import (
    initial_machine,
    initial_particles,
    merged_statistics,
    resting_layer,
)
from skrbm.core.training.loop import DivergenceError
from skrbm.core.training.negative_phase import ALGORITHMS, NegativePhase
from skrbm.core.training.state import TrainingState
from skrbm.core.training.transforms import Constraints
from skrbm.estimators.callbacks import FitTask
from skrbm.estimators.history import empty_history
from skrbm.estimators.model import ArrayModel, Carried, fingerprint, raw_machine
from skrbm.estimators.recording import recorded_rows, recorder_of, warn_if_lost
from skrbm.estimators.rows import check_weights, present_rows, row_statistics, split_rows
from skrbm.estimators.settings import batch_rows, trainer_of, working_copy
from skrbm.estimators.unknown import known_units
from skrbm.estimators.validation import (
    InterruptWarned,
    advised,
    check_parameter,
    check_width,
    floating_type,
    warn_user,
)

N_FIRST_STEPS = 10  # of chains over what is missing in rows that a trained model has not seen
FEW_ROWS = 20  # tell a feature's variance within a factor of two
CHAINS = ("h_samples_", "_replicas", "_betas")


@final
class Run:
    """One call of `fit` or `partial_fit`.

    It trains a copy of the estimator's machine; whatever ends the passes, `publish` writes it back.

    Parameters
    ----------
    rbm : BaseRBM
        To be trained.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        As the user gave it.
    resumes : bool
        Whether to go on from the arrays, chains and streams of a fitted estimator.
    n_iter : int
        Largest number of passes.
    is_planned : bool
        Whether training is over after them: rows may be held out, and the rate may fall to zero.
    sample_weight : array-like of shape (n_samples,), default=None
        As the user gave it.
    """

    def __init__(
        self,
        rbm: Any,
        X: Any,
        *,
        resumes: bool,
        n_iter: int,
        is_planned: bool,
        sample_weight: Any = None,
    ) -> None:
        self.rbm, self.model = rbm, ArrayModel(rbm)
        self.n_iter, self.is_planned = n_iter, is_planned
        self._before: Carried = {}  # statistics without these rows
        resumes = resumes and rbm.__sklearn_is_fitted__()
        is_new = not (resumes and rbm._row_format.is_known_to(rbm))
        X = self.model.check_X(X, reset=is_new, missing=True)
        self.X, self.weight = present_rows(X, check_weights(sample_weight, X))
        if resumes:
            machine, carried = self._resume()
        else:
            machine, carried = self._start(), {}
        if is_planned:
            carried["slowdown"] = 1.0
        self.rng = rbm._rng = deepcopy(rbm._rng)
        self.rows: Array | None = None
        self.held_out: Array | None = None
        if is_planned and rbm.early_stopping:
            self.rows, self.held_out = split_rows(rbm, self.X.shape[0])
        self.dtype = check_parameter(rbm, "components_", 2).dtype
        self.ladder, self.phase = self._algorithm()
        particles = self._particles(machine)
        self.machine = working_copy(machine, self.dtype)
        variance = rbm._statistics[2]
        self.trainer = trainer_of(
            rbm, self.machine, self.phase, self.batch_rows, self.dtype, variance
        )
        self.state = TrainingState(particles.astype(self.trainer.work.dtype), **carried)
        self.completed = self._completed(N_FIRST_STEPS if resumes else 1)
        self.X = self.X if self.completed is None else self.completed
        self.recorder = recorder_of(self, resumes)

    def train(self, task: FitTask) -> None:
        """Make the passes, and publish what they lead to whatever stops them."""
        with deferred_interrupts() as interrupts:
            passes = self.trainer.run(
                self.machine,
                self.state,
                self.X,
                self.n_iter,
                self.rng,
                rows=self.rows,
                sample_weight=self.weight,
                is_planned=self.is_planned,
                before_update=None if self.completed is None else self.completed.redraw,
                after_update=interrupts.check,
            )
            n_iter = self.rbm.n_iter_
            try:
                with InterruptWarned(), advised():
                    for _ in range(self.n_iter):
                        task.begin_pass()
                        next(passes)
                        is_over = self._end_pass()
                        if task.end_pass(self.snapshot) or is_over:
                            break
            except DivergenceError:
                if self.rbm.n_iter_ == n_iter:
                    vars(self.rbm).update(self._before)
                raise
            finally:
                self.publish()
            task.end(self.snapshot)
            if self.is_planned:
                warn_if_lost(self)
            with InterruptWarned():
                interrupts.check()

    def _end_pass(self) -> bool:
        """Record a pass; whether training should end."""
        self.rbm.n_iter_ += 1
        notes = self.phase.finish_pass()
        if not (self.is_planned or self.rbm.verbose):
            return False
        machine = self._averaged()
        if self.completed is not None:
            if self.held_out is not None:  # training draws for its own rows
                self.completed.redraw(machine, self.held_out, self.rng)
            vars(self.recorder).update(recorded_rows(self))
        return self.recorder.record(machine, self.state, notes)

    def _averaged(self) -> Machine:
        """What would be published now."""
        machine = self.state.averaged(self.machine)
        if machine is not self.machine:  # an average of what was allowed before may not be now
            Constraints(self.rbm.max_norm).enforce(machine.parameters)
        return machine

    def publish(self) -> None:
        """Write what training has arrived at, or the best of it, to the estimator."""
        judge = self.recorder.judge
        if judge is not None and judge.best is not None:
            self.machine, self.state.average, self.state.memory = judge.best, None, {}
        vars(self.rbm).update(self.outcome())

    def outcome(self) -> dict[str, Any]:
        """Attributes of the estimator: public arrays, chains and what is carried on."""
        state = self.state
        machine = gauged(self._averaged())
        public = self.model.public_arrays(machine.astype(self.dtype))
        carried = vars(state) | {
            "raw": None if state.average is None else self.machine.parameters,
            "published": fingerprint(public),
        }
        chains = carried.pop("particles").astype(self.dtype)
        n_particles = len(chains) // self.phase.n_chains
        return public | {
            "h_samples_": chains[:n_particles],
            "_replicas": chains[n_particles:],
            "_betas": self.ladder.betas,
            "_carried": carried,
        }

    def snapshot(self) -> dict[str, Any]:
        """The estimator's attributes as of now, in arrays of their own."""
        others = "_rng", "_sampling_rng", "_annealing_rng", "history_"
        return deepcopy(self.outcome() | {name: getattr(self.rbm, name) for name in others})

    def _start(self) -> Machine:
        """Machine that resembles the data's statistics, new chains and streams."""
        self.model.open_streams()
        self.rbm.n_iter_, self.rbm.history_ = 0, empty_history("pseudo_likelihood")
        statistics = row_statistics(self.X, self.weight)
        return self._start_from(self.model.with_known_means(statistics))

    def _start_from(self, statistics: tuple[float, Array, Array]) -> Machine:
        """Machine that resembles some statistics, and new chains."""
        rbm, X = self.rbm, self.X
        n_samples, mean, variance = rbm._statistics = rbm._first_statistics = statistics
        rbm._varying = (variance > 0) | (n_samples == 1)
        constant = rbm._row_format.constant_features(rbm, rbm._varying)
        if constant:
            warn_user(
                f"Features {constant[:10]} of X are constant; their "
                f"noise_variance_ stays at 1. Drop them, for example with "
                f"sklearn.feature_selection.VarianceThreshold.",
                UserWarning,
            )
        options = rbm._unit_options(rbm._varying)
        visible = rbm._visible_type.start(mean, variance, n_samples, **options)
        hidden = resting_layer(rbm._hidden_type, rbm.n_components)
        machine = initial_machine(visible, hidden, mean, variance, rbm._rng)
        dtype = floating_type(X, np.float64)
        with np.errstate(over="ignore", under="ignore"):
            self.model.publish(machine.astype(dtype))
        try:
            self.model.machine()
        except ValueError as error:
            raise ValueError(
                f"The statistics of X are beyond the range of {dtype}: {error} Rescale X, for "
                f"example with sklearn.preprocessing.StandardScaler."
            ) from error
        rbm._n_components = rbm.n_components
        for name in CHAINS:
            vars(rbm).pop(name, None)
        return machine

    def _resume(self) -> tuple[Machine, Carried]:
        """Machine that the public arrays are, and what its training carries on."""
        rbm, X = self.rbm, self.X
        statistics = row_statistics(X, self.weight)
        names = ("_statistics", "_first_statistics", "_varying")
        self._before = {name: getattr(rbm, name) for name in names if hasattr(rbm, name)}
        varying = getattr(rbm, "_varying", True)
        is_known = np.size(varying) in (1, X.shape[1])
        varying = not is_known or varying | (statistics[2] > 0)  # what was constant may vary now
        machine = self.model.machine(varying=varying)
        check_width(X, machine.visible.n_columns, rbm)
        n_hidden = machine.hidden.n_columns
        if rbm.n_components not in (n_hidden, getattr(rbm, "_n_components", rbm.n_components)):
            raise ValueError(
                f"n_components={rbm.n_components} was changed since fit, but components_ has "
                f"{n_hidden} rows. Call fit to start anew, or set n_components={n_hidden} to go on."
            )
        self.model.ensure_streams()
        if not hasattr(rbm, "_carried"):
            rbm.n_iter_, rbm._carried = 0, {}
            rbm.history_ = empty_history("pseudo_likelihood")
        rbm._n_components, rbm._varying = rbm.n_components, varying
        before = getattr(rbm, "_statistics", None)
        if before is not None and len(before[1]) == X.shape[1]:
            rbm._statistics = merged_statistics(before, statistics)
        else:
            statistics = self.model.with_known_means(statistics)
            rbm._statistics = rbm._first_statistics = statistics
        if before is not None and before[0] < FEW_ROWS and self._is_start_open(machine):
            return self._start_from(rbm._statistics), {}
        return raw_machine(
            machine, rbm._carried, is_published=self._is_published, averages=rbm.average
        )

    def _is_start_open(self, machine: Machine) -> bool:
        """Whether the first rows of a stream, which were few, have set a scale that lasts."""
        return self._is_published and bool(machine.visible.bounds(self.rbm._statistics[2]))

    @property
    def _is_published(self) -> bool:
        """Whether the public arrays are those that training left, not edited since."""
        public = {name: getattr(self.rbm, name) for name in self.rbm._public_names}
        return bool(self.rbm._carried.get("published") == fingerprint(public))

    @property
    def batch_rows(self) -> int:
        """Largest number of rows in a mini-batch."""
        return batch_rows(self.rbm, self.n_rows)

    @property
    def n_rows(self) -> int:
        """Number of rows that a pass learns from."""
        return int(self.X.shape[0] if self.rows is None else len(self.rows))

    def _completed(self, n_first_steps: int) -> CompletedRows | None:
        """Rows with draws of what is missing; None where nothing is."""
        if known_units(self.model, self.X) is None:
            return None
        if self.rbm.track_likelihood:
            raise ValueError(
                "track_likelihood=True expected complete rows, got missing values: the likelihood of "
                "what is known is no free energy. Set track_likelihood=False."
            )
        base = self.model.base_layer(self.rbm._statistics).astype(self.X.dtype)
        return CompletedRows(self.X, base, n_first_steps, self.rng)

    def _algorithm(self) -> tuple[Ladder, NegativePhase]:
        """Negative phase, with the temperatures of before unless another number is asked for."""
        rbm = self.rbm
        betas: Any = getattr(rbm, "_betas", ())
        n_temperatures = rbm.n_temperatures
        ladder = Ladder(betas) if len(betas) == n_temperatures else Ladder.of(n_temperatures)
        base = self.model.base_layer(rbm._first_statistics)
        return ladder, ALGORITHMS[rbm.algorithm].create(rbm.n_gibbs_steps, base, ladder)

    def _particles(self, machine: Machine) -> Array:
        """Chains as they are; new ones where more are asked for or the width changed."""
        rbm, n_hidden = self.rbm, machine.hidden.n_columns
        old = np.empty((0, n_hidden), dtype=machine.dtype)
        if np.shape(getattr(rbm, "h_samples_", ()))[1:] == (n_hidden,):
            old = check_parameter(rbm, "h_samples_", 2).astype(machine.dtype)
        n_particles = rbm.n_particles or len(old) or self.batch_rows
        base = self.model.base_layer(rbm._statistics)
        n_missing = max(n_particles - len(old), 0)
        more = initial_particles(machine, base, n_missing, rbm._rng)
        n_replicas = (self.phase.n_chains - 1) * n_particles
        replicas = getattr(rbm, "_replicas", old[:0])
        if replicas.shape != (n_replicas, n_hidden):
            replicas = initial_particles(machine, base, n_replicas, rbm._rng)
        return np.concatenate([old[:n_particles], more, replicas])
