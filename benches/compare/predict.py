"""Predictions of single rows and of batches, ours and scikit-learn's, with the same weights and the same rows.

Each model has its weights as its own fits leave them (ours row after row, those of LIBLINEAR in scikit-learn column
after column). The two take turns in one run; the median of their calls counts; ``ratio`` above 1 is time that we save.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import hinge
import numpy as np
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from harness import Report

COLUMNS = {
    "rows": ">6d",
    "kind": ">6",
    "features": ">7d",
    "classes": ">5d",
    "model": ">18",
    "method": ">17",
    "ours_us": ">11.1f",
    "sklearn_us": ">11.1f",
    "ratio": ">6.2f",
}

MODELS = {
    "LinearSVC": (hinge.LinearSVC, sklearn.svm.LinearSVC, ("decision_function", "predict")),
    "LogisticRegression": (hinge.LogisticRegression, sklearn.linear_model.LogisticRegression, ("predict_proba",)),
}


def pair(name: str, n_classes: int, n_features: int) -> tuple[Any, Any]:
    """Our model and scikit-learn's with the same random weights."""
    random = np.random.default_rng(0)
    coef = random.standard_normal((1 if n_classes == 2 else n_classes, n_features))
    models = tuple(make() for make in MODELS[name][:2])
    for model, weights in zip(models, (coef, np.asfortranarray(coef)), strict=True):
        model.coef_, model.intercept_ = weights, np.zeros(len(coef))
        model.classes_, model.n_features_in_ = np.arange(n_classes), n_features
    return models


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def medians(ours: Callable[[], object], other: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Median seconds of two calls that take turns for some seconds, after a first one each."""
    times: tuple[list[float], list[float]] = ([], [])
    ours()
    other()
    end = time.perf_counter() + seconds
    while len(times[0]) < 5 or (time.perf_counter() < end and len(times[0]) < 2000):
        times[0].append(timed(ours))
        times[1].append(timed(other))
    return median(times[0]), median(times[1])


def inputs(n_features: dict[str, int]) -> Iterator[tuple[str, Any]]:
    """Kinds of rows: 10,000 of each."""
    yield "dense", np.random.default_rng(1).standard_normal((10_000, n_features["dense"]))
    entries = 100
    indices = np.random.default_rng(2).integers(0, n_features["sparse"], 10_000 * entries)
    indptr = np.arange(0, len(indices) + 1, entries)
    X = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(10_000, n_features["sparse"]))
    X.sum_duplicates()
    yield "sparse", X


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--classes", type=int, nargs="+", default=[2, 50, 100, 1000])
    parse.add_argument("--dense-features", type=int, default=100)
    parse.add_argument("--sparse-features", type=int, default=100_000)
    parse.add_argument("--seconds", type=float, default=1.0)
    parse.add_argument("--output", type=Path, help="CSV file to write")
    given = parse.parse_args()
    report = Report(COLUMNS, given.output)
    for kind, X in inputs({"dense": given.dense_features, "sparse": given.sparse_features}):
        for n_classes in given.classes:
            for name, (_, _, methods) in MODELS.items():
                ours, other = pair(name, n_classes, X.shape[1])
                for method in methods:
                    for n_rows in (1, 10_000):
                        rows = X[:n_rows]
                        calls = (partial(getattr(model, method), rows) for model in (ours, other))
                        a, b = medians(*calls, given.seconds)
                        report.add(
                            rows=n_rows,
                            kind=kind,
                            features=X.shape[1],
                            classes=n_classes,
                            model=name,
                            method=method,
                            ours_us=1e6 * a,
                            sklearn_us=1e6 * b,
                            ratio=b / a,
                        )


if __name__ == "__main__":
    main()
