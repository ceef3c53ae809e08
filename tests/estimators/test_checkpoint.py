"""Checkpoints: a fit that was killed and resumed is the fit that nobody killed."""

import shutil
import tempfile

import joblib
import numpy as np
import pytest
from estimators.instances import bits, draw, learned_bits, new
from sklearn.base import clone

from skrbm import (
    BernoulliRBM,
    Checkpoint,
    RBMClassifier,
    RBMImputer,
    RBMOutlierDetector,
    TabularRBM,
)
from skrbm.estimators.classifier import default_estimator

pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since version 1.9")

N_ITER = 6


class KilledError(Exception):
    """In place of the death of the process."""


class Killer:
    """Callback that ends the process after some passes."""

    def __init__(self, n_passes):
        self.n_left = n_passes

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.n_left -= 1
        if self.n_left == 0:
            raise KilledError


def table():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, 50), rng.normal(size=50), rng.random(50) < 0.5])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


WITH_HOLES = np.where(np.random.default_rng(1).random((47, 4)) < 0.2, np.nan, draw("bernoulli"))
WEIGHTS = np.random.default_rng(2).random(47)
LABELS = draw("bernoulli")[:, 0]
RECIPES = {  # estimator, rows, others of fit
    "defaults": lambda: (new("bernoulli"), draw("bernoulli")),
    "single precision": lambda: (new("cho"), draw("cho").astype(np.float32)),
    "fixed variances, single precision": lambda: (
        new("cho", learn_variance=False),
        1.7 * draw("cho").astype(np.float32),
    ),
    "classifier, fixed variances": lambda: (
        RBMClassifier(new("goodfellow", learn_variance=False)),
        1.7 * draw("goodfellow").astype(np.float32),
        LABELS,
    ),
    "large, single precision": lambda: (
        new("bernoulli", n_components=20),
        np.random.default_rng(0).random((40, 300), dtype=np.float32),
    ),
    "real hidden units, single precision": lambda: (
        new("cho", hidden_units="drelu", n_components=14),
        np.random.default_rng(0).normal(size=(300, 30)).astype(np.float32),
    ),
    "tempering": lambda: (new("spin", algorithm="pt", n_temperatures=4), draw("spin")),
    "early stopping, likelihood": lambda: (
        new("bernoulli", early_stopping=True, track_likelihood=True, n_components=40),
        np.random.default_rng(0).random((60, 40)) < 0.5,
    ),
    "adaptive rate, momentum": lambda: (
        new("krizhevsky", learning_rate_schedule="adaptive", momentum=0.5, n_iter_no_change=1),
        draw("krizhevsky"),
    ),
    "Adam without average or centring": lambda: (
        new("bernoulli", optimizer="adam", average=False, centering=False, learning_rate=0.01),
        draw("bernoulli"),
    ),
    "far clusters": lambda: (
        new("cho"),
        np.random.default_rng(0).normal(size=(80, 4)) + np.repeat([[0], [40]], 40, axis=0),
    ),
    "holes": lambda: (new("bernoulli", missing="marginalize"), WITH_HOLES),
    "holes, imputed after the checkpoint": lambda: (
        new("bernoulli", missing="marginalize", batch_size=20),
        np.random.default_rng(1).choice([0, 1, np.nan], (600, 4), p=[0.4, 0.4, 0.2]),
    ),
    "weights": lambda: (new("bernoulli"), draw("bernoulli"), None, WEIGHTS),
    "table": lambda: (TabularRBM(3, kinds={0: "categorical"}, missing="marginalize"), table()),
    "classifier": lambda: (RBMClassifier(new("bernoulli")), draw("bernoulli"), LABELS),
}


def settled(estimator, **parameters):
    """Estimator with parameters of its own, or of the estimator within."""
    prefix = "estimator__" if hasattr(estimator, "estimator") else ""
    return estimator.set_params(**{prefix + name: value for name, value in parameters.items()})


def killed(estimator, path, n_passes, *data, every=1):
    """Checkpoint of a fit that died after some passes, ready to go on."""
    estimator.set_callbacks(Checkpoint(path, every=every), Killer(n_passes))
    with pytest.raises(KilledError):
        estimator.fit(*data)
    assert not hasattr(estimator, "components_")
    return settled(joblib.load(path), warm_start=True)


