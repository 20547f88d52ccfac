"""Exact linear classification of large sparse data, with certified optimality and a chosen ``C``.

To import the package loads the extension and nothing else; a name brings its module at its first use.
"""

import contextlib as _contextlib
import signal as _signal
import threading as _threading
import typing as _typing
import warnings as _warnings
from importlib import import_module as _import_module

from hinge._native import DEBUG_BUILD as _DEBUG_BUILD
from hinge._native import BlockFileError, ModelFileError, __version__

if _typing.TYPE_CHECKING:
    from hinge._block_options import BlockOptions
    from hinge._certificate import Certificate
    from hinge._cost_file import CostPathFile
    from hinge._cost_grid import CostGrid
    from hinge._cost_ray import CostRay
    from hinge._cost_selection import CostSelection, select_costs
    from hinge._cost_surface import ScoreSurface
    from hinge._csearch import CSearch, NoSkillWarning, PartialSearchWarning
    from hinge._encode_coder import EncodedStream
    from hinge._onnx_model import to_onnx
    from hinge._presolve import Presolve
    from hinge._versioned import InconsistentVersionWarning
    from hinge.blocks import Block, BlockStore
    from hinge.calibration import Calibration, calibrate
    from hinge.encoding import TableEncoder
    from hinge.liblinear import load_liblinear
    from hinge.logistic import LogisticRegression, LogisticRegressionCV
    from hinge.path import CostPath, PartialPathWarning, RegionLimitError, cost_path, estimate_regions
    from hinge.poly2 import PairUsage, Poly2Map
    from hinge.prediction import iter_predictions
    from hinge.select import select_C
    from hinge.serving import Predictor, load, save
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
    "EncodedStream",
    "InconsistentVersionWarning",
    "LinearSVC",
    "LinearSVCCV",
    "LogisticRegression",
    "LogisticRegressionCV",
    "ModelFileError",
    "NoSkillWarning",
    "PairUsage",
    "PartialPathWarning",
    "PartialSearchWarning",
    "PegasosClassifier",
    "Poly2Map",
    "Predictor",
    "Presolve",
    "RegionLimitError",
    "ScoreSurface",
    "SubgradientSVC",
    "TableEncoder",
    "__version__",
    "calibrate",
    "cost_path",
    "estimate_regions",
    "iter_predictions",
    "load",
    "load_liblinear",
    "load_svmlight",
    "save",
    "select_C",
    "select_costs",
    "to_onnx",
]

# The module of each name that is loaded at its first use: what the imports above say to type checkers and editors.
_MODULES = {
    "Block": "blocks",
    "BlockOptions": "_block_options",
    "BlockStore": "blocks",
    "CSearch": "_csearch",
    "Calibration": "calibration",
    "Certificate": "_certificate",
    "CostGrid": "_cost_grid",
    "CostPath": "path",
    "CostPathFile": "_cost_file",
    "CostRay": "_cost_ray",
    "CostSelection": "_cost_selection",
    "EncodedStream": "_encode_coder",
    "InconsistentVersionWarning": "_versioned",
    "LinearSVC": "svm",
    "LinearSVCCV": "svm",
    "LogisticRegression": "logistic",
    "LogisticRegressionCV": "logistic",
    "NoSkillWarning": "_csearch",
    "PairUsage": "poly2",
    "PartialPathWarning": "path",
    "PartialSearchWarning": "_csearch",
    "PegasosClassifier": "subgradient",
    "Poly2Map": "poly2",
    "Predictor": "serving",
    "Presolve": "_presolve",
    "RegionLimitError": "path",
    "ScoreSurface": "_cost_surface",
    "SubgradientSVC": "subgradient",
    "TableEncoder": "encoding",
    "calibrate": "calibration",
    "cost_path": "path",
    "estimate_regions": "path",
    "iter_predictions": "prediction",
    "load": "serving",
    "load_liblinear": "liblinear",
    "load_svmlight": "svmlight",
    "save": "serving",
    "select_C": "select",
    "select_costs": "_cost_selection",
    "to_onnx": "_onnx_model",
}

# Modules of scikit-learn import each other in circles, which fails where threads enter at different places. So names
# are loaded one at a time, and no module of the package may ask the package for one.
_loading = _threading.RLock()


@_contextlib.contextmanager
def _whole():
    """One load at a time, and to its end: Ctrl-C in the middle would leave half of SciPy, for good."""
    with _loading:
        is_main = _threading.current_thread() is _threading.main_thread()
        if not is_main or _signal.getsignal(_signal.SIGINT) is not _signal.default_int_handler:
            yield
            return
        interrupts = []
        _signal.signal(_signal.SIGINT, lambda number, frame: interrupts.append(number))
        try:
            yield
        finally:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        if interrupts:
            raise KeyboardInterrupt


if not _typing.TYPE_CHECKING:  # a type checker that saw __getattr__ would believe in every name

    def __getattr__(name):
        """A name of the package from its module, or a public module; loaded now."""
        if name in _MODULES:
            with _whole():
                value = getattr(_import_module(f"{__name__}.{_MODULES[name]}"), name)
            globals()[name] = value
            return value
        if name in _MODULES.values() and not name.startswith("_"):
            with _whole():
                return _import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        """The names of the package, whether loaded or not."""
        return sorted({*globals(), *__all__})


if _DEBUG_BUILD:
    _warnings.warn("hinge was built without optimisation and is very slow", RuntimeWarning, stacklevel=2)
