"""Pictures and page of ChangRoth11 from the measurements of :mod:`changroth11_measure`; needs matplotlib."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

HEAD = """# Selective block minimization: the figures of ChangRoth11, measured again

Chang, Roth: *Selective Block Minimization for Faster Convergence of Limited Memory Large-Scale Linear Models*, KDD
2011. Hinge loss (sections: all classes at once by the method of Crammer and Singer, figures 2e and 2f, where SBM-1/2
keeps rows by their share of shrunken variables, section 3), C = 1, no intercept; memory for a sixth of the rows unless
said otherwise, so about {blocks} blocks.
The paper's sets are not at hand; ours are named with their sizes. Each point is a fit of its own from zero with so
many passes over the file, its certifying scan counted. Distance is that of the dual value to the optimum, relative;
accuracy is the difference in percentage points to the model of the optimum, on held-out rows. Files lie in the page
cache of the machine: disk time is that of reading and decompressing. Times are seconds with two threads on a shared
machine, and CPU seconds of all threads: read them as ratios.

Made with `benches/papers/changroth11.py`:
"""

COLORS = {
    "SBM-1/2": "tab:red",
    "SBM-1/3": "tab:orange",
    "SBM-1/2-gradient": "tab:purple",
    "SBM-1/2-rand": "tab:green",
    "BMD": "tab:blue",
}

TABLE = ["| | passes | seconds | CPU | distance | accuracy |", "|---|---|---|---|---|---|"]


def write(studies: dict[str, dict], folder: Path, stem: str) -> None:
    """The page and its pictures."""
    text = [HEAD.format(blocks="6 to 12")]
    text += [f"- {name}: {study['header']}" for name, study in studies.items()]
    measured = {name: study["passes"] for name, study in studies.items() if "passes" in study}
    if measured:
        _figure2(measured).savefig(folder / f"{stem}-figure2.png", dpi=110)
        text += [
            "",
            "## Figure 2: distance and accuracy against passes and time",
            "",
            f"![figure 2]({stem}-figure2.png)",
            "",
        ]
        text += _claim(measured)
        for name, curves in measured.items():
            text += ["", f"### {name}", "", *TABLE]
            text += [_row(variant, p) for variant, points in curves.items() for p in points]
    text += _section(studies, "single", "Table 2: a single pass", _single)
    text += _section(studies, "precision", "Figure 4: values in 4 and in 8 bytes, in the same memory", _precision)
    text += _section(studies, "sizes", "Figure 5: size of the memory (part of the rows) and rounds, SBM-1/2", _sizes)
    (folder / f"{stem}.md").write_text("\n".join(text) + "\n", "utf-8")


def _section(studies: dict[str, dict], part: str, title: str, table) -> list[str]:
    measured = {name: study[part] for name, study in studies.items() if part in study}
    if not measured:
        return []
    lines = ["", f"## {title}"]
    for name, found in measured.items():
        lines += ["", f"### {name}", "", *table(found)]
    return lines


def _row(name: str, p: dict) -> str:
    times = f"{p['passes']} | {p['seconds']:.2f} | {p['cpu']:.2f}"
    return f"| {name} | {times} | {p['distance']:.2e} | {p['accuracy']:+.3f} |"


def _passes_to(points: list[dict], distance: float) -> dict | None:
    return next((p for p in points if p["distance"] <= distance), None)


def _claim(measured: dict[str, dict]) -> list[str]:
    lines = ["Passes (seconds, CPU seconds) of the first fit within 1e-3 of the optimum:", ""]
    lines.append("| | " + " | ".join(COLORS) + " |")
    lines.append("|---" * (1 + len(COLORS)) + "|")
    for name, curves in measured.items():
        cells = []
        for variant in COLORS:
            if variant not in curves:
                cells.append("-")
                continue
            found = _passes_to(curves[variant], 1e-3)
            most = curves[variant][-1]
            at = found or most
            text = f"{at['passes']} ({at['seconds']:.1f}, {at['cpu']:.1f})"
            cells.append(text if found else f"> {text}: {at['distance']:.1e} then")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _single(found: dict[str, dict]) -> list[str]:
    lines = ["| | reading (s) | learning (s) | accuracy |", "|---|---|---|---|"]
    for name, row in found.items():
        if name != "sizes":
            lines.append(f"| {name} | {row['io']:.2f} | {row['learning']:.2f} | {row['accuracy']:+.3f} |")
    sizes = found["sizes"]
    lines += ["", f"The store has {sizes['store_bytes'] / 1e6:.1f} MB, built in {sizes['build']:.1f} s."]
    if "Vowpal Wabbit" in found:
        row = found["Vowpal Wabbit"]
        ratio = row["cache_bytes"] / sizes["store_bytes"]
        lines[-1] += f" The cache of Vowpal Wabbit has {row['cache_bytes'] / 1e6:.1f} MB, {ratio:.1f} times as much."
        lines += ["", "Vowpal Wabbit over its cache, each number of passes from zero:", ""]
        lines += ["| passes | seconds | accuracy |", "|---|---|---|"]
        lines += [f"| {run['passes']} | {run['seconds']:.2f} | {run['accuracy']:+.3f} |" for run in row["runs"]]
    return lines


def _precision(found: dict[str, list[dict]]) -> list[str]:
    lines = [*TABLE]
    lines += [_row(name, p) for name, points in found.items() for p in points]
    sizes = ", ".join(f"{name} {points[0]['bytes_per_nonzero']:.2f}" for name, points in found.items())
    return [*lines, "", f"Bytes per nonzero on disk: {sizes}."]


def _sizes(found: list[dict]) -> list[str]:
    return TABLE + [_row(f"1/{1 / p['share']:.0f}, {p['rounds']}", p) for p in found]


def _figure2(measured: dict[str, dict]) -> Figure:
    figure = Figure(figsize=(4.2 * len(measured), 9.0), layout="constrained")
    axes = figure.subplots(3, len(measured), squeeze=False)
    for k, (name, curves) in enumerate(measured.items()):
        _curves(axes[0, k], curves, "passes", "distance")
        _curves(axes[1, k], curves, "seconds", "distance")
        _curves(axes[2, k], curves, "seconds", "accuracy")
        axes[0, k].set_title(name)
        axes[0, k].legend(fontsize="x-small")
    return figure


def _curves(ax: Axes, curves: dict[str, list[dict]], across: str, up: str) -> None:
    for variant, points in curves.items():
        ax.plot([p[across] for p in points], [p[up] for p in points], "o-", label=variant, color=COLORS[variant], ms=3)
    if up == "distance":
        ax.set_yscale("log")
    ax.set_xlabel("passes over the file" if across == "passes" else "seconds")
    ax.set_ylabel("distance to the optimum" if up == "distance" else "accuracy, points to the optimum's")
