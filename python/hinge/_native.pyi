"""Stub of the compiled module."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

__all__ = [
    "DEBUG_BUILD",
    "DEFAULT_C_MAX",
    "DEFAULT_MAX_ITER",
    "DEFAULT_MAX_REGIONS",
    "DEFAULT_RATIO",
    "DEFAULT_SEARCH_TOL",
    "DEFAULT_TOL",
    "DuplicateEntriesError",
    "Plane",
    "PlaneFile",
    "Surface",
    "__version__",
    "answers_from",
    "check",
    "estimate_facets",
    "explore_plane",
    "explore_to_file",
    "fit",
    "fit_costs",
    "load_svmlight",
    "search",
    "sides_at",
    "surfaces_minimum",
    "walk_ray",
]

__version__: str
DEBUG_BUILD: bool
DEFAULT_TOL: float
DEFAULT_MAX_ITER: int
DEFAULT_MAX_REGIONS: int
DEFAULT_SEARCH_TOL: float
DEFAULT_C_MAX: float
DEFAULT_RATIO: float

class DuplicateEntriesError(ValueError): ...

@final
class Plane:
    @staticmethod
    def from_arrays(arrays: dict[str, Any]) -> Plane: ...
    def array(self, name: str) -> np.ndarray: ...
    @property
    def end(self) -> str: ...
    def __len__(self) -> int: ...
    def locate(self, at: np.ndarray) -> np.ndarray: ...
    def sides(self, facet: int) -> np.ndarray: ...
    def answers(
        self, matrix: Any, y: np.ndarray, bias: float, at: np.ndarray, n_threads: int
    ) -> dict[str, np.ndarray]: ...
    def surface(
        self, matrix: Any, y: np.ndarray, bias: float, held: Any, held_y: np.ndarray, n_threads: int
    ) -> Surface: ...
    def along(
        self, matrix: Any, y: np.ndarray, bias: float, from_: tuple[float, float], to: tuple[float, float]
    ) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]: ...

@final
class PlaneFile:
    def __new__(cls, path: str) -> PlaneFile: ...
    def header(self) -> bytes: ...
    @property
    def limit(self) -> list[float]: ...
    def perturbation(self) -> np.ndarray: ...
    def __len__(self) -> int: ...
    def findings(self) -> dict[str, Any]: ...
    def layer(self, k: int) -> dict[str, Any]: ...
    def load(self) -> tuple[Plane, dict[str, Any]]: ...

@final
class Surface:
    def arrays(self) -> dict[str, np.ndarray]: ...

def answers_from(
    matrix: Any,
    y: np.ndarray,
    bias: float,
    perturbation: np.ndarray,
    at: np.ndarray,
    codes: np.ndarray,
    n_threads: int,
) -> dict[str, np.ndarray]: ...
def explore_plane(
    matrix: Any,
    y: np.ndarray,
    bias: float,
    limit: tuple[float, float],
    start: tuple[float, float] | None,
    max_regions: int,
    seed: int,
    n_threads: int,
    progress: Callable[[str, int, float], None] | None = None,
) -> tuple[Plane, dict[str, Any]]: ...
def explore_to_file(
    matrix: Any,
    y: np.ndarray,
    bias: float,
    limit: tuple[float, float],
    start: tuple[float, float] | None,
    max_regions: int,
    seed: int,
    n_threads: int,
    target: str,
    header: bytes,
    progress: Callable[[str, int, float], None] | None = None,
) -> None: ...
def estimate_facets(matrix: Any, y: np.ndarray, bias: float, limit: tuple[float, float], seed: int) -> float: ...
def sides_at(
    matrix: Any, y: np.ndarray, bias: float, perturbation: np.ndarray, at: np.ndarray, n_threads: int
) -> np.ndarray: ...
def fit_costs(
    matrix: Any,
    y: np.ndarray,
    bias: float,
    at: tuple[float, float],
    tol: float,
    n_threads: int,
    start: np.ndarray | None = None,
) -> dict[str, np.ndarray]: ...
def surfaces_minimum(
    surfaces: list[tuple[Surface, tuple[float, float]]], max_regions: int
) -> tuple[float, list[list[list[float]]]]: ...
def walk_ray(
    matrix: Any,
    y: np.ndarray,
    bias: float,
    to: tuple[float, float],
    seed: int,
    progress: Callable[[str, int, float], None] | None = None,
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]: ...
def check(matrix: Any) -> tuple[bool, float]: ...
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
