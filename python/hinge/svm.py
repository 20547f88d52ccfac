"""Linear support vector machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge import _native, _validate, calibration
from hinge._available import available_unless
from hinge._callbacks import with_callbacks
from hinge._csearch import CSearch
from hinge._inherited_docs import with_docs_of
from hinge._problem import Problem
from hinge._scoring import LabelScore, known_scorer
from hinge._searched import SearchedClassifier
from hinge._stream import StreamClassifier
from hinge.select import MULTI_CLASS, search_and_refit

LOSSES = ("squared_hinge", "hinge")


class LinearSVC(StreamClassifier):
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
    solver : {"auto", "dual_cd", "dual_cd_online", "newton", "primal_cd", "cutting_plane"}, default="auto"
        "dual_cd" is dual coordinate descent with shrinking, "dual_cd_online" draws one random row at a time,
        "newton" is truncated Newton in the primal (through smooth approximations for the hinge). "auto" chooses by
        shape and loss, and hands a dual fit that stalls over to Newton. For comparison: "primal_cd", coordinate
        descent in the primal (squared hinge only), and "cutting_plane" (hinge only).
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
        Weight per class, above 0, multiplied with the sample weight; "balanced" makes the sums of all classes equal. A
        class of weight 0 would have a model of its own without a row to learn from: leave its rows out instead. None
        where y is a matrix of labels, whose columns share the weights of the rows.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        "ovr" fits each of more than two classes against the rest. "crammer_singer" fits all classes, also two, as one
        problem: :math:`\tfrac12 \sum_m \|w_m\|^2 + C \sum_i v_i \max_m (1_{m \ne y_i} + f_m(x_i) - f_{y_i}(x_i))`,
        by the sequential dual method, and by Newton steps where that is too slow and classes times columns are at
        most 1,600; as in scikit-learn, ``loss`` is then not looked at. The solver must be "auto" or "dual_cd", the
        degree 1. A :class:`BlockStore` that does not fit ``memory_budget`` is trained on block by block; the budget
        counts the weights of all classes and three positive dual variables per row, more come on top.
    sparse_coef : bool, default=False
        Whether ``coef_`` is a CSR matrix. Classes or labels are then fitted one by one in each thread, so that memory
        does not grow with classes times features. Predictions look its columns up once: values may be changed in
        ``coef_.data``, for other columns assign another matrix.
    sparse_tol : float, default=1e-3
        With ``sparse_coef``, weights are rounded to single precision and small ones set to zero as long as that raises
        the objective of a class by at most this share, measured on the training data; 0 keeps all as they are. The
        certificate is that of the weights that are left.
    degree : {1, 2}, default=1
        2 trains on the products of all pairs of features too, which are generated while they are used and never
        stored (no presolve): ``coef_`` has n_features weights of linear terms, then those of pairs, see
        :meth:`pair_weights`.
    gamma : float, default=None
        A number scales the products like the kernel :math:`(\gamma\, x \cdot z + r)^2`; None takes them as they are.
    coef0 : float, default=1.0
        :math:`r`. Its constant feature is left out beside a free intercept.
    hash_bits : int, default=22
        Above ``2**hash_bits`` weights, pairs are hashed, see :class:`hinge.Poly2Map`; the seed is ``random_state``.
    presolve : {"auto", True, False}, default="auto"
        Whether the solver works on a packed copy of a sparse X: proportional columns merged into one (an orthogonal
        change of variables, so the optimum is the same), empty columns dropped, the rest ordered by frequency. "auto"
        does so where it pays: for more than 40,000 columns and a long enough fit, judged by loss, C and the number of
        classes. Weights and certificate belong to X in any case. A dense X is never packed.
    memory_budget : int or str, default=None
        For a :class:`BlockStore`: bytes that the fit may use beside the interpreter and its libraries, as a number or
        text such as "500MB" or "2GB". None is half of the memory that is available. Rows that do not fit are trained
        in blocks.
    checkpoint : path-like, default=None
        For a :class:`BlockStore`: file that keeps the state of the fit, and continues it to the same bits after a kill.
        One fit at a time uses it; a file of another kind is refused and kept.
    block_options : dict, default=None
        For a :class:`BlockStore`, beside its defaults: ``cache="gradient"`` (rows near the margin stay in memory;
        "projected", "random" or "none"; with "crammer_singer", "projected" are rows with the least part of their dual
        variables shrunken), ``cache_share="auto"`` (of the memory for rows: a third where this holds a tenth of
        the rows or more, else half; or a number from 0 to 0.9), ``rounds=10`` (epochs per loaded block),
        ``round_tol=0.0`` (ends them early), ``keep_compressed=True`` (keep the compressed file in memory if it
        fits, and read the disk once), ``while_reading="rest"`` (where the disk is slower than the fit: wait, which
        keeps the bits, or "train" on the cached rows, never idle, with results that differ within ``tol``),
        ``duals="auto"`` (where the dual variables are: "memory", or a "file" beside the checkpoint or in the system's
        temporary folder; "auto" takes a file where that saves readings of the store), ``in_memory=None`` (whether to
        fit all rows in memory; None if they fit), ``checkpoint_seconds=60``.
    n_jobs : int, default=None
        Threads. None means all usable cores; results have the same bits for any number.
    random_state : int, RandomState or None, default=None
        Seed of the visiting order; None is a fixed seed.
    verbose : int, default=0
        Progress on standard error if above 0; the logger ``hinge`` gets it at level INFO anyway.

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
        sparse_coef: bool = False,
        sparse_tol: float = 1e-3,
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
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.sparse_coef = sparse_coef
        self.sparse_tol = sparse_tol
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
        _validate.choice("loss", self.loss, LOSSES)
        _validate.choice("multi_class", self.multi_class, MULTI_CLASS)
        return self.loss

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        sparse_coef, sparse_tol = getattr(self, "sparse_coef", False), getattr(self, "sparse_tol", 0.0)
        _validate.truth("sparse_coef", sparse_coef)
        if sparse_coef and self.multi_class == "crammer_singer":
            raise ValueError("sparse_coef must be False with multi_class='crammer_singer', got True")
        if sparse_coef and self.degree == 2:
            raise ValueError("sparse_coef must be False with degree=2, got True")
        _validate.not_negative("sparse_tol", sparse_tol)
        solver = _validate.multi_class_solver(self.multi_class, options["solver"], self.degree)
        return options | {"solver": solver, "sparse_tol": float(sparse_tol) if sparse_coef else None}

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVC:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
            A store holds its labels and weights: y and sample_weight are then None.
        y : array-like of shape (n_samples,), or {array-like, sparse matrix} of shape (n_samples, n_labels)
            Class labels of one type; or, for several labels per row, a matrix of 0 and 1 with more than one column (a
            sparse one may have one). Each label is then fitted against the rest; one without a positive row has the
            decision value -1, with a free intercept.
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


def _no_probabilities(estimator: Any) -> str | None:
    if estimator.probability is not None:
        return None
    return f"probability is None, it must be one of {sorted(calibration.METHODS)}"


@with_docs_of(LinearSVC)
class LinearSVCCV(SearchedClassifier, LinearSVC):
    """:class:`LinearSVC` that chooses its ``C`` by warm-started cross-validation, then refits on all rows.

    Parameters
    ----------
    cv : int, splitter or iterable, default=5
        Number of stratified folds of shuffled rows (seeded by ``random_state``), any scikit-learn splitter, or an
        iterable of (train, test) row numbers or masks.
    scoring : str, callable, list, tuple or dict, default=None
        Any scikit-learn scorers of classifiers; None is accuracy. :meth:`score` uses the one that chooses C.
    choose_by : str, default=None
        Name of the scorer that chooses C; None is the first.
    choose : {"best", "one_se"}, default="best"
        "best" chooses the best mean score over folds and the smallest C among equals, "one_se" the smallest C whose
        mean score is within one standard error of the best.
    Cs : int or array-like of shape (n_Cs,), default=None
        The values of C to visit, instead of the range that ``C_min``, ``C_max`` and ``ratio`` give; or how many of
        them, evenly spaced in log C from 1e-4 to 1e4.
    C_min : float, default=None
        First value of C; None computes the lower bound of Chu et al., rounded down to a power of two.
    C_max : float, default=1024.0
        Limit of C.
    ratio : float, default=2.0
        Factor between values of C.
    refine : int, default=0
        Rounds of bisection around the best C once the range is done.
    stop : {"exact", "unchanged", "liblinear"}, default="exact"
        The rule that ends the search before ``C_max``: "exact" as soon as no value up to it changes a solution,
        "unchanged" after three successive values without a change, "liblinear" after five.
    time_limit : float, default=None
        Seconds after which the search ends; the fit at the best C so far follows.
    resume : path-like, default=None
        File that keeps what is finished of the search, and continues it: for one data set and one set of options, one
        search at a time.
    keep_decisions : bool, default=False
        Whether ``search_.decisions`` holds the out-of-fold decision values at the chosen C.
    probability : {"sigmoid", "isotonic", "temperature"}, default=None
        If given, :func:`hinge.calibrate` fits probabilities to the out-of-fold decision values that the search has at
        the chosen C, without a further fit; ``predict`` is then the most probable class.
    threshold : str or callable, default=None
        A scikit-learn scorer, for two classes: ``predict`` uses the decision value as threshold that is best for it on
        the out-of-fold decision values, instead of 0.
    cost_matrix : array-like of shape (n_classes, n_classes), default=None
        Cost of a row of class i (row) that is predicted as class j (column). Two classes: the threshold of the
        least total cost out of fold. More: needs ``probability``; ``predict`` is the class of least expected cost.
    select_tol : float, default=1e-2
        Accuracy of the fits of the search. :func:`hinge.select_C` says more of all parameters of the search.
    loss, solver
        As in :class:`LinearSVC`.
    tol : float, default=1e-4
        Relative duality gap at which the final fit stops.
    max_iter, fit_intercept, intercept_scaling, class_weight, multi_class
        As in :class:`LinearSVC`.
    degree, gamma, coef0, hash_bits, presolve, memory_budget, block_options
        As in :class:`LinearSVC`.
    n_jobs : int, default=None
        Threads, of the search and the fit. None means all usable cores; results have the same bits for any number.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the visiting order; None is a fixed seed.
    verbose : int, default=0
        1 shows a progress bar of the search on a terminal (a line per C elsewhere), 2 lines with details, on standard
        error. The logger ``hinge`` gets a record per C at level INFO in any case.

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
        self.probability = probability
        self.threshold = threshold
        self.cost_matrix = cost_matrix
        self.select_tol = select_tol
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.multi_class = multi_class
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
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> LinearSVCCV:
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
        self._check_decisions()
        return search_and_refit(self, X, y, sample_weight, groups)

    def _check_decisions(self) -> None:
        """Check the parameters of probabilities and thresholds as far as they go without data."""
        if self.probability is not None:
            _validate.choice("probability", self.probability, calibration.METHODS)
        if self.threshold is not None:
            known_scorer("threshold", self.threshold)
        if self.threshold is not None and self.cost_matrix is not None:
            raise ValueError("threshold and cost_matrix exclude each other, both are given")
        if self.cost_matrix is not None:
            costs = calibration.costs(self.cost_matrix, len(self.cost_matrix))
            if len(costs) > 2 and self.probability is None:
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
            calibration.costs(self.cost_matrix, n_classes)

    def _use_decisions(self, problem: Problem, found: CSearch) -> None:
        """Fit probabilities and thresholds to the out-of-fold decision values of the chosen C."""
        for name in ("calibration_", "threshold_"):
            self.__dict__.pop(name, None)
        if self.probability is not None:
            fitted = calibration.calibrate(
                found.decisions, problem.y, method=self.probability, sample_weight=problem.sample_weight
            )
            self.calibration_ = fitted
        if self.threshold is not None or (self.cost_matrix is not None and len(problem.classes) == 2):
            self.threshold_ = calibration.tune_threshold(
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
            return self.classes_[(probabilities @ np.asarray(self.cost_matrix, dtype=np.float64)).argmin(axis=1)]
        return self.classes_[probabilities.argmax(axis=1)]

    def _probabilities(self, values: np.ndarray) -> np.ndarray:
        return self.calibration_.predict_proba(values)

    def _log_probabilities(self, values: np.ndarray) -> np.ndarray:
        return self.calibration_.predict_log_proba(values)

    @available_unless(_no_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class; with ``probability`` only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore

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

    @available_unless(_no_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`; with ``probability`` only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            ``-inf`` for a probability of 0.

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
