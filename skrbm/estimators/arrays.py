"""The public arrays are the model: from arrays to machine and back, and checks of what comes in."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skrbm._version import __version__
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.parallel import map_blocks, one_blas_thread
from skrbm.core.sampling import gibbs, sample_base
from skrbm.core.training.initialization import column_statistics
from skrbm.core.units import Units
from skrbm.estimators.validation import (
    VersionWarning,
    check_domain,
    check_parameter,
    check_width,
    compared_domain,
    finite_results,
    floating_type,
    generators,
    parameter_shape,
    warn_user,
)

ArrayMap = Callable[..., Array]

ROWS = 2048  # of the data at a time in inference
BASE_SAMPLES = 100  # chains, and steps of them, that stand in for training data
OPENING = threading.Lock()  # threads that draw first from an estimator open its streams once


class ModelArrays(BaseEstimator, ABC):
    """Estimator whose public arrays are a machine over the unit types that a subclass declares.

    Every method builds its machine from the arrays, so that arrays assigned by hand are as
    good as fitted ones.
    """

    _visible_type: ClassVar[type[Units]]
    _hidden_type: ClassVar[type[Units]]
    # Public arrays of one value per unit: layer, field of its units, maps from and to the field.
    _layer_arrays: ClassVar[dict[str, tuple[str, str, ArrayMap, ArrayMap]]] = {
        "intercept_visible_": ("visible", "bias", np.asarray, np.asarray),
        "intercept_hidden_": ("hidden", "bias", np.asarray, np.asarray),
    }

    check_input: str
    n_jobs: int | None
    random_state: Any
    components_: Array

    @abstractmethod
    def _unit_options(self, varying: Any) -> dict[str, Any]:
        """Further arguments of the visible unit type; `varying` tells which features do."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_skrbm_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        written = state.pop("_skrbm_version", "an unknown version")
        if written != __version__:
            warn_user(
                f"{type(self).__name__} was pickled by skrbm {written}, and this is {__version__}. "
                f"Only the public arrays mean the same in every version: check them, or fit again.",
                VersionWarning,
            )
        super().__setstate__(state)

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, name) for name in ("components_", *self._layer_arrays))

    def _machine(self, X: Any = None, varying: Any = True) -> Machine:
        """Model of the public arrays, in the precision of `X` if that is floating-point."""
        check_is_fitted(self)
        self._validate_params()
        weights = check_parameter(self, "components_", 2).T
        layers: dict[str, dict[str, Array]] = {"visible": {}, "hidden": {}}
        sizes = dict(zip(layers, weights.shape, strict=True))
        for name, (layer, own, to_own, _) in self._layer_arrays.items():
            array = check_parameter(self, name, 1)
            if len(array) != sizes[layer]:
                raise ValueError(
                    f"Expected {name} of shape ({sizes[layer]},) to go with components_ of shape "
                    f"{weights.T.shape}, got {array.shape}."
                )
            layers[layer][own] = to_own(array)
        machine = Machine(
            self._visible_type(**layers["visible"], **self._unit_options(varying)),
            self._hidden_type(**layers["hidden"]),
            weights,
        )
        return machine.astype(weights.dtype if X is None else floating_type(X, weights.dtype))

    def _public_arrays(self, machine: Machine) -> dict[str, Array]:
        """Attributes that a plain machine is."""
        arrays = {"components_": machine.weights.T}
        for name, (layer, own, _, from_own) in self._layer_arrays.items():
            arrays[name] = from_own(getattr(getattr(machine, layer), own))
        return arrays

    def _publish(self, machine: Machine) -> None:
        """Make a plain machine the public arrays."""
        self.__dict__.update(self._public_arrays(machine))

    def _open_streams(self) -> None:
        """Start the random streams of training and, apart from it, of inference."""
        *streams, validation = generators(self.random_state, 4)
        self._rng, self._sampling_rng, self._annealing_rng = streams
        self._validation_seed = int(validation.integers(2**31))

    def _ensure_streams(self) -> None:
        """Open the random streams of arrays that were assigned by hand, if they are not yet."""
        with OPENING:
            if not hasattr(self, "_rng"):
                self._open_streams()

    def _stream(self) -> np.random.Generator:
        """Random stream of inference."""
        self._ensure_streams()
        return self._sampling_rng

    def _base(self, machine: Machine, rng: np.random.Generator, X: Any = None) -> Units:
        """Visible layer without a field that resembles the training data, or the rows `X`.

        For arrays assigned by hand it resembles a sample from the model.
        """
        n_visible = machine.visible.n_units
        statistics = getattr(self, "_statistics", None)
        if X is not None:
            X = self._check_X(X)
            statistics = (X.shape[0], *column_statistics(X))
        elif statistics is None or len(statistics[1]) != n_visible:
            v = sample_base(machine, BASE_SAMPLES, rng)
            v = gibbs(machine, v, BASE_SAMPLES, rng)
            statistics = (BASE_SAMPLES, *column_statistics(v))
        return self._base_layer(statistics)

    def _base_layer(self, statistics: tuple[int, Array, Array]) -> Units:
        n_samples, mean, variance = statistics
        return self._visible_type.start(mean, variance, n_samples, **self._unit_options(True))

    def _check_X(self, X: Any, *, reset: bool = False, finite: bool = True) -> Any:
        """Rows of numbers of any type, as wide as the model unless that is to be set.

        Rows that need not be finite are not compared with the units' domain either.
        """
        accept = "csr" if self._visible_type.states is not None else False
        options = {
            "accept_sparse": accept,
            "dtype": "numeric",
            "ensure_all_finite": finite and compared_domain(self._visible_type, self) is None,
        }
        width = None
        if not reset:
            check_is_fitted(self)
            width = parameter_shape(self, "components_", 2)[1]
        if width == getattr(self, "n_features_in_", None) or reset:
            X = validate_data(self, X, reset=reset, **options)
        else:  # arrays assigned by hand
            X = check_array(X, estimator=self, input_name="X", **options)
        if width is not None:
            check_width(X, width, self)
        if issparse(X) and X.dtype == np.float16:  # SciPy lets them be made, but not be used
            X = type(X)((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
        if issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if finite:
            check_domain(X, self._visible_type, self)
        return X

    def _check_H(self, H: Any, *, name: str) -> Array:
        check_is_fitted(self)
        H = check_array(
            H,
            dtype="numeric",
            ensure_all_finite=compared_domain(self._hidden_type, self) is None,
            estimator=self,
            input_name=name,
        )
        check_width(H, parameter_shape(self, "components_", 2)[0], self, what="components")
        check_domain(H, self._hidden_type, self, name=name)
        return np.asarray(H)

    def _map_rows(
        self, function: Callable[..., Array], X: Any, *others: Array, is_random: bool = False
    ) -> Array:
        """Apply a function of machine and rows to checked rows, a cast block at a time.

        Functions that draw random numbers see the blocks in order, others in several threads.
        """
        n_rows = X.shape[0]
        with finite_results():
            machine = self._machine(X)
        dtype = machine.dtype

        def answer(rows: slice) -> Array:
            with finite_results() as check:
                part = function(machine, *(a[rows].astype(dtype, copy=False) for a in (X, *others)))
                check(part)
            return part

        def fill(rows: slice) -> None:
            result[rows] = answer(rows)

        first, *blocks = (slice(begin, begin + ROWS) for begin in range(0, n_rows, ROWS))
        is_shared = len(blocks) > 0 and not is_random
        with one_blas_thread() if is_shared else nullcontext():  # as in the other blocks
            part = answer(first)
        result = np.empty((n_rows, *part.shape[1:]), part.dtype)
        result[first] = part
        if is_random:
            for rows in blocks:
                fill(rows)
        else:
            map_blocks(fill, ((rows,) for rows in blocks), self.n_jobs)
        return result
