"""Rows with labels, and the machine whose last visible unit the label is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from skrbm.core.centering import gauged
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.units import Categorical, Composite, Units
from skrbm.estimators.validation import check_parameter

UNKNOWN = -1  # number of a label that is not known


@final
@dataclass(frozen=True)
class LabelledRows:
    """Rows of features with the one-hot columns of their labels, joined when they are asked for.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Features of any numeric type.
    labels : ndarray of int of shape (n_samples,)
        Numbers of the labels, `UNKNOWN` where there is none.
    n_labels : int
        Number of labels.
    """

    X: Any
    labels: Array
    n_labels: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of columns with those of the labels."""
        return len(self.labels), self.X.shape[1] + self.n_labels

    def __getitem__(self, rows: Any) -> Any:
        """Some rows, {ndarray, sparse array} of the features' type; zeros for unknown labels."""
        X, labels = self.X[rows], self.labels[rows]
        known = np.flatnonzero(labels != UNKNOWN)
        if issparse(X):
            ones = np.ones(len(known), dtype=X.dtype)
            columns = csr_array((ones, (known, labels[known])), (len(labels), self.n_labels))
            return hstack([X, columns], "csr")
        joined = np.zeros((len(labels), self.shape[1]), dtype=X.dtype)
        joined[:, : X.shape[1]] = X
        joined[known, X.shape[1] + labels[known]] = 1
        return joined


def joint_layer(features: Units, labels: Units) -> Units:
    """Visible layer of the features and, after them, the label."""
    return Composite((features, labels))


def label_layer(bias: Array) -> Units:
    """Layer of one label with a bias for each of its values."""
    return Categorical(bias, (len(bias),))


def started_labels(frequencies: Array, n_samples: float) -> Units:
    """Layer of one label that is as frequent as in some rows."""
    n_labels = len(frequencies)
    variance = frequencies * (1 - frequencies)
    return Categorical.start(frequencies, variance, int(n_samples), n_categories=(n_labels,))


def joint_machine(classifier: Any, rbm: Any, X: Any = None, varying: Any = True) -> Machine:
    """Machine of an estimator's public arrays and a classifier's, in the precision of `X`.

    Raises
    ------
    ValueError
        If the arrays of the label do not go with those of the features.
    """
    machine = rbm._model.machine(X, varying)
    weights = check_parameter(classifier, "label_components_", 2)
    bias = check_parameter(classifier, "intercept_label_", 1)
    expected = machine.hidden.n_columns, len(classifier.classes_)
    if weights.shape != expected or len(bias) != expected[1]:
        raise ValueError(
            f"Expected label_components_ of shape {expected} and intercept_label_ of shape "
            f"({expected[1]},), got {weights.shape} and {bias.shape}."
        )
    visible = joint_layer(machine.visible, label_layer(bias))
    joint = Machine(visible, machine.hidden, np.concatenate([machine.weights, weights.T]))
    return joint.astype(machine.dtype)


def joint_arrays(rbm: Any, machine: Machine, dtype: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Public arrays of the estimator of the features, and of the label."""
    machine = gauged(machine).astype(dtype)
    visible: Any = machine.visible
    features, label = visible.parts
    n_features = features.n_columns
    own = Machine(features, machine.hidden, machine.weights[:n_features])
    arrays = {
        "label_components_": machine.weights[n_features:].T,
        "intercept_label_": label.bias,
    }
    return rbm._model.public_arrays(own), arrays
