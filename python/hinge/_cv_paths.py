"""A search for C that keeps every model of every fold, as scikit-learn's LogisticRegressionCV does.

The native search hands decision values on and no weights. Where the weights of the folds are asked for, each is a fit
of its own, at every C, by the same solvers; scorers then see fitted models and the held-out rows themselves.
"""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, make_scorer

from hinge import _penalty, _scoring
from hinge._certificate import Certificate
from hinge._csearch import CSearch, best_table
from hinge._folds import Folds
from hinge._probability import is_softmax, multi_class_of
from hinge._problem import Problem
from hinge._warn import warn

_ONLY_SEARCHED: dict[str, Any] = {
    "refine": 0,
    "time_limit": None,
    "resume": None,
    "keep_decisions": False,
    "keep_coefs": False,
    "max_drop": None,
    "C_min": None,
}
"""Parameters of a search that this one does not know, with the values that ask for nothing."""


@dataclass(frozen=True, eq=False)
class Paths:
    """Weights, scores and iterations of every fold at every C and share of absolute values in the penalty.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
    coefs : ndarray of shape (n_folds, n_Cs, n_l1_ratios, n_problems, n_dof)
        Weights, and the intercept behind them where one is fitted.
    scores : ndarray of shape (n_folds, n_Cs, n_l1_ratios)
    n_iter : ndarray of shape (n_folds, n_Cs, n_l1_ratios), int64
    shares : ndarray of shape (n_l1_ratios,)
    is_listed : bool
        Whether shares were given as a list, which is an axis of the old layout.
    is_new : bool
        Whether scikit-learn's new layout is asked for.
    """

    Cs: np.ndarray
    coefs: np.ndarray
    scores: np.ndarray
    n_iter: np.ndarray
    shares: np.ndarray
    is_listed: bool
    is_new: bool

    def by_class(self, classes: np.ndarray) -> tuple[dict[Any, np.ndarray], dict[Any, np.ndarray], np.ndarray]:
        """Weights and scores as dicts from classes, and iterations: scikit-learn's old layout."""
        names = classes[1:] if len(classes) == 2 else classes
        layout = (lambda values: values) if self.is_listed else (lambda values: values[:, :, 0])
        coefs, scores, n_iter = (layout(values) for values in (self.coefs, self.scores, self.n_iter))
        paths = {name: np.ascontiguousarray(coefs[..., k, :]) for k, name in enumerate(names)}
        return paths, dict.fromkeys(names, scores), n_iter[None]

    def as_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of shape (n_folds, n_l1_ratios, n_Cs, n_problems, n_dof), scores and iterations: the new layout."""
        coefs, scores, n_iter = (np.moveaxis(values, 2, 1) for values in (self.coefs, self.scores, self.n_iter))
        return coefs, scores, n_iter

    def mean_of_best(self) -> tuple[np.ndarray, float, float]:
        """The means over folds of the weights, C and share at each fold's best score: no fit on all rows.

        The smallest C is the first among equals, then the first share.
        """
        n_folds, _, n_shares = self.scores.shape
        C, share = np.divmod(self.scores.reshape(n_folds, -1).argmax(axis=1), n_shares)
        weights = self.coefs[np.arange(n_folds), C, share].mean(axis=0)
        return weights, float(self.Cs[C].mean()), float(self.shares[share].mean())


@dataclass(frozen=True)
class FoldFit:
    """One fit on the training part of a fold."""

    model: Any
    seconds: float
    score: float


def search_paths(
    plain: Callable[[float], Any], given: Any, problem: Problem, options: dict[str, Any], groups: Any
) -> tuple[CSearch, Paths]:
    """Fit every fold at every C and share; ``plain`` makes an unfitted model of a C.

    Returns
    -------
    CSearch
        The table of the best share, without decision values; its ``grid`` has those of all, where there are several.
    Paths
    """
    for name, nothing in _ONLY_SEARCHED.items():
        if getattr(given, name) != nothing:
            raise ValueError(f"{name} must be {nothing} with use_legacy_attributes or refit=False, got it beside them")
    is_free = options["intercept"] == 0.0
    folds = Folds(problem, given.cv, groups, options["seed"], needs_classes=not is_free)
    chooser, score = _scorer(given, problem)
    shares = given.l1_share if isinstance(given.l1_share, list) else [given.l1_share]
    by_share: dict[float, tuple[CSearch, list[list[FoldFit]]]] = {}
    for share, told in zip(shares, _penalty.grid(given, options), strict=True):
        if share in by_share:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fits = [[_fit_fold(plain(C), C, problem, told, split, score) for C in given.Cs] for split in folds.splits]
        table = _table(given, _n_fits(problem, told), folds.repeats(len(problem.y)), chooser, fits)
        by_share[share] = (table if told["penalty"] is None else replace(table, l1_ratio=share), fits)
    _warn_of_tables([table for table, _ in by_share.values()])
    columns = _listed(shares, given.l1_ratios)
    found = best_table([by_share[share][0] for share in shares])
    return found, _paths_of(given, columns, [by_share[share][1] for share in columns], options["intercept"] is not None)


def _listed(shares: list[float], l1_ratios: list[float | None] | None) -> list[float]:
    """The share of every entry of ``l1_ratios``, where one share stands for equal ones."""
    return shares * len(l1_ratios or [None]) if len(shares) == 1 else shares


def _warn_of_tables(tables: list[CSearch]) -> None:
    """Say where fits of folds have not converged."""
    bad = sorted({float(C) for table in tables for C in table.Cs[~table.converged]})
    if bad:
        warn(f"max_iter was not enough for tol in folds at C = {bad}", ConvergenceWarning)


def _paths_of(given: Any, shares: list[float], fits: list[list[list[FoldFit]]], has_intercept: bool) -> Paths:
    """What is kept of the fits of each share, fold and C."""

    def axes(value: Callable[[FoldFit], Any]) -> np.ndarray:
        return np.moveaxis(np.array([[[value(fit) for fit in row] for row in part] for part in fits]), 0, 2)

    return Paths(
        Cs=np.array(given.Cs),
        coefs=axes(lambda fit: _with_intercept(fit.model, has_intercept)),
        scores=axes(lambda fit: fit.score),
        n_iter=axes(lambda fit: int(fit.model.n_iter_.max())).astype(np.int64),
        shares=np.array(shares),
        is_listed=given.l1_ratios is not None,
        is_new=given.use_legacy_attributes is False,
    )


def _with_intercept(model: Any, has_intercept: bool) -> np.ndarray:
    return np.column_stack([model.coef_, model.intercept_]) if has_intercept else model.coef_


def _fit_fold(
    model: Any, C: float, problem: Problem, options: dict[str, Any], split: tuple[np.ndarray, np.ndarray], score: Any
) -> FoldFit:
    train, test = split
    begin = time.perf_counter()
    _fit_present(model, C, problem, options, train[problem.weight[train] > 0])
    seconds = time.perf_counter() - begin
    model.n_features_in_ = problem.X.shape[1]
    return FoldFit(model, seconds, score(model, test))


def _fit_present(model: Any, C: float, problem: Problem, options: dict[str, Any], train: np.ndarray) -> None:
    """Fit on rows that need not have every class.

    A class without rows is never the answer: where intercepts are free, its own falls without end, its weights are 0
    and the others are those of the problem without it.
    """
    classes, n_features = problem.classes, problem.X.shape[1]
    present, ids = np.unique(problem.ids[train], return_inverse=True)
    is_pair = is_softmax(options, len(classes)) and len(present) == 2
    share, told = _penalty.of_pair(options["penalty"]) if is_pair else (1.0, options["penalty"])
    if len(present) > 1:
        rows = (problem.X[train], classes[present], ids.astype(np.uint32), problem.weight[train])
        model._fit_checked(C / share, *rows, options | {"penalty": told})
        half = 2.0 if is_pair else 1.0
        coef, intercept = model.coef_ / half, model.intercept_ / half
        proof = model.certificate_
        model.certificate_ = replace(proof, primal=proof.primal * share, dual=proof.dual * share)
    else:
        model.n_iter_, model.certificate_ = np.zeros(1, dtype=np.int64), _exact(_n_fits(problem, options))
        coef, intercept = np.zeros((1, n_features)), np.zeros(1)
    model.classes_, model.multi_class_ = classes, multi_class_of(options, len(classes))
    if len(present) == len(classes):
        return
    if len(classes) == 2:
        model.coef_, model.intercept_ = coef, np.array([np.inf if present[0] == 1 else -np.inf])
        return
    if len(present) == 2:
        coef, intercept = np.vstack([-coef, coef]), np.concatenate([-intercept, intercept])
    model.coef_, model.intercept_ = np.zeros((len(classes), n_features)), np.full(len(classes), -np.inf)
    model.coef_[present], model.intercept_[present] = coef, intercept


def _n_fits(problem: Problem, options: dict[str, Any]) -> int:
    """Problems that are solved for a model."""
    return 1 if is_softmax(options, len(problem.classes)) else problem.n_problems


def _exact(n_problems: int) -> Certificate:
    """The certificate of a single class: it is always the answer, at no loss."""
    zeros, done = np.zeros(n_problems), ("converged",) * n_problems
    return Certificate(zeros, zeros, zeros, done, ("none",) * n_problems, zeros)


def _scorer(given: Any, problem: Problem) -> tuple[str, Callable[[Any, np.ndarray], float]]:
    """The name of the scorer that chooses, and the score of a fitted model on held-out rows."""
    if given.scoring is None:
        name, plain = "accuracy", get_scorer("accuracy")
    elif isinstance(given.scoring, str) or callable(given.scoring):
        name = given.scoring if isinstance(given.scoring, str) else "score"
        plain = _scoring.known_scorer("scoring", given.scoring)
    else:
        raise ValueError(f"scoring must be one scorer with use_legacy_attributes or refit=False, got {given.scoring!r}")
    if given.choose_by not in (None, name):
        raise ValueError(f"choose_by must be one of {[name]}, got {given.choose_by!r}")
    scorer = _of_all_labels(plain, problem.classes)
    weight = problem.sample_weight if _scoring.takes_weights(plain) else None

    def score(model: Any, rows: np.ndarray) -> float:
        weights = {} if weight is None else {"sample_weight": weight[rows]}
        return _scoring.one_number(name, scorer(model, problem.X[rows], problem.y[rows], **weights))

    return name, score


def _of_all_labels(scorer: Any, classes: np.ndarray) -> Any:
    """The scorer told of all classes, where its metric wants to know them: a held-out part need not have each."""
    metric = getattr(scorer, "_score_func", None)
    known = inspect.signature(metric).parameters if metric is not None else {}
    if "labels" not in known or "labels" in scorer._kwargs:
        return scorer
    more = {"labels": classes} if "average" not in known else {}
    if "pos_label" in known and len(classes) == 2 and "average" not in known:
        more["pos_label"] = classes[1]
    if not more:
        return scorer
    return make_scorer(
        metric, greater_is_better=scorer._sign > 0, response_method=scorer._response_method, **more | scorer._kwargs
    )


def _table(given: Any, n_fits: int, repeats: float, chooser: str, fits: list[list[FoldFit]]) -> CSearch:
    """The table of a search by single fits."""
    by_C = list(zip(*fits, strict=True))

    def column(value: Callable[[FoldFit], Any]) -> np.ndarray:
        return np.array([[value(fit) for fit in row] for row in by_C])

    n = len(by_C)
    return CSearch(
        Cs=np.array(given.Cs),
        all_scores={chooser: column(lambda fit: fit.score)},
        scorer=chooser,
        choose=given.choose,
        objective=column(lambda fit: _padded(fit.model.certificate_.primal, n_fits)),
        seconds=column(lambda fit: fit.seconds).sum(axis=1),
        passes=column(lambda fit: fit.model.certificate_.passes.sum()).sum(axis=1),
        n_iter=column(lambda fit: int(fit.model.n_iter_.sum())).sum(axis=1),
        n_inner=np.zeros(n, dtype=np.int64),
        unchanged=np.zeros(n, dtype=bool),
        unchanged_until=np.array(given.Cs),
        converged=np.array([all(fit.model.certificate_.converged for fit in row) for row in by_C]),
        replayed=np.zeros(n, dtype=bool),
        stopped_by="Cs",
        repeats=repeats,
    )


def _padded(values: np.ndarray, n: int) -> np.ndarray:
    """Values of the problems of the classes that were there, and NaN for the others."""
    return np.concatenate([values, np.full(n - len(values), np.nan)])
