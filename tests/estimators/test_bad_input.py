"""Bad data and bad parameters: a message that names the value and the cure, and no trace."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import oracles
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators.instances import (
    DISCRETE_KINDS,
    ESTIMATORS,
    KINDS,
    arrays,
    assigned,
    bits,
    new,
    random_machine,
)
from scipy.special import expit
from sklearn import neural_network
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MaxAbsScaler, MinMaxScaler

from skrbm import (
    BernoulliRBM,
    DomainWarning,
    GaussianBernoulliRBM,
    RBMClassifier,
    RBMImputer,
    RBMOutlierDetector,
    SpinRBM,
    TabularRBM,
    chain_diagnostics,
    effective_couplings,
    hidden_unit_report,
    to_bernoulli,
    to_spin,
)
from skrbm.core.likelihood.exact import MAX_STATES
from skrbm.core.units import LinearUnits, Support

# Every method that takes visible data, as a function of estimator and data.
LEARNERS = {
    "fit": lambda rbm, X: rbm.fit(X),
    "fit_transform": lambda rbm, X: rbm.fit_transform(X),
    "partial_fit": lambda rbm, X: rbm.partial_fit(X),
}


def twice(X):
    """Each row twice: enough rows for a standard error."""
    return sp.vstack([X, X]) if sp.issparse(X) else np.repeat(X, 2, axis=0)


READERS = {
    "transform": lambda rbm, X: rbm.transform(X),
    "score_samples": lambda rbm, X: rbm.score_samples(X),
    "score": lambda rbm, X: rbm.score(X),
    "free_energy": lambda rbm, X: rbm.free_energy(X),
    "energy": lambda rbm, X: rbm.energy(X, H),
    "gibbs": lambda rbm, X: rbm.gibbs(X),
    "sample": lambda rbm, X: rbm.sample(init=X, n_gibbs_steps=1),
    "log_likelihood": lambda rbm, X: rbm.log_likelihood(X),
    "log_partition": lambda rbm, X: rbm.log_partition("ais", X=X, n_chains=50, n_temperatures=9),
    "log_partition init": lambda rbm, X: rbm.log_partition(
        "reverse_ais", init=twice(X), n_temperatures=9
    ),
}
METHODS = LEARNERS | READERS
# Every method that takes hidden states.
HIDDEN = {
    "inverse_transform": lambda rbm, H: rbm.inverse_transform(H),
    "energy": lambda rbm, H: rbm.energy(X, H),
}
STREAMS = ("_streams",)  # opened by the first draw from arrays assigned by hand
X = np.tile([[0.5, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]], (2, 1))
H = np.tile([[0.5, 1.0], [1.0, 1.0], [1.0, 0.0]], (2, 1))


def spoilt(array, value, dtype=float):
    array = array.astype(dtype)
    array[1, 0] = value
    return array


# name: how to spoil good data, error, message. Of data and hidden states alike.
BAD_DATA = {
    "nan": (lambda a: spoilt(a, np.nan), ValueError, r"contains NaN"),
    "infinity": (lambda a: spoilt(a, np.inf), ValueError, r"contains infinity"),
    "float32 nan": (lambda a: spoilt(a, np.nan, np.float32), ValueError, r"contains NaN"),
    "none": (lambda a: spoilt(a, None, object), ValueError, r"contains NaN"),
    "complex": (lambda a: a + 1j, ValueError, r"Complex data not supported"),
    "strings": (lambda a: [["red", "green", "blue"]] * 6, ValueError, r"(got text\. Use|Convert)"),
    "one-dimensional": (
        lambda a: a[0],
        ValueError,
        r"(?s)Expected 2D array, got 1D array.*[Rr]eshape",
    ),
    "three-dimensional": (lambda a: a[None], ValueError, r"dim 3|3 dim|with 3"),
    "no rows": (lambda a: a[:0], ValueError, r"0 sample\(s\).*minimum of 1"),
    "no columns": (lambda a: a[:, :0], ValueError, r"0 feature\(s\).*minimum of 1"),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def fitted(kind, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return new(kind, 2, n_iter=1, random_state=0, **params).fit(X)


# Data


@pytest.mark.parametrize("check_input", ["warn", "ignore"])
@pytest.mark.parametrize("case", BAD_DATA)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_bad_data_are_refused_by_every_method_and_leave_no_trace(estimator, case, check_input):
    """Catches a method that does not validate, and an estimator that is half fitted afterwards."""
    # Slip: numbers that need not be finite where they are not compared with a domain.
    spoil, error, message = BAD_DATA[case]
    rbm = estimator(2, n_iter=1, check_input=check_input, random_state=0).fit(X)
    calls = [(estimator(2, check_input=check_input), call, X) for call in LEARNERS.values()]
    calls += [(rbm, call, X) for call in METHODS.values()]
    calls += [(rbm, call, H) for call in HIDDEN.values()]
    for subject, call, good in calls:
        before = bits(subject)
        with pytest.raises(error, match=message):
            call(subject, spoil(good))
        assert bits(subject) == before


@pytest.mark.parametrize("width", [1, 2, 4])
def test_wrong_width_is_refused(kind, width):
    """Catches widths that broadcast, and arrays assigned by hand that are not compared."""
    for rbm in (fitted(kind), assigned(random_machine(kind, 3, 2)[0])):
        before = bits(rbm, without=STREAMS)
        message = rf"X has {width} features, but {type(rbm).__name__} is expecting 3 features"
        for call in (*READERS.values(), LEARNERS["partial_fit"]):
            with pytest.raises(ValueError, match=message):
                call(rbm, np.ones((6, width)))
        assert bits(rbm, without=STREAMS) == before


@pytest.mark.parametrize("method", HIDDEN)
def test_wrong_number_of_hidden_states_is_refused(kind, method):
    name = "H" if method == "energy" else "X"
    message = rf"{name} has 3 components, but \w+ is expecting 2 components"
    with pytest.raises(ValueError, match=message):
        HIDDEN[method](fitted(kind), np.ones((6, 3)))


def test_energy_needs_pairs(kind):
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[6, 5\]"):
        fitted(kind).energy(X, H[:5])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", DISCRETE_KINDS)
def test_values_outside_the_domain_warn_raise_or_pass(kind, method):
    """Catches a domain that is compared in some methods only, and spins taken for bits."""
    wild = 3 * X - 1.5
    low = {"bernoulli": 0, "spin": -1}[kind]
    message = (
        rf"\[{low}, 1\], but X has values from -1.5 to 1.5.*MinMaxScaler\(\({low}, 1\), clip=True\)"
    )
    rbm = fitted(kind).set_params(check_input="raise")
    before = bits(rbm)
    with pytest.raises(ValueError, match=message):
        METHODS[method](rbm, wild)
    assert bits(rbm) == before
    with pytest.warns(DomainWarning, match=message):
        METHODS[method](rbm.set_params(check_input="warn"), wild)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        METHODS[method](rbm.set_params(check_input="ignore"), wild)


def test_sparse_counts_are_sent_to_what_takes_them():
    """Seen to fail with the advice for dense data: MinMaxScaler refuses sparse rows."""
    counts = sp.csr_array(np.array([[0, 3.0], [2, 0]]))
    rbm = BernoulliRBM(2, n_iter=1, check_input="raise")
    with pytest.raises(ValueError, match=r"MaxAbsScaler\(\).*preprocessing.Binarizer\(\)"):
        rbm.fit(counts)
    for step in (MaxAbsScaler(), Binarizer()):
        rbm.fit(step.fit_transform(counts))


@pytest.mark.parametrize(
    ("estimator", "values", "low"),
    [
        (BernoulliRBM, [[-2.0, 3], [0, 1]], 0),
        (SpinRBM, [[-2.0, 3], [0, 1]], -1),
        (SpinRBM, [[0, 3.0], [2, 0]], -1),
    ],
)
def test_sparse_rows_that_must_become_dense_are_sent_there(estimator, values, low):
    """Slips: MaxAbsScaler, which keeps negative values; counts as 0 and 1, which are no spins."""
    X = sp.csr_array(np.array(values))
    rbm = estimator(2, n_iter=1, check_input="raise")
    message = rf"Rescale X\.toarray\(\), .*\.MinMaxScaler\(\({low}, 1\), clip=True\), or set"
    with pytest.raises(ValueError, match=message):
        rbm.fit(X)
    rbm.fit(MinMaxScaler((low, 1), clip=True).fit_transform(X.toarray()))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_domain_has_closed_ends(form):
    """Catches a comparison that refuses the ends or the middle."""
    inside = form(np.array([[0.0, 1.0], [0.5, 1.0]]))
    BernoulliRBM(2, check_input="raise").fit(inside)
    SpinRBM(2, check_input="raise").fit(inside)
    SpinRBM(2, check_input="raise").fit(-inside)
    with pytest.raises(ValueError, match=r"X has values from -1 to "):
        BernoulliRBM(2, check_input="raise").fit(-inside)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"Input X contains NaN\.\nBernoulliRBM does not accept missing values"),
        (-np.inf, "Input X contains infinity"),
        (np.inf, "Input X contains infinity"),
        (-0.5, "but X has values from -0.5 to 1"),
        (1.5, "but X has values from 0 to 1.5"),
    ],
)
@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("place", [(0, 0), (-1, 0), (0, -1), (2001, 35)])
def test_one_bad_value_is_found_wherever_it_is(place, form, value, message):
    # Slips: rows behind the last whole block; Python's min, which forgets a NaN.
    X = np.tile(np.eye(71), (50, 1))
    rbm = BernoulliRBM(2, n_iter=0, check_input="raise").fit(form(X))
    X[place] = value
    with pytest.raises(ValueError, match=message):
        rbm.transform(form(X))


@pytest.mark.parametrize("kind", ["bernoulli", "cho"])
@pytest.mark.parametrize("fitted", [False, True])
def test_missing_values_and_text_are_sent_to_what_takes_them(kind, fitted):
    """Slips: gradient boosting, which scikit-learn names for missing values; NumPy's words."""
    pandas = pytest.importorskip("pandas")
    rbm = new(kind, 2)
    call = rbm.fit(X).transform if fitted else rbm.fit
    with pytest.raises(ValueError, match=r"RBMImputer .* if missing='marginalize'") as caught:
        call(spoilt(X, np.nan))
    assert "Gradient" not in str(caught.value)
    table = pandas.DataFrame({"a": pandas.Categorical(list("xyxyxy")), "b": 1.0, "c": 0.0})
    for text in (table.astype({"a": object}), table, np.full((6, 3), "red")):
        for rbm in (new(kind, 2), RBMImputer(new(kind, 2))):
            with pytest.raises(ValueError, match=r"X expected .*got text(, '\w+')?\. Use skrbm.T"):
                rbm.fit(text)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, lambda n: RBMImputer(BernoulliRBM(n))])
