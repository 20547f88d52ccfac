"""What a prediction costs, beside scikit-learn, NumPy and ONNX Runtime: one table, with what is asked of each figure.

One sparse row of 50 of 1,000,000 features, given as ``(indices, values)``, as a CSR matrix and by names; batches of
10,000 such rows; several Python threads. Every call gets another row, as in service, and everything is warm. Ratios are
of one run, in which the rivals take turns.

    python benches/serve.py
    python benches/serve.py --features 10000 --calls 200
"""

from __future__ import annotations

import argparse
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import hinge
import numpy as np
import scipy.sparse as sp
from hinge import Predictor
from sklearn.svm import LinearSVC as SklearnSVC

LENGTH = 50
N_ROWS = 10_000
N_SINGLE = 1_000
N_WORKERS = 8


@dataclass
class Figure:
    """A line of the table."""

    what: str
    found: str
    asked: str = ""
    is_met: bool | None = None


@dataclass
class Setup:
    """A model of two classes, in every shape that is compared, and rows for it."""

    n_features: int
    n_calls: int
    X: sp.csr_matrix = field(init=False)
    ours: hinge.LinearSVC = field(init=False)
    theirs: SklearnSVC = field(init=False)
    predictor: Predictor = field(init=False)

    def __post_init__(self) -> None:
        random = np.random.default_rng(0)
        indices = np.sort(random.integers(0, self.n_features, (N_ROWS, LENGTH)), axis=1).astype(np.int32).ravel()
        indptr = np.arange(N_ROWS + 1, dtype=np.int32) * LENGTH
        self.X = sp.csr_matrix((random.standard_normal(len(indices)), indices, indptr), (N_ROWS, self.n_features))
        self.ours, self.theirs = hinge.LinearSVC(), SklearnSVC()
        for model in (self.ours, self.theirs):
            model.coef_, model.intercept_ = random.standard_normal((1, self.n_features)), np.array([0.5])
            model.classes_, model.n_features_in_ = np.array([0, 1]), self.n_features
        self.theirs.coef_ = self.ours.coef_
        self.predictor = Predictor.of(self.ours)

    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Single rows as (indices, values)."""
        X = self.X
        return [
            (X.indices[a:b].copy(), X.data[a:b].copy())
            for a, b in itertools.pairwise(X.indptr[: N_SINGLE + 1].tolist())
        ]

    def matrices(self) -> list[sp.csr_matrix]:
        """Single rows as matrices."""
        return [self.X[i : i + 1] for i in range(N_SINGLE)]


def calls(
    function: Callable[[Any], Any], rows: list[Any], n_calls: int, put_together: Callable[[Any], Any] | None = None
) -> np.ndarray:
    """Microseconds of each call, without the first round; where rows are put together before, not of that."""
    clock, spent = time.perf_counter_ns, []
    for row in rows:
        function(row)
    for given in itertools.islice(itertools.cycle(rows), n_calls):
        row = given if put_together is None else put_together(given)
        start = clock()
        function(row)
        spent.append(clock() - start)
    return np.array(spent) / 1e3


def middle(spent: np.ndarray) -> str:
    p50, p99 = np.percentile(spent, [50, 99])
    return f"p50 {p50:8.2f} us   p99 {p99:8.2f} us"


def at_most(what: str, spent: np.ndarray, p50: float, p99: float | None = None) -> Figure:
    found = np.percentile(spent, [50, 99])
    is_met = bool(found[0] <= p50 and (p99 is None or found[1] <= p99))
    asked = f"p50 <= {p50:g} us" + ("" if p99 is None else f", p99 <= {p99:g} us")
    return Figure(what, middle(spent), asked, is_met)


def single_rows(setup: Setup) -> Iterator[Figure]:
    pairs, matrices, n = setup.pairs(), setup.matrices(), setup.n_calls
    predictor, w = setup.predictor, setup.ours.coef_[0]
    yield at_most("Predictor, (indices, values)", calls(predictor.decision_function, pairs, n), 3, 10)
    yield Figure("Predictor.predict, (indices, values)", middle(calls(predictor.predict, pairs, n)))
    yield Figure("NumPy, w[indices] @ values", middle(calls(lambda row: w[row[0]] @ row[1] + 0.5, pairs, n)))
    runtime = onnx_row(w)
    if runtime is None:
        yield Figure("ONNX Runtime, Gather and MatMul", "not installed")
    else:
        wide = [(indices.astype(np.int64), values) for indices, values in pairs]
        yield Figure("ONNX Runtime, Gather and MatMul", middle(calls(runtime, wide, n)))
    yield Figure("Predictor, CSR matrix of one row", middle(calls(predictor.decision_function, matrices, n)))
    ours = calls(setup.ours.decision_function, matrices, n)
    theirs = calls(setup.theirs.decision_function, matrices, n)
    ratio = float(np.median(ours) / np.median(theirs))
    yield Figure("scikit-learn, CSR matrix of one row", middle(theirs))
    yield Figure("estimator, CSR matrix of one row", f"{middle(ours)}   {ratio:.3f} x", "<= 0.2 x", ratio <= 0.2)


def onnx_row(w: np.ndarray) -> Callable[[Any], Any] | None:
    """A session for one sparse row in double precision; None without ONNX Runtime."""
    try:
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        return None
    kept = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array([0.5]), "b")]
    nodes = [
        helper.make_node("Gather", ["w", "indices"], ["found"]),
        helper.make_node("MatMul", ["found", "values"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["value"]),
    ]
    inputs = [
        helper.make_tensor_value_info("indices", TensorProto.INT64, ["n"]),
        helper.make_tensor_value_info("values", TensorProto.DOUBLE, ["n"]),
    ]
    result = [helper.make_tensor_value_info("value", TensorProto.DOUBLE, [1])]
    graph = helper.make_graph(nodes, "row", inputs, result, kept)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda row: session.run(None, {"indices": row[0], "values": row[1]})


def rows_by_name(setup: Setup) -> Iterator[Figure]:
    from hinge._estimator_parts import parts_of

    setup.ours.feature_names_in_ = np.array([f"word{j}" for j in range(setup.n_features)], dtype=object)
    predictor = Predictor(parts_of(setup.ours))
    del setup.ours.feature_names_in_
    rows = [
        {f"word{j}": v for j, v in zip(indices.tolist(), values.tolist(), strict=True)}
        for indices, values in setup.pairs()
    ]
    spent = calls(predictor.decision_function, rows, setup.n_calls, dict)
    yield at_most(f"Predictor, dict of {LENGTH} names", spent, 15)


def least(functions: dict[str, Callable[[], Any]], n_rounds: int = 15) -> dict[str, float]:
    """The shortest time of each in milliseconds, of rounds in which they take turns."""
    spent: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(n_rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            spent[name].append(1e3 * (time.perf_counter() - start))
    return {name: min(times) for name, times in spent.items()}


def batches(setup: Setup) -> Iterator[Figure]:
    one, two = (setup.predictor.with_options(n_threads=n) for n in (1, 2))
    found = least(
        {
            "theirs": lambda: setup.theirs.decision_function(setup.X),
            "one": lambda: one.decision_function(setup.X),
            "two": lambda: two.decision_function(setup.X),
        }
    )
    yield Figure(f"scikit-learn, {N_ROWS} rows", f"{found['theirs']:.2f} ms")
    ratio = found["one"] / found["theirs"]
    yield Figure(f"Predictor, {N_ROWS} rows, 1 thread", f"{found['one']:.2f} ms   {ratio:.2f} x", "<= 1 x", ratio <= 1)
    gain = found["one"] / found["two"]
    yield Figure(
        f"Predictor, {N_ROWS} rows, 2 threads", f"{found['two']:.2f} ms   {gain:.2f} times", ">= 1.8 times", gain >= 1.8
    )


def throughput(function: Callable[[Any], Any], rows: list[Any], n_threads: int, seconds: float = 1.0) -> float:
    """Calls a second, of several Python threads."""
    counts, end = [0] * n_threads, threading.Event()

    def work(k: int) -> None:
        for row in itertools.cycle(rows):
            if end.is_set():
                return
            function(row)
            counts[k] += 1

    workers = [threading.Thread(target=work, args=(k,)) for k in range(n_threads)]
    for worker in workers:
        worker.start()
    time.sleep(seconds)
    end.set()
    for worker in workers:
        worker.join()
    return sum(counts) / seconds


def python_threads(setup: Setup) -> Iterator[Figure]:
    predictor = setup.predictor.with_options(n_threads=1)
    expected = predictor.decision_function(setup.X)
    wrong: list[int] = []

    def check(row: tuple[int, Any]) -> None:
        i, pair = row
        if predictor.decision_function(pair) != expected[i]:
            wrong.append(i)

    throughput(check, list(enumerate(setup.pairs())), N_WORKERS, 0.3)
    yield Figure(f"same results from {N_WORKERS} Python threads", "yes" if not wrong else "NO", "yes", not wrong)
    for what, rows, asked in (
        (f"batches of {N_ROWS} rows", [setup.X], 1.8),
        ("batches of 100 rows", [setup.X[k : k + 100] for k in range(0, N_ROWS, 100)], None),
        ("single rows", setup.pairs(), None),
    ):
        rates = {n: max(throughput(predictor.decision_function, rows, n) for _ in range(2)) for n in (1, 2, N_WORKERS)}
        gain, crowd = rates[2] / rates[1], rates[N_WORKERS] / rates[1]
        yield Figure(
            f"Python threads, {what}",
            f"{rates[1]:9.0f} a second by one, {gain:.2f} times by 2, {crowd:.2f} by {N_WORKERS}",
            "" if asked is None else f">= {asked} times by 2",
            None if asked is None else gain >= asked,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args()
    setup = Setup(options.features, options.calls)
    print(f"{LENGTH} of {options.features:,} features a row")
    for part in (single_rows, rows_by_name, batches, python_threads):
        for figure in part(setup):
            verdict = "" if figure.is_met is None else "  met" if figure.is_met else "  NOT MET"
            print(f"{figure.what:42} {figure.found:58} {figure.asked}{verdict}", flush=True)


if __name__ == "__main__":
    main()
