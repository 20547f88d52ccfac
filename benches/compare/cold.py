"""Whether a search's table of scores is that of exact models.

Every score is compared with that of a fit from zero to a certified relative duality gap of 1e-8 on the same
rows. A model has one optimum, so it does not matter who finds it. Values of C between the end of our search
and 1024 are fitted as well: ``missed`` is how much better the best of all is than the best inside.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import engines
import numpy as np
from harness import Report
from problems import Problem
from sklearn.exceptions import ConvergenceWarning

TOL = 1e-8
MAX_ITER = 10_000
C_MAX, RATIO = 1024.0, 2.0
WORKERS = 2
# Percentage points by which a score may differ from the exact model's.
ALLOWED = 0.1

COLUMNS = {
    "set": ">13",
    "loss": ">13",
    "tool": ">15",
    "n_Cs": ">4d",
    "mean_off": ">8.4f",
    "worst_mean_off": ">8.4f",
    "Cs_off": ">6d",
    "fold_off": ">8.4f",
    "worst_fold_off": ">8.4f",
    "folds_off": ">6d",
    "row_is": ">7.4f",
    "missed": ">7.4f",
    "uncertified": ">4d",
}

Folds = Sequence[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Tables:
    """Scores of shape (n_Cs, n_folds) of several tools at the same values of C; ours is named hinge."""

    Cs: np.ndarray
    scores: dict[str, np.ndarray]


@dataclass(frozen=True)
class Exact:
    """Scores of tight fits, (n_Cs, n_folds), and how many of the fits are not certified to TOL."""

    Cs: np.ndarray
    scores: np.ndarray
    n_uncertified: int


def exact_scores(problem: Problem, loss: str, Cs: np.ndarray, folds: Folds) -> Exact:
    """Fits from zero on the training part of every fold at every C, two at a time."""

    def one(C: float, fold: int) -> tuple[float, float]:
        (X, y), (X_test, y_test) = parts[fold]
        model = engines.hinge_model(loss, float(C), "none", "auto", TOL, n_jobs=1, max_iter=MAX_ITER)
        model.fit(X, y)
        return model.score(X_test, y_test), float(model.certificate_.relative_gap.max())

    parts = [[(problem.exact[rows], problem.y[rows]) for rows in fold] for fold in folds]
    with warnings.catch_warnings(), ThreadPoolExecutor(WORKERS) as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
        tasks = [[pool.submit(one, C, fold) for fold in range(len(folds))] for C in Cs]
        results = np.array([[task.result() for task in row] for row in tasks])
    return Exact(Cs, results[..., 0], int((results[..., 1] > TOL).sum()))


def beyond(last: float) -> np.ndarray:
    """The values of C that a search which ended at ``last`` did not visit."""
    n = int(np.floor(np.log(C_MAX / last) / np.log(RATIO) + 1e-9))
    return last * RATIO ** np.arange(1, n + 1)


def verdict(tables: Tables, exact: Exact, fold_rows: int) -> list[dict]:
    """A table row per tool: distances to the exact scores in percentage points."""
    n = len(tables.Cs)
    best = exact.scores.mean(axis=1)
    missed = max(0.0, 100 * (best.max() - best[:n].max()))
    rows = []
    for tool, scores in tables.scores.items():
        fold_off = 100 * np.abs(scores - exact.scores[:n])
        mean_off = 100 * np.abs(scores.mean(axis=1) - best[:n])
        rows.append(
            {
                "tool": tool,
                "n_Cs": n,
                "mean_off": mean_off.mean(),
                "worst_mean_off": mean_off.max(),
                "Cs_off": int((mean_off > ALLOWED).sum()),
                "fold_off": fold_off.mean(),
                "worst_fold_off": fold_off.max(),
                "folds_off": int((fold_off > ALLOWED).sum()),
                "row_is": 100 / fold_rows,
                "missed": missed if tool == "hinge" else None,
                "uncertified": exact.n_uncertified,
            }
        )
    return rows


def exceptions(tables: Tables, exact: Exact) -> list[str]:
    """A line for every score of ours that is off by more than ALLOWED."""
    ours = tables.scores["hinge"]
    off = 100 * (ours - exact.scores[: len(ours)])
    return [
        f"C = {tables.Cs[k]:.4g}, fold {fold}: {100 * ours[k, fold]:.3f} %, exact {100 * exact.scores[k, fold]:.3f} %"
        for k, fold in zip(*np.nonzero(np.abs(off) > ALLOWED), strict=True)
    ]


def check(
    searched: Sequence[tuple[Problem, str, Tables]], folds_of: Callable[[Problem], Folds], output: Path | None
) -> None:
    """Print, and write beside the table of times, how far every tool's scores are from the exact ones."""
    place = None if output is None else output.with_stem(output.stem + "-check")
    note = f"percentage points from the scores of cold fits to a gap of {TOL:g}; off: more than {ALLOWED:g}"
    report, lines = Report(COLUMNS, place, note), []
    for problem, loss, tables in searched:
        folds = folds_of(problem)
        exact = exact_scores(problem, loss, np.concatenate([tables.Cs, beyond(tables.Cs[-1])]), folds)
        for row in verdict(tables, exact, len(folds[0][1])):
            report.add(set=problem.name, loss=loss, **row)
        lines += [f"{problem.name} {loss}: {line}" for line in exceptions(tables, exact)]
    print(f"{len(lines)} scores of hinge are off by more than {ALLOWED:g} percentage points")
    print(*lines, sep="\n")