@pytest.mark.parametrize("form", ["pandas", "polars", "array", "objects", "durations"])
def test_dates_are_named(estimator, form):
    """Slips: words of NumPy about ufuncs and promotion; dates of polars as numbers of 1e15."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = pandas.DataFrame({"a": 1.0, "day": pandas.date_range("2024-01-01", periods=6)})
    forms = {
        "pandas": table,
        "polars": polars.DataFrame(table.to_dict("list")),
        "array": table[["day"]].to_numpy(),
        "objects": table.astype(object),
        "durations": table.assign(day=table["day"] - table["day"][0]),
    }
    with pytest.raises(TypeError, match=r"X expected numbers .*(day|date|Time).* Convert dates"):
        estimator(2).fit(forms[form])


@pytest.mark.parametrize("method", HIDDEN)
def test_hidden_states_outside_the_domain_warn(kind, method):
    with pytest.warns(DomainWarning, match=r"but (X|H) has values from 0 to 3.*MinMaxScaler"):
        HIDDEN[method](fitted(kind), 3 * H)


@pytest.mark.parametrize("method", METHODS)
def test_gaussian_refuses_sparse_data(method):
    for rbm in (fitted("cho"), GaussianBernoulliRBM(2)):
        if method in READERS and not hasattr(rbm, "components_"):
            continue
        before = bits(rbm)
        with pytest.raises(TypeError, match=r"[Ss]parse data was passed.*toarray\(\)"):
            METHODS[method](rbm, sp.csr_array(X))
        assert bits(rbm) == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 7.3, 1e6])
@pytest.mark.parametrize("method", LEARNERS)
@pytest.mark.parametrize("parameterization", oracles.GAUSSIAN_ENERGIES)
def test_constant_gaussian_features_warn_by_name_and_do_no_harm(
    parameterization, method, value, dtype
):
    """Catches the logarithm of a variance of zero, or one of rounding that takes its place."""
    data = np.random.default_rng(0).normal(size=(50, 4)).astype(dtype)
    data[:, [1, 3]] = value
    rbm = new(parameterization, 2, random_state=0)
    with pytest.warns(UserWarning, match=r"Features \[1, 3\] of X are constant.*VarianceThreshold"):
        LEARNERS[method](rbm, data)
    np.testing.assert_array_equal(rbm.noise_variance_[[1, 3]], 1)
    rbm.partial_fit(data)
    assert all(np.isfinite(array).all() for array in arrays(rbm).values())
    assert np.isfinite(rbm.score(data))


def test_constant_discrete_features_do_no_harm():
    """Catches the logit of zero."""
    for rbm, data in ((BernoulliRBM(2), X[:, :1] * 0), (SpinRBM(2), X[:, :1] * 0 - 1)):
        rbm.fit(data)
        assert all(np.isfinite(array).all() for array in arrays(rbm).values())


# Parameters of the constructor


BAD_PARAMETERS = [
    ("n_components", 0),
    ("n_components", 2.5),
    ("n_components", True),
    ("learning_rate", np.nan),
    ("learning_rate", np.inf),
    ("learning_rate", -0.1),
    ("learning_rate", "fast"),
    ("batch_size", 0),
    ("n_iter", -1),
    ("algorithm", "sgd"),
    ("n_gibbs_steps", 0),
    ("n_gibbs_steps", True),
    ("n_particles", 0),
    ("centering", "yes"),
    ("shuffle", None),
    ("check_input", "maybe"),
    ("n_jobs", 1.5),
    ("verbose", -1),
    ("random_state", "zero"),
    ("parameterization", "hinton"),
    ("learn_variance", 2),
]


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        (estimator, *case)
        for estimator in ESTIMATORS
        for case in BAD_PARAMETERS
        if case[0] in estimator().get_params()
    ],
)
def test_bad_parameters_are_named_with_their_value(estimator, name, value):
    """Catches a parameter that is checked in one of the learning methods only, or too late."""
    rule = (
        rf"The '{name}' parameter of {estimator.__name__} must be .* Got {re.escape(repr(value))}"
    )
    for rbm in (estimator(2, n_iter=1).fit(X), estimator(2)):
        before = bits(rbm.set_params(**{name: value}))
        for call in LEARNERS.values():
            with pytest.raises(ValueError, match=rule):
                call(rbm, X)
            assert bits(rbm) == before


@pytest.mark.parametrize("outer", [RBMClassifier, RBMImputer, RBMOutlierDetector])
def test_estimators_of_other_packages_are_told_apart(outer):
    """Slip: "must be ... Got BernoulliRBM() instead" for scikit-learn's class of this name."""
    with pytest.raises(ValueError, match=r"from skrbm import BernoulliRBM.*Got BernoulliRBM"):
        outer(neural_network.BernoulliRBM()).fit(X, np.arange(len(X)) % 2)


