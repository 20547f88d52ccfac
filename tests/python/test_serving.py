"""Predictors against the estimators they were made of: the same bits, whatever the rows come in."""

import copy
import pickle
import subprocess
import sys
import threading

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hinge import Predictor, _products, _rows
from hypothesis import given
from hypothesis import strategies as st
from problems import sparse_problem

N_COLUMNS = 12


def problem(n_classes=2, seed=0):
    X, y = sparse_problem(seed, n_rows=80, n_columns=N_COLUMNS, n_classes=n_classes, density=0.4)
    return X, np.array(["ant", "bee", "cat", "dog"])[y]


def labels(X):
    return (X @ np.random.default_rng(0).standard_normal((N_COLUMNS, 5)) > 0.2).astype(int)


def with_coef(model, convert):
    model.coef_ = convert(model.coef_)
    return model


def two(make):
    return lambda: make.fit(*problem())


def four(make):
    return lambda: make.fit(*problem(4))


COSTS = np.array([[0.0, 1, 5, 1], [2, 0, 1, 1], [1, 1, 0, 3], [1, 4, 1, 0.5]])
FAST = {"tol": 1e-2}
METHODS = ("sigmoid", "isotonic", "temperature")
CV = FAST | {"cv": 3, "Cs": [0.1, 1.0]}

MODELS = {
    "svc": two(hinge.LinearSVC(**FAST)),
    "svc of four": four(hinge.LinearSVC(**FAST)),
    "crammer-singer": four(hinge.LinearSVC(multi_class="crammer_singer", loss="hinge", **FAST)),
    "logistic": two(hinge.LogisticRegression(**FAST)),
    "logistic of four": four(hinge.LogisticRegression(**FAST)),
    "float32": lambda: with_coef(four(hinge.LinearSVC(**FAST))(), np.float32),
    "Fortran": lambda: with_coef(four(hinge.LogisticRegression(**FAST))(), np.asfortranarray),
    "sparse": lambda: four(hinge.LinearSVC(**FAST))().sparsify(),
    "sparse of two": lambda: two(hinge.LinearSVC(**FAST))().sparsify(),
    "dropped weights": four(hinge.LinearSVC(sparse_coef=True, sparse_tol=0.1, **FAST)),
    "labels": lambda: hinge.LogisticRegression(**FAST).fit(problem()[0], labels(problem()[0])),
    "sparse labels": lambda: hinge.LinearSVC(**FAST).fit(problem()[0], sp.csr_array(labels(problem()[0]))),
    "one label": lambda: hinge.LogisticRegression(**FAST).fit(problem()[0], sp.csr_array(labels(problem()[0])[:, :1])),
    "pegasos": two(hinge.PegasosClassifier(lam=0.01, max_iter=200, tol=0.1)),
    "subgradient": four(hinge.SubgradientSVC(C=0.1, loss="logistic", max_iter=500, tol=0.1)),
    "degree 2": two(hinge.LogisticRegression(degree=2, gamma=0.5, **FAST)),
    "degree 2 of four": four(hinge.LinearSVC(degree=2, **FAST)),
    "searched": two(hinge.LogisticRegressionCV(**CV)),
    **{
        f"{way} of two": two(hinge.LinearSVCCV(probability=way, **CV)) for way in ("sigmoid", "isotonic", "temperature")
    },
    **{
        f"{way} of four": four(hinge.LinearSVCCV(probability=way, **CV))
        for way in ("sigmoid", "isotonic", "temperature")
    },
    "threshold": two(hinge.LinearSVCCV(threshold="f1_macro", probability="sigmoid", **CV)),
    "cheapest of two": two(hinge.LinearSVCCV(cost_matrix=[[0, 1], [5, 0]], **CV)),
    "cheapest of four": four(hinge.LinearSVCCV(cost_matrix=COSTS, probability="isotonic", **CV)),
}

_made = {}


def pair(name):
    """A fitted estimator and its predictor."""
    if name not in _made:
        model = MODELS[name]()
        _made[name] = model, Predictor.of(model)
    return _made[name]


