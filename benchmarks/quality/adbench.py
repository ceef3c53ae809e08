"""Does `RBMOutlierDetector` tell anomalies of ADBench's tables from normal rows as well as its peers?

Areas under the ROC curve, everything at its defaults, one split. "clean" is the semi-supervised protocol:
half of the normal rows are learned, the other half and all anomalies are tested. "mixed" learns half of
all rows, anomalies among them, and tests the other half. Columns are standardised on the learned rows.
Beside it, the distance to the fifth neighbour and IsolationForest. The tables are read from a folder of the
files ``NUMBER_NAME.npz`` of github.com/Minqi824/ADBench, or from ``adbench.npz`` in the folder SKRBM_DATA;
at most 8,000 rows of each. A table is written when it is done, and not run again. Run from the repository:

    python -m benchmarks.quality.adbench [TABLE ...] [--folder datasets/Classical]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from benchmarks import machine as where
from skrbm import RBMOutlierDetector

MAX_ROWS, N_NEIGHBORS = 8000, 5
DETECTORS = "skrbm", "kNN", "IsolationForest"


def tables(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Names of the tables, rows, and labels of which 1 is an anomaly."""
    if folder is not None:
        for path in sorted(folder.glob("*.npz")):
            with np.load(path, allow_pickle=True) as data:
                X, y = data["X"], data["y"]
            if len(X) > MAX_ROWS:
                X, _, y, _ = train_test_split(X, y, train_size=MAX_ROWS, stratify=y, random_state=0)
            yield path.stem.partition("_")[2], X, y
        return
    if "SKRBM_DATA" not in os.environ:
        raise SystemExit("Name the folder of the tables by --folder, or set SKRBM_DATA.")
    with np.load(Path(os.environ["SKRBM_DATA"]) / "adbench.npz") as data:
        names = [name.removesuffix("_X") for name in data.files if name.endswith("_X")]
        for name in sorted(names, key=lambda name: data[f"{name}_X"].size):
            yield name, data[f"{name}_X"], data[f"{name}_y"]


def splits(y: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Numbers of the rows that are learned and tested, by protocol."""
    normal = np.flatnonzero(y == 0)
    learned, others = train_test_split(normal, train_size=0.5, random_state=0)
    clean = learned, np.concatenate([others, np.flatnonzero(y == 1)])
    mixed = train_test_split(np.arange(len(y)), train_size=0.5, stratify=y, random_state=0)
    return {"clean": clean, "mixed": (mixed[0], mixed[1])}


def outlyingness(name: str, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Score of each tested row, larger for less usual ones."""
    if name == "kNN":
        neighbors = NearestNeighbors(n_neighbors=N_NEIGHBORS).fit(train)
        return np.asarray(neighbors.kneighbors(test)[0][:, -1])
    detector: Any = RBMOutlierDetector() if name == "skrbm" else IsolationForest(random_state=0)
    return np.asarray(-detector.fit(train).score_samples(test))


def areas(X: np.ndarray, y: np.ndarray) -> dict[str, dict[str, dict[str, float]]]:
    """Area and processor seconds of each detector by protocol."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for protocol, (learned, tested) in splits(y).items():
        scaler = StandardScaler().fit(X[learned])
        train, test = scaler.transform(X[learned]), scaler.transform(X[tested])
        found[protocol] = {}
        for name in DETECTORS:
            begin = time.process_time()
            scores = outlyingness(name, train, test)
            seconds = round(time.process_time() - begin, 2)
            area = float(roc_auc_score(y[tested], scores))
            found[protocol][name] = {"area": area, "seconds": seconds}
    return found


def show_means(results: dict[str, Any]) -> None:
    """Print the mean area of each detector by protocol."""
    for protocol in ("clean", "mixed"):
        means = {
            name: round(
                float(np.mean([own[protocol][name]["area"] for own in results.values()])), 3
            )
            for name in DETECTORS
        }
        print(f"mean of {len(results)}, {protocol}", means)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    question = where.begin(__doc__)
    warnings.simplefilter("ignore")
    for name, X, y in tables(arguments.folder):
        if name in where.written("adbench") or (arguments.tables and name not in arguments.tables):
            continue
        found = areas(X.astype(np.float64), y)
        where.write(
            "adbench", question, where.written("adbench") | {name: found}, max_rows=MAX_ROWS
        )
        for protocol, own in found.items():
            print(
                f"{name:20} {protocol}",
                {k: round(v["area"], 3) for k, v in own.items()},
                flush=True,
            )
    show_means(where.written("adbench"))


if __name__ == "__main__":
    main()
