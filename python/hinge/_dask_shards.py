"""The side of the workers: a part of the rows in memory, and its answers to what a fit asks.

A worker may have several shards. One call asks all of them, so that a round trip brings one message to each worker and
one back. Answers are added along a binary tree over the numbers of the shards, on the worker as far as it has both
halves, and at the client from there on: the order of the sums, and with it the bits of the result, depends on how the
rows are cut into shards, never on which worker has which.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from hinge import _native, _rows, _validate
from hinge._dask_columns import SparseColumns, VectorAt, columns_of

Answer = tuple[np.ndarray, np.ndarray]
"""Sums and maxima."""

Node = tuple[int, int]
"""Level and place in the tree: the shards ``place * 2**level`` up to those of the next place."""


def reduced(nodes: dict[Node, Answer], n_shards: int) -> dict[Node, Answer]:
    """The nodes with both halves of a node replaced by it, wherever both are there; one that has no sibling in the
    tree of ``n_shards`` leaves goes up as it is.
    """
    nodes, level, width = dict(nodes), 0, n_shards
    while width > 1:
        for at in sorted(place for found, place in nodes if found == level):
            if at % 2 == 1:
                continue
            right = at + 1
            if right >= width:
                nodes[level + 1, at // 2] = nodes.pop((level, at))
            elif (level, right) in nodes:
                nodes[level + 1, at // 2] = _added(nodes.pop((level, at)), nodes.pop((level, right)))
        level, width = level + 1, (width + 1) // 2
    return nodes


def _added(left: Answer, right: Answer) -> Answer:
    if left[0].shape != right[0].shape or left[1].shape != right[1].shape:
        raise RuntimeError("shards have answered different requests")
    return left[0] + right[0], np.maximum(left[1], right[1])


@dataclass(frozen=True)
class Question:
    """What a worker is asked.

    Attributes
    ----------
    numbers : tuple of int
        The shards that are to answer, all in one process.
    n_shards : int
        Of all workers together.
    request : ndarray
        With whole vectors, or with the columns of these shards.
    vectors : sequence of (int, int)
        Where in the whole request its vectors are.
    is_added : bool
        Whether answers are added, as far as they can be.
    is_sparse : bool
        Whether vectors of the request have the columns of these shards only, as those of the answer are to have.
    asks_columns : bool
        Whether to say which these are.
    """

    numbers: tuple[int, ...]
    n_shards: int
    request: np.ndarray
    vectors: Sequence[VectorAt] = ()
    is_added: bool = True
    is_sparse: bool = False
    asks_columns: bool = False


@dataclass(frozen=True)
class Reply:
    """What a worker answers.

    Attributes
    ----------
    nodes : dict
    seconds : float
        Taken.
    vectors : sequence of (int, int)
        Where in the sums of each node, once they are whole, there are vectors.
    columns : SparseColumns or None
        Those of the shards, None where whole vectors are to be sent, and where nobody asked.
    """

    nodes: dict[Node, Answer]
    seconds: float
    vectors: Sequence[VectorAt] = ()
    columns: SparseColumns | None = None


def joined_facts(facts: Sequence[Sequence[float]]) -> list[float]:
    """What shards say of their rows, of all of them: sums, and the largest of the last two numbers."""
    table = np.array(facts)
    return [*table[:, :-2].sum(axis=0).tolist(), *table[:, -2:].max(axis=0).tolist()]


# Parts.

MAGIC = b"hingeBLK"
"""The first bytes of a block store."""


@dataclass(frozen=True)
class StorePart:
    """A block store, whose rows are read where its shard is made, or stay on the disk."""

    path: str

    def open(self) -> Any:
        """The store."""
        from hinge.blocks import BlockStore

        return BlockStore(self.path)

    def rows(self) -> tuple[Any, ...]:
        """Rows, labels and weights (None for none)."""
        X, y, *weights = self.open().to_csr()
        return X, y, weights[0] if weights else None


def read_part(path: str) -> tuple[Any, ...] | StorePart:
    """Rows, labels and weights (None for none) of a file in svmlight format, or a block store, as it is."""
    from hinge.svmlight import load_svmlight

    with open(path, "rb") as file:
        is_store = file.read(len(MAGIC)) == MAGIC
    if is_store:
        return StorePart(path)
    X, y = load_svmlight(path)
    return X, y, None


def as_part(X: Any, y: Any, weight: Any = None) -> tuple[Any, ...]:
    """The pieces of a partition as one part."""
    return X, y, weight


@dataclass(frozen=True)
class PartFacts:
    """What has to be known of all parts before any shard is made."""

    number: int
    n_rows: int
    n_features: int
    is_fixed: bool
    """Whether the part says how many columns there are; a file only says which is the last with an entry."""
    classes: np.ndarray
    totals: np.ndarray
    """Sums of the sample weights of each class's rows."""
    y: np.ndarray | None = None
    """Labels, for a search."""
    weight: np.ndarray | None = None
    """Sample weights, for a search, where the part has any."""
    n_bytes: int = 0
    """Of a store: what its rows take in memory."""


