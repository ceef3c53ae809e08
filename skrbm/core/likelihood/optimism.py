"""Expected difference between the mean log-likelihoods of training rows and of unseen rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, is_sparse, spread_rows

N_OPTIMISM_ROWS = 1000  # largest number of rows from which covariances are estimated


def effective_parameters(
    machine: Machine, v: Any, step_sum: Array | float, l2: float = 0.0
) -> float:
    r"""Effective number of weights that training has adjusted to the rows.

    Training adjusts the weights to the rows along directions in which the log-likelihood is curved.
    The adjustment along each direction increases with the sum of the step sizes [1]_, which is
    given by `step_sum`. The effective number is

    .. math::

        \sum_k \frac{\lambda_k}{\lambda_k + \alpha} \left( 1 - e^{-(\lambda_k + \alpha)} \right)

    where :math:`\lambda_k` are the eigenvalues of the Fisher information of the weights, multiplied
    by `step_sum`, and :math:`\alpha` is the L2 penalty, multiplied by the mean of `step_sum` over
    the columns. The Fisher information is approximated by the Kronecker product of the
    covariances of the visible signals and of the hidden means over the rows [2]_. Divided by the
    number of rows, the result is the expected difference between the mean log-likelihoods of
    training rows and of new rows, as in Akaike's criterion [3]_. The effect of the parameters of
    the layers is neglected.

    Parameters
    ----------
    machine : Machine
        Trained machine.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Training rows. If there are more than `N_OPTIMISM_ROWS`, evenly spread ones are used.
    step_sum : float or ndarray of shape (n_visible,)
        Sum over all updates of the factor by which the gradient of the weights was multiplied: one
        sum for each visible column, or one number if the sums of all columns are equal.
    l2 : float, default=0.0
        L2 penalty on the weights.

    Returns
    -------
    n_parameters : float
        Effective number of weights, at most the number of weights.

    References
    ----------
    .. [1] Ali, Kolter, Tibshirani (2019), "A continuous-time view of early stopping for least
       squares regression", AISTATS, PMLR 89, 1370-1378.
    .. [2] Martens, Grosse (2015), "Optimizing neural networks with Kronecker-factored approximate
       curvature", ICML, PMLR 37, 2408-2417.
    .. [3] Akaike (1974), "A new look at the statistical model identification", IEEE Transactions
       on Automatic Control 19(6), 716-723. :doi:`10.1109/TAC.1974.1100705`
    """
    machine = machine.astype(np.float64)
    rows = spread_rows(v, N_OPTIMISM_ROWS).astype(np.float64)
    scale = np.sqrt(np.broadcast_to(step_sum, machine.visible.n_columns))
    is_wide = rows.shape[1] >= rows.shape[0]
    if is_sparse(rows) and is_wide:
        _, slope = machine.visible.affine_signal
        of_visible = _sparse_spectrum(rows.multiply(slope * scale).tocsr())
    else:
        of_visible = _spectrum(machine.visible.signal(dense(rows)) * scale)
    curvature = np.multiply.outer(of_visible, _spectrum(machine.mean_hidden(rows)))
    penalty = l2 * float(np.square(scale).mean())
    total = curvature + penalty
    share = np.divide(curvature, total, out=np.zeros_like(total), where=total > 0)
    return float((share * -np.expm1(-total)).sum())


def _spectrum(x: Array) -> Array:
    """Eigenvalues of the covariance matrix of the columns.

    If there are at most as many rows as columns, the result has one eigenvalue for each row; the
    other eigenvalues are zero.
    """
    x = x - x.mean(axis=0)
    gram = x.T @ x if x.shape[1] < len(x) else x @ x.T
    return np.linalg.eigvalsh(gram / len(x)).clip(0)


def _sparse_spectrum(x: Any) -> Array:
    """Eigenvalues as from `_spectrum`, one for each row, without a dense array of all columns."""
    gram = dense(x @ x.T)
    for axis in (0, 1):  # the inner products of centered rows
        gram -= gram.mean(axis=axis, keepdims=True)
    return np.linalg.eigvalsh(gram / len(gram)).clip(0)
