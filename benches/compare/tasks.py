"""What the bench of fits solves: a set with all its classes, and the objective that everybody is judged by.

Of two classes there is one problem, of more there is one against the rest for each; the objective is the sum of

    1/2 |w_k|^2 + C sum_i xi(y_ik w_k . x_i)

over the problems, in float64 from the weights alone. Names are those of real sets, ``zipf-1e6`` for synthetic
documents of so many nonzeros, ``generated`` and ``generated3`` for small random sets of two and three classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import problems
import scipy.sparse as sp
from zipf import zipf


@dataclass(frozen=True)
class Task:
    """A matrix as users have it, and labels: -1/+1, or 0, 1, ... of more classes."""

    name: str
    X: sp.csr_matrix
    y: np.ndarray

    @cached_property
    def exact(self) -> sp.csr_matrix:
        """The matrix in float64."""
        return self.X.astype(np.float64)

    @cached_property
    def classes(self) -> np.ndarray:
        """The labels that stand against the rest: the higher one of two, or all."""
        classes = np.unique(self.y)
        return classes[1:] if len(classes) == 2 else classes

    def objective(self, loss: str, C: float, W: np.ndarray) -> float:
        """Sum of the primal values; W has a row for each of ``classes``."""
        total = 0.0
        for w, label in zip(W, self.classes, strict=True):
            margins = np.where(self.y == label, 1.0, -1.0) * (self.exact @ w)
            total += 0.5 * float(w @ w) + C * float(problems.LOSSES[loss](margins).sum())
        return total


def needs_data(name: str) -> bool:
    """Whether the set of this name is read, not generated."""
    return not name.startswith(("zipf-", "generated"))


def load(name: str) -> Task:
    """The task of this name: the training part of a real set, or a synthetic one."""
    if name.startswith("zipf-"):
        return Task(name, *zipf(float(name.removeprefix("zipf-"))))
    if name.startswith("generated"):
        return _generated(name, int(name.removeprefix("generated") or 2))
    X, y = problems.load_labels(name)
    return Task(name, X, y.astype(np.float64))


def _generated(name: str, n_classes: int) -> Task:
    random = np.random.default_rng(0)
    X = sp.random(300, 40, density=0.2, random_state=random, data_rvs=random.standard_normal)
    values = X @ random.standard_normal((40, n_classes)) + random.standard_normal((300, n_classes))
    y = values.argmax(axis=1).astype(np.float64)
    return Task(name, sp.csr_matrix(X.astype(np.float32)), 2.0 * y - 1.0 if n_classes == 2 else y)
