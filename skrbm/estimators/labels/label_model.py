"""Model defined by the public arrays of a classifier and of its estimator."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.units import Categorical, Composite, Units
from skrbm.estimators.inference.model import Model, Statistics
from skrbm.estimators.input.validation import check_parameter

LABEL_ARRAYS = "label_components_", "intercept_label_"


@final
class LabelModel(Model):
    """Conversion between public arrays and a machine whose last visible unit is the label.

    Parameters
    ----------
    owner : RBMClassifier
        Classifier with `estimator_`, `classes_` and, if it is fitted, the arrays of the label unit.
    label_weights : ndarray of shape (n_labels,), default=None
        Total weight of the rows with each label, over all rows seen so far. If None, the model can
        be used only for inference.
    """

    def __init__(self, owner: Any, label_weights: Array | None = None) -> None:
        self.owner, self.rbm, self.label_weights = owner, owner.estimator_, label_weights

    def machine(self, X: Any = None, is_varying: Any = True) -> Machine:
        """Build the machine from the public arrays; the arguments are described in `Model`.

        Raises
        ------
        ValueError
            If a label array is not an array of finite numbers, if its shape does not match the
            numbers of hidden units and classes, or if `check_meanings` or `ArrayModel.machine`
            raises a ValueError.
        """
        self.check_meanings()
        machine = self.rbm._model.machine(X, is_varying)
        weights = check_parameter(self.owner, "label_components_", 2)
        bias = check_parameter(self.owner, "intercept_label_", 1)
        expected = machine.hidden.n_columns, len(self.owner.classes_)
        if weights.shape != expected or len(bias) != expected[1]:
            raise ValueError(
                f"Expected label_components_ of shape {expected} and intercept_label_ of shape "
                f"({expected[1]},), got {weights.shape} and {bias.shape}."
            )
        visible = Composite((machine.visible, Categorical(bias, (len(bias),))))
        joint = Machine(visible, machine.hidden, np.concatenate([machine.weights, weights.T]))
        return joint.astype(machine.dtype)

    def arrays(self, machine: Machine) -> dict[str, Array]:
        visible: Any = machine.visible
        features, label = visible.parts
        weights, label_weights = np.vsplit(machine.weights, [features.n_columns])
        arrays = self.rbm._model.arrays(Machine(features, machine.hidden, weights))
        return {**arrays, **dict(zip(LABEL_ARRAYS, (label_weights.T, label.bias), strict=True))}

    @property
    def public(self) -> dict[str, Array]:
        label_arrays = {name: getattr(self.owner, name) for name in LABEL_ARRAYS}
        return {**self.rbm._model.public, **label_arrays}

    def base_layer(self, statistics: Statistics, is_varying: Any = True) -> Units:
        """Layer of independent visible units that `Units.start` creates: features, and the label.

        `statistics` are those of the features. The statistics of the label are computed from
        `label_weights`.
        """
        features = self.rbm._model.base_layer(statistics, is_varying)
        frequencies, variance = self._label_moments
        n_samples: Any = statistics[0]  # a sum of weights need not be an integer
        n_categories = (len(frequencies),)
        label = Categorical.start(frequencies, variance, n_samples, n_categories=n_categories)
        return Composite((features, label))

    def moments(self, statistics: Statistics) -> tuple[Array, Array]:
        """Mean and variance of each visible column; the columns of the label come last."""
        pairs = zip(statistics[1:], self._label_moments, strict=True)
        mean, variance = map(np.concatenate, pairs)
        return mean, variance

    @property
    def _label_moments(self) -> tuple[Array, Array]:
        """Weighted frequency of each label, and variance of its indicator.

        The frequencies are computed from the labeled rows seen so far. They are zero without
        labeled rows.
        """
        counts: Any = self.label_weights
        frequencies = counts / (counts.sum() or 1)
        return frequencies, frequencies * (1 - frequencies)
