"""
Likelihood during training
==========================

The likelihood keeps rising long after the first epochs. At a constant rate the noise of the updates
stops this early; a rate that falls to zero does not.
"""

# %%
# Three schedules
# ---------------
# By default the rate falls linearly to zero over the epochs of a fit, and the fitted arrays are
# averages over the updates. The other two schedules keep the rate constant. A model of 12 hidden
# units is small enough for the exact log-likelihood.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skrbm import BernoulliRBM

X = load_digits().data > 7
X, unseen = X[:1500], X[1500:]

# %%
# Twenty epochs are not the first half of a fit of forty, since the rate falls more slowly there. So
# each point of a curve is a separate fit.

lengths = [1, 3, 10, 30, 100]
plans = {
    "rate falls to zero (default)": {},
    "constant rate, averaged": {"learning_rate_schedule": "constant"},
    "constant rate": {"learning_rate_schedule": "constant", "average": False},
}
figure, ax = plt.subplots(figsize=(7, 4.2))
for (name, options), style in zip(plans.items(), ("o-", "s--", "^:"), strict=True):
    likelihoods = []
    for n_iter in lengths:
        rbm = BernoulliRBM(12, n_iter=n_iter, random_state=0, **options).fit(X)
        likelihoods.append(rbm.log_likelihood(unseen, rbm.log_partition("exact")).mean())
    ax.semilogx(lengths, likelihoods, style, label=name)
    print(f"{name:40}", " ".join(f"{value:7.2f}" for value in likelihoods))

ax.set(
    xlabel="epochs of one fit",
    ylabel="log-likelihood of an unseen image, nats",
    title="Averages or a falling rate keep the noise out",
)
ax.set_xticks(lengths, labels=map(str, lengths))
ax.minorticks_off()
ax.legend()
figure.tight_layout()
plt.show()
