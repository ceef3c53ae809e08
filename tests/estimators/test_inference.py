"""Inference: what a model says follows its public arrays, and nothing else moves."""

import copy
import inspect
import itertools
import tracemalloc

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from estimators.instances import (
    DISCRETE_KINDS,
    ESTIMATORS,
    KINDS,
    assert_same_arrays,
    assigned,
    bits,
    kind_of,
    learned_bits,
    new,
    parameters,
    random_machine,
)
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skrbm import (
    BernoulliRBM,
    GaussianBernoulliRBM,
    RBMClassifier,
    to_bernoulli,
    to_spin,
)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


# Every public method that takes data, as a function of estimator, visible and hidden states.
ORACLES = {
    "transform": lambda p, v, h: oracles.mean_hidden(p, v),
    "inverse_transform": lambda p, v, h: oracles.mean_visible(p, h),
    "score_samples": lambda p, v, h: oracles.log_pseudo_likelihood(p, v),
    "score": lambda p, v, h: oracles.log_pseudo_likelihood(p, v).mean(),
    "free_energy": lambda p, v, h: oracles.free_energy(p, v),
    "energy": lambda p, v, h: np.diag(oracles.energy(p, v, h)),
    "log_likelihood": lambda p, v, h: oracles.log_likelihood(p, v),
}
CALLS = {
    "transform": lambda rbm, v, h: rbm.transform(v),
    "inverse_transform": lambda rbm, v, h: rbm.inverse_transform(h),
    "score_samples": lambda rbm, v, h: rbm.score_samples(v),
    "score": lambda rbm, v, h: rbm.score(v),
    "free_energy": lambda rbm, v, h: rbm.free_energy(v),
    "energy": lambda rbm, v, h: rbm.energy(v, h),
    "log_likelihood": lambda rbm, v, h: rbm.log_likelihood(v),
    "ais": lambda rbm, v, h: rbm.log_partition("ais", n_chains=60, n_temperatures=40),
    "reverse_ais": lambda rbm, v, h: rbm.log_partition(
        "reverse_ais", n_chains=60, n_temperatures=40
    ),
    "inpaint": lambda rbm, v, h: rbm.inpaint(v, v < 0.5, n_gibbs_steps=2),
    "impute": lambda rbm, v, h: rbm.impute(np.where(v < 0.5, v, np.nan), n_gibbs_steps=2),
    "tempered sample": lambda rbm, v, h: rbm.sample(3, 2, n_temperatures=3),
    "heated sample": lambda rbm, v, h: rbm.sample(3, 2, temperature=2.0),
    "gibbs": lambda rbm, v, h: rbm.gibbs(v),
    "sample": lambda rbm, v, h: rbm.sample(init=v, n_gibbs_steps=1),
    "_mean_hiddens": lambda rbm, v, h: rbm._mean_hiddens(v),
    "_free_energy": lambda rbm, v, h: rbm._free_energy(v),
    "get_feature_names_out": lambda rbm, v, h: rbm.get_feature_names_out(),
}


@pytest.fixture(params=ORACLES)
def method(request):
    return request.param


# Against the oracles; the arrays are assigned by hand on a fresh object, without fit


def test_methods_agree_with_enumeration_and_quadrature(kind, method):
    """Catches expit(x) for expit(2x) and p for 2p - 1 of spins, sigma for its square, an energy
    of another sign than the conditionals, a random or clipped pseudo-likelihood.
    """
    p, v, h = random_machine(kind)
    result = CALLS[method](assigned(p), v[:10], h[:10])
    expected = ORACLES[method](p, v[:10], h[:10])
    tolerance = 1e-6 if method.startswith("score") else 1e-9
    np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance)


