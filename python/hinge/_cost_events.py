"""Joint events of an explored plane, and its layers as the paper counts them.

Every edge of a facet lies on an *event path*: the curve on which one row passes between the left and the margin, or
between the margin and the right. Where two of them cross is a vertex, and going round it both events happen: a joint
event (Wesierski et al., section 3.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

_FRAME = 2**32 - 8


def event_paths(events: np.ndarray) -> np.ndarray:
    """The number of each edge's event path, twice the row plus 0 (left) or 1 (right), -1 on a side of the box."""
    wide = events.astype(np.int64)
    return np.where(wide >= _FRAME, -1, 2 * (wide // 4) + wide % 2)


def joint_events(plane: Any) -> tuple[np.ndarray, np.ndarray]:
    """Vertices of joint events, rising, and both event paths of each, the lower number first."""
    first, corner = plane.first.astype(np.int64), plane.corner.astype(np.int64)
    ahead = event_paths(plane.events)
    n_edges = np.diff(first)
    before = np.arange(len(corner)) - 1
    starts = first[:-1][n_edges > 0]
    before[starts] = starts + n_edges[n_edges > 0] - 1
    behind = ahead[before]
    # Both ends of one dual variable meet on an axis only.
    is_joint = (ahead >= 0) & (behind >= 0) & (ahead // 2 != behind // 2)
    found = np.column_stack([corner, np.minimum(ahead, behind), np.maximum(ahead, behind)])[is_joint]
    found = np.unique(found, axis=0)
    return found[:, 0], found[:, 1:]


def layers(plane: Any) -> np.ndarray:
    """Layer of each facet, where a layer also reaches across the vertices of joint events."""
    first, corner = plane.first.astype(np.int64), plane.corner.astype(np.int64)
    beyond = plane.beyond.astype(np.int64)
    facet = np.repeat(np.arange(len(first) - 1), np.diff(first))
    is_joint = np.zeros(len(plane.vertices), dtype=bool)
    is_joint[joint_events(plane)[0]] = True
    touching = np.flatnonzero(is_joint[corner])
    touching = touching[np.argsort(corner[touching], kind="stable")]
    around = np.searchsorted(corner[touching], np.arange(len(is_joint) + 1))
    layer = np.full(len(first) - 1, -1, dtype=np.int64)
    layer[0], frontier, number = 0, np.array([0]), 0
    while len(frontier):
        number += 1
        edges = _ranges(first[frontier], first[frontier + 1])
        over = beyond[edges]
        at = corner[edges]
        at = np.unique(at[is_joint[at]])
        across = facet[touching[_ranges(around[at], around[at + 1])]]
        reached = np.unique(np.concatenate([over[over < plane.OPEN], across]))
        frontier = reached[layer[reached] < 0]
        layer[frontier] = number
    return layer


def _ranges(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """All numbers from each start to before its stop, one range after the other."""
    counts = stop - start
    return np.repeat(stop - np.cumsum(counts), counts) + np.arange(counts.sum())
