"""How well does a logistic regression read the features of an RBM, and those of its peers?

Test accuracies on five data sets, averaged over splits, of one logistic regression. Four fifths of the
training rows are learned. The log-loss of the last fifth chooses the penalty, and whether each feature or
all of them together are scaled to a variance of one.

- digits: 8 x 8 grey images of scikit-learn, half of them for the test
- shifted digits: the same with four copies of each image, shifted by a pixel; the copies of an image
  are all learned, all choose the penalty, or are all tested
- mnist: 10,000 training images to learn, 2,500 for the penalty, 10,000 for the test; benchmarks/data.py
  says where they are
- patches: 20 x 20 grey patches of scikit-learn's two photographs, which do not overlap, half of them for
  the test; the class is the photograph
- texts: which of the 1000 most frequent words occur in the docstrings of SciPy, half of them for the
  test; the class is the subpackage, whose name does not count as a word

"skrbm" learns rows alone, by `BernoulliRBM`; "skrbm, labels" learns the labels too, by `RBMClassifier`.
Of patches, `GaussianBernoulliRBM` learns the brightness and the contrasts in eight octaves of principal
components, standardised; "relu", "KMeans of contrasts" and "contrasts as they are" have the same nine
columns. That the photographs differ in brightness and contrast was seen on all patches; the number of
octaves was chosen by the log-loss of the rows that choose the penalty. The peers have their defaults but for
the width; PCA and NMF have no more components than columns. Run from the repository, for some of the data
sets if they are named:

    python -m benchmarks.quality.features
    python -m benchmarks.quality.features digits patches
"""

from __future__ import annotations

import importlib
import inspect
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_sample_images
from sklearn.decomposition import NMF, PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.neural_network import BernoulliRBM as TheirRBM
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from benchmarks import machine as where
from benchmarks.data import mnist
from skrbm import BernoulliRBM, GaussianBernoulliRBM, RBMClassifier

