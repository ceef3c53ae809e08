"""Restricted Boltzmann machine for tables of categorical, binary and numeric columns."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skrbm.core.units import Composite
from skrbm.estimators.base_rbm import BaseRBM
from skrbm.estimators.docstrings import inherit_docstring
from skrbm.estimators.gaussian_rbm import NOISE_VARIANCE
from skrbm.estimators.input.validation import Described
from skrbm.estimators.parameters import with_constructor
from skrbm.estimators.tables.conditionals import ConditionalMixin
from skrbm.estimators.tables.table_rows import TableRows, table_of


@inherit_docstring(BaseRBM)
@with_constructor
class TabularRBM(ConditionalMixin, BaseRBM):
    r"""Restricted Boltzmann machine for tables of categorical, binary and numeric columns.

    The model is a joint distribution of the columns of a table. Each column is one visible unit,
    whose type depends on the kind of the column; a categorical column without any category is left
    out. With binary hidden units,

    .. math:: p(v) \propto \prod_{\text{columns}} e^{-A_c(v_c)}
        \prod_j \left( 1 + e^{b_j + \sum_c \varphi_c(v_c)^T W_{cj}} \right)

    where :math:`A_c` is the energy of column :math:`c` without hidden units, :math:`W_{cj}` are its
    weights to hidden unit :math:`j`, and :math:`b` is `intercept_hidden_`. For a numeric column,
    :math:`\varphi_c` is the scaled number divided by the column's entry in `noise_variance_`. It is
    0 or 1 for a binary column, a one-hot vector for a categorical column, and the number scaled to
    [0, 1] for an interval column.

    A categorical column is one unit with one-hot encoding [6]_ [7]_. Numeric columns are scaled
    internally, by default to normal scores. Given the hidden units, a scaled numeric column is
    normally distributed with a learned variance (except for columns with point masses and for
    `numeric_scale="mixture"`), and an interval column has an exponential density between its
    bounds. Unless `numeric_scale` is "mixture", the unit of measurement and the origin of a numeric
    column affect only its density. Log-likelihoods are in nats and refer to the unscaled columns.
    Discrete columns contribute probabilities, and numeric and interval columns contribute
    densities; values with point masses (see `numeric_scale`) contribute probabilities.

    Parameters
    ----------
    kinds : "auto" or dict
        Dictionary from names or indices of columns to their kinds. A kind is "binary",
        "categorical", "numeric", ("binary", ["no", "yes"]), ("categorical", ["a", "b"]) with all
        categories, ("interval", low, high) for numbers with known bounds, or "interval" for numbers
        in [0, 1]. The kinds of columns that are not in the dictionary are inferred from their data
        types, as are all kinds with "auto". In data frames, bool is "binary"; category, object and
        string are "categorical"; numbers are "numeric". The columns of a boolean array are
        "binary"; the columns of any other array are "numeric". Categories that are not given are
        the categories of the data type or, if the type has none, the values found in the data. A
        binary column in which only 0 or only 1 is found has the categories 0 and 1.
    numeric_scale : {"normal", "mixture", "standard"}
        Scaling of numeric columns, learned from the rows of `fit` or of the first `partial_fit`:

        - "normal": transformation to approximately normal scores by a monotone piecewise linear
          function [8]_. Skewed columns and frequent values are reproduced, and samples stay in the
          range of the column. `inverse_transform` returns the number that corresponds to the mean
          score. A column of few values (two to five, which occur at least five times on average)
          has point masses at these values, as with "mixture". So has a value with at least 20 % of
          the rows, such as zero, if it occurs at least four times as often as any rarer value; the
          scores are then those of the other values.
        - "mixture": transformation by one of Johnson's functions [9]_. The distribution of the
          transformed numbers is a mixture of normal distributions and of point masses at frequent
          values, such as zeros. Given the hidden units, this mixture is tilted exponentially.
        - "standard": standardization to mean zero and, unless the column is constant, variance one.

        If the column has point masses at two or more values and no others, with "normal" or
        "mixture", all other numbers together have a probability of about 1 / (n_rows + 1): they
        have a finite likelihood, but samples never contain them.
    handle_unknown : {"missing", "nearest", "error"}
        Treatment of unknown categories. The known categories of a column are those in `kinds` or of
        its data type. Without these, they are the values in the rows of `fit` or of the first
        `partial_fit`. With "missing", unknown categories are treated as missing values; in
        training and in `impute`, which replaces them, a warning is issued. With "nearest", unknown
        numbers are replaced by the nearest category if all categories are numbers; other unknown
        categories are treated as with "missing". With "error", unknown categories raise a
        ValueError. Columns that had no observed value are ignored.
    learning_rate : float
        Initial learning rate, which `learning_rate_schedule` may decrease. Numeric columns need not
        be standardized, because they are scaled internally. With "sgd", the steps of categorical
        columns of many values are up to eight times as long.
    n_iter : int
        Maximum number of epochs (passes over the training data) of `fit`. Ten epochs are enough for a
        hundred thousand rows; tables of a hundred rows of numbers may need 60.
    max_gradient_norm : float or None
        Threshold of gradient clipping: a gradient with a larger Euclidean norm over all parameters
        is scaled down to this norm. The norm is computed with numeric columns, and with hidden
        states that are not "binary", measured in units of their standard deviations. If None,
        gradients are not clipped.
    check_input : {"warn", "raise", "ignore"}
        Treatment of numbers outside their interval, and of hidden states that the units cannot
        take: a warning, a ValueError, or no check.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_columns)
        Weights of the encoded columns: first binary, then categorical, numeric and interval
        columns, and numeric columns with point masses after the other ones. The names of the encoded
        columns are in `columns_`. The weights of numeric columns refer to the scaled numbers.
    intercept_visible_ : ndarray of shape (n_columns,)
        Biases of the encoded columns.
    noise_variance_ : ndarray of shape (n_numeric,)
        Variance of each scaled numeric column given the hidden units; for columns with point masses
        and for `numeric_scale="mixture"`, the variance that a standard normal component would
        have. The attribute exists only if there are numeric columns.
    columns_ : ndarray of object of shape (n_columns,)
        Names of the encoded columns as strings, such as "age" or "port=Southampton". Categorical
        columns have one name per category. Binary columns have one name, with the second category.
    kinds_ : list of length `n_features_in_`
        Kind of each column of the table: "binary", "categorical", "numeric" or ("interval", low,
        high).
    categories_ : list of length `n_features_in_`
        Array of the categories of each binary or categorical column, and None for other columns.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of the table, if they are all strings.

    See Also
    --------
    GaussianBernoulliRBM : Model of numeric features.
    RBMImputer : Imputation of missing values as a step of a Pipeline.

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
    A categorical and a numeric column, with one encoded column per category:

    >>> import numpy as np
    >>> from skrbm import TabularRBM
    >>> X = np.array([["owl", 1.0], ["ox", 700.0]] * 50, dtype=object)
    >>> rbm = TabularRBM(2, kinds={0: "categorical"}, n_iter=100, random_state=0).fit(X)
    >>> rbm.columns_
    array(['0=owl', '0=ox', '1'], dtype=object)
    """

    n_iter: int = 30
    max_gradient_norm: float | None = 10.0
    missing: str = "marginalize"
    kinds: Any = "auto"
    numeric_scale: str = "normal"
    handle_unknown: str = "missing"

    _visible_type = Composite
    _row_format = TableRows()
    _parameter_groups: ClassVar[dict[str, str]] = {
        "Columns of a table": "kinds numeric_scale handle_unknown",
        **BaseRBM._parameter_groups,
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRBM._parameter_constraints,
        "kinds": [
            StrOptions({"auto"}),
            Described(dict, "a dict such as {'age': 'numeric', 'port': 'categorical'}"),
        ],
        "numeric_scale": [StrOptions({"normal", "mixture", "standard"})],
        "handle_unknown": [StrOptions({"missing", "nearest", "error"})],
    }

    @property
    def _layer_arrays(self) -> dict[str, Any]:  # type: ignore[override]  # depends on kinds_
        has_numbers = "numeric" in getattr(self, "kinds_", ())
        return super()._layer_arrays | (NOISE_VARIANCE if has_numbers else {})

    def _unit_options(self, is_varying: Any) -> dict[str, Any]:
        table = table_of(self)
        is_varying = np.broadcast_to(is_varying, len(self.columns_))[table.numeric_columns]
        return super()._unit_options(is_varying) | {"types": table.types(is_varying)}

    def __sklearn_is_fitted__(self) -> bool:
        return super().__sklearn_is_fitted__() and self._row_format.is_known_to(self)
