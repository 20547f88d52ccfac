"""Softmax with absolute values, factors and bounds: NumPy, scikit-learn and a general solver as witnesses."""

import pickle
import signal
import threading
import time

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hinge._logistic_value import softmax_value_from_above
from hypothesis import given
from hypothesis import strategies as st
from problems import sparse_problem
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

INTERCEPTS = {"none": {"fit_intercept": False}, "free": {}, "penalised": {"intercept_scaling": 2.0}}


def model(**given) -> hinge.LogisticRegression:
    given = {"penalty": "l1", "multi_class": "multinomial", "tol": 1e-9, "max_iter": 5000, **given}
    return hinge.LogisticRegression(**given)


def penalty(model, ratio: float, factors=1.0) -> float:
    """What the weights cost."""

    def cost(w):
        return ratio * np.abs(w) + 0.5 * (1.0 - ratio) * w**2

    coef, intercept = model.coef_.astype(np.float64), model.intercept_.astype(np.float64)
    with np.errstate(invalid="ignore"):  # an infinite factor is that of a weight of 0
        total = np.where(coef == 0.0, 0.0, factors * cost(coef)).sum()
    height = model.intercept_scaling if model.fit_intercept else None
    return float(total + (cost(intercept / height).sum() if height else 0.0))


def losses(model, X, y) -> np.ndarray:
    coef, intercept = model.coef_.astype(np.float64), model.intercept_.astype(np.float64)
    logs = log_softmax(X @ coef.T + intercept, axis=1)
    return -logs[np.arange(len(y)), np.searchsorted(model.classes_, y)]


def iris() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@given(
    st.integers(0, 2**31),
    st.sampled_from(sorted(INTERCEPTS)),
    st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e4]),
    st.sampled_from([1.0, 0.5, 0.0]),
    st.integers(3, 8),
    st.sampled_from(["none", "bounds", "factors"]),
)
def test_no_gap_is_understated(seed, intercept, C, ratio, n_classes, more):
    X, y = sparse_problem(seed, n_rows=60, n_columns=12, n_classes=n_classes)
    factors = np.linspace(0.0, 2.0, X.shape[1])
    factors[-1] = np.inf
    told = {
        "none": {},
        "bounds": {"bounds": (-0.5, np.linspace(0.1, 1.0, 12))},
        "factors": {"penalty_factors": factors},
    }
    if more == "factors":  # rows without penalty might be separable
        factors[0] = 0.1
    options = {"C": C, "penalty": "elasticnet", "l1_ratio": ratio, **INTERCEPTS[intercept], **told[more]}
    found = model(tol=1e-4, **options).fit(X, y)
    exact = model(tol=1e-8, **options).fit(X, y)
    value = penalty(found, ratio, factors if more == "factors" else 1.0) + C * losses(found, X, y).sum()
    proof, best = found.certificate_, exact.certificate_
    assert found.multi_class_ == "multinomial"
    assert proof.status == ("converged",)
    assert best.status == ("converged",)
    assert proof.primal[0] == pytest.approx(value, rel=1e-11)
    assert proof.dual[0] <= best.primal[0] * (1 + 1e-13)
    assert best.dual[0] <= proof.primal[0]
    if intercept == "free":
        assert abs(found.intercept_.sum()) <= 1e-12 * (1 + np.abs(found.intercept_).max())
    if more == "factors":
        assert not found.coef_[:, -1].any()
    if more == "bounds":
        assert (found.coef_ >= -0.5).all()
        assert (found.coef_ <= told["bounds"]["bounds"][1]).all()


