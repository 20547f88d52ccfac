"""Presolve through the estimators: the same models, honest certificates, and a report."""

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from problems import INTERCEPTS, LOSSES, estimator, objective, search_estimator


def planted(seed, dtype=np.float64, n_rows=80, n_classes=2):
    """Ten columns, with copies, negatives, multiples, columns of one row, empty ones, stored zeros; and labels."""
    random = np.random.default_rng(seed)
    fresh = random.standard_normal((n_rows, 10)) * (random.random((n_rows, 10)) < 0.4)
    multiples = fresh[:, random.integers(0, 10, 15)] * random.choice([1.0, -1.0, 2.0, 0.3, -1.7], 15)
    alone = np.zeros((n_rows, 30))
    alone[random.integers(0, n_rows // 3, 30), np.arange(30)] = random.standard_normal(30)
    dense = np.hstack([fresh, multiples, alone, np.zeros((n_rows, 4))])
    dense = dense[:, random.permutation(dense.shape[1])]
    stored = np.nonzero((dense != 0) | (random.random(dense.shape) < 0.02))
    X = sp.csr_matrix((dense[stored], stored), dense.shape)
    values = fresh @ random.standard_normal((10, n_classes)) + 0.5 * random.standard_normal((n_rows, n_classes))
    y = values.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X.astype(dtype), y


def both(loss, X, y, sample_weight=None, **parameters):
    """A model fitted without and one fitted with presolve."""
    return [
        estimator(loss, presolve=presolve, **parameters).fit(X, y, sample_weight=sample_weight)
        for presolve in (False, True)
    ]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 3))
