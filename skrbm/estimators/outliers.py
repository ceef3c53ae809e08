"""Outlier detection by the likelihood of rows under a restricted Boltzmann machine."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OutlierMixin, _fit_context
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from skrbm.core.numerics import Array
from skrbm.estimators.bernoulli_rbm import BernoulliRBM
from skrbm.estimators.fitting.checkpoint import copy_to_fit
from skrbm.estimators.inference.missing_values import observed_free_energy
from skrbm.estimators.input.array_libraries import check_library
from skrbm.estimators.input.validation import (
    check_weights,
    estimator_of,
    number_of_rows,
    present_rows,
    restored_on_error,
    tags_of,
    weight_sums,
)
from skrbm.estimators.parameters import with_constructor
from skrbm.estimators.tables.frames import as_table, has_only
from skrbm.estimators.tables.kinds import columns_of_few_values
from skrbm.estimators.tabular_rbm import TabularRBM

# Chains and temperatures for rows with many unknown categories, whose number decides the score.
SUM_SIZE = 10, 100
N_HIDDEN, N_ITER = 32, 60  # of the default model of tables; benchmarks/results/adbench.json
SHARE_ROUNDING = 1e-12  # relative rounding error of contamination times the total weight
TIE_EPS = 1000  # machine epsilons: tolerance of equal scores, such as the scores of equal rows


@with_constructor
class RBMOutlierDetector(OutlierMixin, BaseEstimator):
    r"""Outlier detection by the free energy of rows under a restricted Boltzmann machine.

    By default, the score of a row is its negative free energy, :math:`-F(v) = \log p(v) + \log Z`,
    where :math:`Z` is the partition function. The free energy of a row of known values is computed
    exactly. Free energies of different models cannot be compared, because their :math:`\log Z` and,
    for real-valued features, their units of measurement differ.

    Parameters
    ----------
    estimator : estimator object, default=None
        `BernoulliRBM`, `SpinRBM`, `GaussianBernoulliRBM` or `TabularRBM` to clone and fit. With a
        `sklearn.frozen.FrozenEstimator` of a fitted one, `fit` sets the threshold alone. If None,
        it is ``BernoulliRBM(random_state=0)`` for sparse `X`, and for `X` that NumPy converts to an
        array of booleans or of zeros and ones. For any other `X`, it is ``TabularRBM(32,
        kinds=kinds, numeric_scale="standard", handle_unknown="nearest", n_iter=60,
        random_state=0)``. Examples are numbers between 0 and 1, data frames with boolean and
        numeric columns and, with ``criterion="pseudo_likelihood"``, arrays with missing values. The
        dictionary `kinds` declares columns of numbers as "categorical" if they have at most 12
        distinct values and at least ten rows per value. The default `numeric_scale` of `TabularRBM`
        is not used, because it moves extreme values closer to the others.
    contamination : float, default=0.1
        Maximum fraction of the training rows to classify as outliers, in (0, 0.5]. Rows with equal
        scores are classified alike; the fraction may therefore be smaller.
    criterion : {"free_energy", "pseudo_likelihood"}, default="free_energy"
        Score of a row: its negative free energy, or its log pseudo-likelihood. The log
        pseudo-likelihood takes longer to compute, since every term of its sum over the features is
        normalized separately. It gives more weight to features that predict each other. The free
        energy needs complete rows; impute missing values first, by `RBMImputer` in a Pipeline. With
        both criteria, each value of a table that is not among the categories of its column lowers
        the score by :math:`\log(n + 1)`, where n is the number of training rows. With
        ``handle_unknown="nearest"``, such a number counts as the nearest category, and any other
        such value is left out of the score. With "missing", all of them are left out, and only the
        pseudo-likelihood accepts them. A column without any observed value in `fit` does not count.

    Attributes
    ----------
    estimator_ : estimator object
        Fitted model.
    offset_ : float
        Threshold of the score, in nats; rows with a lower score are outliers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has names that are all strings.

    See Also
    --------
    FreeEnergyDisplay : Histograms of the free energies of rows, with the threshold.

    References
    ----------
    .. [1] Fiore, Palmieri, Castiglione, De Santis (2013), "Network anomaly detection with the
       restricted Boltzmann machine", Neurocomputing 122, 13-23.
       :doi:`10.1016/j.neucom.2012.11.050`

    Examples
    --------
    Two features are equal in all rows except one:

    >>> import numpy as np
    >>> from skrbm import BernoulliRBM, RBMOutlierDetector
    >>> X = np.repeat([[0, 0], [1, 1], [0, 1]], [50, 49, 1], axis=0)
    >>> rbm = BernoulliRBM(2, n_iter=300, random_state=0)
    >>> RBMOutlierDetector(rbm, contamination=0.01).fit(X).predict([[0, 0], [1, 1], [0, 1]])
    array([ 1,  1, -1])
    """

    estimator: Any = None
    contamination: float = 0.1
    criterion: str = "free_energy"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [estimator_of(HasMethods(["fit", "free_energy", "score_samples"])), None],
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
        "criterion": [StrOptions({"free_energy", "pseudo_likelihood"})],
    }

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model, and set the threshold from `contamination`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data in the format of the estimator.
        y : object, default=None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. In all averages over rows and for `contamination`, a weight of k
            counts like k copies of the row. If None, all rows have a weight of one.

        Returns
        -------
        self : object
            Fitted detector.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid, or training diverges; the detector is then
            unchanged.
        TypeError
            If the type of `X` or of its values is not supported, such as a sparse matrix for
            real-valued features; the detector is then unchanged.

        Warns
        -----
        DomainWarning
            If `X` has values that the units cannot take, and `check_input` of the estimator is
            "warn"; or if a table has unknown categories.
        UserWarning
            If training is interrupted; the threshold is then that of the last valid parameters or,
            with `early_stopping`, those of the best epoch. The other warnings of the method `fit`
            of the estimator are issued as well.
        """
        check_library(self, X)
        with restored_on_error(self):
            validate_data(self, X, skip_check_array=True)
            X, weights = present_rows(X, check_weights(sample_weight, X))
            rbm = _default(X, weights) if self.estimator is None else copy_to_fit(self.estimator)
            is_trained = not isinstance(rbm, FrozenEstimator)
            missing = getattr(rbm, "missing", "raise") if is_trained else "raise"
            if self.criterion == "free_energy" and missing != "raise":
                rbm.set_params(missing="raise")  # so that incomplete rows fail before training
            self.estimator_ = rbm.fit(X, None, sample_weight=weights)
            if missing != "raise":
                rbm.set_params(missing=missing)
            self._log_rows = np.log1p(_n_rows(X, weights))
            self.offset_ = _quantile(self._scores(X), weights, self.contamination)
        return self

    def score_samples(self, X: Any) -> Array:
        """Compute the score of each row; the lower the score, the more anomalous the row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows in the format of the estimator.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Negative free energy or log pseudo-likelihood, in nats.
        """
        check_is_fitted(self)
        check_library(self, X)
        scores = self._scores(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return scores

    def decision_function(self, X: Any) -> Array:
        """Compute the score of each row minus the threshold `offset_`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows in the format of the estimator.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Differences in nats, which are negative for outliers.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """Classify rows as inliers or outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows in the format of the estimator.

        Returns
        -------
        is_inlier : ndarray of int of shape (n_samples,)
            +1 for inliers, -1 for outliers.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _scores(self, X: Any) -> Array:
        rbm = self.estimator_
        unknown = getattr(rbm, "handle_unknown", "error")
        if unknown == "error":
            scores = rbm.score_samples(X) if self._is_pseudo else -rbm.free_energy(X)
            return np.asarray(scores)
        is_free, accepts = not self._is_pseudo, self._is_pseudo and rbm.missing == "marginalize"
        rows = rbm._model.check_X(X, finite=is_free and unknown == "missing")
        has_missing = (~rows.observed_units).sum(axis=1) > rows.n_unknown
        if has_missing.any() and not accepts:
            rbm._model.check_X(X)  # refuses missing values
        if self._is_pseudo:
            scores = rbm._scores_of_rows(rows, None if rows.is_complete else rows.observed_units)
        else:
            scores = -self._energies(rows)
        return scores - self._log_rows * (rows.n_nearest + rows.n_unknown)

    def _energies(self, rows: Any) -> Array:
        """Free energies of the values of a table that are not unknown categories."""
        rbm, is_observed = self.estimator_, rows.observed_units
        if rows.is_complete:
            return rbm._free_energies_of_rows(rows)
        energies, _ = observed_free_energy(rbm._model, rows, is_observed, *SUM_SIZE, None)
        energies = rbm._per_unit(energies, rows, is_observed)
        is_empty = ~is_observed.any(axis=1)
        if is_empty.any():
            energies[is_empty] = -rbm.log_partition(n_temperatures="auto").value
        return energies

    @property
    def _is_pseudo(self) -> bool:
        return self.criterion == "pseudo_likelihood"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "offset_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        estimator = TabularRBM() if self.estimator is None else self.estimator
        tags.input_tags = tags_of(estimator).input_tags
        tags.input_tags.sparse |= self.estimator is None
        tags.input_tags.allow_nan &= self._is_pseudo
        # checks of scikit-learn 1.6 subtract a mean from integers of the others
        tags.input_tags.categorical &= tags.input_tags.allow_nan
        return tags


def _n_rows(X: Any, sample_weight: Array | None) -> float:
    """Effective number of rows."""
    return _num_samples(X) if sample_weight is None else number_of_rows(weight_sums(sample_weight))


def _default(X: Any, sample_weight: Array | None) -> Any:
    """Default estimator, selected by the array type and the values of `X`.

    To `BernoulliRBM`, a number between 0 and 1 is a mean of bits, and numbers near 0 or 1 are likelier
    than those of the training rows. In the model of a table, columns of numbers with few values are
    categories.
    """
    if issparse(X) or has_only(X, lambda x: np.isin(x, (0, 1))):
        return BernoulliRBM(random_state=0)
    few = columns_of_few_values(as_table(X), _n_rows(X, sample_weight))
    return TabularRBM(
        N_HIDDEN,
        kinds=dict.fromkeys(few, "categorical"),
        numeric_scale="standard",
        handle_unknown="nearest",
        n_iter=N_ITER,
        random_state=0,
    )


def _quantile(scores: Array, sample_weight: Array | None, share: float) -> float:
    """Threshold below which the rows have at most a given share of the total weight.

    The threshold lies between two scores, or below all scores. Scores that differ only by rounding
    errors, such as the scores of equal rows, are on the same side of it: it is in the widest gap
    between the row that would exceed the share and the rows below it within the rounding error.
    """
    order = np.argsort(scores)
    values = scores[order].astype(np.float64)
    weights = np.ones(len(values)) if sample_weight is None else sample_weight[order]
    rounding = TIE_EPS * np.finfo(scores.dtype).eps * max(1.0, np.abs(values).max())
    max_below = share * weights.sum() * (1 + SHARE_ROUNDING)
    last = int(np.searchsorted(np.cumsum(weights), max_below, side="right"))
    first = int(np.searchsorted(values, values[last] - rounding))
    gaps = np.diff(values, prepend=-np.inf)[first : last + 1]
    begin = last - int(np.argmax(gaps[::-1]))
    if begin == 0:  # the ties of the lowest score exceed the share
        return float(values[0] - rounding)
    return float((values[begin - 1] + values[begin]) / 2)
