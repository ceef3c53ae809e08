"""Tempered path of distributions from uncoupled layers to a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self, final

import numpy as np

from skrbm.core.chains.jumps import jump
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, like
from skrbm.core.units import Units

LADDER_JUMP_PAUSE = 10  # steps of parallel tempering between jumps to the anchors


@final
@dataclass(frozen=True, eq=False)
class TemperedPath:
    r"""Path of distributions from uncoupled layers to a machine.

    .. math::

        p_\beta(v, h) \propto e^{-(1 - \beta) E_0(v, h) - \beta E_1(v, h)}, \qquad
        0 \le \beta \le 1

    where :math:`E_0` is the energy of the base, which consists of two layers without coupling, and
    :math:`E_1` is the energy of the machine. At :math:`\beta = 0` the units are independent and the
    partition function is known. The base and the machine must be in natural form: the signals of
    their layers equal the states, see `natural_machine`. The intermediate distributions can then be
    represented by machines with the same unit types. The attribute `is_tempered_exactly` of the
    hidden units must be True. Otherwise, their energies could differ from the interpolated energies
    by constants, which would change the free energies.

    Parameters
    ----------
    machine : Machine
        Machine at :math:`\beta = 1`, in natural form.
    visible_base, hidden_base : Units
        Layers at :math:`\beta = 0`, in natural form.
    energy_shift : float, default=0.0
        Energy of `machine` minus the energy of the machine of which it is the natural form, in
        nats.
    anchors : ndarray of shape (n_rows, n_visible), default=None
        Visible states in the modes of the machine, to which chains may jump. If None, chains do not
        jump.
    annealing_jump_pause : int, default=20
        Number of temperatures from one jump of annealed chains to the next.

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
        """Create a path to a machine from `visible_base` and hidden units with zero parameters.

        Parameters
        ----------
        machine : Machine
            Machine of any parameterization, with or without offsets.
        visible_base : Units
            Layer of the same type as the visible layer. Without a field, its distribution should be
            close to the distribution of the data.
        anchors : ndarray of shape (n_rows, n_visible), default=None
            Visible states in the modes of the machine, such as rows of the data. If None, chains do
            not jump.

        Returns
        -------
        path : TemperedPath
            Path that ends at the distribution of the machine.

        Raises
        ------
        ValueError
            If the attribute `is_tempered_exactly` of the hidden units is False.
        """
        if not machine.hidden.is_tempered_exactly:
            raise ValueError(
                f"Annealing and tempering need hidden units whose tempered energies are exact, got "
                f"{type(machine.hidden).__name__} units, whose is_tempered_exactly is False."
            )
        natural, energy_shift = natural_machine(machine)
        W = natural.weights
        return cls(
            natural,
            visible_base.natural().astype(natural.dtype).map_arrays(partial(like, array=W)),
            natural.hidden.map_arrays(np.zeros_like),
            energy_shift,
            None if anchors is None else like(anchors.astype(natural.dtype, copy=False), W),
        )

    @property
    def base_log_partition(self) -> float:
        r"""Log-partition function at :math:`\beta = 0`, in nats; `energy_shift` is not added."""
        layers = (self.visible_base, self.hidden_base)
        return float(sum(layer.log_partition(layer.zero_field(1))[0] for layer in layers))

    @cached_property
    def transposed(self) -> Machine:
        """Machine of the path with exchanged layers and weights in C order, for fast products."""
        transposed = self.machine.transposed
        weights = transposed.weights
        return replace(transposed, weights=weights.astype(weights.dtype, order="C", copy=False))

    def at(self, beta: float | Array) -> TemperedMachine:
        r"""Return the distribution at an inverse temperature.

        Parameters
        ----------
        beta : float or ndarray of shape (n_samples, 1)
            Inverse temperature between 0 and 1: a number for all samples, or an array with one
            value for each sample.

        Returns
        -------
        machine : TemperedMachine
            Distribution :math:`p_\beta`. If `beta` is an array, the distribution is different for
            each sample.
        """
        return TemperedMachine(
            self,
            beta,
            self.machine.visible.tempered(self.visible_base, beta),
            self.machine.hidden.tempered(self.hidden_base, beta),
        )

    def sample_base(self, n_samples: int, rng: np.random.Generator) -> Array:
        r"""Draw independent visible states at :math:`\beta = 0`.

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
        """Advance chains at one inverse temperature by a step in which they may jump to anchors.

        Parameters
        ----------
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states.
        rng : numpy.random.Generator
            Source of random numbers.
        beta : float, default=1.0
            Inverse temperature of the chains.

        Returns
        -------
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states after the jumps. If the path has no anchors, these are the given states.
        """
        if self.anchors is None:
            return h
        machine = self.machine if beta == 1 else self.at(beta)
        return jump(machine, h, self.anchors, rng)[0]

    def energy_gap(self, v: Array, h: Array, *, field: Array | None = None) -> Array:
        r"""Derivative of the energy with respect to :math:`\beta`: :math:`E_1(v, h) - E_0(v, h)`.

        Parameters
        ----------
        v : ndarray of shape (n_samples, n_visible)
            Visible states.
        h : ndarray of shape (n_samples, n_hidden)
            Hidden states.
        field : ndarray of shape (n_samples, n_hidden), default=None
            The `hidden_field` of `v` at :math:`\beta = 1`. If None, it is computed.

        Returns
        -------
        gap : ndarray of shape (n_samples,)
            Derivative in nats.
        """
        base_energy = self.visible_base.energy(v) + self.hidden_base.energy(h)
        return self.machine.energy(v, h, field=field) - base_energy


@final
@dataclass(frozen=True, eq=False)
class TemperedMachine:
    """Distribution of a path at one inverse temperature, or at one per sample.

    Parameters
    ----------
    path : TemperedPath
        Path to which the distribution belongs.
    beta : float or ndarray of shape (n_samples, 1)
        Inverse temperature.
    visible, hidden : Units
        Layers at this inverse temperature, in natural form. The field on each layer is the field in
        ``path.machine``, multiplied by `beta`.
    """

    path: TemperedPath
    beta: float | Array
    visible: Units
    hidden: Units

    def hidden_field(self, v: Array) -> Array:
        """Field on the hidden units, given visible states of shape (n_samples, n_visible)."""
        return self.beta * self.path.machine.hidden_field(v)

    def visible_field(self, h: Array, out: Array | None = None) -> Array:
        """Field on the visible units, given hidden states of shape (n_samples, n_hidden)."""
        field = self.path.transposed.hidden_field(h, out=out)
        field *= self.beta
        return field

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
            The `hidden_field` of `v` in ``path.machine``, not multiplied by `beta`. If None, it is
            computed.
        out : ndarray of shape (n_samples, n_hidden), default=None
            Output array. If None, a new array is allocated.

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
            Output array. If None, a new array is allocated.

        Returns
        -------
        v : ndarray of shape (n_samples, n_visible)
            Visible states.
        """
        field = self.visible_field(h, out=out)
        return self.visible.sample(field, rng, out=field)


