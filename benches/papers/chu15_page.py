"""The page beside the figures of Chu15: what the measurements say to each claim of the paper, set by set.

The claims are in our words and from memory of the paper. Each verdict is computed from the stored measurements
by the rule that stands with it, so the page cannot say more than they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt

import numpy as np

Finding = tuple[str, bool]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, the rule by which we call it seen, and the judge of one set."""

    text: str
    rule: str
    part: str
    judge: Callable[[dict], Finding | None]


def flat(curves: dict) -> Finding:
    """Accuracy after the best C."""
    mean = 100 * np.array(curves["tight"]["accuracy"])
    loss = mean.max() - mean[mean.argmax() :].min()
    return f"falls by {loss:.2f}", loss <= 1.0


def robust(curves: dict) -> Finding:
    """The curves of both stops on their common values."""
    loose, tight = (np.array(curves[name]["accuracy"]) for name in ("loose", "tight"))
    n = min(len(loose), len(tight))
    off = 100 * np.abs(loose[:n] - tight[:n]).max()
    return f"at most {off:.2f} apart", off <= 1.0


def stops(curves: dict) -> Finding:
    """End of the paper's rule, and what the rest of the range would have given."""
    curve = curves["loose"]
    if curve["end"] is None:
        return f"not before C = {curve['C'][-1]:g}, ended by {curve['stopped_by']}", False
    best, seen = (max(curve["accuracy"][:n]) for n in (None, curve["end"] + 1))
    C = curve["C"][curve["end"]]
    return f"at C = {C:g}, {100 * (best - seen):.2f} below the best", best - seen <= 1e-3


def halves(curves: dict, route: str) -> tuple[float, float] | None:
    """Cold seconds over warm seconds in the lower and the upper half of the values both have."""
    warm, cold = (np.array(curves[f"{route} {start}"]["seconds"]) for start in ("warm", "cold"))
    n = min(len(warm), len(cold))
    if n < 4:
        return None
    middle = n // 2
    low = cold[middle - 1] / warm[middle - 1]
    high = (cold[n - 1] - cold[middle - 1]) / max(warm[n - 1] - warm[middle - 1], 1e-9)
    return float(low), float(high)


def helps_at_large(curves: dict) -> Finding | None:
    """Gain of warm starts by halves of the range."""
    gains = halves(curves, "primal")
    if gains is None:
        return None
    low, high = gains
    return f"{low:.1f}x below, {high:.1f}x above the middle", high > low


def primal_gains_more(curves: dict) -> Finding | None:
    """Gain of warm starts by route, over the range that both routes cover."""
    gains = [halves(curves, route) for route in ("primal", "dual")]
    if None in gains:
        return None
    primal, dual = (sqrt(low * high) for low, high in gains)
    return f"primal {primal:.1f}x, dual {dual:.1f}x", primal > dual


