"""The way from uncoupled layers to a machine, defined once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, final

import numpy as np

from skrbm.core.chains.jumps import jump
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.units import Units

LADDER_JUMP_PAUSE = 10  # steps of a ladder between jumps to the anchors


@final
@dataclass(frozen=True, eq=False)
class TemperedPath:
    r"""Distributions that lead from uncoupled layers to a machine.

    .. math::

        p_\beta(v, h) \propto e^{-(1 - \beta) E_0(v, h) - \beta E_1(v, h)}, \qquad
        0 \le \beta \le 1

    with :math:`E_0` the sum of the layers' own energies at the base and :math:`E_1` the machine's.
    At :math:`\beta = 0` the states are independent and the partition function is known. Both ends
    are natural: signals are the states themselves, so that the distributions between are of the
    same type. The hidden units have to be tempered exactly: their energies between are not sampled
    alone.

    Parameters
    ----------
    machine : Machine
        Natural machine at :math:`\beta = 1`.
    visible_base, hidden_base : Units
        Natural layers at :math:`\beta = 0`.
    energy_shift : float
        Energy by which the machine stands above the one that it was made from, in nats.
    anchors : ndarray of shape (n_rows, n_visible), default=None
        Visible states in the machine's modes, to which chains may jump; None if none are known.
    annealing_jump_pause : int, default=20
        Temperatures between jumps to the anchors, of chains that pass through all of them.

    References
    ----------
    .. [1] Salakhutdinov, Murray (2008), "On the quantitative analysis of deep belief networks",
       ICML, 872-879, eq. 10. :doi:`10.1145/1390156.1390266`
    """

    machine: Machine
    visible_base: Units
    hidden_base: Units
    energy_shift: float = 0.0
    anchors: Array | None = None
    annealing_jump_pause: int = 20

    @classmethod
    def to(cls, machine: Machine, visible_base: Units, anchors: Array | None = None) -> Self:
        """Path to a machine from hidden units that are alike in all their states.

        Parameters
        ----------
        machine : Machine
            Any parameterisation, with or without offsets.
        visible_base : Units
            Layer of the type of the machine's visible one; without a field, it should resemble
            the data.
        anchors : ndarray of shape (n_rows, n_visible), default=None
            Visible states in the machine's modes, wherever they come from.

        Returns
        -------
        path : TemperedPath
            Ends at the machine's distribution.

        Raises
        ------
        ValueError
            If the energies of the hidden units are not known exactly on the way.
        """
        if not machine.hidden.is_tempered_exactly:
            raise ValueError(
                f"Annealing and tempering need hidden units whose energies are known exactly on the "
                f"way, got {type(machine.hidden).__name__} units, for which is_tempered_exactly is "
                f"False."
            )
        natural, energy_shift = natural_machine(machine)
        return cls(
            natural,
            visible_base.natural().astype(natural.dtype),
            natural.hidden.map_arrays(np.zeros_like),
            energy_shift,
            None if anchors is None else anchors.astype(natural.dtype, copy=False),
        )

    @property
    def base_log_partition(self) -> float:
        r"""Logarithm of the partition function at :math:`\beta = 0`, in nats."""
        layers = (self.visible_base, self.hidden_base)
        return float(sum(layer.log_partition(layer.zero_field(1))[0] for layer in layers))

    @cached_property
    def transposed(self) -> Machine:
        """The machine with its layers exchanged, and weights that lie in memory as they are read."""
        transposed = self.machine.transposed
        return replace(transposed, weights=np.ascontiguousarray(transposed.weights))

    def at(self, beta: float | Array) -> TemperedMachine:
        r"""Give the distribution at an inverse temperature, or at one for each sample.

        Parameters
        ----------
        beta : float or ndarray of shape (n_samples, 1)
            Between 0 and 1.

        Returns
        -------
        machine : TemperedMachine
            Distribution :math:`p_\beta`, or one for each sample.
        """
        return TemperedMachine(
            self,
            beta,
            self.machine.visible.tempered(self.visible_base, beta),
            self.machine.hidden.tempered(self.hidden_base, beta),
        )

    def sample_base(self, n_samples: int, rng: np.random.Generator) -> Array:
        r"""Independent visible states at :math:`\beta = 0`.

        Parameters
        ----------
        n_samples : int
            Number of states.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        v : ndarray of shape (n_samples, n_visible)
            Visible states.
        """
        return self.visible_base.sample(self.visible_base.zero_field(n_samples), rng)

    def jump(self, h: Array, rng: np.random.Generator, beta: float = 1.0) -> Array:
        """Let chains at an inverse temperature, by default the machine's, try to jump to the anchors.

        Parameters
        ----------
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states.
        rng : numpy.random.Generator
            Source of random numbers.
        beta : float, default=1.0
            Inverse temperature.

        Returns
        -------
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states after the jumps; the very same on a path without anchors.
        """
        if self.anchors is None:
            return h
        machine = self.machine if beta == 1 else self.at(beta)
        return jump(machine, h, self.anchors, rng)[0]

    def energy_gap(self, v: Array, h: Array, *, field: Array | None = None) -> Array:
        r"""Derivative of the energy in :math:`\beta`: :math:`E_1(v, h) - E_0(v, h)`.

        Parameters
        ----------
        v : ndarray of shape (n_samples, n_visible)
            Visible states.
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states.
        field : ndarray of shape (n_samples, n_hidden), default=None
            The machine's `hidden_field` of `v`, when it is already known.

        Returns
        -------
        gap : ndarray of shape (n_samples,)
            In nats.
        """
        own = self.visible_base.energy(v) + self.hidden_base.energy(h)
        return np.asarray(self.machine.energy(v, h, field=field) - own)


@final
@dataclass(frozen=True, eq=False)
class TemperedMachine:
    """Distribution of a path at an inverse temperature, or at one for each sample.

    Parameters
    ----------
    path : TemperedPath
        Where it belongs.
    beta : float or ndarray of shape (n_samples, 1)
        Inverse temperature.
    visible, hidden : Units
        Natural layers there, which feel `beta` times the field that they feel in the machine.
    """

    path: TemperedPath
    beta: float | Array
    visible: Units
    hidden: Units

    def hidden_field(self, v: Array) -> Array:
        """Field that the hidden units feel, from visible states of shape (n_samples, n_visible)."""
        return self.beta * self.path.machine.hidden_field(v)

    def visible_field(self, h: Array, out: Array | None = None) -> Array:
        """Field that the visible units feel, from hidden states of shape (n_samples, n_hidden)."""
        field = self.path.transposed.hidden_field(h, out=out)
        field *= self.beta
        return field

    def jump(self, v: Array, rng: np.random.Generator) -> Array:
        """Advance chains by a Gibbs step in which they may jump to the path's anchors.

        Parameters
        ----------
        v : ndarray of shape (n_samples, n_visible)
            Visible states, at one inverse temperature for all samples.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        v : ndarray of shape (n_samples, n_visible)
            Visible states after the step; the very same on a path without anchors.
        """
        if self.path.anchors is None:
            return v
        h, _ = jump(self, self.sample_hidden(v, rng), self.path.anchors, rng)
        return self.sample_visible(h, rng)

    def sample_hidden(
        self,
        v: Array,
        rng: np.random.Generator,
        *,
        field: Array | None = None,
        out: Array | None = None,
    ) -> Array:
        """Draw hidden states given the visible ones.

        Parameters
        ----------
        v : ndarray of shape (n_samples, n_visible)
            Visible states.
        rng : numpy.random.Generator
            Source of random numbers.
        field : ndarray of shape (n_samples, n_hidden), default=None
            The natural machine's `hidden_field` of `v`, when it is already known.
        out : ndarray of shape (n_samples, n_hidden), default=None
            Where the answer is written; None for a new array.

        Returns
        -------
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states.
        """
        field = self.path.machine.hidden_field(v) if field is None else field
        field = np.multiply(field, self.beta, out=out)
        return self.hidden.sample(field, rng, out=field)

    def sample_visible(self, h: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        """Draw visible states given the hidden ones.

        Parameters
        ----------
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states.
        rng : numpy.random.Generator
            Source of random numbers.
        out : ndarray of shape (n_samples, n_visible), default=None
            Where the answer is written; None for a new array.

        Returns
        -------
        v : ndarray of shape (n_samples, n_visible)
            Visible states.
        """
        field = self.visible_field(h, out=out)
        return self.visible.sample(field, rng, out=field)


@final
class PathChains:
    """Chains that go along a path, in arrays of their own that every step writes into.

    Parameters
    ----------
    path : TemperedPath
        Where they go.
    v : ndarray of shape (n_samples, n_visible)
        Visible states that they start from, copied.
    """

    def __init__(self, path: TemperedPath, v: Array) -> None:
        self.path, self.v = path, v.astype(path.machine.dtype)
        shape = len(v), path.machine.hidden.n_columns
        self._field, self._other_field, self._mean, self._h = (
            np.empty(shape, self.v.dtype) for _ in range(4)
        )

    def step(
        self, here: TemperedMachine, there: TemperedMachine, rng: np.random.Generator
    ) -> Array:
        r"""Go over from one inverse temperature to another, and take a Gibbs step there.

        Parameters
        ----------
        here, there : TemperedMachine
            Of the path, each at one inverse temperature for all samples.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        change : ndarray of shape (n_samples,)
            Free energy of the visible states there minus that here, in nats, with
            :math:`F_\beta(v) = -\log \sum_h e^{-(1 - \beta) E_0(v, h) - \beta E_1(v, h)}`.
        """
        path, v = self.path, self.v
        field = path.machine.hidden_field(v, out=self._field)
        other_field = np.multiply(field, there.beta, out=self._other_field)
        field *= here.beta
        mean, h = there.hidden.mean_and_sample(other_field, rng, out=(self._mean, self._h))
        change = -here.hidden.log_partition_change(there.hidden, field, other_field, mean)
        gap = path.machine.visible.energy(v) - path.visible_base.energy(v)
        change += (there.beta - here.beta) * gap
        there.sample_visible(h, rng, out=v)
        return change


def heated_machine(machine: Machine, temperature: float) -> Machine:
    r"""Give the machine of the distribution :math:`p(v, h)^{1/T} / Z_T`.

    Parameters
    ----------
    machine : Machine
        Any parameterisation, with or without offsets.
    temperature : float
        T, positive; below one, likely states become likelier.

    Returns
    -------
    heated : Machine
        Natural; at one, the very same machine.

    Raises
    ------
    ValueError
        If the units of a layer have no distribution at another temperature.
    """
    if temperature == 1:
        return machine
    natural, _ = natural_machine(machine)
    layers = natural.visible.heated(temperature), natural.hidden.heated(temperature)
    return Machine(*layers, natural.weights / temperature)


def natural_machine(machine: Machine) -> tuple[Machine, float]:
    """Give the plain machine of the same distribution whose signals are its states.

    Parameters
    ----------
    machine : Machine
        Any parameterisation, with or without offsets.

    Returns
    -------
    natural : Machine
        Of the same types.
    energy_shift : float
        Energy by which it stands above the other, in nats.
    """
    v_signal, v_slope = machine.visible.affine_signal
    h_signal, h_slope = machine.hidden.affine_signal
    W = machine.weights
    visible = machine.visible.natural().recentered(None, v_slope * (W @ h_signal))
    hidden = machine.hidden.natural().recentered(None, h_slope * (v_signal @ W))
    weights = np.multiply(v_slope[:, None] * W, h_slope, order="C")
    natural = Machine(visible, hidden, weights)
    origin: Any = [np.zeros((1, n), dtype=W.dtype) for n in W.shape]
    return natural, float(natural.energy(*origin)[0] - machine.energy(*origin)[0])
