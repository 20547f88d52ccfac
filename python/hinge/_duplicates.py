"""The sums of entries of one row and one column, in the arrays of a matrix of compressed rows."""

from __future__ import annotations

import numpy as np

from hinge import _native


def summed(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, n_columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrays themselves where no row has a column twice, else new ones with sorted rows and each column once.

    Values are added in the order of the row. Values and sums must be finite.
    """
    if not _native.check((indptr, indices, values, n_columns))[0]:
        return indptr, indices, values
    indices, values = _with_sorted_rows(indptr, indices, values, n_columns)
    is_first = np.ones(len(indices), dtype=bool)
    np.not_equal(indices[1:], indices[:-1], out=is_first[1:])
    is_first[_starts(indptr)] = True
    sums = values[is_first]
    again = np.flatnonzero(~is_first)
    n_again = np.arange(1, len(again) + 1)
    with np.errstate(over="ignore", invalid="ignore"):  # the check below says where
        np.add.at(sums, again - n_again, values[again])
    indptr = indptr - np.searchsorted(again, indptr).astype(indptr.dtype)
    indices = indices[is_first]
    _native.check((indptr, indices, sums, n_columns))
    return indptr, indices, sums


def _with_sorted_rows(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, n_columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values, those of every row by index; entries of one index stay in their order."""
    is_sorted = np.ones(len(indices), dtype=bool)
    np.greater_equal(indices[1:], indices[:-1], out=is_sorted[1:])
    is_sorted[_starts(indptr)] = True
    if is_sorted.all():
        return indices, values
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    if (len(indptr) - 1) * n_columns < 2**63:
        order = np.argsort(rows * n_columns + indices, kind="stable")  # a third of the time of lexsort
    else:
        order = np.lexsort((indices, rows))
    return indices[order], values[order]


def _starts(indptr: np.ndarray) -> np.ndarray:
    """Where the rows that are not empty begin."""
    return indptr[:-1][np.diff(indptr) > 0]
