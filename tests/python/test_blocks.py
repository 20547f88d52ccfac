"""Block stores: what goes in comes out, and models of stores are those of the rows in memory."""

import gzip
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import (
    BlockFileError,
    BlockStore,
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    cli,
    iter_predictions,
    load_svmlight,
    select_C,
)
from hinge._budget import budget
from hinge._progress import Reading
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning


def random_rows(n=2000, d=300, classes=2, seed=0, dtype=np.float32, kind="normal"):
    g = np.random.default_rng(seed)
    X = sp.random(n, d, density=0.04, format="csr", random_state=g, dtype=np.float64)
    if kind == "ones":
        X.data[:] = 1.0
    elif kind == "normal":
        X.data = g.normal(size=X.nnz)
    w = g.normal(size=(d, classes))
    y = (X @ w + 0.5 * g.normal(size=(n, classes))).argmax(axis=1)
    order = np.argsort(y, kind="stable")  # sorted by class, as a trainer must not mind
    return X[order].astype(dtype), y[order]


def assert_same(a, b):
    a, b = a.tocsr(), b.tocsr()
    assert a.shape == b.shape
    assert (a != b).nnz == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    X, y = random_rows(kind="ones")
    store = BlockStore.build((X, y), tmp_path_factory.mktemp("made") / "made.blocks", n_blocks=8)
    return X, y, store


