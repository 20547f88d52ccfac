"""CSR matrices whose NumPy arrays are broken, by way of Python: one clear error or the right answer, never a crash.

Usage: ``python tests/hardening/triples.py [--cases 200000] [--seed 0] [--only WAY]``. A case is a small matrix of
which up to three things are spoiled: pointers that fall, do not start at 0 or leave the arrays; columns outside of the
matrix; arrays that are too short or too long, of another dtype, of two dimensions, strided, reversed, misaligned,
read-only, of the other byte order; int32 beside int64; flags of SciPy's that are not true; a shape up to 2**63 - 1. It
goes into a fit, a prediction, a store, a search or another way in. What it means is worked out in Python's own numbers.
Where it means nothing there must be a ValueError or a TypeError that names what is wrong; where it is an ordinary
matrix, the answer for the dense one; between these (floats as pointers, say) either. A MemoryError is right for shapes
that are too large, an OSError never. Cases run in child processes of 3 GB, 20 seconds at most for each; a child that
dies is a failure, and the next one goes on behind the case that killed it.
"""

import re
import tempfile
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import hinge
import numpy as np
import scipy.sparse as sp
from children import Run, asked_for, ends, load_all_names, words_of
from hinge import _native

NUMBERS = [0, 1, -1, 2, 127, 128, 255, 256, 2**31 - 1, -(2**31), 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, -(2**63)]
VALUES = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 1e200]
KINDS = ["i1", "u1", "i2", "u2", "u4", "u8", ">i4", ">i8", "f4", "f8", "?", "O", "c8", "S3", "M8[s]"]
VALUE_KINDS = ["f2", "g", "i4", "i8", "u1", "?", "O", "c16", ">f4", ">f8", "S3", "M8[s]", "V8"]
NAMES = re.compile(
    r"indptr|indices|index|data|row|column|shape|dimension|dtype|finite|NaN|nan|infinity|features|samples|float|"
    r"number|complex|large|entr|must hold|weights: expected|contiguous"
)


