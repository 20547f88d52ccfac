"""Probabilities and thresholds from out-of-fold decision values, against scikit-learn and by brute force."""

import hinge
import numpy as np
import pytest
from hinge.calibration import tune_threshold
from problems import sparse_problem
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import _SigmoidCalibration
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score, log_loss, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV


def values_and_labels(seed=0, n=400, k=2):
    random = np.random.default_rng(seed)
    values = random.standard_normal(n) if k == 2 else random.standard_normal((n, k))
    if k == 2:
        return values, (random.random(n) < 1 / (1 + np.exp(-3 * values - 0.5))).astype(int)
    logits = 4 * values
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return values, (p.cumsum(axis=1) < random.random((n, 1))).sum(axis=1)


def test_sigmoid_is_platt():
    values, y = values_and_labels()
    platt = _SigmoidCalibration().fit(values, y)
    found = hinge.calibrate(values, y).predict_proba(values)
    np.testing.assert_allclose(found[:, 1], platt.predict(values), atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("k", [2, 4])
def test_probabilities_are_better_than_none(method, k):
    values, y = values_and_labels(k=k, n=2000)
    found = hinge.calibrate(values[:1000], y[:1000], method=method).predict_proba(values[1000:])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    exact = (found.argmax(axis=1) == y[1000:]).mean()
    if k == 2 or method == "temperature":  # one-vs-rest divided by the sum is not sure enough of several classes
        assert abs(found.max(axis=1).mean() - exact) < 0.06
    found = np.maximum(found, 1e-3)
    assert log_loss(y[1000:], found / found.sum(axis=1, keepdims=True)) < 0.85 * np.log(k)


def test_temperature_has_the_least_log_loss():
    values, y = values_and_labels(k=3)
    calibration = hinge.calibrate(values, y, method="temperature")
    best = log_loss(y, calibration.predict_proba(values))
    for factor in (0.9, 0.99, 1.01, 1.1):
        assert log_loss(y, calibration.predict_proba(factor * values)) >= best - 1e-9
    weight = np.where(np.arange(len(y)) % 2, 2.0, 0.0)
    weighted = hinge.calibrate(values, y, method="temperature", sample_weight=weight)
    half = hinge.calibrate(values[1::2], y[1::2], method="temperature")
    np.testing.assert_allclose(weighted.predict_proba(values), half.predict_proba(values), atol=1e-6)


def test_rows_never_held_out_do_not_count():
    values, y = values_and_labels()
    holes = values.copy()
    holes[::3] = np.nan
    with_holes = hinge.calibrate(holes, y).predict_proba(values)
    without = hinge.calibrate(np.delete(values, np.s_[::3]), np.delete(y, np.s_[::3])).predict_proba(values)
    np.testing.assert_array_equal(with_holes, without)


def test_the_cheapest_threshold_is_found():
    random = np.random.default_rng(3)
    for _ in range(30):
        values = random.integers(-4, 5, 12) / 2
        y = random.integers(0, 2, 12)
        y[:2] = 0, 1
        matrix = random.integers(-1, 6, (2, 2)).astype(float)
        cost = lambda t: matrix[y, (values >= t).astype(int)].sum()  # noqa: E731
        found = tune_threshold(values, y, cost_matrix=matrix)
        assert cost(found) == pytest.approx(min(cost(t) for t in np.arange(-4, 5, 0.25)))


@pytest.mark.parametrize("k", [2, 3])
def test_logarithms_of_tiny_probabilities_are_finite(k):
    values, y = values_and_labels(k=k)
    calibration = hinge.calibrate(values, y, method="temperature")
    logs = calibration.predict_log_proba(1e6 * values[:5])
    assert np.isfinite(logs).all()
    assert logs.min() < -1e4


class Identity(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose only feature is its decision value."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return X.ravel()


@pytest.mark.parametrize("scoring", ["f1", "balanced_accuracy", "precision", "roc_auc", make_scorer(f1_score)])
def test_the_best_threshold_is_that_of_scikit_learn(scoring):
    values, y = values_and_labels()
    options = {"response_method": "decision_function", "thresholds": 1000, "cv": "prefit", "refit": False}
    theirs = TunedThresholdClassifierCV(FrozenEstimator(Identity()), scoring=scoring, **options)
    assert tune_threshold(values, y, scoring=scoring) == theirs.fit(values.reshape(-1, 1), y).best_threshold_


@pytest.mark.parametrize("pos_label", ["no", "yes"])
def test_threshold_for_either_class_is_on_the_scale_of_the_decision_values(pos_label):
    values, y = values_and_labels()
    names = np.array(["no", "yes"])[y]
    found = tune_threshold(values, names, scoring=make_scorer(f1_score, pos_label=pos_label))
    score = lambda t: f1_score(names, np.where(values >= t, "yes", "no"), pos_label=pos_label)  # noqa: E731
    assert score(found) == max(score(t) for t in np.linspace(values.min(), values.max(), 1000))


def test_any_callable_tunes_a_threshold():
    values, y = values_and_labels()
    found = tune_threshold(values, y, scoring=lambda model, X, y: f1_score(y, model.predict(X)))
    assert found == tune_threshold(values, y, scoring="f1")


TUNED = [{"scoring": "f1"}, {"scoring": "balanced_accuracy"}, {"cost_matrix": [[0, 1], [3, 0]]}]


@pytest.mark.parametrize("options", TUNED, ids=str)
def test_weight_two_is_the_row_twice_for_a_threshold(options):
    for seed in range(5):
        values, y = values_and_labels(seed, n=80)
        weight = np.random.default_rng(seed).integers(0, 5, 80)
        rows = np.repeat(np.arange(80), weight)
        weighted = tune_threshold(values, y, sample_weight=weight, **options)
        assert weighted == tune_threshold(values[rows], y[rows], **options)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("k", [2, 4])
def test_weight_two_is_the_row_twice_for_probabilities(method, k):
    values, y = values_and_labels(k=k)
    weight = np.random.default_rng(k).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    weighted = hinge.calibrate(values, y, method=method, sample_weight=weight).predict_proba(values)
    repeated = hinge.calibrate(values[rows], y[rows], method=method).predict_proba(values)
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)


@pytest.mark.filterwarnings("ignore::hinge.NoSkillWarning")
@pytest.mark.parametrize(
    "options", [{"threshold": "f1"}, {"cost_matrix": [[0, 1], [3, 0]]}, {"probability": "sigmoid"}], ids=str
)
def test_weight_two_is_the_row_twice_for_an_estimator(options):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = (X[:, 0] + 1.5 * random.normal(size=60) > 0).astype(int)
    weight = random.integers(1, 6, size=60)
    rows = np.repeat(np.arange(60), weight)
    parts = np.array_split(random.permutation(60), 3)
    splits = [(np.setdiff1d(np.arange(60), part), part) for part in parts]
    repeated = [tuple(np.flatnonzero(np.isin(rows, part)) for part in split) for split in splits]
    fixed = {"Cs": [0.1], "tol": 1e-9, "select_tol": 1e-9, "max_iter": 100_000, **options}
    a = hinge.LinearSVCCV(cv=splits, **fixed).fit(X, y, sample_weight=weight)
    b = hinge.LinearSVCCV(cv=repeated, **fixed).fit(X[rows], y[rows])
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    for name in ("threshold_", "calibration_"):
        assert hasattr(a, name) == hasattr(b, name)
    if hasattr(a, "threshold_"):
        assert a.threshold_ == pytest.approx(b.threshold_, rel=1e-6)
    else:
        np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("k", [2, 4])
def test_estimator_calibrates_its_search(method, k):
    X, y = sparse_problem(0, n_rows=300, n_classes=k, noise=2.0)
    names = np.array(["a", "b", "c", "d"])[y]
    model = hinge.LinearSVCCV(cv=3, Cs=[0.01, 0.1, 1.0], probability=method, keep_decisions=True).fit(X, names)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (300, k)
    np.testing.assert_array_equal(model.predict(X), model.classes_[probabilities.argmax(axis=1)])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(probabilities), atol=1e-12)
    again = hinge.calibrate(model.search_.decisions, names, method=method)
    np.testing.assert_array_equal(again.predict_proba(model.decision_function(X)), probabilities)
    plain = hinge.LinearSVCCV(cv=3, Cs=[0.01, 0.1, 1.0]).fit(X, names)
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(plain, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}': probability is None, it must be one of"):
            getattr(plain, name)
    assert hinge.LinearSVCCV(cv=3, Cs=[0.1], probability=method).fit(X, names).search_.decisions is None


