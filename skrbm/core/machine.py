"""Two layers of units and the weights between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from skrbm.core.numerics import Array, is_sparse, placed
from skrbm.core.units import Units

TURNED_ROWS = 16  # of a product with a transposed matrix, at most, that is faster turned round


class NormalizationError(ValueError):
    """States of a machine have no distribution: the weights outweigh the energies of the layers."""


@final
@dataclass(frozen=True, eq=False)
class Machine:
    r"""Restricted Boltzmann machine over any two unit types.

    .. math::

        E(v, h) = A(v) + B(h) - \varphi(v)^T W \psi(h), \qquad
        p(v, h) = e^{-E(v, h)} / Z

    with the energies and signals of :class:`~skrbm.core.units.Units`.

    Parameters
    ----------
    visible, hidden : Units
        The layers.
    weights : ndarray of shape (n_visible, n_hidden)
        Coupling of the two signals.

    References
    ----------
    .. [1] Fischer, Igel (2014), "Training restricted Boltzmann machines: an introduction",
       Pattern Recognition 47(1), 25-39. :doi:`10.1016/j.patcog.2013.05.025`
    """

    visible: Units
    hidden: Units
    weights: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating-point type of all arrays."""
        return self.weights.dtype

    @cached_property
    def parameters(self) -> dict[str, Array]:
        """Arrays that training may change, without copies: weights and each layer's own."""
        return _named(self.weights, self.visible.parameters, self.hidden.parameters)

    @cached_property
    def offsets(self) -> dict[str, Array]:
        """Offsets of the layers that have one, named like parameters."""
        layers = {"visible_offset": self.visible.offset, "hidden_offset": self.hidden.offset}
        return {name: offset for name, offset in layers.items() if offset is not None}

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """Parameters and offsets, without copies."""
        return self.parameters | self.offsets

    def assign(self, arrays: dict[str, Array]) -> None:
        """Write arrays into the machine's own, where they are not those already.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Some of `arrays`, by the same names and of the same shapes.
        """
        for name, array in arrays.items():
            own = self.arrays[name]
            if own is not array:
                own[...] = array

    @cached_property
    def transposed(self) -> Machine:
        """The same distribution with the layers' names exchanged."""
        return Machine(self.hidden, self.visible, self.weights.T)

    @property
    def curvature_scales(self) -> tuple[Array, Array]:
        r"""Factors :math:`s / \sqrt{\kappa}` of `lost_curvature`, (n_visible,) and (n_hidden,)."""
        layers = self.visible, self.hidden
        left, right = (layer.affine_signal[1] / np.sqrt(layer.tail_curvature) for layer in layers)
        return left, right

    @property
    def lost_curvature(self) -> float:
        r"""Largest share of the layers' curvature that their coupling takes away; zero within bounds.

        Where both layers have states without bounds, of curvatures :math:`\kappa` and signals of
        slopes :math:`s`, the energy far from zero is least along the leading singular vectors of

        .. math:: S_{ij} = \frac{s_i W_{ij} s_j}{\sqrt{\kappa_i \kappa_j}}

        and the share is the square of its largest singular value. Below one, all states together
        have a finite weight. For states with a bound on one side, that is sure, but not needed.
        """
        left, right = self.curvature_scales
        if not (left.any() and right.any()):
            return 0.0
        scaled = left[:, None] * self.weights * right
        gram = scaled @ scaled.T if len(left) <= len(right) else scaled.T @ scaled
        return float(np.linalg.eigvalsh(gram)[-1]) if np.isfinite(gram).all() else np.inf

    def check_normalizable(self) -> None:
        """Refuse weights with which the states have no distribution.

        Raises
        ------
        NormalizationError
            If the energy is not surely bounded below far from zero.
        """
        for layer in (self.visible, self.hidden):
            if not (layer.tail_curvature > 0).all():
                raise NormalizationError(
                    f"{type(layer).__name__} units expected an energy that rises far from zero, got "
                    f"a curvature of {layer.tail_curvature.min():.3g} there."
                )
        lost = self.lost_curvature
        if not lost < 1:
            raise NormalizationError(
                f"{type(self.visible).__name__} visible and {type(self.hidden).__name__} hidden units "
                f"have no joint distribution with weights this large: these take {lost:.3g} of the "
                f"curvature of the layers' energies, and less than 1 is needed. Divide the weights by "
                f"more than {np.sqrt(lost):.3g}."
            )

    def astype(self, dtype: Any, *, copy: bool = False) -> Machine:
        """Machine with arrays of another precision, or with arrays of its own.

        Parameters
        ----------
        dtype : dtype
            Floating-point type.
        copy : bool, default=False
            Whether to copy arrays that have the type already, the weights into C order.

        Returns
        -------
        machine : Machine
            Shares the arrays that were not copied.
        """
        if not copy and self.weights.dtype == dtype:
            return self
        return Machine(
            self.visible.astype(dtype, copy=copy),
            self.hidden.astype(dtype, copy=copy),
            self.weights.astype(dtype, order="C" if copy else "K", copy=copy),
        )

    def hidden_field(self, v: Any, out: Array | None = None) -> Array:
        """Field that the hidden units feel.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Visible states.
        out : ndarray of shape (n_samples, n_hidden), default=None
            Where the answer is written, here and in what follows; None for a new array.

        Returns
        -------
        field : ndarray of shape (n_samples, n_hidden)
            Hidden bias excluded.
        """
        return matrix_product(self.visible.signal(v), self.weights, out)

    def visible_field(self, h: Any, out: Array | None = None) -> Array:
        """Field that the visible units feel, (n_samples, n_visible); see `hidden_field`."""
        return self.transposed.hidden_field(h, out=out)

    def mean_hidden(self, v: Any, out: Array | None = None) -> Array:
        """Expected hidden states given the visible ones.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Visible states.

        Returns
        -------
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states, or means between them.
        """
        field = self.hidden_field(v, out=out)
        return self.hidden.mean(field, out=field)

    def mean_visible(self, h: Any) -> Array:
        """Expected visible states given the hidden ones, (n_samples, n_visible)."""
        return self.transposed.mean_hidden(h)

    def sample_hidden(self, v: Any, rng: np.random.Generator, out: Array | None = None) -> Array:
        """Draw hidden states given the visible ones.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Visible states.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states.
        """
        field = self.hidden_field(v, out=out)
        return self.hidden.sample(field, rng, out=field)

    def sample_visible(self, h: Any, rng: np.random.Generator, out: Array | None = None) -> Array:
        """Draw visible states given the hidden ones, (n_samples, n_visible)."""
        return self.transposed.sample_hidden(h, rng, out=out)

    def energy(self, v: Any, h: Any, *, field: Array | None = None) -> Array:
        """Energy of pairs of states.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Visible states.
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states.
        field : ndarray of shape (n_samples, n_hidden), default=None
            The `hidden_field` of `v`, when it is already known.

        Returns
        -------
        energy : ndarray of shape (n_samples,)
            In nats.
        """
        field = self.hidden_field(v) if field is None else field
        coupling = np.einsum("ij,ij->i", field, self.hidden.signal(h))
        return np.asarray(self.visible.energy(v) + self.hidden.energy(h) - coupling)

    def free_energy(self, v: Any) -> Array:
        r"""Energy of visible states with the hidden ones summed out.

        .. math:: F(v) = -\log \sum_h e^{-E(v, h)}

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Visible states.

        Returns
        -------
        free_energy : ndarray of shape (n_samples,)
            In nats.
        """
        return self.visible.energy(v) - self.hidden.log_partition(self.hidden_field(v))

    def gradient(
        self,
        v: Any,
        *,
        mean: Array | None = None,
        sample_weight: Array | None = None,
        out: Array | None = None,
    ) -> dict[str, Array]:
        r"""Average over visible states of minus the free energy's gradient.

        .. math::

            \left\langle -\frac{\partial F(v)}{\partial \theta} \right\rangle =
            \left\langle -\frac{\partial E(v, h)}{\partial \theta}
            \right\rangle_{v,\; h \sim p(h \mid v)}

        Averaged over data it is the positive phase, averaged over the model's own states the
        negative phase; their difference is the gradient of the log-likelihood.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Visible states.
        mean : ndarray of shape (n_samples, n_hidden), default=None
            Expected hidden states given them, when they are already known.
        sample_weight : ndarray of shape (n_samples,), default=None
            Weights of the states, of either sign for a difference of averages; None weighs them
            alike.
        out : ndarray of shape (n_visible, n_hidden), default=None
            Where the weights' part is written. Dense `v` and `mean` are then used up: their signals
            take their place.

        Returns
        -------
        gradient : dict of str to ndarray
            Same keys and shapes as `parameters`.
        """
        field = None
        if mean is None:
            field = self.hidden_field(v)
            mean = self.hidden.mean(field)
        elif not (self.hidden.is_mean_sufficient and self.hidden.is_signal_fixed):
            field = self.hidden_field(v)
        if sample_weight is None:
            sample_weight = np.full(len(mean), 1 / len(mean), dtype=mean.dtype)
        visible = self.visible.moments(v, sample_weight)
        hidden = self.hidden.expected_moments(mean, field, sample_weight)
        spent = None if out is None else mean
        signal = self.hidden.signal(mean, out=spent)
        signal = np.multiply(signal, sample_weight[:, None], out=spent)
        weights = self.signal_product(v, signal, out=out)
        if not self.hidden.is_signal_fixed:
            pull = sample_weight @ field
            work = np.einsum("ij,ij->j", self.weights, weights)
            _add(hidden, self.hidden.signal_gradient(pull, work))
        return self.assembled_gradient(weights, visible, hidden, signal)

    def assembled_gradient(
        self, weights: Array, visible: dict[str, Array], hidden: dict[str, Array], signal: Array
    ) -> dict[str, Array]:
        """Gradient from sums over states: of both signals' products, of the layers' moments.

        The terms of a visible signal that depends on parameters come in here, from `signal`: the
        hidden ones times the weights of the states, (n_samples, n_hidden). `visible` is overwritten.
        """
        if not self.visible.is_signal_fixed:
            pull = self.weights @ signal.sum(axis=0)
            work = np.einsum("ij,ij->i", self.weights, weights)
            _add(visible, self.visible.signal_gradient(pull, work))
        return _named(weights, visible, hidden)

    def signal_product(self, v: Any, h: Array, out: Array | None = None) -> Array:
        """Visible signals, transposed, times rows of numbers; sparse states stay sparse.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Visible states.
        h : ndarray of shape (n_samples, n_hidden)
            Any numbers.
        out : ndarray of shape (n_visible, n_hidden), default=None
            Where the product is written. Dense `v` are then used up.

        Returns
        -------
        product : ndarray of shape (n_visible, n_hidden)
            Sum over samples of the outer products.
        """
        if not is_sparse(v):
            signal = self.visible.signal(v, out=None if out is None else v)
            return np.matmul(signal.T, h, out=out)
        if self.visible.offset is None:
            return placed(np.asarray(self.visible.signal(v).T @ h), out)
        origin, slope = self.visible.affine_signal
        product = np.asarray(v.T @ h)
        product *= slope[:, None]
        product += np.outer(origin, h.sum(axis=0))
        return placed(product, out)


