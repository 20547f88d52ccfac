"""Fits with absolute values in the penalty against LIBLINEAR, celer and skglm: processor time to a gap, one thread.

    python l1.py                                        # all sets, three values of C, gaps of 1e-2, 1e-4, 1e-6
    python l1.py --sets a9a 20news --shares 0.001 0.01 --rivals liblinear --limit 60
    python l1.py --sets 20news --losses squared_hinge --costs 61 1000   # these values of C
    python l1.py --path --sets a9a                      # a path of values of C, warm starts against refits
    python l1.py --search --sets a9a                    # a five-fold search for C against refits of every fold

C is that at which about the given shares of the weights are not zero, or as given. All packages run at falling
tolerances, from loose to tight, until the objective, computed here in double precision, is within the target of the
optimum, and the time of that run alone counts; who takes longer than ``--limit`` seconds is left out from then on
(``-``). Refits on a path or in a search are those at the loosest tolerance at which no objective is further above ours
than the gap that ours proves; they end where ``--limit`` is over. What ours takes to *prove* a gap, which no rival
does but celer, is the line below.
The optimum is that of a fit to a certified gap of 1e-9. No intercepts; the logistic loss and, where the rival has it,
the squared hinge. celer and skglm run where they are installed, compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import hinge
import numpy as np
import scipy.sparse as sp
import tasks
from threadpoolctl import threadpool_limits

TARGETS = (1e-2, 1e-4, 1e-6)
TOLERANCES = tuple(10.0**-k for k in range(-2, 11))
N_FOLDS = 5
HIGHEST = 1e6
"""Largest C that is tried, in multiples of the largest at which all weights are zero."""

SETS = ("a9a", "madelon", "20news", "sector", "flights", "phishing_urls", "imdb")
Fit = Callable[[sp.csr_matrix, np.ndarray, float, float], tuple[float, np.ndarray]]
"""Takes rows, labels, C and a tolerance; returns processor seconds and weights."""


def read(name: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """Training rows and labels of -1 and 1; of many classes one, the fourth, against the rest."""
    task = tasks.load(name)
    labels = np.unique(task.y)
    return task.X, np.where(task.y == labels[1 if len(labels) == 2 else 3], 1, -1)


def objective(loss: str, X, y, C: float, w: np.ndarray) -> float:
    """``|w|_1`` and C times the losses."""
    margins = y * (X @ w)
    losses = np.logaddexp(0.0, -margins) if loss == "logistic" else np.maximum(0.0, 1.0 - margins) ** 2
    return float(np.abs(w).sum() + C * losses.sum())


def model(loss: str, C: float, tol: float):
    """Our estimator."""
    given = {"C": C, "penalty": "l1", "tol": tol, "fit_intercept": False, "n_jobs": 1}
    return hinge.LogisticRegression(**given) if loss == "logistic" else hinge.LinearSVC(loss=loss, **given)


def ours(loss: str) -> Fit:
    """Fits of hinge."""

    def fit(X, y, C, tol):
        started = time.process_time()
        found = model(loss, C, tol).fit(X, y)
        return time.process_time() - started, found.coef_[0]

    return fit


def liblinear(loss: str) -> Fit | None:
    """Fits of LIBLINEAR; reading the matrix into its nodes does not count."""
    from liblinear.liblinearutil import parameter, problem, train

    nodes: dict[int, problem] = {}

    def fit(X, y, C, tol):
        key = id(X)
        if key not in nodes:
            if len(nodes) > N_FOLDS:
                nodes.clear()
            nodes[key] = problem(y.astype(float), X.astype(float))
        options = parameter(f"-s {6 if loss == 'logistic' else 5} -c {float(C)!r} -e {tol!r} -q")
        started = time.process_time()
        found = train(nodes[key], options)
        seconds = time.process_time() - started
        sign = 1.0 if found.label[0] == 1 else -1.0
        return seconds, sign * np.array(found.w[: X.shape[1]])

    return fit


def celer(loss: str) -> Fit | None:
    """Fits of celer; the logistic loss only."""
    from celer import LogisticRegression

    def fit(X, y, C, tol):
        found = LogisticRegression(C=C, tol=tol, fit_intercept=False, max_iter=200, max_epochs=100_000)
        columns = sp.csc_matrix(X, dtype=np.float64)
        started = time.process_time()
        found.fit(columns, y)
        return time.process_time() - started, found.coef_[0]

    return fit if loss == "logistic" else None


def skglm(loss: str) -> Fit | None:
    """Fits of skglm; the logistic loss only."""
    from skglm import SparseLogisticRegression

    def fit(X, y, C, tol):
        found = SparseLogisticRegression(alpha=1.0 / (C * X.shape[0]), tol=tol, fit_intercept=False, max_iter=200)
        columns = sp.csc_matrix(X, dtype=np.float64)
        started = time.process_time()
        found.fit(columns, y)
        return time.process_time() - started, np.ravel(found.coef_)

    return fit if loss == "logistic" else None


RIVALS = {"liblinear": liblinear, "celer": celer, "skglm": skglm}


def times(fit: Fit, loss: str, X, y, C: float, optimum: float, limit: float) -> list[float]:
    """Seconds to each target; infinite for those that were not reached."""
    found = [np.inf] * len(TARGETS)
    for tol in TOLERANCES:
        seconds, w = fit(X, y, C, tol)
        distance = objective(loss, X, y, C, w) / optimum - 1.0
        for k, target in enumerate(TARGETS):
            if distance <= target and found[k] == np.inf:
                found[k] = seconds
        if seconds > limit or found[-1] < np.inf:
            break
    return found


def cost_of_share(loss: str, X, y, share: float) -> float | None:
    """The first C on a ladder at which this share of the weights is not zero, by loose fits; None if there is none."""
    slope = 0.5 if loss == "logistic" else 2.0
    first = 1.0 / float(abs(X.T @ (y * slope)).max())
    for C in first * np.geomspace(1.0, HIGHEST, 24):
        if np.count_nonzero(model(loss, float(C), 1e-2).fit(X, y).coef_) >= share * X.shape[1]:
            return float(C)
    return None


def costs_of_shares(loss: str, X, y, shares: Iterable[float]) -> Iterator[float]:
    """:func:`cost_of_share` of each share, up to the first that no C has."""
    for share in shares:
        C = cost_of_share(loss, X, y, share)
        if C is None:
            print(f"  {loss}: no C up to {HIGHEST:g} times the first has {share:g} of the weights")
            return
        yield C


def compare(loss: str, X, y, C: float, given, rivals: dict[str, Fit]) -> list[float]:
    """Print the times of all, and return how many times faster than the best rival ours is."""
    exact = model(loss, C, 1e-9).fit(X, y)
    optimum = float(exact.certificate_.dual[0])
    nonzero = np.count_nonzero(exact.coef_)
    fit = ours(loss)
    mine = repeated(lambda: times(fit, loss, X, y, C, optimum, given.limit), given.repeat)
    proved = repeated(lambda: [fit(X, y, C, target)[0] for target in TARGETS], given.repeat)
    print(f"  {loss}, C = {C:.4g}, {nonzero} weights: hinge {line(mine)}", flush=True)
    print(f"    {'to prove it':14s} {line(proved)}", flush=True)
    best = [np.inf] * len(TARGETS)
    for name, rival in rivals.items():
        seconds = times(rival, loss, X, y, C, optimum, given.limit)
        best = [min(pair) for pair in zip(best, seconds, strict=True)]
        print(f"    {name:14s} {line(seconds)}", flush=True)
    ratios = [theirs / own for theirs, own in zip(best, mine, strict=True)]
    print("    best / hinge   " + " ".join(f"{r:9.1f}" for r in ratios), flush=True)
    return ratios


def repeated(measure: Callable[[], list[float]], repeat: int) -> list[float]:
    """The least of each figure over some runs."""
    return [min(some) for some in zip(*(measure() for _ in range(repeat)), strict=True)]


def line(seconds: Iterable[float]) -> str:
    """Seconds side by side."""
    return " ".join(f"{s:9.3f}" if s < np.inf else f"{'-':>9s}" for s in seconds)


class Refit(NamedTuple):
    """One of the fits of a path or a search: its rows, labels and C, and the objective of ours."""

    X: sp.csr_matrix
    y: np.ndarray
    C: float
    objective: float


def path(loss: str, X, y, given, rivals: dict[str, Fit]) -> None:
    """A path of values of C over two decades: our search with a single split, to certified gaps of 1e-4, against refits
    of the rivals.
    """
    slope = 0.5 if loss == "logistic" else 2.0
    first = 1.0 / abs(X.T @ (y * slope)).max()
    Cs = first * np.geomspace(1.0, 100.0, given.values)
    rows = np.arange(X.shape[0])
    told = {"loss": loss, "penalty": "l1", "fit_intercept": False, "n_jobs": 1, "Cs": Cs, "tol": 1e-3}
    started = time.process_time()
    found = hinge.select_C(X, y, cv=[(rows, rows[:2000])], **told)
    mine = time.process_time() - started
    compare_refits("path", loss, found, mine, [(X, y)], 1e-4, given, rivals)


def search(loss: str, X, y, given, rivals: dict[str, Fit]) -> None:
    """A search for C with five folds as by default, to certified gaps of 1e-3, against fits of the rivals to every fold
    at every C that it visits.
    """
    fold = np.random.default_rng(0).permutation(X.shape[0]) % N_FOLDS
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(N_FOLDS)]
    started = time.process_time()
    found = hinge.select_C(X, y, cv=splits, loss=loss, penalty="l1", fit_intercept=False, n_jobs=1)
    mine = time.process_time() - started
    parts = [(X[train], y[train]) for train, _ in splits]
    compare_refits("search", loss, found, mine, parts, 1e-3, given, rivals)


def compare_refits(way: str, loss: str, found, mine: float, parts, gap: float, given, rivals: dict[str, Fit]) -> None:
    """Print our seconds for all values of C and those of each rival for fits of all parts at these values, at the
    loosest tolerance at which none of its objectives is further above ours than the gap that ours proves. Who takes
    longer than ``--limit`` ends there.
    """
    most = int(found.n_nonzero.max())
    print(f"  {way} of {len(found.Cs)} values to {most} weights, {loss}: hinge {mine:.2f} s", flush=True)
    fits = [
        Refit(*part, float(C), float(ours.sum()))
        for C, objectives in zip(found.Cs, found.objective, strict=True)
        for part, ours in zip(parts, objectives, strict=True)
    ]
    for name, fit in rivals.items():
        for tol in TOLERANCES[given.first :]:
            seconds, done, above = refits(loss, fits, fit, tol, gap, given.limit)
            if above <= gap:
                break
        end = "" if done == len(fits) else f" for {done} of {len(fits)} fits"
        told = f"{seconds / mine:.1f}x, tolerance {tol:g}, up to {above:.1e} above"
        print(f"    {name:14s} {seconds:8.2f} s{end}, {told}", flush=True)


def refits(loss: str, fits: list[Refit], fit: Fit, tol: float, gap: float, limit: float) -> tuple[float, int, float]:
    """Seconds of a rival's fits, how many there was time for, and how far above ours the worst objective was; ends
    with the first that is too far.
    """
    total, above = 0.0, 0.0
    for done, (X, y, C, ours) in enumerate(fits):
        if total > limit or above > gap:
            return total, done, above
        seconds, w = fit(X, y, C, tol)
        total, above = total + seconds, max(above, objective(loss, X, y, C, w) / ours - 1.0)
    return total, len(fits), above


def available(names: list[str]) -> dict[str, Callable[[str], Fit | None]]:
    """The rivals that are installed; the others are named."""
    found = {}
    for name in names:
        try:
            RIVALS[name]("logistic")
        except ImportError as missing:
            print(f"without {name}: {missing}")
            continue
        found[name] = RIVALS[name]
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--shares", nargs="+", type=float, default=(0.001, 0.01, 0.1))
    parser.add_argument("--costs", nargs="+", type=float, help="values of C, instead of shares")
    parser.add_argument("--losses", nargs="+", default=("logistic", "squared_hinge"))
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS))
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--path", action="store_true")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--first", type=int, default=2, help="which of the tolerances refits begin with")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rivals = available(given.rivals)
    small, labels = sp.random(50, 20, 0.5, format="csr", random_state=0), np.where(np.arange(50) % 2, 1, -1)
    for rival in rivals.values():
        if (fit := rival("logistic")) is not None:
            fit(small, labels, 1.0, 1e-2)
    hinge.select_C(small, labels, penalty="l1")  # what is imported late does not count, either
    ratios: list[list[float]] = [[] for _ in TARGETS]
    with threadpool_limits(1):
        for name in given.sets:
            X, y = read(name)
            print(f"{name}: {X.shape[0]} x {X.shape[1]}", flush=True)
            for loss in given.losses:
                known = {name: fit for name, rival in rivals.items() if (fit := rival(loss)) is not None}
                if given.path or given.search:
                    (path if given.path else search)(loss, X, y, given, known)
                    continue
                for C in given.costs or costs_of_shares(loss, X, y, given.shares):
                    of_case = compare(loss, X, y, C, given, known)
                    for some, ratio in zip(ratios, of_case, strict=True):
                        some.extend([ratio] if ratio < np.inf else [])
    if not any(ratios):
        return
    means = [float(np.exp(np.mean(np.log(some)))) if some else float("nan") for some in ratios]
    print("geometric means at", " ".join(f"{t:g}: {m:.1f}" for t, m in zip(TARGETS, means, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