@pytest.mark.filterwarnings("ignore::hinge.NoSkillWarning")
def test_estimator_tunes_its_threshold():
    X, y = sparse_problem(1, n_rows=400, noise=4.0)
    rare = y * (np.arange(400) % 3 == 0)
    plain = hinge.LinearSVCCV(cv=3, Cs=[0.1], keep_decisions=True).fit(X, rare)
    tuned = hinge.LinearSVCCV(cv=3, Cs=[0.1], threshold="f1").fit(X, rare)
    np.testing.assert_array_equal(plain.decision_function(X), tuned.decision_function(X))
    decisions = plain.search_.decisions
    assert f1_score(rare, decisions >= tuned.threshold_) > f1_score(rare, decisions > 0)
    np.testing.assert_array_equal(tuned.predict(X), (tuned.decision_function(X) >= tuned.threshold_).astype(int))
    costly = hinge.LinearSVCCV(cv=3, Cs=[0.1], cost_matrix=[[0, 1], [10, 0]]).fit(X, rare)
    assert costly.threshold_ == tune_threshold(decisions, rare, cost_matrix=[[0, 1], [10, 0]])
    assert costly.predict(X).mean() > plain.predict(X).mean()


def test_stores_and_pieces_are_predicted_alike(tmp_path):
    X, y = sparse_problem(3, n_rows=300, noise=2.0)
    store = hinge.BlockStore.build((X, y), tmp_path / "rows.blocks")
    for options in ({"probability": "sigmoid"}, {"cost_matrix": [[0, 1], [10, 0]]}):
        model = hinge.LinearSVCCV(cv=3, Cs=[0.1], **options).fit(X, y)
        expected = model.predict(X)
        np.testing.assert_array_equal(model.predict(store), expected)
        pieces = list(hinge.iter_predictions(model, ((X[k : k + 100], y[k : k + 100]) for k in (0, 100, 200))))
        np.testing.assert_array_equal(np.concatenate(pieces), expected)
    model = hinge.LinearSVCCV(cv=3, Cs=[0.1], probability="isotonic").fit(store)
    np.testing.assert_allclose(model.predict_proba(store), model.predict_proba(X), atol=1e-12)
    probabilities = list(hinge.iter_predictions(model, store, method="predict_proba"))
    np.testing.assert_allclose(np.concatenate(probabilities), model.predict_proba(X), atol=1e-12)
    logs = list(hinge.iter_predictions(model, store, method="predict_log_proba"))
    np.testing.assert_allclose(np.concatenate(logs), model.predict_log_proba(store), atol=1e-12)
    with pytest.raises(ValueError, match="no attribute 'predict_proba': probability is None"):
        hinge.iter_predictions(hinge.LinearSVCCV(cv=3, Cs=[0.1]).fit(X, y), store, method="predict_proba")


