"""Partition functions and likelihoods as estimators give them."""

import copy
import tracemalloc
import warnings

import joblib
import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from estimators.instances import KINDS, assigned, new, parameters, random_machine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skrbm import (
    AnnealingWarning,
    BernoulliRBM,
    DomainWarning,
    GaussianBernoulliRBM,
    LogPartition,
    RBMClassifier,
    TabularRBM,
    log_likelihood_scorer,
)
from skrbm.estimators.inference import log_partition as annealing
from skrbm.estimators.inference.model import ArrayModel


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def many_modes(n_visible, n_hidden):
    """Strongly coupled model whose units are on and off equally often."""
    W = oracles.random_parameters(
        "bernoulli", n_visible, n_hidden, np.random.default_rng(0)
    ).weights
    return random_machine("bernoulli", n_visible, n_hidden)[0].replace(
        weights=4 * W, visible_bias=-2 * W.sum(axis=1), hidden_bias=-2 * W.sum(axis=0)
    )


@pytest.mark.parametrize("method", ["auto", "exact"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_exact_partition_function_is_the_enumerated_one(kind, method, n_jobs):
    for seed in range(3):
        p, v, _ = random_machine(kind, 4, 5, seed, scale=2.0)
        rbm = assigned(p, n_jobs=n_jobs)
        result = rbm.log_partition(method)
        assert (result.method, result.std_error) == ("exact", 0)
        np.testing.assert_allclose(result.value, oracles.log_partition(p), rtol=0, atol=1e-8)
        likelihood = rbm.log_likelihood(v)
        np.testing.assert_allclose(likelihood, oracles.log_likelihood(p, v), rtol=0, atol=1e-8)


def test_single_precision_is_summed_in_double(kind):
    p, _, _ = random_machine(kind, 5, 6)
    rbm = assigned(p)
    for name in ("components_", *rbm._layer_arrays):
        setattr(rbm, name, getattr(rbm, name).astype(np.float32))
    expected = oracles.log_partition(parameters(rbm))
    np.testing.assert_allclose(rbm.log_partition().value, expected, rtol=0, atol=1e-8)


@pytest.mark.every_kind
@pytest.mark.parametrize("method", ["ais", "reverse_ais", "bar"])
def test_annealed_partition_function_is_the_enumerated_one(kind, method):
    # Slips: the natural machine's partition function in place of the given one's.
    p, v, _ = random_machine(kind)
    for rbm in (assigned(p), new(kind, 3, random_state=0).fit(v)):
        result = rbm.log_partition(method, n_chains=200, n_temperatures=300, random_state=0)
        assert result.method == method
        assert result.n_chains == 200
        assert result.n_temperatures == 300 or method == "bar"  # which chooses its own
        exact = oracles.log_partition(parameters(rbm))
        assert abs(result.value - exact) < 5 * result.std_error + 1e-9


@pytest.mark.filterwarnings("ignore::skrbm.AnnealingWarning")  # of the start that is wrong
def test_reverse_annealing_starts_where_it_is_told(kind):
    # Slip: init ignored. With two temperatures, chains that all start alike weigh the same.
    p, v, _ = random_machine(kind)
    rbm = assigned(p)
    samples = oracles.sample_exact(p, 100, np.random.default_rng(0))[0]
    from_samples, from_one = (
        rbm.log_partition("reverse_ais", init=init, n_temperatures=2, random_state=0)
        for init in (samples, np.repeat(v[:1], 100, axis=0))
    )
    assert from_samples.n_chains == 100
    assert from_one.std_error < 1e-9
    assert from_samples.std_error > 1e-3


@pytest.mark.every_kind
@pytest.mark.parametrize("method", ["ais", "reverse_ais", "bar"])
def test_number_is_the_same_on_every_call_and_for_every_n_jobs(kind, method):
    """Catches a stream that is drawn from, blocks that depend on n_jobs, other calls between."""
    _, v, _ = random_machine(kind)
    rbm = new(kind, 3, random_state=0).fit(v)
    size = {"n_chains": 120, "n_temperatures": 20}
    first = rbm.log_partition(method, **size)
    rbm.sample(3)
    assert rbm.log_partition(method, **size) == first
    assert rbm.set_params(n_jobs=2).log_partition(method, **size) == first
    with joblib.parallel_config(backend="loky"):
        assert rbm.log_partition(method, **size) == first
    assert copy.deepcopy(rbm).log_partition(method, **size) == first
    assert new(kind, 3, random_state=0).fit(v).log_partition(method, **size) == first
    seeded, again, other = (
        rbm.log_partition(method, random_state=s, **size).value for s in (1, 1, 2)
    )
    assert seeded == again != other


def test_auto_is_exact_where_that_is_cheap():
    rbm = assigned(random_machine("bernoulli", 6, 5)[0])
    assert rbm.log_partition(n_chains=4, n_temperatures=8).method == "exact"
    cheap = {"n_chains": 2, "n_temperatures": 15}  # 30 visits, fewer than the 2^5 hidden states
    with pytest.warns(AnnealingWarning, match="a mean over 2 chains.*Use 10 chains or more"):
        assert rbm.log_partition(**cheap, X=np.eye(6)).method == "ais"


def test_too_large_layers_name_the_alternative():
    rbm = BernoulliRBM(26)
    rbm.components_ = np.zeros((26, 30))
    rbm.intercept_visible_, rbm.intercept_hidden_ = np.zeros(30), np.zeros(26)
    with pytest.raises(
        ValueError, match=r"at most 33554432 states, .* 30 visible .* 26 hidden .*method='ais'"
    ):
        rbm.log_partition("exact")
    result = rbm.log_partition(n_chains=100, n_temperatures=10)
    assert abs(result.value - 56 * np.log(2)) < 5 * result.std_error < 1
    with pytest.raises(ValueError, match="X has 3 features"):  # annealing, however many visits
        rbm.log_partition(n_chains=2, n_temperatures=2**26, X=np.eye(3))


@pytest.mark.parametrize("method", ["ais", "reverse_ais", "bar"])
def test_errors_of_few_chains_are_warned_of(method):
    # Slip: the standard error of two numbers, which is off by more than a factor of five in one of
    # a dozen runs.
    rbm = assigned(random_machine("bernoulli", 6, 5)[0])
    sizes = {"n_temperatures": 400, "random_state": 0, "X": np.eye(6)}
    for n_chains in (2, 9):
        with pytest.warns(AnnealingWarning, match=rf"mean over {n_chains} chains.*not reliable"):
            rbm.log_partition(method, n_chains=n_chains, **sizes)
    rbm.log_partition(method, n_chains=10, **sizes)


@pytest.mark.slow
def test_weights_of_few_chains_are_warned_of():
    p = many_modes(14, 10)
    with pytest.warns(AnnealingWarning, match=r"is only [0-9.]+ of 50 .*Increase n_temperatures=2"):
        result = assigned(p).log_partition(
            "ais", n_chains=50, n_temperatures=2, X=np.repeat([[0.0], [1.0]], 14, axis=1)
        )
    assert result.effective_sample_size < 10


@pytest.mark.parametrize("width", [4, 5])
def test_base_takes_the_statistics_of_the_data(kind, width, monkeypatch):
    # Slips: a base of another width, of the first chunk alone, of no data.
    seen = []
    _, v, _ = random_machine(kind)
    rbm = new(kind, 3, random_state=0, learning_rate=0)
    rbm.partial_fit(v[:20]).partial_fit(v[20:])
    start = type(rbm)._visible_type.start
    monkeypatch.setattr(
        type(rbm)._visible_type,
        "start",
        classmethod(lambda cls, *args, **options: seen.append(args) or start(*args, **options)),
    )
    if width != v.shape[1]:
        p = random_machine(kind, width)[0]
        rbm = assigned(p)
    rbm.log_partition("ais", n_chains=100, n_temperatures=20)
    mean, variance, n_samples = seen[0]
    assert len(mean) == width
    if width == v.shape[1]:
        np.testing.assert_allclose(mean, v.mean(axis=0))
        np.testing.assert_allclose(variance, v.var(axis=0))
        assert n_samples == len(v)
    rows = np.concatenate([v, v], axis=1)[:, :width] + 0.5
    rbm.set_params(check_input="ignore")
    rbm.log_partition("ais", n_chains=100, n_temperatures=20, X=rows)
    np.testing.assert_allclose(seen[-1][0], rows.mean(axis=0))


def test_given_partition_function_is_used(kind):
    p, v, _ = random_machine(kind)
    rbm = assigned(p)
    free = oracles.free_energy(p, v)
    for given in (75.0, LogPartition(75.0, 0.0, "exact"), np.float64(75.0)):
        np.testing.assert_allclose(rbm.log_likelihood(v, given), -free - 75.0, atol=1e-9)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix])
