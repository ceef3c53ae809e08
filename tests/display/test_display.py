"""Displays: the numbers that they draw, and scikit-learn's manners."""

import sys
import warnings
from copy import copy
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from skrbm import (
    BernoulliRBM,
    ComponentsDisplay,
    CouplingsDisplay,
    FreeEnergyDisplay,
    GaussianBernoulliRBM,
    HiddenUnitDisplay,
    LogoDisplay,
    RBMClassifier,
    RBMImputer,
    RBMOutlierDetector,
    SamplesDisplay,
    SpinRBM,
    TabularRBM,
    TrainingCurveDisplay,
    effective_couplings,
    hidden_unit_report,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pytest.importorskip("matplotlib.pyplot")  # else the first test would be the one without it
X = load_digits().data / 16
KNOWN = np.arange(64) < 32


@pytest.fixture(scope="module")
def rbm():
    return BernoulliRBM(9, n_iter=3, early_stopping=True, random_state=0).fit(X)


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    matplotlib.pyplot.close("all")


DISPLAYS = {
    "couplings": lambda rbm, **ax: CouplingsDisplay.from_estimator(rbm, n_columns=5, **ax),
    "components": lambda rbm, **ax: ComponentsDisplay.from_estimator(rbm, **ax),
    "samples": lambda rbm, **ax: SamplesDisplay.from_estimator(rbm, X, mask=KNOWN, **ax),
    "training": lambda rbm, **ax: TrainingCurveDisplay.from_estimator(rbm, **ax),
    "free energy": lambda rbm, **ax: FreeEnergyDisplay.from_estimator(rbm, X[:900], X[900:], **ax),
    "hidden unit": lambda rbm, **ax: HiddenUnitDisplay.from_estimator(rbm, X, 2, **ax),
}


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_displays_draw_where_they_are_told(rbm, draw):
    new = draw(rbm)
    assert new.figure_.axes[0] is new.ax_
    figure, axes = matplotlib.pyplot.subplots(1, 2)
    display = draw(rbm, ax=axes[1])
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert display.plot(axes[0]) is display  # once more, from the stored numbers
    assert display.ax_ is axes[0]
    figure.canvas.draw()


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_displays_name_the_package_that_is_missing(rbm, draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"expected matplotlib.*pip install 'skrbm\[plot\]'"):
        draw(rbm)


def test_components_are_shown_by_length_each_on_its_own_scale(rbm):
    """Catches images in another order, transposed, or on a common scale."""
    display = ComponentsDisplay.from_estimator(rbm, n_images=4, n_columns=3)
    norms = np.linalg.norm(rbm.components_, axis=1)
    longest = np.argsort(-norms)[:4]
    np.testing.assert_array_equal(display.images.reshape(4, 64), rbm.components_[longest])
    mosaic = np.ma.filled(display.image_.get_array(), np.nan)
    assert mosaic.shape == (2 * 9, 3 * 9)
    fourth = rbm.components_[longest[3]].reshape(8, 8)
    np.testing.assert_allclose(mosaic[9:17, :8], fourth / np.abs(fourth).max())
    assert np.isnan(mosaic[9:, 9:]).all()
    assert display.image_.get_clim() == (-1, 1)


def test_dead_units_are_gray():
    """Seen to fail with a scale for each of them, which shows noise as speckle."""
    images = np.random.default_rng(0).normal(size=(3, 4, 4))
    images[2] *= 1e-3
    mosaic = np.ma.filled(ComponentsDisplay(images, n_columns=3).plot().image_.get_array(), np.nan)
    assert np.abs(mosaic[:4, :4]).max() == np.abs(mosaic[:4, 5:9]).max() == 1
    assert np.abs(mosaic[:4, 10:14]).max() < 0.1


def test_samples_are_what_the_methods_return(rbm):
    options = {"n_gibbs_steps": 5, "random_state": 0}
    rows = SamplesDisplay.from_estimator(rbm, X, mask=KNOWN, n_images=3, **options).rows
    expected = {
        "samples": rbm.sample(3, **options),
        "data": X[:3],
        "reconstructions": rbm.inverse_transform(rbm.transform(X[:3])),
        "known": np.where(KNOWN, X[:3], np.nan),
        "inpainted": rbm.inpaint(X[:3], KNOWN, method="mean", random_state=0),
    }
    assert list(rows) == list(expected)
    for kind, images in rows.items():
        np.testing.assert_array_equal(images.reshape(3, 64), expected[kind], err_msg=kind)
    assert list(SamplesDisplay.from_estimator(rbm, **options).rows) == ["samples"]


@pytest.mark.slow
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("is_common", [True, False])
@pytest.mark.filterwarnings("error")
def test_what_a_mask_calls_unknown_may_be_nan_or_infinite(container, is_common):
    """Catches a reconstruction of what `inpaint` does not look at, and names that are lost."""
    columns = pd.DataFrame(X).rename(columns=str)
    named = container is pd.DataFrame
    rbm = BernoulliRBM(9, n_iter=1, random_state=0).fit(columns if named else X)
    mask = KNOWN if is_common else np.random.default_rng(0).random(X.shape) < 0.5
    full = np.where(mask, X, np.nan)
    full[1] = np.where(np.isnan(full[1]), np.inf, full[1])
    full[2] = X[2]  # unknown, but there
    rows = container(full)
    rows = rows.rename(columns=str) if named else rows
    options = {"n_images": 3, "n_gibbs_steps": 5, "random_state": 0}
    display = SamplesDisplay.from_estimator(rbm, rows, mask=mask, **options)
    kinds = {kind: images.reshape(3, 64) for kind, images in display.rows.items()}
    masks = np.broadcast_to(mask, X.shape)[:3]
    np.testing.assert_array_equal(kinds["data"][:2], np.where(masks, X[:3], np.nan)[:2])
    np.testing.assert_array_equal(kinds["data"][2], X[2])
    inpainted = rbm.inpaint(rows[:3], masks, method="mean", random_state=0)
    np.testing.assert_array_equal(kinds["inpainted"], inpainted)
    completed = np.concatenate([inpainted[:2], X[2:3]])
    completed = pd.DataFrame(completed, columns=columns.columns) if named else completed
    expected = rbm.inverse_transform(rbm.transform(completed))
    np.testing.assert_allclose(kinds["reconstructions"], expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        SamplesDisplay.from_estimator(rbm, rows, **options)


def test_fewer_rows_than_samples_leave_the_rest_empty(rbm):
    with pytest.raises(ValueError, match="Expected at least one image, got none"):
        ComponentsDisplay(np.empty((0, 8, 8))).plot()
    display = SamplesDisplay.from_estimator(rbm, sp.coo_array(X[:2]), n_images=5, n_gibbs_steps=1)
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == ["samples", "data", "reconstructions"]
    mosaic = np.ma.filled(display.image_.get_array(), np.nan)
    assert mosaic.shape == (3 * 9, 5 * 9)
    assert np.isnan(mosaic[9:18, 18:]).all()
    np.testing.assert_array_equal(mosaic[9:17, 9:17], X[1].reshape(8, 8))


def test_training_curves_are_columns_of_the_history(rbm):
    display = TrainingCurveDisplay.from_estimator(rbm)
    assert list(display.history) == ["log_likelihood", "validation_log_likelihood"]
    for name, line in zip(display.history, display.lines_, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
        np.testing.assert_array_equal(line.get_ydata(), rbm.history_[name])
    one = TrainingCurveDisplay.from_estimator(rbm, names=["free_energy_gap"])
    assert one.ax_.get_ylabel() == "free energy gap, nats"
    score = TrainingCurveDisplay.from_estimator(rbm, names=["pseudo_likelihood"])
    assert score.ax_.get_ylabel() == "pseudo likelihood, nats"
    one = TrainingCurveDisplay.from_estimator(rbm, names="chain_gap")
    assert list(one.history) == ["chain_gap"]
    classifier = RBMClassifier(BernoulliRBM(2, n_iter=2)).fit(X, X[:, 20] > 0.5)
    assert list(TrainingCurveDisplay.from_estimator(classifier).history) == ["log_loss"]
    for names, got in ((["loss"], r"\['loss'\]"), ([], r"\[\]")):
        with pytest.raises(ValueError, match=r"Expected names among \[.*got " + got):
            TrainingCurveDisplay.from_estimator(rbm, names=names)


def test_free_energies_of_both_kinds_of_rows_share_their_bins(rbm):
    display = FreeEnergyDisplay.from_estimator(rbm, X[:900], X[900:])
    np.testing.assert_array_equal(display.train, rbm.free_energy(X[:900]))
    np.testing.assert_array_equal(display.held_out, rbm.free_energy(X[900:]))
    assert display.gap == display.held_out.mean() - display.train.mean()
    train, held_out = (patch.get_data() for patch in display.histograms_)
    np.testing.assert_array_equal(train.edges, held_out.edges)
    for density in (train, held_out):
        np.testing.assert_allclose(density.values @ np.diff(density.edges), 1)


def test_threshold_of_a_detector_is_a_line(rbm):
    """Catches a threshold on scores, which are minus free energies, drawn with their sign."""
    detector = RBMOutlierDetector(BernoulliRBM(4, n_iter=1, random_state=0)).fit(X[:900])
    display = FreeEnergyDisplay.from_estimator(detector, X[:900], X[900:])
    (place, _) = display.line_.get_xdata()
    assert (display.train > place).sum() == (detector.predict(X[:900]) == -1).sum() == 90
    assert FreeEnergyDisplay.from_estimator(rbm, X[:900], X[900:]).line_ is None
    detector.set_params(criterion="pseudo_likelihood")
    with pytest.raises(ValueError, match="got 'pseudo_likelihood'"):
        FreeEnergyDisplay.from_estimator(detector, X[:900], X[900:])


@pytest.mark.parametrize("new", [5, "new"])
def test_new_categories_are_drawn_as_a_detector_scores_them(new):
    """Slip: free energies of the machine, which do not count new values, or refuse them."""
    codes = np.random.default_rng(0).integers(0, 5, 300)
    values = codes + np.random.default_rng(1).normal(size=300)
    codes = codes if new == 5 else codes.astype(str)
    rows = pd.DataFrame({"code": codes, "value": values})
    detector = RBMOutlierDetector().fit(rows)
    unseen = rows.replace({"code": {codes[0]: new}})
    display = FreeEnergyDisplay.from_estimator(detector, rows, unseen)
    is_outlier = detector.predict(unseen) == -1
    np.testing.assert_array_equal(display.held_out > display.threshold, is_outlier)


BULK = np.random.default_rng(0).normal(size=1000)
ENERGIES = {  # training and held-out rows, a range that has to be seen, rows outside the picture
    "one outlier": (BULK, np.append(BULK, 1e12), BULK, (0, 1)),
    "outliers on both sides": (np.append(BULK, [1e6, -1e300]), BULK, BULK, (2, 0)),
    "held-out rows far away": (
        BULK,
        50 * BULK[:20] + 1e4,
        [*BULK, *(50 * BULK[:20] + 1e4)],
        (0, 0),
    ),
    "a tenth far away": (BULK, np.append(BULK[:90], BULK[:10] + 1e4), [*BULK, 1e4], (0, 0)),
    "most rows alike": (np.append(np.zeros(980), BULK[:20]), BULK, BULK, (0, 0)),
    "one value": (np.full(5, -3.0), np.full(4, -3.0), [-3.0], (0, 0)),
    "one value but for rounding": (1e4 + 1e-12 * BULK, np.full(4, 1e4), [1e4], (0, 0)),
    "single precision": (
        np.float32(BULK),
        np.float32(np.append(BULK, 1e30)),
        np.float32(BULK),
        (0, 1),
    ),
    "one row": (BULK[:1], BULK[:1] + 1, BULK[:1], (0, 0)),
}


@pytest.mark.parametrize(
    ("train", "held_out", "seen", "n_outside"), ENERGIES.values(), ids=ENERGIES
)
@pytest.mark.filterwarnings("error")
def test_outliers_neither_flatten_nor_fill_the_picture(train, held_out, seen, n_outside):
    """Catches bins as narrow as the bulk all the way to an outlier, and one bin for the bulk."""
    display = FreeEnergyDisplay(train, held_out).plot()
    edges = display.histograms_[0].get_data().edges
    assert len(edges) - 1 <= 200
    assert edges[0] <= min(seen)
    assert max(seen) <= edges[-1]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    for label, energies, n, patch in zip(
        labels, (train, held_out), n_outside, display.histograms_, strict=True
    ):
        assert ((energies < edges[0]) | (energies > edges[-1])).sum() == n
        assert label.endswith(f", {n} outside") == (n > 0)
        density, width = patch.get_data().values, np.diff(edges)
        np.testing.assert_allclose((density * width).sum(), 1)
        at_ends = np.histogram(np.clip(energies, edges[0], edges[-1]), edges)[0]
        np.testing.assert_allclose(density * width, at_ends / len(energies))
    if sum(n_outside):  # the bulk of 1000 normal rows is some six standard deviations wide
        assert np.diff(edges).max() < 1


def test_labels_of_large_free_energies_are_short():
    """Seen to fail with a fixed number of decimals: hundreds of digits."""
    display = FreeEnergyDisplay(1e298 * BULK, 1e298 * (BULK + 1), 1e298).plot()
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert max(map(len, labels)) < 50
    assert labels[-1] == "threshold 1e+298"


@pytest.mark.parametrize(
    ("held_out", "message"), [([1.0, np.nan], "held_out contains NaN"), ([], "minimum of 1")]
)
def test_free_energies_must_be_finite(held_out, message):
    # Slip: an IndexError of the bins.
    with pytest.raises(ValueError, match=message):
        FreeEnergyDisplay(np.ones(3), np.array(held_out)).plot()


def test_images_have_a_pixel_for_each_feature(rbm):
    assert ComponentsDisplay.from_estimator(rbm, image_shape=(4, 16)).images.shape == (9, 4, 16)
    with pytest.raises(ValueError, match=r"image_shape of 64 pixels.*got \(5, 5\)"):
        ComponentsDisplay.from_estimator(rbm, image_shape=(5, 5))
    narrow = GaussianBernoulliRBM(2, n_iter=1).fit(X[:, 20:25])
    with pytest.raises(ValueError, match=r"image_shape of 5 pixels.*got None \(square\)"):
        SamplesDisplay.from_estimator(narrow)
    with pytest.raises(ValueError, match="X expected to be rows if mask is given"):
        SamplesDisplay.from_estimator(rbm, mask=KNOWN)


def test_labels_of_rows_are_inside_the_figure(rbm):
    """Seen to fail without the constrained layout: "reconstructions" began left of the figure."""
    display = SamplesDisplay.from_estimator(rbm, X, mask=KNOWN, n_gibbs_steps=1)
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    assert min(box.x0 for box in boxes) >= 0


def test_colours_have_three_channels_of_each_pixel():
    """Slips: channels taken for rows; lines that are black, as NaN is in colours."""
    colour = BernoulliRBM(2, n_iter=1, random_state=0).fit(X[:, :48])
    display = ComponentsDisplay.from_estimator(colour, image_shape=(4, 4, 3), n_columns=2)
    drawn, first = np.asarray(display.image_.get_array()), display.images[0]
    assert drawn.shape == (5, 10, 3)
    np.testing.assert_allclose(drawn[:4, :4], (first / np.abs(first).max() + 1) / 2)
    np.testing.assert_allclose(drawn[4, 0], matplotlib.colors.to_rgb("lightsteelblue"))
    samples = SamplesDisplay.from_estimator(colour, X[:2, :48], image_shape=(4, 4, 3))
    drawn = np.asarray(samples.image_.get_array())
    np.testing.assert_array_equal(drawn[5:9, 5:9], X[1, :48].reshape(4, 4, 3))
    with pytest.raises(ValueError, match=r"as \(height, width\) or \(height, width, 3\)"):
        ComponentsDisplay.from_estimator(colour, image_shape=(4, 3, 4))


def test_samples_may_be_shown_as_means(rbm):
    # Slip: the sample itself.
    shown = SamplesDisplay.from_estimator(
        rbm, n_gibbs_steps=5, n_images=4, method="mean", random_state=0
    ).rows["means of samples"]
    means = rbm.inverse_transform(rbm.transform(rbm.sample(4, n_gibbs_steps=5, random_state=0)))
    np.testing.assert_array_equal(shown.reshape(4, 64), means)
    with pytest.raises(ValueError, match=r"'method' .*'sample'.* Got 'average'"):
        SamplesDisplay.from_estimator(rbm, method="average")
    # Slip: arrays without names that are checked for those of the fit.
    named = copy(rbm)
    named.feature_names_in_ = np.array([f"pixel {i}" for i in range(64)], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SamplesDisplay.from_estimator(named, n_gibbs_steps=5, method="mean", random_state=0)


def test_pictures_have_titles_and_units_and_keep_those_that_are_there(rbm, table):
    """Slips: a title of one's own, or of a second plot, that is lost; curves without their unit."""
    for draw in (
        lambda ax: ComponentsDisplay.from_estimator(rbm, ax=ax),
        lambda ax: TrainingCurveDisplay.from_estimator(rbm, ax=ax),
        lambda ax: FreeEnergyDisplay.from_estimator(rbm, X[:50], X[50:], ax=ax),
    ):
        ax = matplotlib.pyplot.figure().add_subplot()
        assert draw(ax).ax_.get_title()
        ax.set_title("mine")
        assert draw(ax).ax_.get_title() == "mine"
    for draw in (
        lambda: LogoDisplay.from_estimator(table, 1),
        lambda: HiddenUnitDisplay.from_estimator(rbm, X, 1),
        lambda: ComponentsDisplay.from_estimator(rbm),
    ):
        display = draw()
        title = display.ax_.get_title()
        assert title
        other = matplotlib.pyplot.figure().add_subplot()
        assert display.plot(other).ax_.get_title() == title
    for names, label in (
        (["pseudo_likelihood"], "pseudo likelihood, nats"),
        (["pseudo_likelihood", "chain_gap"], "nats"),
        (["learning_rate"], "learning rate"),
        (["pseudo_likelihood", "learning_rate"], ""),
    ):
        display = TrainingCurveDisplay.from_estimator(rbm, names=names)
        assert display.ax_.get_ylabel() == label


@pytest.mark.parametrize("kind", ["components", "samples"])
def test_lines_between_images_have_a_colour_that_no_pixel_has(rbm, kind):
    """Seen to fail with the plain gray scale, where a line is as white as a pixel."""
    image = DISPLAYS[kind](rbm).image_
    line = image.cmap(np.ma.masked_invalid([np.nan]))[0]
    assert len(set(line[:3])) > 1, "a line is gray"
    assert np.isnan(np.ma.filled(image.get_array(), np.nan)[8]).all()


def test_a_stream_without_a_history_says_how_to_get_one():
    """Seen to fail with axes that stay empty."""
    stream = BernoulliRBM(3, random_state=0).partial_fit(X[:50])
    with pytest.raises(ValueError, match=r"history of at least one epoch, got an empty.*verbose=1"):
        TrainingCurveDisplay.from_estimator(stream)


def test_a_classifier_without_a_history_says_how_to_get_one():
    """Slip: verbose, which a classifier does not have; fit, for an estimator_ after each fit."""
    y = X[:50, 20] > 0.5
    silent, verbose, fitted = (
        RBMClassifier(BernoulliRBM(3, n_iter=1, verbose=v, random_state=0)) for v in (0, 1, 0)
    )
    silent.partial_fit(X[:50], y, [False, True])
    for one in (silent, fitted.fit(X[:50], y).estimator_):
        with pytest.raises(
            ValueError, match=r"verbose=1 of its estimator before .*estimator_ has no history\.$"
        ):
            TrainingCurveDisplay.from_estimator(one)
    TrainingCurveDisplay.from_estimator(fitted)
    TrainingCurveDisplay.from_estimator(verbose.partial_fit(X[:50], y, [False, True]))


@pytest.mark.parametrize("display", [ComponentsDisplay, LogoDisplay, TrainingCurveDisplay])
def test_unfitted_models_say_so(display):
    with pytest.raises(NotFittedError, match="not fitted"):
        display.from_estimator(BernoulliRBM(), **({"unit": 0} if display is LogoDisplay else {}))


@pytest.mark.parametrize("estimator", [BernoulliRBM(), RBMOutlierDetector()])
def test_free_energies_of_unfitted_models_say_so(estimator):
    # Slip: an AttributeError of a detector.
    with pytest.raises(NotFittedError, match="not fitted"):
        FreeEnergyDisplay.from_estimator(estimator, X[:9], X[9:])


def test_components_of_tables_are_no_images():
    """Slip: a request for image_shape of columns that are no pixels."""
    rbm = TabularRBM(2, n_iter=1, random_state=0).fit(np.arange(80.0).reshape(20, 4) % 7)
    with pytest.raises(ValueError, match=r"TabularRBM has columns of a table.*columns_"):
        ComponentsDisplay.from_estimator(rbm)
    assert ComponentsDisplay.from_estimator(rbm, image_shape=(1, 4)).images.shape == (2, 1, 4)


@pytest.fixture(scope="module")
def table():
    rows = np.random.default_rng(0).choice(list("AC-"), (60, 4)).astype(object)
    rows[:, 1] = rows[:, 0]
    rows[:, 3] = np.where(rows[:, 0] == "A", "yes", "no")
    kinds = dict.fromkeys(range(3), "categorical") | {3: "binary"}
    rbm = TabularRBM(2, kinds=kinds, n_iter=20, random_state=0).fit(rows)
    rbm.components_ = rbm.components_ + 1.0  # in a gauge of its own
    return rbm


def test_letters_are_as_high_as_their_weights_and_the_strongest_outermost(table):
    # Slips: flags, which are the first units, drawn at the first column; weights in another gauge;
    # a stack in the order of the alphabet.
    display = LogoDisplay.from_estimator(table, 1)
    weights = dict(zip(table.columns_, table.components_[1], strict=True))
    for site in range(3):
        own = [f"{site}={letter}" for letter in "-AC"]
        mean = np.mean([weights[name] for name in own])
        weights |= {name: weights[name] - mean for name in own}
    boxes = [patch.get_path().get_extents() for patch in display.letters_]
    heights = [box.height for box in boxes]
    assert sorted(heights) == pytest.approx(sorted(map(abs, weights.values())))
    for column in range(4):
        here = [box for box in boxes if abs((box.x0 + box.x1) / 2 - column) < 0.01]
        own = [weight for name, weight in weights.items() if name.startswith(f"{column}=")]
        top = sum(weight for weight in own if weight > 0)
        assert max([0, *(box.y1 for box in here)]) == pytest.approx(top)
        above = sorted((box for box in here if box.y0 >= -1e-9), key=lambda box: box.y0)
        assert [box.height for box in above] == sorted(box.height for box in above)
    display.figure_.canvas.draw()


def test_a_logo_shows_the_columns_of_the_longest_weights(table):
    # Slip: columns in the order of their weights.
    display = LogoDisplay.from_estimator(table, 0, n_columns=3)
    assert display.names == ["0", "1", "3"]
    assert set(display.letters) == {"-", "A", "C", "yes"}
    axes = matplotlib.pyplot.figure().add_subplot()
    assert display.plot(axes) is display
    assert display.ax_ is axes


def test_what_has_no_letters_is_refused(rbm, table):
    with pytest.raises(ValueError, match=r"BernoulliRBM has none.*ComponentsDisplay"):
        LogoDisplay.from_estimator(rbm, 0)
    rows = np.arange(80.0).reshape(20, 4) % 7
    numbers = TabularRBM(2, n_iter=1, random_state=0).fit(rows)
    with pytest.raises(ValueError, match=r"TabularRBM has none\. Use HiddenUnitDisplay"):
        LogoDisplay.from_estimator(numbers, 0)
    assert len(HiddenUnitDisplay.from_estimator(numbers, rows, 0).bars_) == 4
    for unit in (2, -1, 0.5, "first"):
        with pytest.raises(ValueError, match=f"from 0 to 1, got {unit!r}"):
            LogoDisplay.from_estimator(table, unit)


def test_couplings_are_those_of_the_columns_that_act_most(table):
    # Slip: the first columns of the table.
    strengths = effective_couplings(table).strengths
    least = np.argmin(strengths.sum(axis=1))
    display = CouplingsDisplay.from_estimator(table, n_columns=3)
    shown = [j for j in range(4) if j != least]
    assert list(display.names) == shown
    np.testing.assert_array_equal(display.image_.get_array(), strengths[np.ix_(shown, shown)])
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(map(str, shown))


@pytest.mark.parametrize("hidden_units", ["binary", "gaussian", "relu", "drelu"])
@pytest.mark.parametrize("kind", [BernoulliRBM, SpinRBM, GaussianBernoulliRBM])
def test_inputs_of_a_hidden_unit_are_those_of_the_rows(kind, hidden_units):
    # Slips: fields without the bias; the inputs of another unit; inputs of the noise's scale.
    bits = np.random.default_rng(0).integers(2, size=(60, 20))
    rows = 2.0 * bits - 1 if kind is SpinRBM else 1.0 * bits
    rbm = kind(3, hidden_units=hidden_units, n_iter=2, random_state=0).fit(rows)
    sparse = sp.csr_array(rows) if kind is BernoulliRBM else rows
    display = HiddenUnitDisplay.from_estimator(rbm, sparse, 1)
    scale = rbm.noise_variance_ if kind is GaussianBernoulliRBM else 1.0
    inputs = (rows / scale) @ rbm.components_[1] + rbm.intercept_hidden_[1]
    counts, edges = np.histogram(inputs, len(display.counts))
    np.testing.assert_allclose(display.edges, edges, rtol=1e-9)
    assert display.counts.sum() == len(rows)
    assert np.abs(display.counts - counts).sum() <= 2  # rounding at an edge
    values, drawn_edges, _ = display.histogram_.get_data()
    np.testing.assert_array_equal(values, display.counts)
    np.testing.assert_array_equal(drawn_edges, display.edges)


def test_weights_of_a_hidden_unit_are_named_and_the_largest_comes_first(table):
    # Slips: weights in another gauge; the first columns of the table; names in their order.
    rows = np.array([["A", "A", "C", "yes"], ["C", "-", "-", "no"]], dtype=object)
    display = HiddenUnitDisplay.from_estimator(table, rows, 1, n_columns=4)
    report = hidden_unit_report(table, rows, n_samples=2, n_gibbs_steps=1, random_state=0)
    shown = zip(display.weights, display.names, strict=True)
    signed = [f"{'+' if weight >= 0 else '-'}{name}" for weight, name in shown]
    assert signed == report.strongest_columns(1, 4)
    np.testing.assert_array_equal(display.counts, report.input_counts[1])
    assert [bar.get_width() for bar in display.bars_] == pytest.approx(display.weights)
    top_to_bottom = sorted(display.bars_, key=lambda bar: -bar.get_window_extent().y0)
    assert top_to_bottom == list(display.bars_)
    every = HiddenUnitDisplay.from_estimator(table, rows, 1, n_columns=None)
    assert sorted(every.names) == sorted(table.columns_)


def test_hidden_units_that_are_not_there_are_refused(rbm, table):
    for unit in (9, -1, 0.5, "first"):
        with pytest.raises(ValueError, match=f"from 0 to 8, got {unit!r}"):
            HiddenUnitDisplay.from_estimator(rbm, X, unit)
    with pytest.raises(NotFittedError, match="not fitted"):
        HiddenUnitDisplay.from_estimator(BernoulliRBM(), X, 0)
    with pytest.raises(TypeError, match="RBM"):
        HiddenUnitDisplay.from_estimator(object(), X, 0)
    with pytest.raises(ValueError, match="NaN"):
        HiddenUnitDisplay.from_estimator(rbm, np.where(X > 0.9, np.nan, X), 0)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (ComponentsDisplay, {"n_images": 0}, "'n_images' .* Got 0"),
        (ComponentsDisplay, {"n_columns": -2}, "'n_columns' .* Got -2"),
        (ComponentsDisplay, {"image_shape": (-8, -8)}, r"image_shape of 64 .* got \(-8, -8\)"),
        (ComponentsDisplay, {"image_shape": 64}, "image_shape of 64 pixels.* got 64"),
        (ComponentsDisplay, {"image_shape": ()}, r"image_shape of 64 pixels.* got \(\)"),
        (SamplesDisplay, {"n_gibbs_steps": -5}, "'n_gibbs_steps' .* Got -5"),
        (SamplesDisplay, {"random_state": "abc"}, "'random_state' .* Got 'abc'"),
        (SamplesDisplay, {"n_images": -1}, "'n_images' .* Got -1"),
        (CouplingsDisplay, {"n_columns": -1}, "'n_columns' .* Got -1"),
        (HiddenUnitDisplay, {"X": X, "unit": 0, "n_columns": 0}, "'n_columns' .* Got 0"),
    ],
)
def test_sizes_of_displays_are_refused_by_name(rbm, kind, options, message):
    """Slips: a negative end of a slice, which drops the last item; an error of a reshape."""
    with pytest.raises(ValueError, match=message):
        kind.from_estimator(rbm, **options)


def test_components_of_other_estimators_are_shown():
    assert ComponentsDisplay.from_estimator(PCA(3).fit(X)).images.shape == (3, 8, 8)


def test_the_gap_of_free_energies_in_lists():
    assert FreeEnergyDisplay([1.0, 2.0], [2.0, 4.0]).gap == 1.5


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (ComponentsDisplay, ()),
        (SamplesDisplay, ()),
        (TrainingCurveDisplay, ()),
        (FreeEnergyDisplay, (X, X)),
        (LogoDisplay, (0,)),
    ],
)
def test_meta_estimators_are_refused_by_name(kind, arguments):
    """Before, errors spoke of labels, of missing attributes, or of an empty history."""
    imputer = RBMImputer(BernoulliRBM(3, n_iter=1)).fit(X)
    with pytest.raises(TypeError, match=r"got RBMImputer\. Pass its attribute estimator_"):
        kind.from_estimator(imputer, *arguments)


