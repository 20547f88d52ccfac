"""Tables of any kind, as batches of the native module.

Nothing here imports pandas, polars or pyarrow: their objects are known by what they have, and files are read by
pyarrow where it is installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np

from hinge import _native

ROWS = 1 << 12
"""Rows of a batch that is made of dicts."""

FILE_ROWS = 1 << 16
"""Rows of a batch that is read from a file."""

_SUFFIXES = (".parquet", ".csv", ".csv.gz", ".jsonl", ".ndjson", ".arrow", ".feather")

_WHAT = (
    "a table is a data frame, an object with __arrow_c_stream__ or __arrow_c_array__, a dict of columns, an iterable "
    f"of dicts or of tables, or the path of a file ({', '.join(_SUFFIXES)})"
)


class Table:
    """A table that is read in batches, more than once where that is possible."""

    def __init__(self, source: Any):
        self._source = source
        self._held: list[_native.TableBatch] | None = None
        if not _is_named(source) and not isinstance(source, Iterable):
            raise TypeError(f"{_WHAT}; got {type(source).__name__}")

    @property
    def is_once(self) -> bool:
        """Whether it can be read but once."""
        return isinstance(self._source, Iterator)

    @property
    def source(self) -> Any:
        """What was given as a table."""
        return self._source

    def hold(self) -> None:
        """Keep the batches of what can be read once, to read them again."""
        if self.is_once and self._held is None:
            self._held = list(batches_of(self._source))

    def batches(self) -> Iterator[_native.TableBatch]:
        """All batches, from the beginning."""
        return iter(self._held) if self._held is not None else batches_of(self._source)


def is_table_file(path: str) -> bool:
    """Whether a file has the name of a table."""
    return path.lower().endswith(_SUFFIXES)


def is_table(source: Any) -> bool:
    """Whether an object is a table, and no matrix."""
    return _is_named(source) or (isinstance(source, list) and bool(source) and isinstance(source[0], Mapping))


def _is_named(source: Any) -> bool:
    return (
        isinstance(source, (str, os.PathLike, Mapping))
        or hasattr(source, "__arrow_c_stream__")
        or hasattr(source, "__arrow_c_array__")
        or _is_frame(source)
    )


def _is_frame(source: Any) -> bool:
    return hasattr(source, "columns") and hasattr(source, "dtypes") and hasattr(source, "iloc")


def is_dask_frame(source: Any) -> bool:
    """Whether an object is a data frame of dask, in partitions that are computed when they are asked for."""
    # Of the class: a delayed object has every attribute.
    return all(hasattr(type(source), name) for name in ("__dask_graph__", "npartitions", "dtypes"))


def batches_of(source: Any) -> Iterator[_native.TableBatch]:
    """The batches of a table.

    Raises
    ------
    TypeError
        It is no table.
    ValueError
        A value or a column cannot be read; the message names the column and the row.
    """
    if isinstance(source, (str, os.PathLike)):
        yield from _numbered(_file_batches(os.fspath(source)))
    elif is_dask_frame(source):
        for k in range(source.npartitions):
            yield from batches_of(source.partitions[k].compute())
    elif hasattr(source, "__arrow_c_stream__") and (stream := _stream(source)) is not None:
        yield from stream
    elif hasattr(source, "__arrow_c_array__"):
        _check_names(getattr(source, "column_names", ()))
        schema, array = _aligned(source).__arrow_c_array__()
        yield _native.TableBatch.of_arrow(schema, array, 0)
    elif _is_frame(source):
        names = _names(source.columns)
        yield _of_columns({name: _frame_column(source, k) for k, name in enumerate(names)}, len(source), 0)
    elif isinstance(source, Mapping):
        yield _of_mapping(source)
    elif isinstance(source, Iterable):
        yield from _of_items(source)
    else:
        raise TypeError(f"{_WHAT}; got {type(source).__name__}")


def _stream(source: Any) -> Iterator[_native.TableBatch] | None:
    """The batches of an Arrow stream; None for a pandas frame without pyarrow."""
    _check_names(getattr(source, "column_names", getattr(source, "columns", ())))
    nulls = _null_columns(source)
    try:
        capsule = _aligned(source.drop(nulls) if nulls else source).__arrow_c_stream__()
    except ImportError:
        if _is_frame(source):
            return None
        raise
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:  # values that Arrow does not have
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"the table cannot be read: {error}") from error
    batches = iter(_native.TableReader(capsule))
    return (batch.with_missing(nulls) for batch in batches) if nulls else batches


def _null_columns(source: Any) -> list[str]:
    """The columns of a polars frame that have nothing but nulls and no type, if it has others.

    Polars hands over a buffer with them, which Arrow does not allow.
    """
    schema = getattr(source, "schema", None)
    if not isinstance(schema, Mapping) or not hasattr(source, "drop"):
        return []
    nulls = [name for name, kind in schema.items() if str(kind) == "Null"]
    return nulls if len(nulls) < len(schema) else []


def _aligned(source: Any) -> Any:
    """A table of pyarrow or pandas whose numbers lie where the processor expects them; others as they are.

    Arrow allows other addresses, and what pyarrow reads from a message or from within a file may have them. A view of
    them as native numbers is not defined.
    """
    pa = sys.modules.get("pyarrow")
    if pa is None:
        return source
    if _is_frame(source) and any(_is_of_pyarrow(kind) for kind in source.dtypes):
        source = pa.Table.from_pandas(source)  # as pandas does
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return source if _is_aligned(source) else _copied(source, pa)
    if isinstance(source, pa.RecordBatchReader):
        return pa.RecordBatchReader.from_batches(source.schema, map(_aligned, source))
    return source


def _is_of_pyarrow(kind: Any) -> bool:
    """Whether the values of a column of pandas are pyarrow's."""
    return hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", None) == "pyarrow"