def all_bits(estimator):
    """Bytes of what was learned, of the history without times, and of what comes next."""
    history = {name: column for name, column in estimator.history_.items() if name != "time"}
    inner = getattr(estimator, "estimator_", estimator)
    apart = {*estimator.get_params(deep=False), "history_", "estimator_", "_skl_callbacks"}
    learned = learned_bits(inner)
    learned.pop("columns_", None)  # names, whose bytes are addresses
    return learned | bits(estimator, without={*apart, "columns_"}) | history


@pytest.mark.filterwarnings("ignore:The chains do not mix")  # between far clusters
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("seed", [0, None])
def test_a_killed_and_resumed_fit_is_the_fit_that_nobody_killed(recipe, seed, tmp_path):
    """Seen to fail without any one of: the rate's progress, the parameters, the fixed variances, the
    random stream, the judge, the draws of holes, the tracker, the counts of labels and weights."""
    estimator, *data = RECIPES[recipe]()
    settled(estimator, n_iter=N_ITER, random_state=seed)
    stream = np.random.get_state()  # noqa: NPY002, scikit-learn's None means this stream
    whole = clone(estimator).fit(*data)
    np.random.set_state(stream)  # noqa: NPY002, for the second fit to begin where the first did
    resumed = killed(estimator, tmp_path / "fit", 3, *data)
    assert resumed.n_iter_ == 3
    resumed.fit(*data)
    assert all_bits(resumed) == all_bits(whole)
    if not hasattr(whole, "classes_"):
        np.testing.assert_array_equal(resumed.sample(5), whole.sample(5))
    resumed.partial_fit(*data[:2])
    assert all_bits(resumed) == all_bits(whole.partial_fit(*data[:2]))


def test_a_finished_fit_has_nothing_left_and_the_next_warm_start_has(tmp_path):
    """Seen to fail without a plan in the last checkpoint, and with one that early stopping ended:
    a job that is started again trained on."""
    X, path = draw("bernoulli"), tmp_path / "fit"
    rbm = (
        new("bernoulli", n_iter=5, random_state=0)
        .set_callbacks(Checkpoint(path, every=np.int64(2)))
        .fit(X)
    )
    again = joblib.load(path).set_params(warm_start=True).fit(X)
    assert again.n_iter_ == 5
    assert all_bits(again) == all_bits(rbm.set_callbacks())
    assert again.fit(X).n_iter_ == 10
    early = new("bernoulli", n_iter=50, early_stopping=True, n_iter_no_change=1, random_state=0)
    early.set_callbacks(Checkpoint(tmp_path / "early")).fit(X)
    assert early.n_iter_ < 50
    again = joblib.load(tmp_path / "early").set_params(warm_start=True).fit(X)
    assert all_bits(again) == all_bits(early.set_callbacks())
    assert joblib.load(path).partial_fit(X).set_params(warm_start=True).fit(X).n_iter_ == 11


def test_checkpoints_come_every_few_passes_and_are_whole(tmp_path):
    """Seen to fail with a file that is opened before its content is known, or that is private."""
    X, path = draw("bernoulli"), tmp_path / "fit"
    resumed = killed(new("bernoulli", n_iter=9, random_state=0), path, 5, X, every=2)
    assert resumed.n_iter_ == 4
    before = path.read_bytes()
    resumed.unpicklable = lambda: None
    with pytest.raises(Exception, match="pickle"):
        resumed.set_callbacks(Checkpoint(path)).fit(X)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_training_goes_on_if_a_checkpoint_cannot_be_written(tmp_path):
    """Seen to fail where an error of the disk ended the fit: all epochs since the checkpoint were lost.
    Slip: half a file in place of the previous one.
    """
    resource = pytest.importorskip("resource", reason="Windows has no limits of file sizes")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Disk(Killer):
        """Callback that limits the sizes of files from some epoch on."""

        def __init__(self, n_passes, size):
            self.n_left, self.size = n_passes, size

        def on_fit_task_end(self, estimator, context):
            self.n_left -= 1
            if self.n_left < 0:
                resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, before[1]))

    X, path = draw("bernoulli"), tmp_path / "fit"
    rbm = new("bernoulli", n_iter=N_ITER, random_state=0)
    whole = clone(rbm).fit(X)
    rbm.set_callbacks(Disk(2, 1000), Checkpoint(path), Disk(0, before[0]))
    with pytest.warns(UserWarning, match=r"fit' could not be written: File too large\. Training"):
        rbm.fit(X)
    assert all_bits(rbm.set_callbacks()) == all_bits(whole)
    assert list(tmp_path.iterdir()) == [path]
    assert joblib.load(path).n_iter_ == 2