def test_sparse_rows_have_the_same_likelihood(form):
    p, v, _ = random_machine("bernoulli")
    rbm = assigned(p)
    np.testing.assert_allclose(rbm.log_likelihood(form(v)), rbm.log_likelihood(v))
    size = {"n_chains": 100, "n_temperatures": 30, "random_state": 0}
    for method, name in (("ais", "X"), ("reverse_ais", "init")):
        dense, sparse = (rbm.log_partition(method, **{name: d}, **size) for d in (v, form(v)))
        numbers = [(result.value, result.std_error) for result in (dense, sparse)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-9)


def test_result_is_a_number_with_an_error_and_a_name():
    exact = LogPartition(12.5, 0.0, "exact")
    assert float(exact) == 12.5
    assert str(exact) == "log Z = 12.500000 nats (exact)"
    for error, text in ((0.0213, "1.000 +- 0.021"), (3.4, "1.00 +- 3.40"), (0.0, "1.00 +- 0.00")):
        assert str(LogPartition(1.0, error, "ais", 9, 8, 7.0)).startswith(f"log Z = {text} nats")
    for method, steps in {"bar": "8 temperatures", "tracked": "8 Gibbs steps"}.items():
        assert f"({method}: 9 chains, {steps}," in str(LogPartition(1.0, 0.1, method, 9, 8, 7.0))
    with pytest.raises(AttributeError):
        exact.value = 3


