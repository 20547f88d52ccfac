"""Several labels per row, and sparse models, against one binary fit per label."""

import hinge
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from problems import sparse_problem


def labels_problem(seed=0, n_rows=200, n_columns=30, n_labels=7):
    X, _ = sparse_problem(seed, n_rows=n_rows, n_columns=n_columns)
    random = np.random.default_rng(seed)
    values = X @ random.standard_normal((n_columns, n_labels)) + random.standard_normal((n_rows, n_labels))
    Y = (values > np.linspace(0.5, 2.0, n_labels)).astype(int)
    Y[0] = 1
    Y[:, 3] = 0
    return X, Y


@pytest.mark.parametrize("make", [hinge.LinearSVC, hinge.LogisticRegression])
@pytest.mark.parametrize("intercept", [{"fit_intercept": False}, {"intercept_scaling": 1.0}, {}])
def test_labels_match_binary_fits(make, intercept):
    X, Y = labels_problem()
    options = {"tol": 1e-9, "max_iter": 100_000, **intercept}
    model = make(**options).fit(X, Y)
    assert model.coef_.shape == (7, 30)
    np.testing.assert_array_equal(model.classes_, np.arange(7))
    values = model.decision_function(X)
    for label in [0, 1, 2, 4, 5, 6]:
        binary = make(**options).fit(X, Y[:, label])
        np.testing.assert_allclose(values[:, label], binary.decision_function(X), atol=2e-3)
    predicted = model.predict(X)
    assert isinstance(predicted, np.ndarray)
    np.testing.assert_array_equal(predicted, (values > 0).astype(int))
    if intercept.get("fit_intercept", True):
        assert not predicted[:, 3].any()
    as_sparse = make(**options).fit(X, sp.csr_matrix(Y)).predict(X)
    assert sp.issparse(as_sparse)
    np.testing.assert_array_equal(as_sparse.toarray(), predicted)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_labels_have_the_names_of_a_data_frame(frame):
    X, Y = labels_problem()
    names = [f"topic {k}" for k in range(7)]
    named = hinge.LinearSVC().fit(X, frame(dict(zip(names, Y.T, strict=True))))
    plain = hinge.LinearSVC().fit(X, Y)
    assert named.classes_.tolist() == names
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    np.testing.assert_array_equal(named.predict(X), plain.predict(X))
    labels, values = named.predict_top_k(X, 2)
    numbers, expected = plain.predict_top_k(X, 2)
    assert labels.tolist() == [[names[k] for k in row] for row in numbers]
    np.testing.assert_array_equal(values, expected)


def test_columns_without_string_names_are_numbered():
    X, Y = labels_problem()
    for frame in (pd.DataFrame(Y), pd.DataFrame(Y, columns=["a", "b", "c", "d", "e", "f", 6])):
        assert hinge.LinearSVC().fit(X, frame).classes_.tolist() == list(range(7))


def test_probabilities_of_labels():
    X, Y = labels_problem()
    model = hinge.LogisticRegression().fit(X, Y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities, 1 / (1 + np.exp(-model.decision_function(X))))
    assert (probabilities[:, 3] == 0).all()


