"""Any input to what the native module takes: checked once, copied at most once, one style of message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from hinge import _native, _rows, _sparse
from hinge._warn import warn

Result = TypeVar("Result")

NativeMatrix = Any
"""A C-ordered 2-D array, or ``(indptr, indices, data, n_columns)``."""

_CHECK = {
    "accept_sparse": "csr",
    "accept_large_sparse": True,
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": False,  # done natively, with row and column in the message
}


def seed(random_state: Any) -> int:
    """A seed for the native generators; None gives always the same one, so that fits are reproducible by default."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def fit_matrix(X: Any, estimator: Any) -> Any:
    """X as CSR or C-ordered array; changes nothing in the estimator."""
    if _is_ready(X):
        return X
    _sparse.check_before_native(X)
    return check_array(X, estimator=estimator, input_name="X", **_CHECK)


def fit_data(X: Any, y: Any, estimator: Any = None) -> tuple[Any, np.ndarray]:
    """X as CSR or C-ordered array, y as a column; changes nothing in the estimator."""
    if y is None:
        _sparse.check_before_native(X)
        name = "hinge.select_C" if estimator is None else type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    X = fit_matrix(X, estimator)
    return X, labels(y, X.shape[0])


def stream_data(X: Any, y: Any, estimator: Any) -> tuple[Any, np.ndarray]:
    """:func:`fit_data` of a piece of a stream, with the features of the pieces before if there were any."""
    if not hasattr(estimator, "classes_"):
        return fit_data(X, y, estimator)
    _sparse.check_before_native(X)
    X = validate_data(estimator, X, reset=False, **_CHECK)
    return X, labels(y, X.shape[0])


def canonical(X: Any) -> Any:
    """X as CSR or C-ordered array of floats."""
    _sparse.check_before_native(X)
    return check_array(X, input_name="X", ensure_min_samples=0, ensure_min_features=0, **_CHECK)


def remember_features(estimator: Any, X: Any) -> None:
    """Set ``n_features_in_`` and ``feature_names_in_``, once a fit has succeeded."""
    if _is_ready(X):
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    else:
        validate_data(estimator, X, skip_check_array=True)


def check_fitted(estimator: Any) -> None:
    """scikit-learn's ``check_is_fitted``, not asked where the answer is plain: it takes longer than a row."""
    if "coef_" not in vars(estimator):
        check_is_fitted(estimator)


def predict_data(estimator: Any, X: Any) -> Any:
    """X for prediction, checked against the features of the fit."""
    X = shaped_data(estimator, X)
    check_entries(X)
    return X


def shaped_data(estimator: Any, X: Any) -> Any:
    """:func:`predict_data` whose entries are still to be checked, as native predictions do while they read them."""
    if _is_ready(X) and _has_the_features_of(estimator, X):
        return X
    _sparse.check_before_native(X)
    return validate_data(estimator, X, reset=False, **_CHECK)


def _is_ready(X: Any) -> bool:
    """Whether validation would return X itself without a word. It takes longer than a prediction of a row, and a good
    part of a small fit.
    """
    if type(X) is np.ndarray:
        values, is_usable = X, X.ndim == 2 and X.flags.c_contiguous
    elif type(X) in (sp.csr_matrix, sp.csr_array):
        values, index = X.data, X.indices.dtype
        is_native = index == X.indptr.dtype and index.isnative and index.char in "ilq"
        is_usable = is_native and X.ndim == 2 and X.indptr.shape == (X.shape[0] + 1,)
    else:
        return False
    return is_usable and values.dtype.char in "fd" and values.dtype.isnative and X.shape[0] > 0 and X.shape[1] > 0


def _has_the_features_of(estimator: Any, X: Any) -> bool:
    """Whether the columns of X are as many as those of the fit, which had no names."""
    fitted = vars(estimator)
    return X.shape[1] == fitted.get("n_features_in_") and "feature_names_in_" not in fitted


def check_entries(X: Any) -> None:
    """Refuse checked X where a value, or a sum of the duplicates of an entry, is not finite."""
    summed(X)


