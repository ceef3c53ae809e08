"""Base class of the displays. Matplotlib is imported only when a plot is drawn."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

LINE_POINTS, LETTER_POINTS = 14.0, 6.5  # height and width of tick labels in the default size


def plain_text(name: Any) -> str:
    """Text of a name in which matplotlib does not take dollar signs for formulas."""
    return str(name).replace("$", r"\$")


def name_ticks(axis: Any, names: Sequence[Any]) -> None:
    """Label the positions 0, 1, ... of an axis with names.

    Names that do not fit side by side below an axis are rotated. If there are more names than
    lines, every second or third name is shown, and so on.
    """
    axis.axes.apply_aspect()
    box, texts = axis.axes.bbox, [plain_text(name) for name in names]
    length = (box.width if axis.axis_name == "x" else box.height) * 72 / axis.axes.figure.dpi
    n_letters = max(map(len, texts), default=0) + 1
    if axis.axis_name == "x" and len(texts) * n_letters * LETTER_POINTS <= length:
        axis.set_ticks(range(len(texts)), texts)
        return
    pause = max(1, math.ceil(len(texts) * LINE_POINTS / length))
    options = {"rotation": 90} if axis.axis_name == "x" else {}
    axis.set_ticks(range(0, len(texts), pause), texts[::pause], **options)


class Display(ABC):
    """Base class of objects that store the data of a plot and draw it.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the plot; set by `plot`.
    figure_ : matplotlib.figure.Figure
        Figure of the axes; set by `plot`.
    """

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
        TypeError
            If `ax` is something else than axes, for example an array of axes.
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
            ax = plt.figure(layout="compressed").add_subplot()  # leaves room for labels
        if not hasattr(ax, "get_title"):
            raise TypeError(f"ax expected to be matplotlib axes, got {type(ax).__name__}.")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _entitle(self, title: str) -> None:
        """Set the title of the axes, unless they already have one."""
        if not self.ax_.get_title():
            self.ax_.set_title(title)
