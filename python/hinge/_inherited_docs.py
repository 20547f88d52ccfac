"""Descriptions of parameters and attributes that several estimators share, written once.

In a docstring, the entry ``a, b`` with the text "As in :class:`Other`." stands for the entries ``a`` and ``b`` of
``Other``. Here they are filled in, so that the help of every estimator explains every parameter itself.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=type)

_REFERENCE = re.compile(r"^(?P<names>\w+(?:, \w+)*)\n    As in :class:`(?:hinge\.)?(?P<place>\w+)`\.$", re.MULTILINE)

_ENTRY = re.compile(r"^(\w+)(?: : .*)?$((?:\n(?:    .*|(?=\n    )))*)", re.MULTILINE)
"""A name, perhaps a type, and the lines that are indented below."""


def with_docs_of(*places: type) -> Callable[[C], C]:
    """Fill in the entries that the docstring of a class refers to, from the docstrings of the given classes."""

    def decorate(cls: C) -> C:
        if cls.__doc__ is not None:  # under python -OO
            known = {place.__name__: _entries(place) for place in places}

            def entries(reference: re.Match[str]) -> str:
                found = known[reference["place"]]
                return "\n".join(found[name] for name in reference["names"].split(", "))

            cls.__doc__ = _REFERENCE.sub(entries, inspect.cleandoc(cls.__doc__))
        return cls

    return decorate


def _entries(place: type) -> dict[str, str]:
    """The entries of a docstring by name."""
    return {match[1]: match[0] for match in _ENTRY.finditer(inspect.cleandoc(place.__doc__ or ""))}
