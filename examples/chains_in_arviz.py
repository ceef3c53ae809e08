"""The traces of Gibbs chains in ArviZ: its summary beside the numbers of chain_diagnostics.

Two models of twenty spins that agree, weakly and strongly. What ArviZ says of mean, effective sample
size and R-hat needs the traces alone; arviz.plot_trace and arviz.plot_rank take the same data set. Run
from the repository, with arviz:

    python examples/chains_in_arviz.py
"""

import arviz
import numpy as np

from skrbm import SpinRBM, chain_diagnostics

N_SPINS = 20
WEIGHTS = {"weak": 0.12, "strong": 0.5}


def coupled(weight):
    """Model whose one hidden spin couples all others alike."""
    rbm = SpinRBM(1)
    rbm.components_ = np.full((1, N_SPINS), weight)
    rbm.intercept_visible_, rbm.intercept_hidden_ = np.zeros(N_SPINS), np.zeros(1)
    return rbm


def main():
    for name, weight in WEIGHTS.items():
        diagnostics = chain_diagnostics(coupled(weight), n_chains=4, n_steps=1000, random_state=0)
        data = arviz.convert_to_dataset(diagnostics.traces)
        print(f"{name} coupling")
        print(arviz.summary(data, kind="diagnostics")[["ess_bulk", "r_hat"]])
        print(diagnostics, end="\n\n")


if __name__ == "__main__":
    main()
