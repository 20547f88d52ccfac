"""The checked input of a path in two costs: what every query needs again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hinge import _checks, _validate


@dataclass(frozen=True, eq=False)
class CostProblem:
    """Rows, labels and the constant column of a path.

    Attributes
    ----------
    X : csr_matrix or ndarray of shape (n_samples, n_features)
        Features, duplicates summed.
    signs : ndarray of shape (n_samples,), float64
        -1 for the first class, +1 for the second.
    classes : ndarray of shape (2,)
        Sorted labels.
    intercept_scaling : float or None
        Height of the constant column, None for no intercept.
    """

    X: Any
    signs: np.ndarray
    classes: np.ndarray
    intercept_scaling: float | None

    @classmethod
    def of(cls, X: Any, y: Any, intercept_scaling: float | None) -> Self:
        """Check the input."""
        if intercept_scaling is not None:
            _checks.positive("intercept_scaling", intercept_scaling)
            intercept_scaling = float(intercept_scaling)
        X, y = _validate.fit_data(X, y)
        X = _validate.plain_data(X)
        classes, ids = _validate.encode(y)
        if len(classes) > 2:
            raise ValueError(f"y holds {len(classes)} classes, the path in two costs needs exactly 2")
        return cls(X, np.where(ids == 1, 1.0, -1.0), classes, intercept_scaling)

    @property
    def matrix(self) -> Any:
        """X as the native module takes it."""
        return _validate.native_matrix(self.X)

    @property
    def bias(self) -> float:
        """Height of the constant column, 0 for none."""
        return self.intercept_scaling or 0.0

    @property
    def native(self) -> tuple[Any, np.ndarray, float]:
        """The first arguments of every native call."""
        return self.matrix, self.signs, self.bias

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays that :meth:`from_arrays` makes the same problem of."""
        if self.classes.dtype.kind == "O":
            raise ValueError("class labels of dtype object cannot be saved, use numbers or strings")
        X = self.X
        rows = (
            {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
            if sp.issparse(X)
            else {"dense": X}
        )
        return {"signs": self.signs, "classes": self.classes, "bias": np.array(self.bias), **rows}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """The problem of such arrays, which come from a file; a ValueError if they are none."""
        if "dense" in arrays:
            X: Any = arrays["dense"]
        else:
            X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        signs, classes, bias = arrays["signs"], arrays["classes"], float(arrays["bias"])
        if signs.shape != X.shape[:1] or signs.dtype != np.float64 or not np.array_equal(np.unique(signs), [-1, 1]):
            raise ValueError(f"signs must be {X.shape[0]} numbers -1 and 1, both of them")
        if classes.shape != (2,) or not 0 <= bias < np.inf:
            raise ValueError(f"expected 2 classes and a finite bias of at least 0, got {classes!r} and {bias}")
        return cls(_validate.plain_data(X), signs, classes, bias or None)

    def decision(self, X: Any) -> Any:
        """X for prediction, with the number of features checked."""
        X = _validate.plain_data(X)
        if X.shape[1] != self.X.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features, the path was made from {self.X.shape[1]}")
        return X


def costs(c_pos: Any, c_neg: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    """Pairs of costs as an array of shape (n, 2), and the shape that the caller gave."""
    pos, neg = np.broadcast_arrays(np.asarray(c_pos, dtype=np.float64), np.asarray(c_neg, dtype=np.float64))
    points = np.column_stack([pos.ravel(), neg.ravel()])
    bad = ~(np.isfinite(points) & (points >= 0)).all(axis=1)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise ValueError(f"costs must be finite and at least 0, got ({points[at, 0]}, {points[at, 1]})")
    return points, pos.shape


class Answers:
    """What any source of exact solutions offers; subclasses give ``problem`` and ``_answers``."""

    problem: CostProblem
    _answers: Callable[[np.ndarray], dict[str, np.ndarray]]

    def coef(self, c_pos: Any, c_neg: Any) -> np.ndarray:
        """Exact weights.

        Parameters
        ----------
        c_pos, c_neg : float or array-like
            Cost of the second and of the first class; arrays are broadcast against each other.

        Returns
        -------
        ndarray of shape (..., n_features), float64

        Raises
        ------
        ValueError
            A pair of costs is negative, not finite, or not in the explored part.
        """
        points, shape = costs(c_pos, c_neg)
        return self._answers(points)["coef"].reshape(*shape, -1)

    def intercept(self, c_pos: Any, c_neg: Any) -> np.ndarray:
        """Exact intercepts, shape of the broadcast costs; parameters and errors as in :meth:`coef`."""
        points, shape = costs(c_pos, c_neg)
        return self._answers(points)["intercept"].reshape(shape)

    def alpha(self, c_pos: Any, c_neg: Any) -> np.ndarray:
        """Exact dual variables, shape (..., n_samples); parameters and errors as in :meth:`coef`.

        Where they are not unique (dependent rows on the margin) these are one choice.
        """
        points, shape = costs(c_pos, c_neg)
        return self._answers(points)["alpha"].reshape(*shape, -1)

    def certificate(self, c_pos: Any, c_neg: Any) -> dict[str, np.ndarray]:
        """Primal value, dual value and relative gap on the data as given, of the shape of the broadcast costs."""
        points, shape = costs(c_pos, c_neg)
        result = self._answers(points)
        return {name: result[name].reshape(shape) for name in ("primal", "dual", "relative_gap")}

    def decision_function(self, X: Any, c_pos: Any, c_neg: Any) -> np.ndarray:
        """Decision values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        c_pos, c_neg : float or array-like
            As in :meth:`coef`.

        Returns
        -------
        ndarray of shape (..., n_rows), float64
            Positive for the second class.
        """
        X = self.problem.decision(X)
        points, shape = costs(c_pos, c_neg)
        result = self._answers(points)
        values = np.asarray(X @ result["coef"].T).T + result["intercept"][:, None]
        return values.reshape(*shape, -1)

    def predict(self, X: Any, c_pos: Any, c_neg: Any) -> np.ndarray:
        """Class labels, shape (..., n_rows); parameters as in :meth:`decision_function`."""
        return self.problem.classes[(self.decision_function(X, c_pos, c_neg) > 0).astype(np.intp)]

    def estimator(self, c_pos: float, c_neg: float) -> Any:
        """A fitted :class:`hinge.LinearSVC` with this solution and its certificate.

        Its parameters fit the same model again: ``C`` is ``c_neg`` and ``class_weight`` holds the ratio.
        """
        from hinge._certificate import Certificate
        from hinge.svm import LinearSVC

        points, shape = costs(c_pos, c_neg)
        if shape != () or (points <= 0).any():
            raise ValueError(f"an estimator needs two numbers above 0, got ({c_pos!r}, {c_neg!r})")
        result, problem = self._answers(points), self.problem
        first, second = (label.item() if isinstance(label, np.generic) else label for label in problem.classes)
        model = LinearSVC(
            C=float(points[0, 1]),
            loss="hinge",
            fit_intercept=problem.intercept_scaling is not None,
            intercept_scaling=problem.intercept_scaling,
            class_weight={first: 1.0, second: float(points[0, 0] / points[0, 1])},
            tol=1e-9,
        )
        model.classes_ = problem.classes
        model.coef_ = result["coef"]
        model.intercept_ = result["intercept"]
        model.n_iter_ = result["steps"].astype(np.int64)
        model.n_features_in_ = problem.X.shape[1]
        model.presolve_ = None
        gap = result["relative_gap"]
        model.certificate_ = Certificate(
            primal=result["primal"],
            dual=result["dual"],
            relative_gap=gap,
            status=("converged" if gap[0] <= 1e-9 else "stalled",),
            solver=("cost_path",),
            passes=np.zeros(1),
        )
        return model


class Explored(Answers):
    """Answers of an explored plane, and what its exploration found."""

    stats: dict[str, Any]

    @property
    def n_edges(self) -> int:
        """Number of edges, each counted once."""
        return int(self.stats["n_edges"])

    @property
    def ended_by(self) -> str:
        """How the exploration ended."""
        return str(self.stats["end"])

    @property
    def is_partial(self) -> bool:
        """Whether a part of the plane is missing."""
        return self.ended_by != "complete"

    @property
    def special(self) -> np.ndarray:
        """Vertices around which facets do not close in rounding."""
        return self.stats["special"]
