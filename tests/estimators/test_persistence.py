"""What is written and read again: whole estimators, and the public arrays alone."""

import copy
import io
import pickle
import warnings

import joblib
import numpy as np
import pytest
from estimators.instances import (
    KINDS,
    arrays,
    assert_same_arrays,
    bits,
    draw,
    learned_bits,
    new,
)

from skrbm import VersionWarning


def memory_mapped(rbm, path):
    joblib.dump(rbm, path)
    return joblib.load(path, mmap_mode="r")


def through_skops(rbm, path):
    sio = pytest.importorskip("skops.io")
    data = sio.dumps(rbm)
    untrusted = sio.get_untrusted_types(data=data)
    assert untrusted == [f"{type(rbm).__module__}.{type(rbm).__name__}"]
    return sio.loads(data, trusted=untrusted)


COPIERS = {
    "deepcopy": lambda rbm, path: copy.deepcopy(rbm),
    "pickle": lambda rbm, path: pickle.loads(pickle.dumps(rbm)),
    "memory map": memory_mapped,
    "skops": through_skops,
}
TRAINING = {
    "defaults": {},
    "all that is carried on": {"algorithm": "pt", "optimizer": "adam", "learning_rate": 0.01},
    "plain": {"average": False, "centering": False, "momentum": 0.5, "learning_rate": 0.01},
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.mark.every_kind
@pytest.mark.parametrize("training", TRAINING)
@pytest.mark.parametrize("copier", COPIERS)
def test_copies_resume_training_bitwise(kind, training, copier, tmp_path):
    """Catches chains, offsets or streams that are left behind, or shared with the original."""
    X = draw(kind)
    rbm = new(kind, random_state=0, n_iter=2, **TRAINING[training]).fit(X).partial_fit(X)
    twin = COPIERS[copier](rbm, tmp_path / "rbm")
    for _ in range(2):
        rbm.partial_fit(X)
        after = learned_bits(rbm)
        assert_same_arrays(twin.partial_fit(X), rbm)
        assert learned_bits(rbm) == after
    np.testing.assert_array_equal(twin.sample(3, 2), rbm.sample(3, 2))


def test_pickles_of_another_version_warn(kind):
    rbm = new(kind, n_iter=1).fit(draw(kind))
    written = pickle.dumps(rbm)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "_skrbm_version" not in vars(pickle.loads(written))
    read = type(rbm)()
    with pytest.warns(VersionWarning, match=r"pickled by skrbm 9\.9, and this is 0"):
        read.__setstate__(rbm.__getstate__() | {"_skrbm_version": "9.9"})
    assert bits(read) == bits(rbm)


def test_public_arrays_are_a_format_of_their_own(kind):
    """The arrays alone, as npz, are the model: README says how."""
    X = draw(kind)
    rbm = new(kind, n_iter=2, random_state=0).fit(X)
    file = io.BytesIO()
    np.savez(file, **arrays(rbm))
    file.seek(0)
    read = new(kind, random_state=0)
    for name, array in np.load(file).items():
        setattr(read, name, array)
    for method in ("transform", "score_samples", "free_energy", "log_likelihood"):
        np.testing.assert_array_equal(getattr(read, method)(X), getattr(rbm, method)(X))
    read.partial_fit(X)
