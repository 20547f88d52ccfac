"""Page and figures of :mod:`hsieh08`; needs matplotlib."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

RIVALS = {"hinge": "DCDL1-S", "squared_hinge": "DCDL2-S"}


def seconds_to(curve: dict, distance: float) -> float | None:
    """Seconds of the first point at most this far from the optimum."""
    return next((s for s, d in zip(curve["seconds"], curve["distance"], strict=True) if d <= distance), None)


def write(studies: dict[str, dict], folder: Path, stem: str) -> None:
    """Every figure that has measurements, and the page."""
    pictures = []
    measured = {name: study["curves"] for name, study in studies.items() if "curves" in study}
    for what, label in (("distance", "(f - f*) / f*"), ("accuracy", "test accuracy")):
        if measured:
            figure = Figure(figsize=(3.6 * len(measured), 6.4), layout="constrained")
            axes = figure.subplots(2, len(measured), squeeze=False)
            for column, (name, curves) in enumerate(measured.items()):
                for row, (loss, found) in enumerate(curves.items()):
                    ax = axes[row, column]
                    for solver, curve in found.items():
                        if solver != "optimum":
                            values = curve[what] if what == "accuracy" else np.maximum(curve[what], 1e-8)
                            ax.plot(curve["seconds"], values, marker=".", label=solver)
                    ax.set(title=f"{name}, {loss}", xlabel="seconds", ylabel=label, xscale="log")
                    if what == "distance":
                        ax.set_yscale("log")
                    ax.legend(fontsize="x-small")
            pictures.append(f"{stem}-{what}.png")
            figure.savefig(folder / pictures[-1], dpi=80)
    pegasos = {name: study for name, study in studies.items() if "batch" in study or "steps" in study}
    if pegasos:
        figure = Figure(figsize=(3.6 * len(pegasos), 6.4), layout="constrained")
        axes = figure.subplots(2, len(pegasos), squeeze=False)
        for column, (name, study) in enumerate(pegasos.items()):
            for epochs, distance in study.get("batch", {}).get("distance", {}).items():
                axes[0, column].plot(
                    study["batch"]["k"], np.maximum(distance, 1e-8), marker=".", label=f"{epochs} epochs"
                )
            axes[0, column].set(title=name, xlabel="rows per step, fixed work", ylabel="(f - f*) / f*", xscale="log")
            for label, curve in study.get("steps", {}).items():
                axes[1, column].plot(curve["epochs"], np.maximum(curve["distance"], 1e-8), marker=".", label=label)
            axes[1, column].set(xlabel="epochs", ylabel="(f - f*) / f*", xscale="log")
            for ax in axes[:, column]:
                ax.set_yscale("log")
                ax.legend(fontsize="xx-small")
        pictures.append(f"{stem}-pegasos.png")
        figure.savefig(folder / pictures[-1], dpi=80)
    (folder / f"{stem}.md").write_text(page(studies, pictures), "utf-8")


def page(studies: dict[str, dict], pictures: list[str]) -> str:
    """Tables of seconds, norms and limits, every number from the stored measurements."""
    lines = [
        "# Hsieh et al. (2008) and Shalev-Shwartz et al. (2007), measured again",
        "",
        "Made by `benches/papers/hsieh08.py`; C = 1, no intercept, one thread, no presolve. DCDL1 and DCDL2 draw",
        "single random rows (algorithm 2), -S shrinks (algorithm 3); cutting plane is the one-slack form with the line",
        "search of OCAS. Seconds are of a whole fit; in brackets, the ratio to those of the shrinking dual method.",
        "",
        "## Seconds to 1 % of the optimum",
        "",
    ]
    measured = {name: study["curves"] for name, study in studies.items() if "curves" in study}
    for loss, base in RIVALS.items():
        if not measured:
            break
        solvers = [s for s in next(iter(measured.values()))[loss] if s != "optimum"]
        lines += [f"| set | {' | '.join(solvers)} |", "|---" * (len(solvers) + 1) + "|"]
        for name, curves in measured.items():
            reference = seconds_to(curves[loss][base], 0.01)
            cells = [cell(curves[loss][solver], reference) for solver in solvers]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        lines.append("")
    lines += ["## Norm bound of Pegasos", ""]
    for name, study in studies.items():
        if "batch" in study:
            norm = study["batch"]["largest_norm"]
            verdict = "kept" if norm <= 1 + 1e-9 else "BROKEN"
            lines.append(f"- {name}: largest |w| sqrt(lambda) at any look {norm:.4f}: {verdict}")
    lines += ["", "## Few features and large C: seconds to a gap of 1e-3, squared hinge", ""]
    lines += ["| set | C | dual_cd | newton | auto |", "|---|---|---|---|---|"]
    for name, study in studies.items():
        for row in study.get("limits", []):
            cells = ["not reached" if row[s] is None else f"{row[s]:.3f}" for s in ("dual_cd", "newton", "auto")]
            lines.append(f"| {name} | {row['C']:g} | {' | '.join(cells)} |")
    lines += ["", "## Sets", ""]
    lines += [
        f"- {n}: {s['shape'][0]:,} x {s['shape'][1]:,}, {s['shape'][2]:,} nonzeros; {s['header']}"
        for n, s in studies.items()
    ]
    lines += ["", *(f"![{picture}]({picture})" for picture in pictures), ""]
    return "\n".join(lines)


def cell(curve: dict, reference: float | None) -> str:
    """Seconds, and the ratio to the reference."""
    seconds = seconds_to(curve, 0.01)
    if seconds is None:
        return f"> {curve['seconds'][-1]:.2f} (at {curve['distance'][-1]:.0e})"
    return f"{seconds:.3f}" + (f" ({seconds / reference:.1f}x)" if reference else "")
