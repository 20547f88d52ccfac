"""What the estimators share: validate, call, store."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hinge import (
    _blocks,
    _checks,
    _decisions,
    _declared,
    _labels,
    _model_file,
    _native,
    _penalty,
    _sparse,
    _threads,
    _training_data,
    _validate,
)
from hinge._callbacks import CallbackSupport, FitTask, with_callbacks
from hinge._certificate import Certificate
from hinge._encode_coder import collected
from hinge._fit_rows import FitRows
from hinge._options import fit_options
from hinge._presolve import Presolve
from hinge._progress import reporter
from hinge._raises import raises_as_predictions
from hinge._taken_apart import parts_of
from hinge._versioned import Versioned
from hinge._warn import warn
from hinge.blocks import BlockStore
from hinge.poly2 import pair_table, with_sorted_rows


class LinearClassifier(Versioned, CallbackSupport, ClassifierMixin, BaseEstimator):
    """A linear classifier with certificate; subclasses own the parameters and name the loss."""

    coef_: np.ndarray
    intercept_: np.ndarray
    classes_: np.ndarray
    presolve_: Presolve | None
    _map: dict[str, Any] | None = None
    _data: dict[str, Any] | None = None
    """What :mod:`hinge._training_data` keeps of the rows of a fit; None where there were pieces."""

    _takes_labels = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self._takes_labels
        return tags

    def _loss(self) -> str:
        return self.loss

    def _checked(self) -> Any:
        """Every parameter, checked and as the native module takes it."""
        return _declared.checked(self, vars(self))

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), BlockStore, or EncodedStream
            A store holds its labels and weights, a stream may: y and sample_weight are then None.
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
        given = self._checked()
        options = fit_options(given, self._loss())
        X, y, sample_weight, _ = collected(X, y, sample_weight)
        if isinstance(X, BlockStore):
            return self._fit_store(X, y, sample_weight, given, options)
        if _labels.is_indicator(y):
            return self._fit_labels(X, y, sample_weight, given.C, options)
        checked, y = _validate.fit_data(X, y, self)
        classes, ids = _validate.encode(y)
        weight = _validate.row_weights(checked, classes, ids, self.class_weight, sample_weight)
        task = FitTask(self, X, y, sample_weight=sample_weight)
        self._fit_checked(given.C, checked, classes, ids, weight, options)
        _validate.remember_features(self, X)
        task.end()
        return self

    def _fit_labels(self, X: Any, y: Any, sample_weight: Any, C: float, options: dict[str, Any]) -> Self:
        """Fit several labels per row, each against the rest."""
        if options["solver"] == "crammer_singer":
            raise ValueError("multi_class='crammer_singer' takes one class per row, y is a matrix of labels")
        if getattr(self, "multi_class", None) == "multinomial":
            raise ValueError("multi_class='multinomial' takes one class per row, y is a matrix of labels: use 'auto'")
        if options["map"] is not None:
            raise ValueError("degree must be 1 where y is a matrix of labels, got 2")
        if self.class_weight is not None:
            raise ValueError(
                f"class_weight must be None where y is a matrix of labels, got {self.class_weight!r}: "
                "all labels share the weights of the rows, sample_weight"
            )
        checked = _validate.fit_matrix(X, self)
        rows = _labels.positive_rows(y, checked.shape[0])
        weight = _validate.sample_weights(checked, checked.shape[0], sample_weight)
        if not (weight > 0).any():
            raise ValueError("sample_weight is 0 for every row")
        labels = _labels.names(y, len(rows[0]) - 1)
        task = FitTask(self, X, y, sample_weight=sample_weight)
        self._fit_checked(C, checked, labels, np.empty(0), weight, options, rows)
        _validate.remember_features(self, X)
        self.multilabel_ = "sparse" if sp.issparse(y) else "dense"
        task.end()
        return self

    def _fit_checked(
        self,
        C: float,
        X: Any,
        classes: np.ndarray,
        ids: np.ndarray,
        weight: np.ndarray,
        options: dict[str, Any],
        rows: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Fit on checked input, classes or the positive rows of labels, and set the fitted attributes."""
        report = reporter(self.verbose, "fit")
        if options["map"] is not None:
            X = with_sorted_rows(X)
        fit = _labels.native_fit(ids, len(classes), rows, options)

        def solve(C: float, **changed: Any) -> dict[str, Any]:
            cost, told = _costs(C, weight), options | changed
            return _validate.call_native(lambda matrix: fit(matrix, ids, len(classes), cost, told, report), X)

        result = self._solved(solve, C, FitRows(X, ids, len(classes), weight, rows), options)
        self._take(classes, self._as_asked(result, options))
        self._map = options["map"]
        self._data = _training_data.of_rows(X, ids, len(classes), rows)

    def _as_asked(self, result: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """The result, with sparse weights where a penalty has made zeros and they are asked for."""
        if options["penalty"] is None or not options["sparse_coef"]:
            return result
        return result | {"coef": sp.csr_matrix(result["coef"])}

    def _solved(
        self, solve: Callable[..., dict[str, Any]], C: float, rows: FitRows, options: dict[str, Any]
    ) -> dict[str, Any]:
        """The result of a fit; ``solve`` is the native one of a C, with changed options."""
        return solve(C)

    def _fit_store(self, store: BlockStore, y: Any, sample_weight: Any, given: Any, options: dict[str, Any]) -> Self:
        if y is not None or sample_weight is not None:
            raise ValueError("a BlockStore holds its labels and weights: y and sample_weight must be None")
        task = FitTask(self, store, None)
        self._fit_stored(store, given, options)
        task.end()
        return self

    def _fit_stored(self, store: BlockStore, given: Any, options: dict[str, Any]) -> None:
        """Fit with the estimator's own ``C``."""
        _blocks.refuse_unfit(options)
        blocks = _blocks.options(given.block_options, given.memory_budget, given.checkpoint)
        cost = _blocks.class_costs(store, given.C, self.class_weight)
        self._fit_blocks(store, cost, options, blocks)

    def _fit_blocks(self, store: BlockStore, cost: np.ndarray, options: dict[str, Any], blocks: dict[str, Any]) -> None:
        """Fit with checked options and set the fitted attributes."""
        report = reporter(self.verbose, "fit", options["tol"])
        result = _native.fit_store(store._reader, cost, options, blocks, report)
        self._take(store.classes, self._as_asked(result, options))
        self._map = options["map"]
        self._remember_store(store)

    def _remember_store(self, store: BlockStore) -> None:
        self._data = _training_data.of_store(store)
        self.n_features_in_ = store.n_features
        if store.feature_names is not None:
            self.feature_names_in_ = store.feature_names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _take(self, classes: np.ndarray, result: dict[str, Any]) -> None:
        """Set the fitted attributes."""
        for name in ("stream_", "multilabel_"):  # a fit begins anew
            self.__dict__.pop(name, None)
        self._map = None
        self.classes_ = classes
        self.coef_ = result["coef"]
        self.intercept_ = result["intercept"]
        self.n_iter_ = np.array(result["n_iter"], dtype=np.int64)
        self.certificate_ = Certificate.from_native(result)
        self.presolve_ = None if result["presolve"] is None else Presolve(**result["presolve"])
        if not self.certificate_.converged:
            self._warn_of_status()

    def _warn_of_status(self) -> None:
        """Say that a fit has not converged."""
        worst = float(self.certificate_.relative_gap.max())
        warn(
            f"{type(self).__name__} ended with status {sorted(set(self.certificate_.status))} at a relative "
            f"duality gap of {worst:.2e}, tol is {self.tol:.2e}: raise max_iter or tol, or scale the features",
            ConvergenceWarning,
        )

    def pair_weights(self, pairs: Any = None, *, problem: int = 0) -> np.ndarray:
        """Weights of products of features in the decision function, after a fit with ``degree=2``.

        Parameters
        ----------
        pairs : array-like of int of shape (n_pairs, 2), default=None
            Pairs of columns of X; None for all of them, which hashed weights do not allow.
        problem : int, default=0
            Row of ``coef_``.

        Returns
        -------
        structured ndarray with fields ``i``, ``j`` (``i <= j``) and ``weight``
            The decision value is the sum of ``weight * x_i * x_j`` over all pairs, the linear terms (the first
            n_features weights of ``coef_``, with ``gamma`` times ``sqrt(2 * gamma * coef0)``), the constant feature and
            the intercept. Hashed pairs that share a weight show it each with its own sign.

        Raises
        ------
        ValueError
            A fit without ``degree=2``, pairs of columns that do not exist, all pairs of hashed weights.
        sklearn.exceptions.NotFittedError
            The model is not fitted.
        """
        check_is_fitted(self)
        if self._map is None:
            raise ValueError(f"pair_weights needs a fit with degree=2, {type(self).__name__} has degree=1")
        return pair_table(self.n_features_in_, self._map, self.coef_[problem], pairs)

    @raises_as_predictions
    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance to each class's hyperplane, not divided by the norm of its weights.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
            Values of a store come in the order of its input.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes)
            One column per label where y was a matrix of labels.
        """
        _validate.check_fitted(self)
        if isinstance(X, BlockStore):
            values = self._scores(X).gather(lambda values: values)
            return values.ravel() if values.shape[1] == 1 else values
        return self._decisions(self._prediction_data(X))

    def _prediction_data(self, X: Any) -> Any:
        """X checked as far as :meth:`_decisions` and what is like it do not check it."""
        return _validate.shaped_data(self, X)

    def _decisions(self, X: Any) -> np.ndarray:
        """Decision values of X from :meth:`_prediction_data`."""
        native = self._map
        if native is not None:
            coef = np.ascontiguousarray(self.coef_, dtype=np.float64)
            matrix, threads = _validate.native_matrix(X), _threads.threads(self.n_jobs)
            values = _native.map_decisions(matrix, native, coef, threads) + self.intercept_
        else:
            values = _decisions.decision_values(self, X)
        return values.ravel() if values.shape[1] == 1 else values

    @raises_as_predictions
    def predict(self, X: Any) -> np.ndarray:
        """Most likely class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore

        Returns
        -------
        ndarray of shape (n_samples,)
            Where y was a matrix of labels: a matrix of 0 and 1 of shape (n_samples, n_labels), sparse if y was.
        """
        _validate.check_fitted(self)
        if isinstance(X, BlockStore):
            found = self._scores(X).gather(self._predicted)
            return _labels.of_kind(found, self.multilabel_) if hasattr(self, "multilabel_") else found
        X = self._prediction_data(X)
        if hasattr(self, "multilabel_"):
            return _labels.indicator(self, X)
        if sp.issparse(self.coef_) and len(self.classes_) > 2:
            return self.classes_[_decisions.top_k(self, X, 1)[0].ravel()]
        return self._predicted(self._decisions(X))

    def _predicted(self, values: np.ndarray) -> np.ndarray:
        """The classes, or the 0/1 matrix of labels, that decision values stand for."""
        return _labels.as_indicator(values) if hasattr(self, "multilabel_") else self.classes_[class_ids(values)]

    def _answer_part(self) -> dict[str, Any]:
        """How a class follows from decision values, as :class:`hinge._parts.ModelParts` says it."""
        if hasattr(self, "multilabel_"):
            return {"kind": "labels"}
        return {"kind": "sign" if len(self.classes_) == 2 else "highest"}

    def _probability_part(self) -> dict[str, Any] | None:
        """How probabilities follow from decision values; None where there are none."""
        return None

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: Any = None,
        sparse: str | bool = "auto",
        metadata: dict[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the model to a file that every later version of hinge reads, and any reader of safetensors.

        The file gets its name when it is whole: after a crash there is the old file or the new one. It holds all that
        predictions need, the parameters, the certificate, and a summary and a fingerprint of the training data; not the
        rows at hand of ``partial_fit``, nor the out-of-fold decision values of a search. It is no pickle: to open one
        from anywhere runs no code.

        Parameters
        ----------
        path : path
            The file. A model file that is there is replaced, a file of another kind is not.
        dtype : {"float32", "float64"}, default=None
            Precision of the weights; None keeps it.
        sparse : {"auto", True, False}, default="auto"
            Store the weights that are not 0, or all of them; "auto" as ``coef_`` has them. Predictions of the other
            storage agree up to rounding, those of "auto" to the bit.
        metadata : dict, default=None
            Your own: what JSON can hold, that is dicts with strings for keys, lists, strings, finite numbers, truth
            values and None.
        overwrite : bool, default=False
            Replace whatever file is there.

        Raises
        ------
        FileExistsError
            There is a file of another kind.
        ModelFileError
            The model cannot be written so: weights beyond single precision, sparse weights of a degree-2 map.
        TypeError, ValueError
            Unusable parameters; metadata that JSON cannot hold, with their place.

        See Also
        --------
        hinge.load

        Examples
        --------
        >>> import hinge, os, tempfile
        >>> from sklearn.datasets import make_classification
        >>> X, y = make_classification(n_samples=200, random_state=0)
        >>> model = hinge.LinearSVC().fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.hinge")
        ...     model.save(path, metadata={"author": "me"})
        ...     served = hinge.load(path)
        >>> bool((served.predict(X) == model.predict(X)).all())
        True
        """
        _model_file.save(parts_of(self), path, dtype=dtype, sparse=sparse, metadata=metadata, overwrite=overwrite)

    def save_liblinear(
        self,
        path: str | os.PathLike[str],
        *,
        solver_type: str | None = None,
        labels: Sequence[int] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write a model file of LIBLINEAR, whose ``predict`` then gives the same answers.

        A free intercept becomes ``bias 1`` with the intercept as its weight: LIBLINEAR would train that with a penalty.

        Parameters
        ----------
        path : path
            The file. A model file of LIBLINEAR that is there is replaced, a file of another kind is not.
        solver_type : str, default=None
            The solver that the file names, such as ``"L2R_L2LOSS_SVC"``; None chooses by loss, penalty and
            ``multi_class``.
        labels : sequence of int, default=None
            The order of the classes in the file; None is the one that keeps every answer: of two classes the second
            first, several sorted. Another changes it for rows whose values are exactly equal (of two classes: 0).
        overwrite : bool, default=False
            Replace whatever file is there.

        Raises
        ------
        FileExistsError
            There is a file of another kind.
        ValueError
            What LIBLINEAR has no file for: classes that are no whole numbers, degree 2, several labels per row,
            calibrated probabilities, thresholds, costs of errors.

        See Also
        --------
        hinge.load_liblinear

        Examples
        --------
        >>> import hinge, pathlib, tempfile
        >>> model = hinge.LinearSVC().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "model")
        ...     model.save_liblinear(path)
        ...     print(*path.read_text().splitlines()[:3], sep=", ")
        solver_type L2R_L2LOSS_SVC_DUAL, nr_class 2, label 1 0
        """
        order = None if labels is None else [int(label) for label in labels]
        parts = parts_of(self)
        named = _penalty.liblinear_solver(parts.record) if solver_type is None else solver_type
        _native.save_liblinear(parts.native(), os.fspath(path), named, order, overwrite)

    def sparsify(self) -> Self:
        """Turn ``coef_`` into a CSR matrix, which pays where most weights are 0.

        Predictions go on to work, from the weights that are not 0; those of a :class:`hinge.BlockStore` and
        ``partial_fit`` need :meth:`densify` first.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            The model was fitted with ``degree=2``.

        Examples
        --------
        >>> from hinge import LinearSVC
        >>> from sklearn.datasets import make_classification
        >>> X, y = make_classification(n_samples=200, random_state=0)
        >>> model = LinearSVC().fit(X, y).sparsify()
        >>> type(model.coef_).__name__, type(model.densify().coef_).__name__
        ('csr_matrix', 'ndarray')
        """
        check_is_fitted(self)
        if self._map is not None:
            raise ValueError("sparsify needs a fit with degree=1: weights of pairs of features stay dense, degree is 2")
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Turn a sparse ``coef_`` into an array; the opposite of :meth:`sparsify`.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        coef: Any = self.coef_
        if sp.issparse(coef):
            self.coef_ = coef.toarray()
        return self

    def predict_top_k(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The ``k`` best classes or labels of each row, best first, with their decision values.

        Rows are dealt with in parallel; the decision values of all classes are never held at once, unless the model
        was fitted with ``degree=2``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        k : int, default=5
            At most the number of classes.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Classes, or the labels where y was a matrix of them: column names of a data frame, else column numbers.
        values : ndarray of shape (n_samples, k), float64

        Raises
        ------
        ValueError
            ``k`` out of range, or a model of two classes, which has one decision value for both; unusable X.
        sklearn.exceptions.NotFittedError
            The model is not fitted.
        """
        _validate.check_fitted(self)
        _checks.whole("k", k, 1)
        if self.coef_.shape[0] == 1:
            raise ValueError("predict_top_k needs more than 2 classes or a matrix of labels, the model has one vector")
        if k > len(self.classes_):
            raise ValueError(f"k must be at most the number of classes, {len(self.classes_)}, got {k}")
        X = self._prediction_data(X)
        if self._map is None:
            ids, values = _decisions.top_k(self, X, int(k))
        else:
            values = self._decisions(X)
            ids = np.argsort(-values, axis=1, kind="stable")[:, :k]
            values = np.take_along_axis(values, ids, axis=1)
        return self.classes_[ids], values

    def _scores(self, store: BlockStore) -> _blocks.Scores:
        return _blocks.Scores(store, self, _threads.threads(self.n_jobs))

    @raises_as_predictions
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of rows that are classified correctly.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
        y : array-like of shape (n_samples,), default=None
            Labels; None for a store, which has its own.
        sample_weight : array-like of shape (n_samples,), default=None
            None for a store takes its own weights.

        Returns
        -------
        float
        """
        _sparse.check(y, "y")
        return super().score(X, *self._labelled(X, y, sample_weight))

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Labels and weights to score by: those of a store where none are given."""
        if not isinstance(X, BlockStore):
            return y, sample_weight
        labels, weight = X.labels(n_jobs=self.n_jobs)
        return labels if y is None else y, weight if sample_weight is None else sample_weight


def _costs(C: float, weight: np.ndarray) -> np.ndarray:
    """C times the weight of each row."""
    with np.errstate(over="ignore"):
        cost = C * weight
    if not np.isfinite(cost.sum()):
        raise ValueError(f"C = {C:g} times the weights of all rows is too large: the sum must be finite")
    lost = (weight > 0) & (cost < np.finfo(np.float64).tiny)
    if lost.any():
        row = int(np.flatnonzero(lost)[0])
        raise ValueError(
            f"C = {C:g} times the weight {weight[row]:g} of row {row} is below the range of double precision: "
            "weights must be 0 or larger"
        )
    return cost


def class_ids(values: np.ndarray) -> np.ndarray:
    """The numbers of the classes that decision values stand for."""
    if values.ndim == 1 or values.shape[1] == 1:
        return (values.reshape(-1) > 0).astype(np.intp)
    return values.argmax(axis=1)
