"""Multinomial logistic regression: the objective in NumPy, scikit-learn and repeated rows as witnesses."""

import pickle
import signal
import threading
import time
import warnings

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hinge._estimator_parts import estimator_of, parts_of
from hinge._logistic_value import softmax_value_from_above
from hypothesis import given
from hypothesis import strategies as st
from problems import INTERCEPTS, sparse_problem
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

EXACT = {"tol": 1e-10, "max_iter": 10_000}


def primal(model, X, y, weight=1.0):
    """The objective, from the attributes alone."""
    coef, intercept = model.coef_.astype(np.float64), model.intercept_.astype(np.float64)
    scores = np.asarray(X @ coef.T) + intercept
    ids = np.searchsorted(model.classes_, y)
    losses = -log_softmax(scores, axis=1)[np.arange(len(ids)), ids]
    penalty = 0.5 * (coef**2).sum()
    if model.fit_intercept and getattr(model, "intercept_scaling", None) is not None:
        penalty += 0.5 * ((intercept / model.intercept_scaling) ** 2).sum()
    return penalty + model.C * (weight * losses).sum()


@given(
    st.integers(0, 2**31),
    st.sampled_from(sorted(INTERCEPTS)),
    st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1024.0]),
    st.sampled_from(["auto", "newton", "dual_cd"]),
    st.integers(3, 20),
)
def test_no_gap_is_understated(seed, intercept, C, solver, n_classes):
    X, y = sparse_problem(seed, n_rows=60, n_columns=12, n_classes=n_classes)
    options = {"C": C, **INTERCEPTS[intercept]}
    exact = hinge.LogisticRegression(**options, **EXACT).fit(X, y)
    optimum = exact.certificate_.dual[0]
    assert exact.certificate_.status == ("converged",)
    assert exact.certificate_.primal[0] == pytest.approx(primal(exact, X, y), rel=1e-11)
    tol = 1e-3 if solver == "dual_cd" and C > 100 else 1e-4
    model = hinge.LogisticRegression(solver=solver, tol=tol, max_iter=20_000, **options).fit(X, y)
    found = model.certificate_
    assert found.converged
    assert found.relative_gap[0] <= tol
    assert found.primal[0] == pytest.approx(primal(model, X, y), rel=1e-11)
    assert found.dual[0] <= exact.certificate_.primal[0] * (1 + 1e-13)
    assert found.primal[0] >= optimum * (1 - 1e-12)


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("intercept", sorted(INTERCEPTS))
def test_the_optimum_is_that_of_a_slow_twin(intercept, C):
    X, y = sparse_problem(10, n_rows=80, n_columns=8, n_classes=4)
    weight = np.random.default_rng(1).uniform(0.2, 2.0, len(y))
    model = hinge.LogisticRegression(C=C, **INTERCEPTS[intercept], **EXACT).fit(X, y, weight)
    constant = np.full((len(y), 1), {"none": 0.0, "free": 1.0, "penalised": 2.0}[intercept])
    rows, n_classes = np.hstack([X.toarray(), constant]).astype(np.float64), 4
    penalty = np.append(np.ones(X.shape[1]), 0.0 if intercept == "free" else 1.0)

    def objective(flat):
        W = flat.reshape(n_classes, -1)
        logs = log_softmax(rows @ W.T, axis=1)
        slopes = (np.exp(logs) - np.eye(n_classes)[y]) * (C * weight)[:, None]
        value = 0.5 * (penalty * W**2).sum() - C * (weight * logs[np.arange(len(y)), y]).sum()
        return value, (penalty * W + slopes.T @ rows).ravel()

    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 0.0, "gtol": 1e-9}
    twin = minimize(objective, np.zeros(n_classes * rows.shape[1]), jac=True, method="L-BFGS-B", options=options)
    assert model.certificate_.primal[0] == pytest.approx(twin.fun, rel=1e-8)
    logs = rows @ twin.x.reshape(n_classes, -1).T
    np.testing.assert_allclose(model.predict_proba(X), softmax(logs, axis=1), atol=1e-5)


