"""Model files of all formats, told apart by their first bytes."""

from __future__ import annotations

import os
from typing import Any

_KEYS = (b"solver_type", b"nr_class", b"label", b"nr_feature", b"bias", b"rho")


def kind_of(path: str) -> str:
    """The format of a model file: "liblinear" or "hinge".

    Raises
    ------
    ValueError
        Neither.
    OSError
        The file cannot be read.
    """
    with open(path, "rb") as file:
        head = file.read(64)
    if head.split(None, 1)[:1] and head.split(None, 1)[0] in _KEYS:
        return "liblinear"
    if head[8:9] == b"{":  # behind the length of a head in JSON
        return "hinge"
    raise ValueError(f"{path}: no model file; expected one of LIBLINEAR, or one that hinge saved")


def load(path: str, *, keeps_order: bool = False) -> Any:
    """The predictor of a model file.

    Parameters
    ----------
    path : str
    keeps_order : bool, default=False
        Whether classes of LIBLINEAR's files come in the order of the file, so that every answer is LIBLINEAR's.
    """
    if kind_of(path) == "liblinear":
        from hinge.liblinear import load_in_order, load_liblinear

        return load_in_order(path) if keeps_order else load_liblinear(path)
    from hinge.serving import load as load_saved

    return load_saved(path)


def format_of(path: str) -> str:
    """The format that the name of a model to be written says: by its end, LIBLINEAR's for any other."""
    return {".hinge": "hinge", ".onnx": "onnx"}.get(os.path.splitext(path)[1], "liblinear")


def save(
    model: Any,
    path: str,
    format: str,
    *,
    solver: str | None = None,
    labels: list[int] | None = None,
    overwrite: bool = False,
) -> None:
    """Write an estimator or a predictor: a whole file or none.

    Parameters
    ----------
    model : estimator or Predictor
    path : str
    format : {"liblinear", "hinge", "onnx"}
    solver : str, default=None
        For LIBLINEAR: the solver type that the file names.
    labels : list of int, default=None
        For LIBLINEAR: the order of the labels.
    overwrite : bool, default=False
        Whether a file of another kind is replaced.
    """
    if format == "liblinear":
        model.save_liblinear(path, solver_type=solver, labels=labels, overwrite=overwrite)
    elif format == "hinge":
        model.save(path, overwrite=overwrite)
    else:
        _save_onnx(model, path, overwrite)


def _save_onnx(model: Any, path: str, overwrite: bool) -> None:
    from hinge._durable import drafted

    try:
        from hinge._onnx_model import to_onnx
    except ImportError as error:
        raise ValueError(f'ONNX needs more packages: pip install "hinge[onnx]" ({error})') from error
    graph = to_onnx(model).SerializeToString()
    with drafted(path, "onnx", overwrite=overwrite) as file:
        file.write(graph)
