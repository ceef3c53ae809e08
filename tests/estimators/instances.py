"""The estimators under test, each in one list, and the way between them and the oracles."""

from typing import Any, NamedTuple

import joblib
import numpy as np
import oracles

from skrbm import BernoulliRBM, GaussianBernoulliRBM, SpinRBM
from skrbm.core.training.negative_phase import ALGORITHMS
from skrbm.core.training.optimizer import OPTIMIZERS, SCHEDULES
from skrbm.estimators.fitting.problem import split_rows

ESTIMATORS = (BernoulliRBM, SpinRBM, GaussianBernoulliRBM)
KINDS = oracles.ENERGIES
DISCRETE_KINDS = tuple(kind for kind in KINDS if kind not in oracles.GAUSSIAN_ENERGIES)


class Values(NamedTuple):
    """Values of a parameter: usual ones, which a search tries, extreme and invalid ones."""

    usual: tuple[Any, ...]
    extreme: tuple[Any, ...]
    invalid: tuple[Any, ...]


PARAMETERS = {
    "n_components": Values((2, 5), (1, 20), (0, 2.5)),
    "hidden_units": Values(("binary", "relu"), ("gaussian", "drelu"), ("softplus", None)),
    "learning_rate": Values((0.001, 0.01), (0.4, 0, 10.0, 1e10, 1e300), (-1.0, "fast", np.nan)),
    "batch_size": Values(("auto", 7), (1, 3, 1000), (0, 2.5)),
    "n_iter": Values((1, 2), (5, 0), (-1, None)),
    "algorithm": Values(tuple(ALGORITHMS), (), ("ml", None)),
    "n_gibbs_steps": Values((1, 3), (), (0,)),
    "n_particles": Values((None, 13), (1, 7), (0, "all")),
    "n_temperatures": Values((2, 5), (), (1,)),
    "centering": Values((False, True), (), ("yes",)),
    "optimizer": Values(tuple(OPTIMIZERS), (), ("lbfgs",)),
    "momentum": Values((0.0, 0.9), (0.999999,), (1.0, -0.1)),
    "learning_rate_schedule": Values(tuple(SCHEDULES), (), ("cosine",)),
    "average": Values((False, True), (), (None,)),
    "max_gradient_norm": Values((None, 0.1), (1e-300, 1e300), (0.0,)),
    "shuffle": Values((False, True), (), (None,)),
    "l1": Values((0.0, 0.01), (1.0, 1e300), (-1.0,)),
    "l1_squared": Values((0.0, 0.1), (1.0, 1e300), (-1.0,)),
    "l2": Values((0.0, 0.01), (1e3, 1e300), (np.inf,)),
    "max_norm": Values((None, 0.5), (1e-3, 1e300), (0.0,)),
    "early_stopping": Values((False, True), (), ("soon",)),
    "validation_fraction": Values((0.1, 0.5), (0.9,), (1.0,)),
    "n_iter_no_change": Values((1, 10), (), (0,)),
    "tol": Values((0.0, 1.0), (1e300,), (-1.0,)),
    "warm_start": Values((False, True), (), (1.5,)),
    "check_input": Values(("warn", "ignore"), ("raise",), ("never",)),
    "random_state": Values((0, None), (2**32 - 1,), ("seed", -1)),
}


def without(estimator, *parts):
    """Estimator whose training leaves some parts out."""
    return type(estimator.__name__, (estimator,), {"_left_out": frozenset(parts)})


def new(kind, n_components=3, **params):
    """Unfitted estimator of one of the oracles' kinds."""
    if kind in oracles.GAUSSIAN_ENERGIES:
        return GaussianBernoulliRBM(n_components, parameterization=kind, **params)
    return {"bernoulli": BernoulliRBM, "spin": SpinRBM}[kind](n_components, **params)


