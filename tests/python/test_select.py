"""The search for C beside cold cross-validation by scikit-learn."""

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hinge import _native, _validate
from hinge._folds import Folds
from hinge._plan import Plan
from hinge._problem import Problem
from hypothesis import given
from hypothesis import strategies as st
from problems import (
    LOSSES,
    UNIQUE,
    cold_scores,
    first_decision,
    noisy_problem,
    search_estimator,
    searched_estimator,
    sparse_problem,
)
from sklearn.model_selection import GroupKFold, StratifiedKFold


@pytest.fixture
def problem():
    return noisy_problem()


# The table.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_choice_is_that_of_an_exhaustive_cold_search(loss, n_classes):
    X, y = sparse_problem(21, n_rows=240, n_columns=40, n_classes=n_classes, noise=3.0)
    search = hinge.select_C(X, y, loss=loss, cv=4, **UNIQUE[loss])
    Cs = 2.0 ** np.arange(np.log2(search.Cs[0]), 11)
    mean = cold_scores(X, y, loss, Cs, 4).mean(axis=1)
    ours = mean[np.flatnonzero(Cs == search.best_C)[0]]
    assert ours == mean.max() or mean.max() - ours < search.std_error[search.best_index]


@pytest.mark.parametrize("loss", LOSSES)
def test_choice_on_a_real_set(real, loss):
    X, y, _, _ = real("german")
    search = hinge.select_C(X, y, loss=loss, **UNIQUE[loss])
    mean = cold_scores(X, y, loss, search.Cs, 5).mean(axis=1)
    assert mean.max() - mean[search.best_index] < search.std_error[search.best_index]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "newton", "dual_cd"])
def test_rows_of_a_tight_search_are_cold_fits(problem, loss, solver):
    X, y = problem
    options = {"cv": 3, "C_max": 4.0, "tol": 1e-9, "max_iter": 100_000, **UNIQUE[loss]}
    search = hinge.select_C(X, y, loss=loss, solver=solver, **options)
    assert search.converged.all()
    np.testing.assert_allclose(search.scores, cold_scores(X, y, loss, search.Cs, 3), atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_loose_rows_are_near_cold_fits(problem, loss):
    X, y = problem
    search = hinge.select_C(X, y, loss=loss, cv=3, **UNIQUE[loss])
    assert search.converged.all()
    mean = cold_scores(X, y, loss, search.Cs, 3).mean(axis=1)
    # At the first C, zero weights are accurate enough.
    assert (np.abs(search.mean - mean)[1:] < 0.03).all()


def test_shapes_and_types(problem):
    search = hinge.select_C(*problem, cv=4)
    n = len(search.Cs)
    assert isinstance(search, hinge.CSearch)
    assert search.scores.shape == (n, 4)
    for values, dtype in [
        (search.Cs, np.float64),
        (search.seconds, np.float64),
        (search.passes, np.float64),
        (search.n_iter, np.int64),
        (search.unchanged, bool),
        (search.converged, bool),
        (search.mean, np.float64),
        (search.std_error, np.float64),
    ]:
        assert values.shape == (n,)
        assert values.dtype == dtype
    np.testing.assert_allclose(search.std_error, search.scores.std(axis=1, ddof=1) / 2)
    assert search.best_index == search.mean.argmax()
    assert search.best_C == search.Cs[search.best_index]
    assert search.best_score == search.mean.max()
    assert (search.seconds > 0).all()


def test_smallest_C_wins_a_draw():
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 20, axis=0)
    search = hinge.select_C(X, np.repeat([0, 1], 20), cv=4)
    assert (search.mean == 1).all()
    assert search.best_C == search.Cs[0]


# The range of C.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_first_C_is_the_papers_bound(problem, loss, scale):
    X, y = problem[0] * scale, problem[1]
    largest = X.multiply(X).sum(axis=1).max()
    bound = 1 / (len(y) * largest * (2 if loss == "squared_hinge" else 1))
    search = hinge.select_C(X, y, loss=loss, cv=3, fit_intercept=False, C_max=2.0**20)
    assert search.Cs[0] == 2.0 ** np.floor(np.log2(bound))
    np.testing.assert_array_equal(search.Cs[1:], 2 * search.Cs[:-1])


