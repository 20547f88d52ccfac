"""Degree 2: the map against scikit-learn's expansion, and every estimator on it against the fit of the expansion."""

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from problems import losses_of_margins, sparse_problem
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

LOSSES = ("squared_hinge", "hinge", "logistic")


@parametrize_with_checks([hinge.Poly2Map(), hinge.Poly2Map(gamma=0.5, hash_bits=12)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def problem():
    X, _ = sparse_problem(8, n_rows=150, n_columns=12, noise=0.5)
    rule = np.asarray(X[:, [0]].multiply(X[:, [1]]).sum(axis=1)).ravel() + 0.3 * X[:, [2]].toarray().ravel()
    return X, np.where(rule > 0.05, 1, 0)


def model_of(loss, **parameters):
    if loss == "logistic":
        return hinge.LogisticRegression(**parameters)
    return hinge.LinearSVC(loss=loss, **parameters)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "dual_cd", "newton"])
@pytest.mark.parametrize("dense", [False, True])
def test_equals_the_fit_of_the_expansion(problem, loss, solver, dense):
    X, y = problem
    expanded = PolynomialFeatures(2, include_bias=False).fit_transform(X.toarray())
    tight = {"C": 0.5, "tol": 1e-9, "max_iter": 100_000, "solver": solver}
    direct = model_of(loss, **tight).fit(expanded, y)
    mapped = model_of(loss, degree=2, **tight).fit(X.toarray() if dense else X, y)
    assert mapped.coef_.shape == (1, 12 + 78)
    assert mapped.certificate_.primal[0] == pytest.approx(direct.certificate_.primal[0], rel=1e-8)
    np.testing.assert_allclose(mapped.decision_function(X), direct.decision_function(expanded), atol=2e-3)
    margins = (2 * y - 1) * mapped.decision_function(X)
    primal = 0.5 * (mapped.coef_**2).sum() + 0.5 * losses_of_margins(loss, margins).sum()
    assert mapped.certificate_.primal[0] == pytest.approx(primal, rel=1e-10)


def test_kernel_scaling_is_that_of_the_kernel(problem):
    X, y = problem
    mapped = hinge.Poly2Map(gamma=0.7, coef0=1.3).fit_transform(X)
    np.testing.assert_allclose((mapped @ mapped.T).toarray(), (0.7 * (X @ X.T).toarray() + 1.3) ** 2, atol=1e-10)
    model = hinge.LinearSVC(loss="hinge", degree=2, gamma=0.7, coef0=1.3, fit_intercept=False, tol=1e-9, max_iter=10**5)
    dual = model.fit(X, y).certificate_.dual[0]
    written = hinge.LinearSVC(loss="hinge", fit_intercept=False, tol=1e-9, max_iter=10**5).fit(mapped.tocsr(), y)
    assert dual == pytest.approx(written.certificate_.dual[0], rel=1e-7)


def test_the_plain_map_with_its_constant_is_a_penalised_intercept(problem):
    """SchmidtThieme, slide "Basic Idea": (1, x, x^2, products), the constant a feature as the others."""
    X, y = problem
    dense = X.toarray()
    pairs = [dense[:, i] * dense[:, j] for i in range(dense.shape[1]) for j in range(i, dense.shape[1])]
    mapped = np.column_stack([np.ones(len(y)), dense, *pairs])
    options = {"loss": "squared_hinge", "tol": 1e-9, "max_iter": 10**5}
    model = hinge.LinearSVC(degree=2, intercept_scaling=1.0, **options).fit(X, y)
    written = hinge.LinearSVC(fit_intercept=False, **options).fit(mapped, y)
    assert model.certificate_.primal[0] == pytest.approx(written.certificate_.primal[0], rel=1e-7)
    np.testing.assert_allclose(model.decision_function(X), written.decision_function(mapped), atol=1e-3)


def test_plain_columns_are_those_of_scikit_learn(problem):
    X, _ = problem
    theirs = PolynomialFeatures(2, include_bias=False).fit(X)
    ours = hinge.Poly2Map().fit(X)
    np.testing.assert_allclose(ours.transform(X).toarray(), theirs.transform(X.toarray()), rtol=1e-14)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert hinge.Poly2Map(gamma=1.0).fit(X).get_feature_names_out()[-1] == "1"


