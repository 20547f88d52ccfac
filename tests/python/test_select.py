"""The search for C beside cold cross-validation by scikit-learn."""

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from problems import LOSSES, estimator, search_estimator, sparse_problem
from sklearn.metrics import accuracy_score, balanced_accuracy_score, fbeta_score, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)

TIGHT = {"tol": 1e-10, "max_iter": 100_000}

# The free intercept of the hinge need not be unique, the penalised one is.
UNIQUE = {"squared_hinge": {}, "hinge": {"intercept_scaling": 1.0}, "logistic": {}}


@pytest.fixture
def problem():
    """Noisy enough that C matters."""
    return sparse_problem(20, n_rows=240, n_columns=40, noise=3.0)


def folds(k):
    """What the number k means as ``cv``."""
    return StratifiedKFold(k, shuffle=True, random_state=0)


def cold_scores(X, y, loss, Cs, k, scoring=None):
    """A row per C of what cross_val_score finds in k folds with fits from zero."""
    model = estimator(loss, **TIGHT, **UNIQUE[loss])
    return np.array([cross_val_score(model.set_params(C=C), X, y, cv=folds(k), scoring=scoring) for C in Cs])


# The table.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_choice_is_that_of_an_exhaustive_cold_search(loss, n_classes):
    X, y = sparse_problem(21, n_rows=240, n_columns=40, n_classes=n_classes, noise=3.0)
    search = hinge.select_C(X, y, loss=loss, cv=4, **UNIQUE[loss])
    Cs = 2.0 ** np.arange(np.log2(search.Cs[0]), 11)
    mean = cold_scores(X, y, loss, Cs, 4).mean(axis=1)
    ours = mean[np.flatnonzero(Cs == search.best_C)[0]]
    assert ours == mean.max() or mean.max() - ours < search.std_error[search.best_index]


@pytest.mark.parametrize("loss", LOSSES)
def test_choice_on_a_real_set(real, loss):
    X, y, _, _ = real("german")
    search = hinge.select_C(X, y, loss=loss, **UNIQUE[loss])
    mean = cold_scores(X, y, loss, search.Cs, 5).mean(axis=1)
    assert mean.max() - mean[search.best_index] < search.std_error[search.best_index]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "newton", "dual_cd"])
def test_rows_of_a_tight_search_are_cold_fits(problem, loss, solver):
    X, y = problem
    options = {"cv": 3, "C_max": 4.0, "tol": 1e-9, "max_iter": 100_000, **UNIQUE[loss]}
    search = hinge.select_C(X, y, loss=loss, solver=solver, **options)
    assert search.converged.all()
    np.testing.assert_allclose(search.scores, cold_scores(X, y, loss, search.Cs, 3), atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_loose_rows_are_near_cold_fits(problem, loss):
    X, y = problem
    search = hinge.select_C(X, y, loss=loss, cv=3, **UNIQUE[loss])
    assert search.converged.all()
    mean = cold_scores(X, y, loss, search.Cs, 3).mean(axis=1)
    # At the first C, zero weights are accurate enough.
    assert (np.abs(search.mean - mean)[1:] < 0.03).all()


def test_shapes_and_types(problem):
    search = hinge.select_C(*problem, cv=4)
    n = len(search.Cs)
    assert isinstance(search, hinge.CSearch)
    assert search.scores.shape == (n, 4)
    for values, dtype in [
        (search.Cs, np.float64),
        (search.seconds, np.float64),
        (search.passes, np.float64),
        (search.n_iter, np.int64),
        (search.unchanged, bool),
        (search.converged, bool),
        (search.mean, np.float64),
        (search.std_error, np.float64),
    ]:
        assert values.shape == (n,)
        assert values.dtype == dtype
    np.testing.assert_allclose(search.std_error, search.scores.std(axis=1, ddof=1) / 2)
    assert search.best_index == search.mean.argmax()
    assert search.best_C == search.Cs[search.best_index]
    assert search.best_score == search.mean.max()
    assert (search.seconds > 0).all()


def test_smallest_C_wins_a_draw():
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 20, axis=0)
    search = hinge.select_C(X, np.repeat([0, 1], 20), cv=4)
    assert (search.mean == 1).all()
    assert search.best_C == search.Cs[0]


# The range of C.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_first_C_is_the_papers_bound(problem, loss, scale):
    X, y = problem[0] * scale, problem[1]
    largest = X.multiply(X).sum(axis=1).max()
    bound = 1 / (len(y) * largest * (2 if loss == "squared_hinge" else 1))
    search = hinge.select_C(X, y, loss=loss, cv=3, fit_intercept=False, C_max=2.0**20)
    assert search.Cs[0] == 2.0 ** np.floor(np.log2(bound))
    np.testing.assert_array_equal(search.Cs[1:], 2 * search.Cs[:-1])


