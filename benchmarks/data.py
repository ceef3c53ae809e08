"""Data of the benchmarks: read from the folder SKRBM_DATA, or fetched."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml


def mnist() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test images of MNIST, (n_samples, 784) of type uint8, with their labels."""
    folder = os.environ.get("SKRBM_DATA")
    if folder:
        with np.load(Path(folder) / "mnist.npz") as data:
            return (
                data["x_train"].reshape(-1, 784),
                data["y_train"],
                data["x_test"].reshape(-1, 784),
                data["y_test"],
            )
    X, y = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True)
    X, y = X.astype(np.uint8), y.astype(np.uint8)
    return X[:60_000], y[:60_000], X[60_000:], y[60_000:]


def binarized_mnist() -> tuple[np.ndarray, np.ndarray]:
    """Training (50,000) and test images of MNIST in black and white, float32.

    The fixed binarisation of Larochelle and Salakhutdinov from the folder SKRBM_DATA, on which
    published likelihoods are measured; without that folder, one draw from the grey values.
    """
    folder = os.environ.get("SKRBM_DATA")
    if folder:
        with np.load(Path(folder) / "binarized_mnist.npz") as data:
            train, test = (
                np.unpackbits(data[f"x_{part}_packed"], axis=1) for part in ("train", "test")
            )
    else:
        rng = np.random.default_rng(0)
        grey = mnist()
        train, test = (rng.integers(255, size=X.shape) < X for X in (grey[0][:50_000], grey[2]))
    return train.astype(np.float32, order="C"), test.astype(np.float32, order="C")
