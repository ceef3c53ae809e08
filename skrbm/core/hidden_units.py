"""Reports on hidden units: what they look at, how active they are, what is lost without each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array

N_BINS = 50  # of the histogram of a hidden unit's inputs
MIN_DRAWS = 20  # effective number, below which a standard error says nothing
N_PRINTED_UNITS, N_PRINTED_COLUMNS = 10, 4  # of a report in words


@final
@dataclass(frozen=True, eq=False)
class HiddenUnitReport:
    r"""Importances, activities, weights and inputs of the hidden units of a model.

    Parameters
    ----------
    importance : ndarray of shape (n_hidden,)
        Mean log-likelihood of the rows that is lost without the unit, all others left as they are,
        in nats.
    importance_std_error : ndarray of shape (n_hidden,)
        Its standard error, from the samples of the model; infinite where too few of them matter.
    mean_activation : ndarray of shape (n_hidden,)
        Mean of the expected states given the rows.
    weights : ndarray of shape (n_hidden, n_columns)
        Those of a categorical column sum to zero.
    columns : ndarray of shape (n_columns,)
        Names of the columns, such as "port=Southampton", or their numbers.
    input_counts : ndarray of shape (n_hidden, n_bins)
        Histogram of the unit's inputs, bias included, over the rows.
    input_edges : ndarray of shape (n_hidden, n_bins + 1)
        Ends of its bins, in nats.

    See Also
    --------
    hidden_unit_report : Makes one of a fitted model.
    """

    importance: Array
    importance_std_error: Array
    mean_activation: Array
    weights: Array
    columns: Array
    input_counts: Array
    input_edges: Array

    def strongest_columns(self, unit: int, n_columns: int = N_PRINTED_COLUMNS) -> list[str]:
        """Name the columns with the largest weights of a unit, with their signs.

        Parameters
        ----------
        unit : int
            Number of the hidden unit.
        n_columns : int, default=4
            Largest number of columns.

        Returns
        -------
        names : list of str
            Such as "+port=Southampton", the largest first.
        """
        weights = self.weights[unit]
        order = np.argsort(-np.abs(weights), kind="stable")[:n_columns]
        return [f"{'+' if weights[k] >= 0 else '-'}{self.columns[k]}" for k in order]

    def __str__(self) -> str:
        lines = ["unit  nats lost     error  activity  strongest columns"]
        for unit in np.argsort(-self.importance, kind="stable")[:N_PRINTED_UNITS]:
            lines.append(
                f"{unit:4}  {self.importance[unit]:9.3f}  {self.importance_std_error[unit]:8.3f}  "
                f"{self.mean_activation[unit]:8.3f}  {', '.join(self.strongest_columns(unit))}"
            )
        if len(self.importance) > N_PRINTED_UNITS:
            lines.append(f"and {len(self.importance) - N_PRINTED_UNITS} less important units")
        return "\n".join(lines)


def importances(machine: Machine, field: Array, model_field: Array) -> tuple[Array, Array]:
    r"""Likelihood lost without each hidden unit.

    With :math:`L_j(v)` the log-partition of hidden unit j given the visible states, the machine
    without it has :math:`\log p(v) - L_j(v) + \log Z - \log Z_{-j}`, so that

    .. math::

        \Delta_j = \langle L_j \rangle_\text{data} + \log \left\langle e^{-L_j}
        \right\rangle_\text{model}

    Parameters
    ----------
    machine : Machine
        Any unit types.
    field : ndarray of shape (n_samples, n_hidden)
        Hidden fields of rows of data.
    model_field : ndarray of shape (n_draws, n_hidden)
        Hidden fields of independent draws of visible states from the machine.

    Returns
    -------
    importance, std_error : ndarray of shape (n_hidden_units,)
        In nats. The error is infinite where the average rests on too few draws, as for a unit that
        is on in nearly all of them.
    """
    hidden = machine.hidden
    losses, errors = [], []
    for j in range(hidden.n_units):
        unit, columns = hidden.take(j), hidden.unit_columns(j)
        of_data = unit.log_partition(field[:, columns]).astype(np.float64)
        of_model = -unit.log_partition(model_field[:, columns]).astype(np.float64)
        top = of_model.max()
        shares = np.exp(of_model - top)
        losses.append(of_data.mean() + top + np.log(shares.mean()))
        is_rare = shares.sum() ** 2 < MIN_DRAWS * (shares**2).sum()
        errors.append(np.inf if is_rare else shares.std() / shares.mean() / np.sqrt(len(shares)))
    return np.array(losses), np.array(errors)


def histograms(inputs: Array) -> tuple[Array, Array]:
    """Histogram of each column: counts (n_columns, n_bins) and the ends of the bins."""
    counts, edges = zip(*(np.histogram(column, N_BINS) for column in inputs.T), strict=True)
    return np.array(counts), np.array(edges)
