"""
Detect anomalous images
=======================

In some images of digits, about a quarter of the pixels are replaced by random bits. A detector that
is trained on other images finds nearly all of the corrupted images.
"""

# %%
# Ordinary and corrupted images
# -----------------------------
# The model is trained on 1300 images. Every tenth of the other images is corrupted.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from skrbm import BernoulliRBM, RBMOutlierDetector

rng = np.random.default_rng(0)
X = load_digits().data > 7
X, new = X[:1300], X[1300:].copy()
is_corrupted = np.arange(len(new)) % 10 == 0
is_changed = is_corrupted[:, None] & (rng.random(new.shape) < 0.25)
new[is_changed] = rng.random(is_changed.sum()) < 0.5

# %%
# Fit, and predict
# ----------------
# ``contamination`` is the maximum fraction of the training rows below the threshold.

model = BernoulliRBM(60, n_iter=40, random_state=0)
detector = RBMOutlierDetector(model, contamination=0.02).fit(X)
scores, predicted = detector.score_samples(new), detector.predict(new)
print(f"area under the ROC curve: {roc_auc_score(is_corrupted, -scores):.3f}")
print(f"corrupted images found:     {(predicted[is_corrupted] == -1).mean():.2f}")
print(f"false alarms:             {(predicted[~is_corrupted] == -1).mean():.2f}")

# %%
# The scores, and the ten most anomalous images
# ---------------------------------------------

figure = plt.figure(figsize=(9, 5), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[3, 1.3])
ax = top.subplots()
bins = np.linspace(scores.min(), scores.max(), 50)
ax.hist(scores[~is_corrupted], bins, alpha=0.6, label="ordinary")
ax.hist(scores[is_corrupted], bins, alpha=0.6, label="corrupted")
ax.axvline(detector.offset_, color="black", label="threshold")
ax.set(xlabel="score, nats", ylabel="images")
ax.legend()
bottom.suptitle("images with the ten lowest scores; corrupted images in orange")
most_anomalous = np.argsort(scores)[:10]
for ax, i in zip(bottom.subplots(1, 10), most_anomalous, strict=True):
    ax.imshow(new[i].reshape(8, 8), cmap="gray")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(color="C1" if is_corrupted[i] else "C0", linewidth=3)
plt.show()
