"""Searches for C on a cluster.

The client has the labels, weights and folds of all rows, as scorers and splitters want them; the shards have the folds
of their own rows, and send the decision values of those held out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge import _native, _validate
from hinge._csearch import CSearch
from hinge._dask_exchange import Folds, Shards, Traffic
from hinge._dask_shards import PartFacts
from hinge._loop import Search
from hinge._problem import Problem


@dataclass(frozen=True, eq=False, repr=False)
class ClusterSearch(CSearch):
    """The table of a search on a cluster: a :class:`hinge.CSearch` that also knows what has travelled.

    Attributes
    ----------
    traffic : Traffic
        Rounds, bytes and seconds of the search.
    """

    traffic: Traffic | None = None


@dataclass(frozen=True)
class ShardSearch(Search):
    """A search whose rows are at shards.

    Attributes
    ----------
    shards : Shards
        Where the rows are, with the folds of each part.
    borders : ndarray of shape (n_shards + 1,), uint32
        First row of each shard, and the number of rows.
    n_features : int
    """

    shards: Shards
    borders: np.ndarray
    n_features: int

    def _search(self, visit: Callable[[dict[str, Any]], float | None], report: Any) -> str:
        problem = self.problem
        rows = (problem.ids, len(problem.classes), problem.weight, self.folds.splits)
        try:
            return _native.search_shards(
                self.shards,
                self.shards.facts(),
                self.borders,
                self.n_features,
                *rows,
                self.options,
                self.plan.native,
                visit,
                report,
            )
        except BaseException as error:
            self.shards.cancel(error)  # what was found so far may be kept: the caller need not hear of the error
            raise


def problem_of(facts: Sequence[PartFacts], class_weight: Any) -> tuple[Problem, np.ndarray]:
    """The problem of all rows, part after part, without their features; and the weight of each class."""
    y = np.concatenate([part.y for part in facts if part.y is not None])
    X, weight = np.empty((len(y), 0)), None
    if any(part.weight is not None for part in facts):
        weight = np.concatenate([np.ones(part.n_rows) if part.weight is None else part.weight for part in facts])
    problem = Problem.of(X, y, class_weight, weight)
    factors = np.ones(len(problem.classes))
    if class_weight is not None:
        totals = np.bincount(problem.ids, weights=weight, minlength=len(factors)).astype(np.float64)
        factors = _validate.class_factors(problem.classes, totals, class_weight)
    return problem, factors


def borders_of(facts: Sequence[PartFacts]) -> np.ndarray:
    """First row of each part, and the number of rows."""
    borders = np.cumsum([0, *(part.n_rows for part in facts)])
    if borders[-1] >= 2**32:
        raise ValueError(f"a search takes fewer than 2**32 rows, got {borders[-1]}")
    return borders.astype(np.uint32)


def folds_by_part(splits: Sequence[tuple[np.ndarray, np.ndarray]], borders: np.ndarray) -> list[Folds]:
    """The folds of each part, as its own row numbers, in the order in which the folds have them."""

    def within(rows: np.ndarray, k: int) -> np.ndarray:
        inside = rows[(rows >= borders[k]) & (rows < borders[k + 1])]
        return np.ascontiguousarray(inside - borders[k], dtype=np.uint32)

    return [[(within(a, k), within(b, k)) for a, b in splits] for k in range(len(borders) - 1)]


def gathered(client: Any, groups: Any) -> Any:
    """Groups of rows, fetched from the cluster where they are a collection of dask."""
    if groups is None or not hasattr(groups, "__dask_graph__"):
        return groups
    return np.asarray(client.compute(groups).result())
