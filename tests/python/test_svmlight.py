"""Reading of svmlight files, beside scikit-learn's reader."""

import bz2
import errno
import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import load_svmlight
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

SMALL = "+1 1:0.5 3:-2e-1\n-1 2:1 # note\n+1\n"

numbers = st.floats(-1e30, 1e30, allow_subnormal=False)
rows = st.tuples(numbers, st.dictionaries(st.integers(0, 40), numbers, max_size=6))


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="data.svm"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def data_folder():
    return Path(os.environ.get("HINGE_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))


def text_of(matrix):
    lines = (" ".join([repr(y), *(f"{j}:{v!r}" for j, v in sorted(row.items()))]) for y, row in matrix)
    return "\n".join(lines) + "\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(rows, min_size=1, max_size=12), st.sampled_from(["auto", True]), st.sampled_from([1, 3]))
def test_agrees_with_sklearn(write, matrix, zero_based, n_jobs):
    path = write(text_of(matrix))
    X, y = load_svmlight(path, n_features=42, zero_based=zero_based, n_jobs=n_jobs)
    X_sklearn, y_sklearn = load_svmlight_file(str(path), n_features=42, zero_based=zero_based)
    assert isinstance(X, sp.csr_matrix)
    assert X.shape == X_sklearn.shape
    np.testing.assert_array_equal(X.toarray(), X_sklearn.toarray())
    np.testing.assert_array_equal(y, y_sklearn)
    assert y.dtype == y_sklearn.dtype == np.float64


def test_reads_the_documented_parts(write):
    X, y = load_svmlight(write(SMALL))
    np.testing.assert_array_equal(X.toarray(), [[0.5, 0, -0.2], [0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(y, [1, -1, 1])
    assert X.dtype == np.float64
    assert X.indices.dtype == X.indptr.dtype == np.int32


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
def test_compression_and_kind_of_path_do_not_show(write, compress, kind):
    expected, _ = load_svmlight(write(SMALL))
    X, _ = load_svmlight(kind(write(compress(SMALL.encode()), "no_suffix")))
    assert (expected != X).nnz == 0


@pytest.mark.parametrize("dtype", [np.float32, "float32", np.dtype("f4")])
def test_single_precision(write, dtype):
    X, y = load_svmlight(write(SMALL), dtype=dtype)
    assert X.dtype == np.float32
    assert X[0, 2] == np.float32("-0.2")
    assert y.dtype == np.float64


@pytest.mark.parametrize(
    ("text", "zero_based", "columns"),
    [
        ("1 1:1 4:1", "auto", [0, 3]),
        ("1 0:1 4:1", "auto", [0, 4]),
        ("1 1:1 4:1", True, [1, 4]),
        ("1 1:1 4:1", False, [0, 3]),
    ],
)
def test_zero_based(write, text, zero_based, columns):
    X, _ = load_svmlight(write(text), zero_based=zero_based)
    assert X.indices.tolist() == columns
    assert X.shape == (1, columns[-1] + 1)


def test_repeated_columns_are_summed(write):
    X, _ = load_svmlight(write("1 3:1 1:2 3:4\n1 5:1 2:1\n"))
    assert X.nnz == 4
    np.testing.assert_array_equal(X.toarray(), [[2, 0, 5, 0, 0], [0, 1, 0, 0, 1]])


entries = st.tuples(st.integers(1, 6), numbers)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.lists(entries, max_size=8), min_size=1, max_size=8),
    st.booleans(),
    st.sampled_from([6, 2**33, 2**62]),
    st.sampled_from([np.float32, np.float64]),
)
def test_sums_and_arrays_are_those_of_one_row_after_the_other(write, matrix, is_sorted, n_features, dtype):
    matrix = [sorted(row, key=lambda entry: entry[0]) for row in matrix] if is_sorted else matrix
    path = write("\n".join("1 " + " ".join(f"{j}:{v!r}" for j, v in row) for row in matrix) + "\n")
    given = {"n_features": n_features, "dtype": dtype, "zero_based": False}
    ((values, indices, indptr), shape), y = load_svmlight(path, matrix="arrays", **given)
    has_duplicates = any(len({j for j, _ in row}) < len(row) for row in matrix)
    assert (shape, y.tolist()) == ((len(matrix), n_features), [1] * len(matrix))
    for k, row in enumerate(matrix):
        sums = {}
        for j, v in row:
            sums[j - 1] = sums[j - 1] + dtype(v) if j - 1 in sums else dtype(v)
        here = slice(indptr[k], indptr[k + 1])
        expected = sorted(sums.items()) if has_duplicates else list(sums.items())
        assert list(zip(indices[here].tolist(), values[here], strict=True)) == expected
    X, _ = load_svmlight(path, **given)
    for name, array in (("data", values), ("indices", indices), ("indptr", indptr)):
        np.testing.assert_array_equal(getattr(X, name), array)
        assert getattr(X, name).dtype == array.dtype
    assert X.shape == shape
    assert values.dtype == dtype
    assert indices.dtype == indptr.dtype == (np.int32 if n_features < 2**31 else np.int64)


@pytest.mark.parametrize("text", ["1\n", "1 1:1 1:1\n1\n", "1\n1\n1 2:1 1:1 2:-1\n1\n"])
def test_rows_without_entries_stay(write, text):
    ((values, indices, indptr), shape), _ = load_svmlight(write(text), matrix="arrays")
    expected = np.zeros(shape)
    for k, line in enumerate(text.splitlines()):
        for entry in line.split()[1:]:
            expected[k, int(entry[0]) - 1] += float(entry[2:])
    np.testing.assert_array_equal(sp.csr_matrix((values, indices, indptr), shape).toarray(), expected)


def test_arrays_come_with_queries(write):
    (arrays, shape), y, qid = load_svmlight(write("1 qid:3 1:1\n"), query_id=True, matrix="arrays")
    assert [array.tolist() for array in arrays] == [[1], [0], [0, 1]]
    assert (shape, y.tolist(), qid.tolist()) == ((1, 1), [1], [3])


@pytest.mark.parametrize("matrix", ["scipy", "arrays"])
def test_sums_that_overflow_are_refused(write, matrix):
    with pytest.raises(ValueError, match="contains infinity in row 0, column 0"):
        load_svmlight(write("1 1:1e308 1:1e308"), matrix=matrix)


def test_wide_indices(write):
    X, _ = load_svmlight(write("1 1:1 3000000000:2"))
    assert X.shape == (1, 3_000_000_000)
    assert X.indices.dtype == np.int64
    assert X[0, 2_999_999_999] == 2


def test_queries(write):
    path = write("1 qid:3 1:1\n2 qid:-4 2:1\n")
    X, y, qid = load_svmlight(path, query_id=True)
    assert qid.tolist() == [3, -4]
    assert qid.dtype == np.int64
    assert len(load_svmlight(path)) == 2
    assert X.shape == (2, 2)
    assert y.tolist() == [1, 2]


def test_missing_queries(write):
    with pytest.raises(ValueError, match="no queries; expected qid:N"):
        load_svmlight(write(SMALL), query_id=True)


def test_missing_file(tmp_path):
    path = tmp_path / "missing.svm"
    with pytest.raises(FileNotFoundError) as caught:
        load_svmlight(path)
    assert caught.value.errno == errno.ENOENT
    assert caught.value.filename == str(path)


def test_folder(tmp_path):
    with pytest.raises(OSError, match=str(tmp_path.name)) as caught:
        load_svmlight(tmp_path)
    assert caught.value.filename == str(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\n-1 2:x 3:1", r"line 2, column 6: value \"x\" is not a number"),
        ("1 1:nan", r"line 1, column 5: value \"nan\" is not finite"),
        ("1,2 1:1", r"line 1, column 1: .*multi-label files are not supported"),
        ("1 5", r"line 1, column 3: \"5\" has no colon"),
        ("# nothing\n", "no rows"),
    ],
)
def test_malformed_text_is_placed(write, text, message):
    path = write(text)
    with pytest.raises(ValueError, match=message) as caught:
        load_svmlight(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_compressed_file_cut_short(write, compress):
    with pytest.raises(OSError, match=r"data\.svm"):
        load_svmlight(write(compress(SMALL.encode())[:-6]))


def test_index_beyond_n_features(write):
    with pytest.raises(ValueError, match=r"line 1, column 10: index of \"3:-2e-1\" is out of range"):
        load_svmlight(write(SMALL), n_features=2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_features", 0),
        ("n_features", 2.0),
        ("n_features", True),
        ("dtype", np.int32),
        ("dtype", "single precision"),
        ("zero_based", 1),
        ("zero_based", "yes"),
        ("query_id", 1),
        ("n_jobs", 0),
        ("matrix", "csr"),
        ("matrix", None),
    ],
)
def test_parameters_are_checked(write, name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        load_svmlight(write(SMALL), **{name: value})


def test_path_must_be_a_path():
    with pytest.raises(TypeError):
        load_svmlight(3)


def test_nothing_is_remembered(write):
    path = write(SMALL)
    first, _ = load_svmlight(path)
    first.data[:] = 0
    with pytest.raises(ValueError, match="must be"):
        load_svmlight(path, dtype=int)
    second, _ = load_svmlight(path)
    assert second.nnz == 3
    assert second.data.tolist() == [0.5, -0.2, 1]
    assert path.read_text() == SMALL


def test_a9a():
    path = data_folder() / "libsvm" / "a9a"
    if not path.is_file():
        pytest.skip(f"{path} is absent; set HINGE_DATA to a folder with libsvm/a9a")
    X, y = load_svmlight(path, dtype=np.float32)
    X_sklearn, y_sklearn = load_svmlight_file(str(path), dtype=np.float32)
    assert X.shape == X_sklearn.shape
    assert X.shape[0] == 32561
    assert (X_sklearn != X).nnz == 0
    np.testing.assert_array_equal(y, y_sklearn)
