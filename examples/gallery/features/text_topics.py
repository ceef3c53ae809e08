"""
Topics of texts from a sparse bag of words
==========================================

Words that occur together turn on the same hidden unit. The rows remain a sparse matrix.
"""

# %%
# Texts
# -----
# The texts are the docstrings of functions and classes in six subpackages of SciPy, which is
# installed with skrbm. Their labels, the subpackages, are not used for training.

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from skrbm import BernoulliRBM

packages = ["signal", "stats", "sparse.linalg", "optimize", "ndimage", "spatial"]
texts, labels = [], []
for label, package in enumerate(packages):
    module = importlib.import_module(f"scipy.{package}")
    for name in getattr(module, "__all__", []):
        item = getattr(module, name, None)
        if inspect.isroutine(item) or inspect.isclass(item):
            texts.append(inspect.getdoc(item) or "")
            labels.append(label)
labels = np.array(labels)

vectorizer = CountVectorizer(
    binary=True, min_df=10, max_df=0.1, stop_words="english", token_pattern=r"[a-z]{4,}"
)
X = vectorizer.fit_transform(texts)
words = vectorizer.get_feature_names_out()
print(f"{X.shape[0]} texts, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} words in a text")

# %%
# Fit
# ---
# Because of a small L1 penalty, each hidden unit has large weights for a few words only.

rbm = BernoulliRBM(12, n_iter=40, l1=1e-3, random_state=0).fit(X)
activation = rbm.transform(X)

# %%
# Words and subpackages of each hidden unit
# -----------------------------------------
# Each unit is labeled with the five words whose frequency increases by the largest factor if the
# unit is on. The plot shows the mean activation of each unit over the texts of each subpackage. A
# unit that is on for most texts, such as the last one, is labeled with rare words: only few of these
# texts contain them, but almost no other texts do.

share = np.array([activation[labels == i].mean(axis=0) for i in range(len(packages))])
with_unit = (activation.T @ X) / activation.sum(axis=0)[:, None]
without = ((1 - activation).T @ X) / (1 - activation).sum(axis=0)[:, None]
top = [
    ", ".join(words[np.argsort(-row)[:5]]) for row in np.log((with_unit + 0.05) / (without + 0.05))
]
order = np.argsort(share.argmax(axis=0), kind="stable")

figure, ax = plt.subplots(figsize=(9, 4.6))
image = ax.imshow(share[:, order].T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
ax.set_xticks(range(len(packages)), labels=packages, rotation=30, ha="right")
ax.set_yticks(range(len(order)), labels=[top[i] for i in order])
figure.colorbar(image, label="mean activation")
ax.set_title("Hidden units, labeled with their words")
figure.tight_layout()
plt.show()
