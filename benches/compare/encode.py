"""Encoding tables beside scikit-learn's encoders: seconds, rows and megabytes a second, and that both agree.

    python encode.py                                       # all tasks, one thread and two
    python encode.py --tasks imdb-hashed flights-counted --repeats 5 --rows 20000

Both get the same rows: texts as a list of strings, categories as a data frame of pandas (strings). Ours is also given a
polars frame, whose strings are Arrow's already. Times are medians of the processor time of the whole process, for
two threads of the wall clock; every result of ours is compared with the rival's, entry by entry.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import os
import statistics
import time
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import hinge
import numpy as np
import pandas as pd
import polars as pl
import problems  # noqa: F401, it sets the path of the data
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder

CATEGORIES = 10
"""Columns of the flights that are encoded."""


@dataclass
class Task:
    """A table, and both encoders of it."""

    table: dict[str, Any]
    encoder: hinge.TableEncoder
    rival: Any
    rival_input: Any
    is_counted: bool
    megabytes: float

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(next(iter(self.table.values())))


def data() -> Path:
    """The folder of the data."""
    return Path(os.environ["HINGE_DATA"])


@cache
def reviews(n: int | None) -> list[str]:
    """Movie reviews."""
    with gzip.open(data() / "imdb/imdb_train.tsv.gz", "rt", encoding="utf8", newline="\n") as lines:
        return [line.rstrip("\n").split("\t")[-1] for line in islice(lines, n)]


@cache
def paths(n: int | None) -> list[str]:
    """Paths of files."""
    with lzma.open(
        data() / "debian_contents/debian_contents_paths.tsv.xz", "rt", encoding="utf8", newline="\n"
    ) as lines:
        return [line.rstrip("\n").split("\t")[2] for line in islice(lines, n or 200_000)]


@cache
def flights(n: int | None) -> dict[str, list[str]]:
    """Fields of flights, all as strings."""
    with lzma.open(data() / "flights/flights.tsv.xz", "rt", encoding="utf8", newline="\n") as lines:
        names = next(lines).rstrip("\n").split("\t")
        rows = [line.rstrip("\n").split("\t") for line in islice(lines, n or 300_000)]
    kept = [k for k, name in enumerate(names) if name not in ("DepDel15", "ArrDel15", "Cancelled")][:CATEGORIES]
    return {names[k]: [row[k] for row in rows] for k in kept}


def text_task(texts: list[str], options: dict[str, Any], rival: Any, numbering: str) -> Task:
    """A column of texts."""
    encoder = hinge.TableEncoder({"text": {"kind": "text", **options}}, numbering=numbering)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    return Task({"text": texts}, encoder, rival, texts, numbering == "counted", megabytes)


def table_task(n: int | None, numbering: str) -> Task:
    """Categories."""
    table = flights(n)
    encoder = hinge.TableEncoder(dict.fromkeys(table, "categorical"), numbering=numbering)
    megabytes = sum(len(value) for values in table.values() for value in values) / 1e6
    if numbering == "hashed":
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        return Task(table, encoder, FeatureHasher(), rows, False, megabytes)
    names = list(table)
    rival = ColumnTransformer([("all", OneHotEncoder(handle_unknown="ignore"), names)])
    return Task(table, encoder, rival, pd.DataFrame(table), True, megabytes)


TASKS = {
    "imdb-hashed": lambda n: text_task(reviews(n), {"ngrams": (1, 2)}, HashingVectorizer(ngram_range=(1, 2)), "hashed"),
    "imdb-words-hashed": lambda n: text_task(reviews(n), {}, HashingVectorizer(), "hashed"),
    "imdb-counted": lambda n: text_task(reviews(n), {"ngrams": (1, 2)}, TfidfVectorizer(ngram_range=(1, 2)), "counted"),
    "paths-hashed": lambda n: text_task(
        paths(n),
        {"analyzer": "char", "ngrams": (3, 5)},
        HashingVectorizer(analyzer="char", ngram_range=(3, 5)),
        "hashed",
    ),
    "flights-hashed": lambda n: table_task(n, "hashed"),
    "flights-counted": lambda n: table_task(n, "counted"),
}


def timed(work: Any, table: Any, clock: Any, repeats: int) -> tuple[float, Any]:
    """Median seconds, and the last result."""
    seconds, result = [], None
    for _ in range(repeats):
        result = None
        started = clock()
        result = work(table)
        seconds.append(clock() - started)
    return statistics.median(seconds), result


def distance(a: Any, b: Any) -> float:
    """Largest difference of two matrices of one shape."""
    if a.shape != b.shape:
        return np.inf
    difference = abs(sp.csr_matrix(a) - sp.csr_matrix(b).astype(np.float64))
    return float(difference.max()) if difference.nnz else 0.0


def measure(name: str, task: Task, repeats: int) -> None:
    """Print a line for each step of a task."""
    frame = pl.DataFrame(task.table)
    pandas = pd.DataFrame(task.table)
    inputs = {"list" if "text" in task.table else "pandas": task.table if "text" in task.table else pandas}
    inputs["polars"] = frame
    steps = ["fit_transform", "transform"] if task.is_counted else ["transform"]
    for step in steps:
        rival_seconds, expected = timed(getattr(task.rival, step), task.rival_input, time.process_time, 1)
        for kind, table in inputs.items():
            for threads, clock in ((1, time.process_time), (2, time.perf_counter)):
                encoder = task.encoder.set_params(n_jobs=threads)
                if step == "transform":
                    encoder.fit(table)
                seconds, found = timed(getattr(encoder, step), table, clock, repeats)
                print(
                    f"{name:18} {step:13} {kind:6} {threads} {seconds:8.3f} s {task.megabytes / seconds:7.0f} MB/s "
                    f"{task.n_rows / seconds:10,.0f} rows/s   rival {rival_seconds:7.2f} s "
                    f"{rival_seconds / seconds:6.1f}x   differs by {distance(expected, found):.1e}",
                    flush=True,
                )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--rows", type=int, default=None, help="rows of each table")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for name in options.tasks:
        measure(name, TASKS[name](options.rows), options.repeats)


if __name__ == "__main__":
    main()
