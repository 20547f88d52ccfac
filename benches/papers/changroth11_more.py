"""More of ChangRoth11, of two classes: cache scores, online learners, sizes of the cache.

As in the paper, values are in single precision (figures 4 and 5 of its appendix), and times include the building of the
store, given apart. Every point is a fit of its own with so many passes from zero.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from changroth11_cache import NEAR, SCORES, signed_margins
from changroth11_measure import Study, budget
from changroth11_online import arow
from hinge import PegasosClassifier

SHARES = (0.0, 1 / 8, 1 / 4, 1 / 2, 3 / 4)


def support(study: Study) -> dict[str, int]:
    """Support vectors at the optimum (table 1), by their margins, and the rows that half the memory holds."""
    margins = signed_margins(study)
    near = np.abs(margins - 1) <= NEAR
    return {
        "rows": len(margins),
        "unbounded": int(near.sum()),
        "bounded": int((margins < 1 - NEAR).sum()),
        "cached": int(study.share / 2 * len(margins)),
    }


def caches(study: Study) -> dict[str, Any]:
    """Distance after passes by cache score, half the memory as cache, and without a cache."""
    variants = {score: {"cache": score, "cache_share": 0.5} for score in SCORES} | {"none": {"cache": "none"}}
    points = {
        name: [study.fit(options, n) for n in ((1, 2, 3, 4) if name != "none" else (1, 2, 4, 8))]
        for name, options in variants.items()
    }
    return {"C": study.data.C, "build": study.build_seconds, "support": support(study), "points": points}


def sizes(study: Study) -> list[dict[str, Any]]:
    """Figure 5: the cache's part of a fixed memory, from none (BMD) up, at 3 and 10 rounds a block."""
    options = {share: {"cache": "steepest", "cache_share": share} for share in SHARES} | {0.0: {"cache": "none"}}
    return [
        {"cache": share, "rounds": rounds, **study.fit({**options[share], "rounds": rounds}, n)}
        for share in SHARES
        for rounds in (3, 10)
        for n in (1, 2, 3)
    ]


def online(study: Study) -> dict[str, Any]:
    """Figures 3 and 4, and the rows of table 2 that a single pass of BM-Pegasos and of AROW make."""
    points = {
        "SBM-1/2": [study.fit({"cache": "steepest", "cache_share": 0.5}, n) for n in (1, 2, 3)],
        "BMD-in-10": [study.fit({"cache": "none"}, n) for n in (1, 2, 4, 8)],
        "BMD-in-1": [study.fit({"cache": "none", "rounds": 1}, n) for n in (1, 2, 4, 8, 16)],
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
        memory_budget=budget(study.store, study.share) + 8 * 6 * (study.store.n_features + study.store.n_samples),
        random_state=0,
    )
    started, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(study.store)
    times = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
    accuracy = 100 * model.score(data.X_test, data.y_test) - study.accuracy
    return {"passes": passes, **times, "accuracy": accuracy}
