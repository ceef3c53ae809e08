"""
Semi-supervised classification with few labels
==============================================

``RBMClassifier`` models the label as an additional column. From unlabeled rows, it learns the
distribution of the images. The likelihood of the labels is averaged over the labeled rows only, so
unlabeled rows do not reduce its weight.
"""

# %%
# Few labels
# ----------
# Only 50, 100 or 300 of 1000 images keep their label. The label of the others is replaced by -1.
# ``RBMClassifier`` is trained on all rows and, for comparison, on the labeled rows only. An epoch of
# few rows has few updates, so the second fit has more epochs: both fits have the same number of
# updates.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skrbm import BernoulliRBM, RBMClassifier

X, y = load_digits(return_X_y=True)
X, unseen, y, unseen_y = train_test_split(X > 7, y, train_size=1000, stratify=y, random_state=0)
counts = [50, 100, 300]
accuracy = {"all rows": [], "labeled rows only": [], "logistic regression": []}
for count in counts:
    is_labeled = np.arange(len(X)) < count
    partly = np.where(is_labeled, y, -1)
    model = RBMClassifier(BernoulliRBM(60, n_iter=20, random_state=0), unlabeled=-1)
    accuracy["all rows"].append(model.fit(X, partly).score(unseen, unseen_y))
    model.set_params(estimator__n_iter=20 * len(X) // count)
    model.fit(X[is_labeled], y[is_labeled])
    accuracy["labeled rows only"].append(model.score(unseen, unseen_y))
    linear = LogisticRegression(max_iter=1000).fit(X[is_labeled], y[is_labeled])
    accuracy["logistic regression"].append(linear.score(unseen, unseen_y))

# %%
# Accuracy on unseen images
# -------------------------
# With 50 labels, the unlabeled rows raise the accuracy by a few percentage points. With 300 labels,
# they no longer help.

figure, ax = plt.subplots(figsize=(7, 4.2))
for (name, values), style in zip(accuracy.items(), ("o-", "s--", "^:"), strict=True):
    ax.semilogx(counts, values, style, label=name)
    print(f"{name:20}", " ".join(f"{value:.3f}" for value in values))
ax.set(xlabel="labeled images of 1000", ylabel="accuracy", title="Accuracy on unseen images")
ax.set_xticks(counts, labels=map(str, counts))
ax.minorticks_off()
ax.legend()
figure.tight_layout()
plt.show()
