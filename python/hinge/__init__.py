"""Exact linear classification of large sparse data, with certified optimality and a chosen ``C``."""

import warnings as _warnings

from hinge._block_options import BlockOptions
from hinge._certificate import Certificate
from hinge._cost_file import CostPathFile
from hinge._cost_grid import CostGrid
from hinge._cost_ray import CostRay
from hinge._cost_selection import CostSelection, select_costs
from hinge._cost_surface import ScoreSurface
from hinge._csearch import CSearch, NoSkillWarning, PartialSearchWarning
from hinge._native import DEBUG_BUILD as _DEBUG_BUILD
from hinge._native import BlockFileError, __version__
from hinge._onnx_model import to_onnx
from hinge._presolve import Presolve
from hinge._versioned import InconsistentVersionWarning
from hinge.blocks import Block, BlockStore
from hinge.calibration import Calibration, calibrate
from hinge.logistic import LogisticRegression, LogisticRegressionCV
from hinge.path import CostPath, PartialPathWarning, RegionLimitError, cost_path, estimate_regions
from hinge.poly2 import PairUsage, Poly2Map
from hinge.prediction import iter_predictions
from hinge.select import select_C
from hinge.subgradient import PegasosClassifier, SubgradientSVC
from hinge.svm import LinearSVC, LinearSVCCV
from hinge.svmlight import load_svmlight

__all__ = [
    "Block",
    "BlockFileError",
    "BlockOptions",
    "BlockStore",
    "CSearch",
    "Calibration",
    "Certificate",
    "CostGrid",
    "CostPath",
    "CostPathFile",
    "CostRay",
    "CostSelection",
    "InconsistentVersionWarning",
    "LinearSVC",
    "LinearSVCCV",
    "LogisticRegression",
    "LogisticRegressionCV",
    "NoSkillWarning",
    "PairUsage",
    "PartialPathWarning",
    "PartialSearchWarning",
    "PegasosClassifier",
    "Poly2Map",
    "Presolve",
    "RegionLimitError",
    "ScoreSurface",
    "SubgradientSVC",
    "__version__",
    "calibrate",
    "cost_path",
    "estimate_regions",
    "iter_predictions",
    "load_svmlight",
    "select_C",
    "select_costs",
    "to_onnx",
]

if _DEBUG_BUILD:
    _warnings.warn("hinge was built without optimisation and is very slow", RuntimeWarning, stacklevel=2)
