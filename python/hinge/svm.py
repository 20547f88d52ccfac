"""Linear support vector machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge import _native, _sklearn_names, _validate
from hinge._block_options import BlockOptions
from hinge._csearch import CSearch
from hinge._declared import declared, keep
from hinge._inherited_docs import with_docs_of
from hinge._parameters import LINEAR_SVC, LINEAR_SVC_CV
from hinge._probabilistic import ProbabilisticClassifier
from hinge._problem import Problem
from hinge._scoring import LabelScore, known_scorer
from hinge._searched import SearchedClassifier
from hinge._stream import StreamClassifier
from hinge.calibration import METHODS, calibrate, costs, tune_threshold


@declared(LINEAR_SVC)
class LinearSVC(StreamClassifier):
    r"""Linear support vector classifier with a certified optimum.

    Minimises, for labels in {-1, +1} and each class against the rest,

    .. math:: \tfrac12 \|w\|^2 + C \sum_i v_i\, \xi(y_i (w \cdot x_i + b)),

    with ``v`` the product of class and sample weight, until the duality gap is proved to be at most ``tol`` times the
    objective.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_ : ndarray or csr_matrix of shape (1 or n_classes, n_features), float64
        One row per label where y was a matrix of labels. With ``sparse_coef`` and a positive ``sparse_tol`` float32.
    intercept_ : ndarray of shape (1 or n_classes,), float64
    classes_ : ndarray of shape (n_classes,)
        Where y was a matrix of labels: the column names of a data frame, if all are strings, else column numbers.
    certificate_ : Certificate
        Primal value, dual value and relative gap per binary problem; of the one problem, for "crammer_singer".
    n_iter_ : ndarray of shape (1 or n_classes,), int64
        Epochs or Newton steps per problem.
    presolve_ : Presolve or None
        What became of the columns (``n_columns``, ``nnz_out``, ``n_merged``, ``n_dropped``, ...); None where X was used
        as it is.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has string column names.

    Notes
    -----
    A float32 or float64 CSR matrix and a C-ordered array are read in place; memory beside the input is a few vectors of
    the rows and of the columns per thread. Presolve adds a packed copy of X (8 bytes per nonzero of a float32 matrix,
    12 of a float64 one) and 12 bytes per column, or where a CSR matrix is nearly full 4 or 8 bytes for each cell.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi, Sundararajan: A Dual Coordinate Descent Method for Large-scale Linear SVM, ICML 2008.

    Keerthi, Sundararajan, Chang, Hsieh, Lin: A Sequential Dual Method for Large Scale Multi-class Linear SVMs, KDD
    2008.

    Examples
    --------
    >>> from hinge import LinearSVC
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, random_state=0)
    >>> model = LinearSVC(C=0.1).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> bool(model.certificate_.relative_gap[0] <= 1e-4)
    True
    """

    _takes_labels = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        solver: str = "auto",
        tol: float = _native.DEFAULT_TOL,
        max_iter: int = _native.DEFAULT_MAX_ITER,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        multi_class: str = "ovr",
        penalty: str = "l2",
        l1_ratio: float | None = None,
        penalty_factors: Any = None,
        positive: bool = False,
        bounds: Any = None,
        dual: bool | str = "auto",
        sparse_coef: bool = False,
        sparse_tol: float = 1e-3,
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

    def _checked(self) -> Any:
        return _sklearn_names.svc(super()._checked())


@declared(LINEAR_SVC_CV)
@with_docs_of(LinearSVC)
class LinearSVCCV(SearchedClassifier, ProbabilisticClassifier, LinearSVC):
    """:class:`LinearSVC` that chooses its ``C`` by warm-started cross-validation, then refits on all rows.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    C_ : float
        The chosen C.
    search_ : CSearch
        The whole table of the search.
    calibration_ : Calibration
        With ``probability``.
    threshold_ : float
        Decision value from which rows are of the second class; with ``threshold``, or ``cost_matrix`` and two classes.
    Cs_ : ndarray of shape (n_Cs,)
        ``search_.Cs``, by scikit-learn's name.
    scores_ : dict of ndarray of shape (n_folds, n_Cs)
        The transposed ``search_.scores`` for each class (the second of two), by scikit-learn's name.
    coef_ : ndarray of shape (1 or n_classes, n_features), float64
        Weights of the final fit, a row per class; one for two classes.
    intercept_, certificate_, n_iter_, presolve_, n_features_in_, feature_names_in_
        As in :class:`LinearSVC`.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.

    References
    ----------
    Chu, Ho, Tsai, Lin, Lin: Warm Start for Parameter Selection of Linear Classifiers, KDD 2015.

    Examples
    --------
    >>> from hinge import LinearSVCCV
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, random_state=0)
    >>> model = LinearSVCCV(cv=3).fit(X, y)
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
        probability: str | None = None,
        threshold: Any = None,
        cost_matrix: Any = None,
        select_tol: float = _native.DEFAULT_SEARCH_TOL,
        loss: str = "squared_hinge",
        solver: str = "auto",
        tol: float = _native.DEFAULT_TOL,
        max_iter: int = _native.DEFAULT_MAX_ITER,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        multi_class: str = "ovr",
        penalty: str = "l2",
        l1_ratio: Any = None,
        penalty_factors: Any = None,
        positive: bool = False,
        bounds: Any = None,
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

    def _check_decisions(self) -> None:
        """Check the parameters of probabilities and thresholds as far as they go without data."""
        if self.threshold is not None:
            known_scorer("threshold", self.threshold)
        if self.threshold is not None and self.cost_matrix is not None:
            raise ValueError("threshold and cost_matrix exclude each other, both are given")
        if self.cost_matrix is not None:
            matrix = costs(self.cost_matrix, len(self.cost_matrix))
            if len(matrix) > 2 and self.probability is None:
                raise ValueError("cost_matrix for more than 2 classes needs probability, it is None")

    def _needs_decisions(self) -> bool:
        return not (self.probability is None and self.threshold is None and self.cost_matrix is None)

    def _check_problem(self, problem: Problem, is_held_out: np.ndarray) -> None:
        """Refuse what does not fit the classes, or the rows that will have out-of-fold decision values."""
        n_classes = len(problem.classes)
        counts = np.bincount(problem.ids[is_held_out & (problem.weight > 0)], minlength=n_classes)
        if (counts == 0).any():
            missing = _validate.plain(problem.classes[counts.argmin()])
            raise ValueError(
                f"no row of class {missing} is held out, and probability, threshold and cost_matrix need decision "
                "values of every class: give it more rows or leave it out"
            )
        if self.threshold is not None and n_classes != 2:
            raise ValueError(f"threshold is tuned for 2 classes, y has {n_classes}: leave it at None")
        if self.threshold is not None:
            LabelScore("threshold", self.threshold, problem.y, problem.classes, problem.sample_weight)
        if self.cost_matrix is not None:
            costs(self.cost_matrix, n_classes)

    def _use_decisions(self, problem: Problem, found: CSearch) -> None:
        """Fit probabilities and thresholds to the out-of-fold decision values of the chosen C."""
        for name in ("calibration_", "threshold_"):
            self.__dict__.pop(name, None)
        if self.probability is not None:
            fitted = calibrate(found.decisions, problem.y, method=self.probability, sample_weight=problem.sample_weight)
            self.calibration_ = fitted
        if self.threshold is not None or (self.cost_matrix is not None and len(problem.classes) == 2):
            self.threshold_ = tune_threshold(
                found.decisions,
                problem.y,
                scoring=self.threshold,
                cost_matrix=self.cost_matrix,
                sample_weight=problem.sample_weight,
            )

    def _predicted(self, values: np.ndarray) -> np.ndarray:
        if hasattr(self, "threshold_"):
            return self.classes_[(values.reshape(-1) >= self.threshold_).astype(np.intp)]
        if not hasattr(self, "calibration_"):
            return super()._predicted(values)
        probabilities = self._probabilities(values)
        if self.cost_matrix is not None:
            matrix = costs(self.cost_matrix, len(self.classes_))
            return self.classes_[_expected_costs(probabilities, matrix).argmin(axis=1)]
        return self.classes_[probabilities.argmax(axis=1)]

    def _answer_part(self) -> dict[str, Any]:
        if hasattr(self, "threshold_"):
            return {"kind": "threshold", "threshold": self.threshold_}
        if not hasattr(self, "calibration_"):
            return super()._answer_part()
        if self.cost_matrix is None:
            return {"kind": "most_probable"}
        return {"kind": "cheapest", "costs": costs(self.cost_matrix, len(self.classes_))}

    def _probability_part(self) -> dict[str, Any] | None:
        return self.calibration_.part() if hasattr(self, "calibration_") else None

    def _probabilities(self, values: np.ndarray) -> np.ndarray:
        return self.calibration_.predict_proba(values)

    def _log_probabilities(self, values: np.ndarray) -> np.ndarray:
        return self.calibration_.predict_log_proba(values)

    def _no_probabilities(self) -> str | None:
        if self.probability is not None:
            return None
        return f"probability is None, it must be one of {sorted(METHODS)}"


def _expected_costs(probabilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """``probabilities @ costs`` with sums in the order of the classes, so that a row has the same bits in any batch."""
    expected = np.zeros_like(probabilities)
    for column, cost in zip(probabilities.T, costs, strict=True):
        expected += column[:, None] * cost
    return expected
