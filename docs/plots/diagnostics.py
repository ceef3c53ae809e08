"""Free energies of training rows and unseen rows, without and with overfitting."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skrbm import BernoulliRBM, FreeEnergyDisplay

X = load_digits().data > 7
figure, axes = plt.subplots(1, 2, figsize=(8, 3))
for ax, n_rows, n_iter, title in (
    (axes[0], 1500, 20, "1,500 training rows"),
    (axes[1], 100, 500, "100 training rows: overfitting"),
):
    rbm = BernoulliRBM(30, n_iter=n_iter, random_state=0).fit(X[:n_rows])
    FreeEnergyDisplay.from_estimator(rbm, X[:n_rows], X[1500:], ax=ax)
    ax.set_title(title)
    ax.set_ylim(top=1.3 * ax.get_ylim()[1])  # room for the legend
figure.tight_layout()
