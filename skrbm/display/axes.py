"""Base class of the displays. Matplotlib is imported only when a plot is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, Self

MAX_LEVEL_NAMES = 12  # tick labels that fit below an axis without rotation


def plain_text(name: Any) -> str:
    """Text of a name in which matplotlib does not take dollar signs for formulas."""
    return str(name).replace("$", r"\$")


def checked_unit(unit: Any, n_hidden: int) -> int:
    """Index of a hidden unit; a ValueError is raised if there is no such unit."""
    if not (isinstance(unit, Integral) and 0 <= int(unit) < n_hidden):
        raise ValueError(f"unit expected to be an integer from 0 to {n_hidden - 1}, got {unit!r}.")
    return int(unit)


class Display(ABC):
    """Base class of objects that store the data of a plot and draw it.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the plot; set by `plot`.
    figure_ : matplotlib.figure.Figure
        Figure of the axes; set by `plot`.
    """

    ax_: Any
    figure_: Any

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw the stored data in the given axes or in a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. If None, a new figure is created.

        Returns
        -------
        self : object
            The display. The axes, the figure and the artists are stored in its attributes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """

    def _begin(self, ax: Any) -> Any:
        """Store and return the axes to draw in; create them if `ax` is None."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(
                    f"{type(self).__name__}.plot expected matplotlib, which is not installed. "
                    f"Install it with: pip install 'skrbm[plot]'"
                ) from error
            ax = plt.figure(layout="constrained").add_subplot()  # leaves room for labels
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _entitle(self, title: str) -> None:
        """Set the title of the axes, unless they already have one."""
        if not self.ax_.get_title():
            self.ax_.set_title(title)
