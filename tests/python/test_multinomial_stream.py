"""``partial_fit`` of multinomial logistic regression: fits of all rows, and streams that were kept, as witnesses."""

import hinge
import numpy as np
import pytest
from problems import sparse_problem
from scipy.special import softmax
from sklearn.metrics import log_loss
from streams import PIECE, check_a_pickled_stream_goes_on_to_the_same_bits, learn_in_pieces


def learned(X, y, classes, *, sample_weight=None, piece=PIECE, **options):
    """A model that has seen the rows in pieces."""
    model = hinge.LogisticRegression(multi_class="multinomial", **options)
    return learn_in_pieces(model, X, y, classes, sample_weight=sample_weight, piece=piece)


@pytest.mark.parametrize("options", [{"fit_intercept": False}, {"intercept_scaling": 2.0}])
@pytest.mark.parametrize("n_classes", [3, 8, 11])
def test_a_stream_comes_near_the_fit_from_below(options, n_classes):
    X, y = sparse_problem(1, n_rows=1500, n_classes=n_classes)
    classes, weight = np.arange(n_classes), 1.0 + np.arange(1500) % 2
    stream = learned(X, y, classes, sample_weight=weight, C=0.5, **options)
    fit = hinge.LogisticRegression(C=0.5, tol=1e-6, **options).fit(X, y, weight)
    assert stream.multi_class_ == "multinomial"
    optimum = fit.certificate_.primal[0]
    assert stream.stream_.dual.shape == (1,)
    assert 0.9 * optimum < stream.stream_.dual[0] <= optimum
    chances = stream.predict_proba(X)
    np.testing.assert_allclose(chances, softmax(stream.decision_function(X), axis=1), atol=1e-12)
    np.testing.assert_array_equal(stream.predict(X), classes[chances.argmax(axis=1)])
    assert log_loss(y, chances, labels=classes) < 1.1 * log_loss(y, fit.predict_proba(X), labels=classes)


def test_memory_is_bounded_and_the_dual_value_still_one_of_all_rows():
    X, y = sparse_problem(2, n_rows=12_000, n_classes=5)
    options = {"C": 0.1, "intercept_scaling": 1.0}
    stream = learned(X, y, np.arange(5), piece=2500, memory_budget=3_000_000, **options)
    assert stream.stream_.n_seen == 12_000
    assert stream.stream_.n_cached < 9000
    fit = hinge.LogisticRegression(tol=1e-6, **options).fit(X, y)
    assert 0.5 * fit.certificate_.primal[0] < stream.stream_.dual[0] <= fit.certificate_.primal[0]
    assert stream.score(X, y) > fit.score(X, y) - 0.05


def test_a_pickled_stream_goes_on_to_the_same_bits_with_any_number_of_threads():
    X, y = sparse_problem(3, n_rows=900, n_classes=9)
    for model in check_a_pickled_stream_goes_on_to_the_same_bits(learned, X, y, np.arange(9)):
        assert model.multi_class_ == "multinomial"


def test_classes_weights_and_starts():
    X, y = sparse_problem(4, n_rows=600, n_classes=4)
    with pytest.raises(ValueError, match="classes"):
        hinge.LogisticRegression(multi_class="multinomial").partial_fit(X, y)
    # A class that has not come yet, and a piece of no weight.
    early = learned(X[y < 3], y[y < 3], np.arange(4))
    assert early.coef_.shape == (4, X.shape[1])
    assert early.predict_proba(X).shape == (600, 4)
    before = early.coef_.copy()
    early.partial_fit(X[:50], y[:50], sample_weight=np.zeros(50))
    np.testing.assert_array_equal(early.coef_, before)
    # A class's weight is that of its rows, and a row of weight 0 is none.
    weight, shared = np.where(y == 2, 3.0, 1.0), {"intercept_scaling": 1.0, "piece": 600}
    heavy = learned(X, y, np.arange(4), sample_weight=weight, **shared)
    same = learned(X, y, np.arange(4), class_weight={2: 3.0}, **shared)
    np.testing.assert_array_equal(heavy.coef_, same.coef_)
    light = learned(X, y, np.arange(4), sample_weight=(y != 2).astype(float), **shared)
    assert light.predict_proba(X)[:, 2].max() < 0.25 < heavy.predict_proba(X)[:, 2].max()
    # Two classes are one problem whatever it is called.
    two = [
        hinge.LogisticRegression(multi_class=name).partial_fit(X, y > 1, classes=[False, True])
        for name in ("multinomial", "ovr")
    ]
    np.testing.assert_array_equal(two[0].coef_, two[1].coef_)
    # From a fit: its weights are those of rows that were seen and forgotten.
    options = {"multi_class": "multinomial", "intercept_scaling": 1.0}
    fit = hinge.LogisticRegression(**options).fit(X, y)
    chances = fit.predict_proba(X)
    fit.partial_fit(X[:20], y[:20])
    assert fit.multi_class_ == "multinomial"
    assert np.isnan(fit.stream_.dual).all()
    assert fit.score(X, y) > 0.8 * (chances.argmax(axis=1) == y).mean()


def test_what_is_refused():
    X, y = sparse_problem(5, n_classes=3)
    model = hinge.LogisticRegression(multi_class="multinomial", block_options={"cache": "steepest"})
    with pytest.raises(ValueError, match=r"cache must be 'auto', 'gradient', .* with multi_class=\"multinomial\""):
        model.partial_fit(X, y, classes=[0, 1, 2])
    model = hinge.LogisticRegression(multi_class="multinomial", memory_budget=1000)
    with pytest.raises(ValueError, match="memory_budget must be at least"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    model = hinge.LogisticRegression(multi_class="multinomial").partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="multi_class is 'ovr', the stream began with 'multinomial'"):
        model.set_params(multi_class="ovr").partial_fit(X, y)
