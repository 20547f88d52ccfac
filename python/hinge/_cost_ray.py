"""The path along one straight line of costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge import _native
from hinge._cost_problem import Answers, CostProblem

_TO = np.array([1, 1, 0, 2], dtype=np.uint8)
"""State after an event: its code modulo 4 says from left, from right, to left, to right."""


@dataclass(frozen=True, eq=False, repr=False)
class CostRay(Answers):
    """The solution along the line from ``begin`` to ``end``: linear in the costs between breakpoints.

    Attributes
    ----------
    begin, end : ndarray of shape (2,), float64
        (C+, C-) at ``t = 0`` and ``t = 1``.
    t : ndarray of shape (n_events,), float64
        Where the events are, rising, in [0, 1]. Breakpoints are those of the perturbed problem (off by about 1e-6
        relative);
        solutions between them are exact.
    rows : ndarray of shape (n_events,), int64
        Row of each event.
    to : ndarray of shape (n_events,), uint8
        Its state after: 0 left of the margin, 1 on it, 2 right of it.
    """

    problem: CostProblem
    begin: np.ndarray
    end: np.ndarray
    t: np.ndarray
    events: np.ndarray
    sides: np.ndarray
    perturbation: np.ndarray
    n_threads: int

    @property
    def rows(self) -> np.ndarray:
        """Row of each event."""
        return (self.events // 4).astype(np.int64)

    @property
    def to(self) -> np.ndarray:
        """State of the row after each event."""
        return _TO[self.events % 4]

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        begin, end = (f"({c[0]:g}, {c[1]:g})" for c in (self.begin, self.end))
        return f"CostRay(from {begin} to {end}, {len(self)} events)"

    def costs(self, t: Any) -> np.ndarray:
        """(C+, C-) at ``t``, shape (..., 2)."""
        t = np.asarray(t, dtype=np.float64)
        return self.begin + t[..., None] * (self.end - self.begin)

    def sets(self, t: float) -> np.ndarray:
        """State of every row at ``t``: 0 left of the margin, 1 on it, 2 right of it; of the perturbed problem."""
        count = int(np.searchsorted(self.t, t, side="right"))
        sides = self.sides.copy()
        sides[self.rows[:count]] = self.to[:count]  # the last assignment of a row counts
        return sides

    def at(self, t: Any) -> dict[str, np.ndarray]:
        """Exact solutions at the given ``t``.

        Returns
        -------
        dict
            ``coef`` (k, n_features), ``intercept`` (k,), ``alpha`` (k, n_samples), ``primal``, ``dual``,
            ``relative_gap`` (k,).
        """
        t = np.atleast_1d(np.asarray(t, dtype=np.float64))
        if not ((t >= 0) & (t <= 1)).all():
            raise ValueError(f"t must be in [0, 1], got {t[~((t >= 0) & (t <= 1))][0]}")
        codes = np.stack([self.sets(value) for value in t]) if len(t) else np.empty((0, len(self.sides)), np.uint8)
        return _native.answers_from(
            self.problem.native, self.perturbation, np.ascontiguousarray(self.costs(t)), codes, self.n_threads
        )

    def _answers(self, points: np.ndarray) -> dict[str, np.ndarray]:
        direction = self.end - self.begin
        length = float(direction @ direction)
        t = (points - self.begin) @ direction / length
        off = np.abs(self.costs(t) - points).max(axis=1) > 1e-9 * np.abs(points).max(axis=1, initial=1e-300)
        if (off | (t < -1e-12) | (t > 1 + 1e-12)).any():
            bad = points[np.flatnonzero(off | (t < -1e-12) | (t > 1 + 1e-12))[0]]
            raise ValueError(f"({bad[0]:g}, {bad[1]:g}) is not on the line from {self.begin} to {self.end}")
        return self.at(np.clip(t, 0.0, 1.0))
