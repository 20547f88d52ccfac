"""What scikit-learn's parameters ask for, in our words.

scikit-learn names an algorithm, a norm and a formulation; here those say *which problem* is to be solved, and how is
decided here. A solver of its name also brings its conventions along:

- the intercept is free, whatever ``intercept_scaling`` is; "liblinear" penalises it, and fits each class against the
  rest;
- ``tol`` bounds the gradient of the mean objective. A gradient of size g belongs to a distance to the optimum of the
  order of g squared, so the relative duality gap to be proved is ``tol**2``, or what double precision can prove;
- weights have the type of X; a search has folds in the order of the rows, and ten values of C.

Without a name of theirs everything stays as it is here. Combinations that scikit-learn refuses are refused, in words
that begin alike, because people look for them.
"""

from __future__ import annotations

import numbers
from types import SimpleNamespace
from typing import Any

import numpy as np

from hinge import _penalty
from hinge._checks import Check, positive
from hinge._warn import warn

SKLEARN_SOLVERS = ("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga")
PENALTIES = ("l1", "l2", "elasticnet")

LEAST_TOL = 1e-12
"""The smallest relative gap that a ``tol`` of scikit-learn's asks for: near what rounding lets anybody prove."""

TAKES_NEWTON_STEPS = ("newton", "newton-cg", "newton-cholesky")
"""Solvers whose fits go on, step by step, from where the fit before has ended."""

DEFAULT_CS = np.logspace(-4, 4, 10).tolist()

# How scikit-learn's warnings of fits that have not converged begin, by solver; {} is the number of iterations.
_NOT_CONVERGED = {
    "lbfgs": "lbfgs failed to converge after {} iteration(s)",
    "liblinear": "Liblinear failed to converge, increase the number of iterations.",
    "newton-cg": "newton-cg failed to converge after {} iteration(s). Increase the number of iterations.",
    "newton-cholesky": "Newton solver did not converge after {} iterations",
    "sag": "The max_iter was reached which means the coef_ did not converge",
    "saga": "The max_iter was reached which means the coef_ did not converge",
}


def penalty(name: str, value: Any) -> str | None:
    """Check of the parameter ``penalty`` of logistic regression."""
    if value is None or value in (*PENALTIES, "deprecated"):
        return value
    raise ValueError(f"{name} must be one of {sorted(PENALTIES)} or None, got {value!r}")


def l1_ratios(name: str, value: Any) -> list[float | None] | None:
    """Check of a list of numbers from 0 to 1."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or np.ndim(value) != 1 or not len(value):
        raise ValueError(f"{name} must be None or a list of numbers from 0 to 1, got {value!r}")
    return [_penalty.share(name, ratio) for ratio in value]


def cost(name: str, value: Any) -> float:
    """Check of C where infinity means no penalty."""
    is_infinite = isinstance(value, numbers.Real) and float(value) == np.inf
    return np.inf if is_infinite else positive(name, value)


def or_zero(check: Check) -> Check:
    """A check that lets 0 pass, which only a solver of scikit-learn's name takes."""

    def checked(name: str, value: Any) -> Any:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        return 0 if is_number and float(value) == 0 else check(name, value)

    return checked


def is_sklearns(solver: object) -> bool:
    """Whether a solver is one of scikit-learn's."""
    return isinstance(solver, str) and solver in SKLEARN_SOLVERS


def not_converged(solver: str, n_iter: int) -> str | None:
    """How the warning begins for a solver of scikit-learn's name; None for ours."""
    return _NOT_CONVERGED[solver].format(n_iter) if is_sklearns(solver) else None


def logistic(given: SimpleNamespace) -> SimpleNamespace:
    """Checked parameters of a logistic regression, those of scikit-learn's translated into ours.

    ``C`` is infinite where there is no penalty. Of a search, ``in_order`` says whether folds are in the order of the
    rows, ``keeps_paths`` whether the weights of all folds are kept.
    """
    found = SimpleNamespace(**vars(given))
    _check_penalty(found)
    if given.dual and is_sklearns(given.solver) and given.solver != "liblinear":
        raise ValueError(f"Solver {given.solver} supports only dual=False, got dual=True")
    found.is_sklearns = is_sklearns(given.solver)
    if found.is_sklearns:
        found.solver = "auto"
        found.tol = max(given.tol**2, LEAST_TOL)
        found.intercept_scaling = None
        if given.solver == "liblinear":
            if given.multi_class == "multinomial":
                raise ValueError("Solver liblinear does not support a multinomial backend: multi_class must be 'ovr'")
            found.intercept_scaling, found.multi_class = given.intercept_scaling or 1.0, "ovr"
    else:
        _check_ours(found)
    if given.dual:
        found.solver = "dual_cd"
    if hasattr(given, "cv"):
        found.keeps_paths = given.use_legacy_attributes is not None or not given.refit
        found.in_order = found.keeps_paths or is_sklearns(given.solver)
        if found.in_order and given.Cs is None:
            found.Cs = DEFAULT_CS
    return found


