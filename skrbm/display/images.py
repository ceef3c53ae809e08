"""Displays of weights and visible states as images."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self, final

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted

from skrbm.core.numerics import Array, dense, is_sparse
from skrbm.display.axes import Display
from skrbm.estimators.inference.model import model_of
from skrbm.estimators.input.array_libraries import computed_by_numpy, to_numpy
from skrbm.estimators.input.formats import checked_mask
from skrbm.estimators.input.validation import COUNT, RANDOM_STATE, checked_arguments

GAP_COLOR = "lightsteelblue"  # of missing pixels and of lines between images
MIN_WEIGHT_SHARE = 0.05  # smallest scale of a unit, relative to the largest absolute weight


@final
class ComponentsDisplay(Display):
    """Weights of the hidden units as images, with a separate gray or color scale for each unit.

    The weights of a unit are divided by its scale, which is its largest absolute weight, but at
    least a twentieth of the largest absolute weight of all plotted units. Unused units, whose
    weights are nearly zero, are therefore gray.

    Parameters
    ----------
    images : ndarray of shape (n_images, height, width) or (n_images, height, width, 3)
        Weights. In each image, zero is gray, and weights equal to plus and minus the scale are
        white and black. In color images, the three channels have the same scale.
    n_columns : int, default=None
        Number of images in a row. If None, there are about as many rows as columns.

    Attributes
    ----------
    image_ : matplotlib.image.AxesImage
        Mosaic of all images; set by `plot`.
    """

    @checked_arguments(n_columns=[*COUNT, None])
    def __init__(self, images: Array, *, n_columns: int | None = None) -> None:
        self.images = images
        self.n_columns = n_columns

    @classmethod
    @checked_arguments(n_images=COUNT, n_columns=[*COUNT, None])
    def from_estimator(
        cls,
        estimator: Any,
        *,
        image_shape: tuple[int, ...] | None = None,
        n_images: int = 100,
        n_columns: int | None = None,
        ax: Any = None,
    ) -> Self:
        """Plot the weights of a fitted estimator.

        Parameters
        ----------
        estimator : BernoulliRBM, SpinRBM or GaussianBernoulliRBM
            Fitted estimator.
        image_shape : tuple of (height, width) or (height, width, 3), default=None
            Shape of the gray or color images whose pixels are the features. If None, the images
            are square and gray.
        n_images : int, default=100
            Largest number of hidden units to plot. The units with the largest weight norms are
            plotted, in descending order.
        n_columns : int, default=None
            Number of images in a row. If None, there are about as many rows as columns.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. If None, a new figure is created.

        Returns
        -------
        display : ComponentsDisplay
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
            If `image_shape` is not a shape of images with one value for each feature. If
            `image_shape` is None, also if the number of features is not a square number or if the
            estimator is a `TabularRBM`.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "components_"):
            model_of(estimator)
        _check_pixels(estimator, image_shape)
        components = np.asarray(to_numpy(estimator.components_))
        order = np.argsort(-np.linalg.norm(components, axis=1), kind="stable")
        images = _images(components[order[:n_images]], image_shape)
        return cls(images, n_columns=n_columns).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        images = _checked_images([self.images])[0]
        largest = np.abs(images).max(axis=tuple(range(1, images.ndim)), keepdims=True)
        scale = np.maximum(largest, MIN_WEIGHT_SHARE * largest.max(initial=0))
        scaled = images / np.where(scale > 0, scale, 1)
        n_columns = self.n_columns or math.ceil(math.sqrt(len(scaled)))
        mosaic = _mosaic(scaled, n_columns)
        ax = self._begin(ax)
        self.image_ = _show(ax, mosaic, -1, 1)
        ax.set_axis_off()
        self._entitle(f"weights of {len(scaled)} hidden units")
        return self


