"""What users give as data on a cluster, as parts that workers can load, and load again."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future

from hinge._dask_shards import as_part, read_part


@dataclass(frozen=True)
class Part:
    """Some rows with labels and weights, to be loaded on a worker.

    Attributes
    ----------
    number : int
    source : Delayed or Future
        Of ``(X, y)`` or ``(X, y, sample_weight)``.
    name : str
        For messages.
    is_fixed : bool
        Whether the rows say how many columns there are.
    """

    number: int
    source: Any
    name: str
    is_fixed: bool = True

    def load(self, client: Client) -> Future:
        """The data on a worker, loaded again if they were and are no longer there."""
        return self.source if isinstance(self.source, Future) else client.compute(self.source)

    @property
    def is_free(self) -> bool:
        """Whether the data are not on the cluster before a fit, so that they may be loaded anywhere."""
        return not isinstance(self.source, Future) and not _is_somewhere(self.source)


def _is_somewhere(source: Delayed) -> bool:
    """Whether a part is made of what is on the cluster already."""
    graph = dict(source.__dask_graph__())
    keys = set(graph)
    return any(isinstance(task, Future) or set(getattr(task, "dependencies", ())) - keys for task in graph.values())


def targets(parts: Sequence[Part], places: Sequence[str | None], threads: dict[str, int]) -> list[str | None]:
    """The worker for each part, from where its data are, None for anywhere.

    What was on the cluster before stays. Parts that were loaded for the fit stay as well, unless a worker has more of
    them than its threads' share: small ones all land on one worker. They then go to all workers, neighbours to the same
    one.
    """
    free = [k for k, part in enumerate(parts) if part.is_free]
    total = sum(threads.values())
    held = Counter(places[k] for k in free)
    is_even = all(n <= math.ceil(len(free) * threads.get(place or "", 0) / max(total, 1)) for place, n in held.items())
    found = list(places)
    if not is_even and total:
        seats = [address for address, n in threads.items() for _ in range(n)]
        for at, k in enumerate(free):
            found[k] = seats[at * len(seats) // len(free)]
    return found


def parts_of(X: Any, y: Any, sample_weight: Any) -> list[Part]:
    """The parts of what was given to ``fit``.

    Raises
    ------
    TypeError, ValueError
        Anything else than dask arrays in row chunks, delayed parts or paths.
    """
    if isinstance(X, da.Array):
        return _of_arrays(X, y, sample_weight)
    if not isinstance(X, (list, tuple)):
        raise TypeError(f"X must be a dask array, or a list of delayed parts or of paths, got {type(X).__name__}")
    if y is not None or sample_weight is not None:
        raise ValueError("y and sample_weight must be None where X is a list: each part has its labels and weights")
    if len(X) == 0:
        raise ValueError("X must hold at least one part, got an empty list")
    return [_of_item(number, item) for number, item in enumerate(X)]


def _of_item(number: int, item: Any) -> Part:
    if isinstance(item, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(item))
        return Part(number, dask.delayed(read_part, pure=False)(path), path, is_fixed=False)
    if isinstance(item, (Delayed, Future)):
        return Part(number, item, f"part {number} of the list")
    if isinstance(item, (list, tuple)) and len(item) in (2, 3):
        return Part(number, dask.delayed(as_part, pure=False)(*item), f"part {number} of the list")
    raise TypeError(
        f"a part must be a path, a Delayed or Future of (X, y) or (X, y, sample_weight), or such a tuple of delayed "
        f"pieces, got {type(item).__name__}"
    )


def _of_arrays(X: da.Array, y: Any, sample_weight: Any) -> list[Part]:
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got {X.ndim}")
    if X.numblocks[1] != 1:
        raise ValueError(
            f"X must be cut into chunks of whole rows, it has {X.numblocks[1]} chunks of columns: "
            "use X.rechunk({1: -1})"
        )
    if y is None:
        raise ValueError("y must be a dask array where X is one, got None")
    columns = [_column("y", y, X)]
    if sample_weight is not None:
        columns.append(_column("sample_weight", sample_weight, X))
    pieces = [list(column.to_delayed().ravel()) for column in columns]
    rows = list(X.to_delayed().ravel())
    make = dask.delayed(as_part, pure=False)
    together = zip(rows, *pieces, strict=True)
    return [Part(k, make(*piece), f"chunk {k} of X") for k, piece in enumerate(together)]


def _column(name: str, values: Any, X: da.Array) -> da.Array:
    """A column in the chunks of the rows of X."""
    rows = X.chunks[0]
    are_known = not any(math.isnan(n) for n in rows)
    if not isinstance(values, da.Array):
        if not are_known or np.ndim(values) != 1:
            raise TypeError(f"{name} must be a dask array of one dimension where X is one, got {type(values).__name__}")
        values = da.from_array(np.asarray(values), chunks=-1)
    if values.ndim != 1:
        raise ValueError(f"{name} must have 1 dimension, got {values.ndim}")
    chunks = values.chunks[0]
    if are_known and not any(math.isnan(n) for n in chunks):
        if sum(rows) != sum(chunks):
            raise ValueError(f"X has {sum(rows)} rows, {name} has {sum(chunks)}")
        return values if chunks == rows else values.rechunk((rows,))
    if len(chunks) != len(rows):
        raise ValueError(f"X has {len(rows)} chunks of rows, {name} has {len(chunks)}")
    return values


def same_kind(X: Any) -> bool:
    """Whether predictions of X are lazy."""
    return isinstance(X, da.Array)


def lazily(X: da.Array, function: Any, n_columns: int | None, dtype: Any) -> da.Array:
    """``function`` of each chunk of rows; ``n_columns`` of the result, None for one dimension."""
    if X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    if n_columns is None:
        return da.map_blocks(function, X, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype=dtype))
    chunks = (X.chunks[0], (n_columns,))
    return da.map_blocks(function, X, chunks=chunks, dtype=dtype, meta=np.empty((0, 0), dtype=dtype))
