"""scikit-learn's solvers. What they copy inside a fit, LinearSVC into LIBLINEAR's form, cannot be told apart."""

from __future__ import annotations

import warnings

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from contestants import MAX_ITER, Trained

VERSION = sklearn.__version__


def convert(X, y):
    """Float64, without which LinearSVC copies in every fit and the others do not get beyond a gap of about 1e-4."""
    return X.astype(np.float64), y


def _model(loss, solver, C, tol):
    if loss == "logistic":
        return LogisticRegression(C=C, solver=solver, tol=tol, fit_intercept=False, max_iter=MAX_ITER)
    parameters = {"dual": solver == "dual", "tol": tol, "fit_intercept": False, "max_iter": MAX_ITER}
    return LinearSVC(C=C, loss=loss, random_state=0, **parameters)


def train(data, loss, solver, C, tol, threads) -> Trained:
    """``solver`` is "dual" or "primal" of LinearSVC, or one of LogisticRegression."""
    X, y = data
    model, multiclass = _model(loss, solver, C, tol), len(np.unique(y)) > 2
    if multiclass and loss == "logistic":
        model = OneVsRestClassifier(model, n_jobs=threads)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    limited = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    status = "not converged" if limited else ""
    if multiclass and loss == "logistic":
        return Trained(np.vstack([part.coef_ for part in model.estimators_]), status)
    return Trained(model.coef_, status)
