"""Logistic regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hinge import _cv_paths, _logistic_fit, _native, _sklearn_names, _validate
from hinge._block_options import BlockOptions
from hinge._callbacks import FitTask
from hinge._declared import declared, keep
from hinge._fit_rows import FitRows
from hinge._inherited_docs import with_docs_of
from hinge._parameters import LOGISTIC_REGRESSION, LOGISTIC_REGRESSION_CV
from hinge._probabilistic import ProbabilisticClassifier
from hinge._probability import LOGISTIC, SOFTMAX, log_probabilities, multi_class_of, probabilities
from hinge._problem import Problem
from hinge._searched import SearchedClassifier
from hinge._stream import StreamClassifier
from hinge.blocks import BlockStore
from hinge.svm import LinearSVC, LinearSVCCV


@declared(LOGISTIC_REGRESSION)
@with_docs_of(LinearSVC)
class LogisticRegression(ProbabilisticClassifier, StreamClassifier):
    r"""L2-regularised logistic regression with a certified optimum.

    Minimises, for two classes with labels in {-1, +1},

    .. math:: \tfrac12 \|w\|^2 + C \sum_i v_i \log(1 + \exp(-y_i (w \cdot x_i + b))),

    and for more classes, with scores :math:`f_k(x) = w_k \cdot x + b_k`,

    .. math:: \tfrac12 \sum_k \|w_k\|^2 + C \sum_i v_i (\log \sum_k e^{f_k(x_i)} - f_{y_i}(x_i)),

    with ``v`` the product of class and sample weight, until the duality gap is proved to be at most ``tol`` times the
    objective. ``multi_class="ovr"`` fits the first problem for each class against the rest instead.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_ : ndarray of shape (1 or n_classes, n_features), float64
        One row per label where y was a matrix of labels.
    multi_class_ : str
        "multinomial" for the softmax of more than two classes, else "ovr". The intercepts of a softmax add up to 0, and
        its ``certificate_`` and ``n_iter_`` have one entry.
    intercept_, classes_, certificate_, n_iter_, presolve_, n_features_in_, feature_names_in_
        As in :class:`hinge.LinearSVC`.

    References
    ----------
    Galli, Lin: A Study on Truncated Newton Methods for Linear Classification, IEEE TNNLS 2021.
    Yu, Huang, Lin: Dual Coordinate Descent Methods for Logistic Regression and Maximum Entropy Models, Machine Learning
    85, 2011.

    Examples
    --------
    >>> from hinge import LogisticRegression
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, random_state=0)
    >>> LogisticRegression(C=0.1).fit(X, y).predict_proba(X).shape
    (200, 2)
    """

    multi_class_: str

    _takes_labels = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        multi_class: str = "auto",
        solver: str = "auto",
        tol: float = _native.DEFAULT_TOL,
        max_iter: int = _native.DEFAULT_MAX_ITER,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        degree: int = 1,
        gamma: float | None = None,
        coef0: float = 1.0,
        hash_bits: int = 22,
        presolve: str | bool = "auto",
        memory_budget: Any = None,
        checkpoint: Any = None,
        block_options: BlockOptions | dict[str, Any] | None = None,
        penalty: str | None = "deprecated",
        l1_ratio: float | None = 0.0,
        penalty_factors: Any = None,
        positive: bool = False,
        bounds: Any = None,
        dual: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        keep(locals())

    def _checked(self) -> Any:
        return _sklearn_names.logistic(super()._checked())

    def _loss(self) -> str:
        return "logistic"

    def _take(self, classes: np.ndarray, result: dict[str, Any]) -> None:
        super()._take(classes, result)
        is_one_problem = len(result["intercept"]) > 2 and len(result["status"]) == 1
        self.multi_class_ = "multinomial" if is_one_problem else "ovr"

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes; estimators of versions without ``multi_class`` were one-vs-rest."""
        super().__setstate__({"multi_class": "ovr", **state})

    def _is_softmax(self) -> bool:
        return getattr(self, "multi_class_", "ovr") == "multinomial"

    def _solved(self, solve: Any, C: float, rows: FitRows, options: dict[str, Any]) -> dict[str, Any]:
        return _logistic_fit.solved(self, solve, C, rows, options)

    def _fit_stored(self, store: BlockStore, given: Any, options: dict[str, Any]) -> None:
        _logistic_fit.check_stored(self, given.C)
        super()._fit_stored(store, given, options)

    def _warn_of_status(self) -> None:
        if not _logistic_fit.warn_of_status(self):
            super()._warn_of_status()

    def _probability_part(self) -> dict[str, Any]:
        return SOFTMAX if self._is_softmax() else LOGISTIC

    def _log_probabilities(self, values: np.ndarray) -> np.ndarray:
        return log_probabilities(values, self._probability_part(), labels=hasattr(self, "multilabel_"))

    def _probabilities(self, values: np.ndarray) -> np.ndarray:
        return probabilities(values, self._probability_part(), labels=hasattr(self, "multilabel_"))