def same(found, expected):
    """The same numbers, type and shape."""
    if sp.issparse(expected):
        assert type(found) is type(expected)
        found, expected = found.toarray(), expected.toarray()
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def methods(model):
    probabilities = ["predict_proba", "predict_log_proba"] if hasattr(model, "predict_proba") else []
    return ["decision_function", "predict", *probabilities]


@st.composite
def rows(draw):
    """A CSR matrix with empty rows, unsorted columns, and columns that come twice within a row."""
    lengths = draw(st.lists(st.integers(0, 20), min_size=1, max_size=7))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    index, dtype = draw(st.sampled_from([np.int32, np.int64])), draw(st.sampled_from([np.float32, np.float64]))
    data = (draw(st.sampled_from([0.1, 1.0, 300.0])) * random.standard_normal(indptr[-1])).astype(dtype)
    X = sp.csr_matrix((data, random.integers(0, N_COLUMNS, indptr[-1]), indptr), shape=(len(lengths), N_COLUMNS))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


@given(rows())
@pytest.mark.parametrize("name", MODELS)
def test_batches_are_those_of_the_estimator(name, X):
    model, predictor = pair(name)
    dense = X.toarray()
    for kind in (X, sp.csc_array(X), dense, np.asfortranarray(dense), np.rint(dense).astype(int), dense.tolist()):
        for method in methods(model):
            same(getattr(predictor, method)(kind), getattr(model, method)(kind))
        if model.coef_.shape[0] > 1:
            for found, expected in zip(predictor.predict_top_k(kind, k=2), model.predict_top_k(kind, k=2), strict=True):
                same(found, expected)


@given(rows())
@pytest.mark.parametrize("name", MODELS)
def test_one_row_is_that_of_a_matrix(name, X):
    model, predictor = pair(name)
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        indices, values = X.indices[part], X.data[part]
        for row in ((indices, values), (indices.tolist(), values.astype(np.float64).tolist())):
            if row[0] is not indices:
                alone = sp.csr_matrix((values.astype(np.float64), indices, [0, len(indices)]), shape=(1, N_COLUMNS))
            else:
                alone = X[i : i + 1]
            for method in methods(model):
                expected = getattr(model, method)(alone)
                expected = (expected.toarray() if sp.issparse(expected) else expected)[0]
                np.testing.assert_array_equal(getattr(predictor, method)(row), expected)
            if model.coef_.shape[0] > 1:
                for found, of_batch in zip(predictor.predict_top_k(row, 2), model.predict_top_k(alone, 2), strict=True):
                    same(found, of_batch[0])


def test_hashed_pairs_of_features():
    X, y = sparse_problem(0, n_rows=60, n_columns=120, n_classes=3, density=0.1)
    model = hinge.LinearSVC(degree=2, hash_bits=12, **FAST).fit(X, y)
    predictor = Predictor.of(model)
    expected = model.decision_function(X)
    same(predictor.decision_function(X), expected)
    same(predictor.predict(X.toarray()), model.predict(X.toarray()))
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        backwards = X.indices[part][::-1], X.data[part][::-1]
        np.testing.assert_array_equal(predictor.decision_function(backwards), expected[i])


@pytest.mark.parametrize("name", ["svc", "logistic of four", "one label", "degree 2 of four"])
def test_one_row_has_one_answer(name):
    model, predictor = pair(name)
    row = np.array([3, 1]), np.array([1.0, -2.0])
    n_vectors = model.coef_.shape[0]
    decision, label = predictor.decision_function(row), predictor.predict(row)
    if n_vectors == 1:
        assert type(decision) is float
    else:
        assert decision.shape == (n_vectors,)
    assert label.shape == ((1,) if name == "one label" else ())


