"""Callback that saves a fit in progress, and check of a fit that resumes from a checkpoint."""

from __future__ import annotations

import os
import shutil
import tempfile
from copy import copy, deepcopy
from numbers import Integral
from pathlib import Path
from typing import Any, final

import joblib
import numpy as np
from sklearn.base import clone

from skrbm.estimators.input.validation import warn_user, write_attributes

# Parameters that may differ between an interrupted fit and the fit that resumes it, since they do
# not change the remaining epochs. `missing` only accepts or refuses rows.
CHANGEABLE = {"n_jobs", "verbose", "warm_start", "random_state", "missing"}


@final
class Checkpoint:
    """Callback that saves a fit at regular intervals, so that another process can resume it.

    The file contains the estimator with the parameters after the saved epoch, and the progress of
    the fit. With `early_stopping`, these are the parameters of the last epoch; the best ones are
    set when the resumed fit ends. Set the callback on an `RBMClassifier` itself, but on the
    `estimator` of an `RBMImputer` or `RBMOutlierDetector`. To resume, load the estimator with
    `joblib.load`, make sure that `warm_start` is True (for an `RBMClassifier`, in its `estimator`,
    which must not be None), and call `fit` with the same rows, in the same format, and the same
    parameters. An `RBMImputer` or `RBMOutlierDetector` resumes if its `estimator` is the loaded one.
    A `Pipeline` with `memory` does not, since it clones its steps. The fit runs the remaining
    epochs. Except for the times in `history_`, its result is bit-for-bit equal to the result of an
    uninterrupted fit on the same machine. If the checkpoint was saved after the last epoch, `fit`
    runs no further epochs.

    Parameters
    ----------
    path : str or path-like
        File to write, in an existing folder. The file is replaced atomically: if the process is
        killed while it writes the file, the previous checkpoint is kept; a folder named
        ``.skrbm-...``, which can be deleted, may remain beside it. If the file cannot be written,
        for example to a full disk, a warning is issued and training continues. An existing file
        keeps its permissions. Like every pickle, a checkpoint can run code when it is loaded: only
        load checkpoints that you trust.
    every : int, default=1
        Number of epochs between two checkpoints. A checkpoint is also saved after epoch `n_iter`,
        and after the epoch at which `early_stopping` or the schedule "adaptive" ends the fit.

    Notes
    -----
    Callbacks require scikit-learn 1.9 or later.

    Examples
    --------
    >>> import joblib, tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_digits
    >>> from skrbm import BernoulliRBM, Checkpoint
    >>> X = load_digits().data / 16
    >>> path = Path(tempfile.mkdtemp()) / "digits.joblib"

    A job that may be killed and restarted:

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
            Estimator to be fitted.
        context : object
            Callback context of scikit-learn.

        Raises
        ------
        TypeError
            If `path` is not a string or path.
        ValueError
            If `every` is not a positive integer, if `path` is a folder, or if its parent folder
            does not exist or is not writable.
        """
        if not (isinstance(self.every, Integral) and self.every >= 1):
            raise ValueError(
                f"every expected a number of epochs, at least 1, got {self.every!r}. Set every=1 to "
                f"save after every epoch."
            )
        if not isinstance(self.path, (str, os.PathLike)):
            raise TypeError(f"path expected a string or pathlib.Path, got {self.path!r}.")
        path = Path(self.path).resolve()
        if path.is_dir() or not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
            raise ValueError(
                f"path expected a file in an existing, writable folder, got {str(self.path)!r}. "
                f"Create {str(path.parent)!r} first, or name a file in a folder."
            )

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing, because each checkpoint is complete when it has been written.

        Parameters
        ----------
        estimator : object
            Fitted estimator.
        context : object
            Callback context of scikit-learn.
        """

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing before a fit or an epoch.

        Parameters
        ----------
        estimator : object
            Estimator that is being fitted.
        context : object
            Callback context of scikit-learn.
        """

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, fitted_estimator: Any = None
    ) -> None:
        """Save the fit after an epoch, if a checkpoint is due.

        If the file cannot be written, training continues, and the previous file is kept.

        Parameters
        ----------
        estimator : object
            Estimator that is being fitted.
        context : object
            Callback context of scikit-learn.
        fitted_estimator : object, default=None
            Copy of the estimator with the fitted attributes after this epoch. If it is None or has
            no checkpoint, nothing is saved.

        Warns
        -----
        UserWarning
            If the file cannot be written, for example because the disk is full.
        """
        checkpoint = getattr(fitted_estimator, "_training_state", {}).get("checkpoint")
        if checkpoint is None:
            return
        n_done, n_iter = checkpoint["n_done"], checkpoint["n_iter"]
        if n_done % self.every and n_done < n_iter:
            return
        kept = copy(fitted_estimator)
        callbacks = [name for name in vars(kept) if "callback" in name]
        write_attributes(kept, dict.fromkeys(callbacks))  # callbacks belong to this process
        path = Path(self.path).resolve()  # a link is kept, and its target replaced
        try:
            _write(kept, path)
        except OSError as error:
            warn_user(
                f"The checkpoint {str(path)!r} could not be written: {error.strerror or error}. "
                f"Training continues, and an earlier checkpoint is kept. Check the folder and the "
                f"free disk space.",
                UserWarning,
            )


