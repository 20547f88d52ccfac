"""The converter that skl2onnx calls for our estimators, alone or at the end of a pipeline.

Ours are registered with a converter, a parser and a calculator of shapes of their own: those that skl2onnx has for
linear classifiers ask which class of scikit-learn's an estimator is, and give ours probabilities that are off by 0.15
(two classes) to 0.31 (three).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx import update_registered_converter
from skl2onnx._parse import _parse_sklearn_classifier
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from skl2onnx.common.utils import check_input_and_output_numbers, check_input_and_output_types
from sklearn.feature_extraction.text import TfidfVectorizer

from hinge._linear import LinearClassifier
from hinge._onnx_answer import class_array
from hinge._onnx_graph import Results, results
from hinge._onnx_nodes import DOUBLE, FLOAT, LEAST_OPSET, Nodes
from hinge._onnx_scores import scores
from hinge._parts import ModelParts
from hinge._taken_apart import parts_of

_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
    "raw_scores": [True, False],
    "double": [True, False],
}


def register(kind: type[LinearClassifier]) -> None:
    """Let skl2onnx convert estimators of this class; one derived from ours has to be registered by itself.

    Parameters
    ----------
    kind : type
        A classifier of ours, or derived from one.

    Raises
    ------
    TypeError
        It is neither.

    Examples
    --------
    >>> import hinge, hinge.onnx
    >>> class OwnSVC(hinge.LinearSVC):
    ...     pass
    >>> hinge.onnx.register(OwnSVC)
    """
    if not (isinstance(kind, type) and issubclass(kind, LinearClassifier)):
        raise TypeError(f"kind must be a class of classifiers of hinge or one derived from it, got {kind!r}")
    alias = f"Hinge{kind.__name__}"
    update_registered_converter(kind, alias, _set_shapes, _convert, parser=_parse, options=_OPTIONS)


def _options(holder: Any, model: Any) -> dict[str, Any]:
    """Options of a model, from the scope or the container."""
    defaults = {"zipmap": True, "nocl": False, "output_class_labels": False, "raw_scores": False, "double": False}
    return holder.get_options(model, defaults)


def _cast(scope: Any, variable: Any, kind: Any) -> Any:
    """The variable in another type."""
    operator = scope.declare_local_operator("SklearnCast")
    operator.inputs = [variable]
    operator.outputs.append(scope.declare_local_variable("cast", kind))
    return operator.outputs[0]


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """As skl2onnx parses classifiers; in double precision if that was asked for."""
    options = _options(scope, model)
    if options["double"] and not isinstance(inputs[0].type, DoubleTensorType):
        inputs = [_cast(scope, inputs[0], DoubleTensorType(inputs[0].type.shape))]
    outputs = _parse_sklearn_classifier(scope, model, inputs, custom_parsers)
    for operator in scope.operators.values():
        if operator.raw_operator is model:
            operator.feeds_zipmap = options["zipmap"] is True
    return outputs


def parse_tfidf_in_double(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """A TfidfVectorizer as its two steps, with counts turned into doubles between them."""
    n_words = max(model.vocabulary_.values()) + 1
    counts = scope.declare_local_operator("SklearnCountVectorizer", model)
    counts.inputs = inputs
    counts.outputs.append(scope.declare_local_variable("counts", FloatTensorType([None, n_words])))
    weighted = scope.declare_local_operator("SklearnTfidfTransformer", model)
    weighted.inputs.append(_cast(scope, counts.outputs[0], DoubleTensorType([None, n_words])))
    weighted.outputs.append(scope.declare_local_variable("tfidf", DoubleTensorType([None, n_words])))
    return weighted.outputs


DOUBLE_PARSERS = {TfidfVectorizer: parse_tfidf_in_double}
"""For ``custom_parsers`` of skl2onnx: steps of scikit-learn's that it would compute in single precision."""


