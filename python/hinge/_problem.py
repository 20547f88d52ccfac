"""The checked input of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hinge import _blocks, _validate
from hinge.blocks import BlockStore


@dataclass(frozen=True)
class StoreRows:
    """Rows in a store.

    Attributes
    ----------
    store : BlockStore
    factor : ndarray of shape (n_classes,)
        Weight of each class.
    blocks : dict
        How to train on blocks.
    """

    store: BlockStore
    factor: np.ndarray
    blocks: dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """Rows, classes and weights of a search, checked once.

    Attributes
    ----------
    X : csr_matrix or ndarray of shape (n_samples, n_features)
        Features; without columns where the rows are in a store.
    y : ndarray of shape (n_samples,)
        Labels as the user gave them.
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    ids : ndarray of shape (n_samples,), uint32
        Number of each row's class.
    weight : ndarray of shape (n_samples,), float64
        Class weight times sample weight, for training.
    sample_weight : ndarray of shape (n_samples,), float64, or None
        For the score.
    store : StoreRows or None
        The rows, where they are in a store.
    """

    X: Any
    y: np.ndarray
    classes: np.ndarray
    ids: np.ndarray
    weight: np.ndarray
    sample_weight: np.ndarray | None
    store: StoreRows | None = None

    @classmethod
    def of(cls, X: Any, y: np.ndarray, class_weight: Any, sample_weight: Any) -> Self:
        """The problem of validated X and y."""
        classes, ids = _validate.encode(y)
        weight = _validate.row_weights(X, classes, ids, class_weight, sample_weight)
        plain = None if sample_weight is None else _validate.row_weights(X, classes, ids, None, sample_weight)
        return cls(X, y, classes, ids, weight, plain)

    @classmethod
    def of_store(cls, store: BlockStore, class_weight: Any, blocks: dict[str, Any], threads: int) -> Self:
        """The problem of a store; its labels and weights are read into memory."""
        factor = _blocks.class_factors(store, class_weight)
        ids, weight = store._reader.facts(threads)
        plain = weight if store._facts["has_weights"] else None
        X = np.empty((len(ids), 0))
        return cls(
            X, store.classes[ids], store.classes, ids, factor[ids] * weight, plain, StoreRows(store, factor, blocks)
        )

    @property
    def n_features(self) -> int:
        """Number of features, wherever the rows are."""
        return self.X.shape[1] if self.store is None else self.store.store.n_features

    @property
    def n_problems(self) -> int:
        """Number of binary problems: 1 for two classes, else one per class."""
        return 1 if len(self.classes) == 2 else len(self.classes)
