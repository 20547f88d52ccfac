"""Prediction of what does not fit in memory: a piece at a time, in the order of the input."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from hinge import _checks, _threads, _validate
from hinge._blocks import Scores
from hinge._linear import LinearClassifier
from hinge._sources import Arrays, Batch, Source, open_source
from hinge.blocks import BlockStore

METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")


def iter_predictions(
    model: Any,
    source: Any,
    *,
    method: str = "predict",
    zero_based: bool | str = "auto",
    columns: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> Iterator[np.ndarray]:
    """Predict the rows of a store or of files, in bounded memory.

    Parameters
    ----------
    model : LinearSVC, LogisticRegression or their CV variants, fitted
    source : BlockStore, {array-like, sparse matrix} of shape (n_samples, n_features), path, list of paths or iterable
        A matrix or data frame X, an iterable of those, a .npy file of X, a .npz file as of scipy.sparse.save_npz; or
        anything that :meth:`hinge.BlockStore.build` takes, with labels that are not used.
    method : {"predict", "decision_function", "predict_proba", "predict_log_proba"}, default="predict"
        The last two for a model that has them.
    zero_based : {"auto", True, False}, default="auto"
        For svmlight files: whether indices start at 0.
    columns : dict, default=None
        For Parquet files, as in :meth:`hinge.BlockStore.build`.
    n_jobs : int, default=None
        Threads; None means all usable cores.

    Yields
    ------
    ndarray of shape (n_rows,) or (n_rows, n_classes)
        Values of the next rows, in the order of the input. From a store they come in runs of some 50,000 rows, put in
        order in memory for about as many rows as its building held in open pages.

    Raises
    ------
    ValueError
        Another number of features than the model has; a method that the model does not have; unusable input, NaN and
        infinity among it.
    sklearn.exceptions.NotFittedError
        The model is not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import LinearSVC, iter_predictions
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=300, random_state=0)
    >>> model = LinearSVC().fit(X, y)
    >>> pieces = iter_predictions(model, (X[k : k + 100] for k in (0, 100, 200)))
    >>> bool((np.concatenate(list(pieces)) == model.predict(X)).all())
    True
    """
    if not isinstance(model, LinearClassifier):
        raise TypeError(f"model must be a classifier of hinge, got {type(model).__name__}")
    check_is_fitted(model)
    _checks.choice("method", method, METHODS)
    try:
        getattr(model, method)
    except AttributeError as error:
        raise ValueError(str(error)) from error
    threads = _threads.threads(n_jobs)
    if isinstance(source, BlockStore):
        values = Scores(source, model, threads).in_order()
        return (_answer(model, method, piece) for piece in values)
    if (X := _unlabelled(source)) is not None:
        rows = Arrays(_validate.predict_data(model, X), np.empty(X.shape[0])).batches()
        return (_answer(model, method, _decisions(model, batch.X)) for batch in rows)
    if isinstance(source, Iterator) or (isinstance(source, list) and source and _is_matrix(source[0])):
        source = _with_labels(source)
    n_features = model.n_features_in_
    opened = open_source(source, n_features=n_features, zero_based=zero_based, columns=columns, n_threads=threads)
    return (_answer(model, method, _decisions(model, batch.X)) for batch in _with_names(model, opened))


def _with_names(model: LinearClassifier, source: Source) -> Iterator[Batch]:
    """The batches of a source, whose columns must have the names of the fit, if they have names."""
    for batch in source.batches():
        if source.feature_names is not None:
            _validate.same_names(model, source.feature_names, "the source")
        yield batch


def _is_matrix(source: Any) -> bool:
    return len(getattr(source, "shape", ())) == 2


def _unlabelled(source: Any) -> Any:
    """The matrix of a source that holds nothing else; None for any other source."""
    if _is_matrix(source):
        return source
    if not isinstance(source, (str, os.PathLike)):
        return None
    path = os.fspath(source)
    if path.endswith(".npy"):
        return np.load(path, mmap_mode="r", allow_pickle=False)
    if path.endswith(".npz") and not glob.has_magic(path):
        with np.load(path, allow_pickle=False) as file:
            return None if "y" in file else file["X"] if "X" in file else sp.load_npz(path)
    return None


def _with_labels(items: Iterable[Any]) -> Iterator[Any]:
    """Labels beside every bare matrix: nobody looks at them."""
    return ((item, np.empty(item.shape[0])) if _is_matrix(item) else item for item in items)


def _decisions(model: LinearClassifier, X: Any) -> np.ndarray:
    X = _validate.canonical(X)
    if X.shape[1] != model.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, the model was fitted with {model.n_features_in_}")
    return model._decisions(X).reshape(X.shape[0], -1)


def _answer(model: Any, method: str, values: np.ndarray) -> np.ndarray:
    if method == "predict":
        return model._predicted(values)
    values = values.ravel() if values.shape[1] == 1 else values
    if method == "decision_function":
        return values
    return model._log_probabilities(values) if method == "predict_log_proba" else model._probabilities(values)
