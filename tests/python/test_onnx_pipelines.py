"""Pipelines of scikit-learn that end in one of our estimators, converted by skl2onnx."""

import hinge
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")

import hinge.onnx  # noqa: E402
from skl2onnx.common.data_types import (  # noqa: E402
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)

CLOSE = {"rtol": 1e-12, "atol": 1e-12}

# The runtime's default is en_US.UTF-8, which not every machine has.
LOCALE = {"locale": "C"}

CSV = {"cv": 2, "Cs": [0.1, 1.0]}


def run(model, rows, kind, options=None, **more):
    """Outputs of the converted model, in their order."""
    names = [("X", kind([None, rows.shape[1]]))]
    graph = skl2onnx.convert_sklearn(model, initial_types=names, options=options, **more)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), sess_options=settings, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"X": rows})


def of(model, **options):
    """Options of the last step."""
    return {id(model[-1] if hasattr(model, "steps") else model): options}


@pytest.fixture(scope="module")
def table():
    """A function from a number of classes to rows and labels."""

    def made(n_classes):
        random = np.random.default_rng(n_classes)
        X = random.standard_normal((200, 5))
        values = X @ random.standard_normal((5, n_classes)) + 0.5 * random.standard_normal((200, n_classes))
        return X, values.argmax(axis=1)

    return made


ESTIMATORS = {
    "LinearSVC": lambda: hinge.LinearSVC(),
    "crammer_singer": lambda: hinge.LinearSVC(multi_class="crammer_singer"),
    "LogisticRegression": lambda: hinge.LogisticRegression(),
    "LogisticRegressionCV": lambda: hinge.LogisticRegressionCV(**CSV),
    "LinearSVCCV": lambda: hinge.LinearSVCCV(**CSV),
    "sigmoid": lambda: hinge.LinearSVCCV(probability="sigmoid", scoring="balanced_accuracy", **CSV),
    "isotonic": lambda: hinge.LinearSVCCV(probability="isotonic", **CSV),
    "temperature": lambda: hinge.LinearSVCCV(probability="temperature", **CSV),
    "PegasosClassifier": lambda: hinge.PegasosClassifier(tol=0.5),
    "SubgradientSVC": lambda: hinge.SubgradientSVC(tol=0.1),
}


