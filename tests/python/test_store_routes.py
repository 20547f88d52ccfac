"""What ``solver="auto"`` takes for a store that stays on the disk."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hinge import BlockStore, LinearSVC, LogisticRegression, select_C
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning

BUDGET = 24_000_000
ON_DISK = {"in_memory": False}
NEWTON, DESCENT = ("block_newton",), ("block_cd",)


def table(n, d, length, classes=2):
    """Rows of so many entries, whose classes contradict each other now and then."""
    random = np.random.default_rng(0)
    columns = np.sort(random.random((n, d)).argpartition(length, axis=1)[:, :length], axis=1)
    values = random.standard_normal((n, length)).astype(np.float32)
    w = random.standard_normal((d, classes))
    scores = (values[:, :, None] * w[columns]).sum(axis=1)
    y = (scores + scores.std() * random.standard_normal(scores.shape)).argmax(axis=1)
    return (values.ravel(), columns.ravel(), np.arange(0, n * length + 1, length)), y


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("routes"), {}

    def store(n, d, length, classes=2):
        shape = (n, d, length, classes)
        if shape not in made:
            arrays, y = table(*shape)
            made[shape] = BlockStore.build((csr_matrix(arrays, shape=(n, d)), y), folder / "-".join(map(str, shape)))
        return made[shape]

    return store


def fitted(store, estimator=LinearSVC, **given):
    return estimator(**{"memory_budget": BUDGET, "block_options": ON_DISK, "tol": 1e-2} | given).fit(store)


@pytest.mark.parametrize("estimator", [LinearSVC, LogisticRegression])
@pytest.mark.parametrize("C", [1e-4, 10.0])
def test_tables_of_few_columns_are_fitted_by_newton(stores, estimator, C):
    store = stores(8000, 60, 10)
    model, named = (fitted(store, estimator, C=C, solver=solver) for solver in ("auto", "newton"))
    assert model.certificate_.solver == NEWTON
    np.testing.assert_array_equal(model.coef_, named.coef_)
    assert model.certificate_.converged


def test_several_classes_are_fitted_by_newton(stores):
    model = fitted(stores(6000, 40, 10, 3))
    assert set(model.certificate_.solver) == set(NEWTON)
    assert model.certificate_.converged


@pytest.mark.parametrize(
    ("shape", "given"),
    [
        ((8000, 60, 10), {"loss": "hinge", "C": 0.1}),  # one or two readings by descent
        ((6000, 100, 80), {"C": 0.01}),  # long rows, small costs
        ((4000, 1700, 10), {}),  # too many columns
        ((8000, 60, 10), {"block_options": {**ON_DISK, "rounds": 5}}),
        ((8000, 60, 10), {"block_options": {**ON_DISK, "cache": "gradient"}}),
        ((8000, 60, 10), {"degree": 2, "C": 0.001}),
        ((8000, 60, 10), {"solver": "dual_cd"}),
        ((6000, 40, 10, 3), {"loss": "hinge", "C": 10.0, "tol": 0.5}),  # a sequence for each class
    ],
)
def test_others_are_descended_on(stores, shape, given):
    assert set(fitted(stores(*shape), **given).certificate_.solver) == set(DESCENT)


@pytest.mark.parametrize(("shape", "C"), [((6000, 100, 80), 1.0), ((8000, 60, 10), 10.0)])
def test_large_costs_make_newton_the_way(stores, shape, C):
    loss = "squared_hinge" if shape[2] == 80 else "hinge"
    assert fitted(stores(*shape), C=C, loss=loss).certificate_.solver == NEWTON


def test_a_budget_without_room_for_newton_is_for_descent(stores):
    store = stores(30_000, 600, 20)  # the matrix takes most of it
    with pytest.raises(ValueError, match="memory_budget must be at least") as refusal:
        fitted(store, solver="newton", memory_budget=10**6)
    needed = int(str(refusal.value).split("must be at least ")[1].split()[0])
    assert fitted(store, memory_budget=needed).certificate_.solver == NEWTON
    assert fitted(store, memory_budget=needed - 1, tol=0.1).certificate_.solver == DESCENT


MEASURED = """
import sys
from pathlib import Path
import hinge
resident = lambda field: 1024 * int(Path("/proc/self/status").read_text().split(field + ":")[1].split()[0])
store, budget = hinge.BlockStore(sys.argv[1]), int(sys.argv[2])
hinge.LinearSVC(tol=0.5).fit([[0.0], [1.0]], [0, 1])  # what a first fit imports
Path("/proc/self/clear_refs").write_text("5")
before = resident("VmRSS")
model = hinge.LinearSVC(memory_budget=budget, tol=1e-4, n_jobs=1).fit(store)
print(resident("VmHWM") - before, *model.certificate_.solver, model.certificate_.primal[0], model.certificate_.dual[0])
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc")
def test_what_newton_knows_of_the_rows_may_exceed_the_budget(stores):
    """14 numbers of 400,000 rows are 45 MB; they take turns in memory as the rows do."""
    store = stores(400_000, 60, 4)
    with pytest.raises(ValueError, match="memory_budget must be at least") as refusal:
        fitted(store, solver="newton", memory_budget=10**6)
    needed = int(str(refusal.value).split("must be at least ")[1].split()[0])
    budget = needed + 3_000_000
    assert budget < 20_000_000
    ran = [sys.executable, "-c", MEASURED, store.path, str(budget)]
    took, solver, primal, dual = subprocess.run(ran, capture_output=True, text=True, check=True).stdout.split()
    assert solver == "block_newton"
    assert int(took) <= budget + 5_000_000  # the code of a first fit on a store is read, too
    roomy = fitted(store, memory_budget="1GB", tol=1e-4).certificate_
    assert float(primal) >= roomy.dual[0]
    assert roomy.primal[0] >= float(dual)
    assert float(primal) - float(dual) <= 1e-4 * float(primal)


