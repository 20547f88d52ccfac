"""From a table to rows of a sparse matrix, the same in training and in serving."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hinge import _encode_columns, _encode_fit, _threads
from hinge._available import available_unless
from hinge._declared import checked, declared, keep
from hinge._encode_coder import Coder, EncodedStream
from hinge._encode_tables import Table, is_dask_frame
from hinge._native import ModelFileError
from hinge._parameters import TABLE_ENCODER
from hinge._versioned import Versioned


def _has_no_names(encoder: TableEncoder) -> str | None:
    if encoder.numbering == "counted":
        return None
    return "hashed columns have no names, those of numbering='counted' have; explain_row() gives the names in a row"


@declared(TABLE_ENCODER)
class TableEncoder(Versioned, TransformerMixin, BaseEstimator):
    """Columns of a table as rows of a sparse matrix: numbers, categories, tokens, texts, crosses.

    The work is done in parallel and compiled; columns, values and names are those of scikit-learn's encoders, in single
    precision. The same object encodes a table on disk in bounded memory, one dict in a server, and is saved with the
    model by :func:`hinge.save`.

    A table is a data frame (polars, pandas, dask), any object with ``__arrow_c_stream__`` or ``__arrow_c_array__``
    (pyarrow, DuckDB), a dict of columns, an iterable of dicts or of tables, or the path of a .parquet, .csv, .jsonl,
    .arrow or .feather file (which needs pyarrow).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    n_features_out_ : int
        Columns of the result.
    n_features_in_ : int
        Columns of the table that are read.
    feature_names_in_ : ndarray of str
        Their names.
    kinds_ : dict
        The kind of each column, and in words where it was not given.
    drift_ : dict
        With ``track_drift``, after ``transform``: ``rows``, and by column how many values were ``unseen`` (categories
        or terms that were not there in the fit; hashed names never are) and ``missing``.

    Raises
    ------
    ValueError
        In ``fit`` and ``transform``: a value that its column cannot have, with column and row; a column that is not
        there.

    References
    ----------
    Weinberger, Dasgupta, Langford, Smola, Attenberg: Feature Hashing for Large Scale Multitask Learning, ICML 2009.

    Examples
    --------
    >>> from hinge import TableEncoder
    >>> table = {"carrier": ["AA", "DL", None], "review": ["good, not great", "great", "late again"]}
    >>> encoder = TableEncoder({"carrier": "categorical", "review": "text"}, numbering="counted").fit(table)
    >>> encoder.get_feature_names_out()[:5].tolist()
    ['carrier_AA', 'carrier_DL', 'carrier_None', 'review__again', 'review__good']
    >>> encoder.transform([{"carrier": "DL", "review": "great"}]).toarray().tolist()
    [[0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        columns: Any = "auto",
        *,
        numbering: str = "hashed",
        n_features: int = 1 << 20,
        alternate_sign: bool = True,
        missing: str = "own",
        remainder: str = "drop",
        on_change: str = "error",
        track_drift: bool = False,
        sparse_output: bool = True,
        n_jobs: int | None = None,
    ):
        keep(locals())

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what columns hold.

        Parameters
        ----------
        X : table
            When hashed, without scales and bins, only its first rows are looked at.
        y : ignored

        Returns
        -------
        self
        """
        self._fit(Table(X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_matrix | np.ndarray:
        """Learn what columns hold, and encode them.

        Parameters
        ----------
        X : table
            When counted it is read twice; what can be read but once, an iterator, is held in memory meanwhile.
        y : ignored

        Returns
        -------
        csr_matrix of shape (n_rows, n_features_out), float32
            As :meth:`transform`.
        """
        table = Table(X)
        table.hold()
        self._fit(table)
        return self._transformed(table)

    def transform(self, X: Any) -> sp.csr_matrix | np.ndarray:
        """Encode the rows of a table.

        Parameters
        ----------
        X : table

        Returns
        -------
        csr_matrix of shape (n_rows, n_features_out), float32
            Columns ascending within a row, each once. With ``sparse_output=False`` an ndarray. Of a data frame of dask
            a lazy array, a chunk for each partition, without ``drift_``: the values are counted by nobody.
        """
        check_is_fitted(self)
        return self._transformed(Table(X))

    def stream(
        self, source: Any, *, target: str | None = None, sample_weight: str | None = None, groups: str | None = None
    ) -> EncodedStream:
        """The rows of a table, encoded batch after batch while they are asked for.

        Parameters
        ----------
        source : table
            Anything but an iterator can be read again. The estimators of :mod:`hinge.dask` take streams of data frames
            of dask, and of lists of paths or of delayed tables, which the workers read and encode.
        target : str, default=None
            The column of labels.
        sample_weight : str, default=None
            The column of weights.
        groups : str, default=None
            The column of groups, whose rows cross-validation keeps together: for the estimators that choose C, and
            :func:`hinge.select_C`. Block stores keep none.

        Returns
        -------
        EncodedStream
            Iterate it for batches; give it to :meth:`hinge.BlockStore.build`, or to ``fit`` of a classifier in the
            place of X.

        Examples
        --------
        >>> from hinge import LinearSVC, TableEncoder
        >>> table = {"word": ["yes", "no", "yes", "no"], "label": [1, 0, 1, 0]}
        >>> encoder = TableEncoder({"word": "categorical"}).fit(table)
        >>> model = LinearSVC().fit(encoder.stream(table, target="label"))
        >>> model.predict(encoder.transform([{"word": "yes"}])).tolist()
        [1]
        """
        check_is_fitted(self)
        columns = {"target": target, "sample_weight": sample_weight, "groups": groups}
        for name, value in columns.items():
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} must be the name of a column of the table or None, got {type(value).__name__}")
        return EncodedStream(self._coder, Table(source), self._threads(), **columns)

    @available_unless(_has_no_names)
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of the result, when counted.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str, shape (n_features_out,)
            ``carrier_AA`` for a category and ``carrier_None`` for missing values, the name itself for numbers and
            ``distance_bin3`` for bins, ``review__good`` for terms.
        """
        check_is_fitted(self)
        return np.array(self._coder.names(), dtype=object)

    def explain_row(self, row: Mapping[str, Any]) -> list[tuple[str, str, int, float]]:
        """What a row becomes, by the names in it.

        Parameters
        ----------
        row : dict
            A value for each column of the table.

        Returns
        -------
        list of (column, name, index, value)
            The column of the table, the category or term (a number stands for itself), the column of the result and
            its value there. Terms that share a hashed column have its value each.

        Examples
        --------
        >>> from hinge import TableEncoder
        >>> encoder = TableEncoder({"pet": "categorical"}).fit({"pet": ["cat"]})
        >>> encoder.explain_row({"pet": "dog"})
        [('pet', 'dog', 599076, -1.0)]
        """
        check_is_fitted(self)
        return self._coder.explain(row)

    def _fit(self, table: Table) -> None:
        given = checked(self, vars(self))
        columns = _encode_columns.check_columns(given.columns, given.numbering, given.missing)
        dropped = set() if columns is None else set(given.columns) - set(columns)
        options = {
            "numbering": given.numbering,
            "n_features": given.n_features,
            "alternate_sign": given.alternate_sign,
            "missing": given.missing,
            "remainder": given.remainder,
            "dropped": dropped,
        }
        if given.numbering == "counted":
            table.hold()
        native, found, guesses = _encode_fit.fit_columns(table, columns, options, self._threads())
        self._coder = Coder(native, self._parameters_json(), given.on_change, track_drift=given.track_drift)
        self.kinds_ = {
            name: column.kind if name not in guesses else f"{column.kind}: {guesses[name]}"
            for name, column in found.items()
        }
        self._set_fitted()

    def _set_fitted(self) -> None:
        self.n_features_out_ = self._coder.n_features
        self.feature_names_in_ = np.array(self._coder.reads, dtype=object)
        self.n_features_in_ = len(self._coder.reads)

    def _transformed(self, table: Table) -> Any:
        if is_dask_frame(table.source):
            from hinge._dask_tables import encoded

            return encoded(self._coder, table.source, is_sparse=self.sparse_output)
        X = self._coder.transform(table.batches(), self._threads())
        if self._coder.drift is not None:
            self.drift_ = self._coder.drift_counts()
        return X if self.sparse_output else X.toarray()

    def _threads(self) -> int:
        return _threads.threads(self.n_jobs)

    def _parameters_json(self) -> str:
        """The parameters, for the record of the model file."""
        return json.dumps({name: _plain(value) for name, value in self.get_params(deep=False).items()})

    @classmethod
    def _of_coder(cls, coder: Coder) -> Self:
        """The fitted encoder of a saved one."""
        try:
            encoder = cls(**json.loads(coder.parameters))
        except TypeError as error:
            raise ModelFileError(f"encoder: its parameters are damaged: {error}") from None
        encoder._coder = coder
        encoder.kinds_ = {name: kind for name, kind, *_ in coder.columns}
        encoder._set_fitted()
        return encoder

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_coder")


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
