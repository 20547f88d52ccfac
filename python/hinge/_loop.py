"""One run of a search: the native loop, with scores, progress and interrupts around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from hinge import _native, _validate
from hinge._csearch import ENDS, CSearch, NoSkillWarning, PartialSearchWarning
from hinge._folds import Folds
from hinge._plan import Plan
from hinge._problem import Problem
from hinge._scoring import Scoring
from hinge._search_progress import search_progress
from hinge._steps import Step, Steps
from hinge._warn import warn
from hinge.poly2 import n_weights

_ROUNDING = 1e-12
"""Of a mean over folds, relative to scores of at most 1."""


def _never(step: Step) -> bool:
    return False


@dataclass(frozen=True)
class Search:
    """A search whose parameters are all checked.

    Attributes
    ----------
    problem : Problem
        The data.
    options : dict
        How the native module fits.
    plan : Plan
        Which values of C, which choice.
    folds : Folds
        The splits.
    scoring : Scoring
        The scorers.
    verbose : int
        What the terminal shows.
    """

    problem: Problem
    options: dict[str, Any]
    plan: Plan
    folds: Folds
    scoring: Scoring
    verbose: int

    @classmethod
    def of(cls, given: Any, problem: Problem, options: dict[str, Any], plan: Plan, groups: Any) -> Self:
        """Split and try the scorers, by the ``cv``, ``scoring``, ``choose_by`` and ``verbose`` of checked given."""
        folds = Folds(problem, given.cv, groups, options["seed"])
        if plan.choose == "one_se" and len(folds) < 2:
            raise ValueError('choose="one_se" needs at least 2 folds: cv gives one, which has no standard error')
        scoring = Scoring(problem, options, given.scoring, given.choose_by, folds.tests())
        return cls(problem, options, plan, folds, scoring, given.verbose)

    def run(self, *, keeps_interrupted: bool, wants_stop: Callable[[Step], bool] = _never) -> CSearch:
        """Search; warns where the result is partial.

        Parameters
        ----------
        keeps_interrupted : bool
            Whether Ctrl-C returns what is finished, if anything is, instead of being raised.
        wants_stop : callable
            Told every finished step; returns whether to end the search.
        """
        width = n_weights(self.problem.n_features, self.options["map"])
        steps = Steps(self.problem, self.folds, self.scoring, self.plan, width)
        try:
            reason = self._run(steps, wants_stop)
        except KeyboardInterrupt:
            if not keeps_interrupted or not len(steps):
                raise
            reason = "interrupt"
        if not len(steps):
            raise TimeoutError(f"time_limit={self.plan.time_limit:g} s passed before the first value of C was finished")
        search = steps.table("callback" if reason == "visit" else reason)
        if search.is_partial:
            warn(
                f"the search for C was stopped by {search.stopped_by} after {len(search.Cs)} values of C, "
                f"the largest {search.Cs[-1]:g}: its choice is the best of those",
                PartialSearchWarning,
            )
        else:
            self._check_skill(search)
        return search

    def _check_skill(self, search: CSearch) -> None:
        """Warn where accuracy has chosen a model that need not look at the features."""
        no_skill = self.scoring.no_skill(self.folds.tests())
        if no_skill is None or not search.mean[search.index] <= no_skill[1] + _ROUNDING:
            return
        score, (most, share) = search.mean[search.index], no_skill
        warn(
            f"the model chosen at C = {search.C:g} has an accuracy of {score:.4f} out of fold, always answering "
            f"class {_validate.plain(most)} has {share:.4f}: choose C by "
            'scoring="balanced_accuracy" or "roc_auc", or weigh the classes with class_weight="balanced"',
            NoSkillWarning,
        )

    def _run(self, steps: Steps, wants_stop: Callable[[Step], bool]) -> str:
        ended = list[str]()
        with search_progress(self.verbose) as progress:

            def visit(native: dict[str, Any]) -> float | None:
                step = steps.add(native)
                progress.step(step, steps.best, self.plan.n_values(steps.first_C))
                if self._has_fallen(step, steps):
                    ended.append("score")
                return None if wants_stop(step) or ended else step.merit

            reason = self._search(visit, progress.native)
            reason = ended[0] if ended else reason
            if reason in ENDS:
                progress.finish()
        return reason

    def _search(self, visit: Callable[[dict[str, Any]], float | None], report: Any) -> str:
        """The native search; returns why it ended."""
        problem = self.problem
        if problem.store is not None:
            rows = problem.store
            stored = (rows.store._reader, rows.factor, self.folds.splits, self.options, rows.blocks)
            return _native.search_store(*stored, self.plan.native, visit, report)

        def search(matrix: _validate.NativeMatrix) -> str:
            data = (matrix, problem.ids, len(problem.classes), problem.weight, self.folds.splits)
            return _native.search(*data, self.options, self.plan.native, visit, report)

        return _validate.call_native(search, problem.X)

    def _has_fallen(self, step: Step, steps: Steps) -> bool:
        """Whether the score is so far below the best that the search ends."""
        drop = self.plan.max_drop
        return drop is not None and steps.best.merit - step.merit >= drop