@pytest.mark.parametrize("kind", ["ones", "normal"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("relabel", [True, False])
def test_arrays_come_back(tmp_path, kind, dtype, relabel):
    X, y = random_rows(kind=kind, dtype=dtype)
    weight = np.arange(len(y)) % 3 + 0.5
    store = BlockStore.build((X, y, weight), tmp_path / "x", relabel=relabel, n_jobs=2)
    Z, z, v = store.to_csr()
    assert_same(Z, X)
    assert Z.dtype == (np.float32 if kind == "ones" else dtype)
    np.testing.assert_array_equal(z, y)
    np.testing.assert_array_equal(v, weight)
    labels, weights = store.labels()
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(weights, weight)
    store.verify()
    assert (store.shape, store.nnz, len(store)) == (X.shape, X.nnz, len(y))


@pytest.mark.parametrize(
    "labels", [["b", "a"], [True, False], [3, -1], [3.0, -2.0]], ids=["text", "bool", "int", "float"]
)
def test_labels_keep_their_type(tmp_path, labels):
    X, y = random_rows(n=50)
    y = np.array(labels)[y]
    store = BlockStore.build((X, y), tmp_path / "x")
    assert store.classes.tolist() == sorted(labels)
    assert store.classes.dtype.kind == y.dtype.kind
    np.testing.assert_array_equal(store.to_csr()[1], y)


@given(
    rows=st.lists(
        st.lists(st.tuples(st.integers(0, 30), st.floats(-5, 5, width=32)), max_size=6), min_size=1, max_size=40
    ),
    n_blocks=st.integers(1, 9),
)
def test_any_rows_come_back_in_canonical_form(tmp_path_factory, rows, n_blocks):
    """Unsorted and repeated columns and explicit zeros, against SciPy's own summing."""
    indptr = np.cumsum([0, *map(len, rows)])
    entries = [entry for row in rows for entry in row]
    X = sp.csr_matrix(([v for _, v in entries], [j for j, _ in entries], indptr), shape=(len(rows), 31))
    y = np.arange(len(rows)) % 3
    store = BlockStore.build((X, y), tmp_path_factory.mktemp("any") / "x", n_blocks=n_blocks)
    expected = X.copy()
    expected.sum_duplicates()
    expected.eliminate_zeros()
    assert_same(store.to_csr()[0], expected)


def test_blocks_are_random_samples_that_make_up_the_whole(made):
    X, y, store = made
    seen = []
    for block in store.iter_blocks():
        assert_same(block.X, X[block.rows])
        np.testing.assert_array_equal(block.y, y[block.rows])
        assert block.sample_weight is None
        assert abs(len(block.y) - len(y) / 8) < 80
        assert abs(block.y.mean() - y.mean()) < 0.15
        seen.append(block.rows)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(len(y)))


def write_text(folder, X, y):
    paths = []
    for k, rows in enumerate(np.array_split(np.arange(len(y)), 3)):
        path = folder / f"part{k}.svm"
        dump_svmlight_file(X[rows], y[rows], str(path), zero_based=False)
        paths.append(path)
    packed = folder / "part2.svm.gz"
    packed.write_bytes(gzip.compress(paths[2].read_bytes()))
    paths[2].unlink()
    return [paths[0], paths[1], packed]


def test_text_files_patterns_and_compression(tmp_path):
    X, y = random_rows()
    X = X.astype(np.float64)
    X.data = X.data.round(6)  # the writer of scikit-learn keeps 16 digits
    paths = write_text(tmp_path, X, y)
    for source in (paths, str(tmp_path / "part*"), [str(tmp_path / "part*")]):
        store = BlockStore.build(source, tmp_path / "x", n_features=X.shape[1])
        Z, z = store.to_csr()
        assert_same(Z, X)
        np.testing.assert_array_equal(z, y.astype(float))
    expected, _ = load_svmlight(paths[0], n_features=X.shape[1])
    assert_same(Z[: expected.shape[0]], expected)
    with pytest.raises(FileNotFoundError, match="no file matches"):
        BlockStore.build(str(tmp_path / "none*"), tmp_path / "y")
    (tmp_path / "bad.svm").write_text("1 1:2\n1 1:x\n")
    with pytest.raises(ValueError, match=r"bad\.svm, line 2"):
        BlockStore.build(tmp_path / "bad.svm", tmp_path / "y")
    assert not list(tmp_path.glob("y*"))


@pytest.mark.parametrize("compressed", [False, True])
def test_parts_of_arrays(tmp_path, compressed):
    X, y = random_rows()
    for k, rows in enumerate((slice(0, 700), slice(700, None))):
        P = X[rows]
        save = np.savez_compressed if compressed else np.savez
        arrays = {"data": P.data, "indices": P.indices, "indptr": P.indptr, "shape": P.shape, "format": b"csr"}
        save(tmp_path / f"p{k}.npz", y=y[rows], **arrays)
    store = BlockStore.build(str(tmp_path / "p*.npz"), tmp_path / "x")
    assert_same(store.to_csr()[0], X)
    np.savez(tmp_path / "noy.npz", X=np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"noy.npz: no array 'y'"):
        BlockStore.build(tmp_path / "noy.npz", tmp_path / "x")


def test_dense_arrays_and_npy_pairs(tmp_path):
    X, y = random_rows(n=100)
    np.save(tmp_path / "X.npy", X.toarray())
    np.save(tmp_path / "y.npy", y)
    for source in ([(tmp_path / "X.npy", tmp_path / "y.npy")], (X.toarray(), y)):
        assert_same(BlockStore.build(source, tmp_path / "x").to_csr()[0], X)
    with pytest.raises(ValueError, match="comes as a pair"):
        BlockStore.build(tmp_path / "X.npy", tmp_path / "x")


def test_streams(tmp_path):
    X, y = random_rows()
    pieces = (((X[k : k + 130]), y[k : k + 130]) for k in range(0, len(y), 130))
    assert_same(BlockStore.build(pieces, tmp_path / "x").to_csr()[0], X)
    with pytest.raises(TypeError, match=r"item 0 of the source must be \(X, y\)"):
        BlockStore.build(iter([3]), tmp_path / "y")
    with pytest.raises(ValueError, match="one entry per row"):
        BlockStore.build(iter([(X, y[:5])]), tmp_path / "y")

    def fails():
        yield X, y
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        BlockStore.build(fails(), tmp_path / "x")
    assert_same(BlockStore(tmp_path / "x").to_csr()[0], X)  # the old file is as it was
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x"]


def test_parquet_lists_and_hashed_columns(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    X, y = random_rows(n=200)
    rows = [X[i] for i in range(200)]
    table = arrow.table(
        {
            "y": y,
            "j": [row.indices.tolist() for row in rows],
            "v": [row.data.tolist() for row in rows],
            "city": [f"c{k % 7}" for k in y + np.arange(200)],
            "size": np.arange(200) / 10,
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    columns = {"label": "y", "indices": "j", "values": "v"}
    store = BlockStore.build(tmp_path / "t.parquet", tmp_path / "x", columns=columns, n_features=X.shape[1])
    assert_same(store.to_csr()[0], X)
    columns = {"label": "y", "features": ["city", "size"], "n_hash": 64}
    store = BlockStore.build(tmp_path / "t.parquet", tmp_path / "h", columns=columns)
    Z, _ = store.to_csr()
    assert Z.shape == (200, 64)
    assert set(np.diff(Z.indptr)) <= {1, 2}
    with pytest.raises(ValueError, match="columns must be"):
        BlockStore.build(tmp_path / "t.parquet", tmp_path / "x")
    with pytest.raises(ValueError, match="no column 'nope'"):
        BlockStore.build(tmp_path / "t.parquet", tmp_path / "x", columns={"label": "nope", "indices": "j"})


def test_bytes_depend_on_the_seed_not_on_threads(tmp_path):
    X, y = random_rows()
    files = []
    for jobs, seed in ((1, 0), (2, 0), (1, 5)):
        BlockStore.build((X, y), tmp_path / "x", n_jobs=jobs, random_state=seed)
        files.append((tmp_path / "x").read_bytes())
    assert files[0] == files[1] != files[2]


def test_damage_is_found_by_whoever_meets_it(tmp_path, made):
    _, _, store = made
    content = bytearray(Path(store.path).read_bytes())
    content[1000] ^= 1
    path = tmp_path / "bad"
    path.write_bytes(content)
    damaged = BlockStore(path)
    for use in (damaged.verify, damaged.to_csr, damaged.labels, lambda: LinearSVC().fit(damaged)):
        with pytest.raises(BlockFileError, match=r"bad: the checksum .* of page 0 is wrong \(at byte 16\)"):
            use()
    path.write_bytes(content[:-5])
    with pytest.raises(BlockFileError, match="cut short"):
        BlockStore(path)
    with pytest.raises(FileNotFoundError):
        BlockStore(tmp_path / "none")
    assert issubclass(BlockFileError, ValueError)


def test_refusals(tmp_path):
    X, y = random_rows(n=20)
    build = BlockStore.build
    for kwargs, match in [
        ({"n_blocks": 0}, "n_blocks"),
        ({"n_blocks": 5000}, "n_blocks"),
        ({"n_features": 10}, r"column \d+ is outside n_features=10"),
        ({"feature_names": ["a"]}, "outside n_features=1"),
        ({"relabel": "yes"}, "relabel"),
        ({"zero_based": 3}, None),
    ]:
        if match:
            with pytest.raises(ValueError, match=match):
                build((X, y), tmp_path / "x", **kwargs)
    with pytest.raises(ValueError, match=r"NaN"):
        build((sp.csr_matrix([[np.nan]]), [1]), tmp_path / "x")
    with pytest.raises(ValueError, match="no rows"):
        build(iter(()), tmp_path / "x")
    with pytest.raises(ValueError, match="types"):
        build(iter([(X, y), (X, y.astype(str))]), tmp_path / "x")
    with pytest.raises(TypeError, match="a source is"):
        build(3, tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        build((X, y), tmp_path / "no" / "x")
    assert not list(tmp_path.iterdir())


# ---- models


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearSVC(loss="hinge", intercept_scaling=1.0),
        LogisticRegression(multi_class="ovr"),
        LogisticRegression(multi_class="multinomial"),
    ],
)
def test_a_store_that_fits_gives_the_model_of_its_rows(tmp_path, model, classes):
    X, y = random_rows(classes=classes)
    weight = 1.0 + np.arange(len(y)) % 2
    store = BlockStore.build((X, y, weight), tmp_path / "x")
    model.set_params(C=0.1, tol=1e-7, class_weight={0: 2.0, 1: 1.0, **({2: 1.0} if classes == 3 else {})})
    expected = type(model)(**model.get_params()).fit(X, y, weight)
    model.fit(store)
    assert set(model.certificate_.solver) == {"in_memory"}
    np.testing.assert_allclose(model.certificate_.primal, expected.certificate_.primal, rtol=1e-6)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=2e-3)
    np.testing.assert_allclose(model.decision_function(store), model.decision_function(X), atol=1e-12)
    assert (model.predict(store) == model.predict(X)).all()
    assert model.score(store) == pytest.approx(model.score(X, y, weight))


def test_a_store_that_fits_is_presolved_as_its_rows_are(tmp_path):
    X, y = random_rows()
    X = sp.csr_matrix(sp.hstack([X, 2 * X]))  # every column has a twin
    store = BlockStore.build((X, y), tmp_path / "x")
    expected = LinearSVC(C=0.1, tol=1e-7, presolve=True).fit(X, y)
    model = LinearSVC(C=0.1, tol=1e-7, presolve=True).fit(store)
    assert model.presolve_.n_columns == expected.presolve_.n_columns < X.shape[1]
    np.testing.assert_allclose(model.certificate_.primal, expected.certificate_.primal, rtol=1e-6)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=2e-3)
    assert LinearSVC(C=0.1, presolve=False).fit(store).presolve_ is None


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    X, y = random_rows(n=60_000, d=1000, kind="ones")
    return X, y, BlockStore.build((X, y), tmp_path_factory.mktemp("large") / "x")


BUDGET = 22_000_000
NEWTON_BUDGET = 34_000_000  # with room for its matrices, and for a part of the rows


@pytest.mark.parametrize("cache", ["gradient", "projected", "steepest", "random", "none"])
def test_blocks_reach_the_optimum_of_memory(large, cache):
    X, y, store = large
    model = LinearSVC(loss="hinge", C=0.05, tol=1e-3, memory_budget=BUDGET, block_options={"cache": cache})
    model.fit(store)
    certificate = model.certificate_
    assert certificate.solver == ("block_cd",)
    assert certificate.converged
    exact = LinearSVC(loss="hinge", C=0.05, tol=1e-6).fit(X, y).certificate_
    assert exact.primal[0] * (1 - 1e-5) <= certificate.primal[0] <= exact.primal[0] * (1 + 1e-3)
    assert certificate.dual[0] <= exact.primal[0] * (1 + 1e-6)
    margins = (2 * y - 1) * model.decision_function(store)
    primal = 0.5 * (model.coef_**2).sum() + 0.05 * np.maximum(0, 1 - margins).sum()
    assert primal == pytest.approx(certificate.primal[0], rel=1e-9)


def test_the_second_score_is_for_binary_problems(large):
    _, _, store = large
    model = LinearSVC(multi_class="crammer_singer", memory_budget=BUDGET, block_options={"cache": "steepest"})
    with pytest.raises(ValueError, match=r"cache must be 'auto', 'gradient', .* with 'crammer_singer', got 'steepest'"):
        model.fit(store)


def test_logistic_blocks(large):
    X, y, store = large
    model = LogisticRegression(C=0.1, tol=1e-3, memory_budget=BUDGET).fit(store)
    assert model.certificate_.solver == ("block_cd",)
    exact = LogisticRegression(C=0.1, tol=1e-6).fit(X, y).certificate_
    assert model.certificate_.primal[0] <= exact.primal[0] * (1 + 1e-3)
    assert model.predict_proba(store).shape == (len(y), 2)


def test_threads_change_no_bit(large):
    _, _, store = large
    models = [
        LinearSVC(tol=1e-2, memory_budget=BUDGET, n_jobs=jobs, random_state=1, block_options={"in_memory": False}).fit(
            store
        )
        for jobs in (1, 2)
    ]
    assert (models[0].coef_ == models[1].coef_).all()
    assert models[0].intercept_ == models[1].intercept_


@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [
        (LinearSVC, {}),
        (LinearSVC, {"loss": "hinge", "fit_intercept": False}),
        (LogisticRegression, {"class_weight": "balanced", "intercept_scaling": 2.0}),
    ],
)
def test_newton_on_pieces_reaches_the_optimum_of_memory(large, estimator, parameters):
    X, y, store = large
    given = {"C": 0.5, "tol": 1e-4, "solver": "newton", **parameters}
    model, exact = estimator(memory_budget=NEWTON_BUDGET, **given), estimator(**given)
    proof, twin = model.fit(store).certificate_, exact.fit(X, y).certificate_
    assert proof.solver == ("block_newton",)
    assert proof.converged
    assert proof.primal[0] >= twin.dual[0]
    assert twin.primal[0] >= proof.dual[0]
    assert (model.predict(X[:5000]) == exact.predict(X[:5000])).mean() > 0.99
    two = estimator(memory_budget=NEWTON_BUDGET, n_jobs=2, **given).fit(store)
    np.testing.assert_array_equal(two.coef_, model.coef_)


