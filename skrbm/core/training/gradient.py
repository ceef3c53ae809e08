"""Gradient of the log-likelihood as a difference of expectations, and the states of an update."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, final

import numpy as np

from skrbm.core.likelihood.exact import log_partition_and_gradient
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, is_array

Gradient = dict[str, Array]


class Expectation(ABC):
    r"""Expectation of the negative gradient of the energy with respect to the parameters.

    Expectations can be subtracted, and multiplied by scalars. Let :math:`E` be the energy and
    :math:`\theta` a parameter. The expectation under the data minus the expectation under the model
    is the gradient of the mean log-likelihood [1]_, eq. 26:

    .. math::

        \left\langle -\frac{\partial E}{\partial \theta} \right\rangle_\text{data}
        - \left\langle -\frac{\partial E}{\partial \theta} \right\rangle_\text{model}

    References
    ----------
    .. [1] Fischer, Igel (2014), "Training restricted Boltzmann machines: an introduction",
       Pattern Recognition 47(1), 25-39. :doi:`10.1016/j.patcog.2013.05.025`
    """

    @abstractmethod
    def gradient(self, machine: Machine) -> Gradient:
        """Compute the expectation for each parameter of a machine.

        Parameters
        ----------
        machine : Machine
            Machine whose energy is differentiated, with or without offsets.

        Returns
        -------
        gradient : dict of str to ndarray
            Expectation for each parameter, with the keys and shapes of the machine's parameters. It
            is empty for a `Multiple` with a factor of 0.

        Raises
        ------
        TooManyStatesError
            If `AllStates` is part of the expectation with a factor other than 0, and both layers
            have more than `exact.MAX_STATES` states.
        """

    @abstractmethod
    def weighted(self, weights: Array) -> Self:
        """Return the expectation under the same rows with new weights of shape (n_samples,).

        An expectation that is no sum over rows is returned unchanged.
        """

    def __sub__(self, other: Expectation) -> Expectation:
        return Difference(self, other)

    def __rmul__(self, factor: float) -> Expectation:
        return Multiple(factor, self)


class DataExpectation(Expectation):
    """Expectation under weighted rows: a mini-batch, states drawn from the model, or both.

    The attribute `weights` contains the weights of the rows.
    """

    weights: Array

    @abstractmethod
    def averages(self) -> tuple[Array, Array]:
        """Weighted averages of the visible states and of the expected hidden states.

        The averages are over the rows. Their shapes are (n_visible,) and (n_hidden,).
        """


@final
@dataclass(frozen=True)
class Difference(Expectation):
    """Difference between two expectations, `first` minus `second`."""

    first: Expectation
    second: Expectation

    def weighted(self, weights: Array) -> Difference:
        return Difference(self.first.weighted(weights), self.second.weighted(weights))

    def gradient(self, machine: Machine) -> Gradient:
        gradient = self.first.gradient(machine)
        for name, array in self.second.gradient(machine).items():
            gradient[name] -= array
        return gradient


@final
@dataclass(frozen=True)
class Multiple(Expectation):
    """Expectation multiplied by a factor; its gradient is empty if the factor is 0."""

    factor: float
    expectation: Expectation

    def weighted(self, weights: Array) -> Multiple:
        return Multiple(self.factor, self.expectation.weighted(weights))

    def gradient(self, machine: Machine) -> Gradient:
        if not self.factor:
            return {}
        gradient = self.expectation.gradient(machine)
        return {name: self.factor * array for name, array in gradient.items()}


@final
@dataclass(frozen=True)
class AllStates(Expectation):
    """Exact expectation under the model: a sum over all states of the layer with fewer states."""

    def weighted(self, weights: Array) -> AllStates:
        return self

    def gradient(self, machine: Machine) -> Gradient:
        return log_partition_and_gradient(machine)[1]


@final
@dataclass(frozen=True, eq=False, slots=True)
class Samples(DataExpectation):
    """Weighted sum of the negative gradients of the energy over visible states.

    The gradient of a visible state v is averaged over p(h | v). The difference of two such sums is
    a weighted sum with positive and negative weights.

    Parameters
    ----------
    blocks : tuple of ({ndarray, sparse matrix}, ndarray)
        Each block contains visible states, of shape (n_rows, n_visible), and the expected hidden
        states given the visible states, of shape (n_rows, n_hidden).
    weights : ndarray of shape (n_samples,)
        Weights of the rows, concatenated over the blocks. They sum to one for a phase, and to zero
        for the difference between two phases.
    joint : tuple of (ndarray, ndarray) or None, default=None
        Visible states and expected hidden states of both phases, of which `blocks` contains slices.
        The difference of two phases with the same `joint` is a single block. If None, the
        difference has the blocks of both phases.
    """

    blocks: tuple[tuple[Any, Array], ...]
    weights: Array
    joint: tuple[Array, Array] | None = None

    def weighted(self, weights: Array) -> Samples:
        return Samples(self.blocks, weights, self.joint)

    def averages(self) -> tuple[Array, Array]:
        ((v, mean),) = self.blocks
        return self.weights @ v, self.weights @ mean

    def gradient(self, machine: Machine) -> Gradient:
        gradient: Gradient = {}
        begin = 0
        for v, mean in self.blocks:
            end = begin + len(mean)
            block = machine.gradient(v, mean=mean, sample_weight=self.weights[begin:end])
            if gradient:
                block = {name: gradient[name] + array for name, array in block.items()}
            gradient, begin = block, end
        return gradient

    def __sub__(self, other: Expectation) -> Expectation:
        if not isinstance(other, Samples):
            return Difference(self, other)
        blocks = self.blocks + other.blocks
        if self.joint is not None and self.joint is other.joint:
            blocks = (self.joint,)  # at 784 x 500, two products take 6 to 17 % longer
        return Samples(blocks, np.concatenate([self.weights, -other.weights]))


@final
class UpdateBuffers:
    """Arrays for states that all updates share, and the precision in which states are stored.

    Parameters are stored and updated in the precision of the machine. States and their products may
    have a lower precision. Single precision takes about half the time of double precision, and its
    rounding errors are smaller than the sampling noise of a gradient.

    Parameters
    ----------
    dtype : dtype, default=None
        Floating-point type of states and their products. If None, the type of the parameters.
    """

    def __init__(self, dtype: Any = None) -> None:
        self.dtype = None if dtype is None else np.dtype(dtype)
        self._phases: dict[Any, PhaseStates] = {}  # by container and size
        self._rounded: tuple[Machine | None, Machine | None] = None, None

    def take(self, v: Any, rows: Array | slice, machine: Machine) -> Any:
        """Copy a mini-batch of the data, converted to the precision of states.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Data, or any container whose rows can be indexed.
        rows : ndarray of shape (n_rows,) or slice
            Indices of the rows.
        machine : Machine
            Machine in training.

        Returns
        -------
        v : {ndarray, sparse matrix} of shape (n_rows, n_visible)
            Mini-batch.
        """
        return v[rows].astype(self.dtype or machine.weights.dtype)

    def rounded(self, machine: Machine) -> Machine:
        """Convert the machine to the precision of states.

        Parameters
        ----------
        machine : Machine
            Machine with the current parameters and offsets.

        Returns
        -------
        machine : Machine
            The given machine if it has this precision, otherwise a copy. The next call for the same
            machine overwrites this copy.
        """
        if self.dtype is None or machine.weights.dtype == self.dtype:
            return machine
        source, copy = self._rounded
        if copy is None or source is not machine:
            copy = machine.astype(self.dtype, copy=True)
            self._rounded = machine, copy
        copy.assign(machine.arrays)
        return copy

    def phases(self, v: Any, n_model: int, machine: Machine) -> PhaseStates:
        """Arrays for the states of a mini-batch and of the model.

        Parameters
        ----------
        v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
            Mini-batch. Dense rows are copied.
        n_model : int
            Number of model states.
        machine : Machine
            Machine of the update, in the precision of states.

        Returns
        -------
        states : PhaseStates
            States of both phases. Only the mini-batch is set; the other arrays are uninitialized.
            Dense mini-batches of the same size share them.
        """
        n_data, weights = v.shape[0], machine.weights
        key = type(v), n_data, n_model, weights.shape, weights.dtype
        states = self._phases.get(key)
        if states is None:
            n_visible, n_hidden = weights.shape
            empty = partial(np.empty, dtype=weights.dtype, like=weights)
            mean = empty((n_data + n_model, n_hidden))
            if not is_array(v):
                return PhaseStates(v, empty((n_model, n_visible)), None, mean)
            joint = empty((n_data + n_model, n_visible))
            states = PhaseStates(joint[:n_data], joint[n_data:], joint, mean)
            self._phases[key] = states
        states.v[...] = v
        return states


@final
class PhaseStates:
    """States of both phases of an update, the positive phase first.

    Parameters
    ----------
    v : {ndarray, sparse matrix} of shape (n_data, n_visible)
        Mini-batch.
    model : ndarray of shape (n_model, n_visible)
        Visible states of the model.
    joint : ndarray of shape (n_data + n_model, n_visible) or None
        Array that contains `v` and `model`, or None if the mini-batch is sparse.
    mean : ndarray of shape (n_data + n_model, n_hidden)
        Expected hidden states given the rows of `v`, followed by those given the rows of `model`.

    Attributes
    ----------
    data_mean, model_mean : ndarray of shape (n_data, n_hidden) or (n_model, n_hidden)
        Both parts of `mean`.
    positive, negative : Samples
        Phases of the gradient: means over the mini-batch and over the model states.
    """

    def __init__(self, v: Any, model: Array, joint: Array | None, mean: Array) -> None:
        self.v, self.model, self.joint, self.mean = v, model, joint, mean
        self.data_mean, self.model_mean = mean[: v.shape[0]], mean[v.shape[0] :]
        both = None if joint is None else (joint, mean)
        self.positive = Samples(((v, self.data_mean),), _equal_weights(self.data_mean), both)
        self.negative = Samples(((model, self.model_mean),), _equal_weights(self.model_mean), both)

    def write_fields(self, machine: Machine) -> None:
        """Write the hidden fields to `mean`, by a single product if the mini-batch is dense."""
        if self.joint is not None:
            machine.hidden_field(self.joint, out=self.mean)
        else:
            machine.hidden_field(self.v, out=self.data_mean)
            machine.hidden_field(self.model, out=self.model_mean)


def _equal_weights(rows: Array) -> Array:
    """One weight for each row, in the dtype of the rows; they sum to one."""
    return np.full_like(rows, 1 / max(len(rows), 1), shape=len(rows))
