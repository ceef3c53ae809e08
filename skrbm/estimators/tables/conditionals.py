"""Conditional distributions of a column of a table given the other columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from skrbm.core.likelihood import conditional
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense
from skrbm.estimators.inference.missing_values import average_over_draws
from skrbm.estimators.inference.model import ModelMixin
from skrbm.estimators.input.validation import (
    COUNT,
    RANDOM_STATE,
    checked_arguments,
    explain_core_errors,
    public_methods_of,
)
from skrbm.estimators.tables.table_rows import table_of

# Factor of the number of quadrature nodes, for maps from score to value with jumps: tested by
# tests/estimators/test_numeric_scale.py::test_conditional_mean_is_that_of_the_density.
REFINEMENT = 8
N_BETWEEN = 32  # points on either side of a node at which a map with jumps is averaged
DRAWS = {"n_gibbs_steps": COUNT, "n_chains": COUNT, "random_state": RANDOM_STATE}


@public_methods_of
class ConditionalMixin(ModelMixin):
    """Methods of `TabularRBM` that predict one column of a table given the other columns."""

    @checked_arguments(**DRAWS)
    def conditional_proba(
        self,
        X: Any,
        column: Any,
        *,
        n_gibbs_steps: int = 100,
        n_chains: int = 10,
        random_state: Any = None,
    ) -> Array:
        r"""Compute the probabilities of the categories of a column given the other columns.

        If the other columns of a row are complete, the probabilities are computed exactly from free
        energies. Otherwise, the missing values in the other columns are drawn given the observed
        values, and the probabilities are averaged over `n_chains` draws.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows. The values of `column` are validated but not used, and may be missing.
        column : str or int
            Name or index of a binary or categorical column.
        n_gibbs_steps : int, default=100
            Number of Gibbs steps per draw.
        n_chains : int, default=10
            Number of draws for each row with missing values in the other columns.
        random_state : int, Generator, RandomState or None, default=None
            Seed or generator of the draws. If None, the random stream of the estimator is
            continued, so that successive draws differ.

        Returns
        -------
        probability : ndarray of shape (n_samples, n_categories)
            Probabilities of the categories, in the order of `categories_`.

        Raises
        ------
        ValueError
            If `X` is invalid, or if the column does not exist, is neither binary nor categorical,
            or has no categories.

        Examples
        --------
        >>> import numpy as np
        >>> from skrbm import TabularRBM
        >>> X = np.repeat([["owl", "wings"], ["ox", "horns"]], 50, axis=0)
        >>> kinds = {0: "categorical", 1: "categorical"}
        >>> rbm = TabularRBM(2, kinds=kinds, n_iter=100, random_state=0).fit(X)
        >>> rbm.conditional_proba([["?", "wings"]], 0).round().tolist()
        [[1.0, 0.0]]
        """
        table = table_of(self)
        number = table.number_of(column)
        categories = table.categories[number]
        if categories is None or not len(categories):
            reason = f"its kind is {table.kinds[number]!r}. Use conditional_mean for numbers."
            if categories is not None:
                reason = "all its values were missing in fit."
            raise ValueError(f"Column {column!r} expected to have categories, but {reason}")
        mean = self._conditional_mean(X, number, n_gibbs_steps, n_chains, random_state)
        return mean if mean.shape[1] == len(categories) else np.hstack([1 - mean, mean])

    @checked_arguments(**DRAWS)
    def conditional_mean(
        self,
        X: Any,
        column: Any,
        *,
        n_gibbs_steps: int = 100,
        n_chains: int = 10,
        random_state: Any = None,
    ) -> Array:
        r"""Compute the conditional mean of a numeric or interval column given the other columns.

        If the other columns of a row are complete, the mean is computed from free energies by
        numerical quadrature. The quadrature error is negligible, except for numeric columns with
        `numeric_scale="normal"`, where it is about a thousandth of a standard deviation. If there
        are missing values in the other columns, they are drawn given the observed values, and the
        means are averaged over `n_chains` draws.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows. The values of `column` are validated but not used, and may be missing.
        column : str or int
            Name or index of a numeric or interval column.
        n_gibbs_steps : int, default=100
            Number of Gibbs steps per draw.
        n_chains : int, default=10
            Number of draws for each row with missing values in the other columns.
        random_state : int, Generator, RandomState or None, default=None
            Seed or generator of the draws. If None, the random stream of the estimator is
            continued, so that successive draws differ.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Conditional means in the unit of measurement of the column.

        Raises
        ------
        ValueError
            If `X` is invalid, if the column does not exist, if it is binary or categorical, or if
            the quadrature fails. It fails, for example, if the weights of "gaussian" hidden units
            are too large.
        """
        table = table_of(self)
        number = table.number_of(column)
        if table.categories[number] is not None:
            raise ValueError(
                f"Column {column!r} expected to have numbers, but its kind is "
                f"{table.kinds[number]!r}. Use conditional_proba for categories."
            )
        mean = self._conditional_mean(X, number, n_gibbs_steps, n_chains, random_state)
        if table.maps[number] is not None:
            return mean[:, 0]
        return table.origin[number] + table.scale[number] * mean[:, 0]

    def _conditional_mean(
        self, X: Any, number: int, n_gibbs_steps: int, n_chains: int, random_state: Any
    ) -> Array:
        """Conditional mean of the column with the index `number` given the other columns.

        The result has the shape (n_samples, width), where width is the number of encoded columns of
        the column. The mean of a transformed column is in its unit of measurement. For any other
        column, the result is the mean of its encoded columns.
        """
        model, table = self._model, table_of(self)
        unit = table.order.index(number)
        X = model.check_X(X, finite=False)
        is_observed, v = X.observed_units.copy(), dense(X)
        end = sum(table.widths[: unit + 1])
        v[:, end - table.widths[unit] : end] = 0  # any value, since it is not used
        is_observed[:, unit] = True
        mean: Callable[..., Array] = partial(conditional.conditional_mean, number=unit)
        scores = table.maps[number]
        if scores is not None:
            mean = partial(_mean_of_values, number=unit, scores=scores)
        is_observed[~is_observed.all(axis=1), unit] = False
        with explain_core_errors():
            return average_over_draws(
                model,
                v,
                is_observed,
                lambda rows, _: model.map_rows(mean, rows),
                n_draws=n_chains,
                n_gibbs_steps=n_gibbs_steps,
                rng=model.inference_rng(random_state),
            )


def _mean_of_values(machine: Machine, v: Array, number: int, scores: Any) -> Array:
    """Conditional means of the numbers of a transformed column given the other visible units.

    The result has the shape (n_samples, 1). The map of a `MixtureScale` from score to number is
    smooth, except for jumps at atoms. Other maps may have jumps anywhere, but the density of the
    unit is smooth and is interpolated linearly between the quadrature nodes. The number at a node
    is therefore replaced by an average around the node with triangular weights.
    """
    refinement = 1 if scores.is_smooth else REFINEMENT
    nodes, probability = conditional.conditional_distribution(machine, v, number, refinement)
    if scores.is_smooth:
        values = scores.values(nodes[:, :, 0])
    else:
        n_atoms = len(machine.visible.unit_atoms(number))
        z = nodes[n_atoms:, :, 0].astype(np.float64)  # of each row, or of all rows
        averages = np.zeros_like(z)
        for offset in (np.arange(2 * N_BETWEEN) + 0.5) / N_BETWEEN - 1:
            weight = (1 - abs(offset)) / N_BETWEEN
            averages += weight * scores.values(z + (z[1] - z[0]) * offset)
        values = np.concatenate([scores.values(nodes[:n_atoms, :, 0]), averages])
    return (probability * values).sum(axis=0)[:, None].astype(machine.dtype)