def _is_aligned(table: Any) -> bool:
    """Whether all buffers of a table or a batch of pyarrow begin at a multiple of 8 bytes."""
    arrays = (array for column in table.columns for array in getattr(column, "chunks", (column,)))
    return all(buffer is None or buffer.address % 8 == 0 for array in arrays for buffer in array.buffers())


def _copied(table: Any, pa: Any) -> Any:
    """A copy of a table or a batch: what is written as a stream is padded to multiples of 8 bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write(table)
    copy = pa.ipc.open_stream(sink.getvalue())
    return copy.read_next_batch() if isinstance(table, pa.RecordBatch) else copy.read_all()


def _numbered(batches: Iterable[Any]) -> Iterator[_native.TableBatch]:
    """Batches of pyarrow, with the numbers of their rows."""
    first_row = 0
    for batch in batches:
        schema, array = _aligned(batch).__arrow_c_array__()
        found = _native.TableBatch.of_arrow(schema, array, first_row)
        first_row += found.n_rows
        yield found


def _file_batches(path: str) -> Iterator[Any]:
    suffix = next((suffix for suffix in _SUFFIXES if path.lower().endswith(suffix)), None)
    if suffix is None:
        raise ValueError(f"{path}: the name of a table's file ends with one of {', '.join(_SUFFIXES)}")
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(f"to read {path} needs pyarrow: pip install 'hinge[parquet]'") from error
    try:
        for batch in _read(path, suffix):
            # Of a damaged file pyarrow hands over lists that end behind their values, and bytes that are no text.
            batch.validate(full=True)
            _check_fields(batch.schema)
            yield batch
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _read(path: str, suffix: str) -> Iterator[Any]:
    if suffix == ".parquet":
        import pyarrow.parquet as parquet

        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=FILE_ROWS)
    elif suffix in (".csv", ".csv.gz"):
        import pyarrow.csv as csv

        yield from csv.open_csv(path)
    elif suffix in (".jsonl", ".ndjson"):
        import pyarrow.json as json

        yield from json.open_json(path)
    else:
        yield from _read_ipc(path)


def _read_ipc(path: str) -> Iterator[Any]:
    import pyarrow as pa

    with pa.memory_map(path) as file:
        try:
            reader = pa.ipc.open_file(file)
        except pa.ArrowInvalid:
            file.seek(0)
            yield from pa.ipc.open_stream(file)
            return
        for k in range(reader.num_record_batches):
            yield reader.get_batch(k)


def _check_names(names: Iterable[Any]) -> None:
    """Refuse what Arrow's C interface, where a name ends with a zero, cuts short or dies of."""
    for name in names:
        if isinstance(name, str) and "\0" in name:
            raise ValueError(f"the table has a column {name!r}: the names of Arrow's columns have no zeros")


