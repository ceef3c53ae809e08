"""Metropolis jumps of the persistent chains to rows of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.chains.jumps import jump, mixed_rows
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, spread_rows
from skrbm.core.parallel import one_blas_thread
from skrbm.core.training.negative_phase import PERSISTENT_CHAINS
from skrbm.core.training.part import Part, Step
from skrbm.core.training.start.far_rows import far_rows, searched_rows
from skrbm.core.training.state import TrainingState, pause, recent_success

# A try, and updates from one to the next: 8 chains every 2 updates reach the same likelihoods, and
# take 5 to 20 % longer (tests/core/training/parts/test_jump_to_data.py checks the pace).
CHAINS_PER_TRY, ROWS_PER_TRY, MIN_TRY_PAUSE, MAX_TRY_PAUSE = 16, 16, 4, 40
# Share of the tries with mixed rows, and rows in each: more of them make jumps to data rare. Without
# them tables of bits in three clusters lose 4 nats in 30 epochs, and up to 17
# (benchmarks/results/leave_one_out.json).
MIXED_SHARE, N_MIXED_ROWS = 0.1, 8
# Rows that are far apart, and those of lowest free energy that every try offers: six rare rows of
# 2,000 are then learned by all of 16 fits (benchmarks/results/leave_one_out.json).
N_FAR_ROWS, N_OFFERED_ROWS = 64, 8
CHOICE_PAUSE = (
    16  # updates from one choice of the offered rows to the next, a third of a try's time
)


@final
@dataclass(frozen=True)
class JumpToData(Part):
    """Persistent chains propose to jump to the surroundings of some rows.

    A group of at most `CHAINS_PER_TRY` chains tries every `MIN_TRY_PAUSE` to `MAX_TRY_PAUSE` updates,
    more rarely where jumps are rarely accepted, as in models of many modes that lie close; in every
    update where the start has found clusters, whose states are "modes" in the part's numbers.

    Gibbs sampling does not lead from one mode to another that is far away: chains would stay in one,
    or outside all, and the model would run away from data that they do not see.

    A rare row pushes its mode up by tens of nats when its mini-batch comes, and is not offered again
    for many updates. So rows that are far from all others are offered in every try, those first
    whose free energy is lowest at the time.

    Parameters
    ----------
    n_chains : int, default=1
        Markov chains of a particle, of which the first samples the machine itself.
    mixed_share : float, default=MIXED_SHARE
        Share of the tries in which chains may also jump to mixtures of two rows: training cannot
        remove a mode without data that no chain visits.
    n_anchors : int, default=N_FAR_ROWS
        Number of rows that are far apart; zero offers rows of the mini-batch alone.
    kernel : callable, default=jump
        Move of chains to the surroundings of rows, with the signature of `chains.jumps.jump`.
    """

    name: ClassVar[str] = "jumps"
    needs: ClassVar[frozenset[str]] = frozenset({PERSISTENT_CHAINS})
    data_rows: ClassVar[tuple[str, ...]] = ("anchors",)

    n_chains: int = 1
    mixed_share: float = MIXED_SHARE
    n_anchors: int = N_FAR_ROWS
    kernel: Callable[..., tuple[Array, Array]] = jump

    def begin(self, machine: Machine, state: TrainingState, v: Any) -> None:
        """Find anchors among the rows of a run."""
        if not self.n_anchors:
            return
        low, high = machine.visible.column_bounds
        memory, searched = self.memory(state), dense(searched_rows(v, v.shape[1]))
        with one_blas_thread():  # products of a few megabytes with a vector
            memory["anchors"] = far_rows(searched, high - low, self.n_anchors)
        if np.max(memory.get("offered", 0)) >= len(memory["anchors"]):  # of other rows
            memory["next_choice"] = 0

    def move_chains(self, step: Step) -> None:
        """Let a group of the chains try to jump, if it is time."""
        state, rng, memory = step.state, step.rng, self.memory(step.state)
        if state.n_updates < memory.get("next_try", 0):
            return
        n_particles = len(state.particles) // self.n_chains
        n_groups = -(-n_particles // CHAINS_PER_TRY)
        group = int(n_groups * rng.random())
        members = slice(group * n_particles // n_groups, (group + 1) * n_particles // n_groups)
        chains = state.particles[members]
        offered, longest = [dense(spread_rows(step.v, ROWS_PER_TRY))], MAX_TRY_PAUSE
        if "anchors" in memory:
            offered.append(self._lowest_anchors(step, memory))
        if "modes" in memory:
            offered.append(memory["modes"].astype(step.machine.dtype))
            longest = 1
        rows = np.concatenate(offered)
        is_mixed = self.mixed_share > 0 and rng.random() < self.mixed_share
        if is_mixed:
            mixtures = mixed_rows(step.machine, rows, N_MIXED_ROWS, rng)
            rows = np.concatenate([rows, mixtures])
        chains[...], has_jumped = self.kernel(step.machine, chains, rows, rng)
        if not is_mixed:
            share = np.count_nonzero(has_jumped) / len(chains)
            memory["acceptance"] = recent_success(memory.get("acceptance", 1.0), share)
        acceptance, least = memory.get("acceptance", 1.0), 0.5 * MIN_TRY_PAUSE
        memory["next_try"] = state.n_updates + pause(acceptance, least, MIN_TRY_PAUSE, longest)

    def _lowest_anchors(self, step: Step, memory: dict[str, Any]) -> Array:
        """Anchors of lowest free energy, chosen anew now and then."""
        anchors = memory["anchors"].astype(step.machine.dtype, copy=False)
        if step.state.n_updates >= memory.get("next_choice", 0):
            memory["offered"] = np.argsort(step.machine.free_energy(anchors))[:N_OFFERED_ROWS]
            memory["next_choice"] = step.state.n_updates + CHOICE_PAUSE
        return np.asarray(anchors[memory["offered"]])
