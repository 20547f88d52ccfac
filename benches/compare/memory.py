"""Peak memory of one fit, or with ``--search`` of one search for C, beside its input.

Each runs in a process of its own: the float32 CSR matrix is loaded, the peak of the resident set is reset,
the call runs, and the growth of the peak is reported per nonzero (the input itself takes 8 bytes per
nonzero: a float32 and an int32). The budget is 1.1 times that, plus VECTORS vectors of float64 over the
rows and as many over the columns; a search may take SEARCH_VECTORS of them for each of its folds.
Needs Linux.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
from pathlib import Path

import engines
import hinge
import problems
from harness import Report, arguments, interrupted_after, parser

SETS = ("imdb", "flights", "covtype")
INPUT_BYTES = 8
SLACK = 1.1
VECTORS = 8
SEARCH_VECTORS = 6
FOLDS = 5
TOL, SEARCH_TOL = 1e-4, 1e-2

COLUMNS = {
    "set": ">10",
    "loss": ">13",
    "call": ">6",
    "C": ">9.5g",
    "threads": ">2d",
    "nnz": ">10d",
    "growth_mb": ">9.1f",
    "bytes_per_nnz": ">7.2f",
    "budget_per_nnz": ">7.2f",
    "vectors": ">6.1f",
    "within": ">6",
}


def resident(field: str) -> int:
    """Bytes of a field of this process's memory status, such as VmRSS or VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def settle() -> None:
    """Return freed memory to the system and reset the peak."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def call(problem: problems.Problem, loss: str, C: float | None, n_jobs: int) -> None:
    """The measured call: a fit at C, or a search if there is none."""
    if C is None:
        options = {"cv": FOLDS, "tol": SEARCH_TOL, "fit_intercept": False, "random_state": 0, "n_jobs": n_jobs}
        hinge.select_C(problem.X, problem.y, loss=loss, **options)
    else:
        model = engines.hinge_model(loss, C, "none", "auto", TOL, n_jobs=n_jobs)
        engines.fit_hinge(problem, model)


def measure(name: str, loss: str, C: float | None, n_jobs: int, limit: float) -> dict:
    """Growth of the peak over the loaded input, in this process."""
    # A tiny call first, so that code pages and threads are not counted.
    call(problems.load("german"), loss, C, n_jobs)
    problem = problems.load(name)
    settle()
    before = resident("VmRSS")
    try:
        with interrupted_after(limit):
            call(problem, loss, C, n_jobs)
    except TimeoutError:
        print(f"{name} {loss}: over the time limit, peak until then", file=sys.stderr)
    growth = resident("VmHWM") - before
    return {"growth": growth, "nnz": problem.X.nnz, "vector": 8 * sum(problem.X.shape)}


def measured_apart(*measurement: str | float | None) -> dict:
    """The same in a fresh process."""
    command = [sys.executable, __file__, "--child", json.dumps(measurement)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    sys.stderr.write(done.stderr)
    return json.loads(done.stdout)


def row(name: str, loss: str, C: float | None, n_jobs: int, limit: float) -> dict:
    """The table row of one call."""
    seen = measured_apart(name, loss, C, n_jobs, limit)
    growth, nnz, vector = seen["growth"], seen["nnz"], seen["vector"]
    values = SLACK * INPUT_BYTES * nnz
    budget = values + vector * (FOLDS * SEARCH_VECTORS if C is None else VECTORS)
    return {
        "set": name,
        "loss": loss,
        "call": "search" if C is None else "fit",
        "C": C,
        "threads": n_jobs,
        "nnz": nnz,
        "growth_mb": growth / 1e6,
        "bytes_per_nnz": growth / nnz,
        "budget_per_nnz": budget / nnz,
        "vectors": (growth - values) / vector,
        "within": "yes" if growth <= budget else "NO",
    }


def main() -> None:
    """Command line."""
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measure(*json.loads(sys.argv[2]))))
        return
    parse = parser(__doc__, SETS)
    parse.add_argument("--search", action="store_true", help="measure searches for C, not fits")
    options = arguments(parse)
    report = Report(COLUMNS, options.output, "growth of the peak resident set during the call")
    for name in options.sets:
        for loss in options.losses:
            for C in [None] if options.search else options.Cs:
                for n_jobs in (1, 2):
                    report.add(**row(name, loss, C, n_jobs, options.limit))


if __name__ == "__main__":
    main()
