"""Fits on a block store within a memory limit: dual descent block by block against Newton's method on its pieces.

Both on one thread, from the store of a set, of which ``--share`` of the entries fit at 8 bytes each beside what is
known of its rows, or within each of ``--budgets``; ``ratio`` is the time of the descent over Newton's. With
``--search`` the whole search for C, five folds, by its defaults.

    python benches/compare/store_solvers.py --sets a9a,covtype,flights --output table.csv
    python benches/compare/store_solvers.py --search --losses squared_hinge,logistic
    python benches/compare/store_solvers.py --sets flights --Cs 16 --tols 1e-2 --budgets 120MB,60MB,45MB
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path

import hinge
import numpy as np
import problems
import tasks
from arenas import fit_budget, search_budget
from engines import hinge_model
from harness import Report, names
from sklearn.exceptions import ConvergenceWarning
from tightness import numbers

LOSSES = ("squared_hinge", "logistic", "hinge")
SOLVERS = {"dual_cd": "descent", "newton": "newton"}

COLUMNS = {
    "set": ">10",
    "budget": ">8",
    "loss": ">13",
    "C": ">8.4g",
    "intercept": ">9",
    "tol": ">7.0e",
    "descent": ">9.2f",
    "newton": ">9.2f",
    "ratio": ">6.1f",
    "descent_gap": ">11.1e",
    "newton_gap": ">11.1e",
}

SEARCH_COLUMNS = {
    "set": ">10",
    "budget": ">8",
    "loss": ">13",
    "descent": ">9.2f",
    "newton": ">9.2f",
    "ratio": ">6.1f",
    "descent_C": ">10.4g",
    "newton_C": ">10.4g",
    "descent_score": ">14.4f",
    "newton_score": ">13.4f",
}


def measure(name: str, options: argparse.Namespace, report: Report) -> None:
    """Rows of a set."""
    task = tasks.load(name)
    y = np.where(task.y == task.classes[0], 1.0, -1.0)
    of_share = (search_budget if options.search else fit_budget)(task.X, options.share)
    budgets = options.budgets or [f"{of_share / 1e6:.0f}MB"]
    with tempfile.TemporaryDirectory() as folder:
        store = hinge.BlockStore.build((task.X, y), Path(folder) / "rows.blocks")
        if options.search:
            for budget, loss in product(budgets, options.losses):
                report.add(set=name, budget=budget, loss=loss, **searched(store, loss, budget))
            return
        asked = product(budgets, options.losses, options.Cs, options.intercepts, options.tols)
        for budget, loss, C, intercept, tol in asked:
            row: dict[str, float] = {}
            for solver, column in SOLVERS.items():
                model = hinge_model(loss, C, intercept, solver, tol, n_jobs=1, memory_budget=budget)
                model.set_params(block_options={"in_memory": False}, max_iter=100_000)
                start = time.perf_counter()
                model.fit(store)
                row[column] = time.perf_counter() - start
                row[f"{column}_gap"] = float(model.certificate_.relative_gap[0])
            ratio = row["descent"] / row["newton"]
            report.add(set=name, budget=budget, loss=loss, C=C, intercept=intercept, tol=tol, ratio=ratio, **row)


def searched(store: hinge.BlockStore, loss: str, budget: str) -> dict[str, float]:
    """Seconds, C and its score by both solvers."""
    row: dict[str, float] = {}
    for solver, column in SOLVERS.items():
        start = time.perf_counter()
        found = hinge.select_C(
            store, loss=loss, cv=5, solver=solver, n_jobs=1, memory_budget=budget, block_options={"in_memory": False}
        )
        row |= {column: time.perf_counter() - start, f"{column}_C": found.C, f"{column}_score": found.best_score}
    return row | {"ratio": row["descent"] / row["newton"]}


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=["a9a", "covtype", "flights"], help="comma-separated sets")
    parse.add_argument("--losses", type=names, default=list(LOSSES), help="comma-separated losses")
    parse.add_argument("--Cs", type=numbers, default=[0.25, 4.0], help="comma-separated values of C")
    parse.add_argument("--intercepts", type=names, default=["free"], help="of none, free, penalised")
    parse.add_argument("--tols", type=numbers, default=[1e-2, 1e-4], help="certified gaps asked for")
    parse.add_argument("--share", type=float, default=0.5, help="share of the entries that the budget has room for")
    parse.add_argument("--budgets", type=names, help="comma-separated values of memory_budget in place of --share")
    parse.add_argument("--search", action="store_true", help="searches for C in place of fits")
    parse.add_argument("--output", type=Path, help="CSV file to write")
    options = parse.parse_args()
    if problems.data_root() is None and any(tasks.needs_data(name) for name in options.sets):
        print("skipped: no data sets, set HINGE_DATA to their folder")
        return
    warnings.simplefilter("ignore", ConvergenceWarning)
    report = Report(SEARCH_COLUMNS if options.search else COLUMNS, options.output, "one thread")
    for name in options.sets:
        measure(name, options, report)


if __name__ == "__main__":
    main()