@pytest.mark.parametrize(
    "names", [["", "a", "b"], [" ", "a", "b"], ["\u200b", "a", "b"], ["$x_$", "$10", "b"]]
)
def test_logos_of_any_category_are_drawn(names):
    """Slips: no glyph of a blank name; dollar signs taken for a formula."""
    X = np.array(names, dtype=object)[np.random.default_rng(0).integers(3, size=(60, 3))]
    X = pd.DataFrame(X, columns=["$y_$", "$a^$b", "z"])
    table = TabularRBM(2, n_iter=2, random_state=0).fit(X)
    for display in (LogoDisplay.from_estimator(table, 0), CouplingsDisplay.from_estimator(table)):
        display.figure_.canvas.draw()
        texts = [label.get_text() for label in display.ax_.get_xticklabels()]
        assert [text.replace("\\", "") for text in texts] == X.columns.tolist()


def test_names_of_columns_with_two_levels_are_those_of_the_logo(table):
    """Slip: names of equal length as a matrix, from which letters begin with an equals sign."""
    rng = np.random.default_rng(0)
    names = pd.MultiIndex.from_tuples([("site", "1"), ("site", "2")])
    rows = pd.DataFrame(rng.choice(list("AC-"), (60, 2)), columns=names)
    display = LogoDisplay.from_estimator(TabularRBM(2, n_iter=2, random_state=0).fit(rows), 0)
    assert set(display.letters) == set("AC-")
    assert display.names == ["('site', '1')", "('site', '2')"]


