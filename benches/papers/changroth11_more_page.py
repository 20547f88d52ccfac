"""Sections and pictures of the parts of :mod:`changroth11_more`; needs matplotlib."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

NAMES = {
    "gradient": "nearest to the margin (a rule of ours)",
    "projected": "first score",
    "steepest": "second score",
    "random": "by lot",
    "none": "no cache (BMD)",
}

CACHES = """\
Memory for a twelfth of the rows, half of it cache, 10 rounds a block, C by five-fold cross-validation: distance to the
optimum after so many passes. "First" and "second" are the scores of section 2.2. Support vectors are those of the
optimum in memory; unbounded are those whose margin is within 1e-3 of 1."""

CACHED = """\
Which rows are cached is read from checkpoints of the same fits, after so many passes: the part of the unbounded support
vectors of the optimum that is in the cache, and in brackets their part of the cache. The rows of the block to come are
never in it, since they are about to be loaded: all that can be there is the last column but one. Footnote 6 has more
than 98 % after two passes for webspam, whose unbounded support vectors fit."""

LOSSES = """\
Memory for a twelfth of the rows, half of it cache, 10 rounds a block: distance to the optimum after two and after four
passes. For the logistic loss every dual variable is inside its box: the first score tells no rows apart, and the
package takes the nearest to the margin instead. Streams: hinge, memory for a tenth of the rows, pieces of 2,000 rows
in two orders (section 4): dual value at the end, relative to the optimum."""

SINGLE_CLASSES = """\
All classes at once (Crammer and Singer), C by five-fold cross-validation, memory for a fifteenth of the rows, as the
paper's 15 blocks for prep, from zero with one pass; Perceptron, MIRA and AROW (for CW) move the row's own class and the
best of the others. Accuracy less that of the optimum ("reference"), in percentage points, and seconds: of the fit from
the store, the certifying scan counted, or of learning from memory by loops in Python (Perceptron, MIRA and AROW), which
are no measure of these methods. As in the paper, neither BM-Pegasos nor Vowpal Wabbit, whose method is another one."""

CLASSES = """\
Memory for a sixth of the rows, half of it cache: distance to the optimum after so many passes, one class against the
rest (the sum of the dual values) and all classes at once. With a cache for each class (section 3) each has the part of
the cache that is left to it, and chooses by the second score as well. Of the dual variables of one class against the
rest, the given share is not 0 at the optimum."""

PLACES = """\
C = 1, two passes in the same budget, variables in memory or in one dense file (section 5.2), which lies in the page
cache here; what the file leaves of the budget is for rows: the larger the dual value after the passes, the better. A
hash table has a key of four bytes and a value of eight for each variable that is not 0, and empty slots, 16 bytes or
more: where half of the variables are not 0, it is larger than the list of all, and it always takes memory, where the
file takes none. Support vectors are those at the C of cross-validation."""

RUNS = """\
The dual variables of Crammer and Singer, one for each row and class, are kept sparse: of each row a run of the positive
ones off its own class, sorted by class, with 16 bytes for the place of the run and 16 for each variable. Counted after
two passes over blocks (memory for a sixth of the rows), beside a list of all with 8 bytes each, and a hash table of
those in the runs with 16 bytes a slot, half of the slots in use, which would be smaller where most runs are empty. A
matrix of labels is fitted label by label from memory: only the variables of the labels under way are kept, a list of
the rows for each thread; stores have one class for each row. The last columns are fits of two passes with the runs in
memory and in a file (`duals="file"`), in the same budget; the file lies in the page cache here. What it leaves of the
budget is for rows, and too little to be seen on these sets: a file serves where rows are so many that the runs would
take all of the memory."""

ONLINE = """\
The same memory and C, values in single precision: accuracy less that of the optimum, in percentage points. Times are
wall-clock on a shared machine, with the building of the store, as in the paper. BM-Pegasos draws as many rows from a
block as it has. AROW (Crammer, Kulesza, Dredze 2009), a successor of CW, sees each row once, in Python: its seconds are
no measure."""

SIZES = """\
The same memory and C, values in single precision; the part of the memory that is cache, from none (BMD) up: distance to
the optimum after 1, 2 and 3 passes."""


def sections(studies: dict[str, dict], folder: Path, stem: str) -> list[str]:
    """What was measured of these parts."""
    lines: list[str] = []
    if measured := {name: study["caches"] for name, study in studies.items() if "caches" in study}:
        lines += ["", "## Cache scores, support vectors (table 1, footnote 6)", "", CACHES, "", *_support(measured)]
        for name, found in measured.items():
            lines += ["", f"### {name}, C = {found['C']:g}", "", *_caches(found["points"])]
    lines += _cached({name: study["cached"] for name, study in studies.items() if "cached" in study})
    lines += _losses(studies)
    if measured := {name: study["online"] for name, study in studies.items() if "online" in study}:
        picture = f"{stem}-figure3.png"
        _figure3(measured).savefig(folder / picture, dpi=90)
        lines += ["", "## Figures 3 and 4: beside learners with little work a block", "", ONLINE]
        lines += ["", f"![figures 3 and 4]({picture})"]
        for name, found in measured.items():
            lines += ["", f"### {name}, C = {found['C']:g}", "", *_online(found)]
    if measured := {name: study["shares"] for name, study in studies.items() if "shares" in study}:
        picture = f"{stem}-figure5.png"
        _figure5(measured).savefig(folder / picture, dpi=90)
        lines += ["", "## Figure 5: size of the cache in a fixed memory", "", SIZES, "", f"![figure 5]({picture})"]
        for name, found in measured.items():
            lines += ["", f"### {name}", "", *_sizes(found)]
    return lines


def classes(studies: dict[str, dict]) -> list[str]:
    """One cache or one for each class, the scores of Crammer and Singer, places of dual variables."""
    measured = {name: study["classes"] for name, study in studies.items() if "classes" in study}
    if not measured:
        return []
    lines = ["", "## More than two classes: one cache, or one for each", "", CLASSES]
    for name, found in measured.items():
        lines += ["", f"### {name}, {found['rows']:,} rows, {found['classes']} classes, C = {found['C']:g}", ""]
        lines += ["| | rows that stay | passes: 1 | passes: 2 | passes: 4 |", "|---" * 5 + "|"]
        for kind, points in (
            ("one against the rest", found["one_against_rest"]["points"]),
            ("all at once", found["all_at_once"]),
        ):
            for score, curve in points.items():
                label = NAMES.get(score, score)
                if kind == "all at once" and score == "projected":
                    label = "least part shrunken (section 3)"
                lines.append(f"| {kind} | {label} | " + " | ".join(f"{d:.1e}" for d in curve) + " |")
        share = found["one_against_rest"]["support"]
        lines += ["", f"Dual variables that are not 0, one against the rest: {100 * share:.0f} %."]
    return lines


def single_classes(studies: dict[str, dict]) -> list[str]:
    """Table 2 for more than two classes."""
    measured = {name: study["single_classes"] for name, study in studies.items() if "single_classes" in study}
    if not measured:
        return []
    lines = ["", "## Table 2: a single pass, more than two classes", "", SINGLE_CLASSES, ""]
    methods = list(next(iter(measured.values()))["accuracy"])
    lines += [f"| set | rows | classes | C | {' | '.join(methods)} | reference |", "|---" * (len(methods) + 5) + "|"]
    for name, found in measured.items():
        cells = " | ".join(f"{found['accuracy'][m]:+.2f} ({found['seconds'][m]:.1f} s)" for m in methods)
        facts = f"{found['rows']:,} | {found['classes']} | {found['C']:.3g}"
        lines.append(f"| {name} | {facts} | {cells} | {found['reference']:.2f} % |")
    return lines


def runs(studies: dict[str, dict]) -> list[str]:
    """Sparse dual variables of all classes at once."""
    rows = []
    for name, found in ((name, study["runs"]) for name, study in studies.items() if "runs" in study):
        n, k, entries = found["rows"], found["classes"], found["entries"]
        sizes = (16 * (n + entries), 8 * n * k, 2 * 16 * entries)
        cells = " | ".join(f"{1e-6 * size:.1f} MB" for size in sizes)
        for place in ("memory", "file"):
            cells += f" | {found[place]['cpu']:.2f} s, {found[place]['dual']:.6g}"
        rows.append(f"| {name} | {n:,} | {k} | {found['C']:g} | {entries / n:.2f} | {cells} |")
    if not rows:
        return []
    heads = "| set | rows | classes | C | variables in a run, mean | runs | list of all | hash table |"
    heads += " in memory: CPU, dual value | in a file: CPU, dual value |"
    return ["", "### All classes at once", "", RUNS, "", heads, "|---" * 10 + "|", *rows]


def places(studies: dict[str, dict]) -> list[str]:
    """Dual variables in memory and in a file."""
    measured = {name: study for name, study in studies.items() if "places" in study}
    if not measured:
        return []
    lines = ["", "## Where dual variables are", "", PLACES, ""]
    lines += ["| set | where | seconds | CPU | dual value | all of them | budget | support vectors |", "|---" * 8 + "|"]
    for name, study in measured.items():
        found = study["places"]
        support = study.get("caches", {}).get("support")
        share = f"{100 * (support['unbounded'] + support['bounded']) / support['rows']:.0f} %" if support else "-"
        sizes = f"{8e-6 * found['rows']:.1f} MB | {1e-6 * found['budget']:.1f} MB | {share}"
        for where in ("memory", "file"):
            row = found[where]
            lines.append(
                f"| {name} | {where} | {row['seconds']:.2f} | {row['cpu']:.2f} | {row['dual']:.6g} | {sizes} |"
            )
    return lines


def verdict(measured: dict[str, dict]) -> list[str]:
    """Which score is the nearest to the optimum after two and after four passes, set by set."""
    lines = []
    for name, found in measured.items():
        best = []
        for k in (1, 3):
            score = min((s for s in NAMES if s != "none"), key=lambda s, k=k: found["points"][s][k]["distance"])
            best.append(f"after {found['points'][score][k]['passes']} passes {NAMES[score]}")
        lines.append(f"- {name}: nearest to the optimum {', '.join(best)}")
    return lines


def footnote(measured: dict[str, dict]) -> list[str]:
    """Footnote 6 for the second score, set by set."""
    lines = []
    for name, found in measured.items():
        most = min(1 - 1 / found["blocks"], found["cache"] / max(found["unbounded"], 1))
        after = found["shares"]["steepest"]
        two, four = (100 * after[k][0] for k in (1, 3))
        lines.append(
            f"- {name}: {two:.0f} % of the unbounded support vectors are cached after two passes, {four:.0f} % after "
            f"four; {100 * most:.0f} % could be"
        )
    return lines


def _support(measured: dict[str, dict]) -> list[str]:
    lines = ["| set | rows | unbounded support vectors | bounded | rows that the cache holds |", "|---" * 5 + "|"]
    for name, found in measured.items():
        s = found["support"]
        lines.append(f"| {name} | {s['rows']:,} | {s['unbounded']:,} | {s['bounded']:,} | about {s['cached']:,} |")
    return lines


def _caches(points: dict[str, list[dict]]) -> list[str]:
    passes = [p["passes"] for p in points["gradient"]]
    lines = [f"| rows that stay | {' | '.join(f'passes: {n}' for n in passes)} |", "|---" * (len(passes) + 1) + "|"]
    for score, curve in points.items():
        by_passes = {p["passes"]: f"{p['distance']:.1e}" for p in curve}
        lines.append(f"| {NAMES[score]} | " + " | ".join(by_passes.get(n, "-") for n in passes) + " |")
    return lines


def _cached(measured: dict[str, dict]) -> list[str]:
    if not measured:
        return []
    lines = ["", "### Unbounded support vectors in the cache (footnote 6)", "", CACHED, ""]
    lines += ["| set | rows that stay | passes: 1 | 2 | 3 | 4 | all that can be | unbounded, cache |", "|---" * 8 + "|"]
    for name, found in measured.items():
        unbounded, size, blocks = found["unbounded"], found["cache"], found["blocks"]
        ceiling = min((1 - 1 / blocks), size / max(unbounded, 1))
        facts = f"{100 * ceiling:.0f} % | {unbounded:,}, {size:,}"
        for score, shares in found["shares"].items():
            cells = " | ".join(f"{100 * held:.1f} % ({100 * part:.0f} %)" for held, part in shares)
            lines.append(f"| {name} | {NAMES[score]} | {cells} | {facts} |")
    return lines


def _losses(studies: dict[str, dict]) -> list[str]:
    scores = [score for score in NAMES if score != "none"]
    heads = " | ".join(NAMES[score] for score in scores)
    rows = [
        f"| {name} | {row['loss'].replace('_', ' ')} | {row['C']:g} | "
        + " | ".join(" / ".join(f"{d:.1e}" for d in row["points"][score]) for score in scores)
        + " |"
        for name, study in studies.items()
        for row in study.get("losses", ())
    ]
    rows += [
        f"| {name} | hinge, a stream | {found['C']:g} | "
        + " | ".join(" / ".join(f"{value:.3f}" for value in found["points"][score]) for score in scores)
        + " |"
        for name, found in ((name, study["streams"]) for name, study in studies.items() if "streams" in study)
    ]
    if not rows:
        return []
    lines = ["", "### Other losses, and streams", "", LOSSES, ""]
    return [*lines, f"| set | loss | C | {heads} |", "|---" * (3 + len(scores)) + "|", *rows]


def _online(found: dict) -> list[str]:
    lines = ["| | passes | seconds with the store | CPU of the fit | accuracy |", "|---" * 5 + "|"]
    for name, curve in found["points"].items():
        for p in curve:
            seconds = p["seconds"] + found["build"]
            lines.append(f"| {name} | {p['passes']} | {seconds:.1f} | {p['cpu']:.1f} | {p['accuracy']:+.3f} |")
    lines.append(f"| AROW | 1 | - | - | {found['AROW']['accuracy']:+.3f} |")
    return lines


def _sizes(found: list[dict]) -> list[str]:
    lines = ["| cache | 3 rounds | 10 rounds |", "|---|---|---|"]
    for share in dict.fromkeys(p["cache"] for p in found):
        cells = [
            " / ".join(f"{p['distance']:.1e}" for p in found if (p["cache"], p["rounds"]) == (share, rounds))
            for rounds in (3, 10)
        ]
        lines.append(f"| {share:g} | {' | '.join(cells)} |")
    return lines


def _figure3(measured: dict[str, dict]) -> Figure:
    figure = Figure(figsize=(4.2 * len(measured), 3.2), layout="constrained")
    for ax, (name, found) in zip(figure.subplots(1, len(measured), squeeze=False)[0], measured.items(), strict=True):
        for label, curve in found["points"].items():
            seconds = [p["seconds"] + found["build"] for p in curve]
            ax.plot(seconds, [p["accuracy"] for p in curve], "o-", ms=3, label=label)
        ax.set(title=name, xlabel="seconds, store included", ylabel="accuracy, points to the optimum's")
        ax.legend(fontsize="x-small")
    return figure


def _figure5(measured: dict[str, list[dict]]) -> Figure:
    figure = Figure(figsize=(4.2 * len(measured), 6.0), layout="constrained")
    axes = figure.subplots(2, len(measured), squeeze=False)
    for k, (name, found) in enumerate(measured.items()):
        for row, rounds in enumerate((3, 10)):
            for share in dict.fromkeys(p["cache"] for p in found):
                curve = [p for p in found if (p["cache"], p["rounds"]) == (share, rounds)]
                distance = [max(p["distance"], 1e-9) for p in curve]
                axes[row, k].plot([p["cpu"] for p in curve], distance, "o-", ms=3, label=f"cache {share:g}")
            axes[row, k].set(title=f"{name}, {rounds} rounds", xlabel="CPU seconds", ylabel="distance", yscale="log")
            axes[row, k].legend(fontsize="x-small")
    return figure
