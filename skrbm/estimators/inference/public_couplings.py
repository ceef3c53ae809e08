"""Effective couplings of the features of a fitted model, marginalized over the hidden units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.utils._param_validation import Options, StrOptions

from skrbm.core import couplings
from skrbm.core.couplings import EffectiveCouplings
from skrbm.estimators.inference.model import model_of
from skrbm.estimators.input.validation import checked_arguments


@checked_arguments(
    order=[Options(int, set(couplings.ORDERS))],
    method=[StrOptions({"auto", "exact", "gaussian"})],
)
def effective_couplings(rbm: Any, order: int = 2, *, method: str = "auto") -> EffectiveCouplings:
    r"""Compute the fields and couplings of the features, marginalized over the hidden units.

    The marginal distribution of discrete features is that of an Ising or Potts model with
    interactions of all orders [1]_, [2]_. The fields and pair couplings are

    .. math:: f_i = \langle s_i \log p(s) \rangle, \qquad
        J_{ij} = \langle s_i s_j \log p(s) \rangle

    for features with the states -1 and +1, where the averages give equal weights to all states
    [3]_. Features with the states 0 and 1 are mapped to -1 and +1 first.

    Parameters
    ----------
    rbm : BernoulliRBM, SpinRBM or TabularRBM
        Fitted estimator, or one with public arrays assigned by hand.
    order : {2, 3}, default=2
        Maximum order of the interactions: 2 for pairs, 3 for pairs and triples.
    method : {"auto", "exact", "gaussian"}, default="auto"
        "exact" computes a Fourier integral for each hidden unit. Apart from rounding, it is exact
        for any number of features. The cost is proportional to n_nodes * n_columns**order, where
        n_nodes is the number of quadrature nodes, summed over the hidden units. This number
        increases with the magnitudes of the weights and biases. For each interaction, "gaussian"
        approximates the input of a hidden unit from all features outside the interaction by a
        normal variable. This approximation is inaccurate if a unit has only a few large weights.
        For "binary" hidden units, "auto" is "exact", which takes less time than "gaussian" unless
        weights are extremely large. For other hidden units, "auto" is "gaussian", which is exact
        for `hidden_units="gaussian"`; "exact" is not available.

    Returns
    -------
    couplings : EffectiveCouplings
        Couplings in nats. The attribute `fields` has the shape (n_columns,), `pairs` has the shape
        (n_columns, n_columns), and `triples` has the shape (n_columns, n_columns, n_columns) or is
        None. The attribute `method` is the method that was used. The array `columns` contains the
        names of the columns or, without names, their indices. The array `strengths`, of shape
        (n_features, n_features), contains the root mean square of the interactions between two
        features, over all pairs of their columns. The method `between` returns the interactions
        between the values of two features. A categorical feature of a table has one column for each
        category. The field and the interactions of a category are averages over all values of the
        other features, and they sum to zero over the categories of the feature. The field and the
        interactions of a numeric or interval feature contain only the part that is linear in its
        value, per standard deviation. For the averages and this standard deviation, encoded numeric
        features have a standard normal distribution, and interval features a uniform distribution.

    Raises
    ------
    TypeError
        If `rbm` is neither an instance of one of these classes nor a `GaussianBernoulliRBM`, as for
        example an `RBMClassifier`; pass its attribute `estimator_` instead.
    ValueError
        If the features are real-valued and not scaled, as in `GaussianBernoulliRBM`; or if the
        hidden units are not "binary" and `method` is "exact". For a table with numeric or interval
        columns, also if the hidden units are not "binary" or `method` is "gaussian".

    References
    ----------
    .. [1] Cossu, Del Debbio, Giani, Khamseh, Wilson (2019), "Machine learning determination of
       dynamical parameters: The Ising model case", Physical Review B 100, 064304.
       :doi:`10.1103/PhysRevB.100.064304`
    .. [2] Bulso, Roudi (2021), "Restricted Boltzmann machines as models of interacting variables",
       Neural Computation 33(10), 2646-2681. :doi:`10.1162/neco_a_01420`
    .. [3] Decelle, Furtlehner, Navas Gómez, Seoane (2024), "Inferring effective couplings with
       restricted Boltzmann machines", SciPost Physics 16, 095.
       :doi:`10.21468/SciPostPhys.16.4.095`

    Examples
    --------
    A hidden unit without bias and with weights a and b to two visible units couples them by half
    of log(cosh(a + b) / cosh(a - b)):

    >>> import numpy as np
    >>> from skrbm import SpinRBM, effective_couplings
    >>> rbm = SpinRBM(1)
    >>> rbm.components_ = np.array([[1.0, 1.0, 0.0]])
    >>> rbm.intercept_visible_, rbm.intercept_hidden_ = np.array([0.0, 0.0, -0.5]), np.zeros(1)
    >>> result = effective_couplings(rbm)
    >>> print(result.pairs[0, 1].round(3), np.round(np.log(np.cosh(2)) / 2, 3))
    0.663 0.663
    >>> print(result.fields.round(3) + 0.0)
    [ 0.   0.  -0.5]
    """
    machine = model_of(rbm).machine()
    if not (machine.visible.is_discrete or rbm._row_format.is_standardized):
        raise ValueError(
            f"Couplings need discrete features or scaled numbers, got {type(rbm).__name__} with "
            f"numbers that are not scaled. Fit a TabularRBM, which scales them."
        )
    result = couplings.effective_couplings(machine, order, method)
    return replace(result, **rbm._row_format.names(rbm, len(result.columns)))