def test_pseudo_likelihood_of_confident_models_does_not_overflow(kind):
    """Catches log(1 + exp(x)) and the logarithm of a clipped probability."""
    p, v, _ = random_machine(kind, scale=30.0)
    rbm = assigned(p)
    np.testing.assert_allclose(
        rbm.score_samples(v[:5]), oracles.log_pseudo_likelihood(p, v[:5]), rtol=1e-7, atol=1e-6
    )
    assert np.isfinite(rbm.free_energy(v)).all()


def test_lists_may_be_assigned(kind, method):
    """Catches arithmetic that takes the attributes for arrays."""
    p, v, h = random_machine(kind)
    expected = CALLS[method](assigned(p), v, h)
    rbm = assigned(p)
    for name in ("components_", *rbm._layer_arrays):
        setattr(rbm, name, getattr(rbm, name).tolist())
    np.testing.assert_array_equal(CALLS[method](rbm, v.tolist(), h.tolist()), expected)


@pytest.mark.every_kind
def test_edited_arrays_are_followed(kind, method):
    """Catches a model that is cached."""
    _, v, h = random_machine(kind)
    other = random_machine(kind, seed=1)[0]
    rbm = new(kind, random_state=0).fit(v)
    CALLS[method](rbm, v, h)
    rbm.components_[...] = other.weights.T
    rbm.intercept_visible_ = other.visible_bias
    rbm.intercept_hidden_[:] = other.hidden_bias
    if other.is_gaussian:
        rbm.noise_variance_ = np.exp(other.log_variance)
    np.testing.assert_allclose(
        CALLS[method](rbm, v, h), CALLS[method](assigned(other), v, h), rtol=1e-12
    )


@pytest.mark.parametrize("algorithm", ["pcd", "cd", "exact"])
@pytest.mark.parametrize("as_lists", [False, True])
def test_partial_fit_goes_on_from_assigned_arrays(kind, algorithm, as_lists):
    """Catches a partial_fit that starts anew, or that trains arrays in the user's hands."""
    p, v, _ = random_machine(kind)
    rbm = assigned(p, algorithm=algorithm, learning_rate=1e-6, random_state=0)
    given = {name: getattr(rbm, name) for name in ("components_", *rbm._layer_arrays)}
    if as_lists:
        given = {name: array.tolist() for name, array in given.items()}
        vars(rbm).update(given)
    kept = copy.deepcopy(given)
    rbm.partial_fit(v)
    for name, array in given.items():
        np.testing.assert_array_equal(array, kept[name])
        np.testing.assert_allclose(getattr(rbm, name), array, atol=1e-3)
        assert np.any(getattr(rbm, name) != array)
    assert rbm.n_features_in_ == 4


def test_transform_of_spins_is_a_mean_and_not_a_probability():
    p, v, _ = random_machine("spin")
    expected = np.tanh(v @ p.weights + p.hidden_bias)
    np.testing.assert_allclose(assigned(p).transform(v), expected, atol=1e-12)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize("kind", DISCRETE_KINDS)
def test_sparse_rows_give_the_same(kind, form):
    """Catches offsets subtracted from stored values only, and rows lost in a conversion."""
    p, v, h = random_machine(kind)
    for name in ("transform", "score_samples", "free_energy", "energy", "gibbs", "sample"):
        results = [CALLS[name](assigned(p, random_state=0), states, h) for states in (v, form(v))]
        assert type(results[1]) is np.ndarray
        np.testing.assert_allclose(results[1], results[0], atol=1e-12, err_msg=name)


def test_results_have_the_precision_of_the_data(kind, method):
    """Catches single precision that is lost, and double precision that is not used."""
    p, v, h = random_machine(kind)
    v, h = v.astype(np.float32), h.astype(np.float32)
    single = CALLS[method](assigned(p), v, h)
    double = CALLS[method](assigned(p), v.astype(float), h.astype(float))
    if method == "score":
        assert type(single) is type(double) is float
    else:
        assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-3)


