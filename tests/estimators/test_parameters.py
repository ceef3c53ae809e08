"""Constructors that store their arguments, and docstrings that classes share with their base."""

import dataclasses
import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

from skrbm import (
    BernoulliRBM,
    GaussianBernoulliRBM,
    RBMClassifier,
    RBMImputer,
    SpinRBM,
    TabularRBM,
)
from skrbm.core.units import Bernoulli
from skrbm.estimators.base_rbm import BaseRBM
from skrbm.estimators.docstrings import inherit_docstring

NumpyDocString = pytest.importorskip("numpydoc.docscrape").NumpyDocString


class Base:
    """Documents what its subclasses have in common.

    Parameters
    ----------
    size : int
        Number of parts.
    colour : str or None
        One line,

        and a second paragraph.
    weight : float
        In grams.

    Attributes
    ----------
    parts_ : list
        The parts.
    n_parts_ : int
        Their number.

    References
    ----------
    .. [1] Someone (2000), "A title",
       a journal.
    """


class Chair(Base):
    """Chair.

    With a longer description.

    Parameters
    ----------
    weight : float
        In kilograms.
    legs : int
        Number of legs.

    Attributes
    ----------
    n_parts_ : int
        Number of legs and one.
    seat_ : object
        To sit on.

    See Also
    --------
    Base : Everything else.

    References
    ----------
    .. [2] Another (2001), "Chairs".

    Examples
    --------
    >>> 1 + 1
    2
    >>> 1 + 1
    2
    """

    def __init__(self, size, *, legs=4, weight=5e-4, colour="red"):
        pass


EXPECTED = """Chair.

With a longer description.

Parameters
----------
size : int
    Number of parts.
legs : int, default=4
    Number of legs.
weight : float, default=0.0005
    In kilograms.
colour : str or None, default="red"
    One line,

    and a second paragraph.

Attributes
----------
parts_ : list
    The parts.
n_parts_ : int
    Number of legs and one.
seat_ : object
    To sit on.

See Also
--------
Base : Everything else.

References
----------
.. [1] Someone (2000), "A title",
   a journal.
.. [2] Another (2001), "Chairs".

Examples
--------
>>> 1 + 1
2
>>> 1 + 1
2
"""


def fresh(docstring=Chair.__doc__, **attributes):
    """Class like a chair, with the docstring that its author wrote."""
    return type("Chair", (Chair,), {"__doc__": docstring, **attributes})


def test_inherited_docstring_has_the_sections_of_both():
    # Slips: order of the docstring, not of the signature; the base's entry wins; equal lines merge.
    assert inherit_docstring(Base)(fresh()).__doc__ == EXPECTED


def test_every_entry_has_a_parameter():
    # Slip: an entry of another name, in place of which the base's is taken.
    docstring = Chair.__doc__.replace("weight : float", "heft : float")
    with pytest.raises(TypeError, match=r"Chair expected one entry .*'heft'"):
        inherit_docstring(Base)(fresh(docstring))


def test_every_parameter_has_an_entry():
    # Slip: a parameter that neither class documents.
    class Armchair(Chair):
        """Armchair."""

    with pytest.raises(TypeError, match=r"Armchair expected one entry .*'legs'"):
        inherit_docstring(Base)(Armchair)


def test_no_section_is_lost():
    # Slip: sections of other names are left out.
    docstring = Chair.__doc__.replace("See Also\n    --------", "Warnings\n    --------")
    with pytest.raises(ValueError, match="not in tuple"):
        inherit_docstring(Base)(fresh(docstring))


def test_classes_without_docstrings_stay_so():
    # Slip: `python -OO`, which removes them, cannot import the package.
    assert inherit_docstring(Base)(fresh(None)).__doc__ is None


@pytest.mark.slow
def test_the_package_does_without_docstrings():
    # Slip: a constructor whose signature becomes the docstring of a class that has none.
    code = "from skrbm import BernoulliRBM; print(BernoulliRBM(3).n_iter, BernoulliRBM.__doc__)"
    call = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, check=True)
    assert call.stdout.decode().split() == ["10", "None"]


@pytest.mark.parametrize("cls", [BernoulliRBM, TabularRBM, RBMClassifier, RBMImputer])
def test_estimators_are_no_dataclasses(cls):
    # Slip: two fits of equal parameters are one to tools that look at the fields of dataclasses.
    assert not dataclasses.is_dataclass(cls)


def test_shared_parameters_have_an_entry():
    # Slip: one that is added to the fields alone.
    entries = {entry.name for entry in NumpyDocString(inspect.getdoc(BaseRBM))["Parameters"]}
    assert entries == {*inspect.signature(BaseRBM).parameters, "draw_states"}


@pytest.mark.parametrize("cls", [BaseRBM, BernoulliRBM, SpinRBM, GaussianBernoulliRBM, TabularRBM])
def test_every_parameter_has_a_constraint_and_a_keyword(cls):
    # Slips: a constraint alone; a subclass whose own parameters come before those of the base.
    first, *others = inspect.signature(cls).parameters.values()
    assert {first.name, *(p.name for p in others)} == cls._parameter_constraints.keys()
    assert first.name == "n_components"
    assert {p.kind for p in others} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("cls", [BernoulliRBM, SpinRBM, GaussianBernoulliRBM, TabularRBM])
def test_notes_list_every_parameter_in_one_group(cls):
    # Slip: a new parameter in no group, or in two.
    notes = "\n".join(NumpyDocString(inspect.getdoc(cls))["Notes"])
    listed = re.findall(r"`(\w+)`", notes.partition("Parameters by group")[2])
    assert sorted(listed) == sorted(inspect.signature(cls).parameters)


def test_a_subclass_has_the_defaults_of_parameters_that_it_does_not_take():
    class ShortRBM(BaseRBM):
        _visible_type = _hidden_type = Bernoulli

        def __init__(self, n_components=4, *, n_iter=2, random_state=0):
            super().__init__(n_components, n_iter=n_iter, random_state=random_state)

    # States are drawn by `BernoulliRBM` alone, of values that are not 0 or 1.
    X = (np.random.default_rng(0).random((40, 5)) < 0.4).astype(float)
    whole = BernoulliRBM(4, n_iter=2, random_state=0).fit(X)
    short = ShortRBM().fit(X)
    assert set(short.get_params()) == {"n_components", "n_iter", "random_state"}
    np.testing.assert_array_equal(short.components_, whole.components_)

    class ShortestRBM(ShortRBM):
        def __init__(self, n_components=4, *, n_iter=2, random_state=0):
            self.n_components, self.n_iter, self.random_state = n_components, n_iter, random_state

    np.testing.assert_array_equal(ShortestRBM().fit(X).components_, whole.components_)
    # Slip: states that are drawn by a machine without the parameter.
    gray = BernoulliRBM(4, n_iter=2, random_state=0, draw_states=False).fit(X / 2)
    np.testing.assert_array_equal(ShortRBM().fit(X / 2).components_, gray.components_)
