"""Parameters by scikit-learn's names: the problem is theirs, and so are its answers."""

import pickle

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.linear_model as theirs
from hinge._estimator_parts import estimator_of, parts_of
from hinge._fit_rows import FitRows
from hinge._logistic_value import value_from_above
from hypothesis import given
from hypothesis import strategies as st
from problems import noisy_problem, sparse_problem
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold

SOLVERS = ["lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"]

EXACT = {"tol": 1e-10, "max_iter": 10_000}


@pytest.fixture(scope="module")
def problem():
    X, y = noisy_problem()
    return (X.toarray() if sp.issparse(X) else X), y


def thirds(X):
    """Three classes by the sum of a row."""
    total = X.sum(axis=1)
    return np.digitize(total, np.quantile(total, [0.3, 0.6]))


# Solvers.


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [{}, {"fit_intercept": False}, {"intercept_scaling": 3.0}], ids=str)
def test_a_solver_of_theirs_asks_for_their_problem(problem, solver, intercept):
    X, y = problem
    ours = hinge.LogisticRegression(0.3, solver=solver, **intercept, **EXACT).fit(X, y)
    judge = solver if solver == "liblinear" else "newton-cholesky"
    exact = theirs.LogisticRegression(C=0.3, solver=judge, **intercept, **EXACT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, exact.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, exact.intercept_, rtol=1e-4, atol=1e-6)
    assert ours.certificate_.relative_gap[0] <= 1e-12


def test_their_tol_is_a_gradient(problem):
    X, y = problem
    for tol in (1e-2, 1e-3, 1e-4):
        model = hinge.LogisticRegression(solver="lbfgs", tol=tol, fit_intercept=False).fit(X, y)
        assert model.certificate_.relative_gap[0] <= tol**2
        margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
        slope = -np.where(y == model.classes_[1], 1, -1) / (1 + np.exp(margins))
        gradient = (slope @ X + model.coef_[0]) / len(y)
        assert np.abs(gradient).max() <= tol


