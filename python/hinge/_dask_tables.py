"""Tables on a cluster: their pieces, and what workers make of them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from distributed import Future, warn

from hinge._encode_coder import Coder, EncodedStream
from hinge._encode_tables import Table, is_dask_frame

_N_THREADS = 1
"""Threads that encode a piece: a worker has as many pieces at hand as it has threads."""


def read_encoded(
    table: Any, coder: Coder, target: str, sample_weight: str | None, name: str
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Rows, labels and weights (None for none) of a piece."""
    coder.warn = warn  # in the client, too
    try:
        if _is_empty(table):
            return _no_rows(coder), np.empty(0), None
        stream = EncodedStream(coder, Table(table), _N_THREADS, target=target, sample_weight=sample_weight)
        X, y, weight, _ = stream.collect()
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return X, np.empty(0) if y is None else y, weight


def _is_empty(table: Any) -> bool:
    """Whether a piece is a frame without rows, whose columns may have lost their types."""
    return hasattr(table, "dtypes") and len(table) == 0


def _no_rows(coder: Coder) -> Any:
    return coder.transform([], _N_THREADS)


def _encoded_piece(table: Any, coder: Coder, is_sparse: bool) -> Any:
    coder.warn = warn
    X = _no_rows(coder) if _is_empty(table) else coder.transform(Table(table).batches(), _N_THREADS)
    return X if is_sparse else X.toarray()


def encoded(coder: Coder, frame: Any, *, is_sparse: bool) -> da.Array:
    """The rows of a data frame of dask, lazily: a sparse matrix, or a dense array, for each partition."""
    shared, make = dask.delayed(coder, pure=False), dask.delayed(_encoded_piece, pure=False)
    shape, meta = (math.nan, coder.n_features), _no_rows(coder)
    meta = meta if is_sparse else meta.toarray()
    pieces = [make(piece, shared, is_sparse) for piece in frame.to_delayed()]
    return da.concatenate([da.from_delayed(piece, shape, meta=meta) for piece in pieces], allow_unknown_chunksizes=True)


def stream_parts(stream: EncodedStream) -> list[tuple[str, Delayed]]:
    """Name and rows of each piece of a stream, as :func:`read_encoded` gives them."""
    if stream.target is None:
        raise ValueError("on a cluster the labels are a column of the table: use stream(table, target=...)")
    coder, make = dask.delayed(stream.coder, pure=False), dask.delayed(read_encoded, pure=False)
    columns = stream.target, stream.sample_weight
    return [(name, make(piece, coder, *columns, name)) for name, piece in _pieces(stream.source)]


def _pieces(source: Any) -> Iterator[tuple[str, Any]]:
    items = source if isinstance(source, (list, tuple)) else [source]
    if not items:
        raise ValueError("a stream on a cluster needs a table, got an empty list")
    for k, item in enumerate(items):
        if is_dask_frame(item):
            for number, piece in enumerate(item.to_delayed()):
                yield f"partition {number} of the table", piece
        elif isinstance(item, (str, os.PathLike)):
            path = os.path.abspath(os.fspath(item))
            yield path, path
        elif isinstance(item, (Delayed, Future)):
            yield f"table {k} of the list", item
        else:
            raise TypeError(
                "on a cluster the table of a stream must be a data frame of dask, a path, or a list of paths or of "
                f"delayed tables, got {type(item).__name__}: tables in memory are for dask.dataframe.from_pandas"
            )


def check_numbers(frame: Any) -> None:
    """Refuse a frame with columns that are no numbers."""
    for name, dtype in frame.dtypes.items():
        if getattr(dtype, "kind", "O") not in "fiub":
            raise ValueError(
                f"column {name!r} holds values of type {dtype}, not numbers: give a hinge.TableEncoder's "
                "stream(frame, target=...)"
            )
