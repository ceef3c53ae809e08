"""scikit-learn's callbacks around every epoch; before version 1.9, which has none, silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

__all__ = ["CallbackSupportMixin", "FitTask", "with_callbacks"]

Attributes = Callable[[], dict[str, Any]]


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]  # in place of what is not there
        """Base class without `set_callbacks`."""

    def with_callbacks(method: Any) -> Any:
        """Leave a method as it is."""
        return method


@final
class FitTask:
    """A fit as callbacks see it: a task with a subtask for every epoch.

    Parameters
    ----------
    estimator : object
        What is fitted; None for a task that nobody watches.
    X, y : object
        As handed to its fit.
    n_epochs : int
        Largest number of subtasks.
    weight : object
        Argument `sample_weight` of the fit.
    """

    def __init__(
        self,
        estimator: Any = None,
        X: Any = None,
        y: Any = None,
        n_epochs: int = 0,
        weight: Any = None,
    ) -> None:
        self._told = {"estimator": estimator, "X": X, "y": y}
        if weight is not None:
            self._told["metadata"] = {"sample_weight": weight}
        self._fit: Any = None
        self._epoch: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self._fit = estimator._init_callback_context(max_subtasks=n_epochs)
            self._fit.call_on_fit_task_begin(**self._told)

    def begin_epoch(self) -> None:
        """Call the hooks before an epoch."""
        if self._fit is not None:
            self._epoch = self._fit.subcontext(task_name="epoch")
            self._epoch.call_on_fit_task_begin(**self._told)

    def end_epoch(self, attributes: Attributes) -> bool:
        """Call the hooks after an epoch.

        Parameters
        ----------
        attributes : callable returning a dict
            What the estimator would be now, in arrays of its own; called if a hook asks for it.

        Returns
        -------
        is_stopped : bool
            Whether a callback asks for the end of training.
        """
        return self._epoch is not None and bool(
            self._epoch.call_on_fit_task_end(**self._told, reconstruction_attributes=attributes)
        )

    def end(self, attributes: Attributes) -> None:
        """Call the hooks after the fit.

        Parameters
        ----------
        attributes : callable returning a dict
            As for `end_epoch`.
        """
        if self._fit is not None:
            self._fit.call_on_fit_task_end(**self._told, reconstruction_attributes=attributes)
