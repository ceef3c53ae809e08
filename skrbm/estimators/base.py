"""The estimators' common constructor, and features."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.negative_phase import ALGORITHMS
from skrbm.core.training.optimizer import OPTIMIZERS, SCHEDULES
from skrbm.estimators.aliases import ScikitLearnAliases
from skrbm.estimators.callbacks import CallbackSupportMixin
from skrbm.estimators.learning import Learner
from skrbm.estimators.sampler import Sampler
from skrbm.estimators.scoring import Scorer


class BaseRBM(
    CallbackSupportMixin,
    ScikitLearnAliases,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    Sampler,
    Scorer,
    Learner,
):
    """Restricted Boltzmann machine over the unit types that a subclass declares."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "algorithm": [StrOptions(set(ALGORITHMS))],
        "n_gibbs_steps": [Interval(Integral, 1, None, closed="left")],
        "n_particles": [Interval(Integral, 1, None, closed="left"), None],
        "n_temperatures": [Interval(Integral, 2, None, closed="left")],
        "centering": ["boolean"],
        "optimizer": [StrOptions(set(OPTIMIZERS))],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "learning_rate_schedule": [StrOptions(set(SCHEDULES))],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "average": ["boolean"],
        "l1": [Interval(Real, 0, None, closed="left")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "sparsity_target": [Interval(Real, 0, 1, closed="both")],
        "sparsity_cost": [Interval(Real, 0, None, closed="left")],
        "max_norm": [Interval(Real, 0, None, closed="neither"), None],
        "max_gradient_norm": [Interval(Real, 0, None, closed="neither"), None],
        "shuffle": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "check_input": [StrOptions({"warn", "raise", "ignore"})],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        learning_rate: float = 0.4,
        batch_size: int | str = "auto",
        n_iter: int = 10,
        algorithm: str = "pcd",
        n_gibbs_steps: int = 1,
        n_particles: int | None = 100,
        n_temperatures: int = 10,
        centering: bool = True,
        optimizer: str = "sgd",
        momentum: float = 0.0,
        learning_rate_schedule: str = "linear",
        power_t: float = 0.5,
        average: bool = True,
        l1: float = 0.0,
        l2: float = 0.0,
        sparsity_target: float = 0.1,
        sparsity_cost: float = 0.0,
        max_norm: float | None = None,
        max_gradient_norm: float | None = None,
        shuffle: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        warm_start: bool = False,
        check_input: str = "warn",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.algorithm = algorithm
        self.n_gibbs_steps = n_gibbs_steps
        self.n_particles = n_particles
        self.n_temperatures = n_temperatures
        self.centering = centering
        self.optimizer = optimizer
        self.momentum = momentum
        self.learning_rate_schedule = learning_rate_schedule
        self.power_t = power_t
        self.average = average
        self.l1 = l1
        self.l2 = l2
        self.sparsity_target = sparsity_target
        self.sparsity_cost = sparsity_cost
        self.max_norm = max_norm
        self.max_gradient_norm = max_gradient_norm
        self.shuffle = shuffle
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.warm_start = warm_start
        self.check_input = check_input
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._visible_type.states is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def transform(self, X: Any) -> Array:
        """Expected hidden states given the visible ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            Probabilities of hidden units that are 0 or 1, means in (-1, 1) of spins; of the
            precision of `X`.
        """
        return self._map_rows(Machine.mean_hidden, self._check_X(X))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def inverse_transform(self, X: Any) -> Array:
        """Expected visible states given the hidden ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Hidden states, or their means as `transform` returns them.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features)
            Means of the visible units.
        """
        H = self._check_H(X, name="X")
        return self._map_rows(Machine.mean_visible, H)
