"""Time against gap: a panel for every set and loss at one C, a line for every contestant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# C of the panels where a set has it, else the first one of the set.
SHOWN_C = "1"
FLOOR = 1e-9


def draw(found: Sequence[Any], entrants: Sequence[tuple[str, int]], path: Path) -> None:
    """Write the picture."""
    sets = list(dict.fromkeys(case.key[0] for case in found))
    losses = list(dict.fromkeys(case.key[1] for case in found))
    shape = (len(sets), len(losses))
    figure, axes = plt.subplots(*shape, figsize=(4.2 * shape[1], 2.6 * shape[0]), squeeze=False, layout="constrained")
    for i, name in enumerate(sets):
        for j, loss in enumerate(losses):
            here = [case for case in found if case.key[:2] == (name, loss)]
            chosen = [case for case in here if case.key[2] == SHOWN_C] or here
            if chosen:
                _panel(axes[i, j], chosen[0], entrants)
            else:
                axes[i, j].axis("off")
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
            axes.loglog(times, gaps, style, color=f"C{k}", markersize=3, label=f"{package}, {threads} threads")
    axes.set_title(f"{' '.join(case.key[:2])}, C = {case.key[2]}", fontsize=9)
    axes.set_xlabel("seconds, conversion counted", fontsize=8)
    axes.set_ylabel("relative gap", fontsize=8)
    axes.set_ylim(FLOOR / 2, 2.0)
    axes.grid(alpha=0.3)
    axes.tick_params(labelsize=7)


def frontier(case: Any, package: str, threads: int) -> list[tuple[float, float]]:
    """Times and gaps of the runs that no faster run of the contestant beats."""
    runs = [(case.seconds(row, convert=True), max(case.distance(row), FLOOR)) for row in case.of(package, threads)]
    points: list[tuple[float, float]] = []
    for time, gap in sorted(run for run in runs if run[1] < float("inf")):
        if not points or gap < points[-1][1]:
            points.append((time, gap))
    return points
