"""What goes into the graph of a model, what comes out, and all between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge._onnx_answer import class_array, class_ids
from hinge._onnx_nodes import DOUBLE, FLOAT, Nodes, Value
from hinge._onnx_probability import probabilities
from hinge._onnx_scores import scores
from hinge._parts import ModelParts

INPUTS = ("dense", "sparse", "sparse_row")


@dataclass(frozen=True)
class Graph:
    """Nodes with the values that go in and come out."""

    name: str
    nodes: Nodes
    inputs: list[Value]
    outputs: list[Value]


@dataclass(frozen=True)
class Results:
    """Names of what a model says of its rows, as two dimensions and in double precision.

    Attributes
    ----------
    values : str
        Decision values, shape (n_rows, n_vectors).
    probabilities : str or None
        Shape (n_rows, n_classes).
    ids : str
        As :func:`hinge._onnx_answer.class_ids`.
    """

    values: str
    probabilities: str | None
    ids: str


def results(nodes: Nodes, parts: ModelParts, found: str, dtype: np.dtype[Any]) -> Results:
    """What follows from decision values of shape (n_rows, n_vectors) in the given dtype."""
    values = found if dtype == np.float64 else nodes.call("Cast", found, to=DOUBLE)
    known = None
    if parts.probability is not None:
        are_labels = parts.answer["kind"] == "labels"
        known = probabilities(nodes, values, parts.probability, len(parts.classes), are_labels=are_labels)
    return Results(values, known, class_ids(nodes, values, known, parts.answer))


def graph_of(parts: ModelParts, input: str, dtype: np.dtype[Any]) -> Graph:
    """The graph of a model, with inputs and outputs as :func:`hinge.to_onnx` has them.

    Parameters
    ----------
    parts : ModelParts
    input : {"dense", "sparse", "sparse_row"}
    dtype : dtype
        float64 or float32.

    Raises
    ------
    ValueError
        As :func:`hinge.to_onnx`.
    """
    nodes = Nodes()
    inputs = _inputs(parts, input, dtype)
    found = scores(nodes, parts, {value.name: value.name for value in inputs}, dtype)
    then = results(nodes, parts, found, dtype)
    n_rows = 1 if input == "sparse_row" else "n_rows"
    outputs = [
        _label(nodes, parts, then.ids, n_rows),
        _numbers(nodes, "decision", found, dtype, (n_rows, len(parts.intercept))),
    ]
    if then.probabilities is not None:
        known = then.probabilities if dtype == np.float64 else nodes.call("Cast", then.probabilities, to=FLOAT)
        outputs.append(_numbers(nodes, "probabilities", known, dtype, (n_rows, len(parts.classes))))
    return Graph(str(parts.record.get("estimator") or "model"), nodes, inputs, outputs)


def _inputs(parts: ModelParts, input: str, dtype: np.dtype[Any]) -> list[Value]:
    if input == "dense":
        return [Value("X", dtype, ("n_rows", parts.n_features))]
    integers = np.dtype(np.int64)
    row = [Value("indices", integers, ("n_entries",)), Value("values", dtype, ("n_entries",))]
    return row if input == "sparse_row" else [Value("indptr", integers, ("n_bounds",)), *row]


def _label(nodes: Nodes, parts: ModelParts, ids: str, n_rows: int | str) -> Value:
    if parts.answer["kind"] == "labels":
        nodes.call("Identity", ids, output="label")
        return Value("label", np.dtype(np.int64), (n_rows, len(parts.classes)))
    classes = class_array(parts.classes)
    nodes.call("Gather", nodes.constant("classes", classes), ids, output="label", axis=0)
    return Value("label", classes.dtype, (n_rows,))


def _numbers(nodes: Nodes, name: str, found: str, dtype: np.dtype[Any], shape: tuple[int | str, int]) -> Value:
    """An output of the shape that NumPy users know: a single column is a vector."""
    if shape[1] > 1:
        nodes.call("Identity", found, output=name)
        return Value(name, dtype, shape)
    nodes.call("Reshape", found, nodes.integers(-1), output=name)
    return Value(name, dtype, shape[:1])
