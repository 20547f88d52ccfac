"""Scores of a search beside those of models that were refitted."""

import hinge
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import LOSSES, TIGHT, UNIQUE, cold_scores, folds, noisy_problem, searched_estimator, sparse_problem
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    f1_score,
    fbeta_score,
    get_scorer,
    get_scorer_names,
    make_scorer,
)
from sklearn.model_selection import LeaveOneOut, cross_val_score, cross_validate

# A few values of C, fitted tightly.
RANGE = {"C_min": 0.01, "C_max": 1.0, "ratio": 10.0, "tol": 1e-9, "max_iter": 100_000}


@pytest.fixture
def problem():
    return noisy_problem()


@pytest.mark.parametrize(
    ("loss", "scoring"),
    [
        ("logistic", "neg_log_loss"),
        ("logistic", "roc_auc"),
        ("logistic", "neg_brier_score"),
        ("hinge", "roc_auc"),
        ("squared_hinge", "average_precision"),
        ("squared_hinge", "f1_macro"),
        ("squared_hinge", "balanced_accuracy"),
        ("squared_hinge", "matthews_corrcoef"),
        ("hinge", make_scorer(fbeta_score, beta=0.5)),
        ("logistic", make_scorer(balanced_accuracy_score)),
    ],
)
def test_scorers(problem, loss, scoring):
    X, y = problem
    search = hinge.select_C(X, y, loss=loss, cv=3, scoring=scoring, **RANGE, **UNIQUE[loss])
    np.testing.assert_allclose(search.scores, cold_scores(X, y, loss, search.Cs, 3, scoring), atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "scoring"),
    [("logistic", "neg_log_loss"), ("logistic", "roc_auc_ovr"), ("hinge", "f1_macro"), ("squared_hinge", "accuracy")],
)
def test_scorers_of_several_classes(loss, scoring):
    X, y = sparse_problem(23, n_rows=200, n_classes=3)
    y = np.array(["x", "y", "z"])[y]
    search = hinge.select_C(X, y, loss=loss, cv=3, scoring=scoring, **RANGE, **UNIQUE[loss])
    np.testing.assert_allclose(search.scores, cold_scores(X, y, loss, search.Cs, 3, scoring), atol=1e-4)


def test_callable_scorer(problem):
    def score(model, X, y):
        return accuracy_score(y, model.predict(X))

    a, b = (hinge.select_C(*problem, cv=3, scoring=scoring) for scoring in (score, None))
    np.testing.assert_array_equal(a.scores, b.scores)


def test_error_in_a_scorer_is_raised_as_it_is(problem):
    def score(model, X, y):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        hinge.select_C(*problem, scoring=score)


@pytest.mark.parametrize("scoring", ["no_such_scorer", 3])
def test_unknown_scorer(problem, scoring):
    with pytest.raises(ValueError, match="scoring"):
        hinge.select_C(*problem, scoring=scoring)


OF_DECISIONS = ("accuracy", "roc_auc", "average_precision", "f1_macro", "balanced_accuracy", "matthews_corrcoef")
OF_PROBABILITIES = ("neg_log_loss", "neg_brier_score")
OF_CLASSES = ("accuracy", "f1_macro", "balanced_accuracy", "matthews_corrcoef")


