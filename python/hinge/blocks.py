"""Block stores: data sets larger than memory, in one compressed file."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge import _checks, _native, _threads, _validate
from hinge._progress import announce, logger
from hinge._sources import Batch, Source, open_source


@dataclass(frozen=True)
class Block:
    """Some rows of a store.

    Attributes
    ----------
    X : csr_matrix of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        Labels.
    sample_weight : ndarray of shape (n_rows,), float64, or None
        None where the store has no weights.
    rows : ndarray of shape (n_rows,), int64
        Place of each row in the input.
    """

    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None
    rows: np.ndarray


class BlockStore:
    """A data set in one compressed, checksummed file, read piece by piece.

    Estimators take a store wherever they take ``X, y``: ``LinearSVC(memory_budget="1GB").fit(store)``.

    Parameters
    ----------
    path : str or os.PathLike
        A file made by :meth:`build`.

    Attributes
    ----------
    path : str
    n_samples, n_features, nnz, n_blocks : int
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    dtype : numpy.dtype
        Narrowest type that holds all values exactly, float32 or float64.
    feature_names : ndarray of shape (n_features,) or None

    Raises
    ------
    FileNotFoundError, PermissionError, IsADirectoryError
        As from ``open``.
    BlockFileError
        The file is no store, cut short, or damaged where it was looked at (a ``ValueError``).

    Examples
    --------
    >>> import os, tempfile
    >>> from hinge import BlockStore, LinearSVC
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=300, random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = BlockStore.build((X, y), os.path.join(folder.name, "small.blocks"))
    >>> store.n_samples, store.n_features
    (300, 20)
    >>> model = LinearSVC().fit(store)
    >>> bool((model.predict(store) == model.predict(X)).all())
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._reader = _native.StoreReader(os.fspath(path))
        facts = self._reader.info()
        self._facts = facts
        self.path = os.fspath(path)
        self.n_samples: int = facts["n_rows"]
        self.n_features: int = facts["n_features"]
        self.nnz: int = facts["nnz"]
        self.n_blocks: int = facts["n_blocks"]
        self.classes = np.array(facts["classes"])
        self.dtype = np.dtype(facts["dtype"])
        names = facts["feature_names"]
        self.feature_names = None if names is None else np.array(names, dtype=object)

    def __repr__(self) -> str:
        return f"BlockStore({self.path!r}, {self.n_samples} x {self.n_features}, {self.nnz} nonzeros)"

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n_samples

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: the file is opened again."""
        return type(self), (self.path,)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_samples, self.n_features

    @classmethod
    def build(
        cls,
        source: Any,
        path: str | os.PathLike[str],
        *,
        relabel: bool = True,
        n_blocks: int = _native.DEFAULT_BLOCKS,
        n_features: int | None = None,
        feature_names: Iterable[str] | None = None,
        zero_based: bool | str = "auto",
        columns: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> BlockStore:
        """Build a store in bounded memory.

        Rows go to blocks at random, by a hash of the row number and the seed, so the input may be sorted. The file
        appears under its name when it is whole: an interrupted or failed build leaves what was there before. What was
        there may be a block store, which is replaced, or an empty file; anything else is kept.

        Parameters
        ----------
        source : path, list of paths, pair or triple of arrays, iterable, or callable
            * svmlight files, plain or compressed (gzip, bzip2, zstd): a path, paths, or a pattern with ``*``; ``"-"``
              is standard input;
            * ``.npz`` files as of :func:`scipy.sparse.save_npz` with arrays ``y`` and maybe ``sample_weight`` added,
              the same kinds of paths; ``X.npy`` files come as pairs ``(X.npy, y.npy)``; all are mapped where possible;
            * ``.parquet`` files (needs pyarrow), see ``columns``;
            * ``(X, y)`` or ``(X, y, sample_weight)``: SciPy matrix, array or data frame, and labels;
            * any iterable of such pairs or triples;
            * a function without arguments that returns such an iterable: it is called twice, first for the counts.
        path : str or os.PathLike
            The file to be made.
        relabel : bool, default=True
            Whether columns get numbers by frequency in the file, which makes it smaller and training faster; all
            results are in the columns of the input. Counts come from a first pass over arrays, .npz/.npy files and the
            rows of a callable; from 64 places of plain svmlight text; and from the beginning of anything else (16
            million entries), which makes a file of sorted rows up to a third larger.
        n_blocks : int, default=64
            Number of blocks, 1 to 4096. Building keeps an open page of up to 1.5 MB for each.
        n_features : int, default=None
            Number of columns. None takes the width of the matrices, which must be the same for all parts, and for
            svmlight text and lists in Parquet the largest column that occurs.
        feature_names : iterable of str, default=None
            Names of the columns, kept in the file; None takes those of data frames. A model that is fitted on a store
            with names expects them at prediction, as after a fit on a data frame.
        zero_based : {"auto", True, False}, default="auto"
            For svmlight files: whether indices start at 0. "auto" is decided by the first 8 MB of the first file.
        columns : dict, default=None
            For Parquet: ``{"label": name, "weight": name, "indices": name, "values": name}`` for list columns, or
            ``{"label": name, "features": [names], "n_hash": 2**20}`` for plain columns that are hashed.
        overwrite : bool, default=False
            Whether a file at ``path`` that is no block store is replaced, too; a source never is.
        random_state : int, RandomState or None, default=None
            Seed of the assignment of rows to blocks; None is a fixed seed.
        n_jobs : int, default=None
            Threads; the file has the same bytes for any number. None means all usable cores.
        verbose : int, default=0
            Progress on standard error if above 0; the logger ``hinge`` gets it at level INFO anyway.

        Returns
        -------
        BlockStore

        Raises
        ------
        ValueError
            Unusable rows, labels or parameters, parts of different width or names; the message names the place.
        FileExistsError
            At ``path`` is one of the sources, a device or the like, or, without ``overwrite``, a file that is no block
            store. It is not touched.
        OSError
            A source cannot be read, or the file not written (a full disk, say).
        """
        _checks.truth("relabel", relabel)
        _checks.whole("n_blocks", n_blocks, 1)
        _checks.verbosity("verbose", verbose)
        _checks.truth("overwrite", overwrite)
        if n_features is not None:
            _checks.whole("n_features", n_features, 1)
        names = None if feature_names is None else [str(name) for name in feature_names]
        if names is not None and n_features is None:
            n_features = len(names)
        threads = _threads.threads(n_jobs)
        opened = open_source(source, n_features=n_features, zero_based=zero_based, columns=columns, n_threads=threads)
        target = _Target(os.fspath(path), bool(overwrite))
        _native.check_target(target.path, "store", target.overwrite, opened.files)
        _build(opened, target, bool(relabel), int(n_blocks), n_features, names, random_state, threads, verbose)
        return cls(path)

    def info(self) -> dict[str, Any]:
        """What the file says about itself: sizes, classes with counts, statistics, source, fingerprint.

        Returns
        -------
        dict
            ``bytes_per_nonzero`` is the size of the file by the number of entries.
        """
        facts = {name: value for name, value in self._facts.items() if name != "feature_names"}
        facts["has_feature_names"] = self.feature_names is not None
        facts["bytes_per_nonzero"] = facts["file_bytes"] / max(1, facts["nnz"])
        return facts

    def verify(self, *, n_jobs: int | None = None, verbose: int = 0) -> None:
        """Read and check every byte: checksums, and every number against what it must fit.

        Raises
        ------
        BlockFileError
            The first damage, with its place.
        """

        def report(_: str, pages: int, share: float) -> None:
            announce(verbose, f"verify {self.path}: {pages} pages, {share:.0%}")

        self._reader.verify(_threads.threads(n_jobs), report if verbose else None)

    def iter_blocks(self, *, max_rows: int | None = None, n_jobs: int | None = None) -> Iterator[Block]:
        """Rows in pieces, each a random sample of the rows.

        Parameters
        ----------
        max_rows : int, default=None
            Rows of a piece at most, as far as pages (up to 16,384 rows) allow; None yields whole blocks.
        n_jobs : int, default=None

        Yields
        ------
        Block
            Columns as in the input, rows of a block in the order of the input.
        """
        if max_rows is not None:
            _checks.whole("max_rows", max_rows, 1)
        threads = _threads.threads(n_jobs)
        for block in range(self.n_blocks):
            pages: list[int] = []
            rows = 0
            for page, n_rows, _ in self._reader.pages(block):
                if pages and max_rows is not None and rows + n_rows > max_rows:
                    yield self._read(pages, threads)
                    pages, rows = [], 0
                pages.append(page)
                rows += n_rows
            if pages:
                yield self._read(pages, threads)

    def _read(self, pages: list[int], threads: int) -> Block:
        indptr, indices, values, ids, weight, numbers = self._reader.read(pages, threads)
        X = sp.csr_matrix((values, indices, indptr), shape=(len(ids), self.n_features))
        weighted = weight if self._facts["has_weights"] else None
        return Block(X, self.classes[ids], weighted, numbers.astype(np.int64))

    def labels(self, *, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray | None]:
        """Labels and sample weights of all rows, in the order of the input.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        sample_weight : ndarray of shape (n_samples,), or None
            None where the store has no weights.
        """
        ids, weight = self._reader.facts(_threads.threads(n_jobs))
        return self.classes[ids], weight if self._facts["has_weights"] else None

    def to_csr(self, *, n_jobs: int | None = None) -> tuple[Any, ...]:
        """The whole store in memory, rows in the order of the input.

        Returns
        -------
        X : csr_matrix of shape (n_samples, n_features)
            Rows with rising columns, without zeros.
        y : ndarray of shape (n_samples,)
        sample_weight : ndarray of shape (n_samples,)
            Only if the store has weights.
        """
        blocks = list(self.iter_blocks(n_jobs=n_jobs))
        order = np.argsort(np.concatenate([block.rows for block in blocks]), kind="stable")
        X = sp.vstack([block.X for block in blocks], format="csr")[order]
        y = np.concatenate([block.y for block in blocks])[order]
        if not self._facts["has_weights"]:
            return X, y
        return X, y, np.concatenate([block.sample_weight for block in blocks])[order]


class _Labels:
    """Ids of labels, in the order of first appearance."""

    def __init__(self) -> None:
        self.labels: list[Any] = []
        self._ids: dict[Any, int] = {}
        self._kind: str | None = None

    def ids(self, y: np.ndarray) -> np.ndarray:
        """Ids of some labels."""
        y = np.asarray(_validate.labels(y, len(y)))
        kind = "O" if y.dtype.kind in "OU" else {"u": "i"}.get(y.dtype.kind, y.dtype.kind)
        if self._kind is None:
            self._kind = kind
        elif self._kind != kind:
            if {self._kind, kind} != {"i", "f"}:
                raise ValueError("the source mixes labels of different types: all labels must be of one type")
            self._kind = "f"
        distinct, first, inverse = np.unique(y, return_index=True, return_inverse=True)
        ids = np.empty(len(distinct), dtype=np.uint32)
        for k in np.argsort(first, kind="stable"):
            label = distinct[k].item() if isinstance(distinct[k], np.generic) else distinct[k]
            ids[k] = self._ids.setdefault(label, len(self._ids))
            if ids[k] == len(self.labels):
                self.labels.append(label)
        return ids[inverse.reshape(-1)]

    def finished(self) -> list[Any]:
        """All labels, of one Python type."""
        return [float(label) for label in self.labels] if self._kind == "f" else self.labels


@dataclass(frozen=True)
class _Target:
    """Where a store goes, and whether over a file of another kind."""

    path: str
    overwrite: bool


def _build(
    source: Source,
    target: _Target,
    relabel: bool,
    n_blocks: int,
    n_features: int | None,
    names: list[str] | None,
    random_state: Any,
    threads: int,
    verbose: int,
) -> None:
    started = last = time.monotonic()
    batches = iter(source.batches())
    # The first batch tells the width and the names of the columns.
    counts, held = source.counts(batches) if relabel else (None, list(itertools.islice(batches, 1)))
    limit = n_features if n_features is not None else source.n_features
    names = source.feature_names if names is None else names
    if names is not None and len(names) != limit:
        raise ValueError(f"n_features must be {len(names)}, the number of names of columns, got {limit}")
    if counts is not None and limit is not None and len(counts) > limit:
        raise ValueError(f"column {len(counts) - 1} is outside n_features={limit}")
    seed = _validate.seed(random_state)
    writer = _native.StoreWriter(target.path, n_blocks, seed, limit, counts, source.name, target.overwrite)
    del counts  # 8 bytes a column
    labels = _Labels()
    try:
        for batch in _chain(held, batches):
            ids = labels.ids(batch.y)
            X = _validate.canonical(batch.X)
            weight = None if batch.weight is None else np.ascontiguousarray(batch.weight, dtype=np.float64)
            rows, written = writer.append(_validate.native_matrix(X), ids, weight, threads)
            now = time.monotonic()
            if now - last >= 0.5 and (verbose or logger.isEnabledFor(20)):
                last = now
                announce(verbose, f"build {target.path}: {_progress(source, rows, written, now - started)}")
        writer.finish(labels.finished(), names, threads)
    except BaseException:
        writer.abort()
        raise


def _progress(source: Source, rows: int, written: int, seconds: float) -> str:
    text = f"{rows} rows, {rows / max(seconds, 1e-9):.0f} rows/s, {written / 1e6:.0f} MB written"
    if source.share:
        text += f", {source.share:.0%}, {seconds * (1 / source.share - 1):.0f} s left"
    return text


def _chain(held: list[Batch], rest: Iterator[Batch]) -> Iterator[Batch]:
    while held:
        yield held.pop(0)
    yield from rest
