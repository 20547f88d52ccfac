"""The page of ``wesierski16.py``: what was measured, in words."""

from __future__ import annotations

from typing import Any


def page(found: dict[str, Any], pictures: dict[str, str]) -> str:
    """The page in Markdown, from the recorded figures."""
    lines = ["# Every pair of costs: the plane of Wesierski16, explored and measured", ""]
    lines += [INTRODUCTION.format(layers=_layers(found.get("german", []))), ""]
    if "provenance" in found:
        lines.append(f"Made with `benches/papers/wesierski16.py`: {found['provenance']}.")
        lines += [found["machine"], ""] if "machine" in found else [""]
    lines += ["## Four settings", "", SETTINGS, "", *_settings(found.get("settings", {})), ""]
    for name, picture in pictures.items():
        lines += [f"![{name}]({picture})", ""]
    if joint := _joint(found):
        lines += ["## Joint events and layers", "", JOINT, "", *joint, ""]
    if "german" in found:
        lines += ["## Growth, speed, memory", "", GERMAN, "", *_german(found["german"]), ""]
    if "memory" in found:
        lines += [*_memory(found["memory"]), ""]
    if "ppopt" in found:
        lines += ["## Beside a generic solver", "", PPOPT, "", *_ppopt(found["ppopt"]), ""]
    if "ray" in found:
        lines += ["## One ray", "", *_ray(found["ray"]), ""]
    if "errors" in found:
        lines += [
            "## Errors over the plane",
            "",
            *_errors(found["errors"]),
            "",
            "![errors](wesierski16-errors.png)",
            "",
        ]
    return "\n".join([*lines, "## Limits", "", LIMITS]) + "\n"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]


def _seconds(row: dict[str, Any]) -> str:
    return f"{row['seconds']:.3g} s" if "seconds" in row else "-"


def _grid(row: dict[str, Any]) -> tuple[str, str]:
    if "grid seconds" not in row:
        return "-", "-"
    scaled = "" if row["grid fits run"] >= row["grid points"] - 200 else f" (from {row['grid fits run']} fits)"
    return f"{row['grid seconds']:.3g} s{scaled}", f"{row['grid seconds'] / row['seconds']:.1f}x"


def _settings(rows: dict[str, dict[str, Any]]) -> list[str]:
    head = (
        "setting",
        "rows x features",
        "box",
        "facets",
        "layers",
        "special vertices",
        "plane",
        "grid",
        "grid / plane",
    )
    return _table(
        head,
        [
            (
                name,
                f"{row['rows']} x {row['features']}",
                row["box"],
                str(row["facets"]),
                str(row["layers"]),
                str(row["special"]),
                _seconds(row),
                *_grid(row),
            )
            for name, row in rows.items()
        ],
    )


def _joint(found: dict[str, Any]) -> list[str]:
    """Layers both ways and joint events of every plane that was counted."""
    named = [*found.get("settings", {}).items(), *((f"german, {r['rows']} rows", r) for r in found.get("german", []))]
    counted = [(name, row) for name, row in named if "joint events" in row]
    if not counted:
        return []
    head = ("plane", "rows", "layers over edges", "and across vertices", "per row", "joint events", "pairs of paths")
    head += ("of them cross again", "most crossings")
    lines = []
    for name, row in counted:
        layers = row["layers across vertices"]
        numbers = (row["joint events"], row["pairs"], row["pairs that cross again"], row["most crossings"])
        cells = (str(row["rows"]), str(row["layers"]), str(layers), f"{layers / row['rows']:.2f}")
        lines.append((name, *cells, *(f"{number:,}" for number in numbers)))
    return _table(head, lines)


def _german(rows: list[dict[str, Any]]) -> list[str]:
    head = (
        "rows",
        "facets",
        "estimated before",
        "layers",
        "special",
        "area off by",
        "plane",
        "facets/s",
        "grid",
        "grid / plane",
    )
    lines = []
    for row in rows:
        is_part = row["ended by"] != "complete"
        lines.append(
            (
                str(row["rows"]),
                f"{row['facets']:,}" + (" (stopped)" if is_part else ""),
                f"{row['estimate']:,.0f}",
                str(row["layers"]),
                str(row["special"]),
                "-" if is_part else f"{row['area off by']:.0e}",
                f"{row['seconds']:.3g} s",
                f"{row['facets/s']:,.0f}",
                *_grid(row),
            )
        )
    size = max(row["bytes per facet"] for row in rows)
    return [
        *_table(head, lines),
        "",
        f"The arrays of the plane take at most {size:.0f} bytes per facet, whatever the rows.",
    ]


def _layers(rows: list[dict[str, Any]]) -> str:
    """How the layers grow with the rows, where the whole plane was explored."""
    complete = [row for row in rows if row["ended by"] == "complete"]
    if not complete:
        return "That was not measured."
    kind = "layers across vertices" if all("layers across vertices" in row for row in complete) else "layers"
    pairs = ", ".join(f"{row[kind]} at {row['rows']} rows" for row in complete)
    ratios = [row[kind] / row["rows"] for row in complete]
    return f"Layers on german: {pairs}, so {min(ratios):.1f} to {max(ratios):.1f} for each row."


