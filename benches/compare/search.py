"""The choice of C: hinge.select_C against the searches of LIBLINEAR and scikit-learn.

Five folds, no intercept (LIBLINEAR's default), the same float64 SciPy CSR matrix for everybody; each side
computes its own first value of C and ends by its own rule, at 1024 at the latest. The accuracy of the inner
fits is LIBLINEAR's default, eps = 0.01, for both. Everything from the matrix on is timed; LIBLINEAR's share
for its conversion is shown, and is in its time. Others:

* LIBLINEAR 2.50, ``-C``, one thread; it draws its own folds, without strata, so its accuracies differ a little;
* multi-core LIBLINEAR with two threads, where ``--multicore`` names a Python that has it (``make bench-search``
  prepares one);
* for the logistic loss LogisticRegressionCV with two jobs, on our folds and our values of C, once per solver.

A ratio is their time over ours with one thread (``ratio_1``) or two (``ratio_2``). A run over ``--limit`` is
stopped: ``>60`` seconds, and a ratio that is a lower bound. ``early_passes`` are the readings of the data per
fold in the first three quarters of our values of C, ``early_bound`` the same as Newton steps + CG steps + 1 per
value, what a search without free starts would read. ``--check`` compares all tables with tight cold fits.

``--classes`` takes all classes of a set, one against the rest, where there are more than two; scikit-learn, whose
logistic loss is then another problem, is left out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from math import ceil
from statistics import median

import cold
import hinge
import numpy as np
import problems
import rivals
from harness import Report, arguments, parser
from problems import Problem
from rivals import Outcome, Stored
from sklearn.model_selection import StratifiedKFold

SETS = (
    "german", "ijcnn1_val", "madelon", "a9a", "w8a", "20news", "imdb", "phishing_urls", "flights", "covtype"
)  # fmt: skip
FOLDS, SEED = 5, 0
TOL = 0.01
THREADS = 2

COLUMNS = {
    "set": ">13",
    "loss": ">13",
    "tool": ">15",
    "threads": ">2d",
    "seconds": ">9.4g",
    "of_it_convert": ">9.3g",
    "ratio_1": ">8.4g",
    "ratio_2": ">8.4g",
    "C": ">10.4g",
    "accuracy": ">8.5f",
    "n_Cs": ">4d",
    "passes": ">8.1f",
    "newton": ">7.1f",
    "cg": ">7.1f",
    "early_passes": ">8.1f",
    "early_bound": ">8.1f",
    "note": ">4",
}


def folds_of(problem: Problem) -> list[tuple[np.ndarray, np.ndarray]]:
    """The splits that everybody gets who takes any."""
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    return list(splitter.split(np.zeros(len(problem.y)), problem.y))


def search_hinge(problem: Problem, loss: str, folds, n_jobs: int) -> tuple[float, hinge.CSearch]:
    """Our search, timed as its caller sees it."""
    start = time.perf_counter()
    options = {"tol": TOL, "fit_intercept": False, "multi_class": "ovr", "n_jobs": n_jobs}
    found = hinge.select_C(problem.exact, problem.y, loss=loss, cv=folds, **options)
    return time.perf_counter() - start, found


def effort(found: hinge.CSearch) -> dict[str, float]:
    """Passes and steps per fold, over all values of C and over the first three quarters of them."""
    n_folds = found.scores.shape[1]
    newton, cg, passes = (column / n_folds for column in (found.n_iter, found.n_inner, found.passes))
    early = ceil(0.75 * len(found.Cs))
    return {
        "passes": passes.sum(),
        "newton": newton.sum(),
        "cg": cg.sum(),
        "early_passes": passes[:early].sum(),
        "early_bound": (newton + cg + 1)[:early].sum(),
    }


def compare(problem: Problem, loss: str, options: argparse.Namespace, report: Report) -> cold.Tables:
    """Add the rows of one set and loss; returns the score tables of all who show one."""
    folds = folds_of(problem)
    ours: dict[int, list[float]] = {1: [], THREADS: []}
    theirs: dict[str, list[Outcome]] = {}
    with Stored(problem, folds) as stored:
        path = None
        for _ in range(options.repeat):
            for n_jobs, times in ours.items():
                seconds, found = search_hinge(problem, loss, folds, n_jobs)
                times.append(seconds)
            path = path or stored.write(found.Cs)
            for name, outcome in race(stored, path, loss, found.Cs, options, theirs):
                theirs.setdefault(name, []).append(outcome)
    one, two = (median(times) for times in ours.values())
    start = {"set": problem.name, "loss": loss}
    for n_jobs, seconds in ((1, one), (THREADS, two)):
        chosen = {"C": found.best_C, "accuracy": found.best_score, "n_Cs": len(found.Cs)}
        report.add(**start, tool="hinge", threads=n_jobs, seconds=seconds, **chosen, **effort(found))
    for name, outcomes in theirs.items():
        threads = 1 if name == "liblinear" else THREADS
        report.add(**start, tool=name, threads=threads, **their_columns(outcomes, one, two))
    tables = {"hinge": found.scores}
    tables |= {name: runs[-1].scores for name, runs in theirs.items() if runs[-1].scores is not None}
    return cold.Tables(found.Cs, tables)


def race(
    stored: Stored, path, loss: str, Cs, options, before: dict[str, list[Outcome]]
) -> Iterator[tuple[str, Outcome]]:
    """One run of every rival; whoever was too slow is not run again."""

    def due(name: str) -> bool:
        return name in options.rivals and all(outcome.finished for outcome in before.get(name, []))

    editions = {"liblinear": (sys.executable, 1), "multicore": (options.multicore, THREADS)}
    for name, (python, threads) in editions.items():
        if due(name):
            yield name, rivals.search_liblinear(stored, path, python, loss, TOL, threads, options.limit)
    if loss != "logistic" or options.classes:
        return
    n_features = stored.problem.X.shape[1]
    for solver in rivals.SKLEARN_SOLVERS:
        if due(solver):
            yield solver, rivals.search_sklearn(path, solver, n_features, Cs, THREADS, options.limit)


def their_columns(outcomes: list[Outcome], one: float, two: float) -> dict:
    """Times, ratios and the choice of a rival."""
    last = outcomes[-1]
    if not np.isfinite(last.seconds):
        return {"note": last.note}
    if not last.finished:
        limits = {"seconds": last.seconds, "ratio_1": last.seconds / one, "ratio_2": last.seconds / two}
        return {name: f">{value:.4g}" for name, value in limits.items()} | {"note": last.note, "n_Cs": last.count}
    seconds = median(outcome.seconds + outcome.convert for outcome in outcomes)
    return {
        "seconds": seconds,
        "of_it_convert": median(outcome.convert for outcome in outcomes) or None,
        "ratio_1": seconds / one,
        "ratio_2": seconds / two,
        "C": last.C,
        "accuracy": last.accuracy,
        "n_Cs": last.count,
        "note": last.note or None,
    }


def command_line() -> argparse.Namespace:
    """Options; the multi-core edition is left out, with a word, where it is not found."""
    everybody = ("liblinear", "multicore", *rivals.SKLEARN_SOLVERS)
    parse = parser(__doc__, SETS, losses=tuple(rivals.LIBLINEAR_SOLVERS), Cs=())
    parse.set_defaults(limit=600.0)
    parse.add_argument("--rivals", type=lambda text: text.split(","), default=list(everybody), help="whom to run")
    parse.add_argument("--multicore", default=str(rivals.MULTICORE_PYTHON), help="a Python with liblinear-multicore")
    parse.add_argument("--check", action="store_true", help="compare all tables with cold fits to a gap of 1e-8")
    parse.add_argument("--classes", action="store_true", help="all classes, one against the rest")
    options = arguments(parse)
    unknown = set(options.rivals) - {*everybody, "none"}
    if unknown:
        parse.error(f"--rivals must be of {', '.join(everybody)} or none, got {', '.join(sorted(unknown))}")
    if "multicore" in options.rivals and not rivals.has_liblinear(options.multicore):
        print(f"# multi-core LIBLINEAR left out: {options.multicore} does not have it, see make bench-search")
        options.rivals.remove("multicore")
    return options


def main() -> None:
    """Command line."""
    options = command_line()
    note = f"median of {options.repeat}, limit {options.limit:g} s, {FOLDS} folds, no intercept, eps {TOL:g}"
    note += ", all classes" if options.classes else ""
    report = Report(COLUMNS, options.output, note)
    verdicts = []
    for name in options.sets:
        problem = Problem(name, *problems.load_labels(name)) if options.classes else problems.load(name)
        for loss in options.losses:
            tables = compare(problem, loss, options, report)
            if options.check:
                verdicts.append((problem, loss, tables))
    if verdicts:
        cold.check(verdicts, folds_of, options.output)


if __name__ == "__main__":
    main()
