"""Display of the coupling strengths between columns as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skrbm.core.numerics import Array
from skrbm.display.axes import Display, name_ticks
from skrbm.estimators.inference.public_couplings import effective_couplings
from skrbm.estimators.input.validation import COUNT, checked_arguments


@final
@dataclass(eq=False, repr=False)
class CouplingsDisplay(Display):
    """Coupling strengths between features, such as the columns of a table, as a matrix.

    Parameters
    ----------
    strengths : ndarray of shape (n_features, n_features)
        Symmetric matrix of coupling strengths, in nats.
    names : sequence of length n_features
        Names of the features.

    Attributes
    ----------
    image_ : matplotlib.image.AxesImage
        Image of the matrix; set by `plot`.

    See Also
    --------
    effective_couplings : Computation of the couplings, including their signs.
    """

    strengths: Array
    names: Any

    @classmethod
    @checked_arguments(n_columns=[*COUNT, None])
    def from_estimator(
        cls, estimator: Any, *, n_columns: int | None = None, ax: Any = None
    ) -> Self:
        """Plot the coupling strengths of a fitted estimator.

        Parameters
        ----------
        estimator : BernoulliRBM, SpinRBM or TabularRBM
            Fitted estimator.
        n_columns : int, default=None
            Largest number of features to draw. The features with the largest sums of coupling
            strengths are drawn, in their original order. If None, all features are drawn.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. If None, a new figure is created.

        Returns
        -------
        display : CouplingsDisplay
            Display with the plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If `estimator` is not an RBM, but for example a classifier that contains one.
        ValueError
            If `n_columns` is not positive. If the model has numeric features that are not scaled, or
            if it has numeric or interval features and hidden units that are not binary.
        """
        check_is_fitted(estimator)
        couplings = effective_couplings(estimator)
        strengths = couplings.strengths
        shown = np.sort(np.argsort(-strengths.sum(axis=1), kind="stable")[:n_columns])
        return cls(strengths[np.ix_(shown, shown)], couplings.features[shown]).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        ax = self._begin(ax)
        self.image_ = ax.imshow(self.strengths, cmap="Blues", vmin=0)
        name_ticks(ax.xaxis, self.names)
        name_ticks(ax.yaxis, self.names)
        self.figure_.colorbar(self.image_, ax=ax, label="root mean square coupling, nats")
        self._entitle("coupling strengths of columns")
        return self
