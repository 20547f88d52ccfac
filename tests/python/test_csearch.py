"""The table of a search: the choice made from it, the decision values it keeps, how it looks."""

import dataclasses
import pickle
import re
import sys

import hinge
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import LOSSES, UNIQUE, folds, noisy_problem, searched_estimator, sparse_problem
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import PredefinedSplit, RepeatedStratifiedKFold, cross_val_predict

TIGHT = {"tol": 1e-9, "max_iter": 100_000}


@pytest.fixture
def problem():
    return noisy_problem()


def table(scores, choose="best", repeats=1.0, **parts):
    """A search with the given scores at C = 1, 2, 4, ..."""
    scores = {"a": np.array(scores, dtype=float)} if not isinstance(scores, dict) else scores
    n, n_folds = next(iter(scores.values())).shape
    columns = {name: np.zeros(n) for name in ("seconds", "passes", "unchanged_until")}
    columns |= {name: np.zeros(n, dtype=np.int64) for name in ("n_iter", "n_inner")}
    columns |= {name: np.ones(n, dtype=bool) for name in ("unchanged", "converged", "replayed")}
    defaults = {
        "Cs": 2.0 ** np.arange(n),
        "all_scores": scores,
        "scorer": next(iter(scores)),
        "choose": choose,
        "objective": np.zeros((n, n_folds, 1)),
        "stopped_by": "C_max",
        "repeats": repeats,
    }
    return hinge.CSearch(**(columns | defaults | parts))


def test_every_part_is_described():
    text = hinge.CSearch.__doc__.split("Attributes")[1]
    assert re.findall(r"^    (\w+) :", text, re.MULTILINE) == [
        field.name for field in dataclasses.fields(hinge.CSearch)
    ]


# The choice.


def test_one_standard_error_by_hand():
    # Means 0.5, 0.68, 0.8, 0.72; the best has standard deviation 0.2 over 4 folds, so an error of 0.1.
    spread = 0.2 * np.sqrt(0.75) * np.array([1.0, -1.0, 1.0, -1.0])
    scores = np.array([0.5, 0.68, 0.8, 0.72])[:, None] + spread
    search = table(scores, "one_se")
    np.testing.assert_allclose(search.std_error, 0.1)
    assert (search.best_C, search.one_se_C, search.C, search.index) == (4.0, 4.0, 4.0, 2)
    assert table(scores[[0, 3, 2, 1]], "one_se").C == 2.0
    assert table(scores).C == 4.0
    # Two repetitions of two folds: the error is 0.2 / sqrt(2), and 0.6586 is enough.
    repeated = table(scores, "one_se", repeats=2.0)
    np.testing.assert_allclose(repeated.std_error, 0.2 / np.sqrt(2))
    assert repeated.C == 2.0
    assert (repeated.best_C, repeated.index) == (4.0, 1)


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=n, max_size=n)
    )
)
def test_one_standard_error_is_the_smallest_C_that_is_good_enough(rows):
    search = table(rows, "one_se")
    mean = np.array(rows).mean(axis=1)
    best = max(range(len(mean)), key=lambda k: (mean[k], -k))
    enough = mean[best] - np.std(rows[best], ddof=1) / np.sqrt(3)
    expected = next(k for k in range(len(mean)) if mean[k] >= enough - 1e-15)
    assert search.best_index == best
    assert search.one_se_index == expected <= search.best_index
    assert search.Cs[expected] == search.C


def test_NaN_is_never_the_best():
    search = table([[np.nan, 1.0], [0.2, 0.3], [0.1, 0.1]])
    assert search.best_C == 2.0
    with pytest.raises(ValueError, match="NaN at every C"):
        _ = table([[np.nan, 1.0]]).best_C


def test_a_single_fold_has_no_standard_error():
    search = table([[0.5], [0.6]])
    assert np.isnan(search.std_error).all()
    assert search.C == 2.0
    assert "nan" in repr(search)
    search.plot()
    with pytest.raises(ValueError, match="a single fold has no standard error"):
        _ = search.one_se_C


