"""Inference with a fitted classifier: class probabilities, features and samples."""

from __future__ import annotations

from datetime import date, timedelta
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skrbm.core.chains.gibbs import clamped_gibbs
from skrbm.core.chains.jumps import draw_given_observed
from skrbm.core.labels import Labels
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.estimators.inference.mixing import chain_starts
from skrbm.estimators.input.array_libraries import check_library
from skrbm.estimators.input.validation import (
    COUNT,
    RANDOM_STATE,
    checked_arguments,
    public_methods_of,
)
from skrbm.estimators.labels.label_model import LabelModel
from skrbm.estimators.tables.frames import cells_of, comparable


@public_methods_of
class LabelInferenceMixin(TransformerMixin):  # the base class wraps `transform` for `set_output`
    """Methods of a fitted classifier that use its current public arrays."""

    estimator_: Any
    classes_: Array

    def predict(self, X: Any) -> Array:
        """Predict the most probable label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted labels.

        Raises
        ------
        ValueError
            If `X` is invalid, has missing values or, unless `handle_unknown` of a `TabularRBM` is
            "nearest", unknown categories.
        """
        log_joint = self._answer(Labels.log_joint, X)
        return self.classes_[log_joint.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Compute the exact class probabilities, marginalized over the hidden units.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities of the classes, in the order of `classes_`.

        Raises
        ------
        ValueError
            If `X` is invalid, has missing values or, unless `handle_unknown` of a `TabularRBM` is
            "nearest", unknown categories.
        """
        return self._answer(Labels.probabilities, X)

    def predict_log_proba(self, X: Any) -> Array:
        """Compute the logarithms of the class probabilities, without underflow.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Log-probabilities in nats, in the order of `classes_`.

        Raises
        ------
        ValueError
            If `X` is invalid, has missing values or, unless `handle_unknown` of a `TabularRBM` is
            "nearest", unknown categories.
        """
        return self._answer(Labels.log_probabilities, X)

    def transform(self, X: Any) -> Array:
        """Compute the means of the hidden units given the features, marginalized over the label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            Means of the hidden units given the features and the label, averaged over the labels
            with the class probabilities as weights.

        Raises
        ------
        ValueError
            If `X` is invalid, has missing values or, unless `handle_unknown` of a `TabularRBM` is
            "nearest", unknown categories.
        """
        return self._answer(Labels.mean_hidden, X)

    @checked_arguments(
        n_samples=[*COUNT, None],
        y=["array-like", str, Real, np.generic, date, timedelta, None],
        n_gibbs_steps=COUNT,
        random_state=RANDOM_STATE,
    )
    def sample(
        self,
        n_samples: int | None = None,
        y: Any = None,
        *,
        n_gibbs_steps: int = 1000,
        random_state: Any = None,
    ) -> tuple[Array, Array]:
        """Draw rows and labels, or rows given labels, by Gibbs sampling.

        Parameters
        ----------
        n_samples : int, default=None
            Number of samples, each from an independent chain. If None, one sample is drawn, or one
            for each label of an array `y`.
        y : label or array-like of shape (n_samples,), default=None
            Labels to condition on: one label for all samples, or one label per sample. If None,
            labels are drawn as well.
        n_gibbs_steps : int, default=1000
            Number of Gibbs steps of each chain. Given labels, the chains start in the modes of the
            model in which these labels are probable. If `y` is None, they start as in
            `BernoulliRBM.sample`.
        random_state : int, Generator, RandomState or None, default=None
            Seed or generator. If None, the random stream of `estimator_` is continued, so that
            successive calls give different results.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Last sampled features of each chain. With a `TabularRBM`, they are a table of the
            same type as in `fit`.
        y : ndarray of shape (n_samples,)
            Sampled or given labels.

        Raises
        ------
        ValueError
            If a label is not in `classes_`, or if `y` is neither a single label nor of shape
            (n_samples,).

        Warns
        -----
        ConvergenceWarning
            If labels are drawn, `generative_weight` is not zero, and Gibbs chains do not mix
            between modes. The check is that of `BernoulliRBM.sample`.
        """
        check_is_fitted(self)
        rbm = self.estimator_
        if n_samples is None:
            n_samples = max(1, np.size(y))
        rng = rbm._model.inference_rng(random_state)
        machine = LabelModel(self).machine()
        n_features = machine.visible.n_columns - len(self.classes_)
        anchors = rbm._model.mode_states(machine, rng)
        if y is None:
            v = np.empty((n_samples, 0), machine.dtype)
            cure = "Condition on labels by y=, with the class frequencies of your choice."
            start = chain_starts(rbm._model, machine, anchors, n_samples, n_gibbs_steps, rng, cure)
        else:
            y = np.asarray(y)
            if y.shape not in ((), (1,), (n_samples,)):
                raise ValueError(
                    f"y expected one label or n_samples={n_samples} labels, got shape {y.shape}."
                )
            labels = label_numbers(np.broadcast_to(y, n_samples), self.classes_)
            v = np.zeros((n_samples, machine.visible.n_columns), machine.dtype)
            v[np.arange(n_samples), n_features + labels] = 1

        def run(_: Machine, v: Array) -> Array:  # `machine` has the label
            is_clamped = np.zeros((len(v), machine.visible.n_units), dtype=bool)
            if y is None:
                v = start(len(v))
            else:
                is_clamped[:, -1] = True
                v = draw_given_observed(machine, v, is_clamped, anchors, 1, rng)
            return clamped_gibbs(machine, v, is_clamped, n_gibbs_steps, rng)

        v = rbm._model.map_rows(run, v, is_random=True)
        drawn = v[:, n_features:].argmax(axis=1)
        return rbm._row_format.write(rbm, v[:, :n_features]), self.classes_[drawn]

    def _answer(self, question: Any, X: Any) -> Array:
        """Evaluate a function of a `Labels` object and the hidden fields for the rows of `X`."""
        check_is_fitted(self)
        check_library(self, X)
        model = self.estimator_._model
        checked = model.check_X(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        labels = Labels(LabelModel(self).machine(checked))

        return model.map_rows(lambda machine, v: question(labels, machine.hidden_field(v)), checked)


def label_numbers(y: Array, classes: Array, advice: str = "") -> Array:
    """Encode labels as indices of their classes.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels.
    classes : ndarray of shape (n_classes,)
        All classes, sorted.
    advice : str, default=""
        Advice for the error.

    Returns
    -------
    numbers : ndarray of int of shape (n_samples,)
        Index of each label in `classes`.

    Raises
    ------
    ValueError
        If a label is not in `classes`.
    """
    numbers = {comparable(label): number for number, label in enumerate(cells_of(classes))}
    found = np.array([numbers.get(comparable(label), -1) for label in cells_of(y)], dtype=np.intp)
    is_unseen = found < 0
    if is_unseen.any():
        raise ValueError(
            f"y expected labels among the classes {classes}, got {np.unique(y[is_unseen])}.{advice}"
        )
    return found
