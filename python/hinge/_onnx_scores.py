"""Decision values as ONNX nodes: for dense rows, for one sparse row and for a batch of sparse rows.

The value of a row is ``x W' + b``. For one sparse row the weights of its columns are gathered and multiplied by its
values; a batch of sparse rows does so row by row, in a loop over the rows, with no more memory than a row needs.

Tried: ``ScatterND`` with ``reduction="add"`` for the sums of a batch. ONNX Runtime 1.32 adds from several threads at
once without a lock: 2,000,000 entries of one row were off by 400 to 800, those of 100 rows by 3e-12, and differently in
each run. ``ScatterElements`` adds in order, with the entries of all rows times all classes in memory: 5,000 rows of 100
entries took 55 ms for one vector and 1,340 ms for twenty, the loop 160 and 280; one row 51 us, the loop 43.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge import _native
from hinge._onnx_nodes import Body, Nodes, Value
from hinge._parts import ModelParts


def scores(nodes: Nodes, parts: ModelParts, given: dict[str, str], dtype: np.dtype[Any]) -> str:
    """Decision values of shape (n_rows, n_vectors).

    Parameters
    ----------
    nodes : Nodes
    parts : ModelParts
    given : dict of str to str
        Names of the values that hold the rows: ``X``; ``indices`` and ``values`` of one row; or ``indptr``,
        ``indices`` and ``values`` of a batch.
    dtype : dtype
        float32 or float64, of the rows, the weights and the result.

    Raises
    ------
    ValueError
        Sparse rows for a model of degree 2, weights too large for float32, more weights than a model can hold.
    """
    if parts.pairs is not None:
        if "X" not in given:
            raise ValueError(
                "input must be 'dense' for a model of degree 2: products of the columns of a sparse row would have to "
                "be enumerated in the graph, for which ONNX has no operator"
            )
        return _pair_scores(nodes, parts, given["X"], dtype)
    weights = nodes.constant("weights", _weights(nodes, parts, dtype))
    if "X" in given:
        products = nodes.call("MatMul", given["X"], weights)
    elif "indptr" in given:
        product = Value(nodes.unique("product"), dtype, (len(parts.intercept),))
        products = _sparse_products(nodes, weights, given, product)
    else:
        row = nodes.call("Reshape", given["values"], nodes.integers(1, -1))
        products = nodes.call("MatMul", row, nodes.call("Gather", weights, given["indices"], axis=0))
    return nodes.call("Add", products, nodes.constant("intercept", _narrowed(parts.intercept, dtype)))


def _sparse_products(nodes: Nodes, weights: str, given: dict[str, str], product: Value) -> str:
    """Products of CSR rows and weights, a row in each turn of a loop; ``product`` is that of a row."""
    one = nodes.constant("one", np.int64(1))
    n_rows = nodes.call("Sub", nodes.call("Size", given["indptr"]), one)
    row = Nodes(nodes.unique)
    number, is_on = nodes.unique("number"), nodes.unique("is_on")
    bounds = [
        row.call("Reshape", row.call("Gather", given["indptr"], place, axis=0), row.integers(1))
        for place in (number, row.call("Add", number, one))
    ]
    columns, values = (row.call("Slice", given[name], *bounds) for name in ("indices", "values"))
    goes_on = row.call("Identity", is_on)
    row.call("MatMul", values, row.call("Gather", weights, columns, axis=0), output=product.name)
    nodes.constants.update(row.constants)
    integer, truth = np.dtype(np.int64), np.dtype(bool)
    body = Body([Value(number, integer, ()), Value(is_on, truth, ())], [Value(goes_on, truth, ()), product], row.calls)
    return nodes.call("Loop", n_rows, "", body=body)


def _weights(nodes: Nodes, parts: ModelParts, dtype: np.dtype[Any]) -> np.ndarray:
    """Weights of shape (n_features, n_vectors)."""
    n_vectors = len(parts.intercept)
    nodes.check_room(parts.n_features * n_vectors * dtype.itemsize)
    if not isinstance(parts.coef, tuple):
        return _narrowed(parts.coef.T, dtype)
    indptr, indices, values = parts.coef
    dense = np.zeros((parts.n_features, n_vectors), dtype=dtype)
    dense[indices, np.repeat(np.arange(n_vectors), np.diff(indptr))] = _narrowed(values, dtype)
    return dense


def _narrowed(weights: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Weights in the dtype of the graph, in C order."""
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(weights, dtype=dtype)
    if not np.isfinite(narrow).all():
        largest = np.abs(weights).max()
        raise ValueError(f"dtype must be 'float64': a weight of size {largest:g} is too large for {dtype.name}")
    return narrow


def _pair_scores(nodes: Nodes, parts: ModelParts, rows: str, dtype: np.dtype[Any]) -> str:
    """Decision values of a model of degree 2: ``sum_j x_j (l_j + sum_i x_i A_ij) + b`` for each vector."""
    n, n_vectors = parts.n_features, len(parts.intercept)
    nodes.check_room(n * n * n_vectors * dtype.itemsize)
    squares, linear, intercept = _pair_weights(parts)
    by_column = squares.transpose(1, 0, 2).reshape(n, n_vectors * n)
    products = nodes.call("MatMul", rows, nodes.constant("pairs", _narrowed(by_column, dtype)))
    products = nodes.call("Add", products, nodes.constant("linear", _narrowed(linear.ravel(), dtype)))
    products = nodes.call("Reshape", products, nodes.integers(-1, n_vectors, n))
    column = nodes.call("Reshape", rows, nodes.integers(-1, n, 1))
    values = nodes.call("Reshape", nodes.call("MatMul", products, column), nodes.integers(-1, n_vectors))
    return nodes.call("Add", values, nodes.constant("intercept", _narrowed(intercept, dtype)))


def _pair_weights(parts: ModelParts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Upper triangles of shape (n_vectors, n, n), linear weights of shape (n_vectors, n) and intercepts."""
    n, pairs = parts.n_features, parts.pairs
    assert pairs is not None
    first, second = (part.astype(np.int64) for part in np.triu_indices(n))
    positions, factors = _native.map_positions(n, pairs, first, second)
    coef = np.asarray(parts.coef, dtype=np.float64)
    triangles = np.zeros((len(coef), n, n))
    triangles[:, first, second] = factors * coef[:, positions]
    gamma, coef0 = pairs["gamma"], pairs["coef0"]
    linear = coef[:, :n] * (1.0 if gamma is None else np.sqrt(2.0 * gamma * coef0))
    intercept = np.asarray(parts.intercept, dtype=np.float64)
    return triangles, linear, intercept + coef0 * coef[:, -1] if pairs["has_constant"] else intercept
