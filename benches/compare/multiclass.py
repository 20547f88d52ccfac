"""Multi-class and multi-label fits against LIBLINEAR and scikit-learn: one part per run, both sides in it.

    python multiclass.py crammer_singer   # time to a relative primal gap of 1e-3, LIBLINEAR -s 4 beside it
    python multiclass.py optimum          # objectives of Crammer-Singer at tight tolerances, LIBLINEAR -s 4 beside it
    python multiclass.py ovr              # one-vs-rest, squared hinge, to 1e-3 for every class, LIBLINEAR -s 1: in one
                                          # process, and with its classes divided among two
    python multiclass.py eurlex           # 3,993 labels: time, precision at 1, 3, 5, size of the model, memory
    python multiclass.py classes          # 50,000 synthetic classes x 1 M features: time and memory
    python multiclass.py calibration      # probabilities of the search against CalibratedClassifierCV

Objectives are computed here, in double precision, from the weights of either side; neither has an intercept. LIBLINEAR
runs at falling tolerances until it is good enough, and the time of that run counts; its conversion is counted too.
"""

from __future__ import annotations

import argparse
import bz2
import io
import multiprocessing
import pickle
import resource
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import hinge
import numpy as np
import problems
import scipy.sparse as sp
from harness import describe

TARGET = 1e-3
TOLERANCES = (0.3, 0.1, 0.05, 0.03, 0.02, 0.01, 0.003, 0.001)


def crammer_singer_objective(W: np.ndarray, X, y: np.ndarray, C: float) -> float:
    """The objective of all classes at once."""
    scores = np.asarray(X @ W.T)
    rows = np.arange(len(y))
    own = scores[rows, y].copy()
    scores += 1.0
    scores[rows, y] -= 1.0
    return 0.5 * float((W**2).sum()) + C * float((scores.max(axis=1) - own).sum())


def ovr_objectives(W: np.ndarray, X, y: np.ndarray, C: float) -> np.ndarray:
    """The squared-hinge objective of each class against the rest."""
    signs = np.where(y[:, None] == np.arange(len(W)), 1.0, -1.0)
    short = np.maximum(0.0, 1.0 - signs * np.asarray(X @ W.T))
    return 0.5 * (W**2).sum(axis=1) + C * (short**2).sum(axis=0)


def timed(function, repeat: int):
    """Median of wall seconds, and the last result."""
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds)), result


def liblinear(X, y: np.ndarray, solver: int, C: float, eps: float) -> tuple[float, np.ndarray]:
    """Seconds, conversion included, and weights by class."""
    from liblinear import liblinearutil

    started = time.perf_counter()
    problem = liblinearutil.problem(y.astype(float), X)
    model = liblinearutil.train(problem, liblinearutil.parameter(f"-s {solver} -c {C} -e {eps} -q"))
    seconds = time.perf_counter() - started
    n_classes = model.nr_class
    W = np.ctypeslib.as_array(model.w, (X.shape[1] * n_classes,)).reshape(X.shape[1], n_classes).T
    coef = np.empty_like(W)
    coef[[model.label[m] for m in range(n_classes)]] = W
    return seconds, coef


def first_good(X, y, solver: int, C: float, gap, limit: float):
    """The first run of LIBLINEAR that is good enough: seconds, its tolerance and its gap."""
    for eps in TOLERANCES:
        seconds, W = liblinear(X, y, solver, C, eps)
        found = gap(W)
        if found <= TARGET or seconds > limit:
            return seconds, eps, found
    return seconds, eps, found


