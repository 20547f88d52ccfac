"""Sparse arrays with spoiled index arrays: a ValueError at every entrance, and never the end of the process."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import LinearSVC, Poly2Map, Predictor, _sparse, select_C

FORMATS = ("csr", "csc", "bsr", "coo", "dia", "lil", "dok")


def example(layout, dtype=np.float64):
    """A matrix of 8 x 12 with about half of its entries; 2 x 3 blocks where it has any."""
    X = sp.random(8, 12, 0.5, format="csr", random_state=0)
    X.data = np.arange(1, X.nnz + 1).astype(dtype)
    return X.tobsr((2, 3)) if layout == "bsr" else X.asformat(layout)


@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("shape", [(8, 12), (1, 1), (3, 0), (0, 3)])
def test_good_matrices_pass(layout, shape):
    _sparse.check(example(layout))
    _sparse.check(sp.csr_matrix(shape).asformat(layout))
    X = example("csr")
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    X.indices[:2] = X.indices[1], X.indices[1]  # a duplicate
    _sparse.check(X)


def put(name, place, value):
    def spoil(X):
        getattr(X, name)[place] = value

    return spoil


def cut(name):
    def spoil(X):
        setattr(X, name, getattr(X, name)[:-3].copy())

    return spoil


def wrap_around(X):
    """Two pointers whose difference is 1 in 32 bits."""
    X.indptr[3:5] = 2**31 - 1, -(2**31)


COMPRESSED = {
    "index": (put("indices", 5, 10**8), "index 100000000 is outside 0.."),
    "negative index": (put("indices", 5, -1), "index -1 is outside 0.."),
    "falling": (put("indptr", 2, 0), "indptr falls from"),
    "beyond": (put("indptr", -1, 10**8), "indptr reaches 100000000, only"),
    "start": (put("indptr", 0, 1), "indptr starts at 1"),
    "wrap": (wrap_around, "indptr falls from 2147483647 to -2147483648"),
    "short pointers": (cut("indptr"), "one entry more"),
    "short data": (cut("data"), "entries are stored"),
    "indices of no dimension": (lambda X: setattr(X, "indices", X.indices[0].reshape(())), "of 1 dimension"),
    "pointers of floats": (lambda X: setattr(X, "indptr", X.indptr.astype(float)), "integers of 1 dimension"),
}


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_formats(layout, name):
    spoil, message = COMPRESSED[name]
    X = example(layout)
    spoil(X)
    with pytest.raises(ValueError, match=message):
        _sparse.check(X)


def longer_list(X):
    X.data[2].append(1.0)


def key_outside(X):
    X._dict[(8, 3)] = 1.0


OTHERS = [
    ("bsr", lambda X: setattr(X, "data", X.data[:, :, :2].repeat(4, axis=2)[:, :, :5]), "cannot have the blocks"),
    ("coo", put("row", 4, 8), r"X.row\[4\] is 8, it must be at least 0 and below 8"),
    ("coo", put("col", 4, -(2**31)), r"X.col\[4\] is -2147483648"),
    ("coo", cut("data"), "X.row has .* entries, X.data has"),
    ("dia", cut("offsets"), "offsets, data must have as many rows"),
    ("dia", put("offsets", 0, 3), "must differ"),
    ("lil", put("rows", 2, [1, 12]), "row 2: "),
    ("lil", longer_list, "row 2: .* columns and .* values"),
    ("dok", key_outside, r"X\[8, 3\] is outside"),
]


@pytest.mark.parametrize(("layout", "spoil", "message"), OTHERS)
def test_other_formats(layout, spoil, message):
    X = example(layout)
    spoil(X)
    with pytest.raises(ValueError, match=message):
        _sparse.check(X)


def test_the_place_is_named():
    X = example("csc")
    X.indices[X.indptr[7]] = 99
    with pytest.raises(ValueError, match=r"input y, column 7: row index 99 is outside 0..8"):
        _sparse.check(X, "y")


@pytest.mark.parametrize("layout", [sp.coo_array, sp.csr_array])
def test_one_dimension_is_refused_by_name(layout):
    line, (X, y) = layout(np.arange(12.0)), (example("csr"), np.arange(8) % 2)
    model = LinearSVC().fit(X, y)
    for call in (lambda: LinearSVC().fit(line, [1]), lambda: model.predict(line), lambda: select_C(line, [1])):
        with pytest.raises(ValueError, match=r"X must be a matrix of 2 dimensions, got .* of shape \(12,\)"):
            call()
    with pytest.raises(ValueError, match="y must be a matrix of 2 dimensions"):
        LinearSVC().fit(X, layout(np.arange(8)))
    with pytest.raises(ValueError, match="X must be a matrix of 2 dimensions"):
        Poly2Map().fit(line)


def misaligned(array):
    """The same numbers a byte behind an address for their kind, as they lie in records of files."""
    moved = np.frombuffer(bytearray(array.nbytes + 1), array.dtype, array.size, 1).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


@pytest.mark.parametrize("name", ["indptr", "indices", "data"])
def test_arrays_between_addresses_are_copied(name):
    X, moved, y = example("csr"), example("csr"), np.arange(8) % 2
    setattr(moved, name, misaligned(getattr(X, name)))
    model = LinearSVC().fit(moved, y)
    assert (model.coef_ == LinearSVC().fit(X, y).coef_).all()
    assert (model.decision_function(moved) == model.decision_function(X)).all()
    predictor = Predictor.of(model)
    assert (predictor.decision_function(moved) == predictor.decision_function(X)).all()
    row = X.indices[: X.indptr[1]], X.data[: X.indptr[1]]
    assert predictor.decision_function(tuple(map(misaligned, row))) == predictor.decision_function(row)


def test_a_dense_array_between_addresses_is_copied():
    X, y = example("csr").toarray(), np.arange(8) % 2
    model = LinearSVC().fit(misaligned(X), y)
    assert (model.coef_ == LinearSVC().fit(X, y).coef_).all()
    for answers in (model, Predictor.of(model)):
        assert (answers.decision_function(misaligned(X)) == answers.decision_function(X)).all()


@pytest.mark.parametrize("name", ["indptr", "indices"])
@pytest.mark.parametrize("kind", ["f8", "c8", "M8[s]"])
def test_index_arrays_of_another_kind_are_refused(name, kind):
    y = np.arange(8) % 2
    model = LinearSVC().fit(example("csr"), y)
    X = example("csr")
    numbers = getattr(X, name).astype(kind)
    if kind != "M8[s]":
        numbers[1] += 0.5
    setattr(X, name, numbers)
    predictor = Predictor.of(model)
    for call in (lambda: LinearSVC().fit(X, y), lambda: model.predict(X), lambda: predictor.predict(X)):
        with pytest.raises(ValueError, match=f"X.{name} must be integers"):
            call()


def test_whole_numbers_above_every_matrix_are_named():
    X = example("csr")
    model = LinearSVC().fit(X, np.arange(8) % 2)
    X.indices = X.indices.astype(np.uint64)
    X.indices[3] = 2**64 - 1
    with pytest.raises(ValueError, match=r"X\.indices holds 18446744073709551615"):
        model.predict(X)


def test_pointers_of_no_dimension_are_refused_by_name():
    X = example("csr")
    X.indptr = np.array(0, np.int32)
    with pytest.raises(ValueError, match="indptr must have one entry more"):
        LinearSVC().fit(X, np.arange(8) % 2)


@pytest.mark.parametrize("name", ["indices", "data"])
def test_arrays_of_two_dimensions_are_refused_by_name(name):
    X = example("csr")
    setattr(X, name, getattr(X, name)[:, None])
    with pytest.raises(ValueError, match="one dimension each"):
        LinearSVC().fit(X, np.arange(8) % 2)


def test_labels_of_two_dimensions_are_refused():
    Y = sp.csr_matrix(example("csr") > 0)
    Y.data = Y.data[:, None]
    with pytest.raises(ValueError, match=r"y\.data must have 1 dimension"):
        LinearSVC().fit(example("csr"), Y)


def test_values_that_are_no_numbers_are_refused():
    X = example("csr")
    model = LinearSVC().fit(X, np.arange(8) % 2)
    X.data = X.data.view("V8")
    with pytest.raises(ValueError, match="X must hold numbers"):
        model.predict(X)


@pytest.mark.parametrize("value", [np.inf, 1e200])
def test_a_stream_names_values_that_are_too_large(value):
    X = example("csr")
    X.data[3] = value
    with pytest.raises(ValueError, match=r"only finite numbers are accepted|squared norm"):
        LinearSVC().partial_fit(X, np.arange(8) % 2, classes=[0, 1])


def test_a_stream_of_large_values_in_single_precision():
    X = example("csr", np.float32)
    X.data[3] = 1e25  # its square is beyond single precision
    model = LinearSVC().partial_fit(X, np.arange(8) % 2, classes=[0, 1])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()


FUZZ = """
import os, random, sys, tempfile, warnings
import numpy as np, scipy.sparse as sp, hinge
warnings.filterwarnings("ignore")
lots = random.Random(int(sys.argv[1]))
folder = tempfile.TemporaryDirectory()
store = os.path.join(folder.name, "fuzz.blocks")
good, y = sp.random(8, 12, 0.5, format="csr", random_state=0), np.arange(8) % 2
three = np.arange(8) % 3
svc, square = hinge.LinearSVC().fit(good, y), hinge.LinearSVC(degree=2).fit(good, y)
many = hinge.LinearSVC(sparse_coef=True).fit(good, three)
stream = {"memory_budget": "50MB"}
plane = hinge.cost_path(good, y, box=(0.5, 0.5))

