"""Checks of single values: each refuses what is unusable, and returns the value as the native module takes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

Check = Callable[[str, Any], Any]
"""Takes the name and the value of a parameter."""


def choice(name: str, value: Any, allowed: Collection[str]) -> Any:
    """Refuse a value outside the allowed strings."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {sorted(allowed)}, got {value!r}")
    return value


def is_number(value: object) -> bool:
    """Whether a value is an integer, which a truth value is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: object) -> bool:
    """Whether a value is a real number, which a truth value is not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def positive(name: str, value: Any) -> float:
    """Refuse everything but a finite real number above 0."""
    if not is_real(value) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """Refuse everything but a finite real number of at least 0."""
    if not is_real(value) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def whole(name: str, value: Any, least: int) -> int:
    """Refuse everything but an integer of at least ``least`` that fits in 8 bytes."""
    if not is_number(value) or not least <= int(value) < 2**63:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def truth(name: str, value: Any) -> bool:
    """Refuse everything but a truth value."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def verbosity(name: str, value: Any) -> int:
    """Refuse everything but a truth value and an integer of at least 0."""
    return int(value) if isinstance(value, bool) else whole(name, value, 0)


def presolve(name: str, value: Any) -> str:
    """The native spelling of "auto", True or False."""
    if isinstance(value, (bool, np.bool_)):
        return "on" if value else "off"
    if isinstance(value, str) and value == "auto":
        return "auto"
    raise ValueError(f"{name} must be 'auto', True or False, got {value!r}")


def path(name: str, value: Any) -> str:
    """Refuse everything but the path of a file."""
    if not isinstance(value, (str, os.PathLike)) or not (found := os.fspath(value)) or isinstance(found, bytes):
        raise ValueError(f"{name} must be None or the path of a file, got {value!r}")
    return found


def unchecked(name: str, value: Any) -> Any:
    """Leave the check to where the value meets the data."""
    return value


def at_least(least: int) -> Check:
    """The check of an integer."""
    return lambda name, value: whole(name, value, least)


def optional(check: Check) -> Check:
    """The check of a value that may be None."""
    return lambda name, value: None if value is None else check(name, value)
