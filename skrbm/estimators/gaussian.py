"""Restricted Boltzmann machine of real-valued visible and binary hidden units."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skrbm.core.numerics import Array
from skrbm.core.units import PARAMETERIZATIONS, Bernoulli, Gaussian
from skrbm.estimators.base import BaseRBM


def _log_variance(noise_variance: Array) -> Array:
    if not (noise_variance > 0).all():
        raise ValueError(
            f"Expected noise_variance_ to be positive, got a value of {noise_variance.min():g}."
        )
    return np.asarray(np.log(noise_variance))


class GaussianBernoulliRBM(BaseRBM):
    r"""Restricted Boltzmann machine of real-valued visible and binary hidden units.

    A mixture of :math:`2^{n\_components}` normal laws that share one diagonal covariance,
    in three published parameterisations of one family:

    .. math::

        \text{krizhevsky [1]} \quad & E = \sum_i \frac{(v_i - a_i)^2}{2 \sigma_i^2}
            - \sum_{ij} \frac{v_i}{\sigma_i} W_{ij} h_j - h^T b \\
        \text{cho [5]} \quad & E = \sum_i \frac{(v_i - a_i)^2}{2 \sigma_i^2}
            - \sum_{ij} \frac{v_i}{\sigma_i^2} W_{ij} h_j - h^T b \\
        \text{goodfellow [6]} \quad & E = \sum_i \frac{(v_i - a_i)^2}{2 \sigma_i^2}
            - \sum_{ij} \frac{v_i - a_i}{\sigma_i^2} W_{ij} h_j - h^T b

    with :math:`W` the transpose of `components_`, :math:`a` `intercept_visible_`,
    :math:`b` `intercept_hidden_` and :math:`\sigma^2` `noise_variance_`, which is learned
    through its logarithm. Standardise the features: a step of plain gradient ascent is stable
    only while `learning_rate` is small against the smallest variance.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden units.
    parameterization : {"krizhevsky", "cho", "goodfellow"}, default="cho"
        Which energy.
    learn_variance : bool, default=True
        Whether `noise_variance_` is learned; if not, it stays at the features' variance, or at
        what is assigned by hand before `partial_fit`.
    learning_rate : float, default=0.01
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
        What to do about values outside the domain; every real number is inside.
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
    noise_variance_ : ndarray of shape (n_features,)
        Variance of each visible unit given the hidden ones.
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
    BernoulliRBM : Visible units that are 0 or 1.
    sklearn.mixture.GaussianMixture : Mixture without shared structure.

    References
    ----------
    .. [1] Krizhevsky (2009), "Learning multiple layers of features from tiny images",
       technical report, University of Toronto, section 1.4.
    .. [2] Tieleman (2008), "Training restricted Boltzmann machines using approximations to
       the likelihood gradient", ICML, 1064-1071. :doi:`10.1145/1390156.1390290`
    .. [3] Hinton (2002), "Training products of experts by minimizing contrastive divergence",
       Neural Computation 14(8), 1771-1800. :doi:`10.1162/089976602760128018`
    .. [4] Melchior, Fischer, Wiskott (2016), "How to center deep Boltzmann machines", Journal
       of Machine Learning Research 17(99), 1-61.
    .. [5] Cho, Ilin, Raiko (2011), "Improved learning of Gaussian-Bernoulli restricted
       Boltzmann machines", ICANN, eq. 3. :doi:`10.1007/978-3-642-21735-7_2`
    .. [6] Goodfellow, Bengio, Courville (2016), "Deep Learning", MIT Press, section 20.5.

    Examples
    --------
    Two clusters, the noise around them learned:

    >>> import numpy as np
    >>> from skrbm import GaussianBernoulliRBM
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[-1.0, 1.0], [1.0, -1.0]], 500, axis=0) + rng.normal(0, 0.5, (1000, 2))
    >>> rbm = GaussianBernoulliRBM(1, learning_rate=0.03, n_iter=40, random_state=0).fit(X)
    >>> np.sqrt(rbm.noise_variance_).round(1)
    array([0.5, 0.5])
    """

    _visible_type = Gaussian
    _hidden_type = Bernoulli
    _layer_arrays: ClassVar[Any] = {
        **BaseRBM._layer_arrays,
        "noise_variance_": ("visible", "log_variance", _log_variance, np.exp),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRBM._parameter_constraints,
        "parameterization": [StrOptions(set(PARAMETERIZATIONS))],
        "learn_variance": ["boolean"],
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        parameterization: str = "cho",
        learn_variance: bool = True,
        learning_rate: float = 0.01,
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
        super().__init__(
            n_components,
            learning_rate=learning_rate,
            batch_size=batch_size,
            n_iter=n_iter,
            algorithm=algorithm,
            n_gibbs_steps=n_gibbs_steps,
            n_particles=n_particles,
            centering=centering,
            shuffle=shuffle,
            check_input=check_input,
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=random_state,
        )
        self.parameterization = parameterization
        self.learn_variance = learn_variance

    def _unit_options(self, varying: Any) -> dict[str, Any]:
        return {
            "parameterization": self.parameterization,
            "learn_variance": self.learn_variance & varying,
        }
