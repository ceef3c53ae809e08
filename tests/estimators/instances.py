"""The estimators under test, each in one list, and the way between them and the oracles."""

import joblib
import numpy as np
import oracles

from skrbm import BernoulliRBM, GaussianBernoulliRBM, SpinRBM
from skrbm.estimators.fitting.problem import split_rows

ESTIMATORS = (BernoulliRBM, SpinRBM, GaussianBernoulliRBM)
KINDS = oracles.ENERGIES
DISCRETE_KINDS = tuple(kind for kind in KINDS if kind not in oracles.GAUSSIAN_ENERGIES)


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
