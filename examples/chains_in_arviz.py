"""Diagnose Gibbs chains with ArviZ, and compare the result with chain_diagnostics.

The script diagnoses two models of twenty spins, with weak and with strong coupling. ArviZ computes
the effective sample size and R-hat from the traces; arviz.plot_trace and arviz.plot_rank accept the
same data set. Run from the repository, with arviz installed:

    python examples/chains_in_arviz.py
"""

import arviz
import numpy as np

from skrbm import SpinRBM, chain_diagnostics

N_SPINS = 20
WEIGHTS = {"weak": 0.12, "strong": 0.5}


def coupled(weight):
    """Model whose single hidden spin couples all visible spins equally."""
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
