"""Wesierski et al. (2016) again: figures of the plane of two costs, time and memory beside other ways, a page.

    python benches/papers/wesierski16.py [--output benches/record] [--sets generated,german] [--quick] [--ppopt]
                                         [--no-measure]

Four settings as in the paper: few rows and many features, many rows and few features, moderate, and sparse
high-dimensional rows (``generated``); and german and a9a (``german``), where they are at hand. ``--quick`` leaves out
the larger planes, the memory and the ray, and runs few fits of the grids. Writes pictures, ``wesierski16.json`` and
``wesierski16.md`` (``wesierski16_page.py``). ``--ppopt`` adds PPOPT (``pip install ppopt``), a generic solver of
multiparametric quadratic programs, on sizes that it can do. ``--no-measure`` writes pictures and page anew from the
figures recorded; what is counted and not timed, layers and joint events, is counted anew.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from pathlib import Path

import hinge
import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1] / "compare"))

import cost_path
import problems
import wesierski16_page
from harness import names

N_JOBS = 2
QUICK_GRID_FITS = 200


def settings():
    """Name, rows, labels, box."""
    random = np.random.default_rng(0)

    def gaussian(n, d, shift):
        y = np.where(np.arange(n) % 3 == 0, 1, -1)
        return random.standard_normal((n, d)) + shift * y[:, None], y

    yield "few rows, many features", *gaussian(15, 200, 0.05), (0.02, 0.02)
    yield "many rows, few features", *gaussian(150, 2, 0.5), (1.0, 1.0)
    yield "moderate", *gaussian(60, 10, 0.3), (1.0, 1.0)
    X = sp.random(60, 5000, density=0.01, random_state=random, data_rvs=random.standard_normal)
    y = np.where(np.arange(60) % 3 == 0, 1, -1)
    yield "sparse, high-dimensional", sp.csr_matrix(X), y, (0.2, 0.2)


def ppopt(X, y, box):
    """Facets and seconds of PPOPT on the dual as a multiparametric QP in (C+, C-)."""
    from ppopt.mp_solvers.solve_mpqp import mpqp_algorithm, solve_mpqp
    from ppopt.mpqp_program import MPQP_Program

    n = len(y)
    Z = y[:, None] * np.c_[X, np.ones(n)]
    Q = Z @ Z.T + 1e-8 * np.eye(n)  # it needs a positive definite matrix
    A, b = np.r_[-np.eye(n), np.eye(n)], np.zeros((2 * n, 1))
    F = np.r_[np.zeros((n, 2)), np.column_stack([y > 0, y < 0]).astype(float)]
    A_t = np.r_[-np.eye(2), np.eye(2)]
    b_t = np.array([[0.0], [0.0], [box[0]], [box[1]]])
    program = MPQP_Program(A, b, -np.ones((n, 1)), np.zeros((n, 2)), Q, A_t, b_t, F)
    began = time.perf_counter()
    solution = solve_mpqp(program, mpqp_algorithm.graph)
    return len(solution.critical_regions), time.perf_counter() - began


def measure(X, y, box):
    """The plane and its row: median seconds of three runs, and a warm-started grid beside it."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        path = hinge.cost_path(X, y, box=box, n_jobs=N_JOBS)
        seconds.append(time.perf_counter() - began)
    points, run, grid = cost_path.grid(path)
    row = {
        "rows": X.shape[0],
        "features": X.shape[1],
        "box": f"{box[0]:g} x {box[1]:g}",
        "facets": path.n_facets,
        "layers": path.n_layers,
        "special": len(path.special),
        "seconds": float(np.median(seconds)),
        **cost_path.joint(path),
        "grid points": points,
        "grid fits run": run,
        "grid seconds": grid,
    }
    return path, row


def rivals():
    """PPOPT on the sizes it can do, in the same run."""
    for n in (5, 8, 10):
        random = np.random.default_rng(1)
        y = np.where(np.arange(n) % 3 == 0, 1, -1)
        X, box = random.standard_normal((n, 3)) + 0.4 * y[:, None], (1.0, 1.0)
        _, row = measure(X, y, box)
        row["PPOPT facets"], row["PPOPT seconds"] = ppopt(X, y, box)
        print(row, flush=True)
        yield row