def crammer_singer(options: argparse.Namespace) -> None:
    """The part of that name."""
    print("set C  hinge 1 thread s (gap)  2 threads s  LIBLINEAR s (eps, gap)  ratio 1, 2 threads")
    for name in options.sets or ("20news", "sector", "w8a", "mnist"):
        X, y, _, _ = problems.classes(name)
        for C in options.Cs:
            common = {"C": C, "multi_class": "crammer_singer", "fit_intercept": False}
            best = hinge.LinearSVC(tol=options.best, max_iter=100_000, **common).fit(X, y).certificate_
            k = len(np.unique(y))

            def gap(W, X=X, y=y, C=C, low=best.dual[0]):
                return crammer_singer_objective(W, X, y, C) / low - 1.0

            ours = {}
            for threads in (1, 2):
                model = hinge.LinearSVC(tol=TARGET, n_jobs=threads, **common)
                ours[threads] = timed(partial(model.fit, X, y), options.repeat)
            W = ours[1][1].coef_
            W = np.vstack([-W / 2, W / 2]) if k == 2 else W
            theirs, eps, their_gap = first_good(X, y, 4, C, gap, options.limit) if k > 2 else (np.nan, np.nan, np.nan)
            ratios = [theirs / ours[t][0] for t in (1, 2)]
            print(
                f"{name} {C:g}  {ours[1][0]:.2f} ({gap(W):.1e})  {ours[2][0]:.2f}"
                f"  {theirs:.2f} ({eps:g}, {their_gap:.1e})  {ratios[0]:.1f}x {ratios[1]:.1f}x"
                f"   optimum within {best.relative_gap[0]:.1e}",
                flush=True,
            )


def optimum(options: argparse.Namespace) -> None:
    """Both sides at tight tolerances, on a part of the rows where LIBLINEAR would take too long."""
    print(
        "set rows C  hinge objective (certified gap) s  LIBLINEAR objective (eps) s  hinge less LIBLINEAR, relatively"
    )
    for name in options.sets or ("20news", "sector", "mnist", "w8a"):
        X, y, _, _ = problems.classes(name)
        chosen = np.sort(np.random.default_rng(0).permutation(len(y))[: options.rows])
        X, (_, y) = X[chosen], np.unique(y[chosen], return_inverse=True)
        k = len(np.unique(y))
        for C in options.Cs:
            started = time.perf_counter()
            model = hinge.LinearSVC(
                C=C, multi_class="crammer_singer", fit_intercept=False, tol=options.best, max_iter=100_000
            ).fit(X, y)
            seconds = time.perf_counter() - started
            W = np.vstack([-model.coef_ / 2, model.coef_ / 2]) if k == 2 else model.coef_
            ours = crammer_singer_objective(W, X, y, C)
            their_seconds, W = liblinear(X, y, 4, C, options.eps)
            theirs = crammer_singer_objective(W, X, y, C)
            print(
                f"{name} {len(y)} {C:g}  {ours:.9g} ({model.certificate_.relative_gap[0]:.1e}) {seconds:.1f}"
                f"  {theirs:.9g} ({options.eps:g}) {their_seconds:.1f}  {ours / theirs - 1.0:+.1e}",
                flush=True,
            )


def some_classes(X, y: np.ndarray, C: float, eps: float, part: int, parts: int) -> None:
    """LIBLINEAR -s 1 for every class of one part, each against the rest, converted once."""
    from liblinear import liblinearutil

    problem = liblinearutil.problem(y.astype(float), X)
    labels = np.ctypeslib.as_array(problem.y, (len(y),))
    for k in range(part, y.max() + 1, parts):
        labels[:] = np.where(y == k, 1.0, -1.0)
        liblinearutil.train(problem, liblinearutil.parameter(f"-s 1 -c {C} -e {eps} -q"))


def label_parallel(X, y: np.ndarray, C: float, eps: float, processes: int) -> float:
    """Seconds of LIBLINEAR with the classes divided among processes, which inherit the data."""
    context = multiprocessing.get_context("fork")
    started = time.perf_counter()
    work = [context.Process(target=some_classes, args=(X, y, C, eps, part, processes)) for part in range(processes)]
    for process in work:
        process.start()
    for process in work:
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"a process of LIBLINEAR ended with {process.exitcode}")
    return time.perf_counter() - started


