"""Any input to what the native module takes: checked once, copied at most once, one style of message."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    column_or_1d,
    validate_data,
)

from hinge import _native

NativeMatrix = Any
"""A C-ordered 2-D array, or ``(indptr, indices, data, n_columns)``."""

# Squares of squared norms still fit in double precision up to here; features this large are a mistake of scale.
_MAX_SQUARED_NORM = 1e120

_CHECK = {
    "accept_sparse": "csr",
    "accept_large_sparse": True,
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": False,  # done natively, with row and column in the message
}


def choice(name: str, value: object, allowed: Collection[str]) -> None:
    """Refuse a value outside the allowed strings."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {sorted(allowed)}, got {value!r}")


def positive(name: str, value: object) -> None:
    """Refuse everything but a finite real number above 0."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")


def whole(name: str, value: object, least: int) -> None:
    """Refuse everything but an integer of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")


def truth(name: str, value: object) -> None:
    """Refuse everything but a truth value."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def intercept(fit_intercept: bool, intercept_scaling: float | None) -> float | None:
    """The native spelling of the intercept: None for none, 0 for a free one, a scale for a penalised one."""
    truth("fit_intercept", fit_intercept)
    if intercept_scaling is not None:
        positive("intercept_scaling", intercept_scaling)
    if not fit_intercept:
        return None
    return 0.0 if intercept_scaling is None else float(intercept_scaling)


def threads(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: all usable cores for None, joblib's meaning for negative numbers.

    None is not 1 as in scikit-learn, because results do not depend on the number of threads. Inside a joblib worker
    it is 1, or nested parallelism would start too many threads.
    """
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if n_jobs is None:
        from joblib.parallel import get_active_backend

        return 1 if (get_active_backend()[0].nesting_level or 0) > 0 else usable
    return int(n_jobs) if n_jobs > 0 else max(1, usable + 1 + int(n_jobs))


def seed(random_state: Any) -> int:
    """A seed for the native generators; None gives always the same one, so that fits are reproducible by default."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def fit_data(estimator: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """X as CSR or C-ordered array, y as a column; sets ``n_features_in_`` and ``feature_names_in_``."""
    _check_compressed(X)
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    X = validate_data(estimator, X, **_CHECK)
    return X, labels(y, X.shape[0])


def plain_data(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """:func:`fit_data` outside an estimator."""
    _check_compressed(X)
    X = check_array(X, **_CHECK)
    return X, labels(y, X.shape[0])


def predict_data(estimator: Any, X: Any) -> Any:
    """X for prediction, checked against the features of the fit."""
    _check_compressed(X)
    X = validate_data(estimator, X, reset=False, **_CHECK)
    native_matrix(X)
    return X


def _check_compressed(X: Any) -> None:
    # Conversions of a matrix with broken arrays read out of bounds inside SciPy, so look before they run.
    if sp.issparse(X) and X.format in ("csc", "bsr"):
        X.check_format(full_check=True)


def native_matrix(X: Any) -> NativeMatrix:
    """The arrays of a validated X for the native module; duplicates within a row are summed (in a copy).

    Raises
    ------
    ValueError
        NaN, infinity, broken row pointers, column indices out of range, features too large for double precision.
    """
    native = _arrays(X)
    has_duplicates, max_squared_norm = _native.check(native)
    if has_duplicates:
        X = sp.csr_array((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
        X.sum_duplicates()
        return native_matrix(X)
    if max_squared_norm > _MAX_SQUARED_NORM:
        raise ValueError(
            f"X has a row of squared norm {max_squared_norm:.3g}, at most {_MAX_SQUARED_NORM:.0e} is accepted: "
            "scale the features"
        )
    return native


def _arrays(X: Any) -> NativeMatrix:
    if not sp.issparse(X):
        return np.ascontiguousarray(X)
    wide = X.indices.dtype.itemsize > 4 or X.indptr.dtype.itemsize > 4
    index = np.int64 if wide else np.int32
    return (
        np.ascontiguousarray(X.indptr, dtype=index),
        np.ascontiguousarray(X.indices, dtype=index),
        np.ascontiguousarray(X.data),
        X.shape[1],
    )


def labels(y: Any, n_rows: int) -> np.ndarray:
    """Class labels as a one-dimensional array of one kind."""
    y = column_or_1d(y, warn=True)
    if y.shape[0] != n_rows:
        raise ValueError(f"y has {y.shape[0]} labels, X has {n_rows} rows")
    if y.dtype == object:
        kinds = sorted({"number" if isinstance(label, Real) else type(label).__name__ for label in y})
        if len(kinds) > 1:
            raise ValueError(f"y mixes labels of the types {', '.join(kinds)}: all labels must be of one type")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(f"Input y contains {y[row]} in row {row}: labels must be finite (no NaN or infinity)")
    check_classification_targets(y)
    return y


def encode(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes, and each row's class number."""
    classes, ids = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds one class only ({classes[0]!r}), a classifier needs at least 2 classes")
    return classes, ids.astype(np.uint32)


def row_weights(
    X: Any,
    classes: np.ndarray,
    ids: np.ndarray,
    class_weight: Mapping[Any, float] | str | None,
    sample_weight: Any,
) -> np.ndarray:
    """Class weight times sample weight per row, float64.

    ``"balanced"`` counts rows by their sample weight, so that a weight of 2 equals the row twice.
    """
    weight = np.ones(len(ids))
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, copy=True)
        if (weight < 0).any():
            row = int(np.flatnonzero(weight < 0)[0])
            raise ValueError(f"sample_weight of row {row} is {weight[row]}, weights must be at least 0")
    present = np.bincount(ids[weight > 0], minlength=len(classes))
    if (present == 0).any():
        missing = classes[np.flatnonzero(present == 0)[0]]
        kept = int((present > 0).sum())
        left = f": {kept} class is left, at least 2 classes are needed" if kept < 2 else ""
        raise ValueError(f"class {missing!r} has no row of positive sample_weight{left}")
    if isinstance(class_weight, str) and class_weight == "balanced":
        factor = weight.sum() / (len(classes) * np.bincount(ids, weights=weight))
    else:
        factor = compute_class_weight(class_weight, classes=classes, y=classes[ids])
        if not (np.isfinite(factor) & (factor > 0)).all():
            raise ValueError(f"class_weight must hold finite numbers above 0, got {class_weight!r}")
    return weight * factor[ids]
