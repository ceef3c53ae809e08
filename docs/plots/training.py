"""A good and a bad run: learning curves."""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skrbm import BernoulliRBM

X = load_digits().data > 7
too_large = {"learning_rate": 4.0, "learning_rate_schedule": "constant", "average": False}
runs = {"defaults": {}, "constant rate of 4, no averages": too_large}
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.3), layout="constrained")
for name, parameters in runs.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the second run warns, as it should
        rbm = BernoulliRBM(30, n_iter=40, random_state=0, verbose=0, **parameters).fit(X)
    history = rbm.history_
    left.plot(history["n_iter"], history["pseudo_likelihood"], label=name)
    right.plot(history["n_iter"], history["chain_gap"], label=name)
left.set(xlabel="epoch", ylabel="nats", title="pseudo_likelihood")
right.set(xlabel="epoch", ylabel="nats", title="chain_gap")
figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)
