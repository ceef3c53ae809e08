"""Update rules and schedules against the published recursions."""

import numpy as np
import pytest

from skrbm.core.training.optimizer import OPTIMIZERS, SCHEDULES

STEPS = 5
RULES = [(name, momentum) for name in OPTIMIZERS for momentum in (0.0, 0.5, 0.9)]


def trajectory(name, momentum, gradients, rate):
    """Sum of all steps after each of them, one scalar parameter, from the papers' formulas."""
    position, velocity, square, places = 0.0, 0.0, 0.0, []
    for t, g in enumerate(gradients, 1):
        if name == "adam":
            velocity = momentum * velocity + (1 - momentum) * g
            square = 0.999 * square + 0.001 * g**2
            root = np.sqrt(square / (1 - 0.999**t))
            position += rate * velocity / (1 - momentum**t) / (root + 1e-6)
        else:
            velocity = momentum * velocity + rate * g
            position += velocity
        places.append(position)
    return places


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rate", [0, 0.25, 2])
@pytest.mark.parametrize(("name", "momentum"), RULES)
def test_steps_are_the_published_ones_in_place(name, momentum, rate, dtype, rng):
    # Slips: descent, the learning rate applied twice or not to the momentum, biased first steps of
    # Adam, one memory for all parameters.
    start = {"weights": rng.normal(size=(3, 2)), "visible_bias": rng.normal(size=3)}
    gradients = [{n: rng.normal(size=a.shape) for n, a in start.items()} for _ in range(STEPS)]
    parameters = {n: a.astype(dtype) for n, a in start.items()}
    arrays, memory, optimizer = dict(parameters), {}, OPTIMIZERS[name](momentum)
    for gradient in gradients:
        step = {n: g.astype(dtype) for n, g in gradient.items()}
        optimizer.step(parameters, step, rate, memory)
    for n, array in parameters.items():
        assert array is arrays[n]
        assert array.dtype == dtype
        for index in np.ndindex(array.shape):
            moved = trajectory(name, momentum, [g[n][index] for g in gradients], rate)[-1]
            tolerance = 100 * STEPS * np.finfo(dtype).eps * (1 + rate)
            np.testing.assert_allclose(array[index], start[n][index] + moved, atol=tolerance)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_equal_gradients_arrive_at_the_speed_that_momentum_promises(name):
    # Slip: momentum times learning rate applied twice, or a rate divided by what is left.
    parameters, memory = {"weights": np.zeros((1, 1))}, {}
    optimizer, places = OPTIMIZERS[name](0.5), []
    for _ in range(60):
        optimizer.step(parameters, {"weights": np.full((1, 1), 3.0)}, 0.1, memory)
        places.append(parameters["weights"][0, 0])
    speed = 0.1 if name == "adam" else 0.1 * 3.0 / (1 - 0.5)
    np.testing.assert_allclose(places[-1] - places[-2], speed, rtol=1e-6)


def test_memory_follows_shape_and_precision():
    # Slip: momentum of another model's shape, or single precision that is raised to double.
    memory, optimizer = {}, OPTIMIZERS["adam"](0.9)
    for shape, dtype in (((3, 2), np.float64), ((3, 2), np.float32), ((4, 2), np.float32)):
        parameters = {"weights": np.zeros(shape, dtype)}
        optimizer.step(parameters, {"weights": np.ones(shape, dtype)}, 0.1, memory)
        arrays = [a for a in memory.values() if isinstance(a, np.ndarray)]
        assert {(a.shape, a.dtype) for a in arrays} == {(shape, np.dtype(dtype))}


def test_schedules_start_at_one_and_fall_as_they_say():
    assert all(factor(0.0) == 1 for factor in SCHEDULES.values())
    assert SCHEDULES["constant"](0.9) == SCHEDULES["adaptive"](0.9) == 1
    assert SCHEDULES["linear"](0.75) == 0.25
    assert SCHEDULES["linear"](1.0) == 0


@pytest.mark.parametrize(("before", "after"), [(["sgd"], "adam"), (["sgd", "adam"], "sgd")])
def test_another_rule_starts_anew(before, after):
    # Slips: steps of the other rule in the bias correction of a mean that starts at zero, by which
    # the first step is thirty times too long; velocities of long ago.
    memory, moved = {}, []
    for name in np.repeat(before, 500):
        OPTIMIZERS[name](0.5).step({"weights": np.zeros(1)}, {"weights": np.ones(1)}, 0.1, memory)
    for own in (memory, {}):
        parameters = {"weights": np.zeros(1)}
        for _ in range(3):
            OPTIMIZERS[after](0.9).step(parameters, {"weights": np.ones(1)}, 0.1, own)
        moved.append(parameters["weights"])
    np.testing.assert_array_equal(*moved)
