"""Values of parameters and fitted attributes as plain JSON, typed so that they come back as they were."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge._native import ModelFileError

_TAG = "$"
"""Keys that begin with it name types; a dict of the user's that has such a key is written as a list of pairs."""

_KINDS = "biufU"
"""Arrays that are written: truth values, numbers and strings. Others are objects of Python's."""


_MAX_TEXT = 1 << 10
"""Characters that a dtype of strings makes room for, at most, unless some string is as long: a dtype may name any."""


@dataclass(frozen=True)
class Unknown:
    """What could not be written: all that is left is what it looked like.

    Attributes
    ----------
    text : str
        Its ``repr``.
    """

    text: str


def encode(value: Any) -> Any:
    """The value as JSON has it: None, truth values, numbers, strings, lists and dicts, all others tagged by type."""
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        return value if abs(value) < 1 << 53 else {"$int": str(value)}
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if type(value) is list:
        return [encode(item) for item in value]
    if type(value) is tuple:
        return {"$tuple": [encode(item) for item in value]}
    if type(value) is dict:
        return _encode_dict(value)
    if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
        return {"$scalar": value.dtype.str, "value": encode(value.item())}
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        listed = [encode(item) for item in value.ravel().tolist()]
        return {"$array": value.dtype.str, "shape": list(value.shape), "values": listed}
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.names:
        return {"$table": [[name, encode(value[name])] for name in value.dtype.names]}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return {"$objects": list(value.shape), "values": [encode(item) for item in value.ravel().tolist()]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"$class": type(value).__name__, "fields": fields}
    return {"$repr": repr(value)}


def _encode_dict(value: dict[Any, Any]) -> Any:
    if all(type(key) is str and not key.startswith(_TAG) for key in value):
        return {key: encode(item) for key, item in value.items()}
    return {"$dict": [[encode(key), encode(item)] for key, item in value.items()]}


def decode(value: Any, classes: dict[str, type]) -> Any:
    """The opposite of :func:`encode`.

    Parameters
    ----------
    value : object
        JSON from :func:`encode`.
    classes : dict of str to type
        Data classes that may come back.

    Raises
    ------
    ValueError
        What :func:`encode` does not write.
    """
    if isinstance(value, list):
        return [decode(item, classes) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next((key for key in value if key.startswith(_TAG)), None)
    if tag is None:
        return {key: decode(item, classes) for key, item in value.items()}
    if tag == "$class":
        return _instance(value, classes)
    make = _MAKERS.get(tag)
    if make is None:
        raise ValueError(f"unknown type {tag[1:]!r}")
    return make(value, lambda item: decode(item, classes))


def decode_all(encoded: dict[str, Any], classes: dict[str, type], what: str) -> dict[str, Any]:
    """:func:`decode` of each value of a dict.

    Parameters
    ----------
    encoded : dict of str to object
    classes : dict of str to type
        As for :func:`decode`.
    what : str
        What the dict is called in messages.

    Raises
    ------
    ModelFileError
        Something that :func:`encode` does not write, with the key that has it.
    """
    found = {}
    for name, value in encoded.items():
        try:
            found[name] = decode(value, classes)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ModelFileError(f"{what}[{name!r}]: nothing that hinge writes ({error!r})") from error
    return found


def _instance(value: dict[str, Any], classes: dict[str, type]) -> Any:
    kind = classes.get(value["$class"])
    if kind is None:
        return Unknown(f"a {value['$class']}")
    known = {field.name for field in dataclasses.fields(kind)}
    fields = {name: decode(item, classes) for name, item in value["fields"].items() if name in known}
    return kind(**fields)


def _scalar(value: dict[str, Any], decoded: Callable[[Any], Any]) -> Any:
    return _dtype(value["$scalar"]).type(decoded(value["value"]))


def _array(value: dict[str, Any], decoded: Callable[[Any], Any]) -> np.ndarray:
    values = decoded(value["values"])
    return np.array(values, dtype=_fitting(_dtype(value["$array"]), values)).reshape(value["shape"])


def _table(value: dict[str, Any], decoded: Callable[[Any], Any]) -> np.ndarray:
    columns = {name: decoded(column) for name, column in value["$table"]}
    table = np.empty(len(next(iter(columns.values()))), [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column
    return table


def _objects(value: dict[str, Any], decoded: Callable[[Any], Any]) -> np.ndarray:
    made = np.empty(len(value["values"]), dtype=object)
    made[:] = decoded(value["values"])
    return made.reshape(value["$objects"])


def _dtype(name: str) -> np.dtype[Any]:
    dtype = np.dtype(name)
    if dtype.kind not in _KINDS:
        raise ValueError(f"unknown dtype {name!r}")
    return dtype


def _fitting(dtype: np.dtype[Any], values: list[Any]) -> np.dtype[Any]:
    """The dtype; one of strings that are far longer than all values is shortened."""
    if dtype.kind != "U" or dtype.itemsize <= 4 * _MAX_TEXT:
        return dtype
    return np.dtype(f"U{max(_MAX_TEXT, *(len(text) for text in values))}") if values else np.dtype("U1")


_LABELS = {bool: "bO", int: "iuO", float: "fO", str: "UO"}
"""Kinds of dtypes that labels of a type may have."""


def labels(values: list[Any], name: str) -> np.ndarray:
    """Labels in an array of the dtype that they had, by its name; without a name NumPy chooses.

    Raises
    ------
    ModelFileError
        A dtype that such labels never have.
    """
    if not name:
        return np.array(values)
    try:
        dtype = np.dtype(object) if name == "|O" else _fitting(_dtype(name), values)
        found = np.array(values, dtype=dtype)
        has_kind = all(dtype.kind in _LABELS[type(value)] for value in values[:1])
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"label_dtype: {name!r} is no type of labels ({error})") from error
    if not has_kind or found.tolist() != values:
        raise ModelFileError(f"label_dtype: {name!r} is not the type of the labels, which are {values[:3]}, ...")
    return found


_MAKERS: dict[str, Callable[[dict[str, Any], Callable[[Any], Any]], Any]] = {
    "$int": lambda value, decoded: int(value["$int"]),
    "$float": lambda value, decoded: float(value["$float"]),
    "$tuple": lambda value, decoded: tuple(decoded(value["$tuple"])),
    "$dict": lambda value, decoded: {decoded(key): decoded(item) for key, item in value["$dict"]},
    "$scalar": _scalar,
    "$array": _array,
    "$table": _table,
    "$objects": _objects,
    "$repr": lambda value, decoded: Unknown(value["$repr"]),
}
