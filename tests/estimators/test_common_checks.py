"""scikit-learn's contract: the common checks and those that it runs only on itself."""

import unittest
from dataclasses import asdict

import numpy as np
import pytest
from estimators import instances
from sklearn.frozen import FrozenEstimator
from sklearn.utils import estimator_checks, get_tags

from skrbm import (
    BernoulliRBM,
    GaussianBernoulliRBM,
    RBMClassifier,
    RBMImputer,
    RBMOutlierDetector,
    TabularRBM,
)

ESTIMATORS = (*instances.ESTIMATORS, TabularRBM)

# Checks that scikit-learn applies to its own estimators and leaves out of `check_estimator`.
FURTHER_CHECKS = (
    "check_dataframe_column_names_consistency",
    "check_estimators_partial_fit_n_features",
    "check_get_feature_names_out_error",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_n_features_in_after_fitting",
    "check_param_validation",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
)

# Libraries of arrays, and their devices, that are not needed here: array-api-strict stands for them.
# array_api_compat is part of scikit-learn since version 1.8.
FOREIGN = "torch", "PyTorch", "cupy", "dpnp", "array_api_compat"

# The checks feed data outside the units' domain, tiny samples and constant features.
pytestmark = pytest.mark.filterwarnings("ignore")


def run(check, *arguments):
    try:
        check(*arguments)
    except unittest.SkipTest as error:
        if str(error).startswith(FOREIGN) and "array_api" in str(error):
            return
        pytest.fail(f"A check must not skip: {error}")


def expected_failures(estimator):
    """Mini-batches differ between rows of weight k and k copies: the sums are compared exactly
    in test_weights, with full batches.
    """
    reason = "mini-batches of weighted rows are not those of copies"
    is_sparse_fit = (
        estimator.__sklearn_tags__().input_tags.sparse
    )  # else scikit-learn 1.6 is content
    kinds = ("dense", "sparse") if is_sparse_fit else ("dense",)
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}


DETECTORS = [
    RBMOutlierDetector(rbm(10, n_iter=2, random_state=0)) for rbm in (BernoulliRBM, TabularRBM)
]
CLASSIFIER = RBMClassifier(BernoulliRBM(20, learning_rate=5, random_state=0))


QUICK = BernoulliRBM, TabularRBM
SLOW = [estimator for estimator in ESTIMATORS if estimator not in QUICK]


@estimator_checks.parametrize_with_checks(
    [estimator(n_iter=2) for estimator in QUICK],
    expected_failed_checks=expected_failures,
)
def test_every_common_check_passes_and_none_skips(estimator, check):
    run(check, estimator)


@pytest.mark.slow
@estimator_checks.parametrize_with_checks(
    [*(estimator(n_iter=2) for estimator in SLOW), *DETECTORS, CLASSIFIER, RBMClassifier()],
    expected_failed_checks=expected_failures,
)
def test_every_common_check_of_the_others_passes_and_none_skips(estimator, check):
    run(check, estimator)


@pytest.mark.parametrize("name", FURTHER_CHECKS)
@pytest.mark.parametrize(
    "estimator", [*QUICK, *(pytest.param(e, marks=pytest.mark.slow) for e in SLOW)]
)
def test_checks_that_scikit_learn_keeps_for_itself_pass(estimator, name):
    run(getattr(estimator_checks, name), estimator.__name__, estimator(n_components=2, n_iter=2))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_check_is_switched_off_or_expected_to_fail(estimator):
    tags = estimator().__sklearn_tags__()
    assert not tags.non_deterministic
    assert not tags.no_validation
    assert not tags._skip_test
    assert tags.requires_fit
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]


PSEUDO = {"criterion": "pseudo_likelihood"}


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (RBMClassifier(), {"sparse", "string"}),
        (RBMClassifier(BernoulliRBM()), {"sparse"}),
        (RBMClassifier(TabularRBM()), {"string"}),
        (RBMOutlierDetector(), {"sparse", "string"}),
        (RBMOutlierDetector(**PSEUDO), {"sparse", "categorical", "string", "allow_nan"}),
        (RBMOutlierDetector(GaussianBernoulliRBM(), **PSEUDO), set()),
        (RBMOutlierDetector(TabularRBM(), **PSEUDO), {"categorical", "string", "allow_nan"}),
        (RBMOutlierDetector(FrozenEstimator(BernoulliRBM())), {"sparse"}),
        (RBMImputer(BernoulliRBM()), {"allow_nan"}),
        (RBMImputer(TabularRBM()), {"categorical", "string", "allow_nan"}),
    ],
)
def test_tags_of_the_input_are_those_of_the_inner_estimator(estimator, expected):
    tags = asdict(get_tags(estimator).input_tags)
    assert {name for name, is_set in tags.items() if is_set} == {"two_d_array", *expected}


@pytest.mark.parametrize(
    ("wrapper", "error"),
    [(RBMClassifier, "such as the estimators of skrbm"), (RBMOutlierDetector, "")],
)
def test_a_class_in_place_of_an_estimator_is_explained(wrapper, error):
    """Slip: an internal method that lacks its argument, in the HTML of a notebook, too."""
    message = r"Expected an estimator instance \(BernoulliRBM\(\)\)"
    with pytest.raises(TypeError, match=message):
        get_tags(wrapper(BernoulliRBM))
    with pytest.raises(ValueError if error else TypeError, match=error or message):
        wrapper(BernoulliRBM).fit(np.eye(4), [0, 1, 0, 1])
