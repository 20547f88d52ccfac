"""The rules that choose ``C`` from the scores of a search."""

from __future__ import annotations

import numpy as np

CHOICES = ("best", "one_se")


def std_error(scores: np.ndarray, repeats: float) -> np.ndarray:
    """Standard error of the mean score at each C; NaN for a single fold.

    Parameters
    ----------
    scores : ndarray of shape (n_Cs, n_folds)
        Scores of each fold.
    repeats : float
        How often a held-out row is held out, on average. Holding the same rows out again in other splits averages over
        the choice of the split, but adds no rows: K folds repeated R times count as K.
    """
    n_Cs, n_folds = scores.shape
    if n_folds < 2:
        return np.full(n_Cs, np.nan)
    return scores.std(axis=1, ddof=1) / np.sqrt(n_folds / repeats)


def best_index(mean: np.ndarray) -> int:
    """Position of the largest number that is not NaN, the first among equals."""
    if np.isnan(mean).all():
        raise ValueError("the mean score is NaN at every C: the scorer is undefined on at least one held-out part")
    return int(np.nanargmax(mean))


def one_se_index(mean: np.ndarray, std_error: np.ndarray) -> int:
    """First position whose mean is within one standard error of the best."""
    best = best_index(mean)
    if np.isnan(std_error[best]):
        raise ValueError("a single fold has no standard error: choose by the best score, or use more folds")
    return int(np.flatnonzero(mean >= mean[best] - std_error[best])[0])
