"""Stub of the compiled module."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = [
    "DEBUG_BUILD",
    "DEFAULT_C_MAX",
    "DEFAULT_DESCENT_TOL",
    "DEFAULT_MAX_ITER",
    "DEFAULT_RATIO",
    "DEFAULT_SEARCH_TOL",
    "DEFAULT_TOL",
    "DuplicateEntriesError",
    "__version__",
    "check",
    "descend",
    "descend_on",
    "fit",
    "load_svmlight",
    "map_decisions",
    "map_positions",
    "map_rows",
    "map_shape",
    "map_usage",
    "search",
]

__version__: str
DEBUG_BUILD: bool
DEFAULT_TOL: float
DEFAULT_MAX_ITER: int
DEFAULT_SEARCH_TOL: float
DEFAULT_DESCENT_TOL: float
DEFAULT_C_MAX: float
DEFAULT_RATIO: float

class DuplicateEntriesError(ValueError): ...

def check(matrix: Any) -> tuple[bool, float]: ...
def descend(
    matrix: Any,
    class_ids: np.ndarray,
    n_classes: int,
    cost: np.ndarray,
    options: dict[str, Any],
    eta: Callable[[int], float] | None = None,
    progress: Callable[[str, int, float], None] | None = None,
) -> dict[str, Any]: ...
def descend_on(
    matrix: Any,
    class_ids: np.ndarray,
    n_classes: int,
    cost: np.ndarray,
    options: dict[str, Any],
    state: dict[str, Any],
    eta: Callable[[int], float] | None = None,
) -> dict[str, Any]: ...
def fit(
    matrix: Any,
    class_ids: np.ndarray,
    n_classes: int,
    cost: np.ndarray,
    options: dict[str, Any],
    progress: Callable[[str, int, float], None] | None = None,
) -> dict[str, Any]: ...
def load_svmlight(
    path: str, n_features: int | None, zero_based: bool | None, dtype: str, n_threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray, np.ndarray | None]: ...
def map_decisions(matrix: Any, map: dict[str, Any], weights: np.ndarray, n_threads: int) -> np.ndarray: ...
def map_positions(
    n: int, map: dict[str, Any], first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]: ...
def map_rows(matrix: Any, map: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def map_shape(n: int, map: dict[str, Any]) -> tuple[int, bool]: ...
def map_usage(matrix: Any, map: dict[str, Any], n_threads: int) -> tuple[int, int, float, float]: ...
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
