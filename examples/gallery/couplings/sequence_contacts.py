"""
Predict contacts from aligned sequences
=======================================

Sites of a protein that are in contact evolve together. This example simulates a family of sequences
with known contacts, and predicts the contacts from the couplings of a ``TabularRBM``.
"""

# %%
# A family with known contacts
# ----------------------------
# The sequences have 30 sites with 21 letters (20 amino acids and the gap). Twenty pairs of sites
# interact. Gibbs sampling draws 1500 sequences.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skrbm import LogoDisplay, TabularRBM, effective_couplings
from skrbm.sequences import contact_scores, sequence_weights

letters = np.array(list("-ACDEFGHIKLMNPQRSTVWY"))
n_rows, n_sites, n_contacts = 1500, 30, 20
rng = np.random.default_rng(0)
pairs = np.transpose(np.triu_indices(n_sites, 2))
contacts = rng.choice(pairs, n_contacts, replace=False)
fields = rng.normal(size=(n_sites, len(letters)))
neighbors = {}
for i, j in contacts:
    coupling = rng.normal(0, 1.5, (len(letters), len(letters)))
    neighbors.setdefault(i, []).append((j, coupling.T))
    neighbors.setdefault(j, []).append((i, coupling))
codes = rng.integers(len(letters), size=(n_rows, n_sites))
for _ in range(20):
    for i in range(n_sites):
        log_weights = fields[i] + sum(own[codes[:, j]] for j, own in neighbors.get(i, ()))
        codes[:, i] = np.argmax(log_weights + rng.gumbel(size=(n_rows, len(letters))), axis=1)

dtype = pd.CategoricalDtype(letters)
X = pd.DataFrame(letters[codes], columns=[str(i + 1) for i in range(n_sites)]).astype(dtype)
X.head()

# %%
# Fit, and compute the couplings
# ------------------------------
# ``read_fasta`` reads such a table from a file. Real families contain groups of similar sequences,
# whose influence ``sequence_weights`` reduces. The simulated family has no such groups.
# ``effective_couplings`` marginalizes over the hidden units.
#
# The fit warns of overfitting: the log-likelihood of new sequences is expected to be much lower than
# that of the training sequences. The contacts are nevertheless found. With ``l2=10 / n_rows``, the
# fit does not warn, but 19 instead of 20 of the highest scores are contacts. Use such a penalty if
# you need likelihoods or samples of the model.

weights = sequence_weights(X)
print(f"effective number of sequences: {weights.sum():.0f} of {n_rows}")
options = {"n_iter": 40, "batch_size": 100, "learning_rate": 2.0}
rbm = TabularRBM(60, **options, random_state=0).fit(X, sample_weight=weights)
couplings = effective_couplings(rbm)
scores = contact_scores(couplings, as_frame=True)
scores.head()

# %%
# Pairs with the highest scores
# -----------------------------
# The output shows how many of the twenty pairs with the highest scores are contacts. In the left
# plot, circles mark the true contacts.

true = {(str(i + 1), str(j + 1)) for i, j in contacts}
best = scores.head(n_contacts)
found = [pair in true for pair in zip(best["first"], best["second"], strict=True)]
print(f"contacts among the {n_contacts} highest scores: {sum(found)}")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
extent = (0.5, n_sites + 0.5, n_sites + 0.5, 0.5)  # sites are counted from one
axes[0].imshow(contact_scores(couplings), cmap="Blues", vmin=0, extent=extent)
axes[0].scatter(
    contacts[:, 1] + 1, contacts[:, 0] + 1, s=60, facecolors="none", edgecolors="tab:red"
)
axes[0].set(title="contact scores, nats", xlabel="site", ylabel="site")
ranks = np.arange(1, 61)
axes[1].plot(ranks, scores["score"].head(60), ".", color="lightgray", label="other pairs")
axes[1].plot(np.flatnonzero(found) + 1, best["score"][found], ".", label="contacts")
axes[1].set(title="scores in order", xlabel="rank", ylabel="score, nats")
axes[1].legend()
plt.show()

# %%
# Sequence logo of a hidden unit
# ------------------------------
# The logo shows the hidden unit with the largest weight norm, at the ten sites with the largest
# weight norms. Letters above zero increase the probability that the unit is on. The gap "-" is drawn
# as a solid block.

strongest = np.argmax(np.linalg.norm(rbm.components_, axis=1))
LogoDisplay.from_estimator(rbm, strongest, n_columns=10).ax_.set_xlabel("site")
plt.show()

# %%
# New sequences
# -------------
# At a temperature below one, samples have lower free energies, that is, higher probabilities under
# the model.

for temperature in (1.0, 0.5):
    sample = rbm.sample(100, 100, temperature=temperature, random_state=0)
    print(f"T = {temperature}: mean free energy {rbm.free_energy(sample).mean():.0f} nats")
