"""Data classes that describe the problem and the initialization of a fit."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from copy import copy, deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from sklearn.model_selection import train_test_split

from skrbm.core.chains.ladder import Ladder
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, like
from skrbm.core.training.discriminative import LabelObjective
from skrbm.core.training.negative_phase import PERSISTENT_CHAINS, NegativePhase
from skrbm.core.training.parts.missing import ImputedRows
from skrbm.core.training.start.statistics import column_statistics, observed_shares
from skrbm.core.training.state import TrainingState
from skrbm.core.units import HIDDEN_TYPES, Units
from skrbm.estimators.fitting.recording import History, Recorder, RowRecorder, ScoredRows
from skrbm.estimators.fitting.tracked_likelihood import LikelihoodRecorder
from skrbm.estimators.inference.model import (
    ArrayModel,
    Model,
    Statistics,
    hidden_arrays,
    open_streams,
    other_meaning,
)
from skrbm.estimators.input.array_libraries import Place, check_library, place_of, to_numpy
from skrbm.estimators.input.formats import observed_units
from skrbm.estimators.input.validation import (
    WeightSums,
    check_weights,
    number_of_rows,
    present_rows,
    weight_sums,
)

SMALLEST_BATCH, LARGEST_BATCH = 20, 100  # rows, for batch_size="auto"
DIGEST_BLOCK = 2**20  # number of values that are cast at a time, 8 MB
N_FIRST_STEPS = 10  # initial Gibbs steps for missing values of rows that are new to a trained model

Data = dict[str, Any]


@final
@dataclass(frozen=True)
class Start:
    """Initialization of a fit. `Fit.of` copies it, so that training does not change it.

    Parameters
    ----------
    machine : Machine
        Plain initial machine.
    dtype : dtype
        Floating-point type of the public arrays.
    state : TrainingState
        Initial state of training.
    rng : numpy.random.Generator
        Random stream of training.
    data : dict
        Statistics of the rows of this fit and of the fits that it continues, which become the
        attribute `_data` of the estimator. "first" is a tuple with the
        number of rows, the column means and the column variances from which the columns were
        initialized; if its arrays were assigned by hand, these are the statistics of the first fit.
        "all" is the same tuple for all rows, "weight_sums" the result of `validation.weight_sums`
        for all rows, and "observed_weight" the total weight of the rows with an observed value in
        each column, or in all columns. "is_varying" is the mask of the columns that are
        not constant, or True if it is unknown. "kurtosis" and "redundancy" are statistics of each
        column (see `ColumnStatistics`), and "least_kurtosis", if present, is a lower bound of the
        kurtosis of all columns. "step_scale" is a factor of the metric, and "deviation" the largest
        squared distance of a row from the mean for which it was computed. For `TabularRBM`, "table"
        contains the fields of the `Table` that encodes the columns, except `kinds` and
        `categories`. The entries of `Problem.counts` are included.
    base : Units
        Visible layer of independent units with the means and variances of all rows so far.
    ladder : Ladder
        Inverse temperatures of the chains.
    phase : NegativePhase
        Estimator of the negative phase.
    published : Machine or None
        Machine with the public arrays if training resumes from them, otherwise None.
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


