"""What the tests of streams share."""

import pickle

import numpy as np

PIECE = 100


def learn_in_pieces(model, X, y, classes, *, sample_weight=None, piece=PIECE):
    """The model, which has seen the rows in pieces."""
    for start in range(0, len(y), piece):
        part = slice(start, start + piece)
        weight = None if sample_weight is None else sample_weight[part]
        model.partial_fit(X[part], y[part], classes=classes, sample_weight=weight)
    return model


def check_a_pickled_stream_goes_on_to_the_same_bits(learned, X, y, classes):
    """With another number of threads, too; the streams that ended, for more to be asked of them."""
    whole = learned(X, y, classes, n_jobs=1)
    half = learned(X[:400], y[:400], classes, n_jobs=2)
    again = pickle.loads(pickle.dumps(half))
    assert again.stream_.n_cached == half.stream_.n_cached
    for start in range(400, len(y), PIECE):
        part = slice(start, start + PIECE)
        half.partial_fit(X[part], y[part])
        again.partial_fit(X[part], y[part])
    for model in (half, again):
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        np.testing.assert_array_equal(model.intercept_, whole.intercept_)
        np.testing.assert_array_equal(model.stream_.dual, whole.stream_.dual)
    return half, again
