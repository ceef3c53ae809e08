"""How much memory does a fit take, beyond the data?

Each in a process of its own: a fit of one pass over a memory-mapped file of 60,000 x 784 bytes, beyond
the interpreter with the imports; over 100,000 x 50,000 sparse rows with 0.1 % ones, 64 components, in
all, with what a pass costs for each of them; and a stream of partial_fit over a file that is larger
than the memory that the process may have. Run on Linux from the repository:

    python -m benchmarks.speed.memory
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks import machine as where
from skrbm import BernoulliRBM

MEGABYTE = 2**20
N_CHUNK = 10_000
STREAM_ROWS, STREAM_LIMIT = 2_000_000, 1200  # rows of 784 bytes, megabytes of address space


def peak() -> float:
    """Largest resident memory of this program so far, megabytes; getrusage knows its parent's too."""
    status = Path("/proc/self/status").read_text()
    return float(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def memory_map(folder: Path) -> dict[str, float]:
    before = peak()
    X = np.load(folder / "rows.npy", mmap_mode="r")
    BernoulliRBM(n_iter=1, random_state=0).fit(X)
    return {"imports, MB": before, "fit beyond them, MB": peak() - before}


def sparse(folder: Path) -> dict[str, float]:
    X = sp.load_npz(folder / "rows.npz")
    rbm = BernoulliRBM(64, n_iter=1, random_state=0)
    begin = time.perf_counter()
    rbm.fit(X)
    taken = time.perf_counter() - begin
    return {"in all, MB": peak(), "s a pass": taken, "us a non-zero": 1e6 * taken / X.nnz}


def stream(folder: Path) -> dict[str, float]:
    """Rows of a file from which every chunk is read anew."""
    limit = STREAM_LIMIT * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    shape = (STREAM_ROWS, 784)
    size = (folder / "stream.bin").stat().st_size
    rbm = BernoulliRBM(64, random_state=0)
    begin = time.perf_counter()
    for first in range(0, STREAM_ROWS, N_CHUNK):
        rows = np.memmap(
            folder / "stream.bin", np.uint8, "r", offset=first * 784, shape=(N_CHUNK, 784)
        )
        rbm.partial_fit(rows)
    taken = time.perf_counter() - begin
    return {
        "file, MB": size / MEGABYTE,
        "limit, MB": limit / MEGABYTE,
        "s a pass": taken,
        "us a row": 1e6 * taken / shape[0],
    }


JOBS = {"memory_map": memory_map, "sparse": sparse, "stream": stream}


def make_data(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((60_000, 784)) < 0.2).astype(np.uint8)
    np.save(folder / "rows.npy", rows)
    with (folder / "stream.bin").open("wb") as file:
        for first in range(0, STREAM_ROWS, N_CHUNK):
            file.write(rows[first % 50_000 : first % 50_000 + N_CHUNK].tobytes())
    columns = rng.integers(50_000, size=(100_000, 50))
    ones = np.ones(columns.size, dtype=np.float32)
    X = sp.csr_array((ones, columns.ravel(), np.arange(100_001) * 50), shape=(100_000, 50_000))
    X.sum_duplicates()
    X.data[:] = 1
    sp.save_npz(folder / "rows.npz", X, compressed=False)


def main() -> None:
    question = where.begin(__doc__)
    results = {}
    with tempfile.TemporaryDirectory() as name:
        make_data(Path(name))
        for job in JOBS:
            command = [sys.executable, "-m", "benchmarks.speed.memory", job, name]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            results[job] = json.loads(output)
            print(
                job, {label: round(value, 2) for label, value in results[job].items()}, flush=True
            )
    path = where.write("memory", question, results)
    print(path.relative_to(where.ROOT))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) > 2:  # a job in a process of its own
        print(json.dumps(JOBS[sys.argv[1]](Path(sys.argv[2]))))
    else:
        main()
