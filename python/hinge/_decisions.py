"""Decision values of fitted linear models, from their weights as they lie in ``coef_``.

Sparse rows, few rows and few vectors are multiplied by the native module, with the same bits alone and in any batch;
batches of dense rows with dense weights of several vectors by NumPy (:mod:`hinge._products`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
import scipy.sparse as sp
from sklearn import get_config

from hinge import _native, _threads, _validate
from hinge._products import dense_product, suits_blas


@dataclass(frozen=True)
class _Columns:
    """The columns of a sparse ``coef_``, and what they were read from; the values are not, they may change in place."""

    indptr: ref[np.ndarray]
    indices: ref[np.ndarray]
    is_sorted: object
    n_columns: int
    index: _native.ColumnIndex

    def are_of(self, coef: sp.csr_matrix) -> bool:
        """Whether ``coef`` has the entries that were read: the same arrays, not sorted in place meanwhile."""
        return (
            self.indptr() is coef.indptr
            and self.indices() is coef.indices
            and self.n_columns == coef.shape[1]
            and self.is_sorted == _is_sorted(coef)
        )


def _is_sorted(coef: sp.csr_matrix) -> object:
    """What SciPy has noted on the order of columns; asking it would be noted in the matrix, and pickled."""
    return vars(coef).get("_has_sorted_indices")


SMALL = 1 << 20
"""Entries times vectors that the native module multiplies on the calling thread, whatever the number of threads."""

# Beside the estimators, not in them: pickles and copies do not carry it, and a prediction changes no attribute.
_columns_of: WeakKeyDictionary[Any, _Columns] = WeakKeyDictionary()


def _column_index(model: Any, coef: sp.csr_matrix) -> _native.ColumnIndex:
    """Where the columns of a sparse ``coef_`` lie, found once for a model and a matrix."""
    known = _columns_of.get(model)
    if known is None or not known.are_of(coef):
        narrow = coef.indices.dtype == np.int32
        indptr = np.ascontiguousarray(coef.indptr, dtype=np.int64)
        indices = np.ascontiguousarray(coef.indices, dtype=np.int32 if narrow else np.int64)
        found = _native.ColumnIndex(indptr, indices, coef.shape[1])
        known = _Columns(ref(coef.indptr), ref(coef.indices), _is_sorted(coef), coef.shape[1], found)
        _columns_of[model] = known
    return known.index


def _floats(array: Any) -> Any:
    """An array of floats of the machine's byte order, as it is or converted."""
    array = np.asarray(array)
    return array if array.dtype.char in "fd" and array.dtype.isnative else array.astype(np.float64)


def _weights(model: Any) -> Any:
    """``coef_`` as native predictions take it: never a copy of an array of floats in C or Fortran order."""
    coef = model.coef_
    if sp.issparse(coef):
        coef = coef if coef.format == "csr" else coef.tocsr()
        return _column_index(model, coef), np.ascontiguousarray(_floats(coef.data))
    return dense_weights(coef)


def dense_weights(coef: Any) -> np.ndarray:
    """An array of weights in float32 or float64, in C or Fortran order: as it is, wherever it is such an array."""
    coef = _floats(coef)
    return coef if coef.flags.forc else np.ascontiguousarray(coef)


def intercepts(model: Any) -> np.ndarray:
    """``intercept_`` as one number per row of ``coef_``; a single number stands for all."""
    shape = (model.coef_.shape[0],)
    intercept = np.asarray(model.intercept_, dtype=np.float64)
    return np.ascontiguousarray(intercept if intercept.shape == shape else np.broadcast_to(intercept, shape))


def _prediction(model: Any, X: Any) -> tuple[Any, np.ndarray, bool, int]:
    """What native predictions take of a model; scikit-learn's ``assume_finite`` is asked here."""
    n_jobs = model.n_jobs
    # The cores are not counted for a row: that takes longer than its product.
    n_entries = len(X.data) if sp.issparse(X) else X.size
    is_small = n_jobs is None and (n_entries + X.shape[0]) * model.coef_.shape[0] < SMALL
    threads = 1 if is_small else _threads.threads(n_jobs)
    return _weights(model), intercepts(model), get_config()["assume_finite"], threads


def decision_values(model: Any, X: Any) -> np.ndarray:
    """Decision values of X, whose entries are checked as they are read; shape (n_samples, n_vectors)."""
    coef = model.coef_
    if isinstance(X, np.ndarray) and isinstance(coef, np.ndarray) and suits_blas(X, coef):
        if not get_config()["assume_finite"]:
            _validate.check_entries(X)
        values = np.empty((len(X), len(coef)))
        dense_product(X, coef, intercepts(model), values)
        return values
    return _native.decision_values(_validate.native_matrix(X), _prediction(model, X))


def top_k(model: Any, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the labels with the highest decision values, and the values, shapes (n_samples, k)."""
    return _native.top_k(_validate.native_matrix(X), _prediction(model, X), k)


def positive_labels(model: Any, X: Any) -> sp.csr_array:
    """1 at the labels with a positive decision value, shape (n_samples, n_labels)."""
    indptr, indices = _native.positive_labels(_validate.native_matrix(X), _prediction(model, X))
    ones = np.ones(len(indices), dtype=np.int64)
    return sp.csr_array((ones, indices, indptr), shape=(X.shape[0], model.coef_.shape[0]))