def test_rows_are_worked_on_in_blocks_without_a_seam(kind):
    """Catches rows that are dropped or repeated where blocks meet, or that depend on n_jobs."""
    p, v, _ = random_machine(kind, 2, 2)
    rows = np.resize(v, (2500, 2))
    rbm = assigned(p)
    for call in (rbm.transform, rbm.free_energy, rbm.score_samples):
        expected = np.concatenate([call(rows[i : i + 250]) for i in range(0, 2500, 250)])
        np.testing.assert_allclose(call(rows), expected, atol=1e-12)
        np.testing.assert_array_equal(
            call(rows), getattr(rbm.set_params(n_jobs=2), call.__name__)(rows)
        )


# Sampling


def assert_law(v, p):
    """Samples have the law p(v) of a discrete machine: every state within 4 standard errors.

    For Gaussian units, mean and variance of every feature and the mean of every hidden unit.
    """
    n = len(v)
    if not p.is_gaussian:
        states = oracles.states(p.visible_values, v.shape[1])
        expected = oracles.model_probabilities(p)
        observed = (v[:, None, :] == states).all(axis=2).mean(axis=0)
        assert observed.sum() == pytest.approx(1)
        error = np.sqrt(expected * (1 - expected) / n)
        assert (np.abs(observed - expected) < 4 * error + 1 / n).all()
        return
    h, law = oracles.hidden_states(p), oracles.hidden_probabilities(p)
    mean, variance = oracles.mean_visible(p, h), oracles.variance_visible(p, h)
    for values, expected in (
        (v, law @ mean),
        (v**2, law @ (variance + mean**2)),
        (oracles.mean_hidden(p, v), law @ h),
    ):
        error = values.std(axis=0) / np.sqrt(n)
        assert (np.abs(values.mean(axis=0) - expected) < 4 * error).all()


@pytest.mark.parametrize("draw", ["gibbs", "sample"])
def test_gibbs_steps_leave_the_law_as_it_is(kind, draw):
    """Catches expit(x) for expit(2x), Gaussian samples without noise or with sigma for its square,
    and means in place of samples: exact samples keep their law.
    """
    p, _, _ = random_machine(kind, 3, 2)
    v, _ = oracles.sample_exact(p, 20_000, np.random.default_rng(0))
    rbm = assigned(p, random_state=0)
    assert_law(rbm.gibbs(v) if draw == "gibbs" else rbm.sample(init=v, n_gibbs_steps=2), p)


def test_chains_reach_the_law_from_their_own_start(kind):
    """Catches chains that stay at the start, or restart."""
    p, _, _ = random_machine(kind, 3, 2, scale=0.5)
    assert_law(assigned(p, random_state=0).sample(5_000, 200), p)


def heated(p, temperature):
    """Oracle parameters of the distribution p(v, h) to the power of one over a temperature."""
    if not p.is_gaussian:
        scaled = ("weights", "visible_bias", "hidden_bias")
        return p.replace(**{name: getattr(p, name) / temperature for name in scaled})
    # The signal of krizhevsky's energy has one sigma, that of the others two.
    gain = temperature**-0.5 if p.kind == "krizhevsky" else 1.0
    return p.replace(
        log_variance=p.log_variance + np.log(temperature),
        hidden_bias=p.hidden_bias / temperature,
        weights=p.weights * gain,
    )


TEMPERED = [(kind, temperature, 1) for kind in KINDS for temperature in (0.6, 2.0)]
TEMPERED += [(kind, (0.6, 2.0)[i % 2], 3) for i, kind in enumerate(KINDS)]  # every pair is there


@pytest.mark.parametrize(("kind", "temperature", "n_temperatures"), TEMPERED)
def test_samples_have_the_law_of_the_temperature(kind, temperature, n_temperatures):
    """Slips: the visible marginal to a power; a base that is heated too; chains at one."""
    p, _, _ = random_machine(kind, 3, 2)
    v, _ = oracles.sample_exact(heated(p, temperature), 20_000, np.random.default_rng(0))
    rbm = assigned(p, random_state=0)
    options = {"temperature": temperature, "n_temperatures": n_temperatures}
    assert_law(rbm.sample(init=v, n_gibbs_steps=2, **options), heated(p, temperature))


