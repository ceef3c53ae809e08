"""Weights of the rows of a plan and of a stream."""

import numpy as np

from skrbm.core.training.state import TrainingState


def test_weights_are_compared_with_the_mean_of_a_plan_or_of_the_stream():
    # Slips: every call's own mean in a stream, so that single rows all weigh the same; rows that
    # are held out in the mean; rows without a weight among weighted ones taken for average ones.
    state, weight = TrainingState(np.zeros((1, 2))), np.array([1.0, 2.0, 9.0])
    assert state.relative_weight(None, 3, is_planned=False) is None
    np.testing.assert_allclose(
        state.relative_weight(weight, 3, np.array([0, 1]), is_planned=True), weight / 1.5
    )
    for w, mean in ((np.array([2.0]), 8 / 6), (np.array([13.0]), 3)):
        np.testing.assert_allclose(state.relative_weight(w, 1, is_planned=False), w / mean)
    np.testing.assert_allclose(state.relative_weight(None, 3, is_planned=False), [10 / 24] * 3)


def test_rows_of_a_resumed_run_are_counted_once():
    # Slip: a mean weight in which the rows of the run count twice.
    state = TrainingState(np.zeros((1, 2)), n_rows=60, total_weight=300.0)
    weight = np.ones(60)
    before = state.relative_weight(weight, 60, is_planned=False)
    resumed = state.relative_weight(weight, 60, is_planned=False, is_counted=True)
    np.testing.assert_array_equal(before, resumed)
    assert (state.n_rows, state.total_weight) == (120, 360)
