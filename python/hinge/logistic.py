"""Logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge import _native
from hinge._block_options import BlockOptions
from hinge._declared import declared, keep
from hinge._inherited_docs import with_docs_of
from hinge._parameters import LOGISTIC_REGRESSION, LOGISTIC_REGRESSION_CV
from hinge._probabilistic import ProbabilisticClassifier
from hinge._probability import log_probabilities, probabilities
from hinge._searched import SearchedClassifier
from hinge._stream import StreamClassifier
from hinge.svm import LinearSVC, LinearSVCCV


@declared(LOGISTIC_REGRESSION)
@with_docs_of(LinearSVC)
class LogisticRegression(ProbabilisticClassifier, StreamClassifier):
    r"""L2-regularised logistic regression with a certified optimum.

    Minimises, for labels in {-1, +1} and each class against the rest,

    .. math:: \tfrac12 \|w\|^2 + C \sum_i v_i \log(1 + \exp(-y_i (w \cdot x_i + b))),

    with ``v`` the product of class and sample weight, until the duality gap is proved to be at most ``tol`` times the
    objective.

    Parameters
    ----------
    {parameters}

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
        block_options: BlockOptions | dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        keep(locals())

    def _loss(self) -> str:
        return "logistic"

    def _probability_part(self) -> dict[str, Any]:
        return {"kind": "logistic"}

    def _log_probabilities(self, values: np.ndarray) -> np.ndarray:
        return log_probabilities(values, labels=hasattr(self, "multilabel_"))

    def _probabilities(self, values: np.ndarray) -> np.ndarray:
        return probabilities(values, labels=hasattr(self, "multilabel_"))


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
        block_options: BlockOptions | dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        keep(locals())
