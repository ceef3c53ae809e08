"""The public arrays are the model: from arrays to machine and back, and checks of what comes in."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import fields
from typing import Any, ClassVar, cast, final

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from skrbm.core.chains.gibbs import gibbs, sample_scattered
from skrbm.core.chains.path import TemperedPath
from skrbm.core.chains.tempering import sample_tempered
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, spread_rows
from skrbm.core.parallel import map_blocks
from skrbm.core.training.negative_phase import ALGORITHMS, PERSISTENT_CHAINS
from skrbm.core.training.start.statistics import column_statistics
from skrbm.core.units import Units
from skrbm.estimators.input.validation import (
    check_domain,
    check_parameter,
    check_width,
    compared_domain,
    finite_results,
    floating_type,
    generators,
    parameter_shape,
)

N_MODE_ROWS = 100  # rows, or persistent chains, that stand for the modes of a model
# Chains, steps and temperatures of the sample that stands in for data: test_far_modes.py.
N_EXPLORERS, N_EXPLORER_STEPS, N_EXPLORER_TEMPERATURES = 50, 50, 10
OPENING = threading.Lock()  # threads that draw first from an estimator open its streams once

# Layer that an array belongs to, field of its units, maps from and to the field.
Place = tuple[str, str, Callable[..., Array], Callable[..., Array]]
Statistics = tuple[float, Array, Array]  # number of rows, mean and variance of every feature


class Model(ABC):
    """The way between public arrays and a machine."""

    owner: Any  # estimator that is fitted
    rbm: Any  # the owner or a part of it: has parameters, streams, chains and statistics of rows

    @abstractmethod
    def machine(self, X: Any = None, varying: Any = True) -> Machine:
        """Machine of the public arrays, in the precision of `X` if that is floating-point."""

    @abstractmethod
    def arrays(self, machine: Machine) -> dict[str, Array]:
        """Public arrays of a plain machine."""

    @property
    @abstractmethod
    def public(self) -> dict[str, Array]:
        """Public arrays as they are."""

    @abstractmethod
    def base_layer(self, statistics: Statistics, varying: Any = True) -> Units:
        """Visible layer without a field that has the statistics of some rows."""

    @abstractmethod
    def moments(self, statistics: Statistics) -> tuple[Array, Array]:
        """Mean and variance of all visible columns."""

    @abstractmethod
    def kurtosis(self, of_features: Array) -> Array:
        """Kurtosis of all visible columns."""

    def with_known_means(self, statistics: Statistics) -> Statistics:
        """Statistics in which columns without a known value are as if no value were likelier."""
        n_samples, mean, variance = statistics
        if not np.isnan(mean).any():
            return statistics
        layer = self.base_layer((n_samples, np.nan_to_num(mean), variance))
        layer = layer.map_arrays(np.zeros_like)
        neutral = layer.mean(layer.zero_field(1))[0, : len(mean)]
        return n_samples, np.where(np.isnan(mean), neutral, mean), variance


@final
class ArrayModel(Model):
    """The model that an estimator's public arrays are.

    Every method builds its machine from the arrays, so that arrays assigned by hand are as good as
    fitted ones.

    Parameters
    ----------
    rbm : BaseRBM
        Asked for its arrays, its unit types and how it checks input.
    """

    block_rows: ClassVar[int] = 2048  # of the data at a time in inference
    min_single_weights: ClassVar[int] = 2**16  # whose annealing is worth single precision

    def __init__(self, rbm: Any) -> None:
        self.owner = self.rbm = rbm

    def machine(self, X: Any = None, varying: Any = True) -> Machine:
        """Machine of the public arrays, in the precision of `X` if that is floating-point."""
        rbm = self.rbm
        check_is_fitted(rbm)
        rbm._validate_params()
        weights = check_parameter(rbm, "components_", 2).T
        layers: dict[str, dict[str, Array]] = {"visible": {}, "hidden": {}}
        sizes = dict(zip(layers, weights.shape, strict=True))
        for name, (layer, own, to_own, _) in rbm._array_places.items():
            array, size = check_parameter(rbm, name, 1), sizes[layer]
            if layer == "visible":
                size = rbm._row_format.array_length(rbm, name, size)
            if len(array) != size:
                raise ValueError(
                    f"Expected {name} of shape ({size},) to go with components_ of shape "
                    f"{weights.T.shape}, got {array.shape}."
                )
            layers[layer][own] = to_own(array)
        machine = Machine(
            rbm._visible_type.from_arrays(layers["visible"], **rbm._unit_options(varying)),
            rbm._hidden_layer_type.from_arrays(layers["hidden"]),
            weights,
        )
        machine.check_normalizable()
        return machine.astype(weights.dtype if X is None else floating_type(X, weights.dtype))

    def arrays(self, machine: Machine) -> dict[str, Array]:
        """Public arrays of a plain machine."""
        arrays = {"components_": machine.weights.T}
        for name, (layer, own, _, from_own) in self.rbm._array_places.items():
            arrays[name] = from_own(getattr(machine, layer).arrays[own])
        return arrays

    @property
    def public(self) -> dict[str, Array]:
        """Public arrays as they are."""
        return {name: getattr(self.rbm, name) for name in self.rbm._public_names}

    def inference_rng(self, random_state: Any = None) -> np.random.Generator:
        """Stream of a random state; None for that of inference, which goes on from call to call."""
        return self._stream("inference", random_state)

    def annealing_rng(self, random_state: Any = None) -> np.random.Generator:
        """Stream of a random state; None for a copy, so that the same model gives the same number."""
        stream = self._stream("annealing", random_state)
        return deepcopy(stream) if random_state is None else stream

    def _stream(self, use: str, random_state: Any) -> np.random.Generator:
        """Stream of a random state or of a use; those of arrays assigned by hand open here."""
        if random_state is not None:
            return generators(random_state, 1)[0]
        with OPENING:
            if not hasattr(self.rbm, "_streams"):
                self.rbm._streams = open_streams(self.rbm.random_state)
        stream: np.random.Generator = self.rbm._streams[use]
        return stream

    def base_and_anchors(
        self, machine: Machine, rng: np.random.Generator, X: Any = None
    ) -> tuple[Units, Array]:
        """Base of annealing and tempering, and visible states in the model's modes.

        The base resembles the training data, or the rows `X`; these rows, or draws given the
        persistent chains and where other chains end, are in the modes. For arrays assigned by hand
        both are those of a tempered sample from the model.
        """
        if X is not None:
            X = self.check_X(X)
            anchors = dense(spread_rows(X, N_MODE_ROWS)).astype(machine.dtype)
            return self.base_layer((X.shape[0], *column_statistics(X))), anchors
        statistics = self._known_statistics(machine)
        v = None if statistics is None else self.chain_states(machine, rng)
        if statistics is not None and v is not None:
            _, others = self._scattered_sample(machine, rng)
            return self.base_layer(statistics), np.concatenate([v, others])
        v, anchors = self._tempered_sample(machine, rng)
        return self.base_layer(statistics or (len(v), *column_statistics(v))), anchors

    def base(self, machine: Machine, rng: np.random.Generator) -> Units:
        """Base alone: of a fitted model it needs no chains and no random numbers."""
        statistics = self._known_statistics(machine)
        if statistics is None:
            v, _ = self._tempered_sample(machine, rng)
            statistics = len(v), *column_statistics(v)
        return self.base_layer(statistics)

    def _known_statistics(self, machine: Machine) -> Statistics | None:
        """Statistics of the training data; None for arrays of another width assigned by hand."""
        statistics: Any = getattr(self.rbm, "_data", {}).get("all")
        is_known = statistics is not None and len(statistics[1]) == machine.visible.n_columns
        return statistics if is_known else None

    def chain_states(self, machine: Machine, rng: np.random.Generator) -> Array | None:
        """Visible states given `chain_hidden`; None where that is."""
        h = self.chain_hidden(machine)
        return None if h is None else machine.sample_visible(h, rng)

    def chain_hidden(self, machine: Machine) -> Array | None:
        """Hidden states of the persistent chains, at most a hundred.

        None where there are no chains of this machine, or the algorithm does not move them.
        """
        shape = np.shape(getattr(self.rbm, "h_samples_", ()))
        is_persistent = PERSISTENT_CHAINS in ALGORITHMS[self.rbm.algorithm].offers
        if not is_persistent or shape[1:] != (machine.hidden.n_columns,):
            return None
        h = spread_rows(check_parameter(self.rbm, "h_samples_", 2), N_MODE_ROWS)
        return np.asarray(h, dtype=machine.dtype)

    def _tempered_sample(self, machine: Machine, rng: np.random.Generator) -> tuple[Array, Array]:
        """A sample of a machine of which nothing else is known, and visible states in its modes.

        Tempering, with jumps to scattered chains, weighs the modes: at first from a base as wide as
        the states that these started from.
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
        """Starts spread wider than the model, and where Gibbs chains end from there."""
        v = sample_scattered(machine, N_EXPLORERS, rng)
        return v, gibbs(machine, v, N_EXPLORER_STEPS, rng)

    def base_layer(self, statistics: Statistics, varying: Any = True) -> Units:
        """Visible layer without a field that has the statistics of some rows."""
        n_samples, mean, variance = statistics
        options = self.rbm._unit_options(varying)
        layer: Units = self.rbm._visible_type.start(mean, variance, n_samples, **options)
        return layer

    def moments(self, statistics: Statistics) -> tuple[Array, Array]:
        """Mean and variance of all columns."""
        return statistics[1:]

    def kurtosis(self, of_features: Array) -> Array:
        """Kurtosis of all columns."""
        return of_features

    def check_X(
        self,
        X: Any,
        *,
        reset: bool = False,
        finite: bool = True,
        missing: bool = False,
        sample_weight: Array | None = None,
    ) -> Any:
        """Rows as columns of numbers of any type, as many as the model has unless that is to be set.

        Rows that need not be finite are not compared with the units' domain either. Where values
        may be `missing`, they are NaN if the estimator sums over them. Positive weights count in
        what is learned of the rows.
        """
        options = {"reset": reset, "finite": finite, "missing": missing}
        return self.rbm._row_format.read(self.rbm, X, **options, sample_weight=sample_weight)

    def check_H(self, H: Any, *, name: str) -> Array:
        """Hidden states, as wide as the model."""
        check_is_fitted(self.rbm)
        H = check_array(
            H,
            dtype="numeric",
            ensure_all_finite=compared_domain(self.rbm._hidden_layer_type, self.rbm) is None,
            estimator=self.rbm,
            input_name=name,
        )
        check_width(H, parameter_shape(self.rbm, "components_", 2)[0], self.rbm, what="components")
        check_domain(H, self.rbm._hidden_layer_type, self.rbm, name=name)
        return np.asarray(H)

    def map_rows(
        self, function: Callable[..., Array], X: Any, *others: Array, is_random: bool = False
    ) -> Array:
        """Apply a function of machine and rows to checked rows, a cast block at a time.

        Functions that draw random numbers see the blocks in order, others in several threads.
        """
        n_rows, size = X.shape[0], self.block_rows
        with finite_results():
            machine = self.machine(X)
        dtype, opening = machine.dtype, threading.Lock()
        result: list[Array] = []

        def fill(rows: slice) -> None:
            with finite_results() as check:
                part = function(machine, *(a[rows].astype(dtype, copy=False) for a in (X, *others)))
                check(part)
            with opening:
                if not result:  # the first part tells the shape
                    result.append(np.empty((n_rows, *part.shape[1:]), part.dtype))
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
    """Estimator whose methods ask the model that its public arrays are at the time."""

    @property
    def _model(self) -> ArrayModel:
        return ArrayModel(self)


