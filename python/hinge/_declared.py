"""Parameters that are declared once: what a declaration is, and how signatures, help and checks come to agree with it.

The declarations are in ``_parameters.py``. An estimator writes its constructor out, so that editors and type checkers
see it; a test compares its defaults with those of the declarations.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, TypeVar

from hinge import _checks

T = TypeVar("T", bound=Callable[..., Any])


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes
    ----------
    name : str
    kind : str
        What may be given, as its entry in a docstring says it.
    default : object
    check : callable
        Takes name and value, refuses what is unusable, returns the value as the native module takes it.
    text : str
        What the parameter means.
    """

    name: str
    kind: str
    default: Any
    check: _checks.Check
    text: str = ""

    def means(self, text: str) -> Parameter:
        """The same parameter with this meaning."""
        return replace(self, text=inspect.cleandoc(text))

    def or_none(self) -> Parameter:
        """The same parameter where None is allowed and the default."""
        return replace(self, default=None, check=_checks.optional(self.check))

    def entry(self) -> str:
        """The entry in a docstring."""
        default = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        text = textwrap.indent(self.text, "    ")
        return f"{self.name} : {self.kind}, default={default}\n{text}"


def one_of(name: str, allowed: tuple[str, ...]) -> Parameter:
    """A parameter that is one of a few strings, by default the first."""
    kind = "{" + ", ".join(f'"{value}"' for value in allowed) + "}"
    return Parameter(name, kind, allowed[0], lambda name, value: _checks.choice(name, value, allowed))


Table = Mapping[str, Parameter]
"""Parameters by name."""


def table(*parts: Parameter | Table) -> Table:
    """A table of parameters and of other tables; of two with one name, the later counts."""
    found: dict[str, Parameter] = {}
    for part in parts:
        found |= {part.name: part} if isinstance(part, Parameter) else part
    return found


def declared(parameters: Table) -> Callable[[T], T]:
    """Write the entries of a signature's parameters where the docstring says ``{parameters}``."""

    def decorate(thing: Any) -> Any:
        thing._parameters = parameters
        if thing.__doc__ is not None:  # under python -OO
            names = [name for name in inspect.signature(thing).parameters if name in parameters]
            entries = "\n".join(parameters[name].entry() for name in names)
            thing.__doc__ = inspect.cleandoc(thing.__doc__).replace("{parameters}", entries)
        return thing

    return decorate


def keep(arguments: dict[str, Any]) -> None:
    """Store the arguments of a constructor, its ``locals()``, in attributes of their names."""
    vars(arguments.pop("self")).update(arguments)


def checked(owner: Any, given: Mapping[str, Any]) -> SimpleNamespace:
    """The parameters that a class or function has declared, each checked, as the native module takes them.

    One that is not given has its default: the pickle of an estimator may be older than the parameter.
    """
    values = ((p, given.get(name, p.default)) for name, p in owner._parameters.items())
    return SimpleNamespace(**{p.name: p.check(p.name, value) for p, value in values})