@pytest.mark.parametrize(("solver", "expected"), [("dual_cd", DESCENT), ("newton", NEWTON)])
def test_a_checkpoint_is_gone_on_from_by_the_solver_that_began_it(stores, tmp_path, solver, expected):
    store, path = stores(8000, 60, 10), tmp_path / "fit"
    given = {"tol": 1e-8, "checkpoint": path, "block_options": {**ON_DISK, "checkpoint_seconds": 0.0}}
    whole = fitted(store, solver=solver, tol=1e-8)
    begun = fitted(store, solver=solver, **given)
    again = fitted(store, **given)
    assert begun.certificate_.solver == again.certificate_.solver == expected
    np.testing.assert_array_equal(again.coef_, whole.coef_)


def test_searches_of_tables_are_newtons(stores, tmp_path):
    store = stores(8000, 60, 10)
    given = {"cv": 3, "memory_budget": BUDGET, "block_options": ON_DISK, "Cs": [0.01, 1.0]}
    found, named = (select_C(store, **given, solver=solver, keep_decisions=True) for solver in ("auto", "newton"))
    np.testing.assert_array_equal(found.decisions, named.decisions)
    descended = select_C(store, **given, solver="dual_cd", keep_decisions=True)
    assert (found.decisions != descended.decisions).any()
    np.testing.assert_allclose(found.objective, descended.objective, rtol=2e-3)
    # A journal of another way is gone on from in that way, or refused for what else differs.
    select_C(store, **given, solver="dual_cd", resume=tmp_path / "journal")
    with pytest.raises(ValueError, match="solver is DualCd there and Auto here"):
        select_C(store, **given, resume=tmp_path / "journal")
    select_C(store, **given, resume=tmp_path / "another")
    with pytest.raises(ValueError, match="the range of C is"):
        select_C(store, **given | {"Cs": [0.5]}, resume=tmp_path / "another")


def test_searches_with_the_hinge_descend(stores):
    given = {"cv": 3, "memory_budget": BUDGET, "block_options": ON_DISK, "Cs": [0.01], "loss": "hinge"}
    found, named = (select_C(stores(8000, 60, 10), **given, solver=solver) for solver in ("auto", "dual_cd"))
    np.testing.assert_array_equal(found.objective, named.objective)


def test_a_limit_of_steps_is_one_of_newtons(stores):
    with pytest.warns(ConvergenceWarning):
        model = fitted(stores(8000, 60, 10), tol=1e-12, max_iter=1)
    assert model.certificate_.solver == NEWTON
    assert model.n_iter_.max() == 1


@pytest.fixture(scope="module")
def one_hot(tmp_path_factory):
    """Stores of 20,000 rows of ten ones in 2,000 columns, of classes by lot or by the first column."""
    folder, random = tmp_path_factory.mktemp("one_hot"), np.random.default_rng(1)
    columns = random.integers(200, size=(20_000, 10)) + 200 * np.arange(10)
    X = csr_matrix((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 10)), shape=(20_000, 2000))
    classes = {"lot": random.integers(2, size=20_000), "first column": columns[:, 0] % 2}
    return {name: BlockStore.build((X, y), folder / name) for name, y in classes.items()}


@pytest.mark.parametrize("estimator", [LinearSVC, LogisticRegression])
@pytest.mark.parametrize(("classes", "expected"), [("lot", NEWTON), ("first column", DESCENT)])
def test_a_trial_decides_where_columns_are_many(one_hot, estimator, classes, expected):
    model, named = (
        fitted(one_hot[classes], estimator, C=4.0, solver=solver)
        for solver in ("auto", "newton" if expected == NEWTON else "dual_cd")
    )
    assert model.certificate_.solver == expected
    np.testing.assert_array_equal(model.coef_, named.coef_)


@pytest.mark.parametrize(
    "given",
    [
        {"C": 0.5},  # small costs
        {"C": 4.0, "loss": "hinge", "tol": 0.5},
        {"C": 4.0, "block_options": {**ON_DISK, "rounds": 5}, "tol": 0.5},
    ],
)
def test_there_is_no_trial_of_what_descends(one_hot, given):
    assert fitted(one_hot["lot"], **given).certificate_.solver == DESCENT


def test_searches_of_many_entries_per_column_are_newtons(one_hot):
    given = {"cv": 3, "memory_budget": 2 * BUDGET, "block_options": ON_DISK, "Cs": [0.01, 0.1], "keep_decisions": True}
    found, named = (select_C(one_hot["first column"], **given, solver=solver) for solver in ("auto", "newton"))
    np.testing.assert_array_equal(found.decisions, named.decisions)