def test_another_scorer_of_the_same_table():
    search = table({"a": np.array([[0.1, 0.3], [0.9, 0.7]]), "b": np.array([[0.5, 0.7], [0.4, 0.4]])})
    assert search.best_C == 2.0
    other = search.by("b")
    assert (other.best_C, other.scorer, other.choose) == (1.0, "b", "best")
    np.testing.assert_array_equal(other.scores, search.all_scores["b"])
    assert search.by(choose="one_se").choose == "one_se"
    with pytest.raises(ValueError, match=r"scorer must be one of \['a', 'b'\], got 'c'"):
        search.by("c")
    with pytest.raises(ValueError, match="choose must be one of"):
        search.by(choose="largest")


def test_decisions_stay_with_their_C():
    search = table({"a": np.array([[0.1], [0.9]]), "b": np.array([[0.5], [0.4]])}, decisions=np.zeros(5))
    assert search.by("b").decisions is None
    assert search.by("a").decisions is search.decisions


@pytest.mark.parametrize("loss", LOSSES)
def test_choice_within_one_standard_error_of_a_real_search(problem, loss):
    search = hinge.select_C(*problem, loss=loss, cv=4, choose="one_se", **UNIQUE[loss])
    enough = search.mean.max() - search.std_error[search.mean.argmax()]
    assert search.C == search.Cs[search.mean >= enough].min() == search.one_se_C
    assert search.C < search.best_C == hinge.select_C(*problem, loss=loss, cv=4, **UNIQUE[loss]).C


@pytest.mark.parametrize("kind", [hinge.LinearSVCCV, hinge.LogisticRegressionCV])
def test_estimators_refit_at_the_choice(problem, kind):
    options = {"cv": 4, "scoring": ["accuracy", "roc_auc"], "choose_by": "roc_auc", "choose": "one_se", "refine": 1}
    model = kind(**options).fit(*problem)
    assert model.C_ == model.search_.one_se_C < model.search_.best_C
    assert model.search_.scorer == "roc_auc"
    plain = (hinge.LinearSVC if kind is hinge.LinearSVCCV else hinge.LogisticRegression)(C=model.C_).fit(*problem)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


# Refinement.


def peak_at(optimum):
    """A score that falls with the distance of the mean decision from that of a fit with the C ``optimum``."""

    def score(model, X, y):
        return -abs(float(np.abs(model.decision_function(X)).mean()) - optimum)

    return score


@pytest.mark.parametrize("rounds", [1, 3, 6])
def test_refinement_finds_the_better_C_between(problem, rounds):
    X, y = problem
    # The size of decision values grows with C, so that the score is best where it is that of a fit at C = 0.35.
    at = hinge.select_C(X, y, cv=3, Cs=[0.35], keep_decisions=True, **TIGHT)
    score = peak_at(float(np.abs(at.decisions).mean()))
    options = {"cv": 3, "scoring": score, "C_min": 2.0**-6, "C_max": 16.0, **TIGHT}
    coarse = hinge.select_C(X, y, **options)
    search = hinge.select_C(X, y, refine=rounds, **options)
    assert coarse.best_C in (0.25, 0.5)
    assert (np.diff(search.Cs) > 0).all()
    assert set(coarse.Cs) < set(search.Cs)
    assert len(search.Cs) == len(coarse.Cs) + 2 * rounds
    assert search.best_score > coarse.best_score
    # Each round halves the spacing in log C; the folds' optimum is not exactly that of the mean.
    assert abs(np.log2(search.best_C / 0.35)) < 0.5**rounds / 2 + 0.1
    # What the first pass found stays the same bits.
    np.testing.assert_array_equal(search.scores[np.isin(search.Cs, coarse.Cs)], coarse.scores)


