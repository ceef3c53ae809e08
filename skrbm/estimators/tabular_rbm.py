"""Restricted Boltzmann machine of tables: categories, flags, numbers and bounded numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skrbm.core.units import Bernoulli, Composite
from skrbm.estimators.base_rbm import BaseRBM, store_parameters
from skrbm.estimators.docstrings import inherit_docstring
from skrbm.estimators.gaussian_rbm import NOISE_VARIANCE
from skrbm.estimators.tables.conditionals import ConditionalMixin
from skrbm.estimators.tables.table_rows import TableRows, table_of


@inherit_docstring(BaseRBM)
class TabularRBM(ConditionalMixin, BaseRBM):
    r"""Restricted Boltzmann machine of tables with categories, flags, numbers and bounded numbers.

    Joint distribution of the columns: each is one visible unit of a type that suits it, and the
    hidden units are 0 or 1.

    .. math:: p(v) \propto \prod_{\text{columns}} e^{-A_c(v_c)}
        \prod_j \left( 1 + e^{b_j + \sum_c \varphi_c(v_c)^T W_{cj}} \right)

    A categorical column is one unit, coded one-hot [6]_ [7]_. Given the hidden units, numbers are
    normal with learned variances, and bounded numbers have exponential densities between their
    bounds. Numbers are scaled internally, by default to normal scores, so that no result but the
    densities depends on a column's unit of measurement or origin. Log-likelihoods are of a
    probability times a density per unit of the columns as given, in nats.

    Parameters
    ----------
    kinds : "auto" or dict
        Kinds of columns by their names or numbers. All others follow their types, as with "auto":
        bool is "binary"; category, object and string are "categorical", with the categories that
        the type lists, or else those found in the data; numbers and all columns of arrays are
        "numeric". Categories can be listed: ("categorical", ["a", "b"]) and ("binary", ["no",
        "yes"]). Numbers in a known range are ("interval", low, high).
    numeric_scale : {"normal", "mixture", "standard"}
        Scaling of numeric columns, learned from the first rows. "normal" maps each column to
        approximately normal scores by a monotone piecewise linear function [8]_, "standard" divides
        by the standard deviation. With "normal", skewed columns and frequent values such as zeros
        are reproduced and samples stay in the column's range; `inverse_transform` gives the number
        of the mean score. "mixture" gives values that come often, such as zeros, a probability, and
        all others a density: a mixture of normal distributions behind one of Johnson's maps [9]_,
        which the field of the hidden units tilts.
    handle_unknown : {"missing", "error"}
        Treatment of a category that was not in the first rows: a missing value, with a warning in
        further training, or a ValueError.
    learning_rate : float
        Initial learning rate, for a gradient with numbers in standard deviations.
    n_iter : int
        Number of epochs of `fit`. Tables of a thousand rows need a hundred; a tenth of that is
        enough for a hundred thousand rows.
    max_gradient_norm : float or None
        Largest Euclidean norm of the gradient over all parameters, with states in standard
        deviations; a longer gradient is scaled down to it. None for no limit.
    check_input : {"warn", "raise", "ignore"}
        Treatment of numbers outside their interval: a warning, a ValueError, or neither.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_columns)
        Weights of the machine's columns, named by `columns_`: flags, then categories, numbers and
        bounded numbers. Numbers are scores, or in standard deviations.
    intercept_visible_ : ndarray of shape (n_columns,)
        Biases of the machine's columns.
    noise_variance_ : ndarray of shape (n_numeric,)
        Variance of the score of each number given the hidden units, or of the number in units of
        the column's variance; only if there are numbers.
    columns_ : ndarray of str of shape (n_columns,)
        Names of the machine's columns, such as "age" or "port=Southampton".
    kinds_ : list of length `n_features_in_`
        "binary", "categorical", "numeric" or ("interval", low, high) for each column of the table.
    categories_ : list of length `n_features_in_`
        Array of the categories of each binary or categorical column, None for the others.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of the table, if they are all strings.

    See Also
    --------
    GaussianBernoulliRBM : Numbers alone.
    RBMImputer : Missing values as a step of a Pipeline.

    References
    ----------
    .. [6] Salakhutdinov, Mnih, Hinton (2007), "Restricted Boltzmann machines for collaborative
       filtering", ICML, 791-798. :doi:`10.1145/1273496.1273596`
    .. [7] Tran, Phung, Venkatesh (2011), "Mixed-variate restricted Boltzmann machines", ACML,
       PMLR 20, 213-229.
    .. [8] Liu, Lafferty, Wasserman (2009), "The nonparanormal: semiparametric estimation of high
       dimensional undirected graphs", Journal of Machine Learning Research 10, 2295-2328.
    .. [9] Johnson (1949), "Systems of frequency curves generated by methods of translation",
       Biometrika 36, 149-176. :doi:`10.1093/biomet/36.1-2.149`

    Examples
    --------
    Two columns, each of which determines the other:

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
        "numeric_scale": [StrOptions({"normal", "mixture", "standard"})],
        "handle_unknown": [StrOptions({"missing", "error"})],
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        hidden_units: str = "binary",
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
        average: bool = True,
        max_gradient_norm: float | None = 10.0,
        shuffle: bool = True,
        l1: float = 0.0,
        l1_squared: float = 0.0,
        l2: float = 0.0,
        max_norm: float | None = None,
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
        return super()._unit_options(varying) | {"types": table.types(varying)}

    def __sklearn_is_fitted__(self) -> bool:
        return super().__sklearn_is_fitted__() and self._row_format.is_known_to(self)