@pytest.mark.parametrize("gamma", [None, 0.3])
def test_weights_are_read_back_by_pair(problem, gamma):
    X, y = problem
    model = hinge.LinearSVC(degree=2, gamma=gamma, coef0=2.0, C=0.3).fit(X, y)
    table = model.pair_weights()
    assert len(table) == 78
    dense = X.toarray()
    linear = model.coef_[0, :12] * (1.0 if gamma is None else np.sqrt(2 * gamma * 2.0))
    values = dense @ linear + (dense[:, table["i"]] * dense[:, table["j"]]) @ table["weight"] + model.intercept_
    np.testing.assert_allclose(values, model.decision_function(X), atol=1e-10)
    some = model.pair_weights([[5, 2], [3, 3]])
    assert some["i"].tolist() == [2, 3]
    assert some["weight"][0] == table["weight"][(table["i"] == 2) & (table["j"] == 5)][0]
    with pytest.raises(ValueError, match="pairs must be a column number of X, got 12"):
        model.pair_weights([[0, 12]])
    with pytest.raises(ValueError, match="degree=1"):
        hinge.LinearSVC().fit(X, y).pair_weights()


@pytest.mark.parametrize("loss", LOSSES)
def test_hashed_fits_equal_the_fit_of_the_hashed_columns(loss):
    X, y = sparse_problem(11, n_rows=120, n_columns=120, density=0.1)
    mapper = hinge.Poly2Map(hash_bits=12).fit(X)
    assert not mapper.is_exact_
    tight = {"tol": 1e-8, "max_iter": 100_000, "presolve": False}
    mapped = model_of(loss, degree=2, hash_bits=12, **tight).fit(X, y)
    written = model_of(loss, **tight).fit(mapper.transform(X).tocsr(), y)
    assert mapped.coef_.shape == (1, 240 + 4096)
    assert mapped.certificate_.primal[0] == pytest.approx(written.certificate_.primal[0], rel=1e-7)
    with pytest.raises(ValueError, match="the pairs are hashed"):
        mapped.pair_weights()
    dense = X.toarray()
    i, j = np.triu_indices(120)
    table = mapped.pair_weights(np.column_stack([i, j]))
    values = dense @ mapped.coef_[0, :120] + (dense[:, i] * dense[:, j]) @ table["weight"] + mapped.intercept_
    np.testing.assert_allclose(values, mapped.decision_function(X), atol=1e-9)
    usage = mapper.usage(X)
    products = len(np.unique(hinge.Poly2Map().fit_transform(X).indices)) - 240
    assert usage.n_weights == 4096
    assert usage.n_pairs == pytest.approx(products, rel=0.1)
    assert 0.3 < usage.collision_rate < 0.95


def test_more_classes_search_and_weights():
    X, y = sparse_problem(12, n_rows=200, n_columns=10, n_classes=3)
    expanded = sp.csr_matrix(PolynomialFeatures(2, include_bias=False).fit_transform(X.toarray()))
    for search in ({"loss": "logistic"}, {"loss": "hinge"}):
        ours = hinge.select_C(X, y, degree=2, cv=3, C_max=1.0, tol=1e-5, **search)
        theirs = hinge.select_C(expanded, y, cv=3, C_max=1.0, tol=1e-5, C_min=ours.Cs[0], **search)
        assert ours.Cs.tolist() == theirs.Cs.tolist()
        np.testing.assert_allclose(ours.mean, theirs.mean, atol=0.02)
    model = hinge.LogisticRegressionCV(degree=2, cv=3, C_max=1.0).fit(X, y)
    assert model.predict_proba(X).shape == (200, 3)
    weight = np.arange(200) % 3
    a = hinge.LinearSVC(degree=2, tol=1e-10).fit(X, y, sample_weight=weight)
    b = hinge.LinearSVC(degree=2, tol=1e-10).fit(X[np.arange(200).repeat(weight)], y.repeat(weight))
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-3)


