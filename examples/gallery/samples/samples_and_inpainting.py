"""
Sample and complete images (inpainting)
=======================================

A fitted model is a distribution over images. It can draw new ones, and it can complete one of
which only a part is known.
"""

# %%
# Fit black and white digits
# --------------------------
# The last 297 images are not shown to the model.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skrbm import BernoulliRBM

X = load_digits().data > 7
rbm = BernoulliRBM(n_components=100, n_iter=60, random_state=0).fit(X[:1500])

# %%
# New images
# ----------
# ``sample`` runs one chain for every image. Several temperatures help the chains to move from one
# digit to another. The states are black or white; one more half-step gives the mean of every pixel,
# which is easier on the eye.

states = rbm.sample(10, n_gibbs_steps=500, n_temperatures=10)
means = rbm.inverse_transform(rbm.transform(states))

# %%
# The lower half from the upper half
# ----------------------------------
# ``mask`` is true where a pixel is known. ``method="mean"`` gives the probability of every unknown
# pixel, given the known ones; ``method="sample"`` draws one completion.

unseen = X[1500:1510]
is_known = np.arange(64) < 32
expected = rbm.inpaint(unseen, is_known, method="mean")
one_draw = rbm.inpaint(unseen, is_known)

# %%
# Side by side
# ------------

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
