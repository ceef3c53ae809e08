"""The two ends of a fit: rows with the model that they train, the start, and the result."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from copy import copy, deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from sklearn.model_selection import train_test_split

from skrbm.core.chains.ladder import Ladder
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense
from skrbm.core.training.discriminative import LabelObjective
from skrbm.core.training.negative_phase import PERSISTENT_CHAINS, NegativePhase
from skrbm.core.training.parts.guard import DivergenceError
from skrbm.core.training.parts.missing import ImputedRows
from skrbm.core.training.start.statistics import column_statistics
from skrbm.core.training.state import TrainingState
from skrbm.core.units import HIDDEN_TYPES, Units
from skrbm.estimators.fitting.recording import Columns, History, Recorder, RowRecorder, ScoredRows
from skrbm.estimators.fitting.tracked_likelihood import LikelihoodRecorder
from skrbm.estimators.inference.model import (
    ArrayModel,
    Model,
    Statistics,
    hidden_arrays,
    open_streams,
)
from skrbm.estimators.input.formats import known_units
from skrbm.estimators.input.validation import (
    check_weights,
    number_of_rows,
    present_rows,
    warn_user,
)

SMALLEST_BATCH, LARGEST_BATCH = 20, 100  # rows, of batch_size="auto"
DIGEST_BLOCK = 2**20  # values that are cast at once, eight megabytes
MIN_SCALE_ROWS = 20  # rows that tell a feature's variance within a factor of two
N_FIRST_STEPS = 10  # Gibbs steps over missing values of rows that a trained model has not seen

Data = dict[str, Any]


@final
@dataclass(frozen=True)
class Start:
    """Machine that a fit starts from, with all that goes with it; the fit trains copies.

    Parameters
    ----------
    machine : Machine
        Plain.
    dtype : dtype
        Of the public arrays.
    state : TrainingState
        To go on from.
    rng : numpy.random.Generator
        Stream of training.
    data : dict
        Statistics of all rows so far, as the estimator carries them: "first" and "all" rows' number,
        means and variances; "varying", the mask of columns that are not constant; "kurtosis" of the
        columns and "least_kurtosis", its lower bound; of a table its "table"; counts of a problem.
    base : Units
        Visible layer without a field that has the statistics of all rows.
    ladder : Ladder
        Temperatures of the chains.
    phase : NegativePhase
        Source of the model's states.
    published : Machine or None
        Machine of the public arrays, if training goes on from there.
    """

    machine: Machine
    dtype: Any
    state: TrainingState
    rng: np.random.Generator
    data: Data
    base: Units
    ladder: Ladder
    phase: NegativePhase
    published: Machine | None


@final
@dataclass(frozen=True)
class FitResult:
    """Everything that an estimator is after a fit.

    Parameters
    ----------
    machine : Machine
        Plain, in the precision of the public arrays.
    arrays : dict of str to ndarray
        Its public arrays.
    h_samples : ndarray of shape (n_particles, n_hidden)
        Hidden states of the persistent chains of the model itself.
    n_iter : int
        Number of epochs so far.
    history : dict of str to list of float
        Of these epochs.
    streams, data, chains, training_state : dict
        Private attributes: plain data.
    error : DivergenceError or None
        Reason why the fit ended early, if it diverged.
    """

    machine: Machine
    arrays: dict[str, Array]
    h_samples: Array
    n_iter: int
    history: Columns
    streams: dict[str, Any]
    data: Data
    chains: dict[str, Array]
    training_state: dict[str, Any]
    error: DivergenceError | None = None


@dataclass(frozen=True)
class Problem(ABC):
    """Rows to learn and the model that they train: all that distinguishes one kind of fit.

    Parameters
    ----------
    model : Model
        Of a copy of the estimator, which has learned the format of the rows.
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Checked rows of features.
    sample_weight : ndarray of shape (n_samples,) or None
        Positive weights.
    is_planned : bool
        Whether training is over after the epochs of the parameter `n_iter`: rows may be held out, and
        the rate may fall to zero. If False, this is one epoch of a stream.
    resumes : bool
        Whether to go on from the public arrays.
    candidates : ndarray of int, default=None
        Numbers of the rows that may be held out; None for all.
    counts : dict, default={}
        Statistics of all rows so far beside those of their features.
    """

    model: Model
    X: Any
    sample_weight: Array | None
    is_planned: bool
    resumes: bool
    candidates: Array | None = None
    counts: Data = field(default_factory=dict)

    scores: ClassVar[tuple[str, ...]]  # columns of a history that has no epoch yet

    @property
    def n_iter(self) -> int:
        """Largest number of epochs."""
        return int(self.model.rbm.n_iter) if self.is_planned else 1

    @cached_property
    def statistics(self) -> Statistics:
        """Number of the rows of this fit, their means and variances."""
        return row_statistics(self.X, self.sample_weight)

    @property
    def beside_rows(self) -> tuple[Array | None, ...]:
        """Arrays with a value for each row that a fit depends on, besides the rows."""
        return (self.sample_weight,)

    @cached_property
    def digest(self) -> tuple[int, str]:
        """Number of the rows of this fit, and a digest of them in their order, whatever their type."""
        digest, (n_rows, n_columns) = hashlib.blake2b(digest_size=16), self.X.shape
        size = max(1, DIGEST_BLOCK // n_columns)
        blocks = (dense(self.X[begin : begin + size]) for begin in range(0, n_rows, size))
        for array in (*blocks, *self.beside_rows):
            digest.update(np.asarray(array, np.float64).tobytes())
        return n_rows, digest.hexdigest()

    @cached_property
    def streams(self) -> dict[str, Any]:
        """Random streams: those of the estimator, or new ones."""
        rbm = self.model.rbm
        streams: Any = getattr(rbm, "_streams", None) if self.resumes else None
        return streams or open_streams(rbm.random_state)

    @property
    def data_before(self) -> Data:
        """Statistics of the rows of earlier fits, as the estimator carries them."""
        return getattr(self.model.rbm, "_data", {}) if self.resumes else {}

    @property
    def training_state(self) -> dict[str, Any]:
        """Plain data that earlier fits have left for this one; empty for a new history."""
        return getattr(self.model.owner, "_training_state", {}) if self.resumes else {}

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """Progress of the fit under way that this one goes on with as if it had never stopped."""
        return self.training_state.get("checkpoint") if self.is_planned else None

    @cached_property
    def split(self) -> tuple[Array | None, Array | None]:
        """Numbers of the rows to learn from and of those held out; None for all, and for none."""
        rbm, n_samples = self.model.rbm, self.X.shape[0]
        if not (self.is_planned and rbm.early_stopping):
            return None, None
        seed = self.streams["validation_seed"]
        return split_rows(n_samples, rbm.validation_fraction, seed, self.candidates)

    @property
    def n_rows(self) -> int:
        """Number of rows to learn from."""
        learned, _ = self.split
        return int(self.X.shape[0] if learned is None else len(learned))

    @property
    def n_batch(self) -> int:
        """Largest number of rows in a mini-batch; by "auto", for a hundred updates in an epoch."""
        n_batch: int | str = self.model.rbm.batch_size
        if isinstance(n_batch, str):
            return min(max(self.n_rows // 100, SMALLEST_BATCH), LARGEST_BATCH)
        return n_batch

    @cached_property
    def n_updates(self) -> int:
        """Number of updates of an epoch."""
        return -(-self.n_rows // self.n_batch)

    @abstractmethod
    def rows(self, start: Start, rng: np.random.Generator) -> Any:
        """Rows of visible states to learn from, read like an array."""

    @abstractmethod
    def objective(self, phase: NegativePhase) -> NegativePhase | LabelObjective:
        """Function that training climbs, given a source of the model's states."""

    @abstractmethod
    def recorder(self, start: Start, rows: Any, history: History, dtype: Any) -> Recorder:
        """Recorder of a fit whose states are in the given precision."""

    @abstractmethod
    def attributes(self, result: FitResult) -> dict[str, Any]:
        """Attributes of the estimator after the fit; None for one that it has no more."""


