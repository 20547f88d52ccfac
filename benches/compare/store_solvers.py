"""Fits on a block store within a memory limit: dual descent block by block against Newton's method on its pieces.

Both on one thread, from the store of a set that does not fit ``--share`` of its entries at 8 bytes each beside what is
known of its rows; ``ratio`` is the time of the descent over Newton's.

    python benches/compare/store_solvers.py --sets a9a,covtype,flights --output table.csv
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
from engines import hinge_model
from harness import Report, names
from sklearn.exceptions import ConvergenceWarning
from tightness import numbers

LOSSES = ("squared_hinge", "logistic", "hinge")
SOLVERS = {"auto": "descent", "newton": "newton"}
# Bytes of what is known of a row, of a column, and of page buffers.
OF_ROW, OF_COLUMN, OF_PAGES = 160, 320, 14_000_000

COLUMNS = {
    "set": ">10",
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


def measure(name: str, options: argparse.Namespace, report: Report) -> None:
    """Rows of a set."""
    task = tasks.load(name)
    y = np.where(task.y == task.classes[0], 1.0, -1.0)
    (n, d), entries = task.X.shape, task.X.nnz
    budget = int(8 * options.share * entries) + OF_ROW * n + OF_COLUMN * d + OF_PAGES
    with tempfile.TemporaryDirectory() as folder:
        store = hinge.BlockStore.build((task.X, y), Path(folder) / "rows.blocks")
        for loss, C, intercept, tol in product(options.losses, options.Cs, options.intercepts, options.tols):
            row: dict[str, float] = {}
            for solver, column in SOLVERS.items():
                model = hinge_model(loss, C, intercept, solver, tol, n_jobs=1, memory_budget=budget)
                model.set_params(block_options={"in_memory": False}, max_iter=100_000)
                start = time.perf_counter()
                model.fit(store)
                row[column] = time.perf_counter() - start
                row[f"{column}_gap"] = float(model.certificate_.relative_gap[0])
            ratio = row["descent"] / row["newton"]
            report.add(set=name, loss=loss, C=C, intercept=intercept, tol=tol, ratio=ratio, **row)


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=["a9a", "covtype", "flights"], help="comma-separated sets")
    parse.add_argument("--losses", type=names, default=list(LOSSES), help="comma-separated losses")
    parse.add_argument("--Cs", type=numbers, default=[0.25, 4.0], help="comma-separated values of C")
    parse.add_argument("--intercepts", type=names, default=["free"], help="of none, free, penalised")
    parse.add_argument("--tols", type=numbers, default=[1e-2, 1e-4], help="certified gaps asked for")
    parse.add_argument("--share", type=float, default=0.5, help="share of the entries that the budget has room for")
    parse.add_argument("--output", type=Path, help="CSV file to write")
    options = parse.parse_args()
    if problems.data_root() is None and any(tasks.needs_data(name) for name in options.sets):
        print("skipped: no data sets, set HINGE_DATA to their folder")
        return
    warnings.simplefilter("ignore", ConvergenceWarning)
    report = Report(COLUMNS, options.output, "one thread")
    for name in options.sets:
        measure(name, options, report)


if __name__ == "__main__":
    main()