def test_costs_of_several_classes():
    X, y = sparse_problem(2, n_rows=300, n_classes=3, noise=2.0)
    matrix = np.array([[0, 1, 1], [1, 0, 1], [20, 20, 0]])
    model = hinge.LinearSVCCV(cv=3, Cs=[0.1], probability="sigmoid", cost_matrix=matrix).fit(X, y)
    expected = model.predict_proba(X) @ matrix
    np.testing.assert_array_equal(model.predict(X), expected.argmin(axis=1))


def test_refuses_what_does_not_fit():
    X, y = sparse_problem(0, n_classes=3)
    fit = lambda **options: hinge.LinearSVCCV(cv=3, Cs=[1.0], **options).fit(X, y)  # noqa: E731
    with pytest.raises(ValueError, match="probability must be one of"):
        fit(probability="platt")
    with pytest.raises(ValueError, match="exclude each other"):
        fit(threshold="f1", cost_matrix=np.eye(3))
    with pytest.raises(ValueError, match="needs probability"):
        fit(cost_matrix=np.eye(3))
    with pytest.raises(ValueError, match="2 classes, y has 3"):
        fit(threshold="f1")
    with pytest.raises(ValueError, match=r"shape \(3, 3\)"):
        fit(cost_matrix=np.eye(2))
    with pytest.raises(ValueError, match="threshold 'foo' is not the name of a scikit-learn scorer"):
        fit(threshold="foo")
    with pytest.raises(ValueError, match=r"threshold must be the name of a scorer or a scorer, got 0\.3"):
        fit(threshold=0.3)
    with pytest.raises(ValueError, match="threshold must be a scorer, f1_score is a metric"):
        fit(threshold=f1_score)
    with pytest.raises(ValueError, match="exactly one"):
        tune_threshold([0.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match=r"must have 1 column"):
        hinge.calibrate(np.zeros((3, 2)), [0, 1, 1])
    with pytest.raises(ValueError, match="no row without NaN"):
        hinge.calibrate([np.nan, np.nan], [0, 1])
    with pytest.raises(ValueError, match="decisions are all 2: no threshold"):
        tune_threshold([2.0, 2.0], [0, 1], scoring="f1")


@pytest.mark.filterwarnings("ignore:class 2 has 1 row")
def test_a_class_that_is_never_held_out_is_refused_before_the_first_fit(monkeypatch):
    monkeypatch.setattr(hinge._native, "search", lambda *args: pytest.fail("the search began"))
    X, _ = sparse_problem(0)
    y = np.where(np.arange(120) == 5, 2, np.arange(120) % 2)
    with pytest.raises(ValueError, match="no row of class 2 is held out"):
        hinge.LinearSVCCV(probability="sigmoid").fit(X, y)


def test_a_threshold_that_cannot_be_tuned_is_refused_before_the_first_fit(monkeypatch):
    monkeypatch.setattr(hinge._native, "search", lambda *args: pytest.fail("the search began"))
    X, y = sparse_problem(0)
    fit = lambda y, threshold: hinge.LinearSVCCV(cv=3, threshold=threshold).fit(X, y)  # noqa: E731
    with pytest.raises(ValueError, match="threshold 'foo'"):
        fit(y, "foo")
    with pytest.raises(ValueError, match="threshold='neg_log_loss' needs probabilities"):
        fit(y, "neg_log_loss")
    with pytest.raises(ValueError, match="pos_label=1 is not a valid label"):
        fit(np.array(["no", "yes"])[y], "f1")
    with pytest.raises(ValueError, match=r"threshold=.* must give one number, it gives None"):
        fit(y, lambda model, X, y: None)
