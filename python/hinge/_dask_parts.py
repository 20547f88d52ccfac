"""What users give as data on a cluster, as parts that workers can load, and load again."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future

from hinge._dask_shards import as_part, read_part
from hinge._dask_tables import check_numbers, stream_parts
from hinge._encode_coder import EncodedStream
from hinge._encode_tables import is_dask_frame, is_table_file


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

    @cached_property
    def is_free(self) -> bool:
        """Whether the data are not on the cluster before a fit, so that they may be loaded anywhere."""
        return not isinstance(self.source, Future) and not _is_somewhere(self.source)


def loaded(client: Client, parts: Sequence[Part]) -> list[Future]:
    """The data of parts on workers, loaded again where they were and are no longer there; what they share is sent
    once.
    """
    made = iter(client.compute([part.source for part in parts if not isinstance(part.source, Future)]))
    return [part.source if isinstance(part.source, Future) else next(made) for part in parts]


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
        Anything else than dask arrays in row chunks, data frames, streams, delayed parts or paths.
    """
    if isinstance(X, da.Array):
        return _of_arrays(X, y, sample_weight)
    if is_dask_frame(X):
        return _of_frame(X, y, sample_weight)
    if not isinstance(X, (list, tuple, EncodedStream)):
        raise TypeError(
            "X must be a dask array, a dask data frame, an EncodedStream, or a list of delayed parts or of paths, got "
            f"{type(X).__name__}"
        )
    what = "a list: each part" if isinstance(X, (list, tuple)) else "a stream: its table"
    if y is not None or sample_weight is not None:
        raise ValueError(f"y and sample_weight must be None where X is {what} has its labels and weights")
    if isinstance(X, EncodedStream):
        return [Part(number, source, name) for number, (name, source) in enumerate(stream_parts(X))]
    if len(X) == 0:
        raise ValueError("X must hold at least one part, got an empty list")
    return [_of_item(number, item) for number, item in enumerate(X)]


def _of_item(number: int, item: Any) -> Part:
    if isinstance(item, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(item))
        if is_table_file(path):
            raise ValueError(f"{path} is a table: give fit a hinge.TableEncoder's stream(paths, target=...)")
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
    rows = list(X.to_delayed().ravel())
    pieces = []
    for name, values in _columns(y, sample_weight):
        if _is_series(values) and not isinstance(values, da.Array):
            pieces.append(_pieces_of(name, values, len(rows)))
        else:
            pieces.append(list(_column(name, values, X).to_delayed().ravel()))
    return _zipped(rows, pieces, "chunk")


def _columns(y: Any, sample_weight: Any) -> list[tuple[str, Any]]:
    return [("y", y)] if sample_weight is None else [("y", y), ("sample_weight", sample_weight)]


def _is_series(values: Any) -> bool:
    return hasattr(values, "to_delayed") and getattr(values, "ndim", 0) == 1


def _pieces_of(name: str, values: Any, n_parts: int) -> list[Delayed]:
    """The partitions of a column that are to stand beside those of X."""
    pieces = list(np.ravel(values.to_delayed()))
    if len(pieces) != n_parts:
        raise ValueError(f"X has {n_parts} partitions, {name} has {len(pieces)}")
    return pieces


def _zipped(rows: Sequence[Delayed], columns: Sequence[Sequence[Delayed]], what: str) -> list[Part]:
    make = dask.delayed(as_part, pure=False)
    return [Part(k, make(*piece), f"{what} {k} of X") for k, piece in enumerate(zip(rows, *columns, strict=True))]


def _of_frame(X: Any, y: Any, sample_weight: Any) -> list[Part]:
    """Partitions of a frame of numbers with those of its labels and weights."""
    check_numbers(X)
    rows, pieces = X.to_delayed(), []
    for name, values in _columns(y, sample_weight):
        if not _is_series(values):
            raise TypeError(f"{name} must be a dask series or array where X is a frame, got {type(values).__name__}")
        pieces.append(_pieces_of(name, values, len(rows)))
    return _zipped(rows, pieces, "partition")


def names_of(X: Any) -> np.ndarray | None:
    """Names of the columns of a frame, where all are strings."""
    if not is_dask_frame(X) or not all(isinstance(name, str) for name in X.columns):
        return None
    return np.array(list(X.columns), dtype=object)


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
    return isinstance(X, da.Array) or is_dask_frame(X)


def _of_rows(function: Any, empty: np.ndarray, X: Any) -> Any:
    """``function`` of a chunk, which may have no rows."""
    return function(X) if X.shape[0] else empty


def lazily(X: Any, function: Any, n_columns: int | None, dtype: Any) -> da.Array:
    """``function`` of each chunk or partition; ``n_columns`` of the result, None for one dimension."""
    empty = np.empty(0 if n_columns is None else (0, n_columns), dtype=dtype)
    function = partial(_of_rows, function, empty)
    if is_dask_frame(X):
        call, shape = dask.delayed(function, pure=False), (math.nan, *empty.shape[1:])
        pieces = [da.from_delayed(call(piece), shape, meta=empty) for piece in X.to_delayed()]
        return da.concatenate(pieces, allow_unknown_chunksizes=True)
    if X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    if n_columns is None:
        return da.map_blocks(function, X, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype=dtype))
    chunks = (X.chunks[0], (n_columns,))
    return da.map_blocks(function, X, chunks=chunks, dtype=dtype, meta=np.empty((0, 0), dtype=dtype))
