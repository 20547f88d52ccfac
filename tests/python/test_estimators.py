"""The estimators: scikit-learn's contract, any layout of X, and other people's answers to the same problem."""

import pickle

import hinge
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from problems import INTERCEPTS, LOSSES, estimator, objective, one_hot_table, sparse_problem
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC as SklearnLinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

ESTIMATORS = [
    hinge.LinearSVC(),
    hinge.LinearSVC(loss="hinge"),
    hinge.LogisticRegression(),
    hinge.LinearSVCCV(),
    hinge.LogisticRegressionCV(),
    hinge.LinearSVCCV(cv=3),
    hinge.LinearSVCCV(loss="hinge", cv=3),
    hinge.LogisticRegressionCV(cv=3),
    hinge.LogisticRegressionCV(cv=3, scoring=["neg_log_loss", "accuracy"], refine=1, choose="one_se"),
    hinge.LogisticRegression(solver="lbfgs"),
    hinge.LogisticRegression(solver="liblinear", warm_start=True),
    hinge.LogisticRegressionCV(solver="lbfgs", cv=3),
    hinge.LogisticRegressionCV(use_legacy_attributes=False, Cs=2, cv=2),
]

NOT_REFITTED = hinge.LogisticRegressionCV(refit=False, Cs=2, cv=2)  # has no certificate

TIGHT = {"tol": 1e-12, "max_iter": 100_000}


# Small random problems.
@pytest.mark.filterwarnings("ignore::hinge.NoSkillWarning", "ignore:.* class has .* cv=", "ignore:class .* with cv=")
@parametrize_with_checks([*ESTIMATORS, NOT_REFITTED])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def problem():
    """80 rows of 12 columns whose values are exact in single precision, some rows empty."""
    X, y = sparse_problem(0, n_rows=80, n_columns=12, density=0.3)
    return X.astype(np.float32).astype(np.float64), y


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# Layouts of X.


def with_indices(X, dtype):
    X = X.copy()
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    return X


