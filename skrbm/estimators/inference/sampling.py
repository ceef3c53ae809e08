"""Sampling, inpainting and imputation."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skrbm.core.chains.gibbs import gibbs as gibbs_steps
from skrbm.core.chains.path import TemperedPath, heated_machine
from skrbm.core.chains.tempering import sample_tempered
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, like
from skrbm.estimators.inference.missing_values import ConditionalDraws
from skrbm.estimators.inference.mixing import chain_starts
from skrbm.estimators.inference.model import ModelMixin
from skrbm.estimators.input.array_libraries import follows_input
from skrbm.estimators.input.formats import RowFormat
from skrbm.estimators.input.validation import (
    COUNT,
    RANDOM_STATE,
    check_domain,
    checked_arguments,
    compared_domain,
    public_methods_of,
)

WARM_STEPS = 100  # steps of the chains at other temperatures before exchanges with `init`


@public_methods_of
class SamplingMixin(ModelMixin):
    """Methods of estimators that draw visible states."""

    _row_format: ClassVar[RowFormat]
    _state_dtype: ClassVar[type | None] = None

    @follows_input
    def gibbs(self, v: Any) -> Any:
        """Perform one Gibbs step: draw the hidden units, and then the visible units given them.

        Each call advances the random stream of the estimator.

        Parameters
        ----------
        v : {array-like, sparse matrix} of shape (n_samples, n_features)
            Initial visible states.

        Returns
        -------
        v_new : ndarray of shape (n_samples, n_features)
            Visible states after the step, of type bool for `BernoulliRBM`. A `TabularRBM` returns a
            table of the same type as in `fit`.
        """
        v = self._model.check_X(v)
        rng = self._model.inference_rng()

        def step(machine: Machine, v: Any) -> Array:
            return self._as_states(gibbs_steps(machine, v, 1, rng))

        return self._row_format.write(self, self._model.map_rows(step, v, is_random=True), given=v)

    @follows_input
    @checked_arguments(
        n_samples=[*COUNT, None],
        n_gibbs_steps=[Interval(Integral, 0, None, closed="left")],
        init=["array-like", "sparse matrix", None],
        n_temperatures=COUNT,
        temperature=[Interval(Real, 0, None, closed="neither")],
        random_state=RANDOM_STATE,
    )
    def sample(
        self,
        n_samples: int | None = None,
        n_gibbs_steps: int = 1000,
        *,
        init: Any = None,
        n_temperatures: int = 1,
        temperature: float = 1.0,
        random_state: Any = None,
    ) -> Any:
        r"""Draw visible states by Gibbs sampling or by parallel tempering.

        Parameters
        ----------
        n_samples : int, default=None
            Number of samples, each from a separate chain or, in parallel tempering, a separate set
            of chains. If None, it is the number of rows of `init`, or one without `init`.
        n_gibbs_steps : int, default=1000
            Number of Gibbs steps of each chain.
        init : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Initial visible states, such as an earlier sample. In parallel tempering, the chains at
            the lowest temperature start from these states. The other chains start from independent
            features and take 100 additional steps before the first exchange with these states. If
            None, Gibbs chains start in the modes of the model, in each about as often as it is
            probable, since Gibbs steps hardly lead from one mode to another. In models of many
            units, these frequencies cannot be computed. Chains then start from the states of
            persistent chains or, without them, from states drawn without input from the hidden
            units. If the algorithm has no persistent chains, each call first looks for the modes by
            parallel tempering, which takes one to two seconds for 784 features and 500 hidden
            units. With several temperatures, all chains start from independent features with the
            means and variances of the training data. If the arrays were assigned by hand without a
            fit, a sample of the model replaces the training data.
        n_temperatures : int, default=1
            Number of temperatures of parallel tempering. At the lowest temperature, the
            distribution is the sampled one (see `temperature`); at the highest, the features are
            independent. Chains at neighboring temperatures exchange their states, so that they can
            leave modes in which Gibbs sampling would stay [1]_. With one temperature, the method is
            Gibbs sampling.
        temperature : float, default=1.0
            Temperature T of the sampled distribution :math:`p(v, h)^{1/T} / Z_T`. Compared with the
            model, a temperature below one makes likely states even more likely, which is used to
            design sequences [2]_, and a temperature above one makes samples more diverse.
        random_state : int, Generator, RandomState or None, default=None
            Seed or generator. If None, the random stream of the estimator is continued, so that
            successive calls give different results.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features)
            Last visible states of the chains; in parallel tempering, of the chains at the lowest
            temperature. A `TabularRBM` returns a table of the same type as in `fit`.

        Raises
        ------
        ValueError
            If `init` is invalid, if `n_samples` is not the number of rows of `init`, or if
            `temperature` is not positive and finite. A temperature other than 1 is also refused if
            the hidden units are not "binary", or if there are numeric columns with
            `numeric_scale="mixture"`, or with point masses and "normal".

        Warns
        -----
        ConvergenceWarning
            If `init` is None, `n_temperatures` is 1, the frequencies of the modes cannot be
            computed, and Gibbs chains do not mix between modes. To check this, Gibbs chains take 50
            steps from the states of at most 100 persistent chains; without at least 20 of these,
            nothing is checked. The warning is issued if a lower bound of the correlation with the
            initial states exceeds 0.5. This bound is extrapolated to `n_gibbs_steps` steps or, if
            this number is below 50, computed for 50 steps.

        References
        ----------
        .. [1] Desjardins, Courville, Bengio, Vincent, Delalleau (2010), "Tempered Markov chain
           Monte Carlo for training of restricted Boltzmann machines", AISTATS, PMLR 9, 145-152.
        .. [2] Tubiana, Cocco, Monasson (2019), "Learning protein constitutive motifs from sequence
           data", eLife 8, e39397. :doi:`10.7554/eLife.39397`
        """
        model = self._model
        machine = model.machine()
        if init is None:
            chains = np.empty((n_samples or 1, 0), dtype=machine.dtype)
        else:
            chains = model.check_X(init)
            if n_samples not in (None, chains.shape[0]):
                raise ValueError(
                    f"n_samples={n_samples} expected to be the number of rows of init, got init "
                    f"of shape {chains.shape}. Leave n_samples out."
                )
        rng = model.inference_rng(random_state)
        if n_temperatures > 1:
            path_ends = model.base_and_anchors(machine, rng)
        elif init is None:
            target = heated_machine(machine, temperature)
            _, anchors = model.base_and_anchors(target, rng)
            start = chain_starts(model, target, anchors, len(chains), n_gibbs_steps, rng)

        def run(machine: Machine, v: Any) -> Array:
            machine = heated_machine(machine, temperature)
            if n_temperatures == 1:
                v = like(start(len(v)), machine.weights) if init is None else v
                return gibbs_steps(machine, v, n_gibbs_steps, rng)
            path = TemperedPath.to(machine, *path_ends)
            v = path.sample_base(len(v), rng) if init is None else dense(v)
            n_warm_steps = 0 if init is None else WARM_STEPS
            return sample_tempered(
                path, v, n_temperatures, n_gibbs_steps, rng, n_warm_steps=n_warm_steps
            )

        return self._row_format.write(self, model.map_rows(run, chains, is_random=True))

    @follows_input
    @checked_arguments(
        X=["array-like", "sparse matrix"],
        mask=["array-like"],
        method=[StrOptions({"sample", "mean"})],
        n_gibbs_steps=COUNT,
        n_chains=COUNT,
        random_state=RANDOM_STATE,
    )
    def inpaint(
        self,
        X: Any,
        mask: Any,
        *,
        method: str = "sample",
        n_gibbs_steps: int = 100,
        n_chains: int = 10,
        random_state: Any = None,
    ) -> Any:
        """Impute unobserved features of each row given the observed features.

        Gibbs chains run over the unobserved features of each row, with the observed features
        clamped. They start in the modes of the model that agree with the observed features, in each
        about as often as it is probable, since Gibbs steps hardly lead from one to another. Modes
        with a probability below 1 % are found too rarely. The modes are found by means of the
        persistent chains and of chains that start from overdispersed states. If the algorithm has
        no persistent chains, each call with incomplete rows replaces them by a sample drawn by
        parallel tempering, which takes one to two seconds for 784 features and 500 hidden units. The
        same holds for all methods that complete rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states. Unobserved values are not used and may be NaN. In tables, they are
            validated nevertheless.
        mask : array-like of bool of shape (n_samples, n_features) or (n_features,)
            True for observed values. A mask of shape (n_features,) applies to all rows.
        method : {"sample", "mean"}, default="sample"
            "sample" draws the unobserved features from their joint conditional distribution. "mean"
            returns their conditional means, averaged over the chains and over the second half of
            their steps. For a categorical or binary column of a table, it returns the most probable
            category. In an integer column of a table, the means are rounded.
        n_gibbs_steps : int, default=100
            Number of Gibbs steps of each chain.
        n_chains : int, default=10
            Number of chains per row for the method "mean". The conditional distribution often has
            several modes, and a single chain may stay in one of them.
        random_state : int, Generator, RandomState or None, default=None
            Seed or generator. If None, the random stream of the estimator is continued, so that
            successive calls give different results.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features)
            Rows with imputed values; observed values are unchanged. A `TabularRBM` returns a table
            of the same type as in `fit`.

        Raises
        ------
        ValueError
            If `X` is invalid, if `mask` is not boolean or has a wrong shape, or if an observed
            value is not finite.
        """
        return self._completed(method, 1, X, mask, random_state, n_gibbs_steps, n_chains)[0]

    @follows_input
    @checked_arguments(
        X=["array-like", "sparse matrix"],
        method=[StrOptions({"sample", "mean"})],
        n_imputations=[*COUNT, None],
        n_gibbs_steps=COUNT,
        n_chains=COUNT,
        random_state=RANDOM_STATE,
    )
    def impute(
        self,
        X: Any,
        *,
        method: str = "mean",
        n_imputations: int | None = None,
        n_gibbs_steps: int = 100,
        n_chains: int = 10,
        random_state: Any = None,
    ) -> Any:
        """Impute missing values, marked by NaN or None.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states, with NaN or None for missing values.
        method : {"mean", "sample"}, default="mean"
            "mean" imputes conditional means and, for a categorical or binary column of a table, the
            most probable category. In an integer column of a table, the means are rounded. "sample"
            imputes draws from the joint conditional distribution of the missing values.
        n_imputations : int, default=None
            Number of multiple imputations. Each imputation is a copy of the rows with independent
            draws of the missing values, so that analyses can account for the uncertainty of these
            values. If None, one copy is imputed by `method`; otherwise, `method` is ignored.
        n_gibbs_steps : int, default=100
            Number of Gibbs steps of each chain.
        n_chains : int, default=10
            Number of chains per row for the method "mean".
        random_state : int, Generator, RandomState or None, default=None
            Seed or generator. If None, the random stream of the estimator is continued, so that
            successive calls give different results.

        Returns
        -------
        V : ndarray of shape (n_samples, n_features) or (n_imputations, n_samples, n_features)
            Rows with imputed values; observed values are unchanged. A `TabularRBM` returns a table
            of the same type as in `fit`; a column whose data type cannot hold an observed value
            becomes float64 or object. With `n_imputations`, data frames are returned as a list, and
            arrays as one array.

        Raises
        ------
        ValueError
            If `X` is invalid, or if a value is infinite.

        Warns
        -----
        DomainWarning
            If an unknown category of a table is replaced, because it is treated as a missing value.

        Examples
        --------
        Each of two equal features predicts the other:

        >>> import numpy as np
        >>> from skrbm import BernoulliRBM
        >>> X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
        >>> rbm = BernoulliRBM(2, n_iter=300, random_state=0).fit(X)
        >>> rbm.impute([[1, np.nan], [np.nan, 0]]).round()
        array([[1., 1.],
               [0., 0.]])
        """
        arguments = X, None, random_state, n_gibbs_steps, n_chains
        if n_imputations is None:
            return self._completed(method, 1, *arguments)[0]
        copies = self._completed("sample", n_imputations, *arguments)
        return np.stack(copies) if isinstance(copies[0], np.ndarray) else copies

    def _completed(
        self,
        method: str,
        n_copies: int,
        X: Any,
        mask: Any,
        random_state: Any,
        n_gibbs_steps: int,
        n_chains: int,
    ) -> list[Any]:
        """Copies of the rows with imputed values; by the method "mean", it is one copy."""
        X = self._model.check_X(X, finite=False)
        if mask is None:
            self._row_format.warn_of_unknown(X, "replaced")
        is_observed, v = self._row_format.observed_units(self, X, mask), dense(X)
        model: Any = self._model
        draws = ConditionalDraws(model, v, is_observed, model.inference_rng(random_state))
        units = model.rbm._visible_type
        if compared_domain(units, self) is not None:  # saves a copy of all rows if not
            check_domain(np.where(draws.is_held, v, np.nan), units, self, allow_nan=True)
        if method == "mean":
            copies: Iterable[Array] = [draws.average(n_gibbs_steps, n_chains)]
        else:
            copies = draws.copies(n_gibbs_steps, n_copies)
        options = {"given": X, "is_observed": is_observed, "is_averaged": method == "mean"}
        return [self._row_format.write(self, copy, **options) for copy in copies]

    def _as_states(self, states: Array) -> Array:
        """Convert states to `_state_dtype`: bool for `BernoulliRBM`, as in scikit-learn."""
        return states if self._state_dtype is None else states.astype(self._state_dtype)
