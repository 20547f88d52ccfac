"""Training on blocks: its options and costs; and decision values over block stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge import _native, _validate
from hinge._budget import budget
from hinge.blocks import BlockStore


def options(block_options: Mapping[str, Any], memory_budget: int | None, checkpoint: str | None) -> dict[str, Any]:
    """The native options of training on blocks, from checked parameters."""
    return {**block_options, "memory_budget": budget(memory_budget), "checkpoint": checkpoint}


def refuse_unfit(options: Mapping[str, Any]) -> None:
    """Blocks and streams are trained on with dense weights."""
    if options.get("sparse_tol") is not None:
        raise ValueError("sparse_coef must be False for a BlockStore and for partial_fit, got True")


def class_factors(store: BlockStore, class_weight: Any) -> np.ndarray:
    """The weight of each class; "balanced" counts rows by their sample weight."""
    weight = np.array(store._facts["class_weight"])
    if len(weight) < 2:
        only = _validate.plain(store.classes[0])
        raise ValueError(f"the store holds one class only ({only}), a classifier needs at least 2 classes")
    if (weight == 0).any():
        missing = _validate.plain(store.classes[int(np.flatnonzero(weight == 0)[0])])
        raise ValueError(f"class {missing} has no row of positive sample_weight")
    return _validate.class_factors(store.classes, weight, class_weight)


def class_costs(store: BlockStore, C: float, class_weight: Any) -> np.ndarray:
    """``C`` times the weight of each class."""
    factor = class_factors(store, class_weight)
    with np.errstate(over="ignore"):
        cost = C * factor
    if not np.isfinite((cost * np.array(store._facts["class_weight"])).sum()):
        raise ValueError(f"C = {C:g} times the weights of all rows is too large: the sum must be finite")
    return cost


PAGES = 64
"""Pages predicted at a time: about 8 million entries."""


class Scores:
    """Decision values of a linear model over a store, a run of pages at a time."""

    def __init__(self, store: BlockStore, model: Any, threads: int):
        coef, n_features = model.coef_, model.n_features_in_
        if store.n_features != n_features:
            raise ValueError(f"the store has {store.n_features} features, the model was fitted with {n_features}")
        _validate.same_names(model, store.feature_names, "the store")
        if sp.issparse(coef):
            raise ValueError(
                "a BlockStore is predicted with dense weights, coef_ of the model is sparse: call densify() first"
            )
        intercept = np.ascontiguousarray(model.intercept_, dtype=np.float64)
        coef = np.ascontiguousarray(coef, dtype=np.float64)
        self._scorer = _native.StoreScorer(store._reader, coef, intercept, model._map)
        self._store, self._threads, self.n_problems = store, threads, len(intercept)

    def runs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers and decision values (rows x problems), in the order of the file."""
        for start in range(0, self._store._facts["n_pages"], PAGES):
            yield self._scorer.pages(start, start + PAGES, self._threads)

    def gather(self, reduce: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """``reduce`` of the decision values of each run, put in the order of the input."""
        out: np.ndarray | None = None
        seen = np.zeros(self._store.n_samples, dtype=bool)
        for numbers, values in self.runs():
            reduced = reduce(values)
            if out is None:
                out = np.empty((self._store.n_samples, *reduced.shape[1:]), dtype=reduced.dtype)
            out[numbers] = reduced
            seen[numbers] = True
        if out is None or not seen.all():
            raise _native.BlockFileError(f"{self._store.path}: row {int(seen.argmin())} is missing")
        return out

    def in_order(self) -> Iterator[np.ndarray]:
        """Decision values of consecutive rows of the input, in memory for as many rows as building held open."""
        numbers, values = np.zeros(0, dtype=np.uint64), np.zeros((0, self.n_problems))
        done = 0
        for more_numbers, more_values in self.runs():
            numbers, values = np.concatenate([numbers, more_numbers]), np.concatenate([values, more_values])
            order = np.argsort(numbers, kind="stable")
            numbers, values = numbers[order], values[order]
            ready = int((numbers == np.arange(done, done + len(numbers), dtype=np.uint64)).argmin())
            if len(numbers) and numbers[-1] == done + len(numbers) - 1:
                ready = len(numbers)
            if ready:
                yield values[:ready]
                numbers, values, done = numbers[ready:], values[ready:], done + ready
        if done != self._store.n_samples:
            raise _native.BlockFileError(f"{self._store.path}: row {done} is missing")
