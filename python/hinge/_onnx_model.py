"""A fitted model as a graph of ONNX."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from hinge import _checks, _plain
from hinge._certificate import Certificate
from hinge._onnx_graph import INPUTS, graph_of
from hinge._parts import ModelParts

if TYPE_CHECKING:
    import onnx

DTYPES = ("float64", "float32")


def to_onnx(
    model: Any, *, input: str = "dense", dtype: str = "float64", metadata: dict[str, str] | None = None
) -> onnx.ModelProto:
    """A fitted model as an ONNX model, for ONNX Runtime and whatever else reads ONNX.

    Decision values are computed in ``dtype``, and all that follows from them in double precision. In "float64" results
    differ from those of the model by rounding only, which is at most 1e-12 for data of ordinary scale. In "float32" a
    decision value is off by at most ``(k + 4) * 2**-24`` times the sum of the sizes of its terms ``w_j x_j`` and
    ``b``, for rows of ``k`` entries, and a probability of two classes or a label by a quarter of that, or by as much as
    its line of "isotonic" is steep.

    Inputs, by ``input``:

    - "dense": ``X`` of shape (n_rows, n_features).
    - "sparse": a CSR matrix: ``indptr`` of shape (n_rows + 1,), int64, ``indices`` of shape (n_entries,), int64, and
      ``values`` of shape (n_entries,). A loop over the rows: memory does not grow with the features.
    - "sparse_row": one row: ``indices`` and ``values`` of shape (n_entries,).

    Outputs, with shapes and values as those of the methods of the estimator:

    - ``label``, as from ``predict``: int64, float64, bool or string; for a matrix of labels a matrix of 0 and 1, int64.
    - ``decision``, as from ``decision_function``, in ``dtype``.
    - ``probabilities``, as from ``predict_proba``, where there are any, in ``dtype``.

    The graph checks nothing: a NaN goes through, a column below 0 counts from the end, one beyond the last is an error
    of the runtime.

    Parameters
    ----------
    model : LinearClassifier or Predictor
        Fitted. A scikit-learn pipeline is converted by ``skl2onnx``, see :mod:`hinge.onnx`.
    input : {"dense", "sparse", "sparse_row"}, default="dense"
        A model of degree 2 takes dense rows only, and all its pairs of features are written out.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the rows, the weights and the results.
    metadata : dict of str to str, default=None
        Entries of ``metadata_props`` beside ours: ``estimator``, ``version``, ``certificate`` (status and largest
        relative duality gap), ``classes``, ``feature_names``, ``parameters`` and ``metadata``, each JSON and as far as
        it is known.

    Returns
    -------
    onnx.ModelProto
        Of operator set 18, without operators of ONNX Runtime's own.

    Raises
    ------
    ValueError
        A parameter that is none of the above, sparse rows of degree 2, a model of 2 GB or more, weights beyond float32.
    TypeError
        The model is no classifier of ours.
    ImportError
        The package ``onnx`` is not installed.
    sklearn.exceptions.NotFittedError
        The model is not fitted.

    Examples
    --------
    >>> import hinge, onnxruntime
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, random_state=0)
    >>> model = hinge.LogisticRegression().fit(X, y)
    >>> graph = hinge.to_onnx(model)
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())
    >>> label, probabilities = session.run(["label", "probabilities"], {"X": X})
    >>> bool((label == model.predict(X)).all()), bool(abs(probabilities - model.predict_proba(X)).max() < 1e-12)
    (True, True)
    """
    _checks.choice("input", input, INPUTS)
    _checks.choice("dtype", dtype, DTYPES)
    try:
        from hinge._onnx_proto import model_proto
    except ModuleNotFoundError as error:
        raise ImportError("to_onnx needs the package onnx: pip install 'hinge[onnx]'") from error
    parts = _parts(model)
    return model_proto(graph_of(parts, input, np.dtype(dtype)), _properties(parts) | (metadata or {}))


def _parts(model: Any) -> ModelParts:
    """The parts of an estimator or a predictor."""
    if isinstance(model, ModelParts):
        if model.encoder is not None:
            raise ValueError(
                "the model takes rows of a table, and its encoder cannot be written as ONNX: convert the classifier "
                "alone, to_estimator()[-1], and encode in front of it"
            )
        return model
    from hinge.serving import Predictor

    if isinstance(model, Predictor):
        return _parts(model._parts())
    from hinge._linear import LinearClassifier  # brings scikit-learn with it, which predictors do without
    from hinge._taken_apart import parts_of

    if isinstance(model, LinearClassifier):
        return parts_of(model)
    raise TypeError(
        f"model must be a fitted classifier or a predictor of hinge, got {type(model).__name__}; a pipeline that ends "
        "in one is converted by skl2onnx.convert_sklearn after import hinge.onnx"
    )


def _properties(parts: ModelParts) -> dict[str, str]:
    """What is known of the model, each as JSON."""
    record, names = parts.record, parts.feature_names
    known = {
        "estimator": record.get("estimator"),
        "version": record.get("version"),
        "certificate": _certificate(record.get("fitted", {}).get("certificate_")),
        "classes": parts.classes.tolist(),
        "feature_names": None if names is None else [str(name) for name in names],
        "parameters": record.get("parameters"),
        "metadata": record.get("metadata"),
    }
    return {name: json.dumps(value) for name, value in known.items() if value}


def _certificate(encoded: Any) -> dict[str, Any] | None:
    """Status and largest gap of a certificate; a gap that is infinite, for nothing is proved, is null."""
    certificate = _plain.decode(encoded, {"Certificate": Certificate})
    if not isinstance(certificate, Certificate):
        return None
    gap = float(np.max(certificate.relative_gap))
    return {"status": sorted(set(certificate.status)), "relative_gap": gap if np.isfinite(gap) else None}
