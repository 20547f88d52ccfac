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
from hinge.encoding import TableEncoder

_PARTS = ("coef_", "intercept_", "classes_", "n_features_in_", "feature_names_in_", "threshold_", "calibration_")
"""Attributes that parts hold in a form of their own."""

_DROPPED = ("stream_",)
"""The state of ``partial_fit``, which a pickle keeps: it holds rows of the training data. For the same reason the
table of a search goes without its out-of-fold decision values."""


def parts_of(model: Any) -> ModelParts:
    """The parts of a fitted estimator.

    Parameters
    ----------
    model : LinearClassifier, or Pipeline of a TableEncoder and one
        Fitted; its arrays are shared, not copied, where they lie in one piece.

    Returns
    -------
    ModelParts

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    """
    if hasattr(model, "named_steps"):  # a Pipeline, whose module brings much that a fit does without
        return _of_pipeline(model)
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


def _of_pipeline(pipeline: Any) -> ModelParts:
    """The parts of a classifier behind an encoder of tables."""
    steps = [step for _, step in pipeline.steps if step not in (None, "passthrough")]
    if len(steps) != 2 or not isinstance(steps[0], TableEncoder) or not hasattr(steps[1], "_answer_part"):
        names = [type(step).__name__ for step in steps]
        raise TypeError(f"a pipeline that is saved or served has a TableEncoder and a classifier of hinge, got {names}")
    encoder, model = steps
    check_is_fitted(encoder)
    parts = parts_of(model)
    if parts.n_features != encoder.n_features_out_:
        raise ValueError(
            f"the encoder makes {encoder.n_features_out_} columns, the classifier was fitted with {parts.n_features}"
        )
    return replace(parts, encoder=encoder._coder.record())


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
