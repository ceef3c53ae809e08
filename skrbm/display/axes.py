"""Base of all pictures of a model; matplotlib is imported when one is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

MAX_LEVEL_NAMES = 12  # names of columns below an axis that fit side by side without being turned


class Display(ABC):
    """Numbers of a picture, and how to draw it.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn; set by `plot`.
    figure_ : matplotlib.figure.Figure
        Figure of the axes; set by `plot`.
    """

    ax_: Any
    figure_: Any

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        self : object
            With `ax_`, `figure_` and the artists.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """

    def _begin(self, ax: Any) -> Any:
        """Axes to draw in."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(
                    f"{type(self).__name__}.plot expected matplotlib, which is not installed. "
                    f"Install it with: pip install 'skrbm[plot]'"
                ) from error
            ax = plt.figure(layout="constrained").add_subplot()  # labels are never cut off
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _entitle(self, title: str) -> None:
        """Set a title where the axes have none yet."""
        if not self.ax_.get_title():
            self.ax_.set_title(title)