def scores_of(model, X):
    """What the second output of a converted model should be."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    return raw_scores_of(model, X)


def raw_scores_of(model, X):
    values = model.decision_function(X)
    return np.column_stack([-values, values]) if values.ndim == 1 else values


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_behind_a_scaler(table, name, n_classes):
    X, y = table(n_classes)
    model = make_pipeline(StandardScaler(), ESTIMATORS[name]()).fit(X, y)
    label, found = run(model, X, DoubleTensorType, of(model, zipmap=False))
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(found, scores_of(model, X), **CLOSE)
    label, found = run(model, X, DoubleTensorType, of(model, zipmap=False, raw_scores=True))
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(found, raw_scores_of(model, X), **CLOSE)
    label, found = run(model, X.astype(np.float32), FloatTensorType, of(model, zipmap=False))
    assert found.dtype == np.float32
    if name != "isotonic":  # steep lines
        np.testing.assert_allclose(found, scores_of(model, X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("classes", [np.array([3, 5, 9]), np.array(["a", "b", "ü"]), np.array([1.0, 2.0, -4.0])])
@pytest.mark.parametrize("kind", [FloatTensorType, DoubleTensorType])
def test_maps_from_classes_to_probabilities(table, classes, kind):
    X, y = table(3)
    model = hinge.LogisticRegression().fit(X, classes[y])
    rows = X.astype(np.float32) if kind is FloatTensorType else X
    label, found = run(model, rows, kind)  # the default of skl2onnx
    np.testing.assert_array_equal(label, model.predict(rows))
    assert [list(row) for row in found[:2]] == [model.classes_.tolist()] * 2
    np.testing.assert_allclose([list(row.values()) for row in found], model.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("kind", [FloatTensorType, DoubleTensorType])
def test_a_column_for_each_class(table, kind):
    X, y = table(3)
    model = hinge.LogisticRegression().fit(X, np.array(["a", "b", "c"])[y])
    rows = X.astype(np.float32) if kind is FloatTensorType else X
    label, *columns = run(model, rows, kind, of(model, zipmap="columns"))
    np.testing.assert_array_equal(label, model.predict(X))
    bound = {"atol": 1e-6} if kind is FloatTensorType else CLOSE
    np.testing.assert_allclose(np.column_stack(columns), model.predict_proba(X), **bound)


def test_numbers_in_place_of_classes_and_classes_as_an_output(table):
    X, y = table(3)
    classes = np.array(["a", "b", "c"])
    model = hinge.LogisticRegression().fit(X, classes[y])
    label, _ = run(model, X, DoubleTensorType, of(model, zipmap=False, nocl=True))
    np.testing.assert_array_equal(classes[label], model.predict(X))
    *_, named = run(model, X, DoubleTensorType, of(model, zipmap=False, output_class_labels=True))
    assert named.tolist() == ["a", "b", "c"]
    numbers = hinge.LogisticRegression().fit(X, y + 5)
    *_, named = run(numbers, X, DoubleTensorType, of(numbers, zipmap=False, output_class_labels=True))
    assert named.tolist() == [5, 6, 7]


def test_truth_values_become_0_and_1_and_broken_numbers_are_refused(table):
    X, y = table(2)
    model = hinge.LogisticRegression().fit(X, y == 1)
    label, found = run(model, X, DoubleTensorType)
    np.testing.assert_array_equal(label, model.predict(X).astype(int))
    assert list(found[0]) == [0, 1]
    with pytest.raises(ValueError, match=r"output_class_labels must be False .* their dtype is bool"):
        run(model, X, DoubleTensorType, of(model, zipmap=False, output_class_labels=True))
    halves = hinge.LogisticRegression().fit(X, y)
    halves.classes_ = np.array([0.5, 1.5])
    with pytest.raises(ValueError, match=r"classes must be integers or strings for skl2onnx, 0\.5 is neither"):
        run(halves, X, DoubleTensorType, of(halves, zipmap=False))


@pytest.mark.parametrize("zipmap", [True, False])
def test_labels(table, zipmap):
    X, y = table(3)
    model = hinge.LogisticRegression().fit(X, np.column_stack([y == 0, y != 1, y == 2]).astype(int))
    label, found = run(model, X, DoubleTensorType, of(model, zipmap=zipmap))
    np.testing.assert_array_equal(label, model.predict(X))
    found = [list(row.values()) for row in found] if zipmap else found
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-6 if zipmap else 1e-12)


@pytest.mark.parametrize("kind", [Int64TensorType, BooleanTensorType])
def test_rows_of_integers_and_truth_values(kind):
    random = np.random.default_rng(0)
    X = random.integers(0, 2, (50, 6))
    y = X[:, 0] ^ (random.random(50) < 0.2)
    model = hinge.LogisticRegression().fit(X, y)
    rows = X.astype(bool) if kind is BooleanTensorType else X
    _, found = run(model, rows, kind, of(model, zipmap=False, double=True))
    np.testing.assert_allclose(found, model.predict_proba(X), **CLOSE)
    _, found = run(model, rows, kind, of(model, zipmap=False))
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-6)


# Text and categories.


@pytest.fixture(scope="module")
def sentences():
    """Real sentences of three kinds: what the package says of its estimators, its searches and its stores."""
    kinds = (hinge.LinearSVC, hinge.select_C, hinge.BlockStore)
    texts = [[line for line in kind.__doc__.splitlines() if len(line.split()) > 4] for kind in kinds]
    return np.concatenate(texts), np.repeat(["estimator", "search", "store"], [len(lines) for lines in texts])


@pytest.mark.parametrize("parameters", [{}, {"norm": "l1", "smooth_idf": False}, {"use_idf": False}])
@pytest.mark.parametrize("estimator", ["LinearSVC", "LogisticRegression", "sigmoid"])
def test_tfidf(sentences, estimator, parameters):
    texts, y = sentences
    words = TfidfVectorizer(token_pattern="[a-zA-Z0-9_]+", ngram_range=(1, 2), **parameters)
    model = make_pipeline(words, ESTIMATORS[estimator]()).fit(texts, y)
    rows, options = texts[:, None].astype(object), of(model, zipmap=False) | {id(words): LOCALE}
    in_double = {"custom_parsers": hinge.onnx.DOUBLE_PARSERS}
    label, found = run(model, rows, StringTensorType, options, **in_double)
    np.testing.assert_array_equal(label, model.predict(texts))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, scores_of(model, texts), **CLOSE)
    _, found = run(model, rows, StringTensorType, options)
    np.testing.assert_allclose(found, scores_of(model, texts), atol=1e-5)


def test_counts(sentences):
    texts, y = sentences
    model = make_pipeline(CountVectorizer(), hinge.LogisticRegression()).fit(texts, y)
    options = of(model, zipmap=False, double=True) | {CountVectorizer: LOCALE}
    label, found = run(model, texts[:, None].astype(object), StringTensorType, options)
    np.testing.assert_array_equal(label, model.predict(texts))
    np.testing.assert_allclose(found, model.predict_proba(texts), **CLOSE)


@pytest.mark.parametrize("estimator", ["LinearSVC", "LogisticRegression", "isotonic"])
def test_one_hot(estimator):
    random = np.random.default_rng(1)
    X = np.column_stack([random.choice(["red", "green", "blue"], 120), random.choice(["s", "m", "l", "xl"], 120)])
    y = (X[:, 0] == "red") ^ (X[:, 1] == "xl") ^ (random.random(120) < 0.2)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), ESTIMATORS[estimator]()).fit(X, y.astype(int))
    X = np.vstack([X, [["violet", "s"]]])
    label, found = run(model, X.astype(object), StringTensorType, of(model, zipmap=False, double=True))
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(found, scores_of(model, X), **CLOSE)


# Estimators within others.


def test_columns_of_a_table(table):
    X, y = table(3)
    steps = ColumnTransformer([("scaled", StandardScaler(), [0, 1, 2]), ("kept", "passthrough", [3, 4])])
    model = make_pipeline(steps, hinge.LogisticRegression()).fit(X, y)
    label, found = run(model, X, DoubleTensorType, of(model, zipmap=False))
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(found, model.predict_proba(X), **CLOSE)


def test_the_best_of_a_grid_search(table):
    X, y = table(3)
    model = GridSearchCV(hinge.LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    label, found = run(model, X, DoubleTensorType, {id(model): {"zipmap": False}})
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(found, model.predict_proba(X), **CLOSE)


def test_a_calibrated_classifier_of_scikit_learn(table):
    X, y = table(3)
    model = CalibratedClassifierCV(hinge.LinearSVC(), cv=2).fit(X, y)
    label, found = run(model, X, DoubleTensorType, {id(model): {"zipmap": False}})
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(found, model.predict_proba(X), **CLOSE)


# What is registered.


class OwnSVC(hinge.LinearSVC):
    pass


def test_derived_classes_are_registered_by_name(table):
    X, y = table(2)
    model = OwnSVC().fit(X, y)
    hinge.onnx.register(OwnSVC)
    label, found = run(model, X, DoubleTensorType, of(model, zipmap=False))
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(found, raw_scores_of(model, X), **CLOSE)
    with pytest.raises(TypeError, match="kind must be a class of classifiers of hinge"):
        hinge.onnx.register(StandardScaler)


@pytest.mark.parametrize("opset", [13, 15, 18, 21])
def test_versions_of_the_operators(table, opset):
    X, y = table(3)
    for name in ("LogisticRegression", "isotonic"):
        model = ESTIMATORS[name]().fit(X, y)
        label, found = run(model, X, DoubleTensorType, of(model, zipmap=False), target_opset=opset)
        np.testing.assert_array_equal(label, model.predict(X))
        np.testing.assert_allclose(found, model.predict_proba(X), **CLOSE)


def test_older_versions_are_refused(table):
    X, y = table(3)
    model = hinge.LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="target_opset must be at least 13, got 12"):
        run(model, X, DoubleTensorType, of(model, zipmap=False), target_opset=12)
