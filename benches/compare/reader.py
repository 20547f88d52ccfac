"""How fast svmlight files are read: this package on one thread and two, scikit-learn, LIBLINEAR's Python reader.

The file is written before and read once, so that it is warm; then everybody reads it in turn, twice in a row, and the
medians of second readings count: the first after a pause also waits for memory that the system has to find again (on a
virtual machine 0.3 s became 0.8). All have to find the same matrix.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import hinge
import numpy as np
import tasks
from harness import Report, names
from liblinear import liblinearutil
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

COLUMNS = {"set": ">13", "mb": ">8.1f", "reader": ">14", "seconds": ">9.4g", "mb_per_s": ">8.1f", "ratio": ">7.2f"}


def readers(path: str) -> dict[str, Callable]:
    """Everybody's reading of a file, ourselves on one thread first."""
    return {
        "hinge 1": lambda: hinge.load_svmlight(path, n_jobs=1)[0],
        "hinge 2": lambda: hinge.load_svmlight(path, n_jobs=2)[0],
        "scikit-learn": lambda: load_svmlight_file(path)[0],
        "liblinear": lambda: liblinearutil.svm_read_problem(path, return_scipy=True)[1],
    }


def measure(name: str, repeat: int, skip: list[str], report: Report) -> None:
    """Rows of a set."""
    task = tasks.load(name)
    with tempfile.TemporaryDirectory(prefix="hinge-bench-") as folder:
        path = Path(folder) / "rows.svm"
        dump_svmlight_file(task.X, task.y, str(path), zero_based=False)
        megabytes = len(path.read_bytes()) / 1e6
        chosen = {key: read for key, read in readers(str(path)).items() if key not in skip}
        seconds: dict[str, list[float]] = {key: [] for key in chosen}
        for _ in range(repeat):
            for key, read in chosen.items():
                read()
                started = time.perf_counter()
                X = read()
                seconds[key].append(time.perf_counter() - started)
                if X.nnz != task.X.nnz or not np.isclose(X.sum(), task.X.sum(dtype=np.float64), rtol=1e-5):
                    raise AssertionError(f"{key} reads another matrix")
    ours = median(seconds["hinge 1"])
    for key, values in seconds.items():
        taken = median(values)
        rate = {"seconds": taken, "mb_per_s": megabytes / taken, "ratio": taken / ours}
        report.add(set=name, mb=megabytes, reader=key, **rate)


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=["imdb", "phishing_urls", "covtype", "zipf-1e6"])
    parse.add_argument("--repeat", type=int, default=3, help="the median counts")
    parse.add_argument("--skip", type=names, default=[], help="readers to leave out, comma-separated")
    parse.add_argument("--output", type=Path, help="CSV file to write")
    options = parse.parse_args()
    report = Report(COLUMNS, options.output, f"warm file, median of {options.repeat}; ratio: to hinge on one thread")
    for name in options.sets:
        measure(name, options.repeat, options.skip, report)


if __name__ == "__main__":
    main()
