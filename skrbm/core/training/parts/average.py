"""Polyak average of the parameters over the updates."""

from __future__ import annotations

from typing import Any, ClassVar, final

from skrbm.core.centering import recenter
from skrbm.core.machine import Machine
from skrbm.core.numerics import IN_PLACE_BYTES, Array, row_blocks
from skrbm.core.training.part import Part, Step
from skrbm.core.training.state import TrainingState

RECENCY = 3.0  # power of an update's number in its weight: averages about the last quarter of a run
N_ALL, STRIDE = 100, 10  # after 100 updates, average every tenth update, with tenfold weight
N_REMEMBERED = 1000  # earlier updates that an average can count in any call of fit or partial_fit


@final
class Average(Part):
    """Running average of the parameters and offsets of the machine in training.

    The weight of an update in the average [1]_ grows about as the third power of its number. The
    average therefore forgets the initialization even if the number of updates is not known in
    advance [2]_. After `N_ALL` updates, only every `STRIDE`-th update is averaged. If training is
    centered, centered parameters are averaged, because an average of plain parameters would depend
    on the origin of the data.

    References
    ----------
    .. [1] Polyak, Juditsky (1992), "Acceleration of stochastic approximation by averaging", SIAM
       Journal on Control and Optimization 30(4), 838-855. :doi:`10.1137/0330046`
    .. [2] Shamir, Zhang (2013), "Stochastic gradient descent for non-smooth optimization:
       convergence results and optimal averaging schemes", ICML, PMLR 28(1), 71-79, section 4.
    """

    name: ClassVar[str] = "average"

    def after_step(self, step: Step, machine: Machine) -> None:
        """Count the update, and add the current arrays to the average if they are due."""
        memory, present = self.memory(step.state), machine.arrays
        if memory.get("arrays", {}).keys() != present.keys():
            arrays = {name: array.copy() for name, array in present.items()}
            memory |= {"arrays": arrays, "n_averaged": 0, "n_pending": 0}
        memory["n_averaged"] += 1
        memory["n_pending"] += 1
        if memory["n_averaged"] <= N_ALL or memory["n_pending"] == STRIDE:
            _blend(memory["arrays"], present, _pending_share(memory))
            memory["n_pending"] = 0


def limit_average(state: dict[str, Any], n_updates: int) -> None:
    """Let an average count as many earlier updates as a call has, or `N_REMEMBERED` if it has fewer.

    The average of a model that was trained for long would otherwise hardly change in new training,
    although the rows may have changed.

    Parameters
    ----------
    state : dict of str
        States of the parts of training, which may contain an average.
    n_updates : int
        Number of updates of the call.
    """
    memory = state.get(Average.name)
    if memory is not None:
        memory["n_averaged"] = min(memory["n_averaged"], max(n_updates, N_REMEMBERED))


def averaged(machine: Machine, state: TrainingState) -> Machine:
    """Plain machine with the averaged parameters.

    Parameters
    ----------
    machine : Machine
        Plain machine after the last update, which is not changed.
    state : TrainingState
        Training state of this machine.

    Returns
    -------
    machine : Machine
        Plain machine with the averaged parameters, or `machine` itself if `state` contains no
        average.
    """
    memory = state.parts.get(Average.name)
    if memory is None:
        return machine
    arrays, moved = memory["arrays"], machine.astype(machine.dtype, copy=True)
    if arrays.keys() != moved.arrays.keys():  # of a centered machine
        moved = recenter(moved, *state.offsets(machine.dtype))
    if memory["n_pending"]:
        arrays = {name: array.copy() for name, array in arrays.items()}
        _blend(arrays, moved.arrays, _pending_share(memory))
    moved.assign(arrays)
    return recenter(moved, None, None)


def _pending_share(memory: dict[str, Any]) -> float:
    """Weight of the pending updates in the updated average, at most 1."""
    n_averaged, n_pending = memory["n_averaged"], memory["n_pending"]
    return float(min(1.0, n_pending * (1 + RECENCY) / (n_averaged + RECENCY)))


def _blend(average: dict[str, Array], present: dict[str, Array], share: float) -> None:
    """Update an average in place; the current arrays have the weight `share`, between 0 and 1."""
    for name, array in present.items():
        for rows in row_blocks(array, IN_PLACE_BYTES):
            mean, present_rows = average[name][rows], array[rows]
            mean -= present_rows  # three operations in place are faster than one with a copy
            mean *= 1 - share
            mean += present_rows
