"""Splits of a search: whatever scikit-learn accepts as ``cv``, as row numbers."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils.validation import column_or_1d

from hinge import _validate
from hinge._problem import Problem

Split = tuple[np.ndarray, np.ndarray]


class Folds:
    """Training and held-out rows of every fold, as uint32 row numbers.

    A row may be held out by one fold, by several (repeated cross-validation) or by none (a predefined split).
    """

    def __init__(self, problem: Problem, cv: Any, groups: Any, seed: int):
        n_rows = len(problem.y)
        groups = _groups(groups, n_rows)
        splits = _splitter(problem, cv, groups, seed).split(problem.X, problem.y, groups)
        self.splits: list[Split] = [(_rows(f, a, n_rows), _rows(f, b, n_rows)) for f, (a, b) in enumerate(splits)]
        if not self.splits:
            raise ValueError("cv must give at least one split, it gives none")
        for f, (train, test) in enumerate(self.splits):
            _check_fold(problem, f, train, test)

    def __len__(self) -> int:
        return len(self.splits)

    def tests(self) -> Iterator[np.ndarray]:
        """Held-out rows, fold after fold."""
        return (test for _, test in self.splits)

    def held_out(self, n_rows: int) -> np.ndarray:
        """How often each row is held out, shape (n_rows,)."""
        counts = np.zeros(n_rows, dtype=np.int64)
        for test in self.tests():
            np.add.at(counts, test, 1)
        return counts

    def repeats(self, n_rows: int) -> float:
        """How often a row that is ever held out is held out, on average: 1 for a partition, R for R repetitions."""
        counts = self.held_out(n_rows)
        return float(counts.sum() / (counts > 0).sum())


def _groups(groups: Any, n_rows: int) -> np.ndarray | None:
    if groups is None:
        return None
    groups = column_or_1d(groups)
    if len(groups) != n_rows:
        raise ValueError(f"groups has {len(groups)} entries, X has {n_rows} rows")
    return groups


def _splitter(problem: Problem, cv: Any, groups: np.ndarray | None, seed: int) -> Any:
    if not isinstance(cv, Integral) or isinstance(cv, bool):
        return check_cv(cv, problem.y, classifier=True)
    n_folds = int(cv)
    _check_class_sizes(problem, n_folds)
    if groups is None:
        return StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    n_groups = len(np.unique(groups))
    if n_groups < n_folds:
        raise ValueError(f"cv={n_folds} needs at least {n_folds} groups, groups holds {n_groups}: use a smaller cv")
    return StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)


def _check_class_sizes(problem: Problem, n_folds: int) -> None:
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2, got {n_folds}")
    sizes = np.bincount(problem.ids)
    if sizes.min() < n_folds:
        smallest = _validate.plain(problem.classes[sizes.argmin()])
        raise ValueError(
            f"cv={n_folds} needs at least {n_folds} rows of every class, class {smallest} has {sizes.min()}: "
            "use a smaller cv or a splitter of your own"
        )


def _check_fold(problem: Problem, f: int, train: np.ndarray, test: np.ndarray) -> None:
    counts = np.bincount(problem.ids[train][problem.weight[train] > 0], minlength=len(problem.classes))
    if (counts == 0).any():
        missing = _validate.plain(problem.classes[np.flatnonzero(counts == 0)[0]])
        raise ValueError(f"the training part of fold {f} has no row of class {missing}: use fewer or stratified folds")
    if not (problem.weight[test] > 0).any():
        raise ValueError(f"the held-out part of fold {f} has no row of positive weight, it cannot be scored")


def _rows(f: int, rows: Any, n_rows: int) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.size):
        raise ValueError(f"fold {f} must hold row numbers or a mask of {n_rows} rows, got {rows.dtype} {rows.shape}")
    bad = (rows < 0) | (rows >= n_rows)
    if bad.any():
        raise ValueError(f"fold {f} names row {rows[bad][0]}, row numbers run from 0 to {n_rows - 1}")
    return rows.astype(np.uint32)
