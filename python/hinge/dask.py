"""Fits and searches on a Dask cluster: rows stay on the workers, optimum and certificate are those of one machine.

The extra ``hinge[dask]`` brings what is needed. Data are dask arrays cut into chunks of whole rows (SciPy CSR or NumPy
inside), data frames of dask, lists of delayed ``(X, y)`` or ``(X, y, sample_weight)``, lists of paths that the workers
read themselves (block stores and files in svmlight format), or the stream of a :class:`hinge.TableEncoder`: of a data
frame, or of paths of tables that the workers read and encode.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from distributed import Client, default_client

from hinge import _native, _validate
from hinge._available import available_unless
from hinge._csearch import CSearch
from hinge._dask_exchange import LostShardError, Shards, Traffic, described, workers_of
from hinge._dask_parts import Part, lazily, loaded, names_of, parts_of, same_kind
from hinge._dask_search import ClusterSearch, ShardSearch, borders_of, folds_by_part, gathered, problem_of
from hinge._dask_shards import PartFacts, Setup
from hinge._linear import LinearClassifier
from hinge._loop import Search
from hinge._options import fit_options
from hinge._parameters import SELECT_C
from hinge._plan import Plan
from hinge._problem import Problem
from hinge._progress import announce, reporter
from hinge._searched import SearchedClassifier
from hinge.logistic import LogisticRegression as PlainLogisticRegression
from hinge.logistic import LogisticRegressionCV as PlainLogisticRegressionCV
from hinge.select import asked_of, keep_found, searches_of, set_order
from hinge.svm import LinearSVC as PlainLinearSVC
from hinge.svm import LinearSVCCV as PlainLinearSVCCV

__all__ = [
    "ClusterSearch",
    "LinearSVC",
    "LinearSVCCV",
    "LogisticRegression",
    "LogisticRegressionCV",
    "LostShardError",
    "Traffic",
    "select_C",
]


COPIES = 4
"""Of the rows of a block store: reading them into memory takes three (as blocks, put together, in order), a fit the
rest. 2.9 measured at most, of `contents`, 70 million nonzeros a worker.
"""


class _Distributed(LinearClassifier):
    """What the estimators of this module share, before the plain one in the order of resolution."""

    traffic_: Traffic
    _plain: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Client | None = None) -> Self:
        """Fit the classifier on a cluster.

        Parameters
        ----------
        X : dask array, dask data frame, EncodedStream, or list of parts
            An array of shape (n_samples, n_features), cut into chunks of rows only; or a data frame of numbers; or a
            list of delayed or future ``(X, y)`` or ``(X, y, sample_weight)``; or a list of paths of block stores and
            svmlight files. Or :meth:`hinge.TableEncoder.stream` with a target, of a data frame of dask, of a list of
            paths of tables, or of delayed tables. Every worker must be able to open the paths.
        y : dask array or series, or array-like of shape (n_samples,), default=None
            Class labels, in the partitions of X where it is a frame; None where X is a list or a stream.
        sample_weight : as y, default=None
            Weight 2 equals the row twice, weight 0 the row absent. None where X is a list or a stream.
        client : distributed.Client, default=None
            None takes the current one.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Unusable parameters or input; the message names the part.
        LostShardError
            A worker is gone, and with it the only copy of some rows.
        KeyboardInterrupt
            Ctrl-C; the workers give their memory back, the estimator is left as it was.

        Warns
        -----
        ConvergenceWarning
            As in the plain estimator.
        """
        start = time.perf_counter()
        client = default_client() if client is None else client
        given = self._checked()
        options = _options(given, self._loss(), vars(self))
        parts = parts_of(X, y, sample_weight)
        data = loaded(client, parts)
        found = described(client, parts, data)
        classes, factors, n_features = _joined([facts for _, facts in found], self.class_weight)
        n_lanes = len(classes) if len(classes) > 2 else 1
        setup = Setup("", given.C, classes, factors, n_features, options, n_lanes=n_lanes)
        setup = _placed(client, setup, [facts for _, facts in found], given.memory_budget)
        with Shards(client, [part for part, _ in found], setup) as shards:
            del data
            shards.traffic.seconds_loading = time.perf_counter() - start
            result = self._fitted(shards, setup, checkpoint=given.checkpoint)
        self._take_all(X, classes, result, _ended(shards, start, self.verbose))
        return self

    def _fitted(self, shards: Shards, setup: Setup, scale: float = 1.0, checkpoint: Any = None) -> dict[str, Any]:
        """The native result of a fit at ``scale`` times the costs of the shards."""
        return _native.fit_shards(
            shards,
            shards.facts(),
            setup.n_features,
            len(setup.classes),
            dict(setup.options),
            reporter(self.verbose, "fit"),
            scale,
            checkpoint,
        )

    def _take_all(self, X: Any, classes: np.ndarray, result: dict[str, Any], traffic: Traffic) -> None:
        """Set the fitted attributes."""
        self.traffic_ = traffic
        self.n_features_in_ = result["coef"].shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if (names := names_of(X)) is not None:
            self.feature_names_in_ = names
        self._data = None
        self._take(classes, result)

    def plain(self) -> Any:
        """The same fitted model as an estimator that needs no Dask.

        Returns
        -------
        hinge.LinearSVC, hinge.LogisticRegression, or their forms that choose C
        """
        _validate.check_fitted(self)
        model = self._plain(**self.get_params())
        kept = {name: value for name, value in vars(self).items() if name not in vars(model) and name != "traffic_"}
        vars(model).update(kept)
        return model

    def decision_function(self, X: Any) -> Any:
        """As in the plain estimator; lazy and cut like X where X is a dask array or data frame."""
        if not same_kind(X):
            return super().decision_function(X)
        model = self.plain()
        n_columns = None if len(self.classes_) == 2 else len(self.classes_)
        return lazily(X, model.decision_function, n_columns, np.float64)

    def predict(self, X: Any) -> Any:
        """As in the plain estimator; lazy and cut like X where X is a dask array or data frame."""
        if not same_kind(X):
            return super().predict(X)
        return lazily(X, self.plain().predict, None, self.classes_.dtype)


class _Searched(_Distributed, SearchedClassifier):
    """What the estimators share that choose their own C."""

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, *, client: Client | None = None
    ) -> Self:
        """Choose C on a cluster, then fit on all rows.

        Labels, weights and groups of all rows go to the client, and the decision values of held-out rows, 8 bytes for
        each row and problem at each C; the rows stay on the workers.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`hinge.dask.LinearSVC.fit`; weights are used in training, and in the score where the scorer
            takes weights.
        groups : dask array or series, or array-like of shape (n_samples,), default=None
            Passed to the splitter; rows of one group stay together where ``cv`` is a number.
        client : distributed.Client, default=None
            None takes the current one.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Unusable parameters or input, as in the plain estimator; what a cluster cannot do.
        LostShardError
            A worker is gone, and with it the only copy of some rows.
        TimeoutError
            ``time_limit`` passed before the first value of C was finished.
        KeyboardInterrupt
            Ctrl-C; the workers give their memory back, the estimator is left as it was.

        Warns
        -----
        PartialSearchWarning, NoSkillWarning, ConvergenceWarning, UserWarning
            As in the plain estimator.
        """
        start = time.perf_counter()
        client = default_client() if client is None else client
        given = self._checked()
        self._check_decisions()
        options, plan = _search_options(given, self._loss(), vars(self)), Plan.of(given)
        parts = parts_of(X, y, sample_weight)
        data = loaded(client, parts)
        rows = _Rows.of(client, parts, data, options, given)
        groups = gathered(client, groups)
        set_order(given, groups)
        (search,) = searches_of(self, given, rows.problem, options, plan, groups)
        with rows.shards(client, search) as shards:
            del data
            shards.traffic.seconds_loading = time.perf_counter() - start
            found = rows.on(search, shards).run(keeps_interrupted=False)
            _check_cost(found.C, rows.problem)
            result = self._fitted(shards, rows.setup, found.C)
        self._take_all(X, rows.problem.classes, result, _ended(shards, start, self.verbose))
        keep_found(self, given, rows.problem, found)
        return self


class LinearSVC(_Distributed, PlainLinearSVC):
    """:class:`hinge.LinearSVC` with rows on a Dask cluster.

    The fit is a truncated Newton method whose sums over the rows are made by the workers. Parameters mean what they
    mean there; those of solvers in memory must have their defaults (``solver`` may be "newton"), and ``n_jobs`` is for
    predictions: on the workers a fit takes the threads that they have.

    Attributes
    ----------
    traffic_ : Traffic
        Rounds, bytes and seconds of the fit.
    coef_, intercept_, classes_, certificate_, n_iter_, n_features_in_
        As in :class:`hinge.LinearSVC`; the certificate is computed over all rows.
    """

    _plain = PlainLinearSVC


class LogisticRegression(_Distributed, PlainLogisticRegression):
    """:class:`hinge.LogisticRegression` with rows on a Dask cluster.

    As :class:`hinge.dask.LinearSVC`; more than two classes are each class against the rest.

    Attributes
    ----------
    traffic_ : Traffic
        Rounds, bytes and seconds of the fit.
    coef_, intercept_, classes_, certificate_, n_iter_, n_features_in_
        As in :class:`hinge.LogisticRegression`; the certificate is computed over all rows.
    """

    _plain = PlainLogisticRegression

    def predict_proba(self, X: Any) -> Any:
        """As in the plain estimator; lazy and cut like X where X is a dask array or data frame."""
        if not same_kind(X):
            return super().predict_proba(X)
        return lazily(X, self.plain().predict_proba, len(self.classes_), np.float64)


class LinearSVCCV(_Searched, PlainLinearSVCCV):
    """:class:`hinge.LinearSVCCV` with rows on a Dask cluster: squared hinge, each class against the rest.

    All folds of a search are lanes of the same sums over the rows, up to eight of them (folds times classes). The
    folds are those of the plain estimator on the rows in the order of their parts. Scorers, ``groups``, ``choose``,
    ``refine``, probabilities and thresholds are as in the plain estimator; what a cluster cannot do is refused by name.

    Attributes
    ----------
    C_, search_, Cs_, scores_, calibration_, threshold_
        As in :class:`hinge.LinearSVCCV`.
    traffic_ : Traffic
        Rounds, bytes and seconds of the search and the fit.
    coef_, intercept_, classes_, certificate_, n_iter_, n_features_in_
        As in :class:`hinge.LinearSVC`; the certificate is computed over all rows.
    """

    _plain = PlainLinearSVCCV

    @available_unless(lambda estimator: estimator._no_probabilities())
    def predict_proba(self, X: Any) -> Any:
        """As in the plain estimator; lazy and cut like X where X is a dask array or data frame."""
        if not same_kind(X):
            return super().predict_proba(X)
        return lazily(X, self.plain().predict_proba, len(self.classes_), np.float64)


class LogisticRegressionCV(_Searched, PlainLogisticRegressionCV):
    """:class:`hinge.LogisticRegressionCV` with rows on a Dask cluster: each of more than two classes against the rest.

    As :class:`hinge.dask.LinearSVCCV`.

    Attributes
    ----------
    C_, search_, Cs_, scores_
        As in :class:`hinge.LogisticRegressionCV`.
    traffic_ : Traffic
        Rounds, bytes and seconds of the search and the fit.
    coef_, intercept_, classes_, certificate_, n_iter_, n_features_in_
        As in :class:`hinge.LogisticRegression`; the certificate is computed over all rows.
    """

    _plain = PlainLogisticRegressionCV  # type: ignore[assignment]  # the method is for searches on one machine

    def predict_proba(self, X: Any) -> Any:
        """As in the plain estimator; lazy and cut like X where X is a dask array or data frame."""
        if not same_kind(X):
            return super().predict_proba(X)
        return lazily(X, self.plain().predict_proba, len(self.classes_), np.float64)


def select_C(
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    client: Client | None = None,
    **parameters: Any,
) -> ClusterSearch:
    """Search for ``C`` on a cluster: :func:`hinge.select_C` with rows on the workers.

    Parameters
    ----------
    X, y, sample_weight
        As in :meth:`hinge.dask.LinearSVC.fit`.
    groups : dask array or series, or array-like of shape (n_samples,), default=None
        Passed to the splitter.
    client : distributed.Client, default=None
        None takes the current one.
    **parameters
        Those of :func:`hinge.select_C`, by their names. The loss is the squared hinge, the logistic or modified Huber;
        more than two classes are each against the rest. What a cluster cannot do is refused by name.

    Returns
    -------
    ClusterSearch

    Raises
    ------
    TypeError
        A parameter that there is not.
    ValueError, TimeoutError, LostShardError
        As in :meth:`hinge.dask.LinearSVCCV.fit`.
    KeyboardInterrupt
        Ctrl-C before the first value of C was finished.

    Warns
    -----
    PartialSearchWarning, NoSkillWarning, UserWarning
        As in :func:`hinge.select_C`.
    """
    start = time.perf_counter()
    if unknown := sorted(set(parameters) - set(SELECT_C)):
        raise TypeError(f"select_C has no parameter {unknown[0]!r}")
    client = default_client() if client is None else client
    given, options, plan = asked_of(parameters)
    asked = {name: parameter.default for name, parameter in SELECT_C.items()} | parameters
    options = _search_options(given, given.loss, asked)
    parts = parts_of(X, y, sample_weight)
    data = loaded(client, parts)
    rows = _Rows.of(client, parts, data, options, given)
    search = Search.of(given, rows.problem, options, plan, gathered(client, groups))
    with rows.shards(client, search) as shards:
        del data
        shards.traffic.seconds_loading = time.perf_counter() - start
        found = rows.on(search, shards).run(keeps_interrupted=True)
    kept = {field.name: getattr(found, field.name) for field in fields(CSearch)}
    return ClusterSearch(**kept, traffic=_ended(shards, start, given.verbose))


@dataclass(frozen=True)
class _Rows:
    """The rows of a search: at the client all but their features."""

    parts: list[Part]
    setup: Setup
    problem: Problem
    borders: np.ndarray

    @classmethod
    def of(
        cls, client: Client, parts: Sequence[Part], data: Sequence[Any], options: dict[str, Any], given: Any
    ) -> Self:
        """Ask the workers for labels and weights."""
        found = described(client, parts, data, has_labels=True)
        facts = [facts for _, facts in found]
        _, _, n_features = _joined(facts, None)
        problem, factors = problem_of(facts, given.class_weight)
        setup = Setup("", 1.0, problem.classes, factors, n_features, options, n_lanes=_native.SHARD_LANES)
        setup = _placed(client, setup, facts, given.memory_budget)
        return cls([part for part, _ in found], setup, problem, borders_of(facts))

    def shards(self, client: Client, search: Search) -> Shards:
        """Shards that know the folds of a search."""
        return Shards(client, self.parts, self.setup, folds_by_part(search.folds.splits, self.borders))

    def on(self, search: Search, shards: Shards) -> ShardSearch:
        """The search, over the shards."""
        return ShardSearch(**vars(search), shards=shards, borders=self.borders, n_features=self.setup.n_features)


def _placed(client: Client, setup: Setup, facts: Sequence[PartFacts], memory_budget: int | None) -> Setup:
    """Where the rows of block stores are to be: in the memory of the workers where they have room for all copies that
    loading takes, else on the disk.
    """
    sizes = [part.n_bytes for part in facts]
    workers = workers_of(client).values()
    if memory_budget is None:
        budgets = [(worker["memory_limit"] or math.inf) / 2 for worker in workers]
    else:
        budgets = [memory_budget] * len(workers)
    total = sum(budgets)
    if COPIES * sum(sizes) <= total:
        return setup
    return replace(setup, store_budgets=[int(total * size / sum(sizes)) for size in sizes])


def _ended(shards: Shards, start: float, verbose: int) -> Traffic:
    """What has travelled since ``start``."""
    traffic = replace(shards.traffic, seconds=time.perf_counter() - start)
    announce(verbose, traffic.line())
    return traffic


def _check_cost(C: float, problem: Problem) -> None:
    """Refuse costs that are not finite."""
    with np.errstate(over="ignore"):
        total = C * problem.weight.sum()
    if not np.isfinite(total):
        raise ValueError("C times the weights of all rows is too large: the sum must be finite")


def _options(given: Any, loss: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The native options; what only fits in memory can do is refused, with the values that were ``asked`` for."""
    options = fit_options(given, loss)
    if getattr(given, "multi_class", "ovr") == "auto":  # over shards each class is learned against the rest
        options = options | {"multi_class": "ovr"}
    refused = {
        "penalty": options["penalty"] is not None,
        "degree": options["map"] is not None,
        "multi_class": options["multi_class"] != "ovr" or options["solver"] == "crammer_singer",
        "solver": options["solver"] not in ("auto", "newton"),
        "sparse_coef": options["sparse_coef"],
        "presolve": options["presolve"] == "on",
        "C": not math.isfinite(getattr(given, "C", 1.0)),
    }
    for name, is_refused in refused.items():
        if is_refused:
            value = asked[name]
            raise ValueError(f"{name}={value!r} is for fits on one machine; on a cluster it must have its default")
    return {**options, "solver": "newton", "map": None, "penalty": None}


