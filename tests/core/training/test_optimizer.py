"""The update rule."""

import numpy as np
import pytest

from skrbm.core.training.optimizer import SGD


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("learning_rate", [0, 0.25, 2])
def test_step_adds_the_learning_rate_times_the_direction_in_place(learning_rate, dtype, rng):
    # Slips: descent in place of ascent, the learning rate applied twice.
    before = {"weights": rng.normal(size=(3, 2)), "visible_bias": rng.normal(size=3)}
    direction = {name: rng.normal(size=array.shape) for name, array in before.items()}
    parameters = {name: array.astype(dtype) for name, array in before.items()}
    arrays = dict(parameters)
    SGD(learning_rate).step(parameters, {n: d.astype(dtype) for n, d in direction.items()})
    for name, array in parameters.items():
        assert array is arrays[name]
        assert array.dtype == dtype
        expected = before[name] + learning_rate * direction[name]
        np.testing.assert_allclose(array, expected, rtol=0, atol=16 * np.finfo(dtype).eps)
