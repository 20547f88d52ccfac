"""The methods of classifiers that know probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge._available import available_unless
from hinge._linear import LinearClassifier
from hinge._raises import raises_as_predictions


class ProbabilisticClassifier(LinearClassifier):
    """A linear classifier with probabilities; subclasses say how they follow from decision values."""

    def _no_probabilities(self) -> str | None:
        """Why there are none, as the end of a sentence; None where there are."""
        return None

    def _probabilities(self, values: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _log_probabilities(self, values: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    @available_unless(lambda estimator: estimator._no_probabilities())
    @raises_as_predictions
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class.

        Those of logistic regression for more than two classes are the softmax of the decision values, or one-vs-rest
        probabilities divided by their sum with ``multi_class="ovr"``; those of labels stand each by itself. Those of a
        :class:`hinge.LinearSVCCV` need its parameter ``probability``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        return self._probabilities(self.decision_function(X))

    @available_unless(lambda estimator: estimator._no_probabilities())
    @raises_as_predictions
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockStore

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            ``-inf`` for a probability of 0.
        """
        return self._log_probabilities(self.decision_function(X))
