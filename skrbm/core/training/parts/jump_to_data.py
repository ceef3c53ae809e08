"""How often the persistent chains try to jump to the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from skrbm.core.chains.jumps import jump, mixed_rows
from skrbm.core.machine import Machine
from skrbm.core.numerics import dense, spread_rows
from skrbm.core.training.state import TrainingState, pause, recent_success

# Of a try, and updates from one to the next: as many jumps by fewer and larger calls.
N_CHAINS, N_ROWS, SHORTEST_PAUSE, LONGEST_PAUSE = 8, 16, 2, 40
# Of tries that lead to mixed rows too, and how many of these: more of them make jumps to data rare.
MIXED_SHARE, N_MIXED = 0.1, 8


def jump_to_data(
    machine: Machine, v: Any, state: TrainingState, n_particles: int, rng: np.random.Generator
) -> None:
    """Let a few of the persistent chains try to jump to the rows of a mini-batch, if it is time.

    Where modes are far apart the chains would stay in one of them, or outside all, and the model
    would run away from data that they do not see. Where jumps are rarely accepted, as in models of
    many modes that lie close, they are tried rarely. Now and then chains may jump to mixed rows, too:
    a mode without data that nobody visits would be there for ever. Modes that are known to lie far
    apart are tried in every update, since a mini-batch need not have rows in all of them.

    Parameters
    ----------
    machine : Machine
        Present model, of the precision of the particles.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Mini-batch.
    state : TrainingState
        Its particles are changed in place.
    n_particles : int
        How many of them, the first ones, sample the machine itself.
    rng : numpy.random.Generator
        Source of random numbers.
    """
    if state.n_updates < state.next_jump:
        return
    n_groups = -(-n_particles // N_CHAINS)
    group = int(n_groups * rng.random())
    own = slice(group * n_particles // n_groups, (group + 1) * n_particles // n_groups)
    chains = state.particles[own]
    rows, longest = spread_rows(v, N_ROWS), LONGEST_PAUSE
    if state.modes is not None:
        rows, longest = np.concatenate([dense(rows), state.modes.astype(rows.dtype)]), 1
    is_mixed = rng.random() < MIXED_SHARE
    if is_mixed:
        rows = np.concatenate([dense(rows), mixed_rows(machine, rows, N_MIXED, rng)])
    chains[...], has_jumped = jump(machine, chains, rows, rng)
    if not is_mixed:
        share = np.count_nonzero(has_jumped) / len(chains)
        state.jump_acceptance = recent_success(state.jump_acceptance, share)
    least = 0.5 * SHORTEST_PAUSE
    state.next_jump = state.n_updates + pause(state.jump_acceptance, least, SHORTEST_PAUSE, longest)
