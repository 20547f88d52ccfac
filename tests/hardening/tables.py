"""Hostile tables: damaged files, dicts and frames with wrong values, damaged encoders: an answer or one clear error.

Usage: ``python tests/hardening/tables.py [--cases 20000] [--seed 0] [--only WAY] [--messages]``. A case takes a small
table of six columns (strings, whole numbers, numbers, truth values, lists of strings, texts) and an encoder that was
fitted on a sound one, and spoils something: bytes of a Parquet, CSV, JSON lines or Arrow file; values, types, lengths
and names in a dict of columns, in dicts of rows, in frames of pandas, polars and pyarrow; the record of an encoder,
which is then saved with right checksums; bytes of a model file. It goes into ``transform``, ``stream``, a fit, or a
predictor. There must be an error that says what is wrong, or an answer, and the answer must be that of a twin: a file's
that of its values as Python has them; a batch's that of its rows one by one; columns that nobody spoiled give what they
gave; an altered model file answers as the whole one does, or not at all.

Cases run in child processes of 3 GB, 20 seconds at most for each. Where one dies or hangs over a file or a frame, it is
read or made without this package in another process: if that dies too, it is counted apart, as pyarrow's.
"""

import contextlib
import gzip
import io
import json
import os
import re
import tempfile
import time
import warnings
from collections import UserDict
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path

os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # others reserve more than a child may have
os.environ["OMP_NUM_THREADS"] = "1"

import hinge
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet
import scipy.sparse as sp
from children import Run, asked_for, ends, load_all_names, words_of
from hinge import _native
from hinge._encode_coder import Coder
from hinge._estimator_parts import parts_of
from sklearn.pipeline import make_pipeline

NAMES = re.compile(
    r"column|table|encoder|cannot be read|checksum|model file|the head|a row|rows before|no term|pyarrow|Arrow|"
    r"classes|class |features|array of numbers|tensor|cut off|weights|label|samples|record|damaged|hinge model|"
    r"2D array|metadata|n_jobs"
)
CITIES = ["Oslo", "Rome", "Bern", "São Paulo", "", "東京", "a b"]
WORDS = ["good", "bad", "late", "Straße", "ΣΑΣ", "naïve", "x", "never", "again", "été"]
SUFFIXES = [".parquet", ".csv", ".csv.gz", ".jsonl", ".arrow", ".feather"]
NUMBERS = [0, 1, 127, 128, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]


def sound(random, n):
    """A table with nothing wrong: lists by the names of columns."""

    def some(values, share=0.1):
        return [None if random.random() < share else value for value in values]

    return {
        "city": some([CITIES[k] for k in random.integers(len(CITIES), size=n)]),
        "size": random.integers(-3, 12, n).tolist(),
        "price": some((random.integers(-40, 400, n) / 8).tolist()),
        "late": (random.random(n) < 0.5).tolist(),
        "tags": some([[WORDS[k] for k in random.integers(4, size=random.integers(0, 4))] for _ in range(n)]),
        "review": [
            " ".join(WORDS[k] for k in random.integers(len(WORDS), size=random.integers(0, 9))) for _ in range(n)
        ],
    }


def kinds(random, is_counted):
    """What an encoder is told of the columns."""

    def one(*choices):
        return choices[random.integers(len(choices))]

    unknown = one("ignore", "ignore", "error")
    found = {
        "city": {"kind": "categorical", "handle_unknown": unknown},
        "size": one("numeric", "categorical", {"kind": "numeric", "bins": 4}, {"kind": "numeric", "scale": "standard"}),
        "price": one("numeric", "categorical", {"kind": "numeric", "scale": "maxabs"}, {"kind": "numeric", "bins": 3}),
        "late": one("numeric", "categorical"),
        "tags": {"kind": "tokens", "binary": one(True, False), "norm": one(None, "l1", "l2")},
        "review": {
            "kind": "text",
            "analyzer": one("word", "word", "char", "char_wb"),
            "ngrams": one((1, 1), (1, 2), (2, 3)),
            "lowercase": one(True, False),
            "sublinear_tf": is_counted and one(True, False),
        },
        "pair": {"kind": "cross", "columns": one(["city", "size"], ["late", "size", "price"])},
    }
    dropped = [name for name in found if random.random() < 0.2]
    if len(dropped) < len(found):
        for name in dropped:
            del found[name]
    return found


