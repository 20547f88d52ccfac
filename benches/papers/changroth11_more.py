"""More of ChangRoth11: cache scores at a C from cross-validation, online learners, sizes of the cache.

As in the paper, block minimisation (BMD) has twelve blocks of the whole memory, C is chosen by five-fold
cross-validation (on so many rows at most as :data:`SEARCH_ROWS`), values are in single precision (figures 4 and 5 of
its appendix), and times include the building of the store, given apart. Every point is a fit of its own with so many
passes from zero.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import hinge
import numpy as np
from changroth11_cache import NEAR, SCORES, SHARE, cached, signed_margins
from changroth11_measure import PASSES, VARIANTS, Data, Study, budget
from changroth11_online import arow
from hinge import PegasosClassifier

CS = tuple(4.0**k for k in range(-3, 4))
SEARCH_ROWS = 10_000
SHARES = (0.0, 1 / 8, 1 / 4, 1 / 2, 3 / 4)


@cache
def studies(data: Data, scratch: Path) -> Study:
    """The set in a store, at the C of the best mean accuracy of five folds."""
    rows = np.random.default_rng(0).permutation(data.X.shape[0])[:SEARCH_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = hinge.select_C(data.X[rows], data.y[rows], loss="hinge", cv=5, Cs=CS, fit_intercept=False)
    return Study.of(replace(data, C=float(found.C)), scratch / "cross-validated.blocks")


def support(study: Study) -> dict[str, int]:
    """Support vectors at the optimum (table 1), by their margins, and the rows that half the memory holds."""
    margins = signed_margins(study)
    near = np.abs(margins - 1) <= NEAR
    return {
        "rows": len(margins),
        "unbounded": int(near.sum()),
        "bounded": int((margins < 1 - NEAR).sum()),
        "cached": int(SHARE / 2 * len(margins)),
    }


def figure2(study: Study) -> dict[str, Any]:
    """Distance and accuracy after passes; variants in turn, so that none has a better hour."""
    found: dict[str, list[dict]] = {name: [] for name in VARIANTS}
    for k in range(max(map(len, PASSES.values()))):
        for name, options in VARIANTS.items():
            found[name] += [study.fit(options, n, SHARE) for n in PASSES[name][k : k + 1]]
    return {"C": study.data.C, "build": study.build_seconds, "points": found}


def caches(study: Study) -> dict[str, Any]:
    """Distance after passes by cache score, half the memory as cache, and without a cache."""
    variants = {score: {"cache": score, "cache_share": 0.5} for score in SCORES} | {"none": {"cache": "none"}}
    points = {
        name: [study.fit(options, n, SHARE) for n in ((1, 2, 3, 4) if name != "none" else (1, 2, 4, 8))]
        for name, options in variants.items()
    }
    return {"C": study.data.C, "build": study.build_seconds, "support": support(study), "points": points}


def sizes(study: Study) -> list[dict[str, Any]]:
    """Figure 5: the cache's part of a fixed memory, from none (BMD) up, at 3 and 10 rounds a block."""
    options = {share: {"cache": "steepest", "cache_share": share} for share in SHARES} | {0.0: {"cache": "none"}}
    return [
        {"cache": share, "rounds": rounds, **study.fit({**options[share], "rounds": rounds}, n, SHARE)}
        for share in SHARES
        for rounds in (3, 10)
        for n in (1, 2, 3)
    ]


def online(study: Study) -> dict[str, Any]:
    """Figures 3 and 4, and the rows of table 2 that a single pass of BM-Pegasos and of AROW make."""
    points = {
        "SBM-1/2": [study.fit({"cache": "steepest", "cache_share": 0.5}, n, SHARE) for n in (1, 2, 3)],
        "BMD-in-10": [study.fit({"cache": "none"}, n, SHARE) for n in (1, 2, 4, 8)],
        "BMD-in-1": [study.fit({"cache": "none", "rounds": 1}, n, SHARE) for n in (1, 2, 4, 8, 16)],
        "BM-Pegasos": [pegasos(study, n) for n in (1, 2, 4, 8, 16)],
    }
    return {"C": study.data.C, "build": study.build_seconds, "points": points, "AROW": arow(study.data, study.accuracy)}


def pegasos(study: Study, passes: int) -> dict[str, float]:
    """Pegasos on blocks, as many draws from a block as it has rows; its state takes six numbers per row and column
    more."""
    data = study.data
    model = PegasosClassifier(
        None,
        C=data.C,
        fit_intercept=False,
        tol=1e-12,
        max_iter=passes,
        memory_budget=budget(study.store, SHARE) + 8 * 6 * (study.store.n_features + study.store.n_samples),
        random_state=0,
    )
    started, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(study.store)
    times = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
    accuracy = 100 * model.score(data.X_test, data.y_test) - study.accuracy
    return {"passes": passes, **times, "accuracy": accuracy}


PARTS = {"figure2": figure2, "caches": caches, "shares": sizes, "online": online, "cached": cached}


def measure(part: str, data: Data, scratch: Path) -> Any:
    """One part for one set of two classes."""
    study = studies(data, scratch)
    return cached(study, scratch) if part == "cached" else PARTS[part](study)