@final
@dataclass(frozen=True)
class RowProblem(Problem):
    """Rows without labels, which may have missing values."""

    scores = ("pseudo_likelihood",)

    @classmethod
    def of(cls, rbm: Any, X: Any, sample_weight: Any, *, is_planned: bool) -> RowProblem:
        """Check what `fit` (with a plan) or `partial_fit` was given."""
        model, form = ArrayModel(copy(rbm)), rbm._row_format
        resumes = (rbm.warm_start or not is_planned) and rbm.__sklearn_is_fitted__()
        X, weight = present_rows(X, check_weights(sample_weight, X))
        reset = not (resumes and form.is_known_to(rbm))
        X = model.check_X(X, reset=reset, missing=True, sample_weight=weight)
        form.warn_if_unlearned(X)
        if form.has_tables and reset and not is_planned and X.shape[0] < MIN_SCALE_ROWS:
            warn_user(
                f"The scales and categories of a table are learned from the first rows, and "
                f"partial_fit got {X.shape[0]} of them, from which no scale is known. Pass at least "
                f"{MIN_SCALE_ROWS} rows in the first call.",
                UserWarning,
            )
        problem = cls(model, X, weight, is_planned, resumes)
        if not resumes and np.isnan(problem.statistics[1]).all():
            raise ValueError(
                f"X of shape {X.shape} expected to have a known value in some feature, got none. Pass "
                f"rows with values."
            )
        return problem

    def rows(self, start: Start, rng: np.random.Generator) -> Any:
        if known_units(self.model.rbm, self.X) is None:
            return self.X
        if self.model.rbm.track_likelihood:
            raise ValueError(
                "track_likelihood=True expected complete rows, got missing values: the likelihood of "
                "what is known is no free energy. Set track_likelihood=False."
            )
        n_first_steps = N_FIRST_STEPS if self.resumes else 1
        return ImputedRows(self.X, start.base.astype(self.X.dtype), n_first_steps, rng)

    def objective(self, phase: NegativePhase) -> NegativePhase:
        return phase

    def recorder(self, start: Start, rows: Any, history: History, dtype: Any) -> Recorder:
        is_known = rows.observed if isinstance(rows, ImputedRows) else None
        likelihood = None
        if self.model.rbm.track_likelihood:
            tracker = None if self.checkpoint is None else deepcopy(self.checkpoint["tracker"])
            stream, sizes = self.streams["annealing"], (self.n_rows, self.n_updates)
            likelihood = LikelihoodRecorder(start.base, stream, *sizes, dtype, tracker)
        return RowRecorder(
            history,
            self.model.rbm,
            ScoredRows(rows, self.sample_weight, is_known),
            *self.split,
            start.base,
            dtype,
            PERSISTENT_CHAINS in start.phase.offers,
            likelihood,
        )

    def attributes(self, result: FitResult) -> dict[str, Any]:
        history = {"n_iter_": result.n_iter, "history_": result.history}
        own = machine_attributes(self.model.rbm, result)
        return own | history | {"_training_state": result.training_state}


