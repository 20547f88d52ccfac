"""Learners that see each row once, for table 2 of ChangRoth11: of two classes AROW, of more Perceptron, MIRA and AROW
with an update of two classes at a time, as the paper has them ("top 1"), beside the method of Crammer and Singer.

They are loops in Python: their seconds are no measure.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from changroth11_measure import CLASSES_VARIANTS, Data, Study


def arow(data: Data, best: float, r: float = 1.0) -> dict[str, float]:
    """One pass of AROW (Crammer, Kulesza, Dredze 2009) with a diagonal of variances, which follows CW."""
    X, y = sp.csr_matrix(data.X), np.where(data.y == 1, 1.0, -1.0)
    w, variance = np.zeros(X.shape[1]), np.ones(X.shape[1])
    started = time.process_time()
    for i in np.random.default_rng(0).permutation(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        columns, values = X.indices[part], X.data[part].astype(np.float64)
        margin = y[i] * float(w[columns] @ values)
        if margin < 1:
            spread = variance[columns] * values
            beta = 1 / (float(spread @ values) + r)
            w[columns] += (1 - margin) * beta * y[i] * spread
            variance[columns] -= beta * spread**2
    cpu = time.process_time() - started
    right = np.mean((data.X_test @ w > 0) == (data.y_test == 1))
    return {"cpu": cpu, "accuracy": 100 * float(right) - best}


def top_one(kind: str, X: sp.csr_matrix, y: np.ndarray, n_classes: int) -> np.ndarray:
    """Weights after one pass: each row moves its own class and the best of the others, "Perceptron" where that one is
    the better, "MIRA" (at most 1 times the row) and "AROW" where the row's own is not better by 1."""
    w = np.zeros((X.shape[1], n_classes))
    variance = np.ones_like(w) if kind == "AROW" else None
    for i in np.random.default_rng(0).permutation(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        columns, x = X.indices[part], X.data[part].astype(np.float64)
        scores = x @ w[columns]
        own, scores[y[i]] = scores[y[i]], -np.inf
        other = int(scores.argmax())
        margin, pair = own - scores[other], (y[i], other)
        if margin > 0 if kind == "Perceptron" else margin >= 1:
            continue
        if variance is None:
            squared = max(2 * float(x @ x), 1e-300)
            step = 1.0 if kind == "Perceptron" else min(1.0, (1 - margin) / squared)
            spreads = (x, x)
        else:
            spreads = tuple(variance[columns, k] * x for k in pair)
            beta = 1 / (sum(float(spread @ x) for spread in spreads) + 1)
            step = (1 - margin) * beta
        for sign, k, spread in zip((1, -1), pair, spreads, strict=True):
            w[columns, k] += sign * step * spread
            if variance is not None:
                variance[columns, k] -= beta * spread**2
    return w


def single(study: Study) -> dict[str, Any]:
    """Accuracy after a single pass, in percentage points above that of the optimum, and seconds of learning."""
    data = study.data
    labels, ids = np.unique(data.y, return_inverse=True)
    X, accuracy, seconds = sp.csr_matrix(data.X), {}, {}
    for kind in ("Perceptron", "MIRA", "AROW"):
        started = time.perf_counter()
        w = top_one(kind, X, ids, len(labels))
        seconds[kind] = time.perf_counter() - started
        right = labels[np.asarray(data.X_test @ w).argmax(axis=1)] == data.y_test
        accuracy[kind] = 100 * float(right.mean()) - study.accuracy
    fits = {"BMD": ("BMD", 10), "SBM-1/2, 3 rounds": ("SBM-1/2", 3), "SBM-1/2, 10 rounds": ("SBM-1/2", 10)}
    for name, (variant, rounds) in fits.items():
        found = study.fit(CLASSES_VARIANTS[variant] | {"rounds": rounds}, 1)
        accuracy[name], seconds[name] = found["accuracy"], found["seconds"]
    facts = {"C": data.C, "rows": len(data.y), "classes": len(labels), "reference": study.accuracy}
    return facts | {"build": study.build_seconds, "accuracy": accuracy, "seconds": seconds}