def kind_of(rbm):
    """The oracles' name of an estimator's energy."""
    discrete = {BernoulliRBM: "bernoulli", SpinRBM: "spin"}
    return discrete.get(type(rbm)) or rbm.parameterization


def assigned(p, **params):
    """Unfitted estimator whose arrays are assigned from plain oracle parameters."""
    rbm = new(p.kind, p.weights.shape[1], **params)
    rbm.components_ = p.weights.T.copy()
    rbm.intercept_visible_ = p.visible_bias.copy()
    rbm.intercept_hidden_ = p.hidden_bias.copy()
    if p.is_gaussian:
        rbm.noise_variance_ = np.exp(p.log_variance)
    return rbm


def parameters(rbm):
    """Oracle parameters that are an estimator's arrays."""
    kind, (n_hidden, n_visible) = kind_of(rbm), rbm.components_.shape
    return oracles.Parameters(
        kind,
        np.transpose(rbm.components_),
        rbm.intercept_visible_,
        rbm.intercept_hidden_,
        np.zeros(n_visible),
        np.zeros(n_hidden),
        np.log(rbm.noise_variance_) if kind in oracles.GAUSSIAN_ENERGIES else None,
    )


def ascent(p, gradient, *of_data):
    """Direction of an estimator's step: a spin's is in units in which weights follow the gradient."""
    unit = 16 if p.kind == "spin" else 1
    direction = oracles.ascent(p, gradient, *of_data)
    return {name: unit * array for name, array in direction.items()}


def random_machine(kind, n_visible=4, n_hidden=3, seed=0, **options):
    """Plain oracle parameters, and exact samples v, h of them: 50 rows."""
    rng = np.random.default_rng(seed)
    p = oracles.random_parameters(kind, n_visible, n_hidden, rng, offsets=False, **options)
    return p, *oracles.sample_exact(p, 50, rng)


def draw(kind, n_samples=47, n_visible=4, seed=0):
    """Correlated data in the units' domain."""
    p, _, _ = random_machine(kind, n_visible, seed=seed)
    return oracles.sample_exact(p, n_samples, np.random.default_rng(seed))[0]


def topics(rng, n_rows=2000):
    """Words of documents with one of five topics, each of which has a hundred words of its own."""
    topic = rng.integers(5, size=n_rows)
    share = np.where(np.arange(500) // 100 == topic[:, np.newaxis], 0.05, 0.002)
    return (rng.random((n_rows, 500)) < share) + 0.0, topic


def arrays(rbm):
    """Copies of the public arrays."""
    return {
        name: np.array(value)
        for name, value in vars(rbm).items()
        if name.endswith("_") and isinstance(value, np.ndarray)
    }


def bits(rbm, *, without=()):
    """Bytes of every attribute, for comparisons that forgive nothing.

    Entries of private dictionaries have names of their own, such as "_streams.inference".
    """
    entries = {}
    for name, value in vars(rbm).items():
        if name.startswith("_") and isinstance(value, dict) and name not in without:
            entries |= {f"{name}.{key}": entry for key, entry in value.items()}
        else:
            entries[name] = value
    return {
        name: (v.dtype.str, v.shape, v.tobytes()) if isinstance(v, np.ndarray) else joblib.hash(v)
        for name, v in entries.items()
        if name not in without
    }


def held_out_split(rbm, n_rows):
    """Numbers of the rows that an estimator has learned from, and of those that it held out."""
    return split_rows(n_rows, rbm.validation_fraction, rbm._streams["validation_seed"])


def learned_bits(rbm):
    """Bytes of what training carries on: arrays, chains, offsets, streams; not times or settings."""
    settings = {*rbm.get_params(), "history_"}
    return bits(rbm, without=settings)


def assert_same_arrays(rbm, other, **tolerance):
    """Compare public arrays, exactly unless a tolerance is given."""
    left, right = arrays(rbm), arrays(other)
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_allclose(
            left[name], right[name], err_msg=name, **({"rtol": 0, "atol": 0} | tolerance)
        )
