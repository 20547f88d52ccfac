"""Warnings that point to the caller's line."""

from __future__ import annotations

import sys
import warnings

_INNER = ("hinge", "sklearn")
"""Packages whose frames stand between the caller and the warning."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside this package and scikit-learn."""
    frame, level = sys._getframe(1), 3
    while frame.f_back is not None and frame.f_back.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
