"""What a logistic regression does around its fit where it is told so in scikit-learn's words.

No iteration at all, no penalty, a start at the model of the fit before, and weights of single precision: each is a
change of what is asked of the native fit, or of what becomes of its result. The certificate is always that of the
weights that are handed out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isinf
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from hinge._fit_rows import FitRows
from hinge._logistic_value import softmax_value_from_above, value_from_above
from hinge._probability import is_softmax
from hinge._sklearn_names import TAKES_NEWTON_STEPS, is_sklearns, not_converged
from hinge._warn import warn

Result = dict[str, Any]

FIRST_C = 1e4
"""Where a fit without penalty begins, as C times the mean weight of the rows."""

RATIO = 16.0
"""Factor between its values of C."""

MOST_COSTS = 8
"""How many there are at most."""

LIMIT_TOL = 1e-10
"""Relative gap of its fits, at most: where costs are large, an objective says little of the weights."""

CHANGE = 1e-7
"""Share of the largest decision value by which decisions may still change, beyond the last C, up to no penalty."""


@dataclass
class NewtonSteps:
    """Newton steps of one fit, or of several that follow each other.

    Attributes
    ----------
    start : pair of ndarray
        The weights to go on from, and the intercepts.
    left : int
        How many steps may still be taken.
    """

    start: tuple[np.ndarray, np.ndarray]
    left: int

    def solve(self, solve: Callable[..., Result], C: float, **changed: Any) -> Result:
        """The result of a fit that goes on from the one before."""
        found = solve(C, solver="newton", start=self.start, max_iter=self.left, **changed)
        self.start, self.left = (found["coef"], found["intercept"]), self.left - int(np.max(found["n_iter"]))
        return found


def solved(model: Any, solve: Callable[..., Result], C: float, rows: FitRows, options: dict[str, Any]) -> Result:
    """The result of a fit of ``model``, whose parameters are checked."""
    starts = getattr(model, "warm_start", False)
    if options["map"] is not None:
        _refuse_special(model, C, starts, "degree is 2")
        return solve(C)
    if rows.labels is not None:
        _refuse_special(model, C, False, "y is a matrix of labels")
    rows = replace(rows, is_softmax=is_softmax(options, rows.n_classes) and rows.labels is None)
    height, tol = options["intercept"], options["tol"]
    before = _model_before(model, rows, height) if starts else None
    steps = _newton_steps(model, rows, before, C, options)
    goes_on = steps is None and before is not None and options["penalty"] is not None and rows.labels is None
    if model.max_iter == 0:
        result = untouched(rows, C)
    elif isinf(C):
        result = without_penalty(rows, solve, min(tol, LIMIT_TOL), steps)
    elif steps is not None:
        result = steps.solve(solve, C)
    else:
        result = solve(C, start=before) if goes_on else solve(C)
    if isinf(C) and rows.is_softmax:  # of all weights with these probabilities, the limit are those that add up to 0
        result = result | {name: result[name] - result[name].mean(axis=0) for name in ("coef", "intercept")}
    is_done = goes_on and set(result["status"]) == {"converged"}  # going on from that model
    if before is not None and not (is_done or isinf(C)):
        result = better_of(result, before, rows, C, options)
    is_search = not hasattr(model, "C")  # whose weights are of double precision in scikit-learn too
    is_single = rows.X.dtype == np.float32 and rows.labels is None and not is_search
    is_bounded = options["penalty"] is not None and model.bounds is not None  # rounded weights may leave the bounds
    if is_single and is_sklearns(model.solver) and model.solver != "liblinear" and not is_bounded:
        result = in_single_precision(result, rows, C, options)
    return result


def _newton_steps(
    model: Any, rows: FitRows, before: tuple[np.ndarray, np.ndarray] | None, C: float, options: dict[str, Any]
) -> NewtonSteps | None:
    """Steps from the model before, or from zero, where that is asked for; None leaves the way to the solver.

    Without penalty Newton's names mean one row of steps, too: ``max_iter`` bounds them over all values of C.
    """
    is_row = isinf(C) and is_sklearns(model.solver)
    is_known = model.solver in TAKES_NEWTON_STEPS and options["penalty"] is None and rows.labels is None
    if not is_known:
        return None
    if not (getattr(model, "warm_start", False) or is_row):
        return None
    coef, intercept = before or (np.zeros((rows.n_problems, rows.X.shape[1])), np.zeros(rows.n_problems))
    return NewtonSteps((coef, intercept), model.max_iter)


def check_stored(model: Any, C: float) -> None:
    """Refuse what is not done with the rows of a store."""
    _refuse_special(model, C, getattr(model, "warm_start", False), "X is a BlockStore")


def _refuse_special(model: Any, C: float, starts: bool, where: str) -> None:
    if isinf(C):
        raise ValueError(f"C must be finite where {where}, got inf")
    if starts:
        raise ValueError(f"warm_start must be False where {where}, got True")
    if model.max_iter == 0:
        raise ValueError(f"max_iter must be at least 1 where {where}, got 0")


def _model_before(model: Any, rows: FitRows, height: float | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Weights and intercepts of the fit before, if there was one of as many classes and columns."""
    coef = getattr(model, "coef_", None)
    if coef is None:
        return None
    coef = np.ascontiguousarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)
    if coef.shape != (rows.n_problems, rows.X.shape[1]):
        return None
    return coef, np.zeros(len(coef)) if height is None else np.asarray(model.intercept_, dtype=np.float64)


