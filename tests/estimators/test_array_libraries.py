"""Arrays of other libraries under array API dispatch: results follow X, wherever it is."""

import pickle
from copy import copy
from functools import partial

import numpy as np
import pytest
from device_arrays import DeviceArray, counted, stand_in_only, to_device
from sklearn import config_context
from sklearn.base import clone

from skrbm import (
    BernoulliRBM,
    ComponentsDisplay,
    FreeEnergyDisplay,
    GaussianBernoulliRBM,
    HiddenUnitDisplay,
    RBMClassifier,
    RBMImputer,
    RBMOutlierDetector,
    SamplesDisplay,
    SpinRBM,
    TabularRBM,
    chain_diagnostics,
    effective_couplings,
    hidden_unit_report,
    log_likelihood_scorer,
    to_spin,
)
from skrbm.core.numerics import to_host

ESTIMATORS = [BernoulliRBM, SpinRBM, GaussianBernoulliRBM]
HIDDEN = [(kind, "binary") for kind in ESTIMATORS]
HIDDEN += [(BernoulliRBM, hidden) for hidden in ("gaussian", "relu", "drelu")]
PUBLIC = ("components_", "intercept_hidden_", "intercept_visible_", "h_samples_")
dispatched = partial(config_context, array_api_dispatch=True)

try:
    with dispatched():
        pass
except (
    ImportError
) as error:  # scikit-learn below 1.8 with an old SciPy, or without array-api-compat
    pytest.skip(f"No array API dispatch here: {error}", allow_module_level=True)


@pytest.fixture
def strict():
    """Library that has the array API standard's functions alone."""
    return pytest.importorskip("array_api_strict")


def rows_for(kind, n_samples=60):
    """Rows in the domain of an estimator, in two clusters."""
    rng = np.random.default_rng(0)
    bits = (rng.random((n_samples, 6)) < 0.3).astype(float)
    bits[::2, :3] = 1
    return {SpinRBM: 2 * bits - 1, GaussianBernoulliRBM: bits + rng.normal(0, 0.5, bits.shape)}.get(
        kind, bits
    )


def without_draws(kind, **options):
    """Estimator whose training draws nothing, so that its numbers are those of any library."""
    options = {"n_iter": 3, "algorithm": "exact", "shuffle": False, "random_state": 0} | options
    options |= {} if kind is GaussianBernoulliRBM else {"draw_states": False}
    return kind(3, **options)


def same_results(estimator, X, like):
    """Names of methods with their results for rows that `like` converts, as NumPy arrays."""
    rows = like(X)
    H = estimator.transform(rows)
    return {
        "transform": H,
        "inverse_transform": estimator.inverse_transform(H),
        "score_samples": estimator.score_samples(rows),
        "free_energy": estimator.free_energy(rows),
        "energy": estimator.energy(rows, H),
        "log_likelihood": estimator.log_likelihood(rows),
        "std_error": estimator.log_likelihood(rows, return_std=True)[1],
        "log_partition": np.array(float(estimator.log_partition())),
        "score": np.array(estimator.score(rows, sample_weight=like(np.ones(len(X))))),
        "scorer": np.array(log_likelihood_scorer(estimator, rows)),
    }


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("device", ["CPU_DEVICE", "device1"])
def test_results_of_a_library_on_the_host_are_those_of_numpy_arrays(strict, kind, dtype, device):
    X, weights = rows_for(kind).astype(dtype), np.linspace(0, 2, 60)
    expected = kind(3, n_iter=2, random_state=0).fit(X, sample_weight=weights)
    like = partial(strict.asarray, device=strict.Device(device))
    with dispatched():
        rbm = clone(expected).fit(like(X), sample_weight=like(weights))
        results = same_results(rbm, X, like) | {name: getattr(rbm, name) for name in PUBLIC}
    numbers = same_results(expected, X, np.asarray) | {n: getattr(expected, n) for n in PUBLIC}
    for name, array in results.items():
        if not isinstance(array, np.ndarray):  # as the number of a score
            assert array.device == strict.Device(device), name
        np.testing.assert_array_equal(np.from_dlpack(array), numbers[name], err_msg=name)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_draws_are_in_the_library_of_the_fitted_arrays(strict, kind):
    X = rows_for(kind)
    options = {"n_gibbs_steps": 3, "random_state": 0}
    expected = kind(3, n_iter=1, random_state=0).fit(X)
    with dispatched():
        rbm = clone(expected).fit(strict.asarray(X))
        for actual, numbers in (
            (rbm.sample(4, **options), expected.sample(4, **options)),
            (rbm.gibbs(strict.asarray(X)), expected.gibbs(X)),
            (
                rbm.inpaint(strict.asarray(X), strict.asarray(X > 0), **options),
                expected.inpaint(X, X > 0, **options),
            ),
        ):
            assert type(actual) is type(strict.asarray(1))
            np.testing.assert_array_equal(np.from_dlpack(actual), numbers)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_exact_fit_on_a_device_is_that_on_the_host(kind):
    X = rows_for(kind)
    expected = without_draws(kind).fit(X)
    with dispatched():
        rbm = without_draws(kind).fit(to_device(X))
        for name in PUBLIC:
            array = getattr(rbm, name)
            assert isinstance(array, DeviceArray), name
            np.testing.assert_allclose(to_host(array), getattr(expected, name), atol=1e-9)
        results = same_results(rbm, X, to_device)
    for name, numbers in same_results(expected, X, np.asarray).items():
        array = results[name]
        assert isinstance(array, DeviceArray) or array.ndim == 0, name
        np.testing.assert_allclose(to_host(array), numbers, atol=1e-8, err_msg=name)