@pytest.mark.parametrize("limits", [(-np.inf, np.inf), (0.0, np.inf), (-0.05, 0.1)])
@pytest.mark.parametrize("ratio", [1.0, 0.4, 0.0])
def test_the_optimum_is_that_of_a_general_solver(ratio, limits):
    X, y = iris()
    C, factors, (n_classes, d) = 0.3, np.linspace(0.5, 2.0, X.shape[1]), (3, X.shape[1])
    found = model(C=C, penalty="elasticnet", l1_ratio=ratio, penalty_factors=factors, bounds=limits).fit(X, y)

    def value(flat):
        """Weights by positive and negative parts, and intercepts."""
        plus, minus, b = np.split(flat, [n_classes * d, 2 * n_classes * d])
        w = (plus - minus).reshape(n_classes, d)
        logs = log_softmax(X @ w.T + b, axis=1)
        slopes = C * (np.exp(logs) - np.eye(n_classes)[y])
        squares = (1.0 - ratio) * factors * w
        cost = ratio * (np.tile(factors, n_classes) @ (plus + minus)) + 0.5 * (squares * w).sum()
        pull, size = (slopes.T @ X + squares).ravel(), ratio * np.tile(factors, n_classes)
        return cost - C * logs[np.arange(len(y)), y].sum(), np.concatenate([pull + size, size - pull, slopes.sum(0)])

    lower, upper = limits
    parts = [(0, upper)] * (n_classes * d) + [(0, -lower)] * (n_classes * d) + [(None, None)] * n_classes
    options = {"maxiter": 20_000, "maxfun": 10**7, "ftol": 1e-15, "gtol": 1e-10}
    best = minimize(value, np.zeros(len(parts)), jac=True, method="L-BFGS-B", bounds=parts, options=options).fun
    assert found.certificate_.relative_gap[0] <= 1e-9
    assert found.certificate_.primal[0] <= best * (1 + 1e-9)
    assert found.certificate_.dual[0] <= best * (1 + 1e-12)
    own = penalty(found, ratio, factors) + C * losses(found, X, y).sum()
    assert found.certificate_.primal[0] == pytest.approx(own, rel=1e-12)


@pytest.mark.parametrize(("C", "ratio"), [(0.05, 1.0), (0.5, 1.0), (0.5, 0.3), (20.0, 1.0)])
@pytest.mark.filterwarnings("ignore")
def test_weights_are_those_of_scikit_learns_saga(C, ratio):
    X, y = iris()
    ours = model(C=C, penalty="elasticnet", l1_ratio=ratio, tol=1e-11).fit(X, y)
    theirs = TheirLogistic(C=C, penalty="elasticnet", solver="saga", l1_ratio=ratio, tol=1e-10, max_iter=100_000)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4 * max(1.0, np.abs(theirs.coef_).max()))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    # Theirs are the same up to a common shift.
    theirs_at_zero, size = theirs.intercept_ - theirs.intercept_.mean(), max(1.0, np.abs(ours.intercept_).max())
    np.testing.assert_allclose(ours.intercept_, theirs_at_zero, atol=2e-4 * size)


@pytest.mark.parametrize("C", [1e4, 1e-6])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_costs_of_any_size_are_solved(C, ratio):
    X, y = load_iris(return_X_y=True)
    found = model(C=C, penalty="elasticnet", l1_ratio=ratio, tol=1e-8).fit(X, y)
    assert found.certificate_.converged
    assert found.n_iter_[0] <= 200
    if C < 1:
        assert not found.coef_.any()
        np.testing.assert_allclose(found.predict_proba(X), 1 / 3, atol=1e-9)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_ten_classes_of_digits_are_solved(C):
    X, y = digits()
    found = model(C=C, tol=1e-4).fit(X, y)
    assert found.certificate_.converged
    assert found.n_iter_[0] <= 100
    sharp = model(C=C, tol=1e-8).fit(X, y)
    assert sharp.certificate_.converged
    assert sharp.certificate_.dual[0] <= found.certificate_.primal[0]
    # Of a column's weights in all classes one is zero at least, but where as many are above as below.
    signs = np.sign(sharp.coef_)
    assert ((signs == 0).any(axis=0) | (signs.sum(axis=0) == 0)).all()


def test_weights_are_repetitions_and_absent_rows_do_not_count():
    X, y = sparse_problem(4, n_rows=60, n_columns=12, n_classes=4)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weight[:8] = 1
    weighted = model(tol=1e-10).fit(X, y, weight)
    repeated = model(tol=1e-10).fit(X[np.repeat(np.arange(len(y)), weight)], np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)
    assert weighted.certificate_.primal[0] == pytest.approx(repeated.certificate_.primal[0], rel=1e-9)


def test_threads_layouts_and_types_change_no_bit():
    X, y = sparse_problem(5, n_rows=400, n_columns=40, n_classes=5)
    first = model(n_jobs=1).fit(X, y)
    for other in (model(n_jobs=3).fit(X, y), model().fit(X.toarray(), y), model().fit(sp.csc_matrix(X), y)):
        np.testing.assert_array_equal(first.coef_, other.coef_)
        np.testing.assert_array_equal(first.intercept_, other.intercept_)
        assert first.certificate_.dual == other.certificate_.dual