def in_order(X, order):
    """The same rows with their entries in another order."""
    rows = [slice(a, b) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    columns = np.concatenate([X.indices[row][order] for row in rows])
    return sp.csr_matrix((np.concatenate([X.data[row][order] for row in rows]), columns, X.indptr), shape=X.shape)


def with_duplicates(X):
    """Each entry as two halves, one after the other at the end of the row."""
    X = X.tocoo()
    halves = sp.coo_array((np.tile(X.data / 2, 2), (np.tile(X.row, 2), np.tile(X.col, 2))), shape=X.shape)
    order = np.argsort(halves.row, kind="stable")
    indptr = np.searchsorted(halves.row[order], np.arange(X.shape[0] + 1))
    return sp.csr_matrix((halves.data[order], halves.col[order], indptr), shape=X.shape)


def with_zeros(X):
    """The same matrix with every entry stored."""
    n, d = X.shape
    return sp.csr_matrix((X.toarray().ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=X.shape)


def read_only(X):
    X = X.copy()
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


# Layouts with the same entries in the same order.
SAME_ORDER = {
    "csr_array": sp.csr_array,
    "int64": lambda X: with_indices(X, np.int64),
    "csc": lambda X: X.tocsc(),
    "csc_array": sp.csc_array,
    "coo": lambda X: X.tocoo(),
    "lil": lambda X: X.tolil(),
    "dok": lambda X: X.todok(),
    "float32": lambda X: X.astype(np.float32),
    "float32, int64": lambda X: with_indices(X.astype(np.float32), np.int64),
    "read only": read_only,
    "duplicates": with_duplicates,
}

# Layouts whose sums run over other entries or in another order.
OTHER_ORDER = {
    "unsorted": lambda X: in_order(X, slice(None, None, -1)),
    "zeros": with_zeros,
    "bsr": lambda X: X.tobsr((2, 2)),
    "C": lambda X: X.toarray(),
    "Fortran": lambda X: np.asfortranarray(X.toarray()),
    "float32": lambda X: X.toarray().astype(np.float32),
    "not contiguous": lambda X: np.repeat(X.toarray(), 2, axis=1)[:, ::2],
    "list": lambda X: X.toarray().tolist(),
    "pandas": lambda X: pd.DataFrame(X.toarray(), columns=[f"c{j}" for j in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X.toarray(), schema=[f"c{j}" for j in range(X.shape[1])]),
    "read only": lambda X: read_only_array(X.toarray()),
}


def read_only_array(X):
    X.flags.writeable = False
    return X


def parts(X):
    """The contents of X, to compare before and after."""
    if sp.issparse(X):
        names = [name for name in ("data", "indices", "indptr", "row", "col", "offsets") if hasattr(X, name)]
        return [pickle.dumps(getattr(X, name)) for name in names]
    return [pickle.dumps(X)]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("layout", SAME_ORDER)
def test_same_entries_give_the_same_bits(problem, loss, layout):
    X, y = problem
    expected = estimator(loss).fit(X, y)
    other = SAME_ORDER[layout](X)
    before = parts(other)
    model = estimator(loss).fit(other, y)
    assert parts(other) == before
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.intercept_, expected.intercept_)
    np.testing.assert_allclose(model.decision_function(other), expected.decision_function(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("layout", OTHER_ORDER)
def test_other_layouts_give_the_same_model(problem, loss, layout):
    X, y = problem
    expected = estimator(loss, **TIGHT).fit(X, y)
    other = OTHER_ORDER[layout](X)
    before = parts(other)
    model = estimator(loss, **TIGHT).fit(other, y)
    assert parts(other) == before
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.certificate_.primal, expected.certificate_.primal, rtol=1e-11)
    np.testing.assert_array_equal(model.predict(other), expected.predict(X))


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_names_of_columns_are_kept_and_compared(problem, frame):
    X, y = OTHER_ORDER[frame](problem[0]), problem[1]
    model = hinge.LinearSVC().fit(X, y)
    assert model.feature_names_in_.tolist() == [f"c{j}" for j in range(12)]
    renamed = X.rename(columns={"c0": "z"}) if frame == "pandas" else X.rename({"c0": "z"})
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(renamed)


@pytest.mark.parametrize(
    "y",
    [
        np.tile([1.0, -2.0], 40),
        np.tile([3, 7], 40).astype(np.uint8),
        np.tile([True, False], 40),
        np.tile(["no", "yes"], 40),
        np.tile(["no", "yes"], 40).astype(object),
        np.tile([2, 9], 40).tolist(),
        pd.Series(np.tile(["no", "yes"], 40), dtype="category"),
    ],
    ids=["float", "uint8", "bool", "str", "object", "list", "category"],
)
def test_labels_come_back_as_they_were(problem, y):
    model = hinge.LinearSVC().fit(problem[0], y)
    np.testing.assert_array_equal(model.classes_, np.unique(np.asarray(y)))
    assert model.classes_.dtype == np.asarray(y).dtype
    assert np.isin(model.predict(problem[0]), model.classes_).all()


# Beside scikit-learn.


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_svc_with_a_penalised_intercept(C, loss, n_classes):
    X, y = sparse_problem(3, n_rows=200, n_columns=15, n_classes=n_classes)
    theirs = SklearnLinearSVC(C=C, loss=loss, intercept_scaling=1, tol=1e-9, max_iter=1_000_000).fit(X, y)
    ours = hinge.LinearSVC(C=C, loss=loss, intercept_scaling=1.0, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("solver", ["newton-cholesky", "lbfgs"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_regression(C, solver, fit_intercept):
    X, y = sparse_problem(4, n_rows=300, n_columns=15, noise=3.0)
    X = X.toarray()
    theirs = SklearnLogisticRegression(C=C, solver=solver, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000)
    theirs.fit(X, y)
    ours = hinge.LogisticRegression(C=C, fit_intercept=fit_intercept, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("balanced", ["balanced", {0: 3.0, 1: 0.5}])
def test_class_weight_as_in_scikit_learn(balanced):
    X, y = sparse_problem(5, n_rows=200)
    y = (y + (np.arange(200) % 3 == 0)) > 0
    y = y.astype(int)
    theirs = SklearnLogisticRegression(class_weight=balanced, solver="newton-cholesky", tol=1e-10).fit(X.toarray(), y)
    ours = hinge.LogisticRegression(class_weight=balanced, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


# Classes and weights.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_several_classes_are_each_against_the_rest(loss, intercept):
    X, y = sparse_problem(6, n_classes=4)
    options = {**TIGHT, "tol": 1e-10, **INTERCEPTS[intercept]}
    model = estimator(loss, **options).fit(X, y)
    assert model.coef_.shape == (4, X.shape[1])
    assert model.intercept_.shape == model.n_iter_.shape == (4,)
    for k in range(4):
        binary = estimator(loss, **options).fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], binary.coef_[0], atol=1e-4)
        np.testing.assert_allclose(model.intercept_[k], binary.intercept_[0], atol=1e-4)
    values = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), values, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), values.argmax(axis=1))


@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes_point_to_the_second(problem, loss):
    X, y = problem
    labels = np.array(["a", "b"])[y]
    model = estimator(loss, C=10.0).fit(X, labels)
    assert model.coef_.shape == (1, 12)
    assert model.coef_.dtype == model.intercept_.dtype == np.float64
    values = model.decision_function(X)
    assert values.shape == (80,)
    np.testing.assert_array_equal(model.predict(X) == "b", values > 0)
    assert model.score(X, labels) > 0.7


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("class_weight", [{0: 2.0, 1: 0.25}, {1: 3.0}, "balanced"])
def test_class_weight_is_a_weight_per_row(problem, loss, class_weight):
    X, y = problem
    if class_weight == "balanced":
        factor = len(y) / (2 * np.bincount(y))
    else:
        factor = np.array([class_weight.get(k, 1.0) for k in (0, 1)])
    a = estimator(loss, class_weight=class_weight).fit(X, y)
    b = estimator(loss).fit(X, y, sample_weight=factor[y])
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.intercept_, b.intercept_)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_weight_two_is_the_row_twice(problem, loss, class_weight, intercept):
    X, y = problem
    options = {**TIGHT, "class_weight": class_weight, **INTERCEPTS[intercept]}
    weight = np.where(np.arange(80) < 20, 2.0, 1.0)
    a = estimator(loss, **options).fit(X, y, sample_weight=weight)
    b = estimator(loss, **options).fit(sp.vstack([X, X[:20]]).tocsr(), np.concatenate([y, y[:20]]))
    np.testing.assert_allclose(a.certificate_.primal, b.certificate_.primal, rtol=1e-9)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)
    if class_weight is None:
        np.testing.assert_allclose(a.certificate_.primal, objective(a, X, y, loss, weight), rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_zero_is_the_row_absent(loss, class_weight, n_classes):
    X, y = sparse_problem(7, n_classes=n_classes)
    weight = np.ones(len(y))
    weight[10:50] = 0
    a = estimator(loss, class_weight=class_weight).fit(X, y, sample_weight=weight)
    b = estimator(loss, class_weight=class_weight).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.intercept_, b.intercept_)


@pytest.mark.parametrize("loss", LOSSES)
def test_all_weights_twice_is_twice_the_cost(problem, loss):
    X, y = problem
    a = estimator(loss, C=1.0).fit(X, y, sample_weight=np.full(80, 2.0))
    b = estimator(loss, C=2.0).fit(X, y)
    np.testing.assert_array_equal(a.coef_, b.coef_)


# Probabilities.


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities(n_classes):
    X, y = sparse_problem(8, n_classes=n_classes)
    model = hinge.LogisticRegression(multi_class="ovr").fit(X, y)
    p, values = model.predict_proba(X), model.decision_function(X)
    assert p.shape == (len(y), n_classes)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X), rtol=1e-9)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    raw = 1 / (1 + np.exp(-np.atleast_2d(values.T).T))
    expected = np.hstack([1 - raw, raw]) if n_classes == 2 else raw / raw.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p, expected, rtol=1e-9)


