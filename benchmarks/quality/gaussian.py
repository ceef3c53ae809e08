"""Does a Gaussian RBM learn what a normal law cannot say, of photographs and of independent sources?

Whitened 14 x 14 grey patches of scikit-learn's two sample photographs, 196 hidden units: held-out
log-likelihood beside a normal law of full covariance, probabilistic PCA and mixtures of normal laws.
A rotated, whitened mixture of two Laplace variables, 4 hidden units: exact test log-likelihood of the
start that suits the training rows best. Filters go to benchmarks/results/filters.png. Run from the
repository:

    python -m benchmarks.quality.gaussian
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.datasets import load_sample_images
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from benchmarks import machine as where
from skrbm import ComponentsDisplay, GaussianBernoulliRBM

SIDE = 14
N_PATCHES = 40_000
PARAMETERIZATIONS = ("cho", "krizhevsky", "goodfellow")


def whitened(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First half, or three quarters of patches, and the rest in its symmetric whitening."""
    train, test = np.split(X, [len(X) * (2 if X.shape[1] == 2 else 3) // 4])
    mean = train.mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov(train.T))
    if X.shape[1] > 2:  # the finest details of a photograph are its noise
        variances += np.median(variances) / 2
    whitening = (axes / np.sqrt(variances)) @ axes.T
    return (train - mean) @ whitening, (test - mean) @ whitening


def patches(rng: np.random.Generator) -> np.ndarray:
    """Grey patches of both photographs in random order, with noise in place of the rounding.

    Without it, flat patches of sky are equal and a mixture's density of them has no bound.
    """
    found = []
    for image in load_sample_images().images:
        grey = image.mean(axis=2)
        views = np.lib.stride_tricks.sliding_window_view(grey, (SIDE, SIDE))
        rows, columns = (rng.integers(n, size=N_PATCHES // 2) for n in views.shape[:2])
        found.append(views[rows, columns].reshape(-1, SIDE * SIDE))
    grey = rng.permutation(np.concatenate(found))
    return grey + rng.random(grey.shape)


def laplace(rng: np.random.Generator) -> np.ndarray:
    """100,000 points of two Laplace variables, mixed by a random matrix."""
    return rng.laplace(size=(100_000, 2)) @ rng.normal(size=(2, 2))


def of_patches(rng: np.random.Generator) -> dict[str, Any]:
    """Held-out log-likelihoods of all models of patches, nats."""
    train, test = whitened(patches(rng))
    normal = multivariate_normal(train.mean(axis=0), np.cov(train.T))
    found: dict[str, Any] = {"normal": float(normal.logpdf(test).mean())}
    found["pca"] = max(float(PCA(k).fit(train).score(test)) for k in (50, 100, 150, 190))
    for k, shape in ((2, "full"), (8, "full"), (196, "diag")):
        mixture = GaussianMixture(k, covariance_type=shape, reg_covar=1e-3, random_state=0)
        found[f"mixture of {k}, {shape}"] = float(mixture.fit(train).score(test))
    for parameterization in PARAMETERIZATIONS:
        rbm = GaussianBernoulliRBM(
            196,
            parameterization=parameterization,
            learning_rate=1.0,
            l2=1e-3,
            n_iter=100,
            random_state=0,
        )
        begin = time.perf_counter()
        rbm.fit(train.astype(np.float32))
        seconds = time.perf_counter() - begin
        log_z = rbm.log_partition(random_state=0)
        found[parameterization] = {
            "log_likelihood": float(rbm.log_likelihood(test, log_z).mean()),
            "std_error": log_z.std_error,
            "seconds": seconds,
        }
        if parameterization == "cho":
            figure = ComponentsDisplay.from_estimator(rbm, n_images=196).figure_
            figure.savefig(where.RESULTS / "filters.png", dpi=120, bbox_inches="tight")
    return found


def of_sources(rng: np.random.Generator) -> dict[str, Any]:
    """Test log-likelihoods of all parameterisations of the Laplace mixture, nats."""
    train, test = whitened(laplace(rng))
    normal = multivariate_normal(train.mean(axis=0), np.cov(train.T))
    found: dict[str, Any] = {"normal": float(normal.logpdf(test).mean())}
    for parameterization in PARAMETERIZATIONS:
        starts = [
            GaussianBernoulliRBM(
                4, parameterization=parameterization, n_iter=60, random_state=seed
            ).fit(train)
            for seed in range(5)
        ]
        ordered = sorted(
            tuple(float(rbm.log_likelihood(X).mean()) for X in (train, test)) for rbm in starts
        )
        found[parameterization] = {"best": ordered[-1][1], "all": [pair[1] for pair in ordered]}
    return found


def main() -> None:
    question = where.begin(__doc__)
    rng = np.random.default_rng(0)
    results = {"sources": of_sources(rng), "patches": of_patches(rng)}
    for data, found in results.items():
        for name, value in found.items():
            print(data, name, value, flush=True)
    path = where.write("gaussian", question, results)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
