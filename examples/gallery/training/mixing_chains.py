"""
Check that Gibbs chains mix
===========================

If Gibbs chains do not mix, samples do not represent the model. ``chain_diagnostics`` runs several
chains and compares them.
"""

# %%
# Two models of coupled spins
# ---------------------------
# One hidden unit couples twenty spins. With strong coupling, nearly all spins are equal, and a
# Gibbs chain rarely flips all of them.

import matplotlib.pyplot as plt
import numpy as np

from skrbm import SpinRBM, chain_diagnostics

weak, strong = SpinRBM(1), SpinRBM(1)
for rbm, weight in ((weak, 0.12), (strong, 0.7)):
    rbm.components_ = np.full((1, 20), weight)
    rbm.intercept_visible_, rbm.intercept_hidden_ = np.zeros(20), np.zeros(1)

# %%
# The report
# ----------

reports = {
    name: chain_diagnostics(rbm, n_chains=4, n_steps=1000, random_state=0)
    for name, rbm in (("weak coupling", weak), ("strong coupling", strong))
}
for name, report in reports.items():
    print(f"{name}: {report}")

# %%
# The traces
# ----------
# Each color shows one chain. The traces of chains that mix overlap.

figure, axes = plt.subplots(2, 1, figsize=(8, 4.6), sharex=True, sharey=True)
for ax, (name, report) in zip(axes, reports.items(), strict=True):
    ax.plot(report.principal_component.T, lw=0.6)
    ax.set(title=f"{name}: R-hat {report.r_hat:.2f}", ylabel="first component")
axes[1].set_xlabel("Gibbs step")
figure.tight_layout()
plt.show()