def _search_options(given: Any, loss: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The native options of a search; what only one machine can do is refused."""
    options = _options(given, loss, asked)
    if loss == "hinge":
        raise ValueError(
            "loss='hinge' has no search on a cluster, whose folds are Newton's side by side: use 'squared_hinge' or "
            "the logistic loss, or search on one machine"
        )
    for name, only in (("keep_coefs", False), ("use_legacy_attributes", None), ("refit", True)):
        if getattr(given, name, only) is not only:
            raise ValueError(f"{name}={asked[name]!r} is for searches on one machine; on a cluster it must be {only}")
    return options


def _joined(facts: list[PartFacts], class_weight: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """Classes, their weights and the number of columns of all parts."""
    if not facts:
        raise ValueError("X has no rows")
    classes = np.unique(np.concatenate([part.classes for part in facts]))
    if len(classes) < 2:
        only = _validate.plain(classes[0])
        raise ValueError(f"y holds one class only ({only}), a classifier needs at least 2 classes")
    totals = np.zeros(len(classes))
    for part in facts:
        totals[np.searchsorted(classes, part.classes)] += part.totals
    if (totals == 0).any():
        missing = _validate.plain(classes[int(np.flatnonzero(totals == 0)[0])])
        raise ValueError(f"class {missing} has no row of positive sample_weight")
    factors = np.ones(len(classes)) if class_weight is None else _validate.class_factors(classes, totals, class_weight)
    return classes, factors, _columns(facts)


def _columns(facts: list[PartFacts]) -> int:
    """The number of columns; files only say which is their last one with an entry."""
    most = max(part.n_features for part in facts)
    for part in facts:
        if part.is_fixed and part.n_features != most:
            other = next(part for part in facts if part.n_features == most)
            raise ValueError(
                f"part {part.number} has {part.n_features} columns, part {other.number} has {other.n_features}: "
                "all parts must have the same"
            )
    return most
