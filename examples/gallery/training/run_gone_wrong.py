"""
Diagnose and repair a bad training run
======================================

A learning rate that is too large does not always cause an error. Two columns of ``history_`` show
it: the pseudo-likelihood and the chain gap change abruptly, and the chain gap is mostly negative.
"""

# %%
# Three runs
# ----------
# The first run has a constant learning rate of ten times the default. The log-likelihood of
# its model is lower than that of a model of independent pixels, which is -24.6 nats per unseen
# image. In the second run, the same rate decreases to zero. In both runs, the parameters are not
# averaged. The third run has the default learning rate and averages the parameters.

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
# At the end, the pseudo-likelihood of the training images is higher in the second run than in the
# third one, but the log-likelihood of the unseen images is lower.

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
