"""Model files: what is saved comes back to the bit, and nothing else is ever read as a model."""

import json
import os
import signal
import struct
import subprocess
import sys
import time

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from hinge import (
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    ModelFileError,
    PegasosClassifier,
    SubgradientSVC,
    _training_data,
)
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification

CV = {"Cs": [0.1, 1.0], "cv": 3}


def rows(n_classes=2, seed=0, n_rows=90):
    X, y = make_classification(
        n_rows, 6, n_informative=4, n_classes=n_classes, n_clusters_per_class=1, random_state=seed
    )
    return X, y


def label_matrix(seed=0, n_rows=90):
    return (np.random.default_rng(seed).random((n_rows, 4)) < 0.4).astype(int)


def two(make):
    return lambda seed: make().fit(*rows(2, seed))


def three(make):
    return lambda seed: make().fit(*rows(3, seed))


MODELS = {
    "LinearSVC": two(lambda: LinearSVC(C=0.1)),
    "three classes": three(lambda: LinearSVC(loss="hinge", C=0.1, intercept_scaling=1.0)),
    "crammer_singer": three(lambda: LinearSVC(multi_class="crammer_singer", fit_intercept=False)),
    "sparse_coef": three(lambda: LinearSVC(sparse_coef=True)),
    "sparsified": lambda seed: LinearSVC().fit(*rows(3, seed)).sparsify(),
    "degree 2": two(lambda: LinearSVC(C=0.01, degree=2, gamma=0.5)),
    "labels": lambda seed: LinearSVC(C=0.1).fit(rows(2, seed)[0], label_matrix(seed)),
    "sparse labels": lambda seed: LogisticRegression().fit(rows(2, seed)[0], sp.csr_array(label_matrix(seed))),
    "LogisticRegression": three(lambda: LogisticRegression(C=0.1)),
    "LogisticRegressionCV": three(lambda: LogisticRegressionCV(**CV)),
    "LinearSVCCV": two(lambda: LinearSVCCV(**CV)),
    "threshold": two(lambda: LinearSVCCV(threshold="f1", **CV)),
    "cost_matrix": two(lambda: LinearSVCCV(cost_matrix=[[0, 1], [5, 0]], **CV)),
    "costs of classes": three(
        lambda: LinearSVCCV(probability="sigmoid", cost_matrix=[[0, 1, 2], [5, 0, 1], [1, 1, 0]], **CV)
    ),
    "sigmoid": two(lambda: LinearSVCCV(probability="sigmoid", **CV)),
    "isotonic": three(lambda: LinearSVCCV(probability="isotonic", **CV)),
    "temperature": three(lambda: LinearSVCCV(probability="temperature", **CV)),
    "Pegasos": three(lambda: PegasosClassifier(lam=0.1, tol=0.05)),
    "Subgradient": two(lambda: SubgradientSVC(C=0.1, tol=0.05, max_iter=5000)),
    "stream": lambda seed: LinearSVC(intercept_scaling=1.0).partial_fit(*rows(3, seed), classes=[0, 1, 2]),
}

METHODS = ("decision_function", "predict", "predict_proba", "predict_log_proba")


def answers(model, X):
    """What a model says of rows, by method."""
    found = {name: getattr(model, name)(X) for name in METHODS if hasattr(model, name)}
    return {name: value.toarray() if sp.issparse(value) else value for name, value in found.items()}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
        assert found[name].tobytes() == value.tobytes() or (found[name] == value).all(), name


