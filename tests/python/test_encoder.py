"""Tables into rows: scikit-learn's encoders are the witnesses, column for column."""

import contextlib
import gc
import json
import pickle
import re
import sys
import tempfile
import threading
from pathlib import Path

import hinge
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hinge import (
    EncodedStream,
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    Predictor,
    TableEncoder,
    _encode_tables,
    _native,
)
from hinge._encode_coder import Coder
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MaxAbsScaler, OneHotEncoder, StandardScaler

ROUNDING = 2.0**-24
"""Relative error of a number in single precision."""

FLIGHTS = {
    "carrier": ["AA", "DL", "AA", None, "UA", "DL", "AA", "DL"],
    "distance": [733.0, 0.0, 2475.0, np.nan, 1024.0, 733.0, 337.0, 912.0],
    "stops": [0, 1, 0, 2, 0, 0, 1, 0],
    "review": ["Late again", "good, not great", "GOOD", "", None, "late late", "great", "not good"],
    "tags": [["a", "b"], [], ["b", "b"], None, ["c"], ["a"], ["b"], ["a", "c"]],
}
LATE = np.array([1, 0, 0, 1, 1, 1, 0, 0])
KINDS = {
    "carrier": "categorical",
    "distance": {"kind": "numeric", "scale": "standard"},
    "stops": "categorical",
    "review": {"kind": "text", "ngrams": (1, 2)},
    "tags": "tokens",
}

WORDS = st.text(max_size=6) | st.sampled_from(
    ["ΣΑΣ", "İ", "ǅ", "naïve", "a\0b", "x_1", "e\u0301", "🙂", "  ", "\x1c", "ß"]
)
TEXTS = st.lists(st.lists(WORDS, max_size=8).map(" ".join), min_size=1, max_size=6)
ANALYZERS = st.sampled_from(["word", "char", "char_wb"])
NGRAMS = st.tuples(st.integers(1, 3), st.integers(0, 2)).map(lambda pair: (pair[0], sum(pair)))


def canonical(X):
    X = sp.csr_matrix(X, copy=True)
    X.sort_indices()
    return X


def assert_same(found, expected):
    """Stored entries at the same places, values but for rounding to single precision."""
    expected = canonical(expected)
    assert found.dtype == np.float32
    assert found.has_canonical_format
    assert found.shape == expected.shape
    assert np.array_equal(found.indptr, expected.indptr)
    assert np.array_equal(found.indices, expected.indices)
    assert np.allclose(found.data, expected.data, rtol=2 * ROUNDING, atol=0.0)


def test_words_are_pythons_over_all_of_unicode():
    """Every code point alone, between letters and in capitals: the terms are those of the regular expression."""
    points = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    pattern = re.compile(r"(?u)\b\w+\b")
    texts = [f"x{c}y {c} {c}q" for c in points]
    expected = [sorted(set(pattern.findall(text.lower()))) for text in texts]
    encoder = TableEncoder({"t": {"kind": "text", "token_pattern": r"(?u)\b\w+\b", "norm": None}}, n_features=2**31 - 1)
    hashed = FeatureHasher(2**31 - 1, input_type="string", dtype=np.float32).transform(
        pattern.findall(text.lower()) for text in texts
    )
    assert (encoder.fit_transform({"t": texts}) != hashed).nnz == 0
    assert expected[ord("é")] == ["q", "xéy", "é", "éq"] or expected[ord("é")] == ["xéy", "é", "éq"]


def test_white_space_is_pythons_over_all_of_unicode():
    points = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    texts = [f"a{c}{c}b" for c in points]
    options = {"analyzer": "char", "ngrams": (2, 2), "lowercase": False, "norm": None}
    found = TableEncoder({"t": {"kind": "text", **options}}).fit_transform({"t": texts})
    rival = HashingVectorizer(analyzer="char", ngram_range=(2, 2), lowercase=False, norm=None, dtype=np.float32)
    assert (found != rival.transform(texts)).nnz == 0


@given(TEXTS, ANALYZERS, NGRAMS, st.booleans(), st.sampled_from([None, "l1", "l2"]), st.booleans(), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_hashed_texts_are_hashing_vectorizers(texts, analyzer, ngrams, lowercase, norm, binary, n_features):
    given = {"analyzer": analyzer, "lowercase": lowercase, "norm": norm, "binary": binary}
    rival = HashingVectorizer(n_features=n_features, ngram_range=ngrams, **given)
    encoder = TableEncoder({"t": {"kind": "text", "ngrams": ngrams, **given}}, n_features=n_features)
    assert_same(encoder.fit_transform({"t": texts}), rival.transform(texts))


@given(TEXTS, ANALYZERS, NGRAMS, st.data())
@settings(max_examples=150, deadline=None)
def test_counted_texts_are_tfidf_vectorizers(texts, analyzer, ngrams, data):
    given = {
        "analyzer": analyzer,
        "min_df": data.draw(st.sampled_from([1, 2, 0.3])),
        "max_df": data.draw(st.sampled_from([1.0, 0.7, 3])),
        "max_features": data.draw(st.sampled_from([None, 1, 5])),
        "norm": data.draw(st.sampled_from([None, "l1", "l2"])),
        "use_idf": data.draw(st.booleans()),
        "smooth_idf": data.draw(st.booleans()),
        "sublinear_tf": data.draw(st.booleans()),
        "binary": data.draw(st.booleans()),
    }
    rival = TfidfVectorizer(ngram_range=ngrams, **given)
    encoder = TableEncoder({"t": {"kind": "text", "ngrams": ngrams, **given}}, numbering="counted")
    try:
        expected = rival.fit_transform(texts)
    except ValueError:  # empty vocabulary
        with pytest.raises(ValueError, match=r"no term is left|max_df is"):
            encoder.fit({"t": texts})
        return
    assert_same(encoder.fit_transform({"t": texts}), expected)
    assert encoder.get_feature_names_out().tolist() == [f"t__{term}" for term in rival.get_feature_names_out()]
    others = [text[::-1] + " new " + text for text in texts]
    assert_same(encoder.transform({"t": others}), rival.transform(others))


CELLS = {
    "strings": st.sampled_from(
        ["", "a", "b", "A", "ab\0", "é", "🙂", "a longer one than sixteen bytes", "a longer one!"]
    ),
    "whole": st.integers(-(2**40), 2**40) | st.integers(-2, 2),
    "real": (st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.5, 1e16, 1e-5])).map(lambda x: x + 0.0),  # no -0
    "truth": st.booleans(),
}


