"""Choice of ``C`` by warm-started cross-validation."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import StratifiedKFold, check_cv

from hinge import _native, _validate
from hinge._linear import SOLVERS
from hinge._progress import announce, reporter

LOSSES = ("logistic", "squared_hinge", "hinge")

E = TypeVar("E", bound=Any)


@dataclass(frozen=True)
class CSearch:
    """The table of a search for ``C``, one entry (or row) per value of ``C``.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,), float64
        Values of C, rising.
    scores : ndarray of shape (n_Cs, n_folds), float64
        Score on the held-out part of each fold.
    seconds : ndarray of shape (n_Cs,), float64
        Wall time.
    passes : ndarray of shape (n_Cs,), float64
        Readings of the training part, summed over folds and classes.
    n_iter : ndarray of shape (n_Cs,), int64
        Newton steps or epochs, summed over folds and classes.
    unchanged : ndarray of shape (n_Cs,), bool
        No fold's solution changed.
    converged : ndarray of shape (n_Cs,), bool
        Every fit reached the tolerance of the search.
    stopped_by : str
        ``"unchanged"`` (no solution can change any more up to ``C_max``) or ``"C_max"``.
    """

    Cs: np.ndarray
    scores: np.ndarray
    seconds: np.ndarray
    passes: np.ndarray
    n_iter: np.ndarray
    unchanged: np.ndarray
    converged: np.ndarray
    stopped_by: str

    @property
    def mean(self) -> np.ndarray:
        """Mean score over folds, shape (n_Cs,)."""
        return self.scores.mean(axis=1)

    @property
    def std_error(self) -> np.ndarray:
        """Standard error of the mean over folds, shape (n_Cs,); NaN for a single fold."""
        n_folds = self.scores.shape[1]
        if n_folds < 2:
            return np.full(len(self.Cs), np.nan)
        return self.scores.std(axis=1, ddof=1) / np.sqrt(n_folds)

    @property
    def best_index(self) -> int:
        """Position of the best mean score; the smallest C among equals."""
        return int(np.nanargmax(self.mean))

    @property
    def best_C(self) -> float:
        """The C with the best mean score."""
        return float(self.Cs[self.best_index])

    @property
    def best_score(self) -> float:
        """The best mean score."""
        return float(self.mean[self.best_index])

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame; needs pandas.

        Returns
        -------
        pandas.DataFrame
            Columns C, mean, std_error, fold_0, fold_1, ..., seconds, passes, n_iter, unchanged, converged.
        """
        import pandas as pd

        folds = {f"fold_{k}": self.scores[:, k] for k in range(self.scores.shape[1])}
        return pd.DataFrame(
            {
                "C": self.Cs,
                "mean": self.mean,
                "std_error": self.std_error,
                **folds,
                "seconds": self.seconds,
                "passes": self.passes,
                "n_iter": self.n_iter,
                "unchanged": self.unchanged,
                "converged": self.converged,
            }
        )

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
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(7, 4.5), layout="constrained").add_subplot()
        error = np.nan_to_num(self.std_error)
        ax.fill_between(self.Cs, self.mean - error, self.mean + error, alpha=0.25, linewidth=0)
        ax.plot(self.Cs, self.mean, marker="o", markersize=3)
        ax.axvline(self.best_C, linestyle="--", linewidth=1, color="black")
        ax.set_xscale("log", base=2)
        ax.set_xlabel("C")
        ax.set_ylabel("mean score on held-out folds")
        ax.set_title(f"best C = {self.best_C:g}, score {self.best_score:.4f}")
        return ax

    def __repr__(self) -> str:
        lines = [
            f"CSearch: best C = {self.best_C:g}, score {self.best_score:.4f}; {len(self.Cs)} values, "
            f"{self.scores.shape[1]} folds, {self.seconds.sum():.2f} s, ended by {self.stopped_by}",
            "           C    score  +- error  passes  seconds",
        ]
        for k, C in enumerate(self.Cs):
            mark = "*" if k == self.best_index else " "
            tail = "  unchanged" if self.unchanged[k] else ("" if self.converged[k] else "  not converged")
            lines.append(
                f"{mark}{C:>11.5g}  {self.mean[k]:7.4f}  {self.std_error[k]:8.4f}  {self.passes[k]:6.0f}  "
                f"{self.seconds[k]:7.3f}{tail}"
            )
        return "\n".join(lines)