@pytest.mark.parametrize(("kind", "hidden"), HIDDEN)
def test_early_stopping_on_a_device_keeps_the_epoch_that_it_keeps_on_the_host(kind, hidden):
    """Slip: the best machine, which is on the host, in place of the one on the device."""
    X = rows_for(kind)
    options = {"hidden_units": hidden, "early_stopping": True, "learning_rate": 0.02}
    expected = without_draws(kind, **options).fit(X)
    with dispatched():
        rbm = without_draws(kind, **options).fit(to_device(X))
    for name in rbm._public_names:
        assert isinstance(getattr(rbm, name), DeviceArray), name
        numbers = getattr(expected, name)
        np.testing.assert_allclose(to_host(getattr(rbm, name)), numbers, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("algorithm", ["exact", "pcd"])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_training_continues_on_the_host_once_the_public_arrays_are_there(kind, algorithm):
    """Slip: a state of training that is still on the device."""
    X = rows_for(kind)
    expected = without_draws(kind, algorithm=algorithm).fit(X).partial_fit(X)
    with dispatched():
        rbm = without_draws(kind, algorithm=algorithm).fit(to_device(X))
    for name in (*rbm._public_names, "h_samples_"):
        setattr(rbm, name, to_host(getattr(rbm, name)))
    assert DeviceArray.__module__.partition(".")[0].encode() not in pickle.dumps(rbm)
    rbm.partial_fit(X)
    if algorithm == "exact":
        for name in rbm._public_names:
            np.testing.assert_allclose(getattr(rbm, name), getattr(expected, name), atol=1e-9)


@pytest.mark.parametrize("algorithm", ["pcd", "cd", "pt"])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_fits_and_draws_run_on_a_device_to_their_end(kind, algorithm):
    """They can only fail by an exception, or by an array that is not on the device."""
    X = rows_for(kind)
    rbm = kind(3, n_iter=2, algorithm=algorithm, random_state=0)
    with dispatched():
        rbm.fit(to_device(X), sample_weight=np.linspace(0, 2, len(X))).partial_fit(to_device(X))
        drawn = rbm.sample(3, n_gibbs_steps=5), rbm.sample(3, n_gibbs_steps=5, n_temperatures=2)
        for array in (*drawn, rbm.gibbs(to_device(X))):
            assert np.isfinite(to_host(array)).all()
        for method in ("ais", "reverse_ais", "bar"):
            rbm.log_partition(method=method, n_chains=10, n_temperatures=40, random_state=0)
    if kind is not GaussianBernoulliRBM:
        assert np.isfinite(effective_couplings(rbm).pairs).all()  # computed on the host


IMAGES = {"image_shape": (2, 3), "n_gibbs_steps": 2, "random_state": 0}
REPORTS = {
    "report": lambda rbm, X: hidden_unit_report(rbm, X, n_samples=5, random_state=0).importance,
    "chains": lambda rbm, X: chain_diagnostics(
        rbm, n_steps=8, init=X[:4, :], random_state=0
    ).traces["free_energy"],
    "free energy": lambda rbm, X: (
        FreeEnergyDisplay.from_estimator(rbm, X[:30, :], X[30:, :]).held_out
    ),
    "hidden unit": lambda rbm, X: HiddenUnitDisplay.from_estimator(rbm, X, 0).counts,
    "components": lambda rbm, X: ComponentsDisplay.from_estimator(rbm, image_shape=(2, 3)).images,
    "samples": lambda rbm, X: np.stack(
        list(SamplesDisplay.from_estimator(rbm, X, mask=X[0, :] > 0, **IMAGES).rows.values())
    ),
}


@pytest.mark.parametrize("library", ["strict", "device"])
@pytest.mark.parametrize("name", REPORTS)
def test_reports_and_plots_take_rows_of_numpy_and_of_the_library_of_the_model(
    name, library, request
):
    """Slip: methods that refuse rows of a library other than that of the public arrays."""
    pytest.importorskip("matplotlib").use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X = rows_for(BernoulliRBM)
    like = to_device if library == "device" else request.getfixturevalue("strict").asarray
    expected = BernoulliRBM(3, n_iter=2, random_state=0).fit(X)
    rbm = copy(expected)
    for array in PUBLIC:
        setattr(rbm, array, like(getattr(expected, array)))
    for rows in (X, like(X)):
        with dispatched():
            numbers = REPORTS[name](rbm, rows)
        assert type(numbers) is np.ndarray
        np.testing.assert_array_equal(numbers, REPORTS[name](expected, X))
    pyplot.close("all")


@pytest.mark.parametrize("is_strict", [False, True])
def test_arrays_of_twins_are_all_in_the_library_of_the_model(strict, is_strict):
    """Slip: chains on the device beside parameters on the host."""
    X, library = rows_for(BernoulliRBM), strict.asarray if is_strict else to_device
    with dispatched():
        twin = to_spin(BernoulliRBM(3, n_iter=1, random_state=0).fit(library(X)))
        assert {type(getattr(twin, name)) for name in PUBLIC} == {type(library(X))}
        assert isinstance(twin.transform(library(2 * X - 1)), type(library(X)))


@stand_in_only
def test_rows_are_not_copied_to_the_device_again(seed):
    X = rows_for(BernoulliRBM, 600)
    sizes = []
    with dispatched():
        for n_iter in (2, 12):
            rbm = BernoulliRBM(3, n_iter=n_iter, batch_size=300, random_state=seed)
            rbm._left_out = frozenset({"jumps"})
            with counted() as transfers:
                rbm.fit(to_device(X))
            sizes.append(dict(transfers))
    assert sizes[0]["to device"] == sizes[1]["to device"]
    assert sizes[0]["to host"] == sizes[1]["to host"]  # both record two epochs


def test_results_that_cannot_follow_are_refused_by_name(strict):
    X = rows_for(BernoulliRBM)
    with dispatched():
        rbm = BernoulliRBM(3, n_iter=1, random_state=0).fit(strict.asarray(X))
        on_device = to_device(X)
        library = type(on_device).__module__.partition(".")[0]
        for rows, place in ((X, "NumPy"), (on_device, library)):
            with pytest.raises(ValueError, match=rf"transform\(\) must use the same .* {place}"):
                rbm.transform(rows)
        rbm.fit(X)
        with pytest.raises(
            ValueError, match=r"fitted arrays, which are in NumPy, got array_api_strict on "
        ):
            rbm.score_samples(strict.asarray(X))


def test_a_failed_fit_leaves_arrays_where_they_are():
    X = rows_for(BernoulliRBM)
    rbm = BernoulliRBM(3, n_iter=1, random_state=0).fit(X)
    before = rbm.components_
    with dispatched(), pytest.raises(ValueError, match="NaN"):
        rbm.fit(to_device(np.full_like(X, np.nan)))
    assert rbm.components_ is before


HOST_ONLY = {
    "table": TabularRBM(3, n_iter=2, random_state=0),
    "classifier": RBMClassifier(BernoulliRBM(3, n_iter=2, random_state=0), unlabeled=-1),
    "imputer": RBMImputer(BernoulliRBM(3, n_iter=2, random_state=0)),
    "imputer of tables": RBMImputer(TabularRBM(3, n_iter=2, random_state=0)),
    "detector": RBMOutlierDetector(BernoulliRBM(3, n_iter=2, random_state=0)),
}


@pytest.mark.parametrize("library", ["strict", "device"])
@pytest.mark.parametrize("name", HOST_ONLY)
def test_rows_of_other_libraries_are_refused_where_numpy_computes(name, library, request):
    """Slip: half of a method computed, with results in two libraries or an error from within."""
    assert all(kind().__sklearn_tags__().array_api_support for kind in ESTIMATORS)
    estimator = HOST_ONLY[name]
    assert not estimator.__sklearn_tags__().array_api_support
    X, y = rows_for(BernoulliRBM), np.arange(60) % 3 - 1
    rows = (to_device if library == "device" else request.getfixturevalue("strict").asarray)(X)
    fitted = clone(estimator).fit(X, y)
    calls = [(each, "fit", (rows, y)) for each in (clone(estimator), fitted)]
    for method in ("predict", "transform", "score_samples", "gibbs", "impute"):
        calls += [(fitted, method, (rows,))] * hasattr(fitted, method)
    if name == "classifier":
        calls += [(fitted, "score", (rows, y)), (fitted, "partial_fit", (rows, y))]
    if name == "table":
        calls += [(fitted, "partial_fit", (rows,)), (fitted, "conditional_mean", (rows, 0))]
    for each, method, arguments in calls:
        with dispatched(), pytest.raises(TypeError, match=f"{type(each).__name__} does not comp"):
            getattr(each, method)(*arguments)
    with dispatched():
        clone(estimator).fit(X, y)


@pytest.mark.parametrize("library", ["strict", "device"])
@pytest.mark.parametrize("name", ["classifier", "detector"])
def test_labels_and_weights_of_any_library_are_taken(name, library, request):
    """Slip: weights that are left in their library, beside rows of NumPy."""
    like = to_device if library == "device" else request.getfixturevalue("strict").asarray
    X, y = rows_for(BernoulliRBM), np.arange(60) % 3 - 1
    weights = np.random.default_rng(0).uniform(0.5, 2, 60)
    expected = clone(HOST_ONLY[name]).fit(X, y, sample_weight=weights)
    with dispatched():
        found = clone(HOST_ONLY[name]).fit(X, like(y), sample_weight=like(weights))
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
        if name == "classifier":
            score = expected.score(X, y, sample_weight=weights)
            assert found.score(X, like(y), sample_weight=like(weights)) == score


class Arrow:
    """Stand-in for an array of PyArrow, whose text cannot be exchanged by DLPack."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __dlpack__(self, **options):
        raise TypeError("Only integers and floating-point numbers can be exchanged.")

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize("dispatch", [False, True])
def test_labels_of_text_in_an_array_that_exchanges_numbers_alone_are_taken(dispatch):
    """Slip: `__dlpack__` taken for the array API."""
    X, y = rows_for(BernoulliRBM), np.array(["even", "odd"])[np.arange(60) % 2]
    expected = RBMClassifier(BernoulliRBM(3, n_iter=2, random_state=0)).fit(X, y)
    with config_context(array_api_dispatch=dispatch):
        found = clone(expected).fit(X, Arrow(y))
        assert found.score(X, Arrow(y)) == expected.score(X, y)
    np.testing.assert_array_equal(found.classes_, expected.classes_)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_tensors_on_a_gpu_are_computed_there_and_stay_there(kind):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("No GPU here.")
    X = rows_for(kind)
    expected = without_draws(kind).fit(X)
    with dispatched():
        rbm = without_draws(kind).fit(torch.asarray(X, device="cuda"))
        results = same_results(rbm, X, partial(torch.asarray, device="cuda"))
        results |= {name: getattr(rbm, name) for name in PUBLIC}
        drawn = rbm.sample(4, n_gibbs_steps=3)
    numbers = same_results(expected, X, np.asarray) | {n: getattr(expected, n) for n in PUBLIC}
    for name, array in results.items():
        if torch.is_tensor(array):
            assert array.device.type == "cuda", name
            array = array.cpu().numpy()
        np.testing.assert_allclose(array, numbers[name], atol=1e-8, err_msg=name)
    assert drawn.device.type == "cuda"
