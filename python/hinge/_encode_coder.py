"""A fitted encoder without scikit-learn: what encodes, in training and in a server, and what is saved.

SciPy is imported by what returns its matrices, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from hinge import _native
from hinge._encode_tables import Table
from hinge._warn import warn


class Coder:
    """A native encoder with what goes around it.

    Parameters
    ----------
    native : TableCoder
    parameters : str
        Those of the encoder that was fitted, in JSON.
    on_change : {"error", "warn"}
    track_drift : bool
    """

    def __init__(self, native: Any, parameters: str, on_change: str, *, track_drift: bool):
        self.native, self.parameters = native, parameters
        self.on_change = on_change
        self.drift = _native.DriftCounts(native) if track_drift else None
        self.warn: Callable[[str, type[Warning]], object] = warn
        self._rows = 0

    @classmethod
    def of_record(cls, record: tuple[Any, ...]) -> Coder:
        """The encoder of :meth:`record`."""
        import json

        try:
            native, parameters = _native.TableCoder.of_record(record)
        except ValueError as error:
            raise _native.ModelFileError(f"encoder: {error}") from None
        given = json.loads(parameters)
        on_change, track = given.get("on_change", "error"), given.get("track_drift", False)
        if on_change not in ("error", "warn") or not isinstance(track, bool):
            raise _native.ModelFileError(
                f"encoder: on_change is 'error' or 'warn', track_drift true or false, not {on_change!r} and {track!r}"
            )
        return cls(native, parameters, on_change, track_drift=track)

    def record(self) -> tuple[Any, ...]:
        """What is saved: head in JSON; bytes of all terms and where they end; factors and edges."""
        return self.native.record(self.parameters)

    def __reduce__(self) -> Any:
        return Coder.of_record, (self.record(),)

    @property
    def n_features(self) -> int:
        """Columns of the result."""
        return self.native.n_features

    @property
    def columns(self) -> list[Any]:
        """Name, kind, type of values, first column of the result, their number, whether missing values have one."""
        return self.native.columns()

    @property
    def reads(self) -> list[str]:
        """The columns of the table that are read."""
        return self.native.reads()

    def names(self) -> list[str]:
        """Names of the columns of the result, when counted."""
        found: list[str] = []
        for k, (name, kind, _, _, width, has_missing) in enumerate(self.columns):
            width -= has_missing
            if kind == "numeric":
                found += (
                    [name] if width == 1 and not self.native.is_binned(k) else [f"{name}_bin{b}" for b in range(width)]
                )
            elif kind in ("text", "tokens"):
                found += [f"{name}__{term}" for term in self.native.terms(k)]
            else:
                found += [f"{name}_{term}".replace("\x1f", " & ") for term in self.native.terms(k)]
            found += [f"{name}_None"] if has_missing else []
        return found

    def known_names(self) -> list[str] | None:
        """The names of the columns of the result, if they have any."""
        return self.names() if self.native.is_counted else None

    def transform(self, batches: Iterable[Any], n_threads: int) -> Any:
        """The rows of some batches, a csr_matrix."""
        from scipy.sparse import csr_matrix

        indptr, indices, values, width = self.rows(batches, n_threads)
        if indptr[-1] < 2**31:
            indptr = indptr.astype(np.int32)  # SciPy keeps both index arrays in one type
        return csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, width), copy=False)

    def rows(self, batches: Iterable[Any], n_threads: int) -> tuple[Any, ...]:
        """The rows of some batches as the native module takes them: ``indptr, indices, values, n_features``."""
        rows = _native.EncodedRows()
        for batch in batches:
            checked = self._checked(batch)
            rows.add(self.native, checked, n_threads, self.drift)
            self._rows += checked.n_rows
        return *rows.take(), self.n_features

    def row(self, row: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Columns and values of one row."""
        return self.native.row(row if type(row) is dict else dict(row), self.on_change == "warn", self.drift)

    def explain(self, row: Mapping[str, Any]) -> list[tuple[str, str, int, float]]:
        """Columns of the table, names, columns of the result and values of one row."""
        return self.native.explain(dict(row), self.on_change == "warn")

    def _checked(self, batch: Any) -> Any:
        """The batch, if it has the columns of the fit; or with what is missing, and a warning."""
        absent = self.native.absent(batch)
        if absent:
            if self.on_change == "error":
                raise ValueError(
                    f"the table has no column {absent[0]!r}, the encoder was fitted with {self.reads}; "
                    "on_change='warn' takes missing columns for missing values"
                )
            self.warn(f"the table has no columns {absent}: they count as missing values", UserWarning)
            batch = batch.with_missing(absent)
        for name, before, now in self.native.type_changes(batch):
            said = f"column {name!r}: each value was {before} in the fit, and is {now} here"
            if self.on_change == "error":
                raise ValueError(f"{said}; on_change='warn' takes it as far as it goes")
            self.warn(said, UserWarning)
        return batch

    def drift_counts(self) -> dict[str, Any]:
        """How many values of each column were unseen, and missing."""
        counts = [] if self.drift is None else self.drift.get()
        found: dict[str, Any] = {"rows": self._rows}
        for (name, *_), (unseen, missing) in zip(self.columns, counts, strict=False):
            found[name] = {"unseen": unseen, "missing": missing}
        return found