@given(st.data())
def test_any_scorers_at_once_are_those_of_cross_validate(data):
    loss = data.draw(st.sampled_from(LOSSES))
    n_classes = data.draw(st.sampled_from([2, 3]))
    known = OF_DECISIONS if n_classes == 2 else OF_CLASSES
    known += OF_PROBABILITIES if loss == "logistic" and n_classes == 2 else ()
    names = data.draw(st.lists(st.sampled_from(known), min_size=1, unique=True))
    X, y = sparse_problem(data.draw(st.integers(0, 100)), n_rows=90, n_columns=12, n_classes=n_classes)
    search = hinge.select_C(X, y, loss=loss, cv=3, scoring=names, choose_by=names[-1], **RANGE, **UNIQUE[loss])
    assert list(search.all_scores) == names
    assert search.scorer == names[-1]
    for k, C in enumerate(search.Cs):
        cold = cross_validate(searched_estimator(loss, C=C, **TIGHT, **UNIQUE[loss]), X, y, cv=folds(3), scoring=names)
        for name in names:
            np.testing.assert_allclose(search.all_scores[name][k], cold[f"test_{name}"], atol=1e-4, err_msg=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", get_scorer_names())
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_scorer_of_scikit_learn(loss, n_classes, name):
    """The same numbers as a refitted model gives, or a refusal where it gives none."""
    X, y = sparse_problem(29, n_rows=120, n_columns=10, n_classes=n_classes, noise=2.0)
    options = {"loss": loss, "cv": 3, "Cs": [0.5], "tol": 1e-10, "max_iter": 100_000}
    model = searched_estimator(loss, C=0.5, **TIGHT)
    try:
        cold = cross_val_score(model, X, y, cv=folds(3), scoring=name, error_score="raise")
    except (ValueError, AttributeError, TypeError):
        cold = np.array([np.nan])
    if np.isnan(cold).any():
        with pytest.raises((ValueError, AttributeError, TypeError)):
            hinge.select_C(X, y, scoring=name, **options)
    else:
        search = hinge.select_C(X, y, scoring=name, **options)
        np.testing.assert_allclose(search.scores[0], cold, rtol=1e-4, atol=1e-4)


SEVERAL = {
    "list of names": ["roc_auc", "accuracy"],
    "tuple": ("roc_auc", "accuracy"),
    "list of scorers": [get_scorer("roc_auc"), get_scorer("accuracy")],
    "dict of names": {"area": "roc_auc", "right": "accuracy"},
    "dict of scorers": {"area": get_scorer("roc_auc"), "right": get_scorer("accuracy")},
    "callable": lambda model, X, y: {
        "area": get_scorer("roc_auc")(model, X, y),
        "right": accuracy_score(y, model.predict(X)),
    },
}

NAMES = {"list of scorers": ["roc_auc_score", "accuracy_score"], "tuple": ["roc_auc", "accuracy"]}
NAMES["list of names"] = NAMES["tuple"]


@pytest.mark.parametrize("kind", SEVERAL)
def test_several_scorers(problem, kind):
    names = NAMES.get(kind, ["area", "right"])
    search = hinge.select_C(*problem, cv=3, scoring=SEVERAL[kind])
    area, right = (hinge.select_C(*problem, cv=3, scoring=name) for name in ("roc_auc", "accuracy"))
    assert list(search.all_scores) == names
    assert search.scorer == names[0]
    np.testing.assert_array_equal(search.scores, area.scores)
    np.testing.assert_array_equal(search.all_scores[names[1]], right.scores)
    by_right = hinge.select_C(*problem, cv=3, scoring=SEVERAL[kind], choose_by=names[1])
    assert by_right.C == right.C
    assert search.C == area.C


def test_names_of_a_single_scorer(problem):
    for scoring, name in [(None, "accuracy"), ("roc_auc", "roc_auc"), (get_scorer("accuracy"), "score")]:
        search = hinge.select_C(*problem, cv=3, scoring=scoring, Cs=[1.0])
        assert list(search.all_scores) == [name] == [search.scorer]


def test_weights_reach_every_scorer_that_takes_them(problem):
    X, y = problem
    weight = np.random.default_rng(5).integers(0, 4, len(y)).astype(float)

    def plain(model, X, y):
        return accuracy_score(y, model.predict(X))

    scoring = {"roc_auc": "roc_auc", "accuracy": "accuracy", "plain": plain}
    search = hinge.select_C(X, y, cv=3, sample_weight=weight, scoring=scoring, Cs=[0.5], tol=1e-9)
    for k, (train, test) in enumerate(folds(3).split(X, y)):
        model = hinge.LogisticRegression(C=0.5, **TIGHT).fit(X[train], y[train], weight[train])
        for name in ("roc_auc", "accuracy"):
            expected = get_scorer(name)(model, X[test], y[test], sample_weight=weight[test])
            np.testing.assert_allclose(search.all_scores[name][0, k], expected, atol=1e-6)
        np.testing.assert_allclose(search.all_scores["plain"][0, k], model.score(X[test], y[test]), atol=1e-6)


def test_leave_one_out():
    X, y = sparse_problem(26, n_rows=40, n_columns=6)
    search = hinge.select_C(X, y, cv=LeaveOneOut(), Cs=[0.1, 1.0], tol=1e-9)
    assert search.scores.shape == (2, 40)
    model = hinge.LogisticRegression(C=1.0, **TIGHT)
    np.testing.assert_array_equal(search.scores[1], cross_val_score(model, X, y, cv=LeaveOneOut()))


# What is scored when.


def counting(calls):
    def score(model, X, y):
        calls.append(model.decision_function(X).tobytes())
        return accuracy_score(y, model.predict(X))

    return score


def test_unchanged_steps_are_not_scored_again():
    X, y = sparse_problem(22, noise=0.0, density=1.0)
    calls = []
    search = hinge.select_C(X, y, cv=3, scoring=counting(calls), C_max=1e12, stop="liblinear")
    changed = ~search.unchanged
    assert search.unchanged[1:].any()
    # One trial per fold before the search; the first C is scored even where zero weights remain.
    changed[0] = True
    assert len(calls) == 3 + 3 * changed.sum()
    again = hinge.select_C(X, y, cv=3, C_max=1e12, stop="liblinear")
    np.testing.assert_array_equal(search.scores, again.scores)


def test_everything_is_refused_before_the_first_fit(problem, monkeypatch):
    def search(*args):
        raise AssertionError("the search began")

    monkeypatch.setattr(hinge._native, "search", search)
    bad = [
        {"scoring": ["accuracy", "no_such"]},
        {"scoring": "neg_log_loss", "loss": "hinge"},
        {"scoring": ["accuracy", "roc_auc"], "choose_by": "f1"},
        {"choose": "one_se", "cv": [(np.arange(200), np.arange(200, 240))]},
        {"scoring": lambda model, X, y: "good"},
    ]
    for options in bad:
        with pytest.raises(ValueError, match=r"scoring|choose"):
            hinge.select_C(*problem, **options)


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ([], "at least one"),
        ({}, "at least one"),
        (["accuracy", "accuracy"], "2 scorers of the name 'accuracy'"),
        ([fbeta_score], "fbeta_score is a metric"),
        (f1_score, "f1_score is a metric"),
        ([3], "the name of a scorer or a scorer, got 3"),
        ({"a": 3}, "the name of a scorer or a scorer, got 3"),
        ({3: "accuracy"}, "names that are strings, got 3"),
        (lambda model, X, y: None, "'score' must give one number, it gives None"),
        (lambda model, X, y: np.ones(3), "must give one number"),
        (lambda model, X, y: {"a": "b"}, "'a' must give one number, it gives 'b'"),
    ],
)
def test_unusable_scoring(problem, scoring, message):
    with pytest.raises(ValueError, match=message):
        hinge.select_C(*problem, scoring=scoring)


