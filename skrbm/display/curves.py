"""Curves: how a fit went, and whether it fits too well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np

from skrbm.core.numerics import Array
from skrbm.display.base import Display

SCORES = ("pseudo_likelihood", "validation_pseudo_likelihood")


@final
class TrainingCurveDisplay(Display):
    """History of a fit, a line for each quantity.

    Parameters
    ----------
    history : dict of str to list of float
        Quantities after every pass.

    Attributes
    ----------
    lines_ : list of matplotlib.lines.Line2D
        In the order of `history`; set by `plot`.
    """

    lines_: list[Any]

    def __init__(self, history: dict[str, Sequence[float]]) -> None:
        self.history = history

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, names: Sequence[str] | None = None, ax: Any = None
    ) -> Self:
        """Draw the history of a fitted model.

        Parameters
        ----------
        estimator : BernoulliRBM, SpinRBM or GaussianBernoulliRBM
            Fitted; `partial_fit` has a history only if `verbose`.
        names : sequence of str, default=None
            Quantities of `history_`; None for the pseudo-likelihoods.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : TrainingCurveDisplay
            Drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If a name is not in the history.
        """
        history = estimator.history_
        names = [name for name in SCORES if name in history] if names is None else names
        unknown = [name for name in names if name not in history]
        if unknown:
            raise ValueError(f"Expected names among {list(history)}, got {unknown}.")
        return cls({name: list(history[name]) for name in names}).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        ax = self._begin(ax)
        labels = [name.replace("_", " ") for name in self.history]
        self.lines_ = [
            *(
                ax.plot(range(1, len(column) + 1), column, marker=".", label=label)[0]
                for label, column in zip(labels, self.history.values(), strict=True)
            )
        ]
        ax.set_xlabel("pass")
        if len(labels) == 1:
            ax.set_ylabel(labels[0])
        else:
            ax.legend()
        return self


@final
class FreeEnergyDisplay(Display):
    """Free energies of training and of held-out rows: over-fitting moves them apart.

    Parameters
    ----------
    train, held_out : ndarray of shape (n_rows,)
        Free energies in nats.

    Attributes
    ----------
    histograms_ : list of matplotlib.patches.StepPatch
        Of training and held-out rows; set by `plot`.

    References
    ----------
    .. [1] Hinton (2012), "A practical guide to training restricted Boltzmann machines",
       section 6. :doi:`10.1007/978-3-642-35289-8_32`
    """

    histograms_: list[Any]

    def __init__(self, train: Array, held_out: Array) -> None:
        self.train = train
        self.held_out = held_out

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, X_held_out: Any, *, ax: Any = None) -> Self:
        """Draw the free energies of rows that a model has learned, and of others.

        Parameters
        ----------
        estimator : BernoulliRBM, SpinRBM or GaussianBernoulliRBM
            Fitted.
        X, X_held_out : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows, or a share of them, and rows that the model has not seen.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : FreeEnergyDisplay
            Drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return cls(estimator.free_energy(X), estimator.free_energy(X_held_out)).plot(ax)

    @property
    def gap(self) -> float:
        """Mean free energy of held-out rows above that of training rows, in nats."""
        return float(self.held_out.mean() - self.train.mean())

    def plot(self, ax: Any = None) -> Self:
        ax = self._begin(ax)
        edges = np.histogram_bin_edges(np.concatenate([self.train, self.held_out]), bins="fd")
        self.histograms_ = [
            ax.stairs(
                np.histogram(energies, edges, density=True)[0],
                edges,
                fill=True,
                alpha=0.5,
                label=f"{label}, mean {energies.mean():.1f}",
            )
            for label, energies in (("training", self.train), ("held out", self.held_out))
        ]
        ax.set_xlabel("free energy, nats")
        ax.set_ylabel("density")
        ax.legend()
        return self
