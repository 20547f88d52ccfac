"""This package. It takes the matrix as it is, so that its own preparations are in the time of the fit."""

from __future__ import annotations

import warnings
from importlib.metadata import version

import hinge
from sklearn.exceptions import ConvergenceWarning

from contestants import Trained

VERSION = version("hinge")
MAX_ITER = 5000


def convert(X, y):
    """Nothing to convert."""
    return X, y


def train(data, loss, solver, C, tol, threads) -> Trained:
    """``tol`` is the certified relative gap."""
    parameters = {"solver": solver, "tol": tol, "fit_intercept": False, "max_iter": MAX_ITER, "n_jobs": threads}
    if loss == "logistic":
        model = hinge.LogisticRegression(C, multi_class="ovr", **parameters)
    else:
        model = hinge.LinearSVC(C, loss=loss, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*data)
    proof = model.certificate_
    # Of the sum over classes, as the objective is.
    claimed = float((proof.primal - proof.dual).sum() / proof.primal.sum())
    status = " ".join(sorted({*map(str, proof.status), *map(str, proof.solver)}))
    return Trained(model.coef_, status, claimed)
