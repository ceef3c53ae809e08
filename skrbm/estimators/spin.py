"""Restricted Boltzmann machine of units that are -1 or +1."""

from __future__ import annotations

from typing import Any

from skrbm.core.units import Spin
from skrbm.estimators.base import BaseRBM


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
    learning_rate : float, default=0.1
        Multiple of the gradient that an update adds to the parameters.
    batch_size : int, default=20
        Largest number of rows in a mini-batch.
    n_iter : int, default=10
        Number of passes over the training data in `fit`.
    algorithm : {"pcd", "cd", "exact"}, default="pcd"
        Where the model's own average comes from: chains that go on from update to update
        [2]_, chains that start at the mini-batch [3]_, or the sum over all states of the
        smaller discrete layer, for at most 25 units.
    n_gibbs_steps : int, default=1
        Steps of the chains for every update.
    n_particles : int, default=None
        Number of persistent chains; None for `batch_size`.
    centering : bool, default=True
        Whether to follow the centred gradient [4]_, which does not depend on what state of a
        unit is called zero. The fitted attributes are the plain model's either way.
    shuffle : bool, default=True
        Whether every pass visits the rows in a new order.
    check_input : {"warn", "raise", "ignore"}, default="warn"
        What to do about values outside [-1, 1].
    n_jobs : int, default=None
        Number of threads of `score_samples`; see joblib.
    verbose : int, default=0
        Whether to print a line for every epoch.
    random_state : int, RandomState instance or None, default=None
        An int gives the same bits for the same input and parameters.

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
        For each pass of `fit` "pseudo_likelihood", the mean over some training rows in nats,
        and "time" in seconds.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
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

    _visible_type = Spin
    _hidden_type = Spin

    def _unit_options(self, varying: Any) -> dict[str, Any]:
        return {}