def describe(number: int, part: tuple[Any, ...] | StorePart, is_fixed: bool, has_labels: bool = False) -> PartFacts:
    """Check a part and say what is in it, ``has_labels`` with the labels and weights of all rows."""
    if isinstance(part, StorePart):
        return _described_store(number, part, has_labels)
    if part[0].shape[0] == 0:
        return PartFacts(number, 0, part[0].shape[1], is_fixed, np.empty(0), np.empty(0))
    X, y, weight = _checked(number, part)
    classes, ids = np.unique(y, return_inverse=True)
    totals = np.bincount(ids, weights=weight, minlength=len(classes))
    facts = PartFacts(number, X.shape[0], X.shape[1], is_fixed, classes, totals)
    if not has_labels:
        return facts
    return replace(facts, y=y, weight=weight if len(part) == 3 and part[2] is not None else None)


def _described_store(number: int, part: StorePart, has_labels: bool) -> PartFacts:
    """What a store says of itself."""
    store = part.open()
    totals = np.array(store.info()["class_weight"], dtype=np.float64)
    n_bytes = store.nnz * (store.dtype.itemsize + 4) + 16 * store.n_samples
    facts = PartFacts(number, store.n_samples, store.n_features, False, store.classes, totals, n_bytes=n_bytes)
    if not has_labels or not store.n_samples:
        return facts
    y, weight = store.labels()
    return replace(facts, y=y, weight=weight)