def test_kinds_that_are_no_dictionary_are_shown_one():
    """Slip: "an instance of 'dict'" of which neither keys nor values were named."""
    with pytest.raises(ValueError, match=r"dict such as \{'age': 'numeric'.*Got \['numeric'\]"):
        TabularRBM(2, kinds=["numeric"]).fit(X)


def test_constraints_with_a_description_are_as_strict_as_without():
    """Slip: any object with the methods of a dictionary, or of an RBM."""
    with pytest.raises(ValueError, match="The 'kinds' parameter of TabularRBM must be"):
        TabularRBM(2, kinds=pd.Series({0: "numeric"})).fit(X)
    alike = SimpleNamespace(fit=print, impute=print, get_params=dict)
    with pytest.raises(ValueError, match="The 'estimator' parameter of RBMImputer must be"):
        RBMImputer(alike).fit(X)


@pytest.mark.parametrize("method", LEARNERS)
@pytest.mark.parametrize("is_fitted", [True, False])
def test_a_failure_inside_training_leaves_no_trace(kind, method, is_fitted):
    """Catches attributes that are set before training can fail."""
    n_components = MAX_STATES.bit_length()
    options = {"algorithm": "exact", "random_state": 0}
    data = 0.9 * np.eye(n_components + 2)
    rbm = new(kind, n_components, **options)
    if is_fitted:
        rbm.set_params(algorithm="pcd").fit(data).set_params(algorithm="exact")
    before = bits(rbm)
    message = rf"at most {MAX_STATES} states.*{n_components + 2} visible.* {n_components} hidden"
    with pytest.raises(ValueError, match=message + r".*algorithm='pcd'"):
        LEARNERS[method](rbm, data)
    assert bits(rbm) == before


