"""
Classification with class probabilities
=======================================

In ``RBMClassifier``, the label is an additional visible unit. The class probabilities are exact,
and the model can draw images of a given class.
"""

# %%
# Fit
# ---
# The data are handwritten digits of 8 x 8 pixels. ``generative_weight`` is the weight of the
# likelihood of images and labels, relative to the likelihood of the labels given the images.

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
# Calibration curve
# -----------------
# If probabilities are calibrated, 80 of 100 predictions with a probability of 0.8 are right. Each
# point shows one tenth of the range of the probabilities, of all classes together. Here, the
# probabilities are not extreme enough: predictions above 0.5 are right more often than their
# probability says, and most of those below 0.5 less often.

is_label = (new_y[:, None] == classifier.classes_).ravel()
display = CalibrationDisplay.from_predictions(
    is_label, proba.ravel(), name="RBMClassifier", n_bins=10
)
display.ax_.set(xlabel="mean predicted probability", ylabel="fraction of right predictions")
plt.show()

# %%
# Samples by class
# ----------------
# Gibbs sampling draws the pixels given the label. Each row was drawn given one label, from 0 to 9.
# The plot shows the means of the pixels given the means of the hidden units, which are smoother than
# the drawn bits.

labels = np.repeat(classifier.classes_, 12)
samples, _ = classifier.sample(len(labels), labels, n_gibbs_steps=300, random_state=0)

images = classifier.estimator_.inverse_transform(classifier.transform(samples))
figure, axes = plt.subplots(10, 12, figsize=(6, 5), layout="constrained")
for ax, image in zip(axes.flat, images, strict=True):
    ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.axis("off")
plt.show()
