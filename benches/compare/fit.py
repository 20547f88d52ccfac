"""Time to a given accuracy of one fit: LIBLINEAR against hinge.

Both sides start from the same SciPy matrix, and the conversion is in their time (LIBLINEAR's share of it is
shown, and the ratio without it). Tolerances are swept on both sides, because no two solvers mean the same
by them; what counts is the relative distance of the primal objective, computed here in float64, to the best
objective that anybody found. For each accuracy the fastest of LIBLINEAR's solvers stands against hinge with
one thread and with two. A ratio is their time over ours: inf where only hinge arrives, 0 where only
LIBLINEAR does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median

import engines
import problems
from engines import Fit
from harness import Report, arguments, interrupted_after, names, parser
from problems import Problem

TOLERANCES = tuple(10.0**-k for k in range(1, 9))
GAPS = (1e-2, 1e-4, 1e-6)
REFERENCE_TOL = 1e-9
# LIBLINEAR does not say when it ran out of iterations: long runs that improve by less than a tenth have.
STUCK_SECONDS, STUCK_FACTOR = 1.0, 0.9

COLUMNS = {
    "set": ">10",
    "loss": ">13",
    "C": ">9.5g",
    "bias": ">9",
    "gap": ">7.0e",
    "liblinear_s": ">9.4g",
    "of_it_convert_s": ">9.4g",
    "liblinear_solver": ">6",
    "liblinear_best_gap": ">9.1e",
    "hinge_solver": ">8",
    "hinge_1_s": ">9.4g",
    "hinge_2_s": ">9.4g",
    "ratio_1": ">7.2f",
    "ratio_2": ">7.2f",
    "ratio_1_no_convert": ">7.2f",
}


@dataclass
class Runner:
    """One solver of one side with all its runs, keyed by tolerance."""

    side: str
    name: str
    run: Callable[[float], Fit]
    seconds: dict[float, list[float]] = field(default_factory=dict)
    objectives: dict[float, list[float]] = field(default_factory=dict)
    status: str = ""

    def add(self, tol: float, fit: Fit, objective: float) -> None:
        """Record a run."""
        self.seconds.setdefault(tol, []).append(fit.seconds)
        self.objectives.setdefault(tol, []).append(objective)
        self.status = fit.status

    def reached(self, gap: float, best: float) -> list[float]:
        """Tolerances, loosest first, whose median run is within the gap."""
        bound = best * (1.0 + gap)
        return [tol for tol, values in self.objectives.items() if median(values) <= bound]

    def time_to(self, gap: float, best: float) -> float | None:
        """Smallest median time of the runs within the gap."""
        return min((median(self.seconds[tol]) for tol in self.reached(gap, best)), default=None)

    def is_stuck(self, best: float) -> bool:
        """Whether tighter tolerances are vain: the fit says so, or two of them changed nothing."""
        if self.status:
            return not self.status.startswith("converged")
        runs = list(self.objectives)
        if len(runs) < 3 or self.seconds[runs[-1]][0] < STUCK_SECONDS:
            return False
        first, _, last = (self.objectives[tol][0] - best for tol in runs[-3:])
        return last > STUCK_FACTOR * first


class Contest:
    """All runs of one problem, loss, C and intercept."""

    def __init__(self, problem: Problem, loss: str, C: float, intercept: str, limit: float):
        self.problem, self.loss, self.C, self.intercept, self.limit = problem, loss, C, intercept, limit
        self.runners: list[Runner] = []
        self.best = self._reference()

    def add_liblinear(self, converted) -> None:
        """Enter every LIBLINEAR solver of this problem."""
        for solver in engines.liblinear_solvers(self.loss, self.intercept):

            def run(eps: float, solver: int = solver) -> Fit:
                return engines.fit_liblinear(converted, solver, self.C, self.intercept, eps)

            self.runners.append(Runner("liblinear", f"-s {solver}", run))

    def add_hinge(self, solver: str, n_jobs: int) -> None:
        """Enter a hinge solver with a number of threads."""
        self.runners.append(Runner(f"{solver} {n_jobs}", solver, lambda tol: self._hinge(solver, tol, n_jobs)))

    def _hinge(self, solver: str, tol: float, n_jobs: int) -> Fit:
        model = engines.hinge_model(self.loss, self.C, self.intercept, solver, tol, n_jobs=n_jobs)
        return engines.fit_hinge(self.problem, model)

    def _objective(self, fit: Fit) -> float:
        return self.problem.objective(self.loss, self.C, self.intercept, fit.w, fit.b)

    def _reference(self) -> float:
        try:
            with interrupted_after(2 * self.limit):
                return self._objective(self._hinge("auto", REFERENCE_TOL, 2))
        except TimeoutError:
            return float("inf")

    def _once(self, runner: Runner, tol: float) -> bool:
        """Run and record; False where the time limit struck."""
        try:
            with interrupted_after(2 * self.limit):
                fit = runner.run(tol)
        except TimeoutError:
            return False
        objective = self._objective(fit)
        self.best = min(self.best, objective)
        runner.add(tol, fit, objective)
        return fit.seconds <= self.limit

    def sweep(self) -> None:
        """Tighten the tolerances of all runners side by side, each until it can win nothing more."""
        live = list(self.runners)
        for tol in TOLERANCES:
            live = [r for r in live if self._once(r, tol) and self._may_win(r, tol)]

    def _may_win(self, runner: Runner, tol: float) -> bool:
        """Whether a tighter tolerance may be the fastest to some gap: time grows as tolerances shrink."""
        finest = GAPS[-1]
        if runner.reached(finest / 2, self.best) or runner.is_stuck(self.best):
            return False
        rivals = [r.time_to(finest / 2, self.best) for r in self.runners if r.side == runner.side]
        return runner.seconds[tol][0] < min((t for t in rivals if t is not None), default=float("inf"))

    def repeat(self, times: int) -> None:
        """Repeat the runs that decide, all sides in turn."""
        deciding = [(r, tol) for r in self.runners for tol in self._deciding(r)]
        for _ in range(times):
            for runner, tol in deciding:
                self._once(runner, tol)

    def _deciding(self, runner: Runner) -> list[float]:
        first = (runner.reached(gap, self.best)[:1] for gap in GAPS)
        return sorted({tol for tols in first for tol in tols}, reverse=True)

    def winner(self, side: str, gap: float) -> tuple[float | None, str | None]:
        """Time and solver that are first within the gap on one side."""
        times = [(r.time_to(gap, self.best), r.name) for r in self.runners if r.side == side]
        return min((t for t in times if t[0] is not None), default=(None, None))

    def best_gap(self, side: str) -> float | None:
        """The most accurate run of one side."""
        values = [v for r in self.runners if r.side == side for runs in r.objectives.values() for v in runs]
        return problems.relative_distance(min(values), self.best) if values else None


def rows(contest: Contest, solvers: Iterable[str], convert: float) -> Iterable[dict]:
    """Table rows of a finished contest."""
    for solver in solvers:
        for gap in GAPS:
            theirs, name = contest.winner("liblinear", gap)
            ours = [contest.winner(f"{solver} {n_jobs}", gap)[0] for n_jobs in (1, 2)]
            total = None if theirs is None else theirs + convert
            yield {
                "set": contest.problem.name,
                "loss": contest.loss,
                "C": contest.C,
                "bias": contest.intercept,
                "gap": gap,
                "liblinear_s": total,
                "of_it_convert_s": convert,
                "liblinear_solver": name,
                "liblinear_best_gap": contest.best_gap("liblinear"),
                "hinge_solver": solver,
                "hinge_1_s": ours[0],
                "hinge_2_s": ours[1],
                "ratio_1": _ratio(total, ours[0]),
                "ratio_2": _ratio(total, ours[1]),
                "ratio_1_no_convert": _ratio(theirs, ours[0]),
            }


def _ratio(theirs: float | None, ours: float | None) -> float | None:
    """Their time over ours; infinite where only we arrive, 0 where only they do, None where nobody does."""
    if ours is None:
        return None if theirs is None else 0.0
    return float("inf") if theirs is None else theirs / ours


def compare(problem: Problem, options, report: Report) -> None:
    """All contests on one set."""
    conversions = [engines.liblinear_problem(problem) for _ in range(options.repeat)]
    converted, convert = conversions[-1][0], median(seconds for _, seconds in conversions)
    for loss in options.losses:
        for C in options.Cs:
            for intercept in options.intercepts:
                contest = Contest(problem, loss, C, intercept, options.limit)
                contest.add_liblinear(converted)
                for solver in options.solvers:
                    contest.add_hinge(solver, 1)
                    contest.add_hinge(solver, 2)
                contest.sweep()
                contest.repeat(options.repeat - 1)
                for row in rows(contest, options.solvers, convert):
                    report.add(**row)


def main() -> None:
    """Command line."""
    parse = parser(__doc__)
    parse.add_argument("--solvers", type=names, default=["auto"], help="hinge solvers, comma-separated")
    parse.add_argument("--intercepts", type=names, default=["none"], help="none, free, penalised")
    options = arguments(parse)
    report = Report(COLUMNS, options.output, f"median of {options.repeat}, time in seconds")
    for name in options.sets:
        compare(problems.load(name), options, report)


if __name__ == "__main__":
    main()