# Arrays assigned by hand


BAD_ARRAYS = [
    ("components_", np.full((2, 3), np.nan), "components_ contains NaN"),
    ("components_", np.ones(3), "Expected 2D array, got 1D array|components_"),
    ("components_", np.ones((2, 3), dtype=complex), "Complex data not supported"),
    ("intercept_visible_", np.ones(2), r"intercept_visible_ of shape \(3,\).*got \(2,\)"),
    ("intercept_visible_", np.ones((3, 1)), r"intercept_visible_ .*got shape \(3, 1\)"),
    ("intercept_visible_", np.full(3, np.inf), "intercept_visible_ contains infinity"),
    ("intercept_hidden_", np.ones(3), r"intercept_hidden_ of shape \(2,\).*got \(3,\)"),
    ("intercept_hidden_", np.full(2, np.nan), "intercept_hidden_ contains NaN"),
    ("noise_variance_", np.ones(2), r"noise_variance_ of shape \(3,\).*got \(2,\)"),
    ("noise_variance_", np.full(3, np.nan), "noise_variance_ contains NaN"),
    ("noise_variance_", np.zeros(3), "noise_variance_ to be positive, got a value of 0"),
    ("noise_variance_", -np.ones(3), "noise_variance_ to be positive, got a value of -1"),
]


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        (kind, *case)
        for kind in ("bernoulli", "spin", "cho")
        for case in BAD_ARRAYS
        if case[0] != "noise_variance_" or kind == "cho"
    ],
)
def test_bad_assigned_arrays_are_named_by_every_method(kind, name, value, message):
    """Catches shapes that broadcast, NaN that spreads, and variances without a logarithm."""
    rbm = assigned(random_machine(kind, 3, 2)[0])
    setattr(rbm, name, value)
    before = bits(rbm, without=STREAMS)
    calls = [(call, X) for call in (*READERS.values(), LEARNERS["partial_fit"])]
    calls += [(call, H) for call in HIDDEN.values()]
    for call, data in calls:
        with pytest.raises(ValueError, match=message):
            call(rbm, data)
    assert bits(rbm, without=STREAMS) == before


