"""Train on a file that is larger than the memory of the process.

The script writes rows of random bits with a pattern to a temporary file. It limits the address
space of the process to less than the size of the file, and passes the file to partial_fit in blocks
of rows. Then it prints the memory that was used, and the scores of rows with and without the
pattern.

    python examples/memory_mapped.py [--megabytes 2000] [--limit 1500]
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from skrbm import BernoulliRBM

N_FEATURES, N_CHUNK = 1000, 20_000


def rows(rng, n_rows):
    """Random bits, of which the first hundred in a row are equal except for 5 % noise."""
    X = rng.random((n_rows, N_FEATURES), dtype=np.float32) < 0.5
    X[:, :100] = X[:, :1] ^ (rng.random((n_rows, 100), dtype=np.float32) < 0.05)
    return X


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=2000, help="size of the file")
    parser.add_argument("--limit", type=int, default=1500, help="megabytes of address space")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n_chunks = options.megabytes * 10**6 // (N_CHUNK * N_FEATURES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.bin"
        block = rows(rng, N_CHUNK)
        with path.open("wb") as file:
            for number in range(n_chunks):
                file.write(np.roll(block, number, axis=0).tobytes())
        limit = options.limit * 10**6
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        rbm = BernoulliRBM(32, learning_rate_schedule="constant", random_state=0)
        begin = time.perf_counter()
        for number in range(n_chunks):  # map one block at a time; the whole file would not fit
            offset, shape = number * block.nbytes, (N_CHUNK, N_FEATURES)
            rbm.partial_fit(np.memmap(path, bool, "r", offset, shape))
        taken = time.perf_counter() - begin
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(
            f"{path.stat().st_size / 1e6:.0f} MB of rows in {taken:.0f} s, "
            f"{1e6 * taken / (n_chunks * N_CHUNK):.0f} us per row; {used:.0f} MB of memory used, "
            f"{options.limit} allowed"
        )
    new = rows(rng, 500)
    print(f"score of new rows:        {rbm.score(new):.1f} nats")
    print(f"of rows with no pattern:  {rbm.score(rng.permuted(new, axis=1)):.1f} nats")


if __name__ == "__main__":
    main()
