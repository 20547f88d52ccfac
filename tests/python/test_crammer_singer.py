"""Crammer-Singer against a general solver of its dual, against LIBLINEAR, and through the search."""

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from problems import folds, sparse_problem
from scipy.optimize import LinearConstraint, minimize
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

CS = {"multi_class": "crammer_singer"}
INTERCEPTS = {
    "none": {"fit_intercept": False},
    "penalised": {"fit_intercept": True, "intercept_scaling": 2.0},
    "free": {"fit_intercept": True},
}


def primal(W, b, X, y, cost, penalised=0.0):
    """The objective by its definition; ``y`` counts from 0."""
    scores = np.asarray(X @ W.T) + b
    rows = np.arange(len(y))
    margins = scores + 1.0 - scores[rows, y][:, None]
    margins[rows, y] -= 1.0
    value = 0.5 * (W**2).sum() + (cost * margins.max(axis=1)).sum()
    return value + (0.5 * ((b / penalised) ** 2).sum() if penalised else 0.0)


def quadratic_program(X, y, cost, k, intercept):
    """The optimum by SLSQP on the dense dual."""
    X = X.toarray()
    if intercept == "penalised":
        X = np.column_stack([X, np.full(len(y), 2.0)])
    n, K = len(y), X @ X.T
    own = np.zeros((n, k))
    own[np.arange(n), y] = cost

    def value(u):
        a = own - u.reshape(n, k)
        return 0.5 * np.einsum("im,ij,jm->", a, K, a) - (cost - u.reshape(n, k)[np.arange(n), y]).sum()

    def gradient(u):
        g = -K @ (own - u.reshape(n, k))
        g[np.arange(n), y] += 1.0
        return g.ravel()

    A = np.kron(np.eye(n), np.ones(k))
    bound = cost
    if intercept == "free":
        A = np.vstack([A, np.tile(np.eye(k), n)[:-1]])
        bound = np.concatenate([cost, own.sum(axis=0)[:-1]])
    constraint = LinearConstraint(A, bound, bound)
    options = {"maxiter": 2000, "ftol": 1e-13}
    bounds = [(0.0, None)] * (n * k)
    found = minimize(
        value, own.ravel(), jac=gradient, bounds=bounds, constraints=constraint, method="SLSQP", options=options
    )
    return -found.fun


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_matches_a_quadratic_program(intercept, seed):
    X, y = sparse_problem(seed, n_rows=18, n_columns=6, n_classes=3, noise=2.0)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
    tol = 1e-4 if intercept == "free" else 1e-8
    model = hinge.LinearSVC(C=0.7, tol=tol, max_iter=100_000, **CS, **INTERCEPTS[intercept]).fit(X, y, weight)
    best = quadratic_program(X, y, 0.7 * weight, 3, intercept)
    value = primal(model.coef_, model.intercept_, X, y, 0.7 * weight, 2.0 if intercept == "penalised" else 0.0)
    assert value == pytest.approx(model.certificate_.primal[0], rel=1e-9)
    assert model.certificate_.dual[0] <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= value <= best * (1 + 2 * tol + 1e-6)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_dense_unscaled_data_converges_at_the_defaults(intercept):
    X, y = make_classification(1500, 50, n_informative=20, n_classes=5, random_state=0)
    model = hinge.LinearSVC(**CS, **INTERCEPTS[intercept]).fit(X, y)
    assert model.certificate_.status == ("converged",)
    assert model.certificate_.relative_gap[0] <= 1e-4
    assert model.score(X, y) > 0.57
    value = primal(model.coef_, model.intercept_, X, y, np.ones(len(y)), 2.0 if intercept == "penalised" else 0.0)
    assert value == pytest.approx(model.certificate_.primal[0], rel=1e-9)
    if intercept == "free":
        # 1360.5736 is the optimum, by a fit to 1e-8 and by scikit-learn's fit from above.
        assert 1360.573 <= value <= 1360.5736 * (1 + 1e-4)


def test_few_iterations_are_shared_by_epochs_and_newton_steps():
    X, y = make_classification(1500, 50, n_informative=20, n_classes=5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="gap"):
        model = hinge.LinearSVC(max_iter=100, **CS).fit(X, y)
    assert model.n_iter_[0] == 100
    assert model.certificate_.relative_gap[0] <= 1e-2


