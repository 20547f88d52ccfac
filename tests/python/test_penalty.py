"""Penalties on absolute values, factors and bounds: against a twin, scikit-learn, LIBLINEAR, and their own promises."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from scipy.special import expit, logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.utils.estimator_checks import check_estimator

LOSSES = ("logistic", "squared_hinge", "modified_huber")


def data(n: int = 120, d: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(n, d, n_informative=4, n_redundant=2, flip_y=0.1, random_state=seed)
    return X, np.where(y == 1, 1, -1)


def model(loss: str, **given) -> hinge.LinearSVC | hinge.LogisticRegression:
    given = {"tol": 1e-9, "max_iter": 5000, **given}
    return hinge.LogisticRegression(**given) if loss == "logistic" else hinge.LinearSVC(loss=loss, **given)


def losses(loss: str, margins: np.ndarray) -> np.ndarray:
    if loss == "logistic":
        return np.logaddexp(0.0, -margins)
    short = np.maximum(0.0, 1.0 - margins)
    return short**2 if loss == "squared_hinge" else np.where(margins < -1.0, -4.0 * margins, short**2)


def objective(loss: str, X, y, C: float, w: np.ndarray, b: float, ratio: float, factors=1.0) -> float:
    costs = ratio * np.abs(w) + 0.5 * (1.0 - ratio) * w**2
    return float(np.sum(np.where(w == 0.0, 0.0, factors * costs)) + C * losses(loss, y * (X @ w + b)).sum())


def twin(loss: str, X, y, C: float, ratio: float, factors: np.ndarray, bounds: list[tuple[float, float]]) -> float:
    """The optimum by positive and negative parts and a general solver, with a free intercept."""
    d = X.shape[1]

    def value(parts: np.ndarray) -> float:
        plus, minus, b = parts[:d], parts[d : 2 * d], parts[-1]
        w = plus - minus
        penalty = factors @ (ratio * (plus + minus) + 0.5 * (1.0 - ratio) * w**2)
        return penalty + C * losses(loss, y * (X @ w + b)).sum()

    # w = plus - minus within [lo, hi] for bounds around 0.
    limits = [(0, hi) for _, hi in bounds] + [(0, -lo) for lo, _ in bounds] + [(None, None)]
    options = {"maxiter": 20_000, "maxfun": 10**7, "ftol": 1e-15, "gtol": 1e-10}
    return minimize(value, np.zeros(2 * d + 1), method="L-BFGS-B", bounds=limits, options=options).fun


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ratio", [1.0, 0.4, 0.0])
@pytest.mark.parametrize("limits", [(-np.inf, np.inf), (0.0, np.inf), (-0.05, 0.1)])
def test_optimum_is_that_of_a_general_solver(loss, ratio, limits):
    X, y = data()
    factors = np.linspace(0.5, 2.0, X.shape[1])
    C = 0.1
    found = model(loss, C=C, penalty="elasticnet", l1_ratio=ratio, penalty_factors=factors, bounds=limits).fit(X, y)
    best = twin(loss, X, y, C, ratio, factors, [limits] * X.shape[1])
    w, b = found.coef_[0], found.intercept_[0]
    value = objective(loss, X, y, C, w, b, ratio, factors)
    assert found.certificate_.relative_gap[0] <= 1e-9
    assert value <= best * (1 + 1e-9)
    assert found.certificate_.primal[0] == pytest.approx(value, rel=1e-12)
    assert found.certificate_.dual[0] <= best * (1 + 1e-12)
    assert (w >= limits[0]).all()
    assert (w <= limits[1]).all()


def least_hinge(X, y, C: float, factors: np.ndarray, bounds: list[tuple[float, float]]) -> float:
    """The optimum of the hinge with absolute values, a linear program of positive and negative parts and slacks."""
    n = len(y)
    costs = np.concatenate([factors, factors, [0.0], np.full(n, C)])
    rows = np.hstack([-y[:, None] * X, y[:, None] * X, -y[:, None].astype(float), -np.eye(n)])
    limits = [(0, max(hi, 0)) for _, hi in bounds] + [(0, max(-lo, 0)) for lo, _ in bounds]
    found = linprog(costs, rows, -np.ones(n), bounds=[*limits, (None, None), *[(0, None)] * n], method="highs")
    assert found.status == 0
    return found.fun


@settings(max_examples=60, deadline=None)
@given(
    st.integers(4, 60),
    st.integers(1, 10),
    st.integers(0, 10**6),
    st.floats(1e-2, 1e2),
    st.sampled_from([(-np.inf, np.inf), (0.0, np.inf), (-0.05, 0.1)]),
    st.booleans(),
)
def test_the_hinge_with_absolute_values_is_a_linear_program(n, d, seed, C, limits, is_sparse):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X = np.where(rng.random((n, d)) < 0.4, X, 0.0) if is_sparse else X
    y = np.where(rng.random(n) < 0.5, 1, -1)
    y[:2] = (1, -1)
    factors = rng.uniform(0.5, 2.0, d)
    given = {"penalty": "elasticnet", "l1_ratio": 1.0, "penalty_factors": factors, "bounds": limits}
    found = hinge.LinearSVC(C=C, loss="hinge", tol=1e-6, max_iter=5000, **given)
    found.fit(sp.csr_matrix(X) if is_sparse else X, y)
    best = least_hinge(X, y, C, factors, [limits] * d)
    proof = found.certificate_
    assert proof.status[0] == "converged"
    assert proof.dual[0] <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= proof.primal[0] <= best * (1 + 1e-5)
    w = found.coef_[0]
    value = factors @ np.abs(w) + C * np.maximum(0.0, 1.0 - y * (X @ w + found.intercept_[0])).sum()
    assert proof.primal[0] == pytest.approx(value, rel=1e-12)
    assert (w >= limits[0]).all()
    assert (w <= limits[1]).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_the_hinge_with_factors_is_that_of_scaled_columns(C, fit_intercept):
    X, y = data(300, 20)
    factors = np.geomspace(0.1, 10.0, 20)
    given = {"C": C, "loss": "hinge", "tol": 1e-8, "max_iter": 10_000, "fit_intercept": fit_intercept}
    found = hinge.LinearSVC(penalty_factors=factors, **given).fit(X, y)
    scaled = hinge.LinearSVC(**given).fit(X / np.sqrt(factors), y)
    assert found.certificate_.solver[0] == "working_set"
    assert found.certificate_.primal[0] == pytest.approx(scaled.certificate_.primal[0], rel=2e-8)
    weights = scaled.coef_ / np.sqrt(factors)
    np.testing.assert_allclose(found.coef_, weights, atol=2e-3 * np.abs(weights).max())


def test_the_hinge_is_searched_from_where_weights_leave_zero():
    X, y = data(200, 30)
    given = {"loss": "hinge", "penalty": "elasticnet", "l1_ratio": 1.0}
    found = hinge.select_C(X, y, cv=4, C_max=10.0, keep_coefs=True, **given)
    assert (found.n_nonzero[0] == 0).all()
    assert (found.n_nonzero[1] > 0).any()
    assert found.converged.all()
    for k in (1, len(found.Cs) // 2, -1):
        for fold, (train, _) in enumerate(hinge_splits(y, 4)):
            cold = hinge.LinearSVC(C=found.Cs[k], tol=1e-3, **given).fit(X[train], y[train])
            value = found.objective[k, fold, 0]
            assert value <= cold.certificate_.primal[0] * (1 + 1e-3)
            assert value >= cold.certificate_.dual[0] * (1 - 1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(4, 40),
    st.integers(1, 10),
    st.integers(0, 10**6),
    st.sampled_from(LOSSES),
    st.sampled_from([1.0, 0.7, 0.0]),
    st.floats(1e-3, 1e3),
    st.sampled_from([None, "duplicate", "constant", "huge", "sparse"]),
)
def test_certificates_bound_what_other_solvers_find(n, d, seed, loss, ratio, C, kind):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if kind == "duplicate":
        X = np.hstack([X, X[:, :1], -X[:, -1:]])
    elif kind == "constant":
        X[:, 0] = 3.0
    elif kind == "huge":
        X[:, 0] *= 1e4
    elif kind == "sparse":
        X = sp.csr_matrix(np.where(rng.random((n, d)) < 0.3, X, 0.0))
    y = np.where(rng.random(n) < 0.5, 1, -1)
    y[:2] = (1, -1)
    d = X.shape[1]
    found = model(loss, C=C, penalty="elasticnet", l1_ratio=ratio, tol=1e-6).fit(X, y)
    proof = found.certificate_
    best = twin(loss, X, y, C, ratio, np.ones(d), [(-1e9, 1e9)] * d)
    assert proof.dual[0] <= best * (1 + 1e-9)
    assert proof.status[0] == "converged"
    assert proof.relative_gap[0] <= 1e-6
    assert proof.primal[0] <= best * (1 + 2e-6)


def test_factors_of_zero_and_infinity():
    X, y = data()
    factors = np.ones(X.shape[1])
    factors[3], factors[5] = 0.0, np.inf
    found = model("logistic", C=0.02, penalty="l1", penalty_factors=factors).fit(X, y)
    without = model("logistic", C=0.02, penalty="l1", penalty_factors=np.delete(factors, 5)).fit(np.delete(X, 5, 1), y)
    assert found.coef_[0, 5] == 0.0
    np.testing.assert_allclose(np.delete(found.coef_[0], 5), without.coef_[0], atol=1e-6)
    # The slope along an unpenalised column is zero at the optimum.
    margins = y * (X @ found.coef_[0] + found.intercept_)
    slope = 0.02 * (X[:, 3] * y / (1 + np.exp(margins))).sum()
    assert abs(slope) <= 1e-6
    assert found.coef_[0, 3] != 0.0


def test_support_and_weights_are_scikit_learns():
    X, y = data(200, 30)
    for C in (0.05, 0.3):
        ours = hinge.LogisticRegression(C=C, penalty="l1", tol=1e-10).fit(X, y)
        theirs = TheirLogistic(C=C, l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=100_000).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
        np.testing.assert_array_equal(ours.coef_ != 0, np.abs(theirs.coef_) > 1e-8)


def test_wide_tables_are_descended_on_the_squared_hinge_itself():
    """Some 500 weights of short columns, whose matrix costs 500 readings of them: ``LOSSES_PRICE``."""
    from liblinear.liblinearutil import parameter, problem, train

    random = np.random.default_rng(5)
    X = sp.random(600, 1200, 0.05, format="csr", random_state=random, data_rvs=random.standard_normal)
    signal = np.asarray(X[:, :20].sum(axis=1)).ravel()
    y = np.where(signal + 0.3 * random.standard_normal(600) > 0, 1.0, -1.0)
    for C in (1.0, 10.0):
        theirs = train(problem(y, X), parameter(f"-s 5 -c {C} -e 1e-7 -q"))
        w = np.array(theirs.w[: X.shape[1]]) * (1.0 if theirs.label[0] == 1 else -1.0)
        best = np.abs(w).sum() + C * (np.maximum(0.0, 1.0 - y * (X @ w)) ** 2).sum()
        for tol in (1e-2, 1e-8):
            ours = hinge.LinearSVC(C=C, penalty="l1", loss="squared_hinge", tol=tol, fit_intercept=False).fit(X, y)
            found = ours.certificate_
            assert found.relative_gap[0] <= tol
            assert found.dual[0] <= best * (1 + 1e-12)
            assert found.primal[0] <= best * (1 + tol)


@pytest.mark.parametrize("loss", [*LOSSES, "hinge", "multinomial"])
@pytest.mark.parametrize("C", [0.5, 5.0])
def test_conditions_hold_on_columns_that_fits_leave_out(loss, C):
    """Of 4,000 columns most have an entry or two: too few for a weight, whatever the others do. The slopes of the
    losses know of no such rule.
    """
    n, d = 300, 4000
    random = np.random.default_rng(5)
    X = sp.random(n, d, 0.005, format="csr", random_state=random) * 0.3
    X = sp.csr_matrix(sp.hstack([sp.random(n, 40, 0.4, random_state=random), X]))
    scores = X @ random.standard_normal((d + 40, 3))
    y = scores.argmax(axis=1) if loss == "multinomial" else np.where(scores[:, 0] > 0, 1, -1)
    l1 = {"penalty": "elasticnet", "l1_ratio": 1.0, "C": C, "tol": 1e-8}
    is_softmax = loss == "multinomial"
    fitted = (model("logistic", multi_class=loss, **l1) if is_softmax else model(loss, **l1)).fit(X, y)
    assert fitted.certificate_.converged
    assert fitted.coef_.any()
    if loss == "hinge":  # where margins are 1, dual variables are no slopes: it is a linear program
        least = least_hinge(X.toarray(), y, C, np.ones(d + 40), [(-np.inf, np.inf)] * (d + 40))
        assert fitted.certificate_.primal == pytest.approx(least, rel=1e-7)
        return
    z = X @ fitted.coef_.T + fitted.intercept_
    if is_softmax:
        slopes = softmax(z, axis=1) - np.eye(3)[y]
    else:
        margins = y[:, None] * z
        straight = {"modified_huber": -1.0}.get(loss, -np.inf)  # below this margin
        steep = -expit(-margins) if loss == "logistic" else -2.0 * np.maximum(0.0, 1.0 - np.maximum(margins, straight))
        slopes = y[:, None] * steep
    v = C * (X.T @ slopes).T
    assert np.abs(v).max() <= 1.0 + 1e-3
    assert np.abs(v + np.sign(fitted.coef_))[fitted.coef_ != 0].max() <= 1e-3


def test_a_penalised_intercept_is_liblinears():
    from liblinear.liblinearutil import parameter, problem, train

    X, y = data(100, 8)
    for solver, loss in ((6, "logistic"), (5, "squared_hinge")):
        ours = model(loss, C=0.1, penalty="l1", intercept_scaling=1.0).fit(X, y)
        theirs = train(problem(y.astype(float), X), parameter(f"-s {solver} -c 0.1 -e 1e-9 -B 1 -q"))
        sign = 1.0 if theirs.label[0] == 1 else -1.0
        w = sign * np.array(theirs.w[: X.shape[1] + 1])
        np.testing.assert_allclose(np.append(ours.coef_[0], ours.intercept_[0]), w, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_bits_do_not_depend_on_threads_or_layout(loss):
    X, y = data(3000, 20)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    y3 = y + (np.arange(3000) % 2) * (y == 1)
    fits = [
        model(loss, C=0.01, penalty="l1", tol=1e-5, n_jobs=jobs, multi_class="ovr").fit(matrix, y3)
        for jobs in (1, 4)
        for matrix in (X, sp.csr_matrix(X), sp.csc_matrix(X))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].coef_, other.coef_)
        np.testing.assert_array_equal(fits[0].intercept_, other.intercept_)


def test_weights_and_rows_of_weight_zero():
    X, y = data()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    a = model("squared_hinge", C=0.05, penalty="l1").fit(X, y, sample_weight=weight)
    b = model("squared_hinge", C=0.05, penalty="l1").fit(X[repeated], y[repeated])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)


def test_separable_rows_and_huge_costs_have_an_optimum():
    X, y = data(60, 30)
    for loss in LOSSES:
        for C in (1e-6, 1e4):
            found = model(loss, C=C, penalty="l1", tol=1e-4).fit(X, y)
            assert found.certificate_.status == ("converged",)
            assert (found.coef_ != 0).any() == (C > 1)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_search_starts_where_weights_leave_zero(loss):
    X, y = data(200, 30)
    found = hinge.select_C(X, y, loss=loss, penalty="l1", cv=4, C_max=10.0, keep_coefs=True)
    assert (found.n_nonzero[0] == 0).all()
    assert (found.n_nonzero[1] > 0).any()
    assert found.stopped_by == ("C_max" if loss == "logistic" else "unchanged")
    assert found.converged.all()
    for k in (1, len(found.Cs) // 2, -1):
        split = list(hinge_splits(y, 4))
        for fold, (train, test) in enumerate(split):
            cold = model(loss, C=found.Cs[k], penalty="l1", tol=1e-3).fit(X[train], y[train])
            value = found.objective[k, fold, 0]
            assert value <= cold.certificate_.primal[0] * (1 + 1e-3)
            assert value >= cold.certificate_.dual[0] * (1 - 1e-12)
    shares = found.stability()
    assert shares.shape == (30,)
    assert shares.min() >= 0
    assert shares.max() <= 1
    np.testing.assert_allclose(shares.sum() * 4, found.n_nonzero[found.index].sum())


@pytest.mark.parametrize("loss", [*LOSSES, "hinge", "multinomial"])
def test_a_search_looks_ahead_where_weights_settle(loss):
    """A fit at the last value proves what stays good enough up to there: no other is made in between."""
    X, y = data(300, 8)
    flipped = np.random.default_rng(4).random(300) < 0.15
    y = np.where(flipped, -y, y) if loss != "multinomial" else np.where(flipped, 2, y)
    given = {"loss": loss, "penalty": "elasticnet", "l1_ratio": 1.0, "fit_intercept": False}
    if loss == "multinomial":
        given |= {"loss": "logistic", "multi_class": "multinomial"}
    found = hinge.select_C(X, y, cv=4, keep_coefs=True, C_max=1e4, **given)
    assert found.stopped_by == "unchanged"
    assert found.Cs[-1] < 1e4 / 8
    del given["fit_intercept"], given["loss"]
    kind = hinge.LogisticRegression if loss in ("logistic", "multinomial") else partial(hinge.LinearSVC, loss=loss)
    weights = found.coefs[-1].toarray()
    for C in (found.Cs[-1], 10 * found.Cs[-1], 1e4):
        for fold, (train, _) in enumerate(hinge_splits(y, 4)):
            exact = kind(C=C, tol=1e-5, fit_intercept=False, **given).fit(X[train], y[train])
            size = len(weights) // 4
            w = weights[fold * size : (fold + 1) * size]
            scores = X[train] @ w.T
            if loss == "multinomial":
                of_class = np.searchsorted(np.unique(y), y[train])
                lost = logsumexp(scores, axis=1) - scores[np.arange(len(train)), of_class]
            else:
                margins = np.where(y[train] == 1, 1, -1) * scores[:, 0]
                lost = np.maximum(0, 1 - margins) if loss == "hinge" else losses(loss, margins)
            value = np.abs(w).sum() + C * lost.sum()
            assert value <= exact.certificate_.primal.sum() * (1 + 1e-3)


def hinge_splits(y: np.ndarray, k: int):
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(k, shuffle=True, random_state=0).split(np.zeros(len(y)), y)


def test_search_is_resumed_with_its_weights(tmp_path):
    X, y = data(150, 20)
    whole = hinge.select_C(X, y, penalty="l1", keep_coefs=True, C_max=4.0)
    journal = tmp_path / "journal"
    first = hinge.select_C(X, y, penalty="l1", keep_coefs=True, C_max=4.0, resume=journal)
    size = journal.stat().st_size
    with journal.open("r+b") as file:
        file.truncate(size // 2)
    second = hinge.select_C(X, y, penalty="l1", keep_coefs=True, C_max=4.0, resume=journal)
    assert second.replayed.any()
    assert not second.replayed.all()
    for other in (first, second):
        np.testing.assert_array_equal(whole.scores, other.scores)
        np.testing.assert_array_equal(whole.n_nonzero, other.n_nonzero)
        for a, b in zip(whole.coefs, other.coefs, strict=True):
            np.testing.assert_array_equal(a.toarray(), b.toarray())
    with pytest.raises(ValueError, match="penalty is l1_ratio"):
        hinge.select_C(X, y, C_max=4.0, penalty="elasticnet", l1_ratio=0.5, resume=journal)


def test_a_list_of_shares_is_searched_as_a_grid():
    X, y = data(200, 20)
    found = hinge.LinearSVCCV(penalty="elasticnet", l1_ratio=[0.9, 0.1], C_max=2.0, cv=3).fit(X, y)
    tables = found.search_.grid
    assert [table.l1_ratio for table in tables] == [0.9, 0.1]
    for table, ratio in zip(tables, (0.9, 0.1), strict=True):
        alone = hinge.select_C(
            X, y, loss="squared_hinge", penalty="elasticnet", l1_ratio=ratio, C_max=2.0, cv=3, multi_class="ovr"
        )
        np.testing.assert_array_equal(table.scores, alone.scores)
    best = max(tables, key=lambda table: table.best_score)
    assert found.search_.l1_ratio == best.l1_ratio
    assert found.C_ == best.C
    again = model("squared_hinge", C=found.C_, penalty="elasticnet", l1_ratio=best.l1_ratio, tol=1e-4).fit(X, y)
    np.testing.assert_array_equal(found.coef_, again.coef_)


def test_a_search_ends_where_the_score_has_fallen():
    X, y = data(120, 60, seed=3)
    found = hinge.select_C(X, y, penalty="l1", max_drop=0.02, C_max=1e4)
    assert found.stopped_by == "score"
    assert not found.is_partial
    drops = np.maximum.accumulate(found.mean) - found.mean
    assert drops[-1] >= 0.02
    assert (drops[:-1] < 0.02).all()
    with pytest.raises(ValueError, match="refine must be 0"):
        hinge.select_C(X, y, penalty="l1", max_drop=0.02, refine=1)


def test_sparse_models_are_saved_served_and_selected_from(tmp_path):
    X, y = data(200, 30)
    found = hinge.LogisticRegression(C=0.05, penalty="l1").fit(X, y)
    found.save(tmp_path / "model.hinge")
    served = hinge.load(tmp_path / "model.hinge")
    np.testing.assert_array_equal(served.decision_function(X), found.decision_function(X))
    svc = hinge.LinearSVC(C=0.01, penalty="l1", sparse_coef=True).fit(X, y)
    dense = hinge.LinearSVC(C=0.01, penalty="l1").fit(X, y)
    assert sp.issparse(svc.coef_)
    assert svc.coef_.nnz == (dense.coef_ != 0).sum()
    np.testing.assert_array_equal(svc.coef_.toarray(), dense.coef_)
    chosen = SelectFromModel(hinge.LinearSVC(C=0.01, penalty="l1")).fit(X, y)
    np.testing.assert_array_equal(chosen.get_support(), dense.coef_[0] != 0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bounds": (1, 0)}, "got 1.0 to 0.0"),
        ({"bounds": 3}, "a pair"),
        ({"bounds": ([0.0, np.nan], 1)}, "without NaN"),
        ({"bounds": (np.zeros(3), 1)}, "lower bounds, one for each column: expected 12, got 3"),
        ({"penalty_factors": [1.0, -1.0]}, "got -1.0 for feature 1"),
        ({"penalty_factors": np.ones(3)}, "expected 12, got 3"),
        ({"penalty": "elasticnet"}, "l1_ratio must be a number from 0 to 1"),
        ({"penalty": "l1", "l1_ratio": 0.5}, "l1_ratio must be None"),
        ({"penalty": "l1", "solver": "newton"}, "solver must be 'auto'"),
        ({"penalty": "l1", "degree": 2, "sparse_coef": True}, "sparse_coef must be False with degree=2"),
        ({"penalty": "l1", "multi_class": "crammer_singer"}, "multi_class must be 'ovr'"),
        ({"penalty": "l1", "presolve": True}, "presolve must be 'auto' or False"),
        ({"penalty": "l1", "loss": "hinge"}, "l1_ratio=1.0 is that problem"),
        ({"positive": True, "bounds": (0, 1)}, "bounds must be None"),
    ],
)
def test_what_does_not_go_together_is_refused(parameters, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        hinge.LinearSVC(**parameters).fit(X, y)


@pytest.mark.parametrize(
    "estimator",
    [hinge.LinearSVC(penalty="l1"), hinge.LogisticRegression(l1_ratio=0.5)],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_pass(estimator):
    check_estimator(estimator)


def stored(folder, n_classes: int) -> tuple[hinge.BlockStore, sp.csr_matrix, np.ndarray, np.ndarray]:
    """A store with columns of all frequencies, empty ones among them; its rows, classes and weights."""
    random = np.random.default_rng(n_classes)
    X = random.random((400, 30)) * (random.random((400, 30)) < np.linspace(0.0, 0.6, 30)[random.permutation(30)])
    X[:, [3, 29]] = 0.0
    y = (X @ random.normal(size=(30, n_classes)) + 0.3 * random.normal(size=(400, n_classes))).argmax(axis=1)
    weight = random.integers(0, 3, 400).astype(float)
    X = sp.csr_matrix(X)
    return hinge.BlockStore.build([(X, y, weight)], folder / "store"), X, y, weight


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [
        hinge.LinearSVC(penalty="l1"),
        hinge.LinearSVC(loss="hinge", penalty="elasticnet", l1_ratio=0.5, fit_intercept=False),
        hinge.LogisticRegression(penalty="l1", class_weight="balanced"),
        hinge.LogisticRegression(positive=True, multi_class="multinomial"),
        hinge.LogisticRegression(penalty="l1", multi_class="multinomial"),
    ],
    ids=str,
)
def test_a_store_is_fitted_as_its_rows(tmp_path, estimator, n_classes):
    """Factors and bounds belong to the columns of the input, which a store numbers anew, those without entries too."""
    store, X, y, weight = stored(tmp_path, n_classes)
    lower = np.where(np.arange(30) % 3 == 0, 0.05, -0.3)  # what has no entries is not at zero either
    given = {"bounds": None if estimator.positive else (lower, 0.4), "penalty_factors": 0.5 + np.arange(30) % 4}
    whole, blocks = (clone(estimator).set_params(tol=1e-9, C=0.7, **given) for _ in range(2))
    whole.fit(X, y, sample_weight=weight)
    blocks.fit(store)
    np.testing.assert_allclose(blocks.coef_, whole.coef_, atol=1e-7)
    np.testing.assert_allclose(blocks.intercept_, whole.intercept_, atol=1e-7)
    np.testing.assert_allclose(blocks.certificate_.primal, whole.certificate_.primal, rtol=1e-8)
    assert set(blocks.certificate_.solver) == {"in_memory"}
    assert blocks.certificate_.converged
    if not estimator.positive:
        assert (blocks.coef_[:, 3] == 0.05).all()


def test_a_search_over_a_store_is_that_over_its_rows(tmp_path):
    store, X, y, weight = stored(tmp_path, 3)
    random = np.random.default_rng(0)
    parts = np.array_split(random.permutation(400), 3)
    folds = [(np.setdiff1d(np.arange(400), part), part) for part in parts]
    given = {
        "cv": folds,
        "Cs": [0.2, 1.0, 5.0],
        "penalty": "elasticnet",
        "l1_ratio": [1.0, 0.5],
        "penalty_factors": 0.5 + np.arange(30) % 4,
        "tol": 1e-6,
        "keep_coefs": True,
    }
    blocks = hinge.select_C(store, **given)
    whole = hinge.select_C(X, y, sample_weight=weight, **given)
    assert (blocks.C, blocks.l1_ratio) == (whole.C, whole.l1_ratio)
    np.testing.assert_allclose(blocks.scores, whole.scores)
    np.testing.assert_array_equal(blocks.n_nonzero, whole.n_nonzero)
    np.testing.assert_array_equal(blocks.stability(), whole.stability())
    models = hinge.LinearSVCCV(**given).fit(store), hinge.LinearSVCCV(**given).fit(X, y, sample_weight=weight)
    assert models[0].C_ == models[1].C_
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-3)


def test_a_sparse_model_of_a_store(tmp_path):
    store, *_ = stored(tmp_path, 2)
    model = hinge.LinearSVC(penalty="l1", C=0.1, sparse_coef=True).fit(store)
    plain = hinge.LinearSVC(penalty="l1", C=0.1).fit(store)
    assert sp.issparse(model.coef_)
    np.testing.assert_array_equal(model.coef_.toarray(), plain.coef_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"memory_budget": 1_000_000}, r"memory_budget must be at least \d{7,} bytes .* by rows and by columns"),
        ({"checkpoint": "state"}, "checkpoint must be left out with a penalty other than"),
        (
            {"block_options": {"in_memory": False}},
            "block_options must be left out with a penalty .* got in_memory=False",
        ),
        ({"penalty_factors": [1.0, 2.0]}, "penalty_factors, one for each column: expected 30, got 2"),
        ({"degree": 2}, "degree must be 1 for a store with a penalty other than 'l2', .* got 2"),
    ],
)
def test_what_a_store_is_not_for_is_refused(tmp_path, monkeypatch, given, message):
    store, *_ = stored(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        hinge.LinearSVC(penalty="l1", **given).fit(store)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_budget_that_is_told_is_enough(tmp_path):
    store, *_ = stored(tmp_path, 2)
    with pytest.raises(ValueError, match="memory_budget") as refused:
        hinge.LinearSVC(penalty="l1", memory_budget=1000).fit(store)
    enough = int(str(refused.value).split("at least ")[1].split(" ")[0])
    assert hinge.LinearSVC(penalty="l1", memory_budget=enough).fit(store).certificate_.converged
    with pytest.raises(ValueError, match="memory_budget"):
        hinge.select_C(store, penalty="l1", memory_budget=enough)  # five folds have more at a time
    asked = {"memory_budget": 1000, "block_options": {"in_memory": True}}
    assert hinge.LinearSVC(penalty="l1", **asked).fit(store).certificate_.converged


MEASURED = """
import sys
from pathlib import Path
import hinge
resident = lambda field: 1024 * int(Path("/proc/self/status").read_text().split(field + ":")[1].split()[0])
store = hinge.BlockStore(sys.argv[1])
Path("/proc/self/clear_refs").write_text("5")
before = resident("VmRSS")
model = hinge.LinearSVC(penalty="l1", C=0.1, memory_budget=int(sys.argv[2]), n_jobs=2).fit(store)
print(resident("VmHWM") - before, len(model.coef_.nonzero()[1]))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc")
def test_a_budget_that_is_told_holds_the_matrix_of_many_weights(tmp_path):
    """Of a thousand weights they take half of the 56 MB."""
    random = np.random.default_rng(0)
    X, y = random.integers(0, 2, (3000, 1200)).astype(float), random.integers(0, 2, 3000)
    store = hinge.BlockStore.build([(sp.csr_matrix(X), y)], tmp_path / "store")
    with pytest.raises(ValueError, match="memory_budget") as refused:
        hinge.LinearSVC(penalty="l1", memory_budget=1000).fit(store)
    told = str(refused.value).split("at least ")[1].split(" ")[0]
    ran = [sys.executable, "-c", MEASURED, str(tmp_path / "store"), told]
    took, n_weights = map(int, subprocess.run(ran, capture_output=True, text=True, check=True).stdout.split())
    assert n_weights > 1000
    assert int(told) / 2 < took <= int(told), f"{took} of {told}"