def select_C(
    X: Any,
    y: Any,
    *,
    loss: str = "logistic",
    solver: str = "auto",
    cv: Any = 5,
    scoring: Any = None,
    C_min: float | None = None,
    C_max: float = _native.DEFAULT_C_MAX,
    ratio: float = _native.DEFAULT_RATIO,
    tol: float = _native.DEFAULT_SEARCH_TOL,
    max_iter: int = _native.DEFAULT_MAX_ITER,
    fit_intercept: bool = True,
    intercept_scaling: float | None = None,
    class_weight: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    presolve: str | bool = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> CSearch:
    """Search for ``C`` by warm-started cross-validation (algorithm 1 of Chu et al.).

    C rises by the factor ``ratio`` from a computed lower bound; every fold starts each fit from its solution at the C
    before; the search ends at ``C_max``, or as soon as it is known that no solution can change any more up to there.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    loss : {"logistic", "squared_hinge", "hinge"}, default="logistic"
    solver : {"auto", "dual_cd", "dual_cd_online", "newton"}, default="auto"
        As in :class:`hinge.LinearSVC`; "auto" is Newton for a smooth loss and few features, else dual coordinate
        descent.
    cv : int, splitter or iterable, default=5
        Number of stratified folds of shuffled rows (seeded by ``random_state``), any scikit-learn splitter, or an
        iterable of (train, test) row numbers. scikit-learn does not shuffle for a number: on rows in file order, which
        are rarely in random order, that chooses a wrong C (w8a: 1e-6 instead of 16).
    scoring : str or callable, default=None
        Any scikit-learn scorer of classifiers. The scorer sees an estimator that knows the decision values of the
        held-out rows (and probabilities, for the logistic loss); its X are row numbers. None is accuracy.
    C_min : float, default=None
        First value of C; None computes eq. (21) or (22) of the paper, rounded down to a power of two.
    C_max : float, default=1024.0
        Limit of C.
    ratio : float, default=2.0
        Factor between values of C, above 1.
    tol : float, default=1e-2
        Accuracy of each fit. Newton: norm of the gradient at most ``tol * min(pos, neg) / n`` times its norm at zero
        weights (eq. 28). Other solvers: relative duality gap at most ``tol / 10``.
    max_iter : int, default=1000
        Limit of Newton steps or epochs per fit.
    fit_intercept, intercept_scaling, class_weight, presolve, n_jobs, random_state, verbose
        As in :class:`hinge.LinearSVC`.
    sample_weight : array-like of shape (n_samples,), default=None
        Used in training, and in the score where the scorer takes weights.
    groups : array-like of shape (n_samples,), default=None
        Passed to the splitter.

    Returns
    -------
    CSearch

    Raises
    ------
    ValueError
        Unusable parameters or input, ``cv`` larger than the smallest class, a fold whose training part lacks a class.

    Notes
    -----
    Memory beside the input: a weight vector of the features and a vector of the training rows for each fold and class.

    References
    ----------
    Chu, Ho, Tsai, Lin, Lin: Warm Start for Parameter Selection of Linear Classifiers, KDD 2015.

    Examples
    --------
    >>> from hinge import select_C
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=200, random_state=0)
    >>> search = select_C(X, y, cv=3)
    >>> search.scores.shape == (len(search.Cs), 3)
    True
    """
    _validate.choice("loss", loss, LOSSES)
    _validate.choice("solver", solver, SOLVERS)
    _validate.positive("tol", tol)
    _validate.whole("max_iter", max_iter, 1)
    seed = _validate.seed(random_state)
    options = {
        "loss": loss,
        "solver": solver,
        "intercept": _validate.intercept(fit_intercept, intercept_scaling),
        "tol": float(tol),
        "max_iter": int(max_iter),
        "seed": seed,
        "n_threads": _validate.threads(n_jobs),
        "presolve": _validate.presolve(presolve),
    }
    plan = _plan(C_min, C_max, ratio)
    X, y = _validate.fit_data(X, y)
    data = _prepare(X, y, class_weight, sample_weight)
    folds = _Folds(data, cv, groups, seed)
    return _search(data, options, plan, folds, scoring, verbose)


def search_and_refit(estimator: E, X: Any, y: Any, sample_weight: Any, groups: Any) -> E:
    """The fit of the CV estimators: search, then one fit at the best C; sets ``search_`` and ``C_`` beside the rest."""
    options = estimator._options()
    _validate.positive("select_tol", estimator.select_tol)
    plan = _plan(estimator.C_min, estimator.C_max, estimator.ratio)
    checked, y = _validate.fit_data(X, y, estimator)
    data = _prepare(checked, y, estimator.class_weight, sample_weight)
    folds = _Folds(data, estimator.cv, groups, options["seed"])
    search_options = options | {"tol": float(estimator.select_tol)}
    search = _search(data, search_options, plan, folds, estimator.scoring, estimator.verbose)
    estimator._fit_checked(search.best_C, data.X, data.classes, data.ids, data.weight, options)
    _validate.remember_features(estimator, X)
    estimator.search_ = search
    estimator.C_ = search.best_C
    return estimator


@dataclass(frozen=True)
class _Data:
    """Checked input of a search."""

    X: Any
    y: np.ndarray
    classes: np.ndarray
    ids: np.ndarray
    weight: np.ndarray
    sample_weight: np.ndarray | None


def _prepare(X: Any, y: np.ndarray, class_weight: Any, sample_weight: Any) -> _Data:
    classes, ids = _validate.encode(y)
    weight = _validate.row_weights(X, classes, ids, class_weight, sample_weight)
    plain = None if sample_weight is None else _validate.row_weights(X, classes, ids, None, sample_weight)
    return _Data(X, y, classes, ids, weight, plain)


def _plan(C_min: float | None, C_max: float, ratio: float) -> dict[str, Any]:
    if C_min is not None:
        _validate.positive("C_min", C_min)
    _validate.positive("C_max", C_max)
    _validate.positive("ratio", ratio)
    if ratio <= 1:
        raise ValueError(f"ratio must be above 1, got {ratio!r}")
    if C_min is not None and C_min > C_max:
        raise ValueError(f"C_min must not be above C_max, got {C_min!r} and {C_max!r}")
    return {
        "Cs": None,
        "C_min": None if C_min is None else float(C_min),
        "C_max": float(C_max),
        "ratio": float(ratio),
        "refine": 0,
        "stop": "exact",
        "time_limit": None,
        "resume": None,
    }


class _Folds:
    """The splits of a search as row numbers."""

    def __init__(self, data: _Data, cv: Any, groups: Any, seed: int):
        if isinstance(cv, Integral) and not isinstance(cv, bool):
            self._check_class_sizes(data, int(cv))
            cv = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
        splitter = check_cv(cv, data.y, classifier=True)
        n_rows = len(data.y)
        splits = splitter.split(data.X, data.y, groups)
        self.splits = [(self._rows(f, a, n_rows), self._rows(f, b, n_rows)) for f, (a, b) in enumerate(splits)]
        if not self.splits:
            raise ValueError("cv must give at least one split, it gives none")
        for f, (train, test) in enumerate(self.splits):
            self._check_fold(data, f, train, test)

    @staticmethod
    def _check_fold(data: _Data, f: int, train: np.ndarray, test: np.ndarray) -> None:
        counts = np.bincount(data.ids[train][data.weight[train] > 0], minlength=len(data.classes))
        if (counts == 0).any():
            missing = _validate.plain(data.classes[np.flatnonzero(counts == 0)[0]])
            raise ValueError(
                f"the training part of fold {f} has no row of class {missing}: use fewer or stratified folds"
            )
        if not (data.weight[test] > 0).any():
            raise ValueError(f"the held-out part of fold {f} has no row of positive weight, it cannot be scored")

    @staticmethod
    def _check_class_sizes(data: _Data, n_folds: int) -> None:
        if n_folds < 2:
            raise ValueError(f"cv must be at least 2, got {n_folds}")
        sizes = np.bincount(data.ids)
        if sizes.min() < n_folds:
            smallest = _validate.plain(data.classes[sizes.argmin()])
            raise ValueError(
                f"cv={n_folds} needs at least {n_folds} rows of every class, class {smallest} has {sizes.min()}: "
                "use a smaller cv or a splitter of your own"
            )

    @staticmethod
    def _rows(f: int, rows: Any, n_rows: int) -> np.ndarray:
        rows = np.asarray(rows)
        if rows.dtype == bool and rows.shape == (n_rows,):
            rows = np.flatnonzero(rows)
        if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.size):
            raise ValueError(
                f"fold {f} must hold row numbers or a mask of {n_rows} rows, got {rows.dtype} {rows.shape}"
            )
        bad = (rows < 0) | (rows >= n_rows)
        if bad.any():
            raise ValueError(f"fold {f} names row {rows[bad][0]}, row numbers run from 0 to {n_rows - 1}")
        return rows.astype(np.uint32)


