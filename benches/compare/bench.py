"""One table of all arenas: every comparison against every rival and the last release, in one run.

Each arena is a script of this folder that writes a CSV file; from all of them come

* ``bench.md``: geometric means, every case in which we are behind, and all figures;
* ``bench.json``: the figures, for ``regress.py``;
* ``fit.png``: time against gap.

A figure is a rival's time over ours on as many threads as the rival has. ``>`` marks a lower bound (the rival was
stopped), ``<`` an upper one (we were). The last release, from a wheel or by a Python that has it, takes part in the
fits as one more contestant, and runs the other scripts, where it can, after us.

    python bench.py --folder bench --release dist/hinge-0.2.0-cp311-abi3-manylinux_2_17_x86_64.whl
    python bench.py --folder bench --arenas none       # only the table, of the CSV files that are there
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import release
import roster
import standings
from harness import names
from process import packages

HERE = Path(__file__).resolve().parent
RELEASE = "release"


@dataclass(frozen=True)
class Figure:
    """A rival's time over ours in one case of an arena."""

    arena: str
    case: str
    rival: str
    ratio: float
    sign: str = ""

    def __str__(self) -> str:
        return f"{self.sign}{self.ratio:.2f}x"


# ---- what the arenas' files say


def fits(rows: Sequence[standings.Row], _: Sequence[standings.Row]) -> Iterator[Figure]:
    """Fits to each gap, conversion counted."""
    for case in standings.cases(rows):
        for name, threads in standings.contestants(rows):
            for gap in standings.GAPS if name != "hinge" else ():
                if found := standings.ratio(case, (name, threads), threads, gap):
                    rival = _rival(name, threads)
                    yield Figure("fit", f"{' '.join(case.key)}, gap {gap:g}", rival, found.value, found.sign)


def searches(rows: Sequence[standings.Row], old: Sequence[standings.Row]) -> Iterator[Figure]:
    """The choice of C."""
    ours = {_key(row, "set", "loss", "threads"): float(row["seconds"]) for row in rows if row["tool"] == "hinge"}
    for row in [*(row for row in rows if row["tool"] != "hinge"), *_of_release(old, "tool", "hinge")]:
        seconds = ours.get(_key(row, "set", "loss", "threads"))
        if seconds and row["seconds"]:
            theirs, sign = _seconds(row["seconds"])
            rival = _rival(row["tool"], row["threads"])
            yield Figure("search", f"{row['set']} {row['loss']}", rival, theirs / seconds, sign)


def reading(rows: Sequence[standings.Row], old: Sequence[standings.Row]) -> Iterator[Figure]:
    """Reading of text files; rivals have one thread."""
    ours = {(row["set"], row["reader"]): float(row["seconds"]) for row in rows}
    for row in rows:
        if not row["reader"].startswith("hinge"):
            ratio = float(row["seconds"]) / ours[row["set"], "hinge 1"]
            yield Figure("reader", row["set"], _rival(row["reader"].replace("scikit-learn", "sklearn"), 1), ratio)
    for row in old:
        if row["reader"].startswith("hinge") and (row["set"], row["reader"]) in ours:
            threads = row["reader"].split()[1]
            ratio = float(row["seconds"]) / ours[row["set"], row["reader"]]
            yield Figure("reader", row["set"], _rival(RELEASE, threads), ratio)


def predictions(rows: Sequence[standings.Row], old: Sequence[standings.Row]) -> Iterator[Figure]:
    """Predictions of rows alone and of batches."""
    columns = ("rows", "kind", "features", "classes", "model", "method")
    ours = {_key(row, *columns): float(row["ours_us"]) for row in rows}
    for rival, theirs, found in (("sklearn", "sklearn_us", rows), (RELEASE, "ours_us", old)):
        for row in found:
            key = _key(row, *columns)
            if key in ours:
                yield Figure("predict", " ".join(key), _rival(rival, 1), float(row[theirs]) / ours[key])


@dataclass(frozen=True)
class Arena:
    """A script, its arguments, and what it is to the release: a contestant of it, or what it runs itself."""

    words: tuple[str, ...]
    figures: Callable[[Sequence[standings.Row], Sequence[standings.Row]], Iterator[Figure]]
    # What the release adds when it runs the script; None where the script takes it.
    alone: tuple[str, ...] | None = None


SEARCHED = "german,ijcnn1_val,a9a,w8a,20news"
ARENAS = {
    "fit": Arena(("fit.py",), fits),
    "search": Arena(("search.py", "--sets", SEARCHED, "--rivals", "liblinear"), searches, ("--rivals", "")),
    "reader": Arena(("reader.py",), reading, ("--skip", "scikit-learn,liblinear")),
    "predict": Arena(("predict.py",), predictions, ()),
}


def _key(row: standings.Row, *columns: str) -> tuple[str, ...]:
    return tuple(row[column] for column in columns)


def _rival(name: str, threads: int | str) -> str:
    return f"{name}, {threads} thread{'' if int(threads) == 1 else 's'}"


def _of_release(rows: Iterable[standings.Row], column: str, name: str) -> list[standings.Row]:
    return [{**row, column: RELEASE} for row in rows if row[column] == name]


def _seconds(text: str) -> tuple[float, str]:
    """Seconds and whether they are a lower bound."""
    return float(text.removeprefix(">")), ">" if text.startswith(">") else ""


# ---- the run


