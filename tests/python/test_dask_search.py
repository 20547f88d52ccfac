"""Searches for C on a cluster of processes on this machine, against searches in memory; killed workers, Ctrl-C."""

import os
import signal
import time

import dask
import dask.array as da
import hinge
import hinge.dask
import numpy as np
import pytest
import scipy.sparse as sp
from clusters import shards_left
from distributed import Client, LocalCluster
from endless import endless
from hinge._dask_exchange import Shards
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold

pytestmark = [
    pytest.mark.timeout(180),
    # Of what dask and its event loop leave to the garbage collector where processes are killed.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

N = 900


def rows(seed, n_classes=2):
    """Sparse rows of classes that hyperplanes separate badly."""
    rng = np.random.default_rng(seed)
    X = sp.random(N, 30, density=0.3, random_state=rng, format="csr", data_rvs=rng.standard_normal)
    scores = X[:, :n_classes].toarray() + 0.5 * rng.standard_normal((N, n_classes))
    return X, np.array(["no", "yes", "why"])[scores.argmax(axis=1)]


def slow_rows(seed):
    """The same, from a source that takes its time."""
    time.sleep(0.05)
    return rows(seed)


def whole(n_classes=2):
    pieces = [rows(seed, n_classes) for seed in range(3)]
    return sp.vstack([X for X, _ in pieces], format="csr"), np.concatenate([y for _, y in pieces])


def parts(n_classes=2):
    return [dask.delayed(rows)(seed, n_classes) for seed in range(3)]


def check_table(found, plain):
    """The table of the plain search by Newton: its steps, up to sums in another order."""
    np.testing.assert_array_equal(found.Cs, plain.Cs)
    assert found.C == plain.C
    assert (found.scorer, found.choose, found.stopped_by) == (plain.scorer, plain.choose, plain.stopped_by)
    assert sorted(found.all_scores) == sorted(plain.all_scores)
    for name, scores in found.all_scores.items():
        np.testing.assert_allclose(scores, plain.all_scores[name], atol=3e-3)
    np.testing.assert_allclose(found.objective, plain.objective, rtol=1e-4)
    np.testing.assert_array_equal(found.converged, plain.converged)
    assert found.repeats == plain.repeats


def same_bits(one, other):
    np.testing.assert_array_equal(one.Cs, other.Cs)
    for name, scores in one.all_scores.items():
        np.testing.assert_array_equal(scores, other.all_scores[name])
    np.testing.assert_array_equal(one.objective, other.objective)
    np.testing.assert_array_equal(one.passes, other.passes)
    assert one.C == other.C


GROUPS = np.arange(3 * N) // 60
WEIGHTS = np.arange(3 * N) % 5 / 2.0

SEARCHES = [
    {},
    {"loss": "squared_hinge", "refine": 2, "choose": "one_se", "class_weight": "balanced"},
    {"loss": "modified_huber", "fit_intercept": False, "Cs": [0.01, 0.1, 1.0], "keep_decisions": True},
    {"scoring": ["roc_auc", "neg_log_loss"], "choose_by": "neg_log_loss", "cv": 3, "intercept_scaling": 2.0},
    {"cv": GroupKFold(4), "groups": GROUPS, "C_min": 0.125, "C_max": 8.0},
    {"cv": 4, "groups": GROUPS, "sample_weight": WEIGHTS, "loss": "squared_hinge"},
    {"cv": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), "max_drop": 0.05},
]


@pytest.mark.parametrize("parameters", SEARCHES)
def test_searches_are_those_of_one_machine(client, parameters):
    X, y = whole()
    given = {"random_state": 3, "C_max": 8.0, **parameters}
    plain = hinge.select_C(X, y, solver="newton", **given)
    weight = given.pop("sample_weight", None)
    if weight is None:
        found = hinge.dask.select_C(parts(), client=client, **given)
    else:
        X = da.from_array(X.toarray(), chunks=(1000, -1))
        groups = da.from_array(given.pop("groups"), chunks=700)
        found = hinge.dask.select_C(X, da.from_array(y, chunks=500), sample_weight=weight, groups=groups, **given)
    check_table(found, plain)
    if "keep_decisions" in given:
        np.testing.assert_allclose(found.decisions, plain.decisions, atol=0.05)
    assert found.traffic.n_shards == 3
    assert 0 < found.traffic.rounds < 40 * len(found.Cs)
    assert shards_left(client) == 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_searches_of_stores_larger_than_the_memory_of_the_cluster(client, tmp_path, n_classes):
    X, y = whole(n_classes)
    paths = []
    for k in range(3):
        paths.append(tmp_path / f"{k}.blocks")
        hinge.BlockStore.build((X[k * N : (k + 1) * N], y[k * N : (k + 1) * N]), paths[-1])
    given = {"Cs": [0.1, 1.0, 4.0], "random_state": 3, "keep_decisions": True}
    plain = hinge.select_C(X, y, solver="newton", multi_class="ovr", **given)
    found = hinge.dask.select_C(paths, memory_budget=650_000, **given)
    check_table(found, plain)
    np.testing.assert_allclose(found.decisions, plain.decisions, atol=0.05)
    roomy = hinge.dask.select_C(paths, **given)
    assert (found.decisions != roomy.decisions).any()  # pieces are added in another order
    assert shards_left(client) == 0


