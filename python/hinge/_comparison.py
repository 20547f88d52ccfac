"""The demonstration's other side: scikit-learn on the same task.

It gets the same rows, folds, values of C and number of jobs, and solves the same problem: each class against
the rest, with LIBLINEAR's penalised intercept. The start of its worker processes is not counted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from hinge import _native
from hinge._console import PlainConsole
from hinge._tasks import N_FOLDS, SEED, Task


def compare(show: PlainConsole, task: Task, loss: str, n_jobs: int, model: Any, seconds: float) -> None:
    """Run scikit-learn over the values of C that ``model`` tried in ``seconds``, and show both."""
    Cs = model.search_.Cs
    _start_workers(n_jobs)
    what = f"scikit-learn: GridSearchCV over the same {len(Cs)} values of C, no news until it ends"
    with show.busy(what), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
        started = time.perf_counter()
        table = _search(task, loss, n_jobs, Cs)
        best = int(table["mean_test_accuracy"].argmax())
        final = _classifier(loss, _native.DEFAULT_TOL, Cs[best]).fit(task.X, task.y)
        taken = time.perf_counter() - started
    show.heading("Beside scikit-learn")
    n_limited = sum(int(table[f"split{k}_test_limited"].sum()) for k in range(N_FOLDS))
    for line in _about(loss, len(Cs), n_jobs, n_limited):
        show.line(f"  {line}")
    ours = _summary("hinge", seconds, model.C_, model.search_.best_score, model, task)
    theirs = _summary("scikit-learn", taken, Cs[best], table["mean_test_accuracy"][best], final, task)
    show.table(("", "seconds", "chosen C", "accuracy on folds", "held-out accuracy"), (ours, theirs))
    show.line(f"  time ratio          {taken / seconds:.1f} (scikit-learn / hinge)")


def _search(task: Task, loss: str, n_jobs: int, Cs: np.ndarray) -> dict[str, np.ndarray]:
    model = _classifier(loss, _native.DEFAULT_SEARCH_TOL)
    grid = {"estimator__C" if loss == "logistic" else "C": Cs}
    search = GridSearchCV(model, grid, scoring=_score, cv=task.folds, n_jobs=n_jobs, refit=False)
    return search.fit(task.X, task.y).cv_results_


def _classifier(loss: str, tol: float, C: float = 1.0) -> Any:
    if loss == "logistic":
        return OneVsRestClassifier(LogisticRegression(C=C, solver="liblinear", tol=tol))
    return LinearSVC(C=C, loss=loss, tol=tol, random_state=SEED)


def _score(model: Any, X: Any, y: np.ndarray) -> dict[str, float]:
    """Accuracy, and 1 if the fit ended at its limit of iterations."""
    parts = getattr(model, "estimators_", [model])
    limited = any(np.max(part.n_iter_) >= part.max_iter for part in parts)
    return {"accuracy": model.score(X, y), "limited": float(limited)}


def _about(loss: str, n_values: int, n_jobs: int, n_limited: int) -> Iterator[str]:
    name = "LogisticRegression(solver='liblinear')" if loss == "logistic" else f"LinearSVC(loss='{loss}')"
    yield f"GridSearchCV of {name}, every fit from zero, then a final fit;"
    yield f"same rows, {N_FOLDS} folds, {n_values} values of C, {n_jobs} jobs (their start is not counted);"
    search_tol, tol = _native.DEFAULT_SEARCH_TOL, _native.DEFAULT_TOL
    yield f"tol {search_tol:g} in the search, {tol:g} at the end, as in hinge, which measures it differently"
    if n_limited:
        n_fits = n_values * N_FOLDS
        yield f"{n_limited} of the {n_fits} fits of its search ended at the limit of iterations, short of tol"


def _summary(name: str, seconds: float, C: float, score: float, model: Any, task: Task) -> tuple[str, ...]:
    held_out = model.score(task.X_test, task.y_test)
    return (name, f"{seconds:.2f}", f"{C:g}", f"{score:.4f}", f"{held_out:.4f}")


def _start_workers(n_jobs: int) -> None:
    """Let the processes start and import scikit-learn."""
    Parallel(n_jobs=n_jobs)(delayed(_classifier)("logistic", 1.0) for _ in range(n_jobs))
