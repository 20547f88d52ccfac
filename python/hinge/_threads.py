"""How many threads an ``n_jobs`` stands for."""

from __future__ import annotations

import os
import sys
from numbers import Integral


def threads(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: all usable cores for None and at most, joblib's meaning for negative numbers.

    None is not 1 as in scikit-learn, because results do not depend on the number of threads. Inside a joblib worker
    it is 1, or nested parallelism would start too many threads.
    """
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if n_jobs is None:
        return 1 if _is_in_joblib_worker() else usable
    return min(int(n_jobs), usable) if n_jobs > 0 else max(1, usable + 1 + int(n_jobs))


def _is_in_joblib_worker() -> bool:
    """Whether joblib runs this call. Its workers have loaded it, so where it is not loaded it need not be."""
    active = getattr(sys.modules.get("joblib.parallel"), "get_active_backend", None)
    return active is not None and (active()[0].nesting_level or 0) > 0
