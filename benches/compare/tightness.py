"""How much of a reported gap is true: the certified gap of fits over their distance to the optimum, and their time.

For every set, loss, C, intercept and tolerance one fit on one thread. The distance is that of the objective to the dual
value of a fit to ``--reference``, so that it is never too small, and no ratio too large. A fit that reports 100 times
its distance has gone on long after it was done. ``seconds`` is processor time, the least of ``--repeat`` runs.

    python benches/compare/tightness.py --sets a9a,w8a,covtype,flights --output table.csv
    python benches/compare/tightness.py --arena shards --shards 4 --sets covtype
    python benches/compare/tightness.py --arena store --losses multinomial --sets 20news,sector

Rows are in memory, in shards of this process (as in ``benches/cluster_rounds.py``) or in a store of which ``--share``
fits the memory it may take; the fit that stands for the optimum has them in memory. Sets of several classes are their
first against the rest, but for the loss "multinomial", which has them all.

With ``--against FOLDER``, the folder ``python`` of another version that is built, both versions run in turns, each in a
process of its own, and ``speed`` is how many times as fast this one comes to a gap that is at most the tolerance.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import arenas
import numpy as np
import problems
import tasks
from engines import MULTINOMIAL, hinge_model
from harness import Report, names

SETS = ("a9a", "w8a", "covtype", "flights")
LOSSES = ("squared_hinge", "logistic")
# What median and worst ratio should be at most.
MEDIAN, WORST = 10.0, 100.0

COLUMNS = {
    "set": ">10",
    "loss": ">13",
    "C": ">9.5g",
    "intercept": ">9",
    "tol": ">7.0e",
    "version": ">9",
    "solver": ">8",
    "status": ">10",
    "seconds": ">9.4f",
    "passes": ">8.1f",
    "gap": ">9.1e",
    "distance": ">9.1e",
    "ratio": ">9.1f",
    "speed": ">6.2f",
}


def numbers(text: str) -> list[float]:
    """The numbers of a comma-separated list."""
    return [float(part) for part in names(text)]


# ---- the process that fits


def serve(name: str, shards: int, share: float) -> None:
    """Answers requests, a line of JSON each, by fits of the set of this name."""
    task = tasks.load(name)
    is_binary = len(task.classes) == 1
    y = np.where(task.y == (task.classes[-1] if is_binary else task.classes[0]), 1.0, -1.0)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    with ExitStack() as stack:

        @cache
        def fit_in(place: str, is_multinomial: bool) -> arenas.Fit:
            data = arenas.Data(task.X, task.y if is_multinomial else y, shards, share)
            return stack.enter_context(arenas.arena(place, data))

        for line in sys.stdin:
            request = json.loads(line)
            fit = fit_in(request["arena"], request["loss"] == MULTINOMIAL)
            asked = (request[key] for key in ("loss", "C", "intercept", "solver", "tol"))
            model = hinge_model(*asked, n_jobs=1, max_iter=100_000)
            answers.write(json.dumps(arenas.timed(fit, model, request["repeat"])) + "\n")


class Version:
    """A version of the package, in a process of its own."""

    def __init__(self, child: subprocess.Popen):
        self.child = child

    def fit(self, **request: Any) -> dict:
        """What a fit says of itself."""
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())


@contextmanager
def version_at(folder: Path | None, name: str, options: argparse.Namespace) -> Iterator[Version]:
    """The version whose folder ``python`` this is, the one that is imported here if None, on the set of this name."""
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    if folder is not None:
        environment["PYTHONPATH"] = str(folder.resolve())
    words = [sys.executable, str(Path(__file__).resolve()), "--serve", name]
    words += ["--shards", str(options.shards), "--share", str(options.share)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=environment) as child:
        yield Version(child)
        child.stdin.close()


# ---- the table


def measure(name: str, options: argparse.Namespace, report: Report) -> None:
    """Rows of a set."""
    folders = {"this": None} | ({"other": options.against} if options.against else {})
    with ExitStack() as stack:
        versions = {key: stack.enter_context(version_at(folder, name, options)) for key, folder in folders.items()}
        for loss, C, intercept in product(options.losses, options.Cs, options.intercepts):
            case = {"loss": loss, "C": C, "intercept": intercept}
            reference = {"solver": "auto", "tol": options.reference, "arena": "memory", "repeat": 1}
            tight = versions["this"].fit(**case, **reference)
            for tol in options.tols:
                asked = {"solver": options.solver, "tol": tol, "arena": options.arena, "repeat": options.repeat}
                found = {key: each.fit(**case, **asked) for key, each in versions.items()}
                for key, fit in found.items():
                    distance = (fit["primal"] - tight["dual"]) / tight["dual"]
                    speed = found["other"]["seconds"] / fit["seconds"] if "other" in found and key == "this" else None
                    report.add(
                        **case,
                        set=name,
                        tol=tol,
                        version=key,
                        distance=distance,
                        speed=speed,
                        **{column: fit[column] for column in ("solver", "status", "seconds", "passes", "gap")},
                        ratio=fit["gap"] / distance,
                    )


def summary(rows: list[dict]) -> Iterator[str]:
    """Median and worst of the ratios of each version, and the geometric mean of the speeds."""
    for key in dict.fromkeys(row["version"] for row in rows):
        ratios = [row["ratio"] for row in rows if row["version"] == key]
        speeds = [row["speed"] for row in rows if row["version"] == key and row["speed"] is not None]
        median, worst = statistics.median(ratios), max(ratios)
        late = sum(ratio > WORST for ratio in ratios)
        yield (
            f"{key} version: gap over distance {median:.1f} in the median (asked: {MEDIAN:g}), {worst:.0f} at worst "
            f"(asked: {WORST:g}; above it {late} of {len(ratios)})"
            + (f", {statistics.geometric_mean(speeds):.2f} times as fast" if speeds else "")
        )


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=list(SETS), help="comma-separated names of sets, or generated")
    parse.add_argument("--losses", type=names, default=list(LOSSES), help="comma-separated losses, or multinomial")
    parse.add_argument("--arena", choices=arenas.NAMES, default="memory", help="where the rows are")
    parse.add_argument("--shards", type=int, default=2, help="how many shards of the rows")
    parse.add_argument("--share", type=float, default=0.5, help="share of a store's entries that memory has room for")
    parse.add_argument("--Cs", type=numbers, default=[2.0**-6, 1.0, 16.0], help="comma-separated values of C")
    parse.add_argument("--intercepts", type=names, default=["none", "free"], help="of none, free, penalised")
    parse.add_argument("--tols", type=numbers, default=[1e-1, 1e-2, 1e-3, 1e-4, 1e-6], help="certified gaps asked for")
    parse.add_argument("--solver", default="auto", help="solver of the package")
    parse.add_argument("--reference", type=float, default=1e-11, help="gap of the fit that stands for the optimum")
    parse.add_argument("--repeat", type=int, default=3, help="runs of each fit")
    parse.add_argument("--against", type=Path, help="folder python of another version")
    parse.add_argument("--output", type=Path, help="CSV file to write")
    parse.add_argument("--serve", help=argparse.SUPPRESS)
    options = parse.parse_args()
    if options.arena == "shards" and MULTINOMIAL in options.losses:
        parse.error("shards have no multinomial fits: take hinge, squared_hinge or logistic")
    if options.serve:
        serve(options.serve, options.shards, options.share)
        return
    if problems.data_root() is None and any(tasks.needs_data(name) for name in options.sets):
        print("skipped: no data sets, set HINGE_DATA to their folder")
        return
    report = Report(COLUMNS, options.output, f"one thread, {options.arena}")
    for name in options.sets:
        measure(name, options, report)
    print("\n".join(summary(report.rows)))


if __name__ == "__main__":
    main()
