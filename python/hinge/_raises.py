"""What all predictions raise, written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_RAISES = """

Raises
------
ValueError
    Another number of features, or other names, than in the fit; values that are not finite.
sklearn.exceptions.NotFittedError
    The model is not fitted.
BlockFileError
    A damaged store.
"""


def raises_as_predictions(method: F) -> F:
    """Add the errors of predictions to the docstring of a method."""
    if method.__doc__ is not None:  # under python -OO
        method.__doc__ = inspect.cleandoc(method.__doc__) + _RAISES
    return method