def test_probability_rises_with_the_decision(problem):
    X, y = problem
    model = hinge.LogisticRegression().fit(X, y)
    order = np.argsort(model.decision_function(X))
    assert (np.diff(model.predict_proba(X)[order, 1]) >= 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_far_from_all_classes(n_classes):
    random = np.random.default_rng(9)
    centres = np.eye(4)[:n_classes] * 3
    X = np.vstack([centres + 0.1 * random.standard_normal(centres.shape) for _ in range(20)])
    model = hinge.LogisticRegression(C=100.0).fit(X, np.tile(np.arange(n_classes), 20))
    far = np.vstack([-1e6 * np.ones(4), 1e6 * np.ones(4), -1e3 * np.ones(4), 1e50 * np.eye(4)[0], np.zeros(4)])
    p, logs = model.predict_proba(far), model.predict_log_proba(far)
    assert np.isfinite(p).all()
    assert not np.isnan(logs).any()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(p[np.arange(5), model.predict(far)], p.max(axis=1))


# Citizens of scikit-learn.


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_clone_and_parameters(model):
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert copy.set_params(tol=0.5, n_jobs=2).get_params()["tol"] == 0.5
    assert eval(repr(model), vars(hinge)).get_params() == model.get_params()


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_pickle(problem, model):
    X, y = problem
    model = clone(model).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(copy.certificate_.primal, model.certificate_.primal)
    if hasattr(model, "search_"):
        np.testing.assert_array_equal(copy.search_.scores, model.search_.scores)
        assert copy.C_ == model.C_


def test_pickle_of_another_version_warns(problem):
    model = hinge.LinearSVC().fit(*problem)
    assert not any("version" in name for name in vars(model))
    written = pickle.dumps(model)
    assert hinge.__version__.encode() in written
    later = f"9{hinge.__version__[1:]}".encode()
    with pytest.warns(
        hinge.InconsistentVersionWarning, match=f"pickled by hinge {later.decode()} and is read"
    ) as caught:
        copy = pickle.loads(written.replace(hinge.__version__.encode(), later))
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(copy.coef_, model.coef_)
    assert not any("version" in name for name in vars(copy))


def test_pickle_without_a_version_is_read_silently(problem):
    model = hinge.LinearSVC().fit(*problem)
    copy = hinge.LinearSVC.__new__(hinge.LinearSVC)
    copy.__setstate__(dict(vars(model)))
    assert vars(copy) == vars(model)


@pytest.mark.parametrize("kind", [hinge.LinearSVC, hinge.LogisticRegression])
def test_sample_weight_is_routed_through_pipeline_and_grid(problem, routing, kind):
    X, y = problem
    weight = np.random.default_rng(10).integers(0, 3, len(y)).astype(float)
    model = kind().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    name = kind.__name__.lower()
    pipeline = make_pipeline(MaxAbsScaler(), model).set_score_request(sample_weight=True)  # asked for before 1.8
    grid = GridSearchCV(pipeline, {f"{name}__C": [0.01, 1.0]}, cv=3)
    grid.fit(X, y, sample_weight=weight)
    scaled = MaxAbsScaler().fit_transform(X)
    expected = kind(C=grid.best_params_[f"{name}__C"]).fit(scaled, y, sample_weight=weight)
    np.testing.assert_array_equal(grid.best_estimator_[-1].coef_, expected.coef_)


def test_groups_are_routed_to_the_search(problem, routing):
    X, y = problem
    groups = np.arange(80) % 5
    model = hinge.LogisticRegressionCV(cv=sklearn.model_selection.GroupKFold(3)).set_fit_request(groups=True)
    routed = make_pipeline(MaxAbsScaler(), model).fit(X, y, groups=groups)
    alone = clone(model).fit(MaxAbsScaler().fit_transform(X), y, groups=groups)
    np.testing.assert_array_equal(routed[-1].search_.scores, alone.search_.scores)


def test_cross_validation_of_a_search(problem):
    X, y = problem
    scores = cross_val_score(hinge.LinearSVCCV(cv=3), X, y, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["dual_cd", "dual_cd_permuted", "dual_cd_online", "newton"])
def test_too_few_iterations_warn_and_leave_a_model(problem, loss, solver):
    X, y = problem
    model = estimator(loss, solver=solver, C=100.0, tol=1e-10, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of (\S+), tol is 1.00e-10") as caught:
        model.fit(X, y)
    gap = model.certificate_.relative_gap[0]
    assert gap > 1e-10
    assert f"gap of {gap:.2e}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert not model.certificate_.converged
    assert model.certificate_.status == ("max_iter",)
    assert model.n_iter_[0] <= 1
    assert np.isfinite(model.coef_).all()
    np.testing.assert_allclose(model.certificate_.primal, objective(model, X, y, loss), rtol=1e-9)
    assert set(model.predict(X)) <= {0, 1}


@pytest.mark.filterwarnings("ignore::hinge.NoSkillWarning")
@pytest.mark.parametrize("search", [False, True])
def test_warning_names_the_callers_line(problem, search):
    X, y = problem
    options = {"loss": "hinge", "tol": 1e-14, "max_iter": 1}
    model = hinge.LinearSVCCV(cv=3, C_min=512.0, **options) if search else hinge.LinearSVC(C=512.0, **options)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert caught[-1].filename == __file__


@pytest.mark.parametrize("loss", LOSSES)
def test_random_state(problem, loss):
    X, y = problem

    def coef(seed, tol=1e-3):
        return estimator(loss, solver="dual_cd", random_state=seed, tol=tol, max_iter=100_000).fit(X, y).coef_

    np.testing.assert_array_equal(coef(None), coef(None))
    np.testing.assert_array_equal(coef(5), coef(5))
    np.testing.assert_array_equal(coef(5), coef(np.random.RandomState(5)))
    assert (coef(5) != coef(6)).any()
    np.testing.assert_allclose(coef(5, tol=1e-9), coef(6, tol=1e-9), atol=1e-3)


def test_fitting_does_not_touch_the_global_generator(problem):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    hinge.LinearSVC(solver="dual_cd").fit(*problem)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "dual_cd", "newton"])
def test_number_of_iterations(problem, loss, solver):
    model = estimator(loss, solver=solver, max_iter=500).fit(*problem)
    assert model.n_iter_.dtype == np.int64
    assert model.n_iter_.shape == (1,)
    assert 1 <= model.n_iter_[0] <= 500