def labels(X):
    if X.format not in ("lil", "dok"):
        X.data[...] = 1
    return X

ENTRANCES = {
    "fit": lambda X: hinge.LinearSVC().fit(X, y),
    "presolve": lambda X: hinge.LinearSVC(presolve=True).fit(X, y),
    "degree 2": lambda X: hinge.LinearSVC(degree=2).fit(X, y),
    "crammer_singer": lambda X: hinge.LinearSVC(multi_class="crammer_singer").fit(X, three),
    "labels": lambda X: hinge.LinearSVC().fit(good, labels(X)),
    "score of labels": lambda X: hinge.LinearSVC().fit(good, np.c_[y, 1 - y, y]).score(good, labels(X)),
    "search": lambda X: hinge.select_C(X, y, cv=2, Cs=[1.0]),
    "search of degree 2": lambda X: hinge.select_C(X, y, cv=2, Cs=[1.0], degree=2),
    "LogisticRegressionCV": lambda X: hinge.LogisticRegressionCV(cv=2, Cs=[1.0]).fit(X, y),
    "predict": svc.predict,
    "score": lambda X: svc.score(X, y),
    "predict of degree 2": square.predict,
    "predict_top_k": lambda X: many.predict_top_k(X, 2),
    "iter_predictions": lambda X: list(hinge.iter_predictions(svc, (X, y))),
    "iter_predictions, pieces": lambda X: list(hinge.iter_predictions(square, [(X, y)])),
    "partial_fit": lambda X: hinge.LinearSVC(**stream).partial_fit(X, y, classes=[0, 1]),
    "second partial_fit": lambda X: hinge.LinearSVC(**stream).partial_fit(good, y, classes=[0, 1]).partial_fit(X, y),
    "Pegasos": lambda X: hinge.PegasosClassifier(max_iter=3).fit(X, y),
    "Pegasos, partial_fit": lambda X: hinge.PegasosClassifier().partial_fit(X, y, classes=[0, 1]),
    "build": lambda X: hinge.BlockStore.build((X, y), store),
    "build, pieces": lambda X: hinge.BlockStore.build([(X, y)], store, relabel=False),
    "build, function": lambda X: hinge.BlockStore.build(lambda: [(X, y)], store),
    "Poly2Map.fit": lambda X: hinge.Poly2Map().fit(X),
    "Poly2Map.transform": lambda X: hinge.Poly2Map().fit(good).transform(X),
    "Poly2Map.usage": lambda X: hinge.Poly2Map().fit(good).usage(X),
    "cost_path": lambda X: hinge.cost_path(X, y, box=(0.5, 0.5)),
    "score_surface": lambda X: plane.score_surface(X, y),
    "plane, predict": lambda X: plane.predict(X, 0.2, 0.2),
    "select_costs": lambda X: hinge.select_costs(X, y, cv=2, box=(0.5, 0.5)),
}
NUMBERS = [-(2**31), -(10**8), -1, 0, 1, 7, 8, 12, 10**5, 10**8, 2**31 - 1]
PARTS = {"coo": ["row", "col", "data"], "dia": ["offsets"], "lil": ["rows"], "dok": ["_dict"]}

