"""Scores of held-out decision values by any scikit-learn scorer, without a model to refit.

A scorer asks a fitted classifier for predictions, decision values or probabilities of rows. Here it gets a stand-in
that knows the decision values of one fold's held-out rows, and positions in that fold in place of X. Before any work,
every scorer is tried once on every fold as if all rows were decided rightly: what cannot be scored is refused at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, get_scorer

from hinge._probability import LOGISTIC, SOFTMAX, is_softmax, log_probabilities
from hinge._problem import Problem

Metric = Callable[["_Fold", np.ndarray], Any]
"""A score, or a dict of them, of a stand-in for the model on the held-out rows of the given numbers."""


class Scoring:
    """The scorers of a search.

    Attributes
    ----------
    names : tuple of str
        Scorers in the order given.
    chooser : str
        The one that chooses C.
    """

    names: tuple[str, ...]
    chooser: str

    def __init__(
        self,
        problem: Problem,
        options: dict[str, Any],
        scoring: Any,
        choose_by: str | None,
        tests: Iterable[np.ndarray],
    ):
        """``options`` are those of the native fits, ``tests`` the held-out rows of every fold."""
        self._problem, self._scoring = problem, scoring
        loss = options["loss"]
        self._kind: type[_Fold] = _Fold
        if loss == "logistic":
            self._kind = _SoftmaxFold if is_softmax(options, len(problem.classes)) else _LogisticFold
        self._metrics = _named(problem, scoring)
        tried = [self._try(loss, rows) for rows in tests]
        self.names = tuple(tried[0])
        self.chooser = self._chooser(choose_by)
        undefined = [f for f, scores in enumerate(tried) if np.isnan(scores[self.chooser])]
        if undefined:
            raise ValueError(
                f"scoring {self.chooser!r} is NaN on the held-out part of fold {undefined[0]} even if every row is "
                "decided rightly, so it cannot choose C: use larger or stratified folds, or another scorer"
            )

    def __call__(self, values: np.ndarray, rows: np.ndarray) -> list[float]:
        """Scores of one fold, in the order of ``names``."""
        scores = self._evaluate(values, rows)
        if tuple(scores) != self.names:
            raise ValueError(f"scoring must give the same scores for every fold, got {list(scores)} after {self.names}")
        return list(scores.values())

    def no_skill(self, tests: Iterable[np.ndarray]) -> tuple[Any, float] | None:
        """The most frequent class and the mean accuracy of always answering it; None if C is not chosen by accuracy."""
        if not self._chooses_by_accuracy:
            return None
        problem = self._problem
        most = int(np.bincount(problem.ids, weights=problem.sample_weight).argmax())
        right, weight = problem.ids == most, problem.sample_weight
        if weight is None:
            scores = [right[rows].mean() for rows in tests]
        else:
            scores = [np.average(right[rows], weights=weight[rows]) for rows in tests]
        return problem.classes[most], float(np.mean(scores))

    @property
    def _chooses_by_accuracy(self) -> bool:
        scorer = None if self._scoring is None else known_scorer("scoring", chosen_scorer(self._scoring, self.chooser))
        is_plain = getattr(scorer, "_score_func", None) is accuracy_score and not getattr(scorer, "_kwargs", None)
        return scorer is None or is_plain

    def _chooser(self, choose_by: str | None) -> str:
        if choose_by is None:
            return self.names[0]
        if choose_by not in self.names:
            raise ValueError(f"choose_by must be one of {sorted(self.names)}, got {choose_by!r}")
        return choose_by

    def _try(self, loss: str, rows: np.ndarray) -> dict[str, float]:
        """Scores of right decisions."""
        ids = self._problem.ids[rows].astype(np.intp)
        right = np.where(ids > 0, 1.0, -1.0)
        if self._problem.n_problems > 1:
            right = np.where(np.arange(self._problem.n_problems) == ids[:, None], 1.0, -1.0).ravel()
        try:
            return self._evaluate(right, rows)
        except AttributeError as error:
            if loss == "logistic" or "proba" not in str(error):
                raise
            raise ValueError(
                f"scoring needs probabilities (predict_proba), which the {loss} loss does not give: "
                "use a scorer of predictions or decision values, or the logistic loss (hinge.LogisticRegressionCV, or "
                'loss="logistic" of hinge.select_C)'
            ) from error

    def _evaluate(self, values: np.ndarray, rows: np.ndarray) -> dict[str, float]:
        model = self._kind(self._problem.classes, values)
        scores: dict[str, float] = {}
        for name, metric in self._metrics.items():
            result = metric(model, rows)
            found = result if isinstance(result, Mapping) else {name: result}
            scores |= {key: _number(f"scoring {key!r}", value) for key, value in found.items()}
        return scores


class LabelScore:
    """The score of predicted classes of two, by one scorer: what a decision threshold is tuned for."""

    def __init__(self, parameter: str, scorer: Any, y: np.ndarray, classes: np.ndarray, weight: np.ndarray | None):
        """Try the scorer on the right labels; ``parameter`` is what messages call it."""
        self._what = f"{parameter}={scorer!r}"
        self._metric = _metric(parameter, scorer, y, weight)
        self._classes, self._rows = classes, np.arange(len(y))
        try:
            self(y == classes[1])
        except AttributeError as error:
            if "proba" not in str(error):
                raise
            raise ValueError(f"{self._what} needs probabilities, it must be a scorer of predicted classes") from error

    def __call__(self, is_second: np.ndarray) -> float:
        """The score if the rows that are True are predicted as the second class, the others as the first."""
        return _number(self._what, self._metric(_Fold(self._classes, np.where(is_second, 1.0, -1.0)), self._rows))


def _number(what: str, value: Any) -> float:
    if np.ndim(value) == 0:
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise ValueError(f"{what} must give one number, it gives {value!r}")


def _named(problem: Problem, scoring: Any) -> dict[str, Metric]:
    """The metrics of ``scoring`` by name."""
    if scoring is None:
        return {"accuracy": _accuracy(problem)}
    scorers = _scorers(scoring)
    return {name: _metric("scoring", scorer, problem.y, problem.sample_weight) for name, scorer in scorers.items()}


def _scorers(scoring: Any) -> dict[str, Any]:
    """Names of scorers, or scorers, by the name in the table."""
    if isinstance(scoring, str):
        pairs: list[tuple[Any, Any]] = [(scoring, scoring)]
    elif callable(scoring):
        pairs = [("score", scoring)]
    elif isinstance(scoring, Mapping):
        pairs = list(scoring.items())
    elif isinstance(scoring, (list, tuple)):
        pairs = [(_name(scorer), scorer) for scorer in scoring]
    else:
        raise ValueError(f"scoring must be None, a name, a scorer, or a list or dict of those, got {scoring!r}")
    _check_names([name for name, _ in pairs])
    return dict(pairs)


def chosen_scorer(scoring: Any, name: str) -> Callable[..., Any]:
    """The scorer of ``scoring`` that has the given name, or that gives a dict with it."""
    scorers = _scorers(scoring)
    return known_scorer("scoring", scorers.get(name) or next(iter(scorers.values())))


def one_number(name: str, result: Any) -> float:
    """What a scorer gives, or the entry of that name in a dict of scores."""
    return _number(f"scoring {name!r}", result[name] if isinstance(result, Mapping) else result)


def _check_names(names: list[Any]) -> None:
    if not names:
        raise ValueError("scoring must hold at least one scorer, it is empty")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"scoring must have names that are strings, got {name!r}")
        if names.count(name) > 1:
            raise ValueError(f"scoring has {names.count(name)} scorers of the name {name!r}: give a dict of names")


def _name(scorer: Any) -> Any:
    """The name of a scorer in a list: its own, or that of its metric."""
    if isinstance(scorer, str):
        return scorer
    function = getattr(scorer, "_score_func", scorer)
    return getattr(function, "__name__", type(scorer).__name__)


def _metric(parameter: str, scorer: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> Metric:
    scorer = known_scorer(parameter, scorer)
    weight = sample_weight if takes_weights(scorer) else None

    def metric(model: _Fold, rows: np.ndarray) -> Any:
        weights = {} if weight is None else {"sample_weight": weight[rows]}
        return scorer(model, np.arange(len(rows)), y[rows], **weights)

    return metric


def known_scorer(parameter: str, scorer: Any) -> Callable[..., Any]:
    """The scorer of a name, or the callable as it is; ``parameter`` is what messages call it."""
    if isinstance(scorer, str):
        try:
            return get_scorer(scorer)
        except ValueError as error:
            raise ValueError(
                f"{parameter} {scorer!r} is not the name of a scikit-learn scorer, see "
                "sklearn.metrics.get_scorer_names()"
            ) from error
    if not callable(scorer):
        raise ValueError(f"{parameter} must be the name of a scorer or a scorer, got {scorer!r}")
    if inspect.isfunction(scorer) and scorer.__module__.startswith("sklearn.metrics."):
        name = scorer.__name__
        raise ValueError(f"{parameter} must be a scorer, {name} is a metric: wrap it with sklearn.metrics.make_scorer")
    return scorer


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer takes ``sample_weight``, and has not refused it."""
    if refuses_weights(scorer):
        return False
    metric = getattr(scorer, "_score_func", scorer)
    return "sample_weight" in inspect.signature(metric).parameters