def test_refit_forgets_the_first_fit(problem):
    X, y = problem
    model = hinge.LinearSVC().fit(X[:, :5], y)
    model.fit(X, np.arange(80) % 3)
    expected = hinge.LinearSVC().fit(X, np.arange(80) % 3)
    assert model.n_features_in_ == 12
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])


@pytest.mark.parametrize("verbose", [0, 1])
def test_progress_goes_to_standard_error_on_request(verbose, capfd):
    X, y = sparse_problem(0, n_rows=3000, n_columns=300, noise=5.0)
    with pytest.warns(ConvergenceWarning):
        hinge.LinearSVC(solver="dual_cd", C=10.0, tol=1e-12, max_iter=1000, verbose=verbose).fit(X, y)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("[hinge] fit: dual_cd iteration") if verbose else shown.err == ""


def squared_table() -> tuple[sp.csr_matrix, np.ndarray]:
    """4,000 rows of ten columns of 120, small numbers more often than large ones."""
    rng = np.random.default_rng(5)
    columns = (120 * rng.random((4000, 10)) ** 2).astype(int)
    X = sp.csr_matrix((np.ones(40_000), (np.repeat(np.arange(4000), 10), columns.ravel())), shape=(4000, 120))
    return X, np.where(X @ rng.standard_normal(120) + rng.standard_normal(4000) > 0, 1, -1)


