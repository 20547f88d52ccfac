"""Time, and memory, to a given accuracy of one fit: hinge against everybody else.

All start from the same float32 SciPy matrix, without intercept; every package runs in a process of its own and may
use its number of threads. Tolerances are swept from loose to tight, because no two packages mean the same by them;
what counts is the distance of the primal objective, computed here in float64, to the best objective that anybody
found. A fit over the time limit is stopped, and what it would have taken is more than that.

Every run becomes a row of the CSV file, which grows over calls: a case (set, loss, C, contestant) that is in it
is not run again. From the whole file come the summary and the table (.md beside it) and the picture (.png).

    python fit.py --sets a9a,w8a --output fit.csv
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import problems
import release
import roster
import standings
import tasks
from harness import describe, names
from process import Contestant, Run, Stored
from roster import Entry
from tasks import Task

SETS = (
    "german,ijcnn1_val,madelon,a9a,w8a,20news,sector,imdb,phishing_urls,flights,covtype,mnist,"
    "zipf-1e5,zipf-1e6,zipf-1e7"
)
COSTS = "0.015625,1,16"
FINEST = standings.GAPS[-1]
REFERENCE_TOL = 1e-9
# Packages do not all say when they are at their limit of iterations: a run that takes at least so many seconds, and
# whose distance is more than this share of the last but one's, will get no further; one that certifies the gap it was
# asked for is not at a limit, even if three tolerances in a row end at the same point.
STUCK_SECONDS, STUCK_SHARE = 0.2, 0.9


class Case:
    """One set, loss and C: what has been found so far, for deciding which runs can still matter."""

    def __init__(self, task: Task, loss: str, C: float, limit: float, done: list[standings.Row]):
        self.task, self.loss, self.C, self.limit = task, loss, C, limit
        # The best objective, and what it is proved not to be below: the highest value less its certified gap.
        self.best, self.floor = float("inf"), 0.0
        for row in done:
            self._learn(float(row["objective"] or "inf"), float(row["claimed_gap"] or 1.0))

    def sweep(self, entry: Entry, contestant: Contestant) -> Iterator[dict]:
        """Rows of all runs of a contestant, every solver until it can win nothing more."""
        quickest = float("inf")
        for solver in entry.applicable(self.loss, self.task):
            values: list[float] = []
            for tol in entry.tolerances:
                run = contestant.fit(self.loss, solver, self.C, tol, self.limit)
                yield self.row(entry, contestant, solver, tol, run)
                if run.W is None:
                    break
                values.append(self.value(run))
                if self._arrived(values[-1], run):
                    quickest = min(quickest, run.seconds)
                    break
                if run.seconds > quickest or self._stuck(values, run, tol):
                    break

    def _arrived(self, value: float, run: Run) -> bool:
        """Whether tighter tolerances are vain; our own fits cannot say so before the optimum is known."""
        settled = run.claimed is None or self.best <= self.floor * (1 + FINEST)
        return settled and value <= self.best * (1 + FINEST / 2)

    def _learn(self, value: float, claimed: float) -> None:
        if value < float("inf"):
            self.best = min(self.best, value)
            self.floor = max(self.floor, value * (1.0 - claimed))

    def _stuck(self, values: list[float], run: Run, tol: float) -> bool:
        if run.claimed is not None and run.claimed <= tol:
            return False
        far = [value - self.best for value in values[-3:]]
        return len(far) == 3 and run.seconds > STUCK_SECONDS and far[2] > STUCK_SHARE * far[0]

    def value(self, run: Run) -> float:
        """The objective of a run; what it tells of the optimum is remembered."""
        value = self.task.objective(self.loss, self.C, run.W)
        self._learn(value, 1.0 if run.claimed is None else run.claimed)
        return value

    def row(self, entry: Entry, contestant: Contestant, solver: object, tol: float, run: Run) -> dict:
        """A row of the CSV file."""
        X = self.task.X
        return {
            "set": self.task.name,
            "rows": X.shape[0],
            "columns": X.shape[1],
            "nnz": X.nnz,
            "problems": len(self.task.classes),
            "loss": self.loss,
            "C": self.C,
            "package": entry.name,
            "version": contestant.version,
            "threads": contestant.threads,
            "solver": solver,
            "tol": tol,
            "seconds": run.seconds,
            "convert_s": run.convert,
            "peak_bytes": run.peak,
            "objective": None if run.W is None else repr(self.value(run)),
            "claimed_gap": None if run.claimed is None else repr(run.claimed),
            "status": run.status,
        }


class Record:
    """The CSV file: comment lines that say when and with what, then a row for each run."""

    def __init__(self, path: Path | None):
        self.path = path
        self.rows = standings.read(path) if path is not None and path.exists() else []
        self._announced = False

    def extend(self, rows: Iterable[dict]) -> None:
        """Print runs as they come; append them to the file when they are complete."""
        done = []
        for row in rows:
            done.append({key: standings.plain(value) for key, value in row.items()})
            print(*(done[-1][key] for key in standings.SHOWN), flush=True)
        self.rows += done
        if self.path is None or not done:
            return
        fresh = not self.path.exists()
        with self.path.open("a", newline="", encoding="utf-8") as file:
            if not self._announced:
                file.write(f"# {describe()}\n")
                self._announced = True
            writer = csv.DictWriter(file, list(done[0]))
            if fresh:
                writer.writeheader()
            writer.writerows(done)

    def has(self, task: Task, loss: str, C: float, entry: Entry, threads: int) -> bool:
        """Whether these runs are done."""
        wanted = (task.name, loss, standings.plain(float(C)), entry.name, str(threads))
        return any(tuple(row[k] for k in ("set", "loss", "C", "package", "threads")) == wanted for row in self.rows)

    def of(self, task: Task, loss: str, C: float) -> list[standings.Row]:
        """The runs of a case."""
        wanted = (task.name, loss, standings.plain(float(C)))
        return [row for row in self.rows if tuple(row[k] for k in ("set", "loss", "C")) == wanted]


def run_set(name: str, entries: list[Entry], options: argparse.Namespace, record: Record) -> None:
    """All cases of a set."""
    task = tasks.load(name)
    with Stored(task) as stored, ExitStack() as stack:
        contestants = [
            (entry, stack.enter_context(contestant_of(entry, threads, stored)))
            for entry in entries
            for threads in entry.threads
            if threads in options.threads
        ]
        for loss in options.losses:
            for C in options.Cs:
                case = Case(task, loss, C, options.limit, record.of(task, loss, C))
                waiting = [(e, c) for e, c in contestants if not record.has(task, loss, C, e, c.threads)]
                if waiting and waiting[0][0].name == "hinge" and time.monotonic() < options.end:
                    reference(case, *waiting[0], options.reference_limit)
                for entry, contestant in waiting:
                    if time.monotonic() < options.end:
                        record.extend(case.sweep(entry, contestant))


def contestant_of(entry: Entry, threads: int, stored: Stored) -> Contestant:
    """The process of an entry."""
    return Contestant(entry.worker, entry.python, threads, entry.warm_solver, stored, entry.folder)


def reference(case: Case, entry: Entry, contestant: Contestant, limit: float) -> None:
    """A fit of ours far tighter than what is compared, only for its objective."""
    run = contestant.fit(case.loss, entry.applicable(case.loss, case.task)[0], case.C, REFERENCE_TOL, limit)
    if run.W is not None:
        case.value(run)


def numbers(text: str) -> list[float]:
    """The values of a comma-separated list."""
    return [float(part) for part in names(text)]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=names(SETS), help="names, comma-separated; zipf-1e6, generated")
    parse.add_argument("--losses", type=names, default=list(problems.LOSSES))
    parse.add_argument("--Cs", type=numbers, default=numbers(COSTS))
    parse.add_argument("--packages", type=names, help="who takes part, hinge among them; everybody by default")
    parse.add_argument(
        "--threads", type=numbers, default=[1, 2], help="who takes part by number of threads: 1, 2 or both"
    )
    parse.add_argument("--limit", type=float, default=60.0, help="seconds after which a fit is stopped")
    parse.add_argument("--reference-limit", type=float, default=60.0, help="the same for the reference of each case")
    parse.add_argument("--budget", type=float, default=float("inf"), help="seconds after which no sweep is begun")
    parse.add_argument("--multicore", default=roster.MULTICORE_PYTHON, help="Python with multi-core LIBLINEAR")
    parse.add_argument("--snapml", default=roster.SNAPML_PYTHON, help="Python with snapml")
    parse.add_argument("--release", help="a wheel of ours, or a Python that has one, to be measured beside")
    parse.add_argument("--output", type=Path, help="CSV file that grows; a summary and a picture go beside it")
    return parse


def main() -> None:
    """Run what is missing, then sum up everything in the file."""
    options = parser().parse_args()
    options.end = time.monotonic() + options.budget
    sets = [name for name in options.sets if problems.data_root() is not None or not tasks.needs_data(name)]
    if len(sets) < len(options.sets):
        print("no data sets: set HINGE_DATA to their folder; only generated ones are run")
    record = Record(options.output)
    with release.installed(options.release) as found:
        everybody = roster.roster(options.multicore, options.snapml, found)
        entries = roster.present(options.packages or list(everybody), everybody)
        for name in sets:
            run_set(name, entries, options, record)
    standings.publish(record.rows, options.output)


if __name__ == "__main__":
    main()
