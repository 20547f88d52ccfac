"""Tables 2 and 3 of Chu15, what its theorems say of C and 2 C, and where its two rules end a search.

The rules are those of searches by :func:`hinge.select_C`; theorems 6 and 7, on the hinge, are checked on the exact path
in C of :func:`hinge.cost_path`. Solutions of the walks are by SciPy's trust-region Newton method, stopped by eq. (28)
from any start, which no public function of the package takes: the walk with one shared vector starts each fold from
another fold's solution. Those of table 2 are fits of the package to a gap of 1e-9. Objectives and gradients are
computed here, in float64.

Notation: ``back`` is the solution at C / 2 (the start, eq. 13), ``here`` that at C.
"""

from __future__ import annotations

import time

import hinge
import numpy as np
import scipy.sparse as sp
from chu15_measure import EXACT, LOOSE, Study, doublings
from harness import interrupted_after
from scipy.optimize import minimize
from scipy.special import entr, expit

LOG2_CS = (-4, 0, 4, 8)
"""Of table 2."""
WALK_ROWS = 4_000
"""Rows of the walks at most: two of them solve some two hundred problems."""
RAY_ROWS = 1_000
"""Rows of the exact path of the hinge at most, and entries of them, columns that they use at most."""
RAY_COLUMNS = 300
LAST = 2.0**20
"""C at which the path of the hinge ends."""
RULES = ("gradient", "unchanged", "exact")
"""Eq. (24), three values without a change by eq. (28), and our own."""
RADIUS = 1e6
"""Of the trust region at most; it starts at 1."""

Rows = tuple[sp.csr_matrix, np.ndarray]


class Objective:
    """f at one C on given rows, with its gradient and products of its Hessian."""

    def __init__(self, loss: str, rows: Rows, C: float):
        self.loss, self.C = loss, C
        (self.X, self.y), self.products = rows, 0

    def margins(self, w: np.ndarray) -> np.ndarray:
        """y_i w.x_i."""
        self.products += 1
        return self.y * (self.X @ w)

    def value(self, w: np.ndarray) -> float:
        """f(w)."""
        m = self.margins(w)
        losses = np.logaddexp(0.0, -m) if self.loss == "logistic" else np.square(np.maximum(0.0, 1 - m))
        return float(0.5 * w @ w + self.C * losses.sum())

    def dual(self, w: np.ndarray) -> np.ndarray:
        """The dual variables that belong to w, eq. (14) before it doubles them."""
        m = self.margins(w)
        return self.C * (expit(-m) if self.loss == "logistic" else 2 * np.maximum(0.0, 1 - m))

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Of f at w."""
        return w - self.X.T @ (self.y * self.dual(w))

    def curve(self, w: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Its Hessian at w times v."""
        m = self.margins(w)
        d = expit(m) * expit(-m) if self.loss == "logistic" else 2.0 * (m < 1)
        self.products += 1
        return v + self.C * (self.X.T @ (d * (self.X @ v)))

    def dual_value(self, alpha: np.ndarray) -> float:
        """The dual objective, to be maximised."""
        w = self.X.T @ (self.y * alpha)
        share = alpha / self.C
        gain = self.C * (entr(share) + entr(1 - share)) if self.loss == "logistic" else alpha - alpha**2 / (4 * self.C)
        return float(gain.sum() - 0.5 * w @ w)


def starts(study: Study) -> list[dict]:
    """Table 2 on all rows, and beside it what theorems 1, 5 and 8 say of the same pairs of C / 2 and C.

    The first row is at twice the first value of the search.
    """
    table = []
    try:
        with interrupted_after(8 * study.plan.limit):
            for C in (2 * float(study.Cs[0]), *(2.0**k for k in LOG2_CS)):
                table.append(start(study, C))
    except TimeoutError:
        pass
    return table


def start(study: Study, C: float) -> dict[str, float]:
    """One row."""
    back, here = (study.weights(None, value, EXACT) for value in (C / 2, C))
    loss, rows = study.plan.loss, study.rows(None)
    f, before = Objective(loss, rows, C), Objective(loss, rows, C / 2)
    alpha_back, alpha = before.dual(back), f.dual(here)
    best = f.value(here)
    return {
        "C": C,
        "primal": f.value(back) - best,
        "dual": f.dual_value(2 * alpha_back) - best,
        "half": 0.5 * float(back @ back),
        "resolution": EXACT * best,
        "moved": float(np.linalg.norm(here - back) / np.linalg.norm(here)),
        "growth": float(np.linalg.norm(alpha) / np.linalg.norm(alpha_back)),
        "gradient": float(np.linalg.norm(f.gradient(back)) / np.linalg.norm(f.gradient(np.zeros_like(back)))),
    }


def sample(study: Study) -> tuple[list[Rows], list[Rows]]:
    """Training and held-out rows of each fold, of at most WALK_ROWS rows in all."""
    X, y = study.problem.exact, study.y
    kept = np.zeros(len(y), dtype=bool)
    kept[np.random.default_rng(0).permutation(len(y))[:WALK_ROWS]] = True
    X = X[:, np.unique(X[kept].indices)]  # weights of the other columns stay 0
    train, held = [], []
    for inside, outside in study.splits:
        for parts, rows in ((train, inside), (held, outside)):
            rows = rows[kept[rows]]
            parts.append((X[rows], y[rows]))
    return train, held


