"""Initialization of a fit, with a new machine or with the machine of a fitted estimator."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import Any, final

import numpy as np

from skrbm.core.chains.ladder import Ladder
from skrbm.core.draws import new_streams
from skrbm.core.likelihood.deficit import independent_log_density
from skrbm.core.machine import Machine
from skrbm.core.numerics import Array, dense, spread_rows, weighted_mean
from skrbm.core.parallel import one_blas_thread
from skrbm.core.training.negative_phase import ALGORITHMS
from skrbm.core.training.parts.average import limit_average
from skrbm.core.training.start.clusters import find_clusters
from skrbm.core.training.start.factors import factor_machine
from skrbm.core.training.start.initialization import (
    column_variances,
    initial_hidden_layer,
    initial_machine,
    initial_particles,
    with_new_columns,
)
from skrbm.core.training.start.nearest_rows import with_nearest_values
from skrbm.core.training.start.numeric_rows import NumericRows, factor_columns
from skrbm.core.training.start.pretraining import (
    add_hidden_units,
    log_likelihood,
    mode_means,
    pretrained_machine,
)
from skrbm.core.training.start.sources import source_machine
from skrbm.core.training.start.statistics import (
    column_kurtosis,
    column_redundancy,
    largest_deviation,
    merged_statistics,
)
from skrbm.core.training.state import TrainingState
from skrbm.core.units import Units
from skrbm.estimators.fitting.checkpoint import check_same_fit
from skrbm.estimators.fitting.problem import Data, Problem, Start
from skrbm.estimators.fitting.settings import penalties_of
from skrbm.estimators.inference.model import (
    Model,
    Statistics,
    changed_parameters,
    fingerprint,
    other_meaning,
)
from skrbm.estimators.input.validation import (
    check_parameter,
    check_width,
    floating_type,
    merged_weight_sums,
    number_of_rows,
    parameter_shape,
    warn_user,
)

# Machine to train; entries of `Start.data`, to which `start_fit` adds the `_metric_statistics` and
# the counts; fields of the training state; and the machine of the public arrays, or None if
# training does not resume from them.
Origin = tuple[Machine, Data, dict[str, Any], Machine | None]
STATE_FIELDS = {field.name for field in fields(TrainingState)} - {"particles"}
MIN_SCALE_ROWS = 20  # rows from which a variance can be estimated within a factor of two
MAX_SHIFT = 3.0  # standard deviations of the mean of a column from that of the first call
MAX_DIVERGENCE = 1.0  # nats, beyond which a column whose scale was unknown is initialized anew
# The rows before a block are not typical of a column if its variance changes by more than the first
# factor, and if they are fewer than the second times those of the block; their weights vary.
MAX_VARIANCE_CHANGE, MAX_ROWS_RATIO = 100.0, 1.5
# Variance of two-state columns below which steps are longer, largest squared distance of a row from
# the mean for which they are, and largest factor of their lengths. In one of eight fits, a distance
# of 60 loses a cluster of 5 % of the rows, and no bound loses groups of 6 and 20 rows of 2,000.
SMALL_VARIANCE, SMALL_DEVIATION, MAX_STEP_SCALE = 0.15, 45.0, 8.0
MAX_FACTOR_ROWS = 2000  # from which factors are estimated; imputing missing values of more is slow


@final
@dataclass(frozen=True)
class Structure:
    """Structure of the data that the first hidden units represent before training.

    Parameters
    ----------
    machine : Machine
        Plain machine of these hidden units alone.
    rows : ndarray of shape (n_samples, n_visible)
        Rows of the data at which chains start, in double precision.
    weights : ndarray of shape (n_samples,) or None
        Probability of each row. If None, all rows have equal probabilities.
    parts : dict of str to dict, default={}
        Initial states of parts of training.
    least_kurtosis : float, default=0.0
        Lower bound of the kurtosis of all columns.
    """

    machine: Machine
    rows: Array
    weights: Array | None
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    least_kurtosis: float = 0.0


def start_fit(problem: Problem) -> Start:
    """Initialize a fit with a new machine or with the machine of the fitted estimator.

    The estimator is not changed.

    Parameters
    ----------
    problem : Problem
        Training data and the model.

    Returns
    -------
    start : Start
        Initialization of the fit.

    Raises
    ------
    ValueError
        If the rows or `n_components` do not match the public arrays, if a public array is invalid,
        if the statistics of the rows exceed the range of their data type, or if parameters or rows
        have changed since the checkpoint (see `check_same_fit`).
    """
    model, rbm, checkpoint = problem.model, problem.model.rbm, problem.checkpoint
    if checkpoint is not None:
        check_same_fit(checkpoint, model.owner, problem.digest)
    rng = deepcopy(problem.streams["training"])
    if problem.resumes:
        origin = _resumed(problem, rng)
    else:
        origin = _new(problem, problem.statistics, problem.weights, rng)
    machine, data, state, published = origin
    if checkpoint is None:
        data = {**data, **problem.counts, **_metric_statistics(problem, machine, data)}
        data |= _step_scale(problem, data)
        state["rate_factor"] = 1.0
    else:
        data = problem.data_before  # includes these rows
    base = model.base_layer(data["all"])
    first = base if data["first"] is data["all"] else model.base_layer(data["first"])
    chains = {} if published is None else getattr(rbm, "_chains", {})
    betas, n_temperatures = chains.get("betas", ()), rbm.n_temperatures
    ladder = Ladder(betas) if len(betas) == n_temperatures else Ladder.of(n_temperatures)
    phase = ALGORITHMS[rbm.algorithm].create(rbm.n_gibbs_steps, first, ladder)
    # The chains at temperature 1 come first. Missing chains are initialized.
    n_particles = rbm.n_particles or len(state["particles"]) or problem.batch_size
    n_replicas = (phase.n_temperatures - 1) * n_particles
    particles = state["particles"][:n_particles]
    more = initial_particles(machine, base, n_particles - len(particles), rng)
    replicas = chains.get("replicas", particles[:0])
    if replicas.shape != (n_replicas, machine.hidden.n_columns):
        replicas = initial_particles(machine, base, n_replicas, rng)
    state["particles"] = np.concatenate([particles, more, replicas])
    if checkpoint is not None:
        state["particles"] = checkpoint["particles"]
    dtype = floating_type(problem.X, np.float64) if published is None else published.dtype
    return Start(machine, dtype, TrainingState(**state), rng, data, base, ladder, phase, published)


def _new(
    problem: Problem, statistics: Statistics, weights: Data, rng: np.random.Generator
) -> Origin:
    """New machine initialized with statistics of the data, and the initial state of training.

    `weights` are the entries of `Start.data` for the weights of the rows of the statistics.
    """
    model, rbm = problem.model, problem.model.rbm
    # A table has already warned of columns without observed values.
    is_reported = np.isnan(statistics[1]) & rbm._row_format.has_tables
    statistics = model.fill_unobserved_means(statistics)
    n_samples, mean, variance = statistics
    if not np.isfinite(variance).all():
        raise _out_of_range(np.float64, "a variance would be infinite.")
    is_varying = (variance > 0) | (n_samples == 1)
    constant = rbm._row_format.constant_features(rbm, is_varying | is_reported)
    if constant:
        warn_user(
            f"Features {constant[:10]} of X are constant; their "
            f"noise_variance_ stays at 1. Drop them, for example with "
            f"sklearn.feature_selection.VarianceThreshold.",
            UserWarning,
        )
    visible = model.base_layer(statistics, is_varying)
    data = {"first": statistics, "all": statistics, **weights}
    data |= {"is_varying": is_varying, "least_kurtosis": 0.0}
    if rbm._row_format.has_tables:
        data["table"] = rbm._data["table"]
        n_rows = problem.X.shape[0]
        if not (problem.is_planned or problem.resumes) and n_rows < MIN_SCALE_ROWS:
            warn_user(
                f"The scales and categories of a table are learned in the first call of partial_fit, "
                f"which got {n_rows} rows, too few to estimate a scale. Pass at least "
                f"{MIN_SCALE_ROWS} rows in the first call.",
                UserWarning,
            )
    found = _with_clusters(problem, visible, statistics, is_varying, rng) or _with_factors(
        problem, visible, statistics, is_varying
    )
    if found is None:
        hidden = initial_hidden_layer(rbm._hidden_layer_type, rbm.n_components)
        machine = initial_machine(visible, hidden, *model.moments(statistics), rng)
        state: dict[str, Any] = {"particles": np.empty((0, hidden.n_columns), machine.dtype)}
    else:
        machine = add_hidden_units(found.machine, rbm.n_components, mean, variance, rng)
        n_chains = rbm.n_particles or problem.batch_size
        rows = rng.choice(found.rows, n_chains, p=found.weights)
        state = {"particles": machine.sample_hidden(rows, rng), "parts": found.parts}
        data["least_kurtosis"] = found.least_kurtosis
    _check_range(model, machine, floating_type(problem.X, np.float64))
    return machine, data, state, None


def _step_scale(problem: Problem, data: Data) -> Data:
    """Factor of the steps for columns that are rarely active, such as the words of documents.

    The weights of a column grow at a rate proportional to its variance. If the variances are small,
    hardly anything is learned in the default number of epochs. The steps are then longer, in inverse
    proportion to the mean variance, weighted by the variances. A step changes the free energy of a
    row in proportion to the squared distance of the row from the mean. The steps are therefore not
    longer if there is a distant row: a rare group would be lost in spurious modes.

    The result contains the entries "step_scale" and "deviation" of `Start.data`. The scale is at
    most `MAX_STEP_SCALE`. It is 1 if the columns or the hidden units do not have two states, or if
    `_left_out` contains "step scale".
    """
    rbm, statistics = problem.model.rbm, data["all"]
    base = rbm._model.base_layer(statistics)  # without a label
    step, deviation = base.value_step, data.get("deviation", 0.0)
    unscaled = {"step_scale": 1.0, "deviation": deviation}
    kind: type[Units] = rbm._hidden_layer_type
    if not step or len(kind.support.values) != 2 or "step scale" in rbm._left_out:
        return unscaled
    # Gray values are the means of states, which vary more than the values.
    variances = column_variances(base) / step**2
    variance = np.average(variances, weights=variances) if variances.any() else 1.0
    if variance >= SMALL_VARIANCE:
        return unscaled
    deviation = max(deviation, largest_deviation(problem.X, statistics[1]) / step**2)
    scale = min(SMALL_VARIANCE / variance, SMALL_DEVIATION / max(deviation, 1))
    return {"step_scale": float(np.clip(scale, 1, MAX_STEP_SCALE)), "deviation": deviation}


def _check_range(model: Model, machine: Machine, dtype: Any) -> None:
    """Raise a ValueError if a public array would not be finite, or would be invalid, in `dtype`."""
    with np.errstate(over="ignore", under="ignore"):
        arrays, places = model.arrays(machine.astype(dtype)), model.rbm._array_places
    try:
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                raise ValueError(f"{name} would be infinite.")
            if name in places:
                places[name][2](array)
    except ValueError as error:
        raise _out_of_range(dtype, error) from error


def _out_of_range(dtype: Any, reason: Any) -> ValueError:
    """Error about statistics from which no finite machine follows in a data type."""
    return ValueError(
        f"The statistics of X are beyond the range of {np.dtype(dtype)}: {reason} Rescale X, for "
        f"example with sklearn.preprocessing.StandardScaler."
    )


def _with_clusters(
    problem: Problem,
    visible: Units,
    statistics: Statistics,
    is_varying: Array,
    rng: np.random.Generator,
) -> Structure | None:
    """Pretrain a machine of a few hidden units on the clusters of the data.

    From small random initial weights, modes that are far apart are learned late or not at all.
    Either the variances decrease before the weights represent all modes, or the odds of the modes
    are so sensitive to the weights that updates must be small.

    The result is None if the `value_step` of the visible layer is None, if the hidden units do not
    have two states, if `_left_out` contains "clusters", if `find_clusters` or `pretrained_machine`
    returns None, or if `_is_allowed` rejects the machine.
    """
    rbm, model, n_hidden = problem.model.rbm, problem.model, problem.model.rbm.n_components
    n_samples, mean, variance = statistics
    kind: type[Units] = rbm._hidden_layer_type
    step = None if "clusters" in rbm._left_out else visible.value_step
    if step is None or len(kind.support.values) != 2:  # each hidden unit switches one cluster on
        return None
    # Not spawned from `rng`: before NumPy 2, a copied generator loses its seed sequence.
    most, (learned, _), stream = max(n_hidden, 2), problem.split, new_streams(deepcopy(rng), 1)[0]
    with one_blas_thread():  # threads slow small products down
        modes = find_clusters(
            problem.X,
            learned,
            mean,
            variance,
            step,
            most,
            stream,
            sample_weight=problem.sample_weight,
        )
        if modes is None:
            return None
        within = model.base_layer((n_samples, modes.origin, modes.variance), is_varying)
        machine = pretrained_machine(visible, within, kind, modes, n_hidden, variance, rng)
    if machine is None:
        return None
    v, weights = modes.rows, modes.weights
    alone = weighted_mean(independent_log_density(visible, v), weights)
    if not _is_allowed(rbm, machine, log_likelihood(machine, v, weights) - alone):
        return None
    kurtosis = 0.0 if "kurtosis" in rbm._left_out else modes.kurtosis(variance)
    parts = {"jumps": {"modes": mode_means(machine)}}
    return Structure(machine, v, weights, parts, kurtosis)


def _with_factors(
    problem: Problem, visible: Units, statistics: Statistics, is_varying: Array
) -> Structure | None:
    """Initialize hidden units that represent factors of the numeric columns, or sources of them.

    Sources are searched if there are no factors. The result is None if the hidden units do not have
    two states, if the rows have labels, if neither `factor_machine` nor `source_machine` finds
    anything, or if `_is_allowed` rejects the machine. `_left_out` can contain "factors" and "sources".
    """
    rbm, model = problem.model.rbm, problem.model
    n_samples, mean, variance = statistics
    kind: type[Units] = rbm._hidden_layer_type
    is_labeled = visible.n_columns != len(mean)
    searches = {"factors": factor_machine, "sources": source_machine}
    names = [name for name in searches if name not in rbm._left_out]
    if not names or len(kind.support.values) != 2 or is_labeled:
        return None
    learned, _ = problem.split
    indices = np.arange(problem.X.shape[0]) if learned is None else learned
    indices, weights = spread_rows(indices, MAX_FACTOR_ROWS), None
    if not len(factor_columns(visible, variance, len(indices))):  # before any rows are read
        return None
    rows = dense(problem.X[indices]).astype(np.float64)
    rows = with_nearest_values(rows, rows, mean)
    if problem.sample_weight is not None:
        weights = problem.sample_weight[indices] / problem.sample_weight[indices].sum()

    def layer_of(within: Array) -> Units:
        return model.base_layer((n_samples, mean, within), is_varying)

    with one_blas_thread(), np.errstate(all="ignore"):  # threads slow small products down
        numeric = NumericRows.of(layer_of, rows, mean, variance, weights)
        if numeric is None:
            return None
        results = (searches[name](numeric, kind, rbm.n_components) for name in names)
        found = next((result for result in results if result is not None), None)
    if found is None:
        return None
    machine, gain = found
    return Structure(machine, rows, weights) if _is_allowed(rbm, machine, gain) else None


def _is_allowed(rbm: Any, machine: Machine, gain: float) -> bool:
    """True if the weights satisfy `max_norm` and do not decrease the penalized log-likelihood.

    `gain` is the mean log-likelihood minus that of independent visible units, which have no
    weights.
    """
    norms = np.linalg.norm(machine.weights, axis=0)
    if rbm.max_norm is not None and norms.max() > rbm.max_norm:
        return False
    return gain >= penalties_of(rbm).of_weights(machine)


def _resumed(problem: Problem, rng: np.random.Generator) -> Origin:
    """Machine that continues the training of the estimator, and the state of training.

    The result is a new machine if the bounds of the variances were set from fewer than
    `MIN_SCALE_ROWS` rows. Otherwise, single columns may be new (see `_with_late_columns`). Nothing
    is new if the user has edited the public arrays since, or if the fit resumes from a checkpoint.
    """
    model, rbm, X = problem.model, problem.model.rbm, problem.X
    before, training = problem.data_before, problem.training_state
    width, weights = X.shape[1], problem.weights
    statistics: Any = problem.statistics
    seen: Any = before.get("all")
    all_rows = statistics
    is_as_wide = seen is not None and len(seen[1]) == width
    if is_as_wide:
        sums = merged_weight_sums(before["weight_sums"], problem.weight_sums)
        observed_weight, *moments = merged_statistics(
            (before["observed_weight"], *seen[1:]), (problem.observed_weight, *statistics[1:])
        )
        weights = {"weight_sums": sums, "observed_weight": observed_weight}
        all_rows = number_of_rows(sums), *moments
    is_varying = before.get("is_varying", True)
    is_known = np.size(is_varying) in (1, width)
    is_varying = not is_known or is_varying | (all_rows[2] > 0)  # constant columns may vary now
    published = model.machine(is_varying=is_varying)
    n_hidden, n_columns = parameter_shape(rbm, "components_", 2)
    check_width(X, n_columns, rbm)
    if rbm.n_components not in (n_hidden, training.get("n_components", rbm.n_components)):
        anew = "Set warm_start=False and call fit" if rbm.warm_start else "Call fit"
        raise ValueError(
            f"n_components={rbm.n_components} was changed since fit, but components_ has "
            f"{n_hidden} rows. {anew} to train a new model, or set n_components={n_hidden} to "
            f"continue training."
        )
    is_published = training.get("fingerprint") == fingerprint(model.public)
    changed = changed_parameters(rbm, training)
    if "hidden_units" in changed or (changed and is_published):  # chains have a meaning, too
        raise other_meaning(rbm, changed[0])
    if is_as_wide:
        data = {**before, "all": all_rows}
    else:
        known = model.fill_unobserved_means(statistics)
        data = {**before, "first": known, "all": known}
    data |= {**weights, "is_varying": is_varying}
    if is_published and is_as_wide and problem.checkpoint is None:
        if seen[0] < MIN_SCALE_ROWS and published.visible.bounds(model.moments(all_rows)[1]):
            # The variance bounds were set from too few rows.
            return _new(problem, all_rows, weights, rng)
        late = _with_late_columns(problem, published, data)
        if late is not None:
            published, data = late
            is_published = False  # as after an edit of the user
            training = {**training, "visible_offset": None, "hidden_offset": None}
        if rbm._row_format.has_tables:
            _warn_if_shifted(problem, published, data["first"])
    machine, state = _trained(published, training, is_published=is_published, averages=rbm.average)
    if problem.checkpoint is None:
        limit_average(state.get("parts", {}), problem.n_iter * problem.n_updates)
    particles = np.empty((0, n_hidden))
    if np.shape(getattr(rbm, "h_samples_", ()))[1:] == (n_hidden,):
        particles = check_parameter(rbm, "h_samples_", 2)
    state["particles"] = particles.astype(machine.dtype)
    return machine, data, state, published


def _warn_if_shifted(problem: Problem, published: Machine, first: Statistics) -> None:
    """Warn if numbers of a table are far from those that set the scales of their columns.

    Training alone moves a model there slowly, and its samples stay near the `first` numbers.
    """
    n_rows, mean, _ = problem.statistics
    low, high = published.visible.column_bounds
    distance = np.square(mean - first[1])
    is_far = (distance > MAX_SHIFT**2 * first[2]) & (first[2] > 0)
    far = np.flatnonzero(is_far & np.isinf(high - low)[: len(mean)])
    if n_rows >= MIN_SCALE_ROWS and len(far):
        warn_user(
            f"The means of columns {problem.model.rbm.columns_[far[:10]].tolist()} are more than "
            f"{MAX_SHIFT:g} standard deviations from those in the first call, which set the scales "
            f"of the columns. Samples and imputed values stay near the rows of that call. Pass "
            f"rows that represent all data in the first call, for example in random order.",
            UserWarning,
        )


def _with_late_columns(
    problem: Problem, published: Machine, data: Data
) -> tuple[Machine, Data] | None:
    """Initialize late columns of a machine as independent columns; None if no column is late.

    Late columns are unbounded columns that had fewer than `MIN_SCALE_ROWS` observed values in
    earlier calls, were constant, or were not typical: the variances of few earlier and of the
    present rows differ by more than a factor of `MAX_VARIANCE_CHANGE`. They are late if their first
    scale does not suit their values: the normal distributions with the former and with the new
    statistics differ by more than `MAX_DIVERGENCE`. Training alone would take thousands of updates
    to find another scale. If earlier rows of a column were constant or not typical, its statistics
    are from now on those of the present rows. A column that was constant keeps a scale that is too
    wide: it may be right for later rows.

    The result is the machine, and the data with the new statistics. A ValueError is raised if the
    machine is beyond the range of its data type.
    """
    model, before = problem.model, problem.data_before
    (n_before, mean_before, variance_before), (n_rows, *moments) = before["all"], data["all"]
    (total_before, _), observed_before = before["weight_sums"], before["observed_weight"]
    is_new = np.less(n_before * (observed_before / total_before), MIN_SCALE_ROWS)
    n_present, _, variance_present = problem.statistics
    was_constant = ~is_new & (variance_before == 0) & (variance_present > 0)
    smaller, larger = np.sort([variance_before, variance_present], axis=0)
    is_first_off = ~is_new & (variance_present > 0) & (larger > MAX_VARIANCE_CHANGE * smaller)
    is_first_off &= was_constant | (n_before < MAX_ROWS_RATIO * n_present)
    present = zip(problem.statistics[1:], moments, strict=True)
    mean, variance = (np.where(is_first_off, own, merged) for own, merged in present)
    scale_before, scale = (np.where(x > 0, x, 1) for x in (variance_before, variance))
    ratio = scale / scale_before
    square = (mean - mean_before) ** 2 / scale_before
    divergence = (square + ratio - 1 - np.where(was_constant, 0, np.log(ratio))) / 2
    low, high = published.visible.column_bounds
    is_late = np.isinf(high - low)
    is_late[: len(mean)] &= (is_new | is_first_off) & (divergence > MAX_DIVERGENCE)
    is_late[: len(mean)] &= np.isfinite(variance)
    is_late[len(mean) :] = False  # columns of the label
    if not is_late.any():
        return None
    is_forgotten = is_first_off & is_late[: len(mean)]
    observed = np.where(is_forgotten, problem.observed_weight, data["observed_weight"])
    moments = [np.where(is_forgotten, x, y) for x, y in zip((mean, variance), moments, strict=True)]
    n_first, *first = data["first"]
    chosen = zip((mean, variance), first, strict=True)
    first = [np.where(is_late[: len(mean)], late, old) for late, old in chosen]
    data = data | {
        "first": (n_first, *first),
        "all": (n_rows, *moments),
        "observed_weight": observed,
    }
    layer = model.base_layer(data["first"], data["is_varying"]).astype(published.dtype)
    machine = with_new_columns(published, is_late, layer, model.moments(before["all"])[0])
    _check_range(model, machine, published.dtype)
    return machine, data


def _trained(
    machine: Machine, training: dict[str, Any], *, is_published: bool, averages: bool
) -> tuple[Machine, dict[str, Any]]:
    """Machine from which training continues, and the state of training.

    If the public arrays are averages of the parameters, training continues from the parameters
    after the last update. If `average` has since been set to False, or `learn_variance` changed, it
    continues from the public arrays. If the user has edited the public arrays, or if columns are
    new, training continues from these arrays, and the memory of the optimizer, the averages and the
    modes found by pretraining are discarded.
    """
    state = deepcopy({name: training[name] for name in STATE_FIELDS & training.keys()})
    parts, parameters = state.get("parts", {}), training.get("parameters")
    if not is_published:
        state["memory"] = {}
        parts.pop("average", None)
        parts.get("jumps", {}).pop("modes", None)
        offsets: Any = state.get("visible_offset"), state.get("hidden_offset")
        if tuple(map(np.size, offsets)) != machine.weights.shape:
            state["visible_offset"] = state["hidden_offset"] = None
    elif (
        parameters is not None
        and parameters.keys() == machine.parameters.keys()
        and (averages or "average" not in parts)
    ):
        machine = machine.astype(parameters["weights"].dtype, copy=True)
        machine.assign(parameters)
        for layer, arrays in training["fixed"].items():  # rounded in the public arrays
            for attribute, array in arrays.items():
                getattr(machine, layer).arrays[attribute][...] = array
    else:  # no parameters are stored, or `average` or `learn_variance` was changed
        parts.pop("average", None)
    return machine, state


def _metric_statistics(problem: Problem, machine: Machine, data: Data) -> Data:
    """Estimates of the kurtosis and the redundancy of each column over all rows so far.

    The kurtosis is at least ``data["least_kurtosis"]``. A statistic that the metric does not use,
    or that `_left_out` contains, is zero (or this bound) in all columns. The fourth moments of
    earlier rows are rescaled to the new variance, but not to the new mean.
    """
    (_, mean, variance), before = data["all"], problem.data_before
    left_out, least = problem.model.rbm._left_out, data.get("least_kurtosis", 0.0)
    share = problem.observed_weight / np.maximum(data["observed_weight"], np.finfo(float).tiny)
    statistics = {}
    functions = ("kurtosis", column_kurtosis, 2), ("redundancy", column_redundancy, 0)
    for name, function, power in functions:
        if machine.visible.is_signal_fixed or name in left_out:
            statistics[name] = np.zeros_like(mean)
            continue
        statistics[name] = function(problem.X, mean, variance, problem.sample_weight)
        if np.any(share < 1) and np.size(before.get(name, ())) == len(mean):
            ratio = before["all"][2] / np.where(variance > 0, variance, np.inf)
            earlier = ratio**power * before[name]
            statistics[name] = share * statistics[name] + (1 - share) * earlier
    statistics["kurtosis"] = np.maximum(statistics["kurtosis"], least)
    return statistics
