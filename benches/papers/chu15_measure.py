"""The measurements behind the figures and tables of Chu15, on one problem each, through the public interface.

A cold start is a search over a single value of C. Times are those that the search reports for the fits at a
value of C, with one thread, all folds together; making the folds and preparing the matrix, which cold and warm
searches share, is not in them. Objectives are computed here, in float64.

Notation: f primal, D dual objective; a fold's problem has the rows outside that fold.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from functools import cached_property

import hinge
import numpy as np
import scipy.sparse as sp
from harness import interrupted_after
from problems import LOSSES, Problem
from sklearn.model_selection import StratifiedKFold

SEED = 0
LOOSE, TIGHT = 1e-2, 1e-6
"""Stops of the fits inside a search, for Newton by eq. (28): the default of package and paper, and its tight one."""
UNCHANGED_TO_STOP = 3
"""Values of C in a row without a change that end the search, as many as in eq. (24)."""
SOLVERS = {"primal": "newton", "dual": "dual_cd"}
EXACT = 1e-9
"""Gap of the fits whose objective counts as the optimum."""
SHORT = 1.0
"""Seconds after which a run is not repeated."""


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes
    ----------
    loss : {"logistic", "squared_hinge"}
        Losses with both a primal and a dual route.
    folds : int
        Number of folds.
    limit : float
        Seconds that one curve may take; curves end there, and say so.
    C_max : float
        Largest C of figures 1 and 3.
    tolerances : tuple of float
        Stops that trace the curves of figure 2.
    repeat : int
        Runs of each point of figure 2, while they are short; the fastest counts.
    """

    loss: str = "logistic"
    folds: int = 5
    limit: float = 120.0
    C_max: float = 1024.0
    tolerances: tuple[float, ...] = tuple(10.0 ** (-k / 2) for k in range(11))
    repeat: int = 3


