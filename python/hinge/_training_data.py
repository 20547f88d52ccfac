"""What is kept of the data that a model was fitted on: sizes, counts of the classes, a fingerprint, versions.

The fingerprint answers "was it these rows?" years later. It is made while fitting, since nobody has the rows at hand
when a model is saved, and must cost next to nothing: of arrays longer than 131,072 items only so many are read, in
blocks that lie evenly from the first to the last. A change between the blocks goes unnoticed; another number of rows,
columns or entries, another order of the rows, and other labels in a block do not. float32 and float64, 32-bit and
64-bit indices of the same values are the same.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn

from hinge import _native

if TYPE_CHECKING:
    from hinge.blocks import BlockStore


def of_rows(X: Any, ids: np.ndarray, n_classes: int, positive: tuple[np.ndarray, np.ndarray] | None) -> dict[str, Any]:
    """What is kept of checked rows.

    Parameters
    ----------
    X : csr_matrix or ndarray of shape (n_samples, n_features)
    ids : ndarray of shape (n_samples,)
        Number of each row's class; empty where there are labels.
    n_classes : int
    positive : tuple of ndarray or None
        Where the positive rows of each label begin, and these rows.

    Returns
    -------
    dict
        Plain values: ``n_rows``, ``n_features``, ``n_entries`` (those that are stored), ``class_counts`` (positive rows
        of each label), ``fingerprint``, ``made_with``.
    """
    arrays = (X.indptr, X.indices, X.data) if sp.issparse(X) else (X,)
    counts = np.bincount(ids, minlength=n_classes) if positive is None else np.diff(positive[0])
    return {
        "n_rows": X.shape[0],
        "n_features": X.shape[1],
        "n_entries": int(X.nnz) if sp.issparse(X) else X.size,
        "class_counts": counts.tolist(),
        "fingerprint": _fingerprint(X.shape, (*arrays, *((ids,) if positive is None else positive))),
        "made_with": versions(),
    }


def of_store(store: BlockStore) -> dict[str, Any]:
    """The same of a store, which has a fingerprint of its own."""
    facts = store.info()
    return {
        "n_rows": store.n_samples,
        "n_features": store.n_features,
        "n_entries": store.nnz,
        "class_counts": [int(count) for count in facts["class_rows"]],
        "fingerprint": f"store:{facts['fingerprint']}",
        "source": str(facts["source"]),
        "made_with": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of what fits."""
    return {
        "hinge": _native.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def _fingerprint(shape: tuple[int, ...], arrays: tuple[np.ndarray, ...]) -> str:
    flat = [np.require(array, requirements=["C", "A"]).reshape(-1) for array in arrays]
    return f"xxh3:{_native.fingerprint(list(shape), flat):016x}"