@dataclass(frozen=True)
class Case:
    """The arrays of a matrix, its shape, and whether SciPy might have made them: if they mean anything."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    shape: tuple
    plain: bool = True


def sound(random):
    """A matrix with nothing wrong; columns of a row in any order, some of them twice."""
    n, d = int(random.integers(2, 9)), int(random.integers(1, 7))
    lengths = random.integers(0, d + 2, n)
    columns = [random.permutation(d)[:m] if m <= d else random.integers(0, d, m) for m in lengths]
    if random.random() < 0.7:
        columns = [np.sort(row) for row in columns]
    value = random.choice(["f4", "f8"])
    widths = random.choice(["i4", "i8"], 2) if random.random() < 0.3 else [random.choice(["i4", "i8"])] * 2
    indices = np.concatenate(columns).astype(widths[1])
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in columns])]).astype(widths[0])
    data = random.integers(-8, 9, len(indices)).astype(value) / 4
    return Case(indptr, indices, data, (n, d))


def number(random, old, near):
    """A whole number that is nearly right, or far from it."""
    kind = random.integers(4)
    if kind == 0:
        return int(old) + int(random.integers(-2, 3))
    if kind == 1:
        return near + int(random.integers(-1, 2))
    if kind == 2:
        return NUMBERS[random.integers(len(NUMBERS))]
    return int(random.integers(-(2**63), 2**63 - 1))


def put(array, at, new):
    """A copy with one number replaced, by what the dtype makes of it."""
    copy = array.copy()
    if copy.dtype.kind in "iu":
        info = np.iinfo(copy.dtype)
        new = (new - int(info.min)) % (int(info.max) - int(info.min) + 1) + int(info.min)
    try:
        copy[at] = new
    except (TypeError, ValueError, OverflowError):
        return array
    return copy


def laid(random, array):
    """The same numbers in memory of another kind."""
    kind = random.integers(5)
    if kind == 0:
        twice = np.zeros((len(array), 2), array.dtype) if array.ndim == 1 else np.zeros(2, array.dtype)
        if array.ndim != 1:
            return array
        twice[:, 0] = array
        return twice[:, 0]
    if kind == 1 and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    if kind == 2 and array.dtype.kind != "O":
        bytes_ = bytearray(array.nbytes + 1)
        moved = np.frombuffer(bytes_, array.dtype, array.size, 1) if array.size else array
        if array.size:
            moved[:] = array.ravel()
        return moved.reshape(array.shape)
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def converted(array, kind):
    """The array in another dtype, unless NumPy cannot do it."""
    with np.errstate(all="ignore"):
        try:
            return array.astype(kind)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            return array


def spoiled(random, case):
    """The case with one thing changed."""
    indptr, indices, data, (n, d) = case.indptr, case.indices, case.data, case.shape
    name = ("indptr", "indices", "data")[random.integers(3)]
    array = getattr(case, name)
    what = random.integers(14)
    if what <= 2 and indptr.ndim == 1 and len(indptr):
        at = int(random.integers(len(indptr)))
        old = indptr[at] if indptr.dtype.kind in "iu" else 0
        return replace(case, indptr=put(indptr, at, number(random, old, indices.size)))
    if what <= 4 and indices.ndim == 1 and len(indices):
        at = int(random.integers(len(indices)))
        old = indices[at] if indices.dtype.kind in "iu" else 0
        return replace(case, indices=put(indices, at, number(random, old, min(d, 2**62))))
    if what == 5 and data.ndim == 1 and len(data):
        return replace(case, data=put(data, int(random.integers(len(data))), VALUES[random.integers(len(VALUES))]))
    if what == 6 and array.ndim == 1:
        return replace(case, **{name: array[: random.integers(len(array) + 1)]}, plain=False)
    if what == 7 and array.ndim == 1 and len(array):
        return replace(
            case, **{name: np.concatenate([array, array[: random.integers(1, len(array) + 1)]])}, plain=False
        )
    if what == 8:
        kinds = VALUE_KINDS if name == "data" else KINDS
        return replace(case, **{name: converted(array, kinds[random.integers(len(kinds))])}, plain=False)
    if what == 9 and name != "data" and indptr.dtype.kind == "i":
        return replace(case, **{name: array.astype(["i4", "i8"][random.integers(2)])})
    if what == 10 and array.ndim == 1:
        shapes = [(1, -1), (-1, 1)] + ([(-1, 2)] if array.size % 2 == 0 else []) + ([()] if array.size == 1 else [])
        return replace(case, **{name: array.reshape(shapes[random.integers(len(shapes))])}, plain=False)
    if what == 11:
        rows = [n - 1, n + 1, 0, 2**31, 2**62, 2**63 - 1, n, n, n][random.integers(9)]
        columns = [d - 1, d + 1, 0, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, d][random.integers(9)]
        return replace(case, shape=(max(rows, 0), max(columns, 0)), plain=rows > 0 and columns > 0 and case.plain)
    if what == 12 and case.plain and indptr.ndim == 1 and len(indptr) > 1 and indptr.dtype.kind == "i":
        return replace(case, indptr=np.roll(indptr, int(random.integers(1, len(indptr)))))
    return replace(case, **{name: laid(random, array)})


def drawn(seed):
    """A case, half of them with one thing spoiled, an eighth sound."""
    random = np.random.default_rng(seed)
    case = sound(random)
    for _ in range(random.choice([0, 1, 1, 1, 1, 2, 2, 3])):
        case = spoiled(random, case)
    return random, case


def whole(numbers):
    """The numbers of an array as Python's integers, None where one is no whole number."""
    if numbers.ndim != 1 or numbers.dtype.kind not in "iufbO":
        return None
    found = numbers.tolist()
    if any(isinstance(x, float) and (x != x or abs(x) == np.inf or x != int(x)) for x in found):
        return None
    if not all(isinstance(x, (int, float)) for x in found):
        return None
    return [int(x) for x in found]


