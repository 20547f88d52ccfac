"""How time and memory of a fit grow with the nonzeros: synthetic documents of growing size, the same C for each row.

Sizes grow tenfold. The exponent is the slope of log time over log nonzeros (least squares), over all sizes and over
those of a million nonzeros and more, where what every fit costs is small. Memory is the peak beside the matrix.

    python growth.py --largest 1e8 --output growth.csv
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import problems
import tasks
from harness import Report, names
from process import Contestant, Stored
from roster import roster

SMALLEST = 1e5
LARGE = 1e6
C, TOL = 1.0, 1e-4

COLUMNS = {
    "nnz": ">10d",
    "rows": ">9d",
    "columns": ">9d",
    "loss": ">13",
    "threads": ">2d",
    "seconds": ">9.4g",
    "ns_per_nnz": ">8.2f",
    "peak_bytes_per_nnz": ">8.2f",
    "claimed_gap": ">9.1e",
    "status": ">10",
}


def sizes(largest: float) -> list[float]:
    """Powers of ten up to the largest."""
    return [SMALLEST * 10**k for k in range(round(math.log10(largest / SMALLEST)) + 1)]


def measure(nnz: float, options: argparse.Namespace, report: Report) -> None:
    """Fits of every loss with one thread and with two on one size."""
    task = tasks.load(f"zipf-{nnz:g}")
    entry = roster()["hinge"]
    size = {"nnz": task.X.nnz, "rows": task.X.shape[0], "columns": task.X.shape[1]}
    with Stored(task) as stored:
        for threads in entry.threads:
            with Contestant(entry.worker, entry.python, threads, entry.warm_solver, stored) as contestant:
                for loss in options.losses:
                    run = contestant.fit(loss, "auto", C, TOL, options.limit)
                    report.add(**size, loss=loss, threads=threads, **figures(run, task.X.nnz))


def figures(run, nnz: int) -> dict:
    """The columns that are measured."""
    if run.W is None:
        return {"seconds": f">{run.seconds:.3g}", "status": run.status}
    return {
        "seconds": run.seconds,
        "ns_per_nnz": 1e9 * run.seconds / nnz,
        "peak_bytes_per_nnz": run.peak / nnz,
        "claimed_gap": run.claimed,
        "status": run.status,
    }


def exponent(rows: list[dict]) -> float:
    """Slope of log time over log nonzeros; NaN for fewer than two sizes."""
    if len(rows) < 2:
        return math.nan
    return float(np.polyfit(*(np.log([row[key] for row in rows]) for key in ("nnz", "seconds")), 1)[0])


def summary(rows: list[dict]) -> None:
    """Print the exponents."""
    for loss, threads in dict.fromkeys((row["loss"], row["threads"]) for row in rows):
        mine = [r for r in rows if (r["loss"], r["threads"]) == (loss, threads) and isinstance(r["seconds"], float)]
        large = [row for row in mine if row["nnz"] > LARGE / 2]
        print(f"{loss}, {threads} threads: exponent {exponent(mine):.3f}, from {LARGE:g} on {exponent(large):.3f}")


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--largest", type=float, default=1e7, help="nonzeros of the largest set; 1e8 needs 6 GB")
    parse.add_argument("--losses", type=names, default=list(problems.LOSSES))
    parse.add_argument("--limit", type=float, default=300.0, help="seconds after which a fit is stopped")
    parse.add_argument("--output", type=Path, help="CSV file to write")
    options = parse.parse_args()
    report = Report(COLUMNS, options.output, f"C {C:g}, certified gap {TOL:g}, presolve included")
    for nnz in sizes(options.largest):
        measure(nnz, options, report)
    summary(report.rows)


if __name__ == "__main__":
    main()
