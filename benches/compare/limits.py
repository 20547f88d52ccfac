"""How far an epoch of coordinate descent is from what the machine can do, on real sets.

Writes the sets as raw arrays into a temporary folder and runs the Rust bench `limits` on them; its documentation
explains the columns of the result.

    python benches/compare/limits.py --sets imdb,20news --output benches/record
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from datetime import date
from pathlib import Path

import numpy as np
import problems

SETS = "imdb,phishing_urls,20news,flights,a9a,w8a,covtype"


def write_arrays(name: str, folder: Path) -> None:
    """The named set as little-endian arrays: indptr and indices int32, values float32, y float64."""
    problem = problems.load(name)
    for kind, array, dtype in [
        ("indptr", problem.X.indptr, "<i4"),
        ("indices", problem.X.indices, "<i4"),
        ("values", problem.X.data, "<f4"),
        ("y", problem.y, "<f8"),
    ]:
        np.ascontiguousarray(array, dtype=dtype).tofile(folder / f"{name}.{kind}")


def measure(names: list[str]) -> str:
    """The table of the Rust bench as CSV."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            write_arrays(name, Path(folder))
        run = subprocess.run(
            ["cargo", "bench", "--no-default-features", "--bench", "limits"],
            cwd=problems.REPOSITORY,
            env={**os.environ, "HINGE_LIMITS": folder},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return run.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=SETS, help="names, separated by commas")
    parser.add_argument("--output", type=Path, help="folder for the CSV; only printed if left out")
    options = parser.parse_args()
    table = measure(options.sets.split(","))
    print(table, end="")
    if options.output:
        (options.output / f"{date.today()}-limits.csv").write_text(table)


if __name__ == "__main__":
    main()