def test_newton_on_pieces_goes_on_from_its_checkpoint(large, tmp_path):
    _, _, store = large
    given = {"tol": 1e-6, "solver": "newton", "memory_budget": NEWTON_BUDGET}
    quiet, path = LinearSVC(**given).fit(store), tmp_path / "fit"
    first = LinearSVC(checkpoint=path, **given).fit(store)
    again = LinearSVC(checkpoint=path, **given).fit(store)
    for model in (first, again):
        np.testing.assert_array_equal(model.coef_, quiet.coef_)
    with pytest.raises(ValueError, match="belongs to another fit"):
        LinearSVC(C=2.0, checkpoint=path, **given).fit(store)
    with pytest.raises(ValueError, match="fit"):
        LinearSVC(checkpoint=path, memory_budget=NEWTON_BUDGET).fit(store)
    with pytest.raises(ValueError, match="memory_budget must be at least"):
        LinearSVC(solver="newton", memory_budget=1_000_000).fit(store)


def test_dual_variables_in_a_file_and_training_while_reading(large, tmp_path):
    X, y, store = large
    given = {"loss": "hinge", "C": 0.05, "tol": 1e-3, "memory_budget": BUDGET, "checkpoint": tmp_path / "c"}
    exact = LinearSVC(loss="hinge", C=0.05, tol=1e-6).fit(X, y).certificate_
    for options in ({"duals": "file"}, {"while_reading": "train"}, {"cache_share": 0.3}):
        (tmp_path / "c").unlink(missing_ok=True)
        certificate = LinearSVC(**given, block_options={"in_memory": False, **options}).fit(store).certificate_
        assert certificate.solver == ("block_cd",)
        assert certificate.converged
        assert certificate.primal[0] <= exact.primal[0] * (1 + 1e-3)
        assert certificate.dual[0] <= exact.primal[0] * (1 + 1e-6)


