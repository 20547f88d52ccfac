"""Searches for C in memory by each solver: dual descent to the end, Newton's method from the start, and "auto".

Five folds, one thread, free intercept, everything else by its defaults. ``ratio`` is the time of the descent over that
of the row; a search over ``--limit`` is stopped there, with fewer values of C (``n_Cs``) and a ratio that is a bound.

    python benches/compare/search_solvers.py --sets a9a,w8a,covtype --losses hinge --output table.csv
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import hinge
import numpy as np
import problems
import tasks
from harness import Report, names

SETS = ("ijcnn1_val", "a9a", "w8a", "covtype", "mnist", "madelon")
SOLVERS = ("dual_cd", "newton", "auto")

COLUMNS = {
    "set": ">10",
    "loss": ">13",
    "solver": ">8",
    "seconds": ">9.2f",
    "ratio": ">6.2f",
    "n_Cs": ">5d",
    "passes": ">9.0f",
    "C": ">10.4g",
    "score": ">8.4f",
}


def measure(name: str, options: argparse.Namespace, report: Report) -> None:
    """Rows of a set."""
    task = tasks.load(name)
    y = np.where(task.y == task.classes[0], 1.0, -1.0)
    for loss in options.losses:
        seconds: dict[str, float] = {}
        for solver in SOLVERS:
            start = time.perf_counter()
            found = hinge.select_C(task.X, y, loss=loss, solver=solver, n_jobs=1, time_limit=options.limit)
            seconds[solver] = time.perf_counter() - start
            effort = {"n_Cs": len(found.Cs), "passes": float(np.sum(found.passes))}
            chosen = {"C": found.best_C, "score": found.best_score}
            row = {"seconds": seconds[solver], "ratio": seconds["dual_cd"] / seconds[solver]}
            report.add(set=name, loss=loss, solver=solver, **row, **effort, **chosen)


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=list(SETS), help="comma-separated sets")
    parse.add_argument("--losses", type=names, default=["hinge"], help="comma-separated losses")
    parse.add_argument("--limit", type=float, default=600.0, help="seconds after which a search is stopped")
    parse.add_argument("--output", type=Path, help="CSV file to write")
    options = parse.parse_args()
    if problems.data_root() is None and any(tasks.needs_data(name) for name in options.sets):
        print("skipped: no data sets, set HINGE_DATA to their folder")
        return
    # Partial searches show by their number of values; that a set teaches nothing does not matter here.
    warnings.simplefilter("ignore")
    report = Report(COLUMNS, options.output, "one thread")
    for name in options.sets:
        measure(name, options, report)


if __name__ == "__main__":
    main()
