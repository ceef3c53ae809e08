"""Values between the two states of a unit, replaced by random states in every epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.part import Part


@final
@dataclass(frozen=True)
class GreyValues(Part):
    """Random states whose means are the values of the data; sparse rows are not changed."""

    name: ClassVar[str] = "grey values"

    def applies_to(self, machine: Machine, v: Any) -> bool:
        """True for an array with such values; other containers are checked for each mini-batch."""
        return not isinstance(v, np.ndarray) or machine.visible.has_means(v)

    def draw_rows(
        self, machine: Machine, rows: Array | slice, v: Any, rng: np.random.Generator
    ) -> Any:
        """Mini-batch of random states."""
        return machine.visible.draw_states_of_means(v, rng) if machine.visible.has_means(v) else v
