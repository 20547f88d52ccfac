"""What the cache of ChangRoth11 holds (footnote 6), and its scores for other losses and for streams.

Which rows are cached is read from the checkpoint of a fit: its last state is that after the last block of the last
pass, when the cache for the block to come has been chosen. The rows of that block are left out of the choice, since
they are about to be loaded.
"""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from changroth11_measure import SHARE, Data, Study, budget
from hinge import BlockStore, LinearSVC, LogisticRegression

SCORES = ("gradient", "projected", "steepest", "random")
"""Ours (nearness to the margin), the first and the second score of section 2.2, and by lot."""
NEAR = 1e-3
"""Distance of a margin from 1 at which a row counts as an unbounded support vector."""
PREFIX = 24
LOSSES = {
    "squared_hinge": {"a9a": (1.0,), "phishing_urls": (0.1,), "generated": (0.1,)},
    "logistic": {"a9a": (1.0,), "phishing_urls": (1.0, 16.0), "generated": (1.0,)},
}
"""Values of C by set."""
STREAM_PIECE = 2_000
"""Rows of a piece of a stream."""


def signed_margins(study: Study) -> np.ndarray:
    """Margins at the optimum, in the order of the rows in the store: page after page, as checkpoints number them."""
    store, pages = study.store, {}
    for block in range(store.n_blocks):
        for page, _, _ in store._reader.pages(block):
            rows = store._read([page], 1)
            pages[page] = np.where(rows.y == 1, 1, -1) * study.model.decision_function(rows.X)
    return np.concatenate([pages[page] for page in sorted(pages)])


def checkpoint_head(path: Path) -> dict[str, Any]:
    """What the head of a checkpoint says (``src/blocks/checkpoint.rs`` has its format)."""
    with path.open("rb") as file:
        (length,) = struct.unpack_from("<Q", file.read(PREFIX), 16)
        return json.loads(file.read(length))


def cached_rows(path: Path) -> tuple[int, np.ndarray]:
    """Number of blocks, and the rows in the cache, from a checkpoint that a fit has left."""
    content, head = path.read_bytes(), checkpoint_head(path)
    n = head["n_cached"]
    return head["position"]["step"], np.frombuffer(content, "<u4", n, len(content) - 8 - 4 * n)


def cached(study: Study, scratch: Path) -> dict[str, Any]:
    """Footnote 6: the share of the unbounded support vectors of the optimum that are in the cache after so many passes,
    and their share of it, by score."""
    is_unbounded = np.abs(signed_margins(study) - 1) <= NEAR
    shares: dict[str, list[list[float]]] = {}
    blocks, size = 0, 0
    for score in SCORES:
        shares[score] = []
        for passes in (1, 2, 3, 4):
            path = scratch / f"{score}-{passes}.checkpoint"
            options = {"cache": score, "cache_share": 0.5, "checkpoint_seconds": 0.0}
            study.fit(options, passes, checkpoint=path)
            blocks, rows = cached_rows(path)
            path.unlink()
            hits, size = int(is_unbounded[rows].sum()), max(size, len(rows))
            shares[score].append([hits / max(int(is_unbounded.sum()), 1), hits / max(len(rows), 1)])
    facts = {"rows": len(is_unbounded), "unbounded": int(is_unbounded.sum()), "cache": size, "blocks": blocks}
    return {"C": study.data.C, **facts, "shares": shares}


def losses(data: Data, scratch: Path) -> list[dict[str, Any]]:
    """Distance after two and four passes by score, for the squared hinge and the logistic loss."""
    store = BlockStore.build((data.X, data.y), scratch / "losses.blocks")
    found = []
    for loss, values in LOSSES.items():
        for C in values.get(data.name, ()):
            optimum = _fit(store, loss, C, tol=1e-6, block_options={"in_memory": True}).certificate_.dual[0]
            points = {}
            for score in SCORES:
                blocks = {"cache": score, "cache_share": 0.5, "in_memory": False, "keep_compressed": False}
                options = {"tol": 1e-12, "memory_budget": budget(store, SHARE), "block_options": blocks}
                fits = [_fit(store, loss, C, max_iter=n, **options) for n in (2, 4)]
                points[score] = [float(1 - model.certificate_.dual[0] / optimum) for model in fits]
            found.append({"loss": loss, "C": C, "points": points})
    return found


def _fit(store: BlockStore, loss: str, C: float, **options: Any) -> Any:
    kind = {"loss": loss} if loss != "logistic" else {}
    estimator = LinearSVC if kind else LogisticRegression
    model = estimator(**kind, C=C, fit_intercept=False, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(store)


def _pieces(data: Data, seed: int) -> Iterator[np.ndarray]:
    order = np.random.default_rng(seed).permutation(data.X.shape[0])
    yield from np.split(order, range(STREAM_PIECE, len(order), STREAM_PIECE))


def streams(study: Study) -> dict[str, Any]:
    """Dual value at the end of a stream by score, relative to the optimum, for two orders of the rows, memory for a
    tenth of them; the stream is that of section 4."""
    data = study.data
    memory = budget(study.store, 1 / 10) + 8 * (study.store.n_features - study.store.info()["n_used"])
    found: dict[str, list[float]] = {}
    for score in SCORES:
        found[score] = []
        for seed in (0, 1):
            model = LinearSVC(**data.problem, memory_budget=memory, block_options={"cache": score})
            for rows in _pieces(data, seed):
                model.partial_fit(data.X[rows], data.y[rows], classes=[0, 1])
            found[score].append(float(model.stream_.dual[0] / study.optimum))
    return {"C": data.C, "points": found}