def test_liblinear_of_more_classes_is_each_against_the_rest(problem):
    X, _ = problem
    y = thirds(X)
    model = hinge.LogisticRegression(solver="liblinear", **EXACT).fit(X, y)
    for k, label in enumerate(model.classes_):
        one = theirs.LogisticRegression(solver="liblinear", **EXACT).fit(X, y == label)
        np.testing.assert_allclose(model.coef_[k], one.coef_[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "lbfgs", "dual": True}, "Solver lbfgs supports only dual=False, got dual=True"),
        ({"solver": "newton", "dual": True}, "dual=True is for"),
        ({"solver": "liblinear", "penalty": None}, "penalty=None is not supported for the liblinear solver"),
        ({"solver": "liblinear", "C": np.inf}, "penalty=None is not supported for the liblinear solver"),
        ({"solver": "sag", "penalty": "l1"}, "Solver sag supports only 'l2' or None penalties"),
        ({"solver": "lbfgs", "l1_ratio": 0.5}, "Solver lbfgs supports only 'l2' or None penalties"),
        ({"solver": "liblinear", "l1_ratio": 0.5}, "Only 'saga' solver supports elasticnet"),
        ({"solver": "newton", "penalty": "l1"}, "solver must be 'auto' with penalty='l1'"),
        ({"l1_ratio": 0.5, "C": np.inf}, "C must be finite with penalty='l1' or 'elasticnet'"),
        ({"penalty": "elasticnet", "l1_ratio": None}, "l1_ratio must be specified"),
        ({"penalty": "l3"}, "penalty must be one of"),
        ({"l1_ratio": 2}, "l1_ratio must be a number from 0 to 1"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1, got 0"),
        ({"tol": 0.0}, "tol must be a finite number above 0"),
        ({"C": -1.0}, "C must be a finite number above 0"),
        ({"C": np.nan}, "C must be a finite number above 0"),
        ({"C": "l2"}, "C must be a finite number above 0"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        hinge.LogisticRegression(**parameters).fit(*problem)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l1", "loss": "hinge"}, "Unsupported set of arguments"),
        ({"dual": False, "loss": "hinge"}, "Unsupported set of arguments"),
        ({"penalty": "l1", "dual": True}, "Unsupported set of arguments"),
        ({"penalty": "l1", "solver": "dual_cd"}, "solver must be 'auto' with penalty='l1'"),
        ({"dual": "no"}, "dual must be True or False"),
        ({"solver": "liblinear"}, "solver must be one of"),
        ({"C": np.inf}, "C must be a finite number above 0"),
    ],
    ids=str,
)
def test_svms_refuse_what_does_not_go_together(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        hinge.LinearSVC(**parameters).fit(*problem)


def test_penalties_that_contradict_each_other_are_warned_of(problem):
    with pytest.warns(UserWarning, match="Inconsistent values: penalty=l2 with l1_ratio=1.0"):
        hinge.LogisticRegression(penalty="l2", l1_ratio=1.0).fit(*problem)
    with pytest.warns(
        UserWarning, match="penalty=l1 with l1_ratio=0.5: l1_ratio parameter is only used when penalty is"
    ):
        hinge.LogisticRegression(penalty="l1", l1_ratio=0.5).fit(*problem)
    with pytest.warns(UserWarning, match="Setting penalty=None will ignore the C"):
        hinge.LogisticRegression(penalty=None, C=4).fit(*problem)


def test_dual_is_how_and_not_what(problem):
    X, y = problem
    first = hinge.LinearSVC(dual=True, tol=1e-8).fit(X, y)
    assert first.certificate_.solver == ("dual_cd",)
    second = hinge.LinearSVC(dual=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-3)
    assert hinge.LogisticRegression(dual=True).fit(X, y).certificate_.solver == ("dual_cd",)


# No iteration, no penalty.


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_iteration_leaves_no_weights(problem, fit_intercept):
    X, y = problem
    model = hinge.LogisticRegression(solver="lbfgs", max_iter=0, fit_intercept=fit_intercept)
    with pytest.warns(ConvergenceWarning, match="lbfgs failed to converge after 0 iteration"):
        model.fit(X, y)
    assert not model.coef_.any()
    assert not model.intercept_.any()
    assert model.n_iter_.tolist() == [0]
    np.testing.assert_allclose(model.certificate_.primal, len(y) * np.log(2))
    np.testing.assert_allclose(model.predict_proba(X), 0.5)


@pytest.mark.parametrize("asked", [{"C": np.inf}, {"penalty": None}, {"C": np.inf, "solver": "lbfgs"}], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_penalty_is_the_limit(problem, asked, fit_intercept, weighted):
    X, y = problem
    X = X[:, :5]
    weight = np.random.default_rng(0).integers(0, 4, len(y)) * 1e-3 if weighted else None
    model = hinge.LogisticRegression(fit_intercept=fit_intercept, **asked).fit(X, y, weight)
    exact = theirs.LogisticRegression(
        C=np.inf, solver="newton-cholesky", fit_intercept=fit_intercept, tol=1e-12, max_iter=1000
    ).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, exact.intercept_, rtol=1e-4, atol=1e-5)
    assert model.certificate_.status == ("unpenalised",)
    assert not model.certificate_.converged
    assert model.certificate_.relative_gap[0] == np.inf
    margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    loss = np.logaddexp(0, -margins)
    np.testing.assert_allclose(model.certificate_.primal[0], loss @ weight if weighted else loss.sum())


def test_columns_that_say_the_same_have_a_limit(problem):
    X, y = problem
    X = np.column_stack([X[:, :3], X[:, 0]])
    model = hinge.LogisticRegression(C=np.inf).fit(X, y)
    assert model.certificate_.status == ("unpenalised",)
    np.testing.assert_allclose(model.coef_[0, 0], model.coef_[0, 3], rtol=1e-3)


@pytest.mark.parametrize("solver", ["auto", "newton-cg"])
def test_a_fit_without_penalty_says_that_it_was_cut_short(solver):
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        cut = hinge.LogisticRegression(np.inf, solver=solver, max_iter=3).fit(X, y)
    assert cut.certificate_.status == ("max_iter",)
    whole = hinge.LogisticRegression(np.inf, solver=solver).fit(X, y)
    assert whole.certificate_.status == ("unpenalised",)
    assert whole.certificate_.primal[0] < 0.99 * cut.certificate_.primal[0]


def test_separable_classes_have_no_limit():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = hinge.LogisticRegression(C=np.inf)
    with pytest.warns(ConvergenceWarning, match="no optimum: the classes are separable"):
        model.fit(X, [0, 0, 1, 1])
    assert model.certificate_.status == ("separable",)
    assert model.score(X, [0, 0, 1, 1]) == 1.0
    with pytest.warns(ConvergenceWarning, match="seems to have no optimum"):  # separable but for two rows at 1
        model.fit(np.array([[0.0], [1.0], [1.0], [3.0]]), [0, 0, 1, 1])
    assert model.certificate_.status == ("diverging",)


def test_a_class_of_several_may_be_separable(problem):
    X, _ = problem
    y = thirds(X[:, :2])
    with pytest.warns(ConvergenceWarning, match="no optimum|seems to have"):
        model = hinge.LogisticRegression(C=np.inf).fit(X[:, :2], y)
    assert set(model.certificate_.status) <= {"separable", "diverging"}


@pytest.mark.parametrize(
    "parameters", [{"C": np.inf}, {"warm_start": True}, {"max_iter": 0, "solver": "lbfgs"}], ids=str
)
def test_what_needs_rows_in_memory_says_so(problem, tmp_path, parameters):
    X, y = problem
    store = hinge.BlockStore.build((X, y), tmp_path / "rows.blocks")
    name = next(iter(parameters))
    model = hinge.LogisticRegression(**parameters)
    with pytest.raises(ValueError, match=f"{name} must be .* where X is a BlockStore"):
        model.fit(store)
    with pytest.raises(ValueError, match=f"{name} must be .* where degree is 2"):
        model.set_params(degree=2).fit(X[:, :3], y)
    labels = np.column_stack([y == y[0], X[:, 0] > 0, y != y[0]]).astype(int)
    model.set_params(degree=1)
    if name == "warm_start":
        before = model.fit(X, labels).coef_
        with pytest.warns(ConvergenceWarning):
            model.set_params(max_iter=1).fit(X, labels)
        np.testing.assert_array_equal(model.coef_, before)
    else:
        with pytest.raises(ValueError, match=f"{name} must be .* where y is a matrix of labels"):
            model.fit(X, labels)


def test_weights_of_all_classes_without_penalty_add_up_to_zero(problem):
    X, _ = problem
    X = X[:, :4]
    y = np.random.default_rng(0).integers(0, 3, len(X))
    model = hinge.LogisticRegression(C=np.inf, solver="sag").fit(X, y)
    assert model.certificate_.status == ("unpenalised",)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-12)
    assert model.intercept_.sum() == pytest.approx(0.0, abs=1e-12)


