"""The loss "modified_huber" through every solver and route, against scipy.optimize and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import BlockStore, LinearSVC, LinearSVCCV, PegasosClassifier, SubgradientSVC, select_C
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import SGDClassifier

LOSS = "modified_huber"
INTERCEPTS = {"none": (False, None), "free": (True, None), "penalised": (True, 0.7)}


def loss(margins):
    return np.where(margins < -1.0, -4.0 * margins, np.maximum(0.0, 1.0 - margins) ** 2)


def slope(margins):
    return np.where(margins < -1.0, -4.0, -2.0 * np.maximum(0.0, 1.0 - margins))


def problem(n=120, d=6, seed=0, wrong=0.2):
    """Rows in two noisy classes, a share of them mislabelled by far."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.6) * 2.0
    y = np.where(X @ random.normal(size=d) + 0.3 > 0, 1, -1)
    flipped = random.random(n) < wrong
    y[flipped] *= -1
    y[:2] = [-1, 1]
    return X, y


def objective(X, y, w, b, C, scale=None, weight=None):
    cost = C * (np.ones(len(y)) if weight is None else weight)
    norm = w @ w + ((b / scale) ** 2 if scale else 0.0)
    return 0.5 * norm + cost @ loss(y * (X @ w + b))


def twin(X, y, C, intercept, weight=None):
    """The least objective, by a solver that knows nothing of ours."""
    fits, scale = INTERCEPTS[intercept]
    cost = C * (np.ones(len(y)) if weight is None else weight)
    height = (scale or 1.0) if fits else 0.0
    Z = np.column_stack([X, np.full(len(y), height)])
    inside = np.ones(Z.shape[1])
    inside[-1] = 0.0 if scale is None else 1.0

    def value(v):
        margins = y * (Z @ v)
        return 0.5 * (inside * v) @ v + cost @ loss(margins), inside * v + Z.T @ (cost * slope(margins) * y)

    found = minimize(
        value,
        np.zeros(Z.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return found.fun


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("solver", ["auto", "dual_cd", "dual_cd_permuted", "dual_cd_online", "newton"])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_every_solver_reaches_the_optimum(solver, intercept, C):
    X, y = problem()
    fits, scale = INTERCEPTS[intercept]
    model = LinearSVC(
        C=C, loss=LOSS, solver=solver, tol=1e-7, max_iter=50_000, fit_intercept=fits, intercept_scaling=scale
    )
    model.fit(X, y)
    found = objective(X, y, model.coef_[0], model.intercept_[0] if fits else 0.0, C, scale)
    least = twin(X, y, C, intercept)
    assert list(model.certificate_.status) == ["converged"]
    assert model.certificate_.primal[0] == pytest.approx(found, rel=1e-9)
    assert least * (1 - 1e-7) <= found <= least * (1 + 1e-6)


@given(seed=st.integers(0, 10**6), C=st.floats(1e-3, 1e3), intercept=st.sampled_from(list(INTERCEPTS)))
def test_random_problems_and_weights(seed, C, intercept):
    X, y = problem(n=30, d=4, seed=seed, wrong=0.3)
    weight = np.random.default_rng(seed).integers(0, 3, len(y)).astype(float)
    weight[:2] = 1.0
    fits, scale = INTERCEPTS[intercept]
    model = LinearSVC(C=C, loss=LOSS, tol=1e-6, max_iter=20_000, fit_intercept=fits, intercept_scaling=scale)
    model.fit(X, y, sample_weight=weight)
    found = objective(X, y, model.coef_[0], model.intercept_[0] if fits else 0.0, C, scale, weight)
    assert found <= twin(X, y, C, intercept, weight) * (1 + 2e-6) + 1e-12
    assert model.certificate_.dual[0] <= found * (1 + 1e-12)


@pytest.mark.parametrize("form", ["csr float32", "csr int64", "csc", "one value a row", "presolved"])
def test_every_layout(form):
    X, y = problem(n=400, d=30)
    X = (X != 0).astype(float) if form == "one value a row" else X
    expected = twin(X, y, 1.0, "free")
    S = sp.csc_matrix(X) if form == "csc" else sp.csr_matrix(X)
    if form == "csr float32":
        X = X.astype(np.float32).astype(float)
        expected, S = twin(X, y, 1.0, "free"), S.astype(np.float32)
    if form == "csr int64":
        S = sp.csr_array(S)
        S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    model = LinearSVC(loss=LOSS, tol=1e-7, max_iter=20_000, presolve=form == "presolved").fit(S, y)
    assert objective(X, y, model.coef_[0], model.intercept_[0], 1.0) == pytest.approx(expected, rel=1e-6)


def test_same_bits_for_any_number_of_threads():
    X, y = problem(n=3000, d=20)
    models = [LinearSVC(loss=LOSS, n_jobs=jobs).fit(sp.csr_matrix(X), y) for jobs in (1, 2, 3)]
    for other in models[1:]:
        assert np.array_equal(models[0].coef_, other.coef_)
        assert np.array_equal(models[0].intercept_, other.intercept_)


def test_no_worse_than_sgd_on_its_own_objective():
    X, y = problem(n=1000, d=10)
    alpha = 1e-3
    sgd = SGDClassifier(
        loss=LOSS, alpha=alpha, random_state=0, learning_rate="adaptive", eta0=0.01, max_iter=1000, tol=1e-6
    ).fit(X, y)
    C = 1.0 / (alpha * len(y))
    ours = LinearSVC(C=C, loss=LOSS, tol=1e-6).fit(X, y)
    theirs = objective(X, y, sgd.coef_[0], sgd.intercept_[0], C)
    found = objective(X, y, ours.coef_[0], ours.intercept_[0], C)
    assert found <= theirs
    assert theirs <= 1.001 * found
    assert np.mean(ours.predict(X) == sgd.predict(X)) > 0.99


@pytest.mark.parametrize("shape", [(300, 5), (150, 40)])
def test_searches(shape):
    X, y = problem(*shape)
    found = LinearSVCCV(loss=LOSS, cv=3, C_max=64.0, select_tol=1e-4, tol=1e-6).fit(sp.csr_matrix(X), y)
    fits = [LinearSVC(C=C, loss=LOSS, tol=1e-6) for C in found.Cs_]
    assert found.C_ in found.Cs_
    assert len(fits) > 3
    best = objective(X, y, found.coef_[0], found.intercept_[0], found.C_)
    assert best == pytest.approx(twin(X, y, found.C_, "free"), rel=1e-5)
    search = select_C(X, y, loss=LOSS, cv=3, Cs=[0.1, 1.0, 10.0])
    assert search.C in (0.1, 1.0, 10.0)


@pytest.mark.parametrize("in_memory", [True, False])
def test_stores(tmp_path, in_memory):
    X, y = problem(n=3000, d=12)
    store = BlockStore.build((sp.csr_matrix(X), y), tmp_path / "store", n_blocks=8)
    options = {"in_memory": in_memory}
    model = LinearSVC(loss=LOSS, tol=1e-5, memory_budget="64 MB", block_options=options, max_iter=500).fit(store)
    least = twin(X, y, 1.0, "free")
    assert objective(X, y, model.coef_[0], model.intercept_[0], 1.0) <= least * (1 + 2e-5)
    chosen = LinearSVCCV(loss=LOSS, cv=3, Cs=[0.1, 1.0], memory_budget="64 MB", block_options=options).fit(store)
    assert chosen.C_ in (0.1, 1.0)


def test_streams_pairs_and_labels():
    X, y = problem(n=600, d=5)
    stream = LinearSVC(loss=LOSS)
    for start in range(0, 600, 200):
        stream.partial_fit(X[start : start + 200], y[start : start + 200], classes=[-1, 1])
    assert objective(X, y, stream.coef_[0], stream.intercept_[0], 1.0) < 1.25 * twin(X, y, 1.0, "free")
    pairs = LinearSVC(loss=LOSS, degree=2, tol=1e-6).fit(X, y)
    assert pairs.certificate_.primal[0] < twin(X, y, 1.0, "free")
    labels = np.column_stack([y > 0, X[:, 0] > 0]).astype(int)
    found = LinearSVC(loss=LOSS, tol=1e-6).fit(X, labels)
    assert found.certificate_.primal[0] == pytest.approx(twin(X, y, 1.0, "free"), rel=1e-5)


@pytest.mark.parametrize("estimator", [PegasosClassifier, SubgradientSVC])
def test_subgradient_descent(estimator):
    X, y = problem(n=200, d=4)
    C = 0.02
    model = estimator(C=C, lam=None, loss=LOSS, max_iter=3000, tol=1e-3, fit_intercept=False, random_state=0).fit(X, y)
    least = twin(X, y, C, "none")
    assert objective(X, y, model.coef_[0], 0.0, C) <= least * 1.01


@pytest.mark.parametrize("solver", ["cutting_plane", "primal_cd"])
def test_solvers_of_another_loss_refuse_it(solver):
    with pytest.raises(ValueError, match=solver):
        LinearSVC(loss=LOSS, solver=solver).fit(*problem())
