"""What native fits are told, from the checked parameters of an estimator or of a search."""

from __future__ import annotations

from typing import Any

from hinge import _penalty
from hinge.poly2 import native_map

SOLVER_OF_LOSS = {"primal_cd": "squared_hinge", "cutting_plane": "hinge"}
"""The one loss of a solver that has one."""


def fit_options(given: Any, loss: str) -> dict[str, Any]:
    """The native options; parameters that do not go together are refused."""
    only = SOLVER_OF_LOSS.get(given.solver, loss)
    if only != loss:
        raise ValueError(f"solver={given.solver!r} is for loss={only!r} only, got loss={loss!r}")
    penalty = _penalty.native(given)
    if penalty is not None:
        _penalty.check_with(given, loss)
    return {
        "loss": loss,
        "solver": _solver(given),
        "intercept": intercept(given),
        "tol": given.tol,
        "max_iter": given.max_iter,
        "seed": given.random_state,
        "n_threads": given.n_jobs,
        "presolve": given.presolve,
        "map": _map(given),
        "multi_class": _multi_class(given, loss, penalty),
        "sparse_coef": getattr(given, "sparse_coef", False),
        "sparse_tol": _sparse_tol(given, penalty),
        "penalty": penalty,
    }


def intercept(given: Any) -> float | None:
    """The native spelling of the intercept: None for none, 0 for a free one, a scale for a penalised one."""
    return (given.intercept_scaling or 0.0) if given.fit_intercept else None


def _is_crammer_singer(given: Any) -> bool:
    return getattr(given, "multi_class", "ovr") == "crammer_singer"


def _multi_class(given: Any, loss: str, penalty: dict[str, Any] | None) -> str:
    """The native name of what more than two classes are, for a solver that does not say it."""
    # With another penalty than the squares "auto" is each class against the rest, but for scikit-learn's own names.
    means_softmax = penalty is None or getattr(given, "is_sklearns", False)
    is_softmax = getattr(given, "multi_class", "ovr") in (
        ("auto", "multinomial") if means_softmax else ("multinomial",)
    )
    return "multinomial" if is_softmax and loss == "logistic" else "ovr"


def _solver(given: Any) -> str:
    if not _is_crammer_singer(given):
        return given.solver
    if given.solver not in ("auto", "dual_cd"):
        raise ValueError(f"solver must be 'auto' or 'dual_cd' with multi_class='crammer_singer', got {given.solver!r}")
    if given.degree != 1:
        raise ValueError(f"degree must be 1 with multi_class='crammer_singer', got {given.degree}")
    return "crammer_singer"


def _map(given: Any) -> dict[str, Any] | None:
    """The native map to pairs of features; None for degree 1."""
    if given.degree == 1:
        return None
    if given.presolve == "on":
        raise ValueError("presolve=True is not possible with degree=2, use 'auto' or False")
    # A free intercept makes a penalised constant feature useless.
    return native_map(given, has_constant=intercept(given) != 0)


def _sparse_tol(given: Any, penalty: dict[str, Any] | None) -> float | None:
    """The share up to which small weights are dropped; None where weights are dense, or a penalty makes the zeros."""
    if not getattr(given, "sparse_coef", False):
        return None
    if _is_crammer_singer(given):
        raise ValueError("sparse_coef must be False with multi_class='crammer_singer', got True")
    if given.degree == 2:
        raise ValueError("sparse_coef must be False with degree=2, got True")
    return None if penalty else given.sparse_tol