# The fit before.


def test_a_warm_start_is_never_worse_than_the_fit_before(problem):
    X, y = problem
    model = hinge.LogisticRegression(solver="lbfgs", warm_start=True, tol=1e-5).fit(X, y)
    before = model.coef_.copy()
    with pytest.warns(ConvergenceWarning, match="lbfgs failed to converge after 1 iteration"):  # one proves little
        model.set_params(max_iter=1).fit(X, y)
    np.testing.assert_array_equal(model.coef_, before)
    assert (
        model.certificate_.primal[0] <= (1 + 1e-9) * hinge.LogisticRegression(tol=1e-9).fit(X, y).certificate_.primal[0]
    )
    cold = hinge.LogisticRegression(solver="lbfgs", max_iter=1, tol=1e-5)
    with pytest.warns(ConvergenceWarning):
        cold.fit(X, y)
    assert np.abs(cold.coef_ - before).max() > 1e-3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_keeps_what_the_data_at_hand_say(problem):
    X, y = problem
    model = hinge.LogisticRegression(warm_start=True, tol=1e-8).fit(X, y)
    model.fit(X, 1 - y if set(np.unique(y)) == {0, 1} else -y)
    fresh = hinge.LogisticRegression(tol=1e-8).fit(X, 1 - y if set(np.unique(y)) == {0, 1} else -y)
    np.testing.assert_allclose(model.coef_, fresh.coef_, atol=1e-6)
    model.fit(X[:, :4], y)  # another number of columns
    assert model.coef_.shape == (1, 4)
    assert model.fit(X, thirds(X)).coef_.shape[0] == 3  # other classes


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["newton", "newton-cg", "newton-cholesky"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("parameters", [{}, {"fit_intercept": False}, {"intercept_scaling": 2.0}, {"C": 50.0}], ids=str)
def test_single_newton_steps_make_up_a_fit(problem, solver, n_classes, parameters):
    X, y = problem[0], problem[1] if n_classes == 2 else thirds(problem[0])
    parameters = parameters | {"solver": solver, "tol": 1e-5}
    whole = hinge.LogisticRegression(max_iter=3, warm_start=True, **parameters).fit(X, y)
    steps = hinge.LogisticRegression(max_iter=1, warm_start=True, **parameters)
    for _ in range(3):
        steps.fit(X, y)
        assert steps.n_iter_.max() == 1
    np.testing.assert_allclose(steps.coef_, whole.coef_, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(steps.intercept_, whole.intercept_, rtol=1e-7, atol=1e-12)
    plain = hinge.LogisticRegression(max_iter=3, **parameters).fit(X, y)
    np.testing.assert_allclose(plain.coef_, whole.coef_, rtol=1e-7, atol=1e-12)
    ended = steps.set_params(max_iter=100).fit(X, y)
    assert ended.certificate_.converged
    assert ended.fit(X, y).n_iter_.max() == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_each_class_against_the_rest_goes_on_from_its_own_weights(problem):
    X, _ = problem
    y = thirds(X)
    model = hinge.LogisticRegression(solver="newton", multi_class="ovr", warm_start=True, max_iter=2).fit(X, y)
    for k, name in enumerate(model.classes_):
        alone = hinge.LogisticRegression(solver="newton", warm_start=True, max_iter=1)
        alone.fit(X, y == name).fit(X, y == name)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], rtol=1e-7, atol=1e-12)