@pytest.mark.parametrize("loss", LOSSES)
def test_first_C_counts_weights_and_the_constant_column(problem, loss):
    X, y = problem
    weight = np.random.default_rng(0).uniform(0, 5, len(y))
    largest = X.multiply(X).sum(axis=1).max() + 7.0**2
    bound = 1 / (weight.sum() * largest * (2 if loss == "squared_hinge" else 1))
    search = hinge.select_C(X, y, loss=loss, cv=3, sample_weight=weight, intercept_scaling=7.0)
    assert search.Cs[0] == 2.0 ** np.floor(np.log2(bound))


@pytest.mark.parametrize("loss", LOSSES)
def test_ends_when_nothing_changes(loss):
    X, y = sparse_problem(22, noise=0.0, density=1.0)
    search = hinge.select_C(X, y, loss=loss, cv=3, C_max=1e12)
    assert search.stopped_by == "unchanged"
    assert search.Cs[-1] < 1e12
    beyond = hinge.select_C(X, y, loss=loss, cv=3, C_min=64 * search.Cs[-1], C_max=64 * search.Cs[-1])
    np.testing.assert_allclose(beyond.mean[0], search.mean[-1], atol=0.02)


@pytest.mark.parametrize(("C_min", "C_max", "ratio"), [(0.25, 2.0, 2.0), (0.1, 0.1, 2.0), (0.001, 0.5, 10.0)])
def test_ends_at_the_limit(problem, C_min, C_max, ratio):
    search = hinge.select_C(*problem, cv=3, C_min=C_min, C_max=C_max, ratio=ratio)
    n = int(np.floor(np.log(C_max / C_min) / np.log(ratio) + 1e-9)) + 1
    np.testing.assert_allclose(search.Cs, C_min * ratio ** np.arange(n), rtol=1e-12)
    assert search.stopped_by == "C_max"


@pytest.mark.parametrize("loss", LOSSES)
def test_matrix_of_zeros(loss):
    search = hinge.select_C(sp.csr_matrix((30, 4)), np.arange(30) % 2, loss=loss, cv=3)
    assert search.Cs[0] == 1
    np.testing.assert_allclose(search.scores, 0.5)


# Scores.


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
    options = {"C_min": 0.01, "C_max": 1.0, "ratio": 10.0, "tol": 1e-9, "max_iter": 100_000}
    search = hinge.select_C(X, y, loss=loss, cv=3, scoring=scoring, **options, **UNIQUE[loss])
    np.testing.assert_allclose(search.scores, cold_scores(X, y, loss, search.Cs, 3, scoring), atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "scoring"),
    [("logistic", "neg_log_loss"), ("logistic", "roc_auc_ovr"), ("hinge", "f1_macro"), ("squared_hinge", "accuracy")],
)
def test_scorers_of_several_classes(loss, scoring):
    X, y = sparse_problem(23, n_rows=200, n_classes=3)
    y = np.array(["x", "y", "z"])[y]
    options = {"C_min": 0.01, "C_max": 1.0, "ratio": 10.0, "tol": 1e-9, "max_iter": 100_000}
    search = hinge.select_C(X, y, loss=loss, cv=3, scoring=scoring, **options, **UNIQUE[loss])
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


def test_log_loss_needs_the_logistic_loss(problem):
    with pytest.raises((ValueError, AttributeError), match="predict_proba"):
        hinge.select_C(*problem, loss="hinge", scoring="neg_log_loss")


# Splits.


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedKFold(4),
        StratifiedKFold(3, shuffle=True, random_state=1),
        ShuffleSplit(2, random_state=0),
        GroupKFold(3),
        LeaveOneGroupOut(),
        PredefinedSplit(np.arange(240) % 5 - 1),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_splitters(problem, cv):
    X, y = problem
    groups = np.arange(240) // 10 % 4 if isinstance(cv, (GroupKFold, LeaveOneGroupOut)) else None
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


