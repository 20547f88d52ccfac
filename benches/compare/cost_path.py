"""The plane of two costs and one ray, timed; each beside warm-started certified fits in the same run.

    python benches/compare/cost_path.py [--rows 25,50,100,150] [--ray-rows 20000]

Needs the real sets german and a9a. One line per measurement; medians of three for the planes.
"""

from __future__ import annotations

import argparse
import resource
import time

import hinge
import numpy as np
import problems

BOX = (10.0, 10.0)


def plane(n, n_jobs):
    """Facets per second on the first rows of german; peak of the process's memory in MB afterwards."""
    problem = problems.load("german")
    X, y = problem.X[:n].astype(np.float64), problem.y[:n]
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        path = hinge.cost_path(X, y, box=BOX, n_jobs=n_jobs, on_limit="partial")
        seconds.append(time.perf_counter() - began)
    median = float(np.median(seconds))
    size = path.stats["bytes"] / path.n_facets
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"german {n} rows, box 10 x 10, {n_jobs} threads: {path.n_facets} facets in {path.n_layers} layers, "
        f"{median:.3f} s, {path.n_facets / median:,.0f} facets/s, {size:.0f} bytes each, "
        f"{len(path.special)} special, peak {memory:.0f} MB",
        flush=True,
    )
    return path


def fits(problem, points, tol):
    """Seconds of warm-started certified fits at the given costs, one after the other."""
    start, began, gaps = None, time.perf_counter(), []
    for point in points:
        fit = hinge._native.fit_costs(*problem.native, tuple(point), tol, 1, start)
        start = fit["alpha"][0]
        gaps.append(fit["relative_gap"][0])
    return time.perf_counter() - began, max(gaps)


def ray(n):
    """A ray in C over a9a, and 30 warm-started fits on it."""
    problem = problems.load("a9a")
    X, y = problem.X[:n].astype(np.float64), problem.y[:n]
    began = time.perf_counter()
    path = hinge.cost_path(X, y, box=(1.0, 1.0), ray=(1.0, 1.0))
    seconds = time.perf_counter() - began
    C = np.geomspace(2.0**-10, 1.0, 30)
    began = time.perf_counter()
    found = path.at(C)
    answers = time.perf_counter() - began
    print(
        f"a9a {n} rows, ray to C = 1: {len(path)} events ({int((path.t >= C[0]).sum())} from 2^-10 on), "
        f"{seconds:.2f} s; "
        f"30 exact answers {answers:.2f} s, largest gap {found['relative_gap'].max():.1e}",
        flush=True,
    )
    for tol in (1e-4, 1e-6, 1e-9):
        took, gap = fits(path.problem, np.column_stack([C, C]), tol)
        print(f"    30 warm-started fits at gap {tol:g}: {took:.2f} s (largest gap {gap:.1e})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="25,50,100,150")
    parser.add_argument("--ray-rows", type=int, default=20_000)
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    for n in filter(None, options.rows.split(",")):
        path = plane(int(n), options.n_jobs)
        if path.n_facets < 5000:
            side = round(path.n_facets**0.5)
            axis = np.linspace(BOX[0] / side, BOX[0], side)
            points = [(a, b) for k, a in enumerate(axis) for b in axis[:: 1 if k % 2 == 0 else -1]]
            took, gap = fits(path.problem, points, 1e-6)
            print(
                f"    warm-started grid of {len(points)} fits at gap 1e-6: {took:.3f} s (largest gap {gap:.1e})",
                flush=True,
            )
    if options.ray_rows:
        ray(options.ray_rows)


if __name__ == "__main__":
    main()
