"""Models in files, which ``src/model/file/`` writes and reads; the format is in ``docs/model-files.md``.

Nothing here needs scikit-learn or SciPy until :func:`save` is given an estimator.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

from hinge import _checks, _native
from hinge._parts import ModelParts

_STORAGE = {"auto": None, True: True, False: False}
_MAX_DEPTH = 100
"""Deepest nesting of metadata, that of the file."""


def save(
    parts: ModelParts,
    path: str | os.PathLike[str],
    *,
    dtype: Any = None,
    sparse: str | bool = "auto",
    metadata: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write the parts of a model; the parameters are those of :meth:`hinge.LinearSVC.save`."""
    options = checked_options(dtype, sparse, overwrite)
    if metadata is not None:
        parts = replace(parts, record=parts.record | {"metadata": checked_metadata(metadata)})
    _native.save_parts(parts.native(), os.fspath(path), *options)


def checked_options(dtype: Any, sparse: Any, overwrite: Any) -> tuple[str | None, bool | None, bool]:
    """Precision, storage and permission as the native module takes them."""
    name = None if dtype is None else _dtype_name(dtype)
    if not isinstance(sparse, (bool, str)) or sparse not in _STORAGE:
        raise ValueError(f'sparse must be "auto", True or False, got {sparse!r}')
    return name, _STORAGE[sparse], _checks.truth("overwrite", overwrite)


def _dtype_name(dtype: Any) -> str:
    import numpy as np

    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in ("float32", "float64"):
        raise ValueError(f'dtype must be None, "float32" or "float64", got {dtype!r}')
    return name


def checked_metadata(metadata: Any) -> dict[str, Any]:
    """Metadata of the user's, if JSON can hold them and gives them back."""
    if not isinstance(metadata, dict):
        raise TypeError(f"metadata must be a dict or None, got {type(metadata).__name__}")
    return _json(metadata, "metadata", 0)


def _json(value: Any, where: str, depth: int) -> Any:
    """The value, tuples as lists; anything else that JSON cannot hold is an error that says where it is."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"metadata may have at most {_MAX_DEPTH} lists and dicts inside of each other")
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                raise TypeError(f"{where} has the key {key!r}: keys of metadata must be strings")
        keys = {key: _text(key, f"a key of {where}") for key in value}
        return {keys[key]: _json(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(item, f"{where}[{k}]", depth + 1) for k, item in enumerate(value)]
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return _text(value, where)
    if type(value) is int:
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError(f"{where} is {value}: metadata hold whole numbers of 64 bits, write it as a string")
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value}: metadata hold finite numbers, write it as a string or None")
        return value
    raise TypeError(
        f"{where} is a {type(value).__name__}: metadata hold what JSON has, that is dicts, lists, strings, numbers, "
        "True, False and None"
    )


def _text(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where} is {value!r}, which UTF-8 cannot hold") from None
    return value