@final
@dataclass(eq=False, repr=False)
class SamplesDisplay(Display):
    """Visible states as images, in labeled rows of images such as samples and data.

    Parameters
    ----------
    rows : dict of str to ndarray of shape (n_images, height, width) or (n_images, height, width, 3)
        Images of each row, with the label of the row as key. Missing pixels are NaN. The gray or
        color scale covers the range of the values of all images.

    Attributes
    ----------
    image_ : matplotlib.image.AxesImage
        Mosaic of all images; set by `plot`.
    """

    rows: dict[str, Array]

    @classmethod
    @computed_by_numpy
    @checked_arguments(
        n_images=COUNT,
        n_gibbs_steps=[Interval(Integral, 0, None, closed="left")],
        method=[StrOptions({"sample", "mean"})],
        random_state=RANDOM_STATE,
    )
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        mask: Any = None,
        image_shape: tuple[int, ...] | None = None,
        n_images: int = 10,
        n_gibbs_steps: int = 1000,
        method: str = "sample",
        random_state: Any = None,
        ax: Any = None,
    ) -> Self:
        """Plot samples of a fitted estimator and, for given rows, their reconstructions.

        Parameters
        ----------
        estimator : BernoulliRBM, SpinRBM or GaussianBernoulliRBM
            Fitted estimator.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Rows to plot with their reconstructions. If None, only samples are plotted. Features
            that are not observed according to `mask` may be NaN. For the reconstructions, NaN is
            replaced by the inpainted value.
        mask : array-like of bool of shape (n_features,) or (n_samples, n_features), default=None
            Mask of the observed features. If it is given, two further rows of images are plotted:
            the observed features alone, and the result of `inpaint` with ``method="mean"``.
        image_shape : tuple of (height, width) or (height, width, 3), default=None
            Shape of the gray or color images whose pixels are the features. If None, the images
            are square and gray.
        n_images : int, default=10
            Number of samples, and largest number of rows of `X` that are plotted.
        n_gibbs_steps : int, default=1000
            Number of Gibbs steps for each sample.
        method : {"sample", "mean"}, default="sample"
            "sample" plots the samples. "mean" plots images with less noise: the mean visible states
            given the mean hidden states, which are computed given the samples.
        random_state : int, Generator, RandomState or None, default=None
            Seed or generator for sampling and inpainting. If None, the random stream of the
            estimator is continued.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. If None, a new figure is created.

        Returns
        -------
        display : SamplesDisplay
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
            If `image_shape` is not a shape of images with one value for each feature. If
            `image_shape` is None and the number of features is not a square number. If `mask` is
            given without `X`, is not boolean or has a wrong shape. If `mask` is given and an
            observed value of `X` is missing. If `mask` is None, a value of `X` is missing, and the
            estimator does not have `missing="marginalize"`. If `method` is unknown.
        """
        model_of(estimator)
        _check_pixels(estimator, image_shape)
        if X is None and mask is not None:
            raise ValueError("X expected to be rows if mask is given, got None.")
        samples = estimator.sample(n_images, n_gibbs_steps, random_state=random_state)
        kinds = {"samples": samples}
        if method == "mean":
            sampler = copy(estimator)
            if not hasattr(samples, "columns"):  # an array has no names that could be checked
                vars(sampler).pop("feature_names_in_", None)
            kinds = {"means of samples": sampler.inverse_transform(sampler.transform(samples))}
        if X is not None:
            n_rows = _num_samples(X)
            X, others = (X.tocsr() if is_sparse(X) else X)[:n_images], {}
            data = check_array(X, accept_sparse=True, dtype=np.float64, ensure_all_finite=False)
            data = dense(data)
            is_finite = np.isfinite(data)
            if mask is not None:
                mask = checked_mask(mask, (n_rows, data.shape[1]))
                mask = mask[:n_images] if mask.ndim == 2 else mask
                filled = estimator.inpaint(X, mask, method="mean", random_state=random_state)
                others = {"known": np.where(mask, data, np.nan), "inpainted": filled}
                X = X if is_finite.all() else _renewed(X, np.where(is_finite, data, filled))
            kinds["data"] = np.where(is_finite, data, np.nan)
            kinds["reconstructions"] = estimator.inverse_transform(estimator.transform(X))
            kinds |= others
        return cls({kind: _images(v, image_shape) for kind, v in kinds.items()}).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        if not self.rows:
            raise ValueError("rows expected at least one row of images, got none.")
        rows = _checked_images(list(self.rows.values()))
        n_columns = max(map(len, rows))
        mosaic = np.concatenate([_mosaic(row, n_columns) for row in rows])
        ax = self._begin(ax)
        self.image_ = _show(ax, mosaic, np.nanmin(mosaic), np.nanmax(mosaic))
        height = len(mosaic) / len(self.rows)
        ax.set_yticks(height * (np.arange(len(self.rows)) + 0.5) - 0.5, labels=list(self.rows))
        ax.set_xticks([])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        return self