# Before fit


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_reading_method_needs_a_model_and_says_so(estimator):
    """Catches an AttributeError where NotFittedError names the cure."""
    calls = [lambda rbm, call=call: call(rbm, X) for call in READERS.values()]
    calls += [
        lambda rbm: rbm.inverse_transform(H),
        lambda rbm: rbm.sample(),
        lambda rbm: rbm._mean_hiddens(X),
        lambda rbm: rbm._free_energy(X),
        lambda rbm: rbm._sample_hiddens(X, np.random.default_rng(0)),
        lambda rbm: rbm._sample_visibles(H, np.random.default_rng(0)),
        lambda rbm: rbm.get_feature_names_out(),
    ]
    calls += [to_bernoulli] * (estimator is SpinRBM) + [to_spin] * (estimator is BernoulliRBM)
    for call in calls:
        rbm = estimator(2)
        with pytest.raises(
            NotFittedError, match=rf"{estimator.__name__} instance is not fitted yet"
        ):
            call(rbm)
        assert vars(rbm) == rbm.get_params()


@pytest.mark.parametrize("missing", ["components_", "intercept_visible_", "intercept_hidden_"])
def test_half_a_model_is_not_fitted(kind, missing):
    # Slip: advice to call fit, without a word of the array that was not assigned.
    rbm = assigned(random_machine(kind, 3, 2)[0])
    delattr(rbm, missing)
    calls = [lambda rbm, call=call: call(rbm, X) for call in READERS.values()]
    for call in (*calls, lambda rbm: rbm.inverse_transform(H), lambda rbm: rbm.sample()):
        with pytest.raises(NotFittedError, match=rf"got no {missing}\. Assign all"):
            call(rbm)


