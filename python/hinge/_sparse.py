"""Sparse arrays with spoiled index arrays: refused before SciPy, which does not check them, reads out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def check(X: Any, name: str = "X") -> None:
    """Refuse a sparse array that is no matrix, or whose index arrays leave it; anything else passes.

    Comparisons only, since a difference of two spoiled numbers may wrap around into a good one.
    """
    if not sp.issparse(X):
        return
    _check_shape(X, name)
    if X.dtype.kind not in "biufcOSU":  # the last of these are converted, or refused, by scikit-learn
        raise ValueError(f"{name} must hold numbers, it has the dtype {X.dtype}")
    if X.format in _CHECKS:
        _CHECKS[X.format](X, name)


def check_before_native(X: Any, name: str = "X") -> None:
    """:func:`check` of what the native module takes next: it checks the entries of a CSR array of floats itself."""
    if not sp.issparse(X) or X.format != "csr" or X.dtype not in (np.float32, np.float64):
        check(X, name)
    else:
        _check_shape(X, name)
        _check_length(X.indptr, X.shape[0], name)


def check_rows(X: Any, name: str = "X") -> None:
    """:func:`check` of what is cut into rows next: the columns of CSR arrays are left to a check of the pieces."""
    if not sp.issparse(X) or X.format != "csr":
        check(X, name)
    else:
        _check_shape(X, name)
        _check_flat(X, name)
        _pointers(X, X.shape[0], "row", name)


def _check_shape(X: Any, name: str) -> None:
    if X.ndim != 2:
        raise ValueError(
            f"{name} must be a matrix of 2 dimensions, got a sparse array of shape {X.shape}: reshape it, to one row "
            "by reshape(1, -1)"
        )


def _check_length(indptr: np.ndarray, size: int, name: str) -> None:
    if indptr.ndim != 1 or len(indptr) != size + 1:
        raise ValueError(f"{name} has {size} rows, indptr must have one entry more, it has the shape {indptr.shape}")


def _check_flat(X: Any, name: str) -> None:
    if X.data.ndim != 1:
        raise ValueError(f"{name}.data must have 1 dimension, got the shape {X.data.shape}")


def _check_compressed(X: Any, name: str) -> None:
    _check_flat(X, name)
    _check_lines(X, X.shape, ("row", "column") if X.format == "csr" else ("column", "row"), name)


def _check_blocks(X: Any, name: str) -> None:
    if X.data.ndim != 3 or any(size % block for size, block in zip(X.shape, X.data.shape[1:], strict=True)):
        raise ValueError(f"{name} of shape {X.shape} cannot have the blocks of data of shape {X.data.shape}")
    shape = tuple(size // block for size, block in zip(X.shape, X.data.shape[1:], strict=True))
    _check_lines(X, shape, ("row of blocks", "column of blocks"), name)


def _check_lines(X: Any, shape: tuple[int, ...], names: tuple[str, str], name: str) -> None:
    """Pointers and indices of a compressed format; ``shape`` and ``names`` begin with the compressed axis."""
    line, other = names
    size, limit = shape if X.format != "csc" else shape[::-1]
    nnz = _pointers(X, size, line, name)
    at = _outside(X.indices[:nnz], limit)
    if at is not None:
        place = int(np.searchsorted(X.indptr, at, side="right")) - 1
        raise ValueError(f"input {name}, {line} {place}: {other} index {X.indices[at]} is outside 0..{limit}")


def _pointers(X: Any, size: int, line: str, name: str) -> int:
    """Check the pointers of a compressed format; the number of entries that they reach."""
    indptr = X.indptr
    _check_whole(indptr, f"{name}.indptr")
    _check_whole(X.indices, f"{name}.indices")
    stored = min(len(X.indices), len(X.data))
    if len(indptr) != size + 1:
        raise ValueError(f"{name} has {size} {line}s, indptr must have one entry more, it has {len(indptr)}")
    if indptr[0] != 0:
        raise ValueError(f"input {name}, {line} 0: indptr starts at {indptr[0]}, it must start at 0")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        at = int(falls.argmax())
        raise ValueError(
            f"input {name}, {line} {at}: indptr falls from {indptr[at]} to {indptr[at + 1]}, it must never fall"
        )
    if indptr[-1] > stored:
        raise ValueError(f"input {name}: indptr reaches {indptr[-1]}, only {stored} entries are stored")
    return int(indptr[-1])


def _check_whole(numbers: np.ndarray, name: str) -> None:
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers of 1 dimension, got {numbers.dtype} of shape {numbers.shape}")


def _outside(numbers: np.ndarray, limit: int) -> int | None:
    """The place of the first number that is not in ``0..limit``."""
    if len(numbers) == 0 or (numbers.min() >= 0 and numbers.max() < limit):
        return None
    return int(((numbers < 0) | (numbers >= limit)).argmax())


def _check_coordinates(X: Any, name: str) -> None:
    for part, numbers, limit in (("row", X.row, X.shape[0]), ("col", X.col, X.shape[1])):
        _check_whole(numbers, f"{name}.{part}")
        if len(numbers) != len(X.data):
            raise ValueError(f"{name}.{part} has {len(numbers)} entries, {name}.data has {len(X.data)}")
        at = _outside(numbers, limit)
        if at is not None:
            raise ValueError(f"{name}.{part}[{at}] is {numbers[at]}, it must be at least 0 and below {limit}")


def _check_diagonals(X: Any, name: str) -> None:
    _check_whole(X.offsets, f"{name}.offsets")
    if X.data.ndim != 2 or len(X.offsets) != len(X.data):
        raise ValueError(
            f"{name} has {len(X.offsets)} offsets, data must have as many rows, its shape is {X.data.shape}"
        )
    if len(np.unique(X.offsets)) != len(X.offsets):
        raise ValueError(f"{name}.offsets must differ from each other, got {X.offsets.tolist()}")


def _check_lists(X: Any, name: str) -> None:
    n_rows, limit = X.shape
    if X.rows.shape != (n_rows,) or X.data.shape != (n_rows,):
        raise ValueError(f"{name} has {n_rows} rows, its lists have the shapes {X.rows.shape} and {X.data.shape}")
    for row, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(columns) != len(values):
            raise ValueError(f"input {name}, row {row}: {len(columns)} columns and {len(values)} values")
        if columns and not (min(columns) >= 0 and max(columns) < limit):
            bad = next(column for column in columns if not 0 <= column < limit)
            raise ValueError(f"input {name}, row {row}: column index {bad} is outside 0..{limit}")


def _check_keys(X: Any, name: str) -> None:
    for row, column in X.keys():  # noqa: SIM118 - older SciPy iterates over rows
        if not (0 <= row < X.shape[0] and 0 <= column < X.shape[1]):
            raise ValueError(f"{name}[{row}, {column}] is outside of the shape {X.shape}")


_CHECKS = {
    "csr": _check_compressed,
    "csc": _check_compressed,
    "bsr": _check_blocks,
    "coo": _check_coordinates,
    "dia": _check_diagonals,
    "lil": _check_lists,
    "dok": _check_keys,
}
