"""Return to the last good parameters when training diverges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import spread_rows
from skrbm.core.training.part import Part
from skrbm.core.training.state import TrainingState

N_GUARD_ROWS = 16  # rows whose hidden fields are checked after an epoch
MAX_FIELD = 1e8  # nats; outliers of narrow clusters may cause a hundredth of it


class DivergenceError(ValueError):
    """Training left the range of finite numbers; the last finite parameters are kept."""


@final
@dataclass(frozen=True)
class Guard(Part):
    """Check of the parameters after every epoch; a broken epoch is undone.

    Parameters
    ----------
    precision : dtype, default=numpy.float64
        Floating-point type in whose range the parameters have to stay.
    """

    name: ClassVar[str] = "guard"

    precision: Any = np.float64

    @contextmanager
    def around_epoch(self, machine: Machine, state: TrainingState, v: Any) -> Iterator[None]:
        """Context of an epoch, after which machine and state are good, or what they were before.

        Raises
        ------
        DivergenceError
            If parameters are not finite, or a hidden field is beyond `MAX_FIELD` nats.
        """
        last, last_state = _copied(machine.parameters), _copied(vars(state))
        try:
            yield
        finally:
            symptom = self._symptom(machine, v)
            if symptom:
                machine.assign(last)
                vars(state).update(last_state)
        if symptom:
            raise DivergenceError(symptom)

    def _symptom(self, machine: Machine, v: Any) -> str:
        """Description of what is wrong with a machine, empty if nothing is."""
        with np.errstate(over="ignore", invalid="ignore"):
            is_precise = machine.dtype == self.precision  # `astype` looks at every array
            broken = _non_finite(machine if is_precise else machine.astype(self.precision))
            if broken:
                return f"{', '.join(broken)} expected finite, got infinite or NaN"
            rows = spread_rows(v, N_GUARD_ROWS).astype(machine.dtype, copy=False)
            hidden_field = machine.hidden_field(rows)
            largest = np.abs(hidden_field - hidden_field.mean(axis=0)).max()
            lost = machine.lost_curvature
        if not largest < MAX_FIELD:
            return (
                f"weights exploded, expected fields of hidden units below {MAX_FIELD:g} nats, got "
                f"{largest:.3g}"
            )
        if not lost < 1:
            return f"weights left no distribution of the states, got a lost_curvature of {lost:.3g}"
        return ""


def _non_finite(machine: Machine) -> list[str]:
    """Names of the parameters that are not finite, or imply moments that are not."""
    numbers, visible = dict(machine.parameters), machine.visible
    field = visible.zero_field(1)
    mean = numbers["mean of the visible units"] = visible.mean(field)
    for name, moment in visible.expected_moments(mean, field, np.ones(1, mean.dtype)).items():
        numbers[f"moment of visible_{name}"] = moment
    return [name for name, array in numbers.items() if not np.isfinite(array).all()]


def _copied(record: Any) -> Any:
    """Copy of nested dictionaries of arrays; `deepcopy` takes as long as half an update."""
    if isinstance(record, dict):
        return {name: _copied(value) for name, value in record.items()}
    return record.copy() if isinstance(record, np.ndarray) else record
