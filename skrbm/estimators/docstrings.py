"""Docstrings of public classes, completed by the entries that they share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
Entries = dict[str, str]
SECTIONS = ("", "Parameters", "Attributes", "See Also", "Notes", "References", "Examples")


def inherit_docstring(base: type) -> Callable[[type[T]], type[T]]:
    """Complete the docstring of a class by the parameters, attributes and references of its base.

    Each parameter of the signature gets one entry, in the signature's order and with its default.
    An entry of the class replaces the base's entry of the same name.

    Parameters
    ----------
    base : type
        Class with the shared entries in its docstring, without defaults.

    Returns
    -------
    decorator : callable
        From a class to the same class with the complete docstring.

    Raises
    ------
    TypeError
        By the decorator, if a parameter has no entry, or an entry of the class no parameter.
    """

    def complete(cls: type[T]) -> type[T]:
        if cls.__doc__ is None or base.__doc__ is None:  # python -OO
            return cls
        inherited, sections = _sections(base.__doc__), _sections(cls.__doc__)
        for name in ("Parameters", "Attributes", "References"):
            shared, own = _entries(inherited, name), _entries(sections, name)
            merged = _parameters(cls, shared, own) if name == "Parameters" else shared | own
            sections[name] = "\n".join(merged.values())
        cls.__doc__ = "\n\n".join(
            f"{name}\n{'-' * len(name)}\n{text}" if name else text
            for name in sorted(sections, key=SECTIONS.index)
            if (text := sections[name])
        )
        cls.__doc__ += "\n"
        return cls

    return complete


def _sections(docstring: str) -> dict[str, str]:
    """Text of each section of a docstring by its heading; the summary has the heading ""."""
    heading = re.compile(r"^(\w[\w ]+)\n---+\n", flags=re.MULTILINE)
    summary, *rest = (text.strip() for text in heading.split(inspect.cleandoc(docstring)))
    return {"": summary} | dict(zip(rest[::2], rest[1::2], strict=True))


def _entries(sections: dict[str, str], name: str) -> Entries:
    """Entries of a section by their names; an entry begins at a line that is not indented."""
    entries = re.split(r"\n(?=\S)", sections[name]) if name in sections else []
    return {entry.partition(" : ")[0]: entry for entry in entries}


def _parameters(cls: type, shared: Entries, own: Entries) -> Entries:
    """Entries of the parameters of a class, in the order of its signature."""
    signature, entries = inspect.signature(cls).parameters, shared | own
    if wrong := (signature.keys() - entries.keys()) | (own.keys() - signature.keys()):
        raise TypeError(
            f"The docstring of {cls.__name__} expected one entry for each parameter and no other, "
            f"got {sorted(wrong)} in the signature or in the docstring alone."
        )
    return {name: _with_default(entries[name], parameter) for name, parameter in signature.items()}


def _with_default(entry: str, parameter: inspect.Parameter) -> str:
    """Entry of a parameter with the default after its type."""
    default = parameter.default
    if default is parameter.empty:
        return entry
    text = f'"{default}"' if isinstance(default, str) else repr(default)
    return entry.replace("\n", f", default={text}\n", 1)
