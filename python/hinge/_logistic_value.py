"""The objective of logistic regression at any weights, never below its true value.

A certificate needs the primal value of the weights that are handed out. Where these are not the solver's own, because
they are rounded to single precision or come from a fit before, the value is computed here. All terms are positive,
so that a sum of n of them is off by at most n roundings of itself; a margin of k products is off by at most k + 2
roundings of the sum of their magnitudes, and the loss by no more than the margin. Both are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge import _penalty
from hinge._fit_rows import blocks, softmax_losses

_ROUNDING = float(np.finfo(np.float64).eps)


def value_from_above(
    X: Any,
    signs: np.ndarray,
    cost: np.ndarray,
    model: tuple[np.ndarray, np.ndarray],
    height: float | None,
    penalty: dict[str, Any] | None = None,
) -> np.ndarray:
    """Upper bounds of the objectives, one per binary problem.

    Parameters
    ----------
    X : csr_matrix or ndarray of shape (n_rows, n_features)
    signs : ndarray of shape (n_rows, n_problems)
    cost : ndarray of shape (n_rows,)
        C times the weight of the row.
    model : pair of ndarray
        Weights of shape (n_problems, n_features) and intercepts of shape (n_problems,).
    height : float or None
        That of the constant column whose weight is the penalised intercept; 0 or None for one that costs nothing.
    penalty : dict or None
        The native penalty; None for the squares.

    Returns
    -------
    ndarray of shape (n_problems,)
    """
    coef, intercept = (np.asarray(part, dtype=np.float64) for part in model)
    losses, magnitudes = np.zeros(len(coef)), np.zeros(len(coef))
    for part, rows in blocks(X):
        losses += cost[part] @ np.logaddexp(0.0, -signs[part] * (rows @ coef.T + intercept))
        magnitudes += cost[part] @ (abs(rows) @ np.abs(coef).T + np.abs(intercept))
    slack = (X.shape[1] + 2) * _ROUNDING * magnitudes
    total = losses + _penalty.value(penalty, coef, intercept, height)
    return total * (1 + (X.shape[0] + X.shape[1] + 8) * _ROUNDING) + slack


def softmax_value_from_above(
    X: Any,
    ids: np.ndarray,
    cost: np.ndarray,
    model: tuple[np.ndarray, np.ndarray],
    height: float | None,
    penalty: dict[str, Any] | None = None,
) -> np.ndarray:
    """An upper bound of the objective of all classes as one problem, shape (1,); ``ids`` are numbers of classes.

    Other parameters are those of :func:`value_from_above`. Where the scores of a row are off by at most e, its loss is
    off by 2 e.
    """
    coef, intercept = (np.asarray(part, dtype=np.float64) for part in model)
    loss = magnitude = 0.0
    for part, rows in blocks(X):
        loss += cost[part] @ softmax_losses(rows @ coef.T + intercept, ids[part])
        magnitude += cost[part] @ (abs(rows) @ np.abs(coef).T + np.abs(intercept)).max(axis=1)
    slack = 2 * (X.shape[1] + 4) * _ROUNDING * magnitude
    total = loss + _penalty.value(penalty, coef, intercept, height).sum()
    return np.array([total * (1 + (X.shape[0] + coef.size + 8 * len(coef) + 8) * _ROUNDING) + slack])
