"""Reports on the hidden units of a fitted model."""

from __future__ import annotations

from typing import Any

from skrbm.core.chains.path import TemperedPath
from skrbm.core.chains.tempering import sample_tempered
from skrbm.core.hidden_unit_reports import HiddenUnitReport, histograms, importances
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.estimators.inference.model import model_of
from skrbm.estimators.input.array_libraries import computed_by_numpy
from skrbm.estimators.input.validation import COUNT, RANDOM_STATE, checked_arguments


@computed_by_numpy
@checked_arguments(
    X=["array-like", "sparse matrix"],
    n_samples=COUNT,
    n_gibbs_steps=COUNT,
    n_temperatures=COUNT,
    random_state=RANDOM_STATE,
)
def hidden_unit_report(
    rbm: Any,
    X: Any,
    *,
    n_samples: int = 500,
    n_gibbs_steps: int = 100,
    n_temperatures: int = 10,
    random_state: Any = None,
) -> HiddenUnitReport:
    """Report the importance, mean activation, weights and inputs of every hidden unit.

    The importance of a unit is the decrease of the mean log-likelihood of the rows, in nats, if the
    unit is removed and all other parameters are kept. The change of the partition function is
    estimated from samples of the model drawn by parallel tempering.

    Parameters
    ----------
    rbm : BernoulliRBM, SpinRBM, GaussianBernoulliRBM or TabularRBM
        Fitted estimator, or one with public arrays assigned by hand.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        Rows without missing values.
    n_samples : int, default=500
        Number of samples drawn from the model.
    n_gibbs_steps : int, default=100
        Number of Gibbs steps of each chain.
    n_temperatures : int, default=10
        Number of temperatures, at least 2. Each sample is drawn with a separate set of chains, one
        at each temperature.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator. If None, the random stream of the estimator is continued.

    Returns
    -------
    report : HiddenUnitReport
        Report on the hidden units. The arrays `importance` and `importance_std_error`, in nats, and
        `mean_activation` have the shape (n_components,), and the array `weights` has the shape
        (n_components, n_columns). The array `columns` contains the names of the columns or, without
        names, their indices. The histograms of the inputs have 50 bins, with the counts
        `input_counts` of shape (n_components, 50), and the bin edges `input_edges`, in nats, of
        shape (n_components, 51). Printing the report shows the ten most important units.

    Raises
    ------
    TypeError
        If `rbm` is not an instance of one of these classes, as for example an `RBMClassifier`; pass
        its attribute `estimator_` instead.
    ValueError
        If `n_temperatures` is 1, or if `X` is invalid or has missing values.

    Examples
    --------
    The hidden unit has its largest weights to the two features that are equal:

    >>> import numpy as np
    >>> from skrbm import BernoulliRBM, hidden_unit_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(500, 3))
    >>> X[:, 1] = X[:, 0]
    >>> rbm = BernoulliRBM(1, n_iter=100, random_state=0).fit(X)
    >>> report = hidden_unit_report(rbm, X, random_state=0)
    >>> sorted(name[1:] for name in report.strongest_columns(0, 2))
    ['0', '1']
    """
    if n_temperatures < 2:
        raise ValueError(f"n_temperatures expected to be at least 2, got {n_temperatures}.")
    model = model_of(rbm)
    machine, rng, v = model.machine(), model.inference_rng(random_state), model.check_X(X)
    path = TemperedPath.to(machine, *model.base_and_anchors(machine, rng))
    start = path.sample_base(n_samples, rng)
    draws = sample_tempered(path, start, n_temperatures, n_gibbs_steps, rng)

    field = model.map_rows(Machine.hidden_field, v)
    importance, std_error = importances(machine, field, machine.hidden_field(draws))
    return HiddenUnitReport(
        importance,
        std_error,
        machine.hidden.mean(field).mean(axis=0),
        *_named_weights(rbm, machine),
        *histograms(field + machine.hidden.bias),
    )


@computed_by_numpy
def inputs_and_weights(rbm: Any, X: Any) -> tuple[Array, Array, Array]:
    """Inputs of the hidden units, their weights, and the names of the columns.

    The inputs are computed from the rows of `X`. They have shape (n_rows, n_hidden) and include the
    biases. The weights, of shape (n_hidden, n_columns), and the names are those of
    `HiddenUnitReport`.
    """
    model = model_of(rbm)
    machine = model.machine()
    field = model.map_rows(Machine.hidden_field, model.check_X(X))
    return field + machine.hidden.bias, *_named_weights(rbm, machine)


def _named_weights(rbm: Any, machine: Machine) -> tuple[Array, Array]:
    """Weights of shape (n_hidden, n_columns) in the zero-sum gauge, and names of the columns."""
    names = rbm._row_format.names(rbm, machine.visible.n_columns)["columns"]
    return machine.visible.gauge(machine.weights).T, names
