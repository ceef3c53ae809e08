"""
Diagnose and repair a bad training run
======================================

A learning rate that is too large does not always cause an error. Two columns of ``history_`` show
it: the pseudo-likelihood stops rising or changes abruptly, and the chain gap moves away from zero.
"""

# %%
# Three runs
# ----------
# The first run has a constant learning rate of ten times the default. It ends with a warning that
# the fit is worse than a model of independent pixels. In the second run, the same rate decreases to
# zero. The third run has the default learning rate.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skrbm import BernoulliRBM

X = load_digits().data > 7
X, unseen = X[:1500], X[1500:]

runs = {
    "rate 4, constant": {"learning_rate": 4, "learning_rate_schedule": "constant"},
    "rate 4, decreasing": {"learning_rate": 4},
    "defaults (rate 0.4, decreasing)": {},
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
    print(f"{name:31} {likelihood:8.1f} nats per unseen image")

# %%
# The history of each run
# -----------------------
# ``chain_gap`` is the mean free energy of the chains minus that of the data, in nats. If it is near
# zero, the states of the chains are about as probable as the data. If it is far below zero, they
# are much more probable: the model has a mode where there are no data.
#
# The second run has a higher pseudo-likelihood than the third one, but a lower likelihood. The
# pseudo-likelihood compares each image only with images that differ from it in one pixel.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
for name, rbm in models.items():
    epochs = rbm.history_["n_iter"]
    axes[0].plot(epochs, rbm.history_["pseudo_likelihood"], label=name)
    axes[1].plot(epochs, rbm.history_["chain_gap"])
axes[0].set(xlabel="epoch", ylabel="pseudo-likelihood, nats")
axes[1].set(xlabel="epoch", ylabel="chain gap, nats")
axes[1].axhline(0, color="gray", lw=0.5)
axes[0].legend()
figure.tight_layout()
plt.show()
