"""What every pass of a fit leaves in `history_`, and the line that it prints."""

from __future__ import annotations

import time
from typing import Any, final

Columns = dict[str, list[float]]


def empty_history(*scores: str) -> Columns:
    """Columns that a history has before the first pass."""
    return {name: [] for name in (*scores, "time")}


@final
class History:
    """Writer of an estimator's `history_`, which it continues in a copy.

    Parameters
    ----------
    estimator : object
        Has `history_` and `n_iter_`.
    is_verbose : bool
        Whether to print a line for every pass.
    """

    def __init__(self, estimator: Any, is_verbose: bool) -> None:
        self.estimator, self.is_verbose = estimator, is_verbose
        estimator.history_ = {name: list(column) for name, column in estimator.history_.items()}
        self._begin = time.perf_counter()

    def add(self, notes: dict[str, float], scores: str) -> None:
        """Add a pass.

        Parameters
        ----------
        notes : dict of str to float
            One number for each column; a column without one gets NaN.
        scores : str
            What the line says between the number of the pass and the time.
        """
        estimator, end = self.estimator, time.perf_counter()
        seconds, self._begin = end - self._begin, end
        notes = notes | {"time": seconds}
        history = estimator.history_
        n_passes = len(history["time"])
        for name in {**history, **notes}:
            column = history.setdefault(name, [float("nan")] * n_passes)
            column.append(notes.get(name, float("nan")))
        if self.is_verbose:
            print(
                f"[{type(estimator).__name__}] Iteration {estimator.n_iter_}, {scores}, "
                f"time = {seconds:.2f}s",
                flush=True,
            )