@given(st.data(), st.integers(1, 12), st.integers(0, 5))
@settings(max_examples=150, deadline=None)
def test_counted_categories_are_one_hot_encoders(data, n, n_more):
    columns = {name: data.draw(st.lists(cells, min_size=n, max_size=n)) for name, cells in CELLS.items()}
    more = {name: data.draw(st.lists(cells, min_size=n_more, max_size=n_more)) for name, cells in CELLS.items()}
    encoder = TableEncoder(dict.fromkeys(columns, "categorical"), numbering="counted")
    rivals = [OneHotEncoder(handle_unknown="ignore") for _ in columns]

    def both(table, step):
        found = getattr(encoder, step)(
            pl.DataFrame(
                table, schema={"strings": pl.String, "whole": pl.Int64, "real": pl.Float64, "truth": pl.Boolean}
            )
        )
        arrays = [np.array(values, dtype=object if name == "strings" else None) for name, values in table.items()]
        expected = [getattr(r, step)(array.reshape(-1, 1)) for r, array in zip(rivals, arrays, strict=True)]
        assert_same(found, sp.hstack(expected))

    both(columns, "fit_transform")
    names = [
        str(name)
        for rival, column in zip(rivals, columns, strict=True)
        for name in rival.get_feature_names_out([column])
    ]
    assert encoder.get_feature_names_out().tolist() == names
    if n_more:
        both(more, "transform")


@given(st.data(), st.integers(1, 30), st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_hashed_rows_are_feature_hashers(data, n_features, n):
    cells = st.fixed_dictionaries(
        {"s": CELLS["strings"], "name of x": st.floats(-100, 100, width=32), "z": st.just(0.0)}
    )
    rows = data.draw(st.lists(cells, min_size=n, max_size=n))
    alternate = data.draw(st.booleans())
    encoder = TableEncoder(
        {"s": "categorical", "name of x": "numeric", "z": "numeric"}, n_features=n_features, alternate_sign=alternate
    )
    expected = FeatureHasher(n_features, alternate_sign=alternate, dtype=np.float32).transform(rows)
    found = encoder.fit_transform(rows)
    expected.sort_indices()
    assert np.array_equal(found.indices, expected.indices)
    assert np.allclose(found.data, expected.data, rtol=1e-5, atol=1e-4)  # sums of several columns, in another order
    assert [encoder.transform([row]).toarray().tolist() for row in rows] == found.toarray()[:, None].tolist()


@given(st.lists(st.lists(WORDS, max_size=5), min_size=1, max_size=5), st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_tokens_are_hashed_and_counted_as_strings(lists, n_features):
    expected = FeatureHasher(n_features, input_type="string").transform(lists)
    table = pl.DataFrame({"t": pl.Series(lists, dtype=pl.List(pl.String))})
    assert_same(TableEncoder({"t": "tokens"}, n_features=n_features).fit_transform(table), expected)
    if any(lists):
        rival = CountVectorizer(analyzer=lambda tokens: tokens)
        encoder = TableEncoder({"t": "tokens"}, numbering="counted")
        assert_same(encoder.fit_transform({"t": lists}), rival.fit_transform(lists))
        assert encoder.get_feature_names_out().tolist() == [f"t__{term}" for term in rival.get_feature_names_out()]


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=40))
@settings(max_examples=100, deadline=None)
def test_numbers_are_scaled_and_binned_as_by_scikit_learn(values):
    array = np.array(values).reshape(-1, 1)
    for scale, rival in (("standard", StandardScaler(with_mean=False)), ("maxabs", MaxAbsScaler())):
        found = TableEncoder({"x": {"kind": "numeric", "scale": scale}}, numbering="counted").fit_transform(
            {"x": values}
        )
        if scale == "maxabs" and 0 < abs(array).max() < 10 * np.finfo(float).eps:
            assert abs(found).max() == 1  # MaxAbsScaler takes so small a largest value for 0 and leaves the column
            continue
        assert np.allclose(found.toarray(), rival.fit_transform(array), rtol=1e-5, atol=1e-30)
    found = TableEncoder({"x": {"kind": "numeric", "bins": 4}}, numbering="counted").fit_transform({"x": values})
    rival = KBinsDiscretizer(4, subsample=None, quantile_method="averaged_inverted_cdf")
    # KBinsDiscretizer drops edges closer than 1e-8, and fails where no bin is left: 4 bins of that width.
    if array.max() - array.min() > 4.1e-8:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bins that are too narrow
            assert_same(found, rival.fit_transform(array))


def test_small_numbers_are_scaled_too():
    encoder = TableEncoder({"x": {"kind": "numeric", "scale": "maxabs"}}, numbering="counted")
    assert encoder.fit_transform({"x": [0.0, 2e-16, -1e-16]}).toarray().ravel().tolist() == [0.0, 1.0, -0.5]


def test_every_kind_of_table_gives_the_same_rows():
    rows = [dict(zip(FLIGHTS, row, strict=True)) for row in zip(*FLIGHTS.values(), strict=True)]
    frame = pl.DataFrame(FLIGHTS, strict=False)
    for numbering in ("hashed", "counted"):
        encoder = TableEncoder(KINDS, numbering=numbering).fit(FLIGHTS)
        expected = encoder.transform(FLIGHTS)
        tables = {
            "polars": frame,
            "sliced": pl.concat([frame, frame])[8:],
            "chunks": pl.concat([frame[:3], frame[3:]], rechunk=False),
            "dictionary": frame.with_columns(pl.col("carrier").cast(pl.Categorical)),
            "enum": frame.with_columns(pl.col("carrier").cast(pl.Enum(["unused", "UA", "DL", "AA", "other"]))),
            "small": frame.with_columns(pl.col("stops").cast(pl.UInt8), pl.col("distance").cast(pl.Float32)),
            "pandas": pd.DataFrame(FLIGHTS),
            "pandas categories": pd.DataFrame(FLIGHTS).astype({"carrier": "category"}),
            "pandas nullable": pd.DataFrame(FLIGHTS).astype({"stops": "Int64"}),
            "rows": rows,
            "generator": (row for row in rows),
            "frames": iter([frame[:5], frame[5:]]),
            "arrays": {name: np.array(values, dtype=object) for name, values in FLIGHTS.items()},
        }
        for name, table in tables.items():
            found = encoder.transform(table)
            assert (found != expected).nnz == 0, name
            assert np.array_equal(found.indptr, expected.indptr), name
        for threads in (1, 2, 5):
            many = pl.concat([frame] * 700)
            again = encoder.set_params(n_jobs=threads).transform(many)
            assert (again != sp.vstack([expected] * 700)).nnz == 0
            refitted = clone(encoder).fit(many)
            assert (
                refitted.transform(frame).indices
                == TableEncoder(KINDS, numbering=numbering).fit(many).transform(frame).indices
            ).all()


