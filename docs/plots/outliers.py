"""Scores of ordinary and anomalous images, and the threshold of a detector."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skrbm import BernoulliRBM, RBMOutlierDetector

X, y = load_digits(return_X_y=True)
X = X > 7
zeros, others = X[y == 0], X[y == 6]
model = BernoulliRBM(16, n_iter=50, random_state=0)
detector = RBMOutlierDetector(model, contamination=0.05).fit(zeros[:120])
scores = [detector.score_samples(rows) for rows in (zeros[120:], others)]
bins = np.histogram_bin_edges(np.concatenate(scores), 30)
figure, ax = plt.subplots(figsize=(7, 3))
for rows, name in zip(scores, ("new zeros", "sixes"), strict=True):
    ax.hist(rows, bins, alpha=0.6, label=name)
ax.axvline(detector.offset_, color="black", linestyle="--", label="threshold")
ax.set(xlabel="score_samples: minus the free energy, nats", ylabel="images")
ax.set_title("A detector trained on zeros, tested on zeros and sixes")
ax.legend()
figure.tight_layout()
