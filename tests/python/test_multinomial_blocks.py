"""Multinomial logistic regression over stores larger than memory: fits in memory and the objective as witnesses."""

import re
import signal
import subprocess
import sys
import textwrap
import time

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import INTERCEPTS, sparse_problem
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

IN_BLOCKS = {"in_memory": False}
EXACT = {"tol": 1e-9, "max_iter": 10_000}


def objective(coef, intercept, X, y, model, weight=1.0):
    """The objective, straight from its definition."""
    losses = -log_softmax(X @ coef.T + intercept, axis=1)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    penalty = 0.5 * (coef**2).sum()
    if model.fit_intercept and model.intercept_scaling is not None:
        penalty += 0.5 * ((intercept / model.intercept_scaling) ** 2).sum()
    return penalty + model.C * (weight * losses).sum()


def least_budget(store, model):
    """The smallest budget that a fit takes, which makes for as many blocks as there can be."""
    with pytest.raises(ValueError, match="memory_budget must be at least") as refused:
        hinge.LogisticRegression(**model, memory_budget=1000, block_options=IN_BLOCKS).fit(store)
    return int(re.search(r"at least (\d+) bytes", str(refused.value)).group(1))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Rows of several pages: some are empty, one class has one row, weights are unequal."""
    g = np.random.default_rng(3)
    n, d, k = 12_000, 600, 5
    X = sp.random(n, d, 0.1, format="csr", random_state=3)
    y = np.argmax(X @ g.normal(0, 2, (d, k)) + g.gumbel(0, 0.7, (n, k)), axis=1)
    y[77] = k
    keep = np.ones(n)
    keep[::500] = 0
    X = sp.csr_matrix(sp.diags(keep) @ X)
    X.eliminate_zeros()
    weight = 1.0 + np.arange(n) % 3 / 2
    return X, y, weight, hinge.BlockStore.build((X, y, weight), tmp_path_factory.mktemp("large") / "x")


@pytest.mark.parametrize("intercept", sorted(INTERCEPTS))
def test_blocks_reach_the_optimum_of_memory(large, intercept):
    X, y, weight, store = large
    shared = {"C": 0.5, "class_weight": {k: 1.0 + k / 4 for k in range(6)}, **INTERCEPTS[intercept]}
    exact = hinge.LogisticRegression(**shared, **EXACT).fit(X, y, weight)
    optimum = exact.certificate_.primal[0]
    least = least_budget(store, shared)
    total = weight * np.array([shared["class_weight"][k] for k in y])
    for tol, budget in ((1e-3, least), (1e-6, least), (1e-6, 200_000_000)):
        model = hinge.LogisticRegression(**shared, tol=tol, memory_budget=budget, block_options=IN_BLOCKS).fit(store)
        found = model.certificate_
        assert found.solver == ("block_newton",)
        assert found.status == ("converged",)
        assert found.relative_gap[0] <= tol
        assert model.multi_class_ == "multinomial"
        primal = objective(model.coef_, model.intercept_, X, y, model, total)
        assert found.primal[0] == pytest.approx(primal, rel=1e-11)
        assert exact.certificate_.dual[0] <= found.primal[0] <= optimum * (1 + tol)
        assert found.dual[0] <= optimum
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(store), model.predict_proba(X), atol=1e-12)
    if intercept == "free":
        assert abs(model.intercept_.sum()) < 1e-9


def test_a_matrix_of_all_columns_may_take_half_of_the_budget(tmp_path):
    g = np.random.default_rng(0)
    n, d, k = 4000, 300, 4
    X = (g.normal(size=(n, 40)) @ g.normal(size=(40, d)) + 0.3 * g.normal(size=(n, d))).astype(np.float32)
    y = np.argmax(X @ g.normal(0, 0.1, (d, k)) + g.gumbel(0, 1, (n, k)), axis=1)
    store = hinge.BlockStore.build((X, y), tmp_path / "rows")

    def readings(budget):
        model = hinge.LogisticRegression(tol=1e-3, memory_budget=budget, block_options=IN_BLOCKS, n_jobs=1)
        return model.fit(store).certificate_.passes[0]

    # A matrix and what its sums take is 10 MB here, and 14 MB is what a fit takes at least.
    assert readings(24_000_000) == readings(200_000_000) < 0.5 * readings(15_000_000)


@settings(max_examples=12)
@given(
    st.integers(0, 2**31),
    st.sampled_from(sorted(INTERCEPTS)),
    st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1024.0]),
    st.integers(3, 20),
)
def test_no_gap_is_understated(tmp_path_factory, seed, intercept, C, n_classes):
    X, y = sparse_problem(seed, n_rows=60, n_columns=12, n_classes=n_classes)
    store = hinge.BlockStore.build((X, y), tmp_path_factory.mktemp("small") / "x")
    options = {"C": C, **INTERCEPTS[intercept]}
    optimum = hinge.LogisticRegression(**options, tol=1e-10, max_iter=10_000).fit(X, y).certificate_
    model = hinge.LogisticRegression(tol=1e-5, max_iter=1000, block_options=IN_BLOCKS, **options).fit(store)
    found = model.certificate_
    assert found.converged
    assert found.dual[0] <= optimum.primal[0]
    assert optimum.dual[0] <= found.primal[0]
    assert found.primal[0] == pytest.approx(objective(model.coef_, model.intercept_, X, y, model), rel=1e-11)


def test_a_plain_minimiser_finds_no_less(tmp_path):
    X, y = sparse_problem(5, n_rows=80, n_columns=6, n_classes=4)
    store = hinge.BlockStore.build((X, y), tmp_path / "x")
    model = hinge.LogisticRegression(tol=1e-9, max_iter=1000, block_options=IN_BLOCKS).fit(store)
    dense, one_hot = X.toarray(), np.eye(4)[y]

    def value_and_gradient(theta):
        coef, intercept = np.split(theta.reshape(4, 7), [6], axis=1)
        rest = softmax(dense @ coef.T + intercept.T, axis=1) - one_hot
        slopes = np.hstack([coef + rest.T @ dense, rest.sum(axis=0)[:, None]])
        return objective(coef, intercept[:, 0], dense, y, model), slopes.ravel()

    least = minimize(value_and_gradient, np.zeros(28), jac=True, options={"gtol": 1e-9, "maxiter": 5000})
    found = model.certificate_
    assert found.dual[0] <= least.fun * (1 + 1e-12)
    assert found.primal[0] <= least.fun * (1 + 1e-8)


def test_threads_and_interruptions_change_no_bit(large, tmp_path):
    *_, store = large
    shared = {"C": 0.2, "tol": 1e-6, "memory_budget": least_budget(store, {}), "block_options": IN_BLOCKS}
    one = hinge.LogisticRegression(**shared, n_jobs=1).fit(store)
    two = hinge.LogisticRegression(**shared, n_jobs=2).fit(store)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    assert one.certificate_.dual[0] == two.certificate_.dual[0]
    path = tmp_path / "checkpoint"
    often = {**shared, "block_options": IN_BLOCKS | {"checkpoint_seconds": 0.0}, "checkpoint": path}
    for max_iter in (1, 3):
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            part = hinge.LogisticRegression(**often, max_iter=max_iter).fit(store)
        assert part.n_iter_.tolist() == [max_iter]
        assert part.certificate_.relative_gap[0] > 1e-6
    whole = hinge.LogisticRegression(**often).fit(store)
    np.testing.assert_array_equal(whole.coef_, one.coef_)
    np.testing.assert_array_equal(whole.intercept_, one.intercept_)
    assert whole.n_iter_ == one.n_iter_
    for other in ({"C": 0.3}, {"multi_class": "ovr"}):
        with pytest.raises(ValueError, match="it belongs to another training"):
            hinge.LogisticRegression(**{**often, **other}).fit(store)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        hinge.LogisticRegression(**often).fit(store)


def test_a_killed_fit_goes_on_to_the_same_bits(large, tmp_path):
    *_, store = large
    path = tmp_path / "checkpoint"
    given = {"tol": 1e-5, "memory_budget": least_budget(store, {}), "n_jobs": 1}
    given |= {"block_options": {"checkpoint_seconds": 0.0, "in_memory": False}}
    code = f"""
        from hinge import BlockStore, LogisticRegression
        store = BlockStore({store.path!r})
        print("go", flush=True)
        LogisticRegression(**{given!r}, checkpoint={str(path)!r}).fit(store)
    """
    for seconds in (0.1, 0.6):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(seconds)
        process.kill()
        process.communicate()
    expected = hinge.LogisticRegression(**given).fit(store)
    model = hinge.LogisticRegression(**given, checkpoint=path).fit(store)
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_ctrl_c_comes_within_a_second(large):
    *_, store = large
    code = f"""
        from hinge import BlockStore, LogisticRegression
        store = BlockStore({store.path!r})
        print("go", flush=True)
        while True:
            LogisticRegression(C=1e6, tol=1e-12, max_iter=10**6, block_options={{"in_memory": False}}).fit(store)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    time.sleep(1.5)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert time.monotonic() - asked < 5  # a second on a machine that is not busy; leaving Python takes its time, too
    assert b"KeyboardInterrupt" in error


