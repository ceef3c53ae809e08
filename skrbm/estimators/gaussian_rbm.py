"""Restricted Boltzmann machine with real-valued visible units."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skrbm.core.numerics import Array
from skrbm.core.units import PARAMETERIZATIONS, Gaussian
from skrbm.estimators.base_rbm import BaseRBM
from skrbm.estimators.docstrings import inherit_docstring
from skrbm.estimators.parameters import with_constructor


def _log_variance(noise_variance: Array) -> Array:
    if not (noise_variance > 0).all():
        raise ValueError(
            f"Expected noise_variance_ to be positive, got a value of {noise_variance.min():g}."
        )
    return np.log(noise_variance)


NOISE_VARIANCE = {"noise_variance_": ("visible", "log_variance", _log_variance, np.exp)}


@inherit_docstring(BaseRBM)
@with_constructor
class GaussianBernoulliRBM(BaseRBM):
    r"""Restricted Boltzmann machine with real-valued visible and, by default, binary hidden units.

    With binary hidden units, the model is a mixture of :math:`2^{n\_components}` normal
    distributions with a common diagonal covariance. The energy has three published
    parameterizations:

    .. math::

        \text{krizhevsky [6]} \quad & E = \sum_i \frac{(v_i - a_i)^2}{2 \sigma_i^2}
            - \sum_{ij} \frac{v_i}{\sigma_i} W_{ij} h_j - h^T b \\
        \text{cho [7]} \quad & E = \sum_i \frac{(v_i - a_i)^2}{2 \sigma_i^2}
            - \sum_{ij} \frac{v_i}{\sigma_i^2} W_{ij} h_j - h^T b \\
        \text{goodfellow [8]} \quad & E = \sum_i \frac{(v_i - a_i)^2}{2 \sigma_i^2}
            - \sum_{ij} \frac{v_i - a_i}{\sigma_i^2} W_{ij} h_j - h^T b

    where :math:`W` is the transpose of `components_`, :math:`a` is `intercept_visible_`, :math:`b`
    is `intercept_hidden_` and :math:`\sigma^2` is `noise_variance_`, whose logarithm is learned.
    With "sgd" and without penalties or `max_norm`, training does not depend on the units of
    measurement: the steps are scaled by the standard deviations of the noise and of the features.

    Parameters
    ----------
    parameterization : {"krizhevsky", "cho", "goodfellow"}
        Energy function, one of the three above.
    learn_variance : bool
        Learn `noise_variance_`. If False, it is fixed at the variances of the features, or at
        values that were assigned to it before `partial_fit` or `fit` with `warm_start`. The
        variance of a constant feature is fixed at one. After a change of `learn_variance`, further
        training continues from the fitted attributes, as after a change of `average` to False.
    variance_rate : float
        Ratio of the learning rate of the logarithm of `noise_variance_` to the learning rate of the
        other parameters. With "sgd", it is reduced for features with a kurtosis above 3. With
        "adam", whose steps do not scale with the gradient, all values of at least 0.1 have about
        the same effect unless gradients are clipped. Each variance
        is kept between 1e-4 times and 10 times the variance of its feature. An assigned value
        outside this range extends the range.
    learning_rate : float
        Initial learning rate. With "sgd", the steps are scaled by the standard deviations of the
        noise and of the features, so that a suitable value does not depend on the units of
        measurement of the features. With "sgd" and persistent chains, steps are shorter for
        features that are strongly correlated with many others. With "adam", a suitable value
        depends on the units of measurement.
    max_gradient_norm : float or None
        Threshold of gradient clipping: a gradient with a larger Euclidean norm over all parameters
        is scaled down to this norm. The norm is computed with features, and with hidden states that
        are not "binary", measured in units of their standard deviations. If None, gradients are not
        clipped.
    check_input : {"warn", "raise", "ignore"}
        Treatment of hidden states that the units cannot take, in `energy` and `inverse_transform`:
        a warning, a ValueError, or no check. It has no effect on visible states, since every real
        number is valid.

    Attributes
    ----------
    noise_variance_ : ndarray of shape (n_features,)
        Variance of each visible unit given the hidden units.

    See Also
    --------
    BernoulliRBM : Visible units that are 0 or 1.
    sklearn.mixture.GaussianMixture : Mixture of normal distributions with separate parameters.

    References
    ----------
    .. [6] Krizhevsky (2009), "Learning multiple layers of features from tiny images",
       technical report, University of Toronto, section 1.4.
    .. [7] Cho, Ilin, Raiko (2011), "Improved learning of Gaussian-Bernoulli restricted
       Boltzmann machines", ICANN, eq. 3. :doi:`10.1007/978-3-642-21735-7_2`
    .. [8] Goodfellow, Bengio, Courville (2016), "Deep Learning", MIT Press, section 20.5.

    Examples
    --------
    One hidden unit separates two clusters, and the standard deviations of the noise are learned:

    >>> import numpy as np
    >>> from skrbm import GaussianBernoulliRBM
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[-1.0, 1.0], [1.0, -1.0]], 500, axis=0) + rng.normal(0, 0.5, (1000, 2))
    >>> rbm = GaussianBernoulliRBM(1, n_iter=20, random_state=0).fit(X)
    >>> np.sqrt(rbm.noise_variance_).round(1)
    array([0.5, 0.5])
    """

    max_gradient_norm: float | None = 10.0
    parameterization: str = "cho"
    learn_variance: bool = True
    variance_rate: float = 1.0

    _visible_type = Gaussian
    _layer_arrays: ClassVar[Any] = {**BaseRBM._layer_arrays, **NOISE_VARIANCE}
    _parameter_groups: ClassVar[dict[str, str]] = {
        "Noise of the features": "parameterization learn_variance variance_rate",
        **BaseRBM._parameter_groups,
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRBM._parameter_constraints,
        "parameterization": [StrOptions(set(PARAMETERIZATIONS))],
        "learn_variance": ["boolean"],
        "variance_rate": [Interval(Real, 0, None, closed="left")],
    }

    def _unit_options(self, is_varying: Any) -> dict[str, Any]:
        return super()._unit_options(is_varying) | {
            "parameterization": self.parameterization,
            "learn_variance": self.learn_variance & is_varying,
            "variance_rate": self.variance_rate,
        }
