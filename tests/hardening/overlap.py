"""A long run of random fits: the certified intervals [dual bound, objective] of all ways to fit one problem overlap.

Usage: ``python tests/hardening/overlap.py --minutes 60 [--seed 0]``. Every problem is fitted by every solver and route
that takes it, to a tolerance drawn anew for each, some of them hardly begun. All intervals hold the same optimum, so
the largest lower bound is at most the least objective. Where it is not by more than the rounding of an objective of
double precision, the problem is printed with its seed and the run ends with code 1. Memory is read once a minute: what
the process has at the end must be what it had after its first tenth, within 16 MB.
"""

import argparse
import ctypes
import gc
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import hinge
import numpy as np
import scipy.sparse as sp

SOLVERS = {
    "hinge": ("auto", "dual_cd", "dual_cd_permuted", "dual_cd_online", "newton", "cutting_plane"),
    "squared_hinge": ("auto", "dual_cd", "dual_cd_permuted", "dual_cd_online", "newton", "primal_cd"),
    "modified_huber": ("auto", "dual_cd", "dual_cd_permuted", "dual_cd_online", "newton"),
    "logistic": ("auto", "dual_cd", "dual_cd_permuted", "dual_cd_online", "newton"),
    "multinomial": ("auto", "dual_cd", "newton"),
    "crammer_singer": ("auto", "dual_cd"),
}
SEVERAL = ("multinomial", "crammer_singer")
ROUNDING = 1e-12  # of an objective, which is a sum of at most some hundred terms of one sign


def estimator(loss, **options):
    """The estimator that fits a loss."""
    if loss == "multinomial":
        return hinge.LogisticRegression(multi_class="multinomial", **options)
    if loss == "logistic":
        return hinge.LogisticRegression(multi_class="ovr", **options)
    if loss == "crammer_singer":
        return hinge.LinearSVC(multi_class="crammer_singer", **options)
    return hinge.LinearSVC(loss=loss, **options)


