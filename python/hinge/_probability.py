"""Probabilities from the decision values of logistic regression."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit

_LEAST_SUM = 1e-30
"""Sums of one-vs-rest probabilities below this are divided by as logarithms: their terms may be rounded to 0."""


def probabilities(values: np.ndarray) -> np.ndarray:
    """Probability of each class: the exponential of :func:`log_probabilities`, in a quarter of its time."""
    if values.ndim == 1:
        return np.column_stack([expit(-values), expit(values)])
    found = expit(values)
    total = found.sum(axis=1, keepdims=True)
    small = np.flatnonzero(total < _LEAST_SUM)
    total[small] = 1.0
    found /= total
    if len(small):
        found[small] = np.exp(log_probabilities(values[small]))
    return found


def log_probabilities(values: np.ndarray) -> np.ndarray:
    """Logarithms of the probability of each class.

    Parameters
    ----------
    values : ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        Decision values.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        For more than two classes, the one-vs-rest probabilities divided by their sum.
    """
    if values.ndim == 1:
        return np.column_stack([log_expit(-values), log_expit(values)])
    logs = log_expit(values)
    # Normalised around the largest, so that rows far from every class do not divide 0 by 0.
    logs -= logs.max(axis=1, keepdims=True)
    return logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
