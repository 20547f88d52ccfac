"""Small cases that other packages publish for absolute values in the penalty: glmnet's numbers, celer's problems."""

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

# The logistic example of GLMNet.jl's tests (test/runtests.jl), whose numbers are those of R's glmnet: columns scaled to
# a standard deviation of 1 in the penalty, losses divided by the number of rows.
GLMNET_ROWS = np.array(
    [
        [74, 1, 93, 93, 79, 18],
        [98, 36, 2, 27, 65, 70],
        [61, 8, 99, 53, 77, 92],
        [47, 51, 67, 84, 87, 80],
        [81, 32, 9, 18, 32, 10],
        [78, 67, 92, 98, 4, 65],
        [67, 94, 30, 20, 85, 73],
        [51, 100, 75, 76, 86, 18],
        [93, 71, 76, 64, 70, 91],
        [30, 5, 13, 89, 19, 2],
    ],
    dtype=np.float64,
)
GLMNET_LABELS = np.array([9, 67, 91, 80, 2, 61, 70, 13, 83, 21]) >= 50
GLMNET_LAMBDAS = (0.18631869229023220, 0.00717984408283161, 0.00341100762310301)
GLMNET_INTERCEPTS = (-1.587541202884270, -6.80046165536594, -7.99932508790125)
GLMNET_WEIGHTS = (
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.04118567893498771],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.1609132092629401],
    [0.0, 0.0, 0.0, 0.0, -0.0001247956998235217, 0.1892922463930407],
)
GLMNET_FIRST = 0.472385796995596
"""The smallest multiple of the penalty at which all weights are zero."""


def glmnets(share: float) -> hinge.LogisticRegression:
    """Our form of glmnet's problem."""
    C = 1.0 / (len(GLMNET_ROWS) * share)
    return hinge.LogisticRegression(penalty="l1", C=C, penalty_factors=GLMNET_ROWS.std(axis=0), tol=1e-10)


def glmnets_objective(share: float, w: np.ndarray, b: float) -> float:
    losses = np.logaddexp(0.0, -np.where(GLMNET_LABELS, 1.0, -1.0) * (GLMNET_ROWS @ w + b))
    return losses.mean() + share * (GLMNET_ROWS.std(axis=0) @ abs(w))


@pytest.mark.parametrize("case", range(3))
def test_weights_of_glmnet(case):
    share, w, b = GLMNET_LAMBDAS[case], np.array(GLMNET_WEIGHTS[case]), GLMNET_INTERCEPTS[case]
    found = glmnets(share).fit(GLMNET_ROWS, GLMNET_LABELS)
    # glmnet stops at a change of 1e-7 of the deviance: in the third case two weights are off by 7e-5, the intercept
    # by 7e-3.
    np.testing.assert_allclose(found.coef_[0], w, atol=1e-4)
    np.testing.assert_allclose(found.intercept_[0], b, rtol=1e-3)
    theirs = glmnets_objective(share, w, b)
    ours = glmnets_objective(share, found.coef_[0], found.intercept_[0])
    assert (1 - 1e-5) * theirs <= ours <= theirs


def test_weights_leave_zero_where_those_of_glmnet_do():
    assert not glmnets(GLMNET_FIRST * (1 + 1e-9)).fit(GLMNET_ROWS, GLMNET_LABELS).coef_.any()
    found = glmnets(GLMNET_FIRST * (1 - 1e-3)).fit(GLMNET_ROWS, GLMNET_LABELS)
    assert np.flatnonzero(found.coef_[0]).tolist() == [5]
    # With no weight the intercept is the logarithm of the odds.
    assert found.intercept_[0] == pytest.approx(np.log(6 / 4), abs=1e-2)


def correlated(n: int, d: int, seed: int, *, is_sparse: bool) -> tuple[np.ndarray | sp.csr_matrix, np.ndarray]:
    """Rows of which each column is half the one before, and labels of a few of them, as celer's tests have them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    if is_sparse:
        X = sp.csr_matrix(X * (rng.random((n, d)) < 0.5))
    w = np.where(np.arange(d) < 10, np.where(np.arange(d) % 2, -1.0, 1.0), 0.0)
    return X, np.where(X @ w + 0.5 * rng.standard_normal(n) > 0, 1, -1)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_celers_path_has_liblinears_weights(is_sparse):
    X, y = correlated(60, 100, 0, is_sparse=is_sparse)
    first = 2.0 / abs(X.T @ y).max()
    for C in first * np.geomspace(1.0, 100.0, 10)[1:]:
        options = {"penalty": "l1", "C": C, "fit_intercept": False}
        found = hinge.LogisticRegression(tol=1e-10, **options).fit(X, y)
        expected = LogisticRegression(
            C=C, l1_ratio=1.0, fit_intercept=False, solver="liblinear", tol=1e-11, max_iter=100_000, random_state=0
        ).fit(X, y)
        np.testing.assert_array_equal(found.coef_ != 0, expected.coef_ != 0)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-3, atol=1e-5)


def test_celers_infinite_weights_leave_columns_out():
    X, y = correlated(50, 100, 1, is_sparse=False)
    factors = np.ones(100)
    out = np.random.default_rng(1).choice(100, 10, replace=False)
    factors[out] = np.inf
    C = 100.0 * 2.0 / abs(X.T @ y)[np.isfinite(factors)].max()
    options = {"penalty": "l1", "C": C, "fit_intercept": False, "tol": 1e-9}
    found = hinge.LogisticRegression(penalty_factors=factors, **options).fit(X, y)
    assert not found.coef_[0, out].any()
    rest = np.setdiff1d(np.arange(100), out)
    without = hinge.LogisticRegression(**options).fit(X[:, rest], y)
    np.testing.assert_allclose(found.coef_[0, rest], without.coef_[0], rtol=1e-3, atol=1e-6)
