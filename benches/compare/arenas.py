"""Places where rows may be in a fit whose certificate is looked at: in memory, over shards, in a store on the disk."""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hinge
import numpy as np
from engines import MULTINOMIAL
from sklearn.exceptions import ConvergenceWarning

NAMES = ("memory", "shards", "store")
# Bytes of what is known of a row in a fit and in a search, of a column (of a lane), and of page buffers.
OF_ROW, OF_ROW_SEARCHED, OF_COLUMN, LANES, OF_PAGES = 160, 480, 320, 8, 14_000_000


def fit_budget(X: Any, share: float, classes: int = 1) -> int:
    """Bytes for a fit that hold ``share`` of the entries at 8 bytes each beside what is known of rows and columns."""
    (n, d), lanes = X.shape, -(-classes // LANES) * LANES if classes > 1 else 1
    return int(8 * share * X.nnz) + (OF_ROW * n + OF_COLUMN * d) * lanes + OF_PAGES


def search_budget(X: Any, share: float) -> int:
    """:func:`fit_budget` of a search."""
    n, d = X.shape
    return int(8 * share * X.nnz) + OF_ROW_SEARCHED * n + LANES * OF_COLUMN * d + OF_PAGES


@dataclass(frozen=True)
class Data:
    """Rows and labels, and how a fit of them is to be split up or limited."""

    X: Any
    y: np.ndarray
    shards: int
    share: float


# A fit by the parameters of a model: what its certificate says, as numbers and words.
Fit = Callable[[Any], dict[str, Any]]


def _of_certificate(model: Any) -> dict[str, Any]:
    proof = model.certificate_
    numbers = {key: float(getattr(proof, key)[0]) for key in ("primal", "dual", "passes")}
    gap = float(proof.relative_gap[0])
    return numbers | {"gap": gap, "solver": str(proof.solver[0]), "status": str(proof.status[0])}


def _fitted(model: Any, *given: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return _of_certificate(model.fit(*given))


def _over_shards(data: Data, model: Any) -> dict[str, Any]:
    from cluster_rounds import fit_over_shards, gap_of, parts_of

    parts, loss = parts_of(data.X, data.y, data.shards), getattr(model, "loss", "logistic")
    result = fit_over_shards(parts, model, loss, float("inf")).result
    numbers = {key: float(result[key][0]) for key in ("primal", "dual", "passes")}
    return numbers | {"gap": gap_of(result), "solver": "newton", "status": str(result["status"][0])}


@contextmanager
def arena(name: str, data: Data) -> Iterator[Fit]:
    """Fits with the data in the place of this name."""
    if name == "memory":
        yield lambda model: _fitted(model, data.X, data.y)
    elif name == "shards":
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        yield lambda model: _over_shards(data, model)
    else:
        with tempfile.TemporaryDirectory() as folder:
            store = hinge.BlockStore.build((data.X, data.y), Path(folder) / "rows.blocks")
            n_classes = len(np.unique(data.y))

            def on_store(model: Any) -> dict[str, Any]:
                is_multinomial = getattr(model, "multi_class", "ovr") == MULTINOMIAL
                budget = fit_budget(data.X, data.share, n_classes if is_multinomial else 1)
                return _fitted(model.set_params(memory_budget=budget, block_options={"in_memory": False}), store)

            yield on_store


def timed(fit: Fit, model: Any, repeat: int) -> dict[str, Any]:
    """The last of some fits, with the least processor time of one of them."""
    seconds = []
    for _ in range(repeat):
        start = time.process_time()
        found = fit(model)
        seconds.append(time.process_time() - start)
    return found | {"seconds": min(seconds)}
