"""Certified fits in place of an explored plane, with the same queries."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from hinge import _native
from hinge._cost_problem import Answers, CostProblem

KEEP = 256
"""Solutions kept for repeated queries."""


class CostGrid(Answers):
    """What :func:`hinge.cost_path` falls back to when a plane has too many facets: every query is a certified fit.

    Attributes
    ----------
    box : tuple of float
        Limits of C+ and C-.
    tol : float
        Relative duality gap of the fits.
    """

    def __init__(self, problem: CostProblem, box: tuple[float, float], *, n_threads: int, tol: float = 1e-9):
        self.problem, self.box, self.tol, self._n_threads = problem, box, tol, n_threads
        self._known: OrderedDict[tuple[float, float], dict[str, Any]] = OrderedDict()

    is_partial = True

    def __repr__(self) -> str:
        return f"CostGrid(box {self.box}, certified fits to {self.tol:g})"

    def points(self, n: int) -> np.ndarray:
        """A grid of n by n pairs of costs, geometric over three decades, shape (n * n, 2)."""
        axes = [np.geomspace(limit / 1000, limit, n) for limit in self.box]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)

    def _answers(self, points: np.ndarray) -> dict[str, np.ndarray]:
        outside = (points > np.array(self.box)).any(axis=1)
        if outside.any():
            bad = points[np.flatnonzero(outside)[0]]
            raise ValueError(f"({bad[0]:g}, {bad[1]:g}) is outside of the box {self.box}")
        fits = [self._fit(float(pos), float(neg)) for pos, neg in points]
        names = ("coef", "intercept", "alpha", "primal", "dual", "relative_gap", "steps")
        return {name: np.stack([fit[name] for fit in fits]) for name in names}

    def _fit(self, c_pos: float, c_neg: float) -> dict[str, Any]:
        if (c_pos, c_neg) in self._known:
            return self._known[c_pos, c_neg]
        start = next(reversed(self._known.values()))["alpha"] if self._known else None
        result = _native.fit_costs(self.problem.native, (c_pos, c_neg), self.tol, self._n_threads, start)
        fit = {name: values[0] for name, values in result.items()}
        self._known[c_pos, c_neg] = fit
        if len(self._known) > KEEP:
            self._known.popitem(last=False)
        return fit