def dual_is_slow(curves: dict) -> Finding | None:
    """Warm dual against warm primal over the last quarter of the range, or the cut of the dual one."""
    primal, dual = curves["primal warm"], curves["dual warm"]
    if dual["stopped"]:
        at = f"C = {dual['C'][-1]:g}" if dual["C"] else "the first C"
        return f"dual cut at {at}", not primal["stopped"]
    n = min(len(primal["C"]), len(dual["C"]))
    start = max(0, 3 * n // 4 - 1)
    times = [curve["seconds"][n - 1] - curve["seconds"][start] for curve in (primal, dual)]
    return f"{times[1]:.3g} s, the primal {times[0]:.3g} s", times[1] > times[0]


def warm_is_close(table: list[dict]) -> Finding:
    """Start values from C / 2 against those from zero, over the values of C."""
    ratios = [row["primal zero"] / max(row["primal own"], 1e-15) for row in table]
    return f"excess {min(ratios):.2g} to {max(ratios):.2g} times smaller", min(ratios) > 1


def own_vector(table: list[dict]) -> Finding:
    """Start values from the fold's own solution against the one handed on."""
    ratios = [row["last"] / max(row["primal own"], 1e-15) for row in table]
    return f"excess of the shared one {min(ratios):.2g} to {max(ratios):.2g} times the own", min(ratios) > 1


CLAIMS = (
    Claim(
        "Accuracy is flat beyond some C, so a search need not go on for ever.",
        "seen if accuracy after its best falls by at most 1 percentage point",
        "figure1",
        flat,
    ),
    Claim(
        "A loose stop of the inner fits gives the same picture of accuracy as a tight one.",
        "seen if the curves are at most 1 percentage point apart",
        "figure1",
        robust,
    ),
    Claim(
        "The search ends by itself (three values of C without a change) and misses nothing worth having.",
        "seen if it ends before C_max and at most 0.1 percentage points below the best of the range",
        "figure1",
        stops,
    ),
    Claim(
        "Warm starts help more for larger C.",
        "seen if cold over warm time, primal, is larger in the upper half of the values of C",
        "figure3",
        helps_at_large,
    ),
    Claim(
        "They help primal Newton more than dual coordinate descent.",
        "seen if cold over warm time, as geometric mean of both halves, is larger for the primal",
        "figure3",
        primal_gains_more,
    ),
    Claim(
        "Primal Newton stays robust over the range, dual coordinate descent becomes slow for large C.",
        "seen if the dual takes longer over the last quarter of the values of C, warm starts, or is cut",
        "figure3",
        dual_is_slow,
    ),
    Claim(
        "The solution at C / 2 is a much better start than zero (table 2).",
        "seen if its excess over the optimum is smaller at every C",
        "tables",
        warm_is_close,
    ),
    Claim(
        "One vector for each fold is better than one that the folds share (table 3).",
        "seen if the fold's own solution at C / 2 starts closer to the optimum at every C",
        "tables",
        own_vector,
    ),
)


def page(studies: dict[str, dict], pictures: Iterable[str]) -> str:
    """The page in Markdown."""
    lines = ["# Warm starts for the choice of C: the figures of Chu15, measured again", "", INTRODUCTION, ""]
    lines += ["Made with `benches/papers/chu15.py`:", "", *_provenance(studies), ""]
    lines += ["## Claim by claim", "", "The claims are in our words and from memory, the paper is not at hand.", ""]
    for number, claim in enumerate(CLAIMS, 1):
        lines += [f"{number}. **{claim.text}** Rule: {claim.rule}.", "", *_findings(claim, studies), ""]
    for picture in pictures:
        lines += [f"![{picture}]({picture})", ""]
    lines += [FIGURES, "", "## Table 2: where a fit starts", "", TABLE2, "", *_table(studies, TABLE2_COLUMNS), ""]
    lines += ["## Table 3: one vector for each fold, or one for all", "", TABLE3, "", *_table(studies, TABLE3_COLUMNS)]
    return "\n".join(lines) + "\n"


def _provenance(studies: dict[str, dict]) -> list[str]:
    """A line for each way in which sets were measured."""
    headers = dict.fromkeys(study["header"] for study in studies.values())
    return [f"- {', '.join(n for n, s in studies.items() if s['header'] == header)}: {header}" for header in headers]


def _findings(claim: Claim, studies: dict[str, dict]) -> list[str]:
    lines = []
    for name, study in studies.items():
        finding = claim.judge(study[claim.part]) if claim.part in study else None
        if finding is None:
            lines.append(f"   - {name}: not measured")
        else:
            text, holds = finding
            lines.append(f"   - {name}: {'seen' if holds else '**not seen**'}, {text}")
    return lines


def _table(studies: dict[str, dict], columns: tuple[str, ...]) -> list[str]:
    lines = ["| set | log2 C | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for name, study in studies.items():
        for row in study.get("tables", []):
            cells = (f"{row[column]:.2e}" for column in columns)
            lines.append(f"| {name} | {np.log2(row['C']):g} | " + " | ".join(cells) + " |")
    return lines


TABLE2_COLUMNS = ("primal zero", "primal own", "dual own")
TABLE3_COLUMNS = ("primal own", "last", "all rows")

INTRODUCTION = """\
Chu, Ho, Tsai, Lin, Lin: *Warm Start for Parameter Selection of Linear Classifiers*, KDD 2015, is what the search of
this package builds on. The sets are ours where the paper's are not at hand. Times are seconds of the fits with one
thread, all folds together, on a shared machine: read them as ratios. In the primal this package moves all folds at
once and starts a value of C without reading the data, which the paper does not, so its own gain is on top of what
warm starts give. Accuracies differ in percentage points."""

FIGURES = """\
Figure 1: accuracy (solid) and cumulative time (dashed) against C, for a loose and a tight stop of the inner fits; the
dotted line is where the paper's rule ends the search, the dash-dotted one where no larger C can change anything.
Figure 2: relative distance of the primal objective to the optimum against time, in the middle and at the end of the
range of the search, with the start from C / 2 (solid) and from zero (dashed); every point is a search of its own with
a tighter stop, and a point at 0.001 s is a solution that was accepted as it was. Figure 3: cumulative time against C,
warm (solid) and cold (dashed); a cross is where the time limit cut a curve."""

TABLE2 = """\
Relative to the optimum at C, mean over the folds: excess of the primal objective at zero and at the fold's solution at
C / 2, and shortfall of the dual objective at twice the dual solution at C / 2 (eq. 14), where zero falls short by 1."""

TABLE3 = """\
The same excess when a fold starts from its own solution at C / 2, from the solution of the fold before at the same C
(for the first, of the last fold at C / 2), and from the solution of all rows at C / 2. The latter two have seen the
rows that the fold holds out; with loose stops that leaks into the score."""
