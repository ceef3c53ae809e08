"""Restricted Boltzmann machine of tables: categories, flags, numbers and bounded numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skrbm.core.units import Bernoulli, Composite
from skrbm.estimators.base_rbm import BaseRBM, store_parameters
from skrbm.estimators.gaussian_rbm import NOISE_VARIANCE
from skrbm.estimators.tables.conditionals import ConditionalMixin
from skrbm.estimators.tables.table_rows import TableRows, table_of


class TabularRBM(ConditionalMixin, BaseRBM):
    r"""Restricted Boltzmann machine of tables with categories, flags, numbers and bounded numbers.

    The joint distribution of whole rows: every column is one visible unit of the type that suits
    it, and the hidden units are 0 or 1.

    .. math:: p(v) \propto \prod_{\text{columns}} e^{-A_c(v_c)}
        \prod_j \left( 1 + e^{b_j + \sum_c \varphi_c(v_c)^T W_{cj}} \right)

    Categories are one-hot columns of one unit [1]_ [2]_, numbers are normal given the hidden units
    with variances that are learned, bounded numbers have exponential densities between their bounds.
    Numbers are scaled inside, by default to normal scores, so that no result but the densities
    depends on a column's unit of measurement or origin: those are per unit of the column as it is
    given. The logarithm of the probability of a row is then that of a probability times a density,
    in nats.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden units.
    kinds : "auto" or dict, default="auto"
        Kinds of columns by their names or numbers; those that are not named follow their types, as
        with "auto": bool is "binary"; category, object and string are "categorical", with the
        categories that the type lists, else those that are found; numbers and all columns of
        arrays are "numeric". Categories can be given, too: ("categorical", ["a", "b"]) and
        ("binary", ["no", "yes"]). Numbers in a known range are ("interval", low, high).
    numeric_scale : {"normal", "standard"}, default="normal"
        What becomes of numbers inside: scores that are about normal, by a monotone piecewise linear
        map of each column that its first rows tell [4]_, or numbers in standard deviations. With
        "normal" skewed columns, and values that come often such as zeros, are drawn as they are, and
        draws stay in the column's range; `inverse_transform` gives the number of the mean score.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do with a category that was not in the first rows: take it for a missing value, of
        which training that goes on warns, or raise ValueError.
    learning_rate : float, default=0.4
        Multiple of the gradient, of numbers in standard deviations, that the first update adds to
        the parameters.
    batch_size : int or "auto", default="auto"
        Largest number of rows in a mini-batch; "auto" is a hundredth of the rows, at least 20 and
        at most 100.
    n_iter : int, default=100
        Number of passes over the training data in `fit`. Tables of a thousand rows need as many; a
        tenth does for a hundred thousand.
    algorithm : {"pcd", "cd", "pt", "exact"}, default="pcd"
        Where the model's own average comes from: chains that go on from update to update
        [3]_, chains that start at the mini-batch, chains that go on at several temperatures
        and exchange their states, or the sum over all states of the smaller discrete layer,
        for at most 25 units.
    n_gibbs_steps : int, default=1
        Steps of the chains for every update.
    n_particles : int or None, default=100
        Number of persistent chains; None for as many as rows in a mini-batch.
    n_temperatures : int, default=10
        Number of temperatures of "pt" between the model's and that of independent features, both
        included; their spacing follows the acceptance of exchanges. Every particle has one chain at
        each.
    centering : bool, default=True
        Whether to follow the centred gradient, which does not depend on what state of a
        unit is called zero. The fitted attributes are the plain model's either way.
    optimizer : {"sgd", "nesterov", "adam"}, default="sgd"
        Update rule: stochastic gradient ascent with heavy-ball or Nesterov momentum, or Adam, which
        wants a smaller `learning_rate`, such as 0.01.
    momentum : float, default=0.0
        Share of the last steps, in [0, 1), that a step takes over; of Adam, the decay of the mean
        gradient. The rate at which parameters move grows by 1 / (1 - momentum).
    learning_rate_schedule : {"constant", "linear", "invscaling", "adaptive"}, default="linear"
        "linear" falls to zero over the `n_iter` passes of `fit`, and stays constant in
        `partial_fit`, which has no plan; "invscaling" divides by the number of updates to the power
        `power_t`; "adaptive" divides by 5 after `n_iter_no_change` passes without a score that is
        better by `tol`, and ends below 1e-6.
    power_t : float, default=0.5
        Exponent of "invscaling".
    average : bool, default=True
        Whether the fitted attributes are averages over the updates (Polyak's), late ones weighing
        more. Training itself goes on from the last parameters, not from their average.
    l1, l2 : float, default=0.0
        Penalties on the sum of absolute weights and on half their sum of squares.
    sparsity_target : float, default=0.1
        Mean of every hidden unit over the data that `sparsity_cost` pulls at.
    sparsity_cost : float, default=0.0
        Pull on the bias of a hidden unit for a distance of one from the target.
    max_norm : float or None, default=None
        Largest Euclidean norm of a hidden unit's weights.
    max_gradient_norm : float or None, default=10.0
        Norm, over all parameters and with states measured in standard deviations, beyond which a
        gradient is shortened.
    shuffle : bool, default=True
        Whether every pass visits the rows in a new order.
    early_stopping : bool, default=False
        Whether `fit` holds out rows, ends when their score does not rise any more, and keeps the
        parameters of the best score.
    validation_fraction : float, default=0.1
        Share of the rows that is held out.
    n_iter_no_change : int, default=10
        Number of passes without a better score that ends an early-stopped fit.
    tol : float, default=1e-4
        By how many nats per row a score has to rise to count as better.
    track_likelihood : bool, default=False
        Whether chains follow the model from pass to pass, so that `history_` has its log-likelihood
        with a standard error. `early_stopping` then goes by that of the held-out rows, and a pass
        counts as no better when it is so beyond that error. It changes no bit of what is learned.
        Missing values are then a ValueError.
    warm_start : bool, default=False
        Whether `fit` goes on from the present parameters, chains and random stream.
    check_input : {"warn", "raise", "ignore"}, default="warn"
        What to do about numbers outside their interval.
    missing : {"raise", "marginalize"}, default="marginalize"
        What to do about missing values (NaN) in `fit`, `partial_fit`, `transform` and scores: raise a
        ValueError, or sum over them. In training they are drawn anew before every update, by a Gibbs
        step given what is known from the draws of the last pass; rows that `partial_fit` has never
        seen start with ten steps.
    n_jobs : int, default=None
        Number of threads of `transform`, scores and `log_partition`, or of processes of an exact
        sum over more than 2^22 states, as joblib counts them. None for as many threads as matrix
        products take elsewhere, one thread for small models, and one process. The results do not
        depend on it; chains run in order.
    verbose : int, default=0
        Whether to print a line for every epoch.
    random_state : int, Generator, RandomState or None, default=None
        An int gives the same bits for the same input and parameters. A generator, such as
        ``numpy.random.default_rng(seed)``, is advanced, so that a second fit differs.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_columns)
        Weights of the machine's columns, which `columns_` names: those of flags, categories, numbers
        and bounded numbers in turn. Numbers are scores, or in standard deviations.
    intercept_hidden_ : ndarray of shape (n_components,)
        Biases of the hidden units.
    intercept_visible_ : ndarray of shape (n_columns,)
        Biases of the machine's columns.
    noise_variance_ : ndarray of shape (n_numeric,)
        Variance of the score of each number, or of the number in the column's variances, given the
        hidden units; only if there are numbers.
    columns_ : ndarray of str of shape (n_columns,)
        Names of the machine's columns, such as "age" or "port=Southampton".
    kinds_ : list of length `n_features_in_`
        "binary", "categorical", "numeric" or ("interval", low, high) for each column of the table.
    categories_ : list of length `n_features_in_`
        Array of the categories of each binary or categorical column, None for the others.
    h_samples_ : ndarray of shape (n_particles, n_components)
        Hidden states of the persistent chains.
    n_iter_ : int
        Number of passes over data since the last start.
    history_ : dict of list of float
        For each recorded pass of `fit`: its number "n_iter"; "pseudo_likelihood", the mean over some
        training rows in nats; "learning_rate" of the last update; "mean_activation" of the hidden
        units under the data; "time" in seconds since the one before. Recorded are the first pass,
        the last and, where a pass has fewer than 75 updates, one of so many that these make 75; all of
        them with `verbose`, `track_likelihood`, `early_stopping` and the schedule "adaptive". With algorithm "pcd" or "pt" also "chain_gap", by how many nats the
        chains' mean free energy is above the data's; with "pt" also "swap_acceptance", the mean
        probability of an exchange between neighbouring temperatures; with `early_stopping` also
        "validation_pseudo_likelihood" and "free_energy_gap", by how many nats the held-out rows'
        free energy is above the training rows'. With `track_likelihood` also "log_likelihood" and
        "log_likelihood_std_error", that of the partition function, and with `early_stopping` both
        of the held-out rows, with the prefix `validation_`.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if these are all strings.

    See Also
    --------
    GaussianBernoulliRBM : Numbers alone.
    RBMImputer : Missing values as a step of a Pipeline.

    References
    ----------
    .. [1] Salakhutdinov, Mnih, Hinton (2007), "Restricted Boltzmann machines for collaborative
       filtering", ICML, 791-798. :doi:`10.1145/1273496.1273596`
    .. [2] Tran, Phung, Venkatesh (2011), "Mixed-variate restricted Boltzmann machines", ACML,
       PMLR 20, 213-229.
    .. [3] Tieleman (2008), "Training restricted Boltzmann machines using approximations to
       the likelihood gradient", ICML, 1064-1071. :doi:`10.1145/1390156.1390290`
    .. [4] Liu, Lafferty, Wasserman (2009), "The nonparanormal: semiparametric estimation of high
       dimensional undirected graphs", Journal of Machine Learning Research 10, 2295-2328.

    Examples
    --------
    Two columns of which one tells the other:

    >>> import numpy as np
    >>> from skrbm import TabularRBM
    >>> X = np.array([["owl", 1.0], ["ox", 700.0]] * 50, dtype=object)
    >>> rbm = TabularRBM(2, kinds={0: "categorical"}, n_iter=100, random_state=0).fit(X)
    >>> rbm.columns_
    array(['0=owl', '0=ox', '1'], dtype=object)
    """

    kinds: Any
    numeric_scale: str
    handle_unknown: str

    _visible_type = Composite
    _hidden_type = Bernoulli
    _row_format = TableRows()
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRBM._parameter_constraints,
        "kinds": [StrOptions({"auto"}), dict],
        "numeric_scale": [StrOptions({"normal", "standard"})],
        "handle_unknown": [StrOptions({"missing", "error"})],
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        kinds: Any = "auto",
        numeric_scale: str = "normal",
        handle_unknown: str = "missing",
        learning_rate: float = 0.4,
        batch_size: int | str = "auto",
        n_iter: int = 100,
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
        max_gradient_norm: float | None = 10.0,
        shuffle: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        track_likelihood: bool = False,
        warm_start: bool = False,
        check_input: str = "warn",
        missing: str = "marginalize",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        store_parameters(self, locals())

    @property
    def _layer_arrays(self) -> dict[str, Any]:  # type: ignore[override]  # as the columns ask
        has_numbers = "numeric" in getattr(self, "kinds_", ())
        return super()._layer_arrays | (NOISE_VARIANCE if has_numbers else {})

    def _unit_options(self, varying: Any) -> dict[str, Any]:
        table = table_of(self)
        varying = np.broadcast_to(varying, len(self.columns_))[table.numeric_columns]
        gaussian = {"parameterization": "cho", "learn_variance": varying}
        return super()._unit_options(varying) | {"types": table.types(**gaussian)}

    def __sklearn_is_fitted__(self) -> bool:
        return super().__sklearn_is_fitted__() and hasattr(self, "_table")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
