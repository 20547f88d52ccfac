"""What the four estimators share: validate, call, store."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from hinge import _native, _outofcore, _validate
from hinge._callbacks import CallbackSupport, FitTask
from hinge._certificate import Certificate
from hinge._presolve import Presolve
from hinge._progress import reporter
from hinge._warn import warn
from hinge.blocks import BlockStore
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
        if isinstance(X, BlockStore):
            return self._fit_store(X, y, sample_weight, options)
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
        self._take(classes, result)
        self._map = options["map"]

    def _fit_store(self, store: BlockStore, y: Any, sample_weight: Any, options: dict[str, Any]) -> Self:
        if y is not None or sample_weight is not None:
            raise ValueError("a BlockStore holds its labels and weights: y and sample_weight must be None")
        _outofcore.refuse_pairs(options)
        blocks = _outofcore.options(self.memory_budget, self.checkpoint, self.block_options)
        cost = _outofcore.class_costs(store, float(self.C), self.class_weight)
        task = FitTask(self, store, None)
        self._fit_blocks(store, cost, options, blocks)
        task.end()
        return self

    def _fit_blocks(self, store: BlockStore, cost: np.ndarray, options: dict[str, Any], blocks: dict[str, Any]) -> None:
        """Fit with checked options and set the fitted attributes."""
        report = reporter(self.verbose, "fit", options["tol"])
        result = _native.fit_store(store._reader, cost, options, blocks, report)
        self._take(store.classes, result)
        self.n_features_in_ = store.n_features
        if store.feature_names is not None:
            self.feature_names_in_ = store.feature_names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _take(self, classes: np.ndarray, result: dict[str, Any]) -> None:
        """Set the fitted attributes."""
        self.__dict__.pop("stream_", None)  # a fit begins anew
        self._map = None
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
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
            Values of a store come in the order of its input.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        check_is_fitted(self)
        if isinstance(X, BlockStore):
            values = self._scores(X).gather(lambda values: values)
            return values.ravel() if values.shape[1] == 1 else values
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
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        ids = self._scores(X).gather(class_ids) if isinstance(X, BlockStore) else class_ids(self.decision_function(X))
        return self.classes_[ids]

    def _scores(self, store: BlockStore) -> _outofcore.Scores:
        return _outofcore.Scores(store, self.coef_, self.intercept_, _validate.threads(self.n_jobs))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of rows that are classified correctly.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
        y : array-like of shape (n_samples,), default=None
            Labels; None for a store, which has its own.
        sample_weight : array-like of shape (n_samples,), default=None
            None for a store takes its own weights.

        Returns
        -------
        float
        """
        if isinstance(X, BlockStore):
            labels, weight = X.labels(n_jobs=self.n_jobs)
            y = labels if y is None else y
            sample_weight = weight if sample_weight is None else sample_weight
        return super().score(X, y, sample_weight)


def class_ids(values: np.ndarray) -> np.ndarray:
    """The numbers of the classes that decision values stand for."""
    if values.ndim == 1 or values.shape[1] == 1:
        return (values.reshape(-1) > 0).astype(np.intp)
    return values.argmax(axis=1)