@pytest.mark.parametrize(
    ("name", "value"),
    [("method", "best"), ("n_chains", 1), ("n_temperatures", 1), ("random_state", "a"), ("X", 3)],
)
def test_bad_arguments_are_named(name, value):
    rbm = assigned(random_machine("bernoulli")[0])
    with pytest.raises(ValueError, match=rf"'{name}' parameter of .*log_partition"):
        rbm.log_partition(**{name: value})


def test_scorer_is_the_mean_likelihood_also_behind_a_pipeline(kind):
    p, v, _ = random_machine(kind)
    rbm = assigned(p)
    expected = oracles.log_likelihood(p, v).mean()
    np.testing.assert_allclose(log_likelihood_scorer(rbm, v), expected)
    pipeline = make_pipeline(FunctionTransformer(np.negative), rbm)
    np.testing.assert_allclose(log_likelihood_scorer(pipeline, -v), expected)
    np.testing.assert_allclose(log_likelihood_scorer(make_pipeline(rbm), v), expected)
    np.testing.assert_allclose(log_likelihood_scorer(make_pipeline(pipeline), -v), expected)
    weights = np.arange(len(v))
    weighted = np.average(oracles.log_likelihood(p, v), weights=weights)
    np.testing.assert_allclose(log_likelihood_scorer(rbm, v, sample_weight=weights), weighted)
    classifier = RBMClassifier(BernoulliRBM(2, n_iter=1)).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(TypeError, match=r"got RBMClassifier\. Pass its attribute estimator_"):
        log_likelihood_scorer(classifier, np.eye(4))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_scorer_warns_of_gray_rows(form):
    """Their scores are no log-probabilities: they were above zero, in silence.

    Slip: rows of which most are bits taken for bits.
    """
    rbm = BernoulliRBM(2, n_iter=1, random_state=0).fit(np.eye(6))
    gray = np.eye(6)
    gray[3, 3] = 0.5
    with pytest.warns(DomainWarning, match=r"values other than 0 and 1.*X > 0\.5, 1, 0\)"):
        log_likelihood_scorer(make_pipeline(rbm), form(gray))
    log_likelihood_scorer(rbm, form(np.eye(6)))
    log_likelihood_scorer(GaussianBernoulliRBM(2, n_iter=1).fit(np.eye(6)), gray)


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "size", "seed"), [(1, 600, 0), (8, 2400, 1)])
def test_temperatures_are_added_until_the_error_is_small(scale, size, seed):
    """Random couplings, of which eight times as strong ones need more.

    Slips: the first run taken; MAX_AUTO_ERROR = 1.
    """
    rng = np.random.default_rng(seed)
    W = scale * oracles.random_parameters("bernoulli", 14, 12, rng).weights
    rbm = BernoulliRBM(12, random_state=seed)
    rbm.components_ = W.T
    rbm.intercept_visible_, rbm.intercept_hidden_ = -W.sum(axis=1) / 2, -W.sum(axis=0) / 2
    result = rbm.log_partition("ais", n_temperatures="auto")
    assert result.n_temperatures == size
    assert result.std_error <= annealing.MAX_AUTO_ERROR
    assert abs(result.value - rbm.log_partition("exact").value) < 4 * result.std_error
    assert rbm.log_partition(n_temperatures="auto").method == "exact"


