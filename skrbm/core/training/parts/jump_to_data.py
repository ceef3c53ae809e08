"""Metropolis jumps of the persistent chains to hidden states drawn given rows of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.chains.jumps import extrapolated_rows, jump, mixed_rows, rows_near_modes
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, every_kth_row, like, to_host
from skrbm.core.parallel import one_blas_thread
from skrbm.core.training.negative_phase import PERSISTENT_CHAINS
from skrbm.core.training.part import Part, Step
from skrbm.core.training.start.far_rows import far_rows, searched_rows
from skrbm.core.training.state import TrainingState, pause, recent_success

# Groups of chains, of which one attempts a jump at a time, rows of an attempt, and bounds of the
# number of updates between two attempts. After 100 epochs with 40 cities in 10 countries, the
# shares of four currencies are wrong by .02 to .04 (total variation), and by .13 to .16 if 16 of
# 100 chains attempt a jump every 4 to 16 updates. If all chains attempt one every 4 to 16 updates,
# a cluster with 5 % of the rows becomes likelier than the others in 2 of 8 fits with 256 hidden
# units without pretraining; with two groups, in none.
N_GROUPS, ROWS_PER_TRY, MIN_TRY_PAUSE, MAX_TRY_PAUSE = 2, 16, 2, 12
# Share of accepted and distant proposals for which the pause is `MIN_TRY_PAUSE`, and which is
# assumed before the first attempt.
FREQUENT_SHARE = 0.5
# Share of the attempts that search for modes without data if pauses are shortest, and numbers of
# mixtures and extrapolations: with more, jumps to data become rare. In 11 of 896 fits of 2,000 rows
# without mixtures, six rare rows are likelier than more than a tenth of the others; with mixtures,
# in 1 of 1,272. Without extrapolations, 8 of 16 fits of breast cancer with 256 hidden units keep up
# to 20 nats in modes without data; with them, none (benchmarks/results/phantom_modes.json). After
# ten epochs, 3 of 16 fits of wine keep more than two nats there, up to 11; with the modes near the
# extrapolations, 1 of 80, 4.
SEARCH_SHARE, N_MIXED_ROWS, N_EXTRAPOLATED_ROWS = 0.05, 8, 8
# Largest number of anchors, and largest number of anchors that an attempt uses. Without anchors,
# the log-likelihood of binary rows with six rare ones in 2,000 is lower by up to 59 nats
# (benchmarks/results/leave_one_out.json).
N_FAR_ROWS, N_OFFERED_ROWS = 64, 8
# Smallest number of updates between choices of the anchors that are used; a choice takes a third of
# the time of an attempt.
CHOICE_PAUSE = 16


@final
@dataclass(frozen=True)
class JumpToData(Part):
    """Metropolis jumps of the persistent chains to hidden states drawn given rows of the data.

    One of two groups of chains at temperature 1, chosen at random, attempts a jump every
    `MIN_TRY_PAUSE` to `MAX_TRY_PAUSE` updates. Within these bounds, the number of updates between
    two attempts is `FREQUENT_SHARE` * `MIN_TRY_PAUSE` / a, rounded. Here, a is the running mean,
    over attempts that do not search, of the share of the proposals that are accepted and distant
    (see `jump`). The gradient of the next update is the first that uses the moved chains.

    Anchors are data rows that are far from each other. The proposed hidden states are drawn given
    at most `ROWS_PER_TRY` rows of the mini-batch and at most `N_OFFERED_ROWS` anchors. In some
    attempts, a search for modes without data, they are also drawn given mixtures and
    extrapolations. A mixture is a visible state that is drawn given a hidden state, which takes the
    state of each unit at random from the hidden states of two distant rows (see `mixed_rows`). An
    extrapolation lies beyond a row, opposite to a distant row (see `extrapolated_rows`); a mode near
    it is proposed as well (see `rows_near_modes`).

    After pretraining, the pause is always `MIN_TRY_PAUSE` updates. The visible states then include
    visible means given the most likely hidden states of the pretrained machine. `start_fit` stores
    these means in the state of the part, under the key "modes".

    Gibbs sampling hardly mixes between modes that are far apart. Without jumps, chains would stay
    in one mode for many updates, and training would distort the probabilities of the modes that no
    chain visits.

    A mini-batch with a rare row can raise the log-probability of the row's mode by tens of nats.
    The next updates lower it only if chains visit this mode, but the row is not drawn again for
    many updates. Therefore, every attempt also uses anchors: the `N_OFFERED_ROWS` anchors with the
    lowest free energy, or all anchors if there are fewer. This choice is repeated in the first
    attempt that is at least `CHOICE_PAUSE` updates after the last choice.

    Parameters
    ----------
    n_temperatures : int, default=1
        Number of temperatures of the chains. The chains at temperature 1 come first.
    search_share : float, default=SEARCH_SHARE
        Probability that an attempt searches for modes without data, multiplied by the ratio of the
        last pause to `MIN_TRY_PAUSE` if it is above 1. Training cannot remove such modes unless a
        chain visits them.
    n_mixed, n_extrapolated : int, default=N_MIXED_ROWS and N_EXTRAPOLATED_ROWS
        Numbers of mixtures and extrapolations in a search.
    n_anchors : int, default=N_FAR_ROWS
        Maximum number of anchors that are chosen in a run. If it is 0, no anchors are chosen.
    kernel : callable, default=jump
        Metropolis kernel with the signature of `chains.jumps.jump`.
    """

    name: ClassVar[str] = "jumps"
    needs: ClassVar[frozenset[str]] = frozenset({PERSISTENT_CHAINS})
    data_rows: ClassVar[tuple[str, ...]] = ("anchors",)

    n_temperatures: int = 1
    search_share: float = SEARCH_SHARE
    n_mixed: int = N_MIXED_ROWS
    n_extrapolated: int = N_EXTRAPOLATED_ROWS
    n_anchors: int = N_FAR_ROWS
    kernel: Callable[..., tuple[Array, Array, Array]] = jump

    def begin(
        self, machine: Machine, state: TrainingState, v: Any, rows: Array | None = None
    ) -> None:
        """Choose at most `n_anchors` training rows as anchors."""
        if not self.n_anchors:
            return
        if rows is not None:
            v = v[searched_rows(rows, v.shape[1])]
        low, high = machine.visible.column_bounds
        memory, searched = self.memory(state), to_host(dense(searched_rows(v, v.shape[1])))
        with one_blas_thread():  # products of a few megabytes with a vector
            anchors = far_rows(searched, to_host(high - low), self.n_anchors)
        memory["anchors"] = like(anchors, low)
        if np.max(memory.get("offered", 0)) >= len(memory["anchors"]):  # indices of other anchors
            memory["next_choice"] = 0

    def move_chains(self, step: Step) -> None:
        """Attempt jumps of a group of chains, if an attempt is due."""
        state, rng = step.state, step.rng
        if state.n_updates < state.parts.get(self.name, {}).get("next_try", 0):
            return
        memory = self.memory(state)
        n_particles = len(state.particles) // self.n_temperatures
        n_groups = min(N_GROUPS, n_particles)
        group = int(n_groups * rng.random())
        members = slice(group * n_particles // n_groups, (group + 1) * n_particles // n_groups)
        offered = [dense(every_kth_row(step.v, ROWS_PER_TRY))]
        if "anchors" in memory:
            offered.append(self._lowest_anchors(step, memory))
        if "modes" in memory:
            offered.append(memory["modes"].astype(step.machine.dtype))
        rows = np.concatenate(offered)
        longest = MIN_TRY_PAUSE if "modes" in memory else MAX_TRY_PAUSE
        acceptance = memory.get("acceptance", FREQUENT_SHARE)
        wait = pause(acceptance, FREQUENT_SHARE * MIN_TRY_PAUSE, MIN_TRY_PAUSE, longest)
        # Rare attempts search more often, so that searches do not become rare as well.
        search_share = self.search_share * wait / MIN_TRY_PAUSE
        searches = search_share > 0 and rng.random() < search_share
        if searches:
            mixed = mixed_rows(step.machine, rows, self.n_mixed, rng)
            beyond = extrapolated_rows(step.machine, rows, self.n_extrapolated, rng)
            rows = np.concatenate([rows, mixed, beyond, rows_near_modes(step.machine, beyond)])
        state.particles[members], has_jumped, is_distant = self.kernel(
            step.machine, state.particles[members], rows, rng
        )
        if not searches:
            share = int(np.count_nonzero(has_jumped & is_distant)) / len(has_jumped)
            memory["acceptance"] = recent_success(acceptance, share)
        memory["next_try"] = state.n_updates + wait

    def _lowest_anchors(self, step: Step, memory: dict[str, Any]) -> Array:
        """Anchors with the lowest free energy, chosen at most once in `CHOICE_PAUSE` updates."""
        anchors = memory["anchors"].astype(step.machine.weights.dtype, copy=False)
        if step.state.n_updates >= memory.get("next_choice", 0):
            memory["offered"] = np.argsort(step.machine.free_energy(anchors))[:N_OFFERED_ROWS]
            memory["next_choice"] = step.state.n_updates + CHOICE_PAUSE
        return anchors[memory["offered"]]