def test_sparse_weights_stay_within_their_bound():
    X, y = sparse_problem(1, n_rows=300, n_columns=200, n_classes=5, density=0.1)
    options = {"loss": "hinge", "tol": 1e-6, "max_iter": 100_000}
    dense = hinge.LinearSVC(**options).fit(X, y)
    whole = hinge.LinearSVC(sparse_coef=True, sparse_tol=0.0, **options).fit(X, y)
    sparse = hinge.LinearSVC(sparse_coef=True, sparse_tol=0.2, **options).fit(X, y)
    assert sp.issparse(sparse.coef_)
    assert sparse.coef_.nnz < 0.95 * whole.coef_.nnz
    assert (sparse.coef_.dtype, whole.coef_.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(whole.certificate_.primal, dense.certificate_.primal, rtol=3e-6)
    signs = np.where(y[:, None] == np.arange(5), 1.0, -1.0)
    values = sparse.decision_function(X)
    squares = sparse.coef_.astype(np.float64).power(2).sum(axis=1).A1
    objective = 0.5 * squares + np.maximum(0, 1 - signs * values).sum(axis=0)
    np.testing.assert_allclose(objective, sparse.certificate_.primal, rtol=1e-9)
    assert (objective <= whole.certificate_.primal * 1.2 * (1 + 1e-9)).all()
    np.testing.assert_array_equal(sparse.predict(X), values.argmax(axis=1))
    np.testing.assert_allclose(values, X @ sparse.coef_.toarray().T + sparse.intercept_, atol=1e-12)
    np.testing.assert_allclose(sparse.decision_function(X.toarray()), values, atol=1e-12)


def test_two_classes_and_threads():
    X, y = sparse_problem(2)
    dense = hinge.LinearSVC(tol=1e-8).fit(X, y)
    sparse = hinge.LinearSVC(tol=1e-8, sparse_coef=True, sparse_tol=0.0).fit(X, y)
    assert sparse.coef_.shape == (1, 30)
    np.testing.assert_allclose(sparse.coef_.toarray(), dense.coef_, atol=1e-3)
    assert (sparse.predict(X) == dense.predict(X)).all()
    X, Y = labels_problem()
    one, two = (hinge.LinearSVC(n_jobs=n, sparse_coef=True).fit(X, Y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_.toarray(), two.coef_.toarray())


@pytest.mark.parametrize("is_sparse", [True, False])
def test_top_k(is_sparse):
    X, Y = labels_problem()
    model = hinge.LinearSVC(sparse_coef=is_sparse).fit(X, Y)
    labels, values = model.predict_top_k(X, 3)
    all_values = model.decision_function(X)
    order = np.argsort(-all_values, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(labels, order)
    np.testing.assert_allclose(values, np.take_along_axis(all_values, order, axis=1), atol=1e-12)
    X, y = sparse_problem(3, n_classes=4)
    names = np.array(["a", "b", "c", "d"])
    model = hinge.LinearSVC().fit(X, names[y])
    assert (model.predict_top_k(X, 1)[0].ravel() == model.predict(X)).mean() > 0.99
    with pytest.raises(ValueError, match="at most the number of classes, 4, got 5"):
        model.predict_top_k(X, 5)


def test_labels_and_sparse_weights_of_pieces_and_stores(tmp_path):
    X, Y = labels_problem()
    store = hinge.BlockStore.build((X, Y[:, 0]), tmp_path / "rows.blocks")
    dense, as_sparse = hinge.LinearSVC().fit(X, Y), hinge.LinearSVC().fit(X, sp.csr_matrix(Y))
    np.testing.assert_array_equal(dense.predict(store), dense.predict(X))
    assert sp.issparse(as_sparse.predict(store))
    np.testing.assert_array_equal(as_sparse.predict(store).toarray(), dense.predict(X))
    pieces = hinge.iter_predictions(dense, ((X[k : k + 50], Y[k : k + 50, 0]) for k in range(0, 200, 50)))
    np.testing.assert_array_equal(np.vstack(list(pieces)), dense.predict(X))
    sparse = hinge.LinearSVC(sparse_coef=True).fit(X, Y)
    with pytest.raises(ValueError, match="predicted with dense weights"):
        sparse.predict(store)


def test_presolve_changes_nothing():
    X, Y = labels_problem()
    doubled = sp.csr_matrix(sp.hstack([X, 3.0 * X]))
    for intercept in ({}, {"fit_intercept": False}):
        fits = [hinge.LinearSVC(tol=1e-8, presolve=p, **intercept).fit(doubled, Y) for p in (True, False)]
        assert fits[0].presolve_ is not None
        assert fits[1].presolve_ is None
        np.testing.assert_allclose(fits[0].certificate_.primal, fits[1].certificate_.primal, rtol=1e-7, atol=1e-12)


def test_refuses_what_does_not_fit():
    X, Y = labels_problem()
    with pytest.raises(ValueError, match="0 or 1 only, it holds 2"):
        hinge.LinearSVC().fit(X, 2 * Y)
    with pytest.raises(ValueError, match="y has 10 rows of labels, X has 200"):
        hinge.LinearSVC().fit(X, Y[:10])
    with pytest.raises(ValueError, match=r"class_weight must be None.*all labels share the weights of the rows"):
        hinge.LinearSVC(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match=r"LogisticRegressionCV takes one class per row.*GridSearchCV"):
        hinge.LogisticRegressionCV().fit(X, Y)
    with pytest.raises(ValueError, match="degree must be 1 where y is a matrix"):
        hinge.LinearSVC(degree=2).fit(X, Y)
    with pytest.raises(ValueError, match="sparse_coef must be False with degree=2"):
        hinge.LinearSVC(degree=2, sparse_coef=True).fit(X, Y)
    with pytest.raises(ValueError, match="sparse_coef must be False for a BlockStore and for partial_fit"):
        hinge.LinearSVC(sparse_coef=True).partial_fit(X, Y[:, 0], classes=[0, 1])
    with pytest.raises(ValueError, match="goes on from dense weights of classes"):
        hinge.LinearSVC().fit(X, Y).partial_fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="sparse_tol must be a finite number of at least 0, got -1"):
        hinge.LinearSVC(sparse_coef=True, sparse_tol=-1.0).fit(X, Y)


def test_a_matrix_of_labels_is_left_alone():
    X, Y = labels_problem()
    given = sp.csc_array(Y)
    given.indices[: given.indptr[1]] = given.indices[: given.indptr[1]][::-1].copy()
    given.data[1] = 0
    before = [array.copy() for array in (given.data, given.indices, given.indptr)]
    hinge.LinearSVC().fit(X, given)
    for array, kept in zip((given.data, given.indices, given.indptr), before, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize("k", [1, 3, 4])
def test_top_k_of_pairs_of_features(k):
    X, y = sparse_problem(3, n_rows=120, n_columns=8)
    y = np.arange(120) % 4
    model = hinge.LinearSVC(degree=2, C=0.1).fit(X, y)
    labels, found = model.predict_top_k(X, k)
    values = model.decision_function(X)
    assert labels.shape == found.shape == (120, k)
    np.testing.assert_array_equal(found, -np.sort(-values, axis=1)[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(values, labels, axis=1), found)
    np.testing.assert_array_equal(labels[:, 0], model.predict(X))