def ovr(options: argparse.Namespace) -> None:
    """One-vs-rest."""
    print(
        "set C  hinge 1 thread s (gap)  2 threads s  LIBLINEAR s (eps, gap), label-parallel s  ratios: 1, 2, 2 threads"
    )
    for name in options.sets or ("20news", "sector"):
        X, y, _, _ = problems.classes(name)
        for C in options.Cs:
            common = {"C": C, "fit_intercept": False}
            best = hinge.LinearSVC(tol=1e-7, **common).fit(X, y).certificate_.dual

            def gap(W, X=X, y=y, C=C, best=best):
                return float((ovr_objectives(W, X, y, C) / best - 1.0).max())

            ours = {}
            for threads in (1, 2):
                model = hinge.LinearSVC(tol=TARGET, n_jobs=threads, **common)
                ours[threads] = timed(partial(model.fit, X, y), options.repeat)
            theirs, eps, their_gap = first_good(X, y, 1, C, gap, options.limit)
            divided = label_parallel(X, y, C, eps, 2)
            ratios = [theirs / ours[1][0], theirs / ours[2][0], divided / ours[2][0]]
            print(
                f"{name} {C:g}  {ours[1][0]:.2f} ({gap(ours[1][1].coef_):.1e})  {ours[2][0]:.2f}"
                f"  {theirs:.2f} ({eps:g}, {their_gap:.1e}), {divided:.2f}"
                f"  {ratios[0]:.1f}x {ratios[1]:.1f}x {ratios[2]:.1f}x",
                flush=True,
            )


def eurlex_file(name: str):
    """A file of the extreme classification repository: a header line, labels, indices from 0."""
    from sklearn.datasets import load_svmlight_file

    folder = Path(problems.data_root()) / "eurlex4k"
    with bz2.open(folder / name) as file:
        _, n_features, n_labels = (int(word) for word in file.readline().split())
        rest = io.BytesIO(file.read())
    X, labels = load_svmlight_file(rest, n_features=n_features, multilabel=True, zero_based=True, dtype=np.float32)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in labels])])
    indices = np.array([label for row in labels for label in row], dtype=np.int64)
    return X, sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(labels), n_labels))


def unit_rows(X):
    """Rows of norm 1."""
    from sklearn.preprocessing import normalize

    return normalize(X)


def eurlex(options: argparse.Namespace) -> None:
    """3,993 labels."""
    X, Y = eurlex_file("eurlex_train.txt.bz2")
    X_test, Y_test = eurlex_file("eurlex_test.txt.bz2")
    X, X_test = unit_rows(X), unit_rows(X_test)
    print(f"eurlex4k {X.shape} {Y.shape}")
    for tol in options.sparse_tols:
        started = time.perf_counter()
        model = hinge.LinearSVC(
            C=options.Cs[0], tol=1e-2, sparse_coef=True, sparse_tol=tol, n_jobs=options.threads
        ).fit(X, Y)
        seconds = time.perf_counter() - started
        labels, _ = model.predict_top_k(X_test, 5)
        hits = np.asarray(Y_test.tocsr()[np.arange(len(labels))[:, None], labels].todense())
        precision = [100 * hits[:, :k].mean() for k in (1, 3, 5)]
        size = len(pickle.dumps(model, protocol=5))
        dense = 8 * X.shape[1] * Y.shape[1]
        gap = float(model.certificate_.relative_gap[np.isfinite(model.certificate_.relative_gap)].max())
        print(
            f"sparse_tol {tol:g}: {seconds:.1f} s, P@1/3/5 {precision[0]:.2f} {precision[1]:.2f} {precision[2]:.2f}, "
            f"model {size / 1e6:.1f} MB of {dense / 1e6:.0f} MB dense ({size / dense:.1%}), "
            f"largest gap {gap:.1e}, peak memory {peak_memory():.2f} GB",
            flush=True,
        )


