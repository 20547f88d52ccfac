"""Choice of ``C`` by warm-started cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from sklearn.model_selection import StratifiedKFold

from hinge import _blocks, _checks, _labels, _native, _penalty, _validate
from hinge._block_options import BlockOptions
from hinge._callbacks import FitTask
from hinge._csearch import CSearch, best_table
from hinge._declared import checked, declared
from hinge._encode_coder import collected
from hinge._loop import Search
from hinge._options import fit_options
from hinge._parameters import SELECT_C
from hinge._plan import Plan
from hinge._problem import Problem
from hinge.blocks import BlockStore
from hinge.poly2 import with_sorted_rows

E = TypeVar("E", bound=Any)

_LOSS_OF_ALL_CLASSES = {"crammer_singer": "hinge", "multinomial": "logistic"}
"""The one loss of a choice of ``multi_class``."""


@declared(SELECT_C)
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
    keep_coefs: bool = False,
    max_drop: float | None = None,
    tol: float = _native.DEFAULT_SEARCH_TOL,
    max_iter: int = _native.DEFAULT_MAX_ITER,
    fit_intercept: bool = True,
    intercept_scaling: float | None = None,
    class_weight: Any = None,
    multi_class: str = "auto",
    penalty: str = "l2",
    l1_ratio: Any = None,
    penalty_factors: Any = None,
    positive: bool = False,
    bounds: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
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
) -> CSearch:
    """Search for ``C`` by warm-started cross-validation (algorithm 1 of Chu et al.).

    C rises by the factor ``ratio`` from a computed lower bound; every fold starts each fit from its solution at the C
    before; the search ends when no further C can change a solution by more than ``tol``, or at ``C_max`` (the paper's
    counts values without a change, see ``stop``). Ctrl-C and ``time_limit`` end it early: what is finished is returned,
    marked as partial.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), BlockStore, or EncodedStream
        A store holds its labels and weights: y and sample_weight are then None. Where its rows and all folds do not
        fit ``memory_budget``, one reading of each block serves all folds; every row is then held out once at most.
    y : array-like of shape (n_samples,), default=None
    sample_weight : array-like of shape (n_samples,), default=None
        Used in training, and in the score where the scorer takes weights.
    groups : array-like of shape (n_samples,), default=None
        Passed to the splitter.
    {parameters}

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
    given, options, plan = asked_of(locals())
    X, y, sample_weight, groups = collected(X, y, sample_weight, groups)
    if isinstance(X, BlockStore):
        problem = _store_problem(X, y, sample_weight, given)
    else:
        X, y = _validate.fit_data(X, y)
        problem = _problem(X, y, sample_weight, given, options)
    searches = _searches(given, problem, options, plan, groups)
    found, _ = _best(searches, lambda search: search.run(keeps_interrupted=True))
    return found


def asked_of(parameters: dict[str, Any]) -> tuple[Any, dict[str, Any], Plan]:
    """The checked parameters of :func:`select_C`, the native options and the plan."""
    given = checked(select_C, parameters)
    for name, only in _LOSS_OF_ALL_CLASSES.items():
        if given.multi_class == name and given.loss != only:
            raise ValueError(f"loss must be {only!r} with multi_class={name!r}, got {given.loss!r}")
    given.l1_share = _penalty.ratio_of(given.penalty, given.l1_ratio)
    return given, fit_options(given, given.loss), Plan.of(given)


def _searches(given: Any, problem: Problem, options: dict[str, Any], plan: Plan, groups: Any) -> list[Search]:
    """A search for each share of absolute values that is to be tried."""
    return [Search.of(given, problem, each, plan, groups) for each in _penalty.grid(given, options)]


def _best(searches: list[Search], run: Callable[[Search], CSearch]) -> tuple[CSearch, dict[str, Any] | None]:
    """The table with the best score, the first among equals, and the penalty of its search."""
    penalties = [search.options["penalty"] for search in searches]
    tables = [
        found if penalty is None else replace(found, l1_ratio=penalty["l1_ratio"])
        for found, penalty in zip(map(run, searches), penalties, strict=True)
    ]
    found = best_table(tables)
    return found, penalties[0] and penalties[0] | {"l1_ratio": found.l1_ratio}


