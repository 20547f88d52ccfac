"""Fits and decision values over block stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hinge import _native, _validate
from hinge._budget import budget
from hinge.blocks import BlockStore

CACHES = ("gradient", "projected", "random", "none")

_DEFAULTS: dict[str, Any] = {
    "cache": "gradient",
    "cache_share": _native.DEFAULT_CACHE_SHARE,
    "rounds": _native.DEFAULT_ROUNDS,
    "round_tol": 0.0,
    "keep_compressed": True,
    "in_memory": None,
    "checkpoint_seconds": 60.0,
}


def options(memory_budget: Any, checkpoint: Any, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The native options of training on blocks, every one checked."""
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"block_options must be a dict or None, got {given!r}")
    chosen = {**_DEFAULTS, **(given or {})}
    unknown = set(chosen) - set(_DEFAULTS)
    if unknown:
        raise ValueError(f"block_options knows {sorted(_DEFAULTS)}, got {sorted(unknown)[0]!r}")
    _validate.choice("block_options['cache']", chosen["cache"], CACHES)
    _validate.whole("block_options['rounds']", chosen["rounds"], 1)
    _validate.truth("block_options['keep_compressed']", chosen["keep_compressed"])
    if chosen["in_memory"] is not None:
        _validate.truth("block_options['in_memory']", chosen["in_memory"])
    for name in ("cache_share", "round_tol", "checkpoint_seconds"):
        try:
            chosen[name] = float(chosen[name])
        except (TypeError, ValueError):
            raise ValueError(f"block_options[{name!r}] must be a number, got {chosen[name]!r}") from None
    chosen["memory_budget"] = budget(memory_budget)
    chosen["checkpoint"] = None if checkpoint is None else str(checkpoint)
    return chosen


def class_costs(store: BlockStore, C: float, class_weight: Any) -> np.ndarray:
    """``C`` times the weight of each class; "balanced" counts rows by their sample weight."""
    facts = store._facts
    weight = np.array(facts["class_weight"])
    if len(weight) < 2:
        only = _validate.plain(store.classes[0])
        raise ValueError(f"the store holds one class only ({only}), a classifier needs at least 2 classes")
    if (weight == 0).any():
        missing = _validate.plain(store.classes[int(np.flatnonzero(weight == 0)[0])])
        raise ValueError(f"class {missing} has no row of positive sample_weight")
    factor = _validate.class_factors(store.classes, weight, class_weight)
    with np.errstate(over="ignore"):
        cost = C * factor
    if not np.isfinite((cost * weight).sum()):
        raise ValueError(f"C = {C:g} times the weights of all rows is too large: the sum must be finite")
    return cost


def decisions(store: BlockStore, coef: np.ndarray, intercept: np.ndarray, threads: int) -> np.ndarray:
    """Decision values of all rows in the order of the input, one column per problem."""
    if store.n_features != coef.shape[1]:
        raise ValueError(f"the store has {store.n_features} features, the model was fitted with {coef.shape[1]}")
    return _native.store_decisions(
        store._reader, np.ascontiguousarray(coef), np.ascontiguousarray(intercept, dtype=np.float64), threads
    )