def test_weights_are_repetitions_and_many_classes(tmp_path):
    X, y = sparse_problem(4, n_rows=400, n_columns=20, n_classes=40)
    times = 1 + np.arange(400) % 3
    rows = np.repeat(np.arange(400), times)
    weighted = hinge.BlockStore.build((X, y, times.astype(float)), tmp_path / "w")
    repeated = hinge.BlockStore.build((X[rows], y[rows]), tmp_path / "r")
    options = {"tol": 1e-8, "block_options": IN_BLOCKS}
    one, other = (hinge.LogisticRegression(**options).fit(store) for store in (weighted, repeated))
    assert one.coef_.shape == (len(np.unique(y)), 20)
    assert one.certificate_.primal[0] == pytest.approx(other.certificate_.primal[0], rel=2e-8)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-4)


def test_a_row_of_cost_zero_is_no_row(tmp_path):
    X, y = sparse_problem(9, n_rows=300, n_columns=20, n_classes=4)
    weight = (np.arange(300) % 4 > 0).astype(float)
    store = hinge.BlockStore.build((X, y, weight), tmp_path / "x")
    model = hinge.LogisticRegression(tol=1e-8, block_options=IN_BLOCKS).fit(store)
    kept = weight > 0
    plain = hinge.LogisticRegression(tol=1e-9).fit(X[kept], y[kept])
    assert model.certificate_.primal[0] == pytest.approx(plain.certificate_.primal[0], rel=1e-7)


