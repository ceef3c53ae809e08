"""Update rules and learning-rate schedules: how far parameters move along a direction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from skrbm.core.numerics import BLOCK_BYTES, IN_PLACE_BYTES, Array, row_blocks

Arrays = dict[str, Array]
Memory = dict[str, Any]
# From the share of the planned run that is over (0 without a plan) to a factor of the rate.
Schedule = Callable[[float], float]

SQUARE_DECAY = 0.999  # of the mean square, as published
MIN_ROOT = 1e-6  # above single precision's rounding of gradients that are zero


@dataclass(frozen=True)
class Optimizer(ABC):
    """Update rule: the step that follows from a direction and from those before it.

    Parameters
    ----------
    momentum : float, default=0.0
        Share, in [0, 1), of the last step's directions that this one takes over.

    Attributes
    ----------
    block_bytes : int
        Of a part of a parameter that `move` is given.
    """

    momentum: float = 0.0

    block_bytes: ClassVar[int] = BLOCK_BYTES

    @property
    @abstractmethod
    def remembered(self) -> tuple[str, ...]:
        """Names of what a step leaves for the next one, an array of the parameter's shape each."""

    @property
    @abstractmethod
    def momentum_gain(self) -> float:
        """Total step along a direction, in learning rates; zero if its length is ignored."""

    @abstractmethod
    def move(self, learning_rate: float, n_steps: int, *arrays: Array) -> None:
        """Move a part of a parameter in place; `n_steps` counts this step too.

        The arrays are that part, its direction, which is used up, and what is `remembered` of it.
        """

    def step(
        self, parameters: Arrays, direction: Arrays, learning_rate: float, memory: Memory
    ) -> None:
        """Move the parameters in place; the direction's arrays are used up.

        Parameters
        ----------
        parameters : dict of str to ndarray
            From `Machine.parameters`.
        direction : dict of str to ndarray
            Ascent direction, same keys and shapes.
        learning_rate : float
            Length of the step relative to the direction.
        memory : dict
            What earlier steps left for this one, empty at first; changed in place.
        """
        memory["n_steps"] = n_steps = memory.get("n_steps", 0) + 1
        kinds = self.remembered
        for name, array in parameters.items():
            arrays: tuple[Array, ...] = (array, direction[name])
            for kind in kinds:
                arrays = *arrays, _remembered(memory, f"{kind} of {name}", array)
            if array.nbytes <= self.block_bytes:
                self.move(learning_rate, n_steps, *arrays)
                continue
            for rows in row_blocks(array, self.block_bytes):
                self.move(learning_rate, n_steps, *(own[rows] for own in arrays))


@final
@dataclass(frozen=True)
class SGD(Optimizer):
    r"""Stochastic gradient ascent, with heavy-ball momentum if that is not zero.

    .. math::

        m \leftarrow \mu m + \eta g, \qquad \theta \leftarrow \theta + m

    Parameters
    ----------
    momentum : float, default=0.0
        :math:`\mu`.

    References
    ----------
    .. [1] Polyak (1964), "Some methods of speeding up the convergence of iteration methods",
       USSR Computational Mathematics and Mathematical Physics 4(5), 1-17.
       :doi:`10.1016/0041-5553(64)90137-5`
    """

    block_bytes = IN_PLACE_BYTES

    @property
    def remembered(self) -> tuple[str, ...]:
        return ("velocity",) if self.momentum else ()

    @property
    def momentum_gain(self) -> float:
        return 1 / (1 - self.momentum)

    def move(self, learning_rate: float, n_steps: int, *arrays: Array) -> None:
        array, direction, *remembered = arrays
        step = np.multiply(direction, learning_rate, out=direction)
        for velocity in remembered:
            velocity *= self.momentum
            velocity += step
            step = velocity
        array += step


@final
@dataclass(frozen=True)
class Adam(Optimizer):
    r"""Steps of a length that does not depend on the gradient's scale.

    .. math::

        m \leftarrow \mu m + (1 - \mu) g, \qquad s \leftarrow \nu s + (1 - \nu) g^2, \qquad
        \theta \leftarrow \theta + \eta \frac{m / (1 - \mu^t)}{\sqrt{s / (1 - \nu^t)} + \epsilon}

    with :math:`\nu = 0.999` and :math:`\epsilon = 10^{-6}` at step :math:`t`.

    Parameters
    ----------
    momentum : float, default=0.0
        :math:`\mu`.

    References
    ----------
    .. [1] Kingma, Ba (2015), "Adam: a method for stochastic optimization", ICLR, algorithm 1.
       :doi:`10.48550/arXiv.1412.6980`
    """

    @property
    def remembered(self) -> tuple[str, ...]:
        return ("square", "mean") if self.momentum else ("square",)

    @property
    def momentum_gain(self) -> float:
        return 0.0

    def move(self, learning_rate: float, n_steps: int, *arrays: Array) -> None:
        array, direction, square, *means = arrays
        square *= SQUARE_DECAY
        square += (1 - SQUARE_DECAY) * direction**2
        for mean in means:
            mean *= self.momentum
            mean += np.multiply(direction, 1 - self.momentum, out=direction)
            direction = mean
        root = np.sqrt(square / (1 - SQUARE_DECAY**n_steps))
        root += MIN_ROOT
        rate = learning_rate / (1 - self.momentum**n_steps)
        array += np.divide(rate * direction, root, out=root)


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": SGD, "adam": Adam}


def constant_factor(progress: float) -> float:
    """Factor of one throughout."""
    return 1.0


def linear_factor(progress: float) -> float:
    """Factor that falls to zero at the end of the planned run."""
    return 1 - progress


SCHEDULES: dict[str, Schedule] = {
    "constant": constant_factor,
    "linear": linear_factor,
    "adaptive": constant_factor,  # `EarlyStopping` lowers the rate
}


def _remembered(memory: Memory, name: str, like: Array) -> Array:
    """Array of the memory, zeros at first and after a change of shape."""
    array = memory.get(name)
    if array is None or array.shape != like.shape:
        array = memory[name] = np.zeros_like(like)
    elif array.dtype != like.dtype:
        array = memory[name] = array.astype(like.dtype)
    return np.asarray(array)
