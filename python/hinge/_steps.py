"""The record of a search while it runs: a row per finished value of ``C``, scores and all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge._csearch import CSearch
from hinge._folds import Folds
from hinge._plan import Plan
from hinge._problem import Problem
from hinge._scoring import Scoring


@dataclass
class Step:
    """One finished value of C.

    Attributes
    ----------
    native : dict
        What the native search says of it, without decision values.
    scores : dict of str to ndarray of shape (n_folds,)
        Scores of every scorer.
    mean : float
        Mean score of the scorer that chooses.
    out_of_fold : ndarray of shape (n_samples, n_problems), or None
        Decision values of the held-out rows, as long as this C may be chosen.
    n_nonzero : ndarray of shape (n_folds,), or None
        Nonzero weights, where they are sparse.
    coefs : csr_matrix of shape (n_folds * n_problems, n_weights), or None
        The weights, where they are kept.
    """

    native: dict[str, Any]
    scores: dict[str, np.ndarray]
    mean: float
    out_of_fold: np.ndarray | None
    n_nonzero: np.ndarray | None = None
    coefs: Any = None

    @property
    def C(self) -> float:
        """The value of C."""
        return self.native["C"]

    @property
    def merit(self) -> float:
        """The mean score as refinement compares it: NaN is the worst."""
        return -np.inf if np.isnan(self.mean) else self.mean

    def line(self) -> str:
        """The news of it."""
        step = self.native
        state = "unchanged" if step["unchanged"] else f"{step['n_iter']} iterations"
        origin = ", replayed" if step["replayed"] else ""
        return f"C = {self.C:.6g}, score {self.mean:.4f}, {state}, {step['seconds']:.2f} s{origin}"


class Steps:
    """The values of C finished so far, in the order of the search."""

    def __init__(self, problem: Problem, folds: Folds, scoring: Scoring, plan: Plan, n_weights: int):
        self._problem = problem
        self._n_weights = n_weights
        self._folds = folds
        self._scoring = scoring
        self._plan = plan
        self._held_out = folds.held_out(len(problem.y))
        self._done: list[Step] = []

    def __len__(self) -> int:
        return len(self._done)

    @property
    def best(self) -> Step:
        """The best so far."""
        return max(self._done, key=lambda step: (step.merit, -step.C))

    @property
    def first_C(self) -> float:
        """The value that the search began with."""
        return self._done[0].C

    def add(self, native: dict[str, Any]) -> Step:
        """Score a step of the native search and keep it. An interrupt at any point leaves all finished steps whole."""
        native = dict(native)
        decisions = native.pop("decisions")
        weights = native.pop("weights", None)
        scores = self._scores(native, decisions)
        mean = float(scores[self._scoring.chooser][None].mean(axis=1)[0])  # the sum that the table takes
        is_wanted = self._plan.keep_decisions and not self._is_beaten(native["C"], mean)
        step = Step(native, scores, mean, self._out_of_fold(decisions) if is_wanted else None)
        if weights is not None:
            sizes = np.array([len(values) for _, values, _ in weights], dtype=np.int64)
            step.n_nonzero = sizes.reshape(len(decisions), -1).sum(axis=1)
        if weights is not None and self._plan.keep_coefs:
            step.coefs = self._as_matrix(weights)
        self._done.append(step)
        for other in self._done:
            if other.out_of_fold is not None and self._is_beaten(other.C, other.mean):
                other.out_of_fold = None
        return step

    def _as_matrix(self, weights: list[tuple[np.ndarray, np.ndarray, float]]) -> sp.csr_matrix:
        """The weights of all folds and problems, a row each."""
        columns, values, _ = zip(*weights, strict=True)
        starts = np.concatenate([[0], np.cumsum([len(row) for row in values])])
        shape = (len(weights), self._n_weights)
        return sp.csr_matrix((np.concatenate(values), np.concatenate(columns).astype(np.int32), starts), shape=shape)

    def _scores(self, native: dict[str, Any], decisions: list[np.ndarray]) -> dict[str, np.ndarray]:
        # Every fit starts from the solution at the nearest smaller C: an unchanged one is that, and so are its scores.
        smaller = [step for step in self._done if native["C"] > step.C]
        if native["unchanged"] and smaller:
            return max(smaller, key=lambda step: step.C).scores
        folds = zip(decisions, self._folds.tests(), strict=True)
        rows = np.array([self._scoring(values, test) for values, test in folds])
        return dict(zip(self._scoring.names, rows.T.copy(), strict=True))

    def _is_beaten(self, C: float, mean: float) -> bool:
        """Whether another C will be preferred to this one whatever comes.

        By the best score: one with a better mean, or the same and smaller. Within a standard error: only a smaller one
        with no worse mean, because a later best may have a standard error of any size.
        """
        if np.isnan(mean):
            return True
        if self._plan.choose == "one_se":
            return any(other.C < C and other.mean >= mean for other in self._done)
        return any(other.mean > mean or (other.C < C and other.mean == mean) for other in self._done)

    def _out_of_fold(self, decisions: list[np.ndarray]) -> np.ndarray:
        total = np.zeros((len(self._held_out), self._problem.n_problems))
        for values, test in zip(decisions, self._folds.tests(), strict=True):
            np.add.at(total, test, values.reshape(len(test), -1))
        total[self._held_out == 0] = np.nan
        return total / np.maximum(self._held_out, 1)[:, None]

    def table(self, stopped_by: str) -> CSearch:
        """The table of what is finished, sorted by C."""
        done = sorted(self._done, key=lambda step: step.C)

        def column(name: str, dtype: type) -> np.ndarray:
            return np.array([step.native[name] for step in done], dtype=dtype)

        table = CSearch(
            Cs=column("C", float),
            all_scores={name: np.array([step.scores[name] for step in done]) for name in self._scoring.names},
            scorer=self._scoring.chooser,
            choose=self._plan.choose,
            objective=column("objective", float),
            seconds=column("seconds", float),
            passes=column("passes", float),
            n_iter=column("n_iter", np.int64),
            n_inner=column("inner", np.int64),
            unchanged=column("unchanged", bool),
            unchanged_until=column("unchanged_until", float),
            converged=column("converged", bool),
            replayed=column("replayed", bool),
            stopped_by=stopped_by,
            repeats=self._folds.repeats(len(self._held_out)),
        )
        if all(step.n_nonzero is not None for step in done):
            table = replace(table, n_nonzero=np.array([step.n_nonzero for step in done]))
        if all(step.coefs is not None for step in done):
            table = replace(table, coefs=tuple(step.coefs for step in done))
        kept = done[table.index].out_of_fold
        if kept is None:
            return table
        return replace(table, decisions=kept[:, 0] if kept.shape[1] == 1 else kept)
