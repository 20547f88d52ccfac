"""Graphs of ONNX, run by ONNX Runtime, against the estimators they were made of and against NumPy."""

import json
import pickle
import subprocess
import sys

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hinge._parts import ModelParts
from hypothesis import given
from hypothesis import strategies as st
from problems import sparse_problem
from scipy.special import expit, softmax

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

import hinge.onnx  # noqa: E402

# Rounding: sums of a few dozen terms of size 1, and what follows from them.
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def session_of(graph, threads=2):
    onnx.checker.check_model(graph, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        graph.SerializeToString(), sess_options=options, providers=["CPUExecutionProvider"]
    )


def outputs(session, feeds):
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def feeds_of(X, dtype="float64"):
    X = sp.csr_array(X)
    return {
        "indptr": X.indptr.astype(np.int64),
        "indices": X.indices.astype(np.int64),
        "values": X.data.astype(dtype),
    }


def row_feeds(X, i):
    indptr, indices, values = feeds_of(X).values()
    at = slice(indptr[i], indptr[i + 1])
    return {"indices": indices[at], "values": values[at]}


def expected(model, X):
    found = {"label": model.predict(X), "decision": model.decision_function(X)}
    found["label"] = found["label"].toarray() if sp.issparse(found["label"]) else found["label"]
    if hasattr(model, "predict_proba"):
        found["probabilities"] = model.predict_proba(X)
    return found


def check(found, wanted, bound=CLOSE):
    assert list(found) == list(wanted)
    for name in wanted:
        assert found[name].shape == wanted[name].shape, name
        if name == "label":
            np.testing.assert_array_equal(found[name], wanted[name])
        else:
            np.testing.assert_allclose(found[name], wanted[name], **bound, err_msg=name)


# Estimators.


def labels_of(y):
    return np.column_stack([y == 0, y != 2, y == 1]).astype(int)


def with_sparse_labels(y):
    return sp.csr_array(labels_of(y))


def one_label(y):
    return sp.csr_array(labels_of(y)[:, :1])


