"""
Infer the couplings of an Ising model
=====================================

Two spins can be correlated because they interact, or because both interact with a third spin.
``effective_couplings`` estimates the direct interactions.
"""

# %%
# Data from known couplings
# -------------------------
# Twelve spins on a ring have couplings of both signs between neighbors. There are only 4096 states,
# so that exact samples can be drawn.

import matplotlib.pyplot as plt
import numpy as np

from skrbm import SpinRBM, effective_couplings

rng = np.random.default_rng(0)
n = 12
true = np.zeros((n, n))
for i in range(n):
    true[i, (i + 1) % n] = true[(i + 1) % n, i] = rng.choice([-0.6, 0.6])
states = 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1) - 1
log_weight = 0.5 * ((states @ true) * states).sum(axis=1)
probability = np.exp(log_weight - log_weight.max())
X = states[rng.choice(len(states), size=5000, p=probability / probability.sum())]

# %%
# Fit, and compute the couplings
# ------------------------------
# The couplings describe the marginal distribution of the spins, without the hidden units.

rbm = SpinRBM(24, n_iter=60, random_state=0).fit(X)
pairs = effective_couplings(rbm).pairs
correlations = np.corrcoef(X.T) - np.eye(n)
error = np.sqrt(((pairs - true)[np.triu_indices(n, 1)] ** 2).mean())
print(f"root mean square error of a coupling: {error:.3f}")

# %%
# Correlations and couplings
# --------------------------
# Spins with a common neighbor are correlated, too, but only neighbors have large couplings.

figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
titles = "correlations", "couplings of the model", "true couplings"
for ax, matrix, title in zip(axes, (correlations, pairs, true), titles, strict=True):
    image = ax.imshow(matrix, cmap="RdBu_r", vmin=-0.6, vmax=0.6)
    ax.set(title=title, xlabel="spin", xticks=range(0, n, 2))
axes[0].set_ylabel("spin")
figure.colorbar(image, ax=axes, shrink=0.8)
plt.show()
