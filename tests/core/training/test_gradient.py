"""What an update reuses, and how much memory it takes."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from skrbm.core.machine import Machine
from skrbm.core.numerics import dense
from skrbm.core.training.gradient import UpdateBuffers
from skrbm.core.training.loop import run_epochs
from skrbm.core.training.negative_phase import (
    ContrastiveDivergence,
    PersistentContrastiveDivergence,
)
from skrbm.core.training.optimizer import OPTIMIZERS
from skrbm.core.training.parts.average import Average
from skrbm.core.training.parts.penalties import Penalties
from skrbm.core.training.preconditioner import Preconditioner
from skrbm.core.training.state import TrainingState
from skrbm.core.training.update import Trainer
from skrbm.core.units import Bernoulli, Spin

N_VISIBLE, N_HIDDEN, N_ROWS = 784, 500, 400
# Bytes at once: the signals of the rows and chains in both layers and the gradient of the weights, in
# single precision, and small arrays.
LARGEST = 4 * (2 * N_ROWS * (N_VISIBLE + N_HIDDEN) + N_VISIBLE * N_HIDDEN) + 100_000


def machine_of(kind, n_visible, n_hidden, dtype):
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.01, (n_visible, n_hidden)).astype(dtype)
    layers = (kind(np.zeros(n, dtype)) for n in weights.shape)
    return Machine(*layers, weights)


@pytest.mark.parametrize("algorithm", [ContrastiveDivergence, PersistentContrastiveDivergence])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", [Bernoulli, Spin])
def test_updates_after_the_first_allocate_few_large_arrays(algorithm, optimizer, kind):
    # Slips: any sum, product, cast or draw of the size of rows, chains or weights in an array of its
    # own.
    rng = np.random.default_rng(1)
    machine = machine_of(kind, N_VISIBLE, N_HIDDEN, np.float32)
    trainer = Trainer(
        algorithm(2),
        learning_rate=0.01,
        batch_size=N_ROWS,
        optimizer=OPTIMIZERS[optimizer](momentum=0.5),
        preconditioner=Preconditioner(max_norm=10.0),
        parts=(Penalties(l2=1e-4), Average()),
        buffers=UpdateBuffers(np.float32),
    )
    states = np.array([machine.visible.low, machine.visible.high], np.float32)
    v = states[rng.integers(2, size=(3 * N_ROWS, N_VISIBLE))]
    h = states[rng.integers(2, size=(N_ROWS, N_HIDDEN))]
    state = TrainingState(h)
    sizes, last = [], []

    def watch():
        now, peak = tracemalloc.get_traced_memory()
        sizes.append(peak - last[-1] if last else peak)
        tracemalloc.reset_peak()
        last.append(now)

    passes = run_epochs(trainer, machine, state, v, 5, rng, after_update=watch)
    next(passes)
    tracemalloc.start()
    try:
        sizes.clear()
        last.clear()
        next(passes)  # its first update comes after copies of all that a failure would bring back
    finally:
        tracemalloc.stop()
    assert max(sizes[1:]) < LARGEST


def test_rounded_machine_is_the_present_one():
    # Slips: the parameters of the last call; a copy of another machine.
    buffers = UpdateBuffers(np.float32)
    for n_hidden in (2, 3):
        machine = machine_of(Spin, 4, n_hidden, np.float64)
        for _ in range(2):
            machine.weights[0] += 1
            machine.hidden.bias[1] += 1
            rounded = buffers.rounded(machine)
            for name, array in rounded.parameters.items():
                assert array.dtype == np.float32
                np.testing.assert_allclose(array, machine.parameters[name], rtol=1e-6)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_batches_are_copies_of_the_rows_asked_for(container, dtype, rng):
    # Slips: all rows; a view, which random states in place of gray values would overwrite.
    buffers, machine = UpdateBuffers(np.float32), machine_of(Bernoulli, 3000, 2, np.float64)
    v = rng.integers(2, size=(50, 3000)).astype(dtype)
    for rows in (rng.permutation(50)[:37], slice(3, 31)):
        batch = buffers.take(container(v), rows, machine)
        assert batch.dtype == np.float32
        assert batch.shape == v[rows].shape
        np.testing.assert_array_equal(batch[[0, 5, -1]] @ np.eye(3000), v[rows][[0, 5, -1]])
        assert not np.shares_memory(batch.data, v)


def test_sparse_and_dense_batches_of_one_size_take_turns(rng):
    # Slip: states that were kept for dense rows, whatever the rows are now.
    machine = Machine(Bernoulli(np.zeros(6)), Bernoulli(np.zeros(3)), rng.normal(size=(6, 3)))
    buffers, v = UpdateBuffers(), (rng.random((2, 5, 6)) < 0.5).astype(float)
    for rows, container in zip(v[[0, 1, 0, 1]], [np.asarray, sparse.csr_array] * 2, strict=True):
        states = buffers.phases(container(rows), 4, machine)
        states.model[...] = 0
        states.write_fields(machine)
        np.testing.assert_array_equal(dense(states.v), rows)
        np.testing.assert_allclose(states.data_mean, rows @ machine.weights)


def test_a_difference_is_that_of_its_own_phases(rng):
    # Slip: the last difference, whichever phase is subtracted.
    machine = machine_of(Bernoulli, 4, 3, np.float64)
    one, other = (UpdateBuffers().phases(rng.random((5, 4)), 3, machine) for _ in range(2))
    for states in (one, other):
        states.model[...], states.mean[...] = rng.random((3, 4)), rng.random((8, 3))
    for negative in (one.negative, other.negative, one.negative):
        actual = (one.positive - negative).gradient(machine)
        expected, subtracted = one.positive.gradient(machine), negative.gradient(machine)
        for name, array in actual.items():
            np.testing.assert_allclose(array, expected[name] - subtracted[name], atol=1e-12)