def _check_fields(fields: Iterable[Any]) -> None:
    """Read the names of columns and of what is within them: a UnicodeDecodeError where they are no texts."""
    for field in fields:
        _check_names([field.name])
        if hasattr(field.type, "field"):
            _check_fields(field.type.field(k) for k in range(field.type.num_fields))


def _names(columns: Iterable[Any]) -> list[str]:
    """Names of columns as texts, each once."""
    names = [str(name) for name in columns]
    for name in names:
        if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
            raise ValueError(f"the table has a column {name!r}, whose name cannot be written in UTF-8")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the table has more than one column {twice!r}")
    return names


def _of_mapping(columns: Mapping[Any, Any]) -> _native.TableBatch:
    made = {}
    for name, values in zip(_names(columns), columns.values(), strict=True):
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0:
            raise TypeError(
                f"column {name!r} is {values!r}: the values of a table in a dict are arrays or lists; a single row is "
                "a list of one dict"
            )
        made[name] = _values(values)
    lengths = {name: len(values) for name, values in made.items()}
    n_rows = next(iter(lengths.values()), 0)
    return _of_columns(made, n_rows, 0)


def _of_columns(columns: dict[str, Any], n_rows: int, first_row: int) -> _native.TableBatch:
    return _native.TableBatch.of_columns(list(columns.items()), n_rows, first_row)


def _values(values: Any) -> Any:
    """An array of float64, int64 or bool, or a list."""
    if isinstance(values, list):
        return values
    if isinstance(values, np.ndarray):
        if values.ndim == 1 and values.dtype.kind in "fiub" and values.dtype.itemsize <= 8:
            if values.dtype.kind == "b":
                return np.ascontiguousarray(values)
            is_whole = values.dtype.kind in "iu" and values.dtype != np.uint64
            return np.ascontiguousarray(values, dtype=np.int64 if is_whole else np.float64)
        return values.tolist() if values.dtype.kind != "O" else list(values)
    return list(values)


def _frame_column(frame: Any, k: int) -> Any:
    """A column of a pandas frame, without pyarrow."""
    values = frame.iloc[:, k]
    kind = getattr(values.dtype, "kind", "O")
    if isinstance(values.dtype, np.dtype) and kind in "fiub":
        return _values(values.to_numpy())
    return values.tolist()


def _of_items(items: Iterable[Any]) -> Iterator[_native.TableBatch]:
    """Rows in dicts, or tables one after the other."""
    items = iter(items)
    try:
        first = next(items)
    except StopIteration:
        return
    if isinstance(first, Mapping) and not any(_is_column(value) for value in first.values()):
        yield from _of_rows(chain([first], items))
    elif _is_named(first):
        yield from (batch for item in chain([first], items) for batch in batches_of(item))
    else:
        raise TypeError(f"{_WHAT}; got an iterable of {type(first).__name__}")


def _is_column(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0


def _of_rows(rows: Iterator[Any]) -> Iterator[_native.TableBatch]:
    names: dict[str, None] = {}
    first_row = 0
    while batch := list(islice(rows, ROWS)):
        for k, row in enumerate(batch):
            if not isinstance(row, Mapping):
                raise TypeError(f"row {first_row + k} is a {type(row).__name__}, the rows before are dicts")
            names.update(dict.fromkeys(row))
        values = ([row.get(name) for row in batch] for name in names)
        yield _of_columns(dict(zip(_names(names), values, strict=True)), len(batch), first_row)
        first_row += len(batch)
