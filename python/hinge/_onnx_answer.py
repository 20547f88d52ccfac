"""Classes and labels as ONNX nodes, from decision values and probabilities in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge._onnx_nodes import INT64, Nodes


def class_ids(nodes: Nodes, values: str, probabilities: str | None, answer: dict[str, Any]) -> str:
    """Numbers of the classes, shape (n_rows,); or for labels a 0/1 matrix of shape (n_rows, n_labels), int64.

    Parameters
    ----------
    nodes : Nodes
    values : str
        Decision values, shape (n_rows, n_vectors).
    probabilities : str or None
        Shape (n_rows, n_classes).
    answer : dict
        As in :class:`hinge._parts.ModelParts`.
    """
    kind = answer["kind"]
    if kind == "labels":
        return nodes.call("Cast", nodes.call("Greater", values, nodes.double(0.0)), to=INT64)
    if kind in ("sign", "threshold"):
        value = nodes.call("Reshape", values, nodes.integers(-1))
        if kind == "sign":
            is_second = nodes.call("Greater", value, nodes.double(0.0))
        else:
            is_second = nodes.call("GreaterOrEqual", value, nodes.double(answer["threshold"]))
        return nodes.call("Cast", is_second, to=INT64)
    if kind == "highest":
        return nodes.call("ArgMax", values, axis=1, keepdims=0)
    assert probabilities is not None
    if kind == "most_probable":
        return nodes.call("ArgMax", probabilities, axis=1, keepdims=0)
    costs = nodes.constant("costs", np.ascontiguousarray(answer["costs"], dtype=np.float64))
    return nodes.call("ArgMin", nodes.call("MatMul", probabilities, costs), axis=1, keepdims=0)


def class_array(classes: Any) -> np.ndarray:
    """Classes as ONNX has them: int64, float64, bool, or strings with the dtype object.

    Raises
    ------
    ValueError
        Integers beyond 64 bits with a sign, or classes of another type.
    """
    array = np.asarray(classes)
    if array.dtype.kind == "O":
        array = np.array(array.tolist())
    if array.dtype.kind == "U":
        return array.astype(object)
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"classes must fit into int64, {array.max()} does not")
    kinds: dict[str, type] = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64}
    if array.dtype.kind not in kinds:
        raise ValueError(f"classes must be integers, floats, truth values or strings, their dtype is {array.dtype}")
    return array.astype(kinds[array.dtype.kind])