def run(name: str, folder: Path, options: argparse.Namespace) -> None:
    """An arena's CSV file, and that of the release where the script does not take it as a contestant."""
    arena, output = ARENAS[name], folder / f"{name}.csv"
    words = [*arena.words, *options.extra]
    if name == "fit":
        words += ["--multicore", options.multicore, "--snapml", options.snapml]
        words += ["--release", options.release] if options.release else []
    _call([sys.executable, *words, "--output", str(output)], {})
    if arena.alone is not None and options.release:
        with release.installed(options.release) as found:
            old = [found["python"], *words, *arena.alone, "--output", str(_old(output))]
            _call(old, packages(found.get("folder", "")))


def _call(words: Sequence[str], environment: dict[str, str]) -> None:
    """One script; that it failed is said, and its rows are not in the table."""
    done = subprocess.run([words[0], str(HERE / words[1]), *words[2:]], env=os.environ | environment)
    if done.returncode != 0:
        print(f"{' '.join(words)} ended with code {done.returncode}", file=sys.stderr)


def _old(output: Path) -> Path:
    return output.with_stem(f"{output.stem}-{RELEASE}")


def collect(folder: Path) -> list[Figure]:
    """Figures of all CSV files of a folder."""
    found: list[Figure] = []
    for name, arena in ARENAS.items():
        files = (folder / f"{name}.csv", _old(folder / f"{name}.csv"))
        rows, old = (standings.read(path) if path.exists() else [] for path in files)
        found += arena.figures(rows, old)
    return found


# ---- the table


def markdown(found: Sequence[Figure], made: Sequence[str]) -> str:
    """The page."""
    rivals = list(dict.fromkeys(figure.rival for figure in found))
    absent = [name for name in roster.roster() if name != "hinge" and not any(r.startswith(name) for r in rivals)]
    said = [f"- {line}" for line in made]
    said += [f"- no rival here: {', '.join(absent)}"] if absent else []
    if not any(rival.startswith(RELEASE) for rival in rivals):
        said.append("- the last release was not measured: no wheel of it was given (`--release`)")
    sections = [
        ("Geometric means of their time over ours", _means(found, rivals)),
        ("Cases below 1.0x", _behind(found)),
        ("All cases", _cases(found, rivals)),
    ]
    head = "# All arenas\n\nA rival's time over ours; `>` is a lower bound, `<` an upper one.\n\n" + "\n".join(said)
    return head + "".join(f"\n\n## {title}\n\n" + "\n".join(lines) for title, lines in sections) + "\n"


def _means(found: Sequence[Figure], rivals: Sequence[str]) -> list[str]:
    body = []
    for group in dict.fromkeys(map(group_of, found)):
        mine = [figure for figure in found if group_of(figure) == group]
        cells = ([figure for figure in mine if figure.rival == rival] for rival in rivals)
        body.append([group, *map(_mean_cell, cells)])
    return standings.grid(["arena", *rivals], body)


def _mean_cell(figures: Sequence[Figure]) -> str:
    return f"{standings.mean([f.ratio for f in figures]):.2f}x ({len(figures)} cases)" if figures else "-"


def group_of(figure: Figure) -> str:
    """What a mean is over: the arena, and the gap where there are several."""
    _, comma, gap = figure.case.partition(", ")
    return figure.arena + comma + gap


def _behind(found: Sequence[Figure]) -> list[str]:
    behind = sorted((f for f in found if f.ratio < 1.0 and f.sign != ">"), key=lambda figure: figure.ratio)
    return [f"- {f.arena}, {f.case}, {f.rival}: {f}" for f in behind] or ["- none"]


def _cases(found: Sequence[Figure], rivals: Sequence[str]) -> list[str]:
    cells = {(figure.arena, figure.case, figure.rival): str(figure) for figure in found}
    rows = dict.fromkeys((figure.arena, figure.case) for figure in found)
    body = ([*row, *(cells.get((*row, rival), "-") for rival in rivals)] for row in rows)
    return standings.grid(["arena", "case", *rivals], body)


def publish(folder: Path) -> list[Figure]:
    """Write page and figures beside the CSV files."""
    found = collect(folder)
    files = [path for path in sorted(folder.glob("*.csv")) if path.stem.removesuffix(f"-{RELEASE}") in ARENAS]
    lines = (line for path in files for line in path.read_text("utf-8").splitlines() if line.startswith("# "))
    made = list(dict.fromkeys(line.removeprefix("# ") for line in lines))
    page = markdown(found, made)
    (folder / "bench.md").write_text(page, encoding="utf-8")
    lines = ",\n".join(json.dumps(asdict(replace(figure, ratio=float(f"{figure.ratio:.4g}")))) for figure in found)
    text = f'{{"made": {json.dumps(made)},\n"figures": [\n{lines}\n]}}\n'
    (folder / "bench.json").write_text(text, encoding="utf-8")
    print(page.split("## All cases")[0])
    return found


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--folder", type=Path, required=True, help="where the CSV files and the table are")
    parse.add_argument("--arenas", type=names, default=list(ARENAS), help=f"of {', '.join(ARENAS)}, or none")
    parse.add_argument("--release", help="a wheel of the last release, or a Python that has one")
    parse.add_argument("--multicore", default=roster.MULTICORE_PYTHON, help="Python with multi-core LIBLINEAR")
    parse.add_argument("--snapml", default=roster.SNAPML_PYTHON, help="Python with snapml")
    parse.add_argument("extra", nargs="*", help="after --: further arguments of every arena's script")
    options = parse.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.arenas:
        if name != "none":
            run(name, options.folder, options)
    publish(options.folder)


if __name__ == "__main__":
    main()
