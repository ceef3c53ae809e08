"""Display of the weights of a hidden unit as a sequence logo."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skrbm.core.hidden_unit_reports import checked_unit
from skrbm.core.numerics import Array
from skrbm.display.axes import Display, name_ticks, plain_text
from skrbm.estimators.inference.model import model_of
from skrbm.estimators.input.validation import COUNT, checked_arguments

LETTER_WIDTH = 0.9  # fraction of the distance between columns; the rest is a gap
BLANK = "\N{WHITE SQUARE}"  # drawn for a category without a visible name
PALETTE = "tab20"  # colors of matplotlib, which repeat after twenty letters


@final
@dataclass(eq=False, repr=False)
class LogoDisplay(Display):
    """Weights between a hidden unit and the values of discrete columns, as a sequence logo.

    The display has the form of a sequence logo [1]_, but shows weights in place of information.
    Each value with a nonzero weight is drawn as a letter or a word, whose height is the absolute
    value of the weight. The letters of a column are stacked: positive weights above zero and
    negative weights below it, with the largest absolute weights farthest from zero.

    Parameters
    ----------
    weights : ndarray of shape (n_values,)
        Weights of the values of all columns, in nats.
    letters : sequence of str of length n_values
        Letters or words that represent the values.
    column_of_value : ndarray of shape (n_values,)
        Index of the column to which each value belongs, from 0.
    names : sequence of length n_columns
        Names of the columns.
    unit : int, default=None
        Index of the hidden unit, for the title. If None, there is no title.

    Attributes
    ----------
    letters_ : list of matplotlib.patches.PathPatch
        Letters with nonzero weights, in the order of the columns; set by `plot`.

    References
    ----------
    .. [1] Schneider, Stephens (1990), "Sequence logos: a new way to display consensus sequences",
       Nucleic Acids Research 18(20), 6097-6100. :doi:`10.1093/nar/18.20.6097`
    """

    weights: Array
    letters: Any
    column_of_value: Array
    names: Any
    unit: int | None = field(default=None, kw_only=True)

    @classmethod
    @checked_arguments(n_columns=[*COUNT, None])
    def from_estimator(
        cls, estimator: Any, unit: int, *, n_columns: int | None = None, ax: Any = None
    ) -> Self:
        """Plot the weights of a hidden unit of a fitted `TabularRBM`.

        A constant is subtracted from the weights of each categorical column, so that they sum to
        zero. For a binary column, only the second value is drawn. Numeric and interval columns are
        not drawn.

        Parameters
        ----------
        estimator : TabularRBM
            Fitted estimator.
        unit : int
            Index of the hidden unit, from 0.
        n_columns : int, default=None
            Largest number of columns to draw. The columns with the largest weight norms are drawn,
            in the order of the table. If None, all binary and categorical columns are drawn.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. If None, a new figure is created.

        Returns
        -------
        display : LogoDisplay
            Display with the plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If `estimator` is a meta-estimator, such as an `RBMClassifier`.
        ValueError
            If there are no binary or categorical columns, if `unit` is not the index of a hidden
            unit, or if `n_columns` is not positive.
        """
        check_is_fitted(estimator)
        model = model_of(estimator)
        categories = getattr(estimator, "categories_", ())
        discrete = [j for j, values in enumerate(categories) if values is not None]
        if not discrete:
            raise ValueError(
                f"Logos expected columns of categories, but {type(estimator).__name__} has none. "
                f"Use HiddenUnitDisplay for the weights of a hidden unit, or ComponentsDisplay for "
                f"weights of pixels."
            )
        machine = model.machine()
        unit = checked_unit(unit, machine.weights.shape[1])
        weights = machine.visible.gauge(machine.weights)[:, unit]
        table = estimator._row_format.names(estimator, len(weights))
        column = table["feature_of_column"]
        lengths = [np.linalg.norm(weights[column == j]) for j in discrete]
        longest = np.argsort(-np.array(lengths), kind="stable")[:n_columns]
        shown = np.array(discrete)[np.sort(longest)]
        is_shown = np.isin(column, shown)
        names = [str(table["features"][j]) for j in shown]
        column = np.searchsorted(shown, column[is_shown])
        labels = table["columns"][is_shown]
        letters = [s[len(names[j]) + 1 :] for s, j in zip(labels, column, strict=True)]
        return cls(weights[is_shown], letters, column, names, unit=unit).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        ax = self._begin(ax)
        from matplotlib import colormaps
        from matplotlib.font_manager import FontProperties
        from matplotlib.patches import PathPatch
        from matplotlib.textpath import TextPath

        palette = colormaps[PALETTE].colors
        font = FontProperties(family="monospace")  # in others, "I" and "l" are boxes like "-"
        glyphs = {
            letter: TextPath((0, 0), _visible(letter), size=1, prop=font)
            for letter in sorted(set(self.letters))
        }
        colors = {letter: palette[k % len(palette)] for k, letter in enumerate(glyphs)}
        order = np.lexsort([np.abs(self.weights), self.column_of_value])
        ends: dict[tuple[int, bool], float] = {}
        self.letters_ = []
        for k in order:
            letter, weight, column = self.letters[k], self.weights[k], self.column_of_value[k]
            if weight == 0:
                continue
            end = ends.get((column, weight > 0), 0.0)
            ends[column, weight > 0] = end + weight
            low, height = min(end, end + weight), abs(weight)
            glyph = _fitted(glyphs[letter], column - LETTER_WIDTH / 2, low, LETTER_WIDTH, height)
            patch = PathPatch(glyph, facecolor=colors[letter], linewidth=0)
            self.letters_.append(ax.add_patch(patch))
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_xlim(-0.5, len(self.names) - 0.5)
        low, high = min([0.0, *ends.values()]), max([0.0, *ends.values()])
        ax.set_ylim(low, high if high > low else 1.0)
        name_ticks(ax.xaxis, self.names)
        ax.set_ylabel("weight, nats")
        if self.unit is not None:
            self._entitle(f"weights of hidden unit {self.unit}")
        return self


def _visible(letter: str) -> str:
    """Text to draw for a letter or a word, which may consist of invisible characters."""
    is_blank = not any(c.isprintable() and not c.isspace() for c in letter)
    return BLANK if is_blank else plain_text(letter)


def _fitted(path: Any, x: float, y: float, width: float, height: float) -> Any:
    """Scale and move the path of a letter so that it fills a box."""
    from matplotlib.transforms import Affine2D

    box = path.get_extents()
    stretch = width / max(box.width, 1e-9), height / max(box.height, 1e-9)
    moved = Affine2D().translate(-box.x0, -box.y0).scale(*stretch).translate(x, y)
    return moved.transform_path(path)
