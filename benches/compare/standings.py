"""From runs to standings: times to a gap, ratios, their means, and who is behind where.

The time of a package to a gap is its fastest run, of any solver and tolerance, whose objective is within the gap of
the best one known for the case. Where it has none, its slowest run says what it took at least (``>``): it was
stopped at the time limit, or it ended further away however small its tolerance. A ratio is the rival's time over
ours; ratios of such lower bounds are lower bounds, and count in the means as if they were the ratios.

    python standings.py fit.csv
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

GAPS = (1e-2, 1e-4, 1e-6)
SHOWN = ("set", "loss", "C", "package", "threads", "solver", "tol", "seconds", "convert_s", "objective", "status")
# Further digits of an objective than its sum has.
ROUNDING = 1e-13

Row = Mapping[str, str]
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Time:
    """Seconds; ``bound`` if it took more than that, and why."""

    seconds: float
    bound: str = ""

    def __str__(self) -> str:
        return f"{'>' if self.bound else ''}{self.seconds:.3g}{' ' + self.bound if self.bound else ''}"


@dataclass(frozen=True)
class Ratio:
    """A rival's time over ours in one case; ``sign`` is ">" where the rival never arrived, "<" where we did not."""

    key: Key
    gap: float
    value: float
    sign: str = ""

    def __str__(self) -> str:
        return f"{self.sign}{self.value:.2f}x"


def plain(value: object) -> str:
    """A value as the CSV file has it."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def read(path: Path) -> list[Row]:
    """All runs of a file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


class Case:
    """All runs of one set, loss and C."""

    @staticmethod
    def seconds(row: Row, convert: bool) -> float:
        """Time of a run."""
        return float(row["seconds"]) + (float(row["convert_s"]) if convert else 0.0)

    def __init__(self, key: Key, rows: Sequence[Row]):
        self.key, self.rows = key, rows
        self.best = min((float(row["objective"]) for row in rows if row["objective"]), default=math.inf)

    @property
    def n_problems(self) -> int:
        """1, or the number of classes."""
        return int(self.rows[0]["problems"])

    def of(self, package: str, threads: int) -> list[Row]:
        """The runs of a contestant."""
        return [row for row in self.rows if (row["package"], row["threads"]) == (package, str(threads))]

    def distance(self, row: Row) -> float:
        """How far a run is above the best objective, relative to it; infinite for one that was stopped."""
        return (float(row["objective"]) - self.best) / self.best if row["objective"] else math.inf

    def time(self, package: str, threads: int, gap: float, convert: bool = True) -> Time | None:
        """Time to a gap, with or without the conversion; None if the contestant was not there."""
        runs = [(self.distance(row), self.seconds(row, convert), row) for row in self.of(package, threads)]
        arrived = [total for distance, total, _ in runs if distance <= gap + ROUNDING]
        if arrived:
            return Time(min(arrived))
        tried = [(total, row["status"]) for _, total, row in runs if not row["status"].startswith("failed")]
        if not tried:
            return None
        stopped = any(status == "limit" for _, status in tried)
        return Time(max(tried)[0], "(stopped)" if stopped else "(never)")

    def closest(self, package: str, threads: int) -> float:
        """The smallest distance that the contestant reached."""
        return min(map(self.distance, self.of(package, threads)), default=math.inf)


def cases(rows: Iterable[Row]) -> list[Case]:
    """The runs by case, in the order of the file."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["loss"], row["C"]), []).append(row)
    return [Case(key, group) for key, group in groups.items()]


def contestants(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """Packages with their threads, ourselves first."""
    seen = dict.fromkeys((row["package"], int(row["threads"])) for row in rows)
    return sorted(seen, key=lambda pair: (pair[0] != "hinge", pair))


def ratio(case: Case, rival: tuple[str, int], threads: int, gap: float, convert: bool = True) -> Ratio | None:
    """The rival's time over ours with ``threads``; None where one of us was not there or neither arrived."""
    theirs = case.time(*rival, gap, convert)
    ours = case.time("hinge", threads, gap, convert)
    if theirs is None or ours is None or (theirs.bound and ours.bound):
        return None
    return Ratio(case.key, gap, theirs.seconds / ours.seconds, ">" if theirs.bound else "<" if ours.bound else "")


