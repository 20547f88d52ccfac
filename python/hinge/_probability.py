"""Probabilities from decision values: the native ones, which a loaded model gives as well."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge import _native

LOGISTIC: dict[str, Any] = {"kind": "logistic"}
"""Of each class against the rest, divided by the sum."""

SOFTMAX: dict[str, Any] = {"kind": "temperature", "factor": 1.0}
"""Of all classes together."""


def is_softmax(options: dict[str, Any], n_classes: int) -> bool:
    """Whether native fits of these options make one problem, with the softmax of all scores, of so many classes."""
    return options["multi_class"] == "multinomial" and n_classes > 2


def multi_class_of(options: dict[str, Any], n_classes: int) -> str:
    """What a model of such fits has as ``multi_class_``."""
    return "multinomial" if is_softmax(options, n_classes) else "ovr"


def probabilities(values: np.ndarray, part: dict[str, Any] = LOGISTIC, *, labels: bool = False) -> np.ndarray:
    """Probability of each class.

    Parameters
    ----------
    values : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Decision values; of shape (n_samples,) for two classes, or for one label.
    part : dict
        How probabilities follow, as in :class:`hinge._parts.ModelParts`.
    labels : bool, default=False
        Whether the columns are labels, which a row may have in any number: each probability stands by itself.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        For labels, of the shape of ``values``.
    """
    return _filled(values, part, labels, False)


def log_probabilities(values: np.ndarray, part: dict[str, Any] = LOGISTIC, *, labels: bool = False) -> np.ndarray:
    """Logarithms of :func:`probabilities`: -inf for a probability of 0, which those of the logistic function and of a
    softmax never are.
    """
    return _filled(values, part, labels, True)


def _filled(values: np.ndarray, part: dict[str, Any], labels: bool, logarithms: bool) -> np.ndarray:
    kind = "labels" if labels else "pair" if values.ndim == 1 else "classes"
    rows = np.ascontiguousarray(values, dtype=np.float64).reshape(len(values), -1)
    out = np.empty((len(rows), 2 if kind == "pair" else rows.shape[1]))
    _native.probabilities_of(part, kind, rows, logarithms, out)
    return out.ravel() if labels and values.ndim == 1 else out