@pytest.mark.parametrize(
    ("run", "before", "bound", "is_settled"),
    [
        ((10.0, 0.04), (10.3, 0.15), 9.0, True),
        ((10.0, 0.06), (10.3, 0.15), 9.0, False),
        ((10.0, 0.04), (10.3, 0.25), 9.0, False),  # an error that large is not known itself
        ((10.0, 0.04), (10.5, 0.15), 9.0, False),
        ((10.0, 0.04), (10.3, 0.15), 10.3, False),
    ],
)
def test_runs_that_disagree_or_miss_known_rows_are_not_settled(run, before, bound, is_settled):
    # Slip: a small standard error alone.
    one, other = (LogPartition(*numbers, "ais", 100, 600, 90.0) for numbers in (run, before))
    assert annealing._is_converged(one, other, bound) == is_settled


@pytest.mark.slow
def test_scorer_takes_as_many_temperatures_as_it_needs():
    # Slip: ten thousand of them for a model whose chains all weigh the same.
    rbm = BernoulliRBM(30, n_iter=2, random_state=0).fit(np.eye(30))
    log_partition = rbm.log_partition(n_temperatures="auto")
    assert (log_partition.method, log_partition.n_temperatures) == ("ais", 600)
    expected = rbm.log_likelihood(np.eye(30), log_partition).mean()
    assert log_likelihood_scorer(rbm, np.eye(30)) == expected


@pytest.mark.slow
def test_search_picks_a_model_as_likely_as_the_best():
    """On data from a known model, within 0.3 nat of the best candidate's exact likelihood."""
    rng = np.random.default_rng(0)
    p = many_modes(8, 4)
    X, test = (oracles.sample_exact(p, n, rng)[0] for n in (600, 2000))
    grid = {"n_components": [1, 8], "learning_rate": [1e-4, 0.1, 1.0]}
    search = GridSearchCV(
        BernoulliRBM(n_iter=20, random_state=0), grid, scoring=log_likelihood_scorer, cv=3
    ).fit(X)
    likelihoods = [
        oracles.log_likelihood(
            parameters(BernoulliRBM(n_iter=20, random_state=0, **params).fit(X)), test
        ).mean()
        for params in search.cv_results_["params"]
    ]
    best = oracles.log_likelihood(parameters(search.best_estimator_), test).mean()
    assert max(likelihoods) - best < 0.3
    assert max(likelihoods) - min(likelihoods) > 0.3


@pytest.mark.filterwarnings("ignore::skrbm.AnnealingWarning")
def test_large_discrete_models_are_annealed_in_single_precision(monkeypatch):
    # Slips: real-valued data, which single precision rounds; weights beyond its good range.
    seen = []
    to = annealing.TemperedPath.to
    monkeypatch.setattr(ArrayModel, "min_single_weights", 12)
    monkeypatch.setattr(
        annealing.TemperedPath,
        "to",
        lambda machine, *others: seen.append(machine.weights.dtype) or to(machine, *others),
    )
    for kind, scale, dtype in (("bernoulli", 1, "f4"), ("bernoulli", 1e4, "f8"), ("cho", 1, "f8")):
        rbm = assigned(random_machine(kind, 4, 3)[0])
        rbm.components_ *= scale
        rbm.log_partition("ais", n_chains=4, n_temperatures=9, X=np.eye(4))
        assert seen.pop() == dtype