@pytest.mark.parametrize("loss", LOSSES)
def test_first_C_counts_weights_and_the_constant_column(problem, loss):
    X, y = problem
    weight = np.random.default_rng(0).uniform(0, 5, len(y))
    largest = X.multiply(X).sum(axis=1).max() + 7.0**2
    bound = 1 / (weight.sum() * largest * (2 if loss == "squared_hinge" else 1))
    search = hinge.select_C(X, y, loss=loss, cv=3, sample_weight=weight, intercept_scaling=7.0)
    assert search.Cs[0] == 2.0 ** np.floor(np.log2(bound))


@pytest.mark.parametrize("loss", LOSSES)
def test_ends_when_nothing_changes(loss):
    # On rows that a plane parts, weights of the logistic loss grow with C without end.
    X, y = noisy_problem() if loss == "logistic" else sparse_problem(22, noise=0.0, density=1.0)
    search = hinge.select_C(X, y, loss=loss, cv=3, C_max=1e12)
    assert search.stopped_by == "unchanged"
    assert search.Cs[-1] < 1e12
    C = 64 * search.Cs[-1]
    beyond = hinge.select_C(X, y, loss=loss, solver="dual_cd", cv=3, C_min=C, C_max=C)  # to a duality gap
    np.testing.assert_allclose(beyond.mean[0], search.mean[-1], atol=0.03)  # a row of the 40 of a fold: 0.025


@pytest.mark.parametrize(("C_min", "C_max", "ratio"), [(0.25, 2.0, 2.0), (0.1, 0.1, 2.0), (0.001, 0.5, 10.0)])
def test_ends_at_the_limit(problem, C_min, C_max, ratio):
    search = hinge.select_C(*problem, cv=3, C_min=C_min, C_max=C_max, ratio=ratio)
    n = int(np.floor(np.log(C_max / C_min) / np.log(ratio) + 1e-9)) + 1
    np.testing.assert_allclose(search.Cs, C_min * ratio ** np.arange(n), rtol=1e-12)
    assert search.stopped_by == "C_max"


@pytest.mark.parametrize(("stop", "count"), [("unchanged", 3), ("liblinear", 5)])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_counting_rules_end_after_a_run_without_change(loss, stop, count):
    X, y = sparse_problem(22, noise=0.0, density=1.0)
    search = hinge.select_C(X, y, loss=loss, cv=3, C_max=1e30, stop=stop)
    assert search.stopped_by == "unchanged"
    runs = "".join("u" if unchanged else "c" for unchanged in search.unchanged)
    # LIBLINEAR counts the first value too.
    runs = "u" + runs[1:] if stop == "liblinear" else runs
    assert runs.endswith("u" * count)
    assert runs.index("u" * count) == len(runs) - count


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_the_gradient_rule_is_eq_24(loss):
    """By hand: exact fits, and their gradients at the next C, find the last C of the search."""
    X, y = sparse_problem(22, noise=0.3, density=1.0)
    folds = list(StratifiedKFold(3).split(X, y))
    tol = 0.01
    search = hinge.select_C(X, y, loss=loss, cv=folds, C_max=2.0**20, tol=tol, stop="gradient", fit_intercept=False)
    signs = np.where(y == y.max(), 1.0, -1.0)

    def gradient(X, y, w, C):
        m = y * (X @ w)
        slopes = 1 / (1 + np.exp(m)) if loss == "logistic" else 2 * np.maximum(0, 1 - m)
        return np.linalg.norm(w - C * (X.T @ (y * slopes)))

    run, C = 0, search.Cs[0]
    while run < 3:
        C *= 2
        shares = []
        for train, _ in folds:
            part, labels = X[train].toarray(), signs[train]
            options = {"tol": 1e-10, "max_iter": 100_000, "fit_intercept": False}
            model = hinge.LogisticRegression(C / 2, **options) if loss == "logistic" else None
            model = model or hinge.LinearSVC(C / 2, loss=loss, **options)
            w = model.fit(part, labels).coef_[0]
            shares.append(gradient(part, labels, w, C) / gradient(part, labels, 0 * w, C))
        run = run + 1 if max(shares) <= tol else 0
    # Solutions of the search are loose: a value sooner or later.
    assert search.stopped_by == "unchanged"
    assert abs(np.log2(search.Cs[-1] / C)) <= 1
    longer = hinge.select_C(X, y, loss=loss, cv=folds, C_max=2.0**20, tol=tol, stop="unchanged", fit_intercept=False)
    assert longer.Cs[-1] >= search.Cs[-1]


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "hinge"},
        {"loss": "logistic", "solver": "dual_cd"},
        {"loss": "logistic", "penalty": "l1"},
        {"loss": "hinge", "multi_class": "crammer_singer"},
    ],
)
def test_the_gradient_rule_is_for_newton(problem, options):
    with pytest.raises(ValueError, match="stop must be of a search by Newton's method"):
        hinge.select_C(*problem, cv=3, stop="gradient", **options)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "dual_cd"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_unchanged_steps_keep_the_decisions(loss, solver, n_classes):
    """What is not scored again has the same decision values, also where refinement comes back to smaller C."""
    X, y = sparse_problem(22, noise=0.0, density=1.0, n_classes=n_classes)
    problem = Problem.of(X, y, None, None)
    plan = Plan(REFINED, "best", keep_decisions=False)
    options = {"loss": loss, "solver": solver, "intercept": 0.0, "tol": 1e-2, "max_iter": 1000, "presolve": "auto"}
    visited, n_unchanged = {}, 0

    def visit(step):
        nonlocal n_unchanged
        here = step["C"]
        smaller = [C for C in visited if here > C]
        if step["unchanged"] and smaller:
            n_unchanged += 1
            for now, before in zip(step["decisions"], visited[max(smaller)], strict=True):
                np.testing.assert_array_equal(now, before)
        visited[here] = [values.copy() for values in step["decisions"]]
        return here  # the largest is the best: refinement goes where nothing changes

    data = (_validate.native_matrix(X), problem.ids, n_classes, problem.weight, Folds(problem, 3, None, 0).splits)
    _native.search(*data, options | {"seed": 0, "n_threads": 2}, plan.native, visit)
    assert n_unchanged > 3 or solver == "dual_cd" or loss == "hinge"
    assert len(visited) <= plan.n_values(min(visited))