ABSOLUTE = {
    "l1": {"penalty": "l1"},
    "elastic net": {"penalty": "elasticnet", "l1_ratio": 0.3, "intercept_scaling": 3.0},
    "no intercept": {"penalty": "l1", "fit_intercept": False},
    "bounds": {"bounds": (-0.1, 0.2)},
    "factors": {"penalty_factors": np.arange(6) % 3},
    "saga": {"l1_ratio": 1.0, "solver": "saga", "tol": 1e-3},  # a gap of 1e-6
}


@pytest.mark.parametrize("name", ABSOLUTE)
@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
def test_a_warm_start_with_absolute_values_goes_on_from_the_fit_before(problem, name, multi_class):
    X, y = problem[0][:, :6], thirds(problem[0])
    options = {"multi_class": multi_class, "tol": 1e-6, "max_iter": 1000} | ABSOLUTE[name]
    model = hinge.LogisticRegression(C=0.5, warm_start=True, **options).fit(X, y)
    before, n_iter = model.certificate_.primal, model.n_iter_.copy()
    model.fit(X, y)
    assert model.n_iter_.max() <= 1 < n_iter.max()  # one where the proof was that of the last step
    assert (np.asarray(model.certificate_.primal) <= np.asarray(before) * (1 + 1e-13)).all()
    for C in (2.0, 0.01):  # up and down: the same optimum as from zero
        model.set_params(C=C).fit(X, y)
        cold = hinge.LogisticRegression(C=C, **options).fit(X, y)
        assert model.certificate_.converged
        np.testing.assert_allclose(model.certificate_.primal, cold.certificate_.primal, rtol=2e-6)


def test_a_warm_start_with_absolute_values_that_ends_early_keeps_the_better_model(problem):
    X, y = problem
    options = {"penalty": "l1", "C": 10.0, "tol": 1e-9, "max_iter": 1000}
    exact = hinge.LogisticRegression(**options).fit(X, y)
    model = hinge.LogisticRegression(warm_start=True, **options).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        model.set_params(max_iter=1, tol=1e-13).fit(X, y)
    assert model.certificate_.primal[0] <= exact.certificate_.primal[0] * (1 + 1e-12)
    model.coef_[0, 0] = np.nan
    with pytest.raises(ValueError, match="start must be finite, got NaN"):
        model.fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_without_penalty_newtons_steps_are_one_row(problem):
    X, _ = problem
    X, y = X[:, :4], np.random.default_rng(0).integers(0, 3, len(X))
    few = hinge.LogisticRegression(C=np.inf, solver="newton-cg", max_iter=2).fit(X, y)
    assert few.n_iter_.max() == 2
    assert few.certificate_.status == ("max_iter",)
    all_ = hinge.LogisticRegression(C=np.inf, solver="newton-cg").fit(X, y)
    assert all_.certificate_.status == ("unpenalised",)
    other = hinge.LogisticRegression(C=np.inf, solver="lbfgs").fit(X, y)
    np.testing.assert_allclose(all_.coef_, other.coef_, rtol=1e-6)


