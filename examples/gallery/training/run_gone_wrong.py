"""
Diagnose and repair a bad training run
======================================

A learning rate that is too large does not always end in an error. Two numbers of ``history_`` show
it: the pseudo-likelihood stops rising or jumps, and the chains drift away from the data.
"""

# %%
# Three runs
# ----------
# The first has a constant rate, ten times too large: it ends with a warning that the fit is worse
# than independent pixels. In the second the same rate falls to zero. The third has the defaults.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skrbm import BernoulliRBM

X = load_digits().data > 7
X, unseen = X[:1500], X[1500:]

runs = {
    "rate 4, constant": {"learning_rate": 4, "learning_rate_schedule": "constant"},
    "rate 4, falling": {"learning_rate": 4},
    "defaults (rate 0.4, falling)": {},
}
models = {
    name: BernoulliRBM(
        60, n_iter=30, random_state=0, average=not name.startswith("rate"), **options
    )
    for name, options in runs.items()
}
for name, rbm in models.items():
    rbm.fit(X)
    log_partition = rbm.log_partition(n_chains=50, n_temperatures=2000)
    likelihood = rbm.log_likelihood(unseen, log_partition).mean()
    print(f"{name:30} {likelihood:8.1f} nats an unseen image")

# %%
# The history of each run
# -----------------------
# ``chain_gap`` is the mean free energy of the chains minus that of the data, in nats. Near zero,
# chains and data are about as probable. Far below zero, the chains are in states much more probable
# than any image: the model has a mode without data.
#
# Note that the middle run has a better pseudo-likelihood than the last one, and a worse likelihood:
# pseudo-likelihood compares each image with its neighbours only.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
for name, rbm in models.items():
    epochs = rbm.history_["n_iter"]
    axes[0].plot(epochs, rbm.history_["pseudo_likelihood"], label=name)
    axes[1].plot(epochs, rbm.history_["chain_gap"])
axes[0].set(xlabel="pass", ylabel="pseudo-likelihood, nats")
axes[1].set(xlabel="pass", ylabel="chain gap, nats")
axes[1].axhline(0, color="gray", lw=0.5)
axes[0].legend()
figure.tight_layout()
plt.show()