def test_training_goes_on_without_the_folder_of_checkpoints(tmp_path):
    """Seen to fail where the absent folder ended the fit."""

    class Removing(Killer):
        def on_fit_task_end(self, estimator, context):
            shutil.rmtree(tmp_path / "folder", ignore_errors=True)

    X, path = draw("bernoulli"), tmp_path / "folder" / "fit"
    path.parent.mkdir()
    rbm = new("bernoulli", n_iter=N_ITER).set_callbacks(Removing(0), Checkpoint(path))
    with pytest.warns(UserWarning, match=r"fit' could not be written: No such file") as warned:
        assert rbm.fit(X).n_iter_ == N_ITER
    assert len({str(warning.message) for warning in warned}) == 1  # repeats are not shown


def test_a_file_keeps_its_link_and_its_permissions(tmp_path):
    """Slips: a private file that everybody may read after the fit, a link that is replaced, and a
    link into an absent folder that fails after the first pass.
    """
    path, link = tmp_path / "fit", tmp_path / "link"
    path.touch(mode=0o600)
    link.symlink_to(path)
    new("bernoulli").set_callbacks(Checkpoint(link)).fit(draw("bernoulli"))
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert joblib.load(path).n_iter_ == joblib.load(link).n_iter_
    link.unlink()
    link.symlink_to(tmp_path / "absent" / "fit")
    with pytest.raises(ValueError, match="expected a file in an existing, writable folder"):
        new("bernoulli").set_callbacks(Checkpoint(link)).fit(draw("bernoulli"))


def test_equal_values_of_other_types_are_those_of_the_checkpoint(tmp_path):
    X = draw("bernoulli")
    kept = killed(new("bernoulli", n_iter=5), tmp_path / "fit", 2, X)
    kept.set_params(n_iter=np.int64(5), learning_rate=np.float64(kept.learning_rate))
    assert kept.fit(np.where(X == 0, -0.0, X)).n_iter_ == 5


def test_an_interrupted_fit_leaves_the_last_checkpoint(tmp_path):
    """Catches half a pass that replaces whole ones."""

    class Interrupting(Killer):
        def on_fit_task_begin(self, estimator, context):
            self.n_left -= 1
            if self.n_left == 0:
                raise KeyboardInterrupt

        def on_fit_task_end(self, estimator, context): ...

    X, path = draw("bernoulli"), tmp_path / "fit"
    rbm = new("bernoulli", n_iter=5, random_state=0)
    whole = clone(rbm).fit(X)
    rbm.set_callbacks(Checkpoint(path), Interrupting(4))  # the fit itself begins before its passes
    with pytest.warns(UserWarning, match="interrupted"):
        rbm.fit(X)
    resumed = joblib.load(path)
    assert resumed.n_iter_ == 2
    assert all_bits(resumed.set_params(warm_start=True).fit(X)) == all_bits(whole)


def test_another_fit_than_the_planned_one_is_refused(tmp_path):
    """Seen to fail without the check: a rate or rows of another plan. Slip: rows in another order,
    some of which are held out, told by their means and variances.
    """
    X, path = draw("bernoulli"), tmp_path / "fit"
    kept = killed(new("bernoulli", n_iter=5), path, 2, X)
    for rows in (X[1:], 1 - X, X[::-1], np.roll(X, 1, axis=0)):
        with pytest.raises(ValueError, match=r"resumed with the same 47 rows, but got 4[67]"):
            kept.fit(rows)
    with pytest.raises(ValueError, match=r"parameters.*but \['n_iter'\] were changed"):
        kept.set_params(n_iter=7, n_jobs=2).fit(X)
    assert kept.set_params(n_iter=5).fit(X).n_iter_ == 5
    assert joblib.load(path).fit(X[1:]).n_iter_ == 5  # no warm start: from the beginning


def test_default_estimators_are_the_same_by_name(tmp_path):
    """Slip: None and the default estimator, which alone can have warm_start=True."""
    X, path = draw("bernoulli"), tmp_path / "fit"
    whole = RBMClassifier().fit(X, LABELS)
    interrupted = RBMClassifier().set_callbacks(Checkpoint(path), Killer(3))
    with pytest.raises(KilledError):
        interrupted.fit(X, LABELS)
    resumed = joblib.load(path).set_params(
        estimator=default_estimator(X).set_params(warm_start=True)
    )
    assert all_bits(resumed.fit(X, LABELS)) == all_bits(whole)
    with pytest.raises(ValueError, match=r"but \['estimator__n_iter'\] were changed"):
        joblib.load(path).set_params(estimator=resumed.estimator.set_params(n_iter=7)).fit(
            X, LABELS
        )


