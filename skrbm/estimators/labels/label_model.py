"""The model that the public arrays of a classifier and of its estimator are together."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.units import Categorical, Composite, Units
from skrbm.estimators.inference.model import Model, Statistics
from skrbm.estimators.input.validation import check_parameter


@final
class LabelModel(Model):
    """Machine whose last visible unit is the label, from and to public arrays.

    Parameters
    ----------
    owner : RBMClassifier
        Has the label's arrays, its classes and the weight of their rows so far, and the estimator of
        the features.
    """

    def __init__(self, owner: Any) -> None:
        self.owner, self.rbm = owner, owner.estimator_

    def machine(self, X: Any = None, varying: Any = True) -> Machine:
        """Machine of the public arrays, in the precision of `X` if that is floating-point.

        Raises
        ------
        ValueError
            If the arrays of the label do not go with those of the features.
        """
        machine = self.rbm._model.machine(X, varying)
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

    def arrays(self, machine: Machine) -> tuple[dict[str, Array], dict[str, Array]]:
        """Attributes of the estimator, and of the classifier, that a plain machine is."""
        visible: Any = machine.visible
        features, label = visible.parts
        weights = machine.weights
        own = Machine(features, machine.hidden, weights[: features.n_columns])
        return self.rbm._model.public_arrays(own), {
            "label_components_": weights[features.n_columns :].T,
            "intercept_label_": label.bias,
        }

    def publish(self, machine: Machine) -> None:
        """Make a plain machine the public arrays."""
        for estimator, arrays in zip((self.rbm, self.owner), self.arrays(machine), strict=True):
            vars(estimator).update(arrays)

    @property
    def public(self) -> dict[str, Array]:
        """The public arrays as they are."""
        names = "label_components_", "intercept_label_"
        return {**self.rbm._model.public, **{name: getattr(self.owner, name) for name in names}}

    def base_layer(self, statistics: Statistics, varying: Any = True) -> Units:
        """Visible layer without a field: features with some statistics, and labels as so far."""
        features = self.rbm._model.base_layer(statistics, varying)
        frequencies, variance = self._label_moments
        n_labels, n_samples = len(frequencies), int(statistics[0])
        label = Categorical.start(frequencies, variance, n_samples, n_categories=(n_labels,))
        return Composite((features, label))

    def moments(self, statistics: Statistics) -> tuple[Array, Array]:
        """Mean and variance of all columns."""
        own = zip(statistics[1:], self._label_moments, strict=True)
        mean, variance = map(np.concatenate, own)
        return mean, variance

    @property
    def _label_moments(self) -> tuple[Array, Array]:
        """Frequencies of the labels so far, and their variances."""
        counts: Array = self.owner._label_counts
        frequencies = np.asarray(counts / max(counts.sum(), 1))
        return frequencies, frequencies * (1 - frequencies)
