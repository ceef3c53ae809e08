"""
Set the threshold of an outlier detector
========================================

The free energy of a row is minus its log-probability, up to a constant. A detector sets a threshold
that a given share of its training rows exceeds.
"""

# %%
# Learn one digit
# ---------------
# The detector is trained on zeros, and tested on new zeros and on sixes.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skrbm import FreeEnergyDisplay, RBMOutlierDetector

X, y = load_digits(return_X_y=True)
zeros, new_zeros = train_test_split(X[y == 0] / 16, test_size=0.3, random_state=0)
sixes = X[y == 6] / 16

detector = RBMOutlierDetector(contamination=0.05).fit(zeros)
print(f"new zeros labelled as outliers: {(detector.predict(new_zeros) == -1).mean():.2f}")
print(f"sixes labelled as outliers: {(detector.predict(sixes) == -1).mean():.2f}")

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
# The area under the ROC curve needs no threshold: it is the probability that a new zero scores
# higher than a six.

is_zero = [1] * len(new_zeros) + [0] * len(sixes)
scores = [*detector.score_samples(new_zeros), *detector.score_samples(sixes)]
print(f"area under the curve {roc_auc_score(is_zero, scores):.3f}")
