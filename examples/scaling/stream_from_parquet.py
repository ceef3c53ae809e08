"""Train a model on the row groups of a parquet file, and write its features to another file.

Each row group is read when it is needed, so that the file may be larger than memory. The script
prints the score, and the training times from the file and from memory.

    python examples/scaling/stream_from_parquet.py [--groups 8] [--passes 3]
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from skrbm import BernoulliRBM


def write_rows(path, n_groups, n_rows=4000, n_features=200):
    """Write random bits to a parquet file; the first half of the bits in a row are equal."""
    rng = np.random.default_rng(0)
    names = [f"bit{j}" for j in range(n_features)]
    schema = pa.schema([(name, pa.bool_()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(n_groups):
            X = rng.random((n_rows, n_features)) < 0.5
            X[:, : n_features // 2] = X[:, :1]
            writer.write_table(pa.Table.from_pandas(pd.DataFrame(X, columns=names), schema))


def blocks(path):
    """Yield the row groups of a file as data frames."""
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number).to_pandas()


def train(source, n_groups, n_passes):
    """Train on the blocks from `source` in each of several passes, with a decreasing rate."""
    rbm, number = BernoulliRBM(64, random_state=0), 0
    for _ in range(n_passes):
        for block in source():
            rbm.set_params(learning_rate=0.4 * (1 - number / (n_groups * n_passes)))
            rbm.partial_fit(block)
            number += 1
    return rbm


def write_features(rbm, path, target):
    """Write the features of each row group to a row group of another file."""
    names = list(rbm.get_feature_names_out())
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(target, schema) as writer:
        for block in blocks(path):
            features = pd.DataFrame(rbm.transform(block), columns=names)
            writer.write_table(pa.Table.from_pandas(features, schema, preserve_index=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    size = options.groups, options.passes
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder) / "rows.parquet", Path(folder) / "features.parquet"
        write_rows(path, options.groups)
        in_memory, seconds = list(blocks(path)), []
        for source in (lambda: in_memory, lambda: blocks(path)):
            begin = time.perf_counter()
            rbm = train(source, *size)
            seconds.append(time.perf_counter() - begin)
        write_features(rbm, path, target)
        print(f"score of the last row group: {rbm.score(in_memory[-1]):.2f} nats")
        print(f"features: {pq.ParquetFile(target).metadata.num_rows} rows")
        print(f"from memory {seconds[0]:.1f} s, from the file {seconds[1]:.1f} s")
        print(f"ratio: {seconds[1] / seconds[0]:.2f}")


if __name__ == "__main__":
    main()
