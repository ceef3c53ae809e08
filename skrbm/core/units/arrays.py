"""Layers as records of arrays, one value for each unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from skrbm.core.numerics import Array


class UnitArrays:
    """Dataclass whose array fields have one value for each unit; other fields are left alone."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def map_arrays(self, function: Callable[[Array], Array]) -> Self:
        """Layer in which every array of one value per unit is replaced by its image."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        images = {name: function(a) for name, a in values.items() if isinstance(a, np.ndarray)}
        is_same = all(image is values[name] for name, image in images.items())
        return self if is_same else replace(self, **images)

    def astype(self, dtype: Any, *, copy: bool = False) -> Self:
        """Layer with parameters of another precision, or with arrays of its own.

        Parameters
        ----------
        dtype : dtype
            Floating-point type.
        copy : bool, default=False
            Whether to copy arrays that have the type already.

        Returns
        -------
        units : Units
            Shares the arrays that were not copied.
        """
        return self.map_arrays(lambda a: a if a.dtype == bool else a.astype(dtype, copy=copy))

    def take(self, index: int | Array) -> Self:
        """Layer of one unit: the same for all samples, or for each sample another.

        Parameters
        ----------
        index : int or ndarray of shape (n_samples,)
            Which unit.

        Returns
        -------
        unit : Units
            Same type, with arrays of shape (1,) or (n_samples, 1).
        """
        return self.map_arrays(lambda array: np.asarray(array[index, None]))
