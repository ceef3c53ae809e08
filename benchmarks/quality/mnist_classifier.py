"""What error on MNIST does the label as one more visible unit reach?

Test error in percent, seconds and processor seconds of RBMClassifier after one fit to the 60,000 grey
training images, for 500 hidden units or another number. The learning rate, of 0.003 and 0.01, was chosen
on 10,000 training images, by the error on the last 10,000. Published: 1.81 with 500 hidden units, trained
for the labels alone, and 1.28 with 1500, trained for both (Larochelle & Bengio 2008). Run from the
repository:

    python -m benchmarks.quality.mnist_classifier
    python -m benchmarks.quality.mnist_classifier 1500
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.metrics import log_loss

from benchmarks import machine as where
from benchmarks.data import mnist
from skrbm import BernoulliRBM, RBMClassifier

TRAINING = {
    "optimizer": "adam",
    "learning_rate": 0.01,
    "batch_size": 100,
    "n_iter": 15,
    "draw_states": False,
    "random_state": 0,
}


def main() -> None:
    question = where.begin(__doc__)
    images, y, images_test, y_test = mnist()
    X, X_test = ((A / 255).astype(np.float32) for A in (images, images_test))
    n_components = int(sys.argv[1]) if sys.argv[1:] else 500
    begin = time.perf_counter(), time.process_time()
    classifier = RBMClassifier(BernoulliRBM(n_components, verbose=1, **TRAINING)).fit(X, y)
    seconds, processor = time.perf_counter() - begin[0], time.process_time() - begin[1]
    results = {
        "error": 100 * (1 - classifier.score(X_test, y_test)),
        "log_loss": log_loss(y_test, classifier.predict_proba(X_test)),
        "seconds": seconds,
        "processor_seconds": processor,
    }
    print(n_components, {name: round(value, 4) for name, value in results.items()})
    path = where.write(f"mnist_classifier_{n_components}", question, results, training=TRAINING)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    main()
