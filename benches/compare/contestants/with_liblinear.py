"""LIBLINEAR, plain or multi-core: both own the module name ``liblinear``, so each has a Python of its own."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import numpy as np
from liblinear import liblinearutil

from contestants import Trained

try:
    VERSION = version("liblinear-official")
except PackageNotFoundError:
    VERSION = version("liblinear-multicore")


def convert(X, y):
    """16 bytes a nonzero, float64."""
    return liblinearutil.problem(y, X)


def train(data, loss, solver, C, tol, threads) -> Trained:
    """``solver`` is the number of the option -s, ``tol`` that of -e; the limit of iterations cannot be set."""
    options = f"-q -s {solver} -c {C!r} -e {tol!r}" + (f" -m {threads}" if threads > 1 else "")
    model = liblinearutil.train(data, options)
    labels = np.array(model.get_labels())
    n_problems = 1 if len(labels) == 2 else len(labels)
    W = np.ctypeslib.as_array(model.w, (model.get_nr_feature(), n_problems)).T.copy()
    if n_problems == 1:
        return Trained(W if labels[0] > labels[1] else -W)
    return Trained(W[np.argsort(labels)])
