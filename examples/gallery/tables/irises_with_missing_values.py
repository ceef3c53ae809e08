"""
Likelihood and samples of a table with missing values
=====================================================

``TabularRBM`` fits one model to a table of numbers and a category: Fisher's irises, which come with
scikit-learn.
"""

# %%
# Fit
# ---
# ``TabularRBM`` encodes the species and scales the four measurements. About a fifth of the cells
# are missing. Training maximizes the likelihood of the known cells. No iris has a petal length
# between 1.9 and 3 cm; ``numeric_scale="mixture"`` represents such gaps better than the default.

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
rbm = TabularRBM(16, n_iter=200, numeric_scale="mixture", random_state=0).fit(incomplete)

# %%
# Unlikely rows
# -------------
# The log-likelihood of a row, in nats, is the logarithm of a probability times a density per cm^4.
# The petal width of 0.2 cm is so frequent that it has a probability, and the density of the other
# measurements is per cm^3. The output shows the five least likely rows.

log_likelihood = pd.Series(rbm.log_likelihood(table), name="nats")
print(table.join(log_likelihood).nsmallest(5, "nats").round(1))

# %%
# Conditional probabilities
# -------------------------
# ``conditional_proba`` computes the probabilities of the species given the measurements, and
# ``conditional_mean`` the mean petal length given the other columns.

proba = rbm.conditional_proba(table, "species")
order = list(rbm.categories_[list(table).index("species")])
predicted = np.array(order)[proba.argmax(axis=1)]
print(f"accuracy of the species: {(predicted == table['species']).mean():.0%}")
error = rbm.conditional_mean(table, "petal length") - table["petal length"]
spread = table["petal length"].std()
print(
    f"petal length: root mean square error {np.sqrt((error**2).mean()):.2f} cm, "
    f"standard deviation {spread:.2f} cm"
)

# %%
# Imputed values with their uncertainty
# -------------------------------------
# The variation of a value between the imputed copies shows its uncertainty.

copies = rbm.impute(incomplete, n_imputations=50, random_state=0)
name = "petal length"
own = is_missing[:, list(table).index(name)]
draws = np.stack([copy[name][own] for copy in copies])
low, high = np.quantile(draws, [0.05, 0.95], axis=0)
truth = table[name][own].to_numpy()
is_covered = (low <= truth) & (truth <= high)
print(f"90 % intervals contain {np.mean(is_covered):.0%} of the missing lengths")

# %%
# Synthetic rows
# --------------
# Gibbs chains rarely move between irises with short petals and the other irises. Chains at several
# temperatures move between them.

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
axes[2].plot([1, 7], [1, 7], color="gray", lw=1)
axes[2].set(title="missing petal lengths", xlabel="truth (cm)", ylabel="90 % interval (cm)")
plt.show()
