"""Weights of two layers without bounds: held where the states have a distribution."""

from dataclasses import replace

import numpy as np
import pytest

from skrbm.core.machine import Machine
from skrbm.core.training.gradient import Samples
from skrbm.core.training.part import Step
from skrbm.core.training.parts.hidden_scale import N_FULL_UPDATES, HiddenScale
from skrbm.core.training.parts.normalization import (
    MAX_LOST_CURVATURE,
    Normalization,
    hold_normalizable,
)
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.state import TrainingState
from skrbm.core.units import Composite, Gaussian, Spin, StandardGaussian


def machine_of(n_visible, n_hidden, rng, scale):
    """Machine of two Gaussian layers whose largest singular value is `scale`."""
    visible = Gaussian(np.zeros(n_visible), rng.normal(size=n_visible), parameterization="cho")
    machine = Machine(visible, StandardGaussian(np.zeros(n_hidden)), np.eye(n_visible, n_hidden))
    left, _ = machine.curvature_scales
    inner = rng.normal(size=(n_visible, n_hidden))
    machine.weights[...] = scale * inner / np.linalg.norm(inner, 2) / left[:, None]
    return machine


def step_of(machine, v, rng):
    """Update of a machine as parts see it."""
    state = TrainingState(np.zeros((1, machine.hidden.n_columns)))
    positive = Samples(((v, machine.mean_hidden(v)),), np.full(len(v), 1 / len(v)))
    return Step(machine, v, positive, 0.1, state, rng)


@pytest.mark.parametrize("shape", [(6, 4), (40, 50)])
def test_singular_values_beyond_the_limit_are_lowered_and_no_others(shape, rng):
    # Slips: all weights divided, which lowers what is well within; a limit of the singular value
    # in place of its square; an iteration that has not found the leading direction.
    machine = machine_of(*shape, rng, 1.2)
    left, right = machine.curvature_scales
    before = np.linalg.svd(left[:, None] * machine.weights * right)[1]
    step, part = step_of(machine, rng.normal(size=(5, shape[0])), rng), Normalization()
    for _ in range(20):  # of large layers an update lowers the values that it has found
        part.after_step(step, machine)
    after = np.linalg.svd(left[:, None] * machine.weights * right)[1]
    expected = np.minimum(before, np.sqrt(MAX_LOST_CURVATURE))
    np.testing.assert_allclose(after, expected, rtol=0, atol=0.02)
    assert after.max() < 1
    hold_normalizable(machine)
    assert machine.lost_curvature <= MAX_LOST_CURVATURE + 1e-12
    rate = step.rate
    part.observe(step)
    np.testing.assert_allclose(step.rate, rate * (1 - MAX_LOST_CURVATURE), atol=0.02 * rate)


@pytest.mark.parametrize("n_large", [3, 8])
def test_values_that_pass_the_limit_together_are_held_in_one_update(n_large, rng):
    """Slip: the leading value alone, the next of which left no distribution within an epoch.

    Of patches of photographs, whose brightness and gradients a rectified layer learns at once.
    """
    U, V = (np.linalg.qr(rng.normal(size=(n, 40)))[0] for n in (50, 40))
    values = np.where(np.arange(40) < n_large, np.linspace(1.2, 1.3, 40), 0.3)
    gaussian = Gaussian(np.zeros(50), np.zeros(50), parameterization="cho")
    machine = Machine(gaussian, StandardGaussian(np.zeros(40)), (U * values) @ V.T)
    Normalization().after_step(step_of(machine, rng.normal(size=(5, 50)), rng), machine)
    held = np.sqrt(np.where(np.arange(40) < n_large, MAX_LOST_CURVATURE, 0.3**2))
    left, right = machine.curvature_scales
    found = np.linalg.svd(left[:, None] * machine.weights * right)[1]
    np.testing.assert_allclose(found, held, atol=1e-3)


