"""Energies, pseudo-likelihoods and likelihoods of rows."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length

from skrbm.core.likelihood import exact
from skrbm.core.likelihood.partition import LogPartition
from skrbm.core.likelihood.pseudo import pseudo_likelihood
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, weighted_mean
from skrbm.estimators.inference.log_partition import (
    AUTO_TEMPERATURES,
    anneal,
    are_states,
    warn_if_gray,
    warn_if_too_likely,
)
from skrbm.estimators.inference.missing_values import average_over_draws, observed_free_energy
from skrbm.estimators.inference.model import ModelMixin, model_of
from skrbm.estimators.input.array_libraries import follows_input, to_numpy
from skrbm.estimators.input.formats import RowFormat, observed_units
from skrbm.estimators.input.validation import (
    RANDOM_STATE,
    check_weights,
    checked_arguments,
    explain_core_errors,
    finite_results,
    public_methods_of,
)


@public_methods_of
class LikelihoodMixin(ModelMixin):
    """Methods of estimators that score rows."""

    n_jobs: int | None
    _row_format: ClassVar[RowFormat]
    _visible_type: Any

    @follows_input
    def score_samples(self, X: Any) -> Array:
        """Compute the log pseudo-likelihood of each row.

        The result is deterministic. For complete rows, it is exact; the conditional densities of
        real-valued features are computed by numerical quadrature. For rows of zeros and ones and a
        `BernoulliRBM`, it is the expectation of the random estimate that
        ``sklearn.neural_network.BernoulliRBM`` returns for the same parameters. The cost is
        proportional to n_samples * n_features * n_components. It increases with the number of
        categories of a feature, or of quadrature nodes for a real-valued feature.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states. With `missing="marginalize"`, NaN and None mark missing
            values.

        Returns
        -------
        pseudo_likelihood : ndarray of shape (n_samples,)
            Log pseudo-likelihood in nats, a sum over the observed features. For a row with missing
            values, the score is averaged over ten imputations, each after 20 Gibbs steps. Repeated
            calls with the same incomplete rows give the same result, but the score of such a row
            also depends on the other rows of the call, by the Monte Carlo error.

        Raises
        ------
        ValueError
            If `X` is invalid, if a result is not finite, or if the density of a feature given the
            others cannot be integrated, for example because the weights of "gaussian" hidden units
            are too large.
        """
        X = self._model.check_X(X, missing=True)
        return self._scores_of_rows(X, observed_units(self, X))

    def _scores_of_rows(self, X: Any, is_observed: Array | None) -> Array:
        """Log pseudo-likelihoods of checked rows, given the mask of their observed units."""
        model = self._model

        def scores(v: Any, rows: Any) -> Array:
            counted = None if is_observed is None else is_observed[rows]
            return pseudo_likelihood(model.machine(v), v, self.n_jobs, counted)

        with finite_results() as check, explain_core_errors():
            result = average_over_draws(model, X, is_observed, scores)
            check(result)
        log_jacobian = self._row_format.log_jacobian(self, X, is_observed)
        return np.asarray(result - log_jacobian, dtype=result.dtype)

    @follows_input
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the mean log pseudo-likelihood, the default score of hyperparameter searches.

        By default, scikit-learn's cross-validation does not shuffle the rows. If the rows are
        sorted, pass a splitter that shuffles them as `cv`, such as ``KFold(shuffle=True)``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.
        y : object, default=None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. If None, all rows have equal weights.

        Returns
        -------
        score : float
            Mean of `score_samples` with these weights, in nats per row.
        """
        scores = self.score_samples(X)
        return weighted_mean(scores, check_weights(sample_weight, scores))

    @follows_input
    def free_energy(self, X: Any) -> Array:
        r"""Compute the free energy of each row, :math:`F(v) = -\log p(v) - \log Z`.

        The free energy is the negative log-likelihood up to a constant of the model, so that rows
        can be ranked without the partition function Z.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.

        Returns
        -------
        free_energy : ndarray of shape (n_samples,)
            Free energy in nats (natural logarithms).
        """
        return self._free_energies_of_rows(self._model.check_X(X))

    def _free_energies_of_rows(self, X: Any) -> Array:
        """Free energies of checked rows, which are complete."""
        return self._per_unit(self._model.map_rows(Machine.free_energy, X, is_precise=True), X)

    @follows_input
    def energy(self, X: Any, H: Any) -> Array:
        """Compute the energy of each pair of a visible and a hidden state.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states.
        H : array-like of shape (n_samples, n_components)
            Hidden states.

        Returns
        -------
        energy : ndarray of shape (n_samples,)
            Energy in nats.
        """
        X, H = self._model.check_X(X), self._model.check_H(H, name="H")
        check_consistent_length(X, H)
        return self._per_unit(self._model.map_rows(Machine.energy, X, H, is_precise=True), X)

    @follows_input
    @checked_arguments(
        log_partition=[Interval(Real, None, None, closed="neither"), LogPartition, None],
        n_chains=[Interval(Integral, 2, None, closed="left")],
        n_temperatures=[Interval(Integral, 2, None, closed="left")],
        return_std=["boolean"],
        random_state=RANDOM_STATE,
    )
    def log_likelihood(
        self,
        X: Any,
        log_partition: float | LogPartition | None = None,
        *,
        n_chains: int = 100,
        n_temperatures: int = 1000,
        return_std: bool = False,
        random_state: Any = None,
    ) -> Array | tuple[Array, Array]:
        r"""Compute the log-likelihood of each row, :math:`\log p(v) = -F(v) - \log Z`.

        For real-valued visible units, the result is a log-density. Values between the states of
        discrete units, such as gray pixels, have an energy but no probability.

        For a row with missing values, the result is the log-likelihood of its observed values,
        :math:`\log p(v_o) = \log \sum_{v_m} p(v_o, v_m)`, and 0 if all values are missing. The sum
        is exact if the missing values, or the hidden units, have at most 4096 joint states, for
        example 12 bits. A single missing number is integrated over by quadrature. Otherwise, the
        sum is estimated by annealed importance sampling for each row, which takes about as long as
        ``log_partition(method="ais")`` with the same `n_chains` and `n_temperatures`. Such an
        estimate tends to be too low, and changes with the random numbers, which depend on the
        annealed rows before this row. Likelihoods of rows with different missing features are not
        comparable. In a table, unknown categories count as missing.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Visible states. With `missing="marginalize"`, NaN and None mark missing values.
        log_partition : float or LogPartition, default=None
            Log-partition function in nats. If None, it is computed by the method `log_partition`.
            For large models, the computation takes seconds to minutes. The result is not cached.
        n_chains : int, default=100
            Number of annealed chains for each row with missing values.
        n_temperatures : int, default=1000
            Number of temperatures for rows with missing values.
        return_std : bool, default=False
            If True, the standard errors of the annealed sums over missing values are also returned.
        random_state : int, RandomState instance, Generator or None, default=None
            Seed of the annealed chains of rows with missing values. If None, repeated calls give
            the same result.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Log-likelihood in nats. An error of `log_partition` changes the results of all rows by
            the same amount. However, log-probabilities are at most 0: larger results are set to 0.
        std_error : ndarray of shape (n_samples,)
            Standard error of each row in nats, without the error of `log_partition`. It is 0 for
            complete rows, and for exact sums over the missing values. It is only returned if
            `return_std` is True.

        Warns
        -----
        AnnealingWarning
            If the probabilities of the distinct complete rows sum to more than one, and the
            logarithm of their sum exceeds five standard errors of `log_partition`. In that case,
            `log_partition` is too low: if it was estimated, the chains missed modes of the model.
            The sum is over at most 10,000 rows of `X`, and rows with gray values are ignored. It is
            not computed for tables and real numbers. If `log_partition` is None, the method
            `log_partition` may also warn. A further warning is issued if few of the annealed chains
            of a row with missing values contribute to its estimate.
        """
        model = self._model
        X = model.check_X(X, missing=True)
        is_observed = observed_units(self, X)
        if is_observed is None:
            free_energy = model.map_rows(Machine.free_energy, X, is_precise=True)
            error = np.zeros(X.shape[0])
        else:
            free_energy, error = observed_free_energy(
                model, X, is_observed, n_chains, n_temperatures, random_state
            )
        normalizer = self.log_partition() if log_partition is None else log_partition
        values = self._visible_type.support.values
        if values:
            warn_if_too_likely(X, free_energy, normalizer, values)
        energy = self._per_unit(free_energy, X, is_observed)
        log_likelihood = -energy - float(normalizer)
        if is_observed is not None:
            is_empty = ~is_observed.any(axis=1)
            log_likelihood[is_empty] = error[is_empty] = 0
        # Log-probabilities above 0 are errors of an estimate, or of rounding.
        is_likely = log_likelihood > 0
        if is_likely.any() and model.machine().visible.is_discrete:
            if values:  # encoded tables have states alone
                is_likely &= are_states(X, values, allow_nan=True)
            log_likelihood[is_likely] = 0
        return (log_likelihood, error) if return_std else log_likelihood

    @follows_input
    @checked_arguments(
        method=[StrOptions({"auto", "exact", "ais", "reverse_ais", "bar"})],
        n_chains=[Interval(Integral, 2, None, closed="left")],
        n_temperatures=[Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        X=["array-like", "sparse matrix", None],
        init=["array-like", "sparse matrix", None],
        random_state=RANDOM_STATE,
    )
    def log_partition(
        self,
        method: str = "auto",
        *,
        n_chains: int = 100,
        n_temperatures: int | str = 10_000,
        X: Any = None,
        init: Any = None,
        random_state: Any = None,
    ) -> LogPartition:
        r"""Compute or estimate the logarithm of the partition function.

        Annealed importance sampling (AIS) [1]_ starts from independent features with the means and
        variances of `X` or, without `X`, of the training data. Its estimate tends to be too low,
        and the estimate of reverse annealing [2]_ tends to be too high. If the two estimates differ
        by several standard errors, at least one of them is wrong; if they agree, both may still
        have missed a mode. The chains may jump to visible states in the modes of the model. These
        are at most 100 evenly spread rows of `X`. Without `X`, they are states drawn given the
        persistent chains `h_samples_`, together with the final states of Gibbs chains that start
        from overdispersed states. If the arrays were assigned by hand without a fit, or if the
        algorithm has no persistent chains, states drawn by parallel tempering replace the states
        drawn given persistent chains.

        Parameters
        ----------
        method : {"auto", "exact", "ais", "reverse_ais", "bar"}, default="auto"
            Method of computation:

            - "exact": sum over all states of the discrete layer with fewer states, which may have
              at most 2^25 states, as many as 25 binary units.
            - "ais": annealed importance sampling from independent features to the model.
            - "reverse_ais": reverse annealing from samples of the model to independent features.
            - "bar": Bennett's acceptance ratio [3]_ between neighboring temperatures of parallel
              tempering, which are chosen adaptively. Its errors may have either sign, but they are
              larger than those of "ais" if chains equilibrate slowly, as for 784 x 500 units.
            - "auto": "exact" if it sums over at most `n_chains` times `n_temperatures` states, but
              no more than 2^25, and otherwise "ais". With ``n_temperatures="auto"``, the limit is
              `n_chains` times 10,000 states. By default, the limit is a million states, so that
              the result is exact if one layer has at most 19 binary units.
        n_chains : int, default=100
            Number of annealed chains, at least 2; with `init`, the number of rows of `init` is used
            instead. For "bar", it is the number of independent sets of tempered chains.
        n_temperatures : int or "auto", default=10_000
            Number of inverse temperatures that each chain visits. For "bar", it is the approximate
            total number of steps of all chains in a set. "auto" tries 150, 600, 2400 and 10,000 in
            turn, until two successive estimates agree within three standard errors of their
            difference. The last estimate must also have a standard error of at most 0.05 nats, and
            not be below the lower bound (see Warns); the one before, of at most 0.2 nats.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Rows whose means and variances define the initial distribution, and to which chains may
            jump. If None, the means and variances are those of the training data. If the arrays
            were assigned by hand without a fit, they are those of a sample of the model drawn by
            parallel tempering. In both cases, chains may jump to the states described above.
        init : {array-like, sparse matrix} of shape (n_chains, n_features), default=None
            Initial states for "reverse_ais", which should be independent samples of the model. If
            None, they are drawn by parallel tempering, in which the tempered chains of each sample
            take about `n_temperatures` steps in total.
        random_state : int, Generator, RandomState or None, default=None
            Seed or generator. If None, repeated calls with the same model give the same result.

        Returns
        -------
        log_partition : LogPartition
            Exact value or estimate, with the attributes `value` and `std_error` in nats, and
            `method`.

        Raises
        ------
        ValueError
            If `method` is "exact" and neither layer is discrete with at most 2^25 states. If `init`
            is given with a method other than "reverse_ais", is invalid or has a single row. If `X`
            is invalid and the result is an estimate. If the result is not finite.

        Warns
        -----
        AnnealingWarning
            If one of three checks of the estimate fails. First, there must be at least ten chains,
            and the effective sample size of "ais" and "reverse_ais" must be at least ten or, with
            fewer than 20 chains, at least half the number of chains. Second, the estimate must not
            be more than five standard errors below a lower bound computed from the states to which
            chains may jump. Third, the estimate of "reverse_ais" or "bar" is compared with an
            estimate of "ais" with a quarter of the temperatures. They must agree within five
            standard errors of the difference, where standard errors above 0.32 nats count as 0.32
            nats.

        References
        ----------
        .. [1] Salakhutdinov, Murray (2008), "On the quantitative analysis of deep belief
           networks", ICML, 872-879. :doi:`10.1145/1390156.1390266`
        .. [2] Burda, Grosse, Salakhutdinov (2015), "Accurate and conservative estimates of MRF
           log-likelihood using reverse annealing", AISTATS, PMLR 38, 102-110.
        .. [3] Bennett (1976), "Efficient estimation of free energy differences from Monte Carlo
           data", Journal of Computational Physics 22(2), 245-268.
           :doi:`10.1016/0021-9991(76)90078-4`

        Examples
        --------
        Two uncoupled units that are 0 or 1 have four equally likely states:

        >>> import numpy as np
        >>> from skrbm import BernoulliRBM
        >>> rbm = BernoulliRBM(1)
        >>> rbm.components_ = np.zeros((1, 1))
        >>> rbm.intercept_visible_ = rbm.intercept_hidden_ = np.zeros(1)
        >>> print(rbm.log_partition())
        log Z = 1.386294 nats (exact)
        """
        machine = self._model.machine()
        n_states = exact.smaller_discrete(machine).visible.n_states
        if init is not None and method != "reverse_ais":
            raise ValueError(
                f"init expected to be None for method={method!r}, got rows. Only "
                f"method='reverse_ais' starts from init; the other methods start from X."
            )
        if method == "auto":
            n_steps = AUTO_TEMPERATURES[-1] if n_temperatures == "auto" else int(n_temperatures)
            most = min(n_chains * n_steps, exact.MAX_STATES)
            method = "exact" if n_states <= most else "ais"
        with finite_results() as check, explain_core_errors():
            if method == "exact":
                value = exact.log_partition(machine.astype(np.float64), self.n_jobs)
                constant = float(self._row_format.log_jacobian(self))
                result = LogPartition(value + constant, 0.0, method)
            else:
                rng = self._model.annealing_rng(random_state)
                result = anneal(
                    self._model, machine, method, n_chains, n_temperatures, X, init, rng
                )
            check(np.array([result.value, result.std_error]))
        return result

    def _per_unit(self, energy: Array, X: Any, is_observed: Array | None = None) -> Array:
        """Convert energies of the states of rows to energies of the user's values, in nats.

        The log-Jacobian of the observed values of each row is added, without the constant that
        `log_partition` includes.
        """
        row_format = self._row_format
        row_term = row_format.log_jacobian(self, X, is_observed) - row_format.log_jacobian(self)
        return np.asarray(energy + row_term, dtype=energy.dtype)


def log_likelihood_scorer(
    estimator: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> float:
    """Score held-out rows by their mean log-likelihood, for example in hyperparameter searches.

    Unlike pseudo-likelihoods, log-likelihoods are comparable between models of any type with the
    same features. The partition function is computed exactly if one layer has at most a million
    states; a layer of binary units may then have up to 19 units. Otherwise, it is estimated by
    annealed importance sampling with ``n_temperatures="auto"``, usually with a standard error of at
    most 0.05 nats. The error of this estimate is the same for all rows. Rows with missing values
    may be annealed one by one, which takes about half a second for each row of a small table.

    Parameters
    ----------
    estimator : BernoulliRBM, SpinRBM, GaussianBernoulliRBM, TabularRBM or Pipeline
        Fitted estimator, or a Pipeline that ends in one. With a Pipeline, densities are those of
        the transformed features.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Held-out rows. Values between the states of discrete units have no probability. With
        `missing="marginalize"`, rows may have missing values, as in the method `log_likelihood`.
    y : object, default=None
        Ignored.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the mean. If None, all rows have equal weights.

    Returns
    -------
    score : float
        Mean log-likelihood in nats per row.

    Raises
    ------
    TypeError
        If the estimator is none of these, for example an `RBMClassifier`, whose rows have no
        log-likelihood without their labels.

    Warns
    -----
    DomainWarning
        If `X` has values other than the two states of the units, such as gray values. At most
        10,000 rows are checked.
    AnnealingWarning
        If the estimate of the partition function fails a check of the methods `log_partition` or
        `log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skrbm import BernoulliRBM, log_likelihood_scorer
    >>> X = np.tile([[0, 0, 1], [1, 1, 0]], (20, 1))
    >>> search = GridSearchCV(
    ...     BernoulliRBM(n_components=2, random_state=0),
    ...     {"n_iter": [1, 100]},
    ...     scoring=log_likelihood_scorer,
    ... )
    >>> search.fit(X).best_params_
    {'n_iter': 100}
    """
    while isinstance(estimator, Pipeline):
        if len(estimator) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    rows = model_of(estimator).check_X(to_numpy(X), missing=True)
    warn_if_gray(rows, estimator._visible_type.support.values)
    log_partition = estimator.log_partition(n_temperatures="auto")
    scores = to_numpy(estimator.log_likelihood(X, log_partition))
    return weighted_mean(scores, check_weights(sample_weight, scores))
