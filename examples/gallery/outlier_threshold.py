"""
Outliers, and the threshold that tells them
===========================================

The free energy of a row says how unlikely a model finds it. A detector sets a threshold that a given
share of its training rows exceeds.
"""

# %%
# Learn one digit
# ---------------
# The detector sees zeros alone, and is asked about new zeros and about sixes.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skrbm import FreeEnergyDisplay, RBMOutlierDetector

X, y = load_digits(return_X_y=True)
zeros, new_zeros = train_test_split(X[y == 0] / 16, test_size=0.3, random_state=0)
sixes = X[y == 6] / 16

detector = RBMOutlierDetector(contamination=0.05).fit(zeros)
print(f"new zeros taken for outliers: {(detector.predict(new_zeros) == -1).mean():.2f}")
print(f"sixes taken for outliers: {(detector.predict(sixes) == -1).mean():.2f}")

# %%
# The picture
# -----------
# Free energies of the training rows, and of the sixes. Rows to the right of the line are outliers.

display = FreeEnergyDisplay.from_estimator(detector, zeros, sixes)
display.ax_.legend(["zeros", "sixes", "threshold"])
plt.show()

# %%
# Without a threshold
# -------------------
# The area under the ROC curve needs none: it is the probability that a new zero scores higher than
# a six.

is_zero = [1] * len(new_zeros) + [0] * len(sixes)
scores = [*detector.score_samples(new_zeros), *detector.score_samples(sixes)]
print(f"area under the curve {roc_auc_score(is_zero, scores):.3f}")