def hidden_arrays(kind: type[Units]) -> dict[str, Place]:
    """Public arrays of a hidden type besides the biases: a parameter of each unit, by its name.

    Parameters
    ----------
    kind : type
        Of the hidden units.

    Returns
    -------
    places : dict of str to tuple
        Name of the public array, and its place in the machine.
    """
    names = [f.name for f in fields(cast(Any, kind)) if f.name not in ("bias", "offset")]
    return {f"{name}_hidden_": ("hidden", name, np.asarray, np.asarray) for name in names}


def open_streams(random_state: Any) -> dict[str, Any]:
    """Independent random streams of an estimator, and the seed that chooses held-out rows.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        As scikit-learn accepts it, or a generator.

    Returns
    -------
    streams : dict
        Generators of "training", "inference" and "annealing", and the int "validation_seed".
    """
    *streams, validation = generators(random_state, 4)
    names = "training", "inference", "annealing"
    seed = int(validation.integers(2**31))
    return {**dict(zip(names, streams, strict=True)), "validation_seed": seed}


def fingerprint(arrays: dict[str, Array]) -> bytes:
    """Digest of arrays by which edited ones are told from those that training left."""
    digest = hashlib.blake2b(digest_size=16)
    for array in map(np.asarray, arrays.values()):
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array.T).data)
    return digest.digest()