COSTS = [[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [2.0, 3.0, 0.0]]

# Estimator, parameters, number of classes or what is made of three.
CASES = {
    "svc": (hinge.LinearSVC, {}, 2),
    "svc no intercept": (hinge.LinearSVC, {"fit_intercept": False, "loss": "hinge"}, 2),
    "svc 3": (hinge.LinearSVC, {}, 3),
    "crammer singer": (hinge.LinearSVC, {"multi_class": "crammer_singer"}, 3),
    "crammer singer 2": (hinge.LinearSVC, {"multi_class": "crammer_singer"}, 2),
    "sparse coef": (hinge.LinearSVC, {"sparse_coef": True}, 3),
    "labels": (hinge.LinearSVC, {}, labels_of),
    "sparse labels": (hinge.LinearSVC, {"sparse_coef": True}, with_sparse_labels),
    "one label": (hinge.LinearSVC, {}, one_label),
    "logistic": (hinge.LogisticRegression, {}, 2),
    "logistic 3": (hinge.LogisticRegression, {}, 3),
    "logistic labels": (hinge.LogisticRegression, {}, labels_of),
    "logistic one label": (hinge.LogisticRegression, {}, one_label),
    "logistic cv": (hinge.LogisticRegressionCV, {"cv": 2, "Cs": [0.1, 1.0]}, 3),
    "pegasos": (hinge.PegasosClassifier, {"tol": 0.5}, 3),
    "subgradient": (hinge.SubgradientSVC, {"tol": 0.05}, 2),
    "threshold": (hinge.LinearSVCCV, {"threshold": "f1"}, 2),
    "costs": (hinge.LinearSVCCV, {"cost_matrix": [[0, 1], [5, 0]]}, 2),
    "costs 3": (hinge.LinearSVCCV, {"cost_matrix": COSTS, "probability": "sigmoid"}, 3),
    "threshold and isotonic": (hinge.LinearSVCCV, {"threshold": "f1", "probability": "isotonic"}, 2),
}
CASES |= {
    f"{method} {n}": (hinge.LinearSVCCV, {"probability": method}, n)
    for method in ("sigmoid", "isotonic", "temperature")
    for n in (2, 4)
}


@pytest.fixture(scope="module")
def fitted():
    """A function from a case to a fitted model and rows."""

    def fit(name):
        kind, parameters, labels = CASES[name]
        X, y = sparse_problem(3, n_rows=160, n_classes=labels if isinstance(labels, int) else 3)
        if kind is hinge.LinearSVCCV:
            parameters = {"cv": 2, "Cs": [0.1, 1.0]} | parameters
        return kind(**parameters).fit(X, y if isinstance(labels, int) else labels(y)), X

    known = {}
    return lambda name: known.setdefault(name, None) or known.__setitem__(name, fit(name)) or known[name]


@pytest.mark.parametrize("name", CASES)
def test_double_graphs_say_what_estimators_say(fitted, name):
    model, X = fitted(name)
    wanted = expected(model, X)
    check(outputs(session_of(hinge.to_onnx(model)), {"X": X.toarray()}), wanted)
    check(outputs(session_of(hinge.to_onnx(model, input="sparse")), feeds_of(X)), wanted)
    session = session_of(hinge.to_onnx(model, input="sparse_row"))
    for i in range(5):
        check(outputs(session, row_feeds(X, i)), {name: value[i : i + 1] for name, value in wanted.items()})


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("input", ["dense", "sparse"])
def test_single_graphs_are_within_their_bound(fitted, name, input):
    """(k + 4) 2^-24 times the sum of the sizes of the terms; probabilities of smooth maps follow by their slope."""
    model, X = fitted(name)
    wanted = expected(model, X)
    session = session_of(hinge.to_onnx(model, input=input, dtype="float32"))
    feeds = {"X": X.toarray().astype(np.float32)} if input == "dense" else feeds_of(X, "float32")
    found = outputs(session, feeds)
    assert found["decision"].dtype == np.float32
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    terms = abs(X) @ abs(coef).T + abs(model.intercept_)
    bound = (np.diff(X.indptr)[:, None] + 4) * 2.0**-24 * terms
    assert (abs(found["decision"].reshape(bound.shape) - wanted["decision"].reshape(bound.shape)) <= bound).all()
    if "probabilities" in wanted and "isotonic" not in name:
        scale = model.calibration_.part().get("slopes", 1.0) if hasattr(model, "calibration_") else 1.0
        scale = max(1.0, float(np.abs(scale).max()), _factor(model))
        off = abs(found["probabilities"] - wanted["probabilities"]).reshape(len(bound), -1)
        assert (off <= scale * bound.max(axis=1, keepdims=True) + 2.0**-24).all()


def _factor(model):
    return model.calibration_.part().get("factor", 1.0) if hasattr(model, "calibration_") else 1.0


@pytest.mark.parametrize(
    "parameters",
    [{}, {"gamma": 0.5}, {"gamma": 0.5, "coef0": 0.0}, {"hash_bits": 12, "gamma": 1.0}, {"fit_intercept": False}],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_degree_2(parameters, n_classes):
    n_columns = 100 if "hash_bits" in parameters else 12
    X, y = sparse_problem(5, n_columns=n_columns, n_classes=n_classes)
    model = hinge.LogisticRegression(degree=2, **parameters).fit(X, y)
    check(outputs(session_of(hinge.to_onnx(model)), {"X": X.toarray()}), expected(model, X))
    for input in ("sparse", "sparse_row"):
        with pytest.raises(ValueError, match="input must be 'dense' for a model of degree 2"):
            hinge.to_onnx(model, input=input)


def test_weights_may_be_single_and_in_any_order(fitted):
    model, X = fitted("logistic 3")
    model = pickle.loads(pickle.dumps(model))
    model.coef_ = np.asfortranarray(model.coef_, dtype=np.float32)
    check(outputs(session_of(hinge.to_onnx(model)), {"X": X.toarray()}), expected(model, X))


@pytest.mark.parametrize("name", CASES)
def test_predictors_are_converted_as_their_estimators(fitted, name):
    model, _ = fitted(name)
    for input in ("dense", "sparse"):
        wanted = hinge.to_onnx(model, input=input).SerializeToString()
        assert hinge.to_onnx(hinge.Predictor.of(model), input=input).SerializeToString() == wanted


# Rows.


@pytest.mark.parametrize("name", ["logistic", "logistic 3", "labels", "isotonic 4"])
def test_no_rows_empty_rows_repeated_columns(fitted, name):
    model, X = fitted(name)
    session = session_of(hinge.to_onnx(model, input="sparse"))
    assert all(len(value) == 0 for value in outputs(session, feeds_of(X[:0])).values())
    empty = sp.csr_array((3, X.shape[1]))
    check(outputs(session, feeds_of(empty)), expected(model, empty))
    twice = {"indptr": np.array([0, 3]), "indices": np.array([4, 4, 1]), "values": np.array([1.0, 2.0, 0.5])}
    once = sp.csr_array(([3.0, 0.5], ([0, 0], [4, 1])), shape=(1, X.shape[1]))
    check(outputs(session, twice), expected(model, once))
    alone = session_of(hinge.to_onnx(model, input="sparse_row"))
    check(outputs(alone, {"indices": np.zeros(0, np.int64), "values": np.zeros(0)}), expected(model, empty[:1]))
    dense = session_of(hinge.to_onnx(model))
    assert all(len(value) == 0 for value in outputs(dense, {"X": np.zeros((0, X.shape[1]))}).values())


def by_hand(coef, intercept=None, **parts):
    coef = np.asarray(coef, dtype=np.float64)
    given = {
        "intercept": np.zeros(len(coef)) if intercept is None else intercept,
        "classes": np.arange(2 if len(coef) == 1 else len(coef)),
        "answer": {"kind": "sign" if len(coef) == 1 else "highest"},
    }
    return ModelParts(n_features=coef.shape[1], coef=coef, **given | parts)


@pytest.mark.parametrize("n_vectors", [1, 3])
def test_a_million_features_and_long_rows_on_threads(n_vectors):
    """Operators that add from several threads at once lose terms of long rows; nothing here is made dense."""
    random = np.random.default_rng(0)
    coef = random.standard_normal((n_vectors, 1_000_000))
    graph = hinge.to_onnx(by_hand(coef), input="sparse")
    assert graph.ByteSize() < coef.nbytes + 10_000
    session = session_of(graph)
    indices, values = random.integers(0, 1_000_000, 300_000), random.standard_normal(300_000)
    for _ in range(3):
        feeds = {"indptr": np.array([0, 299_950, 300_000]), "indices": indices, "values": values}
        found = outputs(session, feeds)["decision"]
        terms = coef[:, indices] * values
        wanted = np.array([terms[:, :299_950].sum(axis=1), terms[:, 299_950:].sum(axis=1)]).reshape(found.shape)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)


# Maps from decision values, by graphs whose rows are the decision values.


def mapped(values, probability, answer=None):
    """Outputs for decision values of shape (n_rows, n_vectors)."""
    parts = by_hand(np.eye(values.shape[1]), probability=probability, **({} if answer is None else {"answer": answer}))
    return outputs(session_of(hinge.to_onnx(parts)), {"X": values})


EXTREMES = [-1e4, -800.0, -745.0, -720.0, -709.8, -709.7, -70.0, -37.0, -1.0, -1e-300, 0.0, 1.0, 37.0, 709.8, 1e4]

numbers = st.one_of(st.floats(-5.0, 5.0), st.sampled_from(EXTREMES))


def tables(n_columns):
    return st.lists(st.lists(numbers, min_size=n_columns, max_size=n_columns), min_size=1, max_size=8).map(
        lambda rows: np.array(rows, dtype=np.float64)
    )


def divided(found):
    total = found.sum(axis=1, keepdims=True)
    return np.divide(found, total, out=np.full_like(found, 1.0 / found.shape[1]), where=total > 0)


@given(tables(3))
def test_logistic_probabilities_of_far_rows(values):
    """Against long doubles, in which nothing here underflows."""
    wide = values.astype(np.longdouble)
    wanted = divided(np.exp(-np.logaddexp(0, -wide))).astype(np.float64)
    np.testing.assert_allclose(mapped(values, {"kind": "logistic"})["probabilities"], wanted, **CLOSE)


@given(tables(1))
def test_logistic_probabilities_of_two_classes_keep_their_digits(values):
    wanted = np.column_stack([expit(-values), expit(values)])
    found = mapped(values, {"kind": "logistic"})["probabilities"]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-300)


