"""Methods that an estimator has only with some of its parameters."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any


class _Conditional:
    """A method that raises AttributeError, and says why, where there is an obstacle."""

    def __init__(self, method: Callable[..., Any], obstacle: Callable[[Any], str | None]):
        self._method, self._obstacle = method, obstacle
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self._method
        obstacle = self._obstacle(estimator)
        if obstacle is not None:
            raise AttributeError(f"{type(estimator).__name__} has no attribute {self._method.__name__!r}: {obstacle}")
        return MethodType(self._method, estimator)


def available_unless(obstacle: Callable[[Any], str | None]) -> Callable[[Callable[..., Any]], Any]:
    """Make a method available where ``obstacle(estimator)`` is None; else it is the end of the error's sentence.

    As :func:`sklearn.utils.metaestimators.available_if`, whose error does not say what is missing.
    """
    return lambda method: _Conditional(method, obstacle)
