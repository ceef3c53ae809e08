"""Expected difference between the mean log-likelihoods of training rows and of unseen rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, every_kth_row

N_OPTIMISM_ROWS = 1000  # largest number of rows from which covariances are estimated


def effective_parameters(
    machine: Machine, v: Any, step_sum: Array | float, l2: float = 0.0
) -> float:
    r"""Effective number of weights that training has adjusted to the rows.

    Training with noisy rows determines a weight only along directions in which the log-likelihood
    is curved, and only as far as its steps go [1]_. With the eigenvalues :math:`\lambda_k` of the
    Fisher information of the weights, measured in units of the inverse sum of the steps, this
    number is

    .. math:: \sum_k \frac{\lambda_k}{\lambda_k + \lambda_2} \left( 1 - e^{-(\lambda_k + \lambda_2)}
        \right)

    The Fisher information is approximated by the Kronecker product of the covariances of the
    visible signals and of the hidden means over the rows [2]_. Divided by the number of rows, the
    result is the expected difference between the mean log-likelihoods of training rows and of new
    rows, as in Akaike's criterion [3]_, apart from the parameters of the visible units.

    Parameters
    ----------
    machine : Machine
        Trained machine.
    v : {ndarray, sparse matrix} of shape (n_samples, n_visible)
        Training rows. If there are more than `N_OPTIMISM_ROWS`, evenly spaced ones are used.
    step_sum : float or ndarray of shape (n_columns,)
        Sum over all updates of the factor by which the gradient of the weights of a visible column
        was multiplied.
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
    rows = dense(every_kth_row(v, N_OPTIMISM_ROWS)).astype(np.float64)
    scale = np.sqrt(np.broadcast_to(step_sum, machine.visible.n_columns))
    curvature = np.multiply.outer(
        _spectrum(machine.visible.signal(rows) * scale), _spectrum(machine.mean_hidden(rows))
    )
    penalty = l2 * float(np.square(scale).mean())
    total = curvature + penalty
    share = np.divide(curvature, total, out=np.zeros_like(total), where=total > 0)
    return float((share * -np.expm1(-total)).sum())


def _spectrum(x: Array) -> Array:
    """Eigenvalues of the covariance matrix of the columns, without those that are surely zero."""
    x = x - x.mean(axis=0)
    gram = x.T @ x if x.shape[1] < len(x) else x @ x.T
    return np.linalg.eigvalsh(gram / len(x)).clip(0)
