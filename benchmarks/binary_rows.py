"""Binary density sets: rows from the folder of the public repository, or from the folder SKRBM_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

PARTS = ("train", "valid", "test")
# Names of the sets in papers where the repository has others.
REPOSITORY_NAMES = {"movie": "tmovie", "reuters": "cr52"}


def binary_rows(name: str, folder: Path | None = None) -> dict[str, np.ndarray]:
    """Training, validation and test rows of a set of the density estimation tables.

    Parameters
    ----------
    name : str
        Name of the set.
    folder : Path, default=None
        Folder ``datasets`` of a clone of github.com/arranger1044/DEBD, with files
        ``NAME/NAME.{train,valid,test}.data`` of commas between 0 and 1. None for ``debd.npz`` in the
        folder SKRBM_DATA, which packs the bits of each row.

    Returns
    -------
    rows : dict of str to ndarray of shape (n_samples, n_columns)
        Single precision, by the names in `PARTS`.
    """
    if folder is not None:
        stem = REPOSITORY_NAMES.get(name, name)
        return {
            part: pd.read_csv(folder / stem / f"{stem}.{part}.data", header=None).to_numpy(
                np.float32
            )
            for part in PARTS
        }
    if "SKRBM_DATA" not in os.environ:
        raise SystemExit("Name the folder of the sets by --folder, or set SKRBM_DATA.")
    with np.load(Path(os.environ["SKRBM_DATA"]) / "debd.npz") as packed:
        n_columns = int(packed[f"{name}_width"])
        return {
            part: np.unpackbits(packed[f"{name}_{part}"], axis=1)[:, :n_columns].astype(np.float32)
            for part in PARTS
        }
