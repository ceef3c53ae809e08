"""Display of the inputs and the weights of a hidden unit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np

from skrbm.core.hidden_unit_reports import checked_unit, histograms
from skrbm.core.numerics import Array
from skrbm.display.axes import Display, name_ticks
from skrbm.estimators.inference.reports import inputs_and_weights
from skrbm.estimators.input.validation import COUNT, checked_arguments

HISTOGRAM_BOX = (0.0, 0.0, 0.55, 1.0)  # left, bottom, width, height within the axes
WEIGHTS_BOX = (0.65, 0.0, 0.35, 1.0)
N_WEIGHT_TICKS = 3  # largest number of intervals between labels that fit below the narrow box


@final
@dataclass(eq=False, repr=False)
class HiddenUnitDisplay(Display):
    """Histogram of the inputs of a hidden unit, beside its largest weights.

    The input of a hidden unit is the weighted sum of the columns of a row plus the bias of the
    unit. For a table, these are the encoded columns. In the sum, real-valued columns are scaled as
    in the energy of the model; with the parameterization "goodfellow", their biases are also
    subtracted. A binary unit with the states 0 and 1 is on with a probability of one half if its
    input is zero.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,)
        Number of rows in each bin of the histogram of the inputs.
    edges : ndarray of shape (n_bins + 1,)
        Edges of the histogram bins, in nats.
    weights : ndarray of shape (n_weights,)
        Weights to draw, from top to bottom.
    names : sequence of length n_weights
        Names of the columns that the weights belong to.
    unit : int, default=None
        Index of the hidden unit, for the title. If None, there is no title.

    Attributes
    ----------
    bars_ : matplotlib.container.BarContainer
        Bars of the weights, in the order of `names`; set by `plot`.
    histogram_ : matplotlib.patches.StepPatch
        Histogram of the inputs; set by `plot`.
    line_ : matplotlib.lines.Line2D
        Line at an input of zero; set by `plot`.

    See Also
    --------
    hidden_unit_report : Importances, weights and inputs of all hidden units.
    LogoDisplay : Weights of a hidden unit as letters.
    """

    counts: Array
    edges: Array
    weights: Array
    names: Any
    unit: int | None = field(default=None, kw_only=True)

    @classmethod
    @checked_arguments(n_columns=[*COUNT, None])
    def from_estimator(
        cls, estimator: Any, X: Any, unit: int, *, n_columns: int | None = 10, ax: Any = None
    ) -> Self:
        """Plot the inputs of a hidden unit in the given rows, and its largest weights.

        A constant is subtracted from the weights of each categorical column, so that they sum to
        zero.

        Parameters
        ----------
        estimator : BernoulliRBM, SpinRBM, GaussianBernoulliRBM or TabularRBM
            Fitted estimator.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows without missing values.
        unit : int
            Index of the hidden unit, from 0.
        n_columns : int, default=10
            Largest number of weights to draw. The weights with the largest absolute values are
            drawn, in descending order of the absolute value. If None, all weights are drawn.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in, which are divided in two. If None, a new figure is created.

        Returns
        -------
        display : HiddenUnitDisplay
            Display with the plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If `estimator` is not an RBM.
        ValueError
            If `unit` is not the index of a hidden unit, if `n_columns` is not positive, or if rows
            have missing values.
        """
        inputs, weights, names = inputs_and_weights(estimator, X)
        unit = checked_unit(unit, inputs.shape[1])
        (counts,), (edges,) = histograms(inputs[:, [unit]])
        of_unit = weights[unit]
        order = np.argsort(-np.abs(of_unit), kind="stable")[:n_columns]
        return cls(counts, edges, of_unit[order], names[order], unit=unit).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        ax = self._begin(ax)
        ax.set_axis_off()
        left, right = ax.inset_axes(HISTOGRAM_BOX), ax.inset_axes(WEIGHTS_BOX)
        self.histogram_ = left.stairs(self.counts, self.edges, fill=True)
        self.line_ = left.axvline(0, color="black", linewidth=0.8)
        left.set_xlabel("input, nats")
        left.set_ylabel("rows")
        places = range(len(self.names))
        colors = ["C0" if weight >= 0 else "C3" for weight in self.weights]
        self.bars_ = right.barh(places, self.weights, color=colors)
        right.axvline(0, color="black", linewidth=0.8)
        name_ticks(right.yaxis, self.names)
        right.yaxis.tick_right()
        right.invert_yaxis()
        right.locator_params(axis="x", nbins=N_WEIGHT_TICKS)
        right.set_xlabel("weight")
        if self.unit is not None:
            self._entitle(f"hidden unit {self.unit}")
        return self
