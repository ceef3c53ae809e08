"""Conversion of arrays between the user's library and device and those of the core."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, TypeVar, cast, final

import numpy as np
from sklearn import config_context, get_config
from sklearn.utils import get_tags
from sklearn.utils._array_api import device as device_of
from sklearn.utils._array_api import get_namespace

from skrbm.core.machine import Machine
from skrbm.core.numerics import like

Function = TypeVar("Function", bound=Callable[..., Any])

# Array on the device on which the running method computes, or None for the host.
_DEVICE: ContextVar[Any] = ContextVar("device", default=None)


@final
@dataclass(frozen=True)
class Place:
    """Library and device of an array.

    Parameters
    ----------
    library : object
        Namespace of the array API, or the name of a library that follows NumPy's protocols (NEP 13
        and 18), as CuPy does.
    device : object
        Device, as the library names it.
    example : ndarray, default=None
        Array whose library does the computations on the device: the user's array, or a CuPy view of
        a CUDA tensor of PyTorch. If None, NumPy does the computations on the host.
    """

    library: Any
    device: Any
    example: Any = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{getattr(self.library, '__name__', self.library)} on {self.device}"

    def back(self, values: Any) -> Any:
        """Convert NumPy arrays, also in a tuple, to the user's library and device.

        Other objects are unchanged.
        """
        if isinstance(values, tuple):
            return tuple(map(self.back, values))
        if not isinstance(values, np.ndarray):
            return values
        if isinstance(self.library, str):
            return np.asarray(values, like=self.example)
        return self.library.asarray(np.ascontiguousarray(values), device=self.device)


def place_of(array: Any) -> Place | None:
    """Library and device of an array of a library other than NumPy.

    Parameters
    ----------
    array : object
        Any argument of a method.

    Returns
    -------
    place : Place or None
        Library and device, or None for NumPy arrays and for objects that are not arrays. Without
        array API dispatch, it is None for all objects, because scikit-learn then converts arrays to
        NumPy arrays.
    """
    if not _is_of_other_library(array):
        return None
    if _follows_protocols(array):
        library = type(array).__module__.partition(".")[0]
        return Place(library, getattr(array, "device", None), array)
    return Place(get_namespace(array)[0], device_of(array), _cuda_rows(array))


def to_numpy(array: Any) -> Any:
    """Convert an array of another library to a NumPy array; other objects are unchanged."""
    if isinstance(array, np.ndarray):
        return array
    if _follows_protocols(array):
        return array.get()
    if not _follows_array_api(array):
        return array
    if hasattr(array, "detach"):  # tensor of PyTorch, perhaps on a GPU or with a gradient
        return array.detach().cpu().numpy()
    return np.from_dlpack(array)


def check_library(estimator: Any, X: Any) -> None:
    """Raise a TypeError if rows are in another library and the estimator needs NumPy arrays.

    The tag `array_api_support` of the estimator decides. Without array API dispatch, nothing is
    checked, because scikit-learn then converts arrays to NumPy arrays.
    """
    if _is_of_other_library(X) and not get_tags(estimator).array_api_support:
        library, kind = type(X).__module__.partition(".")[0], type(X).__name__
        raise TypeError(
            f"X expected NumPy arrays, data frames or sparse matrices, got {library}.{kind}: "
            f"{type(estimator).__name__} does not compute with arrays of other libraries. Convert "
            f"the rows to a NumPy array."
        )


def on_current_device(machine: Machine) -> Machine:
    """Copy of a machine whose arrays are on the device on which the running method computes.

    If the method computes on the host, the machine itself is returned.
    """
    device = _DEVICE.get()
    return machine if device is None else machine.map_arrays(partial(like, array=device))


def computed_by_numpy(function: Function) -> Function:
    """Let a function accept arrays of other libraries, and compute with NumPy arrays.

    Without array API dispatch, nothing changes.

    Parameters
    ----------
    function : callable
        Function whose arguments may be arrays and estimators.

    Returns
    -------
    function : callable
        Function that converts its arguments to NumPy arrays, and switches array API dispatch off,
        so that the methods of estimators return NumPy arrays.
    """

    @wraps(function)
    def converting(*args: Any, **kwargs: Any) -> Any:
        if not get_config()["array_api_dispatch"]:
            return function(*args, **kwargs)
        with config_context(array_api_dispatch=False):
            return function(
                *map(to_numpy, args), **{name: to_numpy(value) for name, value in kwargs.items()}
            )

    return cast(Function, converting)


def follows_input(method: Function) -> Function:
    """Let a method accept arrays of other libraries, and return arrays of the library of the model.

    The arguments are converted to NumPy arrays before the decorated method is called. Without array
    API dispatch, nothing changes.

    Parameters
    ----------
    method : callable
        Method of a fitted estimator, whose first argument may be an array.

    Returns
    -------
    method : callable
        Method that raises a ValueError if an array is in another library or on another device than
        the public arrays of the estimator, and the TypeError of `check_library`. The first
        positional argument and the keyword arguments `X`, `v` and `init` are checked.
    """
    computing = computed_by_numpy(method)

    @wraps(method)
    def following(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not get_config()["array_api_dispatch"]:
            return method(self, *args, **kwargs)
        place = place_of(getattr(self, "components_", None))
        for given in (*args[:1], *(kwargs.get(name) for name in ("X", "v", "init"))):
            check_library(self, given)
            if not (given is None or np.isscalar(given)) and hasattr(self, "components_"):
                _check_same(place, place_of(given), self, method.__name__)
        token = _DEVICE.set(None if place is None else place.example)
        try:
            result = computing(self, *args, **kwargs)
        finally:
            _DEVICE.reset(token)
        return result if place is None else place.back(result)

    return cast(Function, following)


def _is_of_other_library(array: Any) -> bool:
    """True for an array of a library other than NumPy, under array API dispatch."""
    if not get_config()["array_api_dispatch"] or isinstance(array, np.ndarray):
        return False
    return _follows_protocols(array) or _follows_array_api(array)


def _follows_protocols(array: Any) -> bool:
    """True for an array of a library that follows NumPy's protocols, as CuPy does."""
    return hasattr(array, "__array_function__") and hasattr(array, "get")


def _follows_array_api(array: Any) -> bool:
    """True for an array of the array API or a tensor of PyTorch.

    Arrays of PyArrow have `__dlpack__`, too, but it fails for text and missing values.
    """
    is_array = hasattr(array, "__array_namespace__") or hasattr(array, "detach")
    return is_array and hasattr(array, "__dlpack__")


def _check_same(fitted: Place | None, given: Place | None, estimator: Any, name: str) -> None:
    """Raise a ValueError unless both places are equal."""
    if fitted == given:
        return
    words = ["NumPy" if place is None else str(place) for place in (fitted, given)]
    raise ValueError(
        f"{type(estimator).__name__}.{name}() must use the same namespace and device as the fitted "
        f"arrays, which are in {words[0]}, got {words[1]}. Convert the rows or fit again."
    )


def _cuda_rows(array: Any) -> Any:
    """CuPy view of a CUDA tensor of PyTorch; None for other arrays."""
    if getattr(getattr(array, "device", None), "type", None) != "cuda":
        return None
    import cupy

    return cupy.from_dlpack(array.detach())