def event_paths(path, rows, ax):
    """Curves on which rows pass between left and margin (cyan) and between margin and right (red), figure 1 (ii)."""
    from matplotlib.collections import LineCollection

    first, events = path.first.astype(np.int64), path.events.astype(np.int64)
    after = np.arange(len(events)) + 1
    after[first[1:] - 1] = first[:-1]
    ends = path.vertices[np.column_stack([path.corner, path.corner[after]])]
    is_row = np.isin(events // 4, rows) & (events < 2**32 - 8) & (ends[:, :, 2] > 0).all(axis=1)
    for side, color in enumerate(("tab:cyan", "tab:red")):
        ax.add_collection(LineCollection(ends[is_row & (events % 2 == side)][:, :, :2], color=color, linewidth=1.2))


def means(path, ax):
    """A red dot at the mean of each facet's vertices, figure 1 (i)."""
    corners = [path.polygon(f) for f in range(path.n_facets)]
    finite = [corner[:, :2].mean(axis=0) for corner in corners if len(corner) and (corner[:, 2] > 0).all()]
    ax.plot(*np.array(finite).T, ".", color="tab:red", markersize=2)


def figures(path, name, folder):
    """After figures 1 and 2 of the paper: facets by layer with means and event paths, three multipliers."""
    import matplotlib.pyplot as plt

    middle = np.array(path.box) / 2
    alpha = path.alpha(*middle)
    bound = np.where(path.problem.signs > 0, *middle)
    inside = np.flatnonzero((alpha > 1e-9) & (alpha < bound * (1 - 1e-9)))
    rows = [*inside.tolist(), *np.setdiff1d(np.arange(len(alpha)), inside).tolist()][:3]
    figure = plt.figure(figsize=(22, 5))
    ax = path.plot(figure.add_subplot(1, 4, 1), vertices=path.n_facets < 3000)
    if path.n_facets < 1500:
        means(path, ax)
    event_paths(path, rows, ax)
    for k, row in enumerate(rows):
        path.plot_multiplier(row, figure.add_subplot(1, 4, 2 + k, projection="3d"))
    figure.suptitle(f"{name}: {path.n_facets} facets in {path.n_layers} layers")
    picture = "wesierski16-" + name.replace(",", "").replace(" ", "-") + ".png"
    figure.savefig(folder / picture, dpi=90)
    plt.close(figure)
    return picture


def errors(folder):
    """Error surface of held-out rows of german, its minimum beside that of a grid, and the ROC points."""
    import matplotlib.pyplot as plt

    problem = problems.load("german")
    X, y = problem.X.astype(np.float64), problem.y
    path = hinge.cost_path(X[:60], y[:60], box=(1.0, 1.0), n_jobs=N_JOBS)
    began = time.perf_counter()
    surface = path.score_surface(X[60:160], y[60:160])
    seconds = time.perf_counter() - began
    best = surface.minimum(1.0, 5.0)
    axes = np.geomspace(1e-3, 1.0, 10)
    points = np.stack(np.meshgrid(axes, axes, indexing="ij"), axis=-1).reshape(-1, 2)
    called = path.decision_function(X[60:160], points[:, 0], points[:, 1]) > 0
    held = y[60:160]
    grid = ((called & (held < 0)).sum(axis=1) + 5.0 * (~called & (held > 0)).sum(axis=1)).min() / len(held)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5))
    surface.plot(left, false_positive=1.0, false_negative=5.0)
    surface.plot_roc(right)
    figure.suptitle("german, 60 rows: error on 100 held-out rows, a missed positive costs 5")
    figure.savefig(folder / "wesierski16-errors.png", dpi=90)
    plt.close(figure)
    return {
        "facets": path.n_facets,
        "cells": len(surface),
        "seconds": seconds,
        "smallest error": best.value,
        "best of a 10 x 10 grid": float(grid),
        "ROC points": len(surface.roc()),
    }


def real_rows(is_quick):
    """Growth on german, memory, a ray over a9a."""
    planes = []
    for n in (25, 50) if is_quick else (25, 50, 100, 150):
        path, row = cost_path.plane(n, N_JOBS)
        row |= cost_path.joint(path)
        row["grid points"], row["grid fits run"], row["grid seconds"] = cost_path.grid(path)
        planes.append(row)
    if is_quick:
        return {"german": planes}
    planes.append(cost_path.plane(1000, N_JOBS, 300_000)[1])
    memory = [cost_path.memory(300, kind) for kind in ("memory", "file")]
    return {"german": planes, "memory": memory, "ray": cost_path.ray(20_000)}


def provenance():
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    versions = f"Python {platform.python_version()}, hinge {hinge.__version__}, numpy {np.__version__}"
    return f"{datetime.date.today()}; {model}; {N_JOBS} threads; {versions}"


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "record")
    parser.add_argument("--sets", type=names, default=["generated", "german"], help="of generated, german")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--ppopt", action="store_true")
    parser.add_argument("--no-measure", action="store_true")
    options = parser.parse_args(words)
    if "german" in options.sets and problems.data_root() is None:
        print("no data sets, set HINGE_DATA to their folder: without german")
        options.sets.remove("german")
    options.output.mkdir(parents=True, exist_ok=True)
    record = options.output / "wesierski16.json"
    found = json.loads(record.read_text()) if record.is_file() else {}

    import matplotlib

    matplotlib.use("Agg")
    if options.quick:
        cost_path.GRID_FITS = QUICK_GRID_FITS
    pictures = {}
    for name, X, y, box in settings():
        if options.no_measure:
            path = hinge.cost_path(X, y, box=box)
            found["settings"][name] |= cost_path.joint(path)
        else:
            path, row = measure(X, y, box)
            print(name, row, flush=True)
            found.setdefault("settings", {})[name] = row
        pictures[name] = figures(path, name, options.output)
    if "german" in options.sets:
        found["errors"] = errors(options.output)
    if not options.no_measure:
        found["provenance"] = provenance()
        if "german" in options.sets:
            found |= real_rows(options.quick)
    elif "german" in options.sets:
        for row in found["german"]:
            if row["ended by"] == "complete":
                row |= cost_path.joint(hinge.cost_path(*cost_path.german(row["rows"]), box=cost_path.BOX))
    if options.ppopt:
        found["ppopt"] = list(rivals())
    record.write_text(json.dumps(found, indent=1, default=float) + "\n")
    (options.output / "wesierski16.md").write_text(wesierski16_page.page(found, pictures))


if __name__ == "__main__":
    main()
