"""Certificates where rounding matters: badly scaled problems, checked in exact arithmetic.

The primal value of a returned model is computed in fractions (the logistic loss in decimals of 60 digits). The
smallest one that any solver reaches is never below the optimum, so no dual value may be above it, and no gap below what
a model is worse by.
"""

import time
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from problems import INTERCEPTS, LOSSES, estimator

SOLVERS = {
    "hinge": ("auto", "dual_cd", "dual_cd_permuted", "dual_cd_online", "newton", "cutting_plane"),
    "squared_hinge": ("auto", "dual_cd", "dual_cd_permuted", "dual_cd_online", "newton", "primal_cd"),
    "logistic": ("auto", "dual_cd", "dual_cd_permuted", "dual_cd_online", "newton"),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def decimal(x):
    return Decimal(x.numerator) / Decimal(x.denominator)


def logistic(m):
    """log(1 + exp(-m)) of a fraction."""
    with localcontext() as context:
        context.prec = 60
        z = decimal(m)
        tail = (-abs(z)).exp() if abs(z) < 10**5 else Decimal(0)
        return Fraction((1 + tail).ln() + max(-z, Decimal(0)))


EXACT = {
    "hinge": lambda m: max(Fraction(0), 1 - m),
    "squared_hinge": lambda m: max(Fraction(0), 1 - m) ** 2,
    "logistic": logistic,
}


def exact_primal(model, X, y, cost, loss):
    """The objective at the returned coefficients, without any rounding."""
    w = [Fraction(float(v)) for v in model.coef_[0]]
    b = Fraction(float(model.intercept_[0]))
    value = sum(v * v for v in w) / 2
    if model.fit_intercept and model.intercept_scaling:
        value += (b / Fraction(model.intercept_scaling)) ** 2 / 2
    for row, label, c in zip(X.tolist(), y, cost, strict=True):
        decision = b + sum(Fraction(v) * u for v, u in zip(row, w, strict=True))
        value += Fraction(float(c)) * EXACT[loss](int(label) * decision)
    return value


def check(X, y, loss, tol, solvers, weight=None, **options):
    """Fits by all solvers; returns the models."""
    weight = np.ones(len(y)) if weight is None else weight
    cost = options["C"] * weight
    limits = {"cutting_plane": 100}
    models = [
        estimator(loss, solver=solver, tol=tol, max_iter=limits.get(solver, 1000), n_jobs=1, **options).fit(
            X, y, sample_weight=weight
        )
        for solver in solvers
    ]
    values = [exact_primal(model, X, y, cost, loss) for model in models]
    best = min(values)
    for model, value in zip(models, values, strict=True):
        certificate = model.certificate_
        primal, dual, gap = (float(v[0]) for v in (certificate.primal, certificate.dual, certificate.relative_gap))
        told = (model.solver, certificate, float(value), float(best))
        assert dual == -np.inf or Fraction(dual) <= best, told
        assert gap == np.inf or Fraction(gap) * best >= (value - best) * (1 - Fraction(1, 10**12)), told
        assert dual == -np.inf or abs(Fraction(primal) - value) <= Fraction(primal) - Fraction(dual), told
        assert certificate.converged == (gap <= tol), told
    return models


@st.composite
def badly_scaled(draw):
    """A few rows whose columns, and sometimes rows, differ by many orders of magnitude."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d = draw(st.integers(2, 14)), draw(st.integers(1, 7))
    spread = draw(st.sampled_from([0, 2, 4, 6]))
    X = random.normal(size=(n, d)) * 10.0 ** random.integers(-spread, spread + 1, size=d)
    kind = draw(st.sampled_from(["plain", "offset", "rows", "repeated"]))
    if kind == "offset":
        X = X + 10.0 ** draw(st.integers(1, 6))
    elif kind == "rows":
        X = X * 10.0 ** random.uniform(-4, 4, (n, 1))
    elif kind == "repeated":
        X = X[random.integers(0, (n + 1) // 2, n)]
    y = np.where(random.random(n) < 0.5, 1, -1)
    y[:2] = 1, -1
    return X, y


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(problem=badly_scaled(), exponent=st.integers(-10, 10), tol=st.sampled_from([1e-4, 1e-8]))
def test_badly_scaled_problems(loss, intercept, problem, exponent, tol):
    X, y = problem
    check(X, y, loss, tol, SOLVERS[loss], C=2.0**exponent, **INTERCEPTS[intercept])


@pytest.mark.parametrize("seed", [5835, 701, 3110, 1552])
def test_a_free_intercept_and_columns_of_many_scales(seed):
    """The dual value was above the optimum here by up to 8.4e-7 of it, and the gap clipped to 0."""
    random = np.random.default_rng(seed)
    n, d, spread = int(random.integers(6, 30)), int(random.integers(1, 8)), int(random.integers(2, 7))
    X = random.normal(size=(n, d)) * 10.0 ** random.integers(-spread, spread + 1, size=d)
    y = np.where(random.random(n) < 0.5, 1, -1)
    y[:2] = 1, -1
    C = 2.0 ** random.integers(-6, 11)
    check(X, y, "squared_hinge", 1e-8, ("auto", "newton"), C=C)


def test_extreme_scales():
    """Primal descent claimed an objective of 0, with slacks updated to nothing; a margin is rounded onto the kink."""
    random = np.random.default_rng(35)
    X = random.normal(size=(3, 2)) * 10 ** random.uniform(-10, 10, (3, 1)) * 10 ** random.uniform(-8, 8, 2)
    check(X, np.array([-1, 1, -1]), "squared_hinge", 1e-4, ("primal_cd", "newton", "dual_cd"), C=1.0)


def test_weights_beyond_any_scale_prove_nothing():
    """A dual value that is rounding and nothing else made a gap of 1e16 or so."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 2)), np.where(np.arange(30) % 2, 1, -1)
    weight = np.where(np.arange(30) == 3, 1e300, 1.0)
    model = estimator("logistic", solver="dual_cd", max_iter=3, intercept_scaling=1.0, n_jobs=1)
    model.fit(X, y, sample_weight=weight)
    assert model.certificate_.relative_gap[0] == np.inf


def test_a_rounded_weight_of_the_intercept_counts():
    """A margin on the kink was off by the rounding of b / 1e8 and back, which the closest sums did not count."""
    X, y = np.array([[0.0, 5.890921733766371e57], [0.0, 0.0]]), np.array([1, -1])
    for C in (1e-8, 1e-7, 1e-6, 1e-5):
        check(X, y, "hinge", 1e-4, ("auto", "dual_cd", "newton"), C=C, intercept_scaling=1e8)


def test_costs_below_double_precision_are_refused():
    """They were taken for 0, and an objective of 0 for the optimum."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [1, -1, -1, -1]
    with pytest.raises(ValueError, match=r"the weight 4\.94066e-324 of row 0 is below the range"):
        estimator("squared_hinge", C=1e-8).fit(X, y, sample_weight=[5e-324, 1.0, 0.0, 1.0])
    model = estimator("squared_hinge", C=1e-8).fit(X, y, sample_weight=[1e-299, 1.0, 0.0, 1.0])
    assert model.certificate_.primal[0] > 0


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_cutting_planes_end_where_double_precision_does(intercept):
    """Three rows took 25 seconds: rounds, and steps of their small programs, that changed nothing."""
    random = np.random.default_rng(3)
    n_columns = int(random.integers(1, 6))
    X, y = np.round(random.normal(size=(3, n_columns))) + 1e3, np.array([1, -1, 1])
    model = estimator("hinge", solver="cutting_plane", C=1e30, tol=1e-11, n_jobs=1, **INTERCEPTS[intercept])
    start = time.process_time()
    model.fit(X, y)
    assert model.certificate_.status == ("stalled",)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_ordinary_problems_are_proved_to_tight_tolerances(loss, intercept):
    random = np.random.default_rng(1)
    X = sp.random(400, 60, density=0.2, random_state=1, format="csr")
    y = np.where(X @ random.normal(size=60) + 0.1 * random.normal(size=400) > 0, 1, -1)
    model = estimator(loss, tol=1e-10, max_iter=100_000, n_jobs=1, **INTERCEPTS[intercept]).fit(X, y)
    assert model.certificate_.status == ("converged",)
