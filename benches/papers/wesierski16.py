"""Figures of Wesierski et al. (2016) on four settings: facets of the plane by layer, and the surface of one multiplier.

    python benches/papers/wesierski16.py [--output benches/record] [--rivals]

The settings follow the paper: few rows and many features, many rows and few features, moderate, and sparse
high-dimensional rows. Prints one row per setting (facets, layers, seconds, faults) and writes two pictures each.
``--rivals`` adds PPOPT (``pip install ppopt``), a generic solver of multiparametric quadratic programs, on sizes
that it can do, and a warm-started grid of as many certified fits as there are facets.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import hinge
import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1] / "compare"))


def settings():
    """Name, rows, labels, box."""
    random = np.random.default_rng(0)

    def gaussian(n, d, shift):
        y = np.where(np.arange(n) % 3 == 0, 1, -1)
        return random.standard_normal((n, d)) + shift * y[:, None], y

    yield "few rows, many features", *gaussian(15, 200, 0.05), (0.02, 0.02)
    yield "many rows, few features", *gaussian(150, 2, 0.5), (1.0, 1.0)
    yield "moderate", *gaussian(60, 10, 0.3), (1.0, 1.0)
    X = sp.random_array((60, 5000), density=0.01, rng=random, data_sampler=random.standard_normal, format="csr")
    y = np.where(np.arange(60) % 3 == 0, 1, -1)
    yield "sparse, high-dimensional", sp.csr_matrix(X), y, (0.2, 0.2)


def grid(path, X, y, n_points, tol=1e-6):
    """Seconds of a warm-started grid of certified fits over the same box: rows of the grid end to end."""
    side = max(2, round(n_points**0.5))
    axes = [np.linspace(limit / side, limit, side) for limit in path.box]
    problem, start = path.problem, None
    began = time.perf_counter()
    for k, c_pos in enumerate(axes[0]):
        for c_neg in axes[1][:: 1 if k % 2 == 0 else -1]:
            fit = hinge._native.fit_costs(*problem.native, (c_pos, c_neg), tol, 1, start)
            start = fit["alpha"][0]
    return side * side, time.perf_counter() - began


def ppopt(X, y, box):
    """Facets and seconds of PPOPT on the dual as a multiparametric QP in (C+, C-)."""
    from ppopt.mp_solvers.solve_mpqp import mpqp_algorithm, solve_mpqp
    from ppopt.mpqp_program import MPQP_Program

    n = len(y)
    Z = y[:, None] * np.c_[np.asarray(X.todense() if sp.issparse(X) else X), np.ones(n)]
    Q = Z @ Z.T + 1e-8 * np.eye(n)  # it needs a positive definite matrix
    A, b = np.r_[-np.eye(n), np.eye(n)], np.zeros((2 * n, 1))
    F = np.r_[np.zeros((n, 2)), np.column_stack([y > 0, y < 0]).astype(float)]
    A_t = np.r_[-np.eye(2), np.eye(2)]
    b_t = np.array([[0.0], [0.0], [box[0]], [box[1]]])
    program = MPQP_Program(A, b, -np.ones((n, 1)), np.zeros((n, 2)), Q, A_t, b_t, F)
    began = time.perf_counter()
    solution = solve_mpqp(program, mpqp_algorithm.graph)
    return len(solution.critical_regions), time.perf_counter() - began


def measure(name, X, y, box, n_jobs):
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        path = hinge.cost_path(X, y, box=box, n_jobs=n_jobs)
        seconds.append(time.perf_counter() - began)
    row = {
        "setting": name,
        "rows": X.shape[0],
        "features": X.shape[1],
        "box": f"{box[0]:g} x {box[1]:g}",
        "facets": path.n_facets,
        "layers": path.n_layers,
        "seconds": round(float(np.median(seconds)), 5),
        "special": len(path.special),
    }
    return path, row


def draw(path, name, row, folder):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    stem = "wesierski16-" + name.replace(",", "").replace(" ", "-")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5))
    right.remove()
    right = figure.add_subplot(1, 2, 2, projection="3d")
    path.plot(left, vertices=path.n_facets < 3000)
    path.plot_multiplier(row, right)
    figure.suptitle(f"{name}: {path.n_facets} facets in {path.n_layers} layers")
    figure.savefig(folder / f"{stem}.png", dpi=110)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "record")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--rivals", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, X, y, box in settings():
        path, row = measure(name, X, y, box, options.n_jobs)
        middle = np.array(box) / 2
        alpha = path.alpha(*middle)
        inside = np.flatnonzero((alpha > 0) & (alpha < np.where(y > 0, *middle)))
        draw(path, name, int(inside[0]) if len(inside) else 0, options.output)
        if options.rivals:
            row["grid points"], row["grid seconds"] = grid(path, X, y, path.n_facets)
        rows.append(row)
        print(row, flush=True)
    if options.rivals:
        for n in (8, 12, 16):
            random = np.random.default_rng(1)
            y = np.where(np.arange(n) % 3 == 0, 1, -1)
            X, box = random.standard_normal((n, 3)) + 0.4 * y[:, None], (1.0, 1.0)
            _, row = measure(f"gaussian {n} x 3", X, y, box, options.n_jobs)
            row["ppopt facets"], row["ppopt seconds"] = ppopt(X, y, box)
            rows.append(row)
            print(row, flush=True)
    with open(options.output / "wesierski16.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, sorted({key for row in rows for key in row}), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
