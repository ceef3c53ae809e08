"""Every public method of the estimators, once."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions, validate_params
from sklearn.utils.validation import check_consistent_length

from skrbm.core import sampling
from skrbm.core.likelihood import pseudo_likelihood
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.negative_phase import ALGORITHMS
from skrbm.estimators.aliases import ScikitLearnAliases
from skrbm.estimators.learning import Learner
from skrbm.estimators.validation import generators


class BaseRBM(ScikitLearnAliases, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner):
    """Restricted Boltzmann machine over the unit types that a subclass declares."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "algorithm": [StrOptions(set(ALGORITHMS))],
        "n_gibbs_steps": [Interval(Integral, 1, None, closed="left")],
        "n_particles": [Interval(Integral, 1, None, closed="left"), None],
        "centering": ["boolean"],
        "shuffle": ["boolean"],
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
        learning_rate: float = 0.1,
        batch_size: int = 20,
        n_iter: int = 10,
        algorithm: str = "pcd",
        n_gibbs_steps: int = 1,
        n_particles: int | None = None,
        centering: bool = True,
        shuffle: bool = True,
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
        self.centering = centering
        self.shuffle = shuffle
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

    def score_samples(self, X: Any) -> Array:
        """Exact log pseudo-likelihood of each row, deterministic.

        It has the expectation of the random estimate of scikit-learn's class. Its cost grows
        with n_samples * n_features * n_components, for Gaussian visible units times the number
        of quadrature nodes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        pseudo_likelihood : ndarray of shape (n_samples,)
            In nats, summed over the features.
        """
        X = self._check_X(X)
        return pseudo_likelihood(self._machine(X), X, self.n_jobs)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`: what a search without ``scoring=`` maximises.

        Without `y`, scikit-learn's cross-validation does not shuffle the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.
        y : object, default=None
            Ignored.

        Returns
        -------
        score : float
            In nats per row.
        """
        return float(self.score_samples(X).mean())

    def free_energy(self, X: Any) -> Array:
        r"""Free energy of each row, :math:`-\log p(v)` up to the constant :math:`\log Z`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        free_energy : ndarray of shape (n_samples,)
            In nats.
        """
        return self._map_rows(Machine.free_energy, self._check_X(X))

    def energy(self, X: Any, H: Any) -> Array:
        """Energy of each pair of visible and hidden states.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.
        H : array-like of shape (n_samples, n_components)
            Hidden states.

        Returns
        -------
        energy : ndarray of shape (n_samples,)
            In nats.
        """
        X, H = self._check_X(X), self._check_H(H, name="H")
        check_consistent_length(X, H)
        return self._map_rows(Machine.energy, X, H)

    def gibbs(self, v: Any) -> Array:
        """One Gibbs step: hidden states given the visible ones, then visible ones given those.

        Successive calls draw on from a random stream of their own.

        Parameters
        ----------
        v : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states to start from.

        Returns
        -------
        v_new : ndarray of shape (n_samples, n_features)
            Visible states after the step; booleans for Bernoulli units.
        """
        v = self._check_X(v)
        rng = self._stream()

        def step(machine: Machine, v: Any) -> Array:
            return self._as_states(sampling.gibbs(machine, v, 1, rng))

        return self._map_rows(step, v)

    @validate_params(
        {
            "n_samples": [Interval(Integral, 1, None, closed="left"), None],
            "n_gibbs_steps": [Interval(Integral, 0, None, closed="left")],
            "init": ["array-like", "sparse matrix", None],
            "random_state": ["random_state"],
        },
        prefer_skip_nested_validation=True,
    )
    def sample(
        self,
        n_samples: int | None = None,
        n_gibbs_steps: int = 1000,
        *,
        init: Any = None,
        random_state: Any = None,
    ) -> Array:
        """Draw visible states by Gibbs sampling.

        Parameters
        ----------
        n_samples : int, default=None
            Number of chains, hence of states; None for as many as `init` has rows, or one.
        n_gibbs_steps : int, default=1000
            Steps of every chain.
        init : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Visible states to go on from, such as an earlier sample; None starts from visible
            units without a field.
        random_state : int, RandomState instance or None, default=None
            None draws on from the estimator's own stream, so that successive calls differ.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features)
            One state of each chain.

        Raises
        ------
        ValueError
            If `n_samples` is given and not the number of rows of `init`.
        """
        machine = self._machine()
        if init is None:
            chains = np.empty((n_samples or 1, 0), dtype=machine.weights.dtype)
        else:
            chains = self._check_X(init)
            if n_samples not in (None, chains.shape[0]):
                raise ValueError(
                    f"n_samples={n_samples} expected to be the number of rows of init, got init "
                    f"of shape {chains.shape}. Leave n_samples out."
                )
        rng = self._stream() if random_state is None else generators(random_state, 1)[0]

        def run(machine: Machine, v: Any) -> Array:
            if init is None:
                v = sampling.sample_base(machine, len(v), rng)
            return sampling.gibbs(machine, v, n_gibbs_steps, rng)

        return self._map_rows(run, chains)
