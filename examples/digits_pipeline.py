"""Classify handwritten digits: logistic regression on learned features and on raw pixels.

The data are the 8 x 8 digits of scikit-learn, and copies of each image that are shifted by one
pixel in four directions. Shifts reduce the accuracy of a linear classifier on raw pixels. On
features that a restricted Boltzmann machine learns without labels, the classifier is more accurate.
The script prints both test accuracies and, if matplotlib is installed, saves an image of the
learned filters.

    python examples/digits_pipeline.py [--verbose] [--seed 0] [--picture digits_filters.png]
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from skrbm import BernoulliRBM, ComponentsDisplay

GRID = {"rbm__learning_rate": [0.2, 0.4, 0.8], "rbm__n_components": [100, 300]}


def with_shifted_copies(images):
    """Images and their copies, shifted by one pixel in four directions and padded with zeros."""
    height, width = images.shape[1:]
    framed = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    corners = [(1, 1), (2, 1), (1, 2), (1, 0), (0, 1)]
    return np.concatenate([framed[:, i : i + height, j : j + width] for i, j in corners])


def draw_filters(rbm, path):
    """Draw the weights of each hidden unit as an image of 8 x 8 pixels."""
    try:
        display = ComponentsDisplay.from_estimator(rbm, n_images=len(rbm.components_), n_columns=20)
    except ImportError as error:
        print(f"No {path}: {error}")
        return
    display.figure_.savefig(path, dpi=150, bbox_inches="tight")
    print(f"Learned filters: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--verbose", action="store_true", help="print a line for every fit and epoch"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", default="digits_filters.png")
    options = parser.parse_args()
    begin = time.perf_counter()
    warnings.simplefilter("error", ConvergenceWarning)
    threadpool_limits(1)  # the matrices are small, so that more threads would not be faster

    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)
    X = with_shifted_copies(images).reshape(-1, 64)
    y = np.tile(digits.target, 5)
    # This split is the published one. It may place shifted copies of a test image in the training
    # set; the split by image at the end of the script does not.
    split = train_test_split(X, y, test_size=0.2, random_state=0)
    X_train, X_test, y_train, y_test = split

    # Both classifiers have the same C. For raw pixels, values from 1 to 1000 are equally good.
    classifier = LogisticRegression(C=1000, max_iter=10_000)
    rbm = BernoulliRBM(n_iter=10, random_state=options.seed)
    pipeline = Pipeline([("rbm", rbm), ("classifier", classifier)])

    search = GridSearchCV(
        pipeline,
        GRID,
        cv=3,
        n_jobs=2,
        refit=False,
        error_score="raise",
        verbose=3 if options.verbose else 0,
    )
    search.fit(X_train, y_train)
    for values, accuracy in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        named = ", ".join(f"{name.removeprefix('rbm__')}={v}" for name, v in values.items())
        print(f"cross-validation  {accuracy:.4f}  {named}")

    pipeline.set_params(**search.best_params_, rbm__verbose=options.verbose)
    pipeline.fit(X_train, y_train)
    raw = clone(classifier).fit(X_train, y_train)
    print(f"RBM features, test accuracy: {pipeline.score(X_test, y_test):.4f}")
    print(f"raw pixels, test accuracy:   {raw.score(X_test, y_test):.4f}")
    draw_filters(pipeline["rbm"], options.picture)

    image = np.tile(np.arange(len(images)), 5)
    known = np.isin(
        image, train_test_split(np.arange(len(images)), test_size=0.2, random_state=0)[0]
    )
    pipeline.set_params(rbm__verbose=0).fit(X[known], y[known])
    raw.fit(X[known], y[known])
    print(
        f"Split by image, test accuracy: RBM features "
        f"{pipeline.score(X[~known], y[~known]):.4f}, raw pixels {raw.score(X[~known], y[~known]):.4f}"
    )
    print(f"{time.perf_counter() - begin:.0f} seconds")


if __name__ == "__main__":
    main()