def peak_memory() -> float:
    """Of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def classes(options: argparse.Namespace) -> None:
    """Many synthetic classes: a few rows each, around words of their own."""
    n_classes, n_features, n_rows, length = options.classes, 1_000_000, 2 * options.classes, 10
    random = np.random.default_rng(0)
    own = random.integers(0, n_features, (n_classes, 20))
    y = np.tile(np.arange(n_classes), n_rows // n_classes)
    words = own[y[:, None], random.integers(0, 20, (n_rows, length // 2))]
    common = (n_features * random.random((n_rows, length - length // 2)) ** 3).astype(np.int64)
    indices = np.concatenate([words, common], axis=1)
    X = sp.csr_matrix((np.ones(indices.size, np.float32), indices.ravel(), np.arange(0, indices.size + 1, length)))
    X.resize(n_rows, n_features)
    X.sum_duplicates()
    before = peak_memory()
    started, worked = time.perf_counter(), time.process_time()
    model = hinge.LinearSVC(tol=1e-2, sparse_coef=True, n_jobs=options.threads).fit(X, y)
    seconds, processor = time.perf_counter() - started, time.process_time() - worked
    right = (model.predict(X[:500]) == y[:500]).mean()
    print(
        f"{n_classes} classes x {n_features} features, {n_rows} rows, {X.nnz} entries: {seconds:.0f} s, "
        f"{processor:.0f} s of processors, peak memory {peak_memory():.2f} GB ({before:.2f} before), "
        f"{model.coef_.nnz / 1e6:.1f} M weights, converged {model.certificate_.converged}, "
        f"{right:.1%} of 500 training rows right",
        flush=True,
    )


def calibration_error(p: np.ndarray, y: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error of the most probable class."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    group = np.minimum((sure * bins).astype(int), bins - 1)
    weights = np.bincount(group, minlength=bins)
    gaps = np.abs(np.bincount(group, sure - right, bins)) / np.maximum(weights, 1)
    return float((weights * gaps).sum() / len(y))


def calibration(options: argparse.Namespace) -> None:
    """Probabilities of the search, and of CalibratedClassifierCV(ensemble=False) around the same fit, C and folds.

    Equal folds matter: on imdb, whose rows of one film lie together, folds in file order (CalibratedClassifierCV's
    default) give a log loss of 0.2332, shuffled ones (the default of the search) 0.2348, on either side.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedKFold

    print("set method  search+refit s  of it calibration s  log loss  ECE   CalibratedClassifierCV s  log loss  ECE")
    for name in options.sets or ("imdb", "20news", "phishing_urls"):
        X, y, X_test, y_test = problems.classes(name)
        Cs = [0.0625, 0.25, 1.0, 4.0]
        started = time.perf_counter()
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        search = hinge.LinearSVCCV(Cs=Cs, cv=folds, keep_decisions=True, n_jobs=options.threads).fit(X, y)
        searched = time.perf_counter() - started
        values = search.decision_function(X_test)
        for method in ("sigmoid", "isotonic", "temperature"):
            started = time.perf_counter()
            ours = hinge.calibrate(search.search_.decisions, y, method=method)
            seconds = time.perf_counter() - started
            p = ours.predict_proba(values)
            row = [log_loss(y_test, p), calibration_error(p, y_test)]
            theirs = CalibratedClassifierCV(
                hinge.LinearSVC(C=search.C_, n_jobs=options.threads), method=method, ensemble=False, cv=folds
            )
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs.fit(X, y)
            their_seconds = time.perf_counter() - started
            q = theirs.predict_proba(X_test)
            print(
                f"{name} {method}  {searched:.2f}  {seconds:.3f}  {row[0]:.4f}  {row[1]:.4f}   {their_seconds:.2f}"
                f"  {log_loss(y_test, q):.4f}  {calibration_error(q, y_test):.4f}   C={search.C_:g}",
                flush=True,
            )


PARTS = {
    "crammer_singer": crammer_singer,
    "optimum": optimum,
    "ovr": ovr,
    "eurlex": eurlex,
    "classes": classes,
    "calibration": calibration,
}


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("part", choices=PARTS)
    parse.add_argument("--sets", type=lambda text: text.split(","), default=None, help="comma-separated names")
    parse.add_argument("--Cs", type=lambda text: [float(c) for c in text.split(",")], default=[1.0])
    parse.add_argument("--repeat", type=int, default=3, help="timed runs of hinge; the median counts")
    parse.add_argument("--limit", type=float, default=60.0, help="seconds after which LIBLINEAR is not asked for more")
    parse.add_argument(
        "--best", type=float, default=1e-4, help="gap of the run whose dual value stands for the optimum"
    )
    parse.add_argument("--rows", type=int, default=10**9, help="rows of each set, for the part optimum")
    parse.add_argument("--eps", type=float, default=1e-5, help="tolerance of LIBLINEAR, for the part optimum")
    parse.add_argument("--threads", type=int, default=2)
    parse.add_argument("--classes", type=int, default=50_000)
    parse.add_argument("--sparse-tols", type=lambda text: [float(t) for t in text.split(",")], default=[1e-2])
    options = parse.parse_args()
    if options.part != "classes" and problems.data_root() is None:
        print("skipped: no data sets, set HINGE_DATA to their folder")
        sys.exit(0)
    print(f"# {describe()}", flush=True)
    PARTS[options.part](options)


if __name__ == "__main__":
    main()