def test_gaussian_without_variance_is_not_fitted():
    rbm = assigned(random_machine("cho", 3, 2)[0])
    del rbm.noise_variance_
    with pytest.raises(NotFittedError, match=r"got no noise_variance_\. Assign all"):
        rbm.score(X)


def test_arrays_of_other_hidden_units_are_named():
    table = TabularRBM(2, n_iter=1, random_state=0).fit(X)
    for rbm in (assigned(random_machine("bernoulli", 3, 2)[0]), table):
        rbm.set_params(hidden_units="drelu")
        with pytest.raises(NotFittedError, match=r"got no \w+_hidden_, \w+_hidden_\. Assign all"):
            rbm.transform(X)


@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e-25, "float32"), (1e25, "float32"), (1e160, "float64")]
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_statistics_beyond_a_precision_are_refused(scale, dtype, method):
    """Catches a start of infinite or vanished variance, blamed on the learning rate, and warnings
    of overflows before the error."""
    X = (scale * np.random.default_rng(0).normal(size=(20, 3))).astype(dtype)
    rbm = GaussianBernoulliRBM(2)
    with pytest.raises(ValueError, match=rf"beyond the range of {dtype}.*Rescale X"):
        getattr(rbm, method)(X)
    assert vars(rbm) == vars(GaussianBernoulliRBM(2))


@pytest.mark.parametrize("method", ["free_energy", "log_likelihood"])
def test_results_beyond_single_precision_are_refused(method):
    """Catches NaN from double precision parameters that rows in single precision cannot feel."""
    rbm = assigned(random_machine("bernoulli", 3, 2)[0])
    rbm.intercept_hidden_[:] = 1e58
    assert np.isfinite(getattr(rbm, method)(X)).all()
    with pytest.raises(ValueError, match=r"finite results.*range of float32.*Rescale X"):
        getattr(rbm, method)(X.astype(np.float32))


@pytest.mark.filterwarnings("ignore:.*constant:UserWarning")
def test_mean_of_scores_near_the_end_of_single_precision_is_finite():
    """Catches a sum of single precision numbers that overflows where their mean does not."""
    rbm = GaussianBernoulliRBM(2, parameterization="krizhevsky", random_state=0)
    rbm.fit(np.zeros((2, 4), np.float32))
    rows = np.full((2, 4), np.iinfo(np.int64).min)
    assert rbm.score_samples(rows).max() < -np.finfo(np.float32).max / 2
    assert np.isfinite(rbm.score(rows))


@pytest.mark.parametrize("method", ["exact", "ais", "reverse_ais"])
def test_partition_functions_beyond_double_precision_are_refused(method):
    rbm = assigned(random_machine("cho", 3, 2)[0])
    rbm.components_[:] = 1e200
    with pytest.raises(ValueError, match="finite results"):
        rbm.log_partition(method, n_chains=2, n_temperatures=2)


@pytest.mark.filterwarnings("ignore:The fit is worse")  # chains cannot resolve the values
def test_units_too_narrow_for_their_place_are_refused():
    """Catches a quadrature whose nodes all are the same number."""
    rbm = GaussianBernoulliRBM(2, parameterization="krizhevsky", random_state=0)
    with pytest.warns(UserWarning, match="constant"):
        rbm.fit(np.full((2, 1), 1e30))
    assert np.isnan(rbm.history_["pseudo_likelihood"]).all()
    with pytest.raises(ValueError, match=r"too narrow for float64.*Subtract the mean"):
        rbm.score_samples(np.full((2, 1), 1e30))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_inside_the_domain(dtype):
    """Catches a warning about 1.0000000000000002, which scikit-learn's scalers return."""
    X = np.array([[0.0, 1.0]], dtype=dtype)
    X = np.concatenate([X, np.nextafter(X, dtype(2)), np.nextafter(X, dtype(-1))])
    BernoulliRBM(2, check_input="raise").fit(X)