# Estimators that choose.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_refit_is_the_estimator_at_the_chosen_C(loss, n_classes, weighted):
    X, y = sparse_problem(24, n_classes=n_classes)
    weight = np.random.default_rng(4).uniform(0.5, 2, len(y)) if weighted else None
    options = {"tol": 1e-5, "class_weight": "balanced"}
    model = search_estimator(loss, cv=3, **options).fit(X, y, sample_weight=weight)
    plain = estimator(loss, C=model.C_, **options).fit(X, y, sample_weight=weight)
    search = hinge.select_C(X, y, loss=loss, cv=3, class_weight="balanced", sample_weight=weight)
    assert model.C_ == model.search_.best_C == search.best_C
    np.testing.assert_array_equal(model.search_.scores, search.scores)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.intercept_, plain.intercept_)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_parameters_of_the_search_reach_it(problem):
    X, y = problem
    model = hinge.LogisticRegressionCV(cv=GroupKFold(2), C_min=0.5, C_max=8.0, ratio=4.0, scoring="roc_auc")
    model.fit(X, y, groups=np.arange(240) % 6)
    assert model.search_.Cs.tolist() == [0.5, 2.0, 8.0]
    assert model.search_.scores.shape == (3, 2)
    expected = hinge.select_C(
        X, y, cv=GroupKFold(2), groups=np.arange(240) % 6, C_min=0.5, C_max=8.0, ratio=4.0, scoring="roc_auc"
    )
    np.testing.assert_array_equal(model.search_.scores, expected.scores)


# How it looks.


def test_frame(problem):
    search = hinge.select_C(*problem, cv=3)
    frame = search.to_frame()
    assert frame.columns.tolist() == [
        *("C", "mean", "std_error", "fold_0", "fold_1", "fold_2"),
        *("seconds", "passes", "n_iter", "unchanged", "converged"),
    ]
    assert len(frame) == len(search.Cs)
    np.testing.assert_array_equal(frame[["fold_0", "fold_1", "fold_2"]], search.scores)
    assert frame["C"][frame["mean"].idxmax()] == search.best_C


def test_repr(problem):
    search = hinge.select_C(*problem, cv=3)
    head, columns, *rows = repr(search).splitlines()
    assert f"best C = {search.best_C:g}" in head
    assert f"{len(search.Cs)} values, 3 folds" in head
    assert f"ended by {search.stopped_by}" in head
    assert columns.split()[:2] == ["C", "score"]
    assert len(rows) == len(search.Cs)
    assert [k for k, row in enumerate(rows) if row.startswith("*")] == [search.best_index]


def test_plot_needs_no_display(problem, tmp_path):
    pytest.importorskip("matplotlib")
    search = hinge.select_C(*problem, cv=3)
    axes = search.plot()
    assert axes.get_xscale() == "log"
    assert f"best C = {search.best_C:g}" in axes.get_title()
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), search.Cs)
    assert search.plot(axes) is axes
    axes.figure.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


# Mistakes.


def test_more_folds_than_rows_of_a_class(problem):
    X = problem[0]
    y = np.where(np.arange(240) < 4, "rare", "often")
    with pytest.raises(ValueError, match=r"cv=5 needs at least 5 rows of every class, class .*rare.* has 4"):
        hinge.select_C(X, y)


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ratio", value) for value in (1.0, 0.5, 0, -2, np.nan, np.inf, "2", None, True)),
        *(("C_min", value) for value in (0, -1.0, np.nan, np.inf, "1", 2048.0, False)),
        *(("C_max", value) for value in (0, -1.0, np.nan, np.inf, "1", None, 1e-30, True)),
        *(("tol", value) for value in (0, -1.0, np.nan, np.inf, "1", None, True)),
        *(("max_iter", value) for value in (0, -1, 1.5, "1", None, True)),
        *(("loss", value) for value in ("Hinge", "log", None, 1)),
        *(("solver", value) for value in ("liblinear", None, 1)),
    ],
)
def test_bad_parameters(problem, name, value):
    with pytest.raises(ValueError, match=rf"^{name} .*"):
        hinge.select_C(*problem, **{name: value})


@pytest.mark.parametrize("name", ["select_tol", "ratio", "C_min", "C_max"])
def test_bad_parameters_of_estimators(problem, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        hinge.LinearSVCCV(**{name: -1.0}).fit(*problem)


# Repeatable.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "dual_cd"])
def test_bits_do_not_depend_on_threads(loss, solver):
    X, y = sparse_problem(25, n_rows=150, n_classes=3)
    options = {"loss": loss, "solver": solver, "cv": 3, "C_max": 8.0, "scoring": first_decision}
    one, two = (hinge.select_C(X, y, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.passes, two.passes)
    np.testing.assert_array_equal(one.n_iter, two.n_iter)


def first_decision(model, X, y):
    """Bits of the solution as a score."""
    return float(np.asarray(model.decision_function(X)).sum())
