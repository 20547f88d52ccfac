"""Probabilities from the decision values of logistic regression."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit


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