def _labels_of(model: Any, options: dict[str, Any]) -> np.ndarray:
    """Classes as skl2onnx has them: int64, or strings with the dtype object."""
    if options["nocl"]:
        return np.arange(len(model.classes_))
    classes = class_array(model.classes_)
    whole = classes if classes.dtype.kind == "O" else classes.astype(np.int64)
    if (whole != classes).any():
        raise ValueError(
            f"classes must be integers or strings for skl2onnx, {classes[whole != classes][0]} is neither: "
            "hinge.to_onnx takes any number"
        )
    dtype = model.classes_.dtype
    if options["output_class_labels"] and dtype.kind not in "OU" and dtype not in (np.int32, np.int64):
        raise ValueError(
            "output_class_labels must be False for classes that are neither int32, int64 nor strings, their dtype is "
            f"{dtype}: skl2onnx cannot write them"
        )
    return whole


def _set_shapes(operator: Any) -> None:
    """Types and shapes of a classifier's outputs: labels, and a column per class."""
    check_input_and_output_numbers(operator, input_count_range=1, output_count_range=2)
    known = [BooleanTensorType, DoubleTensorType, FloatTensorType, Int64TensorType]
    check_input_and_output_types(operator, good_input_types=known)
    model = operator.raw_operator
    options = _options(operator.scope_inst, model)
    labels, n_rows = _labels_of(model, options), operator.inputs[0].get_first_dimension()
    if hasattr(model, "multilabel_"):
        operator.outputs[0].set_type(Int64TensorType([n_rows, len(labels)]))
    else:
        kind = StringTensorType if labels.dtype.kind == "O" else Int64TensorType
        operator.outputs[0].set_type(kind([n_rows]))
    # The operator ZipMap takes single precision only.
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType) and not getattr(operator, "feeds_zipmap", False)
    kind = DoubleTensorType if is_double else FloatTensorType
    operator.outputs[1].set_type(kind([n_rows, len(labels)]))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a fitted classifier to a graph of skl2onnx's."""
    model = operator.raw_operator
    options, parts = _options(container, model), parts_of(model)
    if container.target_opset < LEAST_OPSET:
        raise ValueError(f"target_opset must be at least {LEAST_OPSET}, got {container.target_opset}")
    nodes = Nodes(scope.get_unique_variable_name)
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
    rows, dtype = operator.inputs[0].full_name, np.dtype(np.float64 if is_double else np.float32)
    if not isinstance(operator.inputs[0].type, (DoubleTensorType, FloatTensorType)):
        rows = nodes.call("Cast", rows, to=FLOAT)
    found = results(nodes, parts, scores(nodes, parts, {"X": rows}, dtype), dtype)
    _put_label(nodes, parts, found.ids, _labels_of(model, options), operator.outputs[0].full_name)
    to = DOUBLE if isinstance(operator.outputs[1].type, DoubleTensorType) else FLOAT
    columns = _columns(nodes, parts, found, is_raw=options["raw_scores"])
    nodes.call("Cast", columns, output=operator.outputs[1].full_name, to=to)
    _add(nodes, container)


def _columns(nodes: Nodes, parts: ModelParts, found: Results, *, is_raw: bool) -> str:
    """Probabilities of all classes; their decision values if these are asked for or all there is."""
    if found.probabilities is not None and not is_raw:
        return found.probabilities
    if len(parts.intercept) > 1 or parts.answer["kind"] == "labels":
        return found.values
    return nodes.call("Concat", nodes.call("Neg", found.values), found.values, axis=1)


def _put_label(nodes: Nodes, parts: ModelParts, ids: str, labels: np.ndarray, output: str) -> None:
    if parts.answer["kind"] == "labels":
        nodes.call("Identity", ids, output=output)
    else:
        nodes.call("Gather", nodes.constant("classes", labels), ids, output=output, axis=0)


def _add(nodes: Nodes, container: Any) -> None:
    """Copy calls and constants into a container of skl2onnx's."""
    from onnx import numpy_helper

    for name, array in nodes.constants.items():
        message = numpy_helper.from_array(array, name)
        if array.dtype.kind == "O":  # it copies numbers only
            container.add_initializer(name, message.data_type, array.shape, list(message.string_data))
        else:
            container.add_initializer(name, message.data_type, array.shape, message)
    for call in nodes.calls:
        container.add_node(call.operator, call.inputs, call.outputs, **call.attributes)
