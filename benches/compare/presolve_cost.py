"""What presolve costs, in copies of the matrix.

A fit with so large a tolerance that it ends at once, with presolve and without: the difference is the presolve with
the mapping back of the weights. Beside it the time of ``X.copy()``, on fresh memory as presolve has it.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import hinge
import tasks
from harness import Report, names

# At this C the start is as good as the optimum, so that a fit does no more than look at the data.
LOOSE = {"loss": "squared_hinge", "tol": 0.99, "max_iter": 1, "fit_intercept": False, "solver": "newton"}

COLUMNS = {
    "set": ">13",
    "nnz": ">10d",
    "nnz_out": ">10d",
    "columns": ">9d",
    "columns_out": ">9d",
    "threads": ">2d",
    "copy_s": ">8.4f",
    "with_s": ">8.4f",
    "without_s": ">8.4f",
    "presolve_s": ">8.4f",
    "copies": ">7.2f",
}


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call whose result is freed before."""
    gc.collect()
    started = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - started
    del result
    return seconds


def measure(name: str, repeat: int, report: Report) -> None:
    """Rows of a set."""
    task = tasks.load(name)
    for threads in (1, 2):
        fits = {p: hinge.LinearSVC(1e-9, presolve=p, n_jobs=threads, **LOOSE) for p in (True, False)}
        seconds: dict[str, list[float]] = {"copy": [], "with": [], "without": []}
        for _ in range(repeat):
            seconds["copy"].append(timed(task.X.copy))
            seconds["with"].append(timed(partial(fits[True].fit, task.X, task.y)))
            seconds["without"].append(timed(partial(fits[False].fit, task.X, task.y)))
        copy, packed, plain = (median(seconds[key]) for key in ("copy", "with", "without"))
        done = fits[True].presolve_
        report.add(
            set=name,
            nnz=done.nnz_in,
            nnz_out=done.nnz_out,
            columns=done.n_features_in,
            columns_out=done.n_columns,
            threads=threads,
            copy_s=copy,
            with_s=packed,
            without_s=plain,
            presolve_s=packed - plain,
            copies=(packed - plain) / copy,
        )


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=["imdb", "phishing_urls", "flights"])
    parse.add_argument("--repeat", type=int, default=5, help="the median counts")
    parse.add_argument("--output", type=Path, help="CSV file to write")
    options = parse.parse_args()
    report = Report(COLUMNS, options.output, f"median of {options.repeat}; copies: presolve in X.copy()")
    for name in options.sets:
        measure(name, options.repeat, report)


if __name__ == "__main__":
    main()
