"""Fits of the logistic loss on dense rows of few columns: ours beside scikit-learn's newton-cholesky.

Both on one thread, C-ordered arrays in single precision, free intercept. ``error`` is how far the objective is above
the best one found, relative to it, computed from the weights in double precision; ``ratio`` is the time of scikit-learn
over that of our quickest fit which is as close, or within 1e-6. ``normal`` is made up: 1,000,000 rows of 28 normal
numbers.

    OPENBLAS_NUM_THREADS=1 python benches/compare/dense.py --sets covtype,mnist,normal --output table.csv
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import problems
import tasks
from engines import hinge_model
from harness import Report, names
from sklearn.linear_model import LogisticRegression
from tightness import numbers

TOLS = (1e-2, 1e-4, 1e-6)
CLOSE = 1e-6
"""Error that is as good as none."""

TIMES = 3
"""Fits, of which the quickest counts."""

COLUMNS = {
    "set": ">10",
    "C_norm": ">7.4g",
    "solver": ">16",
    "tol": ">7.0e",
    "seconds": ">8.3f",
    "error": ">8.1e",
    "ratio": ">6.2f",
}


def rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Dense rows of a set, and which are of its first class (-1, +1)."""
    if name == "normal":
        rng = np.random.default_rng(0)
        X = rng.standard_normal((1_000_000, 28), dtype=np.float32)
        w = rng.standard_normal(28) / np.sqrt(28)
        return X, np.where(X @ w + 0.5 * np.sin(3 * X[:, 0]) + 0.7 * rng.logistic(size=len(X)) > 0, 1.0, -1.0)
    task = tasks.load(name)
    return task.X.toarray(order="C").astype(np.float32), np.where(task.y == task.classes[0], 1.0, -1.0)


def measure(name: str, scales: list[float], report: Report) -> None:
    """Rows of a set."""
    X, y = rows(name)
    problem = problems.Problem(name, X, y)
    norm = float(np.square(X, dtype=np.float64).sum() / len(X))
    for scale in scales:
        C = scale / norm
        models = {("hinge", tol): hinge_model("logistic", C, "free", "auto", tol, n_jobs=1) for tol in TOLS}
        models["newton-cholesky", 1e-4] = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-4)
        seconds, objectives = {}, {}
        for key, model in models.items():
            found = []
            for _ in range(TIMES):
                start = time.perf_counter()
                model.fit(X, y)
                found.append(time.perf_counter() - start)
            seconds[key] = min(found)
            w, b = np.ravel(model.coef_).astype(np.float64), float(np.ravel(model.intercept_)[0])
            objectives[key] = problem.objective("logistic", C, "free", w, b)
        best = min(objectives.values())
        error = {key: objective / best - 1.0 for key, objective in objectives.items()}
        rival = ("newton-cholesky", 1e-4)
        as_close = [seconds[key] for key in models if key[0] == "hinge" and error[key] <= max(error[rival], CLOSE)]
        for key in models:
            solver, tol = key
            ratio = seconds[rival] / min(as_close) if solver != "hinge" and as_close else np.nan
            row = {"solver": solver, "tol": tol, "seconds": seconds[key], "error": error[key], "ratio": ratio}
            report.add(set=name, C_norm=scale, **row)


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=["covtype", "mnist", "normal"], help="comma-separated sets")
    parse.add_argument("--scales", type=numbers, default=[0.1, 10.0, 1000.0], help="values of C times the mean |x|^2")
    parse.add_argument("--output", type=Path, help="CSV file to write")
    options = parse.parse_args()
    if problems.data_root() is None and any(tasks.needs_data(name) for name in options.sets if name != "normal"):
        print("skipped: no data sets, set HINGE_DATA to their folder")
        return
    # Where its matrix is singular newton-cholesky goes on with lbfgs, and says so.
    warnings.simplefilter("ignore")
    report = Report(COLUMNS, options.output, "one thread")
    for name in options.sets:
        measure(name, options.scales, report)


if __name__ == "__main__":
    main()
