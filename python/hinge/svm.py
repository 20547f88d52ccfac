"""Linear support vector machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hinge import _native, _validate
from hinge._callbacks import with_callbacks
from hinge._linear import LinearClassifier
from hinge.select import search_and_refit

LOSSES = ("squared_hinge", "hinge")
MULTI_CLASS = ("ovr", "crammer_singer")


class LinearSVC(LinearClassifier):
    r"""Linear support vector classifier with a certified optimum.

    Minimises, for labels in {-1, +1} and each class against the rest,

    .. math:: \tfrac12 \|w\|^2 + C \sum_i v_i\, \xi(y_i (w \cdot x_i + b)),

    with ``v`` the product of class and sample weight, until the duality gap is proved to be at most ``tol`` times the
    objective.

    Parameters
    ----------
    C : float, default=1.0
        Cost of training errors.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        :math:`\max(0, 1-m)^2` or :math:`\max(0, 1-m)`.
    solver : {"auto", "dual_cd", "dual_cd_online", "newton"}, default="auto"
        "dual_cd" is dual coordinate descent with shrinking, "dual_cd_online" draws one random row at a time,
        "newton" is truncated Newton in the primal (through smooth approximations for the hinge). "auto" chooses by
        shape and loss, and hands a dual fit that stalls over to Newton.
    tol : float, default=1e-4
        Relative duality gap at which the fit stops.
    max_iter : int, default=1000
        Largest number of epochs or Newton steps.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is not penalised.
    intercept_scaling : float, default=None
        If given, the intercept is the weight of a constant column of this height and penalised like every weight,
        as in LIBLINEAR.
    class_weight : dict or "balanced", default=None
        Weight per class, multiplied with the sample weight.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        "ovr" fits each of more than two classes against the rest. "crammer_singer" fits all classes, also two, as one
        problem: :math:`\tfrac12 \sum_m \|w_m\|^2 + C \sum_i v_i \max_m (1_{m \ne y_i} + f_m(x_i) - f_{y_i}(x_i))`,
        by the sequential dual method; as in scikit-learn, ``loss`` is then not looked at. The solver must be "auto" or
        "dual_cd".
    presolve : {"auto", True, False}, default="auto"
        Whether the solver works on a packed copy of a sparse X: proportional columns merged into one (an orthogonal
        change of variables, so the optimum is the same), empty columns dropped, the rest ordered by frequency. "auto"
        does so where it pays: for more than 40,000 columns and a long enough fit, judged by loss, C and the number of
        classes. Weights and certificate belong to X in any case. A dense X is never packed.
    n_jobs : int, default=None
        Threads. None means all usable cores; results have the same bits for any number.
    random_state : int, RandomState or None, default=None
        Seed of the visiting order; None is a fixed seed.
    verbose : int, default=0
        Progress on standard error if above 0; the logger ``hinge`` gets it at level INFO anyway.

    Attributes
    ----------
    coef_ : ndarray of shape (1 or n_classes, n_features), float64
    intercept_ : ndarray of shape (1 or n_classes,), float64
    classes_ : ndarray of shape (n_classes,)
    certificate_ : Certificate
        Primal value, dual value and relative gap per binary problem; of the one problem, for "crammer_singer".
    n_iter_ : ndarray of shape (1 or n_classes,), int64
        Epochs or Newton steps per problem.
    presolve_ : Presolve or None
        What became of the columns (``n_columns``, ``nnz_out``, ``n_merged``, ``n_dropped``, ...); None where X was used
        as it is.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has string column names.

    Notes
    -----
    A float32 or float64 CSR matrix and a C-ordered array are read in place; memory beside the input is a few vectors of
    the rows and of the columns per thread. Presolve adds a packed copy of X (8 bytes per nonzero of a float32 matrix,
    12 of a float64 one) and 12 bytes per column.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi, Sundararajan: A Dual Coordinate Descent Method for Large-scale Linear SVM, ICML 2008.

    Keerthi, Sundararajan, Chang, Hsieh, Lin: A Sequential Dual Method for Large Scale Multi-class Linear SVMs, KDD 2008.

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
        presolve: str | bool = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.C = C
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.presolve = presolve
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self) -> str:
        _validate.choice("loss", self.loss, LOSSES)
        _validate.choice("multi_class", self.multi_class, MULTI_CLASS)
        return self.loss

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        return options | {"solver": _validate.multi_class_solver(self.multi_class, options["solver"])}

    def _native_fit(self) -> Callable[..., dict[str, Any]]:
        return _native.fit if self.multi_class == "ovr" else _native.fit_crammer_singer

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels of one type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals the row twice, weight 0 the row absent.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Unusable parameters or input; the message names the value, its place and what would be accepted.
        """
        return self._fit(X, y, sample_weight)


class LinearSVCCV(LinearSVC):
    """:class:`LinearSVC` that chooses its ``C`` by warm-started cross-validation, then refits on all rows.

    Parameters
    ----------
    cv : int, splitter or iterable, default=5
        Number of stratified folds of shuffled rows, or anything that scikit-learn accepts.
    scoring : str, callable, list, tuple or dict, default=None
        Any scikit-learn scorers of classifiers; None is accuracy.
    choose_by : str, default=None
        Name of the scorer that chooses C; None is the first.
    choose : {"best", "one_se"}, default="best"
        The best mean score, or the smallest C within one standard error of it.
    Cs : array-like of shape (n_Cs,), default=None
        The values of C to visit, instead of the range that ``C_min``, ``C_max`` and ``ratio`` give.
    C_min : float, default=None
        First value of C; None computes the lower bound of Chu et al., rounded down to a power of two.
    C_max : float, default=1024.0
        Limit of C.
    ratio : float, default=2.0
        Factor between values of C.
    refine : int, default=0
        Rounds of bisection around the best C once the range is done.
    stop : {"exact", "unchanged", "liblinear"}, default="exact"
        The rule that ends the search before ``C_max``.
    time_limit : float, default=None
        Seconds after which the search ends; the fit at the best C so far follows.
    resume : path-like, default=None
        File that keeps what is finished of the search, and continues it: for one data set and one set of options.
    keep_decisions : bool, default=False
        Whether ``search_.decisions`` holds the out-of-fold decision values at the chosen C.
    select_tol : float, default=1e-2
        Accuracy of the fits of the search. All parameters of the search are described in :func:`hinge.select_C`.
    loss, solver, tol, max_iter, fit_intercept, intercept_scaling, class_weight, multi_class, presolve
        As in :class:`LinearSVC`.
    n_jobs, random_state, verbose
        As in :class:`LinearSVC`; ``tol`` is that of the final fit.

    Attributes
    ----------
    C_ : float
        The chosen C.
    search_ : CSearch
        The whole table of the search.
    coef_, intercept_, classes_, certificate_, n_iter_, presolve_, n_features_in_, feature_names_in_
        As in :class:`LinearSVC`, of the final fit.

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
        loss: str = "squared_hinge",
        solver: str = "auto",
        tol: float = _native.DEFAULT_TOL,
        max_iter: int = _native.DEFAULT_MAX_ITER,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        multi_class: str = "ovr",
        presolve: str | bool = "auto",
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
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.presolve = presolve
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LinearSVCCV:
        """Choose C, then fit on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
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
        TimeoutError
            ``time_limit`` passed before the first value of C was finished.
        KeyboardInterrupt
            Ctrl-C; the estimator is left as it was.

        Warns
        -----
        PartialSearchWarning
            ``time_limit`` ended the search: the fit is at the best C that was finished.
        """
        return search_and_refit(self, X, y, sample_weight, groups)
