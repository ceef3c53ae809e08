"""Train a model on the blocks of a dask array, and resume training after the process is killed.

Each block is loaded when it is needed, so that the array may be larger than memory. After each
block, the script saves the model and the index of the next block. It starts a process that is
killed in the middle of training, resumes this training, and compares the result bit by bit with
that of uninterrupted training.

    python examples/scaling/stream_with_checkpoints.py
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dask.array as da
import joblib

from skrbm import BernoulliRBM


def rows(n_blocks, n_rows=2000, n_features=200):
    """Random bits in a dask array; the first half of the bits in a row are equal."""
    rng = da.random.default_rng(0)
    X = rng.random((n_blocks * n_rows, n_features), chunks=(n_rows, -1)) < 0.5
    return da.where(da.arange(n_features) < n_features // 2, X[:, :1], X)


def save(path, *things):
    """Write a file atomically."""
    temporary = path.with_name(f"{path.name}.new")
    joblib.dump(things, temporary)
    os.replace(temporary, path)


def train(path, n_blocks, n_passes, dies_after=None):
    """Train on the blocks, starting from the file if it exists.

    The results are the model and the time spent on saving, in seconds.
    """
    blocks = rows(n_blocks).blocks
    n_all, saving = n_blocks * n_passes, 0.0
    rbm, n_done = BernoulliRBM(64, random_state=0), 0
    if path.exists():
        rbm, n_done = joblib.load(path)
    for number in range(n_done, n_all):
        rbm.set_params(learning_rate=0.4 * (1 - number / n_all))  # decreases to zero
        rbm.partial_fit(blocks[number % n_blocks].compute())
        if number + 1 == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        begin = time.perf_counter()
        save(path, rbm, number + 1)
        saving += time.perf_counter() - begin
    return rbm, saving


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--path", type=Path, help="checkpoint from which to resume")
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument(
        "--dies-after", type=int, help="number of blocks after which the process is killed"
    )
    options = parser.parse_args()
    size = options.blocks, options.passes
    if options.path is not None:
        train(options.path, *size, options.dies_after)
        return
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        whole, saving = train(Path(folder) / "whole.joblib", *size)
        seconds = time.perf_counter() - begin
        path = Path(folder) / "killed.joblib"
        half = options.blocks * options.passes // 2
        arguments = ["--path", path, "--blocks", size[0], "--passes", size[1], "--dies-after", half]
        command = [sys.executable, __file__, *map(str, arguments)]
        print(f"killed: status {subprocess.run(command, check=False).returncode}")
        print(f"saved blocks: {joblib.load(path)[1]} of {size[0] * size[1]}")
        resumed, _ = train(path, *size)
        print(f"the same bits: {joblib.hash(vars(resumed)) == joblib.hash(vars(whole))}")
        print(f"time spent on saving: {saving / seconds:.1%}")


if __name__ == "__main__":
    main()