# As exact as double precision goes; the proof ends a little before.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("load", [load_digits, load_iris])
def test_probabilities_are_those_of_scikit_learn(load, fit_intercept, C):
    X, y = load(return_X_y=True)
    X = X / X.max()
    ours = hinge.LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-13, max_iter=10_000)
    ours.fit(X, y)
    theirs = LogisticRegression(
        C=C, fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-12, max_iter=10_000
    ).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)), atol=1e-9)
    np.testing.assert_allclose(ours.intercept_ - ours.intercept_.mean(), ours.intercept_, atol=1e-8)
    assert ours.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4 * abs(theirs.coef_).max())
    assert primal(ours, X, y) <= primal(theirs, X, y) * (1 + 1e-12)


def test_more_than_two_classes_are_multinomial_unless_asked_otherwise():
    X, y = sparse_problem(1, n_classes=4)
    models = {name: hinge.LogisticRegression(multi_class=name, tol=1e-8).fit(X, y) for name in ("auto", "multinomial")}
    for model in models.values():
        assert model.multi_class_ == "multinomial"
        assert model.coef_.shape == (4, 30)
        assert model.n_iter_.shape == (1,)
        values = model.decision_function(X)
        np.testing.assert_allclose(model.predict_proba(X), softmax(values, axis=1), rtol=1e-12)
        np.testing.assert_array_equal(model.predict(X), values.argmax(axis=1))
    np.testing.assert_array_equal(models["auto"].coef_, models["multinomial"].coef_)
    rest = hinge.LogisticRegression(multi_class="ovr", tol=1e-8).fit(X, y)
    assert rest.multi_class_ == "ovr"
    assert rest.n_iter_.shape == (4,)
    one = hinge.LogisticRegression(tol=1e-8).fit(X, y == 2)
    np.testing.assert_allclose(rest.coef_[2], one.coef_[0], atol=1e-3)
    for name in ("auto", "multinomial", "ovr"):
        two = hinge.LogisticRegression(multi_class=name, tol=1e-8).fit(X, y == 2)
        assert two.multi_class_ == "ovr"
        np.testing.assert_array_equal(two.coef_, one.coef_)


def test_weights_are_repetitions():
    X, y = sparse_problem(2, n_classes=5)
    times = np.random.default_rng(0).integers(0, 4, X.shape[0])
    times[:5] = 1
    repeated = np.repeat(np.arange(X.shape[0]), times)
    weighted = hinge.LogisticRegression(**EXACT).fit(X, y, times)
    several = hinge.LogisticRegression(**EXACT).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.coef_, several.coef_, atol=1e-4)
    np.testing.assert_allclose(weighted.predict_proba(X), several.predict_proba(X), atol=1e-5)
    costs = {0: 2.0, 3: 0.5}
    by_class = hinge.LogisticRegression(class_weight=costs, **EXACT).fit(X, y)
    by_row = hinge.LogisticRegression(**EXACT).fit(X, y, np.array([costs.get(k, 1.0) for k in y]))
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)


@pytest.mark.parametrize("solver", ["auto", "newton", "dual_cd"])
@pytest.mark.parametrize("n_classes", [3, 40])
def test_threads_and_layouts_change_no_bit(solver, n_classes):
    X, y = sparse_problem(3, n_rows=400, n_columns=60, n_classes=n_classes)
    fits = [
        hinge.LogisticRegression(solver=solver, n_jobs=n_jobs).fit(rows, y)
        for n_jobs in (1, 2)
        for rows in (X, sp.csr_array(X.astype(np.float64)))
    ]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.coef_, fits[0].coef_)
        np.testing.assert_array_equal(model.intercept_, fits[0].intercept_)


def test_presolve_changes_nothing_but_the_columns_worked_on():
    X, y = sparse_problem(4, n_classes=6, n_columns=20)
    wide = sp.hstack([X, 2.0 * X, sp.csr_matrix((X.shape[0], 7))], format="csr")
    for intercept in INTERCEPTS.values():
        packed = hinge.LogisticRegression(presolve=True, **EXACT, **intercept).fit(wide, y)
        plain = hinge.LogisticRegression(presolve=False, **EXACT, **intercept).fit(wide, y)
        assert packed.presolve_.n_columns == 20
        assert packed.certificate_.converged
        np.testing.assert_allclose(packed.coef_, plain.coef_, atol=1e-4)
        assert packed.certificate_.primal[0] == pytest.approx(primal(packed, wide, y), rel=1e-11)


