"""What presolve did to the columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Presolve:
    """The matrix that the solver saw, and the one that it was made from.

    Columns that are proportional to each other have been merged into one, columns without a nonzero entry dropped, and
    the rest put in the order of frequency. The fitted weights belong to the columns of the input.

    Attributes
    ----------
    n_features_in : int
        Columns of the input.
    n_columns : int
        Columns that the solver saw.
    nnz_in, nnz_out : int
        Stored entries of the input, and of the matrix that the solver saw.
    n_merged : int
        Columns with entries in two rows or more that were merged into a proportional one.
    n_merged_alone : int
        Columns with an entry in one row only that were merged into another such column of the same row.
    n_dropped : int
        Columns without a nonzero entry.
    """

    n_features_in: int
    n_columns: int
    nnz_in: int
    nnz_out: int
    n_merged: int
    n_merged_alone: int
    n_dropped: int
