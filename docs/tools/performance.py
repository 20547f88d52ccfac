"""Tables of the page on speed, from what ``benches/record`` holds: nothing is typed by hand."""

import csv
import json
import math
from collections import defaultdict
from pathlib import Path

ARENAS = {"fit": "one fit", "search": "the search for C", "reader": "reading svmlight text"}
RIVALS = {
    "liblinear, 1 thread": "LIBLINEAR 2.50, one thread",
    "sklearn, 1 thread": "scikit-learn, one thread",
    "multicore, 2 threads": "multi-core LIBLINEAR, two threads",
    "snapml, 2 threads": "Snap ML, two threads",
    "lbfgs, 2 threads": 'scikit-learn, "lbfgs", n_jobs=2',
    "newton-cg, 2 threads": 'scikit-learn, "newton-cg", n_jobs=2',
    "newton-cholesky, 2 threads": 'scikit-learn, "newton-cholesky", n_jobs=2',
}
LOSSES = ("squared_hinge", "logistic")


def read(record):
    """What ``make bench`` has written there."""
    return json.loads((record / "bench.json").read_text("utf-8"))


def mean(ratios):
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def groups(figures):
    """Ratios of every arena (of fits, every gap) against every rival, in the order in which they appear."""
    found = defaultdict(lambda: defaultdict(list))
    for figure in figures:
        _, _, gap = figure["case"].partition(", gap ")
        name = f"{ARENAS[figure['arena']]}, to a gap of {float(gap):g}" if gap else ARENAS[figure["arena"]]
        found[name][figure["rival"]].append(figure["ratio"])
    return found


def table(header, rows):
    """A table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def short(seconds):
    """Two digits, without an exponent."""
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"


def means(figures):
    """Geometric means, a line per rival and a column per arena."""
    found = groups(figures)
    rivals = [rival for rival in RIVALS if any(rival in of for of in found.values())]
    rows = [
        [RIVALS[rival], *(f"{mean(of[rival]):.1f}x ({len(of[rival])})" if rival in of else "" for of in found.values())]
        for rival in rivals
    ]
    return table(["their time over ours (cases)", *found], rows)


def behind(figures):
    """Every case below 1, worst first."""
    slow = sorted((figure for figure in figures if figure["ratio"] < 1), key=lambda figure: figure["ratio"])
    rows = [[ARENAS[f["arena"]], f["case"], RIVALS[f["rival"]], f"{f['sign']}{f['ratio']:.2f}x"] for f in slow]
    head = f"{len(slow)} of {len(figures)} cases are below 1.\n\n"
    return head + table(["", "set, loss, C, gap", "rival", "their time over ours"], rows)


def searches(path):
    """Seconds of the searches of LIBLINEAR and ours, from the newest record of ``make bench-search``."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    seconds = {(row["set"], row["loss"], row["tool"], row["threads"]): row["seconds"] for row in rows}

    def cell(name, loss, threads):
        ours = float(seconds[name, loss, "hinge", threads])
        theirs = float(seconds[name, loss, "liblinear", "1"].lstrip(">"))
        return f"{short(ours)} ({theirs / ours:.1f}x)"

    names = sorted(
        {row["set"] for row in rows if (row["set"], LOSSES[0], "liblinear", "1") in seconds},
        key=lambda name: float(seconds[name, LOSSES[0], "liblinear", "1"].lstrip(">")),
    )
    lines = [
        [name]
        + [
            text
            for loss in LOSSES
            for text in (
                short(float(seconds[name, loss, "liblinear", "1"].lstrip(">"))),
                cell(name, loss, "1"),
                cell(name, loss, "2"),
            )
        ]
        for name in names
    ]
    columns = ["LIBLINEAR `-C`", "1 thread", "2 threads"]
    header = ["set", *(f"{loss.replace('_', ' ')}: {column}" for loss in LOSSES for column in columns)]
    return table(header, lines)


def newest(record, suffix):
    """The record of this kind with the latest date in its name."""
    return max(record.glob(f"*-{suffix}"))


def write(record, folder):
    """Write the tables into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    bench = read(record)
    parts = {
        "means": means(bench["figures"]),
        "behind": behind(bench["figures"]),
        "made": "".join(f"- {line}\n" for line in bench["made"]),
        "searches": searches(newest(record, "search.csv")),
    }
    for name, text in parts.items():
        (Path(folder) / f"{name}.md").write_text(text, "utf-8")
