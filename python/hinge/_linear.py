"""What the four estimators share: validate, call, store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from hinge import _native, _validate
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

    def _loss(self) -> str:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
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
        checked, y = _validate.fit_data(X, y, self)
        classes, ids = _validate.encode(y)
        weight = _validate.row_weights(checked, classes, ids, self.class_weight, sample_weight)
        task = FitTask(self, X, y, sample_weight=sample_weight)
        self._fit_checked(float(self.C), checked, classes, ids, weight, options)
        _validate.remember_features(self, X)
        task.end()
        return self

    def _native_fit(self) -> Callable[..., dict[str, Any]]:
        """The native function that fits all classes."""
        return _native.fit

    def _fit_checked(
        self,
        C: float,
        X: Any,
        classes: np.ndarray,
        ids: np.ndarray,
        weight: np.ndarray,
        options: dict[str, Any],
    ) -> None:
        """Fit on checked input and set the fitted attributes."""
        with np.errstate(over="ignore"):
            cost = C * weight
        if not np.isfinite(cost.sum()):
            raise ValueError(f"C = {C:g} times the weights of all rows is too large: the sum must be finite")
        report = reporter(self.verbose, "fit")
        fit = self._native_fit()
        result = _validate.call_native(lambda matrix: fit(matrix, ids, len(classes), cost, options, report), X)
        self.classes_ = classes
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
        """
        check_is_fitted(self)
        X = _validate.predict_data(self, X)
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
        """
        values = self.decision_function(X)
        ids = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[ids]
