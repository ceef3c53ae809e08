"""Train one model on a dask array, block by block, and survive being killed.

Every block is loaded when its turn comes, so that the array may be larger than memory. After every
block the model is saved with the number of the next one. The script kills itself in the middle of a
stream without warning, resumes it, and compares the bits with those of a stream that nobody killed.

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
    """Bits in which the first half of the features agree with each other."""
    rng = da.random.default_rng(0)
    X = rng.random((n_blocks * n_rows, n_features), chunks=(n_rows, -1)) < 0.5
    return da.where(da.arange(n_features) < n_features // 2, X[:, :1], X)


def save(path, *things):
    """Write a file that is there as a whole or not at all."""
    temporary = path.with_name(f"{path.name}.new")
    joblib.dump(things, temporary)
    os.replace(temporary, path)


def train(path, n_blocks, n_passes, dies_after=None):
    """Learn the blocks in turn from where the file says; the model, and seconds spent on saving."""
    blocks = rows(n_blocks).blocks
    n_all, saving = n_blocks * n_passes, 0.0
    rbm, n_done = BernoulliRBM(64, random_state=0), 0
    if path.exists():
        rbm, n_done = joblib.load(path)
    for number in range(n_done, n_all):
        rbm.set_params(learning_rate=0.4 * (1 - number / n_all))  # a plan of our own
        rbm.partial_fit(blocks[number % n_blocks].compute())
        if number + 1 == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        begin = time.perf_counter()
        save(path, rbm, number + 1)
        saving += time.perf_counter() - begin
    return rbm, saving


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--path", type=Path, help="checkpoint to go on with")
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--dies-after", type=int, help="number of blocks")
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
        print(f"blocks that it had saved: {joblib.load(path)[1]} of {size[0] * size[1]}")
        resumed, _ = train(path, *size)
        print(f"the same bits: {joblib.hash(vars(resumed)) == joblib.hash(vars(whole))}")
        print(f"time spent on saving: {saving / seconds:.1%}")


if __name__ == "__main__":
    main()