@pytest.mark.parametrize("temperature", [0, -1.0, np.nan, np.inf, "hot"])
def test_temperatures_that_are_not_positive_are_refused(temperature):
    rbm = assigned(random_machine("spin")[0])
    with pytest.raises(ValueError, match=f"temperature.*{temperature}"):
        rbm.sample(3, 1, temperature=temperature)


def test_states_are_of_the_units_kind(kind):
    p, v, _ = random_machine(kind)
    rbm = assigned(p)
    sample, step = rbm.sample(7, 3), rbm.gibbs(v)
    assert (sample.shape, step.shape) == ((7, 4), v.shape)
    assert step.dtype == (bool if kind == "bernoulli" else np.float64)
    if kind in DISCRETE_KINDS:
        assert set(np.unique(sample)) == set(np.unique(step)) == set(p.visible_values)
    assert rbm.sample().shape == (1, 4)


def test_successive_draws_differ_and_a_seed_repeats_them(kind):
    """Catches a stream that is opened anew in every call."""
    p, v, _ = random_machine(kind)
    rbm, twin = assigned(p, random_state=0), assigned(p, random_state=0)
    for call in ("gibbs", "sample"):
        first, second = CALLS[call](rbm, v, None), CALLS[call](rbm, v, None)
        assert np.any(first != second)
        np.testing.assert_array_equal(CALLS[call](twin, v, None), first)
        CALLS[call](twin, v, None)
    before = bits(rbm)
    seeded = rbm.sample(5, 2, random_state=3)
    np.testing.assert_array_equal(rbm.sample(5, 2, random_state=3), seeded)
    np.testing.assert_array_equal(rbm.sample(5, 2, random_state=np.random.RandomState(3)), seeded)
    assert bits(rbm) == before


def test_sampling_resumes_from_init(kind):
    """Catches an init that is ignored: no steps return it, and one step of strong coupling stays."""
    p, v, _ = random_machine(kind)
    rbm = assigned(p)
    np.testing.assert_array_equal(rbm.sample(init=v, n_gibbs_steps=0), v)
    np.testing.assert_array_equal(rbm.sample(len(v), 0, init=v), v)
    with pytest.raises(ValueError, match=r"n_samples=3 .*rows of init.*\(50, 4\)"):
        rbm.sample(3, init=v)
    with pytest.raises(ValueError, match=r"'n_samples' parameter.*Got 0 instead"):
        rbm.sample(0)
    with pytest.raises(ValueError, match=r"'n_gibbs_steps' parameter.*Got -1 instead"):
        rbm.sample(1, -1)


# Inference leaves no trace


@pytest.mark.every_kind
@pytest.mark.parametrize("name", CALLS)
def test_inference_adds_and_changes_no_attribute(kind, name):
    """Catches caches, moved chains and a training stream that is drawn from."""
    _, v, h = random_machine(kind)
    rbm = new(kind, random_state=0).fit(v)
    stream = ("_streams.inference",)
    names, before = set(vars(rbm)), bits(rbm, without=stream)
    CALLS[name](rbm, v, h)
    assert set(vars(rbm)) == names
    assert bits(rbm, without=stream) == before


# Other states


