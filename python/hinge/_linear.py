"""What the four estimators share: validate, call, store."""

from __future__ import annotations

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
from hinge.poly2 import degree_options, pair_table, with_sorted_rows

SOLVERS = ("auto", "dual_cd", "dual_cd_online", "newton", "primal_cd", "cutting_plane")


SOLVER_OF_LOSS = {"primal_cd": "squared_hinge", "cutting_plane": "hinge"}
"""The one loss of a solver that has one."""


def check_solver(solver: str, loss: str) -> None:
    """Refuse a solver that does not know the loss."""
    only = SOLVER_OF_LOSS.get(solver, loss)
    if only != loss:
        raise ValueError(f"solver={solver!r} is for loss={only!r} only, got loss={loss!r}")


class LinearClassifier(CallbackSupport, ClassifierMixin, BaseEstimator):
    """A linear classifier with certificate; subclasses own the parameters and name the loss."""

    coef_: np.ndarray
    intercept_: np.ndarray
    classes_: np.ndarray
    presolve_: Presolve | None
    _map: dict[str, Any] | None = None

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
        check_solver(self.solver, self._loss())
        intercept, seed = (
            _validate.intercept(self.fit_intercept, self.intercept_scaling),
            _validate.seed(self.random_state),
        )
        return {
            "loss": self._loss(),
            "solver": self.solver,
            "intercept": intercept,
            "tol": float(self.tol),
            "max_iter": int(self.max_iter),
            "seed": seed,
            "n_threads": _validate.threads(self.n_jobs),
            "presolve": _validate.presolve(self.presolve),
            "map": degree_options(self, intercept, seed),
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
        if options["map"] is not None:
            X = with_sorted_rows(X)
        result = _validate.call_native(lambda matrix: _native.fit(matrix, ids, len(classes), cost, options, report), X)
        self._map = options["map"]
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

    def pair_weights(self, pairs: Any = None, *, problem: int = 0) -> np.ndarray:
        """Weights of products of features in the decision function, after a fit with ``degree=2``.

        Parameters
        ----------
        pairs : array-like of int of shape (n_pairs, 2), default=None
            Pairs of columns of X; None for all of them, which hashed weights do not allow.
        problem : int, default=0
            Row of ``coef_``.

        Returns
        -------
        structured ndarray with fields ``i``, ``j`` (``i <= j``) and ``weight``
            The decision value is the sum of ``weight * x_i * x_j`` over all pairs, the linear terms (the first
            n_features weights of ``coef_``, with ``gamma`` times ``sqrt(2 * gamma * coef0)``), the constant feature and
            the intercept. Hashed pairs that share a weight show it each with its own sign.
        """
        check_is_fitted(self)
        if self._map is None:
            raise ValueError(f"pair_weights needs a fit with degree=2, {type(self).__name__} has degree=1")
        return pair_table(self.n_features_in_, self._map, self.coef_[problem], pairs)

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
        native = self._map
        if native is None:
            values = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        else:
            X, threads = with_sorted_rows(X), _validate.threads(self.n_jobs)
            coef = np.ascontiguousarray(self.coef_, dtype=np.float64)
            map_decisions = _native.map_decisions
            values = _validate.call_native(lambda matrix: map_decisions(matrix, native, coef, threads), X)
            values = values + self.intercept_
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
