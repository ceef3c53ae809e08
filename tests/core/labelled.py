"""Oracles of machines with a label: features of any kind, and one categorical unit beside them."""

import dataclasses

import numpy as np
import oracles
from core.models import machine_from
from scipy.special import logsumexp

from skrbm.core.machine import Machine
from skrbm.core.units import Categorical, Composite

SIDES = "hidden_threshold", "hidden_asymmetry"


@dataclasses.dataclass(frozen=True)
class Labelled:
    """Oracle parameters of the features, and weights, biases and offsets of the label.

    weights (n_labels, n_hidden), bias and offset (n_labels,).
    """

    features: oracles.Parameters
    weights: np.ndarray
    bias: np.ndarray
    offset: np.ndarray

    def log_joint(self, v):
        """log p(v, k) of every row and label up to the constant log Z: (n_samples, n_labels)."""
        h = oracles.hidden_states(self.features)
        energy = oracles.energy(self.features, v, h)[:, None]
        labels = np.eye(len(self.bias)) - self.offset
        energy = energy - labels @ self.weights @ (h - self.features.hidden_offset).T
        measure = oracles.hidden_log_measure(self.features)
        return logsumexp(measure - energy, axis=2) + labels @ self.bias

    def log_partition(self):
        """log Z of discrete features, in nats."""
        return logsumexp(self.log_joint(oracles.visible_states(self.features)))


def random_labelled(kind, rng, *, n_visible=3, n_hidden=2, n_labels=3, offsets=True, hidden=None):
    """Labelled machine with normal weights and biases."""
    features = oracles.random_parameters(
        kind, n_visible, n_hidden, rng, offsets=offsets, hidden=hidden
    )
    return Labelled(
        features,
        rng.normal(0, 1, (n_labels, n_hidden)),
        rng.normal(0, 1, n_labels),
        rng.random(n_labels) * offsets,
    )


def labelled_machine(q):
    """Machine of the package: the features' layer and the label's in one."""
    machine = machine_from(q.features)
    offset = q.offset.copy() if q.offset.any() else None
    label = Categorical(q.bias.copy(), (len(q.bias),), offset=offset)
    weights = np.concatenate([machine.weights, q.weights])
    return Machine(Composite((machine.visible, label)), machine.hidden, weights)


def renamed(gradient, n_visible):
    """Gradient of the package under the names of `Labelled`."""
    weights = gradient["weights"]
    names = {"visible_0_bias": "visible_bias", "visible_0_log_variance": "log_variance"}
    plain = {own: gradient[name] for name, own in names.items() if name in gradient}
    label = {"label_weights": weights[n_visible:], "label_bias": gradient["visible_1_bias"]}
    own = {name.removeprefix("hidden_"): gradient[name] for name in gradient if name in SIDES}
    hidden = {"hidden_bias": gradient["hidden_bias"]} | own
    return plain | label | {"weights": weights[:n_visible]} | hidden


def finite_differences(q, objective):
    """Gradient of a function of a labelled machine, by central differences on five points."""
    gradient = oracles.finite_difference_gradient(
        lambda features: objective(dataclasses.replace(q, features=features)), q.features
    )
    for name in ("weights", "bias"):
        array = getattr(q, name)
        result = gradient[f"label_{name}"] = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            values = []
            for shift in (1e-4, -1e-4, 2e-4, -2e-4):
                moved = array.copy()
                moved[index] += shift
                values.append(objective(dataclasses.replace(q, **{name: moved})))
            result[index] = (8 * (values[0] - values[1]) - (values[2] - values[3])) / 12e-4
    return gradient
