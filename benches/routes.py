"""Where Newton and dual coordinate descent cross on this machine, beside the constants that choose between them.

Made-up problems on both sides of a constant of ``src/fit/routes.rs`` are fitted by both solvers: squared hinge, one
thread, no presolve, best of several fits. The constant should be about where the ratio of the times passes 1. One run
on a busy machine says little, and made-up rows are not data (their noise is hard on coordinate descent): the constants
come from real sets, and what to watch is how a crossing moves from one machine or version to the next.

    python benches/routes.py
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import hinge
import numpy as np
import scipy.sparse as sp

ROUTES = Path(__file__).parent.parent / "src" / "fit" / "routes.rs"
FLIPPED = 0.05

Problem = tuple[sp.csr_matrix, np.ndarray, float]


@dataclass
class Crossing:
    """A constant, what is compared with it, and problems of given values of that."""

    constant: str
    quantity: str
    values: list[float]
    make: Callable[[float], Problem]
    quantity_of: Callable[[Problem], float]


def rows(n_rows: int, length: int, n_columns: int, cost: float) -> Problem:
    """Rows of about unit norm and ``length`` columns by Zipf's law, labels by a planted plane but for some, a cost."""
    random = np.random.default_rng(0)
    columns = (n_columns ** random.random(n_rows * length)).astype(np.int32) - 1
    values = np.full(n_rows * length, 1 / np.sqrt(length))
    X = sp.csr_matrix((values, columns, np.arange(n_rows + 1) * length), shape=(n_rows, n_columns))
    X.sum_duplicates()
    y = np.where(X @ random.standard_normal(n_columns) > 0, 1.0, -1.0)
    y[random.random(n_rows) < FLIPPED] *= -1.0
    return X, y, cost


def entries_per_column(problem: Problem) -> float:
    X, _, _ = problem
    return X.nnz / X.shape[1]


def mean_diagonal(problem: Problem) -> float:
    X, _, cost = problem
    return cost * X.multiply(X).sum() / X.shape[0]


def factorisation_passes(problem: Problem) -> float:
    """As ``src/fit/newton/factorisation.rs`` reckons them, for rows that are sparse."""
    X, _, _ = problem
    lengths = np.diff(X.indptr).astype(float)
    return (lengths @ lengths / 2 + X.shape[1] ** 3 / (6 * constant("VECTORISED"))) / (2 * X.nnz)


CROSSINGS = [
    Crossing(
        "LANE_ENTRIES",
        "entries per column",
        [10, 20, 40, 80, 160],
        lambda value: rows(round(value * 1000), 10, 10_000, 2.0),
        entries_per_column,
    ),
    Crossing(
        "EASY",
        "mean of c |x|^2",
        [2**-6, 2**-4, 0.25, 1, 4, 16],
        lambda value: rows(20_000, 20, 3000, value),
        mean_diagonal,
    ),
    Crossing(
        "MAX_CHOLESKY_PASSES",
        "passes of a factorisation",
        [100, 200, 400, 1600, 6400],
        lambda value: rows(round(value), 10, 500, 16.0),
        factorisation_passes,
    ),
]


def constant(name: str) -> float:
    """The value of a constant in the table of routes."""
    found = re.search(rf"pub const {name}: \w+ = ([\d_.]+);", ROUTES.read_text())
    if found is None:
        raise SystemExit(f"{ROUTES} has no constant {name}")
    return float(found[1])


def seconds(problem: Problem, solver: str, tol: float, repeat: int) -> float:
    """The best time of a fit."""
    X, y, cost = problem
    model = hinge.LinearSVC(
        cost, loss="squared_hinge", solver=solver, tol=tol, fit_intercept=False, presolve=False, n_jobs=1
    )
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        model.fit(X, y)
        times.append(time.perf_counter() - started)
    return min(times)


def where_one(quantities: list[float], ratios: list[float]) -> str:
    """The quantity at which the ratio passes 1, interpolated on logarithmic scales."""
    x, y = np.log(quantities), np.log(ratios)
    found = [
        np.exp(x[k] - y[k] * (x[k + 1] - x[k]) / (y[k + 1] - y[k])) for k in range(len(x) - 1) if y[k] * y[k + 1] < 0
    ]
    if not found:
        faster = "newton" if ratios[0] < 1 else "dual_cd"
        return f"no crossing: {faster} is faster from {min(quantities):.3g} to {max(quantities):.3g}"
    return "should be about " + ", ".join(f"{value:.3g}" for value in found)


def measure(crossing: Crossing, tol: float, repeat: int) -> None:
    """The table of a constant and where it should be."""
    print(f"\n{crossing.constant} = {constant(crossing.constant):g}: {crossing.quantity}")
    print(f"{'':>10} {'newton s':>9} {'dual s':>9} {'ratio':>6}")
    quantities, ratios = [], []
    for value in crossing.values:
        problem = crossing.make(value)
        newton, dual = (seconds(problem, solver, tol, repeat) for solver in ("newton", "dual_cd"))
        quantities.append(crossing.quantity_of(problem))
        ratios.append(newton / dual)
        print(f"{quantities[-1]:10.3g} {newton:9.4f} {dual:9.4f} {ratios[-1]:6.2f}", flush=True)
    print(where_one(quantities, ratios))


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--tol", type=float, default=1e-3, help="relative duality gap of the fits")
    parse.add_argument("--repeat", type=int, default=3, help="fits of which the fastest counts")
    options = parse.parse_args()
    for crossing in CROSSINGS:
        measure(crossing, options.tol, options.repeat)


if __name__ == "__main__":
    main()
