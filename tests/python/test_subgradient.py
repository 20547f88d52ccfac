"""Subgradient descent and Pegasos: the contract, the exact optimum, the ball of Pegasos, passes over parts."""

import pickle

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from problems import sparse_problem
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

LOSSES = ("hinge", "squared_hinge", "logistic")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        hinge.PegasosClassifier(),
        hinge.PegasosClassifier(batch_size=3, loss="logistic", average="all"),
        hinge.SubgradientSVC(C=0.1),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def problem():
    return sparse_problem(3, n_rows=400, n_columns=25, noise=2.0)


def exact(loss, C, **parameters):
    if loss == "logistic":
        return hinge.LogisticRegression(C=C, tol=1e-9, multi_class="ovr", **parameters)
    return hinge.LinearSVC(C=C, loss=loss, tol=1e-9, **parameters)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [{}, {"fit_intercept": False}, {"intercept_scaling": 2.0}])
@pytest.mark.parametrize("batch_size", [1, 5, None])
def test_the_optimum_is_the_exact_solvers(problem, loss, intercept, batch_size):
    X, y = problem
    C = 0.05
    best = exact(loss, C, **intercept).fit(X, y).certificate_.dual[0]
    model = hinge.SubgradientSVC(C=C, loss=loss, batch_size=batch_size, tol=1e-3, max_iter=20_000, **intercept).fit(
        X, y
    )
    assert model.certificate_.status == ("converged",)
    primal, dual = model.certificate_.primal[0], model.certificate_.dual[0]
    assert primal <= best * (1 + 1e-3)
    assert dual <= best * (1 + 1e-8)
    assert model.objective(X, y)[0] * 400 * C == pytest.approx(primal, rel=1e-9)


def test_both_spellings_of_the_penalty(problem):
    X, y = problem
    by_lam = hinge.PegasosClassifier(lam=0.01, max_iter=4, tol=1e-9)
    by_C = hinge.PegasosClassifier(lam=None, C=1 / (0.01 * 400), max_iter=4, tol=1e-9)
    with pytest.warns(ConvergenceWarning):
        np.testing.assert_allclose(by_lam.fit(X, y).coef_, by_C.fit(X, y).coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="exactly one of C and lam"):
        hinge.PegasosClassifier(C=1.0).fit(X, y)


