"""
Choose the learning rate by likelihood (GridSearchCV)
=====================================================

By default, ``GridSearchCV`` maximizes the pseudo-likelihood. With
``scoring=log_likelihood_scorer``, it maximizes the log-likelihood. In this example, both select the
same learning rate.
"""

# %%
# A search
# --------
# The splitter shuffles the rows, which cross-validation does not do by default. Twelve hidden units
# are few enough for the exact likelihood.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, KFold

from skrbm import BernoulliRBM, log_likelihood_scorer

X = (load_digits().data > 7)[:900]
rates = [0.01, 0.03, 0.1, 0.3, 1, 3, 10]
search = GridSearchCV(
    BernoulliRBM(12, n_iter=10, random_state=0),
    {"learning_rate": rates},
    scoring={"log-likelihood": log_likelihood_scorer, "pseudo-likelihood": lambda m, X: m.score(X)},
    cv=KFold(2, shuffle=True, random_state=0),
    refit=False,
).fit(X)

# %%
# Held-out scores
# ---------------
# The best rate is 3, which is much larger than the default of 0.4. Fits with few updates (here, ten
# epochs of 450 rows) need a larger rate or more epochs. After 100 epochs, a rate of 0.4 is at least
# as good as larger ones.

figure, ax = plt.subplots(figsize=(7, 4.2))
for name, style in (("log-likelihood", "o-"), ("pseudo-likelihood", "s--")):
    means = search.cv_results_[f"mean_test_{name}"]
    (line,) = ax.semilogx(rates, means, style, label=name)
    best = int(np.argmax(means))
    ax.plot(rates[best], means[best], "*", ms=16, color=line.get_color())
    print(f"best by {name}: learning_rate={rates[best]}")
ax.set(xlabel="learning rate", ylabel="nats per held-out row", title="Stars: best of each score")
ax.legend()
figure.tight_layout()
plt.show()
