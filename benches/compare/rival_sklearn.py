"""scikit-learn's LogisticRegressionCV on a stored problem, in a process of its own: prints one line of JSON.

It gets the folds and the values of C of the search it stands beside, no intercept, and its own default
tolerance and limit of iterations; the start of its worker processes is not counted, and there is no refit.

    python rival_sklearn.py PROBLEM.npz SOLVER THREADS
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
import rivals
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV


def searcher(Cs: np.ndarray, cv, solver: str, threads: int) -> LogisticRegressionCV:
    """The search of these values of C."""
    return LogisticRegressionCV(
        Cs=Cs,
        l1_ratios=(0.0,),
        cv=cv,
        solver=solver,
        fit_intercept=False,
        scoring="accuracy",
        n_jobs=threads,
        refit=False,
        use_legacy_attributes=False,
    )


def main() -> None:
    """Command line."""
    path, solver, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    X, y, Cs, fold_of = rivals.read(path)
    folds = [(np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in range(fold_of.max() + 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
        # Starts the worker processes and lets them import what they need.
        searcher(np.ones(1), 2, solver, threads).fit(np.eye(8), np.arange(8) % 2)
        model = searcher(Cs, folds, solver, threads)
        print(rivals.READY, flush=True)
        started = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - started
    scores = model.scores_.reshape(len(folds), len(Cs))
    limited = int((model.n_iter_ >= model.max_iter).sum())
    print(json.dumps({"seconds": seconds, "scores": scores.T.tolist(), "limited": limited}))


if __name__ == "__main__":
    main()
