"""Several labels per row, and sparse models of many labels or classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge import _decisions, _native, _sparse


def is_indicator(y: Any) -> bool:
    """Whether y is a matrix of labels by rows, rather than one class per row."""
    if sp.issparse(y):
        return True
    if not isinstance(y, np.ndarray):
        if not isinstance(y, (list, tuple)) and not hasattr(y, "__array__"):
            return False
        y = np.asarray(y) if not isinstance(y, (list, tuple)) or (len(y) and np.ndim(y[0]) > 0) else np.empty(0)
    return y.ndim == 2 and y.shape[1] > 1


def names(y: Any, n_labels: int) -> np.ndarray:
    """The column names of a data frame where all are strings, else column numbers."""
    columns = list(getattr(y, "columns", ()))
    if len(columns) == n_labels and all(isinstance(name, str) for name in columns):
        return np.array(columns, dtype=object)
    return np.arange(n_labels)


def positive_rows(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Positive rows of each label: starts of shape (n_labels + 1,) and row numbers, checked."""
    _sparse.check(y, "y")
    if y.shape[0] != n_rows if hasattr(y, "shape") else len(y) != n_rows:
        raise ValueError(f"y has {y.shape[0] if hasattr(y, 'shape') else len(y)} rows of labels, X has {n_rows} rows")
    if sp.issparse(y):
        matrix = sp.csc_array(y, copy=True)  # it is changed below
        matrix.sum_duplicates()
        values = matrix.data
    else:
        y = np.asarray(y)
        if y.dtype.kind not in "biuf":
            raise ValueError(f"an indicator matrix y must hold numbers, 0 or 1, it has the dtype {y.dtype}")
        values = y
        matrix = None
    wrong = ~((values == 0) | (values == 1))
    if wrong.any():
        value = np.asarray(values)[wrong].ravel()[0]
        raise ValueError(f"an indicator matrix y must hold 0 or 1 only, it holds {value}")
    if matrix is None:
        matrix = sp.csc_array(y.astype(bool))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32)


def class_rows(ids: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for one class per row; two classes make one label, the second."""
    if n_classes == 2:
        rows = np.flatnonzero(ids == 1)
        return np.array([0, len(rows)], dtype=np.int64), rows.astype(np.uint32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=n_classes))]).astype(np.int64)
    return starts, np.argsort(ids, kind="stable").astype(np.uint32)


def native_fit(
    ids: np.ndarray, n_classes: int, rows: tuple[np.ndarray, np.ndarray] | None, options: dict[str, Any]
) -> Callable[..., dict[str, Any]]:
    """The native function that fits all classes, or the labels with the given positive rows."""
    sparse_tol = options["sparse_tol"]
    if rows is None and sparse_tol is None:
        return _native.fit
    starts, positive = class_rows(ids, n_classes) if rows is None else rows

    def fit(matrix: Any, ids: Any, n_classes: int, cost: np.ndarray, options: Any, report: Any) -> dict[str, Any]:
        result = _native.fit_labels(matrix, starts, positive, cost, options, sparse_tol or 0.0, report)
        n_features = matrix[3] if isinstance(matrix, tuple) else matrix.shape[1]
        indptr, indices, values = result["coef"]
        coef = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_features))
        return result | {"coef": coef if options["sparse_coef"] else coef.toarray()}

    return fit


def indicator(model: Any, X: Any) -> Any:
    """Labels with a positive decision value, as a matrix of the kind that the model was fitted with."""
    found = _decisions.positive_labels(model, X)
    return found if model.multilabel_ == "sparse" else found.toarray()


def as_indicator(values: np.ndarray) -> np.ndarray:
    """0/1 integers of decision values, a column per label."""
    return (values.reshape(len(values), -1) > 0).astype(np.int64)


def of_kind(labels: np.ndarray, kind: str) -> Any:
    """A 0/1 matrix, "dense" or "sparse"."""
    return sp.csr_array(labels) if kind == "sparse" else labels
