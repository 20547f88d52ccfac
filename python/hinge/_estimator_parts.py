"""Estimators from :class:`ModelParts`: the only place that knows both. The way there is :mod:`hinge._taken_apart`."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge import _plain
from hinge._block_options import BlockOptions
from hinge._certificate import Certificate
from hinge._csearch import CSearch
from hinge._encode_coder import Coder
from hinge._linear import LinearClassifier
from hinge._native import ModelFileError
from hinge._parts import ModelParts
from hinge._presolve import Presolve
from hinge._taken_apart import parts_of
from hinge._warn import warn
from hinge.calibration import Calibration
from hinge.encoding import TableEncoder
from hinge.logistic import LogisticRegression, LogisticRegressionCV
from hinge.subgradient import PegasosClassifier, SubgradientSVC
from hinge.svm import LinearSVC, LinearSVCCV

__all__ = ["estimator_of", "model_of", "parts_of"]

_ESTIMATORS: dict[str, type[LinearClassifier]] = {
    kind.__name__: kind
    for kind in (
        LinearSVC,
        LinearSVCCV,
        LogisticRegression,
        LogisticRegressionCV,
        PegasosClassifier,
        SubgradientSVC,
    )
}

_CLASSES: dict[str, type] = {kind.__name__: kind for kind in (BlockOptions, Certificate, CSearch, Presolve)}


def estimator_of(parts: ModelParts) -> Any:
    """A fitted estimator that predicts what the parts do, to the bit.

    Parameters
    ----------
    parts : ModelParts

    Returns
    -------
    LinearClassifier
        Of the class that was fitted.

    Raises
    ------
    ValueError
        No estimator is known that the parts could be of.

    Warns
    -----
    UserWarning
        A parameter was an object that no file can hold; it has its default.
    """
    kind = _ESTIMATORS.get(parts.record["estimator"])
    if kind is None:
        raise ValueError(f"{parts.record['estimator']!r} is no estimator of hinge, known are {sorted(_ESTIMATORS)}")
    model = kind(**_parameters(kind, parts.record))
    for name, value in _plain.decode_all(parts.record["fitted"], _CLASSES, "fitted").items():
        if not name.endswith("_") or name.startswith("_") or hasattr(kind, name):
            raise ModelFileError(f"fitted[{name!r}]: no attribute of a fitted {kind.__name__} has such a name")
        if not isinstance(value, _plain.Unknown):
            setattr(model, name, value)
    model.coef_ = _coef(parts)
    model.intercept_ = parts.intercept
    model.classes_ = parts.classes
    model.n_features_in_ = parts.n_features
    model._map = parts.pairs
    model._data = parts.record["data"] or None
    if parts.feature_names is not None:
        model.feature_names_in_ = np.array(parts.feature_names, dtype=object)
    if parts.answer["kind"] == "threshold":
        model.threshold_ = parts.answer["threshold"]
    if parts.probability is not None and not isinstance(model, LogisticRegression):
        model.calibration_ = Calibration.of_part(model.classes_, parts.probability)
    return model


def model_of(parts: ModelParts) -> Any:
    """The estimator, behind its encoder in a pipeline if there is one."""
    estimator = estimator_of(parts)
    if parts.encoder is None:
        return estimator
    from sklearn.pipeline import make_pipeline  # brings much that nothing else here needs

    return make_pipeline(TableEncoder._of_coder(Coder.of_record(parts.encoder)), estimator)


def _coef(parts: ModelParts) -> Any:
    if not isinstance(parts.coef, tuple):
        return parts.coef
    indptr, indices, values = parts.coef
    return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, parts.n_features))


def _parameters(kind: type[LinearClassifier], record: dict[str, Any]) -> dict[str, Any]:
    """Parameters that the constructor knows, as they were."""
    known = inspect.signature(kind).parameters
    encoded = {"multi_class": "ovr", **record["parameters"]}  # what a file says that is older than the parameter
    said = record["metadata"].get("liblinear")
    if isinstance(said, dict) and str(said.get("solver_type")).startswith("L1R_"):
        encoded = {"penalty": "l1", **encoded}
    encoded = {name: value for name, value in encoded.items() if name in known}
    given = _plain.decode_all(encoded, _CLASSES, "parameters")
    for name, value in list(given.items()):
        if isinstance(value, _plain.Unknown):
            warn(f"the parameter {name} was {value.text}, which no file can hold: it has its default now", UserWarning)
            del given[name]
    return given
