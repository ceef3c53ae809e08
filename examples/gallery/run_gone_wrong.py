"""
A run gone wrong, and mended
============================

A learning rate that is too large does not always end in an error. Two numbers of ``history_``
show it: the pseudo-likelihood stops rising or jumps, and the chains drift away from the data.
"""

# %%
# Three runs
# ----------
# The first with a rate ten times too large that never falls: it ends with a warning that the fit is worse
# than independent pixels. The second with the same rate, falling
# to zero. The third by defaults.

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
# What the history says
# ---------------------
# ``chain_gap`` is by how many nats the chains' mean free energy is above the data's. Near zero the
# chains look like the data to the model. Far below zero, they sit in states that the model likes
# much better than any image: the model has a mode where there are no data.
#
# Note that the middle run has a better pseudo-likelihood than the last one, and a worse likelihood:
# pseudo-likelihood asks only about the neighbourhood of the images.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
for name, rbm in models.items():
    passes = rbm.history_["n_iter"]
    axes[0].plot(passes, rbm.history_["pseudo_likelihood"], label=name)
    axes[1].plot(passes, rbm.history_["chain_gap"])
axes[0].set(xlabel="pass", ylabel="pseudo-likelihood, nats")
axes[1].set(xlabel="pass", ylabel="chain gap, nats")
axes[1].axhline(0, color="gray", lw=0.5)
axes[0].legend()
figure.tight_layout()
plt.show()
