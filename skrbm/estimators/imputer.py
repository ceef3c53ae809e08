"""Imputation of missing values, as a step of a Pipeline."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.impute import MissingIndicator
from sklearn.utils._param_validation import MissingValues
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from skrbm.core.numerics import Array
from skrbm.estimators.base_rbm import BaseRBM
from skrbm.estimators.fitting.checkpoint import copy_to_fit
from skrbm.estimators.input.array_libraries import check_library
from skrbm.estimators.input.validation import (
    COUNT,
    FLOATS,
    RANDOM_STATE,
    estimator_of,
    explain_other_types,
    generators,
    restored_on_error,
    warn_user,
)
from skrbm.estimators.parameters import with_constructor
from skrbm.estimators.tables.frames import container_of, in_library, is_missing
from skrbm.estimators.tables.table_rows import checked_table


@with_constructor
class RBMImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Imputation of missing values by conditional means under a restricted Boltzmann machine.

    The machine is fitted to complete or incomplete rows with `missing="marginalize"`. During
    training, the missing values are redrawn by Gibbs sampling given the observed values. Training
    thus maximizes the likelihood of the observed values by stochastic expectation maximization
    [1]_. `transform` replaces missing numbers by their conditional means, and missing
    categories by the most probable category.

    Parameters
    ----------
    estimator : TabularRBM, GaussianBernoulliRBM, BernoulliRBM or SpinRBM
        Machine to clone and fit; its parameters control the training, except for `missing`.
        `TabularRBM` accepts and returns tables of categories and numbers. For
        `GaussianBernoulliRBM` with "adam", penalties or `max_norm`, standardize the features.
    missing_values : int, float or np.nan, default=np.nan
        Placeholder for missing values. Missing values of pandas are converted to NaN. For tables,
        the placeholder must be NaN; None is then a missing value as well.
    n_gibbs_steps : int, default=100
        Number of Gibbs steps of each chain in `transform`.
    n_chains : int, default=10
        Number of chains per row, over which conditional means are averaged.
    add_indicator : bool, default=False
        Append the columns of a :class:`sklearn.impute.MissingIndicator`. For tables, it must be
        False.
    keep_empty_features : bool, default=False
        Keep features without observed values in `fit`, and impute zeros for them. If False, they
        are dropped. The parameter has no effect on tables.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator of the draws of missing values in `transform`. Training uses the
        `random_state` of `estimator`. A generator is advanced by `fit` alone.

    Attributes
    ----------
    estimator_ : estimator
        Machine fitted to the features that have observed values or, for tables, to all features.
    indicator_ : :class:`sklearn.impute.MissingIndicator` or None
        Fitted indicator, or None if `add_indicator` is False.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has names that are all strings.

    See Also
    --------
    sklearn.impute.SimpleImputer : Imputation by one value per feature.
    sklearn.impute.IterativeImputer : Imputation by one regression per feature.

    Notes
    -----
    `transform` is deterministic: the same rows in the same order give the same values. All
    incomplete rows of a call share one random stream, which restarts with every call. The imputed
    values of a row therefore also depend on the other rows of the call. They vary by the Monte
    Carlo error, which decreases with `n_chains`. For a binary feature about which the observed
    values carry no information, this error may be several tenths. To impute a row independently of
    other rows, transform it alone.

    References
    ----------
    .. [1] Celeux, Diebolt (1985), "The SEM algorithm: a probabilistic teacher algorithm derived
       from the EM algorithm for the mixture problem", Computational Statistics Quarterly 2, 73-82.

    Examples
    --------
    The two features are always equal, so that an observed value determines a missing one:

    >>> import numpy as np
    >>> from skrbm import BernoulliRBM, RBMImputer
    >>> X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
    >>> X[10, 0] = X[60, 1] = np.nan
    >>> imputer = RBMImputer(BernoulliRBM(2, n_iter=300, random_state=0), random_state=0)
    >>> imputer.fit_transform(X)[[10, 60]].round()
    array([[0., 0.],
           [1., 1.]])
    """

    estimator: BaseRBM
    missing_values: Any = np.nan
    n_gibbs_steps: int = 100
    n_chains: int = 10
    add_indicator: bool = False
    keep_empty_features: bool = False
    random_state: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [estimator_of(BaseRBM)],
        "missing_values": [MissingValues(numeric_only=True)],
        "n_gibbs_steps": COUNT,
        "n_chains": COUNT,
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
        "random_state": RANDOM_STATE,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._marks_nan
        tags.input_tags.categorical = tags.input_tags.string = self._takes_tables
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the machine on the observed values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Complete or incomplete rows.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : object
            Fitted imputer.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid, or no feature has an observed value; the imputer
            is then unchanged.
        TypeError
            If the type of `X` or of its values is not supported; the imputer is then unchanged.
        DivergenceError
            If training diverges; the imputer is then unchanged.

        Warns
        -----
        DomainWarning
            If `X` has observed values that the units cannot take, and `check_input` of the
            estimator is "warn"; or if a table has unknown categories.
        UserWarning
            If training is interrupted; the imputer then uses the last valid parameters or, with
            `early_stopping`, those of the best epoch. The other warnings of the method `fit` of the
            estimator are issued as well.
        """
        with restored_on_error(self):
            if self._takes_tables and (self.add_indicator or not self._marks_nan):
                raise ValueError(
                    f"Imputation of tables expected add_indicator=False and missing_values=nan, "
                    f"got add_indicator={self.add_indicator} and "
                    f"missing_values={self.missing_values!r}. Use a separate "
                    f"sklearn.impute.MissingIndicator, or replace the placeholder by None."
                )
            X = self._check_X(X, reset=True)
            self._is_empty = np.zeros(self.n_features_in_, dtype=bool)
            if not self._takes_tables:
                self._is_empty = np.isnan(X).all(axis=0)
            if self._is_empty.all():
                raise ValueError(
                    f"X of shape {X.shape} expected to have an observed value in some feature, got "
                    f"none. Check missing_values={self.missing_values!r}."
                )
            indicator = MissingIndicator(error_on_new=False)
            self.indicator_ = indicator.fit(X) if self.add_indicator else None
            self._seed = int(generators(self.random_state, 1)[0].integers(2**31))
            if not self._takes_tables:
                X = X[:, ~self._is_empty]
            rbm = copy_to_fit(self.estimator).set_params(missing="marginalize")
            self.estimator_ = rbm.fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """Impute missing values by conditional means, or by the most probable categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Complete or incomplete rows.

        Returns
        -------
        X_filled : ndarray of shape (n_samples, n_features_out)
            Rows with imputed values; observed values are unchanged. With `TabularRBM`, the result
            is a table of the same type as in `fit`, with the most probable category in place of
            each missing category. With other estimators, features without observed values in `fit`
            are dropped unless `keep_empty_features` is True. If `add_indicator` is True, the
            columns of the indicator are appended.

        Warns
        -----
        UserWarning
            If features are dropped.
        DomainWarning
            If unknown categories of a table are replaced.
        """
        check_is_fitted(self)
        X = self._check_X(X, reset=False)
        if self._takes_tables:  # scikit-learn would give all columns of another library one type
            library = _get_output_config("transform", self)["dense"]
            index = X.index if container_of(X) == "pandas" else None
            return in_library(self._impute(X), library, index)
        empty, kept = self._is_empty, ~self._is_empty
        if empty.any() and not self.keep_empty_features:
            warn_user(
                f"Dropping features without observed values in fit: "
                f"{np.flatnonzero(empty).tolist()}. Set keep_empty_features=True to keep them, "
                f"with zeros for missing values.",
                UserWarning,
            )
        filled: Array = np.nan_to_num(X)
        filled[:, kept] = self._impute(X[:, kept])
        if not self.keep_empty_features:
            filled = filled[:, kept]
        if self.indicator_ is None:
            return filled
        return np.concatenate([filled, self.indicator_.transform(X)], axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Get the names of the output features of `transform`.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input features. If None, the names seen in `fit` are used.

        Returns
        -------
        names : ndarray of str objects
            Names of the kept features, followed by the names of the columns of the indicator.
        """
        check_is_fitted(self)
        names = super().get_feature_names_out(input_features)
        kept = names if self.keep_empty_features else names[~self._is_empty]
        if self.indicator_ is None:
            return kept
        return np.concatenate([kept, self.indicator_.get_feature_names_out(names)])

    def _impute(self, X: Any) -> Any:
        return self.estimator_.impute(
            X, n_gibbs_steps=self.n_gibbs_steps, n_chains=self.n_chains, random_state=self._seed
        )

    @property
    def _takes_tables(self) -> bool:
        return self.estimator._row_format.has_tables

    @property
    def _marks_nan(self) -> bool:
        return is_missing(self.missing_values)

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        """Validated table, or validated floating-point rows with NaN for missing values."""
        check_library(self, X)
        if self._takes_tables:
            return checked_table(self, X, reset=reset)
        with explain_other_types(X):
            X = validate_data(self, X, reset=reset, dtype=FLOATS, ensure_all_finite="allow-nan")
        if self._marks_nan:
            return X
        if np.isnan(X).any():
            raise ValueError(
                f"X expected all missing values to be marked by missing_values="
                f"{self.missing_values!r}, got NaN. Replace NaN by this mark, or set "
                f"missing_values=np.nan."
            )
        return np.where(self.missing_values == X, np.nan, X)
