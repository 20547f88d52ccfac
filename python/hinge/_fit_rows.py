"""The checked rows of one fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True)
class FitRows:
    """The checked rows of a fit.

    Attributes
    ----------
    X : csr_matrix or ndarray of shape (n_rows, n_features)
    ids : ndarray of shape (n_rows,)
        Numbers of the classes.
    n_classes : int
    weight : ndarray of shape (n_rows,)
        Class weight times sample weight.
    labels : tuple of ndarray, or None
        Where y is a matrix of labels: starts and numbers of the positive rows of each.
    is_softmax : bool
        Whether all classes are one problem, multinomial logistic regression.
    """

    X: Any
    ids: np.ndarray
    n_classes: int
    weight: np.ndarray
    labels: tuple[np.ndarray, np.ndarray] | None = None
    is_softmax: bool = False

    @property
    def signs(self) -> np.ndarray:
        """+1 and -1 of the binary problems, shape (n_rows, n_problems): the second of two classes, else each class."""
        if self.labels is not None:
            starts, rows = self.labels
            signs = np.full((len(self.weight), self.n_problems), -1.0)
            signs[rows, np.repeat(np.arange(self.n_problems), np.diff(starts))] = 1.0
            return signs
        positive = (self.ids == 1)[:, None] if self.n_classes == 2 else self.ids[:, None] == np.arange(self.n_classes)
        return np.where(positive, 1.0, -1.0)

    @property
    def n_problems(self) -> int:
        """Vectors of weights: 1 for two classes, else one per class or label."""
        if self.labels is not None:
            return len(self.labels[0]) - 1
        return 1 if self.n_classes == 2 else self.n_classes

    def decisions(self, result: dict[str, Any]) -> np.ndarray:
        """Decision values of a result, shape (n_rows, n_problems)."""
        return np.vstack([rows @ result["coef"].T + result["intercept"] for _, rows in blocks(self.X)])

    def margins(self, values: np.ndarray) -> np.ndarray:
        """By how much decision values are on the right side, shape (n_rows, n_problems), with a softmax (n_rows, 1)."""
        if not self.is_softmax:
            return self.signs * values
        rows, others = np.arange(len(values)), values.copy()
        others[rows, self.ids] = -np.inf
        return (values[rows, self.ids] - others.max(axis=1))[:, None]

    def losses(self, values: np.ndarray) -> np.ndarray:
        """Logistic losses of decision values, in the shape of their margins."""
        if not self.is_softmax:
            return np.logaddexp(0.0, -self.signs * values)
        return softmax_losses(values, self.ids)[:, None]


def softmax_losses(values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """``log sum_k exp(f_k) - f_y`` of each row, without cancellation where it is small; shape (n_rows,)."""
    rows = np.arange(len(values))
    above = values - values[rows, ids][:, None]
    above[rows, ids] = -np.inf
    return np.logaddexp(0.0, logsumexp(above, axis=1))


def blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    """Runs of rows in double precision, some millions of entries at a time: never a copy of all of X."""
    entries = X.nnz if sp.issparse(X) else X.size
    step = max(1, BLOCK_ENTRIES * X.shape[0] // max(1, entries))
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        yield rows, X[rows].astype(np.float64)
