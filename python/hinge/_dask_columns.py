"""Vectors of columns in messages, with the columns that a worker's rows have and no others.

A message is an array of numbers with vectors of the columns in it. A worker that has a part of the rows has a part of
the columns only: what the others' weights are is nothing to it, and its sums for them are zero. Where columns are many,
each worker is therefore sent, and sends, its own; the client and the worker make whole vectors of them, so that neither
the fit nor the shards know of it, and the bits are those of whole vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

VectorAt = tuple[int, int]
"""Where in a message of whole vectors one of them begins, and how many numbers it has of each column."""

MOST = 0.5
"""Share of the columns above which whole vectors are sent. To take parts of them and put them back takes some 12 ms for
450,000 columns and eight numbers each, which at this share is what a network of 1.3 GB/s takes for the other half."""


@dataclass(frozen=True)
class SparseColumns:
    """Some of the columns that travel.

    Attributes
    ----------
    n : int
        Columns that travel; what follows them in a vector, an intercept's column, always does.
    columns : ndarray of int64
        Those that are sent, in rising order.
    """

    n: int
    columns: np.ndarray

    def are_few(self) -> bool:
        """Whether to send them alone is worth it. Whoever names them to the client decides; from then on they are sent
        for the same shards, also by a process that has begun anew and holds them again.
        """
        return len(self.columns) <= MOST * self.n

    def sparse(self, numbers: np.ndarray, vectors: Sequence[VectorAt]) -> np.ndarray:
        """A message with these columns only."""
        pieces, at = [], 0
        for start, lanes in vectors:
            end = start + self.n * lanes
            pieces += [numbers[at:start], _by_column(numbers[start:end], lanes).take(self.columns, axis=0).ravel()]
            at = end
        return np.concatenate([*pieces, numbers[at:]])

    def whole(self, numbers: np.ndarray, vectors: Sequence[VectorAt]) -> np.ndarray:
        """The message again, with zeros for all other columns."""
        left_out = self.n - len(self.columns)
        out = np.zeros(numbers.size + left_out * sum(lanes for _, lanes in vectors))
        at = to = 0
        for start, lanes in vectors:
            between, size = start - to, len(self.columns) * lanes
            out[to:start] = numbers[at : at + between]
            vector = _by_column(out[start : start + self.n * lanes], lanes)
            vector[self.columns] = _by_column(numbers[at + between : at + between + size], lanes)
            at, to = at + between + size, start + self.n * lanes
        out[to:] = numbers[at:]
        return out


def _by_column(vector: np.ndarray, lanes: int) -> np.ndarray:
    """A vector with an item for each column; a number where there is one, which is much faster than a row of one."""
    return vector if lanes == 1 else vector.reshape(-1, lanes)


def columns_of(shards: Sequence[Any]) -> SparseColumns | None:
    """The columns that shards have together, None where one of them does not number its own."""
    found = [shard.columns() for shard in shards]
    if any(one is None for one in found):
        return None
    n, columns = found[0]
    if len(found) > 1:
        columns = np.unique(np.concatenate([columns for _, columns in found]))
    return SparseColumns(n, columns)
