"""Checkpoints: a callback that saves a fit under way, and a check of the fit that goes on."""

from __future__ import annotations

import os
import tempfile
from copy import copy
from pathlib import Path
from typing import Any, final

import joblib

from skrbm.estimators.input.validation import write_attributes

FREE = {"n_jobs", "verbose", "warm_start", "random_state"}  # parameters that may be changed


@final
class Checkpoint:
    """Callback that saves a fit after some passes, for another process to go on with.

    The file holds the estimator as it would be if the fit had ended there, and the plan of the
    fit. A `fit` of what `joblib.load` reads, with `warm_start=True` and the same rows, makes the
    passes that are left: killed and resumed, a fit ends with the same bits as one that nobody
    killed. A checkpoint of the last pass leaves nothing to do.

    Parameters
    ----------
    path : str or path-like
        File to write, in a folder that exists. It is replaced as a whole: a process that is killed
        while it writes leaves the one before. Like every pickle, a checkpoint can run code when
        it is loaded: load none that you do not trust.
    every : int, default=1
        Number of passes between two checkpoints; the last pass is always saved.

    Notes
    -----
    Needs scikit-learn 1.9 or later, which has callbacks.

    Examples
    --------
    >>> import joblib, tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_digits
    >>> from skrbm import BernoulliRBM, Checkpoint
    >>> X = load_digits().data / 16
    >>> path = Path(tempfile.mkdtemp()) / "digits.joblib"

    A job that may be killed and started again:

    >>> rbm = BernoulliRBM(4, n_iter=6, warm_start=True, random_state=0)
    >>> if path.exists():
    ...     rbm = joblib.load(path)
    >>> if hasattr(rbm, "set_callbacks"):  # scikit-learn 1.9 or later
    ...     rbm = rbm.set_callbacks(Checkpoint(path, every=2))
    >>> rbm.fit(X).n_iter_
    6
    """

    def __init__(self, path: Any, *, every: int = 1) -> None:
        self.path = path
        self.every = every

    def setup(self, estimator: Any, context: Any) -> None:
        """Check the parameters.

        Parameters
        ----------
        estimator : object
            About to be fitted.
        context : object
            Of scikit-learn.

        Raises
        ------
        ValueError
            If `every` is no positive integer, `path` is a folder, or its folder does not exist or
            cannot be written to.
        """
        if not (isinstance(self.every, int) and self.every >= 1):
            raise ValueError(
                f"every expected a number of passes, at least 1, got {self.every!r}. Leave it at "
                f"1 to save after every pass."
            )
        path = Path(self.path).absolute()
        if path.is_dir() or not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
            raise ValueError(
                f"path expected a file in a folder that exists and can be written to, got "
                f"{str(self.path)!r}. Create {str(path.parent)!r} first, or name a file in a folder."
            )

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: every checkpoint is complete when it is written.

        Parameters
        ----------
        estimator : object
            That is fitted.
        context : object
            Of scikit-learn.
        """

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing before a pass.

        Parameters
        ----------
        estimator : object
            That is fitted.
        context : object
            Of scikit-learn.
        """

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, fitted_estimator: Any = None
    ) -> None:
        """Save the fit after a pass, if it is its turn.

        Parameters
        ----------
        estimator : object
            That is fitted.
        context : object
            Of scikit-learn.
        fitted_estimator : object
            What it would be if the fit ended here.
        """
        checkpoint = getattr(fitted_estimator, "_training_state", {}).get("checkpoint")
        if checkpoint is None:
            return
        n_done, n_iter = checkpoint["n_done"], checkpoint["n_iter"]
        if n_done % self.every and n_done < n_iter:
            return
        kept = copy(fitted_estimator)
        callbacks = [name for name in vars(kept) if "callback" in name]
        write_attributes(kept, dict.fromkeys(callbacks))  # which belong to the process
        path = Path(self.path).absolute()
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                joblib.dump(kept, file)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def fixed_settings(owner: Any) -> dict[str, str]:
    """Hashes of the parameters that a checkpoint goes on with."""
    parameters = owner.get_params(deep=True).items()
    return {
        name: joblib.hash(value)
        for name, value in parameters
        if name.rpartition("__")[2] not in FREE and not hasattr(value, "get_params")
    }


def check_same_fit(checkpoint: dict[str, Any], owner: Any, rows: tuple[int, str]) -> None:
    """Refuse a fit that is not the one that a checkpoint was made of.

    Parameters
    ----------
    checkpoint : dict
        With its "settings" and its "rows".
    owner : BaseRBM or RBMClassifier
        About to be fitted.
    rows : tuple of int and str
        Number and digest of its rows.

    Raises
    ------
    ValueError
        If parameters or rows have changed.
    """
    before, present = checkpoint["settings"], fixed_settings(owner)
    changed = [name for name in present if present[name] != before.get(name)]
    if changed:
        raise ValueError(
            f"A checkpoint goes on with the parameters that it was made with, but {changed} were "
            f"changed. Set them back, or set warm_start=False to start anew."
        )
    if rows != checkpoint["rows"]:
        raise ValueError(
            f"A checkpoint goes on with the rows that it was made with, {checkpoint['rows'][0]} of "
            f"them, but got {rows[0]} rows, or others, in another order, or with other weights or "
            f"labels. Pass those rows, or set warm_start=False to start anew."
        )
