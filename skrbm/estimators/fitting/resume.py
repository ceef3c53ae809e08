"""The plan of a fit that is under way, so that another process can make the passes that are left."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import joblib
import numpy as np

from skrbm.core.numerics import Array

FREE = {"n_jobs", "verbose", "warm_start", "random_state"}  # parameters that a plan does not fix

Plan = dict[str, Any]
Moving = Sequence[tuple[Any, Sequence[str]]]  # objects, and the names of what passes change in them


def plan_of(run: Any, moving: Moving, *, is_over: bool) -> Plan:
    """Everything that the passes left depend on, beside the estimator's own attributes.

    Parameters
    ----------
    run : Passes
        Between two passes.
    moving : sequence of (object, sequence of str)
        What its passes change.
    is_over : bool
        Whether no pass is left, however many were planned.

    Returns
    -------
    plan : dict
        Not copied.
    """
    return {
        "n_done": run.n_iter if is_over else run.n_done,
        "n_iter": run.n_iter,
        "settings": _settings(run.owner),
        "statistics": run.statistics,
        "parameters": run.machine.parameters,
        "rng": run.rng.bit_generator.state,
        "moving": [{name: getattr(owner, name) for name in names} for owner, names in moving],
    }


def check_plan(plan: Plan, owner: Any, statistics: tuple[float, Array, Array]) -> None:
    """Raise a ValueError unless a fit is the one that was planned.

    Parameters
    ----------
    plan : dict
        As of `plan_of`.
    owner : object
        Estimator.
    statistics : tuple of float, ndarray and ndarray
        Number of rows, means and variances of the data.
    """
    planned, present = plan["settings"], _settings(owner)
    changed = [name for name in present if present[name] != planned.get(name)]
    if changed:
        raise ValueError(
            f"A checkpoint goes on with the parameters that it was made with, but {changed} were "
            f"changed. Set them back, or set warm_start=False to start anew."
        )
    (n_planned, *moments), (n_rows, *others) = plan["statistics"], statistics
    is_same = n_rows == n_planned and np.shape(moments) == np.shape(others)
    if not (is_same and np.allclose(moments, others, equal_nan=True)):
        raise ValueError(
            f"A checkpoint goes on with the rows that it was made with, {n_planned:g} of them, but "
            f"got {n_rows:g} rows, or rows of other means and variances. Pass those rows, or set "
            f"warm_start=False to start anew."
        )


def put_back(plan: Plan, run: Any, moving: Moving) -> None:
    """Make a run what it was when its plan was kept.

    Parameters
    ----------
    plan : dict
        As of `plan_of`.
    run : Passes
        Built from the same rows and parameters.
    moving : sequence of (object, sequence of str)
        What its passes change.
    """
    run.rng.bit_generator.state = plan["rng"]
    for (owner, names), values in zip(moving, deepcopy(plan["moving"]), strict=True):
        for name in names:
            setattr(owner, name, values[name])


def _settings(owner: Any) -> dict[str, str]:
    """Hashes of the parameters that a plan fixes."""
    parameters = owner.get_params(deep=True).items()
    return {
        name: joblib.hash(value)
        for name, value in parameters
        if name.rpartition("__")[2] not in FREE and not hasattr(value, "get_params")
    }
