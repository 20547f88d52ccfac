"""One module per package that fits linear classifiers, all with the same face, for the worker process.

    VERSION                                        of the package
    convert(X, y) -> data                          the package's own form of a float32 CSR matrix and its labels
    train(data, loss, solver, C, tol, threads) -> Trained

No intercept; ``tol`` is the package's own tolerance, and its limit of iterations is as high as it lets one set it.
A module imports nothing but its package, NumPy and SciPy: it may run under another Python than the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MAX_ITER = 100_000


@dataclass(frozen=True)
class Trained:
    """Weights of shape (1 or n_classes, n_features), turned to the higher class of two, and what the fit says."""

    W: np.ndarray
    status: str = ""
    # The relative gap that the fit claims to be within.
    claimed: float | None = None
