"""The golden files, and how they were written.

A file is kept packed (``files/NAME.xz``); :class:`Shelf` unpacks copies of it. Files are read by the cases of
:mod:`cases`; they are worth something as long as an *older* version of the package wrote them, see :mod:`make`.
"""

from __future__ import annotations

import lzma
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hinge
import numpy as np
from inputs import folds, rows, units, weights
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

FOLDER = Path(__file__).parent / "files"


class Shelf:
    """Unpacked copies of the golden files in a folder of the caller's."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._count = 0

    def new(self) -> Path:
        """The path of a file that is not there."""
        self._count += 1
        return self._folder / f"{self._count}"

    def copy(self, name: str) -> Path:
        """A fresh copy of a file, which may be written to."""
        path = self.new()
        path.write_bytes(lzma.decompress((FOLDER / f"{name}.xz").read_bytes()))
        return path

    def store(self, name: str) -> hinge.BlockStore:
        """A golden block store."""
        return hinge.BlockStore(self.copy(f"stores/{name}"))


# ---- block stores: source, and what else they are built with

CITIES = np.array(["Ålesund", "Bergen", "Oslo", "Tromsø"])

CACHE = {"cache": "gradient"}
"""The rule for the cache that was the default when the files were written, and the bits recorded."""

STORES: dict[str, Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "two": lambda: ((rows("stored").X.astype(np.float32), rows("stored").y), {"n_blocks": 12}),
    "classes": lambda: (
        (rows("stored classes").X, CITIES[rows("stored classes").y], weights(1000)),
        {"n_blocks": 10, "feature_names": [f"column {k}" for k in range(60)]},
    ),
    "binary": lambda: ((rows("stored binary").X, 2 * rows("stored binary").y - 1), {"n_blocks": 8, "relabel": False}),
}


def _write_store(name: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        source, options = STORES[name]()
        hinge.BlockStore.build(source, path, **options)

    return write


# ---- searches that are interrupted: the records of the first values of C are in the journal


class InterruptedSearchError(Exception):
    """Ends a search in the middle."""


WRITTEN_BY = "0.2.0"
"""The version of the package that journals and checkpoints belong to."""

KEPT = 2
"""Values of C in each journal."""


def search(kind: str, shelf: Shelf, **given: Any) -> hinge.CSearch:
    """The search of a journal: one for each route."""
    X, y = rows("stored classes" if kind in ("crammer_singer", "multinomial") else "small")
    few = slice(0, 300)
    common: dict[str, Any] = {"Cs": 2.0 ** np.arange(-5, 2), "cv": folds(300, 3), "refine": 1, "keep_decisions": True}
    routes: dict[str, dict[str, Any]] = {
        "primal": {"loss": "logistic", "solver": "newton"},
        "dual": {"loss": "hinge", "solver": "dual_cd", "sample_weight": weights(300)},
        "crammer_singer": {"loss": "hinge", "multi_class": "crammer_singer", "fit_intercept": False},
        "multinomial": {"loss": "logistic"},
    }
    if kind == "blocks":
        over = {"memory_budget": 14_500_000, "block_options": {"in_memory": False} | CACHE}
        return hinge.select_C(shelf.store("binary"), loss="hinge", **(common | {"cv": folds(2000, 3)} | over | given))
    return hinge.select_C(X[few], y[few], **(common | routes[kind] | given))


JOURNALS = ("primal", "dual", "crammer_singer", "multinomial", "blocks")


def _write_journal(kind: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        calls = []

        def score(model: Any, X: Any, y: Any) -> float:
            calls.append(1)
            # Three folds are tried before the search, three scored for each value of C. A record precedes its scores.
            if len(calls) > 3 * KEPT:
                raise InterruptedSearchError
            return float((model.predict(X) == y).mean())

        try:
            search(kind, Shelf(path.parent), scoring=score, resume=path)
        except InterruptedSearchError:
            return
        raise AssertionError(f"the search {kind} came to its end")

    return write


# ---- fits over blocks that are stopped after some passes: their checkpoint is left

CHECKPOINTS: dict[str, tuple[str, dict[str, Any], int]] = {
    # Store, parameters, passes before the stop: 3, 21, 7 and 4 are needed. One of four classes has converged by then.
    "hinge": ("two", {"loss": "hinge", "C": 0.1, "memory_budget": 13_900_000}, 2),
    "one-vs-rest": ("classes", {"loss": "squared_hinge", "C": 0.1, "tol": 1e-6, "memory_budget": 13_900_000}, 12),
    "crammer_singer": ("classes", {"multi_class": "crammer_singer", "C": 0.1, "memory_budget": 14_200_000}, 4),
    "logistic": ("binary", {"C": 0.1, "memory_budget": 13_850_000}, 2),
}


def stored_fit(name: str, shelf: Shelf, n_jobs: int, *, seconds: float = 60.0, **given: Any) -> Any:
    """The fit of a checkpoint."""
    store, parameters, _ = CHECKPOINTS[name]
    make = hinge.LogisticRegression if name == "logistic" else hinge.LinearSVC
    blocks = {"in_memory": False, "checkpoint_seconds": seconds} | CACHE
    return make(**parameters, block_options=blocks, n_jobs=n_jobs, **given).fit(shelf.store(store))


def _write_checkpoint(name: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        passes = CHECKPOINTS[name][2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            stored_fit(name, Shelf(path.parent), 1, seconds=0.0, max_iter=passes, checkpoint=path)

    return write


# ---- planes

BOX = (10.0, 10.0)


def plane(n_jobs: int, **given: Any) -> Any:
    """The plane of the files."""
    X, y = rows("plane")
    return hinge.cost_path(X, np.array(["no", "yes"])[y], box=BOX, n_jobs=n_jobs, **given)


# ---- fitted estimators, and what they do next


def more(k: int, n_rows: int = 60) -> tuple[Any, np.ndarray]:
    """Further pieces of a stream."""
    X, y = rows("classes")
    few = slice(k * n_rows, (k + 1) * n_rows)
    return X[few], y[few]


def _begun(model: Any, **given: Any) -> Any:
    for k in range(3):
        model.partial_fit(*more(k), classes=np.arange(5), **given)
    return model


def _two(n_rows: int = 300) -> tuple[Any, np.ndarray]:
    X, y = rows("classes")
    return X[:n_rows], np.array(["no", "yes"])[y[:n_rows] % 2]


def label_matrix(n_rows: int, n_labels: int, seed: int) -> np.ndarray:
    """A matrix of 0 and 1, labels of rising rarity; the first row has them all."""
    values = units(n_rows * n_labels, seed).reshape(n_rows, n_labels)
    Y = (values < 1.0 / np.arange(2, n_labels + 2)).astype(np.int64)
    Y[0] = 1
    return Y


_CV: dict[str, Any] = {"Cs": [0.01, 0.1, 1.0], "cv": folds(300, 3)}

MODELS: dict[str, Callable[[], Any]] = {
    "LinearSVC": lambda: hinge.LinearSVC(C=0.1).fit(*_two()),
    "LinearSVC classes": lambda: hinge.LinearSVC(C=0.1, loss="hinge", intercept_scaling=2.0).fit(*more(0, 300)),
    "LinearSVC crammer_singer": lambda: hinge.LinearSVC(C=0.1, multi_class="crammer_singer", fit_intercept=False).fit(
        *more(0, 300)
    ),
    "LinearSVC sparse_coef": lambda: hinge.LinearSVC(C=0.1, sparse_coef=True).fit(*more(0, 300)),
    "LinearSVC degree 2": lambda: hinge.LinearSVC(C=0.1, degree=2, gamma=0.5).fit(*rows("pairs")),
    "LinearSVC presolve": lambda: hinge.LinearSVC(C=0.1, presolve=True).fit(rows("twins").X, rows("twins").y),
    "LinearSVC labels": lambda: hinge.LinearSVC(C=0.1, sparse_coef=True).fit(
        rows("classes").X[:300], label_matrix(300, 6, 801)
    ),
    "LinearSVC stream": lambda: _begun(hinge.LinearSVC(C=0.1, loss="hinge", intercept_scaling=1.0)),
    "LinearSVC weighted stream": lambda: _begun(
        hinge.LinearSVC(C=0.1, fit_intercept=False, class_weight={3: 2.0}), sample_weight=weights(60)
    ),
    "LinearSVCCV": lambda: hinge.LinearSVCCV(**_CV).fit(*_two()),
    "LinearSVCCV temperature": lambda: hinge.LinearSVCCV(probability="temperature", **_CV).fit(*more(0, 300)),
    "LinearSVCCV threshold": lambda: hinge.LinearSVCCV(
        cost_matrix=[[0, 1], [5, 0]], keep_decisions=True, choose="one_se", **_CV
    ).fit(*_two()),
    "LinearSVCCV sigmoid": lambda: hinge.LinearSVCCV(probability="sigmoid", **_CV).fit(*_two()),
    "LogisticRegression": lambda: hinge.LogisticRegression(C=0.1).fit(*_two()),
    "LogisticRegression labels": lambda: hinge.LogisticRegression(C=0.1).fit(
        rows("classes").X[:300], label_matrix(300, 4, 802)
    ),
    "LogisticRegression stream": lambda: _begun(
        hinge.LogisticRegression(C=0.1, intercept_scaling=1.0, multi_class="ovr")
    ),
    "LogisticRegressionCV": lambda: hinge.LogisticRegressionCV(multi_class="ovr", **_CV).fit(*more(0, 300)),
    "PegasosClassifier": lambda: hinge.PegasosClassifier(0.01, tol=0.05).fit(*_two()),
    "PegasosClassifier stream": lambda: _begun(hinge.PegasosClassifier(0.01)),
    "SubgradientSVC": lambda: hinge.SubgradientSVC(0.1, loss="squared_hinge", tol=0.01, max_iter=5000).fit(*_two()),
    "Poly2Map": lambda: hinge.Poly2Map(gamma=0.5, hash_bits=12, random_state=3).fit(rows("pairs").X),
}

HOLDS_SKLEARN = ("LinearSVCCV sigmoid",)
"""Estimators with an object of scikit-learn inside, which other versions of it do not read."""

CALIBRATED = (*HOLDS_SKLEARN, "LinearSVCCV temperature")
"""Estimators whose probabilities SciPy or scikit-learn has fitted."""

LOGISTIC = tuple(name for name in MODELS if name.startswith("LogisticRegression"))


def _write_pickle(name: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(pickle.dumps(MODELS[name](), protocol=4))

    return write


SAVED = tuple(name for name in MODELS if name != "Poly2Map")
"""Models that are kept in model files, too."""


def _write_model(name: str) -> Callable[[Path], None]:
    return lambda path: MODELS[name]().save(path, metadata={"case": name})


TABLE = {
    "colour": ["red", "blue", None, "red", "grün", "blue", "red", "blue"],
    "size": [1.5, 0.0, 2.25, None, -3.0, 8.0, 1e-3, 4.0],
    "rank": [3, 1, 2, 3, 3, 1, 2, 1],
    "note": ["A small note", "naïve ΣΑΣ note", "", None, "small, small", "no note at all", "note", "a b"],
    "tags": [["x"], ["y", "x"], [], None, ["z", "z"], ["x"], ["y"], ["z"]],
}
"""A table with every kind of column, and missing values."""

TABLE_COLUMNS = {
    "colour": "categorical",
    "size": {"kind": "numeric", "scale": "standard"},
    "rank": "categorical",
    "half": {"kind": "cross", "columns": ["colour", "rank"]},
    "note": {"kind": "text", "ngrams": (1, 2)},
    "tags": "tokens",
}


def table_model(numbering: str) -> Any:
    """An encoder and a classifier in a pipeline."""
    encoder = hinge.TableEncoder(TABLE_COLUMNS, numbering=numbering, n_features=1000)
    return make_pipeline(encoder, hinge.LogisticRegression(tol=1e-8)).fit(TABLE, [0, 1, 0, 0, 1, 1, 0, 1])


def _write_table_model(numbering: str) -> Callable[[Path], None]:
    return lambda path: hinge.save(table_model(numbering), path, metadata={"case": numbering})


FILES: dict[str, Callable[[Path], None]] = {
    **{f"stores/{name}": _write_store(name) for name in STORES},
    **{f"journals/{kind}": _write_journal(kind) for kind in JOURNALS},
    **{f"checkpoints/{name}": _write_checkpoint(name) for name in CHECKPOINTS},
    "planes/saved": lambda path: plane(1).save(path),
    "planes/streamed": lambda path: plane(1, file=path),
    **{f"pickles/{name.replace(' ', '-')}": _write_pickle(name) for name in MODELS},
    **{f"models/{name.replace(' ', '-')}": _write_model(name) for name in SAVED},
    **{f"tables/{numbering}": _write_table_model(numbering) for numbering in ("hashed", "counted")},
}
