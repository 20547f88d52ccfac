"""Probabilities and thresholds from decision values that were made out of fold: no further fits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import column_or_1d
from threadpoolctl import threadpool_limits

from hinge import _checks, _validate
from hinge._probability import log_probabilities, probabilities
from hinge._scoring import LabelScore

METHODS = ("sigmoid", "isotonic", "temperature")

_N_THRESHOLDS = 1000

_TEMPERATURES = (-10.0, 10.0)
"""Logarithms of the factors that are tried: decision values of any sensible scale are between."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """A map from decision values to probabilities.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, in the order of the columns of the probabilities.
    method : {"sigmoid", "isotonic", "temperature"}
        How it was fitted.
    """

    classes: np.ndarray
    method: str
    _part: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes; those of older pickles hold scikit-learn's calibrators."""
        state = dict(state)
        if "_model" in state:
            state["_part"] = _numbers(state["method"], state.pop("_model"))
        vars(self).update(state)

    @classmethod
    def of_part(cls, classes: np.ndarray, part: dict[str, Any]) -> Calibration:
        """The map of numbers as :meth:`part` gives them."""
        return cls(classes, part["kind"], part)

    def part(self) -> dict[str, Any]:
        """The map as numbers, as :class:`hinge._parts.ModelParts` holds it."""
        return self._part

    def predict_proba(self, decisions: Any) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        decisions : array-like of shape (n_samples,) for two classes, else (n_samples, n_classes)
            Decision values.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return probabilities(self._values(decisions), self._part)

    def predict_log_proba(self, decisions: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        decisions : array-like of shape (n_samples,) for two classes, else (n_samples, n_classes)
            Decision values.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            ``-inf`` for a probability of 0; exact far from the boundary with "temperature".
        """
        return log_probabilities(self._values(decisions), self._part)

    def _values(self, decisions: Any) -> np.ndarray:
        values = _checked(decisions, len(self.classes))
        return values.ravel() if values.shape[1] == 1 else values


def _numbers(method: str, model: Any) -> dict[str, Any]:
    """What was fitted as numbers: the factor of a temperature, or scikit-learn's calibrators."""
    if method == "temperature":
        return {"kind": "temperature", "factor": float(model)}
    calibrators = model.calibrated_classifiers_[0].calibrators
    if method == "sigmoid":
        slopes, offsets = np.array([(c.a_, c.b_) for c in calibrators], dtype=np.float64).T.copy()
        return {"kind": "sigmoid", "slopes": slopes, "offsets": offsets}
    lines = [
        tuple(np.array(part, dtype=np.float64) for part in (c.X_thresholds_, np.clip(c.y_thresholds_, 0.0, 1.0)))
        for c in calibrators
    ]
    return {"kind": "isotonic", "lines": lines}


def calibrate(decisions: Any, y: Any, *, method: str = "sigmoid", sample_weight: Any = None) -> Calibration:
    """Fit a map from decision values to probabilities.

    The decision values should come from models that were not trained on the rows, as those of a search do
    (``search.decisions`` with ``keep_decisions=True``); values of training rows give probabilities that are too sure.

    Parameters
    ----------
    decisions : array-like of shape (n_samples,) for two classes, else (n_samples, n_classes)
        Decision values, columns in the order of the sorted classes. Rows of NaN (never held out) are left out.
    y : array-like of shape (n_samples,)
        Labels.
    method : {"sigmoid", "isotonic", "temperature"}, default="sigmoid"
        "sigmoid" is Platt's method with his corrected targets, "isotonic" a rising step function: each class against
        the rest, divided by the sum where there are more than two, by scikit-learn. "temperature" multiplies all
        decision values by one number before a softmax (a logistic function for two classes): it never changes the order
        of the classes.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        Shapes that do not fit, one class only, an unknown method.

    References
    ----------
    Platt: Probabilistic Outputs for Support Vector Machines, 1999. Guo, Pleiss, Sun, Weinberger: On Calibration of
    Modern Neural Networks, ICML 2017 (temperature).

    Examples
    --------
    >>> from hinge import calibrate, select_C
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, random_state=0)
    >>> search = select_C(X, y, loss="squared_hinge", cv=3, keep_decisions=True)
    >>> calibration = calibrate(search.decisions, y)
    >>> calibration.predict_proba(search.decisions).shape
    (200, 2)
    """
    _checks.choice("method", method, METHODS)
    values, y, weight = _rows(decisions, y, sample_weight)
    classes, ids = _validate.encode(y)
    _check_columns(values, len(classes))
    if method == "temperature":
        return Calibration(classes, method, _numbers(method, _temperature(values, ids, weight)))
    from sklearn.calibration import CalibratedClassifierCV  # brings half of scikit-learn with it
    from sklearn.frozen import FrozenEstimator

    everything = np.arange(len(y))
    model = CalibratedClassifierCV(
        FrozenEstimator(_Values(classes)), method=method, cv=[(everything, everything)], n_jobs=1
    )
    # One thread: there is little to do, and threads of the linear algebra below wait for each other most of the time
    # (sigmoid, 11,314 rows, 20 classes: 0.13 s against 1.9 s with two threads).
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.filterwarnings("ignore", message=".*does not appear to accept sample_weight")
        model.fit(values, y, sample_weight=weight)
    return Calibration(classes, method, _numbers(method, model))


def tune_threshold(
    decisions: Any, y: Any, *, scoring: Any = None, cost_matrix: Any = None, sample_weight: Any = None
) -> float:
    """The decision value from which rows should count as the second class.

    Parameters
    ----------
    decisions : array-like of shape (n_samples,)
        Out-of-fold decision values of two classes. NaN (never held out) is left out.
    y : array-like of shape (n_samples,)
        Labels of two classes.
    scoring : str or callable, default=None
        A scikit-learn scorer of predicted classes that is to be best, at 1000 evenly spaced thresholds as in
        :class:`sklearn.model_selection.TunedThresholdClassifierCV`.
    cost_matrix : array-like of shape (2, 2), default=None
        Cost of a row of class i (row) that is predicted as class j (column), classes in sorted order; the total cost is
        made least, over all thresholds between two successive decision values.
    sample_weight : array-like of shape (n_samples,), default=None
        Multiplies the costs of a row, and is passed to a scorer that takes weights: weight 2 equals the row twice,
        weight 0 the row absent.

    Returns
    -------
    float
        Predict the second class where the decision value is at least this.

    Raises
    ------
    ValueError
        Not exactly one of ``scoring`` and ``cost_matrix``, not two classes, a cost that is not finite, a scorer that
        is unknown or cannot score these labels, decision values that are all equal (with ``scoring``).

    Examples
    --------
    >>> from hinge.calibration import tune_threshold
    >>> tune_threshold([-2.0, -1.0, 0.5, 1.0], [0, 1, 0, 1], cost_matrix=[[0, 1], [5, 0]])
    -1.5
    """
    if (scoring is None) == (cost_matrix is None):
        raise ValueError("exactly one of scoring and cost_matrix must be given")
    values, y, weight = _rows(decisions, y, sample_weight)
    classes, ids = _validate.encode(y)
    if len(classes) != 2:
        raise ValueError(f"a threshold is tuned for 2 classes, y has {len(classes)}")
    _check_columns(values, 2)
    if cost_matrix is not None:
        return _cheapest(values.ravel(), ids, costs(cost_matrix, 2), weight)
    return _best(values.ravel(), LabelScore("scoring", scoring, y, classes, weight))


def costs(cost_matrix: Any, n_classes: int) -> np.ndarray:
    """A checked matrix of costs, shape (n_classes, n_classes)."""
    matrix = np.asarray(cost_matrix, dtype=np.float64)
    if matrix.shape != (n_classes, n_classes):
        raise ValueError(f"cost_matrix must have the shape ({n_classes}, {n_classes}), got {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("cost_matrix must hold finite numbers")
    return matrix


def _best(values: np.ndarray, score: LabelScore) -> float:
    """The evenly spaced threshold of the best score; of several the lowest."""
    thresholds = np.linspace(values.min(), values.max(), _N_THRESHOLDS)
    if thresholds[0] == thresholds[-1]:
        raise ValueError(f"decisions are all {values[0]:g}: no threshold tells the classes apart")
    # Thresholds between the same two decision values have the same score.
    _, first = np.unique(np.searchsorted(np.sort(values), thresholds), return_index=True)
    scores = np.array([score(values >= threshold) for threshold in thresholds[first]])
    if np.isnan(scores).all():
        raise ValueError("the score is NaN at every threshold: take another scorer")
    return float(thresholds[first[np.nanargmax(scores)]])


def _cheapest(values: np.ndarray, ids: np.ndarray, matrix: np.ndarray, weight: np.ndarray | None) -> float:
    """The threshold of least total cost; of several the one nearest to 0."""
    order = np.argsort(values, kind="stable")
    values, cost = values[order], matrix[ids[order]]
    if weight is not None:
        cost *= weight[order, None]
    # Entry k: the k smallest values are predicted as the first class.
    as_first = np.concatenate([[0.0], np.cumsum(cost[:, 0])])
    as_second = cost[:, 1].sum() - np.concatenate([[0.0], np.cumsum(cost[:, 1])])
    total = as_first + as_second
    between = np.concatenate([[values[0] - 1.0], 0.5 * (values[1:] + values[:-1]), [values[-1] + 1.0]])
    is_cut = np.concatenate([[True], values[1:] > values[:-1], [True]])
    least = total[is_cut].min()
    cuts = between[is_cut & (total <= least + 1e-12 * abs(least))]
    return float(cuts[np.abs(cuts).argmin()])


def _temperature(values: np.ndarray, ids: np.ndarray, weight: np.ndarray | None) -> float:
    """The factor of least log loss."""
    if values.shape[1] == 1:
        values = np.column_stack([np.zeros(len(values)), values.ravel()])
    rows = np.arange(len(ids))

    def loss(log_factor: float) -> float:
        logs = log_softmax(np.exp(log_factor) * values, axis=1)[rows, ids]
        return -float(np.average(logs, weights=weight))

    return float(np.exp(minimize_scalar(loss, bounds=_TEMPERATURES, method="bounded").x))


def _rows(decisions: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Decision values as two dimensions, labels and weights, of the rows that have decision values."""
    values = np.asarray(decisions, dtype=np.float64)
    values = values.reshape(-1, 1) if values.ndim == 1 else values
    y = _validate.labels(y, len(column_or_1d(y)))
    weight = None if sample_weight is None else column_or_1d(np.asarray(sample_weight, dtype=np.float64))
    for name, other in (("y", y), ("sample_weight", weight)):
        if other is not None and len(other) != len(values):
            raise ValueError(f"{name} has {len(other)} entries, decisions has {len(values)} rows")
    known = ~np.isnan(values).any(axis=1)
    if weight is not None:
        known &= weight > 0
    if not known.any():
        raise ValueError("decisions holds no row without NaN and of positive weight")
    return values[known], y[known], None if weight is None else weight[known]


def _check_columns(values: np.ndarray, n_classes: int) -> None:
    expected = 1 if n_classes == 2 else n_classes
    if values.ndim != 2 or values.shape[1] != expected:
        raise ValueError(f"decisions must have {expected} column(s) for {n_classes} classes, got {values.shape[1:]}")


def _checked(decisions: Any, n_classes: int) -> np.ndarray:
    values = np.asarray(decisions, dtype=np.float64)
    values = values.reshape(-1, 1) if values.ndim == 1 else values
    _check_columns(values, n_classes)
    return values


class _Values(ClassifierMixin, BaseEstimator):
    """A classifier whose data are its decision values."""

    def __init__(self, classes: np.ndarray):
        self.classes = classes

    @property
    def classes_(self) -> np.ndarray:
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> _Values:
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X.ravel() if X.shape[1] == 1 else X

    def predict(self, X: np.ndarray) -> np.ndarray:
        values = self.decision_function(X)
        return self.classes[(values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)]