@given(tables(3))
def test_sigmoid(values):
    slopes, offsets = np.array([-1.0, -2.5, 0.3]), np.array([0.1, 0.0, -2.0])
    wanted = divided(expit(-(slopes * values + offsets)))
    found = mapped(values, {"kind": "sigmoid", "slopes": slopes, "offsets": offsets}, {"kind": "most_probable"})
    np.testing.assert_allclose(found["probabilities"], wanted, **CLOSE)


@given(tables(3), st.floats(0.01, 100.0))
def test_temperature(values, factor):
    found = mapped(values, {"kind": "temperature", "factor": factor})["probabilities"]
    np.testing.assert_allclose(found, softmax(factor * values, axis=1), rtol=1e-11, atol=1e-12)


@st.composite
def lines(draw):
    n = draw(st.integers(1, 9))
    x = np.sort(draw(st.lists(st.integers(-400, 400), min_size=n, max_size=n, unique=True))) / 97.0
    y = np.sort(draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=n, max_size=n)))
    return x, y


@given(st.data(), st.sampled_from([1, 3, 4]))
def test_isotonic_follows_numpy_and_meets_its_corners(data, n_vectors):
    """Levels and corners are met to the bit, so that the first of equally probable classes wins."""
    drawn = [data.draw(lines()) for _ in range(n_vectors)]
    corners = np.concatenate([x for x, _ in drawn])
    between = data.draw(tables(n_vectors))
    at_corners = data.draw(st.lists(st.sampled_from(corners.tolist()), min_size=n_vectors, max_size=n_vectors))
    values = np.vstack([between, at_corners])
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.column_stack(
            [np.interp(np.clip(v, x[0], x[-1]), x, y) for v, (x, y) in zip(values.T, drawn, strict=True)]
        )
    wanted = np.column_stack([1.0 - found, found]) if n_vectors == 1 else divided(found)
    graph = mapped(values, {"kind": "isotonic", "lines": drawn}, {"kind": "most_probable"})
    np.testing.assert_allclose(graph["probabilities"], wanted, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(graph["probabilities"][-1], wanted[-1])
    ranked = np.sort(wanted, axis=1)
    is_clear = (ranked[:, -1] - ranked[:, -2] > 1e-12) | (ranked[:, -1] == ranked[:, -2])
    np.testing.assert_array_equal(graph["label"][is_clear], wanted.argmax(axis=1)[is_clear])


def test_ties_go_to_the_first_class_and_0_is_not_positive():
    values = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 2.0, 2.0]])
    assert mapped(values, None)["label"].tolist() == [0, 0, 1]
    assert mapped(np.array([[0.0], [-0.0], [5e-324]]), None)["label"].tolist() == [0, 0, 1]
    at = {"kind": "threshold", "threshold": -1.5}
    assert mapped(np.array([[-1.5], [np.nextafter(-1.5, -2.0)]]), None, at)["label"].tolist() == [1, 0]
    labels = by_hand(np.eye(3), answer={"kind": "labels", "container": "dense"})
    assert outputs(session_of(hinge.to_onnx(labels)), {"X": values})["label"].tolist() == [
        [1, 1, 0],
        [0, 0, 0],
        [0, 1, 1],
    ]


