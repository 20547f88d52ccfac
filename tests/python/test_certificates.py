"""Every fit proves how good it is; the proof is checked by other means."""

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from liblinear import liblinearutil
from problems import INTERCEPTS, LOSSES, estimator, objective, sparse_problem

CS = (2.0**-8, 1.0, 16.0)
LIBLINEAR_SOLVERS = {"hinge": 3, "squared_hinge": 2, "logistic": 0}

# Set, and the losses and intercepts that it is fitted with: all are covered, large sets by a few.
REAL = [
    *(("german", loss, intercept) for loss in LOSSES for intercept in INTERCEPTS),
    ("a9a", "squared_hinge", "free"),
    ("a9a", "logistic", "penalised"),
    ("a9a", "hinge", "none"),
    ("ijcnn1_val", "squared_hinge", "none"),
    ("ijcnn1_val", "logistic", "free"),
    ("ijcnn1_val", "hinge", "penalised"),
    ("w8a", "squared_hinge", "penalised"),
    ("w8a", "logistic", "none"),
    ("w8a", "hinge", "free"),
    ("madelon", "squared_hinge", "free"),
    ("madelon", "logistic", "free"),
    ("madelon", "hinge", "none"),
    ("20news", "squared_hinge", "free"),
    ("20news", "logistic", "free"),
    ("20news", "hinge", "none"),
]


def check_promises(model, X, y, loss, best):
    """``best`` is an objective that is at most the tolerance of a much tighter fit above the optimum."""
    certificate = model.certificate_
    np.testing.assert_allclose(certificate.primal, objective(model, X, y, loss), rtol=1e-9)
    assert (certificate.primal >= certificate.dual).all()
    np.testing.assert_array_equal(certificate.relative_gap, (certificate.primal - certificate.dual) / certificate.dual)
    assert certificate.converged
    assert (certificate.relative_gap <= model.tol).all()
    assert (certificate.relative_gap >= (certificate.primal - best) / best - 1e-12).all()
    assert (certificate.dual <= best * (1 + 1e-12)).all()


def load(real, name):
    X, y, _, _ = real(name)
    return X, (np.where(y == 0, 1, -1) if name == "20news" else y)


problems = st.builds(
    sparse_problem,
    seed=st.integers(0, 10**6),
    n_rows=st.integers(3, 80),
    n_columns=st.integers(1, 40),
    n_classes=st.integers(2, 3),
    density=st.sampled_from([0.02, 0.3, 1.0]),
    noise=st.sampled_from([0.0, 1.0]),
)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(problem=problems, C=st.sampled_from(CS), single=st.booleans())
def test_random_problems(problem, C, single, loss, intercept):
    X, y = problem
    X = X.astype(np.float32 if single else np.float64)
    options = {"C": C, "n_jobs": 1, **INTERCEPTS[intercept]}
    best = objective(estimator(loss, tol=1e-9, max_iter=100_000, **options).fit(X, y), X, y, loss)
    check_promises(estimator(loss, **options).fit(X, y), X, y, loss, best)


@pytest.mark.parametrize("loss", [*LOSSES, "modified_huber"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(4, 60), st.integers(1, 12)),
    exponent=st.integers(-20, 20),
    tol=st.sampled_from([0.3, 0.1, 1e-2, 1e-4, 1e-7]),
)
def test_newton_ends_at_any_gap_with_a_true_one(seed, shape, exponent, tol, loss, intercept):
    """Empty rows, rows of weight zero, one column, huge and tiny C; twins of the weighted fit are tighter ones."""
    random = np.random.default_rng(seed)
    X = random.normal(size=shape) * (random.random(shape) < 0.7) * (random.random((shape[0], 1)) < 0.9)
    y = np.where(X.sum(axis=1) + random.normal(size=shape[0]) > 0, 1, -1)
    weight = random.uniform(0.1, 3.0, shape[0]) * (random.random(shape[0]) < 0.8)
    (y[0], y[1]), weight[:2] = (1, -1), 1.0
    options = {"C": 2.0**exponent, "solver": "newton", "n_jobs": 1, "max_iter": 100_000, **INTERCEPTS[intercept]}
    tight = estimator(loss, tol=1e-10, **options).fit(X, y, sample_weight=weight).certificate_
    model = estimator(loss, tol=tol, **options).fit(X, y, sample_weight=weight)
    certificate = model.certificate_
    assert certificate.converged
    assert (certificate.relative_gap <= tol).all()
    assert (certificate.dual <= tight.primal * (1 + 1e-12)).all()
    assert (certificate.relative_gap >= (certificate.primal - tight.primal) / tight.primal - 1e-12).all()
    if loss != "modified_huber":
        np.testing.assert_allclose(certificate.primal, objective(model, X, y, loss, weight), rtol=1e-9)


@pytest.mark.parametrize(("name", "loss", "intercept"), REAL)
def test_real_sets(real, name, loss, intercept):
    X, y = load(real, name)
    for C in CS:
        options = {"C": C, **INTERCEPTS[intercept]}
        tight = estimator(loss, tol=1e-7, max_iter=100_000, **options).fit(X, y)
        check_promises(estimator(loss, **options).fit(X, y), X, y, loss, objective(tight, X, y, loss))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["dual_cd", "dual_cd_permuted", "dual_cd_online", "newton"])
def test_named_solvers_on_a_real_set(real, loss, solver):
    X, y = load(real, "german")
    tight = estimator(loss, tol=1e-9, max_iter=100_000, fit_intercept=False).fit(X, y)
    model = estimator(loss, solver=solver, fit_intercept=False).fit(X, y)
    assert model.certificate_.solver == (solver,)
    check_promises(model, X, y, loss, objective(tight, X, y, loss))


def liblinear_objective(X, y, loss, C):
    """The objective that LIBLINEAR 2.50 reaches without intercept."""
    X = sp.csr_matrix(X, dtype=np.float64)
    options = f"-s {LIBLINEAR_SOLVERS[loss]} -c {C!r} -e 1e-9 -B -1 -q"
    model = liblinearutil.train(np.where(y == y.max(), 1.0, -1.0), X, options)
    w = np.array(model.get_decfun(label_idx=model.get_labels().index(1))[0])
    fitted = hinge.LinearSVC(C=C, fit_intercept=False)
    fitted.coef_, fitted.intercept_, fitted.classes_ = w[None], np.zeros(1), np.unique(y)
    return objective(fitted, X, y, loss)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("name", ["random", "german"])
def test_as_good_as_liblinear(real, name, loss, C):
    X, y = sparse_problem(1, n_rows=400) if name == "random" else load(real, name)
    theirs = liblinear_objective(X, y, loss, C)
    model = estimator(loss, C=C, fit_intercept=False, tol=1e-8, max_iter=100_000).fit(X, y)
    assert (model.certificate_.primal <= theirs * (1 + 1e-7)).all()
    if loss != "hinge" or C < 1:  # else LIBLINEAR ends at its limit of iterations, and is worse
        assert (model.certificate_.primal >= theirs * (1 - 1e-6)).all()
    assert (model.certificate_.dual <= theirs * (1 + 1e-12)).all()


def test_multi_class_has_an_entry_per_class():
    X, y = sparse_problem(2, n_classes=4)
    certificate = hinge.LinearSVC().fit(X, y).certificate_
    for values in (certificate.primal, certificate.dual, certificate.relative_gap, certificate.passes):
        assert values.shape == (4,)
        assert values.dtype == np.float64
    assert certificate.status == ("converged",) * 4
    assert len(certificate.solver) == 4
    assert certificate.converged