def labels_of(X, seed: int = 3) -> np.ndarray:
    """Four labels with noise, then one that no row has, and one that all have."""
    random = np.random.default_rng(seed)
    values = X @ random.standard_normal((X.shape[1], 4)) + random.standard_normal((len(X), 4))
    return np.column_stack([values > 0.5, np.zeros(len(X)), np.ones(len(X))]).astype(int)


@pytest.mark.parametrize("loss", [*LOSSES, "hinge"])
@pytest.mark.parametrize("intercept", [{"fit_intercept": False}, {"intercept_scaling": 2.0}, {}], ids=str)
@pytest.mark.parametrize("more", [{}, {"bounds": (-0.05, 0.1)}, {"penalty_factors": np.r_[0.0, np.inf, np.ones(10)]}])
def test_a_matrix_of_labels_is_fitted_column_by_column(loss, intercept, more):
    X, _ = data()
    Y = labels_of(X)
    weight = np.arange(len(X)) % 4
    given = {"penalty": "elasticnet", "l1_ratio": 0.9, "C": 0.05, "tol": 1e-6, **intercept, **more}
    found = model(loss, **given).fit(X, Y, sample_weight=weight)
    assert found.coef_.shape == (6, 12)
    has_free_intercept = not intercept
    for label in range(4):
        alone = model(loss, **given).fit(X, Y[:, label], sample_weight=weight)
        np.testing.assert_array_equal(found.coef_[label], alone.coef_[0])
        assert found.intercept_[label] == alone.intercept_[0]
        assert found.certificate_.primal[label] == alone.certificate_.primal[0]
    assert set(found.certificate_.status) == {"converged"}
    if has_free_intercept:
        assert not found.coef_[4:].any()
        np.testing.assert_array_equal(found.intercept_[4:], [-np.inf, np.inf] if loss == "logistic" else [-1, 1])
    if loss != "logistic":
        sparse = model(loss, sparse_coef=True, n_jobs=2, **given).fit(X, sp.csr_matrix(Y), sample_weight=weight)
        assert sp.issparse(sparse.coef_)
        np.testing.assert_array_equal(sparse.coef_.toarray(), found.coef_)
        np.testing.assert_array_equal(sparse.predict(X).toarray(), found.predict(X))