def _search(
    data: _Data,
    options: dict[str, Any],
    plan: dict[str, Any],
    folds: _Folds,
    scoring: Any,
    verbose: int,
) -> CSearch:
    score = _scorer(data, options["loss"], scoring)
    rows: list[tuple[Any, ...]] = []
    started = time.perf_counter()

    def visit(step: dict[str, Any]) -> float:
        nonlocal started
        scores = [score(values, test) for values, (_, test) in zip(step["decisions"], folds.splits, strict=True)]
        now = time.perf_counter()
        facts = (step[name] for name in ("passes", "n_iter", "unchanged", "converged"))
        rows.append((step["C"], scores, now - started, *facts))
        started = now
        state = "unchanged" if step["unchanged"] else f"{step['n_iter']} iterations"
        announce(verbose, f"search: C = {step['C']:.6g}, score {np.mean(scores):.4f}, {state}, {rows[-1][2]:.2f} s")
        return float(np.mean(scores))

    report = reporter(verbose, "search")

    def progress(kind: str, C: float, iteration: int, lanes_left: int, passes: float, accuracy: float) -> None:
        if report is not None:
            report(kind, iteration, accuracy)

    n_classes = len(data.classes)
    stopped_by = _validate.call_native(
        lambda matrix: _native.search(
            matrix, data.ids, n_classes, data.weight, folds.splits, options, plan, visit, progress
        ),
        data.X,
    )
    columns = (np.array(column) for column in zip(*rows, strict=True))
    Cs, scores, seconds, passes, n_iter, unchanged, converged = columns
    return CSearch(Cs, scores, seconds, passes, n_iter, unchanged, converged, stopped_by)