def test_max_iter_warns_and_keeps_the_model(large):
    _, _, store = large
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = LinearSVC(loss="hinge", tol=1e-9, max_iter=1, memory_budget=BUDGET).fit(store)
    assert model.n_iter_[0] == 1
    assert 1e-9 < model.certificate_.relative_gap[0] < 10


def test_refusals_of_fits(large, tmp_path):
    X, y, store = large
    for model, match in [
        (LinearSVC(memory_budget=1000), "memory_budget must be at least"),
        (LinearSVC(memory_budget="much"), "memory_budget must be"),
        (LinearSVC(memory_budget=BUDGET, solver="newton", degree=2), "solver must be 'auto', 'dual_cd' or, with deg"),
        (LinearSVC(memory_budget=BUDGET, solver="primal_cd"), "solver must be 'auto', 'dual_cd' or, with degree=1"),
        (LinearSVC(block_options={"caches": 1}), "caches"),
        (LinearSVC(block_options={"cache": "best"}), "cache"),
        (LinearSVC(memory_budget=BUDGET, block_options={"cache_share": 2}), "cache_share"),
        (LinearSVC(memory_budget=BUDGET, block_options={"cache_share": "half"}), "cache_share.*'auto' or a number"),
        (LinearSVC(block_options={"while_reading": "sleep"}), "while_reading"),
        (LinearSVC(block_options={"duals": "disk"}), "duals"),
        (LinearSVC(class_weight={0: -1}), "class_weight"),
    ]:
        with pytest.raises(ValueError, match=match):
            model.fit(store)
    with pytest.raises(ValueError, match="holds its labels"):
        LinearSVC().fit(store, y)
    with pytest.raises(ValueError, match="holds its labels"):
        LinearSVCCV().fit(store, y)
    one = BlockStore.build((X[:10], np.zeros(10, dtype=int)), tmp_path / "one")
    with pytest.raises(ValueError, match="one class only"):
        LinearSVC().fit(one)
    narrow = BlockStore.build((X[:10, :5], np.arange(10) % 2), tmp_path / "narrow")
    with pytest.raises(ValueError, match="5 features"):
        LinearSVC(C=0.01).fit(store).predict(narrow)


