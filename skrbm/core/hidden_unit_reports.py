"""Reports on hidden units: importances, activities, weights and inputs."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, final

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, histogram_range

N_BINS = 50  # of the histogram of a hidden unit's inputs
MIN_DRAWS = 20  # effective sample size below which the standard error is unreliable
N_PRINTED_UNITS, N_PRINTED_COLUMNS = 10, 4  # of a printed report; columns of each unit


def checked_unit(unit: Any, n_hidden: int) -> int:
    """Index of a hidden unit; a ValueError is raised if there is no such unit."""
    if not (isinstance(unit, Integral) and 0 <= int(unit) < n_hidden):
        raise ValueError(f"unit expected to be an integer from 0 to {n_hidden - 1}, got {unit!r}.")
    return int(unit)


@final
@dataclass(frozen=True, eq=False)
class HiddenUnitReport:
    r"""Importances, activities, weights and inputs of the hidden units of a model.

    Parameters
    ----------
    importance : ndarray of shape (n_hidden,)
        Decrease of the mean log-likelihood of the rows, in nats, if the unit is removed and all
        other parameters are kept.
    importance_std_error : ndarray of shape (n_hidden,)
        Monte-Carlo standard error of the importance, in nats. The samples of the model are
        reweighted for the removal of each unit. The error of a unit is infinite if the effective
        sample size of the reweighted samples is below 20.
    mean_activation : ndarray of shape (n_hidden,)
        Expected hidden states, averaged over the rows.
    weights : ndarray of shape (n_hidden, n_columns)
        Weights of the hidden units. For each unit, the weights of a categorical feature sum to zero
        over the columns of its categories.
    columns : ndarray of shape (n_columns,)
        Names of the columns, such as "port=Southampton", or their indices.
    input_counts : ndarray of shape (n_hidden, n_bins)
        Number of rows of data in each bin of the histogram of a unit's inputs. The inputs include
        the bias.
    input_edges : ndarray of shape (n_hidden, n_bins + 1)
        Edges of the histogram bins, in nats.

    See Also
    --------
    hidden_unit_report : Report on the hidden units of a fitted model.
    """

    importance: Array
    importance_std_error: Array
    mean_activation: Array
    weights: Array
    columns: Array
    input_counts: Array
    input_edges: Array

    def strongest_columns(self, unit: int, n_columns: int = N_PRINTED_COLUMNS) -> list[str]:
        """Return the signed names of the columns with the largest absolute weights of a unit.

        Parameters
        ----------
        unit : int
            Index of the hidden unit.
        n_columns : int, default=4
            Largest number of names to return.

        Returns
        -------
        names : list of str
            Signed names such as "+port=Southampton", in descending order of the absolute weight.

        Raises
        ------
        ValueError
            If `unit` is not the index of a hidden unit, or if `n_columns` is not a positive
            integer.
        """
        weights = self.weights[checked_unit(unit, len(self.weights))]
        if not (isinstance(n_columns, Integral) and int(n_columns) > 0):
            raise ValueError(f"n_columns expected to be a positive integer, got {n_columns!r}.")
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
    r"""Decrease of the mean log-likelihood if a hidden unit is removed, for each unit.

    Let :math:`L_j(v)` be the log-partition of hidden unit j given the visible states. The
    log-likelihood of the machine without this unit is
    :math:`\log p(v) - L_j(v) + \log Z - \log Z_{-j}`, where :math:`Z` and :math:`Z_{-j}` are the
    partition functions with and without the unit. Its mean over the data is lower by

    .. math::

        \Delta_j = \langle L_j \rangle_\text{data} + \log \left\langle e^{-L_j}
        \right\rangle_\text{model}

    Parameters
    ----------
    machine : Machine
        Machine with layers of any unit types.
    field : ndarray of shape (n_samples, n_hidden)
        Fields on the hidden units given rows of data.
    model_field : ndarray of shape (n_draws, n_hidden)
        Fields on the hidden units given visible states that are drawn independently from the
        machine.

    Returns
    -------
    importance, std_error : ndarray of shape (n_hidden_units,)
        Importances and their Monte-Carlo standard errors, in nats. The error of a unit is infinite
        if the effective sample size of the draws with weights :math:`e^{-L_j}` is below
        `MIN_DRAWS`, for example because :math:`L_j` is far smaller in a few draws than in all
        others.
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
    """Counts and edges of a histogram of each column.

    The counts have shape (n_columns, n_bins), and the edges have shape (n_columns, n_bins + 1),
    with n_bins = `N_BINS`.
    """
    columns = inputs.T.astype(np.float64)
    ranges = (histogram_range(column.min(), column.max()) for column in columns)
    of_columns = (np.histogram(x, N_BINS, ends) for x, ends in zip(columns, ranges, strict=True))
    counts, edges = zip(*of_columns, strict=True)
    return np.array(counts), np.array(edges)
