"""Products of dense rows with dense weights of several vectors, for which there is BLAS in NumPy.

Their last bits depend on the batch, as everywhere else. 10,000 rows of 100 columns and 50 vectors took 3 ms there and
29 ms in the native module.
"""

from __future__ import annotations

import numpy as np

LEAST_VECTORS = 4
"""Vectors from which on BLAS takes dense batches: 3 took 1.4 ms here and 1.6 there, 10 took 9.1 and 2.0."""

LEAST_PRODUCTS = 1 << 20
"""And products, which are about a millisecond."""

BLOCK_PRODUCTS = 1 << 30
"""Products between two looks at signals: a tenth of a second."""


def suits_blas(X: np.ndarray, coef: np.ndarray) -> bool:
    """Whether BLAS multiplies both as they lie, and there is enough to multiply."""
    is_known = X.dtype == coef.dtype and X.dtype.char in "fd" and coef.flags.forc and X.shape[1] == coef.shape[1]
    return is_known and len(coef) >= LEAST_VECTORS and X.size * len(coef) >= LEAST_PRODUCTS


def dense_product(X: np.ndarray, coef: np.ndarray, intercept: np.ndarray, out: np.ndarray) -> None:
    """``X @ coef.T + intercept`` in float64, a block of rows at a time."""
    step = max(1, BLOCK_PRODUCTS // max(1, coef.size))
    for start in range(0, len(X), step):
        out[start : start + step] = X[start : start + step] @ coef.T
    out += intercept
