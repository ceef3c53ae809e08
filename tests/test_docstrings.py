"""Every public object is documented in numpydoc's manner."""

import inspect
import re

import pytest

import skrbm

validate = pytest.importorskip("numpydoc.validate").validate
FREE = {
    "EX01",  # an example where it teaches something
    "SA01",  # likewise See Also
    "ES01",  # a summary may be enough
    "RT02",  # results have names
}


def public_objects():
    """Dotted names of what users reach, with the objects."""
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
