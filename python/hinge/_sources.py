"""What a block store is built from: anything that streams, as batches of rows."""

from __future__ import annotations

import glob
import itertools
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _get_feature_names

from hinge import _checks, _native, _sparse
from hinge._encode_coder import EncodedStream

SAMPLE_ENTRIES = 1 << 24
"""Entries of a stream by which columns are counted."""

SAMPLES = 64
SAMPLE_BYTES = 1 << 22
"""Places of a large text by which columns are counted, and bytes read at each."""

BATCH_ENTRIES = 1 << 22
"""Entries of a batch cut from an array."""

SUFFIXES = (".npz", ".npy", ".parquet")

STDIN = "-"
"""The path that stands for standard input, where svmlight files are read."""


@dataclass(frozen=True)
class Batch:
    """Rows with labels, and weights or None."""

    X: Any
    y: Any
    weight: Any


class Source:
    """Batches of rows, with what is known of them; counts columns by the beginning unless it knows better."""

    name = "iterable"
    n_features: int | None = None
    """Number of columns as declared, known with the first batch; None if only the largest index tells it."""
    feature_names: list[str] | None = None
    """Names of the columns, known with the first batch."""
    share = 0.0
    """How much has been read, if known."""

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        return []

    def batches(self) -> Iterable[Batch]:
        """All rows, once."""
        raise NotImplementedError

    def counts(self, batches: Iterator[Batch]) -> tuple[np.ndarray, list[Batch]]:
        """Entries per column, and the batches that were taken for it; columns that are not relabelled are left out."""
        held, total, seen = [], np.zeros(0, dtype=np.uint64), 0
        for batch in batches:
            held.append(batch)
            total = _counted(total, batch.X)
            seen += _entries(batch.X)
            if seen >= SAMPLE_ENTRIES:
                break
        return total, held


def _entries(X: Any) -> int:
    return X.nnz if sp.issparse(X) else int(np.size(X))


def _counted(total: np.ndarray, X: Any) -> np.ndarray:
    """``total`` with the entries per column of X added: memory by the columns that can be relabelled, at most."""
    if not sp.issparse(X):
        return _with(total, slice(None), np.count_nonzero(np.asarray(X), axis=0)[: _native.MAX_RELABELLED])
    indices = X.tocsr().indices
    if len(indices) == 0:
        return total
    if indices.min() < 0:
        raise ValueError(f"column index {indices.min()} is negative")
    if indices.max() >= _native.MAX_RELABELLED:
        indices = indices[indices < _native.MAX_RELABELLED]
    if len(indices) > indices.max(initial=0) // 8:
        return _with(total, slice(None), np.bincount(indices))
    return _with(total, *np.unique(indices, return_counts=True))


def _with(total: np.ndarray, columns: Any, counts: np.ndarray) -> np.ndarray:
    """``total`` with counts added at distinct columns."""
    width = len(counts) if isinstance(columns, slice) else int(columns[-1]) + 1 if len(columns) else 0
    if width > len(total):
        total = np.concatenate([total, np.zeros(width - len(total), dtype=np.uint64)])
    total[:width][columns] += counts.astype(np.uint64)
    return total


class Arrays(Source):
    """A matrix with labels, cut into batches."""

    name = "arrays"

    def __init__(self, X: Any, y: Any, weight: Any = None):
        _sparse.check_rows(X)
        names = _get_feature_names(X)
        self.feature_names = None if names is None else [str(name) for name in names]
        self._X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        if self._X.ndim != 2:
            raise ValueError(f"X must have 2 dimensions, got {self._X.ndim}")
        n = self._X.shape[0]
        self._y, self._weight = np.asarray(y), None if weight is None else np.asarray(weight, dtype=np.float64)
        for what, values in (("y", self._y), ("sample_weight", self._weight)):
            if values is not None and (values.ndim != 1 or len(values) != n):
                raise ValueError(f"{what} must have one entry per row of X: shape ({n},), got {values.shape}")
        self.n_features = self._X.shape[1]

    def batches(self) -> Iterator[Batch]:
        """Cut the rows."""
        n, entries = self._X.shape[0], _entries(self._X)
        step = max(1, int(BATCH_ENTRIES * n / max(1, entries))) if n else 1
        for start in range(0, n, step):
            rows = slice(start, start + step)
            self.share = min(1.0, (start + step) / n)
            X = self._X[rows]
            _sparse.check(X)
            yield Batch(X, self._y[rows], None if self._weight is None else self._weight[rows])

    def counts(self, batches: Iterator[Batch]) -> tuple[np.ndarray, list[Batch]]:
        """Count all rows, a batch at a time."""
        width = self.n_features or 0
        # Trailing columns that do not occur are counted, too, as long as they cost nothing to speak of.
        total = np.zeros(width if width <= _native.MAX_RELABELLED else 0, dtype=np.uint64)
        for batch in Arrays(self._X, self._y).batches():
            total = _counted(total, batch.X)
        return total, []


