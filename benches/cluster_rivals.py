"""Logistic regression on one Dask cluster of processes: ours beside that of dask-ml (``pip install dask-ml``).

    python benches/cluster_rivals.py --sets covtype a9a --workers 1 2

Both get the same dask array of NumPy rows, loaded on the workers before the clock starts, no intercept (dask-ml
penalises it), and solve ``1/2 |w|^2 + C sum of losses``. ``distance`` is how far the objective, computed here, is above
the dual value of a fit to a gap of 1e-9, relative to it. dask-ml has a tolerance for each solver and no certificate;
``--tols`` are run for both, ours as the certified gap. ``hinge csr`` gets the rows as SciPy matrices, which dask-ml
does not take.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import cluster as bench
import numpy as np

SOLVERS = ("lbfgs", "proximal_grad", "admm")
"""Those that know of a penalty; "newton" and "gradient_descent" leave it out."""
CHUNKS = 2
"""Parts of the rows: with two workers one each."""


def objective(X: Any, y: np.ndarray, C: float, w: np.ndarray) -> float:
    """The objective of the weights ``w``; ``y`` is -1 or 1."""
    return float(0.5 * w @ w + C * np.logaddexp(0.0, -y * (X @ w)).sum())


def dask_ml(solver: str, C: float, tol: float, max_iter: int) -> Callable[[Any, Any], np.ndarray]:
    """A fit by dask-ml, which returns the weights."""
    from dask_ml.linear_model import LogisticRegression

    def fit(X: Any, y: Any) -> np.ndarray:
        model = LogisticRegression(solver=solver, C=C, fit_intercept=False, tol=tol, max_iter=max_iter)
        return np.ravel(model.fit(X, y).coef_)

    return fit


def ours(client: Any, C: float, tol: float) -> Callable[[Any, Any], np.ndarray]:
    """A fit by the package, which returns the weights."""
    import hinge.dask

    def fit(X: Any, y: Any) -> np.ndarray:
        model = hinge.dask.LogisticRegression(C, fit_intercept=False, tol=tol)
        return model.fit(X, y, client=client).coef_[0]

    return fit


def contestants(client: Any, options: argparse.Namespace) -> list[tuple[str, float, Callable[[Any, Any], np.ndarray]]]:
    """Name, tolerance and fit of all that take dense rows."""
    found = [("hinge", tol, ours(client, options.C, tol)) for tol in options.tols]
    for solver in options.solvers:
        found += [(solver, tol, dask_ml(solver, options.C, tol, options.max_iter)) for tol in options.tols]
    return found


def measure(name: str, options: argparse.Namespace) -> None:
    """Lines of a set, on a cluster for each number of workers."""
    import hinge
    from distributed import Client, LocalCluster

    task = bench.task_of(name, 0)
    X, y = task.X, np.where(task.y == task.classes[0], -1.0, 1.0)
    optimum = hinge.LogisticRegression(options.C, fit_intercept=False, tol=1e-9).fit(X, y).certificate_.dual[0]
    rows = X.toarray().astype(float)
    for n_workers in options.workers:
        cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster, direct_to_workers=True) as client:
            for who, tol, seconds, w in fits(client, X, rows, y, options):
                distance = objective(X, y, options.C, w) / optimum - 1
                print(f"{name:>12} {n_workers:7} {who:>16} {tol:7.0e} {seconds:8.2f} {distance:9.1e}", flush=True)


def fits(
    client: Any, X: Any, rows: np.ndarray, y: np.ndarray, options: argparse.Namespace
) -> Iterator[tuple[str, float, float, np.ndarray]]:
    """Name, tolerance, seconds and weights of all, on the rows in both forms."""
    import dask.array as da

    size = -(-len(rows) // CHUNKS)
    client.run(__import__, "hinge.dask")
    labels = client.persist(da.from_array((y > 0).astype(float), chunks=size))
    dense = client.persist(da.from_array(rows, chunks=(size, -1)))
    sparse = client.persist(da.from_array(X, chunks=(size, -1), asarray=False))
    client.gather(client.futures_of([labels, dense, sparse]), direct=True)
    cases = [(*contestant, dense) for contestant in contestants(client, options)]
    cases += [("hinge csr", tol, ours(client, options.C, tol), sparse) for tol in options.tols]
    for who, tol, fit, matrix in cases:
        start = time.perf_counter()
        # dask-ml's solvers meet overflow and zeros by the way, and go on.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            w = fit(matrix, labels)
        yield who, tol, time.perf_counter() - start, w


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["covtype", "a9a"])
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--solvers", nargs="*", choices=SOLVERS, default=SOLVERS)
    parser.add_argument("--tols", nargs="+", type=float, default=[1e-4])
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--max-iter", type=int, default=100, help="of dask-ml, whose default it is")
    options = parser.parse_args()
    print(f"{'set':>12} workers {'who':>16} {'tol':>7} {'seconds':>8} {'distance':>9}", flush=True)
    for name in options.sets:
        measure(name, options)


if __name__ == "__main__":
    main()