def test_classes_take_turns(client):
    X, y = whole(3)
    plain = hinge.select_C(X, y, solver="newton", multi_class="ovr", Cs=[0.1, 1.0, 4.0])
    found = hinge.dask.select_C(parts(3), Cs=[0.1, 1.0, 4.0])  # 15 lanes, in two groups
    check_table(found, plain)
    assert found.objective.shape == (3, 5, 3)


@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [
        (hinge.dask.LinearSVCCV, {"probability": "sigmoid", "threshold": "f1_macro"}),
        (hinge.dask.LogisticRegressionCV, {"scoring": "roc_auc", "choose": "one_se"}),
    ],
)
def test_estimators_choose_and_fit_again(client, estimator, parameters):
    X, y = whole()
    model = estimator(C_max=8.0, cv=3, tol=1e-6, **parameters).fit(parts(), client=client)
    plain = estimator._plain(C_max=8.0, cv=3, tol=1e-6, solver="newton", **parameters).fit(X, y)
    check_table(model.search_, plain.search_)
    assert model.C_ == plain.C_
    ours, theirs = model.certificate_, plain.certificate_
    assert ours.converged
    assert (ours.relative_gap <= 1e-6).all()
    assert (ours.primal >= theirs.dual * (1 - 1e-12)).all()
    assert (theirs.primal >= ours.dual * (1 - 1e-12)).all()
    np.testing.assert_array_equal(model.Cs_, plain.Cs_)
    assert model.scores_.keys() == plain.scores_.keys()
    assert model.n_features_in_ == 30
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=0.02)
    assert (model.predict(X) == plain.predict(X)).mean() > 0.99
    dense = X.toarray()
    lazy = da.from_array(dense, chunks=(1000, -1))
    for name in ("predict", "predict_proba"):
        values = getattr(model, name)(lazy)
        assert isinstance(values, da.Array)
        np.testing.assert_array_equal(values.compute(), getattr(model, name)(dense))
    assert type(model.plain()) is estimator._plain
    assert model.plain().search_ is model.search_
    assert model.traffic_.rounds > 0
    # The fit at the chosen C is that of the estimator without a search, but for the product of C and the weights.
    twin = {"loss": "squared_hinge"} if hasattr(model, "loss") else {}
    one = getattr(hinge.dask, estimator.__name__.removesuffix("CV"))(C=model.C_, tol=1e-6, **twin).fit(parts())
    np.testing.assert_array_equal(one.coef_, model.coef_)
    np.testing.assert_array_equal(one.certificate_.dual, ours.dual)


def test_the_default_of_one_machine_chooses_the_same(client):
    """Another solver, whose fits end by another rule."""
    X, y = whole()
    Cs = [0.01, 0.1, 1.0]
    plain, found = hinge.select_C(X, y, Cs=Cs, solver="dual_cd"), hinge.dask.select_C(parts(), Cs=Cs)
    np.testing.assert_allclose(found.mean, plain.mean, atol=0.01)
    assert found.C == plain.C


def test_bits_depend_on_the_cut_only():
    def fitted(n_workers):
        cluster = LocalCluster(n_workers=n_workers, processes=False, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster) as client:
            return hinge.dask.LinearSVCCV(cv=3, C_max=8.0, refine=1).fit(parts(3), client=client)

    one, three = fitted(1), fitted(3)
    same_bits(one.search_, three.search_)
    np.testing.assert_array_equal(one.coef_, three.coef_)


def kill_in_rounds(monkeypatch, client, rounds):
    """Kill a worker before some rounds, as a machine without memory does."""
    begin = Shards._begin

    def killing(shards, request, vectors, **more):
        if shards.traffic.rounds in rounds:
            address = shards._seats[shards.traffic.rounds % len(shards._seats)].address
            pids = client.run(os.getpid, workers=[address])
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        return begin(shards, request, vectors, **more)

    monkeypatch.setattr(Shards, "_begin", killing)


