"""Rows of any kind as the native module takes them, with NumPy alone: those of predictors that were loaded."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_NARROW, _WIDE = np.dtype(np.int32), np.dtype(np.int64)


def is_ready(X: tuple[Any, ...]) -> bool:
    """Whether one row is a pair of arrays that need no conversion."""
    return len(X) == 2 and all(type(part) is np.ndarray and _is_in_place(part) for part in X) and _are_typed(*X)


def _is_in_place(array: np.ndarray) -> bool:
    """Whether the numbers can be read where they are: one behind the other, each at an address for its kind."""
    flags = array.flags
    return flags.c_contiguous and flags.aligned


def in_place(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """The array, or a copy of it that can be read where it is."""
    array = np.ascontiguousarray(array, dtype=dtype)
    return array if array.flags.aligned else array.copy()


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
    return in_place(indices), in_place(_floats(values, "the values of a row"))


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
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.char in "fd" and X.dtype.isnative and _is_in_place(X):
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
    indptr, n_rows = X.indptr, X.shape[0]
    if indptr.ndim != 1 or len(indptr) != n_rows + 1:
        raise ValueError(f"X has {n_rows} rows, indptr must have one entry more, it has the shape {indptr.shape}")
    return csr_arrays(X)


def csr_arrays(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """``(indptr, indices, data, n_columns)`` of a CSR matrix; copied only where needed."""
    indptr, indices, values = _index_array(X.indptr, "X.indptr"), _index_array(X.indices, "X.indices"), X.data
    if indptr.ndim != 1 or indices.ndim != 1 or values.ndim != 1:
        raise ValueError(
            "the arrays indptr, indices and data of X must have one dimension each, their shapes are "
            f"{indptr.shape}, {indices.shape} and {values.shape}"
        )
    return indptr, indices, in_place(_floats(values, "the values of X")), X.shape[1]


def _index_array(numbers: np.ndarray, name: str) -> np.ndarray:
    """Integers of four or eight bytes; refuses what would lose numbers when it is converted."""
    if numbers.dtype in (_NARROW, _WIDE):
        return in_place(numbers)
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got {numbers.dtype}")
    if numbers.dtype == np.uint64 and numbers.size and numbers.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} holds {numbers.max()}, which is outside of any matrix")
    return in_place(numbers, _WIDE)


def _dense_rows(X: Any) -> np.ndarray:
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"the rows of X are no array of numbers: {error}") from None
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: pass one row as a tuple (indices, values), as a dict "
            "of names and values, or by reshape(1, -1)"
        )
    return in_place(_floats(array, "X"))


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
