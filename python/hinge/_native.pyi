"""Stub of the compiled module."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

__all__ = [
    "DEBUG_BUILD",
    "DEFAULT_BLOCKS",
    "DEFAULT_CACHE_SHARE",
    "DEFAULT_C_MAX",
    "DEFAULT_MAX_ITER",
    "DEFAULT_RATIO",
    "DEFAULT_ROUNDS",
    "DEFAULT_SEARCH_TOL",
    "DEFAULT_TOL",
    "BlockFileError",
    "DuplicateEntriesError",
    "StoreReader",
    "StoreScorer",
    "StoreWriter",
    "StreamLearner",
    "TextReader",
    "__version__",
    "check",
    "fit",
    "fit_store",
    "load_svmlight",
    "search",
    "search_store",
]

__version__: str
DEBUG_BUILD: bool
DEFAULT_TOL: float
DEFAULT_MAX_ITER: int
DEFAULT_SEARCH_TOL: float
DEFAULT_C_MAX: float
DEFAULT_RATIO: float
DEFAULT_BLOCKS: int
DEFAULT_ROUNDS: int
DEFAULT_CACHE_SHARE: float

class DuplicateEntriesError(ValueError): ...

class BlockFileError(ValueError):
    """A block store is damaged, cut short, or no block store."""

@final
class StoreWriter:
    def __new__(
        cls,
        path: str,
        n_blocks: int,
        seed: int,
        n_features: int | None,
        counts: np.ndarray | None,
        source: str,
    ) -> StoreWriter: ...
    def append(
        self, matrix: Any, class_ids: np.ndarray, weight: np.ndarray | None, n_threads: int
    ) -> tuple[int, int]: ...
    def finish(self, labels: list[Any], feature_names: list[str] | None, n_threads: int) -> None: ...
    def abort(self) -> None: ...

@final
class StoreReader:
    def __new__(cls, path: str) -> StoreReader: ...
    def info(self) -> dict[str, Any]: ...
    def pages(self, block: int) -> list[tuple[int, int, int]]: ...
    def read(
        self, pages: list[int], n_threads: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
    def facts(self, n_threads: int) -> tuple[np.ndarray, np.ndarray]: ...
    def verify(self, n_threads: int, progress: Callable[[str, int, float], None] | None = None) -> None: ...

@final
class TextReader:
    def __new__(cls, path: str, n_features: int | None, zero_based: bool | None) -> TextReader: ...
    def next(
        self, dtype: str, n_threads: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray, np.ndarray | None] | None: ...
    @property
    def zero_based(self) -> bool | None: ...

@final
class StoreScorer:
    def __new__(cls, reader: StoreReader, coef: np.ndarray, intercept: np.ndarray) -> StoreScorer: ...
    def pages(self, start: int, end: int, n_threads: int) -> tuple[np.ndarray, np.ndarray]: ...

@final
class StreamLearner:
    def __new__(
        cls,
        n_features: int,
        cost: np.ndarray,
        dtype: str,
        options: dict[str, Any],
        blocks: dict[str, Any],
        state: dict[str, Any] | None = None,
    ) -> StreamLearner: ...
    def learn(self, matrix: Any, class_ids: np.ndarray, weight: np.ndarray | None, n_threads: int) -> None: ...
    def model(self) -> tuple[np.ndarray, np.ndarray]: ...
    def facts(self) -> tuple[int, int, np.ndarray]: ...
    def state(self) -> dict[str, Any]: ...

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
def fit_store(
    reader: StoreReader,
    cost: np.ndarray,
    options: dict[str, Any],
    blocks: dict[str, Any],
    progress: Callable[..., None] | None = None,
) -> dict[str, Any]: ...
def search_store(
    reader: StoreReader,
    factor: np.ndarray,
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    options: dict[str, Any],
    blocks: dict[str, Any],
    plan: dict[str, Any],
    visit: Callable[[dict[str, Any]], float | None],
    progress: Callable[..., None] | None = None,
) -> str: ...
