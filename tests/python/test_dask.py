"""Fits on a cluster of processes on this machine, against fits in memory; workers that are killed, and clients."""

import os
import signal
import threading
import time
import warnings
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import hinge
import hinge.dask
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from clusters import shards_left
from distributed import Client, LocalCluster
from endless import endless
from hinge._dask_columns import MOST, SparseColumns, columns_of
from hinge._dask_shards import reduced
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

pytestmark = [
    pytest.mark.timeout(180),
    # Of what dask and its event loop leave to the garbage collector where processes are killed.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

TOL = 1e-5


def rows(seed, n=3000, d=40):
    """Sparse rows with two classes that a hyperplane separates badly."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density=0.2, random_state=rng, format="csr", data_rvs=rng.standard_normal)
    score = np.asarray(X[:, :8].sum(axis=1)).ravel()
    return X, np.where(score + rng.standard_normal(n) > 0.3, "yes", "no")


def slow_rows(seed):
    """The same, from a source that takes its time."""
    time.sleep(0.05)
    return rows(seed)


@pytest.fixture(scope="module")
def parts():
    return [rows(seed) for seed in range(4)]


@pytest.fixture(scope="module")
def whole(parts):
    return sp.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])


@pytest.fixture
def lazy():
    return [dask.delayed(slow_rows)(seed) for seed in range(4)]


def check_against(model, plain, X, y, tol=TOL):
    """Within the gaps of the same optimum, each proved, and the same answers but for rows on the border."""
    ours, theirs = model.certificate_, plain.certificate_
    assert ours.converged
    assert (ours.relative_gap <= tol).all()
    assert (ours.primal >= theirs.dual * (1 - 1e-12)).all()
    assert (theirs.primal >= ours.dual * (1 - 1e-12)).all()
    assert (model.predict(X) == plain.predict(X)).mean() > 0.99
    np.testing.assert_array_equal(model.classes_, plain.classes_)
    assert model.coef_.shape == plain.coef_.shape
    assert model.intercept_.shape == plain.intercept_.shape


FITS = [
    (hinge.dask.LinearSVC, {}),
    (hinge.dask.LinearSVC, {"loss": "hinge", "C": 0.3}),
    (hinge.dask.LinearSVC, {"loss": "hinge", "fit_intercept": False}),
    (hinge.dask.LinearSVC, {"intercept_scaling": 3.0, "class_weight": "balanced"}),
    (hinge.dask.LogisticRegression, {"C": 20.0}),
    (hinge.dask.LogisticRegression, {"fit_intercept": False, "class_weight": {"no": 1.0, "yes": 2.0}}),
]


@pytest.mark.parametrize(("estimator", "parameters"), FITS)
def test_fits_are_those_of_one_machine(client, parts, whole, estimator, parameters):
    model = estimator(tol=TOL, **parameters).fit([dask.delayed(part) for part in parts], client=client)
    plain = estimator._plain(tol=TOL, **parameters).fit(*whole)
    check_against(model, plain, *whole)
    traffic = model.traffic_
    assert (traffic.n_workers, traffic.n_shards, traffic.n_reloaded) == (2, 4, 0)
    # What a request or an answer can have at most: a triangle of columns, or three vectors of them.
    largest = 8 * (41 * 42 // 2 + 200)
    assert 0 < traffic.bytes_received <= traffic.rounds * traffic.n_shards * largest
    assert 0 < traffic.bytes_sent <= traffic.rounds * traffic.n_workers * largest
    assert traffic.seconds >= traffic.seconds_loading + traffic.seconds_working > 0


def test_values_claimed_are_those_of_the_rows(client, parts, whole):
    X, y = whole
    model = hinge.dask.LogisticRegression(C=2.0, tol=TOL).fit([dask.delayed(part) for part in parts])
    margins = np.where(y == "yes", 1, -1) * model.decision_function(X)
    value = 0.5 * (model.coef_**2).sum() + 2.0 * np.logaddexp(0, -margins).sum()
    assert model.certificate_.primal[0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("is_dense", [False, True])
def test_dask_arrays_and_lazy_predictions(client, whole, is_dense):
    X, y = whole
    if is_dense:
        X = X.toarray().astype(np.float32)
        cut = da.from_array(X, chunks=(2500, -1))
    else:
        blocks = [
            da.from_delayed(dask.delayed(X[k : k + 2500]), (min(2500, 12000 - k), 40), np.float64)
            for k in range(0, 12000, 2500)
        ]
        cut = da.concatenate(blocks)
    weight = np.where(np.arange(12000) % 5 == 0, 0.0, 1.5)
    labels = da.from_array(y, chunks=1000)
    model = hinge.dask.LogisticRegression(tol=TOL).fit(cut, labels, sample_weight=weight)
    plain = hinge.LogisticRegression(tol=TOL).fit(X, y, sample_weight=weight)
    check_against(model, plain, X, y)
    for name in ("decision_function", "predict", "predict_proba"):
        lazy, eager = getattr(model, name)(cut), getattr(model.plain(), name)(X)
        assert isinstance(lazy, da.Array)
        assert lazy.numblocks[0] == cut.numblocks[0]
        assert lazy.dtype == eager.dtype
        np.testing.assert_array_equal(lazy.compute(), eager)


@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [(hinge.dask.LogisticRegression, {}), (hinge.dask.LinearSVC, {"loss": "hinge"})],
)
def test_classes(client, whole, estimator, parameters):
    X, y = whole
    classes = np.where(np.arange(12000) % 3 == 0, "other", y)
    # The last part has two of the classes only, the first one alone.
    order = np.argsort(classes, kind="stable")
    borders = [0, 2000, 5000, 9000, 12000]
    parts = [(X[order[a:b]], classes[order[a:b]]) for a, b in pairwise(borders)]
    model = estimator(tol=TOL, **parameters).fit([dask.delayed(part) for part in parts])
    plain = estimator._plain(tol=TOL, multi_class="ovr", **parameters).fit(X, classes)
    check_against(model, plain, X, classes)


def test_paths(client, parts, whole, tmp_path):
    X, y = whole
    ids = (y == "yes").astype(int)
    paths = []
    for k in range(3):
        path = tmp_path / f"rows{k}.svm"
        with open(path, "w") as file:
            for i in range(k, 12000, 3):
                entries = zip(X[[i]].indices.tolist(), X[[i]].data.tolist(), strict=True)
                file.write(" ".join([str(ids[i]), *(f"{j + 1}:{v!r}" for j, v in entries)]) + "\n")
        paths.append(path)
    store = tmp_path / "rows1.hinge"
    hinge.BlockStore.build((X[1::3], ids[1::3]), store)
    model = hinge.dask.LinearSVC(tol=TOL).fit([paths[0], str(store), paths[2]])
    check_against(model, hinge.LinearSVC(tol=TOL).fit(X, ids), X, ids)


@pytest.fixture
def stores(parts, tmp_path):
    """A block store for each part."""
    paths = [tmp_path / f"{k}.blocks" for k in range(len(parts))]
    for path, (X, y) in zip(paths, parts, strict=True):
        hinge.BlockStore.build((X, y), path)
    return paths


ON_DISK = 900_000
"""Bytes of a worker for some pieces of two stores and what is known of their rows."""


@pytest.mark.parametrize(("estimator", "parameters"), FITS)
def test_stores_larger_than_the_memory_of_the_cluster(client, stores, whole, estimator, parameters):
    model = estimator(tol=TOL, memory_budget=ON_DISK, **parameters).fit(stores)
    check_against(model, estimator._plain(tol=TOL, **parameters).fit(*whole), *whole)
    roomy = estimator(tol=TOL, memory_budget="1GB", **parameters).fit(stores)
    assert (model.coef_ != roomy.coef_).any()  # pieces are added in another order
    np.testing.assert_array_equal(roomy.coef_, estimator(tol=TOL, **parameters).fit(stores).coef_)
    assert shards_left(client) == 0


def test_weighted_classes_in_stores_larger_than_memory(client, whole, tmp_path):
    X, y = sp.hstack([whole[0]] * 3, format="csr"), whole[1]
    classes = np.where(np.arange(12000) % 3 == 0, "other", y)
    weight = np.where(np.arange(12000) % 5 == 0, 0.0, 1.5)
    order, paths = np.argsort(classes, kind="stable"), []
    for k, part in enumerate(np.split(order, [2000, 5000, 9000])):
        paths.append(tmp_path / f"{k}.blocks")
        hinge.BlockStore.build((X[part], classes[part], weight[part]), paths[-1])
    given = {"tol": TOL, "class_weight": "balanced"}
    model = hinge.dask.LogisticRegression(**given, memory_budget="4MB").fit(paths)
    roomy = hinge.dask.LogisticRegression(**given, memory_budget="1GB").fit(paths)
    assert (model.coef_ != roomy.coef_).any()  # pieces are added in another order
    plain = hinge.LogisticRegression(**given, multi_class="ovr")
    check_against(model, plain.fit(X, classes, sample_weight=weight), X, classes)


def test_stores_with_no_room_at_all_are_refused(client, stores):
    with pytest.raises(ValueError, match=r"part \d.*memory_budget must be at least"):
        hinge.dask.LinearSVC(memory_budget=1000).fit(stores)
    with pytest.raises(ValueError, match=r"part \d: C times the weights"):
        hinge.dask.LinearSVC(C=1e308, memory_budget=ON_DISK).fit(stores)
    assert shards_left(client) == 0


def test_files_and_plain_models(client, parts, whole, tmp_path):
    X, _ = whole
    model = hinge.dask.LinearSVC(C=0.5).fit([dask.delayed(part) for part in parts])
    plain = model.plain()
    assert type(plain) is hinge.LinearSVC
    assert plain.C == 0.5
    assert not hasattr(plain, "traffic_")
    np.testing.assert_array_equal(plain.decision_function(X), model.decision_function(X))
    model.save(tmp_path / "model.hinge")
    plain.save(tmp_path / "plain.hinge")
    served, twin = hinge.load(tmp_path / "model.hinge"), hinge.load(tmp_path / "plain.hinge")
    np.testing.assert_array_equal(served.predict(X), model.predict(X))
    np.testing.assert_array_equal(served.decision_function(X), twin.decision_function(X))


def test_bits_depend_on_the_cut_only(parts):
    def coefficients(n_workers):
        cluster = LocalCluster(n_workers=n_workers, processes=False, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster) as client:
            return hinge.dask.LinearSVC().fit([dask.delayed(part) for part in parts], client=client).coef_

    np.testing.assert_array_equal(coefficients(1), coefficients(3))


@pytest.mark.parametrize("n", range(1, 12))
def test_sums_follow_a_tree(n):
    rng = np.random.default_rng(n)
    leaves = {(0, k): (rng.standard_normal(3), rng.standard_normal(1)) for k in range(n)}
    ((expected, highest),) = reduced(leaves, n).values()
    np.testing.assert_allclose(expected, sum(sums for sums, _ in leaves.values()), rtol=1e-13, atol=1e-13)
    assert highest == max(maximum for _, maximum in leaves.values())
    for _ in range(5):
        owner = rng.integers(3, size=n)
        nodes = {}
        for worker in range(3):
            nodes |= reduced({(0, k): leaves[0, k] for k in range(n) if owner[k] == worker}, n)
        ((found, _),) = reduced(nodes, n).values()
        np.testing.assert_array_equal(found, expected)


def refused(parts, text, error=ValueError, estimator=None, **arguments):
    with pytest.raises(error, match=text):
        (estimator or hinge.dask.LinearSVC()).fit(parts, **arguments)


def test_what_cannot_be_fitted(client, parts, whole, tmp_path):
    X, y = whole
    refused([dask.delayed((X, y)), dask.delayed((X[:, :30], y))], "part 1 has 30 columns, part 0 has 40")
    refused([dask.delayed((X, np.full(12000, "yes")))], "one class only")
    bad = X[:5].toarray()
    bad[3, 2] = np.nan
    refused([dask.delayed((X, y)), dask.delayed((bad, y[:5]))], "part 1: .*NaN")
    refused([], "at least one part")
    refused(X, "dask array, a dask data frame, .* or a list", TypeError)
    refused(da.from_array(X.toarray(), chunks=(4000, 20)), "chunks of whole rows", y=y)
    refused(da.from_array(X.toarray(), chunks=(4000, -1)), "got None")
    refused(da.from_array(X.toarray(), chunks=(4000, -1)), "12000 rows, y has 7", y=np.zeros(7))
    refused([dask.delayed((X, y))], "penalty='l1'", estimator=hinge.dask.LinearSVC(penalty="l1"))
    refused([dask.delayed((X, y))], "solver='dual_cd'", estimator=hinge.dask.LinearSVC(solver="dual_cd"))
    refused([tmp_path / "nothing.svm"], "nothing.svm", FileNotFoundError)
    assert shards_left(client) == 0


@pytest.fixture(scope="module")
def table():
    """A table with a category, a number that may be missing, a text, labels and weights."""
    rng = np.random.default_rng(7)
    n = 4000
    city = rng.choice(["Bergen", "Oslo", "Turku", "Vaasa"], n)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 12, n) / 40)
    words = np.array(["good", "bad", "late", "again", "never"])
    picked = rng.integers(5, size=(n, 3))
    score = (city == "Oslo") + 2.0 * (picked == 0).any(axis=1) - (picked == 1).any(axis=1) + np.nan_to_num(age)
    label = np.where(score + rng.standard_normal(n) > 1.5, "yes", "no")
    note = [" ".join(row) for row in words[picked]]
    return pd.DataFrame({"city": city, "age": age, "note": note, "label": label, "w": rng.integers(4, size=n) / 2.0})


COLUMNS = {"city": "categorical", "age": "numeric", "note": "text"}


def written(table, folder):
    """The table in a file of each format, with its rows in their order."""
    pieces = [table[k : k + 1000] for k in range(0, 4000, 1000)]
    paths = [folder / f"rows.{suffix}" for suffix in ("parquet", "csv", "jsonl", "feather")]
    pieces[0].to_parquet(paths[0])
    pieces[1].to_csv(paths[1], index=False)
    pieces[2].to_json(paths[2], orient="records", lines=True)
    pieces[3].reset_index(drop=True).to_feather(paths[3])
    return paths


@pytest.mark.parametrize(("numbering", "weight"), [("hashed", None), ("counted", "w")])
def test_streams_of_tables_are_encoded_by_workers(client, table, tmp_path, numbering, weight):
    paths = written(table, tmp_path)
    encoder = hinge.TableEncoder(COLUMNS, numbering=numbering, n_features=1 << 12).fit(paths)
    frame = dd.from_pandas(table, npartitions=3)
    streams = {
        "paths": encoder.stream(paths, target="label", sample_weight=weight),
        "frame": encoder.stream(frame, target="label", sample_weight=weight),
        "delayed": encoder.stream(
            [dask.delayed(table[k : k + 2000]) for k in (0, 2000)], target="label", sample_weight=weight
        ),
    }
    plain = hinge.LinearSVC(tol=TOL).fit(encoder.stream(table, target="label", sample_weight=weight))
    X = encoder.transform(table)
    for name, stream in streams.items():
        model = hinge.dask.LinearSVC(tol=TOL).fit(stream)
        assert model.traffic_.n_shards == {"paths": 4, "frame": 3, "delayed": 2}[name]
        check_against(model, plain, X, table.label)
        # The objective is 1-strongly convex in the weights: they are no further from its optimum than the gap allows.
        proofs = (model.certificate_, plain.certificate_)
        reach = sum(np.sqrt(2 * (proof.primal - proof.dual))[0] for proof in proofs)
        assert np.linalg.norm(model.coef_ - plain.coef_) <= reach
    lazy = model.predict(encoder.transform(frame))
    assert isinstance(lazy, da.Array)
    assert lazy.numblocks == (3,)
    np.testing.assert_array_equal(lazy.compute(), model.predict(X))


def before_2700(piece):
    """What is left of a partition."""
    return piece[piece.index < 2700]


def test_frames_as_in_scikit_learn(client, table):
    frame = dd.from_pandas(table, npartitions=3)
    encoder = hinge.TableEncoder(COLUMNS, n_features=1 << 12)
    pipeline = make_pipeline(encoder, hinge.dask.LogisticRegression(tol=TOL)).fit(frame, frame["label"])
    plain = make_pipeline(clone(encoder), hinge.LogisticRegression(tol=TOL)).fit(table, table["label"])
    check_against(pipeline[-1], plain[-1], pipeline[0].transform(table), table.label)
    lazy = pipeline.predict_proba(frame)
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), pipeline[-1].plain().predict_proba(pipeline[0].transform(table)))

    numbers = table[["age", "w"]].fillna(0.0)
    frame = dd.from_pandas(table, npartitions=5)
    lazy_numbers = dd.from_pandas(numbers, npartitions=5)
    # A partition that a filter has left without rows is as good as none.
    kept, labels = (lazy.map_partitions(before_2700) for lazy in (lazy_numbers, frame["label"]))
    model = hinge.dask.LinearSVC(tol=TOL).fit(kept, labels)
    twin = hinge.LinearSVC(tol=TOL).fit(numbers[:2700], table.label[:2700])
    check_against(model, twin, numbers, table.label)
    assert model.feature_names_in_.tolist() == ["age", "w"]
    np.testing.assert_array_equal(model.decision_function(kept).compute(), model.decision_function(numbers[:2700]))


def test_streams_have_the_same_bits_on_any_workers(table):
    encoder = hinge.TableEncoder(COLUMNS, numbering="counted").fit(table)

    def coefficients(n_workers):
        cluster = LocalCluster(n_workers=n_workers, processes=False, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster) as client:
            frame = dd.from_pandas(table, npartitions=5)
            return hinge.dask.LinearSVC().fit(encoder.stream(frame, target="label"), client=client).coef_

    np.testing.assert_array_equal(coefficients(1), coefficients(3))


def test_warnings_of_workers_are_heard(client, table):
    frame = dd.from_pandas(table, npartitions=2)
    encoder = hinge.TableEncoder(COLUMNS, on_change="warn").fit(frame)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = hinge.dask.LinearSVC().fit(encoder.stream(frame.drop(columns=["age"]), target="label"))
        end = time.monotonic() + 20
        while not any("no columns ['age']" in str(one.message) for one in heard):
            assert time.monotonic() < end
            time.sleep(0.05)
    assert model.certificate_.converged


def test_tables_that_cannot_be_fitted(client, table, tmp_path):
    paths = written(table, tmp_path)
    frame = dd.from_pandas(table, npartitions=2)
    encoder = hinge.TableEncoder(COLUMNS).fit(frame)
    with pytest.raises(NotFittedError):
        hinge.TableEncoder(COLUMNS, numbering="counted").stream(frame, target="label")
    refused(encoder.stream(frame), "target")
    refused(encoder.stream(frame, target="label"), "a stream: its table has", y=frame["label"])
    refused(encoder.stream(table, target="label"), "data frame of dask, a path", TypeError)
    refused(encoder.stream(frame, target="nothing"), r"partition \d of the table: .*nothing")
    other = tmp_path / "other.parquet"
    table.assign(age="old").to_parquet(other)
    refused(encoder.stream([paths[0], other], target="label"), "other.parquet: column 'age'")
    refused(encoder.stream([paths[0], "gone.csv"], target="label"), "gone.csv", FileNotFoundError)
    refused(paths, "rows.parquet is a table", y=None)
    refused(frame, "column 'city' holds", y=frame["label"])
    refused(frame[["age"]].fillna(0), "2 partitions, y has 3", y=dd.from_pandas(table, npartitions=3)["label"])
    refused(frame[["age"]].fillna(0), "must be a dask series", TypeError, y=table.label)
    refused(frame[["age"]], r"part \d: .*NaN", y=frame["label"])
    assert shards_left(client) == 0


def kill_one(client, address=None):
    """Kill a worker as a machine without memory does."""
    pids = client.run(os.getpid, workers=None if address is None else [address])
    os.kill(next(iter(pids.values())), signal.SIGKILL)


def leave_another(client):
    """Wait for the second worker, or start a third one: dask sometimes does not start a killed worker again, and a fit
    waits for a cluster without any, which may be growing."""
    try:
        client.wait_for_workers(2, timeout=20)
    except TimeoutError:
        client.cluster.scale(3)
        client.wait_for_workers(2, timeout=60)


class KillsInRound:
    """The estimator's exchange kills a worker before some rounds."""

    def __init__(self, monkeypatch, client, rounds):
        from hinge._dask_exchange import Shards

        ask = Shards.ask

        def killing(shards, request, vectors):
            if shards.traffic.rounds in rounds:
                address = shards._seats[shards.traffic.rounds % len(shards._seats)].address
                leave_another(client)
                kill_one(client, address)
            return ask(shards, request, vectors)

        monkeypatch.setattr(Shards, "ask", killing)


@pytest.mark.parametrize("parameters", [{}, {"loss": "hinge"}])
def test_killed_workers_cost_time_only(client, lazy, monkeypatch, parameters):
    quiet = hinge.dask.LinearSVC(tol=1e-7, **parameters).fit(lazy, client=client)
    KillsInRound(monkeypatch, client, {3, quiet.traffic_.rounds // 2})
    lossy = hinge.dask.LinearSVC(tol=1e-7, **parameters).fit(lazy, client=client)
    assert lossy.traffic_.n_reloaded >= 2
    assert lossy.certificate_.converged
    np.testing.assert_array_equal(lossy.coef_, quiet.coef_)
    np.testing.assert_array_equal(lossy.intercept_, quiet.intercept_)
    np.testing.assert_array_equal(lossy.certificate_.dual, quiet.certificate_.dual)
    np.testing.assert_array_equal(lossy.certificate_.primal, quiet.certificate_.primal)
    assert lossy.traffic_.rounds == quiet.traffic_.rounds
    assert shards_left(client) == 0


def test_killed_workers_of_stores_on_the_disk_cost_time_only(client, stores, monkeypatch):
    quiet = hinge.dask.LinearSVC(tol=1e-7, memory_budget=ON_DISK).fit(stores)
    KillsInRound(monkeypatch, client, {quiet.traffic_.rounds // 2})
    lossy = hinge.dask.LinearSVC(tol=1e-7, memory_budget=ON_DISK).fit(stores)
    assert lossy.traffic_.n_reloaded >= 1
    np.testing.assert_array_equal(lossy.coef_, quiet.coef_)
    np.testing.assert_array_equal(lossy.certificate_.dual, quiet.certificate_.dual)
    assert shards_left(client) == 0


@pytest.mark.parametrize("parameters", [{}, {"loss": "hinge"}])
def test_checkpoints_go_on_to_the_same_bits(client, parts, monkeypatch, tmp_path, parameters):
    from hinge._dask_exchange import Shards

    data = [dask.delayed(part) for part in parts]
    quiet = hinge.dask.LinearSVC(**parameters).fit(data)
    model = hinge.dask.LinearSVC(checkpoint=tmp_path / "fit", **parameters)
    ask = Shards.ask

    def ending(shards, request, vectors):
        if shards.traffic.rounds == quiet.traffic_.rounds // 2:
            raise ConnectionError("the client is gone")
        return ask(shards, request, vectors)

    monkeypatch.setattr(Shards, "ask", ending)
    with pytest.raises(ConnectionError):
        model.fit(data)
    monkeypatch.setattr(Shards, "ask", ask)
    resumed = model.fit(data)
    assert resumed.traffic_.rounds < 0.6 * quiet.traffic_.rounds + 3
    np.testing.assert_array_equal(resumed.coef_, quiet.coef_)
    np.testing.assert_array_equal(resumed.certificate_.dual, quiet.certificate_.dual)
    with pytest.raises(ValueError, match="it belongs to another fit: X differs"):
        model.fit(data[1:] + data[:1])
    with pytest.raises(ValueError, match="y, C and weights differs"):
        clone(model).set_params(C=0.5).fit(data)
    assert shards_left(client) == 0


WIDE = 45_000
"""Columns from which those that are proportional in all rows travel as one."""


def wide_rows(seed):
    """A text: 400 words that many rows have, half of them twice another one, and 100 words of each row alone."""
    time.sleep(0.05)
    rng, n = np.random.default_rng(seed), 100
    words = rng.poisson(0.05, (n, 200)) * rng.integers(1, 4, (n, 200))
    own = sp.csr_matrix(
        (rng.random(100 * n), 400 + 100 * n * seed + np.arange(100 * n), np.arange(0, 100 * n + 1, 100)),
        (n, WIDE),
    )
    X = sp.hstack([words, 2 * words, sp.csr_matrix((n, WIDE - 400))], format="csr") + own
    return X.astype(np.float32), np.where(words[:, :30].sum(axis=1) + rng.standard_normal(n) > 3, "yes", "no")


def send_sparse_vectors(most):
    """Have this process send the columns of its shards only, up to such a share of all."""
    hinge._dask_columns.MOST = most
    # As in a process that has begun anew.
    for shard in hinge._dask_shards._SHARDS.values():
        shard._columns.clear()


@given(
    lanes=st.lists(st.integers(1, 8), max_size=4),
    n=st.integers(1, 9),
    data=st.data(),
)
def test_sparse_vectors_are_whole_again(lanes, n, data):
    columns = SparseColumns(n, np.array(sorted(data.draw(st.sets(st.integers(0, n - 1)))), dtype=np.int64))
    message, expected, vectors = [1.5], [1.5], []
    for count in lanes:
        vectors.append((len(message), count))
        vector = np.arange(1.0, n * count + 1).reshape(n, count)
        kept = np.zeros_like(vector)
        kept[columns.columns] = vector[columns.columns]
        message, expected = [*message, *vector.ravel(), -7.0], [*expected, *kept.ravel(), -7.0]
    sparse = columns.sparse(np.array(message), vectors)
    assert len(sparse) == len(message) - (n - len(columns.columns)) * sum(lanes)
    np.testing.assert_array_equal(columns.whole(sparse, vectors), expected)
    assert not columns_of([_Columns(3, [0, 2]), _Columns(3, [1, 2])]).are_few()
    few = columns_of([_Columns(9, [0, 2]), _Columns(9, [1, 2])])
    assert few.are_few()
    np.testing.assert_array_equal(few.columns, [0, 1, 2])
    assert columns_of([_Columns(9, [0]), _Columns(None, None)]) is None


class _Columns:
    def __init__(self, n, columns):
        self._found = None if n is None else (n, np.array(columns))

    def columns(self):
        return self._found


def test_workers_send_the_columns_that_they_have_named(client, monkeypatch):
    """Whatever a process would choose now: the client knows what it has chosen, or the one before it."""
    from hinge._dask_exchange import Shards

    ask = Shards.ask

    def ask_after_a_change(shards, request, vectors):
        if shards.traffic.rounds == 5:
            client.run(send_sparse_vectors, 0.0)
        return ask(shards, request, vectors)

    data = [dask.delayed(wide_rows)(seed) for seed in range(4)]
    client.run(send_sparse_vectors, 0.9)
    model = hinge.dask.LinearSVC(tol=1e-3, C=0.1).fit(data, client=client)
    monkeypatch.setattr(Shards, "ask", ask_after_a_change)
    changed = hinge.dask.LinearSVC(tol=1e-3, C=0.1).fit(data, client=client)
    client.run(send_sparse_vectors, MOST)
    np.testing.assert_array_equal(changed.coef_, model.coef_)
    assert changed.traffic_.bytes_sent < 1.01 * model.traffic_.bytes_sent


@pytest.mark.parametrize("parameters", [{}, {"loss": "hinge"}])
def test_columns_that_are_proportional_travel_as_one(client, monkeypatch, tmp_path, parameters):
    from hinge._dask_exchange import Shards

    parameters = {"tol": 1e-3, "C": 0.1, **parameters}
    data = [dask.delayed(wide_rows)(seed) for seed in range(4)]
    X, y = zip(*(wide_rows(seed) for seed in range(4)), strict=True)
    X, y = sp.vstack(X, format="csr"), np.concatenate(y)
    model = hinge.dask.LinearSVC(**parameters).fit(data, client=client)
    check_against(model, hinge.LinearSVC(**parameters).fit(X, y), X, y, 1e-3)
    margins = np.where(y == "yes", 1, -1) * (X @ model.coef_.ravel() + model.intercept_)
    loss = np.maximum(0, 1 - margins) ** (1 if "loss" in parameters else 2)
    assert model.certificate_.primal == pytest.approx(0.5 * (model.coef_**2).sum() + 0.1 * loss.sum(), rel=1e-6)
    traffic = model.traffic_
    assert traffic.bytes_sent + traffic.bytes_received < 0.2 * traffic.rounds * traffic.n_workers * WIDE * 16

    # Each worker has two thirds of the columns that travel. One that begins anew would send whole vectors.
    client.run(send_sparse_vectors, 0.9)
    sparse = hinge.dask.LinearSVC(**parameters).fit(data, client=client)
    assert sparse.traffic_.bytes_sent < 0.9 * traffic.bytes_sent
    assert sparse.traffic_.rounds == traffic.rounds

    ask = Shards.ask
    KillsInRound(monkeypatch, client, {3, traffic.rounds // 2})
    lossy = hinge.dask.LinearSVC(checkpoint=tmp_path / "fit", **parameters).fit(data, client=client)
    assert lossy.traffic_.n_reloaded >= 2
    monkeypatch.setattr(Shards, "ask", ask)
    resumed = clone(lossy).fit(data, client=client)
    assert resumed.traffic_.rounds < 5
    client.run(send_sparse_vectors, MOST)
    for other in (sparse, lossy, resumed):
        np.testing.assert_array_equal(other.coef_, model.coef_)
        np.testing.assert_array_equal(other.certificate_.dual, model.certificate_.dual)
    assert shards_left(client) == 0


def test_data_that_were_in_one_memory_only(client, monkeypatch, parts):
    scattered = client.scatter(parts[:2])
    KillsInRound(monkeypatch, client, {4})
    refused(scattered, r"shard \d .*only in the memory of a worker", hinge.dask.LostShardError)
    assert shards_left(client) == 0


def test_two_fits_at_once(client, lazy, whole):
    found = {}

    def fit(C):
        found[C] = hinge.dask.LinearSVC(C=C, tol=TOL).fit(lazy, client=client)

    threads = [threading.Thread(target=fit, args=(C,)) for C in (0.1, 10.0)]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert not any(thread.is_alive() for thread in threads)
    assert shards_left(client) == 0
    for C, model in found.items():
        check_against(model, hinge.LinearSVC(C=C, tol=TOL).fit(*whole), *whole)


@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_clients_that_end_leave_nothing_behind(client, tmp_path, how):
    with endless(client, tmp_path, "", "hinge.dask.LogisticRegression(C=1e6, tol=1e-9).fit(parts)") as process:
        process.send_signal(signal.SIGINT if how == "interrupted" else signal.SIGKILL)
        if how == "interrupted":
            assert process.stdout.readline() == "interrupted\n"
        assert shards_left(client) == 0