def refuses_weights(scorer: Any) -> bool:
    """Whether metadata routing is on and the scorer was told to get no weights."""
    if not get_config()["enable_metadata_routing"] or not hasattr(scorer, "get_metadata_routing"):
        return False
    return scorer.get_metadata_routing().score.requests.get("sample_weight") is False


def _accuracy(problem: Problem) -> Metric:
    """The default, on numbers of classes: to compare strings would cost more than the rest of a cheap step."""
    weight = problem.sample_weight

    def accuracy(model: _Fold, rows: np.ndarray) -> float:
        right = model.predict_ids(np.arange(len(rows))) == problem.ids[rows]
        return float(np.average(right, weights=None if weight is None else weight[rows]))

    return accuracy


class _Fold(ClassifierMixin, BaseEstimator):
    """What a scorer needs of a model: answers for the held-out rows of one fold, asked for by position."""

    def __init__(self, classes: np.ndarray, values: np.ndarray):
        self.classes = classes
        self.values = values
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> _Fold:
        return self  # scikit-learn takes nothing without it for a model

    def decision_function(self, positions: Iterable[int]) -> np.ndarray:
        n_classes = len(self.classes_)
        values = self.values if n_classes == 2 else self.values.reshape(-1, n_classes)
        return values[np.asarray(positions)]

    def predict_ids(self, positions: Iterable[int]) -> np.ndarray:
        values = self.decision_function(positions)
        return (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)

    def predict(self, positions: Iterable[int]) -> np.ndarray:
        return self.classes_[self.predict_ids(positions)]


class _LogisticFold(_Fold):
    """A fold of a logistic model, of each class against the rest where there are several."""

    _part = LOGISTIC

    def predict_log_proba(self, positions: Iterable[int]) -> np.ndarray:
        return log_probabilities(self.decision_function(positions), self._part)

    def predict_proba(self, positions: Iterable[int]) -> np.ndarray:
        return np.exp(self.predict_log_proba(positions))


class _SoftmaxFold(_LogisticFold):
    """A fold of a multinomial model."""

    _part = SOFTMAX