def meaning(case, least=1):
    """Rows as dicts of column and value by the definition of CSR, ``least`` of each; None where there is none."""
    indptr, indices = whole(case.indptr), whole(case.indices)
    if case.data.ndim != 1 or case.data.dtype.kind not in "fiubOS" or None in (indptr, indices):
        return None
    try:
        values = [float(value) for value in case.data]  # texts of numbers are converted, as scikit-learn does
    except (TypeError, ValueError):
        return None
    n, d = case.shape
    if n < least or d < least or len(indptr) != n + 1 or indptr[0] != 0 or sorted(indptr) != indptr:
        return None
    if indptr[-1] > min(len(indices), len(values)):
        return None
    rows = []
    for begin, end in pairwise(indptr):
        row = {}
        for j, value in zip(indices[begin:end], values[begin:end], strict=True):
            if not 0 <= j < d or not np.isfinite(value):
                return None
            row[j] = row.get(j, 0.0) + value
        if not all(np.isfinite(value) for value in row.values()):
            return None
        rows.append(row)
    return rows


def with_arrays(random, case):
    """SciPy's matrix with these arrays put into it behind its back, some flags of it untrue."""
    kind = sp.csr_matrix if random.random() < 0.5 else sp.csr_array
    X = kind((1, 1))
    X.indptr, X.indices, X.data = case.indptr, case.indices, case.data
    X._shape = case.shape
    if random.random() < 0.2:
        X.has_sorted_indices = True
    if random.random() < 0.2:
        X.has_canonical_format = True
    return X


def dense(rows, d):
    """The array of rows; None where it would be large."""
    if d > 1000:
        return None
    array = np.zeros((len(rows), d))
    for i, row in enumerate(rows):
        for j, value in row.items():
            array[i, j] = value
    return array


class Models:
    """Fitted models by number of columns."""

    def __init__(self):
        self.made = {}

    def of(self, d, k):
        """A model of ``k`` classes for ``d`` columns."""
        if (d, k) not in self.made:
            random = np.random.default_rng(d + 100 * k)
            X = random.standard_normal((30, d))
            self.made[d, k] = hinge.LinearSVC(n_jobs=1).fit(X, np.arange(30) % k)
        return self.made[d, k]


MODELS = Models()


def labels(n):
    return np.arange(min(n, 10**6)) % 2


def same_values(found, X, model):
    """Whether decision values are those of a dense X."""
    expected = X @ model.coef_.T + model.intercept_
    scale = np.abs(X) @ np.abs(model.coef_.T) + np.abs(model.intercept_) + 1
    return found.shape == expected.shape and (np.abs(found - expected) <= 1e-12 * scale).all()


def fits(random, X, wanted):
    """A fit; its weights are near those of the dense fit, as far as both gaps allow."""
    loss = str(random.choice(["hinge", "squared_hinge", "modified_huber"]))
    options = {"n_jobs": int(random.choice([1, 1, 2])), "loss": loss, "tol": 1e-7}
    options["presolve"] = [True, False, "auto"][random.integers(3)]
    model = hinge.LinearSVC(**options).fit(X, labels(X.shape[0]))
    D = wanted()
    if D is None:
        return True
    twin = hinge.LinearSVC(**options).fit(D, labels(len(D)))
    mine, other = model.certificate_, twin.certificate_
    slack = sum(np.sqrt(2 * np.maximum(c.primal - c.dual, 0)) for c in (mine, other))
    return bool((np.linalg.norm(model.coef_ - twin.coef_) <= slack * (1 + 1e-9) + 1e-9).all())


def decides(random, X, wanted):
    """Decision values of an estimator."""
    model = MODELS.of(min(max(X.shape[1], 1), 8), int(random.choice([2, 3])))
    found = model.decision_function(X)
    return same_values(found.reshape(X.shape[0], -1), wanted(), model)


