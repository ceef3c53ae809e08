"""What passes of a fit leave in `history_`, and the lines that they print."""

from __future__ import annotations

import time
from typing import Any, final

LINE_PAUSE = 10.0  # seconds within a pass

Columns = dict[str, list[float]]


def empty_history(*scores: str) -> Columns:
    """Columns that a history has before the first pass."""
    return {name: [] for name in ("n_iter", *scores, "time")}


@final
class History:
    """Writer of an estimator's `history_`, which it continues in a copy.

    Parameters
    ----------
    estimator : object
        Has `history_` and `n_iter_`.
    is_verbose : bool
        Whether to print a line for every pass.
    n_updates : int
        Number of updates of a pass.
    n_iter : int, default=None
        Largest number of passes that are to come; None where nobody knows.
    """

    def __init__(
        self, estimator: Any, is_verbose: bool, n_updates: int, n_iter: int | None = None
    ) -> None:
        self.estimator, self.is_verbose = estimator, is_verbose
        self._end = None if n_iter is None else estimator.n_iter_ + n_iter
        estimator.history_ = {name: list(column) for name, column in estimator.history_.items()}
        self._n_updates, self._n_done = n_updates, 0
        self._begin = self._last_line = time.perf_counter()

    def tick(self) -> None:
        """Take note of an update, and say now and then how far a long pass has come."""
        self._n_done += 1
        now, share = time.perf_counter(), self._n_done % self._n_updates / self._n_updates
        if self.is_verbose and share and now - self._last_line >= LINE_PAUSE:
            number = self.estimator.n_iter_ + 1
            self._print(number, f"{share:.0%} of the rows, time = {now - self._begin:.2f}s")

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
        notes = {"n_iter": estimator.n_iter_} | notes | {"time": seconds}
        history = estimator.history_
        n_passes = len(history["time"])
        for name in {**history, **notes}:
            column = history.setdefault(name, [float("nan")] * n_passes)
            column.append(notes.get(name, float("nan")))
        if self.is_verbose:
            self._print(estimator.n_iter_, f"{scores}, time = {seconds:.2f}s")

    def _print(self, number: int, text: str) -> None:
        self._last_line = time.perf_counter()
        name = type(self.estimator).__name__
        rest = "" if self._end is None else f", {self._end - number} to go"
        print(f"[{name}] Iteration {number}, {text}{rest}", flush=True)