def matrix(random):
    """Rows of many kinds: scales, offsets, empty, repeated, proportional, one column, more columns than rows."""
    n = int(random.integers(2, random.choice([8, 60, 400])))
    d = int(random.integers(1, random.choice([3, 20, 300])))
    X = random.standard_normal((n, d)) * (random.random((n, d)) < random.choice([0.05, 0.3, 1.0]))
    kind = random.choice(["plain", "columns", "rows", "offset", "repeated", "ones", "proportional"])
    if kind == "columns":
        X = X * 10.0 ** random.integers(-4, 5, d)
    elif kind == "rows":
        X = X * 10.0 ** random.uniform(-3, 3, (n, 1))
    elif kind == "offset":
        X = X + 10.0 ** random.integers(0, 5)
    elif kind == "repeated":
        X = X[random.integers(0, (n + 1) // 2, n)]
    elif kind == "ones":
        X = (X != 0).astype(np.float64)
    elif kind == "proportional":
        X = X[:, random.integers(0, (d + 1) // 2, d)] * random.choice([-2.0, 0.5, 1.0, 3.0], d)
    return X


def problem(seed, loss):
    """X, y, weights of rows or None, and the options that belong to the problem."""
    random = np.random.default_rng(seed)
    X = matrix(random)
    k = int(random.integers(2, 6)) if loss in SEVERAL else int(random.choice([2, 2, 3]))
    k = min(k, len(X))
    y = (X @ random.standard_normal((X.shape[1], k)) / (np.abs(X).max() + 1e-300)).argmax(axis=1)
    wrong = random.random(len(y)) < random.choice([0.0, 0.2, 1.0])
    y[wrong] = random.integers(0, k, wrong.sum())
    y[:k] = np.arange(k)
    weight = random.uniform(0.1, 10.0, len(y)) if random.random() < 0.3 else None
    options = {"C": float(2.0 ** random.integers(-14, 13))}
    options |= [{"fit_intercept": False}, {"fit_intercept": True}, {"intercept_scaling": 2.0}][random.integers(3)]
    if random.random() < 0.2:
        options["class_weight"] = "balanced"
    return X, y, weight, options


def ways(random, loss, X, y, weight, folder):
    """Names, and what each is: (X, y, weight) or a store, and options of the fit."""
    for solver in SOLVERS[loss]:
        given = {"solver": solver, "tol": 10.0 ** -random.integers(1, 10), "n_jobs": int(random.choice([1, 2]))}
        given["max_iter"] = int(random.choice([1, 5, 100, 2000])) if solver != "cutting_plane" else 60
        yield solver, (sp.csr_matrix(X) if random.random() < 0.5 else X, y, weight), given
    if loss != "crammer_singer":
        yield "presolve", (sp.csr_matrix(X), y, weight), {"presolve": True, "tol": 1e-6, "n_jobs": 1}
    if random.random() < 0.2:
        source = (sp.csr_matrix(X), y) if weight is None else (sp.csr_matrix(X), y, weight)
        store = hinge.BlockStore.build(source, folder / "store", n_blocks=int(random.integers(1, 5)), overwrite=True)
        given = {"tol": 1e-4, "max_iter": 300, "n_jobs": 1, "memory_budget": "30MB"}
        yield "store", (store,), given
        if loss != "multinomial":
            yield "blocks", (store,), given | {"block_options": {"in_memory": False}}
    if loss in ("hinge", "squared_hinge") and len(set(y)) == 2 and random.random() < 0.3:
        yield "subgradient", (X, y, weight), {"tol": 1e-3, "max_iter": 50, "n_jobs": 1}


def fitted(name, loss, data, options):
    """A fitted estimator, the text of a refusal, or what else was raised."""
    if name == "subgradient":
        options = {key: value for key, value in options.items() if key != "solver"}
        model = hinge.SubgradientSVC(loss=loss, **options)
    else:
        model = estimator(loss, **options)
    try:
        return model.fit(*data)
    except ValueError as error:
        return str(error)
    except RuntimeError as error:  # a panic
        return error


def intervals(seed, loss, folder, counts):
    """Lower bounds and objectives by way, each an array with an entry per problem."""
    X, y, weight, options = problem(seed, loss)
    found = {}
    for name, data, given in ways(np.random.default_rng(seed + 1), loss, X, y, weight, folder):
        model = fitted(name, loss, data, options | given)
        counts["fits"] += 1
        if isinstance(model, str):
            counts["refused"] += 1
            counts[f"refused: {model[:60]}"] += 1
            continue
        if isinstance(model, RuntimeError):
            counts["panics"] += 1
            print(f"seed {seed}, {loss}, {name}: {model}", flush=True)
            continue
        if not (np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()):
            counts["not finite"] += 1
            print(f"seed {seed}, {loss}, {name}: weights are not finite: {model.coef_}", flush=True)
            continue
        certificate = model.certificate_
        scale = len(y) * options["C"] if name == "subgradient" and SCALED else 1.0
        counts[certificate.status[0]] += 1
        found[name] = certificate.dual * scale, certificate.primal * scale
    return found


SCALED = False  # whether the certificate of SubgradientSVC is of the mean loss


def check(seed, loss, folder, counts):
    """Whether all pairs overlap; what does not is printed."""
    found = intervals(seed, loss, folder, counts)
    if not found:
        return True
    lower = np.array([dual for dual, _ in found.values()])
    upper = np.array([primal for _, primal in found.values()])
    counts["pairs"] += len(found) * (len(found) - 1) // 2 * lower.shape[1]
    if np.isnan(lower).any() or np.isnan(upper).any():
        print(f"seed {seed}, {loss}: not a number: {found}", flush=True)
        return False
    best = upper.min(axis=0)
    counts["by rounding"] += int((lower.max(axis=0) > best).sum())
    if (lower.max(axis=0) <= best * (1 + ROUNDING)).all():
        return True
    print(f"seed {seed}, {loss}: a bound is above an objective: {found}", flush=True)
    return False


def resident():
    """MB that the process has in memory, without what its allocator keeps for later."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise SystemExit("no VmRSS in /proc/self/status")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    counts, wrong, memory = Counter(), 0, []
    start = said = time.monotonic()
    seed = asked.seed
    with tempfile.TemporaryDirectory() as folder:
        while (now := time.monotonic()) - start < 60 * asked.minutes:
            for loss in SOLVERS:
                wrong += not check(seed, loss, Path(folder), counts)
                counts["problems"] += 1
            seed += 2
            if now - said >= 60 or not memory:
                said = now
                memory.append(resident())
                main_counts = {key: n for key, n in counts.items() if not key.startswith("refused:")}
                print(f"{(now - start) / 60:.1f} min, {memory[-1]:.1f} MB, {main_counts}, wrong {wrong}", flush=True)
    print(f"{(time.monotonic() - start) / 60:.1f} minutes, seeds {asked.seed} to {seed}; {dict(counts)}")
    settled = memory[len(memory) // 10]
    print(f"MB in memory: {memory[0]:.1f} first, {settled:.1f} settled, {memory[-1]:.1f} last; {wrong} wrong")
    raise SystemExit(wrong > 0 or counts["panics"] + counts["not finite"] > 0 or memory[-1] > settled + 16)


if __name__ == "__main__":
    main()
