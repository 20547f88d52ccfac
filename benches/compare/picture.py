"""Time against gap: a panel for every set and loss at one C, a line for each contestant from its first stop on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, NullLocator

# C of the panels where a set has it, else the first one of the set.
SHOWN_C = "1"
COLUMNS = 3
MOST_TICKS = 4
FLOOR = 1e-9


def draw(found: Sequence[Any], entrants: Sequence[tuple[str, int]], path: Path) -> None:
    """Write the picture."""
    panels: dict[tuple[str, str], Any] = {}
    for case in found:
        if case.key[:2] not in panels or case.key[2] == SHOWN_C:
            panels[case.key[:2]] = case
    shape = (-(-len(panels) // COLUMNS), min(COLUMNS, len(panels)))
    figure, axes = plt.subplots(*shape, figsize=(4.2 * shape[1], 2.6 * shape[0]), squeeze=False, layout="constrained")
    for ax, case in zip_longest(axes.flat, panels.values()):
        if case is None:
            ax.axis("off")
        else:
            _panel(ax, case, entrants)
    handles = {text: line for ax in axes.flat for line, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))
    figure.savefig(path, dpi=70)
    plt.close(figure)


def _panel(axes, case: Any, entrants: Sequence[tuple[str, int]]) -> None:
    for k, (package, threads) in enumerate(entrants):
        points = frontier(case, package, threads)
        if points:
            times, gaps = zip(*points, strict=True)
            style = "o-" if package == "hinge" else "s--"
            axes.loglog(times, gaps, style, color=f"C{k}", markersize=3, label=f"{package} {threads}")
    axes.set_title(f"{' '.join(case.key[:2])}, C = {case.key[2]}", fontsize=9)
    axes.set_xlabel("seconds, conversion counted", fontsize=8)
    axes.set_ylabel("relative gap", fontsize=8)
    axes.set_ylim(FLOOR / 2, 2.0)
    axes.grid(alpha=0.3)
    axes.tick_params(labelsize=7)
    axes.xaxis.set_major_locator(FixedLocator(ticks(*axes.get_xlim())))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())


def ticks(low: float, high: float) -> list[float]:
    """At most four of the numbers 1, 2, 5 times a power of ten between two; the ends where there is none."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside = [t for t in (float(f"{d}e{k}") for k in powers for d in (1, 2, 5)) if low <= t <= high]
    return inside[:: -(-len(inside) // MOST_TICKS)] if inside else [low, high]


def frontier(case: Any, package: str, threads: int) -> list[tuple[float, float]]:
    """Times and gaps of the runs that no faster run of the contestant beats."""
    runs = [(case.seconds(row, convert=True), max(case.distance(row), FLOOR)) for row in case.of(package, threads)]
    points: list[tuple[float, float]] = []
    for time, gap in sorted(run for run in runs if run[1] < float("inf")):
        if not points or gap < points[-1][1]:
            points.append((time, gap))
    return points
