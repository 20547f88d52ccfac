"""Figures 2, 4 and 5 and table 2 of ChangRoth11 on real sets; writes pictures and a page.

    python benches/papers/changroth11.py [--sets contents,imdb,phishing_urls] [--parts passes,precision,sizes,single]
                                         [--rows 150000] [--vw PYTHON] [--output benches/record]

Measurements are kept as JSON, one file per set (``changroth11/SET.json`` in the output folder), written after each
part: a later run adds to them, and pictures and page always show all there are. ``--parts none`` only draws.
``contents`` is a part of so many training rows (``benches/compare/contents.py``), spread over the whole; the other
sets are whole, and all are cut by a memory budget that holds a sixth of the rows. ``--vw`` is a Python with
vowpalwabbit; without it that row is missing. The set ``generated`` needs no data.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "compare")]

import changroth11_page  # noqa: E402
import contents  # noqa: E402
import problems  # noqa: E402
from changroth11_measure import PARTS, Data, measure  # noqa: E402
from harness import describe, names  # noqa: E402

SETS = ("contents", "imdb", "phishing_urls")
RECORD = HERE.parent / "record"
STEM = "changroth11"
TEST_ROWS = 50_000


def generated() -> Data:
    """A noisy problem from a fixed seed, large enough for blocks."""
    random = np.random.default_rng(0)
    n, d = 30_000, 2000
    X = sp.random(n, d, density=0.01, format="csr", random_state=random, dtype=np.float32)
    X.data[:] = 1.0
    y = (X @ random.standard_normal(d) + 2 * random.standard_normal(n) > 0).astype(np.int64)
    cut = 25_000
    return Data("generated", X[:cut], y[:cut], X[cut:], y[cut:])


def load(name: str, n_rows: int) -> Data:
    """The named set with its test part."""
    if name == "generated":
        return generated()
    if name == "contents":
        parts = []
        for kind, rows in (("train", n_rows), ("test", TEST_ROWS)):
            pieces = list(contents.rows(kind, rows))
            parts += [sp.vstack([X for X, _ in pieces], format="csr"), np.concatenate([y for _, y in pieces])]
        return Data(name, *parts)
    X, y, X_test, y_test = problems._loader().load(name)
    signs = [(labels == 1).astype(np.int64) for labels in (y, y_test)]
    return Data(name, sp.csr_matrix(X), signs[0], sp.csr_matrix(X_test), signs[1])


def command_line(words: list[str] | None) -> argparse.Namespace:
    """Options."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=list(SETS), help="comma-separated sets, or generated")
    parse.add_argument("--parts", type=names, default=list(PARTS), help=f"of {', '.join(PARTS)}, or none")
    parse.add_argument("--rows", type=int, default=150_000, help="training rows of contents")
    parse.add_argument("--vw", help="a Python that has vowpalwabbit")
    parse.add_argument("--output", type=Path, default=RECORD, help="folder of the page")
    return parse.parse_args(words)


def add(path: Path, part: str, found: object, header: str) -> None:
    """Set one part of one set."""
    study = json.loads(path.read_text("utf-8")) if path.exists() else {}
    study |= {part: found, "header": header}
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(study, indent=1) + "\n", "utf-8")
    unfinished.replace(path)


def main(words: list[str] | None = None) -> None:
    """Command line."""
    options = command_line(words)
    warnings.simplefilter("ignore", ConvergenceWarning)
    folder = options.output / STEM
    folder.mkdir(parents=True, exist_ok=True)
    parts = [part for part in options.parts if part != "none"]
    for name in options.sets if parts else ():
        data = load(name, options.rows)
        header = f"{describe()}; {data.X.shape[0]} rows, {data.X.nnz} nonzeros"
        with tempfile.TemporaryDirectory() as scratch:
            for part in parts:
                add(folder / f"{name}.json", part, measure(part, data, Path(scratch), options.vw), header)
                print(f"{name}: {part} done", flush=True)
    studies = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    changroth11_page.write(studies, options.output, STEM)


if __name__ == "__main__":
    main()
