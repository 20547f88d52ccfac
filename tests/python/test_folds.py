"""Splits of a search: whatever scikit-learn splits by."""

import hinge
import numpy as np
import pytest
from hinge._folds import Folds
from hinge._problem import Problem
from problems import TIGHT, first_decision, folds, noisy_problem
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneGroupOut,
    LeavePGroupsOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
)


@pytest.fixture
def problem():
    return noisy_problem()


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedKFold(4),
        StratifiedKFold(3, shuffle=True, random_state=1),
        ShuffleSplit(2, random_state=0),
        GroupKFold(3),
        LeaveOneGroupOut(),
        LeavePGroupsOut(2),
        StratifiedGroupKFold(3),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        PredefinedSplit(np.arange(240) % 5 - 1),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_splitters(problem, cv):
    X, y = problem
    groups = np.arange(240) // 10 % 4 if "Group" in type(cv).__name__ else None
    search = hinge.select_C(X, y, cv=cv, groups=groups, C_max=1.0, tol=1e-7)
    cold = cross_val_score(hinge.LogisticRegression(C=search.Cs[-1], **TIGHT), X, y, cv=cv, groups=groups)
    np.testing.assert_allclose(search.scores[-1], cold, atol=1e-12)


@pytest.mark.parametrize("k", [2, 5])
def test_a_number_is_stratified_shuffled_folds(problem, k):
    a, b = (hinge.select_C(*problem, cv=cv) for cv in (k, folds(k)))
    np.testing.assert_array_equal(a.scores, b.scores)


def test_random_state_shuffles_the_folds(problem):
    a, b, c = (hinge.select_C(*problem, cv=3, random_state=seed).scores for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert a.shape != c.shape or (a != c).any()


def test_lists_of_splits(problem):
    X, y = problem
    splits = list(folds(3).split(X, y))
    masks = [tuple(np.isin(np.arange(240), rows) for rows in split) for split in splits]
    lists = [tuple(rows.tolist() for rows in split) for split in splits]
    expected = hinge.select_C(X, y, cv=3).scores
    for cv in (splits, iter(splits), masks, lists):
        np.testing.assert_array_equal(hinge.select_C(X, y, cv=cv).scores, expected)


def test_a_training_row_named_twice_has_weight_two(problem):
    X, y = problem
    weight = np.where(np.arange(240) < 50, 2.0, 1.0)
    train, test = np.arange(200), np.arange(200, 240)
    options = {"C_min": 0.1, "C_max": 1.0, "tol": 1e-9, "scoring": first_decision}
    a = hinge.select_C(X, y, cv=[(np.concatenate([train, train[:50]]), test)], **options)
    b = hinge.select_C(X, y, cv=[(train, test)], sample_weight=weight, **options)
    np.testing.assert_allclose(a.scores, b.scores, rtol=1e-6)


def test_a_single_split_has_no_standard_error(problem):
    search = hinge.select_C(*problem, cv=[(np.arange(200), np.arange(200, 240))])
    assert search.scores.shape[1] == 1
    assert np.isnan(search.std_error).all()
    assert "nan" in repr(search)
    search.plot()


def test_weights_in_fit_and_score(problem):
    X, y = problem
    weight = np.random.default_rng(3).integers(0, 4, len(y)).astype(float)
    search = hinge.select_C(X, y, cv=3, sample_weight=weight, C_max=1.0, tol=1e-7)
    scored = hinge.select_C(X, y, cv=3, sample_weight=weight, C_max=1.0, tol=1e-7, scoring="accuracy")
    np.testing.assert_allclose(search.scores, scored.scores, rtol=1e-12)
    for k, (train, test) in enumerate(folds(3).split(X, y)):
        model = hinge.LogisticRegression(C=search.Cs[-1], **TIGHT).fit(X[train], y[train], weight[train])
        expected = model.score(X[test], y[test], sample_weight=weight[test])
        np.testing.assert_allclose(search.scores[-1, k], expected, atol=1e-12)


def test_class_weight(problem):
    X, y = problem
    y = ((y == 1) & (np.arange(240) % 3 > 0)).astype(int)
    factor = len(y) / (2 * np.bincount(y))
    search = hinge.select_C(X, y, cv=3, class_weight="balanced", scoring="balanced_accuracy", C_max=1.0, tol=1e-7)
    given = dict(enumerate(factor))
    again = hinge.select_C(X, y, cv=3, class_weight=given, scoring="balanced_accuracy", C_max=1.0, tol=1e-7)
    np.testing.assert_array_equal(search.scores, again.scores)
    model = hinge.LogisticRegression(C=search.Cs[-1], class_weight=given, **TIGHT)
    np.testing.assert_allclose(
        search.scores[-1], cross_val_score(model, X, y, cv=folds(3), scoring="balanced_accuracy")
    )


def test_a_number_keeps_groups_together(problem):
    X, y = problem
    groups = np.arange(240) // 6
    splits = Folds(Problem.of(X, y, None, None), 4, groups, 0).splits
    assert len(splits) == 4
    for train, test in splits:
        assert not set(groups[train]) & set(groups[test])
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(240))
    a = hinge.select_C(X, y, cv=4, groups=groups)
    b = hinge.select_C(X, y, cv=StratifiedGroupKFold(4, shuffle=True, random_state=0), groups=groups.tolist())
    np.testing.assert_array_equal(a.scores, b.scores)


def test_too_few_groups(problem):
    with pytest.raises(ValueError, match="cv=5 needs at least 5 groups, groups holds 3"):
        hinge.select_C(*problem, groups=np.arange(240) % 3)


def test_groups_of_another_length(problem):
    with pytest.raises(ValueError, match="groups has 9 entries, X has 240 rows"):
        hinge.select_C(*problem, cv=GroupKFold(3), groups=np.arange(9))