class Joined(Source):
    """Matrices one after the other, as wide as the first and with its names of columns."""

    def __init__(self, n_features: int | None):
        self._given = n_features
        self._has_begun = False

    def _parts(self) -> Iterator[tuple[str, Arrays]]:
        """The matrices, each with its name in messages."""
        raise NotImplementedError

    def batches(self) -> Iterator[Batch]:
        """Check and pass on."""
        for name, part in self._parts():
            self._join(name, part)
            yield from part.batches()

    def _join(self, name: str, part: Arrays) -> None:
        width = part.n_features if self._given is None else self._given
        if not self._has_begun:
            self.n_features, self.feature_names, self._has_begun = width, part.feature_names, True
        if width != self.n_features:
            raise ValueError(
                f"{name} has {width} columns, the first part of the source has {self.n_features}: "
                "give n_features if that is meant"
            )
        if part.feature_names != self.feature_names:
            raise ValueError(
                f"{name} has other names of columns, or in another order, than the first part of the source"
            )


class Stream(Joined):
    """An iterable of pairs or triples."""

    def __init__(self, items: Iterable[Any], n_features: int | None):
        super().__init__(n_features)
        self._items = items

    def _parts(self) -> Iterator[tuple[str, Arrays]]:
        return _named(self._items)


class Factory(Joined):
    """A function that returns an iterable of pairs or triples, called once more for the counts."""

    name = "callable"

    def __init__(self, make: Callable[[], Iterable[Any]], n_features: int | None):
        super().__init__(n_features)
        self._make = make

    def _parts(self) -> Iterator[tuple[str, Arrays]]:
        return _named(self._make())

    def counts(self, batches: Iterator[Batch]) -> tuple[np.ndarray, list[Batch]]:
        """Count all rows of another call."""
        total = np.zeros(0, dtype=np.uint64)
        for batch in self.batches():
            total = _counted(total, batch.X)
        return total, []


def _named(items: Iterable[Any]) -> Iterator[tuple[str, Arrays]]:
    """Pairs or triples as matrices."""
    for k, item in enumerate(items):
        if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
            raise TypeError(
                f"item {k} of the source must be (X, y) or (X, y, sample_weight), got {type(item).__name__}"
            )
        yield f"item {k}", Arrays(*item)


class Parts(Joined):
    """Matrices in .npz files, or pairs of .npy files; counted in a first pass."""

    def __init__(self, paths: list[Any], n_features: int | None):
        super().__init__(n_features)
        self._paths = paths
        self.name = _name([path if isinstance(path, str) else path[0] for path in paths])

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        return [name for path in self._paths for name in ([path] if isinstance(path, str) else path)]

    def _parts(self) -> Iterator[tuple[str, Arrays]]:
        for k, path in enumerate(self._paths):
            yield path if isinstance(path, str) else path[0], _part(path)
            self.share = (k + 1) / len(self._paths)

    def counts(self, batches: Iterator[Batch]) -> tuple[np.ndarray, list[Batch]]:
        """Count the columns of all files."""
        total = np.zeros(0, dtype=np.uint64)
        for name, part in self._parts():
            self._join(name, part)
            counts, _ = part.counts(iter(()))
            total = _with(total, slice(None), counts)
        return total, []


def _part(path: Any) -> Arrays:
    if not isinstance(path, str):
        arrays = [np.load(name, mmap_mode="r", allow_pickle=False) for name in path]
        return Arrays(*arrays)
    file = _mapped(path)
    if "y" not in file:
        raise ValueError(f"{path}: no array 'y'; a part holds the arrays of scipy.sparse.save_npz (or 'X') and 'y'")
    if "X" in file:
        return Arrays(file["X"], file["y"], file.get("sample_weight"))
    missing = {"data", "indices", "indptr", "shape"} - set(file)
    if missing:
        raise ValueError(
            f"{path}: no array {sorted(missing)[0]!r}; a part holds a CSR matrix as of scipy.sparse.save_npz"
        )
    layout = file.get("format")
    if layout is not None and bytes(layout.tobytes()).rstrip(b"\0").replace(b"\0", b"") != b"csr":
        raise ValueError(f"{path}: the matrix must be in CSR format")
    X = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]), copy=False)
    return Arrays(X, file["y"], file.get("sample_weight"))


