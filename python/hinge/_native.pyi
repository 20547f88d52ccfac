"""Stub of the compiled module."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import numpy as np

__all__ = [
    "DEBUG_BUILD",
    "DEFAULT_BLOCKS",
    "DEFAULT_C_MAX",
    "DEFAULT_DESCENT_TOL",
    "DEFAULT_MAX_ITER",
    "DEFAULT_MAX_REGIONS",
    "DEFAULT_RATIO",
    "DEFAULT_ROUNDS",
    "DEFAULT_SEARCH_TOL",
    "DEFAULT_TOL",
    "MAX_RELABELLED",
    "SHARD_LANES",
    "BlockFileError",
    "ColumnIndex",
    "Draft",
    "DriftCounts",
    "DuplicateEntriesError",
    "EncodedRows",
    "ModelFileError",
    "NativeModel",
    "Plane",
    "PlaneFile",
    "RowShard",
    "StoreReader",
    "StoreScorer",
    "StoreWriter",
    "StreamLearner",
    "Surface",
    "TableBatch",
    "TableCoder",
    "TableReader",
    "TableSurvey",
    "TextReader",
    "__version__",
    "answers_from",
    "check",
    "check_target",
    "decision_values",
    "descend",
    "descend_on",
    "descend_store",
    "estimate_facets",
    "explore_plane",
    "explore_to_file",
    "fingerprint",
    "fit",
    "fit_costs",
    "fit_labels",
    "fit_shards",
    "fit_store",
    "load_liblinear",
    "load_model",
    "load_svmlight",
    "map_decisions",
    "map_positions",
    "map_rows",
    "map_shape",
    "map_usage",
    "positive_labels",
    "print_numbers",
    "probabilities_of",
    "sample_columns",
    "save_liblinear",
    "save_model",
    "save_parts",
    "search",
    "search_shards",
    "search_store",
    "sides_at",
    "surfaces_minimum",
    "top_k",
    "walk_ray",
]

__version__: str
DEBUG_BUILD: bool
DEFAULT_TOL: float
DEFAULT_MAX_ITER: int
DEFAULT_MAX_REGIONS: int
DEFAULT_SEARCH_TOL: float
DEFAULT_DESCENT_TOL: float
DEFAULT_C_MAX: float
DEFAULT_RATIO: float
MAX_RELABELLED: int
DEFAULT_BLOCKS: int
SHARD_LANES: int
DEFAULT_ROUNDS: int

class DuplicateEntriesError(ValueError): ...

# Rows, labels in {-1, +1}, height of the constant column.
_CostData: TypeAlias = tuple[Any, np.ndarray, float]

# Weights (an array, or the columns of a CSR matrix and its values), intercepts, whether values of rows need no check,
# number of threads.
_Prediction: TypeAlias = tuple[Any, np.ndarray, bool, int]

@final
class ColumnIndex:
    def __new__(cls, indptr: np.ndarray, indices: np.ndarray, n_columns: int) -> ColumnIndex: ...

@final
class NativeModel:
    def __new__(cls, parts: dict[str, Any]) -> NativeModel: ...
    def parts(self) -> dict[str, Any]: ...
    def head(self) -> dict[str, Any]: ...
    def encoder(self) -> tuple[str, np.ndarray, np.ndarray, np.ndarray] | None: ...
    def feature_names(self) -> list[str] | None: ...
    def coef(self) -> np.ndarray | None: ...
    def verify(self) -> None: ...
    def row_decision(self, indices: Any, values: Any) -> Any: ...
    def row_decision_into(self, indices: Any, values: Any, out: np.ndarray) -> None: ...
    def row_class(self, indices: Any, values: Any) -> int: ...
    def row_probabilities(self, indices: Any, values: Any, logarithms: bool, out: np.ndarray) -> None: ...
    def named_row(self, row: dict[str, Any], ignore_unknown: bool) -> tuple[np.ndarray, np.ndarray]: ...
    def decisions(self, matrix: Any, n_threads: int, out: np.ndarray) -> None: ...
    def classes(self, matrix: Any, n_threads: int) -> np.ndarray: ...
    def probabilities(self, matrix: Any, n_threads: int, logarithms: bool, out: np.ndarray) -> None: ...
    def classes_of(self, values: np.ndarray) -> np.ndarray: ...
    def probabilities_of(self, values: np.ndarray, logarithms: bool, out: np.ndarray) -> None: ...
    def top_k(self, matrix: Any, k: int, n_threads: int) -> tuple[np.ndarray, np.ndarray]: ...
    def positive_labels(self, matrix: Any, n_threads: int) -> tuple[np.ndarray, np.ndarray]: ...

@final
class Plane:
    @staticmethod
    def from_arrays(arrays: dict[str, Any]) -> Plane: ...
    def array(self, name: str) -> np.ndarray: ...
    @property
    def end(self) -> str: ...
    def __len__(self) -> int: ...
    def locate(self, at: np.ndarray, n_threads: int) -> np.ndarray: ...
    def sides(self, facet: int) -> np.ndarray: ...
    def answers(self, data: _CostData, at: np.ndarray, n_threads: int) -> dict[str, np.ndarray]: ...
    def surface(self, data: _CostData, held: Any, held_y: np.ndarray, n_threads: int) -> Surface: ...
    def along(
        self, data: _CostData, from_: tuple[float, float], to: tuple[float, float], n_threads: int
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
    data: _CostData,
    perturbation: np.ndarray,
    at: np.ndarray,
    codes: np.ndarray,
    n_threads: int,
) -> dict[str, np.ndarray]: ...
def explore_plane(
    data: _CostData,
    limit: tuple[float, float],
    start: tuple[float, float] | None,
    max_regions: int,
    seed: int,
    n_threads: int,
    progress: Callable[[str, int, float], None] | None = None,
) -> tuple[Plane, dict[str, Any]]: ...
def explore_to_file(
    data: _CostData,
    limit: tuple[float, float],
    start: tuple[float, float] | None,
    max_regions: int,
    seed: int,
    n_threads: int,
    target: str,
    header: bytes,
    progress: Callable[[str, int, float], None] | None = None,
) -> None: ...
def estimate_facets(data: _CostData, limit: tuple[float, float], seed: int) -> float: ...
def sides_at(data: _CostData, perturbation: np.ndarray, at: np.ndarray, n_threads: int) -> np.ndarray: ...
def fit_costs(
    data: _CostData,
    at: tuple[float, float],
    tol: float,
    n_threads: int,
    start: np.ndarray | None = None,
) -> dict[str, np.ndarray]: ...
def surfaces_minimum(
    surfaces: list[tuple[Surface, tuple[float, float]]], max_regions: int
) -> tuple[float, list[list[list[float]]]]: ...
def walk_ray(
    data: _CostData,
    begin: tuple[float, float],
    to: tuple[float, float],
    seed: int,
    progress: Callable[[str, int, float], None] | None = None,
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]: ...

class ModelFileError(ValueError):
    """A file is no model file, a damaged one, or one of a newer format."""

class BlockFileError(ValueError):
    """A block store is damaged, cut short, or no block store."""

@final
class Draft:
    def __new__(cls, path: str, kind: str, overwrite: bool = False) -> Draft: ...
    def write(self, bytes: bytes) -> None: ...
    def publish(self) -> None: ...
    def abort(self) -> None: ...

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
        overwrite: bool,
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

def sample_columns(places: list[tuple[str, int]], bytes: int, zero_based: bool, limit: int) -> np.ndarray: ...

@final
class StoreScorer:
    def __new__(
        cls,
        reader: StoreReader,
        coef: np.ndarray,
        intercept: np.ndarray,
        map: dict[str, Any] | None = None,
    ) -> StoreScorer: ...
    def pages(self, start: int, end: int, n_threads: int) -> tuple[np.ndarray, np.ndarray]: ...

@final
class TableBatch:
    n_rows: int
    first_row: int
    @staticmethod
    def of_arrow(schema: Any, array: Any, first_row: int) -> TableBatch: ...
    @staticmethod
    def of_columns(columns: list[tuple[str, Any]], n_rows: int, first_row: int) -> TableBatch: ...
    def with_missing(self, names: list[str]) -> TableBatch: ...
    def values(self, name: str) -> list[Any]: ...
    def types(self) -> list[tuple[str, str]]: ...
    def is_dictionary(self, name: str) -> bool: ...
    def text_sample(self, name: str) -> tuple[int, int, int]: ...

@final
class TableReader:
    def __new__(cls, stream: Any) -> TableReader: ...
    def __iter__(self) -> TableReader: ...
    def __next__(self) -> TableBatch: ...

@final
class TableSurvey:
    def __new__(cls, request: str) -> TableSurvey: ...
    def needs_rows(self) -> bool: ...
    def add_types(self, batch: TableBatch) -> None: ...
    def add(self, batch: TableBatch, n_threads: int) -> None: ...
    def close(self) -> None: ...
    def facts(self) -> tuple[int, list[dict[str, Any]]]: ...
    def values(self, k: int) -> np.ndarray: ...
    def order(self, k: int, least: float, most: float, n_threads: int) -> tuple[np.ndarray, np.ndarray]: ...
    def settle(
        self,
        k: int,
        keep: np.ndarray | None = None,
        factors: list[float] | None = None,
        scale: float | None = None,
        edges: list[float] | None = None,
    ) -> None: ...
    def encoder(self) -> TableCoder: ...

@final
class TableCoder:
    is_counted: bool
    n_features: int
    @staticmethod
    def of_record(record: tuple[str, np.ndarray, np.ndarray, np.ndarray]) -> tuple[TableCoder, str]: ...
    def record(self, parameters: str) -> tuple[str, np.ndarray, np.ndarray, np.ndarray]: ...
    def columns(self) -> list[tuple[str, str, str | None, int, int, bool]]: ...
    def reads(self) -> list[str]: ...
    def is_binned(self, k: int) -> bool: ...
    def terms(self, k: int) -> list[str]: ...
    def type_changes(self, batch: TableBatch) -> list[tuple[str, str, str]]: ...
    def absent(self, batch: TableBatch) -> list[str]: ...
    def row(
        self, row: dict[str, Any], fills: bool, drift: DriftCounts | None = None
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def explain(self, row: dict[str, Any], fills: bool) -> list[tuple[str, str, int, float]]: ...

@final
class DriftCounts:
    def __new__(cls, encoder: TableCoder) -> DriftCounts: ...
    def get(self) -> list[tuple[int, int]]: ...

@final
class EncodedRows:
    def __new__(cls) -> EncodedRows: ...
    def add(self, encoder: TableCoder, batch: TableBatch, n_threads: int, drift: DriftCounts | None = None) -> None: ...
    def take(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

@final
class RowShard:
    def __new__(cls, matrix: Any, class_ids: np.ndarray, cost: np.ndarray, options: dict[str, Any]) -> RowShard: ...
    @staticmethod
    def of_store(
        path: str,
        n_columns: int,
        classes: Sequence[tuple[int, float]],
        lanes: int,
        budget: int,
        options: dict[str, Any],
    ) -> RowShard: ...
    def facts(self) -> list[float]: ...
    def answer(self, request: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]: ...
    def columns(self) -> tuple[int, np.ndarray] | None: ...
    def split(self, folds: Sequence[tuple[np.ndarray, np.ndarray]]) -> None: ...
    def close(self) -> None: ...

def fit_shards(
    exchange: Any,
    facts: list[float],
    n_columns: int,
    n_classes: int,
    options: dict[str, Any],
    progress: Any = None,
    scale: float = 1.0,
    checkpoint: Any = None,
) -> dict[str, Any]: ...
def search_shards(
    exchange: Any,
    facts: list[float],
    borders: np.ndarray,
    n_columns: int,
    class_ids: np.ndarray,
    n_classes: int,
    weight: np.ndarray,
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
    options: dict[str, Any],
    plan: dict[str, Any],
    visit: Callable[[dict[str, Any]], float | None],
    progress: Callable[[str, float, int, int, float, float], None] | None = None,
) -> str: ...

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
def check_target(path: str, kind: str, overwrite: bool = False, sources: list[str] = ...) -> None: ...
def decision_values(matrix: Any, model: _Prediction) -> np.ndarray: ...
def positive_labels(matrix: Any, model: _Prediction) -> tuple[np.ndarray, np.ndarray]: ...
def probabilities_of(
    probability: dict[str, Any], kind: str, values: np.ndarray, logarithms: bool, out: np.ndarray
) -> None: ...
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
def descend_store(
    reader: StoreReader,
    cost: np.ndarray,
    options: dict[str, Any],
    budget: int,
    eta: Callable[[int], float] | None = None,
    progress: Callable[[str, int, float], None] | None = None,
) -> dict[str, Any]: ...
def fingerprint(shape: list[int], arrays: list[np.ndarray]) -> int: ...
def fit(
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
def load_liblinear(path: str, as_in_file: bool = False) -> NativeModel: ...
def load_model(path: str) -> NativeModel: ...
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
def print_numbers(numbers: np.ndarray, precision: int, per_line: int) -> bytes: ...
def save_liblinear(
    model: NativeModel | dict[str, Any],
    path: str,
    solver: str | None = None,
    labels: list[int] | None = None,
    overwrite: bool = False,
) -> None: ...
def save_model(
    model: NativeModel,
    path: str,
    dtype: str | None = None,
    sparse: bool | None = None,
    overwrite: bool = False,
    metadata: str | None = None,
) -> None: ...
def save_parts(
    parts: dict[str, Any],
    path: str,
    dtype: str | None = None,
    sparse: bool | None = None,
    overwrite: bool = False,
) -> None: ...
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
def top_k(matrix: Any, model: _Prediction, k: int) -> tuple[np.ndarray, np.ndarray]: ...