def test_history_and_norms(problem):
    X, y = problem
    model = hinge.PegasosClassifier(lam=1e-3, max_iter=64, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_iter=64"):
        model.fit(X, y)
    (looks,) = model.history_
    assert looks["epoch"].tolist() == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    assert (looks["steps"] == 1024 * looks["epoch"]).all()
    assert (looks["norm"] <= 1e-3**-0.5 * (1 + 1e-9)).all()
    assert (np.diff(looks["dual"]) >= 0).all()
    assert (looks["dual"] <= looks["primal"][-1]).all()
    assert looks["primal"][-1] < 1.05 * exact("hinge", 1 / (1e-3 * 400)).fit(X, y).certificate_.primal[0]


def test_more_classes_and_presolve():
    X, y = sparse_problem(5, n_rows=300, n_columns=40, n_classes=4, density=0.1)
    y = np.array(["a", "b", "c", "d"])[y]
    model = hinge.PegasosClassifier(lam=0.01, tol=0.02).fit(X, y)
    assert model.coef_.shape == (4, 40)
    packed = hinge.PegasosClassifier(lam=0.01, tol=0.02, presolve=True).fit(sp.hstack([X, 2 * X]).tocsr(), y)
    assert packed.presolve_.n_columns <= 40
    assert packed.certificate_.converged
    assert np.allclose(packed.coef_[:, 40:], 2 * packed.coef_[:, :40])
    best = exact("hinge", 1 / (0.01 * 300)).fit(X, y)
    assert abs(model.score(X, y) - best.score(X, y)) < 0.03


def test_own_step_lengths(problem):
    X, y = problem
    seen = []

    def eta(t):
        seen.append(t)
        return 1 / (0.01 * t)

    own = hinge.PegasosClassifier(lam=0.01, eta=eta, max_iter=2, tol=1e-9)
    named = hinge.PegasosClassifier(lam=0.01, max_iter=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning):
        np.testing.assert_allclose(own.fit(X, y).coef_, named.fit(X, y).coef_, rtol=1e-6)
    assert seen == list(range(1, 2049))
    with pytest.raises(ValueError, match="eta must be a finite number above 0 at every step, got -1 at step 1"):
        hinge.PegasosClassifier(eta=lambda t: -1.0).fit(X, y)
    with pytest.raises(ZeroDivisionError):
        hinge.PegasosClassifier(eta=lambda t: 1 / (t - t)).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_stops(problem):
    X, y = problem
    short = hinge.SubgradientSVC(eta="constant", eta0=1e-9, step_tol=1e-5, window=20, batch_size=1).fit(X, y)
    assert short.certificate_.status == ("stalled",)
    assert short.t_ == 20
    # Separable rows, far from the margin after the first step: the loss part is 0 in every step after it, the
    # weights still shrink.
    X_far, y_far = np.array([[5.0], [-5.0]]), np.array([1, 0])
    options = {"eta": "constant", "eta0": 0.5, "fit_intercept": False, "tol": 1e-12, "window": 1, "max_iter": 50}
    loss = hinge.SubgradientSVC(None, lam=0.01, step_tol=1e-3, step_length="loss", **options).fit(X_far, y_far)
    assert (loss.t_, loss.certificate_.status) == (2, ("stalled",))
    whole = hinge.SubgradientSVC(None, lam=0.01, step_tol=1e-3, **options).fit(X_far, y_far)
    assert whole.t_ > 2
    flat = hinge.PegasosClassifier(lam=0.01, objective_tol=0.05, tol=1e-9).fit(X, y)
    primal = flat.history_[0]["primal"]
    assert abs(primal[-1] - primal[-2]) <= 0.05 * primal[-2]
    assert flat.certificate_.status == ("stalled",)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_without_replacement(problem, loss, weighted):
    """The optimum is the same, and a subset of all rows is the full batch, but for the order of sums."""
    X, y = problem
    weight = np.random.default_rng(0).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    few = hinge.SubgradientSVC(C=0.1, loss=loss, batch_size=7, replace=False, tol=0.01, max_iter=20_000)
    assert few.fit(X, y, weight).certificate_.converged
    options = {"C": 0.1, "loss": loss, "tol": 1e-12, "fit_intercept": False, "average": "none"}
    subset = hinge.SubgradientSVC(batch_size=len(y), replace=False, max_iter=1, **options).fit(X, y, weight)
    full = hinge.SubgradientSVC(max_iter=subset.t_, **options).fit(X, y, weight)
    assert full.t_ == subset.t_
    np.testing.assert_allclose(subset.coef_, full.coef_, rtol=1e-9, atol=1e-12)
    again = hinge.SubgradientSVC(batch_size=len(y), max_iter=1, **options).fit(X, y, weight)
    assert np.abs(again.coef_ - full.coef_).max() > 1e-3 * np.abs(full.coef_).max()  # with replacement: another batch
    with pytest.raises(ValueError, match="batch_size must be at least 1, and at most the number of rows where"):
        hinge.SubgradientSVC(batch_size=len(y) + 1, replace=False).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": -1.0}, "lam must be a finite number above 0, got -1.0"),
        ({"loss": "huber"}, "loss must be one of"),
        ({"eta": "fast"}, "eta must be one of"),
        ({"average": True}, "average must be one of"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"batch_size": 1025}, "batch_size must be at least 1, and at most the number of rows or 1024, got 1025"),
        ({"batch_size": None}, "batch_size must be an integer of at least 1, got None"),
        ({"window": 0}, "window must be"),
        ({"step_tol": 0.0}, "step_tol must be"),
        ({"projection": 1}, "projection must be True or False"),
    ],
)
def test_bad_parameters(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        hinge.PegasosClassifier(**parameters).fit(*problem)


def test_passes_over_parts_learn_the_whole(problem):
    X, y = problem
    model = hinge.PegasosClassifier(lam=0.02, average="suffix")
    for round in range(64):
        part = slice(100 * (round % 4), 100 * (round % 4) + 100)
        model.partial_fit(X[part], y[part], classes=[0, 1])
    best = exact("hinge", 1 / (0.02 * 400)).fit(X, y).certificate_.primal[0] * 0.02
    assert model.t_ == 6400
    assert model.objective(X, y)[0] < 1.1 * best
    again = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.partial_fit(X, y).coef_)


def test_partial_fit_weights_classes_and_errors(problem):
    X, y = problem
    twice = hinge.PegasosClassifier(batch_size=4).partial_fit(X[:50], y[:50], classes=[0, 1, 7])
    assert twice.coef_.shape == (3, 25)
    with pytest.raises(ValueError, match="y has the label 9 in row 2"):
        twice.partial_fit(X[:3], [0, 1, 9])
    with pytest.raises(ValueError, match="differ from those of the model"):
        twice.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="needs lam"):
        hinge.PegasosClassifier(lam=None, C=1.0).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="balanced"):
        hinge.PegasosClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    only = hinge.PegasosClassifier().partial_fit(X, y, classes=[0, 1], sample_weight=np.arange(400) < 50)
    first = hinge.PegasosClassifier().partial_fit(X[:50], y[:50], classes=[0, 1])
    np.testing.assert_array_equal(only.coef_, first.coef_)


def test_fit_after_partial_fit_begins_anew(problem):
    X, y = problem
    fresh = hinge.PegasosClassifier(lam=0.05).fit(X, y)
    used = hinge.PegasosClassifier(lam=0.05).partial_fit(X, y, classes=[0, 1]).fit(X, y)
    np.testing.assert_array_equal(fresh.coef_, used.coef_)
    steps, objective = used.t_, used.objective(X, y)[0]
    used.partial_fit(X, y)
    assert used.t_ == steps + 400
    assert used.objective(X, y)[0] < 1.2 * objective


