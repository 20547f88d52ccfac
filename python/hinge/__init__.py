"""Exact linear classification of large sparse data, with certified optimality and a chosen ``C``."""

import warnings as _warnings

from hinge._certificate import Certificate
from hinge._csearch import CSearch, PartialSearchWarning
from hinge._native import DEBUG_BUILD as _DEBUG_BUILD
from hinge._native import __version__
from hinge._presolve import Presolve
from hinge.calibration import Calibration, calibrate
from hinge.logistic import LogisticRegression, LogisticRegressionCV
from hinge.select import select_C
from hinge.svm import LinearSVC, LinearSVCCV
from hinge.svmlight import load_svmlight

__all__ = [
    "CSearch",
    "Calibration",
    "Certificate",
    "LinearSVC",
    "LinearSVCCV",
    "LogisticRegression",
    "LogisticRegressionCV",
    "PartialSearchWarning",
    "Presolve",
    "__version__",
    "calibrate",
    "load_svmlight",
    "select_C",
]

if _DEBUG_BUILD:
    _warnings.warn("hinge was built without optimisation and is very slow", RuntimeWarning, stacklevel=2)