def same_value(a, b):
    """Whether two parameters or attributes are the same, types included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    if sp.issparse(a):
        return a.dtype == b.dtype and (a != b).nnz == 0
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_value(a[key], b[key]) for key in a)
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    return a == b if not hasattr(a, "__dict__") else same_value(vars(a), vars(b))


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, tmp_path):
    model = MODELS[name](0)
    path = tmp_path / "m.hinge"
    model.save(path)
    X = rows(3, 7, 40)[0]
    served = hinge.load(path)
    again = served.to_estimator()
    expected = answers(model, X)
    assert_same(answers(served, X), expected)
    assert_same(answers(again, X), expected)
    assert type(again) is type(model)
    for parameter, value in model.get_params().items():
        assert same_value(again.get_params()[parameter], value), parameter
    kept = {key for key in vars(model) if key.endswith("_") and key not in ("stream_", "search_", "calibration_")}
    assert {key for key in kept if not same_value(getattr(again, key), getattr(model, key))} == set()
    # What is read is written to the same bytes, by the predictor and by the estimator.
    served.save(tmp_path / "n.hinge")
    again.save(tmp_path / "o.hinge")
    assert path.read_bytes() == (tmp_path / "n.hinge").read_bytes() == (tmp_path / "o.hinge").read_bytes()


LABELS = st.sampled_from(
    [
        np.array([3, -5, 9], dtype=np.int32),
        np.array([2**60, 1, 5]),
        np.array([0, 1, 2], dtype=np.uint8),
        np.array(["a", "naïve", "語 and more"]),
        np.array(["", "b", "c\0d"], dtype=object),
        np.array([5.0, -1.0, 2.0**52]),
        np.array([5.0, -1.0, 3.0], dtype=np.float32),
    ]
)


@given(st.integers(0, 9), LABELS, st.sampled_from(list("CF")), st.sampled_from([np.float32, np.float64]))
def test_labels_orders_and_dtypes_survive(tmp_path_factory, seed, labels, order, dtype):
    path = tmp_path_factory.mktemp("model") / "m"
    X, y = rows(3, seed)
    model = LinearSVC(C=0.1, class_weight={labels[0]: 2.0}).fit(X, labels[y])
    model.coef_ = np.array(model.coef_, dtype=dtype, order=order)
    model.save(path)
    again = hinge.load(path).to_estimator()
    assert again.classes_.dtype == model.classes_.dtype
    assert again.coef_.flags.f_contiguous == model.coef_.flags.f_contiguous
    assert_same(answers(again, X), answers(model, X))
    assert same_value(again.class_weight, model.class_weight)


def test_truth_values_as_labels(tmp_path):
    X, y = rows()
    model = LinearSVC().fit(X, y == 1)
    model.save(tmp_path / "m")
    assert hinge.load(tmp_path / "m").predict(X).dtype == bool


def test_names_of_columns(tmp_path):
    import pandas as pd

    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "naïve", "d", "e", ""])
    model = LinearSVC().fit(frame, y)
    model.save(tmp_path / "m")
    served = hinge.load(tmp_path / "m")
    assert served.feature_names_in_.tolist() == list(frame.columns)
    assert same_value(served.to_estimator().feature_names_in_, model.feature_names_in_)


@pytest.mark.parametrize("sparse", ["auto", True, False])
@pytest.mark.parametrize("dtype", [None, "float32", np.float64])
def test_storage(tmp_path, dtype, sparse):
    X, y = rows(3)
    model = LinearSVC().fit(X, y)
    model.coef_[:, 2] = 0.0
    model.save(tmp_path / "m", dtype=dtype, sparse=sparse)
    coef = hinge.load(tmp_path / "m").to_estimator().coef_
    assert sp.issparse(coef) == (sparse is True)
    assert coef.dtype == (np.float32 if dtype == "float32" else np.float64)
    dense = coef.toarray() if sp.issparse(coef) else coef
    np.testing.assert_array_equal(dense, model.coef_.astype(coef.dtype))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"dtype": "int8"}, ValueError, "dtype must be None"),
        ({"dtype": object()}, ValueError, "dtype must be None"),
        ({"sparse": "yes"}, ValueError, "sparse must be"),
        ({"sparse": 1}, ValueError, "sparse must be"),
        ({"overwrite": 1}, ValueError, "overwrite must be"),
        ({"metadata": [1]}, TypeError, "metadata must be a dict or None, got list"),
        ({"metadata": {1: 2}}, TypeError, "metadata has the key 1"),
        ({"metadata": {"a": {"b": [0, {1}]}}}, TypeError, r"metadata\['a'\]\['b'\]\[1\] is a set"),
        ({"metadata": {"a": float("nan")}}, ValueError, r"metadata\['a'\] is nan"),
        ({"metadata": {"a": 2**70}}, ValueError, "whole numbers of 64 bits"),
        ({"metadata": {"a": np.float64(1)}}, TypeError, "is a float64"),
        ({"metadata": {"a": "\ud800"}}, ValueError, "UTF-8"),
    ],
)
def test_what_cannot_be_saved(tmp_path, given, error, message):
    model = LinearSVC().fit(*rows())
    with pytest.raises(error, match=message):
        model.save(tmp_path / "m", **given)
    assert list(tmp_path.iterdir()) == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda value: st.lists(value) | st.dictionaries(st.text(st.characters(codec="utf-8")), value),
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON))
def test_metadata_survive(tmp_path_factory, metadata):
    path = tmp_path_factory.mktemp("model") / "m"
    LinearSVC().fit(*rows()).save(path, metadata=metadata)
    assert hinge.load(path).metadata == metadata


def test_long_metadata_leave_the_head(tmp_path):
    metadata = {"notes": "long " * 10**6}
    LinearSVC().fit(*rows()).save(tmp_path / "m", metadata=metadata)
    assert hinge.load(tmp_path / "m").metadata == metadata
    head, _ = parts_of_file((tmp_path / "m").read_bytes())
    assert "metadata" in head
    assert "metadata" not in head["__metadata__"]


def test_parameters_of_all_types(tmp_path):
    given = {"C": np.float32(0.5), "class_weight": {0: 1.5, 1: float(2)}, "random_state": np.int64(3), "n_jobs": None}
    model = LinearSVC(**given).fit(*rows())
    model.save(tmp_path / "m")
    again = hinge.load(tmp_path / "m").to_estimator()
    assert all(same_value(getattr(again, name), value) for name, value in given.items())


def test_objects_of_parameters_become_defaults(tmp_path):
    from sklearn.model_selection import KFold

    model = LinearSVCCV(Cs=[1.0], cv=KFold(3, shuffle=True, random_state=0)).fit(*rows())
    model.save(tmp_path / "m")
    served = hinge.load(tmp_path / "m")
    with pytest.warns(UserWarning, match="the parameter cv was KFold"):
        again = served.to_estimator()
    assert again.cv == LinearSVCCV().cv
    assert_same(answers(again, rows()[0]), answers(model, rows()[0]))


def test_record(tmp_path):
    X, y = rows(3)
    model = LinearSVC(C=0.25).fit(X, y)
    model.save(tmp_path / "m")
    served = hinge.load(tmp_path / "m")
    record = served.record
    assert (record["estimator"], record["version"]) == ("LinearSVC", hinge.__version__)
    assert record["parameters"]["C"] == 0.25
    assert same_value(served.certificate_, model.certificate_)
    data = record["data"]
    assert (data["n_rows"], data["n_features"], data["n_entries"]) == (90, 6, 540)
    assert data["class_counts"] == np.bincount(y).tolist()
    assert data["made_with"]["numpy"] == np.__version__


def test_fingerprint_tells_data_apart():
    X, y = rows(2, 0, 5000)

    def fingerprint(X, y):
        return LinearSVC(tol=0.5).fit(X, y)._data["fingerprint"]

    first = fingerprint(X, y)
    assert first == fingerprint(X.copy(order="F"), list(y))
    changed, other = X.copy(), y.copy()
    changed[-1, -1] += 1e-9
    other[0] = 1 - other[0]
    sparse = fingerprint(sp.csr_matrix(X), y)
    assert sparse == fingerprint(sp.csc_array(X), y)
    assert len({first, sparse, fingerprint(changed, y), fingerprint(X, other), fingerprint(X[:, ::-1], y)}) == 5
    single = X.astype(np.float32)
    assert fingerprint(single, y) == fingerprint(single.astype(np.float64), y)


# of one array in whole, of its longest such, of blocks
@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (0, "b5c91b09cb7caf6d"),
        (5000, "86e8903f6ca0c404"),
        (131072, "625674e502c2d84e"),
        (131073, "afbb0d946838df3b"),
        (400003, "41f9ff075b636063"),
    ],
)
def test_fingerprints_are_those_of_earlier_versions(n, expected):
    k = np.arange(n)
    for value, index in ((np.float32, np.int32), (np.float64, np.int64), (np.float32, np.uint32)):
        starts, columns = (k[: n // 7 + 1] * 7).astype(index), (k * 2654435761 % 1000003).astype(index)
        arrays = (starts, columns, ((k % 1013) / 16 - 20).astype(value))
        assert _training_data._fingerprint((n // 7, 1000003), arrays) == f"xxh3:{expected}"


# ---- the format, as others see it


def parts_of_file(data):
    (length,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + length]), data[8 + length :]


@pytest.mark.parametrize("name", ["LinearSVC", "sparse_coef", "isotonic", "labels"])
def test_readers_of_safetensors_read_it(tmp_path, name):
    safetensors = pytest.importorskip("safetensors.numpy")
    model = MODELS[name](0)
    model.save(tmp_path / "m")
    tensors = safetensors.load_file(tmp_path / "m")
    np.testing.assert_array_equal(tensors["intercept"], np.ravel(model.intercept_))
    if sp.issparse(model.coef_):
        stored = tuple(tensors[f"coef.{part}"] for part in ("values", "indices", "indptr"))
        np.testing.assert_array_equal(sp.csr_array(stored, shape=model.coef_.shape).toarray(), model.coef_.toarray())
    else:
        np.testing.assert_array_equal(tensors["coef"], model.coef_)
    np.testing.assert_array_equal(tensors["classes"], model.classes_)


def test_random_damage_is_found(tmp_path):
    """The Rust tests have all kinds of models; here what Python makes of it."""
    random = np.random.default_rng(0)
    path, good = tmp_path / "bad", tmp_path / "good"
    for name in ("isotonic", "sparse labels", "degree 2"):
        MODELS[name](0).save(good)
        whole = good.read_bytes()
        for k in range(3334):
            data = bytearray(whole)
            if k % 4 == 0:
                data = data[: random.integers(len(data))]
            else:
                for at in random.integers(len(data), size=random.integers(1, 4)):
                    data[at] = random.integers(256)
            if bytes(data) == whole:
                continue
            path.write_bytes(data)
            with pytest.raises(ModelFileError, match=r"bad, [\w.]+: "):
                hinge.load(path)


def test_other_files_are_refused_and_kept(tmp_path):
    model = LinearSVC().fit(*rows())
    path = tmp_path / "x"
    path.write_text("dear diary")
    with pytest.raises(ModelFileError, match="x, format: it is not a hinge model"):
        hinge.load(path)
    with pytest.raises(FileExistsError, match="not a model file and is kept"):
        model.save(path)
    assert path.read_text() == "dear diary"
    model.save(path, overwrite=True)
    model.save(path)
    hinge.load(path)
    with pytest.raises(FileNotFoundError):
        hinge.load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        hinge.load(tmp_path)
    assert issubclass(ModelFileError, ValueError)


def test_newer_formats_say_so(tmp_path):
    path = tmp_path / "m"
    LinearSVC().fit(*rows()).save(path)
    path.write_bytes(path.read_bytes().replace(b'"format_version":"1"', b'"format_version":"7"'))
    with pytest.raises(ModelFileError, match="format_version: 7: written by a newer version of hinge"):
        hinge.load(path)


WRITER = """
import sys
import numpy as np
from hinge import _model_file
from hinge._parts import ModelParts