def same_names(estimator: Any, names: Sequence[str] | np.ndarray | None, what: str) -> None:
    """Compare names of columns with those of the fit, as scikit-learn does with data frames."""
    fitted = getattr(estimator, "feature_names_in_", None)
    kind = type(estimator).__name__
    if fitted is None or names is None:
        if fitted is not None:
            warn(f"{what} does not have feature names, but {kind} was fitted with feature names", UserWarning)
        elif names is not None:
            warn(f"{what} has feature names, but {kind} was fitted without feature names", UserWarning)
        return
    differing = [j for j, (name, other) in enumerate(zip(names, fitted, strict=False)) if name != other]
    if differing or len(names) != len(fitted):
        first = differing[0] if differing else min(len(names), len(fitted))
        found, expected = (repr(list(of)[first]) if first < len(of) else "none" for of in (names, fitted))
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same order: "
            f"column {first} of {what} is {found}, in the fit it was {expected}"
        )


def plain_data(X: Any) -> Any:
    """X as CSR or C-ordered array of finite numbers, duplicates summed, for no estimator."""
    _sparse.check_before_native(X)
    return summed(check_array(X, input_name="X", **_CHECK))


def call_native(function: Callable[[NativeMatrix], Result], X: Any) -> Result:
    """``function`` of the native arrays of a validated X; duplicates within a row are summed, in a copy."""
    try:
        return function(native_matrix(X))
    except _native.DuplicateEntriesError:
        return function(native_matrix(_summed(X)))


def summed(X: Any) -> Any:
    """Checked X, or a copy with the duplicates within its rows summed; entries and sums must be finite."""
    if not _native.check(native_matrix(X))[0]:
        return X
    copy = _summed(X)
    _native.check(native_matrix(copy))
    return copy