def test_a_label_that_no_row_has_keeps_its_bounds():
    X, _ = data()
    Y = labels_of(X)
    lower = np.r_[0.5, np.full(11, -np.inf)]
    found = model("squared_hinge", penalty="l1", C=0.05, tol=1e-6, bounds=(lower, np.inf)).fit(X, Y)
    assert (found.coef_[:, 0] >= 0.5).all()
    assert (found.predict(X)[:, 4] == 0).all()
    assert (found.predict(X)[:, 5] == 1).all()
    assert found.certificate_.primal[4] == pytest.approx(0.5, rel=1e-6)
    message = r"bounds must be around 0 where a label .* got without zero, and label 4 with 0 of 120 rows"
    with pytest.raises(ValueError, match=message):
        model("logistic", penalty="l1", C=0.05, bounds=(lower, np.inf)).fit(X, Y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("is_hashed", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_products_of_features_are_fitted_as_columns(loss, is_hashed, n_classes):
    random = np.random.default_rng(5)
    X = sp.random(150, 120 if is_hashed else 10, 0.1 if is_hashed else 0.6, format="csr", random_state=5)
    squares = (X @ random.standard_normal(X.shape[1]))[:, None] ** 2
    values = X @ random.standard_normal((X.shape[1], n_classes)) + squares
    y = np.argmax(values + 0.1 * random.standard_normal(values.shape), axis=1)
    written = hinge.Poly2Map(hash_bits=12).fit_transform(X)
    written.sum_duplicates()
    given = {"penalty": "elasticnet", "l1_ratio": 0.8, "C": 0.5, "tol": 1e-8, "positive": is_hashed}
    alone = model(loss, **given).fit(written, y)
    for rows in (X, X.toarray()):
        found = model(loss, degree=2, hash_bits=12, **given).fit(rows, y)
        np.testing.assert_allclose(found.coef_, alone.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.intercept_, alone.intercept_, rtol=1e-9)
        np.testing.assert_allclose(found.decision_function(X), alone.decision_function(written), atol=1e-9)
    assert 0 < np.count_nonzero(found.coef_) < found.coef_.size / 2


def test_products_are_searched_saved_and_have_factors_of_their_own(tmp_path):
    X, y = data(300, 8)
    given = {"loss": "squared_hinge", "penalty": "l1", "max_drop": 0.02, "cv": 3}
    found = hinge.select_C(X, y, degree=2, keep_coefs=True, resume=tmp_path / "journal", **given)
    written = hinge.select_C(hinge.Poly2Map().fit_transform(X), y, keep_coefs=True, **given)
    np.testing.assert_array_equal(found.Cs, written.Cs)
    np.testing.assert_allclose(found.scores, written.scores)
    assert found.coefs[-1].shape == (3, 44)
    np.testing.assert_allclose(found.coefs[-1].toarray(), written.coefs[-1].toarray(), rtol=1e-9, atol=1e-12)
    assert found.stability().shape == (44,)
    again = hinge.select_C(X, y, degree=2, keep_coefs=True, resume=tmp_path / "journal", **given)
    assert again.replayed.all()
    with pytest.raises(ValueError, match="other"):
        hinge.select_C(X, y, degree=2, gamma=0.5, resume=tmp_path / "journal", **given)
    model = hinge.LinearSVCCV(degree=2, **given).fit(X, y)
    assert model.C_ == found.C
    model.save(tmp_path / "model.hinge")
    np.testing.assert_array_equal(hinge.load(tmp_path / "model.hinge").decision_function(X), model.decision_function(X))
    table = model.pair_weights()
    assert 0 < np.count_nonzero(table["weight"]) < 36
    # Only products, no feature by itself.
    factors = np.r_[np.full(8, np.inf), np.ones(36)]
    only = hinge.LinearSVC(degree=2, penalty="l1", penalty_factors=factors).fit(X, y)
    assert not only.coef_[0, :8].any()
    assert only.coef_[0, 8:].any()
    with pytest.raises(ValueError, match="penalty_factors, one for each column: expected 44, got 8"):
        hinge.LinearSVC(degree=2, penalty="l1", penalty_factors=np.ones(8)).fit(X, y)


@pytest.mark.parametrize("seed", [900, 1209, 1451, 1476, 1844, 1856, 2166, 2231, 2466])
def test_a_working_set_that_is_done_is_not_the_end(seed):
    """Columns that join later: the first set is done in one step, and its point proves less than zero did."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 24))
    X = random.integers(0, 2001, (n, 4)) / 1000 - 1
    X[np.abs(X) < 0.3] = 0
    y = np.where((seed + np.arange(n) ** 2) % 3 == 0, 1, -1)
    weight = np.where(np.arange(n) % 5 == 4, 0.0, 1.0 + np.arange(n) % 3)
    bounds = (np.array([-np.inf, -np.inf, 0, -0.2]), np.array([0.3, np.inf, np.inf, 0.1]))
    model = hinge.LinearSVC(
        loss="modified_huber",
        penalty="elasticnet",
        l1_ratio=0.4,
        bounds=bounds,
        fit_intercept=False,
        C=float(random.uniform(0.02, 8)),
        tol=1e-9,
    ).fit(X, y, sample_weight=weight)
    assert model.certificate_.converged


def test_rows_that_can_be_separated_take_few_steps_at_large_costs():
    # Fewer rows are within the margin than there are columns, and models are flat. The steps of one fit vary by half
    # with the rounding of its sums; the geometric mean of eight is 103, and with a least curvature instead of one that
    # is added 186.
    n, d, length = 400, 3000, 40
    share = np.arange(1, d + 1) ** -0.8
    values = np.full(n * length, length**-0.5)
    y = np.where(np.arange(n) % 10 == 0, 1, -1)
    n_steps = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        columns = np.concatenate([rng.choice(d, length, p=share / share.sum(), replace=False) for _ in range(n)])
        X = sp.csr_matrix((values, columns, np.arange(0, n * length + 1, length)), shape=(n, d))
        found = model("squared_hinge", penalty="l1", C=1e3, tol=1e-2, fit_intercept=False).fit(X, y)
        assert found.certificate_.status == ("converged",)
        n_steps.append(found.n_iter_[0])
    assert np.exp(np.mean(np.log(n_steps))) < 140.0
