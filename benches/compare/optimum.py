"""Whether every solver finds the optimum and tells the truth about it.

For every set, loss, C, intercept and solver one fit at ``--tol``; its objective is computed here,
independently, and compared with the best objective known: of all these fits, of tight ones, and of
LIBLINEAR's where it has the same problem. A certificate is violated if the reported gap is smaller than the
true distance, or if the reported primal value is not that of the weights. Coordinate descent gets fewer
epochs on sets where it crawls (SLOW_SETS): it then has to say that it did not converge, and its certificate
has to hold all the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import engines
import problems
from engines import Fit
from harness import Report, arguments, interrupted_after, names, parser
from problems import Problem, relative_distance

SOLVERS = ("auto", "newton", "dual_cd", "dual_cd_online")
REFERENCE_TOL = 1e-9
# How much longer than a judged fit a reference fit may take.
PATIENCE = 4
LIBLINEAR_EPS = 1e-8
MAX_ITER = 1000
SLOW_SETS = {"covtype": 50, "madelon": 100, "imdb": 200, "flights": 50}
# Below the rounding of two sums of the same objective in different orders.
ROUNDING = 1e-12
PRIMAL_ROUNDING = 1e-9

COLUMNS = {
    "set": ">10",
    "loss": ">13",
    "C": ">9.5g",
    "intercept": ">9",
    "solver": ">14",
    "max_iter": ">5d",
    "objective": ">16.10g",
    "distance": ">9.1e",
    "gap": ">9.1e",
    "holds": ">5",
    "within": ">6",
    "seconds": ">8.3f",
    "status": ">24",
}


@dataclass(frozen=True)
class Case:
    """One optimisation problem."""

    problem: Problem
    loss: str
    C: float
    intercept: str

    def objective(self, fit: Fit) -> float:
        """Primal value of a fit, by our own code."""
        return self.problem.objective(self.loss, self.C, self.intercept, fit.w, fit.b)

    def fit(self, solver: str, tol: float, max_iter: int, limit: float) -> Fit | None:
        """A hinge fit; None where the time limit struck."""
        model = engines.hinge_model(self.loss, self.C, self.intercept, solver, tol, max_iter=max_iter, n_jobs=2)
        try:
            with interrupted_after(limit):
                return engines.fit_hinge(self.problem, model)
        except TimeoutError:
            return None


def epochs(name: str, solver: str) -> int:
    """Limit of iterations of a solver on a set."""
    return SLOW_SETS.get(name, MAX_ITER) if solver.startswith("dual_cd") else MAX_ITER


def tight_fits(case: Case, limit: float) -> Iterator[Fit]:
    """The most accurate fits that hinge has to offer."""
    for solver in ("newton", "auto"):
        fit = case.fit(solver, REFERENCE_TOL, MAX_ITER, PATIENCE * limit)
        if fit is not None:
            yield fit


def liblinear_fits(case: Case, converted) -> Iterator[Fit]:
    """LIBLINEAR's most accurate fits of the same problem: primal, for the hinge dual."""
    for solver in engines.liblinear_solvers(case.loss, case.intercept):
        if solver in (*engines.LIBLINEAR_PRIMAL, 3):
            yield engines.fit_liblinear(converted, solver, case.C, case.intercept, LIBLINEAR_EPS)


def check(case: Case, converted, options: argparse.Namespace) -> Iterator[dict]:
    """Table rows of one problem."""
    name = case.problem.name
    fits = {s: case.fit(s, options.tol, epochs(name, s), options.limit) for s in options.solvers}
    others = [*tight_fits(case, options.limit)]
    if not options.no_liblinear:
        others += liblinear_fits(case, converted)
    best = min(case.objective(fit) for fit in (*fits.values(), *others) if fit is not None)
    for solver, fit in fits.items():
        start = {"set": name, "loss": case.loss, "C": case.C, "intercept": case.intercept, "solver": solver}
        yield start | {"max_iter": epochs(name, solver)} | verdict(case, fit, best, options)


def verdict(case: Case, fit: Fit | None, best: float, options: argparse.Namespace) -> dict:
    """The columns that judge a fit."""
    if fit is None:
        return {"status": "over the time limit", "within": "NO", "seconds": options.limit}
    objective = case.objective(fit)
    distance = relative_distance(objective, best)
    primal_agrees = abs(fit.primal - objective) <= PRIMAL_ROUNDING * objective
    holds = fit.gap >= distance - ROUNDING and primal_agrees
    return {
        "objective": objective,
        "distance": distance,
        "gap": fit.gap,
        "holds": "yes" if holds else "NO",
        "within": "yes" if distance <= options.within else "NO",
        "seconds": fit.seconds,
        "status": fit.status,
    }


def summary(rows: list[dict], within: float) -> None:
    """Print what is wrong: violations first, then what is not optimal."""
    violations = [row for row in rows if row.get("holds") == "NO"]
    missed = [row for row in rows if row["within"] == "NO"]
    print(f"{len(rows)} fits, {len(violations)} violated certificates, {len(missed)} not within {within:g}")
    for title, chosen in (("violated", violations), ("not optimal", missed)):
        for row in chosen:
            where = " ".join(str(row[key]) for key in ("set", "loss", "C", "intercept", "solver"))
            numbers = " ".join(f"{key} {row[key]:.1e}" for key in ("distance", "gap") if key in row)
            print(f"{title}: {where}: {numbers} {row['status']}, max_iter {row['max_iter']}")


def main() -> None:
    """Command line."""
    parse = parser(__doc__)
    parse.add_argument("--solvers", type=names, default=list(SOLVERS), help="hinge solvers, comma-separated")
    parse.add_argument("--intercepts", type=names, default=list(problems.INTERCEPTS))
    parse.add_argument("--tol", type=float, default=1e-6, help="relative gap asked for")
    parse.add_argument("--within", type=float, default=1e-6, help="distance that counts as optimal")
    parse.add_argument("--no-liblinear", action="store_true", help="leave LIBLINEAR's optima out")
    options = arguments(parse)
    slow = ", ".join(f"{name} {limit}" for name, limit in SLOW_SETS.items())
    report = Report(COLUMNS, options.output, f"tol {options.tol:g}; epochs of coordinate descent: {slow}")
    for name in options.sets:
        problem = problems.load(name)
        converted = None if options.no_liblinear else engines.liblinear_problem(problem)[0]
        for loss, C, intercept in product(options.losses, options.Cs, options.intercepts):
            for row in check(Case(problem, loss, C, intercept), converted, options):
                report.add(**row)
    summary(report.rows, options.within)


if __name__ == "__main__":
    main()