def _add(total: dict[str, Array], part: dict[str, Array]) -> None:
    for name, array in part.items():
        total[name] += array


def _named(weights: Array, *layers: dict[str, Array]) -> dict[str, Array]:
    """Arrays of the weights and of both layers under the names of the machine's parameters."""
    named = {"weights": weights}
    for layer, arrays in zip(("visible", "hidden"), layers, strict=True):
        for name, array in arrays.items():
            named[f"{layer}_{name}"] = array
    return named


def matrix_product(rows: Any, matrix: Array, out: Array | None = None) -> Array:
    """Product of rows with a matrix that may lie in memory as its transpose.

    Parameters
    ----------
    rows : {ndarray, sparse matrix} of shape (n_rows, n)
        Any number of them.
    matrix : ndarray of shape (n, n_columns)
        Same dtype.
    out : ndarray of shape (n_rows, n_columns), default=None
        Where the answer is written; None for a new array.

    Returns
    -------
    product : ndarray of shape (n_rows, n_columns)
        Same dtype as both.
    """
    if is_sparse(rows):
        return placed(rows @ matrix, out)
    if 1 < len(rows) <= TURNED_ROWS and rows.dtype == np.float32 and not matrix.flags.c_contiguous:
        # OpenBLAS takes up to twice as long for these as for the same product turned round.
        out = np.empty((len(rows), matrix.shape[1]), rows.dtype) if out is None else out
        out[...] = (matrix.T @ rows.T).T
        return out
    return np.matmul(rows, matrix, out=out)
