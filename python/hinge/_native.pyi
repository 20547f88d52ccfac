"""Stub of the compiled module."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = [
    "DEBUG_BUILD",
    "DEFAULT_C_MAX",
    "DEFAULT_MAX_ITER",
    "DEFAULT_RATIO",
    "DEFAULT_SEARCH_TOL",
    "DEFAULT_TOL",
    "DuplicateEntriesError",
    "__version__",
    "check",
    "decision_values",
    "fit",
    "fit_crammer_singer",
    "fit_labels",
    "load_svmlight",
    "search",
    "top_k",
]

__version__: str
DEBUG_BUILD: bool
DEFAULT_TOL: float
DEFAULT_MAX_ITER: int
DEFAULT_SEARCH_TOL: float
DEFAULT_C_MAX: float
DEFAULT_RATIO: float

class DuplicateEntriesError(ValueError): ...

def check(matrix: Any) -> tuple[bool, float]: ...
def decision_values(matrix: Any, weights: Any, intercept: np.ndarray, n_threads: int) -> np.ndarray: ...
def fit(
    matrix: Any,
    class_ids: np.ndarray,
    n_classes: int,
    cost: np.ndarray,
    options: dict[str, Any],
    progress: Callable[[str, int, float], None] | None = None,
) -> dict[str, Any]: ...
def fit_crammer_singer(
    matrix: Any,
    class_ids: np.ndarray,
    n_classes: int,
    cost: np.ndarray,
    options: dict[str, Any],
    progress: Callable[[str, int, float], None] | None = None,
) -> dict[str, Any]: ...
def fit_labels(
    matrix: Any,
    starts: np.ndarray,
    rows: np.ndarray,
    cost: np.ndarray,
    options: dict[str, Any],
    drop: float,
    progress: Callable[[str, int, float], None] | None = None,
) -> dict[str, Any]: ...
def load_svmlight(
    path: str, n_features: int | None, zero_based: bool | None, dtype: str, n_threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray, np.ndarray | None]: ...
def search(
    matrix: Any,
    class_ids: np.ndarray,
    n_classes: int,
    weight: np.ndarray,
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    options: dict[str, Any],
    plan: dict[str, Any],
    visit: Callable[[dict[str, Any]], float | None],
    progress: Callable[[str, float, int, int, float, float], None] | None = None,
) -> str: ...
def top_k(
    matrix: Any, weights: Any, intercept: np.ndarray, k: int, n_threads: int
) -> tuple[np.ndarray, np.ndarray]: ...