@pytest.mark.parametrize("name", ["german", "a9a"])
def test_real_sets(real, name):
    X, y, *_ = real(name)
    C = 0.1
    best = exact("hinge", C).fit(X, y).certificate_.dual[0]
    with pytest.warns(ConvergenceWarning):
        model = hinge.PegasosClassifier(lam=None, C=C, max_iter=96, tol=1e-9).fit(X, y)
    assert model.certificate_.primal[0] < best * 1.01
    assert model.certificate_.dual[0] > best * 0.97


# ---- over a block store


BUDGET = 20_000_000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Rows in blocks of about a third, in the order of one of their columns, with weights."""
    rng = np.random.default_rng(2)
    X = sp.random(30_000, 200, 0.05, format="csr", random_state=rng, dtype=np.float32)
    score = X @ rng.normal(size=200) + 0.1 * rng.normal(size=30_000)
    y = np.digitize(score, [-0.3, 0.3])
    weight = 1.0 + (np.arange(30_000) % 3 == 0)
    return X, y, weight, hinge.BlockStore.build((X, y, weight), tmp_path_factory.mktemp("large") / "x")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [{}, {"fit_intercept": False}, {"intercept_scaling": 2.0}])
@pytest.mark.parametrize(("batch_size", "replace"), [(1, True), (50, True), (50, False)])
def test_blocks_approach_the_optimum_of_all_rows(large, loss, intercept, batch_size, replace):
    X, y, weight, store = large
    C = 1e-3
    common = {"C": C, "loss": loss, "class_weight": {0: 1.0, 1: 2.0, 2: 1.0}, **intercept}
    best = exact(loss, **{k: v for k, v in common.items() if k != "loss"}).fit(X, y, weight).certificate_
    model = hinge.SubgradientSVC(
        **common,
        projection=True,
        batch_size=batch_size,
        replace=replace,
        tol=0.03,
        max_iter=200,
        memory_budget=BUDGET,
    ).fit(store)
    assert model.certificate_.status == ("converged",) * 3
    primal, dual = model.certificate_.primal, model.certificate_.dual
    assert (dual <= best.primal * (1 + 1e-9)).all()
    assert (primal >= best.dual * (1 - 1e-9)).all()
    total = (C * weight * np.where(y == 1, 2.0, 1.0)).sum()
    np.testing.assert_allclose(model.objective(X, y, weight * np.where(y == 1, 2.0, 1.0)) * total, primal, rtol=1e-6)
    assert model.decision_function(store) == pytest.approx(model.decision_function(X), abs=1e-9)


def test_blocks_give_the_same_bits_for_any_number_of_threads(large):
    store = large[3]
    fit = {"lam": 1e-3, "tol": 1e-6, "max_iter": 4, "memory_budget": BUDGET, "random_state": 7}
    with pytest.warns(ConvergenceWarning):
        first, second, other = (
            hinge.PegasosClassifier(**fit | more).fit(store)
            for more in ({"n_jobs": 1}, {"n_jobs": 2}, {"random_state": 8})
        )
    assert (first.coef_ == second.coef_).all()
    assert (first.certificate_.dual == second.certificate_.dual).all()
    assert (first.coef_ != other.coef_).any()


def test_one_step_per_block(large):
    X, y, weight, store = large
    fit = {"C": 1e-3, "loss": "logistic", "eta": "constant", "eta0": 1.0, "tol": 1e-9, "max_iter": 8}
    fit["fit_intercept"] = False  # a store does not weigh the norms that scale its steps
    models = [hinge.SubgradientSVC(presolve=False, memory_budget=budget, **fit) for budget in (None, None, BUDGET)]
    for model, rows in zip(models, ((store,), (X, y, weight), (store,)), strict=True):
        with pytest.warns(ConvergenceWarning):
            model.fit(*rows)
    whole, matrix, blocks = models
    # Everything in one block: full batches, as in memory.
    assert whole.t_ == matrix.t_ == 8
    np.testing.assert_allclose(whole.coef_, matrix.coef_, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(whole.certificate_.primal, matrix.certificate_.primal, rtol=1e-8)
    np.testing.assert_allclose(whole.certificate_.dual, matrix.certificate_.dual, rtol=1e-6)
    assert blocks.t_ % 8 == 0
    assert blocks.t_ > 8
    assert (blocks.certificate_.primal < whole.certificate_.primal).all()  # more steps for the same reading


def test_what_does_not_fit_is_refused(large):
    _, y, _, store = large
    with pytest.raises(ValueError, match="memory_budget"):
        hinge.PegasosClassifier(memory_budget="3MB").fit(store)
    with pytest.raises(ValueError, match="y and sample_weight must be None"):
        hinge.PegasosClassifier().fit(store, y)
    with pytest.raises(ValueError, match="batch_size"):
        hinge.PegasosClassifier(batch_size=10**6).fit(store)


def test_a_callback_ends_a_fit_on_blocks(large):
    calls = []

    def eta(t):
        calls.append(t)
        if t > 1000:
            raise KeyboardInterrupt
        return 1.0 / (1e-3 * t)

    with pytest.raises(KeyboardInterrupt):
        hinge.PegasosClassifier(lam=1e-3, eta=eta, memory_budget=BUDGET).fit(large[3])
    assert 1000 < len(calls) < 10_000
