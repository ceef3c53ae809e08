"""Real and synthetic rows of a table of wines."""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_wine

from skrbm import TabularRBM

wine = load_wine(as_frame=True)
table = wine.data[["alcohol", "color_intensity", "flavanoids", "proline"]].copy()
table["cultivar"] = pd.Categorical.from_codes(wine.target, ["Barolo", "Grignolino", "Barbera"])
rbm = TabularRBM(16, n_iter=100, random_state=0).fit(table)
synthetic = rbm.sample(len(table), n_gibbs_steps=200, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharex=True, sharey=True)
for ax, (title, rows) in zip(
    axes, (("real rows", table), ("synthetic rows", synthetic)), strict=True
):
    for name, group in rows.groupby("cultivar", observed=True):
        ax.scatter(group["flavanoids"], group["color_intensity"], s=12, alpha=0.7, label=name)
    ax.set(title=title, xlabel="flavanoids", ylabel="color intensity")
axes[1].legend()
figure.tight_layout()
