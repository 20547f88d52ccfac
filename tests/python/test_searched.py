"""What estimators that choose their own C tell beside their model: the score and the names of scikit-learn."""

import hinge
import numpy as np
import pytest
import sklearn
from problems import noisy_problem, search_estimator, sparse_problem
from sklearn.linear_model import LogisticRegressionCV as SklearnLogisticRegressionCV
from sklearn.metrics import accuracy_score, f1_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

Cs = [0.01, 0.1, 1.0]


@pytest.fixture
def problem():
    return noisy_problem()


def weights(n):
    return np.random.default_rng(1).integers(0, 4, n).astype(float)


def plain(model, X, y):
    return {"right": accuracy_score(y, model.predict(X)), "f": f1_score(y, model.predict(X))}


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize(
    ("scoring", "choose_by", "expected"),
    [
        (None, None, "accuracy"),
        ("roc_auc", None, "roc_auc"),
        (get_scorer("roc_auc"), None, "roc_auc"),
        (["roc_auc", "f1"], "f1", "f1"),
        ({"a": "roc_auc", "b": "f1"}, None, "roc_auc"),
        ([make_scorer(f1_score)], None, "f1"),
        (plain, "f", "f1"),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),  # no addresses: several processes share the tests
)
def test_score_is_that_of_the_scorer_that_chose(problem, tmp_path, loss, scoring, choose_by, expected):
    X, y = problem
    model = search_estimator(loss, cv=3, Cs=Cs, scoring=scoring, choose_by=choose_by).fit(X, y)
    theirs = get_scorer(expected)(model, X, y)
    assert model.score(X, y) == pytest.approx(theirs)
    assert model.score(hinge.BlockStore.build((X, y), tmp_path / "rows.blocks")) == pytest.approx(theirs)
    w = weights(len(y))
    store = hinge.BlockStore.build((X, y, w), tmp_path / "weighted.blocks")
    if scoring is plain:
        with pytest.raises(ValueError, match="the scorer 'f' takes no weights"):
            model.score(X, y, w)
        assert model.score(store) == pytest.approx(theirs)
    else:
        weighted = get_scorer(expected)(model, X, y, sample_weight=w)
        assert model.score(X, y, w) == pytest.approx(weighted)
        assert model.score(store) == pytest.approx(weighted)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_score_is_that_of_scikit_learn(problem):
    X, y = problem
    ours = hinge.LogisticRegressionCV(cv=3, Cs=[0.1], scoring="neg_log_loss", tol=1e-10).fit(X, y)
    theirs = SklearnLogisticRegressionCV(cv=3, Cs=[0.1], scoring="neg_log_loss", tol=1e-10, max_iter=10_000)
    grid = GridSearchCV(hinge.LogisticRegression(tol=1e-10), {"C": [0.1]}, scoring="neg_log_loss").fit(X, y)
    theirs.fit(X, y)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), rel=1e-4)
    assert ours.score(X, y) == grid.score(X, y)


def test_cross_validation_scores_a_search_by_its_scorer(problem):
    X, y = problem
    model = hinge.LinearSVCCV(cv=3, Cs=Cs, scoring="roc_auc")
    np.testing.assert_array_equal(cross_val_score(model, X, y), cross_val_score(model, X, y, scoring="roc_auc"))


def test_weights_are_routed_to_the_score(problem):
    X, y = problem
    w = weights(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = hinge.LinearSVCCV(cv=3, Cs=Cs, scoring="f1")
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(MaxAbsScaler(), model).fit(X, y, sample_weight=w)
        expected = f1_score(y, pipeline.predict(X), sample_weight=w)
        assert pipeline.score(X, y, sample_weight=w) == pytest.approx(expected)
        assert expected != f1_score(y, pipeline.predict(X))


@pytest.mark.parametrize("scoring", [None, "accuracy"])
@pytest.mark.parametrize("make", [hinge.LinearSVCCV, hinge.LogisticRegressionCV])
def test_a_model_that_finds_no_row_of_a_rare_class_is_warned_of(make, scoring):
    X = np.random.default_rng(0).normal(size=(300, 5))
    y = np.where(np.arange(300) < 10, "rare", "often")
    message = "accuracy of 0.9667 out of fold, always answering class 'often' has 0.9667: choose C by scoring="
    with pytest.warns(hinge.NoSkillWarning, match=message) as caught:
        model = make(scoring=scoring).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert (model.predict(X) == "often").all()
    make(scoring="balanced_accuracy").fit(X, y)
    make(scoring="roc_auc").fit(X, y)


def test_weights_count_for_the_most_frequent_class(problem):
    X, y = problem
    weight = np.where(y == 0, 100.0, 1.0)
    with pytest.warns(hinge.NoSkillWarning, match="always answering class 0 has 0.9"):
        hinge.select_C(X, y, cv=3, sample_weight=weight, Cs=[1e-6])
    hinge.select_C(X, y, cv=3, Cs=[0.1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_names_of_scikit_learn(n_classes):
    X, y = sparse_problem(2, n_rows=150, n_classes=n_classes)
    names = np.array(["a", "b", "c"])[y]
    model = hinge.LogisticRegressionCV(cv=3, Cs=Cs)
    assert not hasattr(model, "Cs_")
    assert not hasattr(model, "scores_")
    model.fit(X, names)
    np.testing.assert_array_equal(model.Cs_, Cs)
    assert list(model.scores_) == (["b"] if n_classes == 2 else ["a", "b", "c"])
    for scores in model.scores_.values():
        np.testing.assert_array_equal(scores, model.search_.scores.T)
        assert scores.shape == (3, 3)