@pytest.mark.parametrize("options", [{"gamma": 0.3}, {}])
def test_products_of_features(tmp_path, options):
    X, y = sparse_problem(10, n_rows=300, n_columns=15, n_classes=4)
    store = hinge.BlockStore.build((X, y), tmp_path / "x")
    shared = {"degree": 2, "tol": 1e-7, "C": 0.1, **options}
    plain = hinge.LogisticRegression(**shared).fit(X, y)
    for in_memory in (True, False):
        model = hinge.LogisticRegression(**shared, block_options={"in_memory": in_memory}).fit(store)
        assert model.multi_class_ == plain.multi_class_ == "multinomial"
        assert model.certificate_.solver == ("in_memory" if in_memory else "block_newton",)
        assert model.certificate_.primal[0] == pytest.approx(plain.certificate_.primal[0], rel=1e-6)
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=2e-3)


def test_progress_and_refusals(large, caplog):
    *_, store = large
    caplog.set_level("INFO", logger="hinge")
    with pytest.warns(ConvergenceWarning):
        hinge.LogisticRegression(C=1e3, tol=1e-9, max_iter=3, block_options=IN_BLOCKS).fit(store)
    lines = [record.getMessage() for record in caplog.records]
    assert any(re.search(r"block_newton [0-9.]+ passes, [0-9]+ rows/s", line) for line in lines), lines
    with pytest.raises(ValueError, match="solver must be 'auto' or 'newton' for a multinomial fit of a store"):
        hinge.LogisticRegression(solver="dual_cd", block_options=IN_BLOCKS).fit(store)
    named = hinge.LogisticRegression(solver="newton", tol=1e-2, block_options=IN_BLOCKS).fit(store)
    assert named.certificate_.solver == ("block_newton",)
