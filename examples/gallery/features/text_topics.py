"""
Topics of texts from a sparse bag of words
==========================================

Words that occur together turn on the same hidden unit. The rows stay a sparse matrix throughout.
"""

# %%
# Texts
# -----
# The documentation of SciPy's functions: it is on every machine that runs this script. Labels are
# the subpackages; the model does not see them.

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
# A small penalty on absolute weights leaves each hidden unit with few words.

rbm = BernoulliRBM(12, n_iter=40, l1=1e-3, random_state=0).fit(X)
activation = rbm.transform(X)

# %%
# Words and subpackages of each hidden unit
# -----------------------------------------
# A unit is named by the words that are more frequent in texts where it is on than in the others.
# The picture shows in which share of each subpackage's texts it is on.

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
ax.set_title("Hidden units, named by their words")
figure.tight_layout()
plt.show()