def _checked(number: int, part: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Checked rows, labels and weights."""
    try:
        X, y, weight = part if len(part) == 3 else (*part, None)
        X, y = _validate.fit_data(X, y, None)
        _validate.check_entries(X)
        return X, y, _validate.sample_weights(X, X.shape[0], weight, all_zero=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"part {number}: {error}") from error


@dataclass(frozen=True)
class Setup:
    """What shards are made with."""

    fit: str
    C: float
    classes: np.ndarray
    factors: np.ndarray
    """Weight of each class."""
    n_features: int
    options: Mapping[str, Any]
    store_budgets: Sequence[int] | None = None
    """Bytes for each shard, where the rows of block stores stay there; None to read them into memory."""
    n_lanes: int = 1
    """Problems side by side at most."""


# Shards.

_SHARDS: WeakValueDictionary[tuple[str, int], ShardActor] = WeakValueDictionary()
"""The shards of this process by fit and number; a shard ends with its actor."""


_ENDED: deque[str] = deque(maxlen=1000)
"""The last fits that ended by an exception. A shard that was being made then has nobody to end it: the worker keeps an
actor whose key is gone when it is ready."""


def end_fit(fit: str) -> None:
    """Give the memory of a fit's shards in this process back, also of those that are being made."""
    _ENDED.append(fit)
    for key, shard in list(_SHARDS.items()):
        if key[0] == fit:
            # Not here: that may wait for a pass, and the worker's event loop must not.
            Thread(target=shard.close, daemon=True).start()


def n_shards_here() -> int:
    """Shards in the memory of this process."""
    return len(_SHARDS)


class ShardActor:
    """A part of the rows on a worker, for the time of a fit; ``facts`` is what it says of its rows."""

    def __init__(self, part: tuple[Any, ...] | StorePart, number: int, setup: Setup, n_threads: int):
        setup = replace(setup, options={**setup.options, "n_threads": n_threads})
        if not isinstance(part, StorePart):
            self._shard = _of_rows(part, number, setup)
        elif setup.store_budgets is None:
            self._shard = _of_rows(part.rows(), number, setup)
        else:
            self._shard = _of_store(part, number, setup, setup.store_budgets[number])
        self.facts = self._shard.facts()
        self._columns: dict[tuple[int, ...], SparseColumns | None] = {}
        self._key = setup.fit, number
        _SHARDS[self._key] = self
        if setup.fit in _ENDED:
            self.close()

    def place(self) -> tuple[str, list[float], int]:
        """The worker's address, what the shard says of its rows, and the process."""
        from distributed import get_worker

        return get_worker().address, self.facts, os.getpid()

    def split(self, folds: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Take the folds of a search, as rows of the part to train on and to hold out."""
        self._shard.split([(_rows.in_place(train), _rows.in_place(test)) for train, test in folds])

    def answer(self, request: np.ndarray) -> Answer:
        """What this shard answers."""
        sums, maxima, _ = self._shard.answer(request)
        return sums, maxima

    def columns(self) -> tuple[int, np.ndarray] | None:
        """How many columns travel, and which of them these rows have."""
        return self._shard.columns()

    def ask(self, question: Question) -> Reply:
        """What shards in this process answer."""
        from distributed import get_worker

        start, fit = time.perf_counter(), self._key[0]
        request, numbers = _rows.in_place(question.request), question.numbers
        shards = [_SHARDS[fit, number] for number in numbers]
        columns = self._columns_of(shards) if question.is_sparse else None
        if question.is_sparse and columns is None:
            raise RuntimeError("shards are asked in columns that they have not been told of")
        if columns is not None:
            request = columns.whole(request, question.vectors)
        if len(shards) == 1:
            answers = [shards[0]._shard.answer(request)]
        else:
            with ThreadPoolExecutor(min(len(shards), get_worker().state.nthreads)) as pool:
                answers = list(pool.map(lambda shard: shard._shard.answer(request), shards))
        vectors = answers[0][2]
        nodes = {(0, number): answer[:2] for number, answer in zip(numbers, answers, strict=True)}
        if question.is_added:
            nodes = reduced(nodes, question.n_shards)
        if columns is not None:
            nodes = {node: (columns.sparse(sums, vectors), maxima) for node, (sums, maxima) in nodes.items()}
        named = self._columns_of(shards) if question.asks_columns else None
        told = named if named is not None and named.are_few() else None
        return Reply(nodes, time.perf_counter() - start, vectors, told)

    def _columns_of(self, shards: list[ShardActor]) -> SparseColumns | None:
        key = tuple(shard._key[1] for shard in shards)
        if key not in self._columns:
            self._columns[key] = columns_of(shards)
        return self._columns[key]

    def close(self) -> None:
        """Give the memory back once a request under way is answered."""
        _SHARDS.pop(self._key, None)
        self._columns.clear()
        self._shard.close()


def _of_rows(part: tuple[Any, ...], number: int, setup: Setup) -> _native.RowShard:
    """A shard with rows in memory."""
    X, y, weight = _checked(number, part)
    ids = _validate.encode_among(y, setup.classes)
    with np.errstate(over="ignore"):
        cost = setup.C * setup.factors[ids] * weight
    _check_costs(number, cost)
    X = _widened(X, setup.n_features)
    return _validate.call_native(lambda matrix: _native.RowShard(matrix, ids, cost, dict(setup.options)), X)


def _of_store(part: StorePart, number: int, setup: Setup, budget: int) -> _native.RowShard:
    """A shard whose rows stay in the store, within so many bytes."""
    store = part.open()
    ids = _validate.encode_among(store.classes, setup.classes)
    with np.errstate(over="ignore"):
        cost = setup.C * setup.factors[ids]
        _check_costs(number, cost * store.info()["class_weight"])
    classes = list(zip(ids.tolist(), cost.tolist(), strict=True))
    try:
        return _native.RowShard.of_store(
            part.path, setup.n_features, classes, setup.n_lanes, budget, dict(setup.options)
        )
    except ValueError as error:
        raise ValueError(
            f"part {number} (which shares the memory_budget of all workers with the other stores): {error}"
        ) from error


def _check_costs(number: int, cost: np.ndarray) -> None:
    if not np.isfinite(cost.sum()):
        raise ValueError(f"part {number}: C times the weights of all rows is too large: the sum must be finite")


def _widened(X: Any, n_features: int) -> Any:
    """Sparse rows with so many columns, at least as many as they have."""
    if X.shape[1] == n_features:
        return X
    return type(X)((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