def search_and_refit(estimator: E, X: Any, y: Any, sample_weight: Any, groups: Any) -> E:
    """The fit of the CV estimators: search, then one fit at the chosen C; sets ``search_`` and ``C_`` beside the rest.

    Ctrl-C is raised, and the estimator left as it was: who interrupts a fit does not expect another one to begin.
    """
    given = estimator._checked()
    estimator._check_decisions()
    options, plan = fit_options(given, estimator._loss()), Plan.of(given)
    X, y, sample_weight, groups = collected(X, y, sample_weight, groups)
    set_order(given, groups)
    if isinstance(X, BlockStore):
        problem = _store_problem(X, y, sample_weight, given)
    else:
        _refuse_labels(estimator, y)
        problem = _problem(*_validate.fit_data(X, y, estimator), sample_weight, given, options)
    if getattr(given, "keeps_paths", False):
        return estimator._keep_paths(X, given, problem, options, groups)
    searches = searches_of(estimator, given, problem, options, plan, groups)
    task = FitTask(estimator, X, y, sample_weight=sample_weight, has_parts=True)

    def run(search: Search) -> CSearch:
        return search.run(keeps_interrupted=False, wants_stop=lambda step: task.part(f"C = {step.C:g}"))

    found, penalty = _best(searches, run)
    options = options | {"penalty": penalty}
    if problem.store is not None:
        cost = _blocks.class_costs(X, found.C, given.class_weight)
        estimator._fit_blocks(X, cost, options, problem.store.blocks)
    else:
        estimator._fit_checked(found.C, problem.X, problem.classes, problem.ids, problem.weight, options)
        _validate.remember_features(estimator, X)
    keep_found(estimator, given, problem, found)
    task.part("refit")
    task.end()
    return estimator


def set_order(given: Any, groups: Any) -> None:
    """Folds in the order of the rows, where a solver of scikit-learn's name has them so."""
    if getattr(given, "in_order", False) and groups is None and _checks.is_number(given.cv):
        given.cv = StratifiedKFold(given.cv)


def searches_of(
    estimator: Any, given: Any, problem: Problem, options: dict[str, Any], plan: Plan, groups: Any
) -> list[Search]:
    """The searches of a CV estimator, which may use the decision values of held-out rows."""
    needs_decisions = estimator._needs_decisions()
    if needs_decisions:
        plan = replace(plan, keep_decisions=True)
    searches = _searches(given, problem, options | {"tol": given.select_tol}, plan, groups)
    if needs_decisions:
        estimator._check_problem(problem, searches[0].folds.held_out(len(problem.y)) > 0)
    return searches


def keep_found(estimator: Any, given: Any, problem: Problem, found: CSearch) -> None:
    """Set what the search of a CV estimator leaves beside the fit."""
    estimator._use_decisions(problem, found)
    has_decisions = estimator._needs_decisions() and not given.keep_decisions
    estimator.search_ = replace(found, decisions=None) if has_decisions else found
    estimator.C_ = found.C


def _refuse_labels(estimator: Any, y: Any) -> None:
    if _labels.is_indicator(y):
        raise ValueError(
            f"{type(estimator).__name__} takes one class per row, y is a matrix of labels: fit LinearSVC or "
            "LogisticRegression, and choose C with sklearn.model_selection.GridSearchCV"
        )


def _problem(X: Any, y: Any, sample_weight: Any, given: Any, options: dict[str, Any]) -> Problem:
    """The problem of validated rows in memory."""
    if options["map"] is not None:
        X = with_sorted_rows(X)
    return Problem.of(X, y, given.class_weight, sample_weight)


def _store_problem(store: BlockStore, y: Any, sample_weight: Any, given: Any) -> Problem:
    if y is not None or sample_weight is not None:
        raise ValueError("a BlockStore holds its labels and weights: y and sample_weight must be None")
    blocks = _blocks.options(given.block_options, given.memory_budget, None)
    return Problem.of_store(store, given.class_weight, blocks, given.n_jobs)
