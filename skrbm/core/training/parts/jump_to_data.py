"""Metropolis jumps of the persistent chains to rows of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from skrbm.core.chains.jumps import jump, mixed_rows
from skrbm.core.numerics import Array, dense, spread_rows
from skrbm.core.training.negative_phase import PERSISTENT_CHAINS
from skrbm.core.training.part import Part, Step
from skrbm.core.training.state import pause, recent_success

# Of a try, and updates from one to the next: as many jumps by fewer and larger calls.
N_CHAINS, N_ROWS, SHORTEST_PAUSE, LONGEST_PAUSE = 8, 16, 2, 40
# Share of tries with mixed rows, and rows in each: more of them make jumps to data rare.
MIXED_SHARE, N_MIXED = 0.1, 8


@final
@dataclass(frozen=True)
class JumpToData(Part):
    """Persistent chains propose to jump to the surroundings of some rows, now and then.

    Gibbs sampling does not lead from one mode to another that is far away: chains would stay in one,
    or outside all, and the model would run away from data that they do not see. Jumps that are rarely
    accepted, as in models of many modes that lie close, are tried rarely. Modes that are known to lie
    far apart are offered in every update, since a mini-batch need not have rows in all of them.

    Parameters
    ----------
    n_chains : int, default=1
        Markov chains of a particle, of which the first samples the machine itself.
    mixed_share : float, default=MIXED_SHARE
        Share of the tries in which chains may also jump to mixtures of two rows: training cannot
        remove a mode without data that no chain visits.
    kernel : callable, default=jump
        Move of chains to the surroundings of rows, with the signature of `chains.jumps.jump`.
    """

    name: ClassVar[str] = "jumps"
    needs: ClassVar[frozenset[str]] = frozenset({PERSISTENT_CHAINS})

    n_chains: int = 1
    mixed_share: float = MIXED_SHARE
    kernel: Callable[..., tuple[Array, Array]] = jump

    def move_chains(self, step: Step) -> None:
        """Let a group of the chains try to jump, if it is time."""
        state, rng, memory = step.state, step.rng, self.memory(step.state)
        if state.n_updates < memory.get("next_try", 0):
            return
        n_particles = len(state.particles) // self.n_chains
        n_groups = -(-n_particles // N_CHAINS)
        group = int(n_groups * rng.random())
        members = slice(group * n_particles // n_groups, (group + 1) * n_particles // n_groups)
        chains = state.particles[members]
        rows, longest, modes = spread_rows(step.v, N_ROWS), LONGEST_PAUSE, memory.get("modes")
        if modes is not None:
            rows, longest = np.concatenate([dense(rows), modes.astype(rows.dtype)]), 1
        is_mixed = self.mixed_share > 0 and rng.random() < self.mixed_share
        if is_mixed:
            mixtures = mixed_rows(step.machine, rows, N_MIXED, rng)
            rows = np.concatenate([dense(rows), mixtures])
        chains[...], has_jumped = self.kernel(step.machine, chains, rows, rng)
        if not is_mixed:
            share = np.count_nonzero(has_jumped) / len(chains)
            memory["acceptance"] = recent_success(memory.get("acceptance", 1.0), share)
        acceptance, least = memory.get("acceptance", 1.0), 0.5 * SHORTEST_PAUSE
        memory["next_try"] = state.n_updates + pause(acceptance, least, SHORTEST_PAUSE, longest)