def test_names_and_pickles(tmp_path):
    X, y = random_rows(n=100, d=4)
    names = ["a", "b", "c", "d"]
    store = BlockStore.build((X, y), tmp_path / "x", feature_names=names)
    assert list(LinearSVC().fit(store).feature_names_in_) == names
    again = pickle.loads(pickle.dumps(store))
    assert again.info() == store.info()
    assert "100 x 4" in repr(store)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500MB", 5 * 10**8), ("2 GB", 2 * 10**9), ("1.5GiB", 3 << 29), (7, 7), ("9", 9), ("3k", 3000)],
)
def test_budgets_are_read(text, expected):
    assert budget(text) == expected


def test_budgets_have_a_default_and_refusals():
    assert budget(None) > 10**6
    for wrong in ("", "GB", "-1GB", 0, True, "1e9", "5 apples", "1iB"):
        with pytest.raises(ValueError, match="memory_budget must be"):
            budget(wrong)


# ---- searches


@pytest.mark.parametrize("classes", [2, 3])
def test_a_search_over_a_store_is_that_of_its_rows(tmp_path, classes):
    X, y = random_rows(classes=classes)
    weight = 1.0 + np.arange(len(y)) % 2
    store = BlockStore.build((X, y, weight), tmp_path / "x")
    given = {"cv": 3, "Cs": [0.01, 0.1, 1.0], "loss": "squared_hinge", "tol": 1e-4, "solver": "dual_cd"}
    expected = select_C(X, y, sample_weight=weight, **given)
    found = select_C(store, **given)
    assert found.C == expected.C
    np.testing.assert_allclose(found.scores, expected.scores, atol=0.01)
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-4)


def test_a_search_over_blocks_and_its_refit(large, tmp_path):
    X, y, store = large
    given = {"cv": 3, "Cs": [0.002, 0.01, 0.05], "loss": "hinge"}
    budget = {"memory_budget": 26_000_000, "block_options": {"in_memory": False}}
    expected = select_C(X, y, **given, solver="dual_cd")
    found = select_C(store, **given, **budget, keep_decisions=True)
    np.testing.assert_allclose(found.objective, expected.objective, rtol=2e-3)
    np.testing.assert_allclose(found.mean, expected.mean, atol=0.005)
    assert found.decisions.shape == (len(y),)
    assert ((found.decisions > 0) == y).mean() == pytest.approx(found.best_score, abs=0.02)
    search = LinearSVCCV(**given, **budget, tol=1e-2).fit(store)
    assert found.C == search.C_
    assert search.certificate_.solver == ("block_cd",)
    assert search.n_features_in_ == store.n_features
    twice = [(np.arange(len(y)) % 3 != k, np.arange(len(y)) % 3 == k) for k in (0, 1, 2, 0)]
    with pytest.raises(ValueError, match="held out twice"):
        select_C(store, **{**given, "cv": twice}, **budget)
    with pytest.raises(ValueError, match="solver must be"):
        select_C(store, **given, **budget, solver="newton")
    with pytest.raises(ValueError, match="memory_budget must be at least"):
        select_C(store, **given, memory_budget=10**6)
    with pytest.raises(ValueError, match="holds its labels"):
        select_C(store, y)


@pytest.mark.parametrize(("classes", "loss"), [(2, "squared_hinge"), (3, "logistic")])
def test_a_search_by_newton_takes_pieces_in_turn(tmp_path, classes, loss):
    X, y = random_rows(n=20_000, d=200, classes=classes)
    weight = 1.0 + np.arange(len(y)) % 2
    store = BlockStore.build((X, y, weight), tmp_path / "x")
    given = {"cv": 3, "loss": loss, "multi_class": "ovr", "class_weight": "balanced", "keep_decisions": True}
    pieces = {"solver": "newton", "memory_budget": 20_000_000, "block_options": {"in_memory": False}}
    expected = select_C(X, y, sample_weight=weight, **given)
    found = select_C(store, **given, **pieces, resume=tmp_path / "journal")
    assert len(found.mean) > 4
    np.testing.assert_array_equal(found.to_frame()["C"], expected.to_frame()["C"])
    assert found.C == expected.C
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-3)
    np.testing.assert_allclose(found.scores, expected.scores, atol=0.005)
    np.testing.assert_allclose(found.decisions, expected.decisions, atol=0.05 * np.abs(expected.decisions).max())
    for more in ({"resume": tmp_path / "journal"}, {"n_jobs": 2}):
        np.testing.assert_array_equal(select_C(store, **given, **pieces, **more).decisions, found.decisions)
    with pytest.raises(ValueError, match="belongs to another search"):
        select_C(store, **given, **{**pieces, "memory_budget": 10**9}, resume=tmp_path / "journal", tol=0.5)


