"""Fits on a Dask cluster: rows stay on the workers, the optimum and its certificate are those of one machine.

The extra ``hinge[dask]`` brings what is needed. Data are dask arrays cut into chunks of whole rows (SciPy CSR or NumPy
inside), data frames of dask, lists of delayed ``(X, y)`` or ``(X, y, sample_weight)``, lists of paths that the workers
read themselves (block stores and files in svmlight format), or the stream of a :class:`hinge.TableEncoder`: of a data
frame, or of paths of tables that the workers read and encode.
"""

from __future__ import annotations

import math
import time
from typing import Any, Self

import numpy as np
from distributed import Client, default_client

from hinge import _native, _validate
from hinge._dask_exchange import LostShardError, Shards, Traffic, described
from hinge._dask_parts import lazily, loaded, names_of, parts_of, same_kind
from hinge._dask_shards import PartFacts, Setup
from hinge._linear import LinearClassifier
from hinge._options import fit_options
from hinge._progress import announce, reporter
from hinge.logistic import LogisticRegression as PlainLogisticRegression
from hinge.svm import LinearSVC as PlainLinearSVC

__all__ = ["LinearSVC", "LogisticRegression", "LostShardError", "Traffic"]


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
        options = _options(self, given)
        parts = parts_of(X, y, sample_weight)
        data = loaded(client, parts)
        found = described(client, parts, data)
        classes, factors, n_features = _joined([facts for _, facts in found], self.class_weight)
        setup = Setup("", given.C, classes, factors, n_features, options)
        with Shards(client, [part for part, _ in found], setup) as shards:
            del data
            shards.traffic.seconds_loading = time.perf_counter() - start
            result = _native.fit_shards(
                shards,
                shards.facts(),
                len(found),
                n_features,
                len(classes),
                options,
                reporter(self.verbose, "fit"),
            )
        traffic = shards.traffic
        traffic.seconds = time.perf_counter() - start
        announce(self.verbose, traffic.line())
        self.traffic_ = traffic
        self.n_features_in_ = n_features
        self.__dict__.pop("feature_names_in_", None)
        if (names := names_of(X)) is not None:
            self.feature_names_in_ = names
        self._data = None
        self._take(classes, result)
        return self

    def plain(self) -> Any:
        """The same fitted model as an estimator that needs no Dask.

        Returns
        -------
        hinge.LinearSVC or hinge.LogisticRegression
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


def _options(estimator: Any, given: Any) -> dict[str, Any]:
    """The native options; what only fits in memory can do is refused."""
    options = fit_options(given, estimator._loss())
    if getattr(given, "multi_class", "ovr") == "auto":  # over shards each class is learned against the rest
        options = options | {"multi_class": "ovr"}
    refused = {
        "penalty": options["penalty"] is not None,
        "degree": options["map"] is not None,
        "solver": options["solver"] not in ("auto", "newton"),
        "multi_class": options["multi_class"] != "ovr",
        "sparse_coef": getattr(given, "sparse_coef", False),
        "presolve": options["presolve"] == "on",
        "checkpoint": getattr(given, "checkpoint", None) is not None,
        "C": not math.isfinite(given.C),
    }
    for name, is_refused in refused.items():
        if is_refused:
            value = getattr(estimator, name)
            raise ValueError(f"{name}={value!r} is for fits on one machine; on a cluster it must have its default")
    return {**options, "solver": "newton", "map": None, "penalty": None}


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
