"""Which values of ``C`` a search visits, and when it ends."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, log
from numbers import Integral
from typing import Any, Self

import numpy as np

from hinge import _validate
from hinge._choice import CHOICES

STOPS = ("exact", "unchanged", "liblinear")

_DECADES = (-4, 4)
"""Powers of ten between which a number of ``Cs`` is spread, as in scikit-learn's LogisticRegressionCV."""

_SLACK = 1e-12
"""Relative excess over ``C_max`` that is rounding: the limit of the native search."""


@dataclass(frozen=True)
class Plan:
    """The checked parameters of a search that say which values of ``C`` to visit, how to choose and what to keep.

    Attributes
    ----------
    native : dict
        What the native search takes.
    choose : {"best", "one_se"}
        The rule of choice.
    keep_decisions : bool
        Whether held-out decision values are kept.
    """

    native: dict[str, Any]
    choose: str
    keep_decisions: bool

    @classmethod
    def of(cls, parameters: Any) -> Self:
        """Check the parameters of a search, by their names in :func:`hinge.select_C`."""
        _validate.choice("stop", parameters.stop, STOPS)
        _validate.choice("choose", parameters.choose, CHOICES)
        _validate.whole("refine", parameters.refine, 0)
        _validate.truth("keep_decisions", parameters.keep_decisions)
        if parameters.time_limit is not None:
            _validate.positive("time_limit", parameters.time_limit)
        native = _values(parameters) | {
            "refine": int(parameters.refine),
            "stop": parameters.stop,
            "time_limit": None if parameters.time_limit is None else float(parameters.time_limit),
            "resume": _path(parameters.resume),
        }
        return cls(native, parameters.choose, bool(parameters.keep_decisions))

    @property
    def time_limit(self) -> float | None:
        """Seconds."""
        return self.native["time_limit"]

    def n_values(self, first: float) -> int:
        """The largest number of values of C of a search that starts at ``first``."""
        plan = self.native
        if plan["Cs"] is not None:
            return len(plan["Cs"]) + 2 * plan["refine"]
        steps = log(plan["C_max"] / first) / log(plan["ratio"])
        return floor(steps + _SLACK * max(1.0, steps)) + 1 + 2 * plan["refine"]


def _values(parameters: Any) -> dict[str, Any]:
    """The part of the native plan that says which values of C."""
    Cs, C_min, C_max, ratio = parameters.Cs, parameters.C_min, parameters.C_max, parameters.ratio
    if C_min is not None:
        _validate.positive("C_min", C_min)
    _validate.positive("C_max", C_max)
    _validate.positive("ratio", ratio)
    if ratio <= 1:
        raise ValueError(f"ratio must be above 1, got {ratio!r}")
    if C_min is not None and C_min > C_max:
        raise ValueError(f"C_min must not be above C_max, got {C_min!r} and {C_max!r}")
    if Cs is not None and C_min is not None:
        raise ValueError(f"C_min and Cs exclude each other, got C_min={C_min!r} beside Cs")
    return {
        "Cs": None if Cs is None else _list(Cs),
        "C_min": None if C_min is None else float(C_min),
        "C_max": float(C_max),
        "ratio": float(ratio),
    }


def _list(Cs: Any) -> list[float]:
    """Rising, each once."""
    if isinstance(Cs, Integral) and not isinstance(Cs, bool):
        _validate.whole("Cs", Cs, 1)
        return np.logspace(*_DECADES, int(Cs)).tolist()
    if isinstance(Cs, (str, bytes)) or not isinstance(Cs, Iterable):
        raise ValueError(f"Cs must be a list of numbers above 0, or how many to take from 1e-4 to 1e4, got {Cs!r}")
    values = list(Cs)
    if not values:
        raise ValueError("Cs must hold at least one number, it is empty")
    for C in values:
        _validate.positive("Cs", C)
    return sorted({float(C) for C in values})


def _path(resume: Any) -> str | None:
    if resume is None:
        return None
    if not isinstance(resume, (str, os.PathLike)) or not (path := os.fspath(resume)) or isinstance(path, bytes):
        raise ValueError(f"resume must be None or the path of a file, got {resume!r}")
    return path