@dataclass(frozen=True)
class Problem(ABC):
    """Base class for the training data and the model of a fit, with or without labels.

    Parameters
    ----------
    model : Model
        Model of a copy of the estimator. The copy has learned the format of the rows.
    X : {ndarray, sparse matrix, EncodedTable} of shape (n_samples, n_columns)
        Features returned by `ArrayModel.check_X`.
    sample_weight : ndarray of shape (n_samples,) or None
        Positive weights of the rows. If None, all rows have equal weights.
    is_planned : bool
        True for `fit`, False for `partial_fit`. A call of `fit` runs up to `n_iter` epochs, and may
        hold out rows and decrease the learning rate. A call of `partial_fit` runs one epoch.
    resumes : bool
        Whether training resumes from the public arrays of the estimator.
    candidates : ndarray of int of shape (n_candidates,), default=None
        Indices of the labeled rows, of which some may be held out. If None, rows have no labels,
        and any row may be held out.
    counts : dict, default={}
        Statistics of all rows so far that do not depend on the features, such as the total weight
        of the rows with each label.
    place : Place, default=None
        Library and device of the user's rows, to which the public arrays are converted. If None,
        they are NumPy arrays.
    device_rows : ndarray, default=None
        Rows `X` on the device on which training runs. If None, training runs on the host.
    """

    model: Model
    X: Any
    sample_weight: Array | None
    is_planned: bool
    resumes: bool
    candidates: Array | None = None
    counts: Data = field(default_factory=dict)
    place: Place | None = None
    device_rows: Any = None

    scores: ClassVar[tuple[str, ...]]  # columns of an empty history, besides "n_iter" and "time"

    @property
    def n_iter(self) -> int:
        """Maximum number of epochs of the fit, which is one for `partial_fit`."""
        return int(self.model.rbm.n_iter) if self.is_planned else 1

    @cached_property
    def statistics(self) -> Statistics:
        """Effective number of rows of this fit, and mean and variance of every column.

        Missing values are ignored. The mean of a column without observed values is NaN.
        """
        n_rows = number_of_rows(self.weight_sums)
        return n_rows, *column_statistics(self.X, self.sample_weight)

    @cached_property
    def weight_sums(self) -> WeightSums:
        """Result of `validation.weight_sums` for the rows of this fit."""
        weight = self.sample_weight
        return (self.X.shape[0], 1.0) if weight is None else weight_sums(weight)

    @cached_property
    def observed_weight(self) -> Array | float:
        """Total weight of the rows with an observed value in each column, or in all columns."""
        total, _ = self.weight_sums
        if self.model.rbm.missing != "marginalize":
            return total
        return total * observed_shares(self.X, self.sample_weight)

    @property
    def weights(self) -> Data:
        """Entries of `Start.data` for the weights of the rows of this fit alone."""
        return {"weight_sums": self.weight_sums, "observed_weight": self.observed_weight}

    @property
    def beside_rows(self) -> tuple[Array | None, ...]:
        """Arrays with one value per row that the fit uses besides `X`; unused ones are None."""
        weight = self.sample_weight
        return (None if weight is None or (weight == 1).all() else weight,)

    @cached_property
    def digest(self) -> tuple[int, str]:
        """Number of rows of this fit, and a digest of `X` and `beside_rows` in double precision."""
        digest, (n_rows, n_columns) = hashlib.blake2b(digest_size=16), self.X.shape
        size = max(1, DIGEST_BLOCK // n_columns)
        blocks = (dense(self.X[begin : begin + size]) for begin in range(0, n_rows, size))
        for array in (*blocks, *self.beside_rows):
            plain = np.asarray(array, np.float64) + 0.0  # without negative zeros
            digest.update(plain.tobytes())
        return n_rows, digest.hexdigest()

    @cached_property
    def streams(self) -> dict[str, Any]:
        """Random streams of the estimator, as returned by `open_streams`.

        They are new if the estimator has none or training does not resume.
        """
        rbm = self.model.rbm
        streams: Any = getattr(rbm, "_streams", None) if self.resumes else None
        return streams or open_streams(rbm.random_state)

    @property
    def data_before(self) -> Data:
        """Statistics of the rows of earlier fits; empty if training does not resume."""
        return getattr(self.model.rbm, "_data", {}) if self.resumes else {}

    @property
    def training_state(self) -> dict[str, Any]:
        """State of earlier training; empty if training does not resume."""
        return getattr(self.model.owner, "_training_state", {}) if self.resumes else {}

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """Progress of the interrupted fit that this fit resumes.

        It is None without a checkpoint, and in `partial_fit`.
        """
        return self.training_state.get("checkpoint") if self.is_planned else None

    @cached_property
    def split(self) -> tuple[Array | None, Array | None]:
        """Indices of the training rows and of the held-out rows.

        Both are None if all rows are training rows.
        """
        rbm, n_samples = self.model.rbm, self.X.shape[0]
        if not (self.is_planned and rbm.early_stopping):
            return None, None
        seed = self.streams["validation_seed"]
        return split_rows(n_samples, rbm.validation_fraction, seed, self.candidates)

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        learned, _ = self.split
        return self.X.shape[0] if learned is None else len(learned)

    @property
    def batch_size(self) -> int:
        """Maximum number of rows per mini-batch.

        If `batch_size` is "auto", the number is one hundredth of the number of training rows,
        rounded down, but at least `SMALLEST_BATCH` and at most `LARGEST_BATCH`.
        """
        batch_size: int | str = self.model.rbm.batch_size
        if isinstance(batch_size, str):
            return min(max(self.n_rows // 100, SMALLEST_BATCH), LARGEST_BATCH)
        return batch_size

    @cached_property
    def n_updates(self) -> int:
        """Number of updates per epoch."""
        return -(-self.n_rows // self.batch_size)

    @abstractmethod
    def rows(self, start: Start, rng: np.random.Generator) -> Any:
        """Visible states of all rows, in an array or a container that is indexed like an array."""

    @abstractmethod
    def objective(self, phase: NegativePhase) -> NegativePhase | LabelObjective:
        """Training objective, whose negative phase is estimated by `phase`."""

    @abstractmethod
    def recorder(self, start: Start, rows: Any, history: History, dtype: Any) -> Recorder:
        """Create the recorder of a fit whose states have the floating-point type `dtype`."""

    @abstractmethod
    def attributes(self, fitted: dict[str, Any]) -> dict[str, Any]:
        """Attributes of the estimator after the fit; None marks an attribute to delete.

        `fitted` contains the public arrays of the model and, by name, all other attributes that the
        fit computes (see `Fit.attributes`).
        """


@final
@dataclass(frozen=True)
class RowProblem(Problem):
    """Training data and model of a fit to unlabeled rows, which may have missing values."""

    scores = ("pseudo_likelihood",)

    @classmethod
    def of(cls, rbm: Any, X: Any, sample_weight: Any, *, is_planned: bool) -> RowProblem:
        """Create a problem from the arguments of `fit` or `partial_fit`.

        Raises
        ------
        ValueError
            If an argument is invalid, or if `X` has no observed value and training does not resume.
        TypeError
            If the type of `X` or of its values is not supported.
        """
        model, form = ArrayModel(copy(rbm)), rbm._row_format
        continues = rbm.warm_start or not is_planned
        resumes = continues and rbm.__sklearn_is_fitted__()
        absent = rbm._absent_names
        if continues and absent and set(absent) <= hidden_arrays(rbm._hidden_layer_type).keys():
            raise other_meaning(rbm, "hidden_units")
        check_library(rbm, X)
        place, given = place_of(X), X
        X = X if place is None else to_numpy(X)
        X, weight = present_rows(X, check_weights(sample_weight, X))
        reset = not (resumes and form.is_known_to(rbm))
        X = model.check_X(X, reset=reset, missing=True, sample_weight=weight)
        form.warn_of_unknown(X, "not learned")
        device_rows = None if place is None else place.example
        if device_rows is not None and (len(given) > len(X) or rbm.missing == "marginalize"):
            device_rows = None if np.isnan(X).any() else like(X, device_rows)
        problem = cls(model, X, weight, is_planned, resumes, place=place, device_rows=device_rows)
        if not resumes and np.isnan(problem.statistics[1]).all():
            raise ValueError(
                f"X of shape {X.shape} expected to have an observed value in some feature, got none. "
                f"Pass rows with values."
            )
        return problem

    def rows(self, start: Start, rng: np.random.Generator) -> Any:
        if observed_units(self.model.rbm, self.X) is None:
            return self.X
        if self.model.rbm.track_likelihood:
            raise ValueError(
                "track_likelihood=True expected complete rows, got missing values: the likelihood of "
                "the observed values is not a free energy. Set track_likelihood=False, and call "
                "log_likelihood after the fit."
            )
        n_first_steps = N_FIRST_STEPS if self.resumes else 1
        return ImputedRows(self.X, start.base.astype(self.X.dtype), n_first_steps, rng)

    def objective(self, phase: NegativePhase) -> NegativePhase:
        return phase

    def recorder(self, start: Start, rows: Any, history: History, dtype: Any) -> Recorder:
        observed = rows.observed if isinstance(rows, ImputedRows) else None
        likelihood, is_tracked = None, self.model.rbm.track_likelihood
        if is_tracked is None:  # the likelihood of numbers varies too much between epochs
            stops_early = self.is_planned and self.model.rbm.early_stopping
            is_tracked = stops_early and observed is None and start.base.is_discrete
        if is_tracked:
            tracker = None if self.checkpoint is None else deepcopy(self.checkpoint["tracker"])
            stream = self.streams["annealing"]
            likelihood = LikelihoodRecorder(
                start.base, stream, self.n_rows, self.n_updates, dtype, tracker
            )
        return RowRecorder(
            history,
            self.model.rbm,
            ScoredRows(rows, self.sample_weight, observed),
            *self.split,
            start.base,
            dtype,
            PERSISTENT_CHAINS in start.phase.offers,
            likelihood,
        )

    def attributes(self, fitted: dict[str, Any]) -> dict[str, Any]:
        attributes = format_attributes(self.model.rbm) | fitted
        if self.place is not None:
            for name in (*self.model.rbm._public_names, "h_samples_"):
                attributes[name] = self.place.back(attributes[name])
        return attributes


def format_attributes(rbm: Any) -> dict[str, Any]:
    """Attributes that describe the rows, and None for arrays that only some hidden units have."""
    absent = dict.fromkeys(name for kind in HIDDEN_TYPES.values() for name in hidden_arrays(kind))
    return absent | {name: getattr(rbm, name, None) for name in rbm._row_format.learned}


def split_rows(
    n_samples: int, share: float, seed: int, candidates: Array | None = None
) -> tuple[Array, Array]:
    """Split rows at random into training and held-out rows.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    share : float
        Share of the candidates to hold out. Their number is rounded up.
    seed : int
        Seed of the split.
    candidates : ndarray of shape (n_candidates,), default=None
        Indices of the labeled rows, of which some are held out. If None, any row may be held out.

    Returns
    -------
    learned, held_out : ndarray of int
        Sorted indices of the training and the held-out rows.

    Raises
    ------
    ValueError
        If no candidate would be left for training.
    """
    everything = np.arange(n_samples)
    kind, candidates = ("", everything) if candidates is None else ("labeled ", candidates)
    if not math.ceil(share * len(candidates)) < len(candidates):
        remedy = "Reduce validation_fraction, or set" if len(candidates) > 1 else "Set"
        raise ValueError(
            f"early_stopping expected rows for training beside the held-out ones, got "
            f"validation_fraction={share:g} of {len(candidates)} {kind}rows. {remedy} "
            f"early_stopping=False."
        )
    _, held_out = train_test_split(candidates, test_size=share, random_state=seed)
    return np.setdiff1d(everything, held_out), np.sort(held_out)
