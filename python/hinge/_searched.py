"""What the estimators that choose their own ``C`` share once they are fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hinge import _scoring
from hinge._csearch import CSearch
from hinge._linear import LinearClassifier


class SearchedClassifier(LinearClassifier):
    """A classifier that was fitted at the ``C`` chosen by a search."""

    search_: CSearch

    @property
    def Cs_(self) -> np.ndarray:
        """Values of C that were visited, shape (n_Cs,): ``search_.Cs`` by scikit-learn's name."""
        return self.search_.Cs

    @property
    def scores_(self) -> dict[Any, np.ndarray]:
        """Scores by scikit-learn's name: for each class, the second of two only, an array of shape (n_folds, n_Cs).

        All classes have the same array, the transposed ``search_.scores``.
        """
        classes = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return dict.fromkeys(classes, self.search_.scores.T)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Score by ``scoring``, by the scorer that chose C where there are several; accuracy if ``scoring`` is None.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
        y : array-like of shape (n_samples,), default=None
            Labels; None for a store, which has its own.
        sample_weight : array-like of shape (n_samples,), default=None
            None for a store takes its own weights, where the scorer takes any.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            ``sample_weight`` for a scorer that takes none; unusable input.
        sklearn.exceptions.NotFittedError
            The model is not fitted.
        BlockFileError
            A damaged store.
        """
        if self.scoring is None:
            return super().score(X, y, sample_weight)
        check_is_fitted(self)
        scorer = _scoring.chosen_scorer(self.scoring, self.search_.scorer)
        if sample_weight is not None and not _scoring.takes_weights(scorer):
            raise ValueError(f"sample_weight must be None: the scorer {self.search_.scorer!r} takes no weights")
        y, weight = self._labelled(X, y, sample_weight)
        weights = {"sample_weight": weight} if weight is not None and _scoring.takes_weights(scorer) else {}
        return _scoring.one_number(self.search_.scorer, scorer(self, X, y, **weights))
