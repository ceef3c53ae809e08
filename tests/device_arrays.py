"""Stand-in for a library of arrays on a device, such as CuPy, on a machine without one.

A `DeviceArray` runs NumPy code by NumPy's protocols (NEP 13 and 18). It refuses what CuPy refuses:
silent conversion to a NumPy array, mixtures with NumPy arrays, and the few ufunc methods and
keywords that CuPy lacks. It also refuses copies to the device that CuPy would make silently, as
for an index that is a NumPy array. `transfers` counts the copies that remain.

On a machine with a GPU, `SKRBM_TEST_DEVICE=cupy` runs the tests with arrays of CuPy instead.
"""

import os
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

REDUCTIONS = {
    "reduce": ("add", "multiply"),
    "accumulate": ("add", "multiply"),
    "reduceat": ("add",),
}
CREATIONS = (np.asarray, np.array, np.zeros, np.ones, np.empty, np.full, np.arange, np.eye)
UNKNOWN = {"device", "subok", "where"}  # arguments of NumPy's functions that CuPy lacks
METHODS = [
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "astype",
    "clip",
    "copy",
    "cumsum",
    "diagonal",
    "dot",
    "fill",
    "max",
    "mean",
    "min",
    "nonzero",
    "prod",
    "ravel",
    "repeat",
    "reshape",
    "squeeze",
    "std",
    "sum",
    "swapaxes",
    "take",
    "transpose",
    "var",
    "view",
]
ATTRIBUTES = ["shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags", "base"]
transfers = Counter()  # "to host", "to device": arrays; "scalar": single numbers


@contextmanager
def counted():
    """Count the transfers within a context."""
    transfers.clear()
    yield transfers


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """Array "on a device", which wraps a NumPy array; create it by `to_device`."""

    def __init__(self, data):
        self._data = data

    def get(self):
        """Copy to the host, as in CuPy."""
        transfers["to host"] += 1
        return self._data.copy()

    def item(self, *index):
        transfers["scalar"] += 1
        return self._data.item(*index)

    __float__ = __int__ = __index__ = __bool__ = None  # set below

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion of an array on the device to a NumPy array.")

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        if method != "__call__" and ufunc.__name__ not in REDUCTIONS.get(method, ()):
            raise TypeError(f"The device library has no {ufunc.__name__}.{method}.")
        if kwargs.keys() - {"dtype", "casting", "axis", "keepdims"}:
            raise TypeError(f"The device's {ufunc.__name__} has no arguments {sorted(kwargs)}.")
        if out:
            kwargs["out"] = _host(out)
        return _device(getattr(ufunc, method)(*_host(inputs), **kwargs))

    def __array_function__(self, func, types, args, kwargs):
        if UNKNOWN & kwargs.keys():  # `numpy.full` and `numpy.ones` pass a device with `like=`
            raise TypeError(f"The device's {func.__name__} has no arguments {sorted(kwargs)}.")
        if func in CREATIONS:  # with `like=`, which is an explicit copy to the device
            transfers.update(["to device"] * (func in (np.asarray, np.array)))
            return _device(func(*args, **kwargs).copy())
        return _device(func(*_host(args), **_host(kwargs)))

    def __getitem__(self, key):
        return _device(self._data[_host(key)])

    def __setitem__(self, key, value):
        self._data[_host(key)] = _host(value)

    def __len__(self):
        return len(self._data)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        return f"DeviceArray({self._data!r})"

    def tolist(self):
        return self.get().tolist()

    @property
    def T(self):
        return _device(self._data.T)


def _forward(name):
    def method(self, *args, **kwargs):
        return _device(getattr(self._data, name)(*_host(args), **_host(kwargs)))

    return method


for _name in METHODS:
    setattr(DeviceArray, _name, _forward(_name))
for _name in ATTRIBUTES:
    setattr(DeviceArray, _name, property(lambda self, name=_name: getattr(self._data, name)))
for _name, _kind in (("float", float), ("int", int), ("index", int), ("bool", bool)):
    setattr(DeviceArray, f"__{_name}__", lambda self, kind=_kind: kind(self.item()))


def _host(value):
    """Replace the device arrays in nested arguments; refuse NumPy arrays among them."""
    if isinstance(value, DeviceArray):
        return value._data
    if isinstance(value, np.ndarray):
        raise TypeError("Mixture of an array on the device and a NumPy array.")
    if isinstance(value, dict):
        return {name: _host(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_host, value))
    if isinstance(value, slice):
        return slice(*map(_host, (value.start, value.stop, value.step)))
    return value


def _device(value):
    """Wrap NumPy arrays and scalars in nested results: reductions stay on the device."""
    if isinstance(value, np.ndarray | np.generic):
        return DeviceArray(np.asanyarray(value))
    if isinstance(value, list | tuple):
        return type(value)(map(_device, value))
    return value


def to_device(array):
    """Copy a NumPy array to the device."""
    return DeviceArray(np.array(array))


class _Generator:
    """Generator of draws on the device."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)

    def random(self, size):
        return _device(self._rng.random(size))

    def standard_normal(self, size):
        return _device(self._rng.standard_normal(size))


random = SimpleNamespace(default_rng=_Generator)


USES_CUPY = os.environ.get("SKRBM_TEST_DEVICE") == "cupy"
stand_in_only = pytest.mark.skipif(USES_CUPY, reason="CuPy does not count transfers.")
if USES_CUPY:
    import cupy

    DeviceArray, to_device = cupy.ndarray, cupy.array
