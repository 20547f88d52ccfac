"""What the comparisons share: arguments, growing tables, CSV with a header line, time limits, versions."""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import problems

SETS = ("a9a", "w8a", "ijcnn1_val", "german", "madelon", "covtype", "20news", "imdb")
COSTS = (2.0**-8, 1.0, 16.0)
PACKAGES = ("hinge", "liblinear-official", "numpy", "scipy", "scikit-learn")


def parser(
    description: str,
    sets: Sequence[str] = SETS,
    losses: Sequence[str] = tuple(problems.LOSSES),
    Cs: Sequence[float] = COSTS,
) -> argparse.ArgumentParser:
    """An argument parser with the options that every comparison has; no values of C, no such option."""
    parse = argparse.ArgumentParser(description=description.splitlines()[0])
    parse.add_argument("--sets", type=names, default=list(sets), help="comma-separated names of data sets")
    parse.add_argument("--losses", type=names, default=list(losses), help="comma-separated losses")
    if Cs:
        parse.add_argument("--Cs", type=_numbers, default=list(Cs), help="comma-separated values of C")
    parse.add_argument("--repeat", type=int, default=3, help="timed runs; the median counts")
    parse.add_argument("--limit", type=float, default=60.0, help="seconds after which a fit is too slow")
    parse.add_argument("--output", type=Path, help="CSV file to write")
    return parse


def arguments(parse: argparse.ArgumentParser) -> argparse.Namespace:
    """Parsed arguments; leaves with one line and success where the data sets are absent."""
    options = parse.parse_args()
    if problems.data_root() is None:
        print("skipped: no data sets, set HINGE_DATA to their folder")
        sys.exit(0)
    return options


def names(text: str) -> list[str]:
    """The parts of a comma-separated list."""
    return [part for part in text.split(",") if part]


def _numbers(text: str) -> list[float]:
    return [float(part) for part in names(text)]


def processor() -> str:
    """Model name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def describe() -> str:
    """One line on when and with what a table was made."""
    packages = ", ".join(f"{name} {version(name)}{commit() if name == 'hinge' else ''}" for name in PACKAGES)
    date = datetime.date.today().isoformat()
    return f"{date}; {processor()}; {os.cpu_count()} threads; Python {platform.python_version()}, {packages}"


def commit() -> str:
    """The commit of the sources in brackets, and whether they differ from it; nothing outside a repository."""
    command = ["git", "-C", str(problems.REPOSITORY), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return f" ({done.stdout.strip()})" if done.returncode == 0 else ""


class Report:
    """A table printed row by row; ``columns`` maps names to format specifications."""

    def __init__(self, columns: Mapping[str, str], output: Path | None, note: str = ""):
        self.columns = columns
        self.output = output
        self.header = describe() + (f"; {note}" if note else "")
        self.rows: list[dict[str, Any]] = []
        print(f"# {self.header}")
        print("  ".join(f"{name:>{_width(name, spec)}}" for name, spec in columns.items()), flush=True)

    def add(self, **row: Any) -> None:
        """Print a row, text in place of a number as it is; the CSV, if any, is rewritten, so that an interrupted run
        keeps what it has."""
        self.rows.append(row)
        cells = (_cell(row.get(name), name, spec) for name, spec in self.columns.items())
        print("  ".join(cells), flush=True)
        if self.output is not None:
            self._write(self.output)

    def _write(self, output: Path) -> None:
        with output.open("w", newline="", encoding="utf-8") as file:
            file.write(f"# {self.header}\n")
            writer = csv.DictWriter(file, list(self.columns))
            writer.writeheader()
            writer.writerows({name: _plain(row.get(name)) for name in self.columns} for row in self.rows)


def _width(name: str, spec: str) -> int:
    return max(len(name), int(re.match(r">(\d+)", spec)[1]))


def _cell(value: Any, name: str, spec: str) -> str:
    text = "-" if value is None else value if isinstance(value, str) else format(value, spec).strip()
    return f"{text:>{_width(name, spec)}}"


def _plain(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in calls that poll for signals; a whole LIBLINEAR run is not interruptible."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
