"""Base class of all restricted Boltzmann machines, with their parameters and main methods."""

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
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from skrbm._version import __version__
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array
from skrbm.core.training.negative_phase import ALGORITHMS
from skrbm.core.training.optimizer import OPTIMIZERS, SCHEDULES
from skrbm.core.training.part import Part
from skrbm.core.units import HIDDEN_TYPES, Bernoulli, Units
from skrbm.estimators.aliases import ScikitLearnAliases
from skrbm.estimators.fitting.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from skrbm.estimators.fitting.fit import fit_estimator
from skrbm.estimators.fitting.problem import RowProblem
from skrbm.estimators.inference.missing_values import average_over_draws
from skrbm.estimators.inference.model import LayerArray, hidden_arrays
from skrbm.estimators.inference.sampling import SamplingMixin
from skrbm.estimators.inference.scoring import LikelihoodMixin
from skrbm.estimators.input.array_libraries import follows_input
from skrbm.estimators.input.formats import ArrayRows, RowFormat, observed_units
from skrbm.estimators.input.validation import (
    COUNT,
    RANDOM_STATE,
    VersionWarning,
    public_methods_of,
    warn_user,
)
from skrbm.estimators.parameters import with_constructor


@with_constructor
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
    """Restricted Boltzmann machine with the unit types that a subclass declares.

    All machines have the parameters below, except for `draw_states`, which only `BernoulliRBM` and
    `SpinRBM` have. `inherit_docstring` copies the entries into the docstrings of the subclasses.

    Parameters
    ----------
    n_components : int
        Number of hidden units.
    hidden_units : {"binary", "gaussian", "relu", "drelu"}
        Type of the hidden units:

        - "binary": units with the states 0 and 1, or -1 and +1 in `SpinRBM`.
        - "gaussian": units that are normally distributed given the features. They couple the
          features pairwise, as in a Hopfield network.
        - "relu": rectified linear units. Given the features, they have normal distributions
          truncated to nonnegative values.
        - "drelu": double rectified linear units [5]_. Their energy may have different curvatures
          for positive and negative states, and a kink at zero (see `threshold_hidden_`).

        A common factor of the curvatures of a real-valued hidden unit would only change the scale
        of its states, for which weights, biases and thresholds can compensate. For "gaussian" and
        "relu" units, the curvature is therefore fixed at one; for "drelu" units, the mean of the
        two curvatures is fixed at one.
    learning_rate : float
        Initial learning rate, which `learning_rate_schedule` may decrease. With "sgd" and binary
        hidden units, steps are up to eight times as long if the variances of the features are small
        and no row is far from the mean.
    batch_size : int or "auto"
        Largest number of rows in a mini-batch. The sizes of the mini-batches in an epoch differ by
        at most one row. "auto" is one hundredth of the number of training rows, rounded down, but
        at least 20 and at most 100.
    n_iter : int
        Maximum number of epochs (passes over the training data) of `fit`. Early stopping, the
        schedule "adaptive" and callbacks can end the fit earlier.
    algorithm : {"pcd", "cd", "pt", "exact"}
        Training algorithm, that is, the estimator of the negative phase (the expectation, under the
        model, of the gradient of the energy):

        - "pcd": persistent contrastive divergence. Gibbs chains continue from one update to the
          next [1]_.
        - "cd": contrastive divergence. Gibbs chains start at the rows of the mini-batch [2]_.
        - "pt": parallel tempering. Persistent chains at several temperatures exchange their states
          [3]_.
        - "exact": exact expectation, computed as a sum over all states of the discrete layer with
          fewer states. This layer may have at most 2^25 states, as many as 25 binary units.

        With "pcd" and "pt", the chains can also jump to training rows and thus reach modes that are
        far apart. The jumps are Metropolis moves, which leave the model distribution invariant.

        If the data have two to eight well-separated clusters, a few "binary" hidden units are first
        trained on the clusters by the exact gradient. There must not be more clusters than hidden
        units, except that one unit can represent two clusters. The result is discarded if it fits
        the clusters poorly, if its weights exceed `max_norm`, or if its penalized log-likelihood is
        lower than that of independent features.
        This pretraining is used with every `algorithm`, but not with fixed variances or in
        `RBMClassifier`. For tables, it is used only if all columns are binary, or if all are
        numeric without point masses and `numeric_scale` is not "mixture".
    n_gibbs_steps : int
        Number of Gibbs steps per update (k in CD-k and PCD-k). It has no effect with "exact".
    n_particles : int or None
        Number of persistent chains; for "pt", at each temperature. If None, a new fit has
        `batch_size` chains, and a continued fit keeps its number of chains.
    n_temperatures : int
        Number of temperatures of "pt". The chains at the lowest temperature sample the model; at
        the highest temperature, the features are independent. After every epoch, the temperatures
        are adapted so that all pairs of neighbors exchange states about equally often.
    centering : bool
        Use the centered gradient [4]_, which is invariant to an exchange of the states 0 and 1 of a
        binary unit. The fitted attributes always describe the uncentered model.
    optimizer : {"sgd", "adam"}
        Stochastic gradient ascent with heavy-ball momentum, or Adam. Adam needs a smaller
        `learning_rate`, such as 0.01.
    momentum : float
        Momentum coefficient in [0, 1). With "sgd", it increases the effective learning rate by a
        factor of 1 / (1 - momentum). With "adam", it is the decay rate of the moving average of the
        gradient.
    learning_rate_schedule : {"constant", "linear", "adaptive"}
        Learning-rate schedule. With "linear", the learning rate decreases to zero over the `n_iter`
        epochs of `fit`; it is constant in `partial_fit`, where the number of epochs is unknown.
        "adaptive" divides the learning rate by 5 in `fit` after `n_iter_no_change` epochs without
        an improvement of the score by more than `tol`. When the learning rate is at most 1e-6, the
        fit ends instead. The score is an estimate of the log pseudo-likelihood of the training rows
        or, with `early_stopping`, of the validation rows. If the log-likelihood is tracked (see
        `track_likelihood`), the score is the log-likelihood of these rows.
    average : bool
        Use the weighted average of the parameters over the updates (Polyak averaging) as fitted
        attributes. Late updates have larger weights. A call of `partial_fit`, or of `fit` with
        `warm_start`, counts at most as many earlier updates as it has itself, or 1000 if these are
        fewer. Further training continues from the parameters after the last update, not from the
        average. It continues from the fitted attributes after `early_stopping`, after arrays were
        assigned by hand, or after `average` was set to False.
    max_gradient_norm : float or None
        Threshold of gradient clipping: a gradient with a larger Euclidean norm over all parameters
        is scaled down to this norm. If the hidden units are not "binary", the norm is computed with
        hidden states measured in units of their standard deviations. If None, gradients are not
        clipped.
    shuffle : bool
        Shuffle the rows in every epoch.
    draw_states : bool
        Treatment of values between the two states of a unit, such as gray pixels. If True, binary
        states with these values as means are drawn in every epoch. If False, the values themselves
        are used as states, as in scikit-learn. With sparse `X`, and for rows with a value outside
        the range of the states, no states are drawn. In rows with drawn states and missing values,
        the missing values are redrawn by ten Gibbs steps per epoch instead of one (see `missing`).
    l1 : float
        L1 penalty: factor of the sum of the absolute values of the weights. All penalties are
        subtracted from the mean log-likelihood of a row.
    l1_squared : float
        Squared L1 penalty: factor of half the squared L1 norm of the weights of a hidden unit,
        summed over all hidden units and divided by the number of visible columns. Its gradient,
        unlike the gradient of the L1 penalty, is larger for units with larger weights, so that all
        hidden units become about equally sparse. See Tubiana and others (2019),
        :doi:`10.7554/eLife.39397`.
    l2 : float
        L2 penalty (weight decay): factor of half the sum of the squared weights.
    max_norm : float or None
        Maximum Euclidean norm of the weights of a hidden unit. The bound is applied after each
        update; the initial weights may exceed it. If None, the norm is not constrained.
    early_stopping : bool
        Hold out validation rows in `fit`, and end the fit when their score no longer improves. The
        fitted parameters are those of the last epoch whose score is at most half a standard error
        below the best score. This is the standard error of the mean difference between the scores
        of the rows in this epoch and in the best epoch. With `warm_start`, the parameters before
        the fit are kept unless an epoch has a higher score.
    validation_fraction : float
        Fraction of the rows that `early_stopping` holds out; in `RBMClassifier`, of the labeled
        rows.
    n_iter_no_change : int
        Number of epochs without improvement after which the schedule "adaptive" lowers the learning
        rate or, with another schedule, `early_stopping` ends the fit. If several rows are held out,
        an epoch counts only if a paired t-test over these rows excludes an improvement by more than
        `tol` with a confidence of 95 %. An epoch with a score of NaN always counts. With another
        schedule than "adaptive", epochs before update 75 do not count.
    tol : float
        Increase over the best score, in nats per row, that an improvement must exceed.
    track_likelihood : bool or None
        Record the mean log-likelihood and the standard error of the log-partition function in
        `history_`. This function is computed exactly if one layer has at most 2000 states, for
        example ten binary units. Otherwise, it is estimated with chains that are annealed from the
        model after each epoch to the model after the next epoch. The log-likelihood is the score of
        `early_stopping` and of the schedule "adaptive"; comparisons of epochs include the standard
        error. Apart from the score, tracking does not affect training. With True, missing values,
        or an `RBMClassifier`, raise a ValueError. If None, the log-likelihood is tracked with
        `early_stopping` if no value is missing and all columns are discrete, such as bits and
        categories.
    warm_start : bool
        Continue `fit` from the current parameters, chains and random stream.
    check_input : {"warn", "raise", "ignore"}
        Treatment of values that the units cannot take: a warning, a ValueError, or no check.
    missing : {"raise", "marginalize"}
        Treatment of missing values (NaN or None) in `fit`, `partial_fit`, `transform`,
        `score_samples`, `score` and `log_likelihood`: raise a ValueError, or marginalize over them.
        Missing values in a sparse `X` always raise a ValueError. In training, the missing values of
        a mini-batch are redrawn before the update by one Gibbs step given the observed values. The
        step starts from the values drawn in the previous epoch; in the first epoch, it starts from
        values of similar rows. In the first epoch of a call that continues training (`partial_fit`,
        or `fit` with `warm_start`, except from a `Checkpoint`), ten steps are used, because no
        earlier draws are kept.
    n_jobs : int or None
        Number of threads for `transform`, `inverse_transform`, energies, scores and
        `log_partition`, and number of processes for exact sums over 2^22 states or more in
        `log_partition`. Negative numbers are interpreted as in joblib. If None, the number set by
        ``joblib.parallel_config`` is used. If none is set, one process is used, and the number of
        threads is the default of BLAS; for small models, `transform`, `inverse_transform`,
        energies and annealing use one thread. The results do not depend on `n_jobs`. It has no
        effect on training, sampling and imputation.
    verbose : int
        Verbosity level. If zero, nothing is printed; otherwise, one line is printed per epoch, and
        about every ten seconds within a longer epoch.
    random_state : int, Generator, RandomState or None
        Seed or generator of all random numbers. With an int, the result is bit-for-bit reproducible
        for the same input and parameters on the same machine. A generator, such as
        ``numpy.random.default_rng(seed)``, is advanced by every fit that starts anew, so that a
        second fit gives a different result. If None, NumPy's global generator is used.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Weights between the hidden units (rows) and the features (columns).
    intercept_hidden_ : ndarray of shape (n_components,)
        Biases of the hidden units.
    intercept_visible_ : ndarray of shape (n_features,)
        Biases of the visible units.
    threshold_hidden_, asymmetry_hidden_ : ndarray of shape (n_components,)
        Parameters of the hidden units, which exist only for "drelu". The threshold is the
        coefficient of the absolute value of the state in the energy; a positive threshold makes
        states near zero more likely. The asymmetry is half the difference between the curvatures of
        the energy above and below zero.
    h_samples_ : ndarray of shape (n_particles, n_components)
        Hidden states of the persistent chains at the lowest temperature. With "cd" and "exact",
        which have no persistent chains, the initial states are kept.
    n_iter_ : int
        Number of epochs of the last fit that started anew, and of all calls that continued it.
    history_ : dict of list of float
        Training history: lists with one number per recorded epoch. With `verbose`,
        `track_likelihood`, `early_stopping` or the schedule "adaptive", `fit` records every epoch.
        Otherwise, it records the first of its `n_iter` epochs, the last one and every kth epoch,
        where k is the smallest number of epochs with at least 75 updates. `partial_fit` records its
        epoch only with `verbose`.

        - "n_iter": number of the epoch, counted as in `n_iter_`.
        - "pseudo_likelihood": estimate of the mean log pseudo-likelihood of the training rows, in
          nats. For discrete features, the same subset of the rows and features is used after every
          epoch. The estimate is NaN if a real-valued feature needs too many quadrature nodes.
        - "learning_rate": learning rate of the last update.
        - "mean_activation": mean of the hidden units given at most 100 training rows, averaged over
          units and rows.
        - "time": seconds since the previous record, or since the beginning of the training loop.
        - "chain_gap", with algorithm "pcd" or "pt": mean free energy of at most 100 persistent
          chains at the lowest temperature minus the mean free energy of at most 100 training rows,
          in nats.
        - "swap_acceptance", with "pt": mean acceptance probability of exchanges between
          neighboring temperatures.
        - "log_likelihood" and "log_likelihood_std_error", if the log-likelihood is tracked (see
          `track_likelihood`): mean log-likelihood of at most 1000 training rows, and standard error
          of the log-partition function, in nats.
        - "free_energy_gap", with `early_stopping`: mean free energy of at most 1000 validation rows
          minus the mean free energy of at most 1000 training rows, in nats. A growing gap indicates
          overfitting.
        - "validation_pseudo_likelihood", with `early_stopping`: estimate of the mean log
          pseudo-likelihood of the validation rows, in nats.
        - "validation_log_likelihood" and "validation_log_likelihood_std_error", with
          `early_stopping` if the log-likelihood is tracked: mean log-likelihood of at most 1000
          validation rows, and standard error of the log-partition function, in nats.
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
        "n_components": COUNT,
        "hidden_units": [StrOptions({"binary", *HIDDEN_TYPES})],
        "learning_rate": [Interval(Real, 0, None, closed="left")],
        "batch_size": [*COUNT, StrOptions({"auto"})],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "algorithm": [StrOptions(set(ALGORITHMS))],
        "n_gibbs_steps": COUNT,
        "n_particles": [*COUNT, None],
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
        "n_iter_no_change": COUNT,
        "tol": [Interval(Real, 0, None, closed="left")],
        "track_likelihood": ["boolean", None],
        "warm_start": ["boolean"],
        "check_input": [StrOptions({"warn", "raise", "ignore"})],
        "missing": [StrOptions({"raise", "marginalize"})],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), *COUNT, None],
        "verbose": ["verbose"],
        "random_state": RANDOM_STATE,
    }

    # Parameters and their defaults.
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
    l1: float = 0.0
    l1_squared: float = 0.0
    l2: float = 0.0
    max_norm: float | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-4
    track_likelihood: bool | None = None
    warm_start: bool = False
    check_input: str = "warn"
    missing: str = "raise"
    n_jobs: int | None = None
    verbose: int = 0
    random_state: Any = None

    # Parameters by subject, for the docstrings: numpydoc has no headings between parameters.
    _parameter_groups: ClassVar[dict[str, str]] = {
        "Model": "n_components hidden_units",
        "Training": "algorithm n_gibbs_steps n_particles n_temperatures batch_size n_iter "
        "learning_rate learning_rate_schedule optimizer momentum max_gradient_norm centering "
        "average shuffle draw_states warm_start",
        "Regularization": "l1 l1_squared l2 max_norm",
        "Stopping": "early_stopping validation_fraction n_iter_no_change tol track_likelihood",
        "Input and runtime": "missing check_input n_jobs verbose random_state",
    }

    draw_states = False  # a parameter of units with two states only

    @property
    @abstractmethod
    def _visible_type(self) -> type[Units]:
        """Unit type of the features."""

    # Unit type of "binary" hidden units.
    _hidden_type: ClassVar[type[Units]] = Bernoulli

    @property
    def _hidden_layer_type(self) -> type[Units]:
        """Unit type of the hidden units."""
        return HIDDEN_TYPES.get(self.hidden_units, self._hidden_type)

    # Public arrays with one value per unit: layer, attribute of the layer, maps to it and back.
    _layer_arrays: ClassVar[dict[str, LayerArray]] = {
        "intercept_visible_": ("visible", "bias", np.asarray, np.asarray),
        "intercept_hidden_": ("hidden", "bias", np.asarray, np.asarray),
    }

    # Names of parts of training to leave out, and parts to add, for experiments and tests.
    _left_out: ClassVar[frozenset[str]] = frozenset()
    _added_parts: ClassVar[tuple[Part, ...]] = ()

    # Conversion of the user's rows to states and back.
    _row_format: ClassVar[RowFormat] = ArrayRows()

    # Factor of the metric for which a step of the weights is the learning rate times the gradient.
    _metric_unit: ClassVar[float] = 1.0

    def _validate_params(self) -> None:
        """Validate the parameters. `get_params` would double the time, as it reads the signature."""
        values = {name: getattr(self, name) for name in self._parameter_constraints}
        validate_parameter_constraints(self._parameter_constraints, values, type(self).__name__)

    def _unit_options(self, is_varying: Any) -> dict[str, Any]:
        """Options of the visible unit type; `is_varying` is the mask of non-constant features."""
        return {}

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to data, starting from a new initialization unless `warm_start` is True.

        With `warm_start`, a fitted model continues training. There is one exception for a
        `GaussianBernoulliRBM`, and for a `TabularRBM` with numeric columns: if it has seen fewer
        than 20 rows before this call, it is initialized anew, with the statistics of all rows so
        far. It is not initialized anew if its arrays were assigned by hand, or if the fit resumes
        from a `Checkpoint`.

        With scikit-learn 1.9 or later, callbacks set by `set_callbacks` are called before and after
        every epoch, and may end the fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. Integers and booleans, also in memory maps, are converted to
            floating-point numbers one mini-batch at a time.
        y : object, default=None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. In all averages over rows, a weight of k counts like k copies of
            the row, and a weight of zero excludes the row. If None, all rows have a weight of one.
            The number of updates depends on the number of rows alone. The step of a mini-batch is
            proportional to the mean weight of its rows divided by the mean weight of all training
            rows, so that only ratios of weights matter to updates. The sum of the weights counts as
            the number of rows in the overfitting warning, in the first biases of discrete features,
            in the maps of numeric columns, and in averages over several calls of `partial_fit`:
            divide weights that are no counts by their mean.

        Returns
        -------
        self : object
            Fitted estimator. If training is interrupted (with a warning) or diverges, the estimator
            keeps the last valid parameters or, with `early_stopping`, the parameters of the best
            epoch.

        Raises
        ------
        ValueError
            If a parameter, the data or the weights are invalid, or if `algorithm` is "exact" and
            both layers have more than 2^25 states; the estimator is then unchanged.
        TypeError
            If the type of `X` or of its values is not supported, such as a sparse matrix for
            real-valued features; the estimator is then unchanged.
        DivergenceError
            If training diverges, that is, if parameters become infinite, NaN or very large.

        Warns
        -----
        DomainWarning
            If `X` has values that the units cannot take, and `check_input` is "warn"; or if a table
            has unknown categories.
        ConvergenceWarning
            If the mean log-likelihood of `X` is significantly lower than under a model of
            independent features or, after at least ten epochs, under a kernel density estimate of
            at most 20 real-valued features: the difference, estimated conservatively, exceeds 0.2
            nats by more than three standard errors. If the features and the hidden units are
            real-valued, the algorithm has persistent chains, and the model cannot reach the
            variance of `X` along a strong factor. If the score for `early_stopping` or for the
            schedule "adaptive" is NaN.
        OverfittingWarning
            If at least one nat per row, and at least 40 % of the gain of the pseudo-likelihood over
            independent features, is expected to be lost on new rows. The expected loss is the
            effective number of weights divided by the number of rows. It is not checked after a
            single epoch, with fewer than 20 rows, with `early_stopping`, with Adam, or if the
            pseudo-likelihood is NaN. It is not checked either if the model is significantly worse
            than a model of independent features.
        AnnealingWarning
            With `track_likelihood`, if an estimate of the log-partition function is significantly
            below a lower bound computed from the rows.
        UserWarning
            If training is interrupted. In a call that initializes the model, if a feature of a
            `GaussianBernoulliRBM` or a numeric column of a table is constant. In a call that learns
            the columns of a table, if a column has no observed value or seems to consist of
            identifiers.
        """
        task = FitTask(self, X, y, self.n_iter, sample_weight)
        fit_estimator(self, RowProblem.of(self, X, sample_weight, is_planned=True), task)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train for one epoch over the given rows, starting from the current parameters.

        A model that is not fitted is initialized. A `GaussianBernoulliRBM`, or a `TabularRBM` with
        numeric columns, is initialized anew if it has seen fewer than 20 rows before this call,
        unless its arrays were assigned by hand. The new initialization uses the statistics of all
        rows so far. A real-valued column alone is initialized anew if earlier calls had fewer than
        20 values of it, or equal values, and its scale does not suit the present values. Momentum
        and averages then begin anew. No validation rows are held out. The learning rate is constant
        with every schedule, because the number of further epochs is unknown.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Any number of rows, split into mini-batches of at most `batch_size` rows. The epoch is
            recorded in `history_` only if `verbose` is nonzero.
        y : object, default=None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, as for `fit`, but relative to the mean weight of all rows seen so
            far.

        Returns
        -------
        self : object
            Estimator with updated parameters, chains and random stream.

        Raises
        ------
        ValueError
            If a parameter, the data or the weights are invalid, or if `algorithm` is "exact" and
            both layers have more than 2^25 states; the estimator is then unchanged.
        TypeError
            If the type of `X` or of its values is not supported, such as a sparse matrix for
            real-valued features; the estimator is then unchanged.
        DivergenceError
            If training diverges, that is, if parameters become infinite, NaN or very large. The
            parameters before the epoch are kept.

        Warns
        -----
        DomainWarning
            If `X` has values that the units cannot take, and `check_input` is "warn"; or if a table
            has unknown categories.
        UserWarning
            If training is interrupted. In a call that initializes the model, if a feature of a
            `GaussianBernoulliRBM` or a numeric column of a table is constant. In a call that learns
            the columns of a table, if there are fewer than 20 rows, or if a column has no observed
            value or seems to consist of identifiers.
        AnnealingWarning
            With `track_likelihood` and `verbose`, if an estimate of the log-partition function is
            significantly below a lower bound computed from the rows.
        """
        fit_estimator(self, RowProblem.of(self, X, sample_weight, is_planned=False))
        return self

    @follows_input
    def transform(self, X: Any) -> Array:
        """Compute the means of the hidden units given the visible units.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states. With `missing="marginalize"`, NaN and None mark missing values.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            Means of the hidden units, in the precision of `X` or, if `X` is not in single or double
            precision, of `components_`. They are probabilities for units that are 0 or 1, numbers
            in [-1, 1] for spins, nonnegative numbers for "relu" units, and real numbers for
            "gaussian" and "drelu" units. For a row with missing values, the means are averaged over
            ten imputations, each drawn by 20 Gibbs steps. Repeated calls with the same incomplete
            rows give the same result. The imputations of a row depend on the other incomplete rows
            of the call.
        """
        model = self._model
        X = model.check_X(X, missing=True)
        is_observed = observed_units(self, X)
        return average_over_draws(
            model, X, is_observed, lambda v, rows: model.map_rows(Machine.mean_hidden, v)
        )

    @follows_input
    def inverse_transform(self, X: Any) -> Any:
        """Compute the means of the visible units given the hidden units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Hidden states, or their means as returned by `transform`.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features)
            Means of the visible units. A `TabularRBM` returns a table of the same type as in `fit`,
            with the most probable categories, and with the numbers that correspond to the means of
            the scaled columns.
        """
        v = self._model.map_rows(Machine.mean_visible, self._model.check_H(X, name="X"))
        return self._row_format.write(self, v)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    @property
    def _array_places(self) -> dict[str, LayerArray]:
        """Layer, attribute and conversions of each public array except the weights, by name."""
        return self._layer_arrays | hidden_arrays(self._hidden_layer_type)

    @property
    def _public_names(self) -> tuple[str, ...]:
        """Names of the public arrays that define the model."""
        return ("components_", *self._array_places)

    @property
    def _absent_names(self) -> list[str]:
        """Names of the public arrays that are neither fitted nor assigned."""
        return [name for name in self._public_names if not hasattr(self, name)]

    def __sklearn_is_fitted__(self) -> bool:
        return not self._absent_names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "marginalize"
        tags.input_tags.categorical = tags.input_tags.string = self._row_format.has_tables
        tags.array_api_support = not self._row_format.has_tables
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