def _write(estimator: Any, path: Path) -> None:
    """Write a pickle of an estimator, which replaces an existing file atomically."""
    # A file in a new folder has the permissions of other new files, unlike that of `mkstemp`.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".skrbm-") as folder:
        temporary = Path(folder, path.name)
        with temporary.open("wb") as file:
            joblib.dump(estimator, file)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)


def copy_to_fit(estimator: Any) -> Any:
    """Copy of an estimator that is to be fitted.

    Parameters
    ----------
    estimator : estimator object
        Estimator of the user, which is not changed.

    Returns
    -------
    copied : estimator object
        Clone, or a copy with all attributes if `warm_start` is True and the estimator contains a
        checkpoint. The callbacks are shared, as with a clone.
    """
    training_state = getattr(estimator, "_training_state", {})
    if not (getattr(estimator, "warm_start", False) and "checkpoint" in training_state):
        return clone(estimator)
    callbacks = getattr(estimator, "_skl_callbacks", None)
    return deepcopy(estimator, {id(callbacks): callbacks})


def fixed_settings(owner: Any) -> dict[str, str]:
    """Hashes, by name, of the parameters that must not change when a fit is resumed."""
    parameters = owner.get_params(deep=False)
    if "estimator" in parameters:  # of a classifier; None stands for its default
        of_estimator = owner.estimator_.get_params(deep=False).items()
        parameters |= {f"estimator__{name}": value for name, value in of_estimator}
        del parameters["estimator"]
    return {
        name: joblib.hash(value.item() if isinstance(value, np.generic) else value)
        for name, value in parameters.items()
        if name.rpartition("__")[2] not in CHANGEABLE
    }


def check_same_fit(checkpoint: dict[str, Any], owner: Any, rows: tuple[int, str]) -> None:
    """Check that a fit has the parameters and the rows of the interrupted fit that it resumes.

    Parameters
    ----------
    checkpoint : dict
        Checkpoint, a dictionary with at least the keys "settings" and "rows".
    owner : BaseRBM or RBMClassifier
        Estimator to be fitted.
    rows : tuple of int and str
        `Problem.digest`: number of rows, and digest of the rows, their weights and labels.

    Raises
    ------
    ValueError
        If a parameter that is not in `CHANGEABLE`, a row, a weight or a label has changed since the
        checkpoint.
    """
    before, present = checkpoint["settings"], fixed_settings(owner)
    changed = [name for name in present if present[name] != before.get(name)]
    if changed:
        raise ValueError(
            f"A checkpoint can only be resumed with the same parameters, but {changed} were changed. "
            f"Set them back, or set warm_start=False to train a new model."
        )
    if rows != checkpoint["rows"]:
        raise ValueError(
            f"A checkpoint can only be resumed with the same {checkpoint['rows'][0]} rows, but got "
            f"{rows[0]} rows, or other values, in another order, or with other weights or labels. Pass "
            f"the same rows, or set warm_start=False to train a new model."
        )