def test_fit_transform_is_fit_then_transform():
    rows = [dict(zip(FLIGHTS, row, strict=True)) for row in zip(*FLIGHTS.values(), strict=True)]
    for numbering in ("hashed", "counted"):
        encoder = TableEncoder(KINDS, numbering=numbering)
        expected = encoder.fit(FLIGHTS).transform(FLIGHTS)
        assert (encoder.fit_transform(iter(rows)) != expected).nnz == 0


def test_missing_values_have_a_column_or_none():
    table = {"c": ["a", None], "x": [1.0, np.nan], "t": ["ab", None]}
    kinds = {"c": "categorical", "x": "numeric", "t": "text"}
    own = TableEncoder(kinds, numbering="counted").fit(table)
    assert own.get_feature_names_out().tolist() == ["c_a", "c_None", "x", "x_None", "t__ab", "t_None"]
    assert own.transform(table).toarray().tolist() == [[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]]
    zero = TableEncoder(kinds, numbering="counted", missing="zero").fit(table)
    assert zero.get_feature_names_out().tolist() == ["c_a", "x", "t__ab"]
    assert zero.transform(table).toarray().tolist() == [[1, 1, 1], [0, 0, 0]]
    mixed = TableEncoder(kinds | {"c": {"kind": "categorical", "missing": "zero"}}).fit(table)
    assert np.diff(mixed.transform(table).indptr).tolist() == [3, 2]
    # Nothing missing in the fit: no column for it, and nothing later.
    assert TableEncoder({"c": "categorical"}, numbering="counted").fit({"c": ["a"]}).transform({"c": [None]}).nnz == 0


def test_crosses_are_categories_of_combinations():
    table = {"a": ["x", "x", "y", None], "b": [1, 2, 1, 1]}
    encoder = TableEncoder({"ab": {"kind": "cross", "columns": ["a", "b"]}}, numbering="counted").fit(table)
    assert encoder.get_feature_names_out().tolist() == ["ab_x & 1", "ab_x & 2", "ab_y & 1", "ab_None"]
    assert encoder.transform(table).toarray().argmax(axis=1).tolist() == [0, 1, 2, 3]
    assert encoder.feature_names_in_.tolist() == ["a", "b"]
    hashed = TableEncoder({"ab": {"kind": "cross", "columns": ["a", "b"]}}).fit(table)
    expected = FeatureHasher(dtype=np.float32).transform([{"ab": "x\x1f1"}, {"ab": "x\x1f2"}])
    assert (hashed.transform(table)[:2] != expected).nnz == 0
    one = [hashed.transform([{"a": a, "b": b}]) for a, b in zip(*table.values(), strict=True)]
    assert (sp.vstack(one) != hashed.transform(table)).nnz == 0


def test_kinds_are_guessed_and_the_guess_is_told():
    table = FLIGHTS | {
        "late": [True, False] * 4,
        "text": [f"some words in a row, and more of them {k}" for k in range(8)],
    }
    encoder = TableEncoder().fit(table)
    assert {name: kind.split(":")[0] for name, kind in encoder.kinds_.items()} == {
        "carrier": "categorical",
        "distance": "numeric",
        "stops": "numeric",
        "review": "categorical",
        "tags": "tokens",
        "late": "numeric",
        "text": "text",
    }
    assert encoder.kinds_["text"] == "text: its strings have 9.0 blanks each on average"
    part = TableEncoder({"carrier": "drop", "stops": "categorical"}, remainder="auto").fit(table)
    assert list(part.kinds_) == ["stops", "distance", "review", "tags", "late", "text"]
    assert part.kinds_["stops"] == "categorical"


@pytest.mark.parametrize("numbering", ["hashed", "counted"])
def test_a_pipeline_is_one_file(numbering, tmp_path):
    model = make_pipeline(TableEncoder(KINDS, numbering=numbering), LogisticRegression()).fit(FLIGHTS, LATE)
    path = tmp_path / "model.hinge"
    hinge.save(model, path, metadata={"by": "test"})
    served = hinge.load(path)
    expected = model.predict_proba(FLIGHTS)
    rows = [dict(zip(FLIGHTS, row, strict=True)) for row in zip(*FLIGHTS.values(), strict=True)]
    for table in (rows, pl.DataFrame(FLIGHTS, strict=False), pd.DataFrame(FLIGHTS)):
        assert np.array_equal(served.predict_proba(table), expected)
        assert np.array_equal(served.predict(table), model.predict(FLIGHTS))
    assert np.array_equal([served.predict_proba(row) for row in rows], expected)
    assert served.metadata == {"by": "test"}
    for again in (Predictor.of(model), pickle.loads(pickle.dumps(served)), served.with_options(n_threads=1)):
        assert np.array_equal(again.predict_proba(rows), expected)
    back = served.to_estimator()
    assert np.array_equal(back.predict_proba(FLIGHTS), expected)
    assert back[0].get_params()["columns"]["review"]["ngrams"] == [1, 2]
    assert clone(back).fit(FLIGHTS, LATE).predict(FLIGHTS).tolist() == model.predict(FLIGHTS).tolist()
    served.save(tmp_path / "again.hinge")
    assert np.array_equal(hinge.load(tmp_path / "again.hinge").predict_proba(rows), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(FLIGHTS), expected)
    with pytest.raises(TypeError, match="a TableEncoder and a classifier"):
        hinge.save(make_pipeline(StandardScaler(), LinearSVC()).fit([[1.0], [2.0]], [0, 1]), path)


