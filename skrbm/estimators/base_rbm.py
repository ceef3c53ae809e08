"""The estimators' one base: parameters, fit, partial_fit and features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils._param_validation import Interval, StrOptions

from skrbm._version import __version__
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.negative_phase import ALGORITHMS
from skrbm.core.training.optimizer import OPTIMIZERS, SCHEDULES
from skrbm.core.training.part import Part
from skrbm.core.units import HIDDEN_TYPES, Units
from skrbm.estimators.aliases import ScikitLearnAliases
from skrbm.estimators.fitting.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from skrbm.estimators.fitting.fit import fit_estimator
from skrbm.estimators.fitting.problem import RowProblem
from skrbm.estimators.inference.missing_values import average_over_draws
from skrbm.estimators.inference.model import Place, hidden_arrays
from skrbm.estimators.inference.sampling import SamplingMixin
from skrbm.estimators.inference.scoring import LikelihoodMixin
from skrbm.estimators.input.formats import ArrayRows, RowFormat, known_units
from skrbm.estimators.input.validation import (
    RANDOM_STATE,
    VersionWarning,
    public_methods_of,
    warn_user,
)


def store_parameters(estimator: object, arguments: dict[str, Any]) -> None:
    """Set the arguments of a constructor as attributes of the same names.

    Parameters
    ----------
    estimator : object
        Estimator that is constructed.
    arguments : dict of str to object
        ``locals()`` of its ``__init__``, before any other statement.
    """
    for name, value in arguments.items():
        if name not in ("self", "__class__"):  # the second is there if __init__ calls super()
            setattr(estimator, name, value)


@public_methods_of
class BaseRBM(
    CallbackSupportMixin,
    ScikitLearnAliases,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    SamplingMixin,
    LikelihoodMixin,
    BaseEstimator,
    ABC,
):
    """Restricted Boltzmann machine over the unit types that a subclass declares.

    The parameters are those of all machines, in groups: model, training, regularisation, stopping,
    runtime. `inherit_docstring` completes the docstrings of subclasses by these entries.

    Parameters
    ----------
    n_components : int
        Number of hidden units.
    hidden_units : {"binary", "gaussian", "relu", "drelu"}
        Type of the hidden units. "binary" ones have the two states of the class. Others are real
        numbers: "gaussian" ones couple the features by pairs, as a Hopfield network does; "relu" ones
        are zero or more; "drelu" ones have a curvature and a threshold on either side of zero [5]_.
        Their mean curvature is one, since a scale of theirs is one of the weights.
    learning_rate : float
        Initial learning rate.
    batch_size : int or "auto"
        Largest number of rows in a mini-batch; "auto" is a hundredth of the rows, at least 20 and
        at most 100.
    n_iter : int
        Number of epochs of `fit`.
    algorithm : {"pcd", "cd", "pt", "exact"}
        Estimator of the negative phase, which is the mean of the gradient under the model. "pcd" is
        persistent contrastive divergence: chains continue from update to update [1]_. "cd" is
        contrastive divergence: chains start at the mini-batch [2]_. "pt" is parallel tempering:
        persistent chains at several temperatures exchange their states [3]_. "exact" sums over all
        states of the smaller discrete layer, of at most 25 units. Persistent chains also jump to the
        data, by Metropolis moves that leave the model invariant, so that they reach modes that lie
        far apart. Clusters with wide gaps between them are learned exactly by a few hidden units
        before the first update, except in tables and with fixed variances.
    n_gibbs_steps : int
        Number of Gibbs steps of the chains for each update.
    n_particles : int or None
        Number of persistent chains; None for the number of rows in a mini-batch.
    n_temperatures : int
        Number of temperatures of "pt", from the model's to that of independent features, both
        included; their spacing follows the acceptance of exchanges. Each particle has one chain at
        each temperature.
    centering : bool
        Follow the centred gradient, which does not depend on which state of a unit is called zero
        [4]_. The fitted attributes are the plain model's in either case.
    optimizer : {"sgd", "adam"}
        Update rule: stochastic gradient ascent with heavy-ball momentum, or Adam, which needs a
        smaller `learning_rate`, such as 0.01.
    momentum : float
        Share of the previous step, in [0, 1), that is added to each step, so that the effective
        learning rate is larger by 1 / (1 - momentum). For Adam, decay rate of the mean gradient.
    learning_rate_schedule : {"constant", "linear", "adaptive"}
        Schedule of the learning rate. "linear" falls to zero over the `n_iter` epochs of `fit`, and
        is constant in `partial_fit`, where the number of epochs is unknown. "adaptive" divides by 5
        after `n_iter_no_change` epochs without a score that is better by `tol`, and ends the fit
        below 1e-6.
    average : bool
        Average the fitted attributes over the updates, late ones weighing more (Polyak averaging).
        Training itself continues from the last parameters.
    max_gradient_norm : float or None
        Largest Euclidean norm of the gradient over all parameters; a longer gradient is scaled down
        to it. None for no limit.
    shuffle : bool
        Visit the rows in a new random order in every epoch.
    draw_states : bool
        Draw states anew in every epoch from values between the two states, such as grey pixels, with
        the values as their means. If False, they are learned as they are, which leaves hidden units
        unused. Sparse rows are always learned as they are. Where values are missing, rows with such
        values take ten Gibbs steps in every epoch.
    l1 : float
        Penalty on the sum of the absolute weights.
    l1_squared : float
        Penalty on half the square of the sum of a hidden unit's absolute weights, summed over hidden
        units and divided by the number of visible columns. Unlike with `l1`, a strong unit is
        penalised more than a weak one, so that all become sparse alike: Tubiana and others (2019),
        :doi:`10.7554/eLife.39397`.
    l2 : float
        Penalty on half the sum of the squared weights.
    max_norm : float or None
        Largest Euclidean norm of the weights of a hidden unit; None for no limit.
    early_stopping : bool
        Hold out rows in `fit`, stop when their score no longer rises, and keep the parameters of the
        best score.
    validation_fraction : float
        Share of the rows that `early_stopping` holds out.
    n_iter_no_change : int
        Number of epochs without a better score that ends an early-stopped fit.
    tol : float
        Smallest rise of the score that counts as better, in nats per row.
    track_likelihood : bool
        Record the log-likelihood with its standard error in `history_`, estimated by chains that
        follow the model from epoch to epoch; missing values are then a ValueError. `early_stopping`
        compares the log-likelihoods of the held-out rows, and an epoch is no better only if this is
        so beyond the standard error. The parameters of each epoch do not depend on it.
    warm_start : bool
        Continue `fit` from the present parameters, chains and random stream.
    check_input : {"warn", "raise", "ignore"}
        Treatment of values that the units cannot take: a warning, a ValueError, or neither.
    missing : {"raise", "marginalize"}
        Treatment of missing values (NaN) in `fit`, `partial_fit`, `transform` and scores: raise a
        ValueError, or sum over them. In training they are drawn anew before every update, by a Gibbs
        step from the draws of the last epoch, given the observed values; rows that are new to
        `partial_fit` start with ten steps.
    n_jobs : int or None
        Number of threads of `transform`, scores and `log_partition`, or of processes of an exact sum
        over more than 2^22 states, as joblib counts them. None for the default of BLAS, one thread
        for small models, and one process. The results do not depend on it; chains run sequentially.
    verbose : int
        Print a line for every epoch, unless zero.
    random_state : int, Generator, RandomState or None
        Seed or generator of all random numbers. An int gives the same bits for the same input and
        parameters. A generator, such as ``numpy.random.default_rng(seed)``, is advanced, so that a
        second fit differs.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Weights.
    intercept_hidden_ : ndarray of shape (n_components,)
        Biases of the hidden units.
    intercept_visible_ : ndarray of shape (n_features,)
        Biases of the visible units.
    threshold_hidden_, asymmetry_hidden_ : ndarray of shape (n_components,)
        Slope of the energy of "drelu" units in the magnitude of a state, positive where states near
        zero are likelier, and half the difference of its curvatures above and below zero.
    h_samples_ : ndarray of shape (n_particles, n_components)
        Hidden states of the persistent chains.
    n_iter_ : int
        Number of epochs since the last initialization.
    history_ : dict of list of float
        One number for each recorded epoch of `fit`: the first, the last and, where an epoch has
        fewer than 75 updates, about one record per 75 updates; all epochs with `verbose`,
        `track_likelihood`, `early_stopping` and the schedule "adaptive".

        - "n_iter": number of the epoch.
        - "pseudo_likelihood": mean log pseudo-likelihood of some training rows, in nats.
        - "learning_rate": learning rate of the last update.
        - "mean_activation": mean of the hidden units under the data.
        - "time": seconds since the previous record.
        - "chain_gap", with algorithm "pcd" or "pt": mean free energy of the chains above that of the
          data, in nats.
        - "swap_acceptance", with "pt": mean probability of an exchange between neighbouring
          temperatures.
        - "log_likelihood" and "log_likelihood_std_error", with `track_likelihood`: mean
          log-likelihood, and the standard error of the log-partition function, in nats.
        - "free_energy_gap", with `early_stopping`: mean free energy of the held-out rows above that
          of the training rows, in nats.
        - "validation_pseudo_likelihood", with `early_stopping`, and "validation_log_likelihood" and
          "validation_log_likelihood_std_error", with `track_likelihood` too: the same for the
          held-out rows.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has names that are all strings.

    References
    ----------
    .. [1] Tieleman (2008), "Training restricted Boltzmann machines using approximations to
       the likelihood gradient", ICML, 1064-1071. :doi:`10.1145/1390156.1390290`
    .. [2] Hinton (2002), "Training products of experts by minimizing contrastive divergence",
       Neural Computation 14(8), 1771-1800. :doi:`10.1162/089976602760128018`
    .. [3] Desjardins, Courville, Bengio, Vincent, Delalleau (2010), "Tempered Markov chain Monte
       Carlo for training of restricted Boltzmann machines", AISTATS, PMLR 9, 145-152.
    .. [4] Melchior, Fischer, Wiskott (2016), "How to center deep Boltzmann machines", Journal
       of Machine Learning Research 17(99), 1-61.
    .. [5] Tubiana, Cocco, Monasson (2019), "Learning protein constitutive motifs from sequence
       data", eLife 8:e39397. :doi:`10.7554/eLife.39397`
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden_units": [StrOptions({"binary", *HIDDEN_TYPES})],
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
        "average": ["boolean"],
        "max_gradient_norm": [Interval(Real, 0, None, closed="neither"), None],
        "shuffle": ["boolean"],
        "l1": [Interval(Real, 0, None, closed="left")],
        "l1_squared": [Interval(Real, 0, None, closed="left")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "max_norm": [Interval(Real, 0, None, closed="neither"), None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "track_likelihood": ["boolean"],
        "warm_start": ["boolean"],
        "check_input": [StrOptions({"warn", "raise", "ignore"})],
        "missing": [StrOptions({"raise", "marginalize"})],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "verbose": ["verbose"],
        "random_state": RANDOM_STATE,
    }

    # Parameters, and their values in a subclass whose signature leaves them out.
    n_components: int = 256
    hidden_units: str = "binary"
    learning_rate: float = 0.4
    batch_size: int | str = "auto"
    n_iter: int = 10
    algorithm: str = "pcd"
    n_gibbs_steps: int = 1
    n_particles: int | None = 100
    n_temperatures: int = 10
    centering: bool = True
    optimizer: str = "sgd"
    momentum: float = 0.0
    learning_rate_schedule: str = "linear"
    average: bool = True
    max_gradient_norm: float | None = None
    shuffle: bool = True
    draw_states: bool = False
    l1: float = 0.0
    l1_squared: float = 0.0
    l2: float = 0.0
    max_norm: float | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-4
    track_likelihood: bool = False
    warm_start: bool = False
    check_input: str = "warn"
    missing: str = "raise"
    n_jobs: int | None = None
    verbose: int = 0
    random_state: Any = None

    @property
    @abstractmethod
    def _visible_type(self) -> type[Units]:
        """Unit type of the features."""

    @property
    @abstractmethod
    def _hidden_type(self) -> type[Units]:
        """Unit type of the components that are "binary"."""

    @property
    def _hidden_layer_type(self) -> type[Units]:
        """Unit type of the components."""
        return HIDDEN_TYPES.get(self.hidden_units, self._hidden_type)

    # Public arrays of one value per unit: layer, field of its units, maps from and to the field.
    _layer_arrays: ClassVar[dict[str, Place]] = {
        "intercept_visible_": ("visible", "bias", np.asarray, np.asarray),
        "intercept_hidden_": ("hidden", "bias", np.asarray, np.asarray),
    }

    # Names of the parts of training that are left out, and further parts, for experiments and tests.
    _left_out: ClassVar[frozenset[str]] = frozenset()
    _added_parts: ClassVar[tuple[Part, ...]] = ()

    # Way from the user's rows to states and back.
    _row_format: ClassVar[RowFormat] = ArrayRows()

    # Multiple of the units' metric with which a step moves weights by rate times gradient.
    _metric_unit: ClassVar[float] = 1.0

    def _unit_options(self, varying: Any) -> dict[str, Any]:
        """Further arguments of the visible unit type; `varying` tells which features do."""
        return {}

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to data, from a new start unless `warm_start`.

        With scikit-learn 1.9 or later, callbacks set by `set_callbacks` are called around every
        pass, and may end the fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data; integers, booleans and memory maps are cast one mini-batch at a time.
        y : object, default=None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: one of k is as good as k copies, zero leaves a row out, None is
            one for each. A mini-batch moves the parameters as far as its mean weight, compared
            with that of all rows, says.

        Returns
        -------
        self : object
            Fitted estimator. After an interrupt (with a warning) or a divergence it keeps the
            last good parameters, with `early_stopping` the best ones.

        Raises
        ------
        ValueError
            If a parameter, the data or the weights are invalid; the estimator is then left as it
            was.
        DivergenceError
            If the parameters do not stay finite, or explode.

        Warns
        -----
        ConvergenceWarning
            If `X` has surely become less likely than if its features were independent.
        """
        task = FitTask(self, X, y, self.n_iter, sample_weight)
        fit_estimator(self, RowProblem.of(self, X, sample_weight, is_planned=True), task)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass over some rows, going on from the present parameters.

        The run has no plan: no rows are held out, and a learning rate that would fall to zero
        at the end stays as it is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Any number of rows; they are visited in mini-batches of `batch_size`. Their pass is
            recorded in `history_` only if `verbose`.
        y : object, default=None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows as for `fit`, compared with the mean weight of all rows so far.

        Returns
        -------
        self : object
            Estimator with chains, random stream and parameters moved on.

        Raises
        ------
        ValueError
            If a parameter, the data or the weights are invalid; the estimator is then left as it
            was.
        DivergenceError
            If the parameters do not stay finite, or explode.
        """
        fit_estimator(self, RowProblem.of(self, X, sample_weight, is_planned=False))
        return self

    def transform(self, X: Any) -> Array:
        """Expected hidden states given the visible ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states; with `missing="marginalize"`, NaN where one is missing.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            Probabilities of hidden units that are 0 or 1, means in (-1, 1) of spins, of "relu" units
            above zero and of others any; of the
            precision of `X`. Where values are missing, the average over ten draws of them, each
            after fifty Gibbs steps; the same in every call with the same incomplete rows.
        """
        model = self._model
        X = model.check_X(X, missing=True)
        is_known = known_units(self, X)
        return average_over_draws(
            model, X, is_known, lambda v, rows: model.map_rows(Machine.mean_hidden, v)
        )

    def inverse_transform(self, X: Any) -> Any:
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
        v = self._model.map_rows(Machine.mean_visible, self._model.check_H(X, name="X"))
        return self._row_format.write(self, v)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def _array_places(self) -> dict[str, Place]:
        """`_layer_arrays`, and the arrays that hidden units have besides their biases."""
        return self._layer_arrays | hidden_arrays(self._hidden_layer_type)

    @property
    def _public_names(self) -> tuple[str, ...]:
        """Names of the arrays that are the model."""
        return ("components_", *self._array_places)

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, name) for name in self._public_names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "marginalize"
        tags.input_tags.categorical = tags.input_tags.string = self._row_format.has_tables
        tags.input_tags.sparse = bool(self._visible_type.support.values)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_skrbm_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        written = state.pop("_skrbm_version", "an unknown version")
        if written != __version__:
            warn_user(
                f"{type(self).__name__} was pickled by skrbm {written}, and this is {__version__}. "
                f"Only the public arrays mean the same in every version: check them, or fit again.",
                VersionWarning,
            )
        super().__setstate__(state)