def _scorer(data: _Data, loss: str, scoring: Any) -> Callable[[np.ndarray, np.ndarray], float]:
    """A function from held-out decision values and row numbers to a score."""
    if scoring is None:
        return lambda values, rows: _accuracy(data, values, rows)
    kind = _ProbabilisticFold if loss == "logistic" else _Fold
    scorer = check_scoring(kind(data.classes, np.zeros(0)), scoring=scoring)
    takes_weights = _takes_weights(scorer)

    def score(values: np.ndarray, rows: np.ndarray) -> float:
        model = kind(data.classes, values)
        weights = (
            {"sample_weight": data.sample_weight[rows]} if takes_weights and data.sample_weight is not None else {}
        )
        return float(scorer(model, np.arange(len(rows)), data.y[rows], **weights))

    return score


def _takes_weights(scorer: Any) -> bool:
    metric = getattr(scorer, "_score_func", scorer)
    return "sample_weight" in inspect.signature(metric).parameters


def _accuracy(data: _Data, values: np.ndarray, rows: np.ndarray) -> float:
    correct = _class_ids(values, len(data.classes)) == data.ids[rows]
    weights = None if data.sample_weight is None else data.sample_weight[rows]
    return float(np.average(correct, weights=weights))


def _class_ids(values: np.ndarray, n_classes: int) -> np.ndarray:
    if n_classes == 2:
        return (values > 0).astype(np.intp)
    return values.reshape(-1, n_classes).argmax(axis=1)


class _Fold(ClassifierMixin, BaseEstimator):
    """What a scorer needs of a model: answers for the held-out rows of one fold, asked for by position."""

    def __init__(self, classes: np.ndarray, values: np.ndarray):
        self.classes = classes
        self.values = values
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> _Fold:
        return self  # scikit-learn takes nothing without it for a model

    def decision_function(self, positions: Iterable[int]) -> np.ndarray:
        n_classes = len(self.classes_)
        values = self.values if n_classes == 2 else self.values.reshape(-1, n_classes)
        return values[np.asarray(positions)]

    def predict(self, positions: Iterable[int]) -> np.ndarray:
        return self.classes_[_class_ids(self.decision_function(positions), len(self.classes_))]


class _ProbabilisticFold(_Fold):
    """A fold of a logistic model."""

    def predict_proba(self, positions: Iterable[int]) -> np.ndarray:
        p = expit(self.decision_function(positions))
        if p.ndim == 1:
            return np.column_stack([1 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.divide(p, total, out=np.full_like(p, 1 / p.shape[1]), where=total > 0)
