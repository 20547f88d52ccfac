"""Errors on held-out rows as exact functions over the plane of two costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from hinge import _native, _validate

MAX_REGIONS = 1000
"""Regions of a minimum that are returned."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where an error over the plane is smallest.

    Attributes
    ----------
    value : float
        The smallest error.
    costs : ndarray of shape (2,), float64
        (C+, C-) inside the largest region of the minimum.
    regions : list of ndarray of shape (n_corners, 2)
        Regions where it is attained, at most 1000 of them.
    """

    value: float
    costs: np.ndarray
    regions: list[np.ndarray]


class ScoreSurface:
    """Errors of held-out rows over the box, constant within convex cells; from :meth:`hinge.CostPath.score_surface`.

    Attributes
    ----------
    n_positive, n_negative : int
        Held-out rows of the second and of the first class.
    false_positives, false_negatives : ndarray of shape (n_cells,), uint32
        Errors in each cell.
    facet : ndarray of shape (n_cells,), uint32
        Facet of each cell.
    first, corners : ndarray
        Corners of cell k are ``corners[first[k]:first[k + 1]]``, counter-clockwise.
    """

    def __init__(self, native: Any, signs: np.ndarray):
        self._native = native
        arrays = native.arrays()
        self.facet, self.first, self.corners = arrays["facet"], arrays["first"], arrays["corners"]
        self.false_positives, self.false_negatives = arrays["false_positives"], arrays["false_negatives"]
        self.n_positive, self.n_negative = int((signs > 0).sum()), int((signs < 0).sum())

    def __len__(self) -> int:
        return len(self.facet)

    def __repr__(self) -> str:
        return f"ScoreSurface({len(self)} cells, {self.n_positive} positive and {self.n_negative} negative rows)"

    @property
    def areas(self) -> np.ndarray:
        """Area of each cell, shape (n_cells,)."""
        first = self.first.astype(np.int64)
        lengths = np.diff(first)
        after = np.arange(len(self.corners)) + 1
        after[first[1:][lengths > 0] - 1] = first[:-1][lengths > 0]
        origin = np.repeat(self.corners[first[:-1]], lengths, axis=0)  # near the cell, against cancellation
        a, b = self.corners - origin, self.corners[after] - origin
        cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
        return 0.5 * np.add.reduceat(cross, first[:-1]) if len(self) else np.empty(0)

    def error(self, false_positive: float = 1.0, false_negative: float = 1.0) -> np.ndarray:
        """Weighted error per row of each cell, shape (n_cells,).

        Parameters
        ----------
        false_positive, false_negative : float, default=1.0
            Cost of an error of each kind.
        """
        total = false_positive * self.false_positives + false_negative * self.false_negatives
        return total / (self.n_positive + self.n_negative)

    @property
    def false_positive_rate(self) -> np.ndarray:
        """Share of the negative rows that are called positive, in each cell; NaN without negative rows."""
        return self.false_positives / self.n_negative if self.n_negative else np.full(len(self), np.nan)

    @property
    def false_negative_rate(self) -> np.ndarray:
        """Share of the positive rows that are called negative, in each cell; NaN without positive rows."""
        return self.false_negatives / self.n_positive if self.n_positive else np.full(len(self), np.nan)

    def minimum(self, false_positive: float = 1.0, false_negative: float = 1.0) -> Minimum:
        """The smallest weighted error over the whole box, and all cells that attain it (at most 1000)."""
        error = self.error(false_positive, false_negative)
        best = np.flatnonzero(error <= error.min() * (1 + 1e-12))
        largest = best[np.argsort(-self.areas[best], kind="stable")]
        regions = [self.corners[self.first[k] : self.first[k + 1]] for k in largest[:MAX_REGIONS]]
        return Minimum(float(error.min()), regions[0].mean(axis=0), regions)

    def roc(self) -> np.ndarray:
        """Pairs (false positive rate, true positive rate) of cells that no other cell beats, rising; shape (k, 2)."""
        points = np.unique(np.column_stack([self.false_positive_rate, 1.0 - self.false_negative_rate]), axis=0)
        best = np.maximum.accumulate(points[:, 1])
        keep = np.r_[True, best[1:] > best[:-1]] & (points[:, 1] == best)
        last_of_rate = np.r_[points[1:, 0] != points[:-1, 0], True]
        return points[keep & last_of_rate]

    def plot(self, ax: Any = None, *, false_positive: float = 1.0, false_negative: float = 1.0, **options: Any) -> Any:
        """Draw the weighted error over the plane with its minimum; needs matplotlib. Returns the axes."""
        from hinge import _cost_plots

        return _cost_plots.surface(self, ax, false_positive=false_positive, false_negative=false_negative, **options)

    def plot_roc(self, ax: Any = None) -> Any:
        """Draw the ROC points that the plane gives; needs matplotlib. Returns the axes."""
        from hinge import _cost_plots

        return _cost_plots.roc(self, ax)


def check_costs(false_positive: float, false_negative: float) -> None:
    """Refuse costs of errors that are negative, not finite, or both 0."""
    for name, value in (("false_positive", false_positive), ("false_negative", false_negative)):
        if not (isinstance(value, Real) and 0 <= value < np.inf):
            raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    if false_positive == 0 and false_negative == 0:
        raise ValueError("false_positive and false_negative must not both be 0")


def held_out(classes: np.ndarray, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Held-out rows and their signs."""
    X = _validate.plain_data(X)
    y = _validate.labels(y, X.shape[0])
    unknown = ~np.isin(y, classes)
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise ValueError(f"y holds the label {_validate.plain(y[row])} in row {row}, the path knows {list(classes)}")
    return X, np.where(y == classes[1], 1.0, -1.0)


def sum_minimum(surfaces: Sequence[tuple[ScoreSurface, float, float]]) -> Minimum:
    """The exact minimum of a sum of weighted errors over several surfaces of one box."""
    parts = [(surface._native, (positive, negative)) for surface, positive, negative in surfaces]
    value, regions = _native.surfaces_minimum(parts, MAX_REGIONS)
    arrays = [np.array(region) for region in regions]
    arrays.sort(key=lambda region: -_area(region))
    return Minimum(value, arrays[0].mean(axis=0), arrays)


def _area(corners: np.ndarray) -> float:
    x, y = (corners - corners[0]).T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))
