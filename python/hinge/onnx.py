"""Models for ONNX Runtime and other readers of ONNX; needs ``pip install "hinge[onnx]"``.

:func:`to_onnx` converts a fitted estimator or a predictor, for dense or sparse rows. Importing this module also
registers all estimators with ``skl2onnx``, whose ``convert_sklearn`` and ``to_onnx`` then take pipelines that end in
one. Their second output has a column per class: probabilities, or decision values with ``raw_scores`` and where the
model has no probabilities; for two classes these are ``-s`` and ``s``. Of the options, ``zipmap``, ``nocl``,
``output_class_labels`` and ``raw_scores`` mean what they do elsewhere, and ``double`` computes in double precision
behind a step that gives single precision. ``custom_parsers=DOUBLE_PARSERS`` does the same for the weights of a
``TfidfVectorizer``.

Examples
--------
>>> import hinge, hinge.onnx, onnxruntime, skl2onnx
>>> import numpy as np
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import OneHotEncoder
>>> X, y = np.array([["red", "big"], ["blue", "big"], ["red", "small"], ["blue", "small"]]), [1, 0, 1, 0]
>>> model = make_pipeline(OneHotEncoder(), hinge.LogisticRegression()).fit(X, y)
>>> options = {hinge.LogisticRegression: {"zipmap": False, "double": True}}
>>> kinds = [("X", skl2onnx.common.data_types.StringTensorType([None, 2]))]
>>> graph = skl2onnx.convert_sklearn(model, initial_types=kinds, options=options)
>>> session = onnxruntime.InferenceSession(graph.SerializeToString())
>>> label, probabilities = session.run(None, {"X": X.astype(object)})
>>> label.tolist(), bool(abs(probabilities - model.predict_proba(X)).max() < 1e-12)
([1, 0, 1, 0], True)
"""

from __future__ import annotations

from hinge._onnx_converter import DOUBLE_PARSERS, register
from hinge._onnx_model import to_onnx
from hinge.logistic import LogisticRegression, LogisticRegressionCV
from hinge.subgradient import PegasosClassifier, SubgradientSVC
from hinge.svm import LinearSVC, LinearSVCCV

__all__ = ["DOUBLE_PARSERS", "register", "to_onnx"]

for _kind in (LinearSVC, LinearSVCCV, LogisticRegression, LogisticRegressionCV, PegasosClassifier, SubgradientSVC):
    register(_kind)