def machine_attributes(rbm: Any, result: FitResult) -> dict[str, Any]:
    """Attributes of an estimator that belong to its machine, and not to the history of a fit.

    Parameters
    ----------
    rbm : BaseRBM
        That has learned the format of the rows.
    result : FitResult
        Of a fit that has trained this machine, or one of more columns.

    Returns
    -------
    attributes : dict
        By their names; None for one that the estimator has no more.
    """
    learned = {name: getattr(rbm, name, None) for name in rbm._row_format.learned}
    arrays = {name: result.arrays[name] for name in rbm._public_names}
    absent = dict.fromkeys(name for kind in HIDDEN_TYPES.values() for name in hidden_arrays(kind))
    return {
        **absent,
        **learned,
        **arrays,
        "h_samples_": result.h_samples,
        "_streams": result.streams,
        "_data": result.data,
        "_chains": result.chains,
    }


def row_statistics(X: Any, sample_weight: Array | None) -> tuple[float, Array, Array]:
    """Number of rows, mean and variance of every column.

    Parameters
    ----------
    X : {ndarray, sparse matrix in canonical CSR format} of shape (n_samples, n_features)
        Data of any numeric type.
    sample_weight : ndarray of shape (n_samples,) or None
        Positive weights of the rows.

    Returns
    -------
    statistics : tuple of float, ndarray and ndarray of shape (n_features,)
        Of weighted rows, `number_of_rows`.
    """
    n_rows = X.shape[0] if sample_weight is None else number_of_rows(sample_weight)
    return (n_rows, *column_statistics(X, sample_weight))


def split_rows(
    n_samples: int, share: float, seed: int, candidates: Array | None = None
) -> tuple[Array, Array]:
    """Numbers of the rows to learn from and of those held out, the same for the same seed.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    share : float
        Share of the candidates to hold out.
    seed : int
        Of the choice.
    candidates : ndarray of shape (n_candidates,), default=None
        Numbers of the rows that may be held out, a share of which is; None for all.

    Returns
    -------
    learned, held_out : ndarray of int
        Sorted.
    """
    everything = np.arange(n_samples)
    _, held_out = train_test_split(
        everything if candidates is None else candidates,
        test_size=share,
        random_state=seed,
    )
    return np.setdiff1d(everything, held_out), np.sort(held_out)
