"""Displays of training curves and free energies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from skrbm.core.numerics import Array, histogram_range
from skrbm.display.axes import Display
from skrbm.estimators.inference.model import model_of
from skrbm.estimators.input.array_libraries import computed_by_numpy
from skrbm.estimators.input.validation import checked_arguments

MAX_BINS = 200  # for a histogram a few hundred pixels wide
OUTLIER_QUANTILES = (0.05, 0.95)  # outliers are beyond these by more than twice their distance
# The first recorded one is drawn.
SHOWN_SCORES = ("log_likelihood", "pseudo_likelihood", "log_loss")


@final
@dataclass(eq=False, repr=False)
class TrainingCurveDisplay(Display):
    """Training curves, with one line for each recorded quantity.

    Parameters
    ----------
    history : dict of str to list of float
        Values of at least one quantity, one for each recorded epoch.
    errors : dict of str to list of float, default=None
        Standard errors of some of the quantities, which are drawn as bands.
    epochs : list of int, default=None
        Numbers of the recorded epochs. If None, they are 1, 2, 3...

    Attributes
    ----------
    bands_ : list of matplotlib.collections.PolyCollection
        Bands of plus and minus one standard error, in the order of `errors`; set by `plot`.
    lines_ : list of matplotlib.lines.Line2D
        Lines in the order of `history`; set by `plot`.
    """

    history: Mapping[str, Sequence[float]]
    errors: Mapping[str, Sequence[float]] | None = None
    epochs: Sequence[int] | None = None

    @classmethod
    @checked_arguments(names=[str, "array-like", None])
    def from_estimator(
        cls, estimator: Any, *, names: str | Sequence[str] | None = None, ax: Any = None
    ) -> Self:
        """Plot the training history of a fitted estimator.

        Parameters
        ----------
        estimator : BernoulliRBM, SpinRBM, GaussianBernoulliRBM, TabularRBM or RBMClassifier
            Fitted estimator. `partial_fit` records its epochs only if `verbose` is nonzero.
        names : str or sequence of str, default=None
            Names of the quantities in `history_` to plot. If None, the log-likelihoods are plotted
            if they were tracked, and the pseudo-likelihoods otherwise; for a classifier, the log
            losses. The same scores of validation rows, if they were recorded, are plotted as well.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. If None, a new figure is created.

        Returns
        -------
        display : TrainingCurveDisplay
            Display with the plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If `estimator` is neither an RBM nor a classifier, but for example an `RBMImputer`.
        ValueError
            If the history is empty, if `names` is empty, or if any name is not in the history.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "history_"):
            model_of(estimator)
        history = getattr(estimator, "history_", {})
        if not any(history.values()):
            raise ValueError(
                "Expected a history of at least one epoch, got an empty one. Call fit, or "
                "partial_fit with verbose=1, which records its epochs too. For an RBMClassifier, "
                "set verbose=1 of its estimator before the first partial_fit, and pass the "
                "classifier itself: its estimator_ has no history."
            )
        if names is None:
            score = next((name for name in SHOWN_SCORES if name in history), "")
            names = [name for name in (score, f"validation_{score}") if name in history]
        names = [names] if isinstance(names, str) else names
        unknown = [name for name in names if name not in history]
        if unknown or not len(names):
            raise ValueError(f"Expected names among {list(history)}, got {unknown}.")
        shown = {name: list(history[name]) for name in names}
        estimated = [name for name in names if f"{name}_std_error" in history]
        errors = {name: list(history[f"{name}_std_error"]) for name in estimated}
        return cls(shown, errors, list(history["n_iter"])).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        labels = [name.replace("_", " ") for name in self.history]
        lengths = {name: len(values) for name, values in self.history.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(
                f"history expected quantities of the same number of epochs, got {lengths}."
            )
        (n_epochs,), errors = set(lengths.values()), self.errors or {}
        epochs = range(1, n_epochs + 1) if self.epochs is None else self.epochs
        if np.shape(epochs) != (n_epochs,):
            raise ValueError(
                f"epochs expected {n_epochs} numbers, one for each epoch in history, got shape "
                f"{np.shape(epochs)}."
            )
        wrong = {k: np.shape(v) for k, v in errors.items() if np.shape(v) != (lengths.get(k),)}
        if wrong:
            raise ValueError(
                f"errors expected {n_epochs} values of quantities among {list(lengths)}, got shapes "
                f"{wrong}."
            )
        ax = self._begin(ax)
        self.lines_ = [
            ax.plot(epochs, column, marker=".", label=label)[0]
            for label, column in zip(labels, self.history.values(), strict=True)
        ]
        lines = dict(zip(self.history, self.lines_, strict=True))
        self.bands_ = []
        for name, values in errors.items():
            column, error = np.array(self.history[name]), np.array(values)
            low, high, color = column - error, column + error, lines[name].get_color()
            self.bands_.append(ax.fill_between(epochs, low, high, alpha=0.3, color=color))
        ax.set_xlabel("epoch")
        units = ["nats" if "likelihood" in name or "gap" in name else "" for name in labels]
        if len(labels) == 1:
            ax.set_ylabel(f"{labels[0]}, {units[0]}".removesuffix(", "))
        else:
            ax.set_ylabel(units[0] if len(set(units)) == 1 else "")
            ax.legend()
        self._entitle("training curve")
        return self


@final
@dataclass(eq=False, repr=False)
class FreeEnergyDisplay(Display):
    """Histograms of the free energies of training and held-out rows, to detect overfitting.

    The free energy of a row is its negative log-likelihood, up to a constant that is common to all
    rows. If the model overfits, the free energy of held-out rows increases relative to that of
    training rows [1]_. The plotted range is computed without outliers, which would compress the
    histograms; if most energies are equal, there are no outliers. Rows outside the range are
    counted in the outermost bins, and their number is given in the legend.

    Parameters
    ----------
    train, held_out : ndarray of shape (n_rows,)
        Free energies of training and held-out rows, in nats. For a detector, they are the negative
        scores, in which each value that is new to its model adds to the free energy.
    threshold : float, default=None
        Negative score above which a detector classifies a row as an outlier. If it is given, a line
        is drawn there.

    Attributes
    ----------
    histograms_ : list of matplotlib.patches.StepPatch
        Histograms of training and held-out rows; set by `plot`.
    line_ : matplotlib.lines.Line2D or None
        Line at the threshold, or None without a threshold; set by `plot`.

    References
    ----------
    .. [1] Hinton (2012), "A practical guide to training restricted Boltzmann machines",
       section 6. :doi:`10.1007/978-3-642-35289-8_32`
    """

    train: Array
    held_out: Array
    threshold: float | None = None

    @classmethod
    @computed_by_numpy
    def from_estimator(cls, estimator: Any, X: Any, X_held_out: Any, *, ax: Any = None) -> Self:
        """Plot the free energies of training rows and held-out rows.

        Parameters
        ----------
        estimator : BernoulliRBM, SpinRBM, GaussianBernoulliRBM, TabularRBM or RBMOutlierDetector
            Fitted estimator. The threshold of a detector is drawn as well.
        X, X_held_out : {array-like, sparse matrix} of shape (n_samples, n_features)
            All or some of the training rows, and held-out rows.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. If None, a new figure is created.

        Returns
        -------
        display : FreeEnergyDisplay
            Display with the plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If `estimator` is another meta-estimator, such as an `RBMClassifier`.
        ValueError
            If the `criterion` of a detector is not "free_energy".
        """
        check_is_fitted(estimator)
        if hasattr(estimator, "offset_"):
            if estimator.criterion != "free_energy":
                raise ValueError(
                    f"criterion='free_energy' expected of a detector, got "
                    f"{estimator.criterion!r}. Pass its estimator_ to plot without a threshold."
                )
            scores = estimator.score_samples(X), estimator.score_samples(X_held_out)
            return cls(-scores[0], -scores[1], -estimator.offset_).plot(ax)
        model_of(estimator)
        return cls(estimator.free_energy(X), estimator.free_energy(X_held_out)).plot(ax)

    @property
    def gap(self) -> float:
        """Mean free energy of the held-out rows minus that of the training rows, in nats."""
        return float(np.mean(self.held_out) - np.mean(self.train))

    def plot(self, ax: Any = None) -> Self:
        rows = [
            check_array(getattr(self, name), ensure_2d=False, dtype=np.float64, input_name=name)
            for name in ("train", "held_out")
        ]
        ax, edges = self._begin(ax), _edges(rows)
        self.histograms_ = []
        self.line_: Any = None
        for kind, energies in zip(("training", "held out"), rows, strict=True):
            inside = np.clip(energies, edges[0], edges[-1])
            n_outside = int((inside != energies).sum())
            density = np.histogram(inside, edges, density=True)[0]
            label = f"{kind}, mean {energies.mean():.6g}"
            label += f", {n_outside} outside" if n_outside else ""
            self.histograms_.append(ax.stairs(density, edges, fill=True, alpha=0.5, label=label))
        if self.threshold is not None:
            label = f"threshold {self.threshold:.6g}"
            self.line_ = ax.axvline(self.threshold, color="black", linestyle="--", label=label)
        ax.set_xlabel("free energy, nats")
        ax.set_ylabel("density")
        ax.legend()
        self._entitle("free energy of the rows")
        return self


def _edges(kinds: Sequence[Array]) -> Array:
    """Edges of at most `MAX_BINS` bins that span the range of all arrays without outliers.

    Up to `MAX_BINS`, the number of bins is that of the Freedman-Diaconis rule, applied to all
    arrays together. Its quartiles are computed from the values within the range.
    """
    lows, highs = zip(*map(_range, kinds), strict=True)
    low, high = histogram_range(min(lows), max(highs))
    energies = np.concatenate(kinds)
    quartiles = np.quantile(energies[(energies >= low) & (energies <= high)], [0.25, 0.75])
    width = 2 * (quartiles[1] - quartiles[0]) / np.cbrt(len(energies))
    n_bins = MAX_BINS if high - low >= MAX_BINS * width else math.ceil((high - low) / width)
    return np.linspace(low, high, n_bins + 1)


def _range(energies: Array) -> tuple[float, float]:
    """Limits of the range of energies without outliers."""
    low, high = np.quantile(energies, OUTLIER_QUANTILES)
    margin = 2 * (high - low) or np.inf  # no outliers if most energies are equal
    return max(energies.min(), low - margin), min(energies.max(), high + margin)
