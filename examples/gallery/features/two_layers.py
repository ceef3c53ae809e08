"""
Stack two RBMs (deep belief network)
====================================

A second RBM is trained on the features of a first one. As initial weights of a network of logistic
units, the weights of both RBMs are better than random weights. As features for a linear classifier,
the second layer is worse than the first.
"""

# %%
# The first layer
# ---------------
# The data are the 8 x 8 digits of scikit-learn; 60 % are training images.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skrbm import BernoulliRBM

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
X, new_X, y, new_y = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
first = BernoulliRBM(200, n_iter=50, random_state=0).fit(X)
H, new_H = first.transform(X), first.transform(new_X)

# %%
# The second layer
# ----------------
# The visible units of the second RBM are the 200 hidden units of the first. The second RBM can be
# initialized with the transposed weights and the exchanged biases of the first: assign the arrays,
# and call ``fit`` with ``warm_start=True``, which starts from them.


def second_layer(turned_over, draw_states, n_components=64):
    rbm = BernoulliRBM(
        n_components,  # with transposed weights, one hidden unit for each of the 64 pixels
        learning_rate=0.1,
        n_iter=20,
        draw_states=draw_states,
        warm_start=turned_over,
        random_state=0,
    )
    if turned_over:
        rbm.components_ = first.components_.T.copy()
        rbm.intercept_hidden_ = first.intercept_visible_.copy()
        rbm.intercept_visible_ = first.intercept_hidden_.copy()
    return rbm.fit(H)


seconds = {
    "transposed weights, bits": second_layer(True, True),
    "transposed weights, means": second_layer(True, False),
    "random weights, bits": second_layer(False, True),
    "random weights, means": second_layer(False, False),
    "random weights, bits, 200 units": second_layer(False, True, n_components=200),
}

# %%
# Features for a linear classifier
# --------------------------------
# The second layer is trained on bits that are drawn from the probabilities of the first layer in
# every epoch, or on the probabilities ("means").


def accuracy_of_features(features, new_features):
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return linear.fit(features, y).score(new_features, new_y)


accuracy = {
    "pixels": accuracy_of_features(X, new_X),
    "one layer": accuracy_of_features(H, new_H),
    **{
        f"two layers: {name}": accuracy_of_features(rbm.transform(H), rbm.transform(new_H))
        for name, rbm in seconds.items()
    },
}
for name, value in accuracy.items():
    print(f"{name:43} {value:.3f}")

# %%
# Initial weights of a neural network
# -----------------------------------
# With ``activation="logistic"``, the hidden layers of ``MLPClassifier`` compute the same function
# as ``transform``. A first call of ``partial_fit`` creates the arrays of the network. The weights
# and hidden biases of the RBMs are then copied to these arrays.


def accuracy_by_epoch(layers, is_initialized, activation, seed, n_epochs=40):
    network = MLPClassifier(
        [len(rbm.components_) for rbm in layers],
        activation=activation,
        learning_rate_init=0.003,
        random_state=seed,
    )
    network.partial_fit(X[:10], y[:10], classes=np.unique(y))
    if is_initialized:
        for i, rbm in enumerate(layers):
            network.coefs_[i][...] = rbm.components_.T
            network.intercepts_[i][...] = rbm.intercept_hidden_
    return [network.partial_fit(X, y).score(new_X, new_y) for _ in range(n_epochs)]


stack = [first, seconds["transposed weights, bits"]]
curves = {
    name: np.mean([accuracy_by_epoch(*setting, seed) for seed in range(3)], axis=0)
    for name, *setting in (
        ("two layers, from the stack", stack, True, "logistic"),
        ("one layer, from the RBM", stack[:1], True, "logistic"),
        ("one layer, random weights", stack[:1], False, "logistic"),
        ("two layers, random weights", stack, False, "logistic"),
        ("two layers, random weights, relu", stack, False, "relu"),
    )
}
for name, curve in curves.items():
    print(f"{name:32} after 5 epochs {curve[4]:.3f}, after 40 {curve[-1]:.3f}")

# %%
# Conclusion
# ----------
# For the second layer, bits and means are about equally good training data, and transposed weights
# are better initial weights than random ones. For a linear classifier, one layer is better than
# two. The network of logistic units learns faster from the weights of the RBMs than from random
# weights, and reaches a higher accuracy. A network of ``relu`` units, the default of
# ``MLPClassifier``, is more accurate than all networks of logistic units, although its initial
# weights are random.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.8), layout="constrained")
names = list(accuracy)[::-1]
left.plot([accuracy[name] for name in names], names, "o")
left.set(xlabel="test accuracy", title="Features, logistic regression")
left.grid(axis="y", alpha=0.4)
epochs = np.arange(1, 41)
styles = ("C0-", "C1-", "C1--", "C0--", "C2:")
for (name, curve), style in zip(curves.items(), styles, strict=True):
    right.plot(epochs, curve, style, label=name)
right.set(xlabel="epochs of the network", ylabel="test accuracy", ylim=(0.6, 1))
right.set_title("Network, mean of three runs")
figure.legend(loc="outside lower right", ncols=2)
plt.show()