def test_killed_workers_cost_time_only(client, monkeypatch):
    lazy = [dask.delayed(slow_rows)(seed) for seed in range(3)]
    estimator = hinge.dask.LogisticRegressionCV(cv=3, C_max=16.0, refine=1)
    quiet = estimator.fit(lazy, client=client)
    search, bits = quiet.search_, quiet.coef_
    n_rounds = quiet.traffic_.rounds
    kill_in_rounds(monkeypatch, client, {5, n_rounds // 2, n_rounds - 3})
    lossy = estimator.fit(lazy, client=client)
    assert lossy.traffic_.n_reloaded >= 3
    same_bits(search, lossy.search_)
    np.testing.assert_array_equal(bits, lossy.coef_)
    assert lossy.traffic_.rounds == n_rounds
    assert shards_left(client) == 0


def test_journals_go_on_to_the_same_bits(client, monkeypatch, tmp_path):
    given = {"cv": 3, "C_max": 16.0, "refine": 1, "resume": tmp_path / "journal", "client": client}
    quiet = hinge.dask.select_C(parts(), **given | {"resume": None})
    begin = Shards._begin

    def ending(shards, request, vectors, **more):
        if shards.traffic.rounds == quiet.traffic.rounds // 2:
            raise ConnectionError("the cluster is gone")
        return begin(shards, request, vectors, **more)

    monkeypatch.setattr(Shards, "_begin", ending)
    with pytest.raises(ConnectionError):
        hinge.dask.select_C(parts(), **given)
    monkeypatch.setattr(Shards, "_begin", begin)
    assert shards_left(client) == 0
    resumed = hinge.dask.select_C(parts(), **given)
    assert 0 < resumed.replayed.sum() < len(resumed.Cs)
    same_bits(quiet, resumed)
    again = hinge.dask.select_C(parts(), **given)
    assert again.replayed.all()
    assert again.traffic.rounds < 3
    with pytest.raises(ValueError, match="X differs"):
        hinge.dask.select_C([dask.delayed(rows)(seed) for seed in (0, 1, 3)], **given)
    X, y = whole()
    other = [dask.delayed((X[a:b], y[a:b])) for a, b in ((0, 800), (800, 2700))]
    with pytest.raises(ValueError, match=r"X differs|cut into shards"):
        hinge.dask.select_C(other, **given)


def test_time_limits_leave_what_is_finished(client):
    slow = [dask.delayed(slow_rows)(seed) for seed in range(3)]
    with pytest.raises(TimeoutError):
        hinge.dask.select_C(slow, time_limit=1e-6)
    assert shards_left(client) == 0


def refused(text, parameters, estimator=None, data=None):
    if estimator is not None:
        with pytest.raises(ValueError, match=text):
            estimator(**parameters).fit(data or parts())
    else:
        with pytest.raises((ValueError, TypeError), match=text):
            hinge.dask.select_C(data or parts(), **parameters)


def test_what_a_cluster_cannot_search(client):
    refused("loss='hinge' has no search", {"loss": "hinge"})
    refused("penalty='l1' is for fits on one machine", {"penalty": "l1"})
    refused("solver='dual_cd' is for fits", {"solver": "dual_cd"})
    refused("multi_class='crammer_singer'", {"multi_class": "crammer_singer", "loss": "hinge"})
    refused("multi_class='multinomial'", {"multi_class": "multinomial"})
    refused("degree=2", {"degree": 2})
    refused("keep_coefs=True", {"keep_coefs": True})
    refused("no parameter 'folds'", {"folds": 3})
    refused("scoring 'nonsense'", {"scoring": "nonsense"})
    refused("loss='hinge' has no search", {"loss": "hinge"}, hinge.dask.LinearSVCCV)
    refused("use_legacy_attributes=True", {"use_legacy_attributes": True}, hinge.dask.LogisticRegressionCV)
    refused("refit=False", {"refit": False}, hinge.dask.LogisticRegressionCV)
    refused("groups has 5 entries", {"groups": np.arange(5)})
    X, y = rows(0)
    refused("one class only", {}, data=[dask.delayed((X, np.full(N, "yes")))])
    refused("no row of class", {"cv": [(np.flatnonzero(y == "no"), np.arange(5))]}, data=[dask.delayed((X, y))])
    assert shards_left(client) == 0


def test_ctrl_c_ends_a_search_within_a_second_and_the_cluster_goes_on(client, tmp_path):
    before = "hinge.dask.select_C(parts, Cs=[1e-9])"
    loop = "hinge.dask.LogisticRegressionCV(select_tol=1e-9, Cs=np.logspace(-3, 9, 40)).fit(parts)"
    after = "print(hinge.dask.select_C(parts, Cs=[1e-9]).C, flush=True)"
    with endless(client, tmp_path, before, loop, after) as process:
        time.sleep(1.0)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        seconds = time.monotonic() - start
        assert seconds < 1.0 + os.getloadavg()[0]  # of a second on an idle machine
        assert process.stdout.readline() == "1e-09\n"
        assert shards_left(client) == 0