REFINED = {
    "Cs": None,
    "C_min": None,
    "C_max": 1e6,
    "ratio": 2.0,
    "refine": 3,
    "stop": "unchanged",
    "time_limit": None,
    "resume": None,
}


def test_given_values(problem):
    whole = hinge.select_C(*problem, cv=3, C_min=0.25, C_max=4.0)
    search = hinge.select_C(*problem, cv=3, Cs=(4, 0.25, 1.0, 2, 0.5, 1))
    assert search.Cs.tolist() == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert search.stopped_by == "Cs"
    np.testing.assert_array_equal(search.scores, whole.scores)
    for Cs in (np.array([0.5]), [0.5], iter([0.5]), np.float32([0.5])):
        single = hinge.select_C(*problem, cv=3, Cs=Cs)
        assert single.Cs.tolist() == [0.5]


def test_a_number_of_values_is_the_grid_of_scikit_learn(problem):
    search = hinge.select_C(*problem, cv=3, Cs=np.int64(5))
    given = hinge.select_C(*problem, cv=3, Cs=np.logspace(-4, 4, 5))
    np.testing.assert_allclose(search.Cs, [1e-4, 1e-2, 1.0, 1e2, 1e4][: len(search.Cs)])
    np.testing.assert_array_equal(search.scores, given.scores)
    with pytest.raises(ValueError, match="Cs must be an integer of at least 1, got 0"):
        hinge.select_C(*problem, Cs=0)
    for Cs in (1.5, "ten", True):
        with pytest.raises(ValueError, match=f"Cs must be a list of numbers above 0, or how many .* got {Cs!r}"):
            hinge.select_C(*problem, Cs=Cs)


def test_given_values_exclude_a_first_value(problem):
    with pytest.raises(ValueError, match="C_min and Cs exclude each other"):
        hinge.select_C(*problem, Cs=[1.0], C_min=0.5)