def serves(random, X, wanted):
    """Decision values of a predictor."""
    model = MODELS.of(min(max(X.shape[1], 1), 8), int(random.choice([2, 3])))
    found = hinge.Predictor.of(model, n_threads=1).decision_function(X)
    return same_values(found.reshape(X.shape[0], -1), wanted(), model)


def answers_row(random, X, wanted):
    """One row as (indices, values), all that the arrays hold."""
    model = MODELS.of(min(max(X.shape[1], 1), 8), 2)
    found = hinge.Predictor.of(model).decision_function((X.indices, X.data))
    columns, values = whole(X.indices), X.data.tolist()
    if X.indices.size == 0 and X.data.size == 0:
        columns, values = [], []  # of any kind
    if columns is None or X.data.ndim != 1 or len(columns) != len(values):
        return False
    if not all(0 <= j < model.n_features_in_ for j in columns):
        return False
    row = np.zeros((1, model.n_features_in_))
    np.add.at(row[0], columns, np.array(values, dtype=np.float64))
    return same_values(np.reshape(found, (1, -1)), row, model)


def maps(random, X, wanted):
    """Degree-2 features, against those of the dense matrix."""
    known = hinge.Poly2Map().fit(np.ones((2, max(min(X.shape[1], 50), 1))))
    found = known.transform(X)
    D = wanted()
    return abs(found - known.transform(D)).max() <= 1e-6 * max(1.0, abs(D).max() ** 2)


def learns(random, X, wanted):
    """A piece of a stream; its weights are those of the dense piece."""
    model = hinge.LinearSVC(n_jobs=1).partial_fit(X, labels(X.shape[0]), classes=[0, 1])
    D = wanted()
    if D is None:
        return True
    twin = hinge.LinearSVC(n_jobs=1).partial_fit(
        D.astype("f4" if X.dtype == np.float32 else "f8"), labels(len(D)), classes=[0, 1]
    )
    return np.allclose(model.coef_, twin.coef_, rtol=1e-3, atol=1e-6)


def stores(random, X, wanted):
    """A store of the rows, read back."""
    with tempfile.TemporaryDirectory() as folder:
        store = hinge.BlockStore.build((X, labels(X.shape[0])), Path(folder) / "s", n_blocks=2, n_jobs=1)
        D = wanted()
        if D is None:
            return True
        found = sorted(map(tuple, np.vstack([block.X.toarray() for block in store.iter_blocks()]).tolist()))
    return np.allclose(found, sorted(map(tuple, D.tolist())), rtol=1e-6)


def searches(random, X, wanted):
    """A search of two values; accuracies are those of the dense search."""
    y = labels(X.shape[0])
    options = {"Cs": [0.1, 1.0], "cv": 2, "n_jobs": 1, "max_iter": 200, "loss": "squared_hinge"}
    found = hinge.select_C(X, y, **options)
    D = wanted()
    return D is None or np.allclose(found.C, hinge.select_C(D, y, **options).C)


def planes(random, X, wanted):
    """A plane of costs, as large as that of the dense rows."""
    y = labels(X.shape[0])
    found = hinge.cost_path(X, y, max_regions=50, n_jobs=1)
    D = wanted()
    return D is None or found.n_facets == hinge.cost_path(D, y, max_regions=50, n_jobs=1).n_facets


def labelled(random, X, wanted):
    """The matrix as labels: it must be refused unless it holds 0 and 1 alone."""
    Y = np.random.default_rng(0).standard_normal((X.shape[0] if X.shape[0] < 100 else 8, 3))
    hinge.LinearSVC(n_jobs=1, max_iter=20, tol=0.1).fit(Y, X)
    if X.shape[1] == 0:
        return True  # no labels at all
    D = wanted()
    return X.dtype == bool or bool(((D == 0) | (D == 1)).all())


