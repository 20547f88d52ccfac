"""Decision values and what follows from them, against the obvious product."""

import copy
import pickle
import threading
import tracemalloc
import warnings

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hinge import _native, _probability, _products, _validate
from hypothesis import given
from hypothesis import strategies as st
from problems import sparse_problem


def model_with(coef, intercept=None, **options):
    """A classifier with given weights, as if it had been fitted."""
    model = hinge.LinearSVC(**options)
    n_vectors, n_features = coef.shape
    model.coef_, model.n_features_in_ = coef, n_features
    model.intercept_ = np.linspace(-1, 1, n_vectors) if intercept is None else intercept
    model.classes_ = np.arange(max(2, n_vectors))
    return model


@st.composite
def rows(draw, n_columns):
    """A CSR matrix with empty rows, unsorted columns and columns that come twice within a row."""
    n_rows = draw(st.integers(1, 9))
    lengths = draw(st.lists(st.integers(0, 14), min_size=n_rows, max_size=n_rows))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    index, dtype = draw(st.sampled_from([np.int32, np.int64])), draw(st.sampled_from([np.float32, np.float64]))
    data = random.standard_normal(indptr[-1]).astype(dtype)
    indices = random.integers(0, n_columns, indptr[-1])
    X = sp.csr_matrix((data, indices, indptr), shape=(n_rows, n_columns))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def plain(model, X):
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
    dense = X.astype(np.float64).toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    values = dense @ coef.T.astype(np.float64) + model.intercept_
    return values.ravel() if values.shape[1] == 1 else values


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda coef: coef.astype(np.float32),
    "float32 F": lambda coef: np.asfortranarray(coef, dtype=np.float32),
    "strided": lambda coef: np.repeat(coef, 2, axis=1)[:, ::2],
    "swapped": lambda coef: coef.astype(">f8"),
    "whole": lambda coef: np.rint(4 * coef).astype(np.int64),
    "csr": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csr float32": lambda coef: sp.csr_matrix(coef.astype(np.float32)),
    "csc": sp.csc_array,
}


@given(st.data())
@pytest.mark.parametrize("layout", LAYOUTS)
def test_decision_values_are_those_of_the_product(layout, data):
    n_columns, n_vectors = data.draw(st.integers(1, 70)), data.draw(st.sampled_from([1, 3, 4, 5, 7]))
    random = np.random.default_rng(n_columns)
    coef = random.standard_normal((n_vectors, n_columns)) * (random.random((n_vectors, n_columns)) < 0.6)
    model = model_with(LAYOUTS[layout](coef), n_jobs=data.draw(st.sampled_from([1, 2])))
    X = data.draw(rows(n_columns))
    for given_rows in (X, X.tocsc(), X.toarray(), np.asfortranarray(X.toarray()), X.toarray().tolist()):
        found = model.decision_function(given_rows)
        np.testing.assert_allclose(found, plain(model, given_rows), rtol=1e-12, atol=1e-12)
    for i in range(X.shape[0]):
        alone = [model.decision_function(one).ravel() for one in (X[i : i + 1], X[i : i + 1].toarray())]
        np.testing.assert_array_equal(alone[0], model.decision_function(X)[i : i + 1].ravel())
        np.testing.assert_array_equal(alone[1], model.decision_function(X.toarray())[i : i + 1].ravel())
    if n_vectors > 1:
        labels, values = model.predict_top_k(X, k=2)
        np.testing.assert_array_equal(values, -np.sort(-model.decision_function(X), axis=1)[:, :2])
        np.testing.assert_array_equal(np.take_along_axis(model.decision_function(X), labels, axis=1), values)
        np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))


