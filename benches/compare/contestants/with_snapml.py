"""IBM Snap ML: dual coordinate descent, asynchronous on two threads and more."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import snapml

from contestants import MAX_ITER, Trained

VERSION = version("snapml")


def convert(X, y):
    """It takes float32 CSR as it is."""
    return X, y


def _model(loss, C, tol, threads):
    parameters = {"regularizer": 1.0 / C, "tol": tol, "max_iter": MAX_ITER, "n_jobs": threads, "random_state": 0}
    if loss == "logistic":
        return snapml.LogisticRegression(**parameters)
    return snapml.SupportVectorMachine(loss=loss, **parameters)


def train(data, loss, solver, C, tol, threads) -> Trained:
    """``tol`` bounds the change of the weights; more classes are its own one-vs-rest."""
    X, y = data
    model = _model(loss, C, tol, threads).fit(X, y)
    return Trained(np.asarray(model.coef_, dtype=np.float64).reshape(-1, X.shape[1]))