def test_unsorted_and_repeated_entries(problem):
    X, y = problem
    shuffled = X.copy()
    for a, b in zip(shuffled.indptr[:-1], shuffled.indptr[1:], strict=True):
        shuffled.indices[a:b], shuffled.data[a:b] = shuffled.indices[a:b][::-1].copy(), shuffled.data[a:b][::-1].copy()
    shuffled.has_sorted_indices = False
    expected = hinge.LinearSVC(degree=2).fit(X, y)
    np.testing.assert_array_equal(hinge.LinearSVC(degree=2).fit(shuffled, y).coef_, expected.coef_)
    np.testing.assert_array_equal(expected.decision_function(shuffled), expected.decision_function(X))
    halves = sp.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    np.testing.assert_allclose(hinge.LinearSVC(degree=2).fit(halves, y).coef_, expected.coef_, atol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"degree": 3}, "degree must be 1 or 2, got 3"),
        ({"degree": 2, "gamma": 0.0}, "gamma must be"),
        ({"degree": 2, "coef0": -1.0}, "coef0 must be a finite number of at least 0, got -1.0"),
        ({"degree": 2, "hash_bits": 11}, "hash_bits must be an integer of at least 12"),
        ({"degree": 2, "hash_bits": 31}, "hash_bits must be at most 30"),
        ({"degree": 2, "presolve": True}, "presolve=True is not possible with degree=2"),
        ({"solver": "primal_cd", "loss": "hinge"}, "solver='primal_cd' is for loss='squared_hinge' only"),
        ({"solver": "cutting_plane"}, "solver='cutting_plane' is for loss='hinge' only"),
    ],
)
def test_bad_parameters(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        hinge.LinearSVC(**parameters).fit(*problem)


@pytest.mark.parametrize("solver", ["primal_cd", "cutting_plane"])
@pytest.mark.parametrize("intercept", [{}, {"fit_intercept": False}, {"intercept_scaling": 2.0}])
@pytest.mark.parametrize("name", ["generated", "german"])
def test_comparison_solvers_reach_the_optimum(request, solver, intercept, name):
    if name == "generated":
        X, y = sparse_problem(2, n_rows=300, n_columns=60, n_classes=3, noise=2.0)
    else:
        X, y, *_ = request.getfixturevalue("real")(name)
    loss = "squared_hinge" if solver == "primal_cd" else "hinge"
    # Values of single precision stay what they are: no presolve.
    common = {"C": 0.1, "loss": loss, "presolve": False, **intercept}
    model = hinge.LinearSVC(solver=solver, tol=1e-6, max_iter=5000, **common).fit(X, y)
    best = hinge.LinearSVC(solver="newton", tol=1e-9, max_iter=10_000, **common).fit(X, y).certificate_.primal
    assert set(model.certificate_.solver) == {solver}
    assert (model.certificate_.primal <= best * (1 + 1.1e-6)).all()
    with pytest.raises(ValueError, match="solver must be one of"):
        hinge.LinearSVCCV(solver=solver, loss=loss, cv=3).fit(X, y)


# ---- over a block store


def stored(tmp_path, kind="values", n=400, d=60, dtype=np.float32):
    """Rows with frequent and rare columns in no order, two of them empty, as a matrix and as a store."""
    rng = np.random.default_rng(5)
    share = rng.permutation(np.geomspace(0.02, 0.5, d))
    share[[3, d - 1]] = 0.0
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < share)
    X = (X != 0) * 0.5 if kind == "ones" else X
    rule = X @ rng.normal(size=d) + 3 * X[:, 0] * X[:, 1] + X[:, 2] ** 2 + 0.3 * rng.normal(size=n)
    X, y = sp.csr_matrix(X, dtype=dtype), (rule > np.median(rule)).astype(int)
    return X, y, hinge.BlockStore.build((X, y), tmp_path / "x")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("shape", [{}, {"hash_bits": 12, "gamma": 0.5, "coef0": 0.7, "random_state": 4}])
