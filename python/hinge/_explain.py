"""Which features a linear model goes by, in general and for one row. Nothing here needs more than NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def top_features(weights: np.ndarray, names: Sequence[Any] | None, k: int) -> list[tuple[Any, float]]:
    """The ``k`` largest weights of a vector by absolute value, each with the name or number of its feature.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
    names : sequence of str or None
    k : int

    Returns
    -------
    list of (name or number, weight)
        Largest first, the first feature among equals; weights of 0 are left out.
    """
    k = min(k, len(weights))
    largest = np.argpartition(-np.abs(weights), k - 1)[:k] if k < len(weights) else np.arange(len(weights))
    # Those that equal the smallest of them are as good: the first ones count.
    least = np.abs(weights[largest]).min(initial=np.inf)
    among = np.flatnonzero((np.abs(weights) >= least) & (weights != 0.0))
    order = among[np.argsort(-np.abs(weights[among]), kind="stable")][:k]
    return [(int(j) if names is None else str(names[j]), float(weights[j])) for j in order]


def contributions(
    entries: Sequence[tuple[str, str, int, float]], weights: np.ndarray, k: int
) -> list[tuple[str, float]]:
    """What each name in a row adds to a decision value, best first.

    Parameters
    ----------
    entries : sequence of (column, name, index, value)
        As of an encoder; several names may share a column of the result, and then its contribution.
    weights : ndarray of shape (n_features,)
    k : int

    Returns
    -------
    list of (names, contribution)
        ``column=name``, those that share a hashed column joined by `` + ``; of most effect first.
    """
    found: dict[int, tuple[list[str], dict[str, float]]] = {}
    for column, name, index, value in entries:
        names, values = found.setdefault(index, ([], {}))
        names.append(f"{column}={name}")
        values[column] = value  # terms of one column have their common value each, columns add up
    named = [
        (" + ".join(names), float(weights[index]) * sum(values.values())) for index, (names, values) in found.items()
    ]
    return sorted(named, key=lambda item: -abs(item[1]))[:k]
