"""Multinomial fits of stores that are larger than the memory given: time, readings and peak memory, by budget.

    python multinomial_stores.py                              # all sets
    python multinomial_stores.py --sets sector --C 1 --tol 1e-3

Beside each fit by blocks stand the fit in memory (its time, and the optimum that all are compared with) and each class
against the rest by blocks. Peak memory is that of a process of its own, less what it had before the fit (Linux only).
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

import hinge
import numpy as np
from multinomial import objective, read

SETS = ("digits", "20news", "sector")


def memory() -> tuple[float, float]:
    """The peak of this process and what it has now, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    numbers = {line.split()[0]: float(line.split()[1]) / 1024 for line in lines if line.startswith("Vm")}
    return numbers["VmHWM:"], numbers["VmRSS:"]


def fitted(path: str, options: dict, answers) -> None:
    """A fit of a store in a process of its own: seconds, model, and MB beyond what there was before."""
    store = hinge.BlockStore(path)
    before, started = memory()[1], time.perf_counter()
    try:
        model = hinge.LogisticRegression(**options, n_jobs=1).fit(store)
    except ValueError as refused:
        answers.put(refused)
        return
    answers.put(
        (time.perf_counter() - started, memory()[0] - before, model.coef_, model.intercept_, model.certificate_)
    )


def in_a_process(path: str, **options):
    """What :func:`fitted` finds."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=fitted, args=(path, options, answers))
    process.start()
    found = answers.get()
    process.join()
    return found


class Weights:
    """What :func:`objective` asks of a model."""

    def __init__(self, coef: np.ndarray, intercept: np.ndarray):
        self.coef_, self.intercept_ = coef, intercept


def compare(name: str, C: float, tol: float, budgets: list[str], path: str) -> None:
    """All fits of one set."""
    X, y = read(name)
    X = X.astype(np.float32)
    store = hinge.BlockStore.build((X, y), path, overwrite=True)
    started = time.perf_counter()
    plain = hinge.LogisticRegression(C=C, tol=tol, n_jobs=1).fit(X, y)
    seconds = time.perf_counter() - started
    optimum = objective(hinge.LogisticRegression(C=C, tol=1e-8, n_jobs=1).fit(X, y), X, y, C)
    weights = 8 * X.shape[1] * -(-len(plain.classes_) // 8) * 8 / 1e6
    print(f"{name} {X.shape}, {len(plain.classes_)} classes, C = {C:g}, tol = {tol:g}: store", end=" ")
    print(f"{store.info()['file_bytes'] / 1e6:.1f} MB, weights {weights:.1f} MB, in memory {seconds:.2f} s", flush=True)
    for multi_class in ("multinomial", "ovr"):
        for budget in budgets:
            options = {"C": C, "tol": tol, "multi_class": multi_class, "memory_budget": budget}
            found = in_a_process(path, **options, block_options={"in_memory": False})
            if isinstance(found, ValueError):
                print(f"    {multi_class:12s} {budget:>7s} {found}", flush=True)
                continue
            took, more, coef, intercept, certificate = found
            far = objective(Weights(coef, intercept), X, y, C) / optimum - 1
            distance = f"distance {far:.1e}" if multi_class == "multinomial" else " " * 16
            print(f"    {multi_class:12s} {budget:>7s} {took:8.2f} s {certificate.passes.max():6.0f} readings", end=" ")
            print(f"gap {certificate.relative_gap.max():.1e} {distance} {more:7.1f} MB", flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--budgets", nargs="+", default=("400MB", "2GB"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in given.sets:
            compare(name, given.C, given.tol, given.budgets, str(Path(folder) / f"{name}.hinge"))


if __name__ == "__main__":
    sys.exit(main())
