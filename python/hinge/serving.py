"""A fitted model that only predicts: fast for a single row, safe for many threads, and light.

Nothing here imports scikit-learn, SciPy or pandas. Their objects are recognised by what they have, and converted by
themselves.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from hinge import _checks, _explain, _model_file, _native, _penalty, _plain, _threads
from hinge._available import available_unless
from hinge._certificate import Certificate
from hinge._encode_coder import Coder
from hinge._encode_tables import Table, is_table
from hinge._parts import ModelParts
from hinge._products import dense_product, suits_blas
from hinge._rows import features_of, is_ready, native_rows, one_row, result_array

_CLASSES: dict[str, type] = {"Certificate": Certificate}
"""Data classes that the record of a model brings back; the others are there by their names."""

_UNKNOWN = ("error", "ignore")


def _no_probabilities(predictor: Predictor) -> str | None:
    return None if predictor._has_probabilities else "the model has no probabilities"


class Predictor:
    """A fitted model that never changes: any number of threads may use it at once.

    Made by :meth:`of`. Its predictions are those of the estimator, to the bit. Rows may be

    - a CSR matrix, or any other sparse matrix, which is converted; an array of shape (n_samples, n_features); a data
      frame of numbers;
    - one row as a tuple ``(indices, values)`` of its columns and their values, in any order; a column that comes twice
      counts with the sum of its values;
    - one row as a dict ``{name: value}``, where the model knows names of features;
    - where the model has a :class:`TableEncoder`, a table of any kind that it takes, or one row of it as a dict.

    For one row that is given as a tuple or dict there is one answer: a number or label instead of an array of one, an
    array of shape (n_classes,) where a batch has columns.

    One row is answered on the calling thread, which keeps the interpreter for these microseconds. Batches release it,
    and are shared among threads where they are long enough.

    Parameters
    ----------
    parts : ModelParts or NativeModel
        What the model is.
    n_threads : int, default=None
        Threads for a batch; None means all usable cores.
    unknown_names : {"error", "ignore"}, default="error"
        What to do with a name in a dict that the model does not know. An error by default, because a name that is
        spelled otherwise would change the answer without a word; "ignore" is for words that were not in the training
        data.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes or labels, in the order of the columns of probabilities.
    n_features_in_ : int
        Columns of the rows.
    feature_names_in_ : ndarray of shape (n_features,)
        Only where the model was fitted with names.

    Raises
    ------
    ValueError
        Parts that do not fit each other, ``n_threads`` below 1, an unknown choice.

    Examples
    --------
    >>> from hinge import LinearSVC, Predictor
    >>> model = LinearSVC().fit([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [3.0, 0.0]], ["ham", "spam", "ham", "spam"])
    >>> predictor = Predictor.of(model)
    >>> predictor.predict([[0.0, 1.0], [2.0, 0.0]]).tolist()
    ['ham', 'spam']
    >>> print(predictor.predict(([0], [2.0])))
    spam
    """

    __slots__ = (
        "_classes",
        "_coder",
        "_has_labels",
        "_has_probabilities",
        "_head",
        "_ignores",
        "_intercept",
        "_n_features",
        "_n_vectors",
        "_names",
        "_native",
        "_options",
        "_threads",
    )

    _classes: np.ndarray
    _coder: Coder | None
    _has_labels: bool
    _has_probabilities: bool
    _head: ModelParts
    _ignores: bool
    _intercept: np.ndarray
    _n_features: int
    _n_vectors: int
    _names: list[np.ndarray | None]
    _native: _native.NativeModel
    _options: tuple[int | None, str]
    _threads: int

    def __init__(self, parts: Any, *, n_threads: int | None = None, unknown_names: str = "error"):
        native = parts if isinstance(parts, _native.NativeModel) else _native.NativeModel(parts.native())
        _checks.choice("unknown_names", unknown_names, _UNKNOWN)
        head = ModelParts.of_native({**native.head(), "coef": None, "feature_names": None})
        classes = head.classes
        classes.setflags(write=False)
        n_vectors = len(head.intercept)
        record = native.encoder()
        coder = None if record is None else Coder.of_record(record)
        if coder is not None and coder.n_features != head.n_features:
            raise _native.ModelFileError(
                f"encoder: it makes {coder.n_features} columns, the model has {head.n_features}"
            )
        for name, value in {
            "_native": native,
            "_coder": coder,
            "_options": (n_threads, unknown_names),
            "_threads": _threads.threads(None) if n_threads is None else _checks.whole("n_threads", n_threads, 1),
            "_ignores": unknown_names == "ignore",
            "_head": head,
            "_classes": classes,
            "_intercept": head.intercept,
            "_n_features": head.n_features,
            "_n_vectors": n_vectors,
            "_has_labels": head.answer["kind"] == "labels",
            "_has_probabilities": head.probability is not None,
            "_names": [],
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, estimator: Any, *, n_threads: int | None = None, unknown_names: str = "error") -> Self:
        """The predictor of a fitted estimator.

        Parameters
        ----------
        estimator : LinearSVC, LinearSVCCV, LogisticRegression, LogisticRegressionCV, PegasosClassifier, SubgradientSVC
            Fitted; or a pipeline of a :class:`TableEncoder` and one of these. The weights are copied: what happens to
            the estimator later does not concern the predictor.
        n_threads : int, default=None
            Threads for a batch; None means all usable cores.
        unknown_names : {"error", "ignore"}, default="error"
            As for :class:`Predictor`.

        Returns
        -------
        Predictor

        Raises
        ------
        TypeError
            It is no classifier of this package.
        sklearn.exceptions.NotFittedError
            The estimator is not fitted.

        Examples
        --------
        >>> from hinge import LogisticRegression, Predictor
        >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        >>> Predictor.of(model).predict_proba([[3.0]]).tolist() == model.predict_proba([[3.0]]).tolist()
        True
        """
        from hinge._estimator_parts import parts_of  # brings scikit-learn, which made the estimator

        return cls(parts_of(estimator), n_threads=n_threads, unknown_names=unknown_names)

    def with_options(self, *, n_threads: int | None = None, unknown_names: str = "error") -> Predictor:
        """A predictor of the same model, the weights of which are shared, with other options.

        Parameters
        ----------
        n_threads : int, default=None
            Threads for a batch; None means all usable cores.
        unknown_names : {"error", "ignore"}, default="error"
            As for :class:`Predictor`.

        Returns
        -------
        Predictor

        Examples
        --------
        >>> from hinge import LinearSVC, Predictor
        >>> predictor = Predictor.of(LinearSVC().fit([[0.0], [1.0]], [0, 1]))
        >>> predictor.with_options(n_threads=1)
        Predictor(LinearSVC, n_features=1, classes=[0, 1], n_threads=1)
        """
        return type(self)(self._native, n_threads=n_threads, unknown_names=unknown_names)

    def to_estimator(self) -> Any:
        """A fitted estimator of the class that was fitted, which predicts the same to the bit.

        Returns
        -------
        estimator
            Behind its encoder in a pipeline, if it has one. This imports scikit-learn.
        """
        from hinge._estimator_parts import model_of

        return model_of(self._parts())

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: Any = None,
        sparse: str | bool = "auto",
        metadata: dict[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the model to a file, as :meth:`hinge.LinearSVC.save` does.

        Parameters
        ----------
        path : path
            The file; also the one that the model was loaded from.
        dtype : {"float32", "float64"}, default=None
            Precision of the weights; None keeps it.
        sparse : {"auto", True, False}, default="auto"
            Store the weights that are not 0, or all of them; "auto" as they are.
        metadata : dict, default=None
            In place of those that the model has; None keeps them.
        overwrite : bool, default=False
            Replace whatever file is there, not only a model file.

        Raises
        ------
        FileExistsError
            There is a file of another kind.
        ModelFileError
            The model cannot be written so, or the file that it was loaded from is damaged.
        TypeError, ValueError
            Unusable parameters; metadata that JSON cannot hold, with their place.
        """
        options = _model_file.checked_options(dtype, sparse, overwrite)
        text = None if metadata is None else json.dumps(_model_file.checked_metadata(metadata))
        _native.save_model(self._native, os.fspath(path), *options, text)

    @property
    def record(self) -> dict[str, Any]:
        """What is known of the fit; predictions do not depend on it.

        ``estimator``, ``version`` (of hinge), ``label_dtype``, ``parameters``, ``fitted`` (attributes of the
        estimator), ``data`` (sizes, counts of the classes, fingerprint of the training data, versions of the packages),
        ``metadata``. What no file can hold is there by its ``repr``, in an object with the attribute ``text``.
        """
        record = copy.deepcopy(self._head.record)
        for name in ("parameters", "fitted"):
            record[name] = _plain.decode_all(record[name], _CLASSES, name)
        return record

    @property
    def metadata(self) -> dict[str, Any]:
        """The user's own, as they were given to ``save``."""
        return copy.deepcopy(self._head.record["metadata"])

    @property
    def certificate_(self) -> Certificate:
        """The certificate of the fit; an AttributeError where there is none, after ``partial_fit``."""
        encoded = self._head.record["fitted"].get("certificate_")
        if encoded is None:
            raise AttributeError("the model has no certificate_")
        return _plain.decode_all({"certificate_": encoded}, _CLASSES, "fitted")["certificate_"]

    def save_liblinear(
        self,
        path: str | os.PathLike[str],
        *,
        solver_type: str | None = None,
        labels: Sequence[int] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write a model file of LIBLINEAR, whose ``predict`` then gives the same answers.

        Parameters
        ----------
        path : path
            The file. A model file of LIBLINEAR that is there is replaced, a file of another kind is not.
        solver_type : str, default=None
            The solver that the file names; None chooses.
        labels : sequence of int, default=None
            The order of the classes in the file; None is the one that keeps every answer.
        overwrite : bool, default=False
            Replace whatever file is there.

        Raises
        ------
        FileExistsError
            There is a file of another kind.
        ValueError
            What LIBLINEAR has no file for, as :meth:`hinge.LinearSVC.save_liblinear` lists it.
        """
        order = None if labels is None else [int(label) for label in labels]
        named = _penalty.liblinear_solver(self._head.record) if solver_type is None else solver_type
        _native.save_liblinear(self._native, os.fspath(path), named, order, overwrite)

    @property
    def classes_(self) -> np.ndarray:
        """Classes or labels."""
        return self._classes

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._n_features

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, where the model was fitted with names."""
        if not self._names:
            found = self._native.feature_names()
            self._names.append(None if found is None else np.array(found, dtype=object))
        names = self._names[0]
        if names is None:
            raise AttributeError("the model was fitted without names of features, it has no feature_names_in_")
        return names.copy()

    def decision_function(self, X: Any, *, out: np.ndarray | None = None) -> Any:
        """Signed distance to each class's hyperplane, not divided by the norm of its weights.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), tuple or dict
            Rows, or one row: see :class:`Predictor`.
        out : ndarray of float64, default=None
            C-ordered array of the shape of the result, to be written instead of a new one.

        Returns
        -------
        float or ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes) or (n_classes,)
            ``out`` if it was given.

        Raises
        ------
        ValueError
            Another number of features, or other names; columns outside of the matrix, values that are not finite;
            ``out`` of another shape or type.

        Examples
        --------
        >>> from hinge import LinearSVC, Predictor
        >>> model = LinearSVC().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        >>> Predictor.of(model).decision_function(([1, 0], [0.5, 2.0])) == model.decision_function([[2.0, 0.5]])[0]
        np.True_
        """
        if type(X) is tuple and out is None:
            try:
                return self._native.row_decision(*X)
            except TypeError:
                indices, values = one_row(X)
                return self._native.row_decision(indices, values)
        if isinstance(X, (tuple, Mapping)):
            row = self._row(X)
            if out is None:
                return self._native.row_decision(*row)
            self._native.row_decision_into(row[0], row[1], result_array(out, (self._n_vectors,)))
            return out
        rows = self._rows(X)
        n, k = _count(rows), self._n_vectors
        shape = (n,) if k == 1 else (n, k)
        values = np.empty(shape) if out is None else result_array(out, shape)
        self._decide(rows, values.reshape(n, k))
        return values

    def predict(self, X: Any) -> Any:
        """Most likely class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), tuple or dict
            Rows, or one row: see :class:`Predictor`.

        Returns
        -------
        label or ndarray of shape (n_samples,)
            For a model of label matrices a matrix of 0 and 1 of shape (n_samples, n_labels), a SciPy array if the
            training labels were sparse (SciPy is then imported), or an array of shape (n_labels,) for one row.

        Raises
        ------
        ValueError
            As :meth:`decision_function`.

        Examples
        --------
        >>> from hinge import LinearSVC, Predictor
        >>> predictor = Predictor.of(LinearSVC().fit([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"]))
        >>> predictor.predict(([0], [2.0])), predictor.predict([[0.0, 3.0]]).tolist()
        (np.str_('yes'), ['no'])
        """
        if type(X) is tuple and not self._has_labels:
            try:
                return self._classes[self._native.row_class(*X)]
            except TypeError:
                indices, values = one_row(X)
                return self._classes[self._native.row_class(indices, values)]
        if isinstance(X, (tuple, Mapping)):
            row = self._row(X)
            if self._has_labels:
                return (np.atleast_1d(self._native.row_decision(*row)) > 0).astype(np.int64)
            return self._classes[self._native.row_class(*row)]
        rows = self._rows(X)
        if self._has_labels:
            return self._indicator(rows)
        product = self._blas_product(rows)
        if product is not None:
            return self._classes[self._native.classes_of(product)]
        return self._classes[self._native.classes(rows, self._threads)]

    @available_unless(_no_probabilities)
    def predict_proba(self, X: Any, *, out: np.ndarray | None = None) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), tuple or dict
            Rows, or one row: see :class:`Predictor`.
        out : ndarray of float64, default=None
            C-ordered array of the shape of the result, to be written instead of a new one.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_classes,)
            Columns in the order of ``classes_``; ``out`` if it was given.

        Raises
        ------
        ValueError
            As :meth:`decision_function`.
        AttributeError
            The model has no probabilities.

        Examples
        --------
        >>> from hinge import LogisticRegression, Predictor
        >>> predictor = Predictor.of(LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]))
        >>> float(predictor.predict_proba(([0], [3.0])).sum())
        1.0
        """
        return self._probabilities(X, out, False)

    @available_unless(_no_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), tuple or dict
            Rows, or one row: see :class:`Predictor`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_classes,)
            ``-inf`` for a probability of 0.

        Raises
        ------
        ValueError
            As :meth:`decision_function`.
        AttributeError
            The model has no probabilities.
        """
        return self._probabilities(X, None, True)

    def predict_top_k(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The ``k`` best classes or labels of each row, best first, with their decision values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), tuple or dict
            Rows, or one row: see :class:`Predictor`.
        k : int, default=5
            At most the number of classes.

        Returns
        -------
        labels : ndarray of shape (n_samples, k) or (k,)
        values : ndarray of shape (n_samples, k) or (k,), float64

        Raises
        ------
        ValueError
            ``k`` out of range, or a model of one vector of weights; else as :meth:`decision_function`.

        Examples
        --------
        >>> from hinge import LinearSVC, Predictor
        >>> model = LinearSVC().fit([[3.0, 0.0], [0.0, 3.0], [-3.0, -3.0]], ["a", "b", "c"])
        >>> Predictor.of(model).predict_top_k(([0, 1], [2.0, 1.0]), k=2)[0].tolist()
        ['a', 'b']
        """
        _checks.whole("k", k, 1)
        if self._n_vectors == 1:
            raise ValueError("predict_top_k needs more than 2 classes or a matrix of labels, the model has one vector")
        if k > len(self._classes):
            raise ValueError(f"k must be at most the number of classes, {len(self._classes)}, got {k}")
        is_one = isinstance(X, (tuple, Mapping))
        if is_one:
            indices, values = self._row(X)
            rows: Any = (np.array([0, len(indices)], dtype=indices.dtype), indices, values, self._n_features)
        else:
            rows = self._rows(X)
        ids, best = self._native.top_k(rows, int(k), self._threads)
        labels = self._classes[ids]
        return (labels[0], best[0]) if is_one else (labels, best)

    def top_features(self, k: int = 20, *, label: Any = None) -> list[tuple[Any, float]]:
        """The features with the largest weights.

        Parameters
        ----------
        k : int, default=20
        label : object, default=None
            Of more than two classes, or of labels, the one whose weights are asked for; of two classes the weights are
            positive for the second.

        Returns
        -------
        list of (name, weight)
            Largest absolute weight first; names are those of the encoder's columns or of the fit, numbers where there
            are none, as with hashed columns.

        Raises
        ------
        ValueError
            ``k`` below 1; a label that is needed, or not known; a model of degree 2, whose ``pair_weights`` tell.

        Examples
        --------
        >>> from hinge import LinearSVC, Predictor, TableEncoder
        >>> from sklearn.pipeline import make_pipeline
        >>> table = {"pet": ["cat", "dog", "cat", "dog"], "age": [1.0, 2.0, 2.0, 1.0]}
        >>> model = make_pipeline(TableEncoder(numbering="counted"), LinearSVC()).fit(table, [0, 1, 0, 1])
        >>> [name for name, _ in Predictor.of(model).top_features(2)]
        ['pet_cat', 'pet_dog']
        """
        _checks.whole("k", k, 1)
        names = self._native.feature_names() if self._coder is None else self._coder.known_names()
        return _explain.top_features(self._weights_of(label), names, k)

    def explain(self, row: Mapping[str, Any], k: int = 20, *, label: Any = None) -> list[tuple[str, float]]:
        """What the values of a row add to its decision value, for a model with a :class:`TableEncoder`.

        Parameters
        ----------
        row : dict
            A row of the table.
        k : int, default=20
            At most so many.
        label : object, default=None
            As for :meth:`top_features`.

        Returns
        -------
        list of (name, contribution)
            ``column=value`` or ``column=term`` with weight times value, of most effect first. Names that share a hashed
            column share a contribution. All contributions and the intercept sum to the decision value.

        Raises
        ------
        ValueError
            The model has no encoder; else as for :meth:`top_features`.

        Examples
        --------
        >>> from hinge import LinearSVC, Predictor, TableEncoder
        >>> from sklearn.pipeline import make_pipeline
        >>> table = {"pet": ["cat", "dog", "cat", "dog"]}
        >>> model = make_pipeline(TableEncoder(), LinearSVC(C=100.0)).fit(table, ["meows", "barks", "meows", "barks"])
        >>> [(name, value > 0) for name, value in Predictor.of(model).explain({"pet": "cat"})]
        [('pet=cat', True)]
        """
        _checks.whole("k", k, 1)
        if self._coder is None:
            raise ValueError("the model has no encoder of tables, whose names explain a row")
        return _explain.contributions(self._coder.explain(row), self._weights_of(label), k)

    def _weights_of(self, label: Any) -> np.ndarray:
        """The weights of a class or label, one per feature."""
        if self._head.pairs is not None:
            raise ValueError("the model is of degree 2: pair_weights of its estimator tells the weights of pairs")
        if self._n_vectors == 1:
            vector = 0
        else:
            known = self._classes.tolist()
            if label not in known:
                raise ValueError(f"label must be one of {known[:20]}, got {label!r}")
            vector = known.index(label)
        coef = self._native.coef()
        if coef is not None:
            self._native.verify()
            return np.asarray(coef[vector], dtype=np.float64)
        indptr, indices, values = self._parts().coef
        weights = np.zeros(self._n_features)
        span = slice(indptr[vector], indptr[vector + 1])
        weights[indices[span]] = values[span]
        return weights

    def _row(self, X: Any) -> Any:
        """Columns and values of one row."""
        if isinstance(X, tuple):
            return X if is_ready(X) else one_row(X)
        if self._coder is not None:
            return self._coder.row(X)
        return self._native.named_row(X if type(X) is dict else dict(X), self._ignores)

    def _rows(self, X: Any) -> Any:
        """Rows as the native module takes them: an array, or the arrays of a CSR matrix and its number of columns."""
        if self._coder is not None and is_table(X):
            return self._coder.rows(Table(X).batches(), self._threads)
        rows = native_rows(X)
        n_columns = rows.shape[1] if isinstance(rows, np.ndarray) else rows[3]
        if n_columns != self._n_features:
            raise ValueError(
                f"X has {n_columns} features, but {self._head.record['estimator']} is expecting {self._n_features} "
                "features as input"
            )
        names = features_of(X)
        if names is not None:
            self._check_names(names)
        return rows

    def _check_names(self, names: list[Any]) -> None:
        """Refuse a data frame with other columns than the model was fitted with."""
        known = getattr(self, "feature_names_in_", None)
        if known is None:
            return
        for column, (name, fitted) in enumerate(zip(names, known, strict=True)):
            if name != fitted:
                raise ValueError(
                    "The feature names should match those that were passed during fit, in the same order: "
                    f"column {column} of X is {name!r}, in the fit it was {fitted!r}"
                )

    def _decide(self, rows: Any, values: np.ndarray) -> None:
        """Write decision values, a column per vector of weights."""
        if self._blas_product(rows, values) is None:
            self._native.decisions(rows, self._threads, values)

    def _blas_product(self, rows: Any, out: np.ndarray | None = None) -> np.ndarray | None:
        """Decision values of dense rows, where BLAS is better at that; None where it is not."""
        if not isinstance(rows, np.ndarray) or self._head.pairs is not None:
            return None
        coef = self._native.coef()
        if coef is None or not suits_blas(rows, coef):
            return None
        self._native.verify()
        _native.check(rows)
        out = np.empty((len(rows), self._n_vectors)) if out is None else out
        dense_product(rows, coef, self._intercept, out)
        return out

    def _probabilities(self, X: Any, out: np.ndarray | None, logarithms: bool) -> np.ndarray:
        has_labels = self._has_labels
        width = self._n_vectors if has_labels or self._n_vectors > 1 else 2
        if isinstance(X, (tuple, Mapping)):
            found = np.empty(width) if out is None else result_array(out, (width,))
            indices, values = self._row(X)
            self._native.row_probabilities(indices, values, logarithms, found)
            return found
        rows = self._rows(X)
        n = _count(rows)
        shape = (n,) if has_labels and width == 1 else (n, width)
        found = np.empty(shape) if out is None else result_array(out, shape)
        product = self._blas_product(rows)
        if product is None:
            self._native.probabilities(rows, self._threads, logarithms, found.reshape(n, width))
        else:
            self._native.probabilities_of(product, logarithms, found.reshape(n, width))
        return found

    def _indicator(self, rows: Any) -> Any:
        """0 and 1 of labels, in a matrix of the kind that the model was fitted with."""
        indptr, indices = self._native.positive_labels(rows, self._threads)
        shape = (len(indptr) - 1, self._n_vectors)
        if self._head.record["fitted"].get("multilabel_") == "sparse":
            from scipy.sparse import csr_array  # the answer itself is SciPy's

            return csr_array((np.ones(len(indices), dtype=np.int64), indices, indptr), shape=shape)
        found = np.zeros(shape, dtype=np.int64)
        found[np.repeat(np.arange(shape[0]), np.diff(indptr)), indices] = 1
        return found

    def _parts(self) -> ModelParts:
        return ModelParts.of_native(self._native.parts())

    def __reduce__(self) -> Any:
        return _restored, (type(self), self._parts(), *self._options)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Predictor never changes, {name} cannot be set: with_options makes another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Predictor never changes, {name} cannot be deleted")

    def __repr__(self) -> str:
        classes = self._classes.tolist()
        shown = f"{classes}" if len(classes) <= 10 else f"{len(classes)} of them"
        options = "" if self._options[0] is None else f", n_threads={self._options[0]}"
        options += "" if not self._ignores else ", unknown_names='ignore'"
        return f"Predictor({self._head.record['estimator']}, n_features={self._n_features}, classes={shown}{options})"


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    dtype: Any = None,
    sparse: str | bool = "auto",
    metadata: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a fitted model to a file: a classifier, a pipeline of an encoder and a classifier, or a predictor.

    Parameters
    ----------
    model : classifier of hinge, Pipeline, or Predictor
        A pipeline has two steps, a :class:`TableEncoder` and a classifier; the file then takes rows of the table.
    path : path
        The file; a model file that is there is replaced.
    dtype, sparse, metadata, overwrite
        As in :meth:`hinge.LinearSVC.save`.

    Raises
    ------
    FileExistsError
        There is a file of another kind.
    TypeError
        The model is none of these.
    ModelFileError, ValueError
        The model cannot be written so; unusable parameters.

    Examples
    --------
    >>> import hinge, os, tempfile
    >>> from sklearn.pipeline import make_pipeline
    >>> table = {"word": ["spam", "eggs", "spam", None], "price": [1.0, 2.5, 0.5, 3.0]}
    >>> model = make_pipeline(hinge.TableEncoder(), hinge.LinearSVC()).fit(table, ["yes", "no", "yes", "no"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.hinge")
    ...     hinge.save(model, path)
    ...     served = hinge.load(path)
    >>> print(served.predict({"word": "spam", "price": 0.8}))
    yes
    """
    given: dict[str, Any] = {"dtype": dtype, "sparse": sparse, "metadata": metadata, "overwrite": overwrite}
    if isinstance(model, Predictor):
        model.save(path, **given)
        return
    from hinge._taken_apart import parts_of  # brings scikit-learn, which made the model

    _model_file.save(parts_of(model), path, **given)


