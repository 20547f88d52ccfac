"""Figures 1 to 3 of Chu15 from the measurements of :mod:`chu15_measure`; needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLORS = {"primal": "tab:blue", "dual": "tab:red", "loose": "tab:blue", "tight": "tab:orange"}
STYLES = {"warm": "-", "cold": "--"}


def draw(studies: dict[str, dict], folder: Path, stem: str) -> list[Path]:
    """Every figure that has measurements, a panel for each set."""
    written = []
    for part, panel in (("figure1", panel1), ("figure2", panel2), ("figure3", panel3)):
        measured = {name: study[part] for name, study in studies.items() if part in study}
        if measured:
            written.append(folder / f"{stem}-{part}.png")
            _grid(measured, panel).savefig(written[-1], dpi=110)
    return written


def _grid(measured: dict[str, dict], panel: Callable) -> Figure:
    """Panels, three to a line."""
    n_columns = min(3, len(measured))
    n_lines = -(-len(measured) // n_columns)
    figure = Figure(figsize=(4.2 * n_columns, 3.2 * n_lines), layout="constrained")
    axes = figure.subplots(n_lines, n_columns, squeeze=False).flat
    for ax, (name, data) in zip(axes, measured.items(), strict=False):
        panel(ax, name, data)
    for ax in axes[len(measured) :]:
        ax.set_visible(False)
    axes[0].legend(fontsize="x-small")
    return figure


def panel1(ax: Axes, name: str, curves: dict) -> None:
    """Accuracy (solid, left) and cumulative seconds (dashed, right) against C; vertical lines end the search."""
    times = ax.twinx()
    for stop, curve in curves.items():
        color, label = COLORS[stop], f"{stop} stop, {curve['tol']:g}"
        ax.plot(curve["C"], [100 * a for a in curve["accuracy"]], color=color, label=label)
        times.plot(curve["C"], curve["seconds"], color=color, linestyle="--", linewidth=1)
        if curve["end"] is not None:
            ax.axvline(curve["C"][curve["end"]], color=color, linestyle=":", linewidth=1.5)
        if curve["stopped_by"] == "unchanged":
            ax.axvline(curve["C"][curve["last"]], color=color, linestyle="-.", linewidth=1)
    ax.set(title=name, xlabel="C", ylabel="accuracy on folds, %")
    ax.set_xscale("log", base=2)
    times.set_ylabel("seconds (dashed)")


def panel2(ax: Axes, name: str, panel: dict) -> None:
    """Distance to the optimum against seconds at one C."""
    for label, points in panel["curves"].items():
        route, start = label.split()
        distance = [max(d, 1e-12) for d in points["distance"]]
        seconds = [max(s, 1e-3) for s in points["seconds"]]
        ax.plot(seconds, distance, STYLES[start], color=COLORS[route], marker=".", label=label)
    for line in panel["line"]:
        ax.axhline(max(line, 1e-12), color="gray", linestyle=":", linewidth=1, label="eq. (28) at 1e-2")
    ax.set(title=f"{name}, C = $2^{{{log2(panel['C']):g}}}$", xlabel="seconds", ylabel="(f - f*) / f*")
    ax.set_yscale("log")
    ax.set_xscale("log")


def panel3(ax: Axes, name: str, curves: dict) -> None:
    """Cumulative seconds against C; a cross where the time limit cut a curve."""
    for label, curve in curves.items():
        route, start = label.split()
        ax.plot(curve["C"], curve["seconds"], STYLES[start], color=COLORS[route], label=label)
        if curve["stopped"] and curve["C"]:
            ax.plot(curve["C"][-1], curve["seconds"][-1], "x", color=COLORS[route])
    ax.set(title=name, xlabel="C", ylabel="cumulative seconds")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
