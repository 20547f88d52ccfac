"""A set in a store as ChangRoth11 has it, and the measurements behind figure 2, table 2 and the two precisions.

Hinge loss, or the method of Crammer and Singer for more than two classes, no intercept, C by five-fold cross-validation
and block minimisation (BMD) in twelve blocks of the whole memory (fifteen of more classes), as in the paper. Every
point is a fit of its own with so many passes from zero, so that times are those of fits; each includes the scan that
certifies it. Distances are those of the dual value to that of a fit in memory to a small gap, relative to the latter.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hinge
import numpy as np
import scipy.sparse as sp
import vowpal
from hinge import BlockStore, LinearSVC
from sklearn.linear_model import PassiveAggressiveClassifier, Perceptron, SGDClassifier
from sklearn.model_selection import cross_val_score

VARIANTS: dict[str, dict[str, Any]] = {
    "SBM-1/2": {"cache": "steepest", "cache_share": 0.5},
    "SBM-1/3": {"cache": "steepest", "cache_share": 1 / 3},
    "SBM-1/2-rand": {"cache": "random", "cache_share": 0.5},
    "BMD": {"cache": "none"},
}
CLASSES_VARIANTS: dict[str, dict[str, Any]] = {
    "SBM-1/2": {"cache": "projected", "cache_share": 0.5},
    "SBM-1/2-near": {"cache": "gradient", "cache_share": 0.5},
    "SBM-1/2-rand": VARIANTS["SBM-1/2-rand"],
    "BMD": VARIANTS["BMD"],
}
"""Of more than two classes; the first keeps rows by their share of shrunken variables (ChangRoth11, section 3), the
second those nearest to the margin, a rule of ours."""
PASSES = {
    "SBM-1/2": (1, 2, 3, 4),
    "SBM-1/2-near": (1, 2, 3, 4),
    "SBM-1/3": (1, 2, 3, 4),
    "SBM-1/2-rand": (1, 2, 4, 8),
    "BMD": (1, 2, 4, 8, 12, 16, 20),
}
SHARE = 1 / 12
"""Of the rows that the memory holds: webspam and kddcup10 have 12 blocks;"""
CLASSES_SHARE = 1 / 15
"""prep, of more classes, has 15."""
CS = tuple(4.0**k for k in range(-3, 4))
SEARCH_ROWS = 10_000
CLASSES_CS = tuple(4.0**k for k in range(-5, 2))
CLASSES_SEARCH_ROWS = 2_000

# Bytes of a row beside its entries, and page buffers, as the budget of a fit counts them.
ROW_BYTES, BUFFERS = 160, 13_700_000


@dataclass(frozen=True, eq=False)
class Data:
    """Training and test part, labels 0 and 1, or of more classes."""

    name: str
    X: sp.csr_matrix
    y: np.ndarray
    X_test: sp.csr_matrix
    y_test: np.ndarray
    C: float = 1.0

    @property
    def n_classes(self) -> int:
        """Number of classes in the training part."""
        return len(np.unique(self.y))

    @property
    def problem(self) -> dict[str, Any]:
        """The problem to solve."""
        kind = {"loss": "hinge"} if self.n_classes == 2 else {"multi_class": "crammer_singer"}
        return {**kind, "C": self.C, "fit_intercept": False, "random_state": 0}


@dataclass(frozen=True)
class Study:
    """A set in a store, with its optimum."""

    data: Data
    store: BlockStore
    build_seconds: float
    optimum: float
    accuracy: float
    """Test accuracy at the optimum, in percentage points."""
    model: LinearSVC
    """The optimum."""

    @classmethod
    def of(cls, data: Data, path: Path) -> Study:
        """Choose C, build the store and fit in memory to a gap of 1e-6, or of 1e-5 with more than two classes."""
        data = replace(data, C=cross_validated(data))
        tol = 1e-6 if data.n_classes == 2 else 1e-5
        started = time.perf_counter()
        store = BlockStore.build((data.X, data.y), path)
        seconds = time.perf_counter() - started
        model = LinearSVC(**data.problem, tol=tol, block_options={"in_memory": True}).fit(store)
        accuracy = 100 * model.score(data.X_test, data.y_test)
        return cls(data, store, seconds, model.certificate_.dual[0], accuracy, model)

    def fit(self, options: dict[str, Any], passes: int, checkpoint: Path | None = None) -> dict[str, float]:
        """One fit of so many passes over blocks, in the memory of the paper."""
        blocks = {**options, "in_memory": False, "keep_compressed": False}
        limits = {"tol": 1e-12, "max_iter": passes, "memory_budget": self.budget(self.share), "checkpoint": checkpoint}
        model = LinearSVC(**self.data.problem, **limits, block_options=blocks)
        started, cpu = time.perf_counter(), time.process_time()
        model.fit(self.store)
        return {
            "passes": passes,
            "seconds": time.perf_counter() - started,
            "cpu": time.process_time() - cpu,
            "distance": (self.optimum - model.certificate_.dual[0]) / self.optimum,
            "accuracy": 100 * model.score(self.data.X_test, self.data.y_test) - self.accuracy,
        }

    @property
    def share(self) -> float:
        """Of the rows that the memory holds."""
        return SHARE if self.data.n_classes == 2 else CLASSES_SHARE

    def budget(self, share: float) -> int:
        """Bytes that hold a share of the rows."""
        return budget(self.store, share, self.data.n_classes)


def budget(store: BlockStore, share: float, n_classes: int = 2) -> int:
    """Bytes that hold a share of the rows beside weights and dual variables."""
    facts = store.info()
    entry = 4 if facts["uniform_rows"] else {"float32": 8, "float64": 12}[facts["dtype"]]
    rows = share * (facts["nnz"] * entry + facts["n_rows"] * ROW_BYTES)
    vectors = 1 if n_classes == 2 else 8 * -(-n_classes // 8)  # weights of a column fill whole cache lines
    return int(8 * vectors * (facts["n_used"] + 1 + facts["n_rows"]) + BUFFERS + rows)


def cross_validated(data: Data) -> float:
    """C of the best mean accuracy of five folds, on some of the rows."""
    pairs = data.n_classes == 2
    rows = np.random.default_rng(0).permutation(data.X.shape[0])[: SEARCH_ROWS if pairs else CLASSES_SEARCH_ROWS]
    X, y = data.X[rows], data.y[rows]

    def accuracy(C: float) -> float:
        model = LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-3)
        return float(cross_val_score(model, X, y, cv=5).mean())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not pairs:
            return max(CLASSES_CS, key=accuracy)
        return float(hinge.select_C(X, y, loss="hinge", cv=5, Cs=CS, fit_intercept=False).C)


def figure2(study: Study) -> dict[str, Any]:
    """Distance and accuracy after passes; variants in turn, so that none has a better hour."""
    variants = VARIANTS if study.data.n_classes == 2 else CLASSES_VARIANTS
    found: dict[str, list[dict]] = {name: [] for name in variants}
    for k in range(max(map(len, PASSES.values()))):
        for name, options in variants.items():
            found[name] += [study.fit(options, n) for n in PASSES[name][k : k + 1]]
    return {"C": study.data.C, "share": study.share, "build": study.build_seconds, "points": found}


def precision(study: Study, scratch: Path) -> dict[str, Any]:
    """Beside figure 4: values of one method in float32 and in float64, in the same memory."""
    data, rows = study.data, {}
    noise = np.random.default_rng(0).uniform(1, 1 + 1e-6, data.X.nnz)  # so that no value is a float32, and none equal
    wide = sp.csr_matrix((data.X.data * noise, data.X.indices, data.X.indptr), shape=data.X.shape)
    memory = None
    for name, X in (("float64", wide), ("float32", wide.astype(np.float32))):
        store = BlockStore.build((X, data.y), scratch / name)
        memory = memory or budget(store, study.share)
        blocks = {"in_memory": False, "keep_compressed": False}
        rows[name] = []
        for n in (1, 2, 3):
            model = LinearSVC(**data.problem, tol=1e-12, max_iter=n, memory_budget=memory, block_options=blocks)
            started, cpu = time.perf_counter(), time.process_time()
            model.fit(store)
            seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
            distance = (study.optimum - model.certificate_.dual[0]) / study.optimum
            accuracy = 100 * model.score(data.X_test, data.y_test) - study.accuracy
            facts = {"bytes_per_nonzero": store.info()["bytes_per_nonzero"]}
            times = {"passes": n, "seconds": seconds, "cpu": cpu}
            rows[name].append({**times, "distance": distance, "accuracy": accuracy, **facts})
    return {"C": data.C, "points": rows}


def _blocks(study: Study) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
    for block in study.store.iter_blocks(max_rows=16_384):
        yield block.X, block.y


def _reading(study: Study) -> float:
    started = time.perf_counter()
    for _ in _blocks(study):
        pass
    return time.perf_counter() - started


def _online(study: Study, model: Any) -> dict[str, Any]:
    learning = 0.0
    started = time.perf_counter()
    for X, y in _blocks(study):
        begun = time.perf_counter()
        model.partial_fit(X, y, classes=[0, 1])
        learning += time.perf_counter() - begun
    total = time.perf_counter() - started
    accuracy = 100 * model.score(study.data.X_test, study.data.y_test) - study.accuracy
    return {"io": total - learning, "learning": learning, "accuracy": accuracy}


def _vw(study: Study, scratch: Path, python: str) -> dict[str, Any]:
    """Vowpal Wabbit with its defaults and the hinge loss: text to cache, then passes over the cache."""
    train, test = (study.data.X, study.data.y), (study.data.X_test, study.data.y_test)
    found = vowpal.run(python, scratch, train, test, passes="1,2,4,8,16")
    for run in found["runs"]:
        run["accuracy"] -= study.accuracy
    first = found["runs"][0]
    return {**found, "learning": first["seconds"], "accuracy": first["accuracy"]}


def single(study: Study, scratch: Path, python: str | None) -> dict[str, Any]:
    """Rows of table 2: one pass over the data, reading and learning apart."""
    alpha = 1 / study.store.n_samples
    rivals: dict[str, Callable[[], Any]] = {
        "Perceptron": lambda: Perceptron(random_state=0),
        "PassiveAggressive": lambda: PassiveAggressiveClassifier(random_state=0),
        "SGD, hinge": lambda: SGDClassifier(alpha=alpha, fit_intercept=False, random_state=0),
    }
    rows = {name: _online(study, make()) for name, make in rivals.items()}
    if python is not None:
        rows["Vowpal Wabbit"] = _vw(study, scratch, python)
    started = time.perf_counter()
    study.store.labels()  # decodes every page
    reading = time.perf_counter() - started
    for name in ("BMD", "SBM-1/2"):
        for rounds in (3, 10):
            found = study.fit({**VARIANTS[name], "rounds": rounds}, 1)
            learning = max(found["seconds"] - 2 * reading, 0.0)  # one for the pass, one for the certificate
            rows[f"{name}, {rounds} rounds"] = {"io": 2 * reading, "learning": learning, "accuracy": found["accuracy"]}
    stream = LinearSVC(**study.data.problem, memory_budget=study.budget(study.share) + 8 * study.store.n_features)
    rows["partial_fit"] = _online(study, stream)
    sizes = {"store_bytes": study.store.info()["file_bytes"], "build": study.build_seconds}
    return {"C": study.data.C, "sizes": sizes, "rows": rows}


_studies: dict[str, Study] = {}


def study_of(data: Data, scratch: Path) -> Study:
    """The set in a store at its C; the last one is kept."""
    if data.name not in _studies:
        _studies.clear()
        _studies[data.name] = Study.of(data, scratch / "rows.blocks")
    return _studies[data.name]
