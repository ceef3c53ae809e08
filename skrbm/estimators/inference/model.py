"""Conversion between public arrays and machines, random streams, and input checks."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import fields
from typing import Any, ClassVar, cast, final

import numpy as np
from sklearn.utils.validation import check_array

from skrbm.core.chains.gibbs import gibbs, sample_scattered
from skrbm.core.chains.jumps import extrapolated_rows
from skrbm.core.chains.path import TemperedPath
from skrbm.core.chains.tempering import sample_tempered
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, every_kth_row, like, spread_rows, to_host
from skrbm.core.parallel import ForkSafeLock, map_blocks
from skrbm.core.training.negative_phase import ALGORITHMS, PERSISTENT_CHAINS
from skrbm.core.training.start.statistics import column_statistics
from skrbm.core.units import Units
from skrbm.estimators.input.array_libraries import on_current_device, to_numpy
from skrbm.estimators.input.validation import (
    check_domain,
    check_has_arrays,
    check_parameter,
    check_width,
    compared_domain,
    finite_results,
    floating_type,
    generators,
    parameter_shape,
)

N_MODE_ROWS = 100  # largest number of rows or chains that represent the modes of a model
N_MODES_BEYOND = 50  # extrapolated states
# Chains, steps and temperatures of the sample that replaces training data: test_far_modes.py.
N_EXPLORERS, N_EXPLORER_STEPS, N_EXPLORER_TEMPERATURES = 50, 50, 10
MEANINGS = "hidden_units", "parameterization"  # parameters that say what the public arrays mean
# Concurrent first draws create an estimator's streams once.
OPENING = ForkSafeLock()

# Layer and attribute that hold a public array, and conversions to the attribute and back.
LayerArray = tuple[str, str, Callable[..., Array], Callable[..., Array]]
Statistics = tuple[float, Array, Array]  # number of rows, mean and variance of every feature


class Model(ABC):
    """Conversion between the public arrays of an estimator and a machine."""

    owner: Any  # estimator that the user fits
    rbm: Any  # the owner or its `estimator_`, with random streams, chains and statistics

    @abstractmethod
    def machine(self, X: Any = None, is_varying: Any = True) -> Machine:
        """Build the machine from the public arrays.

        The machine has the precision of `X`, or that of the weights if `X` is None or not in single
        or double precision. `is_varying` is the mask of the visible columns that are not constant, or
        True if none is constant.
        """

    @abstractmethod
    def arrays(self, machine: Machine) -> dict[str, Array]:
        """Public arrays for the parameters of an uncentered machine."""

    @property
    @abstractmethod
    def public(self) -> dict[str, Array]:
        """Public arrays of `owner` and of `rbm`, by name."""

    @abstractmethod
    def base_layer(self, statistics: Statistics, is_varying: Any = True) -> Units:
        """Layer of independent visible units that `Units.start` creates from `statistics`."""

    @abstractmethod
    def moments(self, statistics: Statistics) -> tuple[Array, Array]:
        """Mean and variance of all visible columns."""

    def check_meanings(self) -> None:
        """Check that the public arrays have the meaning that they had after the fit.

        Raises
        ------
        ValueError
            If a parameter in `MEANINGS` was changed since fit, and the public arrays were not.
        """
        training_state = getattr(self.owner, "_training_state", {})
        changed = changed_parameters(self.rbm, training_state)
        if changed and training_state["fingerprint"] == fingerprint(self.public):
            raise other_meaning(self.rbm, changed[0])

    def fill_unobserved_means(self, statistics: Statistics) -> Statistics:
        """Replace the means of columns without observed values, which are NaN.

        The new means are those of a layer whose parameters are all zero.
        """
        n_samples, mean, variance = statistics
        if not np.isnan(mean).any():
            return statistics
        layer = self.base_layer((n_samples, np.nan_to_num(mean), variance))
        layer = layer.map_arrays(np.zeros_like)
        neutral = layer.mean(layer.zero_field(1))[0, : len(mean)]
        return n_samples, np.where(np.isnan(mean), neutral, mean), variance


@final
class ArrayModel(Model):
    """Model defined by the public arrays of an estimator.

    The machine is not cached: each call of `machine` builds it anew, so that arrays can also be
    assigned by hand.

    Parameters
    ----------
    rbm : BaseRBM
        Estimator that has the public arrays, the unit types and the parameters.
    """

    block_rows: ClassVar[int] = 2048  # rows per block in inference
    # Smallest number of weights with which annealing is faster in single precision.
    min_single_weights: ClassVar[int] = 2**16

    def __init__(self, rbm: Any) -> None:
        self.owner = self.rbm = rbm

    def machine(self, X: Any = None, is_varying: Any = True) -> Machine:
        """Build the machine from the public arrays; the arguments are described in `Model`.

        Raises
        ------
        NotFittedError
            If a public array is missing, or if a `TabularRBM` has not learned the columns of a
            table.
        ValueError
            If a parameter or a public array is invalid, if the distribution cannot be normalized,
            or if a parameter in `MEANINGS` was changed since fit, and the public arrays were not.
        """
        rbm = self.rbm
        check_has_arrays(rbm)
        rbm._validate_params()
        self.check_meanings()
        weights = check_parameter(rbm, "components_", 2).T
        layers: dict[str, dict[str, Array]] = {"visible": {}, "hidden": {}}
        sizes = dict(zip(layers, weights.shape, strict=True))
        for name, (layer, attribute, to_attribute, _) in rbm._array_places.items():
            array, size = check_parameter(rbm, name, 1), sizes[layer]
            if layer == "visible":
                size = rbm._row_format.array_length(rbm, name, size)
            if len(array) != size:
                raise ValueError(
                    f"Expected {name} of shape ({size},) to match components_ of shape "
                    f"{weights.T.shape}, got {array.shape}."
                )
            layers[layer][attribute] = to_attribute(array)
        machine = Machine(
            rbm._visible_type.from_arrays(layers["visible"], **rbm._unit_options(is_varying)),
            rbm._hidden_layer_type.from_arrays(layers["hidden"]),
            weights,
        )
        machine.check_normalizable()
        return machine.astype(weights.dtype if X is None else floating_type(X, weights.dtype))

    def arrays(self, machine: Machine) -> dict[str, Array]:
        arrays = {"components_": machine.weights.T}
        for name, (layer, attribute, _, to_array) in self.rbm._array_places.items():
            arrays[name] = to_array(getattr(machine, layer).arrays[attribute])
        return arrays

    @property
    def public(self) -> dict[str, Array]:
        return {name: to_numpy(getattr(self.rbm, name)) for name in self.rbm._public_names}

    def inference_rng(self, random_state: Any = None) -> np.random.Generator:
        """Generator created from `random_state` or, if None, the estimator's "inference" stream.

        Draws from the stream advance it.
        """
        return self._stream("inference", random_state)

    def annealing_rng(self, random_state: Any = None) -> np.random.Generator:
        """Generator created from `random_state` or, if None, a copy of the "annealing" stream.

        Draws from the copy do not advance the stream of the estimator.
        """
        return deepcopy(self._stream("annealing", random_state))

    def _stream(self, use: str, random_state: Any) -> np.random.Generator:
        """Generator created from `random_state` or, if None, the estimator's stream `use`."""
        if random_state is not None:
            return generators(random_state, 1)[0]
        with OPENING:
            if not hasattr(self.rbm, "_streams"):
                self.rbm._streams = open_streams(self.rbm.random_state)
        return self.rbm._streams[use]

    def base_and_anchors(
        self, machine: Machine, rng: np.random.Generator, X: Any = None
    ) -> tuple[Units, Array]:
        """Base distribution of annealing and tempering, and visible states in the model's modes.

        The base distribution has the means and variances of `X` or, without `X`, of the training
        data. The states in the modes are at most 100 rows of `X`, evenly spread. Without `X`, they
        are visible states drawn given at most 100 persistent chains, together with the final states
        of Gibbs chains that start from overdispersed states. If there are no persistent chains,
        samples of the model drawn by parallel tempering replace the states drawn given these
        chains. If the statistics of the training data are missing, these samples are used in any
        case, and the base distribution has the means and variances of the last sample. All these
        states are extrapolated (see `extrapolated_rows`), which adds modes far from the data.
        """
        statistics: Any = self._known_statistics(machine)
        if X is not None:
            X = self.check_X(X)
            statistics = X.shape[0], *column_statistics(X)
            anchors = dense(spread_rows(X, N_MODE_ROWS)).astype(machine.dtype)
        elif statistics is not None and self.chain_hidden(machine) is not None:
            anchors = self.mode_states(machine, rng)
        else:
            v, anchors = self._tempered_sample(machine, rng)
            statistics = statistics or (len(v), *column_statistics(v))
        beyond = extrapolated_rows(machine, anchors, N_MODES_BEYOND, rng)
        return self.base_layer(statistics), np.concatenate([anchors, beyond])

    def mode_states(self, machine: Machine, rng: np.random.Generator) -> Array:
        """Visible states in the modes of a machine with the hidden units of the model.

        They are the final states of Gibbs chains that start from overdispersed states and, before
        these, the states from `chain_states`, if there are any.
        """
        v = self.chain_states(machine, rng)
        _, scattered = self._scattered_sample(machine, rng)
        return scattered if v is None else np.concatenate([v, scattered])

    def _known_statistics(self, machine: Machine) -> Statistics | None:
        """Statistics of the training data.

        The result is None if they are missing or do not match the columns of the machine.
        """
        statistics: Any = getattr(self.rbm, "_data", {}).get("all")
        is_observed = statistics is not None and len(statistics[1]) == machine.visible.n_columns
        return statistics if is_observed else None

    def chain_states(self, machine: Machine, rng: np.random.Generator) -> Array | None:
        """Visible states drawn given the hidden states that `chain_hidden` returns, or None.

        The result is None if `chain_hidden` returns None.
        """
        h = self.chain_hidden(machine)
        return None if h is None else machine.sample_visible(h, rng)

    def chain_hidden(self, machine: Machine) -> Array | None:
        """Hidden states of at most 100 persistent chains at temperature 1.

        The result is None if the algorithm has no persistent chains, or if `h_samples_` is missing
        or does not match the number of hidden units.
        """
        shape = np.shape(getattr(self.rbm, "h_samples_", ()))
        is_persistent = PERSISTENT_CHAINS in ALGORITHMS[self.rbm.algorithm].offers
        if not is_persistent or shape[1:] != (machine.hidden.n_columns,):
            return None
        h = every_kth_row(check_parameter(self.rbm, "h_samples_", 2), N_MODE_ROWS)
        return np.asarray(h, dtype=machine.dtype)

    def _tempered_sample(self, machine: Machine, rng: np.random.Generator) -> tuple[Array, Array]:
        """Sample of a machine by parallel tempering, and visible states in the machine's modes.

        Neither training data nor persistent chains are used. Parallel tempering is run twice, and
        the sample is that of the second run. The tempered chains may jump to the final states of
        Gibbs chains with overdispersed initial states, so that they visit the modes in which these
        Gibbs chains end. In the first run, the base distribution has the means and variances of
        these initial states. In the second run, it has the means and variances of the first sample,
        to which the chains may also jump. The states in the modes are the final states of the Gibbs
        chains and both samples.
        """
        v, anchors = self._scattered_sample(machine, rng)
        for _ in range(2):
            base = self.base_layer((len(v), *column_statistics(v)))
            path = TemperedPath.to(machine, base, anchors)
            start = path.sample_base(N_EXPLORERS, rng)
            v = sample_tempered(path, start, N_EXPLORER_TEMPERATURES, N_EXPLORER_STEPS, rng)
            anchors = np.concatenate([anchors, v])
        return v, anchors

    def _scattered_sample(self, machine: Machine, rng: np.random.Generator) -> tuple[Array, Array]:
        """Overdispersed initial states, and the final states of Gibbs chains from these states."""
        v = sample_scattered(machine, N_EXPLORERS, rng)
        return v, gibbs(machine, v, N_EXPLORER_STEPS, rng)

    def base_layer(self, statistics: Statistics, is_varying: Any = True) -> Units:
        n_samples, mean, variance = statistics
        options = self.rbm._unit_options(is_varying)
        return self.rbm._visible_type.start(mean, variance, n_samples, **options)

    def moments(self, statistics: Statistics) -> tuple[Array, Array]:
        return statistics[1:]

    def check_X(
        self,
        X: Any,
        *,
        reset: bool = False,
        finite: bool = True,
        missing: bool = False,
        sample_weight: Array | None = None,
    ) -> Any:
        """Validate rows and convert them to the columns of the machine.

        The arguments are those of `RowFormat.read`.
        """
        options = {"reset": reset, "finite": finite, "missing": missing}
        return self.rbm._row_format.read(self.rbm, X, **options, sample_weight=sample_weight)

    def check_H(self, H: Any, *, name: str) -> Array:
        """Validate hidden states of shape (n_samples, n_components).

        Messages contain `name`.
        """
        check_has_arrays(self.rbm)
        H = check_array(
            H,
            dtype="numeric",
            ensure_all_finite=compared_domain(self.rbm._hidden_layer_type, self.rbm) is None,
            estimator=self.rbm,
            input_name=name,
        )
        n_components = parameter_shape(self.rbm, "components_", 2)[0]
        check_width(H, n_components, self.rbm, name=name, what="components")
        check_domain(H, self.rbm._hidden_layer_type, self.rbm, name=name)
        return np.asarray(H)

    def map_rows(
        self,
        function: Callable[..., Array],
        X: Any,
        *others: Array,
        is_random: bool = False,
        is_precise: bool = False,
        n_copies: int = 1,
    ) -> Array:
        """Apply a function to the machine and checked rows, block by block, and join the results.

        The arrays `others` have one row for each row of `X`. Each block is converted to the
        precision of the machine. Set `is_random` if the function draws random numbers: the blocks
        are then processed in order. Otherwise, several threads may process them (see `map_blocks`).
        Set `is_precise` if results are small differences of large numbers, such as energies. They
        are then computed in double precision if features are real-valued and not scaled. If the
        function makes `n_copies` of each row, blocks are smaller by this factor.

        Raises
        ------
        ValueError
            If a result is not finite.
        """
        n_rows, size = X.shape[0], max(1, self.block_rows // n_copies)
        with finite_results():
            machine = on_current_device(self.machine(X))
        precision, opening = machine.dtype, threading.Lock()
        if is_precise and not (machine.visible.is_discrete or self.rbm._row_format.is_standardized):
            machine = machine.astype(np.float64)
        dtype = machine.dtype
        result: list[Array] = []

        def fill(rows: slice) -> None:
            with finite_results() as check:
                arrays = (a[rows].astype(dtype, copy=False) for a in (X, *others))
                part = to_host(
                    function(machine, *(like(array, machine.weights) for array in arrays))
                )
                check(part)
            with opening:
                if not result:  # all parts have rows of this shape
                    kind = precision if is_precise else part.dtype
                    result.append(np.empty((n_rows, *part.shape[1:]), kind))
            result[0][rows] = part

        blocks = [slice(begin, begin + size) for begin in range(0, n_rows, size)]
        if is_random or len(blocks) == 1:
            for rows in blocks:
                fill(rows)
        else:
            tasks, n_products = ((rows,) for rows in blocks), size * machine.weights.size
            map_blocks(fill, tasks, self.rbm.n_jobs, n_products=n_products)
        return result[0]


class ModelMixin:
    """Mix-in for estimators whose model is defined by their current public arrays."""

    @property
    def _model(self) -> ArrayModel:
        return ArrayModel(self)


def model_of(rbm: Any) -> ArrayModel:
    """Model of an estimator that was passed to a public function.

    Raises
    ------
    TypeError
        If `rbm` has no `ArrayModel`, as for example an `RBMClassifier` or another meta-estimator.
    """
    model = getattr(rbm, "_model", None)
    if not isinstance(model, ArrayModel):
        advice = " Pass its attribute estimator_." if hasattr(rbm, "estimator_") else ""
        raise TypeError(
            f"Expected a BernoulliRBM, SpinRBM, GaussianBernoulliRBM or TabularRBM of skrbm, got "
            f"{type(rbm).__name__}.{advice}"
        )
    return model


def hidden_arrays(kind: type[Units]) -> dict[str, LayerArray]:
    """Public arrays of a hidden unit type, except for biases and offsets.

    Parameters
    ----------
    kind : type
        Type of the hidden units.

    Returns
    -------
    arrays : dict of str to tuple
        Layer and attribute that hold each public array, and conversions to the attribute and back,
        by the name of the array.
    """
    names = [f.name for f in fields(cast(Any, kind)) if f.name not in ("bias", "offset")]
    return {f"{name}_hidden_": ("hidden", name, np.asarray, np.asarray) for name in names}


def open_streams(random_state: Any) -> dict[str, Any]:
    """Create the random streams of an estimator and the seed of its validation split.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        Parameter of the estimator.

    Returns
    -------
    streams : dict
        Independent generators "training", "inference" and "annealing", and the int
        "validation_seed".
    """
    *streams, validation = generators(random_state, 4)
    names = "training", "inference", "annealing"
    seed = int(validation.integers(2**31))
    return {**dict(zip(names, streams, strict=True)), "validation_seed": seed}


def meanings(rbm: Any) -> dict[str, Any]:
    """Parameters in `MEANINGS` that an estimator has, by name."""
    return {name: getattr(rbm, name) for name in MEANINGS if hasattr(rbm, name)}


def changed_parameters(rbm: Any, training_state: dict[str, Any]) -> list[str]:
    """Parameters in `MEANINGS` that were changed since the fit that left `training_state`."""
    present = meanings(rbm).items()
    return [name for name, value in present if training_state.get(name, value) != value]


def other_meaning(rbm: Any, name: str) -> ValueError:
    """Error for fitted arrays whose meaning a changed parameter does not describe."""
    anew = "set warm_start=False and call fit" if rbm.warm_start else "call fit"
    return ValueError(
        f"{name}={getattr(rbm, name)!r} was changed since fit, but the fitted arrays are those of "
        f"another value. Set it back, or {anew} to train a new model."
    )


def fingerprint(arrays: dict[str, Array]) -> bytes:
    """Digest of the types, shapes and values of arrays, to detect edits after training."""
    digest = hashlib.blake2b(digest_size=16)
    for array in map(np.asarray, arrays.values()):
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array.T).data)
    return digest.digest()