def load(path: str | os.PathLike[str], *, n_threads: int | None = None, unknown_names: str = "error") -> Predictor:
    """Open a file that ``save`` wrote, ready for predictions, without scikit-learn or SciPy.

    The file holds numbers and text, and to open it runs no code. Files up to 16 MiB are read and checked at once;
    larger ones are mapped into memory, and their weights checked where predictions first use them.

    Parameters
    ----------
    path : path
        Written by this version of hinge or an earlier one. While a large file is open, nobody may write to it in place;
        to ``save`` over it, or to rename another file to its name, is safe.
    n_threads : int, default=None
        Threads for a batch; None means all usable cores.
    unknown_names : {"error", "ignore"}, default="error"
        As for :class:`Predictor`.

    Returns
    -------
    Predictor
        Its ``to_estimator()`` is the fitted estimator.

    Raises
    ------
    ModelFileError
        The file is no model file, a damaged one, or written by a newer version; the message names the field. Damage in
        the weights of a large file is told by the first prediction that needs them.
    OSError
        It cannot be read.

    Examples
    --------
    >>> import hinge, os, tempfile
    >>> model = hinge.LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.hinge")
    ...     model.save(path)
    ...     served = hinge.load(path)
    >>> served.predict([[0.5], [2.5]]).tolist()
    ['low', 'high']
    """
    native = _native.load_model(os.fspath(path))
    try:
        return Predictor(native, n_threads=n_threads, unknown_names=unknown_names)
    except _native.ModelFileError as error:
        raise _native.ModelFileError(f"{os.fspath(path)}, {error}") from None


def _restored(kind: type[Predictor], parts: ModelParts, n_threads: int | None, unknown_names: str) -> Predictor:
    """A predictor from a pickle."""
    return kind(parts, n_threads=n_threads, unknown_names=unknown_names)


def _count(rows: Any) -> int:
    """Number of rows."""
    return len(rows) if isinstance(rows, np.ndarray) else len(rows[0]) - 1