@given(st.dictionaries(st.sampled_from([f"word {j}" for j in range(N_COLUMNS)]), st.floats(-9, 9), max_size=9))
def test_rows_by_name(row):
    pandas = pytest.importorskip("pandas")
    X, y = problem()
    frame = pandas.DataFrame(X.toarray(), columns=[f"word {j}" for j in range(N_COLUMNS)])
    if "named" not in _made:
        model = hinge.LogisticRegression().fit(frame, y)
        _made["named"] = model, Predictor.of(model)
    model, predictor = _made["named"]
    plain = np.zeros((1, N_COLUMNS))
    for name, value in row.items():
        plain[0, int(name.split()[1])] = value
    indices, values = [int(name.split()[1]) for name in row], list(row.values())
    assert predictor.decision_function(row) == predictor.decision_function((indices, values))
    as_frame = pandas.DataFrame(plain, columns=frame.columns)
    np.testing.assert_allclose(predictor.predict_proba(row), model.predict_proba(as_frame)[0], rtol=1e-12)
    same(predictor.predict(as_frame), model.predict(as_frame))
    with pytest.raises(ValueError, match=r'feature "word 99" is not among the 12 features of the model.*spelling'):
        predictor.predict({**row, "word 99": 1.0})
    lenient = predictor.with_options(unknown_names="ignore")
    assert lenient.decision_function({**row, "word 99": 1.0}) == predictor.decision_function(row)
    with pytest.raises(ValueError, match=r"column 0 of X is 'word 11', in the fit it was 'word 0'"):
        predictor.predict(as_frame[as_frame.columns[::-1]])
    assert predictor.feature_names_in_.tolist() == list(frame.columns)


def test_names_that_cannot_be_rows():
    _, predictor = pair("svc")
    with pytest.raises(
        ValueError, match="the model must be one that has names of features, got one without, pass column numbers"
    ):
        predictor.predict({"word": 1.0})
    with pytest.raises(AttributeError, match="without names of features"):
        _ = predictor.feature_names_in_
    _, named = _made.get("named") or pytest.skip("made by another test")
    with pytest.raises(TypeError, match="a dict of strings, one of its keys is 3"):
        named.predict({3: 1.0})
    with pytest.raises(TypeError, match=r"feature 'word 1' must have a number as its value, got 'x'"):
        named.predict({"word 1": "x"})


@pytest.mark.parametrize("name", ["svc", "logistic of four", "labels", "sigmoid of four"])
def test_results_are_written_where_they_are_wanted(name):
    _, predictor = pair(name)
    X = problem()[0]
    row = X.indices[: X.indptr[1]], X.data[: X.indptr[1]]
    for method in ("decision_function", "predict_proba"):
        if not hasattr(predictor, method):
            continue
        call = getattr(predictor, method)
        for rows_or_row in (X, X.toarray(), row):
            expected = np.atleast_1d(call(rows_or_row))
            out = np.full(expected.shape, np.nan)
            assert call(rows_or_row, out=out) is out
            np.testing.assert_array_equal(out, expected)
            for bad in (out[:-1], out.astype(np.float32), out.tolist(), np.full((2, *out.shape), 0.0)[0, ..., None]):
                with pytest.raises(ValueError, match="out must be an array of float64 of shape"):
                    call(rows_or_row, out=bad)
        locked = np.empty(np.atleast_1d(call(X)).shape)
        locked.setflags(write=False)
        with pytest.raises(ValueError, match="C-ordered and writeable"):
            call(X, out=locked)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [np.ascontiguousarray, np.asfortranarray])
def test_large_dense_batches_are_the_same_products_of_blas(dtype, order, monkeypatch):
    calls = []
    monkeypatch.setattr(
        hinge.serving, "dense_product", lambda *args: calls.append(args) or _products.dense_product(*args)
    )
    random = np.random.default_rng(0)
    X = random.standard_normal((2000, 100)).astype(dtype)
    model = hinge.LogisticRegression(max_iter=3)
    model.coef_ = order(random.standard_normal((8, 100)).astype(dtype))
    model.intercept_, model.classes_, model.n_features_in_ = random.standard_normal(8), np.arange(8), 100
    predictor = Predictor.of(model)
    for method in methods(model):
        same(getattr(predictor, method)(X), getattr(model, method)(X))
    assert len(calls) == 4
    X[777, 3] = np.nan
    with pytest.raises(ValueError, match="NaN in row 777, column 3"):
        predictor.predict(X)


def large():
    random = np.random.default_rng(0)
    X = sp.random(3000, 5000, 0.02, format="csr", random_state=0)
    model = hinge.LinearSVC()
    model.coef_, model.intercept_ = random.standard_normal((3, 5000)), np.zeros(3)
    model.classes_, model.n_features_in_ = np.arange(3), 5000
    return model, X


