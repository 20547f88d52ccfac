"""What the estimators that choose their own ``C`` share once they are fitted."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.metrics import get_scorer
from sklearn.utils.validation import check_is_fitted

from hinge import _scoring
from hinge._callbacks import with_callbacks
from hinge._csearch import CSearch
from hinge._linear import LinearClassifier
from hinge._problem import Problem
from hinge._raises import raises_as_predictions
from hinge.select import search_and_refit


class SearchedClassifier(LinearClassifier):
    """A classifier that was fitted at the ``C`` chosen by a search."""

    search_: CSearch

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, **params: Any) -> Self:
        """Choose C, then fit on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), BlockStore, or EncodedStream
            A store holds its labels and weights, a stream may: y and sample_weight are then None.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Used in training, and in the score where the scorer takes weights.
        groups : array-like of shape (n_samples,), default=None
            Passed to the splitter; rows of one group stay together where ``cv`` is a number.
        params : dict
            Metadata for the scorer, of which none but weights are passed on: refused.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Unusable parameters or input; the message names the value, its place and what would be accepted.
        BlockFileError
            A damaged store.
        TimeoutError
            ``time_limit`` passed before the first value of C was finished.
        KeyboardInterrupt
            Ctrl-C; the estimator is left as it was.

        Warns
        -----
        PartialSearchWarning
            ``time_limit`` ended the search: the fit is at the best C that was finished.
        NoSkillWarning
            The model chosen by accuracy is right no more often than the most frequent class.
        ConvergenceWarning
            ``max_iter`` was not enough for ``tol`` in the final fit.
        UserWarning
            A class has fewer rows than there are folds.
        """
        _refuse(params, "fit")
        return search_and_refit(self, X, y, sample_weight, groups)

    def _check_decisions(self) -> None:
        """Check the parameters that use out-of-fold decision values, as far as they go without data."""

    def _needs_decisions(self) -> bool:
        """Whether out-of-fold decision values are used."""
        return False

    def _check_problem(self, problem: Problem, is_held_out: np.ndarray) -> None:
        """Refuse data for which they cannot be used."""

    def _use_decisions(self, problem: Problem, found: CSearch) -> None:
        """Use those of the chosen C."""

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

    @raises_as_predictions
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """Score by ``scoring``, by the scorer that chose C where there are several; accuracy if ``scoring`` is None.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore
        y : array-like of shape (n_samples,), default=None
            Labels; None for a store, which has its own.
        sample_weight : array-like of shape (n_samples,), default=None
            None for a store takes its own weights, where the scorer takes any. An error for one that takes none.
        params : dict
            Metadata for the scorer, of which none but weights are passed on: refused.

        Returns
        -------
        float
        """
        _refuse(params, "score")
        if self.scoring is None:
            return super().score(X, y, sample_weight)
        check_is_fitted(self)
        scorer = self._get_scorer()
        if sample_weight is not None and _scoring.refuses_weights(scorer):
            raise TypeError(
                f"{type(self).__name__}.score got unexpected argument(s) {{'sample_weight'}}, which are not routed to "
                "any object."
            )
        if sample_weight is not None and not _scoring.takes_weights(scorer):
            raise ValueError(f"sample_weight must be None: the scorer {self.search_.scorer!r} takes no weights")
        y, weight = self._labelled(X, y, sample_weight)
        weights = {"sample_weight": weight} if weight is not None and _scoring.takes_weights(scorer) else {}
        return _scoring.one_number(self.search_.scorer, scorer(self, X, y, **weights))

    def _get_scorer(self) -> Any:
        """The scorer that chooses C."""
        if self.scoring is None:
            return get_scorer("accuracy")
        name = self.search_.scorer if hasattr(self, "search_") else self.choose_by
        return _scoring.chosen_scorer(self.scoring, name)


def _refuse(params: dict[str, Any], method: str) -> None:
    """Refuse metadata that nothing takes."""
    if not params:
        return
    if not get_config()["enable_metadata_routing"]:
        raise ValueError(f"Passing {sorted(params)} to {method} is only supported if enable_metadata_routing=True")
    raise TypeError(f"{method} got unexpected argument(s) {set(params)}, which are not routed to any object.")