@dataclass
class Fitted:
    """An encoder, its predictor, and both in a file."""

    options: dict
    encoder: object
    predictor: object
    pipeline: object
    file: bytes

    @property
    def is_lenient(self):
        return self.options["on_change"] == "warn"


class Shelf:
    """Fitted encoders by number, made when they are asked for."""

    def __init__(self, n):
        self.made = [None] * n

    def draw(self, random):
        """One of them."""
        k = int(random.integers(len(self.made)))
        if self.made[k] is None:
            self.made[k] = self._make(np.random.default_rng((7, k)))
        return self.made[k]

    @staticmethod
    def _make(random):
        table = sound(random, 150)
        numbering = ["hashed", "counted"][random.integers(2)]
        options = {
            "columns": kinds(random, numbering == "counted"),
            "numbering": numbering,
            "n_features": int(2 ** random.integers(3, 14)),
            "missing": ["own", "zero"][random.integers(2)],
            "on_change": "warn" if random.random() < 0.25 else "error",
            "track_drift": bool(random.random() < 0.3),
            "n_jobs": 1,
        }
        encoder = hinge.TableEncoder(**options)
        y = [price is not None and price > 20 for price in table["price"]]
        model = hinge.LinearSVC(n_jobs=1, max_iter=50, tol=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipeline = make_pipeline(encoder, model).fit(table, y)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            hinge.save(pipeline, path)
            file = path.read_bytes()
        return Fitted(options, encoder, hinge.Predictor.of(pipeline, n_threads=1), pipeline, file)


SHELF = Shelf(40)


class Wrong(Exception):  # noqa: N818
    """The answer is wrong."""


def require(holds, what):
    if not holds:
        raise Wrong(what)


# Damaged files.


def mutated(random, data, other):
    """Bytes with up to four things changed."""
    data = bytearray(data)
    for _ in range(random.integers(1, 5)):
        n = len(data)
        if n < 8:
            break
        # Everywhere, or near the end or the beginning, where formats say what follows.
        place = random.choice([0, 0, 1, 2])
        at = int([random.integers(n), n - 1 - random.integers(max(n // 8, 1)), random.integers(max(n // 16, 1))][place])
        length = int(min(random.integers(1, 33), n - at))
        what = random.integers(8)
        if what <= 1:
            data[at] ^= 1 << random.integers(8)
        elif what == 2:
            data[at] = random.integers(256)
        elif what == 3:
            width = int(random.choice([1, 2, 4, 8]))
            data[at : at + width] = (NUMBERS[random.integers(len(NUMBERS))] % 256**width).to_bytes(width, "little")
        elif what == 4:
            del data[at : at + length]
        elif what == 5:
            to = int(random.integers(n))
            data[to:to] = data[at : at + length]
        elif what == 6:
            start = int(random.integers(len(other)))
            data[at : at + length] = other[start : start + length]
        else:
            del data[at if random.random() < 0.5 else n - length :]
    return bytes(data)


def arrow_table(random, table):
    """A table of pyarrow; the types of its columns vary."""
    arrays = {name: pa.array(values) for name, values in table.items()}
    varied = {
        "city": [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.binary()],
        "size": [pa.int64(), pa.int32(), pa.int8(), pa.float64()],
        "price": [pa.float64(), pa.float32()],
        "tags": [pa.list_(pa.string()), pa.large_list(pa.string())],
        "review": [pa.string(), pa.large_string()],
    }
    for name, types in varied.items():
        kind = types[random.integers(len(types))]
        try:
            arrays[name] = arrays[name].cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            arrays[name] = pa.array(table[name], kind)
    return pa.table(arrays)


def written(random, table, suffix):
    """The bytes of a file of the table."""
    out = io.BytesIO()
    if suffix == ".jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows_of(table)).encode()
    frame = arrow_table(random, table)
    rows = [None, 7, 20][random.integers(3)]
    if suffix == ".parquet":
        for name in ("city",):  # Parquet has no views
            if frame.schema.field(name).type == pa.string_view():
                frame = frame.set_column(0, name, frame[name].cast(pa.string()))
        pa.parquet.write_table(
            frame,
            out,
            row_group_size=rows,
            compression=["none", "snappy", "zstd", "gzip"][random.integers(4)],
            use_dictionary=bool(random.integers(2)),
            version=["1.0", "2.6"][random.integers(2)],
            data_page_version=["1.0", "2.0"][random.integers(2)],
            write_page_checksum=bool(random.integers(2)),
        )
    elif suffix in (".csv", ".csv.gz"):
        plain = pa.table({name: table[name] for name in table if name != "tags"})
        pa.csv.write_csv(plain, out)
        if suffix == ".csv.gz":
            return gzip.compress(out.getvalue(), 1, mtime=0)
    elif suffix == ".feather" and frame.schema.field("city").type != pa.string_view():
        pa.feather.write_feather(frame, out, compression=["lz4", "zstd", "uncompressed"][random.integers(3)])
    else:
        opened = pa.ipc.new_file if random.random() < 0.5 else pa.ipc.new_stream
        with opened(out, frame.schema) as writer:
            writer.write_table(frame, max_chunksize=rows)
    return out.getvalue()


def spoiled_text(random, data):
    """Text with fields and lines changed, for what is read by lines."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(random.integers(1, 4)):
        k = int(random.integers(len(lines)))
        fields = re.split(r"(,|: )", lines[k])
        at = int(random.integers(len(fields)))
        what = random.integers(7)
        if what <= 2:
            fields[at] = str(
                [
                    "",
                    "null",
                    "NaN",
                    "1e999",
                    "-7",
                    "2.5",
                    "true",
                    '"',
                    "x\0y",
                    "18446744073709551616",
                    "2020-01-01",
                    "[1, 2]",
                    '["a", null]',
                    "{}",
                    "\udcff",
                    "{",
                    '"\\ud800"',
                ][random.integers(17)]
            )
            lines[k] = "".join(fields)
        elif what == 3:
            lines[k] = "".join(fields[:at])
        elif what == 4:
            lines[k] = lines[k] + "," + fields[at]
        elif what == 5:
            lines.insert(k, lines[random.integers(len(lines))])
        else:
            other = int(random.integers(len(lines)))
            lines[k], lines[other] = lines[other], lines[k]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def file_case(random, folder):
    """A damaged file; its path."""
    suffix = SUFFIXES[random.integers(len(SUFFIXES))]
    data = written(random, sound(random, int(random.integers(1, 40))), suffix)
    if random.random() < 0.95:
        if suffix in (".csv", ".jsonl") and random.random() < 0.7:
            data = spoiled_text(random, data)
        else:
            data = mutated(random, data, written(random, sound(random, 9), suffix))
    path = folder / ("table" + suffix)
    path.write_bytes(data)
    return path


def plain(path):
    """The columns of a file as Python's values; None where names come twice."""
    from hinge._encode_tables import _file_batches

    table = {}
    for batch in _file_batches(str(path)):
        if len(set(batch.schema.names)) < len(batch.schema.names):
            return None
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            table.setdefault(name, []).extend(column.to_pylist())
    return table


def file_way(random, folder):
    """A damaged file into an encoder, a stream, a fit or a predictor."""
    return spread(random, file_case(random, folder), plain)


# Wrong values.


def hostile_value(random):
    """A value that hardly belongs into a table."""
    return [
        lambda: "\ud800",
        lambda: "x" * int(random.integers(1, 3000)),
        lambda: "nul\0nul",
        lambda: b"\xff\xfe",
        lambda: b"bytes",
        lambda: bytearray(b"ab"),
        lambda: 2**63,
        lambda: -(2**200),
        lambda: 2**53 - 1,
        lambda: float("nan"),
        lambda: float("inf"),
        lambda: 1e308,
        lambda: 5e-324,
        lambda: -0.0,
        lambda: 1e39,
        lambda: True,
        lambda: None,
        lambda: 3,
        lambda: 2.5,
        lambda: "3",
        lambda: "",
        list,
        lambda: ["a", None],
        lambda: [1, 2],
        lambda: ("a", "b"),
        lambda: ["\udfff"],
        lambda: [["a"]],
        lambda: {"a": 1},
        lambda: {"a", "b"},
        lambda: object(),
        lambda: date(2020, 1, 1),
        lambda: Decimal("1.5"),
        lambda: 1j,
        lambda: np.float32(0.1),
        lambda: np.int8(5),
        lambda: np.uint64(2**63),
        lambda: np.bool_(True),
        lambda: np.str_("Oslo"),
        lambda: np.datetime64("2020-01-01"),
        lambda: np.array(["a", "b"]),
        lambda: np.array([1.0]),
        lambda: np.float16("nan"),
        lambda: pd.NA,
        lambda: pd.NaT,
        lambda: range(3),
        lambda: Ellipsis,
    ][random.integers(46)]()


def hostile_array(random, values):
    """A column as an array of some kind; None where there is none of it."""
    kind = [
        "f2",
        "f4",
        "f8",
        "g",
        "i1",
        "i4",
        "u1",
        "u8",
        ">f8",
        ">i4",
        "?",
        "O",
        "U9",
        "S5",
        "c16",
        "M8[s]",
        "strided",
        "square",
        "readonly",
        "tuple",
        "generator",
        "text",
        "none",
        "masked",
        "scalar",
        "series",
    ][random.integers(26)]
    try:
        with np.errstate(all="ignore"):
            return {
                "strided": lambda: np.repeat(np.array(values), 2)[::2],
                "square": lambda: np.array([values, values]).T,
                "readonly": lambda: np.array(values),
                "tuple": lambda: tuple(values),
                "generator": lambda: iter(values),
                "text": lambda: "text",
                "none": lambda: None,
                "masked": lambda: np.ma.array(values, mask=[k % 2 for k in range(len(values))]),
                "scalar": lambda: np.array(3.0),
                "series": lambda: pd.Series(values),
            }.get(kind, lambda: np.array(values).astype(kind))()
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return values


def hostile_columns(random, table):
    """The table with columns spoiled, and the names of those that are as they were."""
    table, intact = dict(table), set(table)
    for _ in range(random.integers(1, 4)):
        name = list(table)[random.integers(len(table))]
        values = table[name]
        what = random.integers(12)
        if what <= 5 and isinstance(values, list) and values:
            values = list(values)
            for _ in range(random.integers(1, 4)):
                values[random.integers(len(values))] = hostile_value(random)
            table[name] = values
        elif what == 6 and isinstance(values, list):
            table[name] = values[: random.integers(len(values) + 1)]
        elif what == 7 and isinstance(values, list):
            table[name] = values + values[:1]
        elif what == 8 and isinstance(values, list):
            table[name] = hostile_array(random, values)
        elif what == 9:
            del table[name]
        elif what == 10:
            table[["City", "\ud800", 7, None, "city\0", "size "][random.integers(6)]] = table.pop(name)
        else:
            other = list(table)[random.integers(len(table))]
            table[name], table[other] = table[other], table[name]
            intact.discard(other)
        intact.discard(name)
        if not table:
            break
    return table, intact


def rows_of(table):
    """The rows of lists of one length, in dicts."""
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def spans(encoder):
    """Of a counted encoder: which columns of the table each of its columns reads, and which of the result it makes."""
    crossed = {name: given["columns"] for name, given in encoder.columns.items() if "columns" in given}
    for name, _, _, first, width, _ in encoder._coder.columns:
        yield set(crossed.get(name, [name])), slice(first, first + width)


def columns_way(random, folder):
    """A dict of columns, some of them spoiled."""
    fitted = SHELF.draw(random)
    table = sound(random, int(random.integers(1, 30)))
    hostile, intact = hostile_columns(random, table)
    n = len(table["size"])
    if random.random() < 0.2:
        encoder = hinge.TableEncoder(**fitted.options).fit(hostile)
        checked(encoder.transform(hostile), encoder.n_features_out_)
        return
    encoder = fitted.encoder
    found = encoder.stream(hostile).collect()[0] if random.random() < 0.2 else encoder.transform(hostile)
    checked(found, encoder.n_features_out_)
    require(found.shape[0] == n or not intact, "the number of rows is another")
    if encoder.numbering == "counted" and found.shape[0] == n:
        expected = encoder.transform(table)
        for reads, span in spans(encoder):
            if reads <= intact:
                require(
                    same(found[:, span], expected[:, span]), f"columns {reads}, which are intact, are encoded otherwise"
                )
    if all(isinstance(values, list) for values in hostile.values()):
        by_rows(fitted, hostile, found)


def by_rows(fitted, table, found):
    """Whether the rows of a table become the same one by one."""
    for k, row in enumerate(rows_of(table)):
        indices, values = fitted.predictor._coder.row(row)
        one = sp.csr_matrix((values, indices, [0, len(indices)]), shape=(1, found.shape[1]))
        require(same(one, found[k]), f"row {k} alone is encoded otherwise")


def rows_way(random, folder):
    """Dicts of rows, as a list, an iterator or one by one; each must be what a table of one row makes of it."""
    fitted = SHELF.draw(random)
    rows = rows_of(sound(random, int(random.integers(1, 20))))
    for _ in range(random.integers(1, 4)):
        k = int(random.integers(len(rows)))
        row = rows[k] = dict(rows[k]) if isinstance(rows[k], dict) else {}
        name = list(row)[random.integers(len(row))] if row else "city"
        what = random.integers(8)
        if what <= 4:
            value = hostile_value(random)
            row[name] = value.tolist() if isinstance(value, np.ndarray) else value  # arrays are columns
        elif what == 5:
            row.pop(name, None)
        elif what == 6:
            row[["City", 7, "7", None, "\udfff", "pair"][random.integers(6)]] = [True, "x", None][random.integers(3)]
        else:
            rows[k] = [UserDict(row), list(row.items()), None, "row", {}, 3, row][random.integers(7)]
    if random.random() < 0.5 and all(isinstance(row, dict) for row in rows):
        for row in rows:
            alone(fitted, row)
        return
    source = rows if random.random() < 0.5 else iter(rows)
    if random.random() < 0.5:
        found = fitted.encoder.transform(source)
        checked(found, fitted.encoder.n_features_out_)
        require(found.shape[0] == len(rows), "the number of rows is another")
    else:
        found = fitted.predictor.decision_function(rows)
        require(np.isfinite(found).all() and len(found) == len(rows), "decisions")


def alone(fitted, row):
    """The values that are read of one row, by the way for one row and as a table: the same, or an error both times."""
    row = {name: value for name, value in row.items() if name in fitted.encoder.feature_names_in_}

    def ended(way):
        try:
            return way(), None
        except (ValueError, TypeError) as error:
            return None, error

    encoded, refused = ended(lambda: fitted.encoder.transform([row]))
    one, refused_alone = ended(lambda: fitted.predictor._coder.row(row))
    for error in (refused, refused_alone):
        require(error is None or is_clear(error), f"unclear: {error!r}")
    require((refused is None) == (refused_alone is None), f"as a table: {refused!r}, as a row: {refused_alone!r}")
    if refused is None:
        found = sp.csr_matrix((one[1], one[0], [0, len(one[0])]), shape=encoded.shape)
        require(same(found, encoded), "a row is encoded otherwise than as a table")
        parts = fitted.predictor.explain(row, k=10**6)
        value = float(fitted.predictor.decision_function(row))
        require(np.isfinite(value) and all(np.isfinite(part) for _, part in parts), "contributions")


# Frames.


def frame_of(random, table):
    """A frame of pandas, polars or pyarrow; None where they do not make one of this."""
    kind = random.integers(5)
    try:
        if kind == 0:
            return pd.DataFrame({name: pd.Series(values) for name, values in table.items()})
        if kind == 1:
            return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in table.items()})
        if kind == 2:
            return pl.DataFrame(table, strict=bool(random.integers(2)))
        frame = arrow_table(random, table) if kind == 3 else other_types(random, table)
    except Exception:  # whatever they raise, there is no frame
        return None
    n = len(frame)
    start = int(random.integers(n + 1))
    cut = frame.slice(start, int(random.integers(n - start + 1)))
    return [cut, pa.concat_tables([cut, frame]), frame.combine_chunks().to_batches()[0]][random.integers(3)]


def other_types(random, table):
    """A table of pyarrow with a column of a type that nothing else has."""
    n = len(table["size"])
    kind = random.integers(14)
    array = [
        lambda: pa.array([Decimal(k) for k in range(n)]),
        lambda: pa.array([date(2020, 1, 1 + k % 28) for k in range(n)]),
        lambda: pa.array(range(n), pa.timestamp("ns", "Europe/Oslo")),
        lambda: pa.array([{"a": k} for k in range(n)]),
        lambda: pa.array([[("a", k)] for k in range(n)], pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([2**64 - 1 - k for k in range(n)], pa.uint64()),
        lambda: pa.array([[k] for k in range(n)]),
        lambda: pa.array([["a", None, "b"]] * n, pa.list_(pa.string(), 3)),
        lambda: pa.array([b"\xff"] * n),
        lambda: pa.nulls(n),
        lambda: pa.array([1.5] * n, pa.float16()),
        lambda: pa.RunEndEncodedArray.from_arrays([n], ["a"]),
        lambda: pa.DictionaryArray.from_arrays(pa.array([None, 0][:n] * n, pa.int8())[:n], pa.array(["a", None, "c"])),
        lambda: pa.array([["a"], None] * n, pa.list_view(pa.string()))[:n],
    ][kind]()
    frame = pa.table(table)
    k = int(random.integers(frame.num_columns))
    if random.random() < 0.3:
        frame = frame.rename_columns(random.choice(["city", "size", "late"], frame.num_columns).tolist())
    return frame.set_column(k, frame.column_names[k], array)


def frame_case(random):
    """A frame, of odd types or spoiled; None where there is none."""
    table = sound(random, int(random.integers(1, 30)))
    if random.random() < 0.5:
        table, _ = hostile_columns(random, table)
    return frame_of(random, table)


def frames_way(random, folder):
    """A frame into an encoder, a stream, a fit or a predictor."""
    frame = frame_case(random)
    if frame is None:
        return "no frame"
    return spread(random, frame, plain_frame)


def plain_frame(frame):
    """The columns of a table of pyarrow as Python's values, None for other frames."""
    if not isinstance(frame, (pa.Table, pa.RecordBatch)) or len(set(frame.column_names)) < frame.num_columns:
        return None
    return {name: frame.column(name).to_pylist() for name in frame.column_names}


def spread(random, source, twin_of):
    """A source into one of the ways in; where there is an answer, that of the twin must be the same."""
    fitted = SHELF.draw(random)
    encoder, way = fitted.encoder, random.integers(8)
    if way <= 2:
        found = encoder.transform(source)
    elif way == 3:
        found = encoder.stream(source).collect()[0]
    elif way == 4:
        pieces = list(encoder.stream(source, target="late"))
        found = sp.vstack([X for X, _ in pieces]) if pieces else sp.csr_matrix((0, encoder.n_features_out_))
        require(all(len(y) == X.shape[0] for X, y in pieces), "labels")
    elif way == 5:
        decisions = fitted.predictor.decision_function(source)
        require(np.isfinite(decisions).all(), "decisions")
        return
    elif way == 6:
        encoder = hinge.TableEncoder("auto", numbering=encoder.numbering, n_features=64, n_jobs=1)
        checked(encoder.fit_transform(source), encoder.n_features_out_)
        return
    else:
        encoder = hinge.TableEncoder(**fitted.options).fit(source)
        found = encoder.transform(source)
    checked(found, encoder.n_features_out_)
    table = twin_of(source)
    if table is None or not set(encoder.feature_names_in_) <= set(table):
        return
    table = {name: table[name] for name in encoder.feature_names_in_}
    if way == 7:
        encoder = hinge.TableEncoder(**fitted.options).fit(table)
    try:
        expected = encoder.transform(table)
    except (ValueError, TypeError) as error:
        raise Wrong(f"was taken, but as Python's values: {error!r}") from None
    require(same(found, expected), "is encoded otherwise than as Python's values")
    return


# Encoders and model files.


def places(node, path=()):
    """Every place in a structure of JSON."""
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(items)[:50]:
        yield from places(value, (*path, key))


def hostile_head(random, head):
    """The head of an encoder with one place changed."""
    tree = json.loads(head)
    everywhere = [path for path in places(tree) if path]
    *path, last = everywhere[random.integers(len(everywhere))]
    node = tree
    for key in path:
        node = node[key]
    what = random.integers(4)
    if what == 0:
        del node[last]
    elif what == 1 and isinstance(node[last], (int, float)) and not isinstance(node[last], bool):
        node[last] = [0, -1, node[last] + 1, node[last] * 2, 2**31, 2**63, 2**64, 1e308, 1e-308][random.integers(9)]
    elif what == 2 and isinstance(node, dict):
        node[["version", "name", "missing", "on_change", "other"][random.integers(5)]] = node.pop(last)
    else:
        values = [
            None,
            0,
            1,
            -1,
            2**32,
            1.5,
            1e308,
            "",
            "x",
            "city",
            "error",
            [],
            [1, 2],
            {},
            True,
            "counted",
            [[]],
            {"hashed": {"n_features": 2**31 - 1, "alternate_sign": False}},
            "\ud800",
        ]
        node[last] = values[random.integers(len(values))]
    return json.dumps(tree)


def hostile_record(random, record, other):
    """The record of an encoder with something changed."""
    head, text, ends, numbers = record
    what = random.integers(7)
    if what <= 2:
        head = hostile_head(random, head)
    elif what == 3:
        head = mutated(random, head.encode(), other[0].encode()).decode("utf-8", "replace")
    elif what == 4 and len(text):
        text = np.frombuffer(mutated(random, text.tobytes(), other[1].tobytes() or b"x"), np.uint8).copy()
    elif what == 5 and len(ends):
        ends = ends.copy()
        for _ in range(random.integers(1, 4)):
            k = int(random.integers(len(ends)))
            ends[k] = [ends[k] + 1, ends[k] - 1, 0, -1, 2**62, -(2**63), 2**63 - 1, ends[-1]][random.integers(8)]
        ends = ends[: random.integers(1, len(ends) + 1)] if random.random() < 0.2 else ends
    elif len(numbers):
        numbers = numbers.copy()
        hostile = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 5e-324, 1e10, 63.0]
        numbers[random.integers(len(numbers))] = hostile[random.integers(len(hostile))]
        numbers = numbers[: random.integers(1, len(numbers) + 1)] if random.random() < 0.2 else numbers
    return head, text, ends, numbers


def record_way(random, folder):
    """A model with a damaged encoder, saved with right checksums, read and asked."""
    fitted, other = SHELF.draw(random), SHELF.draw(random)
    parts = parts_of(fitted.pipeline)
    record = hostile_record(random, parts.encoder, other.encoder._coder.record())
    path = folder / "model"
    native = _native.NativeModel(replace(parts, encoder=record).native())
    _native.save_model(native, os.fspath(path), None, None, True, None)
    predictor = hinge.load(path, n_threads=1)
    table = sound(random, 12)
    rows = rows_of(
        {name: table[name] for name in table}
        | {name: table["city"] for name in predictor._coder.reads if name not in table}
    )
    found = predictor.decision_function(rows)
    require(np.isfinite(found).all(), "decisions that are no numbers")
    for k, row in enumerate(rows):
        require(float(predictor.decision_function(row)) == found[k], f"row {k} alone has another decision")
        predictor.explain(row)
    predictor.top_features(5)
    again = Coder.of_record(predictor._coder.record())
    X, Y = predictor._coder.transform([*batches(rows)], 1), again.transform([*batches(rows)], 1)
    require(same(X, Y), "the encoder saved once more is another")
    checked(X, predictor.n_features_in_)
    if random.random() < 0.3:
        estimator = predictor.to_estimator()
        require((estimator.decision_function(rows) == found).all(), "the estimator decides otherwise")


def batches(rows):
    from hinge._encode_tables import batches_of

    return batches_of(rows)


def model_way(random, folder):
    """A model file with bytes changed: refused, or the model that it was."""
    fitted, other = SHELF.draw(random), SHELF.draw(random)
    path = folder / "model"
    path.write_bytes(mutated(random, fitted.file, other.file))
    predictor = hinge.load(path, n_threads=1)
    rows = rows_of(sound(random, 12))
    found = predictor.decision_function(rows)
    require((found == fitted.predictor.decision_function(rows)).all(), "an altered file answers otherwise")


# Running.


def same(found, expected):
    """Whether two matrices are the same, entry by entry, as they are stored."""
    found, expected = sp.csr_matrix(found), sp.csr_matrix(expected)
    return (
        found.shape == expected.shape
        and np.array_equal(found.indptr, expected.indptr)
        and np.array_equal(found.indices, expected.indices)
        and np.array_equal(found.data, expected.data)
    )


def checked(X, n_features):
    """Whether a matrix is one: columns in order, each once, finite values."""
    require(X.shape[1] == n_features, "the number of columns is another")
    require(np.isfinite(X.data).all(), "values that are not finite")
    require(X.indptr[0] == 0 and X.indptr[-1] == len(X.indices) == len(X.data), "lengths")
    X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    inner = np.ones(len(X.indices), dtype=bool)
    inner[X.indptr[:-1][X.indptr[:-1] < len(inner)]] = False
    rises = np.diff(X.indices, prepend=-1) > 0
    require((rises | ~inner).all(), "columns that do not rise")
    require(len(X.indices) == 0 or (X.indices.min() >= 0 and X.indices.max() < n_features), "columns outside")


def is_clear(error):
    text = words_of(error)
    is_plain = not isinstance(error, UnicodeError) and "panic" not in text and len(text) < 6000
    return is_plain and NAMES.search(text) is not None


WAYS = {
    "file": (file_way, 40),
    "columns": (columns_way, 15),
    "rows": (rows_way, 15),
    "frame": (frames_way, 12),
    "encoder": (record_way, 12),
    "model file": (model_way, 6),
}


def drawn(seed, only):
    """The random numbers of a case, and its way."""
    random = np.random.default_rng(seed)
    names = [only] if only else list(WAYS)
    weights = np.array([WAYS[name][1] for name in names], dtype=float)
    return random, names[random.choice(len(names), p=weights / weights.sum())]


def tried(seed, only, counts):
    """None, or what is wrong with the way the case ended."""
    random, name = drawn(seed, only)
    counts[name] += 1
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        try:
            ended = WAYS[name][0](random, Path(folder))
        except Wrong as wrong:
            return f"{name}: {wrong}"
        except (ValueError, TypeError) as error:
            said = re.sub(r"[-+]?[0-9][0-9.e+]*", "0", str(error).replace(folder, ""))[:110]
            counts[f"{name}: {type(error).__name__}: {said}"] += 1
            counts["refused"] += 1
            return None if is_clear(error) else f"{name}: unclear: {error!r}"
        except MemoryError:
            counts["no memory"] += 1
            return None
        except BaseException as error:
            return f"{name}: {type(error).__name__}: {error}"
    counts[ended or "taken"] += 1
    return None


FOLDER = None


def read_by_pyarrow(path):
    """Read a file without this package."""
    from hinge._encode_tables import _read

    for batch in _read(os.fspath(path), path.name.removeprefix("table")):
        batch.validate(full=True)


def is_others(seed, only):
    """Whether the case kills, or hangs, before this package has its file or frame: pyarrow alone does it."""
    random, name = drawn(seed, only)
    if name not in ("file", "frame"):
        return False
    with tempfile.TemporaryDirectory() as folder:

        def without(_, counts):
            if name == "frame":
                frame_case(random)
                return
            path = file_case(random, Path(folder))
            with contextlib.suppress(Exception):
                read_by_pyarrow(path)

        return len(Run(without, seed, 1).run().deaths) > 0


def main():
    global FOLDER
    asked = asked_for(__doc__, WAYS, 20_000)
    load_all_names(hinge)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as FOLDER:
        run = Run(lambda seed, counts: tried(seed, asked.only, counts), asked.seed, asked.cases).run()
    total = run.total
    others = sum(is_others(seed, asked.only) for seed in run.deaths)
    deaths = len(run.deaths) - others
    failures = total["failures"] + deaths
    counted = ends(total, asked, ("taken", "refused", "no memory", "no frame"))
    print(f"{asked.cases} cases in {time.monotonic() - start:.0f} s: {counted}; ", end="")
    print(f"{others} deaths of pyarrow alone, {deaths} others, {failures} failures")
    raise SystemExit(failures > 0)


if __name__ == "__main__":
    main()