def warn_of_status(model: Any) -> bool:
    """Say that a fit has not converged, in scikit-learn's words or because there is no penalty; whether it was said."""
    certificate, name = model.certificate_, type(model).__name__
    statuses = set(certificate.status)
    if statuses == {"unpenalised"}:
        return True
    if "separable" in statuses:
        warn(
            f"{name} without penalty has no optimum: the classes are separable, so that weights can grow for ever. The "
            "model separates them; a finite C has an optimum",
            ConvergenceWarning,
        )
        return True
    if "diverging" in statuses:
        warn(
            f"{name} without penalty seems to have no optimum: weights go on growing, so some rows can probably be "
            "separated from all others. A finite C has an optimum",
            ConvergenceWarning,
        )
        return True
    begin = not_converged(model.solver, int(np.max(model.n_iter_)))
    if begin is not None:
        warn(
            f"{begin} ({name} solves this problem in its own way; status {sorted(statuses)}, relative duality gap "
            f"{float(certificate.relative_gap.max()):.2e}): raise max_iter or tol, or scale the features",
            ConvergenceWarning,
        )
    return begin is not None


def untouched(rows: FitRows, C: float) -> Result:
    """The result of no iteration: no weights, and the objective there. 0 is below every objective."""
    n_vectors = rows.n_problems
    n, n_ways = (1, n_vectors) if rows.is_softmax else (n_vectors, 2)
    value = (1.0 if isinf(C) else C) * rows.weight.sum() * np.log(n_ways)
    return {
        "coef": np.zeros((n_vectors, rows.X.shape[1])),
        "intercept": np.zeros(n_vectors),
        "n_iter": [0] * n,
        "primal": np.full(n, value),
        "dual": np.zeros(n),
        "relative_gap": np.full(n, np.inf),
        "status": ["max_iter"] * n,
        "solver": ["none"] * n,
        "passes": np.zeros(n),
        "presolve": None,
    }


