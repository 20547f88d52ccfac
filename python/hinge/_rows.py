"""Rows of any kind as the native module takes them, with NumPy alone: those of predictors that were loaded."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_ready(X: tuple[Any, ...]) -> bool:
    """Whether one row is a pair of arrays that need no conversion."""
    return len(X) == 2 and all(type(part) is np.ndarray and part.flags.c_contiguous for part in X) and _are_typed(*X)


def _are_typed(indices: np.ndarray, values: np.ndarray) -> bool:
    kinds = indices.dtype.char in "ilq" and values.dtype.char in "fd"
    return kinds and indices.dtype.isnative and values.dtype.isnative and indices.ndim == values.ndim == 1


def one_row(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """One row ``(indices, values)`` as two arrays in one piece."""
    if len(X) != 2:
        raise ValueError(f"one row is a tuple (indices, values), got a tuple of {len(X)}")
    indices, values = (np.asarray(part) for part in X)
    if indices.ndim != 1 or values.ndim != 1:
        raise ValueError(
            f"one row is a tuple (indices, values) of one dimension each, got {indices.ndim} and {values.ndim}"
        )
    if len(indices) == 0:
        indices = indices.astype(np.int32)
    if indices.dtype.kind not in "iu":
        raise ValueError(f"the indices of a row must be integers, got {indices.dtype}")
    if indices.dtype.kind == "u" and len(indices) and indices.max() > np.iinfo(np.int64).max:
        raise ValueError(f"the index {indices.max()} of a row is outside of any matrix")
    if indices.dtype not in (np.int32, np.int64) or not indices.dtype.isnative:
        indices = indices.astype(np.int64)
    return np.ascontiguousarray(indices), np.ascontiguousarray(_floats(values, "the values of a row"))


def _floats(values: np.ndarray, what: str) -> np.ndarray:
    """Numbers in float32 or float64, of the machine's byte order."""
    if values.dtype.char in "fd" and values.dtype.isnative:
        return values
    if values.dtype.kind == "c":
        raise ValueError(f"{what} must be real numbers, complex data are not supported, got {values.dtype}")
    if values.dtype.char in "fd":
        return values.astype(values.dtype.newbyteorder("="))
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be numbers: {error}") from None


def native_rows(X: Any) -> Any:
    """A C-ordered array, or the arrays of a CSR matrix and its number of columns."""
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.char in "fd" and X.flags.c_contiguous and X.dtype.isnative:
        return X
    if hasattr(X, "tocsr") and hasattr(X, "shape"):
        return _sparse_rows(X)
    return _dense_rows(X)


def _sparse_rows(X: Any) -> Any:
    if X.format != "csr" or X.ndim != 2 or X.data.dtype.char not in "fd":
        if "scipy.sparse" in sys.modules:
            from hinge import _sparse  # SciPy would read spoiled arrays out of bounds

            _sparse.check(X)
        if X.ndim != 2:
            raise ValueError(f"X must be a matrix of 2 dimensions, got shape {X.shape}")
        X = X.tocsr()
    indptr, indices, (n_rows, n_columns) = X.indptr, X.indices, X.shape
    if indptr.ndim != 1 or len(indptr) != n_rows + 1:
        raise ValueError(f"X has {n_rows} rows, indptr must have one entry more, it has the shape {indptr.shape}")
    wide = indices.dtype.itemsize > 4 or indptr.dtype.itemsize > 4
    index = np.int64 if wide else np.int32
    return (
        np.ascontiguousarray(indptr, dtype=index),
        np.ascontiguousarray(indices, dtype=index),
        np.ascontiguousarray(_floats(X.data, "the values of X")),
        n_columns,
    )


def _dense_rows(X: Any) -> np.ndarray:
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: pass one row as a tuple (indices, values), as a dict "
            "of names and values, or by reshape(1, -1)"
        )
    return np.ascontiguousarray(_floats(array, "X"))


def features_of(X: Any) -> list[Any] | None:
    """Names of the columns of a data frame, where all are strings."""
    if type(X) is np.ndarray or not hasattr(X, "columns"):
        return None
    names = list(X.columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def result_array(out: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An array of the caller's that can take results of a shape."""
    if not isinstance(out, np.ndarray) or out.dtype != np.float64 or out.shape != shape:
        found = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise ValueError(f"out must be an array of float64 of shape {shape}, got {found}")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError("out must be C-ordered and writeable")
    return out