def test_columns_within_bounds_keep_their_weights(rng):
    # Slip: a division by the zero scale of a bounded column.
    gaussian = Gaussian(np.zeros(3), np.zeros(3), parameterization="cho")
    visible = Composite((Spin(np.zeros(2)), gaussian))
    weights = 2 * rng.normal(size=(5, 4))
    machine = Machine(visible, StandardGaussian(np.zeros(4)), weights.copy())
    hold_normalizable(machine)
    np.testing.assert_array_equal(machine.weights[:2], weights[:2])
    assert machine.lost_curvature <= MAX_LOST_CURVATURE + 1e-12


def test_variances_are_learned_at_constant_scaled_weights(rng):
    # Slips: derivatives at constant weights, weights that do not follow the variances.
    machine = machine_of(6, 4, rng, 0.5)

    def scaled_weights():
        left, right = machine.curvature_scales
        return left[:, None] * machine.weights * right

    before, part = scaled_weights(), Normalization()
    step = step_of(machine, rng.normal(size=(5, 6)), rng)
    gradient = {name: np.zeros_like(array) for name, array in machine.parameters.items()}
    gradient["weights"] = rng.normal(size=(6, 4))
    part.transform(step, machine, gradient)
    # With "cho", the scale of a row of the weights is exp(-log_variance / 2).
    expected = (machine.weights * gradient["weights"]).sum(axis=1) / 2
    np.testing.assert_allclose(gradient["visible_log_variance"], expected)
    machine.visible.log_variance[...] += rng.normal(size=6) / 4
    part.after_step(step, machine)
    np.testing.assert_allclose(scaled_weights(), before)


def test_rows_of_no_weight_do_not_scale_steps(rng):
    # Slip: an outlier of weight 1e-30 that shortens all steps; a sum of weights that underflows.
    machine = machine_of(8, 3, rng, 0.9)
    v = np.concatenate([rng.normal(size=(8, 8)), np.full((8, 8), 1e6)])
    step, preconditioner = step_of(machine, v, rng), Preconditioner()
    for weight, expected in ((1 / 8, machine.mean_hidden(v[:8]).var(axis=0)), (0.0, 0.0)):
        weights = np.where(np.arange(16) < 8, weight, 0.0)
        step.state.parts.clear()
        weighted = replace(step, positive=step.positive.weighted(weights))
        HiddenScale(preconditioner, has_chains=False).observe(weighted)
        _, metric = preconditioner.metrics(machine)
        np.testing.assert_allclose(metric.signal, np.broadcast_to(1 / (1 + expected), 3))


def test_steps_are_measured_in_the_variance_of_the_hidden_states(rng):
    # Slips: the variance of their means alone, a metric that is kept from the first update.
    machine = machine_of(8, 3, rng, 0.9)
    v = 10 * rng.normal(size=(16, 8))
    preconditioner, mean = Preconditioner(), machine.mean_hidden(v)
    step = step_of(machine, v, rng)
    HiddenScale(preconditioner).observe(step)
    _, metric = preconditioner.metrics(machine)
    np.testing.assert_allclose(metric.signal, 1 / (1 + mean.var(axis=0)))
    step.state.particles[:] = mean.mean(axis=0)
    step.state.particles[:, 2] += 1e3  # chains that run away
    HiddenScale(preconditioner).observe(step)
    _, metric = preconditioner.metrics(machine)
    np.testing.assert_allclose(metric.signal, [*1 / (1 + mean.var(axis=0)[:2]), 1e-6])
    for n_updates, factor in ((N_FULL_UPDATES, 1), (9 * N_FULL_UPDATES, 3)):
        step.state.n_updates = n_updates
        for is_visible_bounded in (True, False):
            HiddenScale(preconditioner, is_visible_bounded).observe(step)
            _, metric = preconditioner.metrics(machine)
            expected = 1e-6 / (factor if is_visible_bounded else 1)
            np.testing.assert_allclose(metric.signal[2], expected)