def _mapped(path: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, mapped where they are not compressed."""
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            mapped = _map_member(path, archive, member) if member.compress_type == zipfile.ZIP_STORED else None
            if mapped is None:
                with archive.open(member) as file:
                    mapped = np.lib.format.read_array(file, allow_pickle=False)
            arrays[name] = mapped
    return arrays


def _map_member(path: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray | None:
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if reader is None:
            return None
        shape, fortran, dtype = reader(file)
        header = file.tell()
    if dtype.hasobject or not shape or 0 in shape:
        return None
    with open(path, "rb") as raw:
        raw.seek(member.header_offset + 26)
        name_length, extra_length = np.frombuffer(raw.read(4), dtype="<u2")
    offset = member.header_offset + 30 + int(name_length) + int(extra_length) + header
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape, order="F" if fortran else "C")


class Text(Source):
    """svmlight files, plain or compressed."""

    def __init__(self, paths: list[str], n_features: int | None, zero_based: bool | str, n_threads: int):
        if not isinstance(zero_based, (bool, np.bool_)) and zero_based != "auto":
            raise ValueError(f"zero_based must be 'auto', True or False, got {zero_based!r}")
        self._paths, self._n_features, self._threads = paths, n_features, n_threads
        self._base = None if isinstance(zero_based, str) else bool(zero_based)
        self.name = _name(["standard input" if path == STDIN else path for path in paths])

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        return [path for path in self._paths if path != STDIN]

    def batches(self) -> Iterator[Batch]:
        """Parse piece after piece."""
        for k, path in enumerate(self._paths):
            reader = _native.TextReader(path, self._n_features, self._base)
            while (parts := reader.next("float64", self._threads)) is not None:
                indptr, indices, values, n_columns, y, _ = parts
                self._base = reader.zero_based
                yield Batch(sp.csr_matrix((values, indices, indptr), shape=(len(y), n_columns)), y, None)
            self.share = (k + 1) / len(self._paths)

    def counts(self, batches: Iterator[Batch]) -> tuple[np.ndarray, list[Batch]]:
        """Count by pieces from all over the files, where these are large and plain text; else by the beginning."""
        if STDIN in self._paths:
            return super().counts(batches)
        sizes = [os.path.getsize(path) for path in self._paths]
        if sum(sizes) < SAMPLES * SAMPLE_BYTES or any(_is_compressed(path) for path in self._paths):
            return super().counts(batches)
        held = list(itertools.islice(batches, 1))  # decides at which number indices begin
        ends = np.cumsum(sizes)
        places = []
        for place in np.linspace(0, ends[-1], SAMPLES, endpoint=False).astype(np.int64):
            k = int(np.searchsorted(ends, place, side="right"))
            places.append((self._paths[k], int(place - ends[k] + sizes[k])))
        limit = self._n_features or 2**31 - 1
        return _native.sample_columns(places, SAMPLE_BYTES, bool(self._base), limit), held


def _is_compressed(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4).startswith((b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd"))


class Parquet(Source):
    """Row groups of Parquet files: list columns of indices and values, or plain columns that are hashed."""

    def __init__(self, paths: list[str], columns: Mapping[str, Any] | None, n_features: int | None):
        self._n_features = n_features
        try:
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise ImportError("reading Parquet needs pyarrow: pip install 'hinge[parquet]'") from error
        self._parquet, self._paths, self.name = parquet, paths, _name(paths)
        columns = dict(columns or {})
        known = {"label", "weight", "indices", "values", "features", "n_hash"}
        unknown = set(columns) - known
        if unknown or "label" not in columns or ("indices" in columns) == ("features" in columns):
            raise ValueError(
                "columns must be {'label': name, 'indices': name, 'values': name} for list columns, or "
                "{'label': name, 'features': [names], 'n_hash': 2**20} for plain ones, each with an optional 'weight', "
                f"got {columns!r}"
            )
        self._columns = columns
        if "features" in columns:
            _checks.whole("n_hash", columns.setdefault("n_hash", 1 << 20), 1)
            self.n_features = int(columns["n_hash"])

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        return self._paths

    def batches(self) -> Iterator[Batch]:
        """Read row groups."""
        names = self._columns
        wanted = [names["label"], *(names[k] for k in ("weight", "indices", "values") if k in names)]
        wanted += list(names.get("features", ()))
        for k, path in enumerate(self._paths):
            with self._parquet.ParquetFile(path) as file:
                missing = set(wanted) - set(file.schema_arrow.names)
                if missing:
                    raise ValueError(f"{path}: no column {sorted(missing)[0]!r}")
                for batch in file.iter_batches(batch_size=1 << 16, columns=wanted):
                    y = batch.column(names["label"]).to_numpy(zero_copy_only=False)
                    weight = None
                    if "weight" in names:
                        weight = batch.column(names["weight"]).to_numpy(zero_copy_only=False)
                    yield Batch(self._lists(batch) if "indices" in names else self._hashed(batch), y, weight)
            self.share = (k + 1) / len(self._paths)

    def _lists(self, batch: Any) -> Any:
        lists = batch.column(self._columns["indices"])
        if lists.null_count:
            raise ValueError(f"column {self._columns['indices']!r} holds nulls")
        offsets = lists.offsets.to_numpy()
        indices = lists.flatten().to_numpy(zero_copy_only=False)
        indptr = offsets - offsets[0]
        if "values" in self._columns:
            lists = batch.column(self._columns["values"])
            if lists.null_count or not np.array_equal(lists.offsets.to_numpy() - lists.offsets.to_numpy()[0], indptr):
                raise ValueError("the lists of indices and values differ in length")
            values = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        else:
            values = np.ones(len(indices))
        if len(indices) and indices.min() < 0:
            raise ValueError(f"column index {indices.min()} is negative")
        n = max(int(indices.max()) + 1 if len(indices) else 1, self._n_features or 1)
        return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n))

    def _hashed(self, batch: Any) -> Any:
        from sklearn.feature_extraction import FeatureHasher

        hasher = FeatureHasher(int(self._columns["n_hash"]), input_type="pair", alternate_sign=False)
        names = list(self._columns["features"])
        columns = [batch.column(name).to_pylist() for name in names]

        def pairs() -> Iterator[list[tuple[str, float]]]:
            for row in zip(*columns, strict=True):
                yield [_pair(name, value) for name, value in zip(names, row, strict=True) if value is not None]

        return hasher.transform(pairs())


def _pair(name: str, value: Any) -> tuple[str, float]:
    """Numbers are values of their column; everything else is a category."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return name, float(value)
    return f"{name}={value}", 1.0


def _name(paths: list[Any]) -> str:
    first = os.path.basename(os.fspath(paths[0]))
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def open_source(
    source: Any,
    *,
    n_features: int | None,
    zero_based: bool | str,
    columns: Mapping[str, Any] | None,
    n_threads: int,
) -> Source:
    """The source of whatever the caller gave."""
    paths: list[Any]
    if isinstance(source, EncodedStream) and source.groups is not None:
        raise ValueError(
            f"groups must be None for a store, which keeps none, got {source.groups!r}: "
            "give groups to the fit of the store"
        )
    if isinstance(source, (str, os.PathLike)):
        paths = _expand(os.fspath(source))
    elif isinstance(source, (list, tuple)) and source and all(_is_path(item) for item in source):
        paths = [name if isinstance(name, tuple) else os.fspath(name) for item in source for name in _expand_item(item)]
    elif isinstance(source, tuple) and len(source) in (2, 3):
        return Arrays(*source)
    elif callable(source):
        return Factory(source, n_features)
    elif isinstance(source, Iterable) and not isinstance(source, Mapping):
        return Stream(source, n_features)
    else:
        raise TypeError(
            f"a source is a path, paths, (X, y), an iterable of (X, y) or a function that returns one, "
            f"got {type(source).__name__}"
        )
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError(f"a source has files of one kind, got {sorted(kinds)}")
    kind = kinds.pop()
    if kind == ".parquet":
        return Parquet([os.fspath(path) for path in paths], columns, n_features)
    if kind in (".npz", ".npy"):
        return Parts(paths, n_features)
    return Text(paths, n_features, zero_based, n_threads)


def _is_path(item: Any) -> bool:
    is_pair = isinstance(item, tuple) and len(item) in (2, 3) and all(isinstance(k, (str, os.PathLike)) for k in item)
    return isinstance(item, (str, os.PathLike)) or is_pair


def _expand_item(item: Any) -> list[Any]:
    return [tuple(map(os.fspath, item))] if isinstance(item, tuple) else _expand(os.fspath(item))


def _expand(path: str) -> list[str]:
    if not glob.has_magic(path) or os.path.exists(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise FileNotFoundError(f"no file matches {path!r}")
    return found


def _kind(path: Any) -> str:
    if isinstance(path, tuple):
        return ".npy"
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".npy":
        raise ValueError(f"{path}: a .npy file comes as a pair (X.npy, y.npy)")
    return suffix if suffix in SUFFIXES else "svmlight"