# Decision values.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("choose", ["best", "one_se"])
def test_decisions_are_those_of_cross_val_predict(loss, n_classes, choose):
    X, y = sparse_problem(27, n_rows=150, n_columns=20, n_classes=n_classes, noise=3.0)
    options = {"cv": 3, "C_max": 4.0, "choose": choose, "refine": 2, "keep_decisions": True}
    search = hinge.select_C(X, y, loss=loss, **options, **TIGHT, **UNIQUE[loss])
    model = searched_estimator(loss, C=search.C, tol=1e-12, max_iter=100_000, **UNIQUE[loss])
    expected = cross_val_predict(model, X, y, cv=folds(3), method="decision_function")
    assert search.decisions.shape == expected.shape
    np.testing.assert_allclose(search.decisions, expected, atol=2e-3)


def test_decisions_of_rows_held_out_often_or_never(problem):
    X, y = problem
    never = PredefinedSplit(np.arange(240) % 4 - 1)
    search = hinge.select_C(X, y, cv=never, keep_decisions=True)
    np.testing.assert_array_equal(np.isnan(search.decisions), np.arange(240) % 4 == 0)
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    options = {"Cs": [1.0], "keep_decisions": True, **TIGHT}
    both = hinge.select_C(X, y, cv=cv, **options)
    splits = list(cv.split(X, y))
    parts = [hinge.select_C(X, y, cv=part, **options) for part in (splits[:3], splits[3:])]
    np.testing.assert_allclose(both.decisions, (parts[0].decisions + parts[1].decisions) / 2, atol=1e-6)


def test_decisions_are_kept_on_request_only(problem):
    assert hinge.select_C(*problem, cv=3).decisions is None
    model = hinge.LinearSVCCV(cv=3, keep_decisions=True).fit(*problem)
    assert model.search_.decisions.shape == (240,)
    assert np.isfinite(model.search_.decisions).all()


def test_decisions_give_a_calibration_without_refits(problem):
    """Beside scikit-learn, which refits every fold."""
    from sklearn.linear_model import LogisticRegression

    X, y = problem
    model = hinge.LinearSVCCV(cv=3, keep_decisions=True, select_tol=1e-9).fit(X, y)
    ours = LogisticRegression(C=1e10, tol=1e-10).fit(model.search_.decisions[:, None], y)
    theirs = CalibratedClassifierCV(hinge.LinearSVC(C=model.C_), cv=folds(3), ensemble=False).fit(X, y)
    values = model.decision_function(X)[:, None]
    # Platt's targets are smoothed, hence the width.
    np.testing.assert_allclose(ours.predict_proba(values), theirs.predict_proba(X), atol=0.02)


@given(
    st.sampled_from(["best", "one_se"]),
    st.lists(st.tuples(st.integers(0, 30), st.lists(st.integers(0, 4), min_size=3, max_size=3)), min_size=1),
)
def test_whatever_is_chosen_has_its_decisions(choose, visits):
    """The record keeps what may still be chosen, for any scores at any values of C in any order."""
    from hinge._folds import Folds
    from hinge._plan import Plan
    from hinge._problem import Problem
    from hinge._scoring import Scoring
    from hinge._steps import Steps

    X, y = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 0, 1])
    problem = Problem.of(X, y, None, None)
    splits = Folds(problem, [([2, 3, 4, 5], [0, 1]), ([0, 1, 4, 5], [2, 3]), ([0, 1, 2, 3], [4, 5])], None, 0)

    def score(model, X, y):
        return float(model.decision_function(X)[0]) % 1

    scoring = Scoring(problem, {"loss": "hinge"}, score, None, splits.tests())
    steps = Steps(problem, splits, scoring, Plan({}, choose, keep_decisions=True), 1)
    for exponent, scores in dict(visits).items():
        C = 2.0**exponent
        # The whole part of a decision value tells C, the fraction is the score.
        decisions = [np.full(2, exponent + s / 8) for s in scores]
        facts = {"n_iter": 1, "inner": 0, "passes": 1.0, "seconds": 0.0, "objective": np.zeros((3, 1))}
        flags = {"unchanged": False, "converged": True, "replayed": False, "unchanged_until": C}
        steps.add({"C": C, "decisions": decisions, **facts, **flags})
    search = steps.table("C_max")
    kept = [step.C for step in steps._done if step.out_of_fold is not None]
    better = [C for k, C in enumerate(search.Cs) if (search.mean[:k] < search.mean[k]).all()]
    assert sorted(kept) == ([search.C] if choose == "best" else better)
    assert (np.floor(search.decisions) == np.log2(search.C)).all()
    np.testing.assert_array_equal(search.decisions[::2] % 1, search.scores[search.index])


