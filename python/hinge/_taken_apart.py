"""Fitted estimators taken apart, the way to :class:`ModelParts`; :mod:`hinge._estimator_parts` has the way back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from hinge import _plain
from hinge._csearch import CSearch
from hinge._decisions import dense_weights, intercepts
from hinge._native import __version__
from hinge._parts import ModelParts

_PARTS = ("coef_", "intercept_", "classes_", "n_features_in_", "feature_names_in_", "threshold_", "calibration_")
"""Attributes that parts hold in a form of their own."""

_DROPPED = ("stream_",)
"""The state of ``partial_fit``, which a pickle keeps: it holds rows of the training data. For the same reason the
table of a search goes without its out-of-fold decision values."""


def parts_of(model: Any) -> ModelParts:
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
        "data": model._data or {},
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


def _weights(model: Any) -> Any:
    coef: Any = model.coef_
    if not sp.issparse(coef):
        return dense_weights(coef)
    coef = sp.csr_array(coef, copy=False)
    if not coef.has_canonical_format:
        coef = coef.copy()
        coef.sum_duplicates()
    values = coef.data if coef.dtype in (np.float32, np.float64) else coef.data.astype(np.float64)
    return coef.indptr.astype(np.int64), coef.indices.astype(np.int64), np.ascontiguousarray(values)
