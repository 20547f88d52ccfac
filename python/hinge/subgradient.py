"""Subgradient descent in the primal, Pegasos first."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from hinge import _blocks, _native, _training_data, _validate
from hinge._budget import budget
from hinge._callbacks import FitTask, with_callbacks
from hinge._certificate import Certificate
from hinge._declared import declared, keep
from hinge._inherited_docs import with_docs_of
from hinge._linear import LinearClassifier
from hinge._options import intercept
from hinge._parameters import PEGASOS, SUBGRADIENT
from hinge._presolve import Presolve
from hinge._progress import reporter
from hinge._warn import warn
from hinge.blocks import BlockStore
from hinge.svm import LinearSVC

LOOK_FIELDS = ("epoch", "steps", "seconds", "primal", "dual", "norm")


class SubgradientClassifier(LinearClassifier):
    """What the estimators of this module share; subclasses own the parameters."""

    history_: tuple[np.ndarray, ...]

    def _options(self, given: Any) -> dict[str, Any]:
        """The native options, from checked parameters."""
        return {
            "loss": given.loss,
            "intercept": intercept(given),
            "batch_size": given.batch_size,
            "replace": given.replace,
            "step_size": given.eta,
            "eta0": given.eta0,
            "projects": given.projection,
            "average": given.average,
            "tol": given.tol,
            "objective_tol": given.objective_tol or 0.0,
            "window": given.window,
            "step_tol": given.step_tol or 0.0,
            "step_length": given.step_length,
            "max_iter": given.max_iter,
            "seed": given.random_state,
            "n_threads": given.n_jobs,
            "presolve": given.presolve,
        }

    def _cost(self, weight: np.ndarray, count: np.ndarray | float = 1.0) -> np.ndarray:
        """The cost of each row: C times its weight, or what makes all costs add up to 1 / lam.

        The weights may be those of classes, each of so many rows (``count``).
        """
        if (self.C is None) == (self.lam is None):
            raise ValueError(f"exactly one of C and lam must be given, got C={self.C!r} and lam={self.lam!r}")
        with np.errstate(over="ignore"):
            cost = float(self.C) * weight if self.lam is None else weight / (float(self.lam) * (count * weight).sum())
        if not np.isfinite((count * cost).sum()):
            raise ValueError("the costs of all rows, C times weight or 1 / lam in all, must have a finite sum")
        return cost

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the classifier.

        A block store is read block by block, as large as ``memory_budget`` allows. An epoch loads every block once, in
        random order; a block stands for the rows that ``batch_size`` speaks of: as many draws from it as it has rows,
        or one step on all of it where ``batch_size`` is None. Each look at the objective reads the store once more.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
        y : array-like of shape (n_samples,), default=None
            Class labels of one type; None for a store, which has its own.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals the row twice, weight 0 the row absent. None for a store, which has its own.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Unusable parameters or input; the message names the value, its place and what would be accepted.

        Warns
        -----
        ConvergenceWarning
            ``max_iter`` epochs were not enough.
        """
        given = self._checked()
        options = self._options(given)
        if isinstance(X, BlockStore):
            return self._fit_store(X, y, sample_weight, given, options)
        checked, y_checked = _validate.fit_data(X, y, self)
        classes, ids = _validate.encode(y_checked)
        cost = self._cost(_validate.row_weights(checked, classes, ids, self.class_weight, sample_weight))
        task = FitTask(self, X, y, sample_weight=sample_weight)
        eta = self.eta if callable(self.eta) else None
        report = reporter(self.verbose, "fit")
        result = _validate.call_native(
            lambda matrix: _native.descend(matrix, ids, len(classes), cost, options, eta, report), checked
        )
        self._take(classes, result)
        self._data = _training_data.of_rows(checked, ids, len(classes), None)
        _validate.remember_features(self, X)
        task.end()
        return self

    def _fit_stored(self, store: BlockStore, given: Any, options: dict[str, Any]) -> None:
        factor = _blocks.class_factors(store, self.class_weight)
        cost = self._cost(factor, np.array(store._facts["class_weight"]))
        eta = self.eta if callable(self.eta) else None
        report = reporter(self.verbose, "fit", options["tol"])
        memory = budget(given.memory_budget)
        self._take(store.classes, _native.descend_store(store._reader, cost, options, memory, eta, report))
        self._remember_store(store)

    def _take(self, classes: np.ndarray, result: dict[str, Any]) -> None:
        """Set the fitted attributes."""
        self.classes_ = classes
        self.coef_, self.intercept_ = result["coef"], result["intercept"]
        self.n_iter_ = np.array(result["n_iter"], dtype=np.int64)
        self.certificate_ = Certificate.from_native(result)
        self.presolve_ = None if result["presolve"] is None else Presolve(**result["presolve"])
        kind = [(name, np.float64) for name in LOOK_FIELDS]
        self.history_ = tuple(np.ascontiguousarray(looks).view(kind).ravel() for looks in result["looks"])
        self.t_ = int(self.history_[0]["steps"][-1])
        self.__dict__.pop("_state", None)
        if "max_iter" in self.certificate_.status:
            worst = float(self.certificate_.relative_gap.max())
            warn(
                f"{type(self).__name__} ended after max_iter={self.max_iter} epochs at a relative duality gap of "
                f"{worst:.2e}, tol is {self.tol:.2e}: raise max_iter or tol, or scale the features",
                ConvergenceWarning,
            )

    def objective(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        r"""The objective :math:`\lambda/2 \|w\|^2 + \sum_i p_i \xi(m_i)` of each binary problem on given rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        ndarray of shape (1 or n_classes,)
        """
        check_is_fitted(self)
        values = np.reshape(self.decision_function(X), (len(y), -1))
        ids = _validate.encode_among(_validate.labels(y, len(y)), self.classes_)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        positive = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        margins = np.where(ids[:, None] == np.asarray(positive), 1.0, -1.0) * values
        if self.loss == "logistic":
            losses = np.logaddexp(0.0, -margins)
        else:
            losses = np.maximum(0.0, 1.0 - margins) ** (1 if self.loss == "hinge" else 2)
        cost = self._cost(weight)
        norms = (_dense(self.coef_) ** 2).sum(axis=1)
        if self.fit_intercept and self.intercept_scaling is not None:
            norms = norms + (self.intercept_ / self.intercept_scaling) ** 2
        return (0.5 * norms + cost @ losses) / cost.sum()


def _dense(coef: Any) -> np.ndarray:
    """Weights as an array, also after ``sparsify``."""
    return coef.toarray() if sp.issparse(coef) else coef


@declared(PEGASOS)
@with_docs_of(LinearSVC)
class PegasosClassifier(SubgradientClassifier):
    r"""Pegasos: stochastic subgradient descent on the primal of the linear SVM.

    Minimises, for labels in {-1, +1} and each class against the rest,

    .. math:: \tfrac{\lambda}{2} \|w\|^2 + \sum_i p_i\, \max(0, 1 - y_i (w \cdot x_i + b)),

    with :math:`p_i` the share of row i in the weights (1/n without any), by steps of length :math:`1/(\lambda t)` over
    ``batch_size`` rows drawn at random, each followed by a projection onto :math:`\|w\| \le 1/\sqrt\lambda`. A step
    costs as much as its rows have nonzeros.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_ : ndarray of shape (1 or n_classes, n_features), float64
        Weights, a row per class; one for two classes.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    intercept_, n_features_in_, feature_names_in_, presolve_
        As in :class:`hinge.LinearSVC`.
    certificate_ : Certificate
        Objective and lower bound in the units of :class:`hinge.LinearSVC`, those above divided by :math:`\lambda`. The
        bound comes from the share of a row's visits at which it was short of its margin. Not set by ``partial_fit``.
    history_ : tuple of structured arrays
        The looks at each binary problem, with fields ``epoch``, ``steps``, ``seconds``, ``primal``, ``dual``, ``norm``.
    n_iter_ : ndarray of shape (1 or n_classes,), int64
        Epochs.
    t_ : int
        Steps.

    Notes
    -----
    But for rounding, results depend on ``random_state`` and the contents of the rows only: neither on the order of the
    rows nor on whether a row is there twice or has weight 2. The number of threads changes no bit. On a block store
    they depend on ``random_state``, the store and ``memory_budget``.

    References
    ----------
    Shalev-Shwartz, Singer, Srebro: Pegasos: Primal Estimated sub-GrAdient SOlver for SVM, ICML 2007.
    Schmidt-Thieme: Learning SVMs / Primal Methods, lecture, University of Hildesheim.

    Examples
    --------
    >>> from hinge import PegasosClassifier
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, random_state=0)
    >>> model = PegasosClassifier(lam=0.01, tol=0.05).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> bool(model.certificate_.relative_gap[0] <= 0.05)
    True
    """

    def __init__(
        self,
        lam: float | None = 1e-4,
        *,
        C: float | None = None,
        loss: str = "hinge",
        batch_size: int = 1,
        replace: bool = True,
        eta: Any = "pegasos",
        eta0: float = 1.0,
        projection: bool = True,
        average: str = "suffix",
        tol: float = _native.DEFAULT_DESCENT_TOL,
        objective_tol: float | None = None,
        step_tol: float | None = None,
        step_length: str = "whole",
        window: int = 100,
        max_iter: int = _native.DEFAULT_MAX_ITER,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        presolve: str | bool = "auto",
        memory_budget: int | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        keep(locals())

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """One pass over further rows: as many draws as there are rows, from where the last pass ended.

        The rows of each call stand for the whole data: weights count relatively within a call. Steps go on from the
        last call (or from the end of a ``fit``), so passes over parts of the data learn what fits of the whole do. The
        certificate needs all rows and is not computed; the averages run over the iterates of passes, from the last
        power of two of steps on for ``average="suffix"``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All classes that may come; needed at the first call, unless there was a fit.
        sample_weight : array-like of shape (n_samples,), default=None
            Rows whose weights are all 0 change nothing.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Unusable parameters or input, labels that are not among the classes, ``C`` in place of ``lam`` (the number
            of rows to come is not known), ``class_weight="balanced"``.
        """
        options = self._options(self._checked())
        if self.lam is None:
            raise ValueError("partial_fit needs lam: what C means depends on the number of rows to come")
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all rows, give partial_fit a dict of weights")
        known = _validate.classes_of_pieces(self, classes)
        checked, y = _validate.fit_data(X, y, self)
        ids = _validate.encode_among(y, known)
        if hasattr(self, "classes_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        penalised = bool(options["intercept"])
        state = self.__dict__.get("_state") or self._first_state(known, checked.shape[1], penalised)
        weight = _validate.batch_weights(checked, known, ids, self.class_weight, sample_weight)
        eta = self.eta if callable(self.eta) else None
        before = state["steps"]
        if weight.any():
            cost = self._cost(weight)
            state = _validate.call_native(
                lambda matrix: _native.descend_on(matrix, ids, len(known), cost, options, state, eta), checked
            )
        elif hasattr(self, "coef_"):
            return self
        self._store(known, state, penalised)
        if self.average == "suffix" and before.bit_length() != state["steps"].bit_length():
            # This pass ends a suffix, the next one begins afresh.
            state |= {name: np.zeros_like(state[name]) for name in ("sum", "b_sum")} | {"counted": 0}
        _validate.remember_features(self, X)
        self._state, self._data = state, None
        self.t_ = int(state["steps"])
        return self

    def _first_state(self, classes: np.ndarray, n_features: int, penalised: bool) -> dict[str, Any]:
        """No steps yet, or the end of a fit."""
        n_problems = 1 if len(classes) == 2 else len(classes)
        w, b, steps = np.zeros((n_problems, n_features + penalised)), np.zeros(n_problems), 0
        if hasattr(self, "coef_"):
            w[:, :n_features], b, steps = _dense(self.coef_), self.intercept_, self.t_
            if penalised:
                w[:, -1], b = b / float(self.intercept_scaling or 1.0), np.zeros(n_problems)
        empty = {"sum": np.zeros_like(w), "b_sum": np.zeros(n_problems), "counted": 0}
        return {"w": w, "b": np.array(b), "steps": steps} | empty

    def _store(self, classes: np.ndarray, state: dict[str, Any], penalised: bool) -> None:
        counted = state["counted"]
        if self.average == "none" or counted == 0:
            w, b = state["w"], state["b"]
        else:
            w, b = state["sum"] / counted, state["b_sum"] / counted
        self.classes_ = classes
        if penalised:
            w, b = w[:, :-1], self.intercept_scaling * w[:, -1]
        self.coef_, self.intercept_ = np.array(w), np.array(b)


@declared(SUBGRADIENT)
@with_docs_of(PegasosClassifier)
class SubgradientSVC(SubgradientClassifier):
    r"""Subgradient descent on the primal of the linear SVM: full batch, mini-batch or stochastic.

    The objective is that of :class:`PegasosClassifier`; with ``batch_size=1``, ``projection=True`` the two are one.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_, intercept_, classes_, certificate_, history_, n_iter_, t_, presolve_, n_features_in_, feature_names_in_
        As in :class:`PegasosClassifier`.

    References
    ----------
    Shalev-Shwartz, Singer, Srebro: Pegasos: Primal Estimated sub-GrAdient SOlver for SVM, ICML 2007.
    Schmidt-Thieme: Learning SVMs / Primal Methods, lecture, University of Hildesheim.
    Rakhlin, Shamir, Sridharan: Making Gradient Descent Optimal for Strongly Convex Stochastic Optimization, ICML 2012.

    Examples
    --------
    >>> from hinge import SubgradientSVC
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, random_state=0)
    >>> model = SubgradientSVC(C=0.1, loss="logistic", tol=0.01, max_iter=5000).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        C: float | None = 1.0,
        *,
        lam: float | None = None,
        loss: str = "hinge",
        batch_size: int | None = None,
        replace: bool = True,
        eta: Any = "pegasos",
        eta0: float = 1.0,
        projection: bool = False,
        average: str = "suffix",
        tol: float = _native.DEFAULT_DESCENT_TOL,
        objective_tol: float | None = None,
        step_tol: float | None = None,
        step_length: str = "whole",
        window: int = 100,
        max_iter: int = _native.DEFAULT_MAX_ITER,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        presolve: str | bool = "auto",
        memory_budget: int | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        keep(locals())