N_SPLITS = {"digits": 5, "shifted digits": 5, "mnist": 1, "patches": 5, "texts": 2}
WIDTHS = 500, 100
TOO_SLOW = {("mnist", "NMF")}
STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)  # C of the logistic regression
ROWS = {"n_iter": 100}
LABELS = {"n_iter": 30, "optimizer": "adam", "learning_rate": 0.01}
SIDE = 20  # of a patch
N_OCTAVES = 8  # of principal components, 255 after the first
FLOOR = 1e-6  # of a mean square: the square of a quarter of a grey level
SHORTEST_TEXT = 200  # letters
SUBPACKAGES = (
    "cluster.hierarchy",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
)


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their classes, and the number of the image of each."""
    X, y = load_digits(return_X_y=True)
    return X / 16, y, np.arange(len(y))


def shifted_digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Digits and their copies; the number of the image is that of the original."""
    X, y, image = digits()
    framed = np.pad(X.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    corners = ((1, 1), (2, 1), (1, 2), (1, 0), (0, 1))
    copies = [framed[:, i : i + 8, j : j + 8] for i, j in corners]
    return np.concatenate(copies).reshape(-1, 64), np.tile(y, 5), np.tile(image, 5)


def patches() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Patches, the photograph of each, and its number."""
    rows = []
    for photograph in load_sample_images().images:
        grey = photograph.mean(axis=2) / 255
        n_down, n_across = (n // SIDE for n in grey.shape)
        tiles = grey[: n_down * SIDE, : n_across * SIDE].reshape(n_down, SIDE, n_across, SIDE)
        rows.append(tiles.swapaxes(1, 2).reshape(-1, SIDE**2))
    y = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
    return np.concatenate(rows), y, np.arange(len(y))


def texts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bits that tell which words are in a text, its subpackage, and its number."""
    found: dict[str, str] = {}
    for name in SUBPACKAGES:
        module = importlib.import_module(f"scipy.{name}")
        for item in (getattr(module, public) for public in module.__all__):
            text = inspect.getdoc(item) or ""
            if not inspect.ismodule(item) and len(text) > SHORTEST_TEXT:
                found.setdefault(text, name)
    names = [part for name in SUBPACKAGES for part in name.split(".")]
    words = CountVectorizer(
        binary=True,
        max_features=1000,
        stop_words=[*names, "scipy"],
        token_pattern="[a-z]{3,}",
    )
    y = np.array(list(found.values()))
    return words.fit_transform(found).toarray(), y, np.arange(len(y))


SMALL = {
    "digits": digits,
    "shifted digits": shifted_digits,
    "patches": patches,
    "texts": texts,
}


def parts(case: str, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and classes: of those to learn, of those that choose the penalty, and of the test."""
    if case == "mnist":
        X, y, X_test, y_test = mnist()
        learned, choosing = train_test_split(
            np.arange(len(X)), train_size=10_000, test_size=2_500, random_state=seed, stratify=y
        )
        sets = [(X[learned], y[learned]), (X[choosing], y[choosing]), (X_test, y_test)]
        return [((A / 255).astype(np.float32), labels) for A, labels in sets]
    X, y, image = SMALL[case]()
    train, test = divided(np.arange(len(y)), image, 1 / 2, seed)
    learned, choosing = divided(train, image, 1 / 5, seed)
    return [(X[rows].astype(np.float32), y[rows]) for rows in (learned, choosing, test)]


def divided(
    rows: np.ndarray, image: np.ndarray, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows in two parts, the second with a share of the images."""
    split = GroupShuffleSplit(1, test_size=share, random_state=seed)
    first, second = next(split.split(rows, groups=image[rows]))
    return rows[first], rows[second]


def contrasts(components: np.ndarray) -> np.ndarray:
    """First principal component, and logarithms of the mean squares of the octaves of the others."""
    octaves = np.split(components, 2 ** np.arange(N_OCTAVES), axis=1)[1:]
    squares = [np.square(octave).mean(axis=1) for octave in octaves]
    return np.column_stack([components[:, 0], np.log(FLOOR + np.transpose(squares))])


def of_contrasts(transformer: Any, seed: int) -> Any:
    """Pipeline that standardises the contrasts of patches for a transformer."""
    components = PCA(2**N_OCTAVES, random_state=seed)
    return make_pipeline(components, FunctionTransformer(contrasts), StandardScaler(), transformer)


def ours(case: str, width: int, seed: int) -> dict[str, Any]:
    """Unfitted transformers of skrbm, and peers that have the same columns of patches."""
    type_ = GaussianBernoulliRBM if case == "patches" else BernoulliRBM
    models = {
        "skrbm": type_(width, random_state=seed, **ROWS),
        "skrbm, labels": RBMClassifier(type_(width, random_state=seed, **LABELS)),
    }
    if case != "patches":
        return models
    models["skrbm, relu"] = type_(width, hidden_units="relu", random_state=seed, **ROWS)
    models["KMeans of contrasts"] = KMeans(width, random_state=seed)
    models["contrasts as they are"] = FunctionTransformer()
    return {name: of_contrasts(model, seed) for name, model in models.items()}


def transformers(case: str, width: int, seed: int) -> dict[str, Any]:
    """Unfitted transformers by name."""
    return {
        **ours(case, width, seed),
        "columns as they are": FunctionTransformer(),
        "PCA": PCA(width, random_state=seed),
        "NMF": NMF(width, random_state=seed),
        "KMeans": KMeans(width, random_state=seed),
        "Nystroem": Nystroem(n_components=width, random_state=seed),
        "BernoulliRBM of scikit-learn": TheirRBM(width, random_state=seed),
    }


def accuracy(transformer: Any, sets: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """Accuracy on the test with the penalty that suits the rows held out, and what it took."""
    (X, y), (_, y_held_out), (_, y_test) = sets
    begin = time.process_time()
    if isinstance(transformer, PCA | NMF):
        transformer.set_params(n_components=min(transformer.n_components, *X.shape))
    transformer.fit(X, y)
    features = [transformer.transform(A) for A, _ in sets]
    seconds = time.process_time() - begin
    best: dict[str, Any] = {"loss": np.inf}
    for scaling, scaler in scalers(features[0]).items():
        H, H_held_out, H_test = map(scaler.transform, features)
        classifier, last = LogisticRegression(max_iter=300, tol=1e-3, warm_start=True), np.inf
        for C in STRENGTHS:
            probabilities = classifier.set_params(C=C).fit(H, y).predict_proba(H_held_out)
            loss = log_loss(y_held_out, probabilities, labels=classifier.classes_)
            if loss >= last:
                break  # the loss has one minimum along C
            last = loss
            if loss < best["loss"]:
                score = classifier.score(H_test, y_test)
                best = {"loss": loss, "C": C, "scaling": scaling, "accuracy": score}
    return {**best, "processor_seconds": seconds}


def scalers(features: np.ndarray) -> dict[str, StandardScaler]:
    """Scaler of each column to a variance of one, and one of all columns by the same factor."""
    each, alike = StandardScaler().fit(features), StandardScaler().fit(features)
    alike.scale_ = np.full_like(each.scale_, np.sqrt(each.var_.mean()))
    return {"each column": each, "all alike": alike}


def with_means(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Mean accuracy of each transformer over the splits, and what came out of each split."""
    return {
        name: {
            "mean_accuracy": float(np.mean([run["accuracy"] for run in splits])),
            "splits": splits,
        }
        for name, splits in runs.items()
    }


def main() -> None:
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    for case in sys.argv[1:] or N_SPLITS:
        runs: dict[int, dict[str, list[dict[str, Any]]]] = {width: {} for width in WIDTHS}
        for seed in range(N_SPLITS[case]):
            sets = parts(case, seed)
            for width in WIDTHS:
                for name, transformer in transformers(case, width, seed).items():
                    if (case, name) in TOO_SLOW:
                        continue
                    runs[width].setdefault(name, []).append(accuracy(transformer, sets))
                    print(case, seed, width, name, runs[width][name][-1], flush=True)
                path = where.write(
                    f"features_{case.replace(' ', '_')}",
                    question,
                    {str(width): with_means(found) for width, found in runs.items()},
                    rows=ROWS,
                    labels=LABELS,
                    n_splits=seed + 1,
                )
        print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