@pytest.mark.parametrize("choose_by", ["f1", "", 3])
def test_unknown_chooser(problem, choose_by):
    with pytest.raises(ValueError, match=r"choose_by must be one of \['accuracy', 'roc_auc'\]"):
        hinge.select_C(*problem, scoring=["accuracy", "roc_auc"], choose_by=choose_by)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_a_fold_that_the_chooser_cannot_score(problem):
    X, y = problem
    one = np.flatnonzero(y == 1)[:10]
    splits = [(np.arange(100), np.arange(100, 240)), (np.setdiff1d(np.arange(240), one), one)]
    with pytest.raises(ValueError, match="scoring 'roc_auc' is NaN on the held-out part of fold 1"):
        hinge.select_C(X, y, cv=splits, scoring="roc_auc")
    search = hinge.select_C(X, y, cv=splits, scoring=["accuracy", "roc_auc"], Cs=[1.0])
    assert np.isnan(search.all_scores["roc_auc"][0]).tolist() == [False, True]
    assert "nan" in repr(search)
    assert np.isnan(search.to_frame()["mean_roc_auc"]).all()
    with pytest.raises(ValueError, match="NaN at every C"):
        search.by("roc_auc")


def test_scores_that_come_and_go(problem):
    def score(model, X, y):
        return {"a": 1.0} if np.ptp(np.abs(model.decision_function(X))) == 0 else {"b": 1.0}

    with pytest.raises(ValueError, match="the same scores for every fold"):
        hinge.select_C(*problem, cv=3, scoring=score, C_min=1.0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scoring", ["neg_log_loss", ["accuracy", "neg_brier_score"]])
def test_probabilities_need_the_logistic_loss(problem, loss, scoring):
    with pytest.raises(ValueError, match=f"predict_proba.*the {loss} loss does not give.*hinge.LogisticRegressionCV"):
        hinge.select_C(*problem, loss=loss, scoring=scoring)
    with pytest.raises(ValueError, match=r"hinge\.LogisticRegressionCV, or loss="):
        hinge.LinearSVCCV(loss=loss, scoring=scoring).fit(*problem)
