"""The set that is larger than memory, as parts on disk: file paths of an archive, hashed 3-5-grams, 58 sections.

Parts are .npz files of about 100,000 rows, sorted by path as the set comes, split into train and test by package (one
package in ten is held out). They are made once, which takes about ten minutes, and kept in the folder of the sets'
cache.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import problems
import scipy.sparse as sp

FOLDER = Path(os.environ.get("HINGE_DATA_CACHE", Path(tempfile.gettempdir()) / "hinge-data")) / "contents"
POSITIVE = "doc"
"""The section of the binary task."""


def _section_names() -> dict[str, int]:
    loader = problems._loader()
    sections: dict[str, int] = {}
    for section, _, _ in loader._tsv(loader.HERE / "debian_contents/debian_contents_paths.tsv.xz"):
        sections.setdefault(section, len(sections))
    return sections


def prepare() -> None:
    """Make the parts, if they are not there."""
    names = FOLDER / "sections.json"
    if names.exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for k, (X, y, packages) in enumerate(problems._loader().contents()):
        is_test = np.array([zlib.crc32(package.encode()) % 10 == 0 for package in packages])
        for kind, chosen in (("train", ~is_test), ("test", is_test)):
            part = X[np.flatnonzero(chosen)]
            part.sort_indices()
            arrays = {"data": part.data.astype(np.float32), "indices": part.indices.astype(np.int32)}
            arrays |= {"indptr": part.indptr.astype(np.int32), "shape": np.array(part.shape), "format": b"csr"}
            draft = FOLDER / f".{kind}_{k:03d}.npz"
            np.savez(draft, **arrays, y=y[chosen].astype(np.int32))
            draft.rename(FOLDER / f"{kind}_{k:03d}.npz")
    names.write_text(json.dumps(_section_names()))  # last: the sign that all is there


def parts(kind: str) -> list[Path]:
    """The parts of "train" or "test", in order."""
    prepare()
    return sorted(FOLDER.glob(f"{kind}_*.npz"))


def rows(kind: str, n_rows: int | None = None, *, binary: bool = True) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
    """Matrices and labels, part after part; with ``n_rows`` an equal share of every part, in all about so many rows."""
    paths = parts(kind)
    positive = json.loads((FOLDER / "sections.json").read_text())[POSITIVE]
    share = 1.0 if n_rows is None else n_rows / total(kind)
    for path in paths:
        with np.load(path) as file:
            X = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
            y = file["y"]
        if share < 1:
            chosen = np.flatnonzero(np.random.default_rng(zlib.crc32(path.name.encode())).random(len(y)) < share)
            X, y = X[chosen], y[chosen]
        yield X, (y == positive).astype(np.int64) if binary else y


def total(kind: str) -> int:
    """Rows of all parts."""
    count = 0
    for path in parts(kind):
        with np.load(path) as file:
            count += len(file["y"])
    return count