def test_pairs_of_features():
    X, y = sparse_problem(5, n_classes=3, n_columns=6)
    model = hinge.LogisticRegression(degree=2, **EXACT).fit(X, y)
    mapped = hinge.Poly2Map().fit(X).transform(X)
    plain = hinge.LogisticRegression(presolve=False, **EXACT).fit(mapped, y)
    assert model.certificate_.converged
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(mapped), atol=1e-5)


def test_rare_classes_and_separable_rows():
    X, y = sparse_problem(6, n_rows=80, n_classes=3)
    y = np.where(np.arange(80) == 7, 3, y)
    for C in (1e-4, 1.0, 1024.0):
        model = hinge.LogisticRegression(C=C).fit(X, y)
        assert model.certificate_.converged
        assert np.isfinite(model.coef_).all()
    ids = np.arange(30) % 3
    separable = hinge.LogisticRegression(C=1024.0, tol=1e-8).fit(np.eye(3)[ids], ids)
    assert separable.certificate_.converged
    assert separable.score(np.eye(3)[ids], ids) == 1.0


def test_stores_are_multinomial_unless_asked_otherwise(tmp_path):
    X, y = sparse_problem(7, n_rows=300, n_classes=4)
    store = hinge.BlockStore.build((X, y), tmp_path / "rows.hinge")
    plain = hinge.LogisticRegression(tol=1e-6).fit(X, y)
    for in_memory in (True, False):
        shared = {"tol": 1e-6, "block_options": {"in_memory": in_memory}}
        for name in ("auto", "multinomial"):
            model = hinge.LogisticRegression(multi_class=name, **shared).fit(store)
            assert model.multi_class_ == "multinomial"
            np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-3)
        assert hinge.LogisticRegression(multi_class="ovr", **shared).fit(store).multi_class_ == "ovr"


def test_streams_are_multinomial_and_labels_one_against_the_rest():
    X, y = sparse_problem(8, n_classes=3)
    asked = hinge.LogisticRegression(multi_class="multinomial")
    streams = {
        name: hinge.LogisticRegression(multi_class=name).partial_fit(X, y, classes=[0, 1, 2])
        for name in ("auto", "multinomial", "ovr")
    }
    np.testing.assert_array_equal(streams["auto"].coef_, streams["multinomial"].coef_)
    assert [stream.multi_class_ for stream in streams.values()] == ["multinomial", "multinomial", "ovr"]
    stream = hinge.LogisticRegression(multi_class="ovr").fit(X, y).partial_fit(X, y)
    for model in (stream, streams["ovr"]):
        assert model.multi_class_ == "ovr"
        raw = 1 / (1 + np.exp(-model.decision_function(X)))
        np.testing.assert_allclose(model.predict_proba(X), raw / raw.sum(axis=1, keepdims=True), rtol=1e-9)
    # A stream that was begun when "auto" meant each class against the rest goes on so.
    streams["ovr"].multi_class = "auto"
    streams["ovr"].stream_.parameters["multi_class"] = "auto"
    assert pickle.loads(pickle.dumps(streams["ovr"])).partial_fit(X, y).multi_class_ == "ovr"
    labels = np.eye(3, dtype=int)[y]
    assert hinge.LogisticRegression().fit(X, labels).multi_class_ == "ovr"
    with pytest.raises(ValueError, match="takes one class per row"):
        asked.fit(X, labels)
    with pytest.raises(ValueError, match="solver must be 'auto', 'dual_cd' or 'newton'"):
        hinge.LogisticRegression(solver="dual_cd_online").fit(X, y)
    with pytest.raises(ValueError, match="multi_class"):
        hinge.LogisticRegression(multi_class="softmax").fit(X, y)