def natives(random, X, wanted):
    """The arrays as they are, into the module below, which takes as many rows as there are pointers, also none."""
    triple = (X.indptr, X.indices, X.data, X.shape[1])
    way = random.integers(3)
    if way == 0:
        _native.check(triple)
        return wanted() is not None or X.shape[1] > 1000
    if way == 1:
        _native.ColumnIndex(X.indptr, X.indices, X.shape[1])
        indptr, columns = whole(X.indptr), whole(X.indices)
        used = columns[: indptr[-1]]
        return indptr == sorted(indptr) and indptr[0] == 0 and all(0 <= j < X.shape[1] for j in used)
    k, d = 2, X.shape[1] if X.shape[1] <= 50 else 3
    coef, intercept = np.arange(1.0, 1 + k * d).reshape(k, d), np.array([0.5, -0.5])
    found = _native.decision_values(triple, (coef, intercept, False, 1))
    D = wanted()
    return D is not None and np.allclose(found, D @ coef.T + intercept, rtol=1e-12)


WAYS = {
    "fit": (fits, 25),
    "decision_function": (decides, 25),
    "predictor": (serves, 15),
    "row of a predictor": (answers_row, 10),
    "native arrays": (natives, 25),
    "degree 2": (maps, 6),
    "partial_fit": (learns, 6),
    "store": (stores, 3),
    "labels": (labelled, 6),
    "search": (searches, 2),
    "plane": (planes, 1),
}
# What takes these arrays as they are, and refuses what an estimator would convert.
STRICT = ("native arrays",)
# What reads more or less of them than a matrix has.
LOOSE = ("row of a predictor", "labels")


def tried(seed, only, counts):
    """None, or what is wrong with the way the case ended."""
    random, case = drawn(seed)
    names = [only] if only else list(WAYS)
    weights = np.array([WAYS[name][1] for name in names], dtype=float)
    name = names[random.choice(len(names), p=weights / weights.sum())]
    X = with_arrays(random, case)
    if name in STRICT:
        case = replace(case, shape=(max(case.indptr.size - 1, 0), case.shape[1]))
    rows = meaning(case, least=name not in STRICT)

    def wanted():
        if rows is None:
            raise AssertionError("arrays that mean nothing were taken")
        return dense(rows, case.shape[1])

    is_large = max(case.shape) > 1000
    try:
        is_right = WAYS[name][0](random, X, wanted)
    except (ValueError, TypeError) as error:
        said = re.sub(r"[-+]?[0-9][0-9.e+]*", "0", str(error))[:90]
        counts[f"{name}: {type(error).__name__}: {said}"] += 1
        counts["refused"] += 1
        if not NAMES.search(words_of(error)) or "panic" in words_of(error):
            return f"{name}: unclear: {error!r}"
        is_ordinary = rows is not None and case.plain and not is_large and name not in STRICT + LOOSE
        if is_ordinary and not says_why(str(error)):
            return f"{name}: an ordinary matrix was refused: {error!r}"
        return None
    except MemoryError as error:
        counts["no memory"] += 1
        return None if is_large else f"{name}: {error!r}"
    except BaseException as error:
        return f"{name}: {type(error).__name__}: {error}"
    counts["taken"] += 1
    return None if is_right else f"{name}: a wrong answer"


def says_why(text):
    """Whether a matrix with a meaning was refused for a reason of its own: too few rows of a class, too large."""
    reasons = r"scale the features|do not rise|max_regions|too large|of a class|one class|features, but|samples|label"
    return re.search(reasons, text)


def main():
    asked = asked_for(__doc__, WAYS, 200_000)
    load_all_names(hinge)
    start = time.monotonic()
    run = Run(lambda seed, counts: tried(seed, asked.only, counts), asked.seed, asked.cases).run()
    total, deaths = run.total, len(run.deaths)
    failures = total["failures"] + deaths
    counted = ends(total, asked, ("taken", "refused", "no memory"))
    print(f"{asked.cases} cases in {time.monotonic() - start:.0f} s: {counted}; {deaths} deaths, {failures} failures")
    raise SystemExit(failures > 0)


if __name__ == "__main__":
    main()
