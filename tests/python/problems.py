"""Slow and obvious: the objective in NumPy, and random problems from a seed."""

import hinge
import numpy as np
import scipy.sparse as sp
from scipy.special import log_expit
from sklearn.model_selection import StratifiedKFold, cross_val_score

LOSSES = ("squared_hinge", "hinge", "logistic")

INTERCEPTS = {
    "none": {"fit_intercept": False},
    "free": {"fit_intercept": True},
    "penalised": {"fit_intercept": True, "intercept_scaling": 2.0},
}

TIGHT = {"tol": 1e-10, "max_iter": 100_000}

# The free intercept of the hinge need not be unique, the penalised one is.
UNIQUE = {"squared_hinge": {}, "hinge": {"intercept_scaling": 1.0}, "logistic": {}}


def estimator(loss, **parameters):
    """The estimator of a loss, for each class against the rest."""
    if loss == "logistic":
        return hinge.LogisticRegression(**({"multi_class": "ovr"} | parameters))
    return hinge.LinearSVC(loss=loss, **parameters)


def searched_estimator(loss, **parameters):
    """The estimator whose C a search of the loss chooses."""
    return estimator(loss, **({"multi_class": "auto"} if loss == "logistic" else {}), **parameters)


def search_estimator(loss, **parameters):
    """The estimator of a loss that chooses its C."""
    if loss == "logistic":
        return hinge.LogisticRegressionCV(**parameters)
    return hinge.LinearSVCCV(loss=loss, **parameters)


def losses_of_margins(loss, margins):
    """Loss of each margin."""
    if loss == "logistic":
        return -log_expit(margins)
    short = np.maximum(0.0, 1.0 - margins)
    return short if loss == "hinge" else short**2


def objective(model, X, y, loss, sample_weight=None):
    """The primal objective of each binary problem of a fitted model, from its attributes alone."""
    X = sp.csr_array(X).astype(np.float64)
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    values = X @ model.coef_.T + model.intercept_
    penalty = 0.5 * (model.coef_**2).sum(axis=1)
    if model.fit_intercept and model.intercept_scaling is not None:
        penalty += 0.5 * (model.intercept_ / model.intercept_scaling) ** 2
    signs = np.where(np.asarray(y)[:, None] == classes, 1.0, -1.0)
    return penalty + model.C * (weight[:, None] * losses_of_margins(loss, signs * values)).sum(axis=0)


def normal_matrix(random, n_rows, n_columns, density):
    """Normal numbers at random places: what scipy.sparse.random_array draws, whose bits differ between versions."""
    size = round(n_rows * n_columns * density)
    places = random.choice(n_rows * n_columns, size=size, replace=False)
    rows, columns = (part.astype(np.int32) for part in np.unravel_index(places, (n_rows, n_columns), order="F"))
    return sp.coo_array((random.standard_normal(size), (rows, columns)), shape=(n_rows, n_columns))


def sparse_problem(seed, n_rows=120, n_columns=30, n_classes=2, density=0.3, noise=1.0):
    """A CSR matrix of normal numbers, and labels that a linear model tells apart but for noise."""
    random = np.random.default_rng(seed)
    X = normal_matrix(random, n_rows, n_columns, density)
    W = random.standard_normal((n_columns, n_classes))
    values = X @ W + noise * random.standard_normal((n_rows, n_classes))
    y = values.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return sp.csr_matrix(X), y


def one_hot_table(n_rows, levels, seed):
    """Rows with one of so many levels of each field, the first ones more often than the last."""
    random = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum(levels)])
    columns = np.array([(n * random.random(n_rows) ** 2).astype(int) for n in levels]).T + first[:-1]
    starts = len(levels) * np.arange(n_rows + 1)
    return sp.csr_matrix((np.ones(starts[-1]), columns.ravel(), starts), shape=(n_rows, first[-1]))


def noisy_problem():
    """Noisy enough that C matters; 240 rows."""
    return sparse_problem(20, n_rows=240, n_columns=40, noise=3.0)


def folds(k):
    """What the number k means as ``cv``."""
    return StratifiedKFold(k, shuffle=True, random_state=0)


def cold_scores(X, y, loss, Cs, k, scoring=None):
    """A row per C of what cross_val_score finds in k folds with fits from zero."""
    model = searched_estimator(loss, **TIGHT, **UNIQUE[loss])
    return np.array([cross_val_score(model.set_params(C=C), X, y, cv=folds(k), scoring=scoring) for C in Cs])


def first_decision(model, X, y):
    """Bits of the solution as a score."""
    return float(np.asarray(model.decision_function(X)).sum())
