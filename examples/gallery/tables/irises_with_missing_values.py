"""
Likelihood and samples of a table with missing values
=====================================================

One joint model of a table with a category and numbers: Fisher's irises, which ship with
scikit-learn.
"""

# %%
# Fit
# ---
# The species is one categorical unit, every measurement a number; nothing has to be encoded or
# scaled. A fifth of the cells is missing, and training follows the likelihood of the known cells.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from skrbm import TabularRBM

iris = load_iris(as_frame=True)
table = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
table["species"] = pd.Categorical.from_codes(iris.target, iris.target_names)
is_missing = np.random.default_rng(0).random(table.shape) < 0.2
incomplete = table.mask(is_missing)
rbm = TabularRBM(16, n_iter=200, random_state=0).fit(incomplete)

# %%
# Likely and unlikely rows
# ------------------------
# Log-likelihoods, in nats, of a probability times densities per centimetre.

log_likelihood = pd.Series(rbm.log_likelihood(table), name="nats")
print(table.join(log_likelihood).sort_values("nats").iloc[[0, 1, 2, -3, -2, -1]].round(1))

# %%
# Conditional probabilities
# -------------------------
# The species given the four measurements, and the petal's length given the rest of the row: both
# exact.

proba = rbm.conditional_proba(table, "species")
order = list(rbm.categories_[list(table).index("species")])
predicted = np.array(order)[proba.argmax(axis=1)]
print(f"species named rightly: {(predicted == table['species']).mean():.0%}")
error = rbm.conditional_mean(table, "petal length") - table["petal length"]
spread = table["petal length"].std()
print(f"petal length: error {np.sqrt((error**2).mean()):.2f} cm of {spread:.2f} cm")

# %%
# Imputed values with their uncertainty
# -------------------------------------
# The spread of the imputed copies is the uncertainty.

copies = rbm.impute(incomplete, n_imputations=50, random_state=0)
name = "petal length"
own = is_missing[:, list(table).index(name)]
draws = np.stack([copy[name][own] for copy in copies])
low, high = np.quantile(draws, [0.05, 0.95], axis=0)
truth = table[name][own].to_numpy()
print(f"90 % intervals hold {np.mean((low <= truth) & (truth <= high)):.0%} of the hidden lengths")

# %%
# A synthetic table beside the real one
# -------------------------------------
# Gibbs chains rarely cross from the irises with short petals to the others; chains at several
# temperatures do.

synthetic = rbm.sample(len(table), 300, n_temperatures=10, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for axis, rows, title in ((axes[0], table, "real rows"), (axes[1], synthetic, "synthetic rows")):
    for species, own_rows in rows.groupby("species", observed=False):
        axis.scatter(own_rows["petal length"], own_rows["petal width"], s=12, label=species)
    axis.set(title=title, xlabel="petal length (cm)", ylabel="petal width (cm)")
    axis.set(xlim=(0, 8), ylim=(-0.5, 3))
axes[0].legend()
middle = draws.mean(axis=0)
axes[2].errorbar(truth, middle, yerr=[middle - low, high - middle], fmt="o", ms=4, alpha=0.6)
axes[2].plot([1, 7], [1, 7], color="grey", lw=1)
axes[2].set(title="hidden petal lengths", xlabel="truth (cm)", ylabel="90 % interval (cm)")
plt.show()