def heated_machine(machine: Machine, temperature: float) -> Machine:
    r"""Return a machine with the distribution :math:`p(v, h)^{1/T} / Z_T`.

    Parameters
    ----------
    machine : Machine
        Machine of any parameterization, with or without offsets.
    temperature : float
        Positive temperature T. Below one, the distribution is more concentrated on the most
        probable states than at T = 1.

    Returns
    -------
    heated : Machine
        Machine in natural form (see `natural_machine`), or the given machine itself if T = 1.

    Raises
    ------
    ValueError
        If T is not one and the unit type of a layer, or of a part of it, does not override
        `Units.heated`.
    """
    if temperature == 1:
        return machine
    natural, _ = natural_machine(machine)
    layers = natural.visible.heated(temperature), natural.hidden.heated(temperature)
    return Machine(*layers, natural.weights / temperature)


def natural_machine(machine: Machine) -> tuple[Machine, float]:
    """Return the natural form of a machine, without offsets and with signals equal to states.

    Parameters
    ----------
    machine : Machine
        Machine of any parameterization, with or without offsets.

    Returns
    -------
    natural : Machine
        Machine with the same unit types and the same distribution.
    energy_shift : float
        Energy of `natural` minus the energy of the given machine, in nats. The difference is the
        same for all states.
    """
    v_signal, v_slope = machine.visible.affine_signal
    h_signal, h_slope = machine.hidden.affine_signal
    W = machine.weights
    origin: Any = [np.zeros((1, n), W.dtype, like=W) for n in W.shape]
    with np.errstate(invalid="ignore"):  # BLAS has reported one for finite arrays
        visible = machine.visible.natural().recentered(None, v_slope * (W @ h_signal))
        hidden = machine.hidden.natural().recentered(None, h_slope * (v_signal @ W))
        weights = v_slope[:, None] * W * h_slope
        natural = Machine(visible, hidden, weights.astype(weights.dtype, order="C", copy=False))
        return natural, float(natural.energy(*origin)[0] - machine.energy(*origin)[0])