# How it looks.


@pytest.fixture
def several(problem):
    return hinge.select_C(*problem, cv=3, scoring=["roc_auc", "neg_log_loss"], choose="one_se", refine=1)


def test_frame(several):
    frame = several.to_frame()
    assert frame.columns.tolist() == [
        *("C", "mean", "std_error", "fold_0", "fold_1", "fold_2", "mean_neg_log_loss", "std_error_neg_log_loss"),
        *("objective", "seconds", "passes", "n_iter", "n_inner"),
        *("unchanged", "unchanged_until", "converged", "replayed"),
    ]
    assert len(frame) == len(several.Cs)
    assert frame["C"].is_monotonic_increasing
    np.testing.assert_array_equal(frame[["fold_0", "fold_1", "fold_2"]], several.scores)
    np.testing.assert_array_equal(frame["mean_neg_log_loss"], several.all_scores["neg_log_loss"].mean(axis=1))
    np.testing.assert_allclose(frame["objective"], several.objective.sum(axis=(1, 2)))
    assert frame["C"][frame["mean"].idxmax()] == several.best_C


def test_repr(several):
    head, columns, *rows = repr(several).splitlines()
    assert f"C = {several.C:g} within one standard error; best C = {several.best_C:g}, roc_auc" in head
    assert f"{len(several.Cs)} values, 3 folds" in head
    assert f"ended by {several.stopped_by}" in head
    assert columns.split() == ["C", "roc_auc", "+-", "error", "neg_log_loss", "passes", "seconds"]
    assert len(rows) == len(several.Cs)
    assert [k for k, row in enumerate(rows) if row.startswith("*")] == [several.index]
    assert [k for k, row in enumerate(rows) if row.startswith("+")] == [several.best_index]
    best = several.by(choose="best")
    assert f"CSearch: best C = {best.C:g}" in repr(best)
    assert "\n+" not in repr(best)


def test_repr_says_what_is_partial():
    partial = table([[0.5, 0.6]], stopped_by="time_limit")
    assert partial.is_partial
    assert "partial, stopped by time_limit" in repr(partial)
    assert partial.plot().get_title().endswith("partial")
    assert not table([[0.5, 0.6]]).is_partial


def test_html(problem):
    scoring = {"<b>": "accuracy", "a & b": "roc_auc"}
    search = hinge.select_C(*problem, cv=3, scoring=scoring)
    html = search._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>CSearch</b>" in html
    assert "a &amp; b" in html
    assert html.count("<tr") == len(search.Cs) + 1
    assert html.count("font-weight: bold") == 1


def test_plot_says_what_it_needs(several, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pictures need matplotlib: pip install"):
        several.plot()


def test_plot_needs_no_display(several, tmp_path):
    pytest.importorskip("matplotlib")
    axes = several.plot()
    assert axes.get_xscale() == "log"
    assert f"best C = {several.best_C:g}" in axes.get_title()
    assert "roc_auc" in axes.get_ylabel()
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), several.Cs)
    assert [line.get_xdata()[0] for line in axes.lines[1:]] == [several.best_C, several.one_se_C]
    assert several.plot(axes) is axes
    axes.figure.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_pickle(several):
    copy = pickle.loads(pickle.dumps(several))
    assert repr(copy) == repr(several)
    np.testing.assert_array_equal(copy.all_scores["neg_log_loss"], several.all_scores["neg_log_loss"])
