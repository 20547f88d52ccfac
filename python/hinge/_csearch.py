"""The result of a search: its table, and the choice made from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from hinge import _checks, _table
from hinge._choice import CHOICES, best_index, one_se_index, std_error

ENDS = frozenset({"unchanged", "C_max", "Cs", "score"})
"""How a search comes to its end; anything else makes it partial."""


class PartialSearchWarning(UserWarning):
    """A search was stopped before its end: its choice is the best among the values of C that were finished."""


class NoSkillWarning(UserWarning):
    """The chosen model is right no more often than the answer that is always the most frequent class."""


@dataclass(frozen=True, eq=False, repr=False)
class CSearch:
    """The table of a search for ``C``, one entry (or row) per value of ``C``, and the choice.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,), float64
        Values of C, rising.
    all_scores : dict of str to ndarray of shape (n_Cs, n_folds), float64
        Score on the held-out part of each fold, for every scorer.
    scorer : str
        The scorer that chooses.
    choose : {"best", "one_se"}
        The rule of choice: the best mean score, or the smallest C whose mean is within one standard error of it.
    objective : ndarray of shape (n_Cs, n_folds, n_problems), float64
        Objective reached on the training part of each fold, for each binary problem; one where all classes are one
        problem.
    seconds : ndarray of shape (n_Cs,), float64
        Wall time of the fits.
    passes : ndarray of shape (n_Cs,), float64
        Readings of the training part, summed over folds and classes.
    n_iter : ndarray of shape (n_Cs,), int64
        Newton steps or epochs, summed over folds and classes.
    n_inner : ndarray of shape (n_Cs,), int64
        Steps of conjugate gradient within Newton steps, summed over folds and classes.
    unchanged : ndarray of shape (n_Cs,), bool
        No fold's solution changed.
    unchanged_until : ndarray of shape (n_Cs,), float64
        Largest C for which all solutions at this C remain accurate enough to be kept as they are.
    converged : ndarray of shape (n_Cs,), bool
        Every fit reached the tolerance of the search.
    replayed : ndarray of shape (n_Cs,), bool
        Taken from the journal of an earlier run.
    stopped_by : str
        ``"unchanged"`` (by the stop rule: solutions change no more), ``"C_max"``, ``"Cs"`` (all given values are done),
        ``"score"`` (by ``max_drop``), ``"time_limit"``, ``"interrupt"`` (Ctrl-C) or ``"callback"`` (a scikit-learn
        callback asked for it).
    repeats : float
        How often a held-out row is held out, on average: 1 for a partition, R for R repetitions of one.
    decisions : ndarray of shape (n_samples,) or (n_samples, n_classes), float64, or None
        Out-of-fold decision values at the chosen C, where they were asked for; the mean over the folds that hold a
        row out, NaN for rows never held out.
    l1_ratio : float, or None
        Share of the absolute values in the penalty, where one was asked for.
    n_nonzero : ndarray of shape (n_Cs, n_folds), int64, or None
        Nonzero weights of each fold, over all binary problems, with a penalty other than the squares.
    coefs : tuple of csr_matrix of shape (n_folds * n_problems, n_features), or None
        With ``keep_coefs``, for each C the weights of all folds, the problems of the first fold first. With
        ``degree=2`` a column for each weight of features and pairs.
    grid : tuple of CSearch
        The tables of all shares, in the order given, where several were searched: this is the one with the best score.
    """

    Cs: np.ndarray
    all_scores: dict[str, np.ndarray]
    scorer: str
    choose: str
    objective: np.ndarray
    seconds: np.ndarray
    passes: np.ndarray
    n_iter: np.ndarray
    n_inner: np.ndarray
    unchanged: np.ndarray
    unchanged_until: np.ndarray
    converged: np.ndarray
    replayed: np.ndarray
    stopped_by: str
    repeats: float
    decisions: np.ndarray | None = None
    l1_ratio: float | None = None
    n_nonzero: np.ndarray | None = None
    coefs: tuple[Any, ...] | None = None
    grid: tuple[CSearch, ...] = ()

    @property
    def is_partial(self) -> bool:
        """Whether the search was stopped before its end."""
        return self.stopped_by not in ENDS

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return self.scores.shape[1]

    @property
    def scores(self) -> np.ndarray:
        """Scores of the scorer that chooses, shape (n_Cs, n_folds)."""
        return self.all_scores[self.scorer]

    @property
    def mean(self) -> np.ndarray:
        """Mean score over folds, shape (n_Cs,)."""
        return self.scores.mean(axis=1)

    @property
    def std_error(self) -> np.ndarray:
        """Standard error of the mean score, shape (n_Cs,); NaN for a single fold.

        The standard deviation over all folds divided by the root of ``n_folds / repeats``: repeated cross-validation
        averages over splits but holds out the same rows again, so K folds repeated R times count as K, not as K R.
        """
        return std_error(self.scores, self.repeats)

    @property
    def best_index(self) -> int:
        """Position of the best mean score; the smallest C among equals."""
        return best_index(self.mean)

    @property
    def best_C(self) -> float:
        """The C with the best mean score."""
        return float(self.Cs[self.best_index])

    @property
    def best_score(self) -> float:
        """The best mean score."""
        return float(self.mean[self.best_index])

    @property
    def one_se_index(self) -> int:
        """Position of the smallest C whose mean score is within one standard error of the best.

        Raises
        ------
        ValueError
            There is one fold only.
        """
        return one_se_index(self.mean, self.std_error)

    @property
    def one_se_C(self) -> float:
        """The smallest C whose mean score is at least the best one less its standard error."""
        return float(self.Cs[self.one_se_index])

    @property
    def index(self) -> int:
        """Position of the chosen C."""
        return self.one_se_index if self.choose == "one_se" else self.best_index

    @property
    def C(self) -> float:
        """The chosen C: :attr:`one_se_C` or :attr:`best_C`, as :attr:`choose` says."""
        return float(self.Cs[self.index])

    def by(self, scorer: str | None = None, choose: str | None = None) -> Self:
        """The same table with another scorer or another rule that chooses.

        Parameters
        ----------
        scorer : str, default=None
            A name in ``all_scores``; None keeps the present one.
        choose : {"best", "one_se"}, default=None
            None keeps the present rule.

        Returns
        -------
        CSearch
            Without decision values, unless the chosen C is the same.
        """
        scorer = self.scorer if scorer is None else scorer
        choose = self.choose if choose is None else choose
        _checks.choice("scorer", scorer, self.all_scores)
        _checks.choice("choose", choose, CHOICES)
        other = replace(self, scorer=scorer, choose=choose)
        return other if self.index == other.index else replace(other, decisions=None)

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame; needs pandas.

        Returns
        -------
        pandas.DataFrame
            Columns C, mean, std_error, fold_0, fold_1, ... of the scorer that chooses; mean_NAME and std_error_NAME of
            every other scorer; objective (summed over folds and binary problems), n_nonzero (mean over folds, where
            there is one), seconds, passes, n_iter, n_inner,
            unchanged, unchanged_until, converged, replayed.
        """
        return _table.frame(self)

    def stability(self, C: float | None = None) -> np.ndarray:
        """Share of the folds in which each feature has a nonzero weight; needs ``keep_coefs=True``.

        Parameters
        ----------
        C : float, default=None
            One of ``Cs``; None is the chosen one.

        Returns
        -------
        ndarray of shape (n_features,), or (n_problems, n_features) for several binary problems
            0 for a feature that no fold uses, 1 for one that all do.

        Raises
        ------
        ValueError
            A search that has not kept the weights, a C that it has not visited.

        Examples
        --------
        >>> from hinge import select_C
        >>> from sklearn.datasets import make_classification
        >>> X, y = make_classification(n_samples=200, n_features=30, random_state=0)
        >>> search = select_C(X, y, penalty="l1", keep_coefs=True, max_drop=0.05)
        >>> search.stability().shape
        (30,)
        """
        if self.coefs is None:
            raise ValueError("stability needs a search with keep_coefs=True and a penalty other than the squares")
        k = self.index if C is None else int(np.argmin(np.abs(self.Cs - C)))
        if C is not None and self.Cs[k] != C:
            raise ValueError(f"C must be one of Cs, got {C!r}, the nearest is {float(self.Cs[k])!r}")
        shares = np.asarray((self.coefs[k] != 0).toarray(), dtype=np.float64)
        shares = shares.reshape(self.n_folds, -1, shares.shape[1]).mean(axis=0)
        return shares[0] if len(shares) == 1 else shares

    def plot_coefs(self, ax: Any = None, *, problem: int = 0, n_features: int = 30) -> Any:
        """Draw weights against C, the mean over folds; needs ``keep_coefs=True`` and matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        problem : int, default=0
            Which of several binary problems.
        n_features : int, default=30
            How many features to draw: those with the largest weights.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ValueError
            A search that has not kept the weights.
        """
        if self.coefs is None:
            raise ValueError("plot_coefs needs a search with keep_coefs=True and a penalty other than the squares")
        return _table.plot_coefs(self, ax, problem, n_features)

    def plot(self, ax: Any = None) -> Any:
        """Draw mean score and standard error against C; needs matplotlib (``pip install hinge[plot]``).

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        matplotlib Axes
        """
        return _table.plot(self, ax)

    def __repr__(self) -> str:
        return _table.text(self)

    def _repr_html_(self) -> str:
        return _table.html(self)


def best_table(tables: list[CSearch]) -> CSearch:
    """The table with the best score at its choice, the first among equals; ``grid`` has all where there are several."""
    if len(tables) == 1:
        return tables[0]
    best = max(range(len(tables)), key=lambda k: (tables[k].mean[tables[k].index], -k))
    return replace(tables[best], grid=tuple(tables))
