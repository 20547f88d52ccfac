"""Figures 2 to 5 and tables 1 and 2 of ChangRoth11 on real sets; writes pictures and a page.

    python benches/papers/changroth11.py [--sets contents,imdb,phishing_urls] [--parts passes,precision,...]
                                         [--rows 150000] [--vw PYTHON|no] [--output benches/record]

Measurements are kept as JSON, one file per set (``changroth11/SET.json`` in the output folder), written after each
part: a later run adds to them, and pictures and page always show all there are. ``--parts none`` only draws.
``contents`` is a part of so many training rows (``benches/compare/contents.py``), spread over the whole, one
section against the rest; ``sections`` is a fifth of them with all 58 sections as classes, for figures 2e and 2f;
the other sets are whole, and all are cut by a memory budget that holds a twelfth of the rows (a fifteenth of more than
two classes). ``--vw`` is a Python
with vowpalwabbit; by default an environment of its own is made for it in the folder of the sets' cache, and ``--vw
no`` leaves that row out. The set ``generated`` needs no data.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "compare")]

import changroth11_cache  # noqa: E402
import changroth11_classes  # noqa: E402
import changroth11_measure  # noqa: E402
import changroth11_more  # noqa: E402
import changroth11_online  # noqa: E402
import changroth11_page  # noqa: E402
import contents  # noqa: E402
import problems  # noqa: E402
from changroth11_measure import Data, study_of  # noqa: E402
from harness import describe, names  # noqa: E402

OF_STUDY = {
    "figure2": changroth11_measure.figure2,
    "caches": changroth11_more.caches,
    "shares": changroth11_more.sizes,
    "online": changroth11_more.online,
    "streams": changroth11_cache.streams,
    "single_classes": changroth11_online.single,
}
"""Parts that take the set in its store, at the C of cross-validation;"""
WITH_SCRATCH = {"precision": changroth11_measure.precision, "cached": changroth11_cache.cached}
"""the same with a folder;"""
SETS = ("contents", "sections", "imdb", "phishing_urls", "a9a", "covtype", "20news", "mnist", "sector")
OF_CLASSES = {
    "sections": ("figure2", "single_classes"),
    "20news": ("figure2", "classes", "single_classes", "runs"),
    "mnist": ("classes", "single_classes", "runs"),
    "sector": ("runs",),
}
"""Sets of more than two classes, and the parts that take them; the others take all but these."""
CLASSES_C = {"20news": 1.0, "mnist": 0.01, "sector": 1.0}
CLASSES_ROWS = 4_000
"""Of the sets of more than two classes in the part of that name, at most."""
CLASSES_SHARE = 1 / 5
"""Of the rows of ``contents`` where all its sections are classes: a fit has 58 times the work."""
OTHERS = {
    "losses": changroth11_cache.losses,
    "places": lambda data, scratch: changroth11_classes.places(data, scratch, 1.0),
    "classes": changroth11_classes.classes,
    "runs": changroth11_classes.runs,
}
"""and those that make their own stores."""
PARTS = (*OF_STUDY, *WITH_SCRATCH, "single", *OTHERS)
RECORD = HERE.parent / "record"
STEM = "changroth11"
TEST_ROWS = 50_000
VW = "vowpalwabbit==9.11.9"


def generated() -> Data:
    """A noisy problem from a fixed seed, large enough for blocks."""
    random = np.random.default_rng(0)
    n, d = 30_000, 2000
    X = sp.random(n, d, density=0.01, format="csr", random_state=random, dtype=np.float32)
    X.data[:] = 1.0
    y = (X @ random.standard_normal(d) + 2 * random.standard_normal(n) > 0).astype(np.int64)
    cut = 25_000
    return Data("generated", X[:cut], y[:cut], X[cut:], y[cut:])


def generated_classes() -> Data:
    """Three noisy classes from a fixed seed."""
    whole = generated()
    random = np.random.default_rng(1)
    scores = whole.X @ random.standard_normal((whole.X.shape[1], 3)) + random.standard_normal((whole.X.shape[0], 3))
    few = 6_000
    return Data("generated-classes", whole.X[:few], scores[:few].argmax(axis=1), whole.X_test, whole.y_test)


def load(name: str, n_rows: int) -> Data:
    """The named set with its test part."""
    if name == "generated":
        return generated()
    if name in ("contents", "sections"):
        parts, binary = [], name == "contents"
        for kind, rows in (("train", n_rows), ("test", TEST_ROWS)):
            pieces = list(contents.rows(kind, rows if binary else int(CLASSES_SHARE * rows), binary=binary))
            parts += [sp.vstack([X for X, _ in pieces], format="csr"), np.concatenate([y for _, y in pieces])]
        return Data(name, *parts)
    if name == "generated-classes":
        return generated_classes()
    X, y, X_test, y_test = problems._loader().load(name)
    if name in OF_CLASSES:
        return Data(name, sp.csr_matrix(X), y, sp.csr_matrix(X_test), y_test, CLASSES_C[name])
    signs = [(labels == 1).astype(np.int64) for labels in (y, y_test)]
    return Data(name, sp.csr_matrix(X), signs[0], sp.csr_matrix(X_test), signs[1])


def command_line(words: list[str] | None) -> argparse.Namespace:
    """Options."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=list(SETS), help="comma-separated sets, or generated")
    parse.add_argument("--parts", type=names, default=list(PARTS), help=f"of {', '.join(PARTS)}, or none")
    parse.add_argument("--rows", type=int, default=100_000, help="training rows of contents")
    parse.add_argument("--vw", default="", help="a Python that has vowpalwabbit, or no; default: install one")
    parse.add_argument("--output", type=Path, default=RECORD, help="folder of the page")
    return parse.parse_args(words)


