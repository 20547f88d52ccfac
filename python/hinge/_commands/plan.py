"""What ``hinge train`` and ``hinge search`` are asked for, in LIBLINEAR's words and in ours."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hinge import _native
from hinge._budget import budget
from hinge._commands.letters import Option, number, one_of, positive, whole
from hinge._commands.model_files import format_of
from hinge._encode_tables import is_table_file

_LEAST_GAP = 1e-9
"""Rounding leaves little below this to prove."""


@dataclass(frozen=True)
class SolverType:
    """A solver of LIBLINEAR for which there is a fit.

    Attributes
    ----------
    name : str
        In model files.
    loss : str
        "logistic", "squared_hinge" or "hinge".
    epsilon : float
        LIBLINEAR's default tolerance.
    gap : callable
        The relative duality gap for a tolerance: LIBLINEAR, which measures gradients (``-s 0``, ``2``, ``5``, ``6``) or
        violations in the dual, rarely comes nearer to the optimum, see docs/from-liblinear.md.
    multi_class : str
        "ovr" or "crammer_singer".
    penalty : str
        "l2" or "l1".
    """

    name: str
    loss: str
    epsilon: float
    gap: Callable[[float], float]
    multi_class: str = "ovr"
    penalty: str = "l2"


def _gap_of_gradient(epsilon: float) -> float:
    return epsilon**2 / 10


def _gap_of_smooth_dual(epsilon: float) -> float:
    return epsilon**2 / 1e4


def _gap_of_hinge_dual(epsilon: float) -> float:
    return epsilon / 1e3


SOLVERS = {
    0: SolverType("L2R_LR", "logistic", 0.01, _gap_of_gradient),
    1: SolverType("L2R_L2LOSS_SVC_DUAL", "squared_hinge", 0.1, _gap_of_smooth_dual),
    2: SolverType("L2R_L2LOSS_SVC", "squared_hinge", 0.01, _gap_of_gradient),
    3: SolverType("L2R_L1LOSS_SVC_DUAL", "hinge", 0.1, _gap_of_hinge_dual),
    4: SolverType("MCSVM_CS", "hinge", 0.1, _gap_of_hinge_dual, multi_class="crammer_singer"),
    5: SolverType("L1R_L2LOSS_SVC", "squared_hinge", 0.01, _gap_of_gradient, penalty="l1"),
    6: SolverType("L1R_LR", "logistic", 0.01, _gap_of_gradient, penalty="l1"),
    7: SolverType("L2R_LR_DUAL", "logistic", 0.1, _gap_of_smooth_dual),
}

_REFUSED = {
    11: "support vector regression: hinge classifies only",
    12: "support vector regression: hinge classifies only",
    13: "support vector regression: hinge classifies only",
    21: "a one-class machine: hinge needs at least two classes",
}

_EXISTING = (
    "0 and 7 (logistic regression), 1 and 2 (squared hinge), 3 (hinge), 4 (Crammer and Singer's machine), 5 (squared "
    "hinge) and 6 (logistic regression) with absolute values as the penalty exist"
)


def _solver(text: str) -> int:
    number = whole(0)(text)
    if number in SOLVERS:
        return number
    why = _REFUSED.get(number, "no such type")
    raise ValueError(f"{number} is {why}; {_EXISTING}")


def _memory(text: str) -> int:
    try:
        return budget(text)
    except ValueError:
        raise ValueError(f"expected bytes such as 500MB, 2GB or 1.5GiB, got {text!r}") from None


OPTIONS = (
    Option(
        "solver",
        f"type of solver (default 1): {_EXISTING}. Those that share a name have the same optimum, so they "
        "are the same here",
        letter="s",
        read=_solver,
        metavar="TYPE",
    ),
    Option("C", "cost of training errors (default 1)", letter="c", read=positive, metavar="COST"),
    Option("ignored", "taken and not used, as by LIBLINEAR's classifiers", letter="p", read=number, metavar="EPSILON"),
    Option(
        "epsilon",
        "LIBLINEAR's tolerance (default 0.01 for -s 0, 2, 5 and 6, else 0.1). Fits are certified to a relative duality "
        "gap: EPSILON^2/10 for these, EPSILON^2/10^4 for 1 and 7, EPSILON/1000 for 3 and 4, from 1e-9 to 1e-4",
        letter="e",
        read=positive,
        metavar="EPSILON",
    ),
    Option("tol", "relative duality gap of the fit, in place of -e", word="tol", read=positive, metavar="GAP"),
    Option(
        "bias",
        "if BIAS >= 0, rows get one more feature of this value, whose weight is penalised; if < 0, there is no "
        "intercept (default -1)",
        letter="B",
        read=number,
        metavar="BIAS",
    ),
    Option("is_free", "the intercept is not penalised; with -B 1", letter="R"),
    Option(
        "class_weight",
        "the cost of class i is WEIGHT times COST",
        letter="w",
        read=positive,
        metavar="WEIGHT",
        is_labelled=True,
    ),
    Option("n_folds", "cross-validation with N folds, no model", letter="v", read=whole(2), metavar="N"),
    Option(
        "searches",
        "search for C by cross-validation (-v folds, 5 if not given; from -c on, if given), no model",
        letter="C",
    ),
    Option("is_quiet", "nothing on standard error but warnings and errors", letter="q"),
    Option(
        "threads",
        "threads (default: all usable cores); results do not depend on it",
        letter="m",
        word="threads",
        read=whole(1),
        metavar="N",
    ),
    Option(
        "memory",
        "memory for the training, as 500MB or 2GB: data that need more are trained from a block store, in a folder "
        "that is removed afterwards",
        word="memory",
        read=_memory,
        metavar="BYTES",
    ),
    Option(
        "resume",
        "keep the state of a search, or of a training from a block store, in FILE, and go on from it",
        word="resume",
        read=str,
        metavar="FILE",
    ),
    Option(
        "label",
        "DATA are tables (.parquet, .csv, .jsonl, .arrow; needs pyarrow) with the labels in COLUMN; all other columns "
        "are encoded by their values, and the model takes rows of such tables; without -B the intercept is free",
        word="label",
        read=str,
        metavar="COLUMN",
    ),
    Option(
        "numbering",
        "with --label: hashed or counted columns, as of hinge.TableEncoder (default hashed)",
        word="numbering",
        read=one_of("hashed", "counted"),
        metavar="HOW",
    ),
    Option("max_iter", "epochs or Newton steps, at most", word="max-iter", read=whole(1), metavar="N"),
    Option("zero_based", "indices start at 0", word="zero-based"),
    Option("model", "the model file; all other files are data then", word="model", read=str, metavar="FILE"),
    Option(
        "format",
        "liblinear, hinge or onnx (default: hinge for a model *.hinge, onnx for *.onnx, else liblinear, which scripts "
        "and other readers expect)",
        word="model-format",
        read=one_of("liblinear", "hinge", "onnx"),
        metavar="FORMAT",
    ),
    Option("force", "replace a model file that is of another kind", word="force"),
)
"""Options of ``train``. The order of the help."""


@dataclass(frozen=True)
class Plan:
    """What is to be trained.

    Attributes
    ----------
    data : list of str
        Files.
    model : str
        Where the model goes.
    format : str
        "liblinear", "hinge" or "onnx".
    solver : SolverType
        Loss, and the name in a LIBLINEAR model.
    parameters : dict
        Those that fits and searches share, but C, tol and verbose.
    C : float or None
        None if it was not given.
    tol : float
        Relative duality gap of fits.
    n_folds : int or None
        None if it was not given.
    searches : bool
        Whether to search for C.
    given : dict
        Other options.
    """

    data: list[str]
    model: str
    format: str
    solver: SolverType
    parameters: dict[str, Any]
    C: float | None
    tol: float
    n_folds: int | None
    searches: bool
    given: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def encoder(self) -> Any:
        """The encoder, not fitted yet, where the data are tables; else None."""
        if self.label is None:
            return None
        from hinge.encoding import TableEncoder

        numbering, threads = self.given.get("numbering", "hashed"), self.given.get("threads")
        return TableEncoder({self.label: "drop"}, remainder="auto", numbering=numbering, n_jobs=threads)

    @property
    def label(self) -> str | None:
        """The column of labels, where the data are tables."""
        return self.given.get("label")

    @property
    def is_quiet(self) -> bool:
        """Whether standard error stays empty."""
        return bool(self.given.get("is_quiet"))

    @classmethod
    def of(cls, given: dict[str, Any], files: list[str]) -> Plan:
        """The plan of options and files as they were read."""
        data, model = _files(given, files)
        solver = SOLVERS[given.get("solver", 2 if given.get("searches") else 1)]
        _check_table(given, data)
        bias = given.get("bias", -1.0)
        if given.get("is_free") and bias != 1:
            raise ValueError(f"-R must come with -B 1, the bias is {bias:g}: to not regularize bias, specify both")
        parameters: dict[str, Any] = {
            "fit_intercept": bias > 0 or ("label" in given and "bias" not in given),
            "intercept_scaling": None if bias <= 0 or given.get("is_free") else bias,
            "class_weight": given.get("class_weight"),
            "n_jobs": given.get("threads"),
            "multi_class": solver.multi_class,
        }
        if solver.loss != "logistic":
            parameters["loss"] = solver.loss
        if solver.penalty != "l2":
            parameters["penalty"] = solver.penalty
        if "max_iter" in given:
            parameters["max_iter"] = given["max_iter"]
        if "memory" in given:
            parameters["memory_budget"] = given["memory"]
        return cls(
            data=data,
            model=model,
            format=given.get("format") or ("hinge" if "label" in given else format_of(model)),
            solver=solver,
            parameters=parameters,
            C=given.get("C"),
            tol=_gap(given, solver),
            n_folds=given.get("n_folds"),
            searches=bool(given.get("searches")),
            given=given,
        )


def _check_table(given: dict[str, Any], data: list[str]) -> None:
    """Refuse what does not go with tables, and tables without labels."""
    tables = [path for path in data if is_table_file(path)]
    if "label" not in given:
        if tables:
            raise ValueError(f"{tables[0]} is a table: name the column of its labels by --label")
        if "numbering" in given:
            raise ValueError("--numbering is for tables, which come with --label")
        return
    if len(tables) < len(data):
        other = next(path for path in data if path not in tables)
        raise ValueError(f"--label is for tables, {other} is not the name of one")
    if given.get("format", "hinge") != "hinge":
        raise ValueError(f"--model-format {given['format']}: only hinge's own files hold the encoder of a table")
    for option in ("memory", "zero_based"):
        if option in given:
            raise ValueError(f"--{option.replace('_', '-')} is for lines of 'label index:value ...', not for tables")


def _gap(given: dict[str, Any], solver: SolverType) -> float:
    if "tol" in given:
        return given["tol"]
    gap = solver.gap(given.get("epsilon", solver.epsilon))
    return min(max(gap, _LEAST_GAP), _native.DEFAULT_TOL)


def _files(given: dict[str, Any], files: list[str]) -> tuple[list[str], str]:
    """Data and model, as LIBLINEAR takes them, or with ``--model``."""
    if "model" in given:
        data, model = files, given["model"]
    elif len(files) > 2:
        raise ValueError(f"expected DATA and perhaps MODEL, got {len(files)} files: name the model by --model")
    elif len(files) == 2:
        data, model = files[:1], files[1]
    else:
        data, model = files, f"{os.path.basename(files[0])}.model" if files and files[0] != "-" else ""
    if not data:
        raise ValueError("no data: expected DATA, a file or - for standard input")
    writes = not ("n_folds" in given or given.get("searches"))
    if writes and model == "-":
        raise ValueError("the model must be a file, got '-': it cannot go to standard output")
    if writes and not model:
        raise ValueError("no name for the model: data from standard input have none to derive it from")
    return data, model
