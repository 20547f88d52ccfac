"""Cross-validated choice of both costs, exact over the whole box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge import _checks, _validate
from hinge._cost_surface import ScoreSurface, check_costs, held_out, sum_minimum


@dataclass(frozen=True, eq=False)
class CostSelection:
    """The exact minimum of a cross-validated error over the box, from :func:`select_costs`.

    Attributes
    ----------
    c_pos, c_neg : float
        Costs inside the largest region of the minimum.
    error : float
        Weighted error per held-out row there.
    regions : list of ndarray of shape (n_corners, 2)
        Regions where it is attained (at most 1000).
    grid_error : float
        Smallest error on a geometric grid of ``grid`` by ``grid`` pairs of costs: never below ``error``.
    grid_costs : ndarray of shape (2,)
        The best pair of that grid.
    paths : tuple of CostPath
        One per fold.
    surfaces : tuple of ScoreSurface
        One per fold.
    """

    c_pos: float
    c_neg: float
    error: float
    regions: list[np.ndarray]
    grid_error: float
    grid_costs: np.ndarray
    paths: tuple[Any, ...]
    surfaces: tuple[ScoreSurface, ...]


def select_costs(
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    box: Sequence[float] = (1.0, 1.0),
    false_positive: float = 1.0,
    false_negative: float = 1.0,
    grid: int = 10,
    intercept_scaling: float | None = 1.0,
    max_regions: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> CostSelection:
    """Choose both costs by cross-validation, exactly: no grid.

    Explores one plane per fold, takes the held-out error of each as a function over the plane, and finds the minimum
    of their sum.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of two classes.
    cv : int, splitter or iterable, default=5
        Number of stratified folds of shuffled rows, or anything that scikit-learn accepts.
    box : pair of float, default=(1.0, 1.0)
        Largest C+ and C-, finite.
    false_positive, false_negative : float, default=1.0
        Cost of an error of each kind.
    grid : int, default=10
        Pairs of costs per axis of the grid to compare with, geometric over three decades.
    intercept_scaling, max_regions, n_jobs, random_state, verbose
        As in :func:`hinge.cost_path`.

    Returns
    -------
    CostSelection

    Raises
    ------
    ValueError
        Unusable parameters or input.
    RegionLimitError
        A fold's plane has more than ``max_regions`` facets.

    Examples
    --------
    >>> import hinge
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=40, n_features=4, weights=[0.7], random_state=0)
    >>> chosen = hinge.select_costs(X, y, cv=3, false_negative=3.0)
    >>> chosen.error <= chosen.grid_error
    True
    """
    from sklearn.model_selection import StratifiedKFold, check_cv

    from hinge import _native
    from hinge.path import CostPath, cost_path

    check_costs(false_positive, false_negative)
    _checks.whole("grid", grid, 2)
    X, y = _validate.fit_data(X, y)
    X = _validate.plain_data(X)
    classes, ids = _validate.encode(y)
    splitter = (
        StratifiedKFold(cv, shuffle=True, random_state=_validate.seed(random_state))
        if _checks.is_number(cv)
        else check_cv(cv, y, classifier=True)
    )
    paths, surfaces, n_held = [], [], 0
    for train, test in splitter.split(X, ids):
        path = cost_path(
            X[train],
            y[train],
            box=box,
            intercept_scaling=intercept_scaling,
            max_regions=_native.DEFAULT_MAX_REGIONS if max_regions is None else max_regions,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        if not isinstance(path, CostPath) or path.is_partial:
            raise KeyboardInterrupt
        paths.append(path)
        surfaces.append(path.score_surface(X[test], y[test]))
        n_held += len(test)
    best = sum_minimum([(surface, false_positive, false_negative) for surface in surfaces])
    axes = [np.geomspace(limit / 1000, limit, grid) for limit in paths[0].box]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    errors = np.zeros(len(points))
    for path, (_, test) in zip(paths, splitter.split(X, ids), strict=True):
        held, signs = held_out(classes, X[test], y[test])
        called = path.decision_function(held, points[:, 0], points[:, 1]) > 0
        errors += false_positive * (called & (signs < 0)).sum(axis=1) + false_negative * (~called & (signs > 0)).sum(
            axis=1
        )
    at = int(errors.argmin())
    return CostSelection(
        c_pos=float(best.costs[0]),
        c_neg=float(best.costs[1]),
        error=best.value / n_held,
        regions=best.regions,
        grid_error=float(errors[at]) / n_held,
        grid_costs=points[at],
        paths=tuple(paths),
        surfaces=tuple(surfaces),
    )
