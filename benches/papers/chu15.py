"""Figures 1 to 3, tables 2 and 3 and theorems of Chu15 on real sets; writes pictures and a page.

    python benches/papers/chu15.py --sets madelon,ijcnn1_val --output benches/record

Measurements are kept as JSON, one file per set (``chu15/SET.json`` in the output folder, another loss has a
folder and a page of its own), and written after each part: a later run with other ``--sets`` or ``--parts`` adds
to them, and pictures and page always show all there are. ``--parts none`` only draws. The set ``generated`` needs
no data.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "compare")]

import chu15_figures  # noqa: E402
import chu15_page  # noqa: E402
import problems  # noqa: E402
from chu15_measure import Plan, Study, figure1, figure2, figure3  # noqa: E402
from chu15_theory import hinge_path, rules, starts, walks  # noqa: E402
from harness import describe, names  # noqa: E402
from problems import Problem  # noqa: E402

SETS = ("madelon", "german", "ijcnn1_val", "a9a", "covtype", "phishing_urls", "imdb", "20news")
PARTS = {
    "figure1": figure1,
    "figure2": figure2,
    "figure3": figure3,
    "starts": starts,
    "walks": walks,
    "rules": rules,
    "hinge": hinge_path,
}
RECORD = HERE.parent / "record"
STEM = "chu15"


def generated(n_rows: int = 400, n_columns: int = 60) -> Problem:
    """A small noisy problem from a fixed seed."""
    random = np.random.default_rng(0)
    X = sp.random(n_rows, n_columns, density=0.2, format="csr", random_state=random, data_rvs=random.standard_normal)
    w = random.standard_normal(n_columns)
    y = np.where(X @ w + 0.5 * random.standard_normal(n_rows) > 0, 1.0, -1.0)
    return Problem("generated", X.astype(np.float32), y)


def load(name: str) -> Problem:
    """The named set, one class against the rest where there are more than two."""
    return generated() if name == "generated" else problems.load(name)


class Store:
    """The measurements of all sets, in files."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self) -> dict[str, dict]:
        """By set, in the order of SETS."""
        studies = {path.stem: json.loads(path.read_text("utf-8")) for path in self.folder.glob("*.json")}
        order = [*SETS, *sorted(set(studies) - set(SETS))]
        return {name: studies[name] for name in order if name in studies}

    def add(self, name: str, part: str, data: object, header: str) -> None:
        """Set one part of one set."""
        path = self.folder / f"{name}.json"
        study = json.loads(path.read_text("utf-8")) if path.exists() else {}
        study |= {part: data, "header": header}
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(study, indent=1) + "\n", "utf-8")
        unfinished.replace(path)


def command_line(words: list[str] | None) -> argparse.Namespace:
    """Options."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=list(SETS), help="comma-separated sets, or generated")
    parse.add_argument("--parts", type=names, default=list(PARTS), help=f"of {', '.join(PARTS)}, or none")
    parse.add_argument("--loss", choices=("logistic", "squared_hinge"), default=Plan.loss)
    parse.add_argument("--limit", type=float, default=Plan.limit, help="seconds that a curve may take")
    parse.add_argument("--output", type=Path, default=RECORD, help="folder of the page")
    options = parse.parse_args(words)
    if options.parts == ["none"]:
        options.parts = []
    if unknown := set(options.parts) - set(PARTS):
        parse.error(f"--parts must be of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    return options


def main(words: list[str] | None = None) -> None:
    """Measure, draw, write the page."""
    options = command_line(words)
    if options.parts and options.sets != ["generated"] and problems.data_root() is None:
        print("skipped: no data sets, set HINGE_DATA to their folder")
        return
    stem = STEM if options.loss == Plan.loss else f"{STEM}-{options.loss}"
    store = Store(options.output / stem)
    header = f"{describe()}; {options.loss} loss, limit {options.limit:g} s a curve"
    for name in options.sets if options.parts else []:
        study = Study(load(name), Plan(loss=options.loss, limit=options.limit))
        for part in options.parts:
            store.add(name, part, PARTS[part](study), header)
            print(f"{name}: {part}", flush=True)
    studies = store.read()
    pictures = [path.name for path in chu15_figures.draw(studies, options.output, stem)]
    page = options.output / f"{stem}.md"
    page.write_text(chu15_page.page(studies, pictures), "utf-8")
    print(f"wrote {page} and {len(pictures)} figures")


if __name__ == "__main__":
    main()
