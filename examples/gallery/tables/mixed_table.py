"""
Model a table of numbers and categories
=======================================

``TabularRBM`` fits one model to all columns of a table: numbers, categories and flags. The model
predicts each column from the other columns.
"""

# %%
# A table
# -------
# The table contains four measurements of the wines of scikit-learn, the cultivar, and the color
# intensity divided into three classes.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from skrbm import TabularRBM

wine = load_wine(as_frame=True)
table = wine.data[["alcohol", "flavanoids", "proline", "hue"]].copy()
table["cultivar"] = pd.Categorical.from_codes(wine.target, ["Barolo", "Grignolino", "Barbera"])
strength = pd.cut(wine.data["color_intensity"], [0, 3, 6, 20], labels=["light", "ruby", "deep"])
table["color"] = strength
rng = np.random.default_rng(0)
order = rng.permutation(len(table))
train, unseen = table.iloc[order[:120]], table.iloc[order[120:]]
print(train.head())

# %%
# Conditional probabilities
# -------------------------
# ``conditional_proba`` computes the probability of each cultivar given the other columns. No
# separate classifier is needed.

rbm = TabularRBM(20, n_iter=200, random_state=0).fit(train)
proba = rbm.conditional_proba(unseen, "cultivar")
names = rbm.categories_[list(table.columns).index("cultivar")]
guess = np.asarray(names)[proba.argmax(axis=1)]
share = (guess == unseen["cultivar"]).mean()
print(f"cultivar predicted correctly for {share:.0%} of unseen wines")

# %%
# New wines
# ---------
# ``sample`` returns a table with the columns and data types of the training table.

new = rbm.sample(150, n_gibbs_steps=500, random_state=0)
print(new.head())

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True)
for ax, rows, title in zip(axes, (table, new), ("wines", "samples of the model"), strict=True):
    for name in names:
        is_own = rows["cultivar"] == name
        ax.scatter(rows["flavanoids"][is_own], rows["proline"][is_own], s=12, label=name)
    ax.set(xlabel="flavanoids", title=title)
axes[0].set_ylabel("proline")
axes[0].legend()
figure.tight_layout()
plt.show()