def spoiled(layout):
    X = good.tobsr((2, 3)) if layout == "bsr" else good.astype(lots.choice([float, np.float32, int])).asformat(layout)
    for _ in range(lots.choice([1, 1, 1, 2])):
        part = lots.choice(PARTS.get(layout, ["indptr", "indices", "data"]))
        numbers, value = getattr(X, part), lots.choice(NUMBERS)
        if part == "_dict":
            numbers[(value, 3)] = 1.0
        elif part == "rows":
            numbers[lots.randrange(8)].append(value)
        elif part == "data" or lots.random() < 0.15:
            setattr(X, part, numbers[: lots.randrange(len(numbers))].copy())
        else:
            numbers[lots.randrange(len(numbers))] = value
    return X

refused = 0
for case in range(int(sys.argv[2])):
    name, layout = lots.choice(list(ENTRANCES)), lots.choice(["csr"] * 3 + ["csc", "bsr", "coo", "dia", "lil", "dok"])
    print(case, name, layout, file=sys.stderr, flush=True)
    try:
        X = spoiled(layout)
        ENTRANCES[name](X)
    except ValueError:
        refused += 1
print(refused)
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_no_entrance_ends_the_process(seed):
    done = subprocess.run([sys.executable, "-c", FUZZ, str(seed), "250"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    assert int(done.stdout) > 100
