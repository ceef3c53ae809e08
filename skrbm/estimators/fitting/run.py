"""A fit of rows, which may have missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

from skrbm.core.machine import Machine
from skrbm.core.training.negative_phase import NegativePhase
from skrbm.core.training.parts.missing import CompletedRows, MissingValues
from skrbm.estimators.fitting.fit import Passes
from skrbm.estimators.fitting.recording import Recorder, recorded_rows, recorder_of, warn_if_lost
from skrbm.estimators.inference.missing_values import known_units
from skrbm.estimators.inference.model import ArrayModel
from skrbm.estimators.input.rows import check_weights, present_rows

N_FIRST_STEPS = 10  # of chains over what is missing in rows that a trained model has not seen


@final
class Run(Passes):
    """One call of an estimator's `fit` or `partial_fit`.

    Parameters
    ----------
    rbm : BaseRBM
        To be trained.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        As the user gave it.
    resumes : bool
        Whether to go on from a fitted estimator, if it is one.
    n_iter : int
        Largest number of passes.
    is_planned : bool
        Whether training is over after them.
    sample_weight : array-like of shape (n_samples,), default=None
        As the user gave it.
    """

    scores = ("pseudo_likelihood",)
    recorder: Recorder

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
        model = ArrayModel(rbm)
        resumes = resumes and rbm.__sklearn_is_fitted__()
        is_new = not (resumes and rbm._row_format.is_known_to(rbm))
        X = model.check_X(X, reset=is_new, missing=True)
        rbm._row_format.warn_if_unlearned(X)
        X, weight = present_rows(X, check_weights(sample_weight, X))
        super().__init__(model, X, weight, resumes=resumes, n_iter=n_iter, is_planned=is_planned)
        if known_units(model, X) is not None:
            self.data = self.completed = self._completed(X, N_FIRST_STEPS if resumes else 1)
            missing = MissingValues(self.completed, self.trainer.buffers)
            self.trainer = replace(self.trainer, parts=(*self.trainer.parts, missing))
        self.recorder = recorder_of(self)
        if resumes:
            self._keep_present()

    def _completed(self, X: Any, n_first_steps: int) -> CompletedRows:
        """Rows with draws of what is missing."""
        if self.rbm.track_likelihood:
            raise ValueError(
                "track_likelihood=True expected complete rows, got missing values: the likelihood of "
                "what is known is no free energy. Set track_likelihood=False."
            )
        base = self.model.base_layer(self.rbm._statistics).astype(X.dtype)
        return CompletedRows(X, base, n_first_steps, self.rng)

    def objective(self) -> NegativePhase:
        return self.phase

    def _moving(self) -> list[tuple[Any, Sequence[str]]]:
        moving = super()._moving()
        if self.completed is not None:
            moving.append((self.completed, ("drawn", "is_fresh")))
        if self.recorder.likelihood is not None:
            moving.append((self.recorder.likelihood, ("tracker",)))
        return moving

    def _record(self, machine: Machine, notes: dict[str, float]) -> tuple[float, float]:
        if self.completed is not None:
            if self.held_out is not None:  # training draws for its own rows
                self.completed.redraw(machine, self.held_out, self.rng)
            vars(self.recorder).update(recorded_rows(self))
        return self.recorder.record(machine, self.state.particles, notes)

    def _warn(self) -> None:
        warn_if_lost(self)

    def outcome(self) -> dict[str, Any]:
        """Attributes of the estimator: public arrays, chains, streams and what is carried on."""
        public: dict[str, Any] = self.rbm._model.public_arrays(self._published())
        others = "_rng", "_sampling_rng", "_annealing_rng", "history_"
        attributes = {name: getattr(self.rbm, name) for name in others}
        return attributes | public | self._chains() | {"_carried": self._carried(public)}
