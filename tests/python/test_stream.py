"""``partial_fit``: streams in bounded memory, and what scikit-learn's callers expect of them."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import LinearSVC, LinearSVCCV, LogisticRegression, PegasosClassifier
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from test_blocks import random_rows

SMALL = 1_500_000


def shuffled(n=4000, d=200, classes=2, **given):
    X, y = random_rows(n=n, d=d, classes=classes, **given)
    order = np.random.default_rng(5).permutation(n)
    return X[order], y[order]


def pieces(X, y, size):
    for k in range(0, len(y), size):
        yield X[k : k + size], y[k : k + size]


def learned(model, X, y, size=100, **given):
    for Z, z in pieces(X, y, size):
        model.partial_fit(Z, z, classes=np.unique(y), **given)
    return model


def primal(model, X, y, loss):
    margin = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    value = {"hinge": np.maximum(0, 1 - margin), "squared_hinge": np.maximum(0, 1 - margin) ** 2}[loss]
    return 0.5 * (model.coef_**2).sum() + model.C * value.sum()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_stream_that_fits_comes_near_the_optimum(loss):
    X, y = shuffled()
    model = learned(LinearSVC(loss=loss, C=0.1, fit_intercept=False), X, y)
    exact = LinearSVC(loss=loss, C=0.1, fit_intercept=False, tol=1e-6).fit(X, y).certificate_.primal[0]
    assert exact * (1 - 1e-6) <= primal(model, X, y, loss) <= 1.3 * exact
    assert 0.7 * exact < model.stream_.dual[0] <= exact
    assert (model.stream_.n_seen, model.stream_.n_cached) == (4000, 4000)
    assert (model.coef_.shape, model.intercept_.shape, model.n_features_in_) == ((1, 200), (1,), 200)
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize("classes", [2, 3])
def test_a_bounded_stream_forgets_rows_and_predicts_well(classes):
    X, y = shuffled(n=20_000, classes=classes)
    train, test = slice(0, 16_000), slice(16_000, None)
    for model in (LinearSVC(loss="hinge", C=0.1), LogisticRegression(C=0.1)):
        exact = clone(model).fit(X[train], y[train]).score(X[test], y[test])
        learned(model.set_params(memory_budget=SMALL), X[train], y[train], 500)
        assert model.stream_.n_seen == 16_000
        assert model.stream_.n_cached < 3000
        assert model.score(X[test], y[test]) > exact - 0.03


def test_the_model_is_usable_at_any_time_and_improves():
    X, y = shuffled()
    model = LinearSVC()
    scores = []
    for Z, z in pieces(X, y, 400):
        scores.append(model.partial_fit(Z, z, classes=[0, 1]).score(X, y))
    assert scores[0] > 0.5
    assert scores[-1] > scores[0]


@given(sizes=st.lists(st.integers(0, 60), min_size=1, max_size=6), seed=st.integers(0, 9))
def test_any_pieces_are_taken(sizes, seed):
    X, y = shuffled(n=400, d=20, seed=seed)
    model = LinearSVC(memory_budget=SMALL)
    at = 0
    for size in sizes:
        rows = slice(at, at + max(size, 1))
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
        at += max(size, 1)
    assert model.stream_.n_seen == at
    assert np.isfinite(model.coef_).all()


def test_sparse_dense_and_unsorted_rows_are_the_same():
    X, y = shuffled(n=500, d=30, dtype=np.float64)
    backwards = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        backwards.indices[row] = X.indices[row][::-1]
        backwards.data[row] = X.data[row][::-1]
    models = [learned(LinearSVC(), Z, y) for Z in (X, X.toarray(), backwards)]
    np.testing.assert_array_equal(models[0].coef_, models[2].coef_)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-12)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_pickled_stream_goes_on_to_the_same_bits(jobs):
    X, y = shuffled(classes=3)
    weight = 1.0 + np.arange(len(y)) % 2
    given = {"memory_budget": 2_000_000, "C": 0.3, "class_weight": {0: 2.0, 1: 1.0, 2: 1.0}}
    whole = LinearSVC(**given, n_jobs=1)
    halves = LinearSVC(**given, n_jobs=jobs)
    for k in range(0, 4000, 400):
        rows = slice(k, k + 400)
        whole.partial_fit(X[rows], y[rows], [0, 1, 2], weight[rows])
        halves = pickle.loads(pickle.dumps(halves.partial_fit(X[rows], y[rows], [0, 1, 2], weight[rows])))
    np.testing.assert_array_equal(whole.coef_, halves.coef_)
    np.testing.assert_array_equal(whole.intercept_, halves.intercept_)


def test_a_fit_begins_anew():
    X, y = shuffled(n=300, d=20)
    model = learned(LinearSVC(), X, y)
    model.fit(X, y)
    assert not hasattr(model, "stream_")
    assert model.certificate_.converged
    np.testing.assert_array_equal(model.coef_, LinearSVC().fit(X, y).coef_)


def test_a_stream_goes_on_from_a_fit():
    X, y = shuffled(n=2000, d=50, classes=3)
    for fit_intercept in (True, False):
        model = LinearSVC(C=0.1, fit_intercept=fit_intercept).fit(X, y)
        fitted = model.score(X, y)
        before = model.coef_
        model.partial_fit(X[:20], y[:20])
        assert np.isnan(model.stream_.dual).all()
        assert 0 < abs(model.coef_ - before).max() < abs(before).max()
        assert model.score(X, y) > fitted - 0.05
        with pytest.raises(ValueError, match="those of the model"):
            clone(model).fit(X, y).partial_fit(X, y, classes=[0, 1])


def test_labels_of_any_type():
    X, y = shuffled(n=300, d=20)
    labels = np.array(["no", "yes"])[y]
    model = learned(LinearSVC(), X, labels)
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(X)) == {"no", "yes"}
    plain = learned(LinearSVC(), X, y)
    np.testing.assert_array_equal(plain.coef_, model.coef_)


def test_refusals():
    X, y = shuffled(n=100, d=20, dtype=np.float32)
    begun = LinearSVC().partial_fit(X, y, classes=[0, 1])
    for call, match in [
        (lambda: LinearSVC().partial_fit(X, y), "classes must be passed on the first call"),
        (lambda: LinearSVC().partial_fit(X, y, classes=[0]), "at least 2 labels"),
        (lambda: LinearSVC().partial_fit(X, y, classes=[0, 2]), "label 1 in row"),
        (lambda: clone(begun).set_params(class_weight="balanced").partial_fit(X, y, [0, 1]), "needs all labels"),
        (lambda: LinearSVC(memory_budget=500).partial_fit(X, y, [0, 1]), "memory_budget must be at least"),
        (lambda: LinearSVC(checkpoint="x").partial_fit(X, y, [0, 1]), "checkpoint must be None"),
        (lambda: LinearSVC(solver="newton").partial_fit(X, y, [0, 1]), "solver"),
        (lambda: begun.partial_fit(X, y, classes=[0, 1, 2]), "those of the model"),
        (lambda: begun.partial_fit(X[:, :10], y), "10 features"),
        (lambda: begun.partial_fit(X, y, sample_weight=-np.ones(100)), "weights must be at least 0"),
        (lambda: begun.partial_fit(X.astype(np.float64), y), "float64 values, the stream began with float32"),
    ]:
        with pytest.raises(ValueError, match=match):
            call()
    assert begun.stream_.n_seen == 100
    with pytest.raises(ValueError, match=r"C is 2\.0, the stream began with 1\.0"):
        begun.set_params(C=2.0).partial_fit(X, y)
    for other in (
        LinearSVC(penalty="l1"),
        LinearSVC(positive=True),
        LogisticRegression(l1_ratio=0.5),
        begun.set_params(C=1.0, bounds=(np.zeros(20), 1.0)),
    ):
        assert not hasattr(other, "partial_fit")
        with pytest.raises(AttributeError, match="need all rows at once"):
            other.partial_fit(X, y, [0, 1])
    assert not hasattr(LinearSVCCV(), "partial_fit")
    with pytest.raises(AttributeError, match=r"LinearSVCCV has no attribute 'partial_fit': a search for C"):
        LinearSVCCV().partial_fit(X, y)


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression(), PegasosClassifier(lam=0.1)])
def test_a_piece_without_weight_changes_nothing(model):
    X, y = shuffled(n=200, d=20)
    nothing, model = np.zeros(100), clone(model)
    model.partial_fit(X[:100], y[:100], classes=[0, 1], sample_weight=nothing)
    assert not model.predict(X).any()
    before = clone(model).partial_fit(X, y, classes=[0, 1])
    begun = pickle.loads(pickle.dumps(before)).partial_fit(X[:100], y[:100], sample_weight=nothing)
    for name in ("coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(begun, name), getattr(before, name))
    if hasattr(model, "stream_"):
        assert (model.stream_.n_seen, model.stream_.n_cached) == (0, 0)
        assert begun.stream_.n_seen == 200
        np.testing.assert_array_equal(begun.stream_.dual, before.stream_.dual)
    else:
        assert begun.t_ == before.t_
    assert model.partial_fit(X, y).coef_.any()


TURNS = """
import pickle, threading
import numpy as np
from hinge import LinearSVC
X = np.random.default_rng(0).normal(size=(1500, 40))
y = (X[:, 0] > 0).astype(int)
model = LinearSVC(memory_budget="40MB").partial_fit(X[:50], y[:50], classes=[0, 1])

