"""Constructors of the estimators, generated from their parameters."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, field, make_dataclass
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform()
def with_constructor(cls: type[T]) -> type[T]:
    """Generate the constructor of an estimator, which stores its arguments, as in a dataclass.

    The estimator does not become a dataclass itself: dask, for example, identifies instances of
    dataclasses by their fields, and would take two fits with the same parameters for equal.

    Parameters
    ----------
    cls : type
        Class whose `_parameter_constraints` names the parameters. The first one may be passed by
        position, the others by keyword only. Defaults are class attributes of the same names; a
        parameter without a default is required. The types are those of the annotations.

    Returns
    -------
    cls : type
        The same class, with the constructor.
    """
    types: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        types |= inspect.get_annotations(base, eval_str=base.__module__.startswith("skrbm."))
    names = list(vars(cls)["_parameter_constraints"])
    fields = [
        (name, types[name], field(default=getattr(cls, name, MISSING), kw_only=name != names[0]))
        for name in names
    ]
    twin: Any = make_dataclass(cls.__name__, fields)
    twin.__init__.__module__ = cls.__module__
    cls.__init__ = twin.__init__  # type: ignore[method-assign]
    return cls
