"""Which values of ``C`` a search visits, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log
from typing import Any, Self

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
    keep_coefs : bool
        Whether the weights of the folds are kept.
    max_drop : float or None
        How far the score may be below the best so far before the search ends.
    """

    native: dict[str, Any]
    choose: str
    keep_decisions: bool
    keep_coefs: bool = False
    max_drop: float | None = None

    @classmethod
    def of(cls, given: Any) -> Self:
        """The plan of checked parameters, by their names in :func:`hinge.select_C`."""
        names = ("Cs", "C_min", "C_max", "ratio", "refine", "stop", "time_limit", "resume")
        native = {name: getattr(given, name) for name in names}
        C_min, C_max = given.C_min, given.C_max
        if C_min is not None and C_min > C_max:
            raise ValueError(f"C_min must not be above C_max, got {C_min!r} and {C_max!r}")
        if given.Cs is not None and C_min is not None:
            raise ValueError(f"C_min and Cs exclude each other, got C_min={C_min!r} beside Cs")
        if given.max_drop is not None and given.refine > 0:
            raise ValueError(f"refine must be 0 with max_drop, got {given.refine}")
        return cls(native, given.choose, given.keep_decisions, given.keep_coefs, given.max_drop)

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
