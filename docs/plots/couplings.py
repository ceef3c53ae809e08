"""Correlations and direct couplings of a chain of spins."""

import matplotlib.pyplot as plt
import numpy as np

from skrbm import SpinRBM, effective_couplings

rng = np.random.default_rng(0)
n_spins = 8
X = np.empty((3000, n_spins))
X[:, 0] = rng.choice([-1, 1], size=len(X))
for i in range(1, n_spins):
    X[:, i] = X[:, i - 1] * rng.choice([-1, 1], size=len(X), p=[0.2, 0.8])
rbm = SpinRBM(8, n_iter=100, random_state=0).fit(X)
correlations = np.corrcoef(X.T) - np.eye(n_spins)
panels = {
    "correlations": correlations,
    "effective couplings": effective_couplings(rbm).pairs,
}
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, (title, matrix) in zip(axes, panels.items(), strict=True):
    limit = np.abs(matrix).max()
    image = ax.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
    ax.set(title=title, xlabel="spin", ylabel="spin")
    figure.colorbar(image, ax=ax)
figure.suptitle("A chain: each spin acts on its neighbors only")
