"""The multinomial search for C against scikit-learn's LogisticRegressionCV: same folds, same values of C, one thread.

    python multinomial_search.py                                  # all sets
    python multinomial_search.py --sets digits --step 2 --limit 300
    python multinomial_search.py --sets 20news --step 3 --largest 16

Ours goes over the full range by itself. scikit-learn's runs over the same values (every ``--step``-th of them, ours
then too) with its default ``tol`` and ``max_iter``, which ends many fits early, and again with smaller ones until its
objectives are as good as ours. What counts beside the processor seconds is by how much the worst of all objectives,
and that of the chosen C, is above the optimum, for which a search of ours to a gap of 1e-6 stands.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import hinge
import numpy as np
from multinomial import objective, read
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

SETS = ("digits", "20news", "sector")
OPTIMUM_TOL = 1e-5
"""Gap of the fits of a search, times 10."""

TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
"""Of lbfgs; the first is its default."""


class Weights:
    """What :func:`objective` asks of a model."""

    def __init__(self, row: np.ndarray):
        self.coef_, self.intercept_ = row[:, :-1], row[:, -1]


def their_objectives(model, X, y: np.ndarray, folds: list) -> np.ndarray:
    """Objectives of all fits, of shape (n_Cs, n_folds)."""
    paths = model.coefs_paths_[:, 0]
    found = np.empty((len(model.Cs_), len(folds)))
    for f, (train, _) in enumerate(folds):
        for k, C in enumerate(model.Cs_):
            found[k, f] = objective(Weights(paths[f, k]), X[train], y[train], C)
    return found


def line(name: str, seconds: float, excess: np.ndarray, chosen: int, C: float) -> None:
    """One row of the table."""
    worst, at_choice = excess.max(), excess[chosen].max()
    print(f"    {name:28s} {seconds:9.2f} s   worst {worst:8.1e}   at C = {C:<8g} {at_choice:8.1e}", flush=True)


def compare(name: str, step: int, limit: float, largest: float) -> None:
    """All searches of one set."""
    X, y = read(name)
    folds = list(StratifiedKFold(5).split(X, y))
    whole = hinge.select_C(X, y, cv=folds, n_jobs=1)
    Cs = whole.Cs[::step]
    Cs = Cs[Cs <= largest]
    print(f"{name} {X.shape}, {len(Cs)} of {len(whole.Cs)} values from {Cs[0]:.2g} to {Cs[-1]:g}", flush=True)
    started = time.process_time()
    ours = hinge.select_C(X, y, cv=folds, Cs=Cs, n_jobs=1)
    seconds = time.process_time() - started
    optimum = hinge.select_C(X, y, cv=folds, Cs=Cs, tol=OPTIMUM_TOL, n_jobs=1).objective[:, :, 0]
    excess = ours.objective[:, :, 0] / optimum - 1.0
    line("hinge", seconds, excess, ours.index, ours.C)
    for tol in TOLERANCES:
        max_iter = 100 if tol == TOLERANCES[0] else 10_000
        model = LogisticRegressionCV(Cs=Cs, cv=folds, tol=tol, max_iter=max_iter, use_legacy_attributes=False)
        started = time.process_time()
        model.fit(X, y)
        their_seconds = time.process_time() - started
        theirs = their_objectives(model, X, y, folds) / optimum - 1.0
        best = int(np.flatnonzero(Cs == model.C_)[0])
        line(f"lbfgs tol={tol:g} ({their_seconds / seconds:.1f}x)", their_seconds, theirs, best, model.C_)
        if theirs.max() <= excess.max() or their_seconds > limit:
            break


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--step", type=int, default=1, help="take every so many-th value of C")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of a search after which no other is tried")
    parser.add_argument("--largest", type=float, default=np.inf, help="leave larger values of C out")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in given.sets:
            compare(name, given.step, given.limit, given.largest)


if __name__ == "__main__":
    sys.exit(main())