@pytest.mark.parametrize("n_components", [1024, 3000])
def test_layers_of_any_size_are_counted(n_components):
    """Catches two to the power of a thousand taken for a floating-point number."""
    rbm = BernoulliRBM(n_components, n_iter=1, random_state=0).fit(np.eye(3))
    assert rbm.log_partition().method == "exact"
    assert np.isfinite(rbm.log_likelihood(np.eye(3))).all()
    rbm.set_params(algorithm="exact").partial_fit(np.eye(3))
    wide = BernoulliRBM(n_components, n_iter=1, random_state=0).fit(np.eye(30))
    with pytest.raises(ValueError, match=f"30 visible .* {n_components} hidden .*method='ais'"):
        wide.log_partition("exact")


def test_a_likelihood_above_one_is_warned_of():
    """Catches log Z from chains that all miss a mode, agreed upon by all of them."""
    rbm = BernoulliRBM(1)
    rbm.components_ = np.full((1, 40), 2.0)  # two far modes: all on with the hidden unit, or off
    rbm.intercept_visible_, rbm.intercept_hidden_ = np.full(40, -1.0), np.zeros(1)
    X = np.repeat([[0.0], [1.0]], 40, axis=1)
    exact = rbm.log_partition("exact")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rbm.log_likelihood(X, exact)
        rbm.log_likelihood(np.repeat(X, 50, axis=0), float(exact))
        rbm.log_likelihood(0.8 * X + 0.1, exact)  # gray
    low = LogPartition(float(exact) - 15, 0.01, "ais", 100, 1000, 99.9)
    for value, advice in ((low, "reverse_ais"), (float(low), "log-partition of this model")):
        with pytest.warns(AnnealingWarning, match=f"sum to more than one.*{advice}"):
            rbm.log_likelihood(sp.csr_array(X), value)
    for value in (np.nan, np.inf, "exact"):
        with pytest.raises(ValueError, match="'log_partition' parameter of log_likelihood"):
            rbm.log_likelihood(X, value)


def with_stored_zeros(X):
    n_rows, n_columns = X.shape
    columns = np.tile(np.arange(n_columns), n_rows)
    return sp.csr_array((X.ravel(), columns, np.arange(0, X.size + 1, n_columns)), X.shape)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, with_stored_zeros])
