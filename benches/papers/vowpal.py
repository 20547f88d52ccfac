"""Vowpal Wabbit as a rival: rows as its text, and runs in a Python of its own that has vowpalwabbit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


def write(path: Path, X: sp.csr_matrix, y: np.ndarray) -> None:
    """Rows in random order, as an online learner needs them; label 1 where ``y`` is above 0, else -1."""
    order = np.random.default_rng(0).permutation(len(y))
    with open(path, "w", encoding="ascii") as file:
        for i in order:
            row = slice(X.indptr[i], X.indptr[i + 1])
            entries = " ".join(f"{j}:{v:.7g}" for j, v in zip(X.indices[row], X.data[row], strict=True))
            file.write(f"{1 if y[i] > 0 else -1} | {entries}\n")


def run(
    python: str, scratch: Path, train: tuple[Any, Any], test: tuple[Any, Any], *, passes: str, words: str = ""
) -> dict[str, Any]:
    """What ``rival_vw.py`` says of training and test rows; ``words`` are further options of vw."""
    text, test_text, cache = scratch / "train.vw", scratch / "test.vw", scratch / "cache"
    write(text, *train)
    write(test_text, *test)
    call = [python, str(Path(__file__).with_name("rival_vw.py")), str(text), str(test_text), str(cache), passes, words]
    return json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout)
