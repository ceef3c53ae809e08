"""Precision of an update, and the arrays that it reuses."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, row_blocks


@final
class Workspace:
    """What an update knows of precision, and arrays that it writes anew every time.

    Parameters are kept and moved in the precision of the machine. States and their products may
    have another: a gradient that is estimated from samples loses nothing in single precision, and
    takes half the time.

    Parameters
    ----------
    dtype : dtype, default=None
        Floating-point type of states and their products; None for that of the parameters.
    """

    def __init__(self, dtype: Any = None) -> None:
        self.dtype = None if dtype is None else np.dtype(dtype)
        self._arrays: dict[Hashable, Array] = {}
        self._copied: tuple[Machine | None, Machine | None] = None, None

    def batch(self, v: Any, rows: Array | slice, machine: Machine) -> Any:
        """Mini-batch in the precision of states; dense ones are overwritten by the next.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Data, or anything else that its rows can be taken from by their numbers.
        rows : ndarray of shape (n_rows,) or slice
            Their numbers.
        machine : Machine
            With the present parameters.

        Returns
        -------
        batch : {ndarray, sparse matrix} of shape (n_rows, n_visible)
            In the precision of states.
        """
        if not isinstance(v, np.ndarray):
            return self.rows(v[rows], machine)
        n_rows = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        batch = self.array("v", (n_rows, v.shape[1]), self.dtype or machine.dtype)
        if isinstance(rows, slice):
            batch[...] = v[rows]
        else:
            for own in row_blocks(batch):
                batch[own] = v[rows[own]]
        return batch

    def rows(self, v: Any, machine: Machine) -> Any:
        """Mini-batch in the precision of states, the very same if it has that."""
        dtype = self.dtype or machine.dtype
        return v if v.dtype == dtype else v.astype(dtype)

    def rounded(self, machine: Machine, weights: Array | None = None) -> Machine:
        """Machine in the precision of states.

        Parameters
        ----------
        machine : Machine
            With the present parameters.
        weights : ndarray of shape (n_visible, n_hidden), default=None
            Its weights, where they are rounded already; None to round them.

        Returns
        -------
        machine : Machine
            The very same if it has that precision; else a copy, which the next call overwrites.
        """
        if self.dtype is None or machine.dtype == self.dtype:
            return machine
        if weights is not None:
            layers = machine.visible.astype(self.dtype), machine.hidden.astype(self.dtype)
            return Machine(*layers, weights)
        source, copy = self._copied
        if copy is None or source is not machine:
            copy = machine.astype(self.dtype, copy=True)
            self._copied = machine, copy
        copy.assign(machine.parameters)
        return copy

    def extended(self, name: str, first: Array, n_more: int) -> Array:
        """Rows of an array and, below them, room for more; the next call overwrites both."""
        rows = self.array(name, (len(first) + n_more, first.shape[1]), first.dtype)
        if first.base is not rows.base:
            rows[: len(first)] = first
        return rows

    def signed_shares(self, n_first: int, n_second: int, dtype: Any) -> Array:
        """Weights of rows whose sum is the mean of the first ones minus that of the others."""
        shares = self._arrays.get((n_first, n_second))
        if shares is None:
            shares = np.repeat([1 / n_first, -1 / n_second], [n_first, n_second]).astype(dtype)
            self._arrays[n_first, n_second] = shares
        return shares

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """First rows of the array of this name, which grows when more are asked for."""
        array = self._arrays.get(name)
        if (
            array is None
            or len(array) < shape[0]
            or array.shape[1:] != shape[1:]
            or array.dtype != dtype
        ):
            array = self._arrays[name] = np.empty(shape, dtype)
        return array[: shape[0]]
