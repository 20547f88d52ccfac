"""Choice of ``C`` by warm-started cross-validation."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar

from hinge import _labels, _native, _outofcore, _validate
from hinge._callbacks import FitTask
from hinge._csearch import CSearch
from hinge._loop import Search
from hinge._plan import Plan
from hinge._problem import Problem
from hinge.blocks import BlockStore
from hinge.poly2 import degree_options, with_sorted_rows

SEARCH_SOLVERS = ("auto", "dual_cd", "dual_cd_online", "newton")
LOSSES = ("logistic", "squared_hinge", "hinge")
MULTI_CLASS = ("ovr", "crammer_singer")

E = TypeVar("E", bound=Any)


def select_C(
    X: Any,
    y: Any = None,
    *,
    loss: str = "logistic",
    solver: str = "auto",
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
    tol: float = _native.DEFAULT_SEARCH_TOL,
    max_iter: int = _native.DEFAULT_MAX_ITER,
    fit_intercept: bool = True,
    intercept_scaling: float | None = None,
    class_weight: Any = None,
    multi_class: str = "ovr",
    sample_weight: Any = None,
    groups: Any = None,
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
) -> CSearch:
    """Search for ``C`` by warm-started cross-validation (algorithm 1 of Chu et al.).

    C rises by the factor ``ratio`` from a computed lower bound; every fold starts each fit from its solution at the C
    before; the search ends when no further C can change a solution by more than ``tol``, or at ``C_max``. Ctrl-C and
    ``time_limit`` end it early: what is finished is returned, marked as partial.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
        A store holds its labels and weights: y and sample_weight are then None. Where its rows and all folds do not
        fit ``memory_budget``, one reading of each block serves all folds; every row is then held out once at most.
    y : array-like of shape (n_samples,), default=None
    loss : {"logistic", "squared_hinge", "hinge"}, default="logistic"
    solver : {"auto", "dual_cd", "dual_cd_online", "newton"}, default="auto"
        As in :class:`hinge.LinearSVC`; "auto" is Newton for a smooth loss and few features, else dual coordinate
        descent.
    cv : int, splitter or iterable, default=5
        Number of stratified folds of shuffled rows (seeded by ``random_state``), any scikit-learn splitter, or an
        iterable of (train, test) row numbers or masks. A row may be held out several times, or never.
        scikit-learn does not shuffle for a number: on rows in file order, which are rarely in random order, that
        chooses a wrong C (w8a: 1e-6 instead of 16). With ``groups``, a number keeps the rows of a group together
        (StratifiedGroupKFold, shuffled). A class of fewer rows than folds is missing in some held-out parts, the only
        row of a class is in every training part, and there are no more folds than rows of the largest class: each with
        a warning.
    scoring : str, callable, list, tuple or dict, default=None
        Any scikit-learn scorer of classifiers by name or as a callable; several as a list of those or as a dict from
        names; a callable may also return a dict of scores. None is accuracy. A scorer sees an estimator that knows
        the decision values of the held-out rows (and probabilities, for the logistic loss); its X are positions in
        the held-out part. Every scorer is tried on every fold before the search begins.
    choose_by : str, default=None
        Name of the scorer that chooses C; None is the first. A list names its scorers by themselves or their metric,
        a single callable has the name "score".
    choose : {"best", "one_se"}, default="best"
        "best" chooses the best mean score and the smallest C among equals, "one_se" the smallest C whose mean score is
        within one standard error of the best (see :attr:`hinge.CSearch.std_error`).
    Cs : int or array-like of shape (n_Cs,), default=None
        The values of C to visit, in rising order, instead of the range that ``C_min``, ``C_max`` and ``ratio`` give;
        ``stop`` may leave out the last ones. A number means as many values evenly spaced in log C from 1e-4 to 1e4, as
        in scikit-learn's LogisticRegressionCV.
    C_min : float, default=None
        First value of C; None computes eq. (21) or (22) of the paper, rounded down to a power of two.
    C_max : float, default=1024.0
        Limit of C.
    ratio : float, default=2.0
        Factor between values of C, above 1.
    refine : int, default=0
        Rounds of bisection once the range is done: each visits the middle, in log C, of the intervals on both sides of
        the best C.
    stop : {"exact", "unchanged", "liblinear"}, default="exact"
        When to end before the last value: "exact" as soon as it is known that every solution is within ``tol`` at all
        values up to the last, "unchanged" after three successive values without a change (eq. 24 of the paper),
        "liblinear" after five, as LIBLINEAR's ``-C`` counts.
    time_limit : float, default=None
        Seconds after which the search returns what is finished.
    resume : path-like, default=None
        Journal of the search: a record per finished C is added to this file, and what it holds already is not
        computed again. A search that was killed continues to the same bits. The journal of other data, splits, values
        of C or options of the fits is refused, and any other file, which is kept; scorers, the rule of choice, limits
        of time and threads may change. One search at a time uses a journal: a second one gets an error.
    keep_decisions : bool, default=False
        Whether to return the out-of-fold decision values at the chosen C as ``decisions``. Costs n_samples numbers
        per binary problem, with "one_se" once for each C that is better than all smaller ones.
    tol : float, default=1e-2
        Accuracy of each fit. Newton: norm of the gradient at most ``tol * min(pos, neg) / n`` times its norm at zero
        weights (eq. 28). Other solvers: relative duality gap at most ``tol / 10``.
    max_iter : int, default=1000
        Limit of Newton steps or epochs per fit.
    fit_intercept, intercept_scaling, class_weight, presolve, memory_budget, block_options, n_jobs, random_state
        As in :class:`hinge.LinearSVC`. A store that fits in memory is not presolved.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        As in :class:`hinge.LinearSVC`; "crammer_singer" needs ``loss="hinge"`` here.
    degree, gamma, coef0, hash_bits
        As in :class:`hinge.LinearSVC`: the search is for the C of a model of pairs.
    sample_weight : array-like of shape (n_samples,), default=None
        Used in training, and in the score where the scorer takes weights.
    groups : array-like of shape (n_samples,), default=None
        Passed to the splitter.
    verbose : int, default=0
        1 shows a progress bar on a terminal (a line per C elsewhere), 2 lines with details, on standard error. The
        logger ``hinge`` gets a record per C at level INFO in any case, details at level DEBUG.

    Returns
    -------
    CSearch

    Raises
    ------
    ValueError
        Unusable parameters or input, a class for every row, a fold whose training part lacks a class,
        a scorer that cannot score, a journal of other data or options.
    TimeoutError
        ``time_limit`` passed before the first value of C was finished.
    KeyboardInterrupt
        Ctrl-C before the first value of C was finished.

    Warns
    -----
    PartialSearchWarning
        Ctrl-C or ``time_limit`` ended the search.
    NoSkillWarning
        The model chosen by accuracy is right no more often than the most frequent class, as on rare classes: choose by
        "balanced_accuracy" or "roc_auc", or weigh the classes.
    UserWarning
        A class has fewer rows than there are folds.

    Notes
    -----
    The end of a search is as exact as its fits: a solution that is within ``tol`` at every further C is kept, while
    exact solutions there might score better. That happens on nearly separable data (1 of 28 searches over 60 rows at
    the default: 0.967 where 0.983 was to be had at C = 1024); a smaller ``tol`` goes on further.

    ``class_weight="balanced"`` is computed once, from the weights of all rows; scikit-learn's searches compute it from
    those of each training part. For stratified folds the two are nearly the same.

    Where the optimum has no weights (the hinge loss on noise), decision values differ by rounding and the accuracy of
    the fits only. A scorer that ranks them, such as ROC AUC, then scores noise: take such rows of the table as ties.

    Memory beside the input: a weight vector of the features and a vector of the training rows for each fold and class.
    A search over blocks has 8 bytes per row and per feature for each fold and class, and some 20 bytes per row, beside
    the rows at hand, within ``memory_budget``.

    References
    ----------
    Chu, Ho, Tsai, Lin, Lin: Warm Start for Parameter Selection of Linear Classifiers, KDD 2015.

    Examples
    --------
    >>> from hinge import select_C
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, random_state=0)
    >>> search = select_C(X, y, cv=3, scoring=["roc_auc", "accuracy"], choose="one_se")
    >>> search.scores.shape == (len(search.Cs), 3)
    True
    >>> search.C <= search.best_C
    True
    >>> sorted(search.all_scores)
    ['accuracy', 'roc_auc']
    """
    _validate.choice("loss", loss, LOSSES)
    _validate.choice("solver", solver, SEARCH_SOLVERS)
    _validate.choice("multi_class", multi_class, MULTI_CLASS)
    if multi_class == "crammer_singer" and loss != "hinge":
        raise ValueError(f"loss must be 'hinge' with multi_class='crammer_singer', got {loss!r}")
    _validate.positive("tol", tol)
    _validate.whole("max_iter", max_iter, 1)
    _validate.verbosity(verbose)
    intercept, seed = _validate.intercept(fit_intercept, intercept_scaling), _validate.seed(random_state)
    mapped = SimpleNamespace(degree=degree, gamma=gamma, coef0=coef0, hash_bits=hash_bits, presolve=presolve)
    options: dict[str, Any] = {
        "loss": loss,
        "solver": _validate.multi_class_solver(multi_class, solver, degree),
        "intercept": intercept,
        "tol": float(tol),
        "max_iter": int(max_iter),
        "seed": seed,
        "n_threads": _validate.threads(n_jobs),
        "presolve": _validate.presolve(presolve),
        "map": degree_options(mapped, intercept, seed),
    }
    parameters = SimpleNamespace(
        cv=cv,
        scoring=scoring,
        choose_by=choose_by,
        choose=choose,
        Cs=Cs,
        C_min=C_min,
        C_max=C_max,
        ratio=ratio,
        refine=refine,
        stop=stop,
        time_limit=time_limit,
        resume=resume,
        keep_decisions=keep_decisions,
        verbose=verbose,
    )
    plan = Plan.of(parameters)
    if isinstance(X, BlockStore):
        _outofcore.refuse_unfit(options)
        blocks = _outofcore.options(memory_budget, None, block_options)
        problem = _store_problem(X, y, sample_weight, class_weight, blocks, options["n_threads"])
    else:
        X, y = _validate.fit_data(X, y)
        if options["map"] is not None:
            X = with_sorted_rows(X)
        problem = Problem.of(X, y, class_weight, sample_weight)
    return Search.of(parameters, problem, options, plan, groups).run(keeps_interrupted=True)


def search_and_refit(estimator: E, X: Any, y: Any, sample_weight: Any, groups: Any) -> E:
    """The fit of the CV estimators: search, then one fit at the chosen C; sets ``search_`` and ``C_`` beside the rest.

    Ctrl-C is raised, and the estimator left as it was: who interrupts a fit does not expect another one to begin.
    """
    options = estimator._options()
    _validate.positive("select_tol", estimator.select_tol)
    _validate.choice("solver", estimator.solver, SEARCH_SOLVERS)
    plan = Plan.of(estimator)
    needs_decisions = getattr(estimator, "_needs_decisions", bool)()
    if isinstance(X, BlockStore):
        _outofcore.refuse_unfit(options)
        blocks = _outofcore.options(estimator.memory_budget, None, estimator.block_options)
        problem = _store_problem(X, y, sample_weight, estimator.class_weight, blocks, options["n_threads"])
    else:
        if _labels.is_indicator(y):
            raise ValueError(
                f"{type(estimator).__name__} takes one class per row, y is a matrix of labels: fit LinearSVC or "
                "LogisticRegression, and choose C with sklearn.model_selection.GridSearchCV"
            )
        checked, labels = _validate.fit_data(X, y, estimator)
        if options["map"] is not None:
            checked = with_sorted_rows(checked)
        problem = Problem.of(checked, labels, estimator.class_weight, sample_weight)
    if needs_decisions:
        plan = replace(plan, keep_decisions=True)
    search_options = options | {"tol": float(estimator.select_tol)}
    search = Search.of(estimator, problem, search_options, plan, groups)
    if needs_decisions:
        estimator._check_problem(problem, search.folds.held_out(len(problem.y)) > 0)
    task = FitTask(estimator, X, y, sample_weight=sample_weight, has_parts=True)
    found = search.run(keeps_interrupted=False, wants_stop=lambda step: task.part(f"C = {step.C:g}"))
    if isinstance(X, BlockStore):
        cost = _outofcore.class_costs(X, found.C, estimator.class_weight)
        estimator._fit_blocks(X, cost, options, blocks)
    else:
        estimator._fit_checked(found.C, problem.X, problem.classes, problem.ids, problem.weight, options)
        _validate.remember_features(estimator, X)
    if hasattr(estimator, "_use_decisions"):
        estimator._use_decisions(problem, found)
    estimator.search_ = found if plan.keep_decisions == estimator.keep_decisions else replace(found, decisions=None)
    estimator.C_ = found.C
    task.part("refit")
    task.end()
    return estimator


def _store_problem(
    store: BlockStore, y: Any, sample_weight: Any, class_weight: Any, blocks: dict[str, Any], threads: int
) -> Problem:
    if y is not None or sample_weight is not None:
        raise ValueError("a BlockStore holds its labels and weights: y and sample_weight must be None")
    return Problem.of_store(store, class_weight, blocks, threads)
