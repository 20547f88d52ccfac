"""Pickles that know the version they were written by."""

from __future__ import annotations

from typing import Any

from hinge._native import __version__
from hinge._warn import warn

_KEY = "_hinge_version"


class InconsistentVersionWarning(UserWarning):
    """A pickle was written by another version, whose attributes or results may differ."""


class Versioned:
    """Writes its version into pickles, and warns where another version reads them. Pickles without one are old."""

    def __getstate__(self) -> dict[str, Any]:
        """The attributes, and the version."""
        state: Any = super().__getstate__()  # scikit-learn's: a dict
        return {**state, _KEY: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes; warn of another version."""
        state = dict(state)
        written_by = state.pop(_KEY, __version__)
        if written_by != __version__:
            warn(
                f"this {type(self).__name__} was pickled by hinge {written_by} and is read by hinge {__version__}: "
                "fit it again, or read it with the version that wrote it",
                InconsistentVersionWarning,
            )
        super().__setstate__(state)  # type: ignore[misc]
