"""Real problems and their objectives, computed without the package under test.

Labels are -1/+1; a set with more classes becomes class 0 against the rest. The primal objective is

    1/2 |w|^2 (+ 1/2 b^2 if the intercept is penalised) + C sum_i xi(y_i (w.x_i + b))

in float64 from the weights alone, the same code for every competitor.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType

import numpy as np
import scipy.sparse as sp

REPOSITORY = Path(__file__).resolve().parents[2]

LOSSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hinge": lambda margin: np.maximum(0.0, 1.0 - margin),
    "squared_hinge": lambda margin: np.square(np.maximum(0.0, 1.0 - margin)),
    "logistic": lambda margin: np.logaddexp(0.0, -margin),
}
INTERCEPTS = ("none", "free", "penalised")


@dataclass(frozen=True)
class Problem:
    """A binary set: the matrix as users have it, and on demand a float64 copy for the objective."""

    name: str
    X: sp.csr_matrix | np.ndarray
    y: np.ndarray

    @cached_property
    def exact(self) -> sp.csr_matrix | np.ndarray:
        """The matrix in float64."""
        return self.X.astype(np.float64)

    def objective(self, loss: str, C: float, intercept: str, w: np.ndarray, b: float) -> float:
        """Primal value at (w, b)."""
        margin = self.y * (self.exact @ w + b)
        penalty = 0.5 * float(w @ w) + (0.5 * b * b if intercept == "penalised" else 0.0)
        return penalty + C * float(LOSSES[loss](margin).sum())


def data_root() -> Path | None:
    """Folder of the data sets: $HINGE_DATA, else ../shared/data beside the repository; None if absent."""
    root = Path(os.environ.get("HINGE_DATA", REPOSITORY.parent / "shared" / "data"))
    return root if (root / "sets.py").is_file() else None


@cache
def _loader() -> ModuleType:
    root = data_root()
    if root is None:
        raise FileNotFoundError("no data sets: set HINGE_DATA to the folder of sets.py")
    spec = importlib.util.spec_from_file_location("sets", root / "sets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_labels(name: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """The training part of the named set with int32 indices, and its labels as they are."""
    X, y, _, _ = _loader().load(name)
    X = sp.csr_matrix(X)
    X.sort_indices()
    return X, y


def load(name: str) -> Problem:
    """The training part of the named set as a binary problem."""
    X, y = load_labels(name)
    signs = y.astype(np.float64) if set(np.unique(y)) == {-1, 1} else np.where(y == 0, 1.0, -1.0)
    return Problem(name, X, signs)


def relative_distance(value: float, best: float) -> float:
    """How far an objective is above the best known one, relative to the best."""
    return (value - best) / best


def classes(name: str) -> tuple[sp.csr_matrix, np.ndarray, sp.csr_matrix | None, np.ndarray | None]:
    """A set with all its classes, counted from 0: training and test part."""
    X, y, X_test, y_test = _loader().load(name)
    labels, ids = np.unique(y, return_inverse=True)
    return X, ids, X_test, None if y_test is None else np.searchsorted(labels, y_test)
