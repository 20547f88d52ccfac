"""Fitted estimators taken apart and put together: the only place that knows both them and :class:`ModelParts`."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from hinge import _plain
from hinge._block_options import BlockOptions
from hinge._certificate import Certificate
from hinge._csearch import CSearch
from hinge._decisions import dense_weights, intercepts
from hinge._linear import LinearClassifier
from hinge._native import __version__
from hinge._parts import ModelParts
from hinge._presolve import Presolve
from hinge._warn import warn
from hinge.calibration import Calibration
from hinge.logistic import LogisticRegression, LogisticRegressionCV
from hinge.subgradient import PegasosClassifier, SubgradientSVC
from hinge.svm import LinearSVC, LinearSVCCV

_ESTIMATORS: dict[str, type[LinearClassifier]] = {
    kind.__name__: kind
    for kind in (
        LinearSVC,
        LinearSVCCV,
        LogisticRegression,
        LogisticRegressionCV,
        PegasosClassifier,
        SubgradientSVC,
    )
}

_CLASSES: dict[str, type] = {kind.__name__: kind for kind in (BlockOptions, Certificate, CSearch, Presolve)}

_PARTS = ("coef_", "intercept_", "classes_", "n_features_in_", "feature_names_in_", "threshold_", "calibration_")
"""Attributes that parts hold in a form of their own."""

_DROPPED = ("stream_",)
"""The state of ``partial_fit``, which a pickle keeps: it holds rows of the training data. For the same reason the
table of a search goes without its out-of-fold decision values."""


def parts_of(model: LinearClassifier) -> ModelParts:
    """The parts of a fitted estimator.

    Parameters
    ----------
    model : LinearClassifier
        Fitted; its arrays are shared, not copied, where they lie in one piece.

    Returns
    -------
    ModelParts

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    """
    check_is_fitted(model)
    kept = {
        name: _plain.encode(replace(value, decisions=None) if isinstance(value, CSearch) else value)
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and name not in (*_PARTS, *_DROPPED)
    }
    record = {
        "estimator": type(model).__name__,
        "version": __version__,
        "label_dtype": model.classes_.dtype.str,
        "parameters": {name: _plain.encode(value) for name, value in model.get_params(deep=False).items()},
        "fitted": kept,
        "data": {},
        "metadata": {},
    }
    return ModelParts(
        n_features=int(model.n_features_in_),
        coef=_weights(model),
        intercept=intercepts(model),
        classes=model.classes_,
        answer=model._answer_part(),
        probability=model._probability_part(),
        pairs=model._map,
        feature_names=getattr(model, "feature_names_in_", None),
        record=record,
    )


def _weights(model: LinearClassifier) -> Any:
    coef: Any = model.coef_
    if not sp.issparse(coef):
        return dense_weights(coef)
    coef = sp.csr_array(coef, copy=False)
    if not coef.has_canonical_format:
        coef = coef.copy()
        coef.sum_duplicates()
    values = coef.data if coef.dtype in (np.float32, np.float64) else coef.data.astype(np.float64)
    return coef.indptr.astype(np.int64), coef.indices.astype(np.int64), np.ascontiguousarray(values)


def estimator_of(parts: ModelParts) -> Any:
    """A fitted estimator that predicts what the parts do, to the bit.

    Parameters
    ----------
    parts : ModelParts

    Returns
    -------
    LinearClassifier
        Of the class that was fitted.

    Raises
    ------
    ValueError
        No estimator is known that the parts could be of.

    Warns
    -----
    UserWarning
        A parameter was an object that no file can hold; it has its default.
    """
    kind = _ESTIMATORS.get(parts.record["estimator"])
    if kind is None:
        raise ValueError(f"{parts.record['estimator']!r} is no estimator of hinge, known are {sorted(_ESTIMATORS)}")
    model = kind(**_parameters(kind, parts.record["parameters"]))
    fitted = {name: _plain.decode(value, _CLASSES) for name, value in parts.record["fitted"].items()}
    vars(model).update({name: value for name, value in fitted.items() if not isinstance(value, _plain.Unknown)})
    model.coef_ = _coef(parts)
    model.intercept_ = parts.intercept
    model.classes_ = parts.classes
    model.n_features_in_ = parts.n_features
    model._map = parts.pairs
    if parts.feature_names is not None:
        model.feature_names_in_ = np.array(parts.feature_names, dtype=object)
    if parts.answer["kind"] == "threshold":
        model.threshold_ = parts.answer["threshold"]
    if parts.probability is not None and parts.probability["kind"] != "logistic":
        model.calibration_ = Calibration.of_part(model.classes_, parts.probability)
    return model


def _coef(parts: ModelParts) -> Any:
    if not isinstance(parts.coef, tuple):
        return parts.coef
    indptr, indices, values = parts.coef
    return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, parts.n_features))


def _parameters(kind: type[LinearClassifier], encoded: dict[str, Any]) -> dict[str, Any]:
    """Parameters that the constructor knows, as they were."""
    known = inspect.signature(kind).parameters
    given = {name: _plain.decode(value, _CLASSES) for name, value in encoded.items() if name in known}
    for name, value in list(given.items()):
        if isinstance(value, _plain.Unknown):
            warn(f"the parameter {name} was {value.text}, which no file can hold: it has its default now", UserWarning)
            del given[name]
    return given