@pytest.mark.parametrize("name", ["20news", "sector"])
def test_reaches_the_objective_of_liblinear(real, name):
    liblinearutil = pytest.importorskip("liblinear.liblinearutil")
    X, y, _, _ = real(name)
    some = np.random.default_rng(0).permutation(len(y))[:1000]  # the first rows are of two classes
    X, y = X[some], y[some]
    classes, ids = np.unique(y, return_inverse=True)
    theirs = liblinearutil.train(ids.astype(float), X.astype(np.float64), "-s 4 -c 1 -e 1e-3 -q")
    W = np.ctypeslib.as_array(theirs.w, (X.shape[1] * len(classes),)).reshape(X.shape[1], -1).T
    coef = np.empty_like(W)
    coef[[theirs.label[m] for m in range(len(classes))]] = W
    theirs_value = primal(coef, 0.0, X, ids, 1.0)
    model = hinge.LinearSVC(tol=1e-5, fit_intercept=False, **CS).fit(X, y)
    assert model.certificate_.converged
    ours = primal(model.coef_, 0.0, X, ids, 1.0)
    assert ours <= theirs_value * (1 + 1e-5)
    assert model.certificate_.dual[0] <= theirs_value


def test_two_classes_are_a_binary_problem():
    X, y = sparse_problem(3)
    both = hinge.LinearSVC(C=0.5, tol=1e-9, max_iter=100_000, fit_intercept=False, **CS).fit(X, y)
    binary = hinge.LinearSVC(C=1.0, loss="hinge", tol=1e-9, max_iter=100_000, fit_intercept=False).fit(X, y)
    assert both.coef_.shape == (1, X.shape[1])
    np.testing.assert_allclose(both.coef_, binary.coef_, atol=1e-3)
    assert (both.predict(X) == binary.predict(X)).mean() > 0.99


def test_threads_and_weights_and_presolve():
    X, y = sparse_problem(4, n_rows=300, n_columns=60, n_classes=40, density=0.2)
    fit = {"tol": 1e-6, "max_iter": 100_000, "fit_intercept": False, **CS}
    one, two = (hinge.LinearSVC(n_jobs=n, **fit).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    weight = np.arange(300) % 3
    weight[:40] = 1
    weighted = hinge.LinearSVC(**fit).fit(X, y, weight)
    repeated = hinge.LinearSVC(**fit).fit(X[np.repeat(np.arange(300), weight)], np.repeat(y, weight))
    assert weighted.certificate_.primal[0] == pytest.approx(repeated.certificate_.primal[0], rel=3e-6)
    doubled = sp.csr_matrix(sp.hstack([X, 2.0 * X]))
    packed = hinge.LinearSVC(presolve=True, **fit).fit(doubled, y)
    assert packed.presolve_.n_merged >= X.shape[1]
    plain = hinge.LinearSVC(presolve=False, **fit).fit(doubled, y)
    assert packed.certificate_.primal[0] == pytest.approx(plain.certificate_.primal[0], rel=3e-6)
    np.testing.assert_allclose(packed.decision_function(doubled), plain.decision_function(doubled), atol=0.05)


def test_search_agrees_with_cold_fits():
    X, y = sparse_problem(5, n_rows=150, n_columns=20, n_classes=4, noise=2.0)
    Cs = [0.01, 0.1, 1.0, 10.0]
    options = {"fit_intercept": False, "max_iter": 100_000, **CS}
    search = hinge.select_C(X, y, loss="hinge", Cs=Cs, cv=3, tol=1e-5, keep_decisions=True, **options)
    model = hinge.LinearSVC(tol=1e-7, **options)
    cold = np.array([cross_val_score(model.set_params(C=C), X, y, cv=folds(3)) for C in Cs])
    np.testing.assert_allclose(search.scores, cold[: len(search.Cs)], atol=0.021)
    assert search.objective.shape == (len(search.Cs), 3, 1)
    assert search.decisions.shape == (150, 4)
    chosen = hinge.LinearSVCCV(Cs=Cs, cv=3, **options).fit(X, y)
    assert chosen.certificate_.solver == ("crammer_singer",)
    assert chosen.C_ == chosen.search_.C


def test_search_resumes(tmp_path):
    X, y = sparse_problem(6, n_rows=90, n_columns=15, n_classes=3, noise=2.0)
    options = {"loss": "hinge", "cv": 3, "C_min": 0.1, "C_max": 8.0, "refine": 2, **CS}
    whole = hinge.select_C(X, y, **options)
    hinge.select_C(X, y, resume=tmp_path / "journal", **(options | {"refine": 2}), time_limit=None)
    again = hinge.select_C(X, y, resume=tmp_path / "journal", **options)
    assert again.replayed.all()
    np.testing.assert_array_equal(whole.objective, again.objective)
    with pytest.raises(ValueError, match="resume"):
        hinge.select_C(X, y, resume=tmp_path / "journal", **(options | {"multi_class": "ovr"}))


def test_refuses_what_does_not_fit(tmp_path):
    X, y = sparse_problem(0, n_classes=3)
    with pytest.raises(ValueError, match="solver must be 'auto' or 'dual_cd'"):
        hinge.LinearSVC(solver="newton", **CS).fit(X, y)
    with pytest.raises(ValueError, match="multi_class must be one of"):
        hinge.LinearSVC(multi_class="ovo").fit(X, y)
    with pytest.raises(ValueError, match="loss must be 'hinge'"):
        hinge.select_C(X, y, loss="squared_hinge", **CS)
    with pytest.raises(ValueError, match="degree must be 1 with multi_class='crammer_singer', got 2"):
        hinge.LinearSVC(degree=2, **CS).fit(X, y)
    store = hinge.BlockStore.build((X, y), tmp_path / "rows.blocks")
    search = hinge.LinearSVCCV(loss="hinge", memory_budget=2**25, block_options={"in_memory": False}, **CS)
    with pytest.raises(ValueError, match="multi_class must be 'ovr' for a search over a store"):
        search.fit(store)
    with pytest.raises(ValueError, match="one class per row"):
        hinge.LinearSVC(**CS).fit(X, np.eye(3)[y])
    with pytest.raises(ValueError, match="sparse_coef must be False"):
        hinge.LinearSVC(sparse_coef=True, **CS).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 40])