def learn():
    for _ in range(10):
        model.partial_fit(X, y)

threads = [threading.Thread(target=learn) for _ in range(2)]
[thread.start() for thread in threads]
while any(thread.is_alive() for thread in threads):
    now = pickle.loads(pickle.dumps(model))
    assert (now.coef_ == now.stream_.model()[0]).all() and (now.intercept_ == now.stream_.model()[1]).all()
    assert model.stream_.n_cached > 0
assert model.stream_.n_seen == 50 + 20 * 1500
assert (model.coef_ == model.stream_.model()[0]).all()
print("ended")
"""


def test_threads_take_turns():
    """In a process of its own: what would go wrong here holds the interpreter for ever."""
    done = subprocess.run([sys.executable, "-c", TURNS], capture_output=True, text=True, timeout=100)
    assert done.stdout == "ended\n", done.stderr


def test_the_first_pieces_may_come_at_once():
    X, y = shuffled(n=400, d=20)
    model = LinearSVC()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda piece: model.partial_fit(*piece, classes=[0, 1]), pieces(X, y, 100)))
    assert model.stream_.n_seen == 400
    np.testing.assert_array_equal(model.coef_, model.stream_.model()[0])


@pytest.mark.parametrize("make", [LinearSVC, LogisticRegression, PegasosClassifier])
def test_a_refused_first_piece_leaves_nothing(make):
    X, y = shuffled(n=100, d=20)
    model = make()
    before = dict(vars(model))
    wrong = X.copy()
    wrong.data[5] = np.nan
    for Z, z in ((X, y + 7), (wrong, y), (X, y[:50])):
        with pytest.raises(ValueError):
            model.partial_fit(Z, z, classes=[0, 1])
        assert vars(model) == before
    model.partial_fit(X[:, :10], y, classes=[0, 1])
    assert model.n_features_in_ == 10