def test_files_of_models_without_encoder_stay_as_they_were(tmp_path):
    LinearSVC().fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "plain")
    assert b'"format_version":"1"' in (tmp_path / "plain").read_bytes()[:80]
    model = make_pipeline(TableEncoder(), LinearSVC()).fit({"a": [0.0, 1.0]}, [0, 1])
    hinge.save(model, tmp_path / "table")
    assert b'"format_version":"2"' in (tmp_path / "table").read_bytes()[:80]


def test_a_damaged_record_is_an_error():
    encoder = TableEncoder(KINDS, numbering="counted").fit(FLIGHTS)
    head, text, ends, numbers = encoder._coder.record()
    make = lambda **changed: _native.TableCoder.of_record(  # noqa: E731
        tuple({"head": head, "text": text, "ends": ends, "numbers": numbers, **changed}.values())
    )
    assert make()[0].n_features == encoder.n_features_out_
    parsed = json.loads(head)
    heads = [
        "{",
        json.dumps(parsed | {"version": 99}),
        json.dumps(parsed | {"more": 1}),
        json.dumps(parsed | {"alphabet": None}),
        json.dumps(parsed | {"numbering": "hashed"}),
        json.dumps(parsed | {"columns": parsed["columns"][:2]}),
        json.dumps(parsed | {"columns": parsed["columns"] * 2}),
        json.dumps(parsed | {"alphabet": parsed["alphabet"] | {"words": [0, 2**31]}}),
        *(
            json.dumps(parsed | {"columns": [parsed["columns"][0] | {key: value}, *parsed["columns"][1:]]})
            for key, value in (
                ("n_terms", 2**63),
                ("n_terms", 1),
                ("n_edges", 3),
                ("scale", 0.0),
                ("has_factors", True),
            )
        ),
    ]
    for broken in heads:
        with pytest.raises(ValueError, match=r"encoder|column|alphabet|version|ranges|numbering"):
            make(head=broken)
    for changed in (
        {"ends": ends[:-1]},
        {"ends": ends[::-1].copy()},
        {"ends": np.full_like(ends, 2**62)},
        {"ends": -ends},
        {"text": np.full_like(text, 0xFF)},
        {"numbers": numbers[:-1]},
        {"numbers": np.full_like(numbers, np.nan)},
    ):
        with pytest.raises(ValueError, match="encoder"):
            make(**changed)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_hostile_records_are_errors_or_encoders(data):
    encoder = TableEncoder(KINDS, numbering="counted").fit(FLIGHTS)
    head, text, ends, numbers = encoder._coder.record()
    broken = bytearray(head.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(broken) - 1))
        broken[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    ends = ends.copy()
    if data.draw(st.booleans()):
        ends[data.draw(st.integers(0, len(ends) - 1))] = data.draw(st.integers(-(2**63), 2**63 - 1))
    try:
        coder, _ = _native.TableCoder.of_record((broken.decode("utf8", "replace"), text, ends, numbers))
    except ValueError:
        return
    with contextlib.suppress(ValueError):
        coder.row(dict.fromkeys(FLIGHTS), True)


def test_streams_never_hold_the_table(tmp_path):
    frame = pl.DataFrame({**FLIGHTS, "late": LATE, "w": np.arange(1.0, 9.0)}, strict=False)
    encoder = TableEncoder(KINDS).fit(frame)
    expected = LinearSVC().fit(encoder.transform(frame), LATE, sample_weight=np.arange(1.0, 9.0))
    stream = encoder.stream(frame, target="late", sample_weight="w")
    assert isinstance(stream, EncodedStream)
    assert np.array_equal(LinearSVC().fit(stream).coef_, expected.coef_)
    ((X, y, weight),) = list(stream)
    assert X.shape == (8, 2**20)
    assert y.tolist() == LATE.tolist()
    assert weight.tolist() == list(range(1, 9))
    store = hinge.BlockStore.build(encoder.stream(frame, target="late", sample_weight="w"), tmp_path / "rows.store")
    assert store.n_samples == 8
    assert np.allclose(LinearSVC(tol=1e-8).fit(store).coef_, LinearSVC(tol=1e-8).fit(stream).coef_, atol=1e-4)
    ((bare),) = list(encoder.stream(frame))
    assert (bare != X).nnz == 0
    with pytest.raises(ValueError, match=r"y must be None: the stream has its own, the column 'late'"):
        LinearSVC().fit(encoder.stream(frame, target="late"), LATE)
    with pytest.raises(ValueError, match="column 'carrier', row 3: the label is missing"):
        LinearSVC().fit(encoder.stream(frame, target="carrier"))
    many = pl.concat([frame] * 10)
    search = LinearSVCCV(cv=2).fit(encoder.stream(many, target="late"))
    assert search.C_ == LinearSVCCV(cv=2).fit(encoder.transform(many), np.tile(LATE, 10)).C_


def test_polars_columns_without_a_type_are_missing_values():
    frame = pl.DataFrame({"carrier": ["AA", "DL"], "gate": [None, None]})
    encoder = TableEncoder(numbering="counted")
    assert encoder.fit_transform(frame).toarray().tolist() == [[1, 0, 1], [0, 1, 1]]
    typed = frame.with_columns(gate=pl.Series([1.5, None]))
    encoder = TableEncoder(numbering="counted").fit(typed)
    assert encoder.transform(frame).toarray().tolist() == [[1, 0, 0, 1], [0, 1, 0, 1]]


def test_groups_are_a_column_too(tmp_path):
    frame = pl.concat([pl.DataFrame({**FLIGHTS, "late": LATE}, strict=False)] * 10)
    frame = frame.with_columns(pl.Series("day", [f"day {k // 4}" for k in range(80)]))
    encoder = TableEncoder(KINDS).fit(frame)
    stream = encoder.stream(frame, target="late", groups="day")
    X, y, weight, groups = stream.collect()
    assert weight is None
    assert groups.tolist() == frame["day"].to_list()
    expected = LinearSVCCV(cv=3).fit(X, y, groups=groups)
    assert LinearSVCCV(cv=3).fit(stream).search_.scores.tolist() == expected.search_.scores.tolist()
    assert expected.search_.scores.tolist() != LinearSVCCV(cv=3).fit(X, y).search_.scores.tolist()
    search = hinge.select_C(stream, cv=3, loss="squared_hinge")
    assert search.scores.tolist() == expected.search_.scores.tolist()
    with pytest.raises(ValueError, match="groups must be None: the stream has its own, the column 'day'"):
        LinearSVCCV(cv=3).fit(stream, groups=groups)
    with pytest.raises(ValueError, match="groups must be None for a store, which keeps none, got 'day'"):
        hinge.BlockStore.build(stream, tmp_path / "rows.store")
    with pytest.raises(ValueError, match="column 'carrier', row 3: the group is missing"):
        encoder.stream(frame, target="late", groups="carrier").collect()


def test_dense_output_has_names_where_it_is_asked_for():
    frame = pd.DataFrame({"carrier": ["AA", "DL"], "distance": [1.5, 0.0]})
    encoder = TableEncoder(numbering="counted", sparse_output=False).set_output(transform="pandas")
    found = encoder.fit_transform(frame)
    assert found.columns.tolist() == ["carrier_AA", "carrier_DL", "distance"]
    assert found.to_numpy().tolist() == [[1, 0, 1.5], [0, 1, 0]]
    assert encoder.set_output(transform="default").transform(frame).dtype == np.float32
    hashed = TableEncoder(n_features=8, sparse_output=False).fit(frame)
    assert (hashed.transform(frame) == hashed.set_params(sparse_output=True).transform(frame).toarray()).all()


def test_it_is_a_transformer_of_scikit_learn():
    frame = pd.DataFrame({name: FLIGHTS[name] * 5 for name in ("carrier", "stops", "review")})
    labels = np.tile(LATE, 5)
    model = make_pipeline(TableEncoder(numbering="counted"), LinearSVCCV(cv=2))
    assert cross_val_score(model, frame, labels, cv=3).shape == (3,)
    model.fit(frame, labels, linearsvccv__sample_weight=np.ones(40))
    assert model[:-1].get_feature_names_out()[0] == "carrier_AA"
    combined = ColumnTransformer([("rows", TableEncoder(numbering="counted"), ["carrier"])])
    assert combined.fit_transform(frame).shape == (40, 4)
    encoder = TableEncoder(KINDS, n_jobs=2)
    assert clone(encoder).get_params() == encoder.get_params()
    assert "TableEncoder" in repr(encoder)
    with pytest.raises(AttributeError, match="hashed columns have no names"):
        encoder.get_feature_names_out()
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        encoder.transform(frame)


def test_drift_is_counted_and_changes_are_told():
    encoder = TableEncoder(KINDS, numbering="counted", track_drift=True).fit(FLIGHTS)
    encoder.transform(FLIGHTS)
    assert encoder.drift_ == {
        "rows": 8,
        "carrier": {"unseen": 0, "missing": 1},
        "distance": {"unseen": 0, "missing": 1},
        "stops": {"unseen": 0, "missing": 0},
        "review": {"unseen": 0, "missing": 1},
        "tags": {"unseen": 0, "missing": 1},
    }
    encoder.transform([{"carrier": "XX", "distance": 1.0, "stops": 9, "review": "never seen", "tags": ["d"]}])
    assert {name: encoder.drift_[name]["unseen"] for name in KINDS} == {
        "carrier": 1,
        "distance": 0,
        "stops": 1,
        "review": 3,
        "tags": 1,
    }
    less = {name: values for name, values in FLIGHTS.items() if name != "stops"}
    with pytest.raises(ValueError, match="the table has no column 'stops', the encoder was fitted with"):
        encoder.transform(less)
    with pytest.raises(
        ValueError, match="column 'stops': each value was a whole number in the fit, and is a string here"
    ):
        encoder.transform(FLIGHTS | {"stops": ["0"] * 8})
    lenient = clone(encoder).set_params(on_change="warn").fit(FLIGHTS)
    with pytest.warns(UserWarning, match="has no columns"):
        found = lenient.transform(less)
    assert found.shape == (8, encoder.n_features_out_)
    with pytest.warns(UserWarning, match="column 'stops': each value was a whole number"):
        assert lenient.transform(FLIGHTS | {"stops": ["0"] * 8}).shape == found.shape
    # Whole numbers that became others because one is missing are the same categories.
    assert (
        encoder.transform(FLIGHTS | {"stops": [float(k) for k in FLIGHTS["stops"]]}) != encoder.transform(FLIGHTS)
    ).nnz == 0


BAD_VALUES = [
    ({"x": [1.0, np.inf]}, {"x": "numeric"}, "column .x., row 1: inf is not finite"),
    ({"x": [1.0, 1e39]}, {"x": "numeric"}, "column .x., row 1: .* is too large for single precision"),
    ({"x": ["a", "b"]}, {"x": "numeric"}, "column .x., row 0: a numeric column has numbers"),
    ({"t": [1, 2]}, {"t": "text"}, "column .t., row 0: a column of texts has strings, this one has a whole number"),
    ({"t": ["a", "b"]}, {"t": "tokens"}, "column .t., row 0: a column of tokens has lists of strings"),
    ({"t": [["a"], ["b", None]]}, {"t": "tokens"}, "column .t., row 1: entry 1 of the list is missing"),
    ({"t": ["a", 1]}, {"t": "categorical"}, "column .t., row 1: 1 is a whole number, the values before are not"),
    ({"t": ["a", object()]}, {"t": "categorical"}, "column .t., row 1: a object is neither a number"),
    ({"t": ["a", "\ud800"]}, {"t": "text"}, "column .t., row 1: .* cannot be written in UTF-8"),
    ({"t": [b"a", b"\xff"]}, {"t": "text"}, "column .t., row 1: these bytes are no UTF-8"),
    ({"t": [1, 2**63]}, {"t": "categorical"}, "column .t., row 1: 9223372036854775808 is not below 2\\^63"),
    ({"t": ["a"], "u": ["a", "b"]}, {"t": "text"}, "column .u. has 2 values, the table has 1 rows"),
    ({"t": ["a"]}, {"u": "text"}, "the table has no column .u., it has .t."),
    ({"t": []}, {"t": "text"}, "no rows|no term"),
    ({"d": pl.Series([1, 2]).cast(pl.Date)}, {"d": "categorical"}, "column .d., row 0: .*date"),
]


@pytest.mark.parametrize(("table", "columns", "message"), BAD_VALUES)
def test_a_bad_value_is_told_with_its_column_and_row(table, columns, message):
    table = pl.DataFrame(table) if "d" in table else table
    with pytest.raises(ValueError, match=f"(?i){message}"):
        TableEncoder(columns, numbering="counted").fit_transform(table)


def test_bytes_of_arrow_must_be_utf8():
    table = pl.DataFrame({"t": [b"fine", b"n\xc3\xa9", b"\xff\xfe"]})
    with pytest.raises(ValueError, match=r"column .t., row 2: these bytes are no UTF-8 from byte 0 on"):
        TableEncoder({"t": "text"}).fit_transform(table)
    assert TableEncoder({"t": "text"}).fit_transform(table[:2]).nnz == 2


@pytest.mark.parametrize("missing", ["own", "zero"])
@pytest.mark.parametrize("numbering", ["hashed", "counted"])
def test_a_number_is_the_same_category_however_it_is_stored(numbering, missing):
    """Data frames turn whole numbers into others where one is missing."""
    columns = {"k": "categorical", "both": {"kind": "cross", "columns": ["k", "s"]}}
    whole = {"k": [1, 2, -3, 2**40], "s": ["a", "b", "a", "b"]}
    others = {"k": [1.0, 2.0, -3.0, 2.0**40], "s": whole["s"]}
    mixed = pd.DataFrame({"k": pd.Series([1, 2, -3, 2**40, None], dtype=object), "s": [*whole["s"], "a"]})
    for fitted in (whole, others):
        encoder = TableEncoder(columns, numbering=numbering, missing=missing, n_features=1000).fit(fitted)
        expected = encoder.transform(fitted)
        assert (encoder.transform(whole) != expected).nnz == 0
        assert (encoder.transform(others) != expected).nnz == 0
        assert (encoder.transform(mixed)[:4] != expected).nnz == 0
        one = encoder.explain_row({"k": 1, "s": "a"})
        assert one == encoder.explain_row({"k": 1.0, "s": "a"})


@pytest.mark.filterwarnings("ignore:column 'stops'")
@pytest.mark.parametrize("value", ["5", True, 2.5, 3, None])
@pytest.mark.parametrize("fitted", [[0, 1, 2, 3], ["0", "1", "2", "3"], [0.5, 1.0, 2.0, 3.0], [True, False] * 2])
def test_one_row_is_refused_where_a_table_of_it_is(fitted, value):
    for on_change in ("error", "warn"):
        encoder = TableEncoder({"stops": "categorical"}, on_change=on_change, n_features=64)
        model = Predictor.of(make_pipeline(encoder, LinearSVC()).fit({"stops": fitted}, [0, 1, 0, 1]))
        try:
            expected = model.decision_function([{"stops": value}])
        except ValueError as error:
            assert on_change == "error"
            said = re.search("each value was .* in the fit, and is .* here", str(error))[0]
            with pytest.raises(ValueError, match=f"column .stops., row 0: {said}"):
                model.decision_function({"stops": value})
        else:
            assert model.decision_function({"stops": value}) == expected[0]


def test_rows_may_hold_strings_of_numpy():
    plain = [{"s": "a", "x": 1.0}, {"s": "b", "x": 2.0}]
    rows = [{"s": np.str_(row["s"]), "x": np.float64(row["x"])} for row in plain]
    encoder = TableEncoder({"s": "categorical", "x": "numeric"}).fit(plain)
    assert (encoder.transform(rows) != encoder.transform(plain)).nnz == 0


def test_a_name_that_is_there_twice_is_refused():
    pa = pytest.importorskip("pyarrow")
    encoder = TableEncoder({"a": "numeric"}).fit({"a": [1.0]})
    twice = pa.table([[1.0], [2.0], [3.0]], names=["a", "a", "b"])
    for call in (encoder.transform, TableEncoder().fit, lambda t: list(encoder.stream(t, target="a"))):
        with pytest.raises(ValueError, match='more than one column "a"'):
            call(twice)
    assert TableEncoder({"b": "numeric"}).fit_transform(twice).nnz == 1
    for table in ({1: [1.0], "1": [2.0]}, [{1: 1.0, "1": 2.0}]):
        with pytest.raises(ValueError, match="more than one column '1'"):
            TableEncoder({"1": "numeric"}).fit(table)


def test_names_that_nobody_can_write_are_refused():
    encoder = TableEncoder({"a": "numeric"}).fit({"a": [1.0]})
    for table in ({"a": [1.0], "\ud800": [2.0]}, [{"a": 1.0, "\ud800": 2.0}]):
        with pytest.raises(ValueError, match=r"column '.ud800', whose name cannot be written"):
            encoder.transform(table)
    for frame in (pl.DataFrame({"a": [1.0], "b\0": [2.0]}), pd.DataFrame({"a\0": [1.0]})):
        with pytest.raises(ValueError, match=r"a column '[ab].x00': the names of Arrow's columns have no zeros"):
            encoder.transform(frame)
    with pytest.raises(TypeError, match="the values of a table in a dict are arrays or lists"):
        encoder.transform({"a": np.array(3.0)})


def test_numbers_that_are_too_large_for_their_spread():
    encoder = TableEncoder({"x": {"kind": "numeric", "scale": "standard"}})
    for numbers in ([1e200, -1e200], [1e200, 1e200], [1.0, 1e155]):
        with pytest.raises(ValueError, match="column 'x': its numbers are too large for their standard deviation"):
            encoder.fit({"x": numbers})
    assert np.isfinite(encoder.fit_transform({"x": [1e150, -1e150]}).data).all()


DAMAGE = {
    "no text": (b"wordword", b"word\xff\xfe\xfdd", "UTF"),
    "ends behind the values": (b"\x00\x00\x00\x00\x08\x00\x00\x00", b"\x00\x00\x00\x00\xff\xff\xff\x00", ""),
    "no name": (b"nameofit", b"name\xff\xfe\xfdt", "utf-8"),
    "no name within": (b"nameinit", b"name\xff\xfe\xfdt", "utf-8"),
    "zero in a name": (b"nameofit", b"nam\0ofit", "zeros"),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
def test_what_pyarrow_reads_of_damaged_files_is_checked(tmp_path, suffix, damage):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    inner = pa.list_(pa.field("nameinit", pa.string()))
    table = pa.table({"nameofit": ["wordword"], "lists": pa.array([["wordword"]], inner)})
    path = tmp_path / f"table{suffix}"
    if suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    elif damage == "ends behind the values":
        pytest.skip("Parquet has lengths instead")
    else:
        parquet.write_table(table, path, compression="none", store_schema=False, write_statistics=False)
    encoder = TableEncoder({"nameofit": "text", "lists": "tokens"}).fit(path)
    before, after, said = DAMAGE[damage]
    whole = path.read_bytes()
    if suffix == ".parquet" and before not in whole:
        pytest.skip("the file has no such name")
    path.write_bytes(whole.replace(before, after))
    for call in (encoder.transform, TableEncoder({"lists": "tokens"}).fit_transform):
        with pytest.raises(ValueError, match=f"(?s)table{suffix} cannot be read: .*{said}"):
            call(path)


def between_addresses(array, pa):
    """The same array of pyarrow, all of whose buffers begin 4 bytes behind a multiple of 8, as in a message."""
    buffers = [b and pa.py_buffer(bytes(4) + b.to_pybytes()).slice(4) for b in array.buffers()]
    return pa.Array.from_buffers(array.type, len(array), buffers, array.null_count)


@pytest.mark.parametrize("kind", ["table", "batch", "empty batch", "reader", "frame", "frame of strings"])
def test_what_lies_between_addresses_is_copied(kind):
    pa = pytest.importorskip("pyarrow")
    words, tokens = pa.array(["a", "bc", None, "a"], pa.large_string()), pa.array([["u", "v"], [], ["v"], None])
    tokens = tokens.cast(pa.large_list(pa.large_string()))
    shifted = between_addresses(words, pa)
    assert all(buffer.address % 8 == 4 for buffer in shifted.buffers())
    offsets = pa.py_buffer(bytes(4) + tokens.buffers()[1].to_pybytes()).slice(4)
    lists = pa.Array.from_buffers(
        tokens.type, 4, [tokens.buffers()[0], offsets], 1, children=[between_addresses(tokens.values, pa)]
    )
    table = pa.table({"words": shifted, "tokens": lists})
    assert not _encode_tables._is_aligned(table)
    (batch,) = table.to_batches()
    made = {
        "table": lambda: table,
        "batch": lambda: batch,
        "empty batch": lambda: batch.slice(1, 0),
        "reader": table.to_reader,
        "frame": lambda: pd.DataFrame({k: pd.arrays.ArrowExtensionArray(table[k]) for k in table.column_names}),
        "frame of strings": lambda: pd.DataFrame({"words": pd.array(table["words"], dtype="string[pyarrow]")}),
    }[kind]
    handed = _encode_tables._aligned(made())
    assert all(map(_encode_tables._is_aligned, handed if kind == "reader" else [handed]))
    names = ["words"] if kind == "frame of strings" else ["words", "tokens"]
    plain = pa.table({"words": words, "tokens": tokens}).select(names)
    encoder = TableEncoder({name: "tokens" if name == "tokens" else "categorical" for name in names})
    expected = encoder.fit_transform(plain)
    rows = slice(0) if kind == "empty batch" else slice(None)
    np.testing.assert_array_equal(encoder.transform(made()).toarray(), expected.toarray()[rows])


def test_a_damaged_record_of_an_encoder_is_refused():
    encoder = TableEncoder({"review": "text"}, numbering="counted").fit(FLIGHTS)
    head, text, ends, numbers = encoder._coder.record()
    assert len(numbers) > 0
    assert (numbers <= 64).all()
    for factor in (1e300, -1.0, np.nan):  # would make values that are no numbers
        hostile = np.where(np.arange(len(numbers)) == 1, factor, numbers)
        with pytest.raises(hinge.ModelFileError, match="its factors are damaged"):
            Coder.of_record((head, text, ends, hostile))
    for before, after in (('"on_change":"error"', '"on_change":5'), ('"track_drift":false', '"track_drift":"no"')):
        assert before in head
        with pytest.raises(hinge.ModelFileError, match="on_change is 'error' or 'warn', track_drift true or false"):
            Coder.of_record((head.replace(before, after), text, ends, numbers))


BAD_PARAMETERS = [
    ({"columns": "all"}, "columns must be 'auto' or a dict"),
    ({"columns": {}}, "columns must be 'auto' or a dict"),
    ({"columns": {"a": "number"}}, r"columns\['a'\] must be one of \['auto'"),
    ({"columns": {"a": {"kind": "text", "ngram": (1, 2)}}}, "a column of kind 'text' has no option 'ngram'"),
    ({"columns": {"a": {"kind": "text", "ngrams": (2, 1)}}}, r"\['ngrams'\] must be \(least, most\)"),
    ({"columns": {"a": {"kind": "text", "token_pattern": "[a-z]+"}}}, r"\['token_pattern'\] must be one of"),
    ({"columns": {"a": {"kind": "text", "use_idf": True}}}, "needs numbering='counted'"),
    ({"columns": {"a": {"kind": "text", "norm": "max"}}}, "must be None, 'l1' or 'l2', got 'max'"),
    ({"columns": {"a": {"kind": "numeric", "bins": 1}}}, r"\['bins'\] must be an integer of at least 2"),
    ({"columns": {"a": {"kind": "numeric", "bins": 3, "scale": "maxabs"}}}, "scaled or cut into bins, not both"),
    ({"columns": {"a": {"kind": "cross", "columns": ["b"]}}}, "names of two columns or more"),
    (
        {"columns": {"a": {"kind": "tokens", "min_df": 0}}, "numbering": "counted"},
        r"\['min_df'\] must be a whole number",
    ),
    ({"columns": {1: "text"}}, "names of columns are strings"),
    ({"numbering": "both"}, "numbering must be one of"),
    ({"n_features": 0}, "n_features must be an integer of at least 1"),
    ({"n_features": 2**31}, "n_features must be from 1 to 2147483647"),
    ({"missing": "mean"}, "missing must be one of"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS)
def test_a_bad_parameter_is_told(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TableEncoder(**parameters).fit({"a": ["x y", "z"], "b": [1, 2]})


def test_what_is_no_table_is_told():
    encoder = TableEncoder({"a": "numeric"})
    known = TableEncoder({"a": "numeric"}).fit({"a": [1.0]})
    for table in (3, np.eye(2), [[1, 2]], "table.xlsx", [{"a": 1.0}, 3], {"a": 1.0}, [None, {"a": 1.0}]):
        for call in (encoder.fit, known.transform):
            with pytest.raises((TypeError, ValueError), match=r"table|dicts|row"):
                call(table)
    with pytest.raises(FileNotFoundError):
        encoder.fit("nowhere.csv")


def test_rows_are_explained_by_their_names():
    encoder = TableEncoder(KINDS, numbering="counted").fit(FLIGHTS)
    row = {"carrier": "AA", "distance": 10.0, "stops": 1, "review": "good good", "tags": ["a"]}
    names = encoder.get_feature_names_out()
    values = encoder.transform([row]).toarray()[0]
    explained = encoder.explain_row(row)
    assert [(column, name) for column, name, _, _ in explained] == [
        ("carrier", "AA"),
        ("distance", "10.0"),
        ("stops", "1"),
        ("review", "good"),
        ("tags", "a"),
    ]
    assert all(values[index] == pytest.approx(value) for _, _, index, value in explained)
    assert [names[index] for _, _, index, _ in explained] == [
        "carrier_AA",
        "distance",
        "stops_1",
        "review__good",
        "tags__a",
    ]


@pytest.mark.parametrize(("numbering", "n_features"), [("counted", 1), ("hashed", 1 << 20), ("hashed", 5)])
def test_contributions_and_the_intercept_are_the_decision_value(numbering, n_features):
    encoder = TableEncoder(KINDS, numbering=numbering, n_features=n_features)
    predictor = Predictor.of(make_pipeline(encoder, LinearSVC()).fit(FLIGHTS, LATE))
    for row in (dict(zip(FLIGHTS, row, strict=True)) for row in zip(*FLIGHTS.values(), strict=True)):
        explained = predictor.explain(row, k=1000)
        total = sum(value for _, value in explained) + predictor._intercept[0]
        assert total == pytest.approx(predictor.decision_function(row), abs=1e-6)
        assert [abs(value) for _, value in explained] == sorted((abs(value) for _, value in explained), reverse=True)
    best = predictor.top_features(3)
    weights = np.abs(predictor.to_estimator()[-1].coef_[0])
    assert [abs(weight) for _, weight in best] == pytest.approx(sorted(weights, reverse=True)[:3])
    assert isinstance(best[0][0], str) == (numbering == "counted")


def test_threads_share_an_encoder():
    encoder = TableEncoder(KINDS, numbering="counted", n_jobs=1).fit(FLIGHTS)
    expected, found = encoder.transform(FLIGHTS), []
    work = lambda: found.extend((encoder.transform(FLIGHTS) != expected).nnz for _ in range(50))  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 400


def test_arrow_memory_is_given_back():
    frame = pl.DataFrame({"t": ["some words"] * 1000})
    encoder = TableEncoder({"t": "text"}).fit(frame)
    reader = _native.TableReader(frame.__arrow_c_stream__())
    batch = next(reader)
    del reader, frame
    gc.collect()
    rows = _native.EncodedRows()
    rows.add(encoder._coder.native, batch, 1)
    assert len(rows.take()[0]) == 1001
    capsule = pl.DataFrame({"a": [1]}).__arrow_c_stream__()
    _native.TableReader(capsule)
    with pytest.raises(ValueError, match=r"released|null|empty|read"):
        _native.TableReader(capsule)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".arrow"])
def test_files_are_read_in_batches(suffix, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pl.DataFrame({"carrier": FLIGHTS["carrier"], "stops": FLIGHTS["stops"], "review": FLIGHTS["review"]})
    path = tmp_path / f"table{suffix}"
    {
        ".parquet": frame.write_parquet,
        ".csv": frame.write_csv,
        ".jsonl": frame.write_ndjson,
        ".arrow": frame.write_ipc,
    }[suffix](path)
    kinds = {"carrier": {"kind": "categorical", "missing": "zero"}, "stops": "categorical"}
    encoder = TableEncoder(kinds, numbering="counted").fit(path)
    expected = TableEncoder(kinds, numbering="counted").fit(frame)
    assert encoder.transform(path).shape[0] == 8
    if suffix != ".csv":  # an empty field is an empty string there
        assert encoder.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
        assert (encoder.transform(path) != expected.transform(frame)).nnz == 0
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    if suffix in (".parquet", ".arrow"):
        with pytest.raises(ValueError, match="cannot be read"):
            encoder.transform(path)
    assert Path(tempfile.gettempdir()).exists()


def test_tables_on_the_command_line(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyarrow")
    from hinge.cli import main

    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    carrier = random.choice(["a", "b", "c"], 500)
    late = np.where(carrier == "b", "late", "on time")
    frame = pl.DataFrame({"carrier": carrier, "x": random.normal(size=500), "late": late})
    frame.write_parquet("train.parquet")
    frame[:100].write_csv("test.csv")
    frame[:5].drop("late").write_ndjson("new.jsonl")
    for how in ("hashed", "counted"):
        assert main(["train", "-q", "--label", "late", "--numbering", how, "train.parquet", "model.hinge"]) == 0
        served = hinge.load("model.hinge")
        assert served.metadata == {"label": "late"}
        assert main(["predict", "test.csv", "model.hinge", "out.txt"]) == 0
        assert capsys.readouterr().out.endswith("Accuracy = 100% (100/100)\n")
        assert Path("out.txt").read_text().split("\n")[:100] == late[:100].tolist()
        assert main(["predict", "new.jsonl", "model.hinge", "out.txt"]) == 0
        assert capsys.readouterr().out == ""
    for arguments, message in (
        (["train", "train.parquet"], "train.parquet is a table: name the column of its labels by --label"),
        (["train", "--label", "late", "train.txt"], "--label is for tables, train.txt is not the name of one"),
        (["train", "--label", "none", "train.parquet"], "the table has no column"),
        (["train", "--numbering", "hashed", "train.txt"], "--numbering is for tables"),
        (["train", "--label", "late", "--model-format", "liblinear", "train.parquet"], "only hinge's own files"),
        (["train", "--label", "late", "--memory", "1GB", "train.parquet"], "--memory is for lines"),
    ):
        with contextlib.suppress(SystemExit):
            assert main(arguments) != 0
        assert message in capsys.readouterr().err
