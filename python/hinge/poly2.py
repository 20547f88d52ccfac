"""Degree-2 polynomial features: the map as a transformer, and what the estimators share of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_array, check_is_fitted, validate_data

from hinge import _native, _sparse, _threads, _validate
from hinge._declared import checked, declared, keep
from hinge._parameters import POLY2_MAP
from hinge._versioned import Versioned


@dataclass(frozen=True)
class PairUsage:
    """How full the weights of products are.

    Attributes
    ----------
    n_weights : int
        Weights of products (in the exact layout, of linear terms and squares too).
    n_used : int
        Weights that some row uses.
    n_pairs : float
        Different pairs of features that occur together in some row; estimated by linear counting where they are hashed.
    collision_rate : float
        Share of these pairs that do not have their weight for themselves; 0 in the exact layout.
    """

    n_weights: int
    n_used: int
    n_pairs: float
    collision_rate: float


def native_map(given: Any, *, has_constant: bool) -> dict[str, Any]:
    """The native spelling of a map, from checked parameters."""
    return {
        "gamma": given.gamma,
        "coef0": given.coef0,
        "has_constant": has_constant and given.gamma is not None,
        "bits": given.hash_bits,
        "seed": given.random_state,
    }


def n_weights(n_features: int, native: dict[str, Any] | None) -> int:
    """Weights of a binary problem: one for each feature, or for each product under a map."""
    return n_features if native is None else _native.map_shape(n_features, native)[0]


def with_sorted_rows(X: Any) -> Any:
    """X with the columns of each row in rising order; a copy if they are not."""
    _sparse.check(X)
    if sp.issparse(X) and not X.has_sorted_indices:
        X = X.copy()
        X.sort_indices()
    return X


def pair_table(n: int, native: dict[str, Any], coef: np.ndarray, pairs: Any) -> np.ndarray:
    """A structured array of ``i``, ``j``, ``weight`` for one row of weights."""
    if pairs is None:
        if not _native.map_shape(n, native)[1]:
            raise ValueError("the pairs are hashed: pass those to look up as pairs, an array of shape (n_pairs, 2)")
        first, second = np.triu_indices(n)
    else:
        pairs = np.atleast_2d(np.asarray(pairs))
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise ValueError(f"pairs must be integers of shape (n_pairs, 2), got shape {pairs.shape} of {pairs.dtype}")
        first, second = pairs.min(axis=1), pairs.max(axis=1)
    first, second = (np.ascontiguousarray(column, dtype=np.int64) for column in (first, second))
    positions, factors = _native.map_positions(n, native, first, second)
    table = np.empty(len(first), dtype=[("i", np.int64), ("j", np.int64), ("weight", np.float64)])
    table["i"], table["j"], table["weight"] = first, second, factors * coef[positions]
    return table


@declared(POLY2_MAP)
class Poly2Map(Versioned, TransformerMixin, BaseEstimator):
    r"""Degree-2 polynomial features, written out.

    The map that the estimators apply with ``degree=2`` without writing anything out; for other models, or to look at.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    n_features_in_ : int
        Columns of the rows.
    n_features_out_ : int
        Columns of the map.
    is_exact_ : bool
        Whether each pair has a column of its own.

    References
    ----------
    Chang, Hsieh, Chang, Ringgaard, Lin: Training and Testing Low-degree Polynomial Data Mappings via Linear SVM,
    JMLR 11, 2010.

    Schmidt-Thieme: Learning SVMs / Primal Methods, lecture, University of Hildesheim: both forms of the map.

    Examples
    --------
    >>> from hinge import Poly2Map
    >>> Poly2Map().fit_transform([[2.0, 3.0]]).toarray()
    array([[2., 3., 4., 6., 9.]])
    >>> Poly2Map(gamma=1.0).fit_transform([[2.0, 3.0]]).toarray().round(2)
    array([[2.83, 4.24, 4.  , 8.49, 9.  , 1.  ]])
    """

    n_features_in_: int

    def __init__(
        self, gamma: float | None = None, coef0: float = 1.0, *, hash_bits: int = 22, random_state: Any = None
    ):
        keep(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Poly2Map:
        """Learn the number of features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        _sparse.check(X)
        features = check_array(X, estimator=self, input_name="X", accept_sparse="csr", accept_large_sparse=True)
        native = native_map(checked(self, vars(self)), has_constant=self.coef0 != 0)
        self.n_features_out_, self.is_exact_ = _native.map_shape(features.shape[1], native)
        validate_data(self, X, skip_check_array=True)
        self._native = native
        return self

    def transform(self, X: Any) -> sp.csr_array:
        """Write out the mapped rows, in float64.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        csr_array of shape (n_samples, n_features_out)
            l(l+3)/2 entries (and the constant) for a row of l.
        """
        check_is_fitted(self)
        X = with_sorted_rows(_validate.predict_data(self, X))
        indptr, indices, data = _validate.call_native(lambda matrix: _native.map_rows(matrix, self._native), X)
        mapped = sp.csr_array((data, indices, indptr), shape=(X.shape[0], self.n_features_out_))
        mapped.sum_duplicates()
        return mapped

    def usage(self, X: Any, n_jobs: int | None = None) -> PairUsage:
        """How many pairs the rows have, and how often these share a hashed column.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_jobs : int, default=None
            Threads; None means all usable cores.

        Returns
        -------
        PairUsage
        """
        check_is_fitted(self)
        X = with_sorted_rows(_validate.predict_data(self, X))
        threads = _threads.threads(n_jobs)
        return PairUsage(*_validate.call_native(lambda m: _native.map_usage(m, self._native, threads), X))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features; None for those of the fit, or "x0", "x1", ...

        Returns
        -------
        ndarray of str
            "a", "a^2", "a b", "1", and "hash 0", "hash 1", ... for columns that pairs share.
        """
        check_is_fitted(self)
        names = [str(name) for name in _check_feature_names_in(self, input_features)]
        squares = [f"{name}^2" for name in names]
        if self.is_exact_:
            pairs = [
                squares[j] if j == k else f"{names[j]} {names[k]}"
                for j in range(len(names))
                for k in range(j, len(names))
            ]
        else:
            pairs = [*squares, *(f"hash {k}" for k in range(2**self.hash_bits))]
        constant = ["1"] if len(names) + len(pairs) < self.n_features_out_ else []
        return np.array([*names, *pairs, *constant], dtype=object)