def parts(value, n=200_000):
    return ModelParts(n_features=n, coef=np.full((1, n), value), intercept=np.array([value]),
        classes=np.array([0, 1]), answer={"kind": "sign"}, record={"estimator": "LinearSVC", "version": "0",
        "label_dtype": "<i8", "parameters": {}, "fitted": {}, "data": {}, "metadata": {}})

value = 1.0
while True:
    _model_file.save(parts(value), sys.argv[1])
    if value == 1.0:
        print("ready", flush=True)
    value += 1.0
"""


def test_kills_leave_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "m"
    random = np.random.default_rng(0)
    last = 0.0
    for _ in range(50):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        try:
            assert writer.stdout.readline() == "ready\n"
            time.sleep(random.uniform(0, 0.05))
        finally:
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
            writer.stdout.close()
        found = hinge.load(path)
        value = found.decision_function(([0], [0.0]))
        assert value >= 1.0
        assert value == int(value)
        assert found.decision_function(([199_999], [1.0])) == 2 * value
        assert {entry.name for entry in tmp_path.iterdir()} <= {"m", "m.partial"}
        last = max(last, value)
    assert last > 1.0


def test_loading_needs_numpy_only(tmp_path):
    path = tmp_path / "m"
    LogisticRegression().fit(*rows(3)).save(path)
    code = (
        "import sys, hinge; served = hinge.load(sys.argv[1]); served.predict_proba([[0.0] * 6]); served.record; "
        "served.certificate_; served.save(sys.argv[1]); "
        "sys.exit(str({name for name in ('sklearn', 'scipy', 'pandas') if name in sys.modules} or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert done.stderr.strip() == ""
