"""Numbers at the edges of double precision: every fit is right, or refused with what would be accepted.

Usage: ``python tests/hardening/extremes.py [--cases 20000] [--seed 0]``. Values from 1e-300 to 1e300 and denormal ones,
columns that are constant or twice there, C from 1e-30 to 1e30, weights of rows 0 and 1e300, a single row of a class, a
single column, empty rows and columns numbered up to 2^31 and 2^32. A model never holds a NaN or an infinity, nor does
its certificate but for a dual value that proves nothing, and in exact arithmetic (fractions, decimals of 60 digits for
the logistic loss) no dual value is above the best objective that any solver reached and no gap below the distance to
it.
"""

import argparse
import sys
import time
import warnings
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import hinge
import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from problems import LOSSES, estimator
from test_proofs import EXACT, SOLVERS, decimal

EXTREME = (5e-324, 1e-310, 2.3e-308, 1e-300, 1e-200, 1e-154, 1e-100, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e60, 1e100, 1e154)
HUGE = (*EXTREME, 1e200, 1e300, 1.7e308)
KNOWN = (331, 587, 1736, 3235, 11933, 13427)  # problems that were wrong once, tried in every run
WEIGHTS = (0.0, 5e-324, 1e-300, 1e-30, 1.0, 1e30, 1e300)
MEANT = (  # texts of refusals that say what is wrong
    "squared norm",
    "is not finite",
    "sample_weight",
    "at least two classes",
    "the rows of all classes",
    "weight",
    "overflow",
    "must be",
)


def logistic(m):
    """log(1 + exp(-m)) of a fraction to 60 digits, also where it is far below 1e-60: weights may be 1e300."""
    with localcontext() as context:
        context.prec = 60
        z = decimal(m)
        tail = (-abs(z)).exp() if abs(z) < 10**5 else Decimal(0)
        rest = tail - tail * tail / 2 if tail < Decimal("1e-40") else (1 + tail).ln()
        return Fraction(rest + max(-z, Decimal(0)))


LOSS_OF = {**EXACT, "logistic": logistic}


def problem(random):
    """A few rows of numbers that no table has."""
    n, d = int(random.integers(2, 9)), int(random.integers(1, 5))
    kind = random.choice(["one scale", "columns", "rows", "any", "some", "denormal", "constant", "huge"])
    X = random.standard_normal((n, d)) * (random.random((n, d)) < 0.8)
    if kind == "one scale":
        X = X * random.choice(EXTREME)
    elif kind == "columns":
        X = X * random.choice(EXTREME, d)
    elif kind == "rows":
        X = X * random.choice(EXTREME, (n, 1))
    elif kind == "any":
        X = X * random.choice(EXTREME, (n, d))
    elif kind == "some":
        X[random.integers(n), random.integers(d)] = random.choice(HUGE) * random.choice([-1, 1])
    elif kind == "denormal":
        X = np.sign(X) * 5e-324 * random.integers(1, 9, X.shape)
    elif kind == "constant":
        X = np.full((n, d), random.choice(EXTREME))
        X[:, 1:] = X[:, :1] * random.standard_normal()
    elif kind == "huge":
        X = X * random.choice(HUGE)
    if random.random() < 0.3:
        X = np.hstack([X, X[:, :1]])
    if random.random() < 0.3:
        X[random.integers(n)] = 0.0
    X[~np.isfinite(X)] = 1.0
    y = np.where(random.random(n) < 0.5, 1, -1)
    y[:2] = 1, -1
    return X, y


def exact_value(w, b, X, y, cost, loss, scaling):
    """The objective at a point, without any rounding."""
    w, b = [Fraction(float(v)) for v in w], Fraction(float(b))
    value = sum(v * v for v in w) / 2
    if scaling:
        value += (b / Fraction(scaling)) ** 2 / 2
    for row, label, c in zip(X.tolist(), y, cost, strict=True):
        margin = int(label) * (b + sum(Fraction(v) * u for v, u in zip(row, w, strict=True)))
        value += c * LOSS_OF[loss](margin)
    return value


