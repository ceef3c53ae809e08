"""Docstrings of public classes, completed with entries of a base class."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
Entries = dict[str, str]
SECTIONS = ("", "Parameters", "Attributes", "See Also", "Notes", "References", "Examples")


def inherit_docstring(base: type) -> Callable[[type[T]], type[T]]:
    """Complete the docstring of a class with entries of the docstring of a base class.

    Parameters, attributes and references are inherited. An entry of the class replaces the entry of
    the same name in the base class. The entries of the parameters are sorted in the order of the
    signature, and their defaults are added. A list of the parameters by subject, from the attribute
    `_parameter_groups` of the class, is appended to the notes.

    Parameters
    ----------
    base : type
        Class whose docstring has the common entries, without defaults.

    Returns
    -------
    decorator : callable
        Class decorator that replaces the docstring and returns the class. It raises a TypeError if
        a parameter of the signature has no entry, or if a parameter entry of the class is not in
        the signature.
    """

    def complete(cls: type[T]) -> type[T]:
        if cls.__doc__ is None or base.__doc__ is None:  # python -OO
            return cls
        inherited, sections = _sections(base.__doc__), _sections(cls.__doc__)
        for name in ("Parameters", "Attributes", "References"):
            common, added = _entries(inherited, name), _entries(sections, name)
            merged = _parameters(cls, common, added) if name == "Parameters" else common | added
            sections[name] = "\n".join(merged.values())
        sections["Notes"] = "\n\n".join(filter(None, [sections.get("Notes"), _groups(cls)]))
        cls.__doc__ = "\n\n".join(
            f"{name}\n{'-' * len(name)}\n{text}" if name else text
            for name in sorted(sections, key=SECTIONS.index)
            if (text := sections[name])
        )
        cls.__doc__ += "\n"
        return cls

    return complete


def _sections(docstring: str) -> dict[str, str]:
    """Text of each section of a docstring, by heading.

    The key of the text before the first heading is "".
    """
    heading = re.compile(r"^(\w[\w ]+)\n---+\n", flags=re.MULTILINE)
    summary, *rest = (text.strip() for text in heading.split(inspect.cleandoc(docstring)))
    return {"": summary} | dict(zip(rest[::2], rest[1::2], strict=True))


def _entries(sections: dict[str, str], name: str) -> Entries:
    """Entries of a section, by name. The first line of each entry is not indented."""
    entries = re.split(r"\n(?=\S)", sections[name]) if name in sections else []
    return {entry.partition(" : ")[0]: entry for entry in entries}


def _parameters(cls: type, common: Entries, added: Entries) -> Entries:
    """Entries of the parameters of a class in the order of its signature, with their defaults."""
    signature, entries = inspect.signature(cls).parameters, common | added
    if wrong := (signature.keys() - entries.keys()) | (added.keys() - signature.keys()):
        raise TypeError(
            f"The docstring of {cls.__name__} expected one entry for each parameter and no other, "
            f"got {sorted(wrong)} in the signature or in the docstring alone."
        )
    return {name: _with_default(entries[name], parameter) for name, parameter in signature.items()}


def _groups(cls: type) -> str:
    """Text that lists the parameters of a class by subject; empty if no group has any of them."""
    signature, lines = inspect.signature(cls).parameters, []
    for group, names in getattr(cls, "_parameter_groups", {}).items():
        if members := [f"`{name}`" for name in names.split() if name in signature]:
            lines += textwrap.wrap(f"- {group}: {', '.join(members)}.", 98, subsequent_indent="  ")
    return "\n".join(["Parameters by group:", "", *lines]) if lines else ""


def _with_default(entry: str, parameter: inspect.Parameter) -> str:
    """Entry of a parameter with the default appended to its type."""
    default = parameter.default
    if default is parameter.empty:
        return entry
    text = f'"{default}"' if isinstance(default, str) else repr(default)
    return entry.replace("\n", f", default={text}\n", 1)