def parts_of(name: str) -> tuple[str, ...]:
    """The parts that a set is measured by."""
    if name == "generated-classes":
        return OF_CLASSES["20news"]
    two = tuple(part for part in PARTS if part == "figure2" or part not in OF_CLASSES["20news"])
    return OF_CLASSES.get(name, two)


def vw_python() -> str:
    """The Python of an environment that has vowpalwabbit, made if it is not there."""
    folder = contents.FOLDER.parent / "vw"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (folder / "ready").exists():
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", VW], check=True)
        (folder / "ready").touch()
    return str(python)


def measured(part: str, data: Data, scratch: Path, vw: str | None) -> object:
    """One part for one set."""
    if part in OF_STUDY:
        return OF_STUDY[part](study_of(data, scratch))
    if part in WITH_SCRATCH:
        return WITH_SCRATCH[part](study_of(data, scratch), scratch)
    if part == "single":
        return changroth11_measure.single(study_of(data, scratch), scratch, vw)
    if part == "classes":
        rows = np.random.default_rng(0).permutation(data.X.shape[0])[:CLASSES_ROWS]
        data = replace(data, X=data.X[rows], y=data.y[rows])
    return OTHERS[part](data, scratch)


def add(path: Path, part: str, found: object, header: str) -> None:
    """Set one part of one set."""
    study = json.loads(path.read_text("utf-8")) if path.exists() else {"header": header}
    study[part] = found
    made = study.setdefault("made", {})
    made.pop(part, None)
    if study["header"] != header:
        made[part] = header
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
    vw = {"": vw_python, "no": lambda: None}.get(options.vw, lambda: options.vw)() if "single" in parts else None
    for name in options.sets if parts else ():
        data = load(name, options.rows)
        header = f"{describe()}; {data.X.shape[0]} rows, {data.X.nnz} nonzeros"
        with tempfile.TemporaryDirectory() as scratch:
            for part in parts:
                if part not in parts_of(name):
                    continue
                found = measured(part, data, Path(scratch), vw)
                add(folder / f"{name}.json", part, found, header)
                print(f"{name}: {part} done", flush=True)
    studies = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    changroth11_page.write(studies, options.output, STEM)


if __name__ == "__main__":
    main()
