"""scikit-learn's callbacks (``set_callbacks``, from scikit-learn 1.9 on), and nothing where it has none.

A fit is the root task. The search of a CV estimator adds a task per value of C, begun and ended when that value is
finished, and the final fit is a task named "refit". A callback whose ``on_fit_task_end`` returns True at a value of C
ends the search there; the estimator is refitted at the best C so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:

    class CallbackSupport:
        """Adds ``set_callbacks`` to an estimator."""

    def with_callbacks(method: F) -> F:
        """Let the callbacks clean up after ``method``."""
        return method

else:
    try:
        from sklearn.callback import CallbackSupportMixin as CallbackSupport
        from sklearn.callback import with_callbacks
    except ImportError:

        class CallbackSupport:
            """Stands in where scikit-learn has no callbacks."""

        def with_callbacks(method: F) -> F:
            """Stands in where scikit-learn has no callbacks."""
            return method


class FitTask:
    """The root task of a fit, told to the callbacks of the estimator if it has any."""

    def __init__(self, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, has_parts: bool = False):
        self._estimator = estimator
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"X": X, "y": y, "metadata": metadata}
        self._context = None
        if getattr(estimator, "_skl_callbacks", None):
            self._context = estimator._init_callback_context(max_subtasks=None if has_parts else 0)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def part(self, name: str) -> bool:
        """A part is finished; returns whether a callback asks to stop."""
        if self._context is None:
            return False
        part = self._context.subcontext(task_name=name)
        part.call_on_fit_task_begin(estimator=self._estimator)
        return bool(part.call_on_fit_task_end(estimator=self._estimator))

    def end(self) -> None:
        """The estimator is fitted."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes={}, **self._data)