@pytest.mark.parametrize("convert", [np.ascontiguousarray, np.asfortranarray, sp.csr_matrix])
def test_threads_leave_the_bits_as_they_are(convert):
    model, X = large()
    model.coef_ = convert(model.coef_)
    expected = model.decision_function(X)
    for n_threads in (1, 2, 3, 7, None):
        predictor = Predictor.of(model, n_threads=n_threads)
        same(predictor.decision_function(X), expected)
        same(predictor.predict(X), model.predict(X))
        np.testing.assert_array_equal(predictor.decision_function(X[:1]), expected[:1])


def test_python_threads_share_a_predictor():
    model, X = large()
    predictor = Predictor.of(model)
    expected, failures = model.decision_function(X), []

    def work(first):
        for i in range(first, 300, 8):
            part = slice(X.indptr[i], X.indptr[i + 1])
            alone = predictor.decision_function((X.indices[part], X.data[part]))
            if not (alone == expected[i]).all() or not (predictor.predict(X) == expected.argmax(axis=1)).all():
                failures.append(i)

    workers = [threading.Thread(target=work, args=(first,)) for first in range(8)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert not failures


@pytest.mark.parametrize("name", MODELS)
def test_pickles_and_estimators_of_predictors(name):
    model, predictor = pair(name)
    X = problem()[0]
    expected = model.decision_function(X)
    for other in (pickle.loads(pickle.dumps(predictor)), copy.copy(predictor), predictor.to_estimator()):
        same(other.decision_function(X), expected)
        same(other.predict(X), model.predict(X))
    assert repr(pickle.loads(pickle.dumps(predictor))) == repr(predictor)


def test_a_predictor_never_changes():
    X, y = problem(4)
    model = hinge.LinearSVC().fit(X, y)
    predictor = Predictor.of(model, n_threads=2)
    before = model.decision_function(X)
    model.coef_[:] = 0.0
    model.classes_[:] = "elk"
    same(predictor.decision_function(X), before)
    assert predictor.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    for attempt in (
        lambda: setattr(predictor, "_native", None),
        lambda: setattr(predictor, "n_threads", 3),
        lambda: delattr(predictor, "_native"),
    ):
        with pytest.raises(AttributeError, match="a Predictor never changes"):
            attempt()
    weights = predictor._native.coef()
    for array in (predictor.classes_, weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(ValueError, match="WRITEABLE"):
        weights.setflags(write=True)
    assert repr(predictor) == ("Predictor(LinearSVC, n_features=12, classes=['ant', 'bee', 'cat', 'dog'], n_threads=2)")


@pytest.mark.parametrize("name", ["svc", "svc of four", "sparse", "degree 2"])
def test_unusable_rows_are_refused_as_by_the_estimator(name):
    model, predictor = pair(name)
    X = problem()[0]
    spoiled = X.copy()
    spoiled.data[5] = np.inf
    outside = X.copy()
    outside.indices[7] = 12
    cut = X.copy()
    cut.indptr = cut.indptr[:-1]
    dense = X.toarray()
    dense[3, 4] = np.nan
    for bad in (spoiled, dense, outside, cut):
        errors = []
        for method in (model.decision_function, predictor.decision_function, predictor.predict):
            with pytest.raises(ValueError) as error:
                method(bad)
            errors.append(str(error.value))
        assert errors[0] == errors[1] == errors[2]
    for bad, message in [
        (X[:, :5], f"X has 5 features, but {type(model).__name__} is expecting 12 features as input"),
        (dense[0], "Expected 2D array, got 1D array instead"),
        ([["a"] * 12], "could not convert string to float"),
        (dense.astype(complex), "complex"),
        (sp.coo_array(np.ones(12)), "matrix of 2 dimensions"),
    ]:
        with pytest.raises((ValueError, TypeError)):
            model.decision_function(bad)
        with pytest.raises(ValueError, match=message):
            predictor.decision_function(bad)


@pytest.mark.parametrize("name", ["svc", "logistic of four", "sparse", "degree 2"])
def test_unusable_single_rows_are_refused(name):
    _, predictor = pair(name)
    for row, message in [
        (([0, 12], [1.0, 2.0]), "row 0: column index 12 is outside 0..12"),
        (([0, -1], [1.0, 2.0]), "row 0: column index -1 is outside 0..12"),
        (([0, 1], [1.0, np.nan]), "contains NaN in row 0, column 1"),
        (([0, 1], [1.0]), "expected 2, got 1"),
        (([0, 1],), "got a tuple of 1"),
        (([0.5], [1.0]), "the indices of a row must be integers, got float64"),
        (([[0]], [[1.0]]), "of one dimension each, got 2 and 2"),
        (([0], ["a"]), "the values of a row must be numbers"),
        (([0], [1j]), "real numbers"),
        ((np.array([2**64 - 1], dtype=np.uint64), [1.0]), "outside of any matrix"),
    ]:
        for method in (predictor.decision_function, predictor.predict):
            with pytest.raises(ValueError, match=message):
                method(row)


def test_what_a_model_does_not_have():
    _, predictor = pair("svc")
    assert not hasattr(predictor, "predict_proba")
    with pytest.raises(AttributeError, match="the model has no probabilities"):
        predictor.predict_log_proba([[0.0] * 12])
    with pytest.raises(ValueError, match="predict_top_k needs more than 2 classes"):
        predictor.predict_top_k([[0.0] * 12])
    _, four = pair("svc of four")
    for k in (0, 5, 1.5):
        with pytest.raises(ValueError, match="k must be"):
            four.predict_top_k([[0.0] * 12], k=k)
    for n_threads in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="n_threads"):
            predictor.with_options(n_threads=n_threads)
    with pytest.raises(ValueError, match="unknown_names must be one of"):
        predictor.with_options(unknown_names="guess")
    with pytest.raises((TypeError, AttributeError)):
        Predictor.of("a model")


def test_no_rows_have_no_answers():
    _, predictor = pair("logistic of four")
    for empty in (np.empty((0, 12)), sp.csr_matrix((0, 12))):
        assert predictor.decision_function(empty).shape == predictor.predict_proba(empty).shape == (0, 4)
        assert predictor.predict(empty).shape == (0,)


LIGHT = """
import pickle, sys
import numpy as np
from hinge.serving import Predictor
predictor = pickle.load(open(sys.argv[1], "rb"))
print(predictor.predict(([0], [1.0])), predictor.predict_proba(np.ones((2, 12))).shape, predictor.classes_)
print(sorted({"sklearn", "scipy", "pandas"} & set(sys.modules)))
"""


def test_serving_needs_no_other_package(tmp_path):
    """Once ``import hinge`` itself brings no more than it needs."""
    code = "import hinge, sys; print('sklearn' in sys.modules)"
    if subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "True":
        pytest.skip("import hinge brings scikit-learn")
    path = tmp_path / "predictor.pickle"
    path.write_bytes(pickle.dumps(pair("logistic")[1]))
    done = subprocess.run([sys.executable, "-c", LIGHT, path], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_modules_of_serving_import_numpy_alone():
    """Even where the package brings more."""
    for module in (hinge.serving, _rows, _products, hinge._parts):
        with open(module.__file__) as file:
            lines = [line.strip() for line in file]
        imported = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
        top = {name for name in imported if name not in sys.stdlib_module_names}
        assert top - {"scipy"} <= {"numpy", "hinge"}, module


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_calibrations_of_old_pickles_still_work(method, n_classes, monkeypatch):
    random = np.random.default_rng(0)
    values = random.standard_normal(300) if n_classes == 2 else random.standard_normal((300, n_classes))
    y = (values + 0.3 * random.standard_normal(300) > 0).astype(int) if n_classes == 2 else values.argmax(axis=1)
    fitted = []
    numbers = hinge.calibration._numbers
    monkeypatch.setattr(hinge.calibration, "_numbers", lambda *args: fitted.append(args[1]) or numbers(*args))
    calibration = hinge.calibrate(values, y, method=method)
    old = object.__new__(hinge.Calibration)
    old.__setstate__({"classes": calibration.classes, "method": method, "_model": fitted[0]})
    far = np.concatenate([values, 50 * values])
    same(old.predict_proba(far), calibration.predict_proba(far))
    if method != "temperature":
        theirs = fitted[0].predict_proba(far.reshape(len(far), -1))
        np.testing.assert_allclose(calibration.predict_proba(far), theirs, rtol=2e-14, atol=1e-300)
