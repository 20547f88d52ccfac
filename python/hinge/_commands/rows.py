"""Labelled rows for training from the command line: in memory, or in a block store beside the model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge._commands.plan import Plan
from hinge._progress import show
from hinge.blocks import BlockStore
from hinge.svmlight import load_svmlight

_TEXT_SHARE = 4
"""Data in memory are taken to need this many times the bytes of their text: an entry takes 12 bytes and seldom less
than 6 of text, the text itself is held while it is read, and solvers keep a packed copy."""

_TEXT_STARTS = {bytes([byte]) for byte in b"0123456789+-.# \t\r\n"} | {b""}


@contextmanager
def opened(plan: Plan) -> Iterator[tuple[Any, Any]]:
    """The rows of a plan: ``(X, y)``, or ``(BlockStore, None)`` where they do not fit its memory."""
    if plan.encoder is not None:
        yield _encoded(plan)
        return
    memory = plan.given.get("memory")
    size = text_bytes(plan.data)
    if memory is None or (size is not None and size * _TEXT_SHARE <= memory):
        yield in_memory(plan)
        return
    if plan.solver.penalty != "l2":
        raise ValueError(
            f"--memory: the data may not fit {memory} bytes, and {plan.solver.name} is not trained from a block store"
        )
    folder = os.path.dirname(os.path.abspath(plan.model)) if plan.model else None
    with tempfile.TemporaryDirectory(prefix=".hinge-", dir=folder) as temporary:
        yield _stored(plan, os.path.join(temporary, "rows")), None


def _encoded(plan: Plan) -> tuple[Any, Any]:
    """The rows of tables and their labels; the encoder of the plan learns from them."""
    plan.encoder.fit(plan.data)
    if not plan.is_quiet:
        for name, kind in plan.encoder.kinds_.items():
            show(f"{name}: {kind}")
    X, y, _, _ = plan.encoder.stream(plan.data, target=plan.label).collect()
    return X, y


def text_bytes(paths: list[str]) -> int | None:
    """Bytes of files of plain text, None where only reading tells."""
    total = 0
    for path in paths:
        if path == "-" or not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            if file.read(1) not in _TEXT_STARTS:  # nothing that is compressed starts like this
                return None
        total += os.path.getsize(path)
    return total


def in_memory(plan: Plan) -> tuple[sp.csr_matrix, np.ndarray]:
    """All files below each other; labels are whole numbers where all of them are."""
    base, threads = bool(plan.given.get("zero_based")), plan.given.get("threads")
    read = [load_svmlight(path, zero_based=base, n_jobs=threads) for path in plan.data]
    n_features = max(X.shape[1] for X, _ in read)
    for X, _ in read:
        X.resize(X.shape[0], n_features)
    X = read[0][0] if len(read) == 1 else sp.csr_matrix(sp.vstack([X for X, _ in read], format="csr"))
    return X, _labels(plan, np.concatenate([y for _, y in read]))


def _labels(plan: Plan, y: np.ndarray) -> np.ndarray:
    whole = (y == np.trunc(y)) & (abs(y) < 2**31)
    if whole.all():
        return y.astype(np.int64)
    if plan.format == "liblinear":
        row = int(np.flatnonzero(~whole)[0])
        raise ValueError(
            f"row {row + 1} has the label {y[row]:g}: labels of a LIBLINEAR model are whole numbers of 32 bits; "
            "--model-format hinge keeps others"
        )
    return y


def _stored(plan: Plan, path: str) -> BlockStore:
    if not plan.is_quiet:
        show("the data may not fit the memory: building a block store")
    return BlockStore.build(
        plan.data,
        path,
        zero_based=bool(plan.given.get("zero_based")),
        n_jobs=plan.given.get("threads"),
        verbose=int(not plan.is_quiet),
    )


def label_order(rows: Any, y: Any) -> list[int]:
    """The classes as LIBLINEAR orders them: by first appearance, but +1 before -1 where these are all."""
    if isinstance(rows, BlockStore):
        y, _ = rows.labels()
    labels, first = np.unique(y, return_index=True)
    order = [int(label) for label in labels[np.argsort(first)]]
    return [1, -1] if order == [-1, 1] else order