@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 1.0), (-1.0, 0.0, 1.0)])
def test_bound_from_rows_counts_each_state_once(form, values):
    """Slips: equal rows with 0 and -0 apart, or zeros stored and not; zeros as states of spins."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, -0.0, 0.0, 1.0], size=(600, 4))
    X[:300] = rng.choice(values, size=(300, 4))
    X[::7, 0] = 0.5
    if form is np.asarray:
        X[::9, 1] = np.nan
    states = {tuple(row) for row in X.tolist() if set(row) <= set(values)}
    free_energy = (X + 1) @ np.arange(1, 5) / 9
    expected = np.log(sum(np.exp(-(np.array(v) + 1) @ np.arange(1, 5) / 9) for v in states))
    bound = annealing.attained_by_rows(form(X), free_energy, values)
    np.testing.assert_allclose(bound, expected, rtol=1e-12)


def test_likelihood_of_sparse_rows_takes_little_memory():
    """Slips: rows made dense for the bound (100 MB), or to find those that are states (20 MB)."""
    X = sp.csr_array(np.eye(1000, 5000, dtype=np.float32))
    rbm = BernoulliRBM(2, n_iter=0, batch_size=100, random_state=0).fit(X)
    tracemalloc.start()
    log_likelihood_scorer(rbm, X)
    with pytest.warns(AnnealingWarning, match="sum to more than one"):
        np.testing.assert_array_equal(rbm.log_likelihood(X, -100.0), 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


def test_starts_that_would_be_ignored_or_say_nothing_are_refused():
    rbm = BernoulliRBM(2, n_iter=1, random_state=0).fit(np.eye(3))
    for method in ("ais", "exact", "auto", "bar"):
        with pytest.raises(ValueError, match="init expected to be None for method="):
            rbm.log_partition(method, init=np.eye(3))
    with pytest.raises(ValueError, match=r"at least 2 rows.*got shape \(1, 3\)"):
        rbm.log_partition("reverse_ais", init=np.eye(3)[:1], n_temperatures=9)


@pytest.mark.slow
def test_scores_of_wide_laws_take_bounded_memory():
    """Catches arrays of as many rows as the data times as many nodes as the quadrature."""
    rbm = GaussianBernoulliRBM(1)
    rbm.components_, rbm.intercept_hidden_ = np.array([[300.0, 300.0]]), np.zeros(1)
    rbm.intercept_visible_ = np.zeros(2)
    rbm.noise_variance_ = np.ones(2)
    X = np.zeros((60_000, 2))
    rbm.score_samples(X[:10])
    tracemalloc.start()
    rbm.score_samples(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_rows_are_at_most_certain():
    # Slips: probabilities above one by the errors of annealing, of sums over missing values, or of
    # single precision; gray rows, whose scores are no probabilities, at zero.
    rbm = BernoulliRBM(1)
    rbm.components_, rbm.intercept_hidden_ = np.zeros((1, 3)), np.zeros(1)
    rbm.intercept_visible_ = np.array([18823.38258227, -5407.73412096, 13899.71729008])
    row = np.array([[1, 0, 1]], dtype=np.float32)
    np.testing.assert_array_equal(rbm.log_likelihood(row), 0)
    low = rbm.log_partition().value - 0.5
    with pytest.warns(AnnealingWarning, match="sum to more than one"):
        np.testing.assert_array_equal(rbm.log_likelihood(row.astype(float), low), 0)
    rbm.intercept_visible_ = np.full(3, -9.0)
    rbm.set_params(check_input="ignore")
    assert rbm.log_likelihood([[-0.5, 0.0, 0.0]])[0] > 4
    rng = np.random.default_rng(0)
    X = (rng.random((500, 30)) < np.r_[0.999, np.full(29, 0.5)]).astype(float)
    rbm = BernoulliRBM(20, n_iter=5, random_state=0, missing="marginalize").fit(X)
    rows = np.full((3, 30), np.nan)
    rows[:, 0] = 1
    assert rbm.log_likelihood(rows, n_chains=20, n_temperatures=100, random_state=0).max() <= 0
    X = np.where(X[:, :2] > 0, "yes", "no")
    table = TabularRBM(2, kinds={0: "categorical", 1: "binary"}, n_iter=2, random_state=0).fit(X)
    assert table.log_likelihood(X, -100.0).max() == 0


@pytest.mark.parametrize("parameterization", ["cho", "krizhevsky", "goodfellow"])
def test_energies_of_large_single_precision_numbers_are_those_of_double_precision(parameterization):
    # Slips: annealing, or free energies, whose differences are lost beside squares of 1e9.
    rng = np.random.default_rng(0)
    X = 3e4 + rng.integers(2, size=(400, 1)) * 4.0 + rng.normal(size=(400, 8))
    options = {"parameterization": parameterization, "n_iter": 2, "random_state": 0}
    single = GaussianBernoulliRBM(4, **options).fit(X.astype(np.float32))
    single.noise_variance_[:] = 1  # others have other logarithms in single precision
    double = GaussianBernoulliRBM(4, **options).fit(X)
    for name in ("components_", "intercept_visible_", "intercept_hidden_", "noise_variance_"):
        setattr(double, name, getattr(single, name).astype(np.float64))
    sizes = {"n_chains": 200, "n_temperatures": 200, "random_state": 0, "X": X[:100]}
    values = [rbm.log_partition("ais", **sizes).value for rbm in (single, double)]
    assert values[0] == pytest.approx(values[1], abs=1e-3)
    X = X.astype(np.float32)
    log_likelihood = single.log_likelihood(X)
    assert log_likelihood.dtype == np.float32
    np.testing.assert_allclose(log_likelihood, double.log_likelihood(X.astype(float)), atol=1e-3)