def test_what_asks_for_the_softmax():
    X, y = iris()
    for given_ in ({}, {"multi_class": "ovr"}, {"solver": "liblinear"}):
        assert hinge.LogisticRegression(l1_ratio=1.0, **given_).fit(X, y).multi_class_ == "ovr"
    for given_ in ({"multi_class": "multinomial"}, {"solver": "saga"}):
        found = hinge.LogisticRegression(l1_ratio=1.0, **given_).fit(X, y)
        assert found.multi_class_ == "multinomial"
        assert found.certificate_.solver == ("working_set",)
        np.testing.assert_allclose(found.predict_proba(X), softmax(found.decision_function(X), axis=1))
    two = model().fit(X, y == 1)
    np.testing.assert_array_equal(two.coef_, model(multi_class="ovr").fit(X, y == 1).coef_)
    with pytest.raises(ValueError, match="multi_class"):
        hinge.select_C(X, y, loss="squared_hinge", penalty="l1", multi_class="multinomial")


def test_products_of_features_are_in_the_softmax():
    X, y = iris()
    found = model(degree=2, C=0.3).fit(X, y)
    written = hinge.Poly2Map().fit_transform(X)
    alone = model(C=0.3).fit(written, y)
    assert found.coef_.shape == (3, 14)
    assert found.multi_class_ == "multinomial"
    np.testing.assert_allclose(found.coef_, alone.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.predict_proba(X), alone.predict_proba(written), rtol=1e-9)
    search = {"loss": "logistic", "penalty": "l1", "multi_class": "multinomial", "max_drop": 0.05, "cv": 3}
    np.testing.assert_allclose(
        hinge.select_C(X, y, degree=2, **search).scores, hinge.select_C(written, y, **search).scores
    )


def test_models_are_kept_and_served(tmp_path):
    X, y = digits()
    found = model(C=0.05, tol=1e-4).fit(X, y)
    found.save(tmp_path / "model.hinge")
    served = hinge.load(tmp_path / "model.hinge")
    copy = pickle.loads(pickle.dumps(found))
    for other in (served, copy):
        np.testing.assert_array_equal(other.decision_function(X), found.decision_function(X))
        np.testing.assert_array_equal(other.predict_proba(X), found.predict_proba(X))
    np.testing.assert_array_equal(hinge.Predictor.of(found).predict_proba(X), found.predict_proba(X))
    assert served.to_estimator().multi_class_ == copy.multi_class_ == "multinomial"
    np.testing.assert_array_equal(copy.sparsify().coef_.toarray(), found.coef_)
    with pytest.raises(ValueError, match="multinomial"):
        found.save_liblinear(tmp_path / "model.txt")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounded_weights_are_judged_by_their_own_value(dtype):
    X, y = iris()
    found = hinge.LogisticRegression(l1_ratio=1.0, solver="saga", tol=1e-3, C=0.5).fit(X.astype(dtype), y)
    assert found.coef_.dtype == dtype
    own = penalty(found, 1.0) + 0.5 * losses(found, X.astype(dtype), y).sum()
    assert found.certificate_.primal[0] >= own * (1 - 1e-12)
    assert found.certificate_.primal[0] == pytest.approx(own, rel=1e-9)
    told = {"l1_ratio": 1.0, "factors": 1.0}
    above = softmax_value_from_above(X, y, np.full(len(y), 0.5), (found.coef_, found.intercept_), 0.0, told)
    assert above[0] >= penalty(found, 1.0) + 0.5 * losses(found, X, y).sum()


def test_ctrl_c_ends_a_fit_within_a_second():
    random = np.random.default_rng(0)
    X, y = sp.random(20_000, 3_000, 0.02, "csr", rng=random), random.integers(0, 12, 20_000)
    timer = threading.Timer(0.5, signal.raise_signal, (signal.SIGINT,))
    begin = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model(C=1e5, tol=1e-10).fit(X, y)
    assert time.perf_counter() - begin < 4.0