@declared(LOGISTIC_REGRESSION_CV)
@with_docs_of(LogisticRegression, LinearSVCCV)
class LogisticRegressionCV(SearchedClassifier, LogisticRegression):
    """:class:`LogisticRegression` that chooses its ``C`` by warm-started cross-validation, then refits on all rows.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    C_, search_, Cs_, scores_
        As in :class:`hinge.LinearSVCCV`.
    coefs_paths_ : dict of ndarray, or ndarray
        With ``use_legacy_attributes`` or ``refit=False``: the weights of every fold at every C and share.
    l1_ratio_ : float or ndarray
        Of those models: the chosen share of absolute values in the penalty, with ``refit=False`` the mean over the
        folds; ``search_.l1_ratio`` otherwise.
    l1_ratios_ : ndarray
        Of those models: as given.
    multi_class_, coef_, intercept_, classes_, certificate_, n_iter_, presolve_, n_features_in_, feature_names_in_
        As in :class:`LogisticRegression`.

    References
    ----------
    Chu, Ho, Tsai, Lin, Lin: Warm Start for Parameter Selection of Linear Classifiers, KDD 2015.

    Examples
    --------
    >>> from hinge import LogisticRegressionCV
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, random_state=0)
    >>> model = LogisticRegressionCV(cv=3).fit(X, y)
    >>> model.C_ == model.search_.C
    True
    """

    _takes_labels = False

    def __init__(
        self,
        *,
        cv: Any = 5,
        scoring: Any = None,
        choose_by: str | None = None,
        choose: str = "best",
        Cs: Any = None,
        C_min: float | None = None,
        C_max: float = _native.DEFAULT_C_MAX,
        ratio: float = _native.DEFAULT_RATIO,
        refine: int = 0,
        stop: str = "exact",
        time_limit: float | None = None,
        resume: Any = None,
        keep_decisions: bool = False,
        keep_coefs: bool = False,
        max_drop: float | None = None,
        select_tol: float = _native.DEFAULT_SEARCH_TOL,
        multi_class: str = "auto",
        solver: str = "auto",
        tol: float = _native.DEFAULT_TOL,
        max_iter: int = _native.DEFAULT_MAX_ITER,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        degree: int = 1,
        gamma: float | None = None,
        coef0: float = 1.0,
        hash_bits: int = 22,
        presolve: str | bool = "auto",
        memory_budget: Any = None,
        block_options: BlockOptions | dict[str, Any] | None = None,
        penalty: str | None = "deprecated",
        l1_ratios: Any = None,
        penalty_factors: Any = None,
        positive: bool = False,
        bounds: Any = None,
        dual: bool = False,
        refit: bool = True,
        use_legacy_attributes: bool | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        keep(locals())

    def _plain(self, C: float) -> LogisticRegression:
        """An unfitted model of one C that takes weights as they are found; the options of its fit are given apart."""
        known = {name: value for name, value in vars(self).items() if name in LOGISTIC_REGRESSION}
        return LogisticRegression(**known | {"C": C, "solver": "auto", "verbose": 0})

    def _keep_paths(self, X: Any, given: Any, problem: Problem, options: dict[str, Any], groups: Any) -> Self:
        """Search with a fit of its own for every fold and C, and keep all weights."""
        if problem.store is not None or options["map"] is not None:
            where = "X is a BlockStore" if problem.store is not None else "degree is 2"
            raise ValueError(f"use_legacy_attributes must be None and refit True where {where}")
        task = FitTask(self, X, problem.y, sample_weight=problem.sample_weight, has_parts=True)
        found, paths = _cv_paths.search_paths(self._plain, given, problem, options, groups)
        C, share = found.C, found.l1_ratio or 0.0
        if given.refit:
            if options["penalty"] is not None:
                options = options | {"penalty": options["penalty"] | {"l1_ratio": share}}
            self._fit_checked(C, problem.X, problem.classes, problem.ids, problem.weight, options)
        else:
            weights, C, share = paths.mean_of_best()
            self._take_mean(problem, weights, options)
        _validate.remember_features(self, X)
        self.search_, self._paths = found, paths
        is_old = given.use_legacy_attributes is True
        n_problems = paths.coefs.shape[3]
        self.C_ = np.full(n_problems, C) if is_old else C
        self.l1_ratio_ = np.full(n_problems, share) if is_old else share
        self.l1_ratios_ = np.array([None] if given.l1_ratios is None else given.l1_ratios)
        self.n_iter_ = paths.as_arrays()[2] if paths.is_new else paths.by_class(problem.classes)[2]
        task.part("refit")
        task.end()
        return self

    def _take_mean(self, problem: Problem, weights: np.ndarray, options: dict[str, Any]) -> None:
        """Set a model that no fit has found: there is no certificate."""
        for name in ("stream_", "certificate_"):
            self.__dict__.pop(name, None)
        n = problem.X.shape[1]
        self.classes_, self.presolve_, self._map = problem.classes, None, None
        self.multi_class_ = multi_class_of(options, len(problem.classes))
        self.coef_ = np.ascontiguousarray(weights[:, :n])
        self.intercept_ = np.zeros(len(weights)) if options["intercept"] is None else weights[:, n].copy()

    def _take(self, classes: np.ndarray, result: dict[str, Any]) -> None:
        for name in ("_paths", "l1_ratio_", "l1_ratios_"):
            self.__dict__.pop(name, None)
        super()._take(classes, result)

    @property
    def scores_(self) -> Any:
        """Scores by scikit-learn's name, in the layout that ``use_legacy_attributes`` asks for."""
        if "_paths" not in vars(self):
            return super().scores_
        if self._paths.is_new:
            return self._paths.as_arrays()[1]
        return self._paths.by_class(self.classes_)[1]

    @property
    def coefs_paths_(self) -> Any:
        """Weights of every fold at every C, with ``use_legacy_attributes`` or ``refit=False``.

        A dict from classes to arrays of shape (n_folds, n_Cs, n_dof), with an axis of ``l1_ratios`` behind the Cs if
        those are given, (n_folds, n_Cs, n_l1_ratios, n_dof); with ``use_legacy_attributes=False`` an array of shape
        (n_folds, n_l1_ratios, n_Cs, n_problems, n_dof). The intercept, if there is one, is the last of n_dof.
        """
        check_is_fitted(self)
        if "_paths" not in vars(self):
            raise AttributeError("coefs_paths_ needs use_legacy_attributes to be True or False, it is None")
        if self._paths.is_new:
            return self._paths.as_arrays()[0]
        return self._paths.by_class(self.classes_)[0]