@pytest.mark.parametrize(("fit_intercept", "easy", "hard"), [(False, 0.03, 0.3), (True, 0.01, 0.1)])
def test_cheap_steps_or_few_epochs_by_the_costs(fit_intercept, easy, hard):
    """With small costs a few epochs of dual descent are less than one Newton step: the same optimum, another solver."""
    X, y = squared_table()
    for C, solver in ((easy, "dual_cd"), (hard, "newton")):
        model, newton = (
            hinge.LinearSVC(C=C, tol=1e-6, fit_intercept=fit_intercept, solver=name, random_state=0).fit(X, y)
            for name in ("auto", "newton")
        )
        assert model.certificate_.solver == (solver,)
        assert model.certificate_.relative_gap[0] <= 1e-6
        primal = newton.certificate_.primal[0]
        assert abs(model.certificate_.primal[0] - primal) <= 1e-6 * primal


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    ("C", "tol", "solver"), [(0.03, 1e-3, "dual_cd"), (0.03, 1e-4, "newton"), (0.3, 1e-2, "newton")]
)
def test_few_epochs_of_the_logistic_loss_by_the_tolerance(fit_intercept, C, tol, solver):
    X, y = squared_table()
    given = {"C": C, "fit_intercept": fit_intercept}
    model = hinge.LogisticRegression(tol=tol, **given).fit(X, y)
    assert model.certificate_.solver == (solver,)
    optimum = hinge.LogisticRegression(tol=1e-9, solver="newton", **given).fit(X, y).certificate_
    assert optimum.dual[0] <= model.certificate_.primal[0] <= (1 + tol) * optimum.primal[0]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_tables_of_more_columns_than_a_matrix_has(loss, fit_intercept):
    """Newton, whose conjugate gradient has a block of the frequent columns there, and dual descent: one optimum."""
    X = one_hot_table(3000, (2, 9, 60, 400, 1800), seed=1)
    rng = np.random.default_rng(2)
    y = np.where(X @ rng.standard_normal(X.shape[1]) + 0.5 * rng.standard_normal(3000) > 0, 1, -1)
    given = {"C": 10.0, "tol": 1e-7, "fit_intercept": fit_intercept, "max_iter": 100_000}
    kind, more = (hinge.LogisticRegression, {}) if loss == "logistic" else (hinge.LinearSVC, {"loss": loss})
    newton, descent = (kind(solver=solver, **given, **more).fit(X, y).certificate_ for solver in ("newton", "dual_cd"))
    assert newton.solver == ("newton",)
    assert newton.relative_gap[0] <= 1e-7
    assert max(newton.dual[0], descent.dual[0]) <= min(newton.primal[0], descent.primal[0])
