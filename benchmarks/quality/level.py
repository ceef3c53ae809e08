"""How likely does the best model make binarised MNIST, in 5 and in 30 minutes on two cores?

784 x 500 hidden units, test log-likelihood from both sides by 10,000 inverse temperatures; and
784 x 25, exactly. Published for 500: CD-25 -86.34 (Salakhutdinov, Murray 2008), centered PCD -84.86;
for 25: PCD -129.1, fast PCD -130.7, CD-10 -139.4. Run from the repository, all or by name:

    python -m benchmarks.quality.level [small] [minutes5] [minutes30]
"""

from __future__ import annotations

import sys
import time

from benchmarks import machine as where
from benchmarks.data import binarized_mnist
from benchmarks.likelihood import bracket
from skrbm import BernoulliRBM

RUNS = {
    "small": {"n_components": 25, "n_iter": 100, "n_particles": 500},
    "minutes5": {
        "n_components": 500,
        "n_iter": 50,
        "learning_rate": 0.3,
        "n_particles": 500,
        "l2": 3e-4,
    },
    "minutes30": {
        "n_components": 500,
        "n_iter": 270,
        "learning_rate": 0.3,
        "n_particles": 500,
        "l1": 4e-5,
        "l2": 2e-4,
    },
}


def main() -> None:
    question = where.begin(__doc__)
    train, test = binarized_mnist()
    for name in sys.argv[1:] or RUNS:
        rbm = BernoulliRBM(random_state=0, n_jobs=-1, **RUNS[name])
        begin = time.perf_counter()
        rbm.fit(train)
        row = {"seconds": time.perf_counter() - begin}
        if name == "small":
            row |= {
                "log_likelihood": float(rbm.log_likelihood(test, rbm.log_partition("exact")).mean())
            }
        else:
            row |= bracket(rbm, test, train)
        print(name, RUNS[name], row, flush=True)
        path = where.write(f"level_{name}", question, row, **RUNS[name])
        print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