@given(first=st.floats(-20, 5), span=st.floats(0, 30), ratio=st.floats(1.05, 30.0), rounds=st.integers(0, 5))
def test_length_of_a_pass(first, span, ratio, rounds):
    """As many values as the native plan visits, or a bar would not end full."""
    C = C_min = 2.0**first
    C_max = C_min * 2.0**span
    plan = Plan({"Cs": None, "C_max": C_max, "ratio": ratio, "refine": rounds}, "best", keep_decisions=False)
    n = 1
    while (C := C * ratio) <= C_max * (1 + 1e-12):
        n += 1
    assert abs(plan.n_values(C_min) - 2 * rounds - n) <= (1 if abs(np.log(C_max / C) / np.log(ratio) % 1) < 1e-9 else 0)


@pytest.mark.filterwarnings("ignore::hinge.NoSkillWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_matrix_of_zeros(loss):
    search = hinge.select_C(sp.csr_matrix((30, 4)), np.arange(30) % 2, loss=loss, cv=3)
    assert search.Cs[0] == 1
    np.testing.assert_allclose(search.scores, 0.5)


# Estimators that choose.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_refit_is_the_estimator_at_the_chosen_C(loss, n_classes, weighted):
    X, y = sparse_problem(24, n_classes=n_classes)
    weight = np.random.default_rng(4).uniform(0.5, 2, len(y)) if weighted else None
    options = {"tol": 1e-5, "class_weight": "balanced"}
    model = search_estimator(loss, cv=3, **options).fit(X, y, sample_weight=weight)
    plain = searched_estimator(loss, C=model.C_, **options).fit(X, y, sample_weight=weight)
    search = hinge.select_C(X, y, loss=loss, cv=3, class_weight="balanced", sample_weight=weight)
    assert model.C_ == model.search_.best_C == search.best_C
    np.testing.assert_array_equal(model.search_.scores, search.scores)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.intercept_, plain.intercept_)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_parameters_of_the_search_reach_it(problem):
    X, y = problem
    model = hinge.LogisticRegressionCV(cv=GroupKFold(2), C_min=0.5, C_max=8.0, ratio=4.0, scoring="roc_auc")
    model.fit(X, y, groups=np.arange(240) % 6)
    assert model.search_.Cs.tolist() == [0.5, 2.0, 8.0]
    assert model.search_.scores.shape == (3, 2)
    expected = hinge.select_C(
        X, y, cv=GroupKFold(2), groups=np.arange(240) % 6, C_min=0.5, C_max=8.0, ratio=4.0, scoring="roc_auc"
    )
    np.testing.assert_array_equal(model.search_.scores, expected.scores)


# Mistakes.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ratio", value) for value in (1.0, 0.5, 0, -2, np.nan, np.inf, "2", None, True)),
        *(("C_min", value) for value in (0, -1.0, np.nan, np.inf, "1", 2048.0, False)),
        *(("C_max", value) for value in (0, -1.0, np.nan, np.inf, "1", None, 1e-30, True)),
        *(("tol", value) for value in (0, -1.0, np.nan, np.inf, "1", None, True)),
        *(("max_iter", value) for value in (0, -1, 1.5, "1", None, True)),
        *(("refine", value) for value in (-1, 1.5, "1", None, True)),
        *(("stop", value) for value in ("never", None, 3)),
        *(("choose", value) for value in ("worst", None, 0)),
        *(("keep_decisions", value) for value in (None, 1, "yes")),
        *(("Cs", value) for value in ([], 1.0, "1", [0.0], [1.0, -1.0], [np.nan], ["1"], [[1.0]], [None], [True])),
        *(("loss", value) for value in ("Hinge", "log", None, 1)),
        *(("solver", value) for value in ("liblinear", None, 1)),
    ],
)
def test_bad_parameters(problem, name, value):
    with pytest.raises(ValueError, match=rf"^{name} .*"):
        hinge.select_C(*problem, **{name: value})


@pytest.mark.parametrize(
    "name", ["select_tol", "ratio", "C_min", "C_max", "refine", "stop", "choose", "time_limit", "Cs"]
)
def test_bad_parameters_of_estimators(problem, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        hinge.LinearSVCCV(**{name: -1.0}).fit(*problem)


# Repeatable.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "dual_cd"])
def test_bits_do_not_depend_on_threads(loss, solver):
    X, y = sparse_problem(25, n_rows=150, n_classes=3)
    options = {"loss": loss, "solver": solver, "cv": 3, "C_max": 8.0, "scoring": first_decision}
    one, two = (hinge.select_C(X, y, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.passes, two.passes)
    np.testing.assert_array_equal(one.n_iter, two.n_iter)
