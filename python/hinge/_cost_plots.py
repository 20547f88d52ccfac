"""Pictures of the plane of two costs; needs matplotlib (``pip install hinge[plot]``)."""

from __future__ import annotations

from typing import Any

import numpy as np


def _axes(ax: Any, three: bool = False) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install hinge[plot]") from error
    if ax is not None:
        return ax
    return plt.figure().add_subplot(projection="3d" if three else None)


def _finite(path: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """Polygons without those that reach infinity, and their facets."""
    polygons = [path.polygon(f) for f in range(path.n_facets)]
    kept = [f for f, polygon in enumerate(polygons) if len(polygon) > 2 and (polygon[:, 2] > 0).all()]
    return [polygons[f][:, :2] for f in kept], np.array(kept, dtype=np.intp)


def _frame(ax: Any) -> Any:
    ax.set_xlabel("$C_+$")
    ax.set_ylabel("$C_-$")
    ax.autoscale_view()
    return ax


def facets(path: Any, ax: Any = None, *, vertices: bool = True, cmap: str = "viridis") -> Any:
    """Facets coloured by layer, edges (event paths) as lines, vertices as dots, after Wesierski et al., figure 1."""
    from matplotlib.collections import PolyCollection

    ax = _axes(ax)
    polygons, kept = _finite(path)
    shapes = PolyCollection(
        polygons, array=path.layer[kept].astype(float), cmap=cmap, edgecolors="white", linewidths=0.3
    )
    ax.add_collection(shapes)
    if vertices:
        finite = path.vertices[path.vertices[:, 2] > 0]
        ax.plot(finite[:, 0], finite[:, 1], ".", color="black", markersize=1)
    ax.figure.colorbar(shapes, ax=ax, label="layer")
    return _frame(ax)


def multiplier(path: Any, row: int, ax: Any = None, *, cmap: str = "viridis") -> Any:
    """The surface of one Lagrange multiplier over the plane, a flat piece per facet: Wesierski et al., figure 2."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    if not 0 <= row < len(path.problem.signs):
        raise ValueError(f"row must be at least 0 and below {len(path.problem.signs)}, got {row}")
    ax = _axes(ax, three=True)
    used = np.flatnonzero(path.vertices[:, 2] > 0)
    heights = np.zeros(len(path.vertices))
    for part in np.array_split(used, max(1, len(used) * len(path.problem.signs) // 20_000_000)):
        points = path.vertices[part]
        heights[part] = path.alpha(points[:, 0], points[:, 1])[:, row]
    _, kept = _finite(path)
    first, corner = path.first, path.corner
    ids = [corner[first[f] : first[f + 1]] for f in kept]
    # Facets of as many corners as the longest, the first one repeated: matplotlib 3.11 fills lists of different
    # lengths up with memory that nobody wrote, and multiplies it.
    longest = max(map(len, ids), default=0)
    equal = np.array([np.append(v, np.full(longest - len(v), v[0])) for v in ids], dtype=np.intp)
    pieces = np.dstack([path.vertices[equal, 0], path.vertices[equal, 1], heights[equal]])
    shapes = Poly3DCollection(pieces, cmap=cmap, edgecolors="white", linewidths=0.1)
    shapes.set_array(np.array([heights[v].mean() for v in ids]))
    ax.add_collection3d(shapes)
    ax.set(xlim=(0, path.box[0]), ylim=(0, path.box[1]), zlim=(0, max(heights.max(), 1e-12)))
    ax.set_xlabel("$C_+$")
    ax.set_ylabel("$C_-$")
    ax.set_zlabel(rf"$\alpha_{{{row}}}$")
    return ax


def surface(
    surface: Any, ax: Any = None, *, false_positive: float, false_negative: float, cmap: str = "magma_r"
) -> Any:
    """Held-out error over the plane, with its minimum marked."""
    from matplotlib.collections import PolyCollection

    ax = _axes(ax)
    polygons = np.split(surface.corners, surface.first[1:-1].astype(np.int64))
    error = surface.error(false_positive, false_negative)
    shapes = PolyCollection(polygons, array=error, cmap=cmap, edgecolors="face", linewidths=0.1)
    ax.add_collection(shapes)
    best = surface.minimum(false_positive, false_negative)
    ax.plot(*best.costs, "o", color="tab:cyan", label=f"minimum {best.value:.4g}")
    ax.figure.colorbar(shapes, ax=ax, label="error per row")
    ax.legend(loc="upper right")
    return _frame(ax)


def roc(surface: Any, ax: Any = None) -> Any:
    """The ROC points that the plane gives."""
    ax = _axes(ax)
    points = surface.roc()
    ax.step(points[:, 0], points[:, 1], where="post", marker=".")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    return ax