@pytest.mark.parametrize("intercept", [{}, {"intercept_scaling": 1.0}, {"fit_intercept": False}])
def test_a_store_gives_the_model_of_its_rows(tmp_path, loss, in_memory, shape, intercept):
    X, y, store = stored(tmp_path, d=100 if shape else 60, kind="ones" if intercept else "values")
    common = {"degree": 2, "C": 0.02, "tol": 1e-9, "max_iter": 20_000, **shape, **intercept}
    expected = model_of(loss, **common).fit(X, y)
    model = model_of(loss, block_options={"in_memory": in_memory}, **common).fit(store)
    assert model.certificate_.solver == ("in_memory" if in_memory else "block_cd",)
    assert model.coef_.shape == expected.coef_.shape
    np.testing.assert_allclose(model.certificate_.primal, expected.certificate_.primal, rtol=1e-7)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-3)
    np.testing.assert_allclose(model.decision_function(store), model.decision_function(X), atol=1e-11)
    assert (model.predict(store) == model.predict(X)).all()


def test_pairs_over_many_blocks(tmp_path):
    X, y, store = stored(tmp_path, n=40_000, d=40)
    common = {"loss": "hinge", "degree": 2, "C": 1e-3, "tol": 1e-3, "max_iter": 200}
    expected = hinge.LinearSVC(**common).fit(X, y)
    blocks = {"memory_budget": 18_000_000, "block_options": {"in_memory": False}}
    fits = [hinge.LinearSVC(n_jobs=n_jobs, **blocks, **common).fit(store) for n_jobs in (1, 2)]
    assert fits[0].certificate_.converged
    assert fits[0].certificate_.solver == ("block_cd",)
    assert (fits[0].coef_ == fits[1].coef_).all()
    assert fits[0].certificate_.dual[0] <= expected.certificate_.primal[0] * (1 + 1e-12)
    assert expected.certificate_.dual[0] <= fits[0].certificate_.primal[0] * (1 + 1e-12)
    margins = (2 * y - 1) * fits[0].decision_function(X)
    primal = 0.5 * (fits[0].coef_ ** 2).sum() + 1e-3 * losses_of_margins("hinge", margins).sum()
    assert fits[0].certificate_.primal[0] == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_search_over_a_store_knows_pairs(tmp_path, in_memory):
    X, y, store = stored(tmp_path, d=30)
    folds = [(np.arange(200), np.arange(200, 400)), (np.arange(200, 400), np.arange(200))]
    common = {"loss": "hinge", "degree": 2, "cv": folds, "C_min": 0.01, "C_max": 0.1, "tol": 1e-7}
    expected = hinge.select_C(X, y, **common)
    found = hinge.select_C(store, block_options={"in_memory": in_memory}, **common)
    np.testing.assert_allclose(found.mean, expected.mean, atol=0.011)


@pytest.mark.parametrize("hash_bits", [12, 22])
def test_a_search_over_a_store_starts_at_the_same_C(tmp_path, hash_bits):
    X, y, store = stored(tmp_path, d=120)
    folds = [(np.arange(200), np.arange(200, 400)), (np.arange(200, 400), np.arange(200))]
    common = {"loss": "squared_hinge", "degree": 2, "hash_bits": hash_bits, "cv": folds, "C_max": 1.0, "ratio": 8.0}
    expected = hinge.select_C(X, y, **common)
    found = hinge.select_C(store, block_options={"in_memory": False}, **common)
    np.testing.assert_array_equal(found.Cs, expected.Cs)


def test_pairs_are_predicted_a_piece_at_a_time(tmp_path):
    X, y, store = stored(tmp_path)
    model = hinge.LinearSVC(degree=2, C=0.1).fit(X, y)
    for source in (store, ((X[k : k + 100], y[k : k + 100]) for k in range(0, 400, 100))):
        pieces = hinge.iter_predictions(model, source, method="decision_function")
        np.testing.assert_allclose(np.concatenate(list(pieces)), model.decision_function(X), atol=1e-11)


def test_a_checkpoint_belongs_to_its_map(tmp_path):
    _, _, store = stored(tmp_path)
    options = {"in_memory": False, "checkpoint_seconds": 0.0}
    common = {"loss": "hinge", "tol": 1e-12, "block_options": options, "memory_budget": "100MB"}
    common["checkpoint"] = tmp_path / "state"
    with pytest.warns(ConvergenceWarning):
        hinge.LinearSVC(degree=2, gamma=1.0, max_iter=2, **common).fit(store)
    with pytest.raises(ValueError, match="degree-2 map"):
        hinge.LinearSVC(degree=2, gamma=0.9, max_iter=2, **common).fit(store)