def test_a_fit_inside_a_detector_goes_on_with_the_parameters_of_the_user(tmp_path):
    """Slip: `missing`, which the detector changes during the fit, compared as any other."""
    X, path = table()[:, 1:2] ** 2, tmp_path / "fit"
    X = X[~np.isnan(X[:, 0])]
    rbm = TabularRBM(2, n_iter=N_ITER, random_state=0)
    whole = RBMOutlierDetector(clone(rbm)).fit(X)
    interrupted = RBMOutlierDetector(rbm.set_callbacks(Checkpoint(path), Killer(3)))
    with pytest.raises(KilledError):
        interrupted.fit(X)
    resumed = joblib.load(path).set_params(warm_start=True, missing="marginalize").fit(X)
    assert all_bits(resumed) == all_bits(whole.estimator_)


@pytest.mark.parametrize("kind", ["array", "table"])
@pytest.mark.parametrize("model", [RBMImputer, RBMOutlierDetector])
def test_a_fit_inside_another_estimator_is_resumed(model, kind, tmp_path):
    """Slips: a clone, which forgets the progress; the given estimator changed; callbacks copied."""
    X, path = table(), tmp_path / "fit"
    rbm = TabularRBM(2, n_iter=N_ITER, random_state=0)
    if kind == "array":
        X, rbm = WITH_HOLES, new("bernoulli", n_iter=N_ITER, n_particles=None, random_state=0)
    if model is RBMOutlierDetector:
        X = X[~np.isnan(X).any(axis=1)]
    whole = model(clone(rbm)).fit(X)
    with pytest.raises(KilledError):
        model(rbm.set_callbacks(Checkpoint(path), Killer(3))).fit(X)
    counter = Killer(1000)
    loaded = joblib.load(path).set_params(warm_start=True).set_callbacks(counter)
    before = bits(loaded, without={"_skl_callbacks"})
    for _ in range(2):
        resumed = model(loaded).fit(X)
        assert all_bits(resumed.estimator_.set_callbacks()) == all_bits(whole.estimator_)
        resumed.estimator_.sample(2, 1)  # draws from the random stream
        resumed.estimator_.components_ *= 2
        assert bits(loaded, without={"_skl_callbacks"}) == before
    assert 1000 - counter.n_left == 2 * (N_ITER - 3 + 1)  # each fit is a task as well


@pytest.mark.parametrize("recipe", ["weights", "classifier", "table", "holes"])
def test_rows_are_compared_with_all_that_belongs_to_them(recipe, tmp_path):
    """Slips: a digest of the rows alone, and one by which the same rows differ."""
    estimator, X, *others = RECIPES[recipe]()
    kept = killed(settled(estimator, n_iter=5, random_state=0), tmp_path / "fit", 2, X, *others)
    if others:
        changed = [None if other is None else np.roll(other, 1) for other in others]
        with pytest.raises(ValueError, match="other weights or labels"):
            kept.fit(X, *changed)
    with pytest.raises(ValueError, match="in another order"):
        kept.fit(X[::-1], *others)
    ones = () if others else (None, np.ones(len(X)))
    kept.fit(np.asfortranarray(X), *others, *ones)


@pytest.mark.parametrize(
    ("checkpoint", "message"),
    [
        (Checkpoint(""), "path expected a file in .* folder, got ''"),
        (Checkpoint(tempfile.gettempdir()), "path expected a file .* or name a file in a folder"),
        (Checkpoint("no folder/fit"), "path expected a file in an existing"),
        (Checkpoint("fit", every=0), "every expected a number of epochs, at least 1, got 0"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_first_pass(checkpoint, message):
    """Seen to fail without `setup`: the error came after the first pass."""
    with pytest.raises(ValueError, match=message):
        BernoulliRBM(2).set_callbacks(checkpoint).fit(draw("bernoulli"))
    with pytest.raises(TypeError, match=r"string or pathlib\.Path, got None"):
        new("bernoulli").set_callbacks(Checkpoint(None)).fit(draw("bernoulli"))
