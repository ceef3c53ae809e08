"""Classification restricted Boltzmann machine."""

from __future__ import annotations

from copy import copy
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    _fit_context,
    clone,
)
from sklearn.utils import (
    assert_all_finite,
    column_or_1d,
    compute_class_weight,
    compute_sample_weight,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from skrbm.core.numerics import Array
from skrbm.core.units.linear import MEAN_ROUNDING
from skrbm.estimators.base_rbm import BaseRBM
from skrbm.estimators.bernoulli_rbm import BernoulliRBM
from skrbm.estimators.fitting.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from skrbm.estimators.fitting.fit import fit_estimator
from skrbm.estimators.inference.model import meanings
from skrbm.estimators.input.array_libraries import check_library, to_numpy
from skrbm.estimators.input.validation import (
    check_weights,
    estimator_of,
    present_rows,
    tags_of,
    warn_user,
    write_attributes,
)
from skrbm.estimators.labels.label_inference import LabelInferenceMixin, label_numbers
from skrbm.estimators.labels.label_problem import NO_LABEL, LabelProblem
from skrbm.estimators.parameters import with_constructor
from skrbm.estimators.tables.frames import as_table, cells_of, comparable, has_only, is_missing
from skrbm.estimators.tables.kinds import are_numbers
from skrbm.estimators.tabular_rbm import TabularRBM


def default_estimator(X: Any) -> BaseRBM:
    """Create the default `estimator` of a classifier, selected by the values of `X`."""
    low, high = -MEAN_ROUNDING, 1 + MEAN_ROUNDING
    are_means = issparse(X) or has_only(X, lambda x: (x >= low) & (x <= high))
    kind: type[BaseRBM] = BernoulliRBM if are_means else TabularRBM
    return kind(optimizer="adam", learning_rate=0.01, n_iter=30, random_state=0)


def _plain(labels: Array) -> Array:
    """Labels, of which numbers that None had made objects are numbers again."""
    is_objects = labels.dtype == object and are_numbers(labels)
    return np.array(labels.tolist()) if is_objects else labels


def _distinct(labels: Array, name: str) -> Array:
    """Distinct labels in sorted order; a ValueError if their types cannot be compared."""
    try:
        return np.unique(labels)
    except TypeError:
        types = sorted({type(label).__name__ for label in labels.tolist()})
        raise ValueError(
            f"{name} expected labels of one type, got {' and '.join(types)}. If None or another "
            f"missing value marks rows without a label, set unlabeled=np.nan."
        ) from None


@with_constructor
class RBMClassifier(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    LabelInferenceMixin,
    ClassifierMixin,
    BaseEstimator,
):
    r"""Classification restricted Boltzmann machine: the label is an additional visible unit.

    .. math::

        p(v, y, h) \propto e^{-E(v, h) + d_y + h^T U_y}

    where :math:`E` is the energy of `estimator`, :math:`U_y` is column :math:`y` of
    `label_components_` and :math:`d` is `intercept_label_`. Training maximizes the mean over the
    rows of the hybrid objective

    .. math:: \delta \log p(y \mid v) + \gamma \log p(v, y)

    where :math:`\delta` is `discriminative_weight` and :math:`\gamma` is `generative_weight` [1]_
    [2]_. A row without a label contributes :math:`\gamma \log p(v)`. If there are unlabeled rows,
    :math:`\delta` and :math:`\gamma` are multiplied by the total weight of all rows divided by that
    of the labeled rows. The label term is then a mean over the labeled rows. The product for
    :math:`\gamma` is limited to 1, or to `generative_weight` if this is larger than 1. Class
    probabilities are computed exactly. The parameters of `estimator` control the training.

    Parameters
    ----------
    estimator : estimator object, default=None
        `BernoulliRBM`, `SpinRBM`, `GaussianBernoulliRBM` or `TabularRBM` to clone and train. The
        negative log-loss is the score for its `early_stopping` and its "adaptive"
        `learning_rate_schedule`. If None, the estimator is
        ``BernoulliRBM(optimizer="adam", learning_rate=0.01, n_iter=30, random_state=0)`` for
        sparse matrices and for numbers between 0 and 1, and a `TabularRBM` with the same parameters
        for all other tables; in a stream, the first call of `partial_fit` decides. The
        discriminative term needs a larger learning rate than the likelihood: with "sgd", 2 to 5
        instead of 0.4. If the features determine the label only in part, the default often
        overfits; an estimator with ``early_stopping=True`` does not.
    discriminative_weight : float, default=1.0
        Weight of the discriminative term, the log-probability of the label given the features.
    generative_weight : float, default=0.01
        Weight of the generative term, the joint log-likelihood of features and label. A small
        weight acts as a regularizer. With zero, training is purely discriminative and runs no
        chains; samples of the model are then meaningless.
    unlabeled : object, default=None
        Value of `y` that marks rows without a label, such as -1 or NaN. If None, all rows have
        labels.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which are multiplied by `sample_weight`. "balanced" gives all
        classes the same total weight if all sample weights are equal; in `partial_fit`, it does so
        among the rows of each call.

    Attributes
    ----------
    estimator_ : estimator object
        Fitted machine of the features and hidden units, without the label: its samples,
        likelihoods and couplings are not those of the classifier.
    label_components_ : ndarray of shape (n_components, n_classes)
        Weights between hidden units and labels.
    intercept_label_ : ndarray of shape (n_classes,)
        Biases of the labels.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_iter_ : int
        Number of epochs of the last fit that started anew, and of all calls that continued it.
    history_ : dict of list of float
        Training history: lists with one number per recorded epoch. The recorded epochs are the
        same as in `BernoulliRBM`.

        - "n_iter": number of the epoch, counted as in `n_iter_`.
        - "log_loss" and "accuracy": mean log-loss in nats and accuracy for at most 1000 labeled
          training rows.
        - "learning_rate": learning rate of the last update.
        - "time": seconds since the previous record, or since the beginning of the training loop.
        - "swap_acceptance", if the estimator has `algorithm="pt"`: mean acceptance probability of
          exchanges between neighboring temperatures, or NaN if `generative_weight` is zero.
        - "validation_log_loss" and "validation_accuracy", if the estimator has
          `early_stopping=True`: mean log-loss in nats and accuracy for the validation rows.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has names that are all strings.

    See Also
    --------
    BernoulliRBM : Unsupervised model of the features.

    References
    ----------
    .. [1] Larochelle, Bengio (2008), "Classification using discriminative restricted Boltzmann
       machines", ICML, 536-543. :doi:`10.1145/1390156.1390224`
    .. [2] Larochelle, Mandel, Pascanu, Bengio (2012), "Learning algorithms for the classification
       restricted Boltzmann machine", Journal of Machine Learning Research 13, 643-669.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skrbm import BernoulliRBM, RBMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> rbm = BernoulliRBM(100, learning_rate=5, n_iter=5, random_state=0)
    >>> classifier = RBMClassifier(rbm).fit(X[:1000] / 16, y[:1000])
    >>> bool(classifier.score(X[1000:] / 16, y[1000:]) > 0.88)
    True
    """

    estimator: Any = None
    discriminative_weight: float = 1.0
    generative_weight: float = 0.01
    unlabeled: Any = None
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [estimator_of(BaseRBM), None],
        "discriminative_weight": [Interval(Real, 0, None, closed="left")],
        "generative_weight": [Interval(Real, 0, None, closed="left")],
        "unlabeled": "no_validation",
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to rows, some or all of which have labels.

        Training starts from a new initialization unless `warm_start` of the estimator is True and
        the classifier is fitted. Even then, a model that has seen fewer than 20 rows is initialized
        anew under the same conditions as by the method `fit` of the estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data in the format of the estimator, without missing values and unknown
            categories, for any `missing` of the estimator. Impute them first, for example by
            `RBMImputer` in a Pipeline. With `handle_unknown="nearest"` of a `TabularRBM`, an
            unknown number counts as the nearest category.
        y : array-like of shape (n_samples,)
            Labels of the rows. Rows without a label have the value `unlabeled`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. In all averages over rows, a weight of k counts like k copies of
            the row, and a weight of zero excludes the row. If None, all rows have a weight of one.

        Returns
        -------
        self : object
            Fitted classifier. If training is interrupted (with a warning) or diverges, the
            classifier keeps the last valid parameters or, with `early_stopping`, the parameters of
            the best epoch.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid, if there are fewer than two classes, or if the
            estimator has `track_likelihood=True`. If the fit is a warm start, and `y` has labels
            that are not in `classes_`. If `generative_weight` is positive, the `algorithm` of the
            estimator is "exact", and both layers have more than 2^25 states. The classifier is then
            unchanged.
        TypeError
            If the type of `X` is not supported, such as a sparse matrix for real-valued features;
            the classifier is then unchanged.
        DivergenceError
            If training diverges, that is, if parameters become infinite, NaN or very large.

        Warns
        -----
        DomainWarning
            If `X` has values that the units cannot take, and `check_input` of the estimator is
            "warn".
        DataConversionWarning
            If `y` has shape (n_samples, 1).
        UserWarning
            If training is interrupted. If the call initializes the model, also if a feature of a
            `GaussianBernoulliRBM` or a numeric column of a table is constant. If the columns of a
            table are not known from an earlier call, also if a column has no observed value or
            seems to consist of identifiers.
        """
        rbm = self._new_estimator(X)
        task = FitTask(self, X, y, rbm.n_iter, sample_weight)
        fit_estimator(self, self._problem(rbm, X, y, sample_weight, is_planned=True), task)
        return self

    @_fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train for one epoch over the given rows, starting from the current parameters.

        If the classifier is not fitted, the model is initialized. If the estimator is a
        `GaussianBernoulliRBM`, or a `TabularRBM` with numeric columns, it is initialized anew if it
        has seen fewer than 20 rows before this call, unless its arrays were assigned by hand. The
        new initialization uses the statistics of all rows so far. A real-valued column alone is
        initialized anew as by `partial_fit` of the estimator. Training uses the parameters that
        `estimator` had at the last call of `fit` or, if `fit` was not called, at the first call of
        `partial_fit`. Later changes of `estimator` have no effect.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Any number of rows.
        y : array-like of shape (n_samples,)
            Labels of the rows. Rows without a label have the value `unlabeled`.
        classes : array-like of shape (n_classes,), default=None
            All labels that occur in any call; the value `unlabeled` does not count. This argument
            is required if the classifier is not fitted. If it is passed in later calls, it must
            have the same labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, as for `fit`, but relative to the mean weight of all rows seen so
            far.

        Returns
        -------
        self : object
            Classifier with updated parameters, chains and random stream.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid, if `y` has labels that are not in `classes_`, or
            if the estimator has `track_likelihood=True`. If `classes` has fewer than two labels, is
            missing although the classifier is not fitted, or differs from `classes_`. If
            `generative_weight` is positive, the `algorithm` of the estimator is "exact", and both
            layers have more than 2^25 states. The classifier is then unchanged.
        TypeError
            If the type of `X` is not supported, such as a sparse matrix for real-valued features;
            the classifier is then unchanged.
        DivergenceError
            If training diverges, that is, if parameters become infinite, NaN or very large. The
            parameters before the epoch are kept.

        Warns
        -----
        DomainWarning
            If `X` has values that the units cannot take, and `check_input` of the estimator is
            "warn".
        DataConversionWarning
            If `y` has shape (n_samples, 1).
        UserWarning
            If training is interrupted. If the call initializes the model, also if a feature of a
            `GaussianBernoulliRBM` or a numeric column of a table is constant. If the classifier was
            not fitted, also if a column of a table has no observed value or seems to consist of
            identifiers.
        """
        resumes = self.__sklearn_is_fitted__()
        if not resumes and classes is None:
            raise ValueError(
                "classes expected to be all labels in the first call to partial_fit, got None. "
                "Pass classes=numpy.unique(y) of the labels of all calls."
            )
        rbm = copy(self.estimator_) if resumes else self._new_estimator(X)
        problem = self._problem(rbm, X, y, sample_weight, is_planned=False, classes=classes)
        fit_estimator(self, problem)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the accuracy of the predicted labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels of the rows. Rows without a label, with the value `unlabeled`, are left out.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. If None, all rows have a weight of one.

        Returns
        -------
        score : float
            Weighted share of the labeled rows whose predicted label is their label.

        Raises
        ------
        ValueError
            If no row has a label, or if the labels have several types.
        """
        check_is_fitted(self)
        check_library(self, X)
        y, sample_weight = self._labels(y), to_numpy(sample_weight)
        check_consistent_length(X, y, sample_weight)
        is_labelled = self._is_labelled(y)
        if not is_labelled.any():
            raise ValueError(
                f"y expected to have labels, got {len(y)} rows with the value unlabeled="
                f"{self.unlabeled!r}. Pass rows with known labels."
            )
        X, _, y = present_rows(X, is_labelled, y)
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)[is_labelled]
        y = _plain(y)
        _distinct(y, "y")  # explains labels that cannot be compared
        return float(super().score(X, y, sample_weight))

    def _new_estimator(self, X: Any) -> Any:
        """Estimator to train: an unfitted clone or, for a warm start, a copy of the fitted one.

        A warm start needs a fitted estimator of the same class, whose arrays have the same meaning.
        """
        check_library(self, X)
        estimator = default_estimator(X) if self.estimator is None else self.estimator
        rbm = clone(estimator)
        rbm._validate_params()
        if getattr(estimator, "_skl_callbacks", None):
            warn_user(
                "RBMClassifier does not call the callbacks of its estimator. Set them on the "
                "RBMClassifier itself.",
                UserWarning,
            )
        if rbm.warm_start and self.__sklearn_is_fitted__():
            before: Any = self.estimator_
            if type(before) is type(rbm) and meanings(before) == meanings(rbm):
                return copy(before).set_params(**rbm.get_params(deep=False))
        return rbm

    def _problem(
        self, rbm: Any, X: Any, y: Any, sample_weight: Any, *, is_planned: bool, classes: Any = None
    ) -> LabelProblem:
        """Validate the input, and describe the fit of `rbm`, which resumes if it is fitted."""
        check_library(self, X)
        resumes = rbm.__sklearn_is_fitted__()
        classifier, y = copy(self), self._labels(y, warn=True)
        validate_data(classifier, X, reset=not resumes, skip_check_array=True)
        check_consistent_length(X, y)
        X, weights, y = present_rows(X, check_weights(sample_weight, X), y)
        is_labelled = self._is_labelled(y)
        given = _plain(y[is_labelled])
        new_labels = _distinct(given, "y")
        assert_all_finite(given, input_name="y", estimator_name=type(self).__name__)
        check_classification_targets(given)
        if classes is not None:
            classes = self._labels(classes)
            new_labels = _distinct(_plain(classes[self._is_labelled(classes)]), "classes")
            assert_all_finite(new_labels, input_name="classes")
        labels = self.classes_ if resumes else new_labels
        if len(labels) < 2:
            raise ValueError(
                f"y expected labels of at least two classes, got {len(labels)} class(es) in the "
                f"{len(given)} labeled of {len(y)} rows. Labels equal to unlabeled="
                f"{self.unlabeled!r} and rows of weight zero do not count."
            )
        if classes is not None and not np.array_equal(labels, new_labels):
            raise ValueError(
                f"classes expected to be those of the first call, {labels}, got {new_labels}."
            )
        numbers = np.full(len(y), NO_LABEL)
        advice = " To learn further classes, pass all labels as classes in the first partial_fit."
        if is_planned:
            advice = " Set warm_start=False of the estimator to start anew with all labels of y."
        numbers[is_labelled] = label_numbers(given, labels, advice)
        if self.class_weight is not None and len(given):
            factors = np.ones(len(y))
            if isinstance(self.class_weight, dict):  # these rows may lack some of its classes
                is_weight = Interval(Real, 0, None, closed="left").is_satisfied_by
                if not all(map(is_weight, self.class_weight.values())):
                    raise ValueError(
                        f"class_weight expected finite numbers of at least zero, got "
                        f"{self.class_weight}. Zero leaves out the rows of a class."
                    )
                of_class = compute_class_weight(self.class_weight, classes=labels, y=labels)
                factors[is_labelled] = of_class[numbers[is_labelled]]
            else:
                factors[is_labelled] = compute_sample_weight(self.class_weight, given)
            weights = check_weights(factors if weights is None else weights * factors, X)
            X, weights, numbers = present_rows(X, weights, numbers)
        checked = rbm._model.check_X(X, reset=not resumes, sample_weight=weights)
        write_attributes(classifier, {"estimator_": rbm, "classes_": labels})
        return LabelProblem.of(
            classifier, checked, numbers, weights, is_planned=is_planned, resumes=resumes
        )

    def _labels(self, y: Any, *, warn: bool = False) -> Array:
        """Labels in a one-dimensional array; a list of text and other values has objects."""
        y = to_numpy(y)
        table = as_table(y)
        labels = column_or_1d(table, warn=warn)
        if table is not y:  # a list, whose items are kept
            is_text = labels.dtype == object and all(isinstance(label, str) for label in labels)
            return labels.astype(str) if is_text else labels
        is_mark_text = self.unlabeled is None or isinstance(self.unlabeled, str)
        if not is_mark_text and labels.dtype.kind in "US" and str(self.unlabeled) in labels:
            raise ValueError(
                f"y expected the value unlabeled={self.unlabeled!r} for rows without a label, got "
                f"the text {str(self.unlabeled)!r}, to which NumPy converts it beside other text. "
                f"Pass a list, or an array of objects."
            )
        return labels

    def _is_labelled(self, y: Array) -> Array:
        """Mask of the rows whose label is not `unlabeled`."""
        if self.unlabeled is None:
            return np.ones(len(y), dtype=bool)
        if is_missing(self.unlabeled):
            return np.array([not is_missing(label) for label in y.tolist()], dtype=bool)
        mark = comparable(self.unlabeled)
        return np.array([comparable(label) != mark for label in cells_of(y)], dtype=bool)

    @property
    def _n_features_out(self) -> int:
        return len(self.label_components_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "label_components_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = tags_of(TabularRBM() if self.estimator is None else self.estimator)
        tags.input_tags = own.input_tags
        tags.input_tags.sparse |= self.estimator is None
        # checks of scikit-learn 1.6 subtract a mean from integers of categorical estimators
        tags.input_tags.allow_nan = tags.input_tags.categorical = False
        tags.transformer_tags.preserves_dtype = own.transformer_tags.preserves_dtype
        return tags
