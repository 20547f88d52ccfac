"""Splits of a search: whatever scikit-learn accepts as ``cv``, as row numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils.validation import column_or_1d

from hinge import _checks, _validate
from hinge._problem import Problem
from hinge._warn import warn

Split = tuple[np.ndarray, np.ndarray]


class Folds:
    """Training and held-out rows of every fold, as uint32 row numbers.

    A row may be held out by one fold, by several (repeated cross-validation) or by none (a predefined split).
    """

    def __init__(self, problem: Problem, cv: Any, groups: Any, seed: int, *, needs_classes: bool = True):
        """``needs_classes``: whether every training part must have rows of every class."""
        n_rows = len(problem.y)
        groups = _groups(groups, n_rows)
        splits = _stratified(problem, int(cv), groups, seed) if _checks.is_number(cv) else _given(problem, cv, groups)
        self.splits: list[Split] = [(_rows(f, a, n_rows), _rows(f, b, n_rows)) for f, (a, b) in enumerate(splits)]
        if not self.splits:
            raise ValueError("cv must give at least one split, it gives none")
        for f, (train, test) in enumerate(self.splits):
            _check_fold(problem, f, train, test, needs_classes)

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


def _given(problem: Problem, cv: Any, groups: np.ndarray | None) -> Iterable[Split]:
    return check_cv(cv, problem.y, classifier=True).split(problem.X, problem.y, groups)


def _stratified(problem: Problem, n_folds: int, groups: np.ndarray | None, seed: int) -> list[Split]:
    """Shuffled folds. The only row of a class is in every training part, for a part without it cannot be trained on."""
    sizes = np.bincount(problem.ids)
    n_folds = _checked_number(problem, sizes, n_folds)
    splitter = _splitter(n_folds, groups, seed)
    if sizes.min() >= n_folds:
        return list(splitter.split(problem.X, problem.y, groups))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class in y")  # told by _checked_number
        splits = list(splitter.split(problem.X, problem.y, groups))
    if groups is not None:
        return splits
    kept = np.flatnonzero(sizes[problem.ids] == 1)
    return [(np.union1d(train, kept), np.setdiff1d(test, kept)) for train, test in splits]


def _splitter(n_folds: int, groups: np.ndarray | None, seed: int) -> Any:
    if groups is None:
        return StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    n_groups = len(np.unique(groups))
    if n_groups < n_folds:
        raise ValueError(f"cv={n_folds} needs at least {n_folds} groups, groups holds {n_groups}: use a smaller cv")
    return StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)


def _checked_number(problem: Problem, sizes: np.ndarray, n_folds: int) -> int:
    """The number of folds: as asked for, or the size of the largest class; what small classes lead to is warned of."""
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2, got {n_folds}")
    largest = int(sizes.max())
    if largest < 2:
        raise ValueError(f"cv={n_folds} needs at least 2 rows of a class, every class has 1")
    if largest < n_folds:
        warn(f"the largest class has {largest} rows: cv={largest} instead of {n_folds}", UserWarning)
        n_folds = largest
    if sizes.min() < n_folds:
        smallest = _validate.plain(problem.classes[sizes.argmin()])
        rows = "1 row" if sizes.min() == 1 else f"{sizes.min()} rows"
        warn(f"class {smallest} has {rows}: with cv={n_folds} some held-out parts have no row of it", UserWarning)
    return n_folds


def _check_fold(problem: Problem, f: int, train: np.ndarray, test: np.ndarray, needs_classes: bool) -> None:
    counts = np.bincount(problem.ids[train][problem.weight[train] > 0], minlength=len(problem.classes))
    if (counts == 0).any() and (needs_classes or not counts.any()):
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