@pytest.mark.parametrize("method", METHODS)
def test_warnings_point_at_the_line_of_the_user(method):
    """Catches a stacklevel that does not fit the depth of the call."""
    rbm = fitted("bernoulli")
    with pytest.warns(DomainWarning) as record:
        METHODS[method](rbm, 3 * X)
    assert {warning.filename for warning in record} == {__file__}


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
@pytest.mark.parametrize("data", [np.zeros((6, 3)), X])
def test_sparse_numbers_of_rare_precision_are_learned_from_as_dense_ones_are(data, dtype):
    # Slip: left to SciPy and NumPy, of which some functions do not know them.
    half = sp.csr_array(data)
    half.data = half.data.astype(dtype)
    one, other = (BernoulliRBM(2, n_iter=2, draw_states=False, random_state=0) for _ in range(2))
    one.fit(half)
    other.fit(data.astype(dtype))
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-12)
    np.testing.assert_allclose(one.transform(half), other.transform(data), atol=1e-12)
    assert half.dtype == dtype


def test_sparse_input_with_duplicates_is_summed_and_left_alone():
    """Catches statistics of stored entries in place of sums, and a matrix changed in place."""
    duplicated = sp.csr_matrix(([0.5, 0.5, 1.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    duplicated.data.flags.writeable = False
    expected = BernoulliRBM(2, random_state=0).fit(duplicated.toarray())
    rbm = BernoulliRBM(2, random_state=0).fit(duplicated)
    assert duplicated.nnz == 3
    np.testing.assert_allclose(rbm.components_, expected.components_, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"), [("check_input", "wrong"), ("n_jobs", 0), ("learning_rate", -1.0)]
)
def test_parameters_edited_after_fit_are_checked(name, value):
    rbm = fitted("bernoulli").set_params(**{name: value})
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        rbm.score_samples(X)


@pytest.mark.parametrize(
    ("convert", "rbm"),
    [
        (to_bernoulli, BernoulliRBM(2)),
        (to_bernoulli, GaussianBernoulliRBM(2)),
        (to_spin, SpinRBM(2)),
    ],
)
def test_only_the_other_states_can_be_converted(convert, rbm):
    """Catches a model that is mapped twice, which has another distribution."""
    with pytest.raises(TypeError, match=f"got a {type(rbm).__name__}"):
        convert(rbm)


def test_bits_in_place_of_spins_warn():
    """Catches data of 0 and 1 that a spin model reads as undecided and up.

    Slips: 2 * X - 1, which fails for sparse rows, and wraps around for unsigned ones.
    """
    bits = np.random.default_rng(0).integers(0, 2, (50, 3))
    kinds = (int, np.float32, np.uint8, bool)
    for X in (*map(bits.astype, kinds), sp.csr_array(bits), sp.csr_array(bits.astype(np.uint8))):
        rows, text = (X.toarray(), "X.toarray()") if sp.issparse(X) else (X, "X")
        message = rf"only 0 and 1.*Pass 2\.0 \* {re.escape(text)} - 1, "
        with pytest.warns(DomainWarning, match=message):
            SpinRBM(2, n_iter=1).fit(X)
        SpinRBM(2, n_iter=1, check_input="raise").fit(2.0 * rows - 1)
    with pytest.raises(ValueError, match="only 0 and 1"):
        SpinRBM(2, n_iter=1, check_input="raise").fit(bits)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SpinRBM(2, n_iter=1).fit(2 * bits - 1)
        SpinRBM(2, n_iter=1).fit(np.random.default_rng(0).uniform(0, 1, (50, 3)))
        SpinRBM(2, n_iter=1).fit(np.ones((50, 3)))


def test_training_counts_the_features_of_assigned_arrays():
    """Catches a number of features, or their names, that is left from an earlier fit."""
    rbm = BernoulliRBM(2, n_iter=1, random_state=0).fit(np.eye(3))
    rbm.components_, rbm.intercept_visible_ = np.zeros((2, 5)), np.zeros(5)
    rbm.partial_fit(np.eye(5))
    assert rbm.n_features_in_ == 5
    rbm.transform(np.eye(5))


def test_advice_on_missing_values_is_not_what_is_set():
    """Slips: missing='marginalize' where it is set, and left out where it would help."""
    X = np.where(np.arange(40).reshape(10, 4) % 7 == 0, np.nan, 1.0)
    rbm = BernoulliRBM(2, n_iter=1, missing="marginalize", random_state=0).fit(X)
    for method in (rbm.free_energy, rbm.gibbs):
        with pytest.raises(ValueError, match=r"need complete rows.*RBMImputer.*impute\.$"):
            method(X)
    with pytest.raises(ValueError, match=r"fit, transform,.* if missing='marginalize'"):
        rbm.set_params(missing="raise").transform(X)
    y = np.arange(10) % 2
    with pytest.raises(ValueError, match=r"RBMClassifier .* Put skrbm\.RBMImputer before"):
        RBMClassifier(rbm).fit(X, y)
    make_pipeline(RBMImputer(rbm), RBMClassifier(rbm)).fit(X, y)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, TabularRBM])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_rows_of_nothing_known_are_refused(estimator, method):
    """Slips: a fit of NaN alone, and values from nan to nan that should be rescaled."""
    X, rbm = np.full((30, 4), np.nan), estimator(2, missing="marginalize")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Columns .* no observed value")
        with pytest.raises(
            ValueError, match=r"of shape \(30, 4\) expected to have an observed value"
        ):
            getattr(rbm, method)(X)
    assert not hasattr(rbm, "components_")
    known = np.vstack([X[:3], np.eye(4).repeat(10, axis=0) * 2 - (estimator is SpinRBM) - 1])
    rbm = estimator(2, missing="marginalize", n_iter=1, check_input="ignore").fit(known)
    assert np.isfinite(rbm.set_params(check_input="raise").transform(X)).all()


@pytest.mark.parametrize("function", [effective_couplings, chain_diagnostics, hidden_unit_report])
def test_functions_of_a_model_refuse_other_objects_and_name_the_model_within(function):
    # Slip: AttributeError about a private name.
    rows = (np.eye(5),) if function is hidden_unit_report else ()
    detector = RBMOutlierDetector(BernoulliRBM(2, n_iter=1, random_state=0)).fit(np.eye(5))
    with pytest.raises(TypeError, match=r"got RBMOutlierDetector\. Pass its attribute estimator_"):
        function(detector, *rows)
    with pytest.raises(TypeError, match=r"Expected a BernoulliRBM.*, got Binarizer\.$"):
        function(Binarizer(), *rows)


@pytest.mark.parametrize("check_input", ["raise", "ignore"])
def test_sparse_rows_have_no_missing_values(check_input):
    # Slip: NaN that enters the products, and an error that blames the range of float64.
    X = sp.csr_array(np.array([[np.nan, 1.0, 0.0], [0.0, 1.0, 1.0]]))
    rbm = BernoulliRBM(2, n_iter=1, missing="marginalize", check_input=check_input)
    for call in (rbm.fit, rbm.fit(np.eye(3)).score_samples):
        with pytest.raises(ValueError, match="sparse X need complete rows"):
            call(X)


def test_zero_and_one_are_states_of_units_that_also_have_minus_one():
    """Slips: bits that are taken for spins; states in another order."""

    class Signs(LinearUnits):
        support = Support.of(0.0, 1.0, -1.0)

        def log_normaliser(self, x):
            return np.logaddexp(np.logaddexp(x, -x), 0).sum(axis=1)

        def expectation(self, x):
            return self.share_of_one(x) - self.share_of_one(-x)

        def draw(self, x, rng):
            u = rng.random(x.shape)
            return (u > 1 - self.share_of_one(x)) - (u < self.share_of_one(-x)).astype(float)

        def share_of_one(self, x):
            return expit(x - np.logaddexp(-x, 0))

    class SignsRBM(SpinRBM):
        _visible_type = Signs

    X = np.random.default_rng(0).integers(-1, 2, size=(40, 4)).astype(float)
    rbm = SignsRBM(2, n_iter=1, check_input="raise", random_state=0).fit(X)
    assert rbm.free_energy([[0, 1, 1, 0]]).shape == (1,)
