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
from hinge._probability import LOGISTIC, log_probabilities, probabilities
from hinge._searched import SearchedClassifier
from hinge._stream import StreamClassifier
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
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        keep(locals())

    def _loss(self) -> str:
        return "logistic"

    def _take(self, classes: np.ndarray, result: dict[str, Any]) -> None:
        super()._take(classes, result)
        is_one_problem = len(result["intercept"]) > 2 and len(result["n_iter"]) == 1
        self.multi_class_ = "multinomial" if is_one_problem else "ovr"

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes; estimators of versions without ``multi_class`` were one-vs-rest."""
        super().__setstate__({"multi_class": "ovr", **state})

    def _is_softmax(self) -> bool:
        return getattr(self, "multi_class_", "ovr") == "multinomial"

    def _probability_part(self) -> dict[str, Any]:
        return {"kind": "temperature", "factor": 1.0} if self._is_softmax() else LOGISTIC

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
        multi_class: str = "ovr",
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