def mean(values: Sequence[float]) -> float:
    """Geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def ratios(found: Sequence[Case], rival: tuple[str, int], threads: int, gap: float, convert: bool = True):
    """Of all cases that have one."""
    every = (ratio(case, rival, threads, gap, convert) for case in found)
    return [r for r in every if r is not None]


def markdown(rows: Sequence[Row]) -> str:
    """Summary, losses and table of a file."""
    found, entrants = cases(rows), contestants(rows)
    rivals = [entrant for entrant in entrants if entrant[0] != "hinge"]
    sections = [
        ("Geometric means of their time over ours", means(found, rivals)),
        ("Of tasks with more classes than two, one against the rest, equal threads", classes(found, rivals)),
        ("Cases below 1.0x", losses(found, rivals)),
        ("Where hinge did not arrive, or claimed too small a gap", doubts(found, entrants)),
        ("Most memory beside the input, bytes for each nonzero", memory(found, entrants)),
        ("Seconds to each gap, conversion counted", table(found, entrants)),
    ]
    return "\n".join(f"## {title}\n\n" + "\n".join(lines) + "\n" for title, lines in sections)


def grid(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body)]


def means(found: Sequence[Case], rivals: Sequence[tuple[str, int]]) -> list[str]:
    """A line for every rival and number of our threads: with conversion at each gap, then without."""
    head = ["rival", "threads", "ours", *(f"{gap:g}" for gap in GAPS), *(f"{gap:g} unconverted" for gap in GAPS)]
    body = []
    for rival in rivals:
        for threads in sorted({1, rival[1], 2}):
            cells = [(ratios(found, rival, threads, gap, convert)) for convert in (True, False) for gap in GAPS]
            body.append([rival[0], str(rival[1]), str(threads), *map(_mean_cell, cells)])
    return grid(head, body)


def _mean_cell(values: Sequence[Ratio]) -> str:
    """Mean and number of cases; where some are lower bounds, their number and the mean of the others."""
    if not values:
        return "-"
    exact = [r for r in values if r.sign != ">"]
    bounds = len(values) - len(exact)
    others = f"{mean([r.value for r in exact]):.2f}x" if exact else "none"
    note = f", {bounds} of them >, the others {others}" if bounds else ""
    return f"{mean([r.value for r in values]):.2f}x ({len(values)} cases{note})"


def classes(found: Sequence[Case], rivals: Sequence[tuple[str, int]]) -> list[str]:
    """A line for every set and rival."""
    many = [case for case in found if case.n_problems > 1]
    body = []
    for name in dict.fromkeys(case.key[0] for case in many):
        for rival in rivals:
            mine = [case for case in many if case.key[0] == name]
            body.append([name, *map(str, rival), *(_mean_cell(ratios(mine, rival, rival[1], gap)) for gap in GAPS)])
    return grid(["set", "rival", "threads", *(f"{gap:g}" for gap in GAPS)], body)


def losses(found: Sequence[Case], rivals: Sequence[tuple[str, int]]) -> list[str]:
    """Every case in which we are behind with the rival's number of threads, worst first."""
    lines = []
    for convert in (True, False):
        for rival in rivals:
            every = [r for gap in GAPS for r in ratios(found, rival, rival[1], gap, convert)]
            behind = [r for r in every if r.value < 1.0 and r.sign != ">"]
            kind = "" if convert else ", without conversion"
            lines.append(f"- **{rival[0]}, {rival[1]} thread(s){kind}: {len(behind)} of {len(every)}**")
            ordered = sorted(behind, key=lambda r: r.value)
            lines += [f"  - {' '.join(r.key)}, gap {r.gap:g}: {r}" for r in ordered]
    return lines