def _summed(X: Any) -> Any:
    """A copy of checked sparse X with the duplicates within a row summed."""
    summed = sp.csr_matrix((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    summed.sum_duplicates()
    return summed


def native_matrix(X: Any) -> NativeMatrix:
    """The arrays of a validated X as the native module takes them; copied only where they cannot be read in place."""
    return _rows.csr_arrays(X) if sp.issparse(X) else _rows.in_place(X)


def labels(y: Any, n_rows: int) -> np.ndarray:
    """Class labels as a one-dimensional array of one kind."""
    is_ready = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuf"
    y = y if is_ready else column_or_1d(y, warn=True)
    if y.shape[0] != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of rows: y has {y.shape[0]} labels, X has {n_rows} rows"
        )
    missing = [row for row, label in enumerate(y) if _is_missing(label)] if y.dtype == object else []
    if missing:
        row = missing[0]
        name = "NaN" if isinstance(y[row], Real) else repr(y[row])
        raise ValueError(
            f"Input y contains {name} in row {row}: labels must be finite (no NaN or infinity), none missing"
        )
    if y.dtype == object:
        kinds = sorted({"number" if isinstance(label, Real) else type(label).__name__ for label in y})
        if len(kinds) > 1:
            raise ValueError(f"y mixes labels of the types {', '.join(kinds)}: all labels must be of one type")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(f"Input y contains {y[row]} in row {row}: labels must be finite (no NaN or infinity)")
    pair = _pair(y)
    if pair is None or any(label != int(label) for label in pair):
        check_classification_targets(y)
    return y


def _is_missing(label: Any) -> bool:
    """Whether a label is NaN, None or the NA of pandas, which is not even equal to itself."""
    is_itself = label == label
    return label is None or not isinstance(is_itself, (bool, np.bool_)) or not is_itself


def _pair(y: np.ndarray) -> tuple[Any, Any] | None:
    """The two numbers that y consists of; None for other labels. Without sorting, which costs a small fit's time."""
    if y.dtype.kind not in "biuf" or len(y) == 0:
        return None
    low, high = y.min(), y.max()
    return (low, high) if low < high and ((y == low) | (y == high)).all() else None


def plain(label: Any) -> str:
    """A class label as its owner would write it, without NumPy's type."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def encode(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes, and each row's class number."""
    pair = _pair(y)
    if pair is not None:
        return np.array(pair, dtype=y.dtype), (y == pair[1]).astype(np.uint32)
    classes, ids = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds one class only ({plain(classes[0])}), a classifier needs at least 2 classes")
    return classes, ids.astype(np.uint32)


def encode_among(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Each row's class number where the sorted classes are known."""
    ids = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    strange = np.flatnonzero(classes[ids] != y)
    if len(strange):
        row = int(strange[0])
        raise ValueError(f"y has the label {plain(y[row])} in row {row}, classes are {classes.tolist()}")
    return ids.astype(np.uint32)


def classes_of_pieces(estimator: Any, classes: Any) -> np.ndarray:
    """The sorted classes of an estimator that learns piece by piece: told at the first call, the same ever after."""
    if classes is None:
        if not hasattr(estimator, "classes_"):
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return estimator.classes_
    known = np.unique(labels(classes, len(classes)))
    if len(known) < 2:
        raise ValueError(f"classes must hold at least 2 labels, got {known.tolist()!r}")
    if not np.array_equal(known, getattr(estimator, "classes_", known)):
        raise ValueError(
            f"classes={known.tolist()!r} differ from those of the model, {estimator.classes_.tolist()!r}: "
            "begin with a new one"
        )
    return known


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
    if class_weight is None and sample_weight is None:
        return np.ones(len(ids))
    weight = sample_weights(X, len(ids), sample_weight)
    present = np.bincount(ids[weight > 0], minlength=len(classes))
    if (present == 0).any():
        missing = classes[np.flatnonzero(present == 0)[0]]
        kept = int((present > 0).sum())
        left = f": {kept} class is left, at least 2 classes are needed" if kept < 2 else ""
        raise ValueError(f"class {plain(missing)} has no row of positive sample_weight{left}")
    with np.errstate(over="ignore", invalid="ignore"):
        factor = class_factors(classes, np.bincount(ids, weights=weight), class_weight)
        weight = weight * factor[ids]
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError("sample_weight times class_weight is too large: the sum over all rows must be finite")
    return weight


def batch_weights(
    X: Any, classes: np.ndarray, ids: np.ndarray, class_weight: Mapping[Any, float] | None, sample_weight: Any
) -> np.ndarray:
    """:func:`row_weights` for rows that need not have every class, nor any weight."""
    weight = sample_weights(X, len(ids), sample_weight, all_zero=True)
    if class_weight is None:
        return weight
    weight = weight * class_factors(classes, np.ones(len(classes)), class_weight)[ids]
    if not np.isfinite(weight.sum()):
        raise ValueError("sample_weight times class_weight is too large: the sum over all rows must be finite")
    return weight


def sample_weights(X: Any, n_rows: int, sample_weight: Any, *, all_zero: bool = False) -> np.ndarray:
    """One finite weight of at least 0 per row, float64, 1 if there are none; all of them 0 only with ``all_zero``."""
    if sample_weight is None:
        return np.ones(n_rows)
    if all_zero and np.shape(sample_weight) in ((), (n_rows,)) and not np.any(sample_weight):
        return np.zeros(n_rows)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, copy=True)
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise ValueError(f"sample_weight of row {row} is {weight[row]}, weights must be at least 0")
    return weight


def class_factors(
    classes: np.ndarray, totals: np.ndarray, class_weight: Mapping[Any, float] | str | None
) -> np.ndarray:
    """Weight of each class, ``totals`` being the sums of its rows' sample weights."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return totals.sum() / (len(classes) * totals)
    factor = compute_class_weight(class_weight, classes=classes, y=classes)
    if (factor == 0).any():
        unlearnable = plain(classes[int(np.flatnonzero(factor == 0)[0])])
        raise ValueError(
            f"class_weight must hold finite numbers above 0, class {unlearnable} has 0 and could not be learned: "
            "leave its rows out of X and y"
        )
    if not (np.isfinite(factor) & (factor > 0)).all():
        raise ValueError(f"class_weight must hold finite numbers above 0, got {class_weight!r}")
    return factor