# Single precision.


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_single_precision_in_is_single_precision_out(problem, layout, fit_intercept):
    X, y = problem
    X = layout(X.astype(np.float32))
    model = hinge.LogisticRegression(solver="lbfgs", fit_intercept=fit_intercept).fit(X, y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    wide = X.astype(np.float64)
    margins = np.where(y == model.classes_[1], 1, -1) * (
        wide @ model.coef_[0].astype(float) + float(model.intercept_[0])
    )
    value = 0.5 * (model.coef_.astype(float) ** 2).sum() + np.logaddexp(0, -margins).sum()
    assert model.certificate_.primal[0] >= value * (1 - 1e-14)
    assert model.certificate_.primal[0] <= value * (1 + 1e-10)
    assert model.certificate_.converged
    for other in ("liblinear", "auto"):
        assert hinge.LogisticRegression(solver=other).fit(X, y).coef_.dtype == np.float64
    assert hinge.LogisticRegressionCV(solver="lbfgs", cv=2, Cs=3).fit(X, y).coef_.dtype == np.float64


@given(st.integers(0, 1000), st.sampled_from([None, 0.0, 2.0]))
def test_the_value_from_above_is_above_and_close(seed, height):
    rng = np.random.default_rng(seed)
    X = sp.random(30, 6, 0.5, format="csr", random_state=seed) * 10.0 ** rng.integers(-3, 4)
    ids, cost = rng.integers(0, 3, 30), rng.uniform(0, 5, 30)
    coef, intercept = rng.normal(size=(3, 6)) * 10.0 ** rng.integers(-3, 3), rng.normal(size=3)
    rows = FitRows(X, ids, 3, cost)
    found = value_from_above(X, rows.signs, cost, (coef, intercept), height)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hinge._fit_rows.BLOCK_ENTRIES", 40)  # 13 rows or so
        in_blocks = value_from_above(X, rows.signs, cost, (coef, intercept), height)
        model = {"coef": coef, "intercept": intercept}
        np.testing.assert_allclose(rows.decisions(model), X @ coef.T + intercept)
    np.testing.assert_allclose(in_blocks, found, rtol=1e-12)
    for k in range(3):
        margins = np.where(ids == k, 1, -1).astype(np.longdouble) * (
            X.toarray().astype(np.longdouble) @ coef[k].astype(np.longdouble) + intercept[k]
        )
        value = (coef[k].astype(np.longdouble) ** 2).sum() / 2 + cost.astype(np.longdouble) @ np.logaddexp(0, -margins)
        if height:
            value += (np.longdouble(intercept[k]) / height) ** 2 / 2
        assert value <= found[k] <= value * (1 + 1e-10) + 1e-10 * (cost @ np.abs(X @ coef[k]))


# The search.


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc"])
def test_a_solver_of_theirs_searches_their_grid_on_their_folds(problem, scoring):
    X, y = problem
    ours = hinge.LogisticRegressionCV(solver="lbfgs", scoring=scoring, select_tol=1e-6).fit(X, y)
    exact = theirs.LogisticRegressionCV(
        solver="newton-cholesky", scoring=scoring, use_legacy_attributes=False, l1_ratios=(0,), tol=1e-8
    ).fit(X, y)
    n = len(ours.Cs_)
    np.testing.assert_allclose(ours.Cs_, exact.Cs_[:n])
    scores = exact.scores_[:, 0].mean(axis=0)
    tolerance = 0.011 if scoring is None else 1e-3  # a row may be decided otherwise
    np.testing.assert_allclose(ours.search_.mean, scores[:n], atol=tolerance)


@pytest.mark.parametrize("use_legacy_attributes", [True, False])
@pytest.mark.parametrize("l1_ratios", [None, (0,), (0.0, 0.0)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_attributes_have_their_layout_and_values(problem, use_legacy_attributes, l1_ratios, fit_intercept):
    X, y = problem
    asked = {
        "Cs": [0.01, 0.1, 1.0],
        "cv": 3,
        "scoring": "neg_log_loss",
        "solver": "newton-cholesky",
        "tol": 1e-8,
        "l1_ratios": l1_ratios,
        "fit_intercept": fit_intercept,
        "use_legacy_attributes": use_legacy_attributes,
    }
    ours = hinge.LogisticRegressionCV(**asked).fit(X, y)
    exact = theirs.LogisticRegressionCV(**asked).fit(X, y)
    for name in ("scores_", "coefs_paths_"):
        mine, other = getattr(ours, name), getattr(exact, name)
        if use_legacy_attributes:
            assert list(mine) == list(other)
            mine, other = mine[ours.classes_[1]], other[ours.classes_[1]]
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-6)
    for name in ("C_", "Cs_", "coef_", "intercept_"):
        assert np.shape(getattr(ours, name)) == np.shape(getattr(exact, name)), name
        np.testing.assert_allclose(getattr(ours, name), getattr(exact, name), rtol=1e-4, atol=1e-6)
    assert type(ours.C_) is type(exact.C_)
    assert ours.n_iter_.shape == exact.n_iter_.shape
    assert np.shape(ours.l1_ratio_) == np.shape(exact.l1_ratio_)
    assert not np.any(ours.l1_ratio_)  # None in the old layout of theirs, if l1_ratios are not given
    assert ours.l1_ratios_.shape == exact.l1_ratios_.shape
    assert ours.certificate_.converged
    assert np.max(ours.C_) == ours.search_.C
    assert ours.score(X, y) == pytest.approx(exact.score(X, y), rel=1e-4)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_without_refit_the_folds_are_averaged(problem):
    X, y = problem
    asked = {"Cs": [0.01, 0.1, 1.0], "cv": 3, "refit": False, "scoring": "roc_auc", "l1_ratios": (0,), "tol": 1e-8}
    ours = hinge.LogisticRegressionCV(**asked, use_legacy_attributes=False, solver="lbfgs").fit(X, y)
    exact = theirs.LogisticRegressionCV(**asked, use_legacy_attributes=False, solver="newton-cholesky").fit(X, y)
    assert pytest.approx(exact.C_) == ours.C_
    np.testing.assert_allclose(ours.coef_, exact.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, exact.intercept_, rtol=1e-4, atol=1e-6)
    assert not hasattr(ours, "certificate_")
    np.testing.assert_array_equal(ours.predict(X), exact.predict(X))


SHARES = {
    "l1_ratios": np.array([0.2, 0.9, 0.2]),
    "Cs": [0.03, 0.3, 3.0],
    "cv": 3,
    "scoring": "neg_log_loss",
    "solver": "saga",
}


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("use_legacy_attributes", [True, False])
def test_several_shares_have_an_axis_of_their_own(problem, use_legacy_attributes, refit):
    X, y = problem
    asked = {**SHARES, "use_legacy_attributes": use_legacy_attributes, "refit": refit}
    ours = hinge.LogisticRegressionCV(**asked, tol=1e-5).fit(X, y)
    exact = theirs.LogisticRegressionCV(**asked, tol=1e-7, max_iter=20_000, random_state=0).fit(X, y)
    tables = [[getattr(model, name) for name in ("scores_", "coefs_paths_")] for model in (ours, exact)]
    if use_legacy_attributes:
        assert all(list(mine) == list(other) for mine, other in zip(*tables, strict=True))
        tables = [[table[ours.classes_[1]] for table in both] for both in tables]
    (my_scores, my_paths), (scores, paths) = tables
    assert my_scores.shape == scores.shape
    assert my_paths.shape == paths.shape
    # Where all weights are 0, saga ends before its intercept, and so its score, is at the optimum.
    weighted = (paths[..., :-1] != 0).any(-1)
    np.testing.assert_allclose(my_paths[weighted], paths[weighted], rtol=1e-2, atol=1e-3)
    np.testing.assert_array_equal(my_paths[~weighted][..., :-1], 0)
    weighted = weighted.reshape(scores.shape)
    np.testing.assert_allclose(my_scores[weighted], scores[weighted], rtol=1e-2, atol=1e-3)
    assert weighted.mean() > 0.5
    for name in ("C_", "Cs_", "l1_ratio_", "l1_ratios_"):
        assert np.shape(getattr(ours, name)) == np.shape(getattr(exact, name)), name
        np.testing.assert_allclose(getattr(ours, name), getattr(exact, name))
    assert ours.coef_.shape == exact.coef_.shape
    assert ours.n_iter_.shape == exact.n_iter_.shape
    assert [table.l1_ratio for table in ours.search_.grid] == SHARES["l1_ratios"].tolist()


def test_a_kept_path_is_that_of_the_fits_of_its_share(problem):
    X, y = problem
    model = hinge.LogisticRegressionCV(**SHARES, use_legacy_attributes=False, tol=1e-5).fit(X, y)
    train, test = next(StratifiedKFold(3).split(X, y))
    for j, share in enumerate(SHARES["l1_ratios"]):
        for i, C in enumerate(SHARES["Cs"]):
            one = hinge.LogisticRegression(C, l1_ratio=share, tol=1e-10).fit(X[train], y[train])
            np.testing.assert_allclose(model.coefs_paths_[0, j, i, :, :-1], one.coef_, atol=1e-5)
            score = get_scorer("neg_log_loss")(one, X[test], y[test])
            assert model.scores_[0, j, i] == pytest.approx(score, abs=1e-5)
    j, i = np.unravel_index(model.scores_.mean(axis=0).argmax(), model.scores_.shape[1:])
    assert (model.C_, model.l1_ratio_) == (SHARES["Cs"][i], SHARES["l1_ratios"][j])
    last = hinge.LogisticRegression(model.C_, l1_ratio=model.l1_ratio_, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, last.coef_, atol=1e-5)


@pytest.mark.parametrize("parameters", [{"use_legacy_attributes": False}, {"refit": False}], ids=str)
def test_models_with_paths_are_pickled_and_cloned(problem, parameters):
    X, y = problem
    model = hinge.LogisticRegressionCV(cv=2, Cs=2, **parameters).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    assert str(copy.coefs_paths_) == str(model.coefs_paths_)
    assert clone(model).get_params() == model.get_params()
    parts = parts_of(model)
    assert parts.record["fitted"]["C_"] == model.C_
    np.testing.assert_array_equal(estimator_of(parts).predict(X), model.predict(X))


def test_paths_of_the_search_are_told_apart(problem):
    X, y = problem
    model = hinge.LogisticRegressionCV(cv=3, Cs=3).fit(X, y)
    with pytest.raises(AttributeError, match="coefs_paths_ needs use_legacy_attributes"):
        model.coefs_paths_
    kept = model.set_params(use_legacy_attributes=True).fit(X, y)
    assert set(kept.coefs_paths_) == {kept.classes_[1]}
    again = kept.set_params(use_legacy_attributes=None).fit(X, y)
    assert not hasattr(again, "coefs_paths_")
    assert isinstance(again.C_, float)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"refine": 1}, "refine must be 0"),
        ({"time_limit": 10.0}, "time_limit must be None"),
        ({"keep_decisions": True}, "keep_decisions must be False"),
        ({"scoring": ["accuracy", "roc_auc"]}, "scoring must be one scorer"),
        ({"degree": 2}, "where degree is 2"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"penalty": None}, "penalty must not be None in a search"),
        ({"l1_ratios": 0.5}, "l1_ratios must be None or a list"),
        ({"penalty": "elasticnet"}, "l1_ratios must be an array-like"),
    ],
    ids=str,
)
def test_what_a_search_of_all_paths_does_not_know(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        hinge.LogisticRegressionCV(use_legacy_attributes=False, cv=2, Cs=2, **parameters).fit(*problem)


def test_groups_stay_together_whatever_the_solver(problem):
    X, y = problem
    groups = np.arange(len(y)) // 2
    for solver in ("auto", "lbfgs"):
        model = hinge.LogisticRegressionCV(solver=solver, cv=3, Cs=3, select_tol=1e-4)
        mine = model.fit(X, y, groups=groups).search_
    shuffled = hinge.LogisticRegressionCV(cv=3, Cs=np.logspace(-4, 4, 3), select_tol=1e-4).fit(X, y, groups=groups)
    np.testing.assert_allclose(mine.mean, shuffled.search_.mean, atol=0.02)


def test_scorers_that_look_at_rows_see_rows(problem):
    X, y = problem
    seen = []

    def scorer(model, rows, labels):
        seen.append((rows.shape, model.coef_.shape))
        return float((model.predict(rows) == labels).mean())

    model = hinge.LogisticRegressionCV(use_legacy_attributes=False, scoring=scorer, cv=KFold(2), Cs=[0.1, 1.0]).fit(
        X, y
    )
    assert len(seen) == 4
    assert all(shape[1] == X.shape[1] for shape, _ in seen)
    exact = hinge.LogisticRegressionCV(use_legacy_attributes=False, cv=KFold(2), Cs=[0.1, 1.0]).fit(X, y)
    np.testing.assert_allclose(model.scores_, exact.scores_)


def brier(model, rows, labels):
    return -float(((model.predict_proba(rows) - (labels[:, None] == model.classes_)) ** 2).sum(axis=1).mean())


def test_a_class_without_rows_is_never_the_answer(problem):
    X, _ = problem
    X, y = X[:, :6], thirds(X)
    folds = [(np.flatnonzero(y != k), np.flatnonzero(y == k)) for k in range(3)]
    folds.append((np.flatnonzero(y == 0), np.flatnonzero(y != 0)))
    model = hinge.LogisticRegressionCV(
        use_legacy_attributes=False, cv=folds, Cs=[0.1], scoring=brier, solver="lbfgs", tol=1e-5
    ).fit(X, y)
    witness = theirs.LogisticRegressionCV(
        use_legacy_attributes=False, cv=folds[:3], Cs=[0.1], scoring=brier, tol=1e-10, max_iter=10_000, l1_ratios=[0]
    ).fit(X, y)
    np.testing.assert_allclose(model.scores_[:3], witness.scores_, rtol=1e-4)
    for k in range(3):
        coef = model.coefs_paths_[k, 0, 0]
        np.testing.assert_allclose(coef[:, :-1], witness.coefs_paths_[k, 0, 0][:, :-1], atol=1e-3)
        assert not coef[k, :-1].any()
        assert coef[k, -1] == -np.inf
    assert model.scores_[3, 0, 0] == pytest.approx(-2.0)
    rest = clone(model).set_params(multi_class="ovr").fit(X, y)
    for k, (train, test) in enumerate(folds[:3]):
        two = theirs.LogisticRegression(C=0.1, tol=1e-8, solver="newton-cholesky").fit(X[train], y[train])
        chances = np.insert(two.predict_proba(X[test]), k, 0.0, axis=1)
        expected = -((chances - (y[test][:, None] == np.arange(3))) ** 2).sum(axis=1).mean()
        assert rest.scores_[k, 0, 0] == pytest.approx(expected, rel=1e-4)
    assert np.isnan(rest.search_.objective).any()
    with pytest.raises(ValueError, match="the training part of fold 0 has no row of class 0"):
        model.set_params(fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match="the training part of fold 0 has no row of class 0"):
        model.set_params(fit_intercept=True, use_legacy_attributes=None).fit(X, y)


def test_a_training_part_of_one_class_answers_with_it(problem):
    X, y = problem
    first, second = (np.flatnonzero(y == label) for label in np.unique(y))
    model = hinge.LogisticRegressionCV(
        use_legacy_attributes=True, cv=[(first, second), (second, first)], Cs=[0.1, 1.0], solver="lbfgs"
    ).fit(X, y)
    paths = model.coefs_paths_[model.classes_[1]]
    assert paths[:, 0, -1].tolist() == [-np.inf, np.inf]
    assert not paths[..., :-1].any()
    assert not model.scores_[model.classes_[1]].any()
    assert model.C_.tolist() == [0.1]


# Metadata.


@pytest.mark.parametrize("kept", [None, True])
def test_a_scorer_that_wants_no_weights_gets_none(problem, kept):
    X, y = problem
    weight = np.random.default_rng(0).integers(1, 9, len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        models = [
            hinge.LogisticRegressionCV(
                scoring=get_scorer("accuracy").set_score_request(sample_weight=wants),
                cv=StratifiedKFold(2),
                Cs=[0.1, 1.0],
                use_legacy_attributes=kept,
            ).fit(X, y, sample_weight=weight)
            for wants in (False, True)
        ]
        assert not np.allclose(models[0].search_.mean, models[1].search_.mean)
        with pytest.raises(TypeError, match=r"score got unexpected argument\(s\) {'sample_weight'}"):
            models[0].score(X, y, sample_weight=weight)
        assert models[0].score(X, y) != models[1].score(X, y, sample_weight=weight)


def test_other_metadata_are_refused(problem):
    model = hinge.LinearSVCCV(cv=2, C_max=1.0)
    with pytest.raises(ValueError, match="is only supported if enable_metadata_routing=True"):
        model.fit(*problem, price=1)
    model.fit(*problem)
    with pytest.raises(ValueError, match="is only supported if enable_metadata_routing=True"):
        model.score(*problem, price=1)
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(TypeError, match="'price'"):
        model.fit(*problem, price=1)


def test_streams_take_finite_costs():
    X, y = sparse_problem(0)
    with pytest.raises(ValueError, match="C must be finite for partial_fit"):
        hinge.LogisticRegression(C=np.inf).partial_fit(X, y, classes=np.unique(y))
