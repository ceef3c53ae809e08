"""
Classify digits with learned features
=====================================

Shifts of images by one pixel reduce the accuracy of a linear classifier on raw pixels. On features
that a restricted Boltzmann machine learns without labels, the classifier is much more accurate.
"""

# %%
# The data
# --------
# The data are the 8 x 8 digits of scikit-learn, and copies of each image that are shifted by one
# pixel in four directions. The images are split before they are copied, so that no test image has a
# copy in the training set.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skrbm import BernoulliRBM, ComponentsDisplay


def with_shifted_copies(images):
    framed = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    corners = [(1, 1), (2, 1), (1, 2), (1, 0), (0, 1)]
    copies = [framed[:, i : i + 8, j : j + 8] for i, j in corners]
    return np.concatenate(copies).reshape(-1, 64)


digits = load_digits()
images = (digits.images / 16).astype(np.float32)
images, new_images, y, new_y = train_test_split(images, digits.target, random_state=0)
X, new_X = with_shifted_copies(images), with_shifted_copies(new_images)
y, new_y = np.tile(y, 5), np.tile(new_y, 5)

# %%
# Comparison of pixels and features
# ---------------------------------
# The same linear classifier is trained on the pixels and on the features. The features are
# probabilities, so they need no scaling.

on_pixels = LinearSVC(tol=0.01).fit(X, y).score(new_X, new_y)

pipeline = make_pipeline(
    BernoulliRBM(n_components=200, n_iter=10, random_state=0),
    LinearSVC(tol=0.01),
)
on_features = pipeline.fit(X, y).score(new_X, new_y)
print(f"test accuracy on pixels {on_pixels:.3f}, on features {on_features:.3f}")

# %%
# Weights of the hidden units
# ---------------------------
# Each small image shows the weights of one hidden unit. In white areas, bright pixels turn the unit
# on; in black areas, they turn it off. Most units detect strokes and edges.

display = ComponentsDisplay.from_estimator(pipeline[0], n_images=32, n_columns=8)
display.figure_.set_size_inches(7, 4)
display.ax_.set_title(
    f"32 of 200 features. Test accuracy: {on_features:.3f}, of pixels {on_pixels:.3f}"
)
plt.show()
