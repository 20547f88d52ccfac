"""More than two classes for ChangRoth11: one cache for all or one for each, scores of the method of Crammer and Singer,
and where dual variables are (sections 3 and 5.2).

A cache for each class is made of fits of one class against the rest, each on a store of its own, with the memory that
it would have beside the others: the block, and its part of the cache. A pass over the file would serve all classes, so
passes are comparable, seconds are not.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from changroth11_cache import checkpoint_head
from changroth11_measure import BUFFERS, ROW_BYTES, Data
from hinge import BlockStore, LinearSVC

SHARE = 1 / 6
"""Of the rows; a cache for each of twenty classes beside a smaller block would not hold a page."""
PASSES = (1, 2, 4)
SCORES = ("projected", "gradient", "random", "none")
RUNS = 1_200_000
"""Bytes for the pieces of a file of dual variables that are read and written, which the least budget counts."""
NEAR = 1e-3
"""Margins below 1 + this count as those of support vectors."""


def rows_bytes(store: BlockStore, share: float) -> int:
    """Bytes of a share of the rows."""
    facts = store.info()
    entry = 4 if facts["uniform_rows"] else {"float32": 8, "float64": 12}[facts["dtype"]]
    return int(share * (facts["nnz"] * entry + facts["n_rows"] * ROW_BYTES))


def state_bytes(store: BlockStore, n_problems: int) -> int:
    """Bytes of weights and dual variables, with the buffers of pages."""
    facts = store.info()
    return 8 * n_problems * (facts["n_used"] + 1 + facts["n_rows"]) + BUFFERS


def fit(store: BlockStore, parameters: dict[str, Any], budget: int, passes: int, **blocks: Any) -> Any:
    """A fit from zero of so many passes."""
    options = {"in_memory": False, "keep_compressed": False, **blocks}
    model = LinearSVC(**parameters, tol=1e-12, max_iter=passes, memory_budget=budget, block_options=options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(store)


def exact(data: Data, parameters: dict[str, Any]) -> Any:
    """The fit in memory whose dual values count as the optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LinearSVC(**parameters, tol=1e-5, max_iter=100_000).fit(data.X, data.y)


def one_against_rest(data: Data, scratch: Path, C: float) -> dict[str, Any]:
    """Distance of the sum of the dual values by passes, with one cache and with one for each class."""
    parameters = {"loss": "hinge", "C": C, "fit_intercept": False, "random_state": 0}
    best = exact(data, parameters)
    optimum, n_classes = best.certificate_.dual.sum(), len(best.classes_)
    shared = BlockStore.build((data.X, data.y), scratch / "shared")
    budget = state_bytes(shared, n_classes) + rows_bytes(shared, SHARE)
    points = {}
    for cache in ("steepest", "gradient", "random", "none"):
        share = {} if cache == "none" else {"cache_share": 0.5}
        fits = [fit(shared, parameters, budget, n, cache=cache, **share) for n in PASSES]
        points[cache] = [float(1 - model.certificate_.dual.sum() / optimum) for model in fits]
    duals = np.zeros(len(PASSES))
    part = 0.5 / n_classes
    for k, label in enumerate(best.classes_):
        own = BlockStore.build((data.X, (data.y == label).astype(np.int64)), scratch / f"class-{k}")
        budget = state_bytes(own, 1) + rows_bytes(own, SHARE * (0.5 + part))
        options = {"cache": "steepest", "cache_share": part / (0.5 + part)}
        duals += [fit(own, parameters, budget, n, **options).certificate_.dual[0] for n in PASSES]
    points["one for each class"] = [float(1 - dual / optimum) for dual in duals]
    signs = np.where(data.y[:, None] == best.classes_, 1.0, -1.0)
    inside = signs * best.decision_function(data.X) <= 1 + NEAR
    return {"points": points, "support": float(inside.mean())}


def all_at_once(data: Data, scratch: Path, C: float) -> dict[str, list[float]]:
    """The same for the method of Crammer and Singer, by score."""
    parameters = {"multi_class": "crammer_singer", "C": C, "fit_intercept": False, "random_state": 0}
    optimum = exact(data, parameters).certificate_.dual[0]
    store = BlockStore.build((data.X, data.y), scratch / "all")
    lines = 8 * -(-data.n_classes // 8)
    budget = state_bytes(store, lines) + rows_bytes(store, SHARE)
    points = {}
    for cache in SCORES:
        share = {} if cache == "none" else {"cache_share": 0.5}
        fits = [fit(store, parameters, budget, n, cache=cache, **share) for n in PASSES]
        points[cache] = [float(1 - model.certificate_.dual[0] / optimum) for model in fits]
    return points


def places(data: Data, scratch: Path, C: float, passes: int = 2) -> dict[str, Any]:
    """Seconds of fits of two classes with the dual variables in memory and in a file, in the same budget."""
    parameters = {"loss": "hinge", "C": C, "fit_intercept": False, "random_state": 0}
    store = BlockStore.build((data.X, data.y), scratch / "places")
    budget = state_bytes(store, 1) + rows_bytes(store, SHARE) + RUNS
    found = {duals: timed(store, parameters, budget, passes, duals) for duals in ("memory", "file")}
    return found | {"C": C, "rows": len(data.y), "budget": float(budget)}


def timed(store: BlockStore, parameters: dict[str, Any], budget: int, passes: int, duals: str) -> dict[str, float]:
    """Seconds of a fit, the least of three, and its dual value."""
    times = []
    for _ in range(3):
        started, cpu = time.perf_counter(), time.process_time()
        model = fit(store, parameters, budget, passes, duals=duals)
        times.append((time.perf_counter() - started, time.process_time() - cpu))
    seconds, cpu = min(times)
    return {"seconds": seconds, "cpu": cpu, "dual": float(model.certificate_.dual.sum())}


def runs(data: Data, scratch: Path) -> dict[str, Any]:
    """Dual variables of Crammer and Singer that are not 0 off the row's own class, counted in the checkpoint of two
    passes over blocks: a state is weights, multipliers, two sums, a number for each row and two for each variable.
    Seconds of such fits with these variables in memory and in a file."""
    store, path = BlockStore.build((data.X, data.y), scratch / "runs"), scratch / "runs.checkpoint"
    lines = 8 * -(-data.n_classes // 8)
    parameters = {"multi_class": "crammer_singer", "C": data.C, "fit_intercept": False, "random_state": 0}
    budget = state_bytes(store, lines) + rows_bytes(store, SHARE) + RUNS
    fit(store, parameters | {"checkpoint": path}, budget, 2, checkpoint_seconds=0.0)
    (state,) = checkpoint_head(path)["under_way"]
    rows = len(data.y)
    numbers = state["size"] - lines * store.info()["n_used"] - data.n_classes - 2 - rows
    facts = {"rows": rows, "classes": data.n_classes, "C": data.C, "entries": numbers // 2}
    return facts | {duals: timed(store, parameters, budget, 2, duals) for duals in ("memory", "file")}


def classes(data: Data, scratch: Path) -> dict[str, Any]:
    """All of it for a set of more than two classes."""
    return {
        "C": data.C,
        "rows": len(data.y),
        "classes": data.n_classes,
        "one_against_rest": one_against_rest(data, scratch, data.C),
        "all_at_once": all_at_once(data, scratch, data.C),
    }