def test_models_are_kept(tmp_path):
    X, y = sparse_problem(9, n_classes=3)
    model = hinge.LogisticRegression().fit(X, y)
    model.save(tmp_path / "model.hinge")
    loaded = hinge.load(tmp_path / "model.hinge")
    for other in (pickle.loads(pickle.dumps(model)), estimator_of(parts_of(model)), loaded.to_estimator()):
        assert other.multi_class == "auto"
        assert other.multi_class_ == "multinomial"
        assert not hasattr(other, "calibration_")
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    for predictor in (loaded, hinge.Predictor.of(model)):
        np.testing.assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(predictor.predict_log_proba(X), model.predict_log_proba(X))
    assert parts_of(model).probability == {"kind": "temperature", "factor": 1.0}


def test_liblinear_has_no_softmax(tmp_path):
    X, y = sparse_problem(9, n_classes=3)
    path = tmp_path / "model.txt"
    with pytest.raises(ValueError, match="calibrated or multinomial, LIBLINEAR knows those of one-vs-rest only"):
        hinge.LogisticRegression().fit(X, y).save_liblinear(path)
    model = hinge.LogisticRegression(multi_class="ovr", intercept_scaling=1.0).fit(X, y)
    model.save_liblinear(path)
    loaded = hinge.load_liblinear(path).to_estimator()
    assert loaded.multi_class == "ovr"
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), rtol=1e-12)


def test_onnx_has_the_softmax():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, y = sparse_problem(9, n_classes=3)
    model = hinge.LogisticRegression().fit(X, y)
    session = runtime.InferenceSession(hinge.to_onnx(model).SerializeToString())
    label, found = session.run(["label", "probabilities"], {"X": X.toarray().astype(np.float64)})
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-12)


