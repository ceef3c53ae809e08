"""
Features of image patches (Gaussian RBM)
========================================

On whitened patches of photographs, a Gaussian-Bernoulli RBM learns small edge filters, similar to
the receptive fields of neurons in the primary visual cortex.
"""

# %%
# Patches
# -------
# The patches are from the two photographs that come with scikit-learn, and contain logarithms of
# gray values. The mean of each patch is subtracted, and the patch is divided by its standard
# deviation. Patches with a very small standard deviation are left out. Then, the patches are
# whitened: the 25 principal components with the largest variances are scaled to the same variance.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images
from sklearn.decomposition import PCA
from sklearn.feature_extraction.image import extract_patches_2d

from skrbm import GaussianBernoulliRBM

SIDE = 8
patches = []
for image in load_sample_images().images:
    gray = np.log1p(image.mean(axis=2).astype(np.float32))
    patches.append(extract_patches_2d(gray, (SIDE, SIDE), max_patches=10_000, random_state=0))
X = np.concatenate(patches).reshape(-1, SIDE * SIDE)
X -= X.mean(axis=1, keepdims=True)
X = X[X.std(axis=1) > 0.02]  # without uniform patches, such as the sky
X /= X.std(axis=1, keepdims=True)
pca = PCA(n_components=25, whiten=True).fit(X)
white = pca.transform(X)
print(f"{len(white)} patches, {white.shape[1]} whitened components")

# %%
# Fit
# ---
# After initialization, hidden units are rarely on. Units that are rarely on learn localized
# features.

rbm = GaussianBernoulliRBM(64, n_iter=30, batch_size=200, random_state=0).fit(white)

# %%
# Weights of the hidden units
# ---------------------------
# The weights refer to whitened components. Multiplied by the principal axes, they are weighted sums
# of these axes, which can be shown as images.

filters = (rbm.components_ @ pca.components_).reshape(-1, SIDE, SIDE)
order = np.argsort(-np.linalg.norm(rbm.components_, axis=1))
figure, axes = plt.subplots(4, 16, figsize=(9, 2.7))
for ax, image in zip(axes.flat, filters[order], strict=True):
    bound = np.abs(image).max()
    ax.imshow(image, cmap="gray", vmin=-bound, vmax=bound)
    ax.set_axis_off()
figure.suptitle("Filters of 64 hidden units")
figure.tight_layout(pad=0.3)
plt.show()