@pytest.mark.parametrize(
    ("kind", "convert", "back"),
    [("spin", to_bernoulli, to_spin), ("bernoulli", to_spin, to_bernoulli)],
)
def test_spin_and_bernoulli_are_one_model_in_two_spellings(kind, convert, back):
    """Catches a factor of 2 or 4, or a bias that forgets the weights' sum."""
    p, v, _ = random_machine(kind)
    rbm = new(kind, learning_rate=0.3, random_state=0).fit(v)
    vars(rbm).update(vars(assigned(p)) | rbm.get_params())
    before = bits(rbm)
    twin = convert(rbm)
    assert bits(rbm) == before
    q = parameters(twin)
    np.testing.assert_allclose(
        oracles.model_probabilities(q), oracles.model_probabilities(p), atol=1e-12
    )
    low, high = q.hidden_values
    assert set(np.unique(twin.h_samples_)) <= {low, high}
    assert back(twin).get_params() == pytest.approx(rbm.get_params())
    assert kind_of(twin) == {"spin": "bernoulli", "bernoulli": "spin"}[kind]
    assert_same_arrays(back(twin), rbm, atol=1e-12)
    twin.partial_fit(oracles.sample_exact(q, 20, np.random.default_rng(0))[0])


# Names that clients of scikit-learn's class call


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        *itertools.product(KINDS, [np.asarray, np.ndarray.tolist, np.ndarray.astype]),
        *itertools.product(DISCRETE_KINDS, [sp.csr_array]),
    ],
)
@pytest.mark.parametrize("rng", [np.random.RandomState, np.random.default_rng])
def test_private_names_of_scikit_learns_class_work(kind, form, rng):
    """Catches an alias that takes one shape, one container or one kind of generator only."""
    p, v, h = random_machine(kind)
    rbm = assigned(p)
    as_given = (lambda x: x.astype(np.float32)) if form is np.ndarray.astype else form
    tolerance = 1e-4 if form is np.ndarray.astype else 1e-12
    for call, expected in (
        (rbm._mean_hiddens, rbm.transform(v)),
        (rbm._free_energy, rbm.free_energy(v)),
    ):
        np.testing.assert_allclose(call(as_given(v)), expected, atol=tolerance)
        if form is not sp.csr_array:
            np.testing.assert_allclose(call(as_given(v[0])), expected[0], atol=tolerance)
    for call, states, width in ((rbm._sample_hiddens, v, 3), (rbm._sample_visibles, h, 4)):
        drawn = call(as_given(states), rng(0))
        assert drawn.shape == (len(states), width)
        if form is not sp.csr_array:
            np.testing.assert_array_equal(
                call(as_given(states[:1]), rng(0))[0], call(as_given(states[0]), rng(0))
            )


def test_private_samples_have_the_conditional_law(kind):
    """Catches an alias that returns means or draws from the wrong layer; 4 standard errors."""
    p, v, h = random_machine(kind)
    rbm, rng, n = assigned(p), np.random.RandomState(0), 4000
    for call, states, mean, variance in (
        (rbm._sample_hiddens, v, oracles.mean_hidden(p, v[:1])[0], None),
        (
            rbm._sample_visibles,
            h,
            oracles.mean_visible(p, h[:1])[0],
            oracles.variance_visible(p, h[:1])[0],
        ),
    ):
        drawn = call(np.repeat(states[:1], n, axis=0), rng)
        low, high = p.hidden_values
        variance = (mean - low) * (high - mean) if variance is None else variance
        assert (np.abs(drawn.mean(axis=0) - mean) < 4 * np.sqrt(variance / n) + 1 / n).all()
        if len(np.unique(drawn)) <= 2:  # the mean of a two-state unit determines its law
            assert set(np.unique(drawn)) <= {low, high}
            continue
        square = (drawn - mean) ** 2
        error = 4 * square.std(axis=0) / np.sqrt(n)
        assert (np.abs(square.mean(axis=0) - variance) < error).all()


# Copies, and scikit-learn's tools


def test_clone_is_unfitted(kind):
    _, v, _ = random_machine(kind)
    rbm = new(kind, learning_rate=0.03, random_state=0).fit(v)
    twin = clone(rbm)
    assert vars(twin) == rbm.get_params()
    assert learned_bits(twin.fit(v)) == learned_bits(rbm)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_constructor_stores_and_takes_keywords_after_n_components(estimator):
    parameters = inspect.signature(estimator).parameters
    given = {name: object() for name in parameters}
    assert vars(estimator(**given)) == given
    positional = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == ["n_components"]