def test_a_search_by_newton_over_a_store_refits_by_it_and_refuses_what_it_cannot(tmp_path):
    X, y = random_rows(n=20_000, d=200)
    store = BlockStore.build((X, y), tmp_path / "x")
    given = {"cv": 3, "solver": "newton", "block_options": {"in_memory": False}}
    search = LinearSVCCV(**given, memory_budget=20_000_000).fit(store)
    assert search.certificate_.solver == ("block_newton",)
    twice = [(np.arange(len(y)) % 3 != k, np.arange(len(y)) % 3 == k) for k in (0, 1, 2, 0)]
    scores = select_C(store, **{**given, "cv": twice}, memory_budget=20_000_000).scores
    np.testing.assert_array_equal(scores[:, 0], scores[:, 3])
    with pytest.raises(ValueError, match="memory_budget must be at least") as refusal:
        select_C(store, **given, memory_budget=10**6)
    needed = int(re.search("must be at least ([0-9]+)", str(refusal.value))[1])
    assert select_C(store, **given, Cs=[0.1], memory_budget=needed).C == 0.1
    with pytest.raises(ValueError, match="for a smooth loss with degree=1, 'newton'"):
        select_C(store, **given, loss="hinge", memory_budget=20_000_000)
    for wrong in ([(np.arange(5), np.array([30_000]))], [(np.array([30_000]), np.arange(5))]):
        with pytest.raises(ValueError, match="30000"):
            select_C(store, **{**given, "cv": wrong}, memory_budget=20_000_000)


