"""Graphs as messages of ONNX: the only file that needs the package ``onnx`` to write a model."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import helper, numpy_helper

from hinge._native import __version__
from hinge._onnx_graph import Graph
from hinge._onnx_nodes import OPSET, Body, Call, Value

_IR_VERSION = 8
"""Version of the file format: the one that came with the version of the operators."""


def model_proto(graph: Graph, properties: dict[str, str]) -> onnx.ModelProto:
    """The model of a graph, with these entries of ``metadata_props``."""
    constants = [numpy_helper.from_array(array, name) for name, array in graph.nodes.constants.items()]
    message = _graph(graph.name, graph.nodes.calls, graph.inputs, graph.outputs, constants)
    model = helper.make_model(
        message,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
        producer_name="hinge",
        producer_version=__version__,
    )
    helper.set_model_props(model, properties)
    return model


def attributes(call: Call) -> dict[str, Any]:
    """Attributes of a call; the body of a loop as a graph."""
    return {
        name: _graph("row", value.calls, value.inputs, value.outputs) if isinstance(value, Body) else value
        for name, value in call.attributes.items()
    }


def _graph(
    name: str, calls: list[Call], inputs: list[Value], outputs: list[Value], constants: Any = ()
) -> onnx.GraphProto:
    nodes = [helper.make_node(call.operator, call.inputs, call.outputs, **attributes(call)) for call in calls]
    return helper.make_graph(
        nodes, name, [_value(value) for value in inputs], [_value(value) for value in outputs], initializer=constants
    )


def _value(value: Value) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(value.name, kind, value.shape)