def solve(f: Objective, w: np.ndarray, bound: float) -> np.ndarray:
    """From w until the norm of the gradient is at most the bound."""
    if np.linalg.norm(f.gradient(w)) <= bound:
        return w
    options = {"gtol": bound, "max_trust_radius": RADIUS, "maxiter": 2000}
    return minimize(f.value, w, jac=f.gradient, hessp=f.curve, method="trust-ncg", options=options).x


def walk(study: Study, is_shared: bool) -> list[dict]:
    """Accuracy along C with a vector for each fold (algorithm 1), or one that goes from fold to fold (section 4.5).

    ``largest`` is the largest norm over the folds of the gradient of the solution at C / 2, relative to that at zero:
    eq. (24) asks that it be at most 1e-2. ``strict`` divides that by the share of eq. (28), which asks for the same.
    """
    train, held = sample(study)
    ws = [np.zeros(train[0][0].shape[1]) for _ in train]
    one, first, table = ws[0], float(study.Cs[0]), []
    for C in (first * 2.0**k for k in range(doublings(first, study.plan.C_max) + 1)):
        right = rows = products = 0
        largest = strict = 0.0
        for k, part in enumerate(train):
            f = Objective(study.plan.loss, part, C)
            zero = float(np.linalg.norm(f.gradient(np.zeros_like(one))))
            share = min(np.mean(part[1] > 0), np.mean(part[1] < 0))
            ratio = float(np.linalg.norm(f.gradient(ws[k]))) / zero
            largest, strict = max(largest, ratio), max(strict, ratio / share)
            ws[k] = solve(f, one if is_shared else ws[k], LOOSE * share * zero)
            one = ws[k]
            products += f.products
            right += int(np.sum(np.where(held[k][0] @ ws[k] > 0, 1, -1) == held[k][1]))
            rows += len(held[k][1])
        table.append({"C": C, "accuracy": right / rows, "largest": largest, "strict": strict, "products": products})
    return table


def walks(study: Study) -> dict[str, object]:
    """Table 3 and the two rules: both walks, and how many rows they had; nothing where they take too long."""
    began = time.process_time()
    try:
        with interrupted_after(30 * study.plan.limit):
            found = {"K models": walk(study, False), "one model": walk(study, True)}
    except TimeoutError:
        return {}
    rows = min(WALK_ROWS, len(study.y))
    return found | {"rows": rows, "processor seconds": time.process_time() - began}


def rules(study: Study) -> dict[str, dict]:
    """Where each rule ends a search by Newton over all rows, what it costs and what it has seen."""
    found = {}
    for rule in RULES:
        try:
            table = study.search("newton", C_max=study.plan.C_max, stop=rule, time_limit=6 * study.plan.limit)
        except TimeoutError:
            continue
        found[rule] = {
            "C": table.Cs.tolist(),
            "accuracy": table.mean.tolist(),
            "passes": float(table.passes.sum()),
            "seconds": float(table.seconds.sum()),
            "stopped_by": table.stopped_by,
        }
    smaller = min(np.mean(study.y > 0), np.mean(study.y < 0))
    return found | {"share": float(smaller)}


def hinge_path(study: Study) -> dict[str, float]:
    """Theorems 6 and 7 on the path of the hinge: alpha = v1 C + v2 and one w from a last event on.

    Nothing where the rows use too many columns: the path has an event for nearly every row and value.
    """
    X, y = study.problem.exact, study.y
    chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:RAY_ROWS])
    X, y = X[chosen], y[chosen]
    X = X[:, np.unique(X.indices)]
    if X.shape[1] > RAY_COLUMNS:
        return {}
    try:
        with interrupted_after(4 * study.plan.limit):
            path = hinge.cost_path(X, y, box=(LAST, LAST), ray=(1, 1), intercept_scaling=None)
    except TimeoutError:
        return {}
    last = float(path.costs(path.t[-1])[0])
    Cs = np.array([2 * last, 4 * last, 8 * last])
    if Cs[-1] > LAST:
        return {}
    found = path.at(Cs / LAST)
    w, alpha = found["coef"], found["alpha"]
    v1 = (alpha[2] - alpha[0]) / (Cs[2] - Cs[0])
    v2 = alpha[0] - v1 * Cs[0]
    margins = y * (X @ w[2])
    short, beyond = margins < 1 - 1e-6, margins > 1 + 1e-6
    norm = float(np.linalg.norm(w[2]))
    return {
        "rows": len(y),
        "columns": X.shape[1],
        "events": len(path),
        "last": last,
        "moved": float(np.abs(w - w[2]).max()) / norm,
        "bend": float(np.abs(alpha[1] - v1 * Cs[1] - v2).max() / Cs[1]),
        "v1": float(np.linalg.norm(X.T @ (y * v1))) / norm,
        "v2": float(np.linalg.norm(X.T @ (y * v2) - w[2])) / norm,
        "short": int(short.sum()),
        "beyond": int(beyond.sum()),
        "margin": int(len(y) - short.sum() - beyond.sum()),
        "off": float(
            max(np.abs(alpha[:, short] / Cs[:, None] - 1).max(initial=0), np.abs(alpha[:, beyond]).max(initial=0))
        ),
        "gap": float(found["relative_gap"].max()),
    }