@dataclass
class Study:
    """A problem and its splits."""

    problem: Problem
    plan: Plan
    splits: list[tuple[np.ndarray, np.ndarray]] = field(init=False)
    y: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.y = self.problem.y
        splitter = StratifiedKFold(self.plan.folds, shuffle=True, random_state=SEED)
        self.splits = list(splitter.split(np.zeros(len(self.y)), self.y))

    def search(self, solver: str, tol: float = LOOSE, **options) -> hinge.CSearch:
        """A search without intercept on one thread."""
        common = {"cv": self.splits, "fit_intercept": False, "n_jobs": 1, "random_state": SEED}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # not converged, or partial: seen in the table
            return hinge.select_C(
                self.problem.X, self.y, loss=self.plan.loss, solver=solver, tol=tol, **common, **options
            )

    @cached_property
    def found(self) -> hinge.CSearch:
        """A search that ends after three values of C without a change, as algorithm 1."""
        options = {"C_max": self.plan.C_max, "stop": "unchanged", "time_limit": self.plan.limit}
        return self.search("newton", **options)

    @property
    def Cs(self) -> np.ndarray:
        """Its values of C."""
        return self.found.Cs

    def rows(self, fold: int | None) -> tuple[sp.csr_matrix, np.ndarray]:
        """Training rows of a fold in float64, all rows if there is none."""
        if fold is None:
            return self.problem.exact, self.y
        train = self.splits[fold][0]
        return self.problem.exact[train], self.y[train]

    def weights(self, fold: int | None, C: float, tol: float) -> np.ndarray:
        """Weights of a fit from zero on the rows of a fold."""
        options = {"tol": tol, "max_iter": 10_000, "fit_intercept": False}
        logistic = self.plan.loss == "logistic"
        model = (
            hinge.LogisticRegression(C, **options) if logistic else hinge.LinearSVC(C, loss=self.plan.loss, **options)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return model.fit(*self.rows(fold)).coef_[0]


def figure1(study: Study) -> dict:
    """Accuracy and cumulative seconds along C for two inner stops, with the ends of the search.

    ``last`` is the position where our search ended. Where that is before ``C_max``, no larger C changes any
    solution, and the curves go on without another reading of the data. ``end`` is where three values in a row
    changed nothing, as in eq. (24), None if there are none.
    """
    curves = {}
    for name, tol in (("loose", LOOSE), ("tight", TIGHT)):
        found = study.search("newton", tol, C_max=study.plan.C_max, time_limit=study.plan.limit)
        n_more = doublings(found.Cs[-1], study.plan.C_max) if found.stopped_by == "unchanged" else 0
        curves[name] = {
            "tol": tol,
            "C": [*map(float, found.Cs), *(float(found.Cs[-1] * 2.0**k) for k in range(1, n_more + 1))],
            "accuracy": np.pad(found.mean, (0, n_more), mode="edge").tolist(),
            "seconds": np.pad(np.cumsum(found.seconds), (0, n_more), mode="edge").tolist(),
            "last": len(found.Cs) - 1,
            "end": end_unchanged(np.pad(found.unchanged, (0, n_more), constant_values=True)),
            "stopped_by": found.stopped_by,
        }
    return curves


def doublings(C: float, C_max: float) -> int:
    """How many times C doubles up to C_max."""
    return int(np.floor(np.log2(C_max / C) + 1e-9))


def end_unchanged(unchanged: np.ndarray) -> int | None:
    """First position that ends three values of C in a row without a change."""
    for k in range(UNCHANGED_TO_STOP, len(unchanged) + 1):
        if all(unchanged[k - UNCHANGED_TO_STOP : k]):
            return k - 1
    return None


def figure2(study: Study) -> dict:
    """Relative distance of the primal objective to the optimum against seconds, at the best C of the search.

    A curve is traced by searches with ever tighter stops. The warm ones come from C / 2, solved with the same
    stop; where that solution is accepted at C as it is, they take no time. The distance is that of the sum over
    folds. ``line`` is that of Newton from zero at the stop 1e-2, which establishes eq. (28).
    """
    C = float(study.found.best_C)
    optimum = sum(objective(study, k, study.weights(k, C, EXACT), C) for k in range(study.plan.folds))
    curves = {}
    for route, solver in SOLVERS.items():
        for start, Cs in (("cold", [C]), ("warm", [C / 2, C])):
            curves[f"{route} {start}"] = trace(study, solver, Cs, optimum)
    line = curves["primal cold"]["distance"][study.plan.tolerances.index(LOOSE) :][:1]
    return {"C": C, "optimum": optimum, "curves": curves, "line": line}


def trace(study: Study, solver: str, Cs: list[float], optimum: float) -> dict[str, list[float]]:
    """Seconds at the last of ``Cs`` and distance reached there, stop after stop, within the limit."""
    points: dict[str, list[float]] = {"seconds": [], "distance": []}
    started = time.perf_counter()
    try:
        with interrupted_after(study.plan.limit):
            for tol in study.plan.tolerances:
                seconds, reached = point(study, solver, Cs, tol)
                points["seconds"].append(seconds)
                points["distance"].append(reached / optimum - 1)
    except TimeoutError:
        points["stopped_after"] = [time.perf_counter() - started]
    return points


def point(study: Study, solver: str, Cs: list[float], tol: float) -> tuple[float, float]:
    """Fewest seconds at the last value, and the objective there."""
    seconds: list[float] = []
    while len(seconds) < study.plan.repeat and sum(seconds) < SHORT:
        # This rule of the end counts to five, so that the last value is always visited.
        found = study.search(solver, tol, Cs=Cs, stop="liblinear")
        seconds.append(float(found.seconds[-1]))
    return min(seconds), float(found.objective[-1].sum())


def figure3(study: Study) -> dict[str, dict]:
    """Cumulative seconds along C for warm and cold starts, primal and dual."""
    curves = {}
    for route, solver in SOLVERS.items():
        curves[f"{route} warm"] = warm(study, solver, study.Cs)
        curves[f"{route} cold"] = cold(study, solver, study.Cs)
    return curves


def warm(study: Study, solver: str, Cs: np.ndarray) -> dict:
    """One search over the values. Where it ends because nothing can change any more, the rest takes no time."""
    try:
        found = study.search(solver, Cs=Cs, time_limit=study.plan.limit)
    except TimeoutError:  # not even the first value
        return along(Cs[:0], np.zeros(0), True)
    if found.is_partial:
        return along(found.Cs, found.seconds, True)
    return along(Cs, np.pad(found.seconds, (0, len(Cs) - len(found.Cs))), False)


def cold(study: Study, solver: str, Cs: np.ndarray) -> dict:
    """A search of its own for every value."""
    seconds: list[float] = []
    try:
        for C in Cs:
            with interrupted_after(max(0.01, study.plan.limit - sum(seconds))):
                seconds.append(float(study.search(solver, Cs=[C]).seconds[0]))
    except TimeoutError:
        pass
    return along(Cs[: len(seconds)], np.array(seconds), len(seconds) < len(Cs))


def along(Cs: np.ndarray, seconds: np.ndarray, is_stopped: bool) -> dict:
    """A curve, and whether the time limit cut it."""
    return {"C": list(map(float, Cs)), "seconds": np.cumsum(seconds).tolist(), "stopped": bool(is_stopped)}


def objective(study: Study, fold: int, w: np.ndarray, C: float) -> float:
    """f on the training rows of a fold."""
    X, y = study.rows(fold)
    return 0.5 * float(w @ w) + C * float(LOSSES[study.plan.loss](y * (X @ w)).sum())
