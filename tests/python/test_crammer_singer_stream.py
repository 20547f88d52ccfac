"""``partial_fit`` of all classes at once (Crammer and Singer): fits of all rows, and streams that were kept, as
witnesses."""

import hinge
import numpy as np
import pytest
from problems import sparse_problem
from streams import PIECE, check_a_pickled_stream_goes_on_to_the_same_bits, learn_in_pieces


def learned(X, y, classes, *, sample_weight=None, piece=PIECE, **options):
    """A model that has seen the rows in pieces."""
    model = hinge.LinearSVC(multi_class="crammer_singer", **options)
    return learn_in_pieces(model, X, y, classes, sample_weight=sample_weight, piece=piece)


def primal(model, X, y, C, weight):
    """The objective of Crammer and Singer, with a penalised intercept as a column of height 2; of two classes, whose
    weights sum to zero, each has half of the difference."""
    coef = np.hstack([model.coef_, model.intercept_[:, None] / 2])
    scores = model.decision_function(X)
    if len(coef) == 1:
        coef, scores = np.vstack([-coef, coef]) / 2, np.column_stack([-scores, scores]) / 2
    rows = np.arange(len(y))
    margins = scores + 1 - scores[rows, y][:, None]
    margins[rows, y] = 0
    return 0.5 * (coef**2).sum() + C * (weight * margins.max(axis=1)).sum()


@pytest.mark.parametrize("options", [{"fit_intercept": False}, {"intercept_scaling": 2.0}])
@pytest.mark.parametrize("n_classes", [2, 3, 8, 11])
def test_a_stream_comes_near_the_fit_from_below(options, n_classes):
    X, y = sparse_problem(1, n_rows=1500, n_classes=n_classes)
    y = y.astype(np.int64)
    classes, weight = np.arange(n_classes), 1.0 + np.arange(1500) % 2
    # Ten rounds end a quarter below the optimum: rows of 30 columns, 1,500 of them, pull at each other.
    stream = learned(X, y, classes, sample_weight=weight, C=0.5, block_options={"rounds": 40}, **options)
    fit = hinge.LinearSVC(multi_class="crammer_singer", C=0.5, tol=1e-6, **options).fit(X, y, weight)
    optimum = fit.certificate_.primal[0]
    assert stream.stream_.dual.shape == (1,)
    assert stream.coef_.shape == fit.coef_.shape
    assert 0.93 * optimum < stream.stream_.dual[0] <= optimum
    assert optimum * (1 - 1e-6) <= primal(stream, X, y, 0.5, weight) < 1.1 * optimum
    assert abs(primal(fit, X, y, 0.5, weight) - optimum) < 1e-6 * optimum
    assert stream.score(X, y) > fit.score(X, y) - 0.03


def test_memory_is_bounded_and_the_dual_value_still_one_of_all_rows():
    X, y = sparse_problem(2, n_rows=12_000, n_classes=5)
    options = {"C": 0.1, "intercept_scaling": 1.0}
    fit = hinge.LinearSVC(multi_class="crammer_singer", tol=1e-6, **options).fit(X, y)
    optimum = fit.certificate_.primal[0]
    duals = {}
    for score in ("auto", "projected", "gradient", "random", "none"):
        blocks = {"cache": score}
        stream = learned(X, y, np.arange(5), piece=2500, memory_budget=2_000_000, block_options=blocks, **options)
        assert stream.stream_.n_seen == 12_000
        assert stream.stream_.n_cached < 4000
        duals[score] = stream.stream_.dual[0]
        assert 0.5 * optimum < duals[score] <= optimum
        assert stream.score(X, y) > fit.score(X, y) - 0.05
    assert duals["auto"] == duals["projected"]
    assert duals["none"] < min(duals["projected"], duals["gradient"], duals["random"])


def test_a_pickled_stream_goes_on_to_the_same_bits_with_any_number_of_threads():
    X, y = sparse_problem(3, n_rows=900, n_classes=9)
    check_a_pickled_stream_goes_on_to_the_same_bits(learned, X, y, np.arange(9))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_weights_and_starts(n_classes):
    X, y = sparse_problem(4, n_rows=600, n_classes=n_classes)
    y = y.astype(np.int64)
    classes, last = np.arange(n_classes), n_classes - 1
    with pytest.raises(ValueError, match="classes"):
        hinge.LinearSVC(multi_class="crammer_singer").partial_fit(X, y)
    # A class that has not come yet, and a piece of no weight.
    early = learned(X[y < last], y[y < last], classes)
    assert early.coef_.shape == (1 if n_classes == 2 else n_classes, X.shape[1])
    before = early.coef_.copy()
    early.partial_fit(X[:50], y[:50], sample_weight=np.zeros(50))
    np.testing.assert_array_equal(early.coef_, before)
    # A class's weight is that of its rows.
    weight, shared = np.where(y == last, 3.0, 1.0), {"intercept_scaling": 1.0, "piece": 600}
    heavy = learned(X, y, classes, sample_weight=weight, **shared)
    same = learned(X, y, classes, class_weight={last: 3.0}, **shared)
    np.testing.assert_array_equal(heavy.coef_, same.coef_)
    # From a fit: its weights are those of rows that were seen and forgotten.
    fit = hinge.LinearSVC(multi_class="crammer_singer", intercept_scaling=1.0).fit(X, y)
    score, coef = fit.score(X, y), fit.coef_.copy()
    fit.partial_fit(X[:1], y[:1])
    assert np.abs(fit.coef_ - coef).max() < 0.5 * np.abs(coef).max()
    fit.partial_fit(X[1:20], y[1:20])
    assert np.isnan(fit.stream_.dual).all()
    assert fit.score(X, y) > 0.8 * score


def test_what_is_refused():
    X, y = sparse_problem(5, n_classes=3)
    model = hinge.LinearSVC(multi_class="crammer_singer", block_options={"cache": "steepest"})
    with pytest.raises(ValueError, match=r"cache must be 'auto', 'gradient', .* with 'crammer_singer'"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    model = hinge.LinearSVC(multi_class="crammer_singer", memory_budget=1000)
    with pytest.raises(ValueError, match="memory_budget must be at least"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    model = hinge.LinearSVC(multi_class="crammer_singer").partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="multi_class is 'ovr', the stream began with 'crammer_singer'"):
        model.set_params(multi_class="ovr").partial_fit(X, y)
