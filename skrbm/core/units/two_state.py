"""Units with two states: a subclass declares which, all else is derived."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from skrbm.core.numerics import Array, average_rows, draw_bernoulli, log_two_cosh
from skrbm.core.units.base import Uncentering, Units


@dataclass(frozen=True, eq=False)
class TwoStateUnits(Units):
    r"""Units with two states and an energy linear in them.

    .. math:: A(s) = -(s - o)^T b, \qquad \varphi(s) = s - o

    with bias :math:`b` and offset :math:`o`. With :math:`m` the middle of the two states,
    :math:`r` half their distance and :math:`x = b + f`,

    .. math::

        \mathrm{E}[s \mid f] = m + r \tanh(r x), \qquad
        \log \sum_s e^{s x} = m x + \log(2 \cosh(r x))

    Parameters
    ----------
    bias : ndarray of shape (n_units,)
        Bias of each unit.
    offset : ndarray of shape (n_units,), default=None
        Constant subtracted from the states in the energy; None for a plain layer.
    """

    middle: ClassVar[float]
    reach: ClassVar[float]

    @property
    @abstractmethod
    def states(self) -> tuple[float, float]:
        """The two values, declared by the type."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.domain = low, high = cast(tuple[float, float], cls.states)
        cls.middle, cls.reach = (low + high) / 2, (high - low) / 2

    @classmethod
    def start(cls, mean: Array, variance: Array, n_samples: int, **options: Any) -> Self:
        extreme = n_samples / (n_samples + 1)
        polarity = np.clip((mean - cls.middle) / cls.reach, -extreme, extreme)
        return cls(np.arctanh(polarity) / cls.reach, **options)

    @property
    def parameters(self) -> dict[str, Array]:
        return {"bias": self.bias}

    def signal(self, states: Any) -> Any:
        return states if self.offset is None else states - self.offset

    def energy(self, states: Any) -> Array:
        return np.asarray(-(self.signal(states) @ self.bias))

    def log_partition(self, field: Array) -> Array:
        total = field + self.bias
        own = self.middle if self.offset is None else self.middle - self.offset
        terms = log_two_cosh(self.reach * total) + own * total
        # Free energies are compared with each other: hundreds of terms would lose digits.
        return np.asarray(terms.sum(axis=1, dtype=np.float64).astype(field.dtype))

    def mean(self, field: Array) -> Array:
        return np.asarray(self.middle + self.reach * self._polarity(field))

    def sample(self, field: Array, rng: np.random.Generator) -> Array:
        is_high = draw_bernoulli(0.5 + 0.5 * self._polarity(field), rng)
        low, high = self.states
        return low + (high - low) * is_high.astype(field.dtype)

    def moments(self, states: Any, probabilities: Array | None) -> tuple[Array, ...]:
        return (average_rows(self.signal(states), probabilities),)

    def mean_moments(self, field: Array, probabilities: Array | None) -> tuple[Array, ...]:
        return (average_rows(self.mean_signal(field), probabilities),)

    def gradient(
        self,
        moments: tuple[Array, ...],
        field: Callable[[], Array],
        work: Callable[[], Array],
    ) -> dict[str, Array]:
        return {"bias": moments[0]}

    def recentered(self, offset: Array | None, field: Array) -> Self:
        return replace(self, bias=self.bias + field, offset=offset)

    def uncentering(self, offset: Array, field: Array) -> Uncentering:
        return Uncentering(shift=offset)

    def alternatives(self, states: Array, low: Array, high: Array) -> tuple[Array, Array]:
        # A value between the states, such as a grey pixel's, is compared with its mirror image.
        return 2 * self.middle - states, np.zeros(1, dtype=states.dtype)

    def _polarity(self, field: Array) -> Array:
        """Probability of the higher state minus that of the lower one."""
        total = field + self.bias
        total *= self.reach
        return np.asarray(np.tanh(total, out=total))
