"""Restricted Boltzmann machine: two layers of units and the weights between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from skrbm.core.numerics import Array, copy_into, is_array
from skrbm.core.units import Units

# Largest number of rows for which a product with a transposed matrix is computed transposed.
TURNED_ROWS = 16


class NormalizationError(ValueError):
    """The partition function of a machine may be infinite, see `Machine.check_normalizable`."""


@final
@dataclass(frozen=True, eq=False)
class Machine:
    r"""Restricted Boltzmann machine with layers of any two unit types.

    .. math::

        E(v, h) = A(v) + B(h) - \varphi(v)^T W \psi(h), \qquad
        p(v, h) = e^{-E(v, h)} / Z

    where :math:`A, B` are the energies and :math:`\varphi, \psi` the signals of the layers, see
    :class:`~skrbm.core.units.Units`.

    Parameters
    ----------
    visible, hidden : Units
        Layers, with the same dtype as the weights.
    weights : ndarray of shape (n_visible, n_hidden)
        Weights W, which couple the signals of the layers. The sizes n_visible and n_hidden are the
        numbers of columns of the layers.

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
        """Floating-point dtype of the weights and of the layers."""
        return self.weights.dtype

    @cached_property
    def parameters(self) -> dict[str, Array]:
        """Arrays that training changes, not copied.

        The keys are "weights" and the names of the layers' parameters with the prefix "visible_" or
        "hidden_", such as "visible_bias".
        """
        layers = by_layer(self.visible.parameters, self.hidden.parameters)
        return {"weights": self.weights} | layers

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """Arrays of `parameters` and offsets of the layers that have one, not copied.

        The keys of the offsets are their names in the layers with the prefix "visible_" or
        "hidden_".
        """
        return self.parameters | by_layer(self.visible.offsets, self.hidden.offsets)

    def assign(self, arrays: dict[str, Array]) -> None:
        """Write values into the arrays of the machine, in place.

        Parameters
        ----------
        arrays : dict of str to ndarray
            New values, with names from the property `arrays` as keys; arrays without a new value
            are kept. Each value has the shape of the array that it overwrites.
        """
        for name, array in arrays.items():
            target = self.arrays[name]
            if target is not array:
                target[...] = array

    def __getstate__(self) -> dict[str, Any]:
        # In a copy, the view of the weights in `transposed` would be an array of its own.
        return {name: value for name, value in vars(self).items() if name != "transposed"}

    @cached_property
    def transposed(self) -> Machine:
        """Machine with the same distribution in which visible and hidden layer are exchanged."""
        return Machine(self.hidden, self.visible, self.weights.T)

    @property
    def curvature_scales(self) -> tuple[Array, Array]:
        r"""Signal slopes divided by the square roots of the curvatures, for each layer.

        The two arrays :math:`s / \sqrt{\kappa}` have the shapes (n_visible,) and (n_hidden,). They
        are the row and column factors of the matrix :math:`S` in `lost_curvature`.
        """
        layers = self.visible, self.hidden
        left, right = (layer.affine_signal[1] / np.sqrt(layer.tail_curvature) for layer in layers)
        return left, right

    @property
    def lost_curvature(self) -> float:
        r"""Largest fraction by which the coupling reduces the curvature of a layer's free energy.

        The free energy of a layer is the energy of its states if the other layer is integrated out.
        The fraction is zero if all units of a layer have two bounds. Otherwise, it is the square of
        the largest singular value of

        .. math:: S_{ij} = \frac{s_i W_{ij} s_j}{\sqrt{\kappa_i \kappa_j}}

        where :math:`\kappa` is the curvature of a column (see `Units.tail_curvature`), which is
        infinite for two bounds, and :math:`s` is the slope of its signal. If the states are
        multiplied by :math:`\sqrt{\kappa}`, the free energies grow most slowly along the
        corresponding singular vectors. If the fraction is below one and all curvatures are
        positive, the partition function is finite. The converse need not hold if states are bounded
        on one side. The result is infinite if an entry of the Gram matrix of :math:`S` is not
        finite.
        """
        supports = self.visible.support, self.hidden.support
        if any(s.high - s.low < np.inf for s in supports):  # the usual case, without a search
            return 0.0
        left, right = self.curvature_scales
        if not (left.any() and right.any()):
            return 0.0
        scaled = left[:, None] * self.weights * right
        gram = scaled @ scaled.T if len(left) <= len(right) else scaled.T @ scaled
        return float(np.linalg.eigvalsh(gram)[-1]) if np.isfinite(gram).all() else np.inf

    def check_normalizable(self) -> None:
        """Raise an error if the partition function may be infinite.

        Raises
        ------
        NormalizationError
            If `tail_curvature` of a layer is not positive in all columns, or if `lost_curvature` is
            at least one.
        NotImplementedError
            If a unit type neither has two bounds nor defines `tail_curvature`.
        """
        for layer in (self.visible, self.hidden):
            if not (layer.tail_curvature > 0).all():
                raise NormalizationError(
                    f"{layer.type_name} units expected an energy that rises far from zero, "
                    f"got a curvature of {layer.tail_curvature.min():.3g}."
                )
        fraction = self.lost_curvature
        if not fraction < 1:
            raise NormalizationError(
                f"{self.visible.type_name} visible and {self.hidden.type_name} hidden units "
                f"may have no joint distribution with weights this large: they reduce the "
                f"curvature of the energy by up to a fraction of {fraction:.3g}, which must be below 1. "
                f"Divide the weights by more than {np.sqrt(fraction):.3g}."
            )

    def astype(self, dtype: Any, *, copy: bool = False) -> Machine:
        """Convert the arrays of the machine to another dtype, or copy them.

        Parameters
        ----------
        dtype : dtype
            Floating-point dtype.
        copy : bool, default=False
            If True, arrays that already have the dtype are copied, too, and the weights are in C
            order. Boolean arrays are neither converted nor copied.

        Returns
        -------
        machine : Machine
            Machine with the new arrays; arrays that were not copied are shared.
        """
        if not copy and self.weights.dtype == dtype:
            return self
        return Machine(
            self.visible.astype(dtype, copy=copy),
            self.hidden.astype(dtype, copy=copy),
            self.weights.astype(dtype, order="C" if copy else "K", copy=copy),
        )

    def map_arrays(self, function: Callable[[Array], Array]) -> Machine:
        """Machine with `function` applied to every array, for example to copy it to a device."""
        layers = self.visible.map_arrays(function), self.hidden.map_arrays(function)
        return Machine(*layers, function(self.weights))

    def hidden_field(self, v: Any, out: Array | None = None) -> Array:
        """Field of the visible units on the hidden units.

        In single precision, the product of 2 to `TURNED_ROWS` rows and weights in Fortran order is
        computed as the transpose of ``weights.T @ rows.T``, which is faster.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Visible states.
        out : ndarray of shape (n_samples, n_hidden), default=None
            Output array. If None, a new array is allocated. Methods that do not describe `out` use
            it in the same way; it has the shape of their result.

        Returns
        -------
        field : ndarray of shape (n_samples, n_hidden)
            Field, to which the hidden bias is not added.
        """
        rows, weights = self.visible.signal(v), self.weights
        if not hasattr(rows, "__array_function__"):  # sparse; `is_sparse` costs a call
            return copy_into(rows @ weights, out)
        n_rows = len(rows)
        is_turned = 1 < n_rows <= TURNED_ROWS and not weights.flags.c_contiguous
        if is_turned and rows.dtype == np.float32:
            # OpenBLAS takes up to twice as long for these as for the transposed product.
            shape = n_rows, weights.shape[1]
            out = np.empty(shape, rows.dtype, like=rows) if out is None else out
            out[...] = (weights.T @ rows.T).T
            return out
        return np.matmul(rows, weights, out=out)

    def visible_field(self, h: Any, out: Array | None = None) -> Array:
        """Field of the hidden units on the visible units, of shape (n_samples, n_visible)."""
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
            Conditional means of the hidden states.
        """
        field = self.hidden_field(v, out=out)
        return self.hidden.mean(field, out=field)

    def mean_visible(self, h: Any) -> Array:
        """Expected visible states given the hidden ones, of shape (n_samples, n_visible)."""
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
        """Draw visible states given the hidden ones, of shape (n_samples, n_visible)."""
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
            The `hidden_field` of `v`. If None, it is computed.

        Returns
        -------
        energy : ndarray of shape (n_samples,)
            In nats.
        """
        field = self.hidden_field(v) if field is None else field
        coupling = np.einsum("ij,ij->i", field, self.hidden.signal(h))
        return self.visible.energy(v) + self.hidden.energy(h) - coupling

    def free_energy(self, v: Any) -> Array:
        r"""Free energy of visible states: the negative log of their unnormalized probability.

        .. math:: F(v) = -\log \sum_h e^{-E(v, h)}

        For continuous hidden units, an integral replaces the sum.

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
    ) -> dict[str, Array]:
        r"""Gradient of the negative free energy, averaged over visible states.

        .. math::

            \left\langle -\frac{\partial F(v)}{\partial \theta} \right\rangle =
            \left\langle -\frac{\partial E(v, h)}{\partial \theta}
            \right\rangle_{v,\; h \sim p(h \mid v)}

        The gradient of the mean log-likelihood is this average over the data (positive phase) minus
        this average over the distribution of the model (negative phase).

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Visible states.
        mean : ndarray of shape (n_samples, n_hidden), default=None
            Expected hidden states given `v`. If None, they are computed.
        sample_weight : ndarray of shape (n_samples,), default=None
            Weights of the states. If they are given, a weighted sum replaces the average. They may
            be negative, for example to compute a difference of two averages. If None, all weights
            are 1 / n_samples.

        Returns
        -------
        gradient : dict of str to ndarray
            Gradient, with the keys and shapes of `parameters`.
        """
        field = None
        if mean is None:
            field = self.hidden_field(v)
            mean = self.hidden.mean(field)
        elif not (self.hidden.is_mean_sufficient and self.hidden.is_signal_fixed):
            field = self.hidden_field(v)
        if sample_weight is None:
            sample_weight = np.full_like(mean, 1 / len(mean), shape=len(mean))
        visible = self.visible.moments(v, sample_weight)
        hidden = self.hidden.expected_moments(mean, field, sample_weight)
        signal = self.hidden.signal(mean) * sample_weight[:, None]
        weights = self.signal_product(v, signal)
        if not self.hidden.is_signal_fixed:
            total_field = sample_weight @ field
            work = np.einsum("ij,ij->j", self.weights, weights)
            _add(hidden, self.hidden.signal_gradient(total_field, work))
        return self.assembled_gradient(weights, visible, hidden, signal)

    def assembled_gradient(
        self, weights: Array, visible: dict[str, Array], hidden: dict[str, Array], signal: Array
    ) -> dict[str, Array]:
        """Assemble the gradient from the weight gradient and the moments of the layers.

        `weights`, of shape (n_visible, n_hidden), is the gradient of the weights, such as the
        result of `signal_product`. `visible` and `hidden` contain the moments; `hidden` also
        contains the gradient terms due to the hidden signal, if it depends on parameters. The terms
        due to the visible signal are computed by this method and added to `visible` in place.
        `signal`, of shape (n_samples, n_hidden), contains the hidden signals multiplied by the
        sample weights.
        """
        if not self.visible.is_signal_fixed:
            total_field = self.weights @ signal.sum(axis=0)
            work = np.einsum("ij,ij->i", self.weights, weights)
            _add(visible, self.visible.signal_gradient(total_field, work))
        return {"weights": weights} | by_layer(visible, hidden)

    def signal_product(self, v: Any, h: Array) -> Array:
        """Matrix product of the transposed visible signals with `h`.

        Sparse states stay sparse, except in plain layers whose method `signal` returns a dense
        array.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Visible states.
        h : ndarray of shape (n_samples, n_hidden)
            Hidden signals, multiplied by the sample weights.

        Returns
        -------
        product : ndarray of shape (n_visible, n_hidden)
            Sum over the samples of the outer products of the visible signals and `h`.
        """
        if self.visible.offset is None or is_array(v):
            return self.visible.signal(v).T @ h
        origin, slope = self.visible.affine_signal
        product = v.T @ h
        product *= slope[:, None]
        product += np.outer(origin, h.sum(axis=0))
        return product


def _add(total: dict[str, Array], part: dict[str, Array]) -> None:
    for name, array in part.items():
        total[name] += array


def by_layer(visible: Mapping[str, Any], hidden: Mapping[str, Any]) -> dict[str, Any]:
    """Merge values of both layers, with the names of parameters and offsets of a machine as keys.

    Parameters
    ----------
    visible, hidden : mapping of str to object
        Values, with the names in the layer as keys, such as "bias".

    Returns
    -------
    values : dict of str to object
        The same values, with the names in the machine as keys, such as "visible_bias".
    """
    values = {}
    for name, value in visible.items():  # loops, since a comprehension costs a call
        values[f"visible_{name}"] = value
    for name, value in hidden.items():
        values[f"hidden_{name}"] = value
    return values
