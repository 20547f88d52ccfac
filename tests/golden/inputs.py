"""Input of the golden cases: the same bits on every machine and with any version of NumPy.

Nothing here depends on a random generator of a library. Words are those of splitmix64, in integers; values are made
from them by exact conversions and by single multiplications and divisions, which IEEE arithmetic rounds in one way;
labels by sums of integers. The record holds a digest of each set, so that a change of the input is told from one of the
results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

_STEP = np.uint64(0x9E3779B97F4A7C15)


class Rows(NamedTuple):
    """Rows and the number of each one's class."""

    X: Any
    y: np.ndarray


def words(count: int, seed: int) -> np.ndarray:
    """Random numbers of 64 bits."""
    z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)) * _STEP
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def units(count: int, seed: int) -> np.ndarray:
    """Numbers from 0 to below 1, with all 53 bits."""
    return (words(count, seed) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def whole(count: int, seed: int, largest: int) -> np.ndarray:
    """Integers from ``-largest`` to ``largest``."""
    return (words(count, seed) % np.uint64(2 * largest + 1)).astype(np.int64) - largest


def _labelled(X: sp.csr_matrix, n_classes: int, noise: int, seed: int) -> Rows:
    """The class of the largest integer score of each row, blurred by ``noise``."""
    n_rows, n_columns = X.shape
    weights = whole(n_columns * n_classes, seed, 15).reshape(n_columns, n_classes)
    rows = np.repeat(np.arange(n_rows), np.diff(X.indptr))
    scores = whole(n_rows * n_classes, seed + 1, noise).reshape(n_rows, n_classes)
    np.add.at(scores, rows, np.trunc(8 * X.data).astype(np.int64)[:, None] * weights[X.indices])
    return Rows(X, scores.argmax(axis=1))


def _sparse(n_rows: int, n_columns: int, per_row: int, seed: int, n_classes: int = 2, noise: int = 150) -> Rows:
    """About ``per_row`` entries from -1 to 1 in each row, in columns of which the first are the most frequent."""
    u = units(n_rows * per_row, seed)
    columns = np.floor(u * u * n_columns).astype(np.int64)
    keys = np.unique(np.repeat(np.arange(n_rows), per_row) * n_columns + columns)
    values = 2.0 * units(len(keys), seed + 1) - 1.0
    indptr = np.searchsorted(keys, np.arange(n_rows + 1) * n_columns)
    X = sp.csr_matrix((values, (keys % n_columns).astype(np.int32), indptr.astype(np.int32)), (n_rows, n_columns))
    return _labelled(X, n_classes, noise, seed + 2)


def _dense(n_rows: int, n_columns: int, seed: int, n_classes: int = 2, noise: int = 150) -> Rows:
    """Every entry from -1 to 1."""
    X = sp.csr_matrix((2.0 * units(n_rows * n_columns, seed) - 1.0).reshape(n_rows, n_columns))
    rows = _labelled(X, n_classes, noise, seed + 2)
    return Rows(X.toarray(), rows.y)


def _uniform(of: Rows, seed: int, *, is_binary: bool) -> Rows:
    """All values of a row alike: 1, or one by the number of entries. Labels are those of the rows of ones."""
    X = of.X.copy()
    X.data = np.ones(X.nnz)
    labelled = _labelled(X, 2, 300, seed)
    if is_binary:
        return labelled
    lengths = np.diff(X.indptr)
    X.data = 1.0 / np.repeat(lengths, lengths)
    return Rows(X, labelled.y)


def _with_twins(of: Rows) -> Rows:
    """Every other column comes three times, with factors; ten columns are empty, many have one entry."""
    X = of.X.tocsc()
    twins = X[:, ::2]
    alone = sp.csc_matrix((np.ones(60), np.repeat(np.arange(20), 3), np.arange(61)), (X.shape[0], 60))
    return Rows(sp.csr_matrix(sp.hstack([X, 0.3 * twins, -2.0 * twins, sp.csc_matrix((X.shape[0], 10)), alone])), of.y)


def _rounded(of: Rows, step: float) -> Rows:
    """Values are multiples of ``step``, few and of little use for a packer of files."""
    X = of.X.copy()
    X.data = np.rint(16 * X.data) * step
    X.eliminate_zeros()
    return Rows(X, of.y)


SETS: dict[str, Callable[[], Rows]] = {
    # More rows than a chunk of any pass (2048, 4096), and entries for several parts of a product.
    "usual": lambda: _sparse(4500, 150, 12, 1),
    # Few enough rows and columns for Newton whatever the loss.
    "small": lambda: _sparse(300, 40, 8, 11),
    # More columns than rows: dual fits.
    "wide": lambda: _sparse(500, 800, 15, 21),
    # More rows than a chunk of a vector (32768).
    "tall": lambda: _sparse(40_000, 16, 3, 31),
    # Rows of more than 48 numbers, which have vector versions of their own.
    "dense": lambda: _dense(1200, 60, 41),
    "binary": lambda: _uniform(_sparse(4500, 150, 12, 1), 141, is_binary=True),
    "uniform": lambda: _uniform(_sparse(4500, 150, 12, 1), 141, is_binary=False),
    "twins": lambda: _with_twins(_sparse(4500, 60, 8, 51)),
    "classes": lambda: _sparse(1500, 80, 10, 61, n_classes=5, noise=60),
    # More than four lines of eight classes.
    "many": lambda: _sparse(1200, 50, 8, 71, n_classes=40, noise=30),
    "pairs": lambda: _sparse(800, 18, 6, 81, noise=40),
    "hashed": lambda: _sparse(400, 95, 8, 91, noise=40),
    "plane": lambda: _dense(22, 4, 101, noise=20),
    "stored": lambda: _rounded(_sparse(2500, 120, 9, 111), 1 / 16),
    "stored classes": lambda: _rounded(_sparse(1000, 60, 7, 121, n_classes=4, noise=60), 0.1),
    "stored binary": lambda: _uniform(_sparse(2000, 100, 9, 131), 151, is_binary=True),
}


@cache
def rows(name: str) -> Rows:
    """A set by its name; nobody may write to it."""
    return SETS[name]()


def digest(name: str) -> str:
    """The bits of a set."""
    X, y = rows(name)
    parts = (X,) if isinstance(X, np.ndarray) else (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64))
    return hashlib.sha256(b"".join(part.tobytes() for part in (*parts, y.astype(np.int64)))).hexdigest()


def _wide(X: sp.csr_matrix) -> sp.csr_matrix:
    X = X.copy()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "csr32f32": lambda X: X.astype(np.float32),
    "csr32f64": lambda X: X,
    "csr64f32": lambda X: _wide(X.astype(np.float32)),
    "csr64f64": _wide,
    "dense32": lambda X: np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32),
    "dense64": lambda X: X.toarray() if sp.issparse(X) else X,
}


def folds(n_rows: int, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random splits that no version of scikit-learn can change."""
    order = np.argsort(words(n_rows, 999), kind="stable")
    part = np.empty(n_rows, dtype=np.int64)
    part[order] = np.arange(n_rows) % n_folds
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_folds)]


def weights(n_rows: int) -> np.ndarray:
    """Sample weights 0.5, 1 and 2: sums of them are exact."""
    return 2.0 ** whole(n_rows, 998, 1)