def test_names_of_the_features(kind):
    rbm = assigned(random_machine(kind)[0])
    prefix = type(rbm).__name__.lower()
    assert list(rbm.get_feature_names_out()) == [f"{prefix}{i}" for i in range(3)]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_grid_search_needs_no_scoring(estimator):
    """Catches a score that is an array or None."""
    X = np.random.default_rng(0).choice([0.0, 0.5, 1.0], (40, 4))
    search = GridSearchCV(
        estimator(2, random_state=0), {"n_components": [1, 2], "learning_rate": [0.001, 0.01]}, cv=2
    ).fit(X)
    assert type(search.score(X)) is float
    assert search.score(X) == search.best_estimator_.score_samples(X).mean()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pipeline_and_subclasses(estimator):
    """Catches an __init__ that a subclass with arguments of its own cannot extend."""

    class Labelled(estimator):
        def __init__(self, n_components=4, *, label="a", learning_rate=0.01, random_state=None):
            super().__init__(n_components, learning_rate=learning_rate, random_state=random_state)
            self.label = label

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = np.repeat(2.0 * y[:, None] - 1, 5, axis=1)
    X = X if estimator is not BernoulliRBM else (X + 1) / 2
    flips = rng.random(X.shape) < 0.1
    X = np.where(flips, X.max() + X.min() - X, X)
    pipeline = make_pipeline(Labelled(random_state=0), LogisticRegression())
    pipeline.set_params(labelled__n_components=3).fit(X, y)
    assert pipeline[:-1].transform(X).shape == (60, 3)
    twin = clone(pipeline)
    assert twin.named_steps["labelled"].label == "a"
    np.testing.assert_array_equal(twin.fit(X, y).predict(X), pipeline.predict(X))


def test_arrays_edited_to_another_width_are_followed():
    """Catches methods that ask for the width of the data of an earlier fit."""
    X = np.random.default_rng(0).normal(size=(20, 4))
    rbm = GaussianBernoulliRBM(3, random_state=0).fit(X)
    for name in ("intercept_visible_", "noise_variance_"):
        setattr(rbm, name, np.ones(6))
    rbm.components_ = np.full((3, 6), 0.1)
    wide = np.tile(X, 2)[:, :6]
    assert rbm.transform(wide).shape == (20, 3)
    assert rbm.sample(init=wide, n_gibbs_steps=1).shape == (20, 6)
    with pytest.raises(ValueError, match=r"4 features.*expecting 6 features"):
        rbm.transform(X)


@pytest.mark.parametrize("method", ["transform", "free_energy", "energy", "gibbs"])
def test_input_is_cast_a_block_at_a_time(method):
    """Catches a cast of the whole input: 16 MB of booleans would become 128 MB."""
    X = np.zeros((80_000, 200), dtype=bool)
    rbm = BernoulliRBM(2, n_iter=0, check_input="ignore", random_state=0).fit(X[:10])
    others = (np.zeros((len(X), 2)),) if method == "energy" else ()
    tracemalloc.start()
    result = getattr(rbm, method)(X, *others)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < result.nbytes + X.nbytes + 32e6


@pytest.mark.slow
@pytest.mark.parametrize("is_labeled", [False, True])
def test_large_samples_take_little_memory_beside_the_result(is_labeled):
    """Slips: the initial states of all chains in one array; all chains of a classifier at once."""
    X = np.random.default_rng(0).integers(0, 2, (50, 100))
    rbm = BernoulliRBM(2, n_iter=1, random_state=0)
    model = RBMClassifier(rbm).fit(X, X[:, 0]) if is_labeled else rbm.fit(X)
    tracemalloc.start()
    result = model.sample(120_000, n_gibbs_steps=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    V = result[0] if is_labeled else result
    assert V.shape == (120_000, 100)
    assert peak < 1.5 * V.nbytes
