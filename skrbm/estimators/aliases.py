"""Private methods of scikit-learn's ``BernoulliRBM`` that third-party code calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.estimators.inference.model import ModelMixin
from skrbm.estimators.input.validation import generators


class ScikitLearnAliases(ModelMixin):
    """Four private methods of ``sklearn.neural_network.BernoulliRBM``, with the same arguments.

    They accept one state (a 1-D array) or several states (a 2-D array or a sparse matrix), and do
    not validate the input. The argument `rng` of the two sampling methods is a ``RandomState`` or a
    ``Generator``.
    """

    _as_states: Callable[[Array], Array]

    def _mean_hiddens(self, v: Any) -> Array:
        return self._on_rows(Machine.mean_hidden, v)

    def _sample_hiddens(self, v: Any, rng: Any) -> Array:
        return self._as_states(self._on_rows(Machine.sample_hidden, v, rng))

    def _sample_visibles(self, h: Any, rng: Any) -> Array:
        return self._as_states(self._on_rows(Machine.sample_visible, h, rng))

    def _free_energy(self, v: Any) -> Array:
        return self._on_rows(Machine.free_energy, v)

    def _on_rows(self, function: Callable[..., Array], states: Any, *rng: Any) -> Array:
        states = states if issparse(states) else np.asarray(states)
        machine = self._model.machine(states)
        rows = states[None] if states.ndim == 1 else states
        streams = [r if isinstance(r, np.random.Generator) else generators(r, 1)[0] for r in rng]
        result = function(machine, rows.astype(machine.dtype, copy=False), *streams)
        return result[0] if states.ndim == 1 else result