# Classes.


@pytest.mark.parametrize(
    "classes",
    [
        np.array([-3, 7], dtype=np.int32),
        np.array([2, 200], dtype=np.uint8),
        np.array([-(2**62), 2**53 + 1]),
        np.array([-0.5, 1e300]),
        np.array([False, True]),
        np.array(["Grün", ""]),
        np.array(["no", "yes"], dtype=object),
        np.array([1, 2], dtype=object),
    ],
    ids=lambda classes: f"{classes.dtype} {classes[0]}",
)
def test_classes_of_any_type(classes):
    found = outputs(session_of(hinge.to_onnx(by_hand([[1.0]], classes=classes))), {"X": np.array([[1.0], [-1.0]])})
    assert found["label"].tolist() == classes[::-1].tolist()


def test_classes_that_onnx_cannot_have():
    with pytest.raises(ValueError, match="classes must fit into int64, 18446744073709551615 does not"):
        hinge.to_onnx(by_hand([[1.0]], classes=np.array([0, 2**64 - 1], dtype=np.uint64)))
    with pytest.raises(ValueError, match=r"classes must be integers, floats, .* dtype is datetime64"):
        hinge.to_onnx(by_hand([[1.0]], classes=np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")))


# The message.


def test_metadata(fitted):
    import pandas as pd

    X, y = sparse_problem(1, n_columns=3)
    frame = pd.DataFrame(X.toarray(), columns=["größe", "b", "c"])
    model = hinge.LinearSVC(C=0.5).fit(frame, np.where(y == 1, "yes", "no"))
    graph = hinge.to_onnx(model, metadata={"score": "0.9"})
    assert (graph.producer_name, graph.producer_version) == ("hinge", hinge.__version__)
    found = {entry.key: entry.value for entry in graph.metadata_props}
    assert found.pop("score") == "0.9"
    found = {name: json.loads(value) for name, value in found.items()}
    assert found["feature_names"] == ["größe", "b", "c"]
    assert found["classes"] == ["no", "yes"]
    assert (found["estimator"], found["version"]) == ("LinearSVC", hinge.__version__)
    assert found["parameters"]["C"] == 0.5
    gap = float(model.certificate_.relative_gap.max())
    assert found["certificate"] == {"status": ["converged"], "relative_gap": gap}
    assert {value.name for value in graph.graph.output} == {"label", "decision"}
    assert [(opset.domain, opset.version) for opset in graph.opset_import] == [("", 18)]


def test_what_is_refused(fitted):
    from sklearn.exceptions import NotFittedError
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model, _ = fitted("svc")
    with pytest.raises(ValueError, match=r"input must be .* got 'csr'"):
        hinge.to_onnx(model, input="csr")
    with pytest.raises(ValueError, match=r"dtype must be .* got 'float16'"):
        hinge.to_onnx(model, dtype="float16")
    with pytest.raises(NotFittedError):
        hinge.to_onnx(hinge.LinearSVC())
    with pytest.raises(TypeError, match=r"got Pipeline; a pipeline .* converted by skl2onnx"):
        hinge.to_onnx(make_pipeline(StandardScaler(), model))
    large = by_hand([[1e39, 1.0]])
    with pytest.raises(ValueError, match="dtype must be 'float64': a weight of size 1e\\+39 is too large for float32"):
        hinge.to_onnx(large, dtype="float32")
    weights = np.broadcast_to(np.float64(1.0), (300, 1_000_000))
    many = ModelParts(1_000_000, weights, np.zeros(300), np.arange(300), {"kind": "highest"})
    with pytest.raises(ValueError, match=r"the weights would take 2\.4 GB written out, an ONNX model holds 2 GB"):
        hinge.to_onnx(many)


def test_the_package_is_imported_on_use_only():
    code = "import sys, hinge; assert 'onnx' not in sys.modules; sys.modules['onnx'] = None\n"
    code += "try: hinge.to_onnx(None)\nexcept ImportError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "to_onnx needs the package onnx: pip install 'hinge[onnx]'\n"


def test_20news(real):
    X, y, X_test, _ = real("20news")
    model = hinge.LogisticRegression().fit(X, y)
    session = session_of(hinge.to_onnx(model, input="sparse"))
    check(outputs(session, feeds_of(X_test)), expected(model, X_test))
