"""``partial_fit``: learning from rows that are seen once."""

from __future__ import annotations

import threading
import weakref
from functools import cached_property
from math import isinf
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hinge import _blocks, _checks, _native, _penalty, _validate
from hinge._available import available_unless
from hinge._linear import LinearClassifier
from hinge._options import fit_options
from hinge._probability import multi_class_of

FREE = 0.0
"""The native name of an intercept that is not penalised."""

DEFAULT_BUDGET = 500_000_000
"""Bytes for weights and rows where ``memory_budget`` is None: a stream runs beside other work, and for long."""

INTERCEPT_SHARE = 8.0
"""Mean squared norm of the first rows by the squared height of the intercept's column. As tall as a row (1), the
intercept follows the imbalance of the last few rows: 0.90 instead of 0.92 of the rows right on noisy data of equal
classes; far lower, it comes too slowly where classes are not."""

_LOCKS: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()

_FIXED = (
    "C",
    "loss",
    "multi_class",
    "solver",
    "fit_intercept",
    "intercept_scaling",
    "class_weight",
    "memory_budget",
    "block_options",
)
"""Parameters that a stream is begun with."""


def _turn(estimator: Any) -> Any:
    """The lock of an estimator: its stream and its weights change, and are pickled, together."""
    with _LOCKS_LOCK:
        return _LOCKS.setdefault(estimator, threading.RLock())