def test_budgets_count_the_weights_of_all_classes(tmp_path):
    """Those of groups that are done, or still to come."""
    random = np.random.default_rng(0)
    d, n_classes = 120_000, 8
    rows = sp.csr_matrix((np.ones(d, np.float32), random.permutation(d), np.arange(0, d + 1, 100)))
    y = np.arange(rows.shape[0]) % n_classes
    store = BlockStore.build((rows, y), tmp_path / "a", n_blocks=4)
    least = re.compile("must be at least ([0-9]+) bytes .* 1 problem.* and the weights of 7 more")
    model = LinearSVC(memory_budget=14_000_000, block_options={"in_memory": False})
    with pytest.raises(ValueError, match=least) as refusal:
        model.fit(store)
    needed = int(least.search(str(refusal.value))[1])
    assert needed > 8 * d * n_classes
    model.set_params(memory_budget=needed + needed // 50, tol=0.9).fit(store)
    assert model.coef_.shape == (n_classes, d)


# ---- prediction in pieces


@pytest.mark.parametrize("classes", [2, 3])
def test_predictions_of_pieces_are_those_of_the_whole(tmp_path, classes):
    X, y = random_rows(classes=classes, dtype=np.float64)
    X.data = X.data.round(6)
    store = BlockStore.build((X, y), tmp_path / "x", n_blocks=5)
    paths = write_text(tmp_path, X, y)
    model = LogisticRegression(C=0.1).fit(X, y)
    for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        expected = getattr(model, method)(X)
        for source in (store, (X, y), paths, ((X[k : k + 7], y[k : k + 7]) for k in range(0, len(y), 7))):
            found = np.concatenate(list(iter_predictions(model, source, method=method)))
            if method == "predict":
                np.testing.assert_array_equal(found, expected)
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(getattr(model, method)(store), expected, rtol=1e-9, atol=1e-9)


def bare_sources(folder, X):
    """X without labels, in all the ways that it may come."""
    np.save(folder / "x.npy", X.toarray())
    sp.save_npz(folder / "sparse.npz", X)
    np.savez(folder / "dense.npz", X=X.toarray())
    pieces = [X[k : k + 7] for k in range(0, X.shape[0], 7)]
    files = {name: folder / name for name in ("x.npy", "sparse.npz", "dense.npz")}
    matrices = {"csr": X, "csc": X.tocsc(), "coo": sp.coo_array(X), "array": X.toarray()}
    return {**matrices, **files, "list": pieces, "generator": iter(pieces), "text": str(folder / "x.npy")}


@pytest.mark.parametrize(
    "kind", ["csr", "csc", "coo", "array", "x.npy", "sparse.npz", "dense.npz", "list", "generator", "text"]
)
@pytest.mark.parametrize("sparse_coef", [False, True])
def test_predictions_need_no_labels(tmp_path, kind, sparse_coef):
    X, y = random_rows(classes=3, dtype=np.float64)
    model = LinearSVC(C=0.1, sparse_coef=sparse_coef).fit(X, y)
    found = list(iter_predictions(model, bare_sources(tmp_path, X)[kind], method="decision_function"))
    np.testing.assert_allclose(np.concatenate(found), model.decision_function(X), rtol=1e-9, atol=1e-9)


def test_predictions_of_a_data_frame_compare_its_names():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(40, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LinearSVC().fit(frame, np.arange(40) % 2)
    np.testing.assert_array_equal(np.concatenate(list(iter_predictions(model, frame))), model.predict(frame))
    for wrong, match in (
        (frame[["c", "b", "a"]], "feature names should match"),
        (frame[["a", "b"]], "feature names should match"),
        (frame.where(frame < 1), "NaN"),
    ):
        with pytest.raises(ValueError, match=match):
            iter_predictions(model, wrong)


def test_ordered_predictions_of_a_large_store_come_in_pieces(large):
    X, y, store = large
    model = LinearSVC(C=0.01).fit(X, y)
    found = list(iter_predictions(model, store))
    assert len(found) >= 1
    np.testing.assert_array_equal(np.concatenate(found), model.predict(X))
    for call, match in [
        (lambda: iter_predictions(model, store, method="fit"), "method must be"),
        (lambda: iter_predictions(model, store, method="predict_proba"), "no attribute 'predict_proba'"),
        (lambda: list(iter_predictions(model, (X[:, :5], y))), "5 features"),
    ]:
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(TypeError, match="classifier of hinge"):
        iter_predictions(object(), store)


def test_rows_of_a_callable_are_counted_first(tmp_path):
    X, y = random_rows(n=4000, d=2000, kind="ones")
    calls = []

    def rows():
        calls.append(1)
        return ((X[k : k + 500], y[k : k + 500]) for k in range(0, len(y), 500))

    store = BlockStore.build(rows, tmp_path / "x")
    assert len(calls) == 2
    assert_same(store.to_csr()[0], X)
    whole = BlockStore.build((X, y), tmp_path / "y")
    assert store.info()["file_bytes"] == pytest.approx(whole.info()["file_bytes"], rel=0.01)


# ---- kills and interrupts

KILLS = int(os.environ.get("HINGE_KILLS", "4"))
"""Kills per test; each costs about a second."""


def child(code):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_ctrl_c_in_a_build_leaves_nothing(tmp_path):
    code = f"""
        import numpy as np, scipy.sparse as sp, sys
        from hinge import BlockStore
        def rows():
            g = np.random.default_rng(0)
            X = sp.random(4000, 2000, 0.05, format="csr", random_state=g)
            print("go", flush=True)
            while True:
                yield X, np.arange(4000) % 2
        BlockStore.build(rows(), {str(tmp_path / "x")!r})
    """
    process = child(code)
    process.stdout.readline()
    time.sleep(0.7)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert time.monotonic() - asked < 5
    assert b"KeyboardInterrupt" in error
    assert not list(tmp_path.iterdir())


def test_killed_builds_leave_the_old_file(tmp_path):
    X, y = random_rows(n=200)
    BlockStore.build((X, y), tmp_path / "x")
    code = f"""
        import numpy as np, scipy.sparse as sp
        from hinge import BlockStore
        X = sp.random(20000, 500, 0.05, format="csr", random_state=0)
        print("go", flush=True)
        while True:
            BlockStore.build((X, np.arange(20000) % 2), {str(tmp_path / "x")!r}, n_jobs=1)
    """
    g = np.random.default_rng(1)
    for _ in range(KILLS):
        process = child(code)
        process.stdout.readline()
        time.sleep(g.uniform(0.02, 0.4))
        process.kill()
        process.communicate()
        store = BlockStore(tmp_path / "x")
        store.verify()
        assert store.n_samples in (200, 20000)
    BlockStore.build((X, y), tmp_path / "x")
    assert sorted(os.listdir(tmp_path)) == ["x"]


LIMITED = """
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, ({bytes}, {bytes}))
"""
"""Writing beyond so many bytes of a file fails, as on a full disk."""


@pytest.mark.skipif(os.name != "posix", reason="needs a limit of file sizes")
def test_a_full_disk_is_a_clear_error_and_leaves_the_old_file(large, tmp_path):
    X, y = random_rows(n=200)
    BlockStore.build((X, y), tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    code = textwrap.dedent(LIMITED.format(bytes=20_000)) + textwrap.dedent(f"""
        from hinge import BlockStore, LinearSVC
        store = BlockStore({large[2].path!r})
        X, y = store.to_csr()
        for call in (
            lambda: BlockStore.build((X, y), {str(tmp_path / "x")!r}),
            lambda: LinearSVC(memory_budget={BUDGET}, checkpoint={str(tmp_path / "c")!r}).fit(store),
        ):
            try:
                call()
            except OSError as error:
                print(type(error).__name__, error.errno, error.filename)
        """)
    output, error = child(code).communicate(timeout=100)
    lines = output.decode().splitlines()
    assert len(lines) == 2, error.decode()
    assert lines[0].endswith(str(tmp_path / "x"))
    assert lines[1].endswith(str(tmp_path / "c"))
    assert (tmp_path / "x").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["x"]


@pytest.mark.parametrize(
    "model",
    [
        f"LinearSVC(loss='hinge', tol=1e-12, max_iter=10**6, memory_budget={BUDGET})",
        f"PegasosClassifier(1e-6, tol=1e-12, max_iter=10**9, memory_budget={BUDGET})",
        f"SubgradientSVC(1.0, tol=1e-12, max_iter=10**9, memory_budget={BUDGET})",
        f"LinearSVC(degree=2, hash_bits=18, tol=1e-12, max_iter=10**6, memory_budget={BUDGET + 20_000_000})",
    ],
)
def test_ctrl_c_in_training_comes_within_a_second(large, tmp_path, model):
    code = f"""
        from hinge import BlockStore, LinearSVC, PegasosClassifier, SubgradientSVC
        store = BlockStore({large[2].path!r})
        print("go", flush=True)
        {model}.fit(store)
    """
    process = child(code)
    process.stdout.readline()
    time.sleep(1.5)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert time.monotonic() - asked < 5  # a second on a machine that is not busy; leaving Python takes its time, too
    assert b"KeyboardInterrupt" in error


def test_progress_tells_rate_bytes_gap_and_end(large, caplog):
    caplog.set_level("INFO", logger="hinge")
    with pytest.warns(ConvergenceWarning):
        LinearSVC(loss="hinge", C=1.0, tol=1e-9, max_iter=10, memory_budget=BUDGET).fit(large[2])
    lines = [record.getMessage() for record in caplog.records]
    assert any(re.search(r"block_cd [0-9.]+ passes, [0-9]+ rows/s, [0-9]+ MB read", line) for line in lines), lines
    reading = Reading(1e-4)
    reading._started = 0.0
    assert reading.line(10.0, 0.5, float("inf"), 500, 2_000_000) == "0.50 passes, 50 rows/s, 2 MB read"
    assert reading.line(10.0, 1.0, 1.0, 500, 0).endswith("gap 1.00e+00")
    assert reading.line(20.0, 2.0, 0.1, 500, 0).endswith("gap 1.00e-01, about 30 s left")
    assert reading.line(25.0, 2.5, 0.1, 500, 0).endswith("about 25 s left")
    assert reading.line(30.0, 3.0, 0.2, 500, 0).endswith("gap 2.00e-01")


def test_killed_trainings_go_on_to_the_same_bits(large, tmp_path):
    _, _, store = large
    given = {
        "loss": "hinge",
        "C": 0.05,
        "tol": 1e-4,
        "memory_budget": BUDGET,
        "n_jobs": 1,
        "block_options": {"checkpoint_seconds": 0.0, "in_memory": False},
    }
    expected = LinearSVC(**given).fit(store)
    path = tmp_path / "checkpoint"
    code = f"""
        from hinge import BlockStore, LinearSVC
        store = BlockStore({store.path!r})
        print("go", flush=True)
        LinearSVC(**{given!r}, checkpoint={str(path)!r}).fit(store)
    """
    g = np.random.default_rng(0)
    for _ in range(KILLS):
        process = child(code)
        process.stdout.readline()
        time.sleep(g.uniform(0.05, 0.8))
        process.kill()
        process.communicate()
    model = LinearSVC(**given, checkpoint=path).fit(store)
    assert (model.coef_ == expected.coef_).all()
    assert model.intercept_ == expected.intercept_
    with pytest.raises(ValueError, match="another training: C and weights is"):
        LinearSVC(**{**given, "C": 0.06}, checkpoint=path).fit(store)


# ---- command line


def test_command_line(tmp_path, capsys):
    X, y = random_rows(dtype=np.float64)
    paths = write_text(tmp_path, X, y)
    target = str(tmp_path / "x")
    assert cli.main(["blocks", "build", *map(str, paths), target, "--blocks", "4", "--jobs", "1"]) == 0
    assert f"nnz                {X.nnz}" in capsys.readouterr().out
    assert cli.main(["blocks", "info", target]) == 0
    assert "n_blocks           4" in capsys.readouterr().out
    assert cli.main(["blocks", "verify", target]) == 0
    assert "whole" in capsys.readouterr().out
    with open(target, "r+b") as file:
        file.seek(700)
        file.write(b"damage")
    assert cli.main(["blocks", "verify", target]) == 1
    assert "page 0" in capsys.readouterr().err
    assert cli.main(["blocks", "info", str(tmp_path / "none")]) == 1


def test_pairs_of_features_are_refused_for_a_stream(made):
    X, y, _ = made
    with pytest.raises(ValueError, match="degree must be 1"):
        LinearSVC(degree=2).partial_fit(X[:50], y[:50], classes=[0, 1])
