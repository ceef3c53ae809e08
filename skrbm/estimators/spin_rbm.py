"""Restricted Boltzmann machine of units that are -1 or +1."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from skrbm.core.units import Spin
from skrbm.estimators.base_rbm import BaseRBM, store_parameters


class SpinRBM(BaseRBM):
    r"""Restricted Boltzmann machine of units that are -1 or +1.

    .. math::

        p(v, h) \propto e^{-E(v, h)}, \qquad
        E(v, h) = -v^T a - v^T W h - h^T b, \qquad v, h \in \{-1, +1\}

    with :math:`W` the transpose of `components_`, :math:`a` `intercept_visible_` and
    :math:`b` `intercept_hidden_` [1]_. Hidden units have the mean
    :math:`\tanh(b + W^T v)`, which is what `transform` returns.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden units.
    learning_rate : float, default=0.025
        Multiple of the gradient that the first update adds to the weights; biases move four times
        as far. A spin's states are twice as far apart: steps of a sixteenth move the same law as
        those of `BernoulliRBM`.
    batch_size : int or "auto", default="auto"
        Largest number of rows in a mini-batch; "auto" is a hundredth of the rows, at least 20 and
        at most 100.
    n_iter : int, default=10
        Number of passes over the training data in `fit`.
    algorithm : {"pcd", "cd", "pt", "exact"}, default="pcd"
        Where the model's own average comes from: chains that go on from update to update
        [2]_, chains that start at the mini-batch [3]_, chains that go on at several temperatures
        and exchange their states [5]_, or the sum over all states of the smaller discrete layer,
        for at most 25 units. Chains that go on also jump to the data, by a Metropolis rule under
        which the model stays their law, so that they reach modes that lie far apart. Clusters of
        rows with wide gaps between them are learned exactly by a few hidden units, before
        training begins.
    n_gibbs_steps : int, default=1
        Steps of the chains for every update.
    n_particles : int or None, default=100
        Number of persistent chains; None for as many as rows in a mini-batch.
    n_temperatures : int, default=10
        Number of temperatures of "pt" between the model's and that of independent features, both
        included; their spacing follows the acceptance of exchanges. Every particle has one chain at
        each.
    centering : bool, default=True
        Whether to follow the centred gradient [4]_, which does not depend on what state of a
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
        Mean of every hidden unit over the data that `sparsity_cost` pulls at; between -1 and 1.
    sparsity_cost : float, default=0.0
        Pull on the bias of a hidden unit for a distance of one from the target.
    max_norm : float or None, default=None
        Largest Euclidean norm of a hidden unit's weights.
    max_gradient_norm : float or None, default=None
        Norm, over all parameters, beyond which a gradient is shortened; in it, the gradient in the
        biases counts twice.
    shuffle : bool, default=True
        Whether every pass visits the rows in a new order.
    draw_states : bool, default=True
        Whether values between the two states, such as grey pixels, are drawn as states anew in every
        pass, with the values as their means. Otherwise they are learned as they are, which leaves
        hidden units without use. Sparse rows are learned as they are.
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
    warm_start : bool, default=False
        Whether `fit` goes on from the present parameters, chains and random stream.
    check_input : {"warn", "raise", "ignore"}, default="warn"
        What to do about values outside [-1, 1].
    missing : {"raise", "marginalize"}, default="raise"
        What to do about missing values (NaN) in `fit`, `partial_fit`, `transform` and scores: raise a
        ValueError, or sum over them. In training they are drawn anew before every update, by a Gibbs
        step given what is known from the draws of the last pass; rows that `partial_fit` has never
        seen start with ten steps, and rows with grey values take ten in every pass.
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
    components_ : ndarray of shape (n_components, n_features)
        Weights.
    intercept_hidden_ : ndarray of shape (n_components,)
        Biases of the hidden units.
    intercept_visible_ : ndarray of shape (n_features,)
        Biases of the visible units.
    h_samples_ : ndarray of shape (n_particles, n_components)
        Hidden states of the persistent chains.
    n_iter_ : int
        Number of passes over data since the last start.
    history_ : dict of list of float
        For each recorded pass of `fit`: its number "n_iter"; "pseudo_likelihood", the mean over some
        training rows in nats; "learning_rate" of the last update; "mean_activation" of the hidden
        units under the data; "time" in seconds since the one before. Recorded are the first pass,
        the last and, where a pass has fewer than 75 updates, one of so many that these make 75; all of
        them with `verbose`, `track_likelihood`, `early_stopping` and the schedule "adaptive". With
        algorithm "pcd" or "pt" also "chain_gap", by how many nats the chains' mean free energy is
        above the data's; with "pt" also "swap_acceptance", the mean probability of an exchange
        between neighbouring temperatures; with `early_stopping` also
        "validation_pseudo_likelihood" and "free_energy_gap", by how many nats the held-out rows'
        free energy is above the training rows'. With `track_likelihood` also "log_likelihood" and
        "log_likelihood_std_error", that of the partition function, and with `early_stopping` both
        of the held-out rows, with the prefix `validation_`.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had any that are all strings.

    See Also
    --------
    BernoulliRBM : Units that are 0 or 1.
    to_bernoulli : The same distribution over units that are 0 or 1.

    References
    ----------
    .. [1] Ackley, Hinton, Sejnowski (1985), "A learning algorithm for Boltzmann machines",
       Cognitive Science 9(1), 147-169. :doi:`10.1207/s15516709cog0901_7`
    .. [2] Tieleman (2008), "Training restricted Boltzmann machines using approximations to
       the likelihood gradient", ICML, 1064-1071. :doi:`10.1145/1390156.1390290`
    .. [3] Hinton (2002), "Training products of experts by minimizing contrastive divergence",
       Neural Computation 14(8), 1771-1800. :doi:`10.1162/089976602760128018`
    .. [4] Melchior, Fischer, Wiskott (2016), "How to center deep Boltzmann machines", Journal
       of Machine Learning Research 17(99), 1-61.
    .. [5] Desjardins, Courville, Bengio, Vincent, Delalleau (2010), "Tempered Markov chain Monte
       Carlo for training of restricted Boltzmann machines", AISTATS, PMLR 9, 145-152.

    Examples
    --------
    >>> import numpy as np
    >>> from skrbm import SpinRBM, to_bernoulli
    >>> X = np.array([[-1, -1, -1], [-1, -1, 1], [1, 1, -1], [1, 1, 1]])
    >>> rbm = SpinRBM(2, n_iter=100, algorithm="exact", random_state=0).fit(X)
    >>> twin = to_bernoulli(rbm)
    >>> bool(np.allclose(rbm.score_samples(X), twin.score_samples((X + 1) / 2)))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRBM._parameter_constraints,
        "sparsity_target": [Interval(Real, -1, 1, closed="both")],
        "draw_states": ["boolean"],
    }
    _visible_type = Spin
    _hidden_type = Spin
    _metric_unit = 16.0

    def __init__(
        self,
        n_components: int = 256,
        *,
        learning_rate: float = 0.025,
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
        draw_states: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        track_likelihood: bool = False,
        warm_start: bool = False,
        check_input: str = "warn",
        missing: str = "raise",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        store_parameters(self, locals())