class Stream:
    """What an estimator keeps between calls of ``partial_fit``.

    Attributes
    ----------
    n_seen : int
        Rows learned from.
    n_cached : int
        Rows in memory.
    dual : ndarray of shape (1 or n_classes,)
        Dual value of each binary problem, or of the one of all classes, at all rows seen: no more than its optimum. NaN
        where the stream began at the model of a fit.
    """

    _state: dict[str, Any]

    def __init__(self, n_features: int, cost: np.ndarray, dtype: str, options: dict[str, Any], blocks: dict[str, Any]):
        self._given = (n_features, cost, dtype, options, blocks)
        self._learner = _native.StreamLearner(*self._given)
        self.dtype = dtype
        self.parameters: dict[str, Any] = {}

    @cached_property
    def _learner(self) -> Any:
        """That of a snapshot, made when it is needed."""
        return _native.StreamLearner(*self._given, self._state)

    @property
    def multi_class(self) -> str:
        """What more than two classes of the logistic loss are, whatever "auto" means by now: "multinomial" or "ovr"."""
        _, cost, _, options, _ = self._given
        return multi_class_of({"multi_class": "ovr", **options}, len(cost))

    @property
    def _is_pair(self) -> bool:
        """Whether two classes have a vector of weights each, which sum to zero; their difference is the model's."""
        _, cost, _, options, _ = self._given
        return options["solver"] == "crammer_singer" and len(cost) == 2

    def start_at(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        """Begin at a model instead of zero, as if its rows had been seen and forgotten."""
        if self._is_pair:
            coef, intercept = (np.concatenate([-part, part]) / 2 for part in (coef, intercept))
        n, height = len(coef), self._given[3]["intercept"]
        constants = np.zeros((n, 0)) if height is None else intercept[:, None] / height
        empty = {
            "lens": np.int64,
            "columns": np.int32,
            "values": np.float64,
            "classes": np.uint32,
            "weights": np.float64,
        }
        state: dict[str, Any] = {name: np.zeros(0, dtype=dtype) for name, dtype in empty.items()}
        state |= {"w": list(np.hstack([coef, constants])), "alpha": [np.zeros(0)] * n, "visits": [0] * n}
        state |= {"numbers": [[0.0, np.nan, 0.0, 0.0, 0.0, 0.0]] * n, "bias": height or 0.0}
        self._learner = _native.StreamLearner(*self._given, state | {"seen": 0, "cached": 0, "steps": 0})

    def learn(self, X: Any, ids: np.ndarray, weight: np.ndarray | None, threads: int) -> None:
        """Learn from checked rows."""
        self._learner.learn(_validate.native_matrix(X), ids, weight, threads)

    def model(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts."""
        coef, intercept = self._learner.model()
        return (np.diff(coef, axis=0), np.diff(intercept)) if self._is_pair else (coef, intercept)

    @property
    def n_seen(self) -> int:
        """Rows learned from."""
        return self._learner.facts()[0]

    @property
    def n_cached(self) -> int:
        """Rows in memory."""
        return self._learner.facts()[1]

    @property
    def dual(self) -> np.ndarray:
        """Dual value of each problem."""
        return self._learner.facts()[2]

    def __getstate__(self) -> dict[str, Any]:
        """The rows at hand and all numbers: a pickled stream goes on to the same bits."""
        state = self._learner.state() if "_learner" in self.__dict__ else self._state
        return {"given": self._given, "parameters": self.parameters, "state": state}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Take up what was kept."""
        self._given, self.parameters = kept["given"], kept["parameters"]
        self._learner = _native.StreamLearner(*self._given, kept["state"])
        self.dtype = self._given[2]

    def snapshot(self) -> Stream:
        """The stream of now, to be pickled: learning goes on without it."""
        now, kept = Stream.__new__(Stream), self.__getstate__()
        now._given, now.parameters, now._state = kept["given"], kept["parameters"], kept["state"]
        now.dtype = self.dtype
        return now


def _needs_all_rows(estimator: Any) -> str | None:
    """Why an estimator does not learn from a stream: a search for C, or a penalty other than the squares."""
    if hasattr(estimator, "cv"):
        return "a search for C (cv) needs all rows at once"
    if not _penalty.is_plain(estimator):
        return "penalty='l1' or 'elasticnet', penalty_factors, positive and bounds need all rows at once"
    return None


class StreamClassifier(LinearClassifier):
    """A linear classifier that also learns from streams."""

    stream_: Stream

    @available_unless(_needs_all_rows)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a piece of a stream, in bounded memory for ever (Chang, Roth 2011, section 4).

        New rows get two epochs at once and stay beside a cache of earlier rows. Whenever they have a quarter of the
        entries of the rows before them, all rows at hand are trained: as many visits in all as
        ``block_options["rounds"]`` epochs at each doubling; the paper trains a block when it is full. When the memory
        is full, the rows whose dual variables pull hardest become the new cache. A row that leaves the cache keeps its
        part of the weights for ever and moves no more; a row that comes again counts as a new one. Nothing fades:
        where the law of the data changes, begin anew. The result depends on the order of the rows; the pieces in which
        they come make little difference.

        More than two classes of the logistic loss are one multinomial problem, unless ``multi_class`` is "ovr"; all
        classes of the hinge are one problem where it is "crammer_singer".

        The intercept of a stream is penalised: where ``intercept_scaling`` is None, it is the weight of a constant
        column about a third as tall as the first rows are long.

        Calls from several threads take turns, and so does pickling.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The first piece decides whether values are kept in float32 or float64.
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All labels of the stream; needed in the first call, and may be left out afterwards. An estimator that is
            fitted has them already: the stream goes on from its weights, as if the rows of the fit had been seen and
            forgotten.
        sample_weight : array-like of shape (n_samples,), default=None
            A piece whose weights are all 0 changes nothing.

        Returns
        -------
        self
            With ``coef_`` and ``intercept_`` of now, and ``stream_``: ``n_seen``, ``n_cached`` and ``dual``. There is
            no certificate, since the rows that it would need are gone.

        Raises
        ------
        ValueError
            Unusable input or parameters; ``classes`` missing in the first call, or other ones later; a parameter of the
            stream changed in the middle; ``memory_budget`` (500 MB if None) too small for the weights.
        """
        with _turn(self):
            return self._learn(X, y, classes, sample_weight)

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        given = self._checked()
        options = fit_options(given, self._loss())
        is_first, is_fitted = getattr(self, "stream_", None) is None, hasattr(self, "classes_")
        labels = _validate.classes_of_pieces(self, classes)
        rows, y = _validate.stream_data(X, y, self)
        ids = _validate.encode_among(y, labels)
        weight = None
        if sample_weight is not None:
            weight = _validate.sample_weights(rows, len(ids), sample_weight, all_zero=True)
        stream = self._begin(rows, labels, given, options) if is_first else self._going_on(rows)
        if weight is None or weight.any():
            stream.learn(rows, ids, weight, options["n_threads"])
        if not is_fitted:
            _validate.remember_features(self, X)
        self.stream_, self.classes_, self._data = stream, labels, None
        self.coef_, self.intercept_ = stream.model()
        if self._loss() == "logistic":
            self.multi_class_ = stream.multi_class
        for name in ("certificate_", "presolve_", "n_iter_"):  # those of a fit before
            self.__dict__.pop(name, None)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Weights and stream of the same moment, whatever another thread learns meanwhile."""
        with _turn(self):
            state = super().__getstate__()
            stream = state.get("stream_")
            return state if stream is None else state | {"stream_": stream.snapshot()}

    def _begin(self, X: Any, classes: np.ndarray, given: Any, options: dict[str, Any]) -> Stream:
        if isinstance(self.class_weight, str):
            raise ValueError(
                f'class_weight="{self.class_weight}" needs all labels: a stream takes a dict of weights or None'
            )
        _checks.choice("solver", given.solver, ("auto", "dual_cd"))
        if self.checkpoint is not None:
            raise ValueError("checkpoint must be None for partial_fit: pickle the estimator to keep a stream")
        _blocks.refuse_unfit(options)
        if options["map"] is not None:
            raise ValueError("degree must be 1 for partial_fit, got 2")
        if isinf(given.C):
            raise ValueError("C must be finite for partial_fit, got inf")
        if hasattr(self, "multilabel_") or sp.issparse(getattr(self, "coef_", None)):
            raise ValueError(
                "partial_fit goes on from dense weights of classes, the model has sparse ones (densify() makes them "
                "dense) or labels"
            )
        factor = _validate.class_factors(classes, np.ones(len(classes)), self.class_weight)
        blocks = _blocks.options(given.block_options, given.memory_budget or DEFAULT_BUDGET, None)
        if options["intercept"] == FREE:
            options = options | {"intercept": _intercept_height(X)}
        stream = Stream(X.shape[1], given.C * factor, X.dtype.name, options, blocks)
        stream.parameters = {name: getattr(self, name, None) for name in _FIXED}
        if hasattr(self, "coef_"):
            stream.start_at(self.coef_, self.intercept_)
        return stream

    def _going_on(self, X: Any) -> Stream:
        stream = self.stream_
        for name, value in stream.parameters.items():
            if getattr(self, name, None) != value:
                raise ValueError(f"{name} is {getattr(self, name)!r}, the stream began with {value!r}")
        if stream.dtype == "float32" and X.dtype == np.float64:
            raise ValueError("X has float64 values, the stream began with float32: convert one of them")
        return stream


def _intercept_height(X: Any) -> float:
    X = _validate.summed(X)
    values = X.data[: X.indptr[-1]] if sp.issparse(X) else np.asarray(X)
    with np.errstate(over="ignore"):
        squared = np.square(values, dtype=np.float64).sum()
    if squared == np.inf:  # too large for double precision: the learner refuses the row, and says which limit there is
        return 1.0
    return float(np.sqrt(squared / X.shape[0] / INTERCEPT_SHARE)) or 1.0