@pytest.mark.parametrize("layout", ["C", "F", "csr"])
@pytest.mark.parametrize("kind", [sp.csr_matrix.toarray, sp.csr_matrix])
def test_batches_and_threads_keep_the_bits(layout, kind):
    """But for products of dense matrices, which are BLAS's: these agree to rounding."""
    random = np.random.default_rng(0)
    X = kind(sp.random(3000, 200, 0.2, format="csr", random_state=0))
    coef = LAYOUTS[layout](random.standard_normal((40, 200)) * (random.random((40, 200)) < 0.5))
    one, two = (model_with(coef, n_jobs=n).decision_function(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    alone = np.vstack([model_with(coef).decision_function(X[i : i + 1]) for i in range(0, 3000, 100)])
    if layout != "csr" and isinstance(X, np.ndarray):
        np.testing.assert_allclose(one, plain(model_with(coef), X), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(one[::100], alone, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(one[::100], alone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_batches_are_cut_into_blocks(dtype, monkeypatch):
    monkeypatch.setattr(_products, "BLOCK_PRODUCTS", 40 * 200 * 100)
    random = np.random.default_rng(0)
    X, model = random.standard_normal((1000, 200)).astype(dtype), model_with(random.standard_normal((40, 200)))
    model.coef_ = model.coef_.astype(dtype)
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(model.decision_function(X), plain(model, X), rtol=tolerance, atol=tolerance)
    X[777, 3] = np.nan
    with pytest.raises(ValueError, match="NaN in row 777, column 3"):
        model.decision_function(X)
    with sklearn.config_context(assume_finite=True):
        assert np.isnan(model.decision_function(X)[777]).all()


def test_weights_are_not_copied():
    coef = np.random.default_rng(0).standard_normal((50, 20_000))
    X = sp.random(1, 20_000, 0.01, format="csr", random_state=0)
    for layout in ("C", "F", "float32"):
        model = model_with(LAYOUTS[layout](coef))
        model.decision_function(X)
        tracemalloc.start()
        model.decision_function(X)
        model.predict(X)
        model.predict_top_k(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100_000, (layout, peak)  # the weights take 8,000,000 or 4,000,000 bytes


def sparse_model():
    X, y = sparse_problem(1, n_rows=300, n_columns=60, n_classes=5, density=0.1)
    return X, hinge.LinearSVC(sparse_coef=True, sparse_tol=0.1).fit(X, y)


def test_columns_of_sparse_weights_are_looked_up_once(monkeypatch):
    X, model = sparse_model()
    made = []

    make = _native.ColumnIndex
    monkeypatch.setattr(_native, "ColumnIndex", lambda *args: made.append(args) or make(*args))
    for _ in range(3):
        model.predict(X)
        model.decision_function(X[:1])
        model.predict_top_k(X, k=2)
    assert len(made) == 1
    model.coef_ = model.coef_.copy()
    model.predict(X)
    assert len(made) == 2


def test_changed_sparse_weights_are_noticed():
    X, model = sparse_model()

    def check():
        np.testing.assert_allclose(model.decision_function(X), plain(model, X), rtol=1e-12, atol=1e-12)

    check()
    model.coef_.data *= -2.0
    check()
    model.coef_.data[model.coef_.data < 0] = 0
    model.coef_.eliminate_zeros()
    check()
    model.coef_ = sp.csr_matrix(model.coef_[:, ::-1])
    check()
    assert not model.coef_.has_sorted_indices
    model.coef_.sort_indices()
    check()
    model.coef_ = model.coef_.toarray()
    check()
    model.sparsify()
    check()
    model.coef_[0, :5] = 3.0
    check()


def test_looked_up_columns_are_no_part_of_the_model():
    X, model = sparse_model()
    before, attributes = pickle.dumps(model), dict(vars(model))
    model.predict(X)
    assert vars(model) == attributes
    assert pickle.dumps(model) == before
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(before)):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
        other.coef_ = 2 * other.coef_
        np.testing.assert_allclose(other.decision_function(X), plain(other, X), atol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), plain(model, X), atol=1e-12)


def test_threads_share_a_model():
    X, model = sparse_model()
    expected, found = model.decision_function(X), []

    def work():
        found.extend(model.decision_function(X) for _ in range(20))

    model = pickle.loads(pickle.dumps(model))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    for values in found:
        np.testing.assert_array_equal(values, expected)


def test_broken_sparse_weights_are_an_error():
    X, model = sparse_model()
    model.coef_.indices[3] = 10**6
    with pytest.raises(ValueError, match=r"coef_ is not a CSR matrix: column index 1000000 is outside 0\.\.60"):
        model.predict(X)


def test_one_intercept_stands_for_all():
    X, model = sparse_model()
    model.intercept_ = 0.5
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T.toarray() + 0.5, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [sp.csr_matrix.toarray, sp.csr_matrix, sp.coo_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bad_values_are_named_unless_finite_is_assumed(bad, kind, dtype):
    X, y = sparse_problem(3, n_rows=300, n_columns=30, n_classes=3)
    X = X.astype(dtype)
    model = hinge.LinearSVC().fit(X, y)
    clean = model.decision_function(X)
    row = 217
    X.data[X.indptr[row]] = bad
    column, given_rows = X.indices[X.indptr[row]], kind(X)
    what = "NaN" if np.isnan(bad) else "infinity"
    sparse = pickle.loads(pickle.dumps(model)).sparsify()
    for method in (model.predict, model.decision_function, sparse.predict, model.predict_top_k):
        options = {"k": 2} if method == model.predict_top_k else {}
        with pytest.raises(ValueError, match=f"contains {what} in row {row}, column {column}"):
            method(given_rows, **options)
        with sklearn.config_context(assume_finite=True):
            method(given_rows, **options)
    with sklearn.config_context(assume_finite=True):
        values = model.decision_function(given_rows)
    assert not np.isfinite(values[row]).any()
    others = np.arange(300) != row
    np.testing.assert_allclose(values[others], clean[others], rtol=1e-6)


def test_duplicates_that_add_up_to_infinity_are_named():
    model = model_with(np.array([[1e-300, 0.0]]))
    X = sp.csr_matrix((np.full(2, 1e308), [0, 0], [0, 0, 2]), shape=(2, 2))
    with pytest.raises(ValueError, match="row 1, column 0: its 2 entries add up to infinity"):
        model.decision_function(X)
    X.data[1] = -1e308
    np.testing.assert_array_equal(model.decision_function(X), [-1.0, -1.0])


@pytest.mark.parametrize("assumed", [False, True])
def test_broken_structure_is_an_error_whatever_is_assumed(assumed):
    X, y = sparse_problem(3, n_rows=100, n_columns=30, n_classes=3)
    model = hinge.LinearSVC().fit(X, y)
    for name, at, value, message in [
        ("indices", 7, 30, r"column index 30 is outside 0\.\.30"),
        ("indices", 7, -1, r"column index -1 is outside 0\.\.30"),
        ("indptr", 4, 10**6, "indptr"),
        ("indptr", 0, 1, "indptr starts at 1"),
    ]:
        broken = X.copy()
        getattr(broken, name)[at] = value
        with sklearn.config_context(assume_finite=assumed), pytest.raises(ValueError, match=message):
            model.predict(broken)


def test_what_needs_validation_is_validated():
    X, y = sparse_problem(3, n_rows=100, n_columns=30)
    model = hinge.LinearSVC().fit(X, y)
    expected = model.decision_function(X)
    dense = X.toarray()
    for same in (
        dense.astype(np.float16).astype(np.float64),
        dense.astype(np.float32).astype(np.longdouble),
        np.ma.masked_array(dense),
        np.asfortranarray(dense),
        X.tocoo(),
        X.tolil(),
        dense.tolist(),
    ):
        np.testing.assert_allclose(model.decision_function(same), expected, rtol=2e-2, atol=2e-2)
    for bad, message in [
        (dense[:, :29], "29 features"),
        (X[:, :29], "29 features"),
        (dense[:0], "0 sample"),
        (dense[0], "1D array"),
        (dense.astype(complex), "[Cc]omplex"),
        (np.array([["a"] * 30]), "could not convert"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.decision_function(bad)


def test_names_of_columns_are_still_looked_at():
    pandas = pytest.importorskip("pandas")
    X, y = sparse_problem(3, n_rows=100, n_columns=4)
    table = pandas.DataFrame(X.toarray(), columns=list("abcd"))
    named, unnamed = hinge.LinearSVC().fit(table, y), hinge.LinearSVC().fit(X, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(table.to_numpy())
    with pytest.warns(UserWarning, match="has feature names"):
        unnamed.predict(table)
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(table[list("bacd")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named.predict(table)
        unnamed.predict(X)


def test_clean_input_is_taken_as_it_is():
    X, y = sparse_problem(3, n_rows=100, n_columns=30)
    model = hinge.LinearSVC().fit(X, y)
    for ready in (X, sp.csr_array(X), X.toarray(), X.astype(np.float32)):
        assert _validate.shaped_data(model, ready) is ready


@pytest.mark.parametrize("make", [hinge.LinearSVC, hinge.LogisticRegression])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_sparsify_and_densify(make, n_classes):
    X, y = sparse_problem(5, n_rows=200, n_columns=30, n_classes=n_classes)
    model = make().fit(X, y)
    coef, values, classes = model.coef_.copy(), model.decision_function(X), model.predict(X)
    assert model.densify() is model
    np.testing.assert_array_equal(model.coef_, coef)
    assert model.sparsify() is model
    assert sp.issparse(model.coef_)
    assert model.coef_.format == "csr"
    assert model.sparsify() is model
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), classes)
    if make is hinge.LogisticRegression:
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    pieces = hinge.iter_predictions(model, ((X[k : k + 50], y[k : k + 50]) for k in range(0, 200, 50)))
    np.testing.assert_array_equal(np.concatenate(list(pieces)), classes)
    assert model.densify() is model
    np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(model.decision_function(X), values)


def test_sparsify_where_it_cannot_be():
    X, y = sparse_problem(5, n_rows=60, n_columns=5)
    for method in ("sparsify", "densify"):
        with pytest.raises(sklearn.exceptions.NotFittedError):
            getattr(hinge.LinearSVC(), method)()
    with pytest.raises(ValueError, match="degree is 2"):
        hinge.LinearSVC(degree=2).fit(X, y).sparsify()
    model = hinge.PegasosClassifier(tol=0.1).fit(X, y)
    objective = model.objective(X, y)
    np.testing.assert_allclose(model.sparsify().objective(X, y), objective)


def test_stores_predict_the_same(tmp_path):
    X, y = sparse_problem(6, n_rows=300, n_columns=40, n_classes=5)
    model = hinge.LinearSVC().fit(X, y)
    store = hinge.BlockStore.build((X, y), tmp_path / "rows.hinge")
    np.testing.assert_allclose(model.decision_function(store), model.decision_function(X), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match=r"call densify\(\)"):
        model.sparsify().decision_function(store)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_label_matrices_of_many_rows(kind):
    X, _ = sparse_problem(7, n_rows=2500, n_columns=30)
    Y = (X @ np.random.default_rng(0).standard_normal((30, 6)) > 0.5).astype(int)
    model = hinge.LinearSVC(max_iter=5000).fit(X, kind(Y))
    predicted = model.predict(X)
    expected = (model.decision_function(X) > 0).astype(np.int64)
    assert sp.issparse(predicted) == (kind is sp.csr_matrix)
    as_array = predicted.toarray() if sp.issparse(predicted) else predicted
    np.testing.assert_array_equal(as_array, expected)
    assert as_array.dtype == np.int64


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 50.0, 1000.0]), st.sampled_from([-2000.0, -60.0, 0.0, 60.0])
)
def test_probabilities_are_those_of_their_logarithms(seed, scale, shift):
    values = shift + scale * np.random.default_rng(seed).standard_normal((20, 5))
    for given_values in (values, values[:, 0]):
        found = _probability.probabilities(given_values)
        expected = np.exp(_probability.log_probabilities(given_values))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-200)
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
