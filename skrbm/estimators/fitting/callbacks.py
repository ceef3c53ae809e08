"""Support for scikit-learn's callbacks, which require scikit-learn 1.9 or later."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, final

__all__ = ["CallbackSupportMixin", "FitTask", "with_callbacks"]

Attributes = Callable[[], dict[str, Any]]


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]  # before 1.9
        """Empty base class for versions of scikit-learn without callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


@final
class FitTask:
    """Task that represents a fit in scikit-learn's callbacks, with one subtask per epoch.

    The constructor calls the hooks of the callbacks before the fit.

    Parameters
    ----------
    estimator : object, default=None
        Estimator that is fitted. If None, no callbacks are called.
    X, y : object, default=None
        Arguments of `fit`.
    n_epochs : int, default=0
        Maximum number of epochs, and thus of subtasks.
    weight : object, default=None
        Argument `sample_weight` of `fit`.
    """

    def __init__(
        self,
        estimator: Any = None,
        X: Any = None,
        y: Any = None,
        n_epochs: int = 0,
        weight: Any = None,
    ) -> None:
        self._arguments = {"estimator": estimator, "X": X, "y": y}
        if weight is not None:
            self._arguments["metadata"] = {"sample_weight": weight}
        self._fit: Any = None
        self._epoch: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self._fit = estimator._init_callback_context(max_subtasks=n_epochs)
            self._fit.call_on_fit_task_begin(**self._arguments)

    def begin_epoch(self) -> None:
        """Call the hooks of the callbacks before an epoch."""
        if self._fit is not None:
            self._epoch = self._fit.subcontext(task_name="epoch")
            self._epoch.call_on_fit_task_begin(**self._arguments)

    def end_epoch(self, attributes: Attributes) -> bool:
        """Call the hooks of the callbacks after an epoch.

        Parameters
        ----------
        attributes : callable returning a dict
            Function that returns the current attributes of the estimator. It is called only if a
            hook needs the attributes, which are copied.

        Returns
        -------
        is_stopped : bool
            Whether a callback requests the end of training; False without callbacks.
        """
        return self._end(self._epoch, attributes)

    def end(self, attributes: Attributes) -> None:
        """Call the hooks of the callbacks after the fit.

        Parameters
        ----------
        attributes : callable returning a dict
            Function that returns the current attributes of the estimator. It is called only if a
            hook needs the attributes, which are copied.
        """
        self._end(self._fit, attributes)

    def _end(self, context: Any, attributes: Attributes) -> bool:
        """Call the hooks after a task, and return True if a callback requests the end of training.

        scikit-learn writes the attributes to a copy of the estimator. An attribute of an earlier
        fit that is None after this fit cannot be deleted there, and is None in the copy.
        """
        estimator = self._arguments["estimator"]

        def present() -> dict[str, Any]:
            return {
                name: value
                for name, value in deepcopy(attributes()).items()
                if value is not None or hasattr(estimator, name)
            }

        return context is not None and bool(
            context.call_on_fit_task_end(**self._arguments, reconstruction_attributes=present)
        )