def _check_pixels(estimator: Any, image_shape: tuple[int, ...] | None) -> None:
    """Raise an error if the features of an estimator are not known to be pixels."""
    if image_shape is None and hasattr(estimator, "columns_"):
        raise ValueError(
            f"Images expected features that are pixels, but {type(estimator).__name__} has "
            f"columns of a table. Use LogoDisplay for the categories of a hidden unit, draw "
            f"components_ with the names in columns_ as a heat map, or pass image_shape."
        )


def _images(v: Any, image_shape: tuple[int, ...] | None) -> Array:
    """Reshape rows of shape (n_images, n_features) to images; the last axis varies fastest."""
    n_features = v.shape[1]
    shape = (math.isqrt(n_features),) * 2 if image_shape is None else image_shape
    is_shape = isinstance(shape, Iterable) and all(isinstance(n, Integral) and n > 0 for n in shape)
    is_shape = is_shape and (len(shape) == 2 or (len(shape) == 3 and shape[2] == 3))
    if not is_shape or math.prod(shape) != n_features:
        raise ValueError(
            f"Expected image_shape of {n_features} pixels, one for each feature, as (height, "
            f"width) or (height, width, 3), got "
            f"{image_shape}{' (square)' if image_shape is None else ''}."
        )
    return np.asarray(v, dtype=np.float64).reshape(-1, *shape)


def _checked_images(rows: list[Any]) -> list[Array]:
    """Validate rows of images, and return them as arrays."""
    arrays = [np.asarray(row) for row in rows]
    shapes = [array.shape for array in arrays]
    if not all(len(shape) == 3 or (len(shape) == 4 and shape[3] == 3) for shape in shapes):
        raise ValueError(
            f"Expected images of shape (n_images, height, width) or (n_images, height, width, 3), "
            f"got {shapes}."
        )
    if 0 in [n for shape in shapes for n in shape]:
        raise ValueError(f"Expected at least one image, got none: shapes are {shapes}.")
    if len({shape[1:] for shape in shapes}) > 1:
        raise ValueError(f"Rows expected images of the same shape, got {shapes}.")
    return arrays


def _renewed(X: Any, values: Array) -> Any:
    """Convert an array to a data frame with the columns of `X` if `X` is a data frame."""
    return type(X)(dict(zip(X.columns, values.T, strict=True))) if hasattr(X, "columns") else values


def _show(ax: Any, mosaic: Array, low: float, high: float) -> Any:
    """Draw a mosaic in gray or color, in which pixels that are NaN are light blue."""
    from matplotlib import colormaps, colors

    if mosaic.ndim == 2:
        scale = colormaps["gray"].with_extremes(bad=GAP_COLOR)
        return ax.imshow(mosaic, cmap=scale, vmin=low, vmax=high)
    shares = (mosaic - low) / (high - low if high > low else 1)
    return ax.imshow(np.where(np.isnan(mosaic), colors.to_rgb(GAP_COLOR), shares))


def _mosaic(images: Array, n_columns: int) -> Array:
    """Arrange images in rows of `n_columns`, with lines of NaN below and to the right of each."""
    n_images, height, width, *channels = images.shape
    n_rows = -(-n_images // n_columns)
    tiles = np.full((n_rows * n_columns, height + 1, width + 1, *channels), np.nan)
    tiles[:n_images, :height, :width] = images
    tiles = tiles.reshape(n_rows, n_columns, height + 1, width + 1, *channels).swapaxes(1, 2)
    return tiles.reshape(n_rows * (height + 1), n_columns * (width + 1), *channels)
