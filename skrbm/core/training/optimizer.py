"""Update rules and learning-rate schedules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from skrbm.core.numerics import IN_PLACE_BYTES, Array, row_blocks

Arrays = dict[str, Array]
Memory = dict[str, Any]
# Factor of the learning rate, given the completed share of the planned run (0 if not planned).
Schedule = Callable[[float], float]

SQUARE_DECAY = 0.999  # decay rate of the mean square, as published by Kingma and Ba (2015)
MIN_ROOT = 1e-6  # added to roots; exceeds float32 rounding errors where the exact gradient is 0


@dataclass(frozen=True)
class Optimizer(ABC):
    """Update rule that computes a step from the current direction and earlier directions.

    Parameters
    ----------
    momentum : float, default=0.0
        Decay rate of earlier directions per step, in [0, 1).
    """

    momentum: float = 0.0

    @property
    @abstractmethod
    def remembered(self) -> tuple[str, ...]:
        """Names of the arrays that are kept between steps for each parameter.

        Each of these arrays has the shape of its parameter.
        """

    @property
    @abstractmethod
    def momentum_gain(self) -> float:
        """Sum of all steps caused by a direction, divided by the learning rate times the direction.

        It is 0 if the step does not scale with the length of the direction.
        """

    @abstractmethod
    def move(self, learning_rate: float, n_steps: int, *arrays: Array) -> None:
        """Update a block of a parameter, and the same block of its `remembered` arrays, in place.

        `arrays` contains the block of the parameter, followed by those of the direction and of the
        `remembered` arrays. The direction may be overwritten. `n_steps` is the number of steps so
        far, including this one.
        """

    def step(
        self, parameters: Arrays, direction: Arrays, learning_rate: float, memory: Memory
    ) -> None:
        """Update the parameters in place; the arrays of the direction may be overwritten.

        Parameters
        ----------
        parameters : dict of str to ndarray
            Parameters from `Machine.parameters`.
        direction : dict of str to ndarray
            Ascent direction, with the same keys and shapes as the parameters.
        learning_rate : float
            Learning rate of the step.
        memory : dict
            State of the optimizer, which is initially empty and changed in place. It is emptied if
            the last step remembered arrays with other names.
        """
        kinds = self.remembered
        if memory.get("kinds") != kinds:  # the arrays of another update rule start at zero
            memory.clear()
            memory["kinds"] = kinds
        memory["n_steps"] = n_steps = memory.get("n_steps", 0) + 1
        for name, array in parameters.items():
            arrays: tuple[Array, ...] = (array, direction[name])
            for kind in kinds:
                arrays = *arrays, _remembered(memory, f"{kind} of {name}", array)
            if array.nbytes <= IN_PLACE_BYTES:  # without views, which cost small models time
                self.move(learning_rate, n_steps, *arrays)
                continue
            for rows in row_blocks(array, IN_PLACE_BYTES):
                self.move(learning_rate, n_steps, *(each[rows] for each in arrays))


@final
@dataclass(frozen=True)
class SGD(Optimizer):
    r"""Stochastic gradient ascent with heavy-ball momentum [1]_.

    .. math::

        m \leftarrow \mu m + \eta g, \qquad \theta \leftarrow \theta + m

    where :math:`\theta` is a parameter, :math:`m` its velocity, which is initially zero, :math:`g`
    its direction and :math:`\eta` the learning rate.

    Parameters
    ----------
    momentum : float, default=0.0
        Decay rate :math:`\mu` of earlier directions per step, in [0, 1).

    References
    ----------
    .. [1] Polyak (1964), "Some methods of speeding up the convergence of iteration methods",
       USSR Computational Mathematics and Mathematical Physics 4(5), 1-17.
       :doi:`10.1016/0041-5553(64)90137-5`
    """

    @cached_property
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
    r"""Adam [1]_: steps hardly change if all directions are multiplied by the same factor.

    .. math::

        m \leftarrow \mu m + (1 - \mu) g, \qquad s \leftarrow \nu s + (1 - \nu) g^2, \qquad
        \theta \leftarrow \theta + \eta \frac{m / (1 - \mu^t)}{\sqrt{s / (1 - \nu^t)} + \epsilon}

    at step :math:`t`, where :math:`\theta` is a parameter, :math:`g` its direction and :math:`\eta`
    the learning rate. The running means :math:`m` and :math:`s` are initially zero; :math:`\nu =
    0.999` and :math:`\epsilon = 10^{-6}`. Steps depend on the scale of the directions if these are
    not much larger than :math:`\epsilon`.

    Parameters
    ----------
    momentum : float, default=0.0
        Decay rate :math:`\mu` of the mean direction per step, in [0, 1).

    References
    ----------
    .. [1] Kingma, Ba (2015), "Adam: a method for stochastic optimization", ICLR, algorithm 1.
       :doi:`10.48550/arXiv.1412.6980`
    """

    @cached_property
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
    """Constant factor of 1."""
    return 1.0


def linear_factor(progress: float) -> float:
    """Factor that decreases linearly from 1 to 0 over the planned run; 1 if not planned."""
    return 1 - progress


SCHEDULES: dict[str, Schedule] = {
    "constant": constant_factor,
    "linear": linear_factor,
    "adaptive": constant_factor,  # `EarlyStopping` lowers the rate
}


def _remembered(memory: Memory, name: str, like: Array) -> Array:
    """Return an array that is kept between steps.

    It is zero in the first step, and after the shape of the parameter has changed.
    """
    array = memory.get(name)
    if array is None or array.shape != like.shape:
        array = memory[name] = np.zeros_like(like)
    elif array.dtype != like.dtype:
        array = memory[name] = array.astype(like.dtype)
    return array
