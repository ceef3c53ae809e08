"""
Predict contacts from aligned sequences
=======================================

Sites of a protein that touch evolve together. In a simulated family whose contacts are known, a
fitted ``TabularRBM`` finds them again.
"""

# %%
# A family with known contacts
# ----------------------------
# Thirty sites, twenty amino acids and the gap, and twenty pairs of sites that act on each other.
# Gibbs sampling draws fifteen hundred sequences.

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
neighbours = {}
for i, j in contacts:
    coupling = rng.normal(0, 1.5, (len(letters), len(letters)))
    neighbours.setdefault(i, []).append((j, coupling.T))
    neighbours.setdefault(j, []).append((i, coupling))
codes = rng.integers(len(letters), size=(n_rows, n_sites))
for _ in range(20):
    for i in range(n_sites):
        log_weights = fields[i] + sum(own[codes[:, j]] for j, own in neighbours.get(i, ()))
        codes[:, i] = np.argmax(log_weights + rng.gumbel(size=(n_rows, len(letters))), axis=1)

dtype = pd.CategoricalDtype(letters)
X = pd.DataFrame(letters[codes], columns=[str(i + 1) for i in range(n_sites)]).astype(dtype)
X.head()

# %%
# Fit, and sum out the hidden units
# ---------------------------------
# ``read_fasta`` reads such a table from a file. Real families contain groups of close relatives:
# ``sequence_weights`` makes each group count as one sequence. Here there are no such groups.

weights = sequence_weights(X)
print(f"effective number of sequences: {weights.sum():.0f} of {n_rows}")
options = {"n_iter": 40, "batch_size": 100, "learning_rate": 2.0}
rbm = TabularRBM(60, **options, random_state=0).fit(X, sample_weight=weights)
couplings = effective_couplings(rbm)
scores = contact_scores(couplings, as_frame=True)
scores.head()

# %%
# The best scores are the contacts
# --------------------------------
# Nearly all of the twenty pairs with the best scores are contacts. Below, the true contacts are
# circles.

true = {(str(i + 1), str(j + 1)) for i, j in contacts}
best = scores.head(n_contacts)
found = [pair in true for pair in zip(best["first"], best["second"], strict=True)]
print(f"contacts among the {n_contacts} best scores: {sum(found)}")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
extent = (0.5, n_sites + 0.5, n_sites + 0.5, 0.5)  # sites are counted from one
axes[0].imshow(contact_scores(couplings), cmap="Blues", vmin=0, extent=extent)
axes[0].scatter(
    contacts[:, 1] + 1, contacts[:, 0] + 1, s=60, facecolors="none", edgecolors="tab:red"
)
axes[0].set(title="contact scores, nats", xlabel="site", ylabel="site")
axes[1].plot(scores["score"].head(60), ".", color="lightgray")
axes[1].plot(np.flatnonzero(found), best["score"][found], ".", label="contacts")
axes[1].set(title="scores in order", xlabel="rank", ylabel="score, nats")
axes[1].legend()
plt.show()

# %%
# Sequence logo of a hidden unit
# ----------------------------------------
# The strongest hidden unit, at the ten sites with the largest weights: letters above zero switch it
# on.

strongest = np.argmax(np.linalg.norm(rbm.components_, axis=1))
LogoDisplay.from_estimator(rbm, strongest, n_columns=10)
plt.show()

# %%
# New sequences, more like the family than the family
# ---------------------------------------------------
# At a temperature below one, likely sequences become likelier.

for temperature in (1.0, 0.5):
    sample = rbm.sample(100, 100, temperature=temperature, random_state=0)
    print(f"T = {temperature}: mean free energy {rbm.free_energy(sample).mean():.0f} nats")
