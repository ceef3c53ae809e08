"""Matrices: how strongly columns act on each other."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skrbm.core.numerics import Array
from skrbm.display.axes import MAX_LEVEL_NAMES, Display
from skrbm.estimators.inference.public_couplings import effective_couplings


@final
class CouplingsDisplay(Display):
    """Strengths with which columns act on each other, as a matrix.

    Parameters
    ----------
    strengths : ndarray of shape (n_columns, n_columns)
        In nats, symmetric.
    names : sequence of length n_columns
        Names of the columns.

    Attributes
    ----------
    image_ : matplotlib.image.AxesImage
        The matrix; set by `plot`.

    See Also
    --------
    effective_couplings : Strengths and signs of the interactions.
    """

    image_: Any

    def __init__(self, strengths: Array, names: Any) -> None:
        self.strengths = strengths
        self.names = names

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_columns: int | None = None, ax: Any = None
    ) -> Self:
        """Draw the strengths of a fitted model.

        Parameters
        ----------
        estimator : BernoulliRBM, SpinRBM or TabularRBM
            Fitted.
        n_columns : int, default=None
            Largest number of columns, those that act most on the others; None for all.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : CouplingsDisplay
            Drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the model is not fitted.
        ValueError
            If the model has no couplings.
        """
        check_is_fitted(estimator)
        couplings = effective_couplings(estimator)
        strengths = couplings.strengths
        shown = np.sort(np.argsort(-strengths.sum(axis=1), kind="stable")[:n_columns])
        return cls(strengths[np.ix_(shown, shown)], couplings.features[shown]).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        ax = self._begin(ax)
        self.image_ = ax.imshow(self.strengths, cmap="Blues", vmin=0)
        names = [str(name) for name in self.names]
        ax.set_xticks(range(len(names)), names, rotation=90 if len(names) > MAX_LEVEL_NAMES else 0)
        ax.set_yticks(range(len(names)), names)
        self.figure_.colorbar(self.image_, ax=ax, label="root mean square interaction, nats")
        self._entitle("columns that act on each other")
        return self
