"""Detection of divergence, and restoration of the parameters before the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import every_kth_row
from skrbm.core.training.part import Part
from skrbm.core.training.state import TrainingState, mapped

COPY = methodcaller("copy")
N_GUARD_ROWS = 16  # largest number of rows whose hidden fields are checked after an epoch
MAX_FIELD = 1e8  # nats, difference from the mean; outliers of narrow clusters can cause 1e6


class DivergenceError(ValueError):
    """Error raised if training diverges; earlier parameters are kept."""


@final
@dataclass(frozen=True)
class Guard(Part):
    """Part that checks the parameters after every epoch, and undoes an epoch that diverged.

    Parameters
    ----------
    precision : dtype, default=numpy.float64
        Floating-point type whose range the parameters must not exceed.
    """

    name: ClassVar[str] = "guard"

    precision: Any = np.float64

    @contextmanager
    def around_epoch(self, machine: Machine, state: TrainingState, v: Any) -> Iterator[None]:
        """Context manager that restores machine and state if the epoch diverges.

        Raises
        ------
        DivergenceError
            If a parameter, or the mean or a moment of the visible units without a field, is not
            finite in `precision`. If a hidden field of one of at most `N_GUARD_ROWS` rows is not
            finite, or differs by `MAX_FIELD` nats or more from the mean over these rows, or from
            the field of the mean visible states without a field. If
            `Machine.lost_curvature` is not below 1.
        """
        # `deepcopy` would take half the time of an update.
        last, last_state = (mapped(r, COPY) for r in (machine.parameters, vars(state)))
        try:
            yield
        finally:
            divergence = self._divergence(machine, v)
            if divergence:
                machine.assign(last)
                vars(state).update(last_state)
        if divergence:
            raise DivergenceError(divergence)

    def _divergence(self, machine: Machine, v: Any) -> str:
        """Description of the divergence; empty if there is none."""
        with np.errstate(over="ignore", invalid="ignore"):
            broken = _non_finite(machine.astype(self.precision))
            if broken:
                return f"{', '.join(broken)} became infinite or NaN"
            # a slice: indices would be copied to a device after every pass
            rows = every_kth_row(v, N_GUARD_ROWS).astype(machine.dtype, copy=False)
            hidden_field = machine.hidden_field(rows)
            center = machine.visible.mean(machine.visible.zero_field(1)).astype(machine.dtype)
            # The rows may be equal, and the mean without a field may be one of them.
            centers = hidden_field.mean(axis=0), machine.hidden_field(center)
            largest = max(np.abs(hidden_field - c).max() for c in centers)
            lost = machine.lost_curvature
        if not largest < MAX_FIELD:
            return (
                f"the weights became so large that a hidden field reached {largest:.3g} nats, with "
                f"a limit of {MAX_FIELD:g}"
            )
        if not lost < 1:
            return (
                f"the weights became so large that the distribution cannot be normalized: the "
                f"energy loses {lost:.3g} of its curvature, with a limit of 1"
            )
        return ""


def _non_finite(machine: Machine) -> list[str]:
    """Names of non-finite arrays: parameters, and visible mean and moments without a field."""
    numbers, visible = dict(machine.parameters), machine.visible
    field = visible.zero_field(1)
    mean = numbers["mean of the visible units"] = visible.mean(field)
    for name, moment in visible.expected_moments(mean, field, np.ones_like(mean, shape=1)).items():
        numbers[f"moment of visible_{name}"] = moment
    return [name for name, array in numbers.items() if not np.isfinite(array).all()]