def without_penalty(
    rows: FitRows, solve: Callable[..., Result], tol: float, steps: NewtonSteps | None = None
) -> Result:
    """The limit of the solutions as C grows.

    The solution at C is off the limit by about 1/C. So where decisions change by d from C to r C, they are within
    d / (r - 1) of the limit. Where they go on growing there is no limit: rows on the right side of a hyperplane each
    prove that, and otherwise C stops at a value of its own. Nothing is proved of a limit: there is no dual value, and
    the status says "unpenalised"; or "separable" or "diverging", where the model is that of the last C; or "max_iter",
    where one of the last two fits did not converge, so that nothing follows from how little they differ; or no steps
    are left for another.
    """

    def fit(C: float) -> Result:
        return solve(C, tol=tol) if steps is None else steps.solve(solve, C, tol=tol)

    C = FIRST_C / rows.weight[rows.weight > 0].mean()
    last = fit(C)
    n_iter, passes = np.array(last["n_iter"]), np.array(last["passes"])
    is_cut = False
    for _ in range(MOST_COSTS):
        if _separates(rows, last):
            return _unproved(rows, last, "separable", n_iter, passes)
        if steps is not None and steps.left < 1:
            return _unproved(rows, last, "max_iter", n_iter, passes)
        C *= RATIO
        found = fit(C)
        n_iter, passes = n_iter + found["n_iter"], passes + found["passes"]
        values = rows.decisions(found)
        left = np.abs(values - rows.decisions(last)).max() / (RATIO - 1)
        is_cut = "max_iter" in (*last["status"], *found["status"])
        last = found
        if left <= CHANGE * max(1.0, np.abs(values).max()):
            return _unproved(rows, last, "max_iter" if is_cut else "unpenalised", n_iter, passes)
    return _unproved(rows, last, "max_iter" if is_cut else "diverging", n_iter, passes)


def _separates(rows: FitRows, result: Result) -> bool:
    """Whether every row of a positive weight is on the right side, in some binary problem or that of all classes."""
    margins = rows.margins(rows.decisions(result))
    return bool((margins[rows.weight > 0] > 0).all(axis=0).any())


def _unproved(rows: FitRows, result: Result, status: str, n_iter: np.ndarray, passes: np.ndarray) -> Result:
    """The result with the sum of the losses as its objective, and nothing proved."""
    n = len(result["status"])
    primal = rows.weight @ rows.losses(rows.decisions(result))
    nothing: Result = {
        "primal": primal,
        "dual": np.full(n, -np.inf),
        "relative_gap": np.full(n, np.inf),
        "status": [status] * n,
    }
    return result | nothing | {"n_iter": n_iter, "passes": passes}


def better_of(
    result: Result,
    model: tuple[np.ndarray, np.ndarray],
    rows: FitRows,
    C: float,
    options: dict[str, Any],
) -> Result:
    """The result with the model of the fit before wherever that has the lower objective.

    The dual value of the result bounds the optimum, whoever found the weights.
    """
    coef, intercept = (np.asarray(part, dtype=np.float64) for part in model)
    value = _value_from_above(rows, C, (coef, intercept), options)
    is_better = value < result["primal"]
    if not is_better.any():
        return result
    kept = {
        "coef": np.where(is_better[:, None], coef, result["coef"]),
        "intercept": np.where(is_better, intercept, result["intercept"]),
    }
    return result | kept | _proved(result, np.where(is_better, value, result["primal"]), options["tol"])


def in_single_precision(result: Result, rows: FitRows, C: float, options: dict[str, Any]) -> Result:
    """The result with weights of single precision, and the objective there."""
    coef, intercept = result["coef"].astype(np.float32), result["intercept"].astype(np.float32)
    kept = {"coef": coef, "intercept": intercept}
    if isinf(C):
        return result | kept
    value = _value_from_above(rows, C, (coef, intercept), options)
    return result | kept | _proved(result, value, options["tol"])


def _value_from_above(
    rows: FitRows, C: float, model: tuple[np.ndarray, np.ndarray], options: dict[str, Any]
) -> np.ndarray:
    """Upper bounds of the objectives: one for all classes with a softmax, else one per binary problem."""
    height, penalty = options["intercept"], options["penalty"]
    if rows.is_softmax:
        return softmax_value_from_above(rows.X, rows.ids, C * rows.weight, model, height, penalty)
    return value_from_above(rows.X, rows.signs, C * rows.weight, model, height, penalty)


def _proved(result: Result, primal: np.ndarray, tol: float) -> Result:
    """What the dual value of a result proves of another primal value."""
    dual = np.asarray(result["dual"])
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(dual > 0, (primal - dual) / dual, np.inf)
    states = zip(gap, result["status"], strict=True)
    status = ["converged" if g <= tol else "stalled" if was == "converged" else was for g, was in states]
    return {"primal": primal, "relative_gap": gap, "status": status}