@pytest.mark.parametrize(
    ("cv", "repeats"),
    [
        (3, 1.0),
        (RepeatedStratifiedKFold(n_splits=4, n_repeats=3, random_state=0), 3.0),
        (PredefinedSplit(np.arange(240) % 5 - 1), 1.0),
        ([(np.arange(120), np.arange(120, 240)), (np.arange(120), np.arange(180, 240))], 1.5),
    ],
    ids=["partition", "repeated", "some never", "some twice"],
)
def test_how_often_rows_are_held_out(problem, cv, repeats):
    search = hinge.select_C(*problem, cv=cv, Cs=[0.01, 0.1])
    assert search.repeats == repeats
    n = search.scores.shape[1]
    np.testing.assert_allclose(search.std_error, search.scores.std(axis=1, ddof=1) / np.sqrt(n / repeats))


# Classes of few rows.


@pytest.mark.filterwarnings("ignore::hinge.NoSkillWarning")
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_rare", [2, 4])
def test_a_class_of_fewer_rows_than_folds_is_split_as_by_scikit_learn(problem, loss, n_classes, n_rare):
    X = problem[0]
    y = np.arange(240) % (n_classes - 1)
    y[:n_rare] = n_classes - 1
    options = {"loss": loss, "Cs": [0.1, 1.0], "tol": 1e-7}
    with pytest.warns(UserWarning, match=f"class {n_classes - 1} has {n_rare} rows: with cv=5 some held-out") as caught:
        search = hinge.select_C(X, y, **options)
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(UserWarning, match="The least populated class in y has only"):
        splits = list(folds(5).split(X, y))
    np.testing.assert_array_equal(search.scores, hinge.select_C(X, y, cv=splits, **options).scores)


@pytest.mark.filterwarnings("ignore::hinge.NoSkillWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_only_row_of_a_class_is_in_every_training_part(problem, n_classes):
    X = problem[0]
    y = np.arange(240) % (n_classes - 1)
    y[7] = n_classes - 1
    with pytest.warns(UserWarning, match=f"class {n_classes - 1} has 1 row: with cv=5"):
        splits = Folds(Problem.of(X, y, None, None), 5, None, 0).splits
    for train, test in splits:
        assert 7 in train
        assert 7 not in test
        assert train.dtype == test.dtype == np.uint32
    assert sorted(np.concatenate([test for _, test in splits])) == [row for row in range(240) if row != 7]
    with pytest.warns(UserWarning, match="1 row"):
        model = hinge.LinearSVCCV(Cs=[0.1, 1.0], keep_decisions=True).fit(X, y)
    assert np.isnan(model.search_.decisions[7]).all()
    assert model.search_.repeats == 1.0


# Mistakes.


def test_more_folds_than_rows_of_every_class(problem):
    X = problem[0][:9]
    with pytest.warns(UserWarning, match=r"the largest class has 3 rows: cv=3 instead of 5"):
        found = hinge.select_C(X, np.arange(9) % 3, Cs=[0.1], scoring="balanced_accuracy")
    assert found.scores.shape == (1, 3)
    with pytest.raises(ValueError, match=r"cv=5 needs at least 2 rows of a class, every class has 1"):
        hinge.select_C(X, np.arange(9))


@pytest.mark.parametrize("cv", [1, 0, -3])
def test_too_few_folds(problem, cv):
    with pytest.raises(ValueError, match=f"cv must be at least 2, got {cv}"):
        hinge.select_C(*problem, cv=cv)


@pytest.mark.parametrize("cv", ["five", 2.5, object()])
def test_unusable_cv(problem, cv):
    with pytest.raises(ValueError, match="cv"):
        hinge.select_C(*problem, cv=cv)


def test_training_part_without_a_class(problem):
    X, y = problem
    one = np.flatnonzero(y == 0)
    with pytest.raises(ValueError, match=r"training part of fold 1 has no row of class .*1"):
        hinge.select_C(X, y, cv=[(np.arange(200), np.arange(200, 240)), (one, np.arange(9))])


@pytest.mark.parametrize("split", [([], [1]), ([0, 1, 2, 3], [])])
def test_empty_part(problem, split):
    X, y = problem
    with pytest.raises(ValueError, match="fold"):
        hinge.select_C(X, y, cv=[split])


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize("row", [240, 10**6, -1, 2**32])
def test_row_out_of_range(problem, part, row):
    X, y = problem
    good = np.arange(100)
    bad = np.append(good, row)
    with pytest.raises((ValueError, IndexError), match=rf"\b{row}\b" if row > 0 else str(row)):
        hinge.select_C(X, y, cv=[(bad, good) if part == "train" else (good, bad)])


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize(
    "bad", [np.arange(100) + 0.5, np.arange(100) % 2 == 0, np.array(["a", "b"])], ids=["float", "short mask", "str"]
)
def test_rows_that_are_not_row_numbers(problem, part, bad):
    X, y = problem
    good = np.arange(100)
    with pytest.raises((ValueError, IndexError)):
        hinge.select_C(X, y, cv=[(bad, good) if part == "train" else (good, bad)])


def test_held_out_part_without_weight(problem):
    X, y = problem
    weight = np.where(np.arange(240) < 160, 1.0, 0.0)
    splits = [(np.arange(80), np.arange(80, 160)), (np.arange(80, 160), np.arange(160, 240))]
    with pytest.raises(ValueError, match=r"held-out part of fold 1.*weight"):
        hinge.select_C(X, y, cv=splits, sample_weight=weight).best_C


def test_no_splits(problem):
    with pytest.raises(ValueError, match=r"split|fold|cv"):
        hinge.select_C(*problem, cv=[])
