"""The competitors behind one face: a fit of one problem, timed, with its weights turned to the label +1."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import hinge
import numpy as np
from liblinear import liblinearutil
from problems import Problem
from sklearn.exceptions import ConvergenceWarning

# LIBLINEAR's solvers of each loss, as its option -s counts them.
LIBLINEAR_SOLVERS = {"hinge": (3,), "squared_hinge": (1, 2), "logistic": (0, 7)}
LIBLINEAR_PRIMAL = (0, 2)
MULTINOMIAL = "multinomial"
LIBLINEAR_INTERCEPTS = {"none": "", "penalised": " -B 1", "free": " -B 1 -R"}


@dataclass(frozen=True)
class Fit:
    """Weights and what the fit said of itself; ``gap`` and ``primal`` are NaN where nothing is claimed."""

    seconds: float
    w: np.ndarray
    b: float
    status: str = ""
    gap: float = np.nan
    primal: float = np.nan


def hinge_model(loss: str, C: float, intercept: str, solver: str, tol: float, **parameters):
    """The estimator of a loss; ``MULTINOMIAL`` is the logistic one of all classes at once."""
    parameters |= {"solver": solver, "tol": tol, "fit_intercept": intercept != "none"}
    parameters["intercept_scaling"] = 1.0 if intercept == "penalised" else None
    if loss == "logistic":
        return hinge.LogisticRegression(C, multi_class="ovr", **parameters)
    if loss == MULTINOMIAL:
        return hinge.LogisticRegression(C, multi_class=MULTINOMIAL, **parameters)
    return hinge.LinearSVC(C, loss=loss, **parameters)


def fit_hinge(problem: Problem, model) -> Fit:
    """One fit from the SciPy matrix, everything included in the time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.perf_counter()
        model.fit(problem.X, problem.y)
        seconds = time.perf_counter() - start
    proof = model.certificate_
    status = f"{proof.status[0]} ({proof.solver[0]})"
    gap, primal = float(proof.relative_gap[0]), float(proof.primal[0])
    return Fit(seconds, model.coef_[0], float(model.intercept_[0]), status, gap, primal)


def liblinear_problem(problem: Problem) -> tuple[liblinearutil.problem, float]:
    """LIBLINEAR's own form of the data, and the seconds of the conversion."""
    start = time.perf_counter()
    converted = liblinearutil.problem(problem.y, problem.X)
    return converted, time.perf_counter() - start


def liblinear_solvers(loss: str, intercept: str) -> tuple[int, ...]:
    """The solvers that can solve exactly this problem; none for the hinge with a free intercept."""
    solvers = LIBLINEAR_SOLVERS[loss]
    return tuple(s for s in solvers if intercept != "free" or s in LIBLINEAR_PRIMAL)


def fit_liblinear(converted: liblinearutil.problem, solver: int, C: float, intercept: str, eps: float) -> Fit:
    """One training run on converted data; the conversion is not in the time."""
    options = f"-q -s {solver} -c {C!r} -e {eps!r}" + LIBLINEAR_INTERCEPTS[intercept]
    start = time.perf_counter()
    model = liblinearutil.train(converted, options)
    seconds = time.perf_counter() - start
    n = model.get_nr_feature()
    sign = 1.0 if model.get_labels()[0] > 0 else -1.0
    weights = sign * np.ctypeslib.as_array(model.w, (n + (intercept != "none"),))
    return Fit(seconds, weights[:n], 0.0 if intercept == "none" else float(weights[n]))