def _check_ours(given: SimpleNamespace) -> None:
    """What only a solver of scikit-learn's name may be told."""
    if given.max_iter < 1:
        raise ValueError(
            f"max_iter must be an integer of at least 1, got {given.max_iter}: 0 is for solvers of scikit-learn's names"
        )
    if given.tol <= 0:
        raise ValueError(f"tol must be a finite number above 0, got {given.tol!r}")
    if given.dual and given.solver not in ("auto", "dual_cd"):
        raise ValueError(f"dual=True is for solver='liblinear', 'auto' and 'dual_cd', got {given.solver!r}")


def _check_penalty(given: SimpleNamespace) -> None:
    """The share of absolute values in the penalty, as ``l1_share``; C is infinite without one."""
    ratios: Any = getattr(given, "l1_ratios", None)
    if hasattr(given, "l1_ratio"):
        ratios = [given.l1_ratio]
    elif ratios is None and given.penalty == "elasticnet":
        raise ValueError("l1_ratios must be an array-like of numbers between 0 and 1; got (l1_ratios=None)")
    ratios = ratios or [None]
    shares = [_share(given.solver, given.penalty, ratio) for ratio in ratios]
    given.l1_share = shares[0] if len(set(shares)) == 1 else shares
    if given.penalty is None and not hasattr(given, "C"):
        raise ValueError("penalty must not be None in a search for C")
    if given.penalty is None and given.C != 1.0:
        warn("Setting penalty=None will ignore the C and l1_ratio parameters", UserWarning)
    if given.penalty is None:
        given.C = np.inf
    if getattr(given, "C", 1.0) == np.inf and given.solver == "liblinear":
        raise ValueError("penalty=None is not supported for the liblinear solver")


def _share(solver: str, penalty: str | None, ratio: float | None) -> float:
    """The share of the absolute values; refuses in scikit-learn's words what it refuses too."""
    asked = _meant(penalty, ratio)
    if penalty == "elasticnet" and ratio is None:
        raise ValueError("l1_ratio must be specified when penalty is elasticnet.")
    if asked in ("l1", "elasticnet"):
        if solver in ("lbfgs", "newton-cg", "newton-cholesky", "sag"):
            raise ValueError(f"Solver {solver} supports only 'l2' or None penalties, got {asked} penalty")
        if asked == "elasticnet" and solver == "liblinear":
            raise ValueError("Only 'saga' solver supports elasticnet penalty, got solver=liblinear.")
    if penalty == "l2" and ratio:
        warn(f"Inconsistent values: penalty=l2 with l1_ratio={ratio}: l1_ratio is not looked at", UserWarning)
    is_default = ratio == 0 and not is_sklearns(solver)
    if penalty == "l1" and ratio not in (None, 1) and not is_default:
        only = "l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty=l1)"
        warn(f"Inconsistent values: penalty=l1 with l1_ratio={ratio}: {only}", UserWarning)
    return {"l1": 1.0, "elasticnet": ratio or 0.0}.get(asked or "", 0.0)


def _meant(penalty: str | None, ratio: float | None) -> str | None:
    """The penalty: by its name, else by the share of absolute values."""
    if penalty == "elasticnet" and ratio == 0:
        return "l2"
    if penalty != "deprecated":
        return penalty
    if not ratio:
        return "l2"
    return "l1" if ratio == 1 else "elasticnet"


def svc(given: SimpleNamespace) -> SimpleNamespace:
    """Checked parameters of a linear SVM, those of scikit-learn's translated into ours."""
    penalty, dual, loss = given.penalty, getattr(given, "dual", "auto"), given.loss
    given.l1_share = _penalty.ratio_of(penalty, given.l1_ratio)
    if given.multi_class == "crammer_singer":
        return given  # neither is looked at, as in scikit-learn
    is_refused = (penalty, loss) == ("l1", "hinge") or (penalty, dual) == ("l1", True)
    if is_refused or (loss, dual) == ("hinge", False):
        raise ValueError(
            f"Unsupported set of arguments: penalty={penalty!r} and loss={loss!r} do not go with dual={dual!r}"
            + ("; penalty='elasticnet' with l1_ratio=1.0 is that problem" if (penalty, loss) == ("l1", "hinge") else "")
        )
    if dual is True and given.solver == "auto":
        return SimpleNamespace(**vars(given) | {"solver": "dual_cd"})
    return given
