"""Probabilities and thresholds from out-of-fold decision values, against scikit-learn and by brute force."""

import hinge
import numpy as np
import pytest
from hinge.calibration import tune_threshold
from problems import sparse_problem
from sklearn.calibration import _SigmoidCalibration
from sklearn.metrics import f1_score, log_loss


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


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("k", [2, 4])
def test_estimator_calibrates_its_search(method, k):
    X, y = sparse_problem(0, n_rows=300, n_classes=k, noise=2.0)
    names = np.array(["a", "b", "c", "d"])[y]
    model = hinge.LinearSVCCV(cv=3, Cs=[0.01, 0.1, 1.0], probability=method, keep_decisions=True).fit(X, names)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (300, k)
    np.testing.assert_array_equal(model.predict(X), model.classes_[probabilities.argmax(axis=1)])
    again = hinge.calibrate(model.search_.decisions, names, method=method)
    np.testing.assert_array_equal(again.predict_proba(model.decision_function(X)), probabilities)
    plain = hinge.LinearSVCCV(cv=3, Cs=[0.01, 0.1, 1.0]).fit(X, names)
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    assert not hasattr(plain, "predict_proba")
    assert hinge.LinearSVCCV(cv=3, Cs=[0.1], probability=method).fit(X, names).search_.decisions is None


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
    with pytest.raises(ValueError, match="exactly one"):
        tune_threshold([0.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match=r"must have 1 column"):
        hinge.calibrate(np.zeros((3, 2)), [0, 1, 1])
    with pytest.raises(ValueError, match="no row without NaN"):
        hinge.calibrate([np.nan, np.nan], [0, 1])