def check(random, counts):
    """One problem by all solvers; what is wrong, as text."""
    X, y = problem(random)
    loss = str(random.choice(LOSSES))
    C = float(random.choice([1e-30, 1e-15, 1e-8, 1e-3, 1.0, 1e3, 1e8, 1e15, 1e30]))
    weight = None
    if random.random() < 0.4:
        weight = random.choice(WEIGHTS, len(y)) if random.random() < 0.7 else random.uniform(0, 2, len(y))
    intercept = [{"fit_intercept": False}, {}, {"intercept_scaling": float(random.choice([1e-8, 1.0, 1e8]))}]
    options = {"C": C, "n_jobs": 1, **intercept[random.integers(3)]}
    exact = [Fraction(C) * Fraction(float(v)) for v in (np.ones(len(y)) if weight is None else weight)]
    found = []
    for solver in SOLVERS[loss]:
        limit = 60 if solver in ("cutting_plane", "primal_cd") else 200
        model = estimator(loss, solver=solver, tol=1e-4, max_iter=limit, **options)
        counts["fits"] += 1
        start = time.perf_counter()
        try:
            model.fit(sp.csr_matrix(X) if random.random() < 0.5 else X, y, sample_weight=weight)
        except ValueError as error:
            counts["refused"] += 1
            counts[f"refused: {str(error)[:70]}"] += 1
            if not any(text in str(error) for text in MEANT):
                return f"a refusal that says little: {error}"
            continue
        except RuntimeError as error:
            return f"{loss}, {solver}, {options}: {error}: {X.tolist()} {y} {weight}"
        if time.perf_counter() - start > 20:
            return f"{loss}, {solver}, {options} took {time.perf_counter() - start:.0f} s: {X.tolist()} {y} {weight}"
        certificate = model.certificate_
        told = f"{loss}, {solver}, {options}, {certificate}: {X.tolist()} {y.tolist()} {weight}"
        numbers = np.concatenate([model.coef_.ravel(), model.intercept_, certificate.primal])
        if not np.isfinite(numbers).all() or np.isnan(certificate.dual).any():
            return f"not finite: {numbers}, {told}"
        if not np.isfinite(model.decision_function(X * 0.0)).all():
            return f"decision values: {told}"
        found.append((model, certificate, told))
        counts[certificate.status[0]] += 1
    if not found:
        return None
    scaling = options.get("intercept_scaling")
    values = [exact_value(m.coef_[0], m.intercept_[0], X, y, exact, loss, scaling) for m, _, _ in found]
    values.append(exact_value(np.zeros(X.shape[1]), 0.0, X, y, exact, loss, scaling))  # the zero model is one, too
    best = min(values)
    for value, (_, certificate, told) in zip(values, found, strict=False):
        dual, gap, primal = (float(v[0]) for v in (certificate.dual, certificate.relative_gap, certificate.primal))
        if dual > -np.inf and Fraction(dual) > best:
            return f"a dual value above {float(best)!r}: {told}"
        if gap < np.inf and Fraction(gap) * best < (value - best) * (1 - Fraction(1, 10**12)):
            return f"a gap below {float((value - best) / best)!r}: {told}"
        if dual > 0 and abs(Fraction(primal) - value) > Fraction(primal) - Fraction(dual):
            return f"an objective that is {float(value)!r}: {told}"
        if certificate.converged != (gap <= 1e-4):
            return f"converged, or not: {told}"
    return None


def wide(counts):
    """Columns numbered at 2^31 and 2^32, more cells than 64-bit numbers of 4 bytes each count, and nothing stored."""
    failures = []

    def attempt(name, call, allowed):
        counts["wide"] += 1
        try:
            call()
            found = "done"
        except (ValueError, MemoryError) as error:
            found = f"{type(error).__name__}: {error}"
        except Exception as error:
            found = f"UNEXPECTED {type(error).__name__}: {error}"
        if not any(found.startswith(text) for text in allowed):
            failures.append(f"{name}: {found}")

    y = np.array([0, 1, 1])
    for d in (2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 2**40, 2**62):
        for index in (np.int32, np.int64):
            if d > 2**31 and index is np.int32:
                continue
            last = min(d - 1, np.iinfo(index).max)
            X = sp.csr_matrix((3, 1))
            X._shape = (3, d)
            X.indptr, X.indices = np.array([0, 1, 2, 3], index), np.array([0, last, 5], index)
            X.data = np.array([1.0, 2.0, -1.0])
            refused = ("done", "ValueError", "MemoryError")
            presolved = hinge.LinearSVC(sparse_coef=True, presolve=True, n_jobs=1)
            attempt(f"sparse_coef, {d} columns", lambda X=X, m=presolved: m.fit(X, y), refused)
            if d > 2**32:
                attempt(f"dense weights, {d} columns", lambda X=X: hinge.LinearSVC(n_jobs=1).fit(X, y), refused)
                pairs = hinge.LinearSVC(degree=2, n_jobs=1)
                attempt(f"pairs, {d} columns", lambda X=X, m=pairs: m.fit(X, y), refused)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    counts, failures, start = Counter(), [], time.monotonic()
    failures += wide(counts)
    for case in (*KNOWN, *range(asked.seed, asked.seed + asked.cases)):
        text = check(np.random.default_rng(case), counts)
        if text:
            failures.append(f"case {case}: {text}")
            print(failures[-1][:1500], flush=True)
        if len(failures) >= 30:
            break
    print("\n".join(failures))
    print(f"{asked.cases} problems in {time.monotonic() - start:.0f} s, {len(failures)} failures; {dict(counts)}")
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
