"""What the four estimators share: validate, call, store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from hinge import _labels, _native, _validate
from hinge._callbacks import CallbackSupport, FitTask
from hinge._certificate import Certificate
from hinge._presolve import Presolve
from hinge._progress import reporter
from hinge._warn import warn

SOLVERS = ("auto", "dual_cd", "dual_cd_online", "newton")


class LinearClassifier(CallbackSupport, ClassifierMixin, BaseEstimator):
    """A linear classifier with certificate; subclasses own the parameters and name the loss."""

    coef_: np.ndarray
    intercept_: np.ndarray
    classes_: np.ndarray
    presolve_: Presolve | None

    _takes_labels = True

    def _loss(self) -> str:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self._takes_labels
        return tags

    def _options(self) -> dict[str, Any]:
        """The native options, every parameter checked."""
        _validate.choice("solver", self.solver, SOLVERS)
        _validate.positive("tol", self.tol)
        _validate.whole("max_iter", self.max_iter, 1)
        _validate.verbosity(self.verbose)
        return {
            "loss": self._loss(),
            "solver": self.solver,
            "intercept": _validate.intercept(self.fit_intercept, self.intercept_scaling),
            "tol": float(self.tol),
            "max_iter": int(self.max_iter),
            "seed": _validate.seed(self.random_state),
            "n_threads": _validate.threads(self.n_jobs),
            "presolve": _validate.presolve(self.presolve),
        }

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        _validate.positive("C", self.C)
        options = self._options()
        if _labels.is_indicator(y):
            return self._fit_labels(X, y, sample_weight, options)
        checked, y = _validate.fit_data(X, y, self)
        classes, ids = _validate.encode(y)
        weight = _validate.row_weights(checked, classes, ids, self.class_weight, sample_weight)
        task = FitTask(self, X, y, sample_weight=sample_weight)
        self._fit_checked(float(self.C), checked, classes, ids, weight, options)
        _validate.remember_features(self, X)
        task.end()
        return self

    def _fit_labels(self, X: Any, y: Any, sample_weight: Any, options: dict[str, Any]) -> Self:
        """Fit several labels per row, each against the rest."""
        if options["solver"] == "crammer_singer":
            raise ValueError("multi_class='crammer_singer' takes one class per row, y is a matrix of labels")
        if self.class_weight is not None:
            raise ValueError(f"class_weight must be None where y is a matrix of labels, got {self.class_weight!r}")
        checked = _validate.fit_matrix(X, self)
        rows = _labels.positive_rows(y, checked.shape[0])
        weight = _validate.sample_weights(checked, sample_weight)
        n_labels = len(rows[0]) - 1
        task = FitTask(self, X, y, sample_weight=sample_weight)
        self._fit_checked(float(self.C), checked, np.arange(n_labels), np.empty(0), weight, options, rows)
        _validate.remember_features(self, X)
        self.multilabel_ = "sparse" if sp.issparse(y) else "dense"
        task.end()
        return self

    def _native_fit(
        self, ids: np.ndarray, n_classes: int, rows: tuple[np.ndarray, np.ndarray] | None
    ) -> Callable[..., dict[str, Any]]:
        """The native function that fits all classes, or the labels with the given positive rows."""
        is_sparse = bool(getattr(self, "sparse_coef", False))
        if rows is None and is_sparse:
            rows = _labels.class_rows(ids, n_classes)
        if rows is None:
            return _native.fit
        return _labels.native_fit(rows, float(getattr(self, "sparse_tol", 0.0)) if is_sparse else 0.0, is_sparse)

    def _fit_checked(
        self,
        C: float,
        X: Any,
        classes: np.ndarray,
        ids: np.ndarray,
        weight: np.ndarray,
        options: dict[str, Any],
        rows: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Fit on checked input, classes or the positive rows of labels, and set the fitted attributes."""
        with np.errstate(over="ignore"):
            cost = C * weight
        if not np.isfinite(cost.sum()):
            raise ValueError(f"C = {C:g} times the weights of all rows is too large: the sum must be finite")
        report = reporter(self.verbose, "fit")
        fit = self._native_fit(ids, len(classes), rows)
        result = _validate.call_native(lambda matrix: fit(matrix, ids, len(classes), cost, options, report), X)
        self.classes_ = classes
        self.__dict__.pop("multilabel_", None)
        self.coef_ = result["coef"]
        self.intercept_ = result["intercept"]
        self.n_iter_ = np.array(result["n_iter"], dtype=np.int64)
        self.certificate_ = Certificate.from_native(result)
        self.presolve_ = None if result["presolve"] is None else Presolve(**result["presolve"])
        if not self.certificate_.converged:
            worst = float(self.certificate_.relative_gap.max())
            warn(
                f"{type(self).__name__} ended with status {sorted(set(self.certificate_.status))} at a relative "
                f"duality gap of {worst:.2e}, tol is {self.tol:.2e}: raise max_iter or tol, or scale the features",
                ConvergenceWarning,
            )

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance to each class's hyperplane, not divided by the norm of its weights.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
            One column per label where y was a matrix of labels.
        """
        check_is_fitted(self)
        return self._decisions(_validate.predict_data(self, X))

    def _decisions(self, X: Any) -> np.ndarray:
        if sp.issparse(self.coef_):
            values = _labels.decisions(self, X)
            return values.ravel() if values.shape[1] == 1 else values
        values = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return values.ravel() if values.shape[1] == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """Most likely class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Where y was a matrix of labels: a matrix of 0 and 1 of shape (n_samples, n_labels), sparse if y was.
        """
        check_is_fitted(self)
        X = _validate.predict_data(self, X)
        if hasattr(self, "multilabel_"):
            return _labels.indicator(self, X, self.multilabel_ == "sparse")
        if sp.issparse(self.coef_) and len(self.classes_) > 2:
            return self.classes_[_labels.top_k(self, X, 1)[0].ravel()]
        values = self._decisions(X)
        ids = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[ids]

    def predict_top_k(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The ``k`` best classes or labels of each row, best first, with their decision values.

        Rows are dealt with in parallel; the decision values of all classes are never held at once.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        k : int, default=5
            At most the number of classes.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Classes, or column numbers of y where it was a matrix of labels.
        values : ndarray of shape (n_samples, k), float64

        Raises
        ------
        ValueError
            ``k`` out of range, or a model of two classes, which has one decision value for both.
        """
        check_is_fitted(self)
        _validate.whole("k", k, 1)
        if self.coef_.shape[0] == 1:
            raise ValueError("predict_top_k needs more than 2 classes or a matrix of labels, the model has one vector")
        if k > len(self.classes_):
            raise ValueError(f"k must be at most the number of classes, {len(self.classes_)}, got {k}")
        ids, values = _labels.top_k(self, _validate.predict_data(self, X), int(k))
        return self.classes_[ids], values
