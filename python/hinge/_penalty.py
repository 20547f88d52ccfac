"""The penalty of the weights and their bounds: what users give, checked, and how the native module takes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge import _plain
from hinge._checks import Check, is_real

NAMES = ("l2", "l1", "elasticnet")

_RATIOS = {"l2": 0.0, "l1": 1.0}
"""The share of the absolute values that a name stands for."""


def factors(name: str, value: Any) -> np.ndarray | None:
    """Check of one number per feature, each at least 0."""
    if value is None:
        return None
    numbers = _numbers(name, value, "a list with one number of at least 0 for each feature")
    bad = np.flatnonzero(~(numbers >= 0))
    if numbers.ndim != 1 or len(bad):
        where = f", got {numbers[bad[0]]} for feature {bad[0]}" if numbers.ndim == 1 else f", got {value!r}"
        raise ValueError(f"{name} must be None or a list with one number of at least 0 for each feature{where}")
    return numbers


def bounds(name: str, value: Any) -> tuple[Any, Any] | None:
    """Check of a pair of limits, each a number or one per feature."""
    if value is None:
        return None
    rule = "None or a pair (lower, upper), each a number or a list with one for each feature"
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or len(value) != 2:
        raise ValueError(f"{name} must be {rule}, got {value!r}")
    lower, upper = (_limit(name, side, rule) for side in value)
    below, above = np.atleast_1d(lower), np.atleast_1d(upper)
    if len(below) > 1 and len(above) > 1 and len(below) != len(above):
        raise ValueError(f"{name} must be {rule}: there are {len(below)} lower and {len(above)} upper ones")
    crossed = np.flatnonzero(below > above)
    if len(crossed):
        lowest, highest = (side[crossed[0] if len(side) > 1 else 0] for side in (below, above))
        at = f" for feature {crossed[0]}" if max(len(below), len(above)) > 1 else ""
        raise ValueError(
            f"{name} must have lower limits that are not above the upper ones, got {lowest} to {highest}{at}"
        )
    return lower, upper


def _limit(name: str, value: Any, rule: str) -> Any:
    numbers = np.asarray(float(value)) if is_real(value) else _numbers(name, value, rule)
    if numbers.ndim > 1 or np.isnan(numbers).any():
        raise ValueError(f"{name} must be {rule} without NaN, got {value!r}")
    return float(numbers) if numbers.ndim == 0 else numbers


def _numbers(name: str, value: Any, rule: str) -> np.ndarray:
    try:
        return np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be {rule}, got {value!r}") from None


def share(name: str, value: Any) -> float | None:
    """Check of a share of absolute values, which may be None."""
    if value is not None and (not is_real(value) or not 0 <= float(value) <= 1):
        raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}")
    return None if value is None else float(value)


def shares(check: Check) -> Check:
    """The check of a share or of a list of them, which a search tries one by one."""

    def checked(name: str, value: Any) -> Any:
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
            return check(name, value)
        if not len(value):
            raise ValueError(f"{name} must hold at least one number, it is empty")
        return [check(name, ratio) for ratio in value]

    return checked


def ratio_of(penalty: str, l1_ratio: Any) -> Any:
    """The share of absolute values of a penalty of our names; a list where the search is to choose."""
    if penalty == "elasticnet":
        if l1_ratio is None:
            raise ValueError("l1_ratio must be a number from 0 to 1 with penalty='elasticnet', got None")
        return l1_ratio
    if l1_ratio is not None:
        raise ValueError(f"l1_ratio must be None with penalty={penalty!r}, got {l1_ratio!r}: it is for 'elasticnet'")
    return _RATIOS[penalty]


def native(given: Any) -> dict[str, Any] | None:
    """The native penalty of checked parameters; None for the squares of all weights.

    ``given.l1_share`` is the share of absolute values; of a list it is the first.
    """
    ratio: Any = getattr(given, "l1_share", 0.0)
    is_grid = isinstance(ratio, list)
    ratio = ratio[0] if is_grid else ratio
    weights, limits = getattr(given, "penalty_factors", None), getattr(given, "bounds", None)
    is_positive = getattr(given, "positive", False)
    if is_positive and limits is not None:
        raise ValueError("bounds must be None with positive=True: give a lower bound of 0 instead")
    if ratio == 0 and weights is None and limits is None and not is_positive and not is_grid:
        return None
    lower, upper = limits if limits is not None else (0.0 if is_positive else -np.inf, np.inf)
    return {"l1_ratio": ratio, "factors": 1.0 if weights is None else weights, "lower": lower, "upper": upper}


def of_pair(penalty: dict[str, Any] | None) -> tuple[float, dict[str, Any] | None]:
    """What the penalty of a softmax of two classes is to their difference, as a multiple of another native penalty.

    Their weights are opposite: half of the difference each, whose absolute values cost as much as its own and whose
    squares cost half.
    """
    if penalty is None:
        return 0.5, None
    if np.isfinite(penalty["lower"]).any() or np.isfinite(penalty["upper"]).any():
        raise ValueError("positive and bounds need rows of every class in the training part of each fold of a softmax")
    ratio = penalty["l1_ratio"]
    share = 0.5 * (1.0 + ratio)
    return share, penalty | {"l1_ratio": ratio / share}


def is_plain(estimator: Any) -> bool:
    """Whether unchecked parameters ask for the squares of all weights, without factors and bounds."""
    given = vars(estimator)
    has_more = given.get("positive") or any(given.get(name) is not None for name in ("penalty_factors", "bounds"))
    penalty, ratio = given.get("penalty", "l2"), given.get("l1_ratio")
    return not has_more and (penalty in ("l2", None) or (penalty == "deprecated" and not ratio))


def grid(given: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The native options of each share of absolute values that is to be searched."""
    shares = getattr(given, "l1_share", 0.0)
    if not isinstance(shares, list):
        return [options]
    if given.resume is not None:
        raise ValueError(f"resume must be None where several shares of absolute values are searched, got {shares}")
    return [options | {"penalty": options["penalty"] | {"l1_ratio": share}} for share in shares]


