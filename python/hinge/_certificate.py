"""What a fit can prove about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Certificate:
    """Proof of how close a fit is to the optimum, one entry per binary problem.

    For two classes there is one binary problem, for ``k > 2`` classes there are ``k`` (each class against the rest);
    the problems of all classes at once ("multinomial", "crammer_singer") have one entry.

    Attributes
    ----------
    primal : ndarray of float64
        Objective at ``coef_`` and ``intercept_``.
    dual : ndarray of float64
        Lower bound on the optimal objective: the value of a feasible dual point, less a bound of all that rounding can
        have done to both values (1e-13 to 1e-11 of them on data of ordinary scale).
    relative_gap : ndarray of float64
        ``(primal - dual) / dual``: the true relative distance to the optimum is never larger. Infinite where nothing
        is proved (``dual`` not above 0).
    status : tuple of str
        ``"converged"``, ``"max_iter"``, or ``"stalled"`` (no progress possible in double precision, or no proof of
        the accuracy that was asked for). Without penalty (``C=inf``), where ``dual`` is minus infinity:
        ``"unpenalised"`` (the limit as C grows, by the change of decision values), ``"separable"`` (a hyperplane
        separates the classes, so there is no limit) or ``"diverging"`` (weights went on growing to the last C).
    solver : tuple of str
        The solver that finished each problem.
    passes : ndarray of float64
        Readings of the whole data.
    """

    primal: np.ndarray
    dual: np.ndarray
    relative_gap: np.ndarray
    status: tuple[str, ...]
    solver: tuple[str, ...]
    passes: np.ndarray

    @classmethod
    def from_native(cls, result: Mapping[str, Any]) -> Certificate:
        """The certificate in the result of a native fit."""
        return cls(
            primal=result["primal"],
            dual=result["dual"],
            relative_gap=result["relative_gap"],
            status=tuple(result["status"]),
            solver=tuple(result["solver"]),
            passes=result["passes"],
        )

    @property
    def converged(self) -> bool:
        """Whether every binary problem reached its tolerance."""
        return all(status == "converged" for status in self.status)
