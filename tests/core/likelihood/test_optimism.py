"""Effective number of weights, against Kronecker products and fits to new rows."""

import tracemalloc

import numpy as np
import pytest
from core.models import draw_rows, machine_from, model, sized
from oracles import KINDS
from scipy import sparse

from skrbm import BernoulliRBM
from skrbm.core.centering import recenter
from skrbm.core.likelihood.optimism import effective_parameters
from skrbm.core.machine import Machine
from skrbm.core.units import Bernoulli


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", [3, 40])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_number_is_that_of_the_kronecker_product(kind, n_rows, l2, seed, rng):
    # Slips: correlations in place of covariances; a step of one column for all; columns exchanged
    # with rows where there are few rows.
    p = model(sized(kind, 4, 3), seed)
    machine, v = machine_from(p), draw_rows(p, n_rows, rng)
    steps = rng.uniform(0.5, 2.0, machine.visible.n_columns)
    signal = machine.visible.signal(v) * np.sqrt(steps)
    curvature = np.kron(
        np.cov(signal.T, ddof=0).reshape(len(steps), -1),
        np.cov(machine.mean_hidden(v).T, ddof=0).reshape(machine.hidden.n_columns, -1),
    )
    eigenvalues = np.linalg.eigvalsh(curvature).clip(1e-300)
    total = eigenvalues + l2 * steps.mean()
    expected = (eigenvalues / total * (1 - np.exp(-total))).sum()
    np.testing.assert_allclose(effective_parameters(machine, v, steps, l2), expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
@pytest.mark.parametrize("n_rows", [3, 40])
@pytest.mark.parametrize("is_centered", [False, True])
def test_number_of_sparse_rows_is_that_of_dense_ones(kind, n_rows, is_centered, rng):
    # Slips: products of rows that are not centered, steps that are no square roots.
    p = model(sized(kind, 4, 3), 0)
    machine, v = machine_from(p), draw_rows(p, n_rows, rng)
    if is_centered:
        machine = recenter(machine, np.full(4, 0.3), np.full(3, 0.2))
    steps = rng.uniform(0.5, 2.0, 4)
    expected = effective_parameters(machine, v, steps, 0.3)
    for container in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array):
        actual = effective_parameters(machine, container(v), steps, 0.3)
        np.testing.assert_allclose(actual, expected, rtol=1e-9)


def test_wide_sparse_rows_stay_sparse(rng):
    """Slip: 24 kB for each column, three dense arrays of a thousand rows."""
    n_columns = 50_000
    v = sparse.random(1000, n_columns, 1e-4, format="csr", random_state=0)
    machine = Machine(
        Bernoulli(np.zeros(n_columns)), Bernoulli(np.zeros(2)), rng.normal(size=(n_columns, 2))
    )
    tracemalloc.start()
    effective_parameters(machine, v, 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6  # 24 MB are the inner products of the rows


def test_long_training_adjusts_all_weights_and_none_no_weight(rng):
    p = model(sized("bernoulli", 4, 3), 0)
    machine, v = machine_from(p), draw_rows(p, 200, rng)
    np.testing.assert_allclose(effective_parameters(machine, v, 1e12), 12)
    assert effective_parameters(machine, v, 0.0) == 0
    assert effective_parameters(machine, v, 1e12, l2=1e12) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("n_iter", [10, 100])
def test_rows_that_were_not_learned_are_less_likely_by_that_number(n_iter):
    """Independent bits: what training rows gain and new rows lose, over 30 data sets.

    Two updates a pass: five times as long steps as by default, of a fifth as many updates.
    """
    n_rows, losses, expected = 200, [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, new = (rng.random((2, 5000, 12)) < 0.3).astype(float)
        X = X[:n_rows]
        options = {"algorithm": "exact", "learning_rate": 2.0, "batch_size": 100}
        rbm = BernoulliRBM(8, n_iter=n_iter, random_state=seed, **options).fit(X)
        p = X.mean(axis=0)
        independent = (np.log(p) - np.log1p(-p)) @ (X.mean(axis=0) - new.mean(axis=0))
        gap = rbm.free_energy(new).mean() - rbm.free_energy(X).mean()
        losses.append(gap - independent)
        steps = 2.0 / 2 * n_iter * 2
        number = effective_parameters(rbm._model.machine(), X, steps)
        expected.append(number / n_rows)
    error = np.std(losses, ddof=1) / np.sqrt(len(losses))
    assert 0.5 * np.mean(losses) < np.mean(expected) + 4 * error
    assert np.mean(expected) < 2 * np.mean(losses) + 4 * error