def check_with(given: Any, loss: str) -> None:
    """Refuse what a penalty other than the squares of all weights does not go with, by the parameters' names."""
    what = "penalty='l1' or 'elasticnet', penalty_factors, positive or bounds"
    if given.solver != "auto":
        raise ValueError(f"solver must be 'auto' with {what}, got {given.solver!r}")
    if getattr(given, "multi_class", "ovr") == "crammer_singer":
        raise ValueError(f"multi_class must be 'ovr' with {what}, got 'crammer_singer'")
    if getattr(given, "presolve", "auto") == "on":
        raise ValueError(f"presolve must be 'auto' or False with {what}, got True")
    if getattr(given, "C", 1.0) == np.inf:
        raise ValueError(f"C must be finite with {what}, got inf")


def liblinear_solver(record: dict[str, Any]) -> str | None:
    """LIBLINEAR's name of the solver for absolute values, if a model's record has this penalty; else None."""
    parameters, search = record["parameters"], record["fitted"].get("search_")
    if isinstance(search, dict):  # as :mod:`hinge._plain` writes it
        ratio = search.get("fields", {}).get("l1_ratio")
    elif parameters.get("penalty") == "l1":
        ratio = 1.0
    else:  # a penalty without a name is that of its share
        ratio = parameters.get("l1_ratio") if parameters.get("penalty") in ("elasticnet", "deprecated") else None
    if _plain.decode(ratio, {}) != 1:
        return None
    return "L1R_LR" if record["estimator"].startswith("Logistic") else "L1R_L2LOSS_SVC"


def value(penalty: dict[str, Any] | None, coef: np.ndarray, intercept: np.ndarray, height: float | None) -> np.ndarray:
    """The penalty of each problem's weights, and of an intercept that is the weight of a column of this height."""
    told = penalty or {"l1_ratio": 0.0, "factors": 1.0}
    ratio = told["l1_ratio"]

    def cost(weights: np.ndarray) -> np.ndarray:
        return ratio * np.abs(weights) + 0.5 * (1.0 - ratio) * weights**2

    with np.errstate(invalid="ignore"):  # an infinite factor is that of a weight of 0
        total = np.where(coef == 0.0, 0.0, told["factors"] * cost(coef)).sum(axis=1)
    return total + cost(intercept / height) if height else total