def test_a_search_begins_where_all_weights_are_zero_and_fits_what_it_chooses():
    X, y = digits()
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    found = hinge.select_C(
        X, y, loss="logistic", multi_class="multinomial", penalty="l1", cv=folds, C_max=1.0, keep_coefs=True, tol=1e-3
    )
    assert found.n_nonzero.shape == (len(found.Cs), 3)
    assert not found.n_nonzero[0].any()
    assert found.n_nonzero[1].any()
    assert [coefs.shape for coefs in found.coefs] == [(30, 64)] * len(found.Cs)
    k = int(np.flatnonzero(found.Cs == found.C)[0])
    total = 0.0
    for f, (train, test) in enumerate(folds.split(X, y)):
        alone = model(C=found.C, tol=1e-6).fit(X[train], y[train])
        assert found.scores[k, f] == pytest.approx(alone.score(X[test], y[test]), abs=0.01)
        weights = found.coefs[k][10 * f : 10 * (f + 1)].toarray()
        total += np.abs(weights - alone.coef_).max()
        assert (weights != 0).sum() == found.n_nonzero[k, f]
    assert total < 0.5
    share = found.stability()
    assert share.shape[-1] == 64
    assert 0 <= share.min() <= share.max() <= 1
    # Below the first value all weights are zero, above it some are not.
    at = float(found.Cs[0])
    for factor, is_zero in ((0.99, True), (1.05, False)):
        parts = [model(C=factor * at).fit(X[train], y[train]).coef_.any() for train, _ in folds.split(X, y)]
        assert any(parts) != is_zero


def test_a_search_resumes(tmp_path):
    X, y = sparse_problem(3, n_rows=150, n_columns=30, n_classes=4)
    given_ = {"loss": "logistic", "multi_class": "multinomial", "penalty": "l1", "keep_coefs": True, "C_max": 4.0}
    whole = hinge.select_C(X, y, **given_)
    journal = tmp_path / "journal"
    hinge.select_C(X, y, **given_, resume=journal)
    with journal.open("r+b") as file:
        file.truncate(journal.stat().st_size // 2)
    second = hinge.select_C(X, y, **given_, resume=journal)
    assert second.replayed.any()
    assert not second.replayed.all()
    np.testing.assert_array_equal(whole.scores, second.scores)
    for a, b in zip(whole.coefs, second.coefs, strict=True):
        np.testing.assert_array_equal(a.toarray(), b.toarray())
    with pytest.raises(ValueError, match="multi_class"):
        hinge.select_C(X, y, **given_ | {"multi_class": "ovr"}, resume=journal)


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "roc_auc_ovr"])
def test_the_search_estimator_has_the_softmax(scoring):
    X, y = iris()
    found = hinge.LogisticRegressionCV(
        penalty="elasticnet", l1_ratios=[1.0, 0.5], multi_class="multinomial", scoring=scoring, C_max=10.0, cv=3
    ).fit(X, y)
    assert found.multi_class_ == "multinomial"
    assert found.search_.l1_ratio in (1.0, 0.5)
    again = model(C=found.C_, penalty="elasticnet", l1_ratio=found.search_.l1_ratio, tol=1e-4).fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X), again.predict_proba(X), atol=0.05)


@pytest.mark.parametrize("ratio", [1.0, 0.3])
def test_folds_that_lack_a_class_have_the_problem_without_it(ratio):
    X, y = iris()
    X, y = X[:110], y[:110]
    splits = [(np.arange(100), np.arange(100, 110)), (np.arange(1, 110, 2), np.arange(0, 110, 2))]
    given_ = {"Cs": [0.5], "cv": splits, "multi_class": "multinomial", "use_legacy_attributes": False, "tol": 1e-10}
    found = hinge.LogisticRegressionCV(penalty="elasticnet", l1_ratios=[ratio], **given_).fit(X, y)
    weights = found.coefs_paths_[0, 0, 0]
    assert (weights[2, :-1] == 0).all()
    assert weights[2, -1] == -np.inf
    sign = np.where(y[:100] == 1, 1.0, -1.0)

    def value(parts):
        """Two classes by positive and negative parts of their difference."""
        u, b = parts[:4] - parts[4:8], parts[8]
        cost = ratio * parts[:8].sum() + 0.25 * (1 - ratio) * u @ u
        return cost + 0.5 * np.logaddexp(0.0, -sign * (X[:100] @ u + b)).sum()

    limits = [(0, None)] * 8 + [(None, None)]
    best = minimize(value, np.zeros(9), method="L-BFGS-B", bounds=limits, options={"ftol": 1e-15, "gtol": 1e-9})
    np.testing.assert_allclose(2 * weights[1, :-1], best.x[:4] - best.x[4:8], atol=2e-3)
    np.testing.assert_allclose(weights[0], -weights[1])
    np.testing.assert_allclose(found.search_.objective[0, 0], best.fun, rtol=1e-6)
    bounded = hinge.LogisticRegressionCV(penalty="l1", positive=True, **given_)
    with pytest.raises(ValueError, match="every class"):
        bounded.fit(X, y)
