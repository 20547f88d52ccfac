"""A fitted model taken apart: plain arrays, numbers and dicts that are saved, served and converted.

Estimators are turned into parts by :func:`hinge._estimator_parts.parts_of`; the native module makes predictors and
files of them. Nothing here needs more than NumPy.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from hinge import _plain

_TEXTS = ("estimator", "version", "label_dtype")
"""What a record holds as it is; the rest is JSON for the native module."""


@dataclass(frozen=True, eq=False)
class ModelParts:
    """All that a model is, and what is known of its fit.

    Attributes
    ----------
    n_features : int
        Columns of the rows that it takes, before a degree-2 map.
    coef : ndarray of shape (n_vectors, n_weights), float32 or float64, or tuple (indptr, indices, values)
        Weights, a row per vector; a tuple is a CSR matrix. One vector for two classes, positive for the second.
    intercept : ndarray of shape (n_vectors,), float64
    classes : ndarray of shape (n_classes,)
        Numbers, strings (dtype object or str) or truth values.
    answer : dict
        How a class follows from decision values: ``{"kind": "sign"}`` (two classes), ``{"kind": "threshold",
        "threshold": float}`` (two classes, at least), ``{"kind": "highest"}``, ``{"kind": "most_probable"}``,
        ``{"kind": "cheapest", "costs": ndarray of shape (n_classes, n_classes)}``, ``{"kind": "labels",
        "container": "dense" or "sparse"}``.
    probability : dict or None
        How probabilities follow: ``{"kind": "logistic"}``, ``{"kind": "sigmoid", "slopes": ndarray, "offsets":
        ndarray}``, ``{"kind": "isotonic", "lines": list of (x, y)}``, ``{"kind": "temperature", "factor": float}``, a
        softmax of the decision values times the factor, which is 1 for multinomial logistic regression.
    pairs : dict or None
        The degree-2 map, as the native module takes it.
    feature_names : ndarray of str or None
    encoder : tuple or None
        What makes rows of a table, as :meth:`hinge._encode_coder.Coder.record` gives it.
    record : dict
        ``estimator``, ``version``, ``label_dtype``, ``parameters``, ``fitted``, ``data``, ``metadata``: what
        predictions do not need.
    """

    n_features: int
    coef: Any
    intercept: np.ndarray
    classes: np.ndarray
    answer: dict[str, Any]
    probability: dict[str, Any] | None = None
    pairs: dict[str, Any] | None = None
    feature_names: np.ndarray | None = None
    encoder: tuple[Any, ...] | None = None
    record: dict[str, Any] = field(default_factory=dict)

    def native(self) -> dict[str, Any]:
        """The parts as the native module takes them."""
        record = {
            name: value if name in _TEXTS else json.dumps(value, allow_nan=False) for name, value in self.record.items()
        }
        names = self.feature_names
        return {
            "n_features": self.n_features,
            "coef": self.coef,
            "intercept": self.intercept,
            "classes": self.classes.tolist(),
            "answer": self.answer,
            "probability": self.probability,
            "pairs": self.pairs,
            "feature_names": None if names is None else [str(name) for name in names],
            "encoder": self.encoder,
            "record": record,
        }

    @classmethod
    def of_native(cls, native: dict[str, Any]) -> Self:
        """The parts that the native module gives back."""
        record = {name: value if name in _TEXTS else json.loads(value) for name, value in native["record"].items()}
        names = native["feature_names"]
        return cls(
            **native
            | {
                "classes": _plain.labels(native["classes"], record["label_dtype"]),
                "feature_names": None if names is None else np.array(names, dtype=object),
                "record": record,
            }
        )
