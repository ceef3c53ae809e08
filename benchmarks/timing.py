"""Seconds of jobs that take turns, so that a machine's moods meet all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np


def seconds(job: Callable[[], object]) -> float:
    """How long a job takes."""
    begin = time.perf_counter()
    job()
    return time.perf_counter() - begin


def take_turns(
    jobs: Mapping[str, Callable[[], object]],
    n_rounds: int,
    measure: Callable[[Callable[[], object]], float] = seconds,
) -> dict[str, list[float]]:
    """Seconds of every job in every round."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(n_rounds):
        for name, job in jobs.items():
            times[name].append(measure(job))
    return times


def ratio(times: Mapping[str, list[float]], slower: str, faster: str) -> float:
    """Median over the rounds of how many times longer one job takes than another."""
    return float(np.median(np.array(times[slower]) / np.array(times[faster])))