def test_a_store_gives_the_optimum_of_its_rows(tmp_path, n_classes, fit_intercept):
    random = np.random.default_rng(n_classes)
    y = random.integers(0, n_classes, 20_000)
    own = 7 * y[:, None] + random.integers(0, 7, (20_000, 5))
    words = np.column_stack([random.integers(0, 300, (20_000, 4)), own])
    X = sp.csr_matrix((np.ones(words.size, np.float32), words.ravel(), np.arange(0, words.size + 1, 9)))
    store = hinge.BlockStore.build((X, y), tmp_path / "x", n_blocks=4)
    options = CS | {"C": 0.05, "tol": 1e-3, "fit_intercept": fit_intercept, "max_iter": 500}
    rows = hinge.LinearSVC(**options).fit(X, y)
    whole = hinge.LinearSVC(**options).fit(store)
    parts = hinge.LinearSVC(memory_budget=23_000_000, block_options={"in_memory": False}, **options).fit(store)
    assert whole.certificate_.solver == ("in_memory",)
    assert parts.certificate_.solver == ("block_cd",)
    for model in (whole, parts):
        assert model.certificate_.converged
        assert model.coef_.shape == rows.coef_.shape
        assert model.certificate_.dual[0] <= rows.certificate_.primal[0]
        assert rows.certificate_.dual[0] <= model.certificate_.primal[0]
        assert (model.predict(X) == rows.predict(X)).mean() > 0.97
        assert (model.predict(store) == model.predict(X)).all()


@pytest.mark.parametrize("relabel", [False, True])
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_store_may_have_columns_without_entries(tmp_path, in_memory, relabel):
    X, y = sparse_problem(0, n_classes=3)
    columns = np.random.default_rng(0).permutation(5 * X.shape[1])[: X.shape[1]]
    wide = sp.csr_matrix((X.data, columns[X.indices], X.indptr), shape=(X.shape[0], 5 * X.shape[1]))
    wide.sort_indices()
    store = hinge.BlockStore.build((wide, y), tmp_path / "x", relabel=relabel)
    model = hinge.LinearSVC(tol=1e-6, block_options={"in_memory": in_memory}, **CS).fit(store)
    assert model.coef_.shape == (3, wide.shape[1])
    empty = np.setdiff1d(np.arange(wide.shape[1]), wide.indices)
    assert len(empty) > X.shape[1]
    assert not model.coef_[:, empty].any()
    rows = hinge.LinearSVC(tol=1e-6, **CS).fit(wide, y)
    np.testing.assert_allclose(model.coef_, rows.coef_, atol=1e-2 * abs(rows.coef_).max())


def test_a_search_over_a_store_that_fits_is_that_of_its_rows(tmp_path):
    X, y = sparse_problem(0, n_classes=3)
    store = hinge.BlockStore.build((X, y), tmp_path / "x")
    options = CS | {"loss": "hinge", "Cs": [0.1, 1.0], "cv": 3}
    a, b = hinge.LinearSVCCV(**options).fit(X, y), hinge.LinearSVCCV(**options).fit(store)
    assert a.C_ == b.C_
    assert max(a.certificate_.relative_gap[0], b.certificate_.relative_gap[0]) <= 1e-4
    assert a.certificate_.primal[0] == pytest.approx(b.certificate_.primal[0], rel=2e-4)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("options", [CS, {"loss": "hinge"}], ids=["crammer_singer", "hinge"])
def test_a_store_whose_rows_are_empty(tmp_path, intercept, options):
    """Without a column, the first smooth problem of Newton's method was infinitely sharp."""
    X, y = sp.csr_matrix((2, 3)), np.array([0, 1])
    store = hinge.BlockStore.build((X, y), tmp_path / "x")
    options = {"C": 32.0, "n_jobs": 1, **options, **INTERCEPTS[intercept]}
    model = hinge.LinearSVC(memory_budget="30MB", **options).fit(store)
    assert model.certificate_.converged
    assert (model.coef_ == 0).all()
    assert model.certificate_.primal == pytest.approx(hinge.LinearSVC(**options).fit(X, y).certificate_.primal)