class EncodedStream:
    """Rows of a table, encoded while they are asked for; made by :meth:`hinge.TableEncoder.stream`.

    Iterating gives ``(X, y)`` of each batch, ``(X, y, weight)`` with a column of weights, and X alone without a column
    of labels. Groups are for what cross-validates, which collects the stream.
    """

    def __init__(
        self,
        coder: Coder,
        table: Table,
        n_threads: int,
        *,
        target: str | None = None,
        sample_weight: str | None = None,
        groups: str | None = None,
    ):
        self._coder, self._table, self._n_threads = coder, table, n_threads
        self.target, self.sample_weight, self.groups = target, sample_weight, groups
        if sample_weight is not None and target is None:
            raise ValueError("sample_weight needs target: weights without labels are for nobody")

    @property
    def coder(self) -> Coder:
        """What encodes."""
        return self._coder

    @property
    def source(self) -> Any:
        """The table, as it was given."""
        return self._table.source

    @property
    def n_features(self) -> int:
        """Columns of the rows."""
        return self._coder.n_features

    def __iter__(self) -> Iterator[Any]:
        for batch in self._table.batches():
            X = self._coder.transform([batch], self._n_threads)
            if self.target is None:
                yield X
                continue
            item = X, _labels(batch, self.target)
            yield item if self.sample_weight is None else (*item, _weights(batch, self.sample_weight))

    def collect(self) -> tuple[Any, np.ndarray | None, np.ndarray | None, np.ndarray | None]:
        """All rows with their labels, weights and groups, where there are some.

        The table itself is never whole in memory.
        """
        columns = ((self.target, _labels), (self.sample_weight, _weights), (self.groups, _groups))
        pieces: tuple[list[np.ndarray], ...] = ([], [], [])

        def batches() -> Iterator[Any]:
            for batch in self._table.batches():
                for found, (name, values_of) in zip(pieces, columns, strict=True):
                    if name is not None:
                        found.append(values_of(batch, name))
                yield batch

        X = self._coder.transform(batches(), self._n_threads)
        y, weights, groups = (np.concatenate(found) if found else None for found in pieces)
        return X, y, weights, groups


def collected(X: Any, y: Any, sample_weight: Any, groups: Any = None) -> tuple[Any, Any, Any, Any]:
    """Rows, labels, weights and groups, of a stream its own; anything else as it is."""
    if not isinstance(X, EncodedStream):
        return X, y, sample_weight, groups
    given = {"y": (y, X.target), "sample_weight": (sample_weight, X.sample_weight), "groups": (groups, X.groups)}
    for name, (value, own) in given.items():
        if value is not None and own is not None:
            raise ValueError(f"{name} must be None: the stream has its own, the column {own!r}")
    rows, *found = X.collect()
    kept = (value if own is None else own for (value, _), own in zip(given.values(), found, strict=True))
    return rows, *kept


def _all_there(batch: Any, name: str, what: str) -> np.ndarray:
    values = batch.values(name)
    if None in values:
        raise ValueError(f"column {name!r}, row {batch.first_row + values.index(None)}: the {what} is missing")
    return np.array(values)


def _labels(batch: Any, name: str) -> np.ndarray:
    return _all_there(batch, name, "label")


def _groups(batch: Any, name: str) -> np.ndarray:
    return _all_there(batch, name, "group")


def _weights(batch: Any, name: str) -> np.ndarray:
    try:
        return np.array(batch.values(name), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r}: weights are numbers, {error}") from None
