"""The plane of two costs and one ray, timed; each beside warm-started certified fits in the same run.

    python benches/compare/cost_path.py [--rows 25,50,100,150] [--part 1000] [--memory 300] [--ray-rows 20000]

Needs the real sets german and a9a. One line per measurement; medians of three for the planes. ``--part`` stops a plane
of that many rows at 300,000 facets, ``--memory`` compares the peak memory of a plane kept and one written to a file.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hinge
import numpy as np
import problems

BOX = (10.0, 10.0)
GRID_FITS = 2500
"""Most fits of a grid that are run; beyond, the time is scaled up."""


def german(n):
    problem = problems.load("german")
    return problem.X[:n].astype(np.float64), problem.y[:n]


def plane(n, n_jobs, max_regions=5_000_000):
    """The plane of the first rows of german: facets, median seconds of three runs, what the check found."""
    X, y = german(n)
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        path = hinge.cost_path(X, y, box=BOX, n_jobs=n_jobs, max_regions=max_regions, on_limit="partial")
        seconds.append(time.perf_counter() - began)
    median = float(np.median(seconds))
    row = {
        "rows": n,
        "facets": path.n_facets,
        "layers": path.n_layers,
        "ended by": path.ended_by,
        "seconds": median,
        "facets/s": path.n_facets / median,
        "bytes per facet": path.stats["bytes"] / path.n_facets,
        "special": len(path.special),
        "area off by": abs(path.stats["area"] / (BOX[0] * BOX[1]) - 1),
    }
    row["estimate"] = hinge.estimate_regions(X, y, box=BOX)
    print(row, flush=True)
    return path, row


def joint(path):
    """Layers across vertices, joint events, and how many of these pairs of event paths cross more than once."""
    _, pairs = path.joint_events()
    counts = np.unique(pairs, axis=0, return_counts=True)[1]
    return {
        "layers across vertices": int(path.layers_across_vertices().max()) + 1,
        "joint events": len(pairs),
        "pairs": len(counts),
        "pairs that cross again": int((counts > 1).sum()),
        "most crossings": int(counts.max(initial=0)),
    }


def grid(path, tol=1e-6):
    """Seconds of a warm-started grid of certified fits over the box with as many points as the plane has facets.

    Rows of the grid are walked end to end, so that neighbours follow each other. At most ``GRID_FITS`` are run, as a
    grid of that size; returns (points, fits run, seconds scaled to all points).
    """
    points = path.n_facets
    side = max(2, round(min(points, GRID_FITS) ** 0.5))
    axes = [np.linspace(limit / side, limit, side) for limit in path.box]
    costs = [(a, b) for k, a in enumerate(axes[0]) for b in axes[1][:: 1 if k % 2 == 0 else -1]]
    seconds, _ = fits(path.problem, costs, tol)
    return points, len(costs), seconds * points / len(costs)


def fits(problem, points, tol):
    """Seconds of warm-started certified fits at the given costs, one after the other, and their largest gap."""
    start, began, gaps = None, time.perf_counter(), []
    for point in points:
        fit = hinge._native.fit_costs(problem.native, tuple(point), tol, 1, start)
        start = fit["alpha"][0]
        gaps.append(fit["relative_gap"][0])
    return time.perf_counter() - began, max(gaps)


def memory(n, kind):
    """Growth of the peak memory over a plane of german's first rows, kept or written to a file (own process)."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import cost_path, hinge\n"
        "X, y = cost_path.german(int(sys.argv[2])); hinge.cost_path(X[:20], y[:20])\n"
        "status = lambda: open('/proc/self/status').read()\n"  # the peak of getrusage begins with that of the parent
        "peak = lambda: int(status().split('VmHWM:')[1].split()[0]) * 1024\n"
        "before = peak(); extra = {'file': sys.argv[3]} if sys.argv[3] else {}\n"
        "path = hinge.cost_path(X, y, box=(10, 10), **extra); print(path.n_facets, peak() - before)"
    )
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "plane") if kind == "file" else ""
        command = [sys.executable, "-c", code, str(Path(__file__).parent), str(n), target]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        size = Path(target).stat().st_size if target else 0
    facets, grown = map(int, output.split())
    row = {"rows": n, "kept in": kind, "facets": facets, "peak grew by MB": grown / 2**20}
    row |= {"peak bytes per facet": grown / facets, "file bytes per facet": size / facets}
    print(row, flush=True)
    return row


def ray(n):
    """A ray over a9a from C = 2^-10 to 1, and 30 warm-started fits on it."""
    problem = problems.load("a9a")
    X, y = problem.X[:n].astype(np.float64), problem.y[:n]
    C = np.geomspace(2.0**-10, 1.0, 30)
    began = time.perf_counter()
    path = hinge.cost_path(X, y, box=(1.0, 1.0), ray=(1.0, 1.0), start=(C[0], C[0]))
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    found = path.at((C - C[0]) / (C[-1] - C[0]))
    answers = time.perf_counter() - began
    row = {"rows": X.shape[0], "events": len(path), "walk seconds": seconds}
    row |= {"30 exact answers seconds": answers, "largest gap": float(found["relative_gap"].max())}
    for tol in (1e-4, 1e-6, 1e-9):
        row[f"30 fits at {tol:g} seconds"], row[f"their gap at {tol:g}"] = fits(
            path.problem, np.column_stack([C, C]), tol
        )
    print(row, flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="25,50,100,150")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--ray-rows", type=int, default=20_000)
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    for n in filter(None, options.rows.split(",")):
        path, _ = plane(int(n), options.n_jobs)
        points, run, seconds = grid(path)
        print(f"    warm-started grid of {points} fits at gap 1e-6: {seconds:.3f} s ({run} run)", flush=True)
    if options.part:
        plane(options.part, options.n_jobs, 300_000)
    if options.memory:
        memory(options.memory, "memory")
        memory(options.memory, "file")
    if options.ray_rows:
        ray(options.ray_rows)
    print(f"peak of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
