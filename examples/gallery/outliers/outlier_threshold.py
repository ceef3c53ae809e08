"""
Set the threshold of an outlier detector
========================================

The free energy of a row is its negative log-probability, up to a constant. The detector sets a
threshold that at most a given fraction of the training rows exceed.
"""

# %%
# Fit to one digit
# ----------------
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
print(f"new zeros labeled as outliers: {(detector.predict(new_zeros) == -1).mean():.2f}")
print(f"sixes labeled as outliers: {(detector.predict(sixes) == -1).mean():.2f}")

# %%
# Histograms of the free energies
# -------------------------------
# The histograms show the free energies of the training rows and of the sixes. Rows to the right of
# the line are classified as outliers.

display = FreeEnergyDisplay.from_estimator(detector, zeros, sixes)
display.ax_.legend(["zeros", "sixes", "threshold"])
plt.show()

# %%
# Area under the ROC curve
# ------------------------
# The area under the ROC curve does not depend on the threshold: it is the probability that a new
# zero has a higher score than a six.

is_zero = [1] * len(new_zeros) + [0] * len(sixes)
scores = [*detector.score_samples(new_zeros), *detector.score_samples(sixes)]
print(f"area under the curve {roc_auc_score(is_zero, scores):.3f}")
