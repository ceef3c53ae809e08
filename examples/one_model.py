"""Draw the results of one model: hidden units, samples, completed images, and anomalous images.

The model has 100 hidden units and is fitted to the 8 x 8 digits of scikit-learn, in black and
white. The README shows this figure.

    python examples/one_model.py [--picture one_model.png]
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from skrbm import BernoulliRBM


def tiled(images, n_columns):
    """Arrange 8 x 8 images in one array, separated by pixels of NaN."""
    framed = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    rows = framed.reshape(-1, n_columns, 10, 10)
    return rows.swapaxes(1, 2).reshape(len(rows) * 10, n_columns * 10)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", default="one_model.png")
    options = parser.parse_args()
    threadpool_limits(1)  # the matrices are small, so that more threads would not be faster

    X = load_digits().data > 7
    X, unseen = X[:1500], X[1500:]
    rbm = BernoulliRBM(n_components=100, n_iter=200, random_state=0).fit(X)

    strongest = np.argsort(-np.abs(rbm.components_).max(axis=1))[:12]
    weights = rbm.components_[strongest]
    states = rbm.sample(12, n_gibbs_steps=500, n_temperatures=10, random_state=0)
    samples = rbm.inverse_transform(rbm.transform(states))  # probabilities of the pixels
    upper = np.arange(64) < 32
    given = unseen[[3, 13, 17, 26]]
    completed = rbm.inpaint(given, upper, method="mean", random_state=0)
    halves = np.where(upper, given, np.nan)
    pairs = np.concatenate([halves, completed, given])
    free_energy = rbm.free_energy(unseen)
    anomalous = unseen[np.argsort(free_energy)[-12:]].astype(float)

    figure, axes = plt.subplots(1, 4, figsize=(12, 2.75), layout="constrained")
    panels = [
        ("transform: 12 hidden units\n(weights; red switches on)", weights, "RdBu_r"),
        ("sample: new images\n(probabilities of the pixels)", samples, "gray"),
        ("inpaint: upper half given,\ncompleted, and the truth", pairs, "gray"),
        ("free_energy: the 12 least\nlikely of 297 new images", anomalous, "gray"),
    ]
    for ax, (title, images, colors) in zip(axes, panels, strict=True):
        limit = 0.8 * np.abs(images[np.isfinite(images)]).max()
        low, high = (-limit, limit) if colors == "RdBu_r" else (0, 1)
        colors = plt.get_cmap(colors).with_extremes(bad="lightsteelblue")
        ax.imshow(tiled(images, 4), cmap=colors, vmin=low, vmax=high)
        ax.set_title(title, fontsize=12)
        ax.axis("off")
    figure.savefig(options.picture, dpi=110, bbox_inches="tight")
    print(f"Picture: {options.picture}")


if __name__ == "__main__":
    main()
