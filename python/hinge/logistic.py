"""Logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from hinge import _native
from hinge._callbacks import with_callbacks
from hinge._inherited_docs import with_docs_of
from hinge._probability import log_probabilities, probabilities
from hinge._searched import SearchedClassifier
from hinge._stream import StreamClassifier
from hinge.select import search_and_refit
from hinge.svm import LinearSVC, LinearSVCCV


@with_docs_of(LinearSVC)
class LogisticRegression(StreamClassifier):
    r"""L2-regularised logistic regression with a certified optimum.

    Minimises, for labels in {-1, +1} and each class against the rest,

    .. math:: \tfrac12 \|w\|^2 + C \sum_i v_i \log(1 + \exp(-y_i (w \cdot x_i + b))),

    with ``v`` the product of class and sample weight, until the duality gap is proved to be at most ``tol`` times the
    objective.

    Parameters
    ----------
    C : float, default=1.0
        Cost of training errors.
    solver : {"auto", "dual_cd", "dual_cd_online", "newton"}, default="auto"
        "newton" is truncated Newton in the primal, "dual_cd" dual coordinate descent (Yu et al.), "dual_cd_online"
        the same with one random row at a time.
    tol, max_iter, fit_intercept, intercept_scaling, class_weight, degree, gamma, coef0, hash_bits, presolve
        As in :class:`hinge.LinearSVC`.
    memory_budget, checkpoint, block_options, n_jobs, random_state, verbose
        As in :class:`hinge.LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (1 or n_classes, n_features), float64
        One row per label where y was a matrix of labels.
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

    _takes_labels = True

    def __init__(
        self,
        C: float = 1.0,
        *,
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
        block_options: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.C = C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.hash_bits = hash_bits
        self.presolve = presolve
        self.memory_budget = memory_budget
        self.checkpoint = checkpoint
        self.block_options = block_options
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self) -> str:
        return "logistic"

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LogisticRegression:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
            A store holds its labels and weights: y and sample_weight are then None.
        y : array-like of shape (n_samples,), or {array-like, sparse matrix} of shape (n_samples, n_labels)
            Class labels of one type, or a matrix of 0 and 1 for several labels per row, as in :class:`hinge.LinearSVC`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals the row twice, weight 0 the row absent.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Unusable parameters or input; the message names the value, its place and what would be accepted.
        BlockFileError
            A damaged store.
        KeyboardInterrupt
            Ctrl-C; the estimator is left as it was.

        Warns
        -----
        ConvergenceWarning
            ``max_iter`` was not enough for ``tol``; the model is the best one found, with its gap in ``certificate_``.
        """
        return self._fit(X, y, sample_weight)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)

        Raises
        ------
        ValueError
            Another number of features, or other names, than in the fit; values that are not finite.
        sklearn.exceptions.NotFittedError
            The model is not fitted.
        BlockFileError
            A damaged store.
        """
        return self._log_probabilities(self.decision_function(X))

    def _log_probabilities(self, values: np.ndarray) -> np.ndarray:
        return log_expit(values) if hasattr(self, "multilabel_") else log_probabilities(values)

    def _probabilities(self, values: np.ndarray) -> np.ndarray:
        return expit(values) if hasattr(self, "multilabel_") else probabilities(values)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class; for more than two, the one-vs-rest probabilities divided by their sum.

        Of each label by itself where y was a matrix of labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.

        Raises
        ------
        ValueError
            Another number of features, or other names, than in the fit; values that are not finite.
        sklearn.exceptions.NotFittedError
            The model is not fitted.
        BlockFileError
            A damaged store.
        """
        return self._probabilities(self.decision_function(X))


@with_docs_of(LogisticRegression, LinearSVCCV)
class LogisticRegressionCV(SearchedClassifier, LogisticRegression):
    """:class:`LogisticRegression` that chooses its ``C`` by warm-started cross-validation, then refits on all rows.

    Parameters
    ----------
    cv, scoring, choose_by, choose, Cs, C_min, C_max, ratio, refine, stop
        As in :class:`hinge.LinearSVCCV`.
    time_limit, resume, keep_decisions, select_tol
        As in :class:`hinge.LinearSVCCV`.
    solver
        As in :class:`LogisticRegression`.
    tol, max_iter, fit_intercept, intercept_scaling, class_weight, degree, gamma, coef0, hash_bits, presolve
        As in :class:`hinge.LinearSVCCV`.
    memory_budget, block_options, n_jobs, random_state, verbose
        As in :class:`hinge.LinearSVCCV`.

    Attributes
    ----------
    C_, search_, Cs_, scores_
        As in :class:`hinge.LinearSVCCV`.
    coef_, intercept_, classes_, certificate_, n_iter_, presolve_, n_features_in_, feature_names_in_
        As in :class:`hinge.LinearSVCCV`.

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
        select_tol: float = _native.DEFAULT_SEARCH_TOL,
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
        block_options: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.cv = cv
        self.scoring = scoring
        self.choose_by = choose_by
        self.choose = choose
        self.Cs = Cs
        self.C_min = C_min
        self.C_max = C_max
        self.ratio = ratio
        self.refine = refine
        self.stop = stop
        self.time_limit = time_limit
        self.resume = resume
        self.keep_decisions = keep_decisions
        self.select_tol = select_tol
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.hash_bits = hash_bits
        self.presolve = presolve
        self.memory_budget = memory_budget
        self.block_options = block_options
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> LogisticRegressionCV:
        """Choose C, then fit on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
            A store holds its labels and weights: y and sample_weight are then None.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Used in training, and in the score where the scorer takes weights.
        groups : array-like of shape (n_samples,), default=None
            Passed to the splitter; rows of one group stay together where ``cv`` is a number.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Unusable parameters or input; the message names the value, its place and what would be accepted.
        BlockFileError
            A damaged store.
        TimeoutError
            ``time_limit`` passed before the first value of C was finished.
        KeyboardInterrupt
            Ctrl-C; the estimator is left as it was.

        Warns
        -----
        PartialSearchWarning
            ``time_limit`` ended the search: the fit is at the best C that was finished.
        NoSkillWarning
            The model chosen by accuracy is right no more often than the most frequent class.
        ConvergenceWarning
            ``max_iter`` was not enough for ``tol`` in the final fit.
        UserWarning
            A class has fewer rows than there are folds.
        """
        return search_and_refit(self, X, y, sample_weight, groups)
