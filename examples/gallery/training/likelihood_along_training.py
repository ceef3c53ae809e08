"""
Likelihood during training
==========================

The likelihood rises for many epochs. With a constant learning rate and without averaging, the noise
of the updates limits it.
"""

# %%
# Three schedules
# ---------------
# By default, the learning rate decreases linearly to zero over the epochs of a fit, and the fitted
# arrays are weighted averages of the parameters over the updates. In the other two settings, the
# rate is constant; in the third setting, the parameters are not averaged. A model of 12 hidden
# units is small enough for the exact log-likelihood.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skrbm import BernoulliRBM

X = load_digits().data > 7
X, unseen = X[:1500], X[1500:]

# %%
# The learning rate depends on the total number of epochs, so each point of a curve is a separate
# fit. In this example, averaging alone is sufficient: with averaged parameters, the constant rate is
# as good as the decreasing one after 100 epochs, and better in short fits, by up to 1.4 nats after 3
# epochs. Without averaging, the constant rate loses about 1 nat after 100 epochs.

lengths = [1, 3, 10, 30, 100]
plans = {
    "rate decreases to zero (default)": {},
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
    title="Likelihood by learning-rate schedule and averaging",
)
ax.set_xticks(lengths, labels=map(str, lengths))
ax.minorticks_off()
ax.legend()
figure.tight_layout()
plt.show()