@pytest.mark.parametrize(
    ("weights", "limits"), [([-0.2, -0.1], (-0.2, 0)), ([0.2, 0.1], (0, 0.2)), ([0, 0], (0, 1))]
)
def test_letters_of_one_sign_fill_the_logo(weights, limits):
    """Slip: an upper limit of 1 without positive weights."""
    display = LogoDisplay(np.array(weights, float), ["yes", "no"], [0, 1], ["a", "b"]).plot()
    assert display.ax_.get_ylim() == pytest.approx(limits)


def test_letters_that_are_not_gaps_are_no_boxes():
    """Slip: a font without serifs, in which "I", "l" and "-" are the same rectangle."""
    display = LogoDisplay(np.ones(3), ["I", "l", "W"], [0, 1, 2], "abc").plot()
    assert min(len(patch.get_path().vertices) for patch in display.letters_) > 6


@pytest.mark.parametrize("length", [1, 6, 14])
@pytest.mark.parametrize("n_names", [3, 9, 12, 64, 200])
def test_names_of_columns_do_not_overlap(length, n_names):
    """Slips: names that are rotated by their number alone; all names, even of 200 columns."""
    names = ["column_of_data"[:length]] * n_names
    weights = np.ones(n_names)
    logo = LogoDisplay(weights, ["yes"] * n_names, np.arange(n_names), names).plot()
    for display in (logo, CouplingsDisplay(np.ones((n_names, n_names)), names).plot()):
        display.figure_.canvas.draw()
        boxes = [label.get_window_extent() for label in display.ax_.get_xticklabels()]
        assert all(a.x1 <= b.x0 for a, b in pairwise(boxes))
        assert len(boxes) >= min(n_names, 12)
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    assert all(a.y0 >= b.y1 for a, b in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0


@pytest.mark.parametrize(
    ("display", "message"),
    [
        (TrainingCurveDisplay({}), "same number of epochs, got {}"),
        (TrainingCurveDisplay({"a": [1, 2], "b": [1]}), "got {'a': 2, 'b': 1}"),
        (SamplesDisplay({}), "at least one row of images"),
        (
            TrainingCurveDisplay({"a": [1, 2]}, epochs=[1]),
            r"epochs expected 2 numbers.* got shape \(1,",
        ),
        (
            TrainingCurveDisplay({"a": [1, 2]}, epochs=2),
            r"epochs expected 2 numbers.* got shape \(\)",
        ),
        (TrainingCurveDisplay({"a": [1, 2]}, errors={"a": 0.1}), r"got shapes \{'a': \(\)\}"),
        (
            TrainingCurveDisplay({"a": [1]}, errors={"b": [1]}),
            r"among \['a'\], got shapes {'b': \(1,",
        ),
        (TrainingCurveDisplay({"a": [1, 2]}, errors={"a": [1]}), r"errors expected 2.*{'a': \(1,"),
        (ComponentsDisplay(np.empty((0, 2, 2))), "at least one image"),
        (ComponentsDisplay(np.zeros((3, 4))), r"height, width, 3\), got \[\(3, 4\)\]"),
        (ComponentsDisplay(np.zeros((3, 4, 4, 4))), r"height, width, 3\), got"),
        (SamplesDisplay({"a": np.zeros((3, 4))}), r"height, width, 3\), got"),
        (
            SamplesDisplay({"a": np.zeros((2, 4, 4)), "b": np.zeros((2, 5, 4))}),
            r"images of the same shape, got \[\(2, 4, 4\), \(2, 5, 4\)\]",
        ),
    ],
)
def test_data_that_cannot_be_drawn_open_no_figure(display, message):
    with pytest.raises(ValueError, match=message):
        display.plot()
    assert not matplotlib.pyplot.get_fignums()


@pytest.mark.parametrize("n_columns", [0, -1, 1.5])
def test_images_in_rows_of_no_columns_are_refused(n_columns):
    # Slip: 0 taken for None.
    with pytest.raises(ValueError, match=f"'n_columns' .* Got {n_columns}"):
        ComponentsDisplay(np.ones((3, 4, 4)), n_columns=n_columns)


@pytest.mark.parametrize(
    ("mask", "got"),
    [
        (np.ones((1000, 64), dtype=bool), r"bool of shape \(1000, 64\)"),
        (np.ones((10, 64), dtype=bool), r"bool of shape \(10, 64\)"),
        (np.ones(64), r"float64 of shape \(64,\)"),
    ],
)
def test_masks_are_judged_before_rows_are_selected(rbm, mask, got):
    # Slips: the shape of the first rows of the mask in the message; numbers taken for a mask.
    with pytest.raises(ValueError, match=rf"of shape \(500, 64\) or \(64,\).* got {got}"):
        SamplesDisplay.from_estimator(rbm, X[:500], mask=mask, n_gibbs_steps=1)


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_arrays_of_axes_are_refused(rbm, draw):
    _, axes = matplotlib.pyplot.subplots(1, 2)
    with pytest.raises(TypeError, match="ax expected to be matplotlib axes, got ndarray"):
        draw(rbm, ax=axes)