def doubts(found: Sequence[Case], entrants: Sequence[tuple[str, int]]) -> list[str]:
    """Gaps that we did not reach, and certificates that do not hold."""
    lines = []
    for case in found:
        where = " ".join(case.key)
        for name, threads in entrants:
            closest = case.closest(name, threads)
            if name == "hinge" and case.of(name, threads) and closest > GAPS[-1]:
                lines.append(f"- {where}, {threads} thread(s): closest {closest:.1e}")
        for row in case.rows:
            # What is claimed: that the best is not below the value less its share.
            if row["claimed_gap"]:
                floor = (1.0 - float(row["claimed_gap"])) * float(row["objective"])
                if floor > case.best * (1.0 + 1e-11):
                    lines.append(f"- {where}: claimed {float(row['claimed_gap']):.2e}, true {case.distance(row):.2e}")
    return lines or ["- none"]


def memory(found: Sequence[Case], entrants: Sequence[tuple[str, int]]) -> list[str]:
    """The highest peak of all runs on a set, beside the loaded matrix."""
    body = []
    for name in dict.fromkeys(case.key[0] for case in found):
        rows = [row for case in found if case.key[0] == name for row in case.rows if row["peak_bytes"]]
        cells = []
        for package, threads in entrants:
            peaks = [
                float(row["peak_bytes"]) / float(row["nnz"])
                for row in rows
                if (row["package"], row["threads"]) == (package, str(threads))
            ]
            cells.append(f"{max(peaks):.1f}" if peaks else "-")
        body.append([name, *cells])
    return grid(["set", *(f"{name} {threads}" for name, threads in entrants)], body)


def table(found: Sequence[Case], entrants: Sequence[tuple[str, int]]) -> list[str]:
    """A line for every case and gap; ratios against us with the same number of threads."""
    return grid(
        ["set", "loss", "C", "gap", *(f"{name} {threads}" for name, threads in entrants)],
        ([*case.key, f"{gap:g}", *_cells(case, entrants, gap)] for case in found for gap in GAPS),
    )


def _cells(case: Case, entrants: Sequence[tuple[str, int]], gap: float) -> Iterator[str]:
    for name, threads in entrants:
        time = case.time(name, threads, gap)
        against = None if name == "hinge" else ratio(case, (name, threads), threads, gap)
        yield "-" if time is None else f"{time}" + (f" ({against})" if against else "")


def headline(rows: Sequence[Row]) -> str:
    """One sentence for a README."""
    found, parts = cases(rows), []
    for name, threads in contestants(rows):
        if name != "hinge":
            values = [mean([r.value for r in ratios(found, (name, threads), threads, gap)]) for gap in GAPS]
            parts.append(f"{name} with {threads} thread(s) {' / '.join(f'{value:.1f}x' for value in values)}")
    sets = len({case.key[0] for case in found})
    gaps = " / ".join(f"{gap:g}" for gap in GAPS)
    what = f"Geometric means over {len(found)} fits on {sets} sets, their time over ours to gaps {gaps}"
    return f"{what}: {'; '.join(parts)}."


def publish(rows: Sequence[Row], output: Path | None) -> None:
    """Print the summary; beside the CSV file write it with the table, and the picture if matplotlib is there."""
    if not rows:
        return
    text = markdown(rows)
    print(text.split("## Seconds")[0])
    print(headline(rows))
    if output is None:
        return
    comments = [line for line in output.read_text("utf-8").splitlines() if line.startswith("# ")]
    made = "\n".join(f"- {line[2:]}" for line in dict.fromkeys(comments))
    page = f"# Fits: time to a gap\n\n{headline(rows)}\n\nMeasured:\n{made}\n\n{text}"
    output.with_suffix(".md").write_text(page, encoding="utf-8")
    try:
        import picture
    except ImportError as error:
        print(f"no picture: {error}")
    else:
        picture.draw(cases(rows), contestants(rows), output.with_suffix(".png"))


if __name__ == "__main__":
    publish(read(Path(sys.argv[1])), Path(sys.argv[1]))
