"""Random states in place of data values that lie between the two states of a unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.part import Part
from skrbm.core.training.state import TrainingState


@final
@dataclass(frozen=True)
class GrayValues(Part):
    """Part that replaces dense values between the two states of a unit by random states.

    The mean of each random state is the value that it replaces. See `Units.draw_states_of_means`
    for values outside the range of the states.
    """

    name: ClassVar[str] = "gray values"

    def draw_rows(
        self,
        machine: Machine,
        state: TrainingState,
        rows: Array | slice,
        v: Any,
        rng: np.random.Generator,
    ) -> Any:
        """Replace values between the states in the mini-batch `v` by random states, in place."""
        return machine.visible.draw_states_of_means(v, rng) if machine.visible.has_means(v) else v
