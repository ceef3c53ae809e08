"""
Classification with calibrated probabilities
============================================

The label is one more visible unit of the model. Its probabilities are exact, and with the label
fixed, the model draws images of a class.
"""

# %%
# Fit
# ---
# Handwritten digits of 8 x 8 pixels. `generative_weight` is the weight of the likelihood of
# the images beside that of their labels; a larger one makes better samples.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skrbm import BernoulliRBM, RBMClassifier

X, y = load_digits(return_X_y=True)
X, new_X, y, new_y = train_test_split(X / 16, y, test_size=0.4, random_state=0)

rbm = BernoulliRBM(optimizer="adam", learning_rate=0.01, n_iter=30, random_state=0)
classifier = RBMClassifier(rbm, generative_weight=1.0).fit(X, y)
proba = classifier.predict_proba(new_X)
print(f"test accuracy {classifier.score(new_X, new_y):.3f}, log-loss {log_loss(new_y, proba):.3f}")

# %%
# Is a probability of 0.8 right in 80 of 100 cases?
# -------------------------------------------------
# One point for each tenth of the probabilities of all classes together, which are mostly near 0
# and 1.

is_label = (new_y[:, None] == classifier.classes_).ravel()
CalibrationDisplay.from_predictions(is_label, proba.ravel(), n_bins=10, name="RBMClassifier")
plt.show()

# %%
# Samples by class
# ----------------
# The label is fixed, and Gibbs sampling draws the pixels. Each row is a digit; the pictures are the
# means of the pixels given the hidden units of each sample.

labels = np.repeat(classifier.classes_, 12)
samples, _ = classifier.sample(len(labels), labels, n_gibbs_steps=300, random_state=0)

images = classifier.estimator_.inverse_transform(classifier.transform(samples))
figure, axes = plt.subplots(10, 12, figsize=(6, 5))
for ax, image in zip(axes.flat, images, strict=True):
    ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.axis("off")
plt.show()
