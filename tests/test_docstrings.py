"""Every public object is documented in numpydoc's manner."""

import inspect
import re

import numpy as np
import pytest

import skrbm
from skrbm import sequences

validate = pytest.importorskip("numpydoc.validate").validate
NumpyDocString = pytest.importorskip("numpydoc.docscrape").NumpyDocString
FREE = {
    "EX01",  # an example where it teaches something
    "SA01",  # likewise See Also
    "ES01",  # a summary may be enough
    "RT02",  # results have names
}


def public_objects():
    """Dotted names of what users reach, with the objects."""
    for name in sequences.__all__:
        yield f"skrbm.sequences.{name}", getattr(sequences, name)
    for name in set(skrbm.__all__) - {"__version__"}:
        value = getattr(skrbm, name)
        yield f"skrbm.{name}", value
        if inspect.isclass(value):
            for member, kind, owner, _ in inspect.classify_class_attrs(value):
                is_ours = owner.__module__.startswith("skrbm.")
                if is_ours and not member.startswith("_") and kind != "data":
                    yield f"skrbm.{name}.{member}", getattr(value, member)


@pytest.mark.parametrize(("name", "value"), sorted(public_objects()))
def test_numpydoc_finds_nothing_to_complain_of(name, value):
    """Catches parameters without a word, in another order or of other names than in the code."""
    errors = dict(validate(name)["errors"])
    if inspect.getdoc(value):  # inherited from the abstract method
        errors.pop("GL08", None)
    assert not errors.keys() - FREE, errors


@pytest.mark.parametrize(("name", "value"), sorted(public_objects()))
def test_names_that_end_in_an_underscore_are_marked_as_code(name, value):
    """Seen to fail with ``n_features_in_`` in a shape, which Sphinx takes for a link."""
    lines = [line for line in (inspect.getdoc(value) or "").splitlines() if ">>>" not in line]
    text = re.sub(r"`[^`]*`", "", "\n".join(lines))
    text = re.sub(r"^(\w+_, )*\w+_ :", "", text, flags=re.MULTILINE)  # an attribute's own line
    assert not re.findall(r"\b[A-Za-z]\w*_(?![\w\\{])", text)


ESTIMATORS = sorted(
    (value for _, value in public_objects() if inspect.isclass(value) and hasattr(value, "fit")),
    key=lambda cls: cls.__name__,
)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_documented_defaults_are_those_of_the_signature(cls):
    """Slips: a default changed in one place alone; an entry that comes twice."""
    documented = [
        (entry.name, entry.type.partition("default=")[2])
        for entry in NumpyDocString(inspect.getdoc(cls))["Parameters"]
    ]
    parameters = inspect.signature(cls).parameters.values()
    assert [name for name, _ in documented] == [parameter.name for parameter in parameters]
    for (name, text), parameter in zip(documented, parameters, strict=True):
        if parameter.default is parameter.empty:
            assert text == "", name
        else:
            assert repr(eval(text, {"np": np})) == repr(parameter.default), name


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_entries_open_with_a_noun_or_a_verb(cls):
    docstring = NumpyDocString(inspect.getdoc(cls))
    for entry in docstring["Parameters"] + docstring["Attributes"]:
        assert not re.match(r"(What|Where|How|Which|Whether|Of|Those)\b", entry.desc[0]), entry.name


@pytest.mark.parametrize(("name", "value"), sorted(public_objects()))
def test_citations_have_one_reference_each(name, value):
    """Slip: a class that numbers its references as the base does."""
    docstring = inspect.getdoc(value) or ""
    numbers = re.findall(r"^\.\. \[(\d+)\]", docstring, flags=re.MULTILINE)
    assert numbers == [str(number + 1) for number in range(len(numbers))]
    assert set(re.findall(r"\[(\d+)\]_", docstring)) <= set(numbers)
