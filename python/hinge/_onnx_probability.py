"""Probabilities as ONNX nodes, from decision values of shape (n_rows, n_vectors) in double precision.

The formulas are those of :mod:`hinge._probability` and :mod:`hinge.calibration`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge._onnx_nodes import INT64, Nodes

_LEAST_LOGIT = -float(np.log(np.finfo(np.float64).max))
"""Below, the logistic function in doubles is 0: its denominator overflows."""


def probabilities(nodes: Nodes, values: str, probability: dict[str, Any], n_columns: int, *, are_labels: bool) -> str:
    """Probabilities of shape (n_rows, n_columns).

    Parameters
    ----------
    nodes : Nodes
    values : str
        Decision values, of one column for two classes.
    probability : dict
        As in :class:`hinge._parts.ModelParts`.
    n_columns : int
        Classes or labels.
    are_labels : bool
        Whether each probability stands by itself.
    """
    if are_labels:
        return _expit(nodes, values)
    kinds = {"logistic": _logistic, "sigmoid": _sigmoid, "isotonic": _isotonic, "temperature": _temperature}
    return kinds[probability["kind"]](nodes, values, probability, n_columns)


def _logistic(nodes: Nodes, values: str, probability: dict[str, Any], n_classes: int) -> str:
    """One-vs-rest probabilities divided by their sum, as a softmax of their logarithms: no row divides 0 by 0."""
    if n_classes == 2:
        return nodes.call("Concat", _expit(nodes, nodes.call("Neg", values)), _expit(nodes, values), axis=1)
    return nodes.call("Softmax", _log_expit(nodes, values), axis=1)


def _sigmoid(nodes: Nodes, values: str, probability: dict[str, Any], n_classes: int) -> str:
    slopes = nodes.constant("slopes", np.asarray(probability["slopes"], dtype=np.float64))
    offsets = nodes.constant("offsets", np.asarray(probability["offsets"], dtype=np.float64))
    logits = nodes.call("Neg", nodes.call("Add", nodes.call("Mul", values, slopes), offsets))
    found = _expit(nodes, logits)
    if n_classes == 2:
        return _with_complement(nodes, found)
    is_none = nodes.call("Less", logits, nodes.double(_LEAST_LOGIT))
    return _normalised(nodes, nodes.call("Where", is_none, nodes.double(0.0), found), n_classes)


def _isotonic(nodes: Nodes, values: str, probability: dict[str, Any], n_classes: int) -> str:
    found = _broken_lines(nodes, values, probability["lines"])
    return _with_complement(nodes, found) if n_classes == 2 else _normalised(nodes, found, n_classes)


def _temperature(nodes: Nodes, values: str, probability: dict[str, Any], n_classes: int) -> str:
    scaled = nodes.call("Mul", values, nodes.double(probability["factor"]))
    if n_classes == 2:
        return _with_complement(nodes, _expit(nodes, scaled))
    return nodes.call("Softmax", scaled, axis=1)


def _expit(nodes: Nodes, values: str) -> str:
    """The logistic function, with a small relative error everywhere."""
    shrunk = nodes.call("Exp", nodes.call("Neg", nodes.call("Abs", values)))
    one = nodes.double(1.0)
    upper = nodes.call("Div", one, nodes.call("Add", one, shrunk))
    is_upper = nodes.call("GreaterOrEqual", values, nodes.double(0.0))
    return nodes.call("Where", is_upper, upper, nodes.call("Mul", shrunk, upper))


def _log_expit(nodes: Nodes, values: str) -> str:
    shrunk = nodes.call("Exp", nodes.call("Neg", nodes.call("Abs", values)))
    rest = nodes.call("Log", nodes.call("Add", nodes.double(1.0), shrunk))
    return nodes.call("Sub", nodes.call("Min", values, nodes.double(0.0)), rest)


def _with_complement(nodes: Nodes, found: str) -> str:
    """Probabilities of both classes from those of the second."""
    return nodes.call("Concat", nodes.call("Sub", nodes.double(1.0), found), found, axis=1)


def _normalised(nodes: Nodes, found: str, n_classes: int) -> str:
    """Divided by their sum; all equal where that is 0."""
    total = nodes.call("ReduceSum", found, nodes.integers(1), keepdims=1)
    is_zero = nodes.call("Equal", total, nodes.double(0.0))
    divisor = nodes.call("Where", is_zero, nodes.double(1.0), total)
    return nodes.call("Where", is_zero, nodes.double(1.0 / n_classes), nodes.call("Div", found, divisor))


def _broken_lines(nodes: Nodes, values: str, lines: list[tuple[np.ndarray, np.ndarray]]) -> str:
    """A broken line for each column, level beyond its ends: the corner left of a value is found by bisection.

    The lines lie one behind the other, each filled up to ``2**n_rounds`` corners with some at infinity.
    """
    n_rounds = max(1, max(len(x) - 1 for x, _ in lines).bit_length())
    table = np.zeros((3, len(lines), 1 << n_rounds))
    table[0] = np.inf
    for part, (x, y) in zip(table.transpose(1, 0, 2), lines, strict=True):
        part[0, : len(x)], part[1, : len(y)] = x, y
        width, rise = np.diff(x), np.diff(y)
        with np.errstate(over="ignore"):
            np.divide(rise, width, out=part[2, : len(width)], where=width > 0)
    np.minimum(table[2], np.finfo(np.float64).max, out=table[2])  # infinity times the distance 0 would be NaN
    corners = [nodes.constant(name, part.ravel()) for name, part in zip(("x", "y", "slope"), table, strict=True)]
    ends = np.array([(x[0], x[-1]) for x, _ in lines], dtype=np.float64).T
    clipped = nodes.call("Max", values, nodes.constant("first", ends[0]))
    clipped = nodes.call("Min", clipped, nodes.constant("last", ends[1]))
    at = _bisected(nodes, clipped, corners[0], n_rounds, len(lines))
    left, level, slope = (nodes.call("Gather", corner, at, axis=0) for corner in corners)
    return nodes.call("Add", nodes.call("Mul", slope, nodes.call("Sub", clipped, left)), level)


def _bisected(nodes: Nodes, values: str, corners: str, n_rounds: int, n_lines: int) -> str:
    """Places in the table of the last corners that are not above the values."""
    starts = np.arange(n_lines, dtype=np.int64) << n_rounds
    zeros = nodes.call("Cast", nodes.call("Mul", values, nodes.double(0.0)), to=INT64)
    at = nodes.call("Add", zeros, nodes.constant("starts", starts))
    for k in reversed(range(n_rounds)):
        ahead = nodes.call("Add", at, nodes.constant("step", np.int64(1 << k)))
        is_reached = nodes.call("GreaterOrEqual", values, nodes.call("Gather", corners, ahead, axis=0))
        at = nodes.call("Where", is_reached, ahead, at)
    return at