def _memory(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        where = "kept in memory" if row["kept in"] == "memory" else "written to a file"
        size = f", {row['file bytes per facet']:.0f} bytes per facet in the file" if row["file bytes per facet"] else ""
        lines.append(
            f"- german, {row['rows']} rows, {row['facets']:,} facets {where}: the peak memory of the process grew by "
            f"{row['peak grew by MB']:.0f} MB, {row['peak bytes per facet']:.0f} bytes per facet{size}."
        )
    return lines


def _ppopt(rows: list[dict[str, Any]]) -> list[str]:
    head = ("rows", "facets here", "facets PPOPT", "here", "PPOPT")
    return _table(
        head,
        [
            (
                str(row["rows"]),
                str(row["facets"]),
                str(row["PPOPT facets"]),
                f"{row['seconds'] * 1000:.2f} ms",
                f"{row['PPOPT seconds']:.3g} s",
            )
            for row in rows
        ],
    )


def _ray(row: dict[str, Any]) -> list[str]:
    fits = ", ".join(
        f"{row[f'30 fits at {tol} seconds']:.3g} s at gap {tol} (largest {row[f'their gap at {tol}']:.0e})"
        for tol in ("0.0001", "1e-06", "1e-09")
    )
    answers = row["30 exact answers seconds"]
    times = ((row["walk seconds"] + answers) / row[f"30 fits at {tol} seconds"] for tol in ("1e-09", "1e-06", "0.0001"))
    verdict = RAY.format(*(f"{x:.2g}" for x in times))
    return [
        f"a9a, {row['rows']:,} rows, both costs equal, from C = 2^-10 (sets from a fit) to C = 1: {row['events']:,} "
        f"events, {row['walk seconds']:.3g} s with one thread "
        f"({row['walk seconds'] / row['events'] * 1e6:.0f} microseconds per event). Exact answers at 30 values of C "
        f"on it: {answers:.3g} s more, largest relative gap {row['largest gap']:.0e}. "
        f"30 warm-started certified fits at the same values: {fits}. {verdict}",
    ]


def _errors(row: dict[str, Any]) -> list[str]:
    return [
        f"german, 60 rows, box 1 x 1 ({row['facets']:,} facets), 100 held-out rows, a missed positive costs 5: "
        f"{row['cells']:,} cells of constant error in {row['seconds']:.3g} s. The smallest error anywhere is "
        f"{row['smallest error']:.3g} per row; the best point of a 10 x 10 grid has "
        f"{row['best of a 10 x 10 grid']:.3g}. "
        f"{row['ROC points']} points of the ROC curve that no other model of the plane beats."
    ]


INTRODUCTION = """\
**What the paper did.** Wesierski et al., *Exploring the Entire Regularization Path for the Asymmetric Cost Linear
Support Vector Machine* (2016), explore the plane of both costs facet by facet, in layers of four steps (section 3.1):
close edges and facets (CEF), merge (MEV), close vertices (CV), merge (MEF). Four experiments are drawn (section 4,
figures 1 and 2): three on Gaussian samples, few rows with many features, many rows with few features, a moderate size,
and a sparse one on features of images. There are no timings.

**What we did.** The same plane on four settings of the same kinds, the data ours and made from a seed, one machine,
shared: read times as ratios. Beside that: growth, speed, memory, a generic solver, one ray, errors over the plane.

**What agrees.** The plane falls into convex facets, the complex closes (no special vertices in the table), any start
will do, facets are found layer by layer and can be passed on to a file. The paper takes the number of layers to be
about that of the rows (section 3.1, computational complexity).
{layers}

**What is different, and why.**

- Coinciding events (the special cases of section 3.1: duplicates, and points that reach the margin together) are taken
  apart by a perturbation of the margins; the paper goes around such facets and leaves them unexplored.
- Layers are explored breadth first over edges. Step CV of the paper also adds the facet across a vertex (a joint
  event); `CostPath.layers_across_vertices` counts that way, and so do the numbers above.
- Whether a joint event happens at one vertex only is an open question in the paper (section 3.1). Here it does not, see
  the table of joint events: two event paths cross again.
- Figure 1: means of facets are drawn for planes of up to 1,500 facets, event paths of three rows for all.
- Figure 2: three multipliers for each setting.
- A *special* vertex here is one around which the facets do not close in rounding: a term of ours."""

SETTINGS = """\
Left pictures: facets coloured by layer, red dots their means, the event paths of three rows in cyan (left to margin)
and red (margin to right), after figure 1. Right: the surfaces of the three Lagrange multipliers, after figure 2. The
grid is warm-started certified fits at gap 1e-6, as many as there are facets, on one thread, point by point from
Python."""

GERMAN = """\
The first rows of german, box 10 x 10. Facets grow a little faster than the square of the rows.
Lines marked as stopped ended at `max_regions`."""

JOINT = """\
A joint event is a vertex inside the box, at which the event paths of two rows cross. Were joint events unique, as the
paper asks (section 3.1), no pair of paths would cross again."""

PPOPT = """\
PPOPT solves any multiparametric quadratic program; the dual of the hinge in both costs is one. Gaussian rows, three
features, box 1 x 1. The numbers of facets agree, the times do not. PPOPT takes any number of parameters and any
constraints; this package knows only this one problem."""

RAY = """\
So walk and answers take {} times as long as the fits at gap 1e-9, {} times at 1e-6, {} times at 1e-4: between two
values of C a fit need not care in which order thousands of rows cross the margin. The ray pays where every C is wanted,
or all breakpoints, or solutions exact to rounding; for some values of C at a loose gap, fits are faster."""

LIMITS = """\
- Facets, and with them time and memory, grow with the square of the rows and more. `hinge.estimate_regions` tells
  beforehand about how many there will be, `max_regions` stops, `file=` writes layers out as they close, `ray=`
  walks one line, `on_limit="grid"` answers queries by certified fits.
- The table of inner products takes 8 bytes per pair of rows; the whole plane is refused beyond 32,768 rows.
- Polygons and error surfaces are those of the problem with margins perturbed by about 1e-6 (more if a check fails);
  solutions and objectives are taken back to the problem as given and certified there.
- Where few points of the plane are wanted, certified fits are faster than the plane."""
