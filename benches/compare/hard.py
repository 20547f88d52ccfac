"""Whether a fit of an ill-conditioned set ends in time at every C, with the gap asked for or with the truth about it.

madelon as it comes has values near 480: coordinate descent needs thousands of passes, and LIBLINEAR's ends anywhere.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import problems
import tasks
from harness import Report, names
from process import Contestant, Stored
from roster import roster

EXPONENTS = range(-10, 11, 2)
MET, LATE, SHORT = "yes", "LATE", "short"

COLUMNS = {
    "set": ">10",
    "loss": ">13",
    "C": ">10.6g",
    "threads": ">2d",
    "seconds": ">9.4g",
    "claimed_gap": ">9.1e",
    "objective": ">16.10g",
    "met": ">6",
    "status": ">22",
}


def measure(name: str, options: argparse.Namespace, report: Report) -> None:
    """Rows of a set."""
    task = tasks.load(name)
    entry = roster()["hinge"]
    with Stored(task) as stored, Contestant("hinge", entry.python, 1, entry.warm_solver, stored) as contestant:
        for loss in options.losses:
            for C in (2.0**k for k in EXPONENTS):
                run = contestant.fit(loss, "auto", C, options.tol, options.limit)
                row = {"set": name, "loss": loss, "C": C, "threads": 1, "seconds": run.seconds, "status": run.status}
                if run.W is None:
                    report.add(**row, met=LATE)
                else:
                    met = MET if run.claimed <= options.tol else SHORT
                    report.add(**row, claimed_gap=run.claimed, objective=task.objective(loss, C, run.W), met=met)


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=["madelon"])
    parse.add_argument("--losses", type=names, default=list(problems.LOSSES))
    parse.add_argument("--tol", type=float, default=1e-4, help="certified relative gap")
    parse.add_argument("--limit", type=float, default=60.0, help="seconds after which a fit is stopped")
    parse.add_argument("--output", type=Path, help="CSV file to write")
    options = parse.parse_args()
    report = Report(COLUMNS, options.output, f"tol {options.tol:g}, stopped after {options.limit:g} s")
    for name in options.sets:
        measure(name, options, report)
    count = {met: sum(row["met"] == met for row in report.rows) for met in (MET, SHORT, LATE)}
    print(f"{count[MET]} fits met the gap, {count[SHORT]} ended without and said so, {count[LATE]} were stopped")


if __name__ == "__main__":
    main()
