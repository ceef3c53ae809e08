"""
Sample and complete images (inpainting)
=======================================

A fitted model is a distribution over images. It can draw new images, and complete an image of which
only a part is known.
"""

# %%
# Fit black and white digits
# --------------------------
# The last 297 images are not used for training.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skrbm import BernoulliRBM

X = load_digits().data > 7
rbm = BernoulliRBM(n_components=100, n_iter=60, random_state=0).fit(X[:1500])

# %%
# New images
# ----------
# ``sample`` runs a separate chain for each image. With several temperatures, chains move more
# easily from one digit to another. The sampled pixels are black or white. The means of the pixels
# given the means of the hidden units are gray values, which look smoother.

states = rbm.sample(10, n_gibbs_steps=500, n_temperatures=10)
means = rbm.inverse_transform(rbm.transform(states))

# %%
# The lower half from the upper half
# ----------------------------------
# ``mask`` is True for the known pixels. ``method="mean"`` estimates the probability that an unknown
# pixel is white, given the known pixels. ``method="sample"``, the default, draws one completion.

unseen = X[1500:1510]
is_known = np.arange(64) < 32
expected = rbm.inpaint(unseen, is_known, method="mean")
one_draw = rbm.inpaint(unseen, is_known)

# %%
# Samples and completed images
# ----------------------------

rows = {
    "sample": states,
    "its mean": means,
    "unseen image": unseen,
    "known half": np.where(is_known, unseen, np.nan),
    "completed, mean": expected,
    "completed, draw": one_draw,
}
figure, axes = plt.subplots(len(rows), 10, figsize=(9, 5.6))
for (name, images), row in zip(rows.items(), axes, strict=True):
    for image, ax in zip(images, row, strict=True):
        ax.imshow(image.reshape(8, 8).astype(float), cmap="gray", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.set_facecolor("lightsteelblue")
    row[0].set_ylabel(name, rotation=0, ha="right", va="center")
figure.tight_layout(w_pad=0.3, h_pad=0.3)
plt.show()