def test_scikit_learns_names_go_with_the_softmax():
    X, y = sparse_problem(11, n_rows=150, n_columns=10, n_classes=4)
    X = X.astype(np.float32)
    single = hinge.LogisticRegression(solver="lbfgs", tol=1e-5).fit(X, y)
    assert single.multi_class_ == "multinomial"
    assert single.coef_.dtype == np.float32
    found = single.certificate_
    exact = hinge.LogisticRegression(**EXACT).fit(X, y)
    assert found.primal[0] == pytest.approx(primal(single, X.astype(np.float64), y), rel=1e-9)
    assert found.primal[0] >= primal(single, X.astype(np.float64), y)
    assert found.dual[0] <= exact.certificate_.primal[0]
    assert hinge.LogisticRegression(solver="liblinear").fit(X, y).multi_class_ == "ovr"
    with pytest.raises(ValueError, match="Solver liblinear does not support a multinomial backend"):
        hinge.LogisticRegression(solver="liblinear", multi_class="multinomial").fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_penalty_the_softmax_is_the_limit(fit_intercept):
    random = np.random.default_rng(5)
    X, y = random.standard_normal((300, 3)), random.integers(0, 4, 300)
    ours = hinge.LogisticRegression(C=np.inf, fit_intercept=fit_intercept).fit(X, y)
    assert ours.multi_class_ == "multinomial"
    assert ours.certificate_.status == ("unpenalised",)
    theirs = LogisticRegression(C=np.inf, fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    ids = np.arange(30) % 3
    with pytest.warns(ConvergenceWarning, match="separable"):
        hinge.LogisticRegression(C=np.inf, fit_intercept=fit_intercept).fit(np.eye(3)[ids], ids)


def test_a_warm_start_and_no_iteration_at_all():
    X, y = sparse_problem(12, n_rows=150, n_columns=10, n_classes=4)
    best = hinge.LogisticRegression(warm_start=True, **EXACT).fit(X, y)
    before = best.certificate_.primal[0]
    best.set_params(tol=1e-1, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best.fit(X, y)
    assert best.certificate_.primal[0] <= before * (1 + 1e-9)
    with pytest.warns(ConvergenceWarning):
        none = hinge.LogisticRegression(solver="lbfgs", max_iter=0).fit(X, y)
    assert none.multi_class_ == "multinomial"
    assert none.certificate_.primal[0] == pytest.approx(len(y) * np.log(4))
    np.testing.assert_allclose(none.predict_proba(X), 0.25)


@given(st.integers(0, 1000), st.sampled_from([None, 2.0]))
def test_the_value_of_a_softmax_from_above_is_above_and_close(seed, height):
    random = np.random.default_rng(seed)
    X = sp.random(30, 6, 0.5, format="csr", random_state=seed) * 10.0 ** random.integers(-3, 4)
    ids, cost = random.integers(0, 3, 30), random.uniform(0, 5, 30)
    coef, intercept = random.normal(size=(3, 6)) * 10.0 ** random.integers(-3, 3), random.normal(size=3)
    found = softmax_value_from_above(X, ids, cost, (coef, intercept), height)
    rows, W, b = (part.astype(np.longdouble) for part in (X.toarray(), coef, intercept))
    scores = rows @ W.T + b
    above = scores - scores[np.arange(30), ids][:, None]
    top = above.max(axis=1)
    losses = top + np.log(np.exp(above - top[:, None]).sum(axis=1))
    value = (W**2).sum() / 2 + cost @ losses + (0 if height is None else ((b / height) ** 2).sum() / 2)
    assert value <= found[0] <= value * (1 + 1e-9)


def test_files_of_before_the_parameter_are_one_against_the_rest():
    X, y = sparse_problem(9, n_classes=3)
    model = hinge.LogisticRegression(multi_class="ovr").fit(X, y)
    parts = parts_of(model)
    del parts.record["parameters"]["multi_class"], parts.record["fitted"]["multi_class_"]
    older = estimator_of(parts)
    assert older.multi_class == "ovr"
    np.testing.assert_array_equal(older.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("solver", ["newton", "dual_cd"])
def test_ctrl_c_ends_a_fit_within_a_second(solver):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((20_000, 300)), random.integers(0, 100, 20_000)
    model = hinge.LogisticRegression(C=1e4, tol=1e-12, solver=solver)

    def seconds_to_stop():
        sent = []

        def interrupt():
            sent.append(time.monotonic())
            signal.raise_signal(signal.SIGINT)

        threading.Timer(1.5, interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        return time.monotonic() - sent[0]

    assert any(seconds_to_stop() < 1.0 for _ in range(3))  # a busy machine only adds time
    assert not hasattr(model, "coef_")


def out_of_fold(X, y, folds, **parameters):
    values = np.empty((len(y), len(np.unique(y))))
    for train, test in folds:
        values[test] = (
            hinge.LogisticRegression(tol=1e-10, **parameters).fit(X[train], y[train]).decision_function(X[test])
        )
    return values


@pytest.mark.parametrize("solver", ["auto", "newton", "dual_cd"])
@pytest.mark.parametrize("intercept", INTERCEPTS.values())
def test_searches_fit_the_model_that_they_choose_for(intercept, solver):
    X, y = sparse_problem(9, n_rows=240, n_classes=4)
    folds = list(StratifiedKFold(3).split(X, y))
    options = {"cv": folds, "Cs": [0.01, 0.3, 10.0], "solver": solver, **intercept}
    search = hinge.select_C(X, y, tol=1e-7, keep_decisions=True, scoring=["neg_log_loss", "accuracy"], **options)
    assert search.objective.shape == (3, 3, 1)
    for k, C in enumerate(search.Cs):
        values = out_of_fold(X, y, folds, C=C, **intercept)
        chances = softmax(values, axis=1)
        for f, (train, test) in enumerate(folds):
            loss = log_loss(y[test], chances[test], labels=np.arange(4))
            assert search.all_scores["neg_log_loss"][k, f] == pytest.approx(-loss, abs=1e-4)
            whole = hinge.LogisticRegression(C=C, tol=1e-10, **intercept).fit(X[train], y[train])
            assert search.objective[k, f, 0] == pytest.approx(whole.certificate_.primal[0], rel=1e-7)
        if search.C == C:
            np.testing.assert_allclose(search.decisions, values, atol=2e-3)
    model = hinge.LogisticRegressionCV(scoring="neg_log_loss", **options).fit(X, y)
    assert model.multi_class_ == "multinomial"
    assert model.C_ == search.C
    plain = hinge.LogisticRegression(C=model.C_, solver=solver, **intercept).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_allclose(model.predict_proba(X), softmax(model.decision_function(X), axis=1), rtol=1e-12)
    rest = hinge.LogisticRegressionCV(scoring="neg_log_loss", multi_class="ovr", **options).fit(X, y)
    assert rest.multi_class_ == "ovr"
    assert rest.search_.objective.shape == (3, 3, 4)
    assert (rest.search_.objective > search.objective / 8).all()


def test_choices_of_a_search():
    X, y = sparse_problem(10, n_classes=3)
    auto, asked, rest = (
        hinge.select_C(X, y, cv=2, Cs=[0.1, 1.0], multi_class=name) for name in ("auto", "multinomial", "ovr")
    )
    np.testing.assert_array_equal(auto.objective, asked.objective)
    assert rest.objective.shape == (2, 2, 3)
    hinges = hinge.select_C(X, y, cv=2, Cs=[0.1], loss="hinge")
    assert hinges.objective.shape == (1, 2, 3)
    with pytest.raises(ValueError, match="loss must be 'logistic' with multi_class='multinomial', got 'hinge'"):
        hinge.select_C(X, y, cv=2, Cs=[0.1], loss="hinge", multi_class="multinomial")
    with pytest.raises(ValueError, match="solver must be 'auto', 'dual_cd' or 'newton' for multi_class"):
        hinge.select_C(X, y, cv=2, Cs=[0.1], solver="dual_cd_online")
    two = [hinge.select_C(X, y == 1, cv=2, Cs=[0.1, 1.0], multi_class=name) for name in ("auto", "ovr")]
    np.testing.assert_array_equal(two[0].objective, two[1].objective)
    pairs = hinge.select_C(X[:, :5], y, cv=2, Cs=[0.1], degree=2)
    assert pairs.objective.shape == (1, 2, 1)


def test_a_search_bounds_its_first_value_and_resumes(tmp_path):
    X, y = sparse_problem(11, n_rows=200, n_classes=5)
    largest = float(X.multiply(X).sum(axis=1).max())
    search = hinge.select_C(X, y, cv=3, C_max=1.0)
    bound = 0.5 / (len(y) * largest)
    assert bound / 2 < search.Cs[0] <= bound
    options = {"cv": 3, "C_max": 1.0, "keep_decisions": True, "resume": tmp_path / "journal"}
    calls = []

    def interrupted(model, rows, truth):
        calls.append(len(truth))
        if len(calls) > 3 * 6:  # three folds are tried before the first value
            raise KeyboardInterrupt
        return float(np.mean(model.predict(rows) == truth))

    with pytest.warns(hinge.PartialSearchWarning):
        part = hinge.select_C(X, y, scoring=interrupted, **options)
    assert len(part.Cs) == 5
    again = hinge.select_C(X, y, **options)
    np.testing.assert_array_equal(again.scores, search.scores)
    np.testing.assert_array_equal(again.objective, search.objective)
    replayed = hinge.select_C(X, y, **options)
    assert replayed.replayed.all()
    np.testing.assert_array_equal(replayed.decisions, again.decisions)
    with pytest.raises(ValueError, match="multi_class"):
        hinge.select_C(X, y, multi_class="ovr", **options)
    two = hinge.select_C(X, y, cv=3, C_max=1.0, n_jobs=2)
    np.testing.assert_array_equal(two.objective, search.objective)


def test_searches_over_stores(tmp_path):
    X, y = sparse_problem(12, n_rows=300, n_classes=4)
    store = hinge.BlockStore.build((X, y), tmp_path / "rows.hinge")
    options = {"cv": StratifiedKFold(3), "Cs": [0.1, 1.0, 8.0]}
    plain = hinge.LogisticRegressionCV(**options).fit(X, y)
    for in_memory in (True, False):
        blocks = {"block_options": {"in_memory": in_memory}}
        assert hinge.LogisticRegressionCV(multi_class="ovr", **options, **blocks).fit(store).multi_class_ == "ovr"
        model = hinge.LogisticRegressionCV(**options, **blocks).fit(store)
        assert model.multi_class_ == plain.multi_class_ == "multinomial"
        assert model.C_ == plain.C_
        assert model.search_.objective.shape == plain.search_.objective.shape
        np.testing.assert_allclose(model.search_.objective, plain.search_.objective, rtol=2e-3)
        np.testing.assert_allclose(model.search_.scores, plain.search_.scores, atol=0.03)
    with pytest.raises(ValueError, match="solver must be 'auto' or 'newton' for a multinomial search over a store"):
        hinge.select_C(store, solver="dual_cd", block_options={"in_memory": False}, **options)


@pytest.mark.parametrize("intercept", sorted(INTERCEPTS))
def test_searches_over_blocks_are_those_in_memory(tmp_path, intercept):
    X, y = sparse_problem(14, n_rows=240, n_classes=5)
    weight = 1.0 + np.arange(240) % 2
    store = hinge.BlockStore.build((X, y, weight), tmp_path / "rows.hinge")
    tight = {"cv": StratifiedKFold(3), "tol": 1e-6, "keep_decisions": True, **INTERCEPTS[intercept]}
    plain = hinge.select_C(X, y, sample_weight=weight, loss="logistic", C_max=16.0, **tight)
    shared = {"loss": "logistic", "C_max": 16.0, "memory_budget": 10**8, "block_options": {"in_memory": False}, **tight}
    found = hinge.select_C(store, **shared)
    np.testing.assert_array_equal(found.Cs, plain.Cs)
    np.testing.assert_allclose(found.objective, plain.objective, rtol=1e-5)
    np.testing.assert_allclose(found.decisions, plain.decisions, atol=0.05)
    # A journal goes on to the same bits.
    calls = []

    def interrupted(model, rows, truth):
        calls.append(len(truth))
        if len(calls) > 3 * 6:
            raise KeyboardInterrupt
        return float(np.mean(model.predict(rows) == truth))

    journal = {**shared, "resume": tmp_path / "journal"}
    with pytest.warns(hinge.PartialSearchWarning):
        part = hinge.select_C(store, scoring=interrupted, **journal)
    assert 0 < len(part.Cs) < len(found.Cs)
    again = hinge.select_C(store, n_jobs=2, **journal)
    np.testing.assert_array_equal(again.objective, found.objective)
    np.testing.assert_array_equal(again.decisions, found.decisions)


def test_calibration_goes_on_top():
    X, y = sparse_problem(13, n_rows=300, n_classes=3)
    model = hinge.LogisticRegressionCV(cv=3, C_max=64.0, keep_decisions=True).fit(X, y)
    calibration = hinge.calibrate(model.search_.decisions, y, method="temperature")
    chances = calibration.predict_proba(model.decision_function(X))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    # Trained for their likelihood, they need next to no change.
    before, after = (
        log_loss(y, values)
        for values in (softmax(model.search_.decisions, axis=1), calibration.predict_proba(model.search_.decisions))
    )
    assert before - 0.05 <= after <= before + 1e-9


def test_folds_that_lack_a_class():
    """Fits of their own: a class that is not there has no weight, and two that are left are opposites."""
    X, y = sparse_problem(14, n_rows=90, n_classes=3)
    y = np.sort(y)
    folds = [(np.flatnonzero(y != k), np.flatnonzero(y == k)) for k in (0, 2)]
    model = hinge.LogisticRegressionCV(cv=folds, Cs=[1.0], use_legacy_attributes=False, tol=1e-9).fit(X, y)
    weights = model.coefs_paths_[1, 0, 0]
    assert (weights[2, :-1] == 0).all()
    assert weights[2, -1] == -np.inf
    np.testing.assert_allclose(weights[0], -weights[1])
    there = y != 2
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(np.asarray(X[there].todense()), y[there] == 1)
    doubled = hinge.LogisticRegression(C=2.0, tol=1e-10).fit(X[there], y[there] == 1)
    np.testing.assert_allclose(weights[1, :-1], doubled.coef_[0] / 2, atol=1e-4)
    assert abs(theirs.coef_[0] - 2 * weights[1, :-1]).max() > 1e-3
    value = 0.5 * (weights[:2, :-1] ** 2).sum()
    scores = X[there] @ weights[:2, :-1].T + weights[:2, -1]
    value -= log_softmax(scores, axis=1)[np.arange(there.sum()), y[there]].sum()
    np.testing.assert_allclose(model.search_.objective[0, 1], [value], rtol=1e-8)