def test_the_model_is_the_same(loss, intercept, seed, n_classes):
    X, y = planted(seed, n_classes=n_classes)
    weight = np.random.default_rng(seed).integers(0, 3, len(y)).astype(float)
    weight[:n_classes] = 1.0
    plain, packed = both(loss, X, y, weight, solver="newton", tol=1e-11, max_iter=10_000, **INTERCEPTS[intercept])
    assert plain.presolve_ is None
    assert packed.presolve_.n_columns < packed.presolve_.n_features_in
    np.testing.assert_allclose(packed.certificate_.primal, plain.certificate_.primal, rtol=1e-10)
    np.testing.assert_allclose(packed.certificate_.primal, objective(packed, X, y, loss, weight), rtol=1e-12)
    scale = 1 + np.abs(plain.coef_).max()
    np.testing.assert_allclose(packed.coef_, plain.coef_, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(packed.decision_function(X), plain.decision_function(X), rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_nearly_full_rows_are_fitted_as_dense_ones(dtype, index):
    random = np.random.default_rng(4)
    dense = (random.standard_normal((300, 40)) * (random.random((300, 40)) < 0.85)).astype(dtype)
    y = np.where(dense @ random.standard_normal(40) + random.standard_normal(300) > 0, "a", "b")
    sets = np.column_stack([y == "a", dense[:, 0] > 0])
    X = sp.csr_matrix(dense)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    kept = [part.copy() for part in (X.indptr, X.indices, X.data)]
    makers = [
        lambda **options: estimator("hinge", **options),
        lambda **options: estimator("logistic", penalty="l1", C=0.1, **options),
        lambda **options: estimator("squared_hinge", degree=2, C=0.01, **options),
        lambda **options: estimator("squared_hinge", solver="dual_cd", **options),
        lambda **options: search_estimator("logistic", **options),
    ]
    for make in makers:
        of_array, filled, plain = (
            make(presolve=presolve).fit(matrix, y) for presolve, matrix in (("auto", dense), ("auto", X), (False, X))
        )
        np.testing.assert_array_equal(filled.coef_, of_array.coef_)
        np.testing.assert_allclose(plain.coef_, of_array.coef_, rtol=0.02, atol=0.02)
    for make in makers[:2]:
        np.testing.assert_array_equal(make().fit(X, sets).coef_, make().fit(dense, sets).coef_)
    assert all(np.array_equal(a, b) for a, b in zip(kept, (X.indptr, X.indices, X.data), strict=True))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_float32_certificates_hold_for_the_input(loss, index):
    """At a tolerance below what single precision can promise, the fit is finished on the input itself."""
    X, y = planted(3, np.float32, n_rows=300)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    for tol in (1e-4, 1e-9):
        model = estimator(loss, presolve=True, tol=tol, max_iter=100_000).fit(X, y)
        assert model.presolve_.n_merged > 0
        assert model.certificate_.relative_gap[0] <= tol
        np.testing.assert_allclose(model.certificate_.primal, objective(model, X, y, loss), rtol=1e-12)


def test_the_report_counts():
    X = sp.csr_matrix(
        np.array(
            [
                [1.0, 2.0, 0.0, 5.0, 0.0, -1.0],
                [0.0, 0.0, 0.0, 0.0, 3.0, 0.0],
                [2.0, 4.0, 0.0, 7.0, 0.0, -2.0],
                [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            ]
        )
    )
    X = sp.hstack([X, sp.csr_matrix(([1.0, 2.0], ([3, 3], [0, 1])), (4, 2))]).tocsr()
    model = hinge.LinearSVC(presolve=True).fit(X, [0, 1, 0, 1])
    assert model.presolve_ == hinge.Presolve(
        n_features_in=8, n_columns=4, nnz_in=11, nnz_out=6, n_merged=2, n_merged_alone=1, n_dropped=1
    )
    assert model.coef_[0, 2] == 0.0
    np.testing.assert_allclose(model.coef_[0, [1, 5]], model.coef_[0, 0] * np.array([2.0, -1.0]), rtol=1e-14)


def test_auto_leaves_few_columns_and_dense_rows_alone():
    X, y = planted(0)
    assert hinge.LinearSVC().fit(X, y).presolve_ is None
    assert hinge.LinearSVC(presolve=True).fit(X.toarray(), y).presolve_ is None


def test_auto_packs_many_columns_for_many_passes():
    random = np.random.default_rng(0)
    columns = (random.random((2000, 60)) ** 4 * 200_000).astype(int)
    X = sp.csr_matrix((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 60)), (2000, 200_000))
    X.sum_duplicates()
    X.data[:] = 60**-0.5
    y = random.integers(0, 30, 2000)
    assert hinge.LinearSVC().fit(X, y).presolve_.n_features_in == 200_000
    assert hinge.LinearSVC().fit(X, y == 0).presolve_ is None


@pytest.mark.parametrize("loss", LOSSES)
def test_searches_score_the_same(loss):
    X, y = planted(5, n_rows=150)
    options = {"loss": loss, "solver": "dual_cd", "cv": 3, "C_max": 4.0, "tol": 1e-5}
    plain, packed = (hinge.select_C(X, y, presolve=presolve, **options) for presolve in (False, True))
    np.testing.assert_array_equal(packed.Cs, plain.Cs)
    np.testing.assert_allclose(packed.scores, plain.scores, atol=1.01 / 50)
    model = search_estimator(loss, cv=3, C_max=4.0, presolve=True).fit(X, y)
    assert model.presolve_.n_merged > 0
    assert model.search_.best_C == model.C_


@pytest.mark.parametrize("value", ["on", "off", None, 1, 0, 2.0])
def test_bad_values_are_refused(value):
    X, y = planted(0)
    for call in (hinge.LinearSVC(presolve=value).fit, hinge.LogisticRegressionCV(presolve=value).fit):
        with pytest.raises(ValueError, match="presolve must be 'auto', True or False, got"):
            call(X, y)
    with pytest.raises(ValueError, match="presolve must be 'auto', True or False, got"):
        hinge.select_C(X, y, presolve=value)


@pytest.mark.parametrize("loss", LOSSES)
def test_imdb(real, loss):
    """A million and a half columns; the fits visit the same rows in the same order and end at the same point."""
    X, y, _, _ = real("imdb")
    plain, packed = both(loss, X[::6], y[::6], tol=1e-3)
    assert packed.presolve_.n_columns < 0.4 * X.shape[1]
    np.testing.assert_allclose(packed.certificate_.primal, plain.certificate_.primal, rtol=1e-6)
    exact = [model.decision_function(X[1::50]) for model in (plain, packed)]
    np.testing.assert_allclose(*exact, atol=1e-3)
