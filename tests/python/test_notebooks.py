"""Plain code, as people write it for scikit-learn, with nothing changed but the import.

Each function is a notebook: it gets the classes and returns a score, which ours and theirs must share but for a few
rows (each class against the rest is not one model of all classes).
"""

import warnings

import hinge
import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model
import sklearn.svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score, classification_report, confusion_matrix, log_loss, roc_auc_score, roc_curve
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier


class Ours:
    LogisticRegression = hinge.LogisticRegression
    LogisticRegressionCV = hinge.LogisticRegressionCV
    LinearSVC = hinge.LinearSVC


class Theirs:
    LogisticRegression = sklearn.linear_model.LogisticRegression
    LogisticRegressionCV = sklearn.linear_model.LogisticRegressionCV
    LinearSVC = sklearn.svm.LinearSVC


def titanic(linear):
    """Columns of several kinds, missing values, a table of odds."""
    rng = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame(
        {
            "Sex": rng.choice(["male", "female"], n),
            "Pclass": rng.choice([1, 2, 3], n),
            "Age": rng.normal(30, 12, n).clip(1, 80),
            "Fare": rng.exponential(30, n),
        }
    )
    logits = 1.5 * (frame["Sex"] == "female") - 0.8 * (frame["Pclass"] - 2) - 0.01 * frame["Age"]
    frame["Survived"] = (rng.random(n) < 1 / (1 + np.exp(-logits))).astype(int)
    X, y = frame.drop(columns="Survived"), frame["Survived"]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=42, stratify=y)
    prepare = ColumnTransformer(
        [("number", StandardScaler(), ["Age", "Fare"]), ("kind", OneHotEncoder(drop="first"), ["Sex", "Pclass"])]
    )
    model = Pipeline([("prep", prepare), ("clf", linear.LogisticRegression(solver="liblinear", random_state=0))])
    model.fit(X_train, y_train)
    names = model.named_steps["prep"].get_feature_names_out()
    odds = pd.Series(np.exp(model.named_steps["clf"].coef_[0]), index=names).sort_values()
    assert odds.index[-1] != "kind__Sex_male"
    print(confusion_matrix(y_test, model.predict(X_test)))
    return roc_auc_score(y_test, model.predict_proba(X_test)[:, 1])


def breast_cancer(linear):
    """Train, test, report, ROC."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=1)
    scaler = StandardScaler().fit(X_train)
    clf = linear.LogisticRegression(C=1.0, max_iter=10000)
    clf.fit(scaler.transform(X_train), y_train)
    y_pred = clf.predict(scaler.transform(X_test))
    print(classification_report(y_test, y_pred))
    fpr, tpr, _ = roc_curve(y_test, clf.decision_function(scaler.transform(X_test)))
    assert np.trapezoid(tpr, fpr) > 0.97
    print(clf.intercept_, clf.coef_.shape, clf.classes_, clf.n_iter_[0], clf.n_features_in_)
    return accuracy_score(y_test, y_pred)


def iris_grid(linear):
    """A grid over C, solver and penalty."""
    X, y = load_iris(return_X_y=True)
    grid = [
        {"C": np.logspace(-2, 2, 5), "solver": ["lbfgs", "newton-cg"], "penalty": ["l2"]},
        {"C": [1.0], "solver": ["newton-cholesky"], "penalty": [None]},
    ]
    search = GridSearchCV(linear.LogisticRegression(max_iter=500), grid, cv=5, scoring="accuracy", n_jobs=1)
    search.fit(X, y)
    print(search.best_params_, pd.DataFrame(search.cv_results_)[["params", "mean_test_score"]])
    return search.best_score_


def spam(linear):
    """Words of messages, a pipeline, a grid over its steps."""
    rng = np.random.default_rng(3)
    good = ["meet", "lunch", "report", "project", "call", "home"]
    bad = ["win", "cash", "free", "prize", "claim", "offer"]
    texts, labels = [], []
    for k in range(300):
        words = rng.choice(good + bad, 8, p=np.repeat([0.13, 0.0366666667] if k % 2 else [0.0366666667, 0.13], 6))
        texts.append(" ".join(words))
        labels.append("ham" if k % 2 else "spam")
    pipe = Pipeline([("vect", CountVectorizer()), ("tfidf", TfidfTransformer()), ("clf", linear.LinearSVC())])
    grid = {"vect__ngram_range": [(1, 1), (1, 2)], "tfidf__use_idf": (True, False), "clf__C": (0.1, 1, 10)}
    search = GridSearchCV(pipe, grid, cv=3).fit(texts, labels)
    assert set(search.predict(["free cash prize", "meet for lunch"])) == {"ham", "spam"}
    return search.best_score_


def digits_cv(linear):
    """The search over C that is built in."""
    X, y = load_digits(n_class=2, return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    clf = linear.LogisticRegressionCV(Cs=5, cv=5, scoring="roc_auc", solver="lbfgs", random_state=0, max_iter=1000)
    clf.fit(X_train, y_train)
    print(np.ravel(clf.C_)[0], clf.Cs_, clf.scores_[1].mean(axis=0))
    return clf.score(X_test, y_test)


def probabilities(linear):
    """Probabilities, thresholds, log loss, calibration of an SVM."""
    X, y = make_classification(2000, 20, n_informative=5, flip_y=0.1, random_state=5)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=5)
    clf = linear.LogisticRegression(class_weight="balanced", C=0.1).fit(X_train, y_train)
    proba = clf.predict_proba(X_test)[:, 1]
    y_pred = (proba > 0.3).astype(int)
    assert y_pred.sum() > clf.predict(X_test).sum()
    assert np.allclose(np.exp(clf.predict_log_proba(X_test)), clf.predict_proba(X_test))
    svm = CalibratedClassifierCV(linear.LinearSVC(dual=False), cv=3).fit(X_train, y_train)
    assert svm.predict_proba(X_test).shape == (500, 2)
    return -log_loss(y_test, proba)


def select(linear):
    """Features by the size of their weights."""
    X, y = make_classification(400, 30, n_informative=4, n_redundant=0, shuffle=False, random_state=2)
    kept = SelectFromModel(linear.LogisticRegression(C=0.1, solver="liblinear"), max_features=6).fit(X, y)
    fewer = RFE(linear.LinearSVC(C=0.1, random_state=0), n_features_to_select=4).fit(X, y)
    assert fewer.ranking_[:4].min() == 1
    found = linear.LogisticRegression().fit(kept.transform(X), y)
    worth = permutation_importance(found, kept.transform(X), y, n_repeats=2, random_state=0)
    assert worth.importances_mean.max() > 0
    return cross_val_score(make_pipeline(StandardScaler(), linear.LogisticRegression()), X[:, fewer.support_], y).mean()


def ensembles(linear):
    """Votes, stacks, one against the rest."""
    X, y = load_wine(return_X_y=True)
    vote = VotingClassifier(
        [
            ("lr", make_pipeline(StandardScaler(), linear.LogisticRegression())),
            ("tree", DecisionTreeClassifier(random_state=0)),
        ],
        voting="soft",
    )
    stack = StackingClassifier(
        [("svc", make_pipeline(StandardScaler(), linear.LinearSVC(random_state=42)))],
        final_estimator=linear.LogisticRegression(),
    )
    assert cross_val_score(stack, X, y, cv=3).mean() > 0.9
    rest = OneVsRestClassifier(linear.LogisticRegression(solver="liblinear")).fit(X, y)
    assert rest.score(X, y) > 0.9
    return cross_val_score(vote, X, y, cv=3).mean()


def curves(linear):
    """Curves of learning and of validation, scores of several kinds, random search."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    sizes, train, test = learning_curve(
        linear.LogisticRegression(max_iter=1000), X, y, cv=3, shuffle=True, random_state=0
    )
    assert train.shape == test.shape == (len(sizes), 3)
    _, test = validation_curve(linear.LinearSVC(), X, y, param_name="C", param_range=[0.01, 0.1, 1], cv=3)
    assert test.shape == (3, 3)
    scores = cross_validate(linear.LogisticRegression(), X, y, cv=3, scoring=["roc_auc", "f1"], return_estimator=True)
    assert all(hasattr(model, "coef_") for model in scores["estimator"])
    some = {"C": np.logspace(-3, 3, 20), "class_weight": [None, "balanced"]}
    search = RandomizedSearchCV(linear.LogisticRegression(solver="saga", max_iter=5000), some, n_iter=4, random_state=0)
    assert search.fit(X, y).best_score_ > 0.95
    return accuracy_score(y, cross_val_predict(linear.LogisticRegression(), X, y, cv=3))


def topics(linear):
    """Sparse text of several classes: words of the largest weights, partial sparsity."""
    rng = np.random.default_rng(1)
    words = {name: [f"{name}{k}" for k in range(20)] for name in ("space", "cars", "food")}
    common = [f"word{k}" for k in range(50)]
    y = rng.choice(list(words), 300)
    texts = [" ".join([*rng.choice(words[name], 3), *rng.choice(common, 20)]) for name in y]
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
    X = vectorizer.fit_transform(texts)
    clf = linear.LogisticRegression(C=10, solver="saga", max_iter=1000).fit(X[:200], y[:200])
    names = np.asarray(vectorizer.get_feature_names_out())
    for k, label in enumerate(clf.classes_):
        top = names[np.argsort(clf.coef_[k])[-5:]]
        assert all(word.startswith(label) for word in top)
    before = clf.predict(X[200:])
    assert (clf.sparsify().predict(X[200:]) == before).all()
    return clf.densify().score(X[200:], y[200:])


NOTEBOOKS = [titanic, breast_cancer, iris_grid, spam, digits_cv, probabilities, select, ensembles, curves, topics]


# Without a penalty: setosa is separable from the others, which is said.
@pytest.mark.filterwarnings("ignore:LogisticRegression without penalty:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.__name__)
def test_notebooks_run_unchanged(notebook, capsys):
    ours = notebook(Ours)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = notebook(Theirs)
    assert ours == pytest.approx(theirs, abs=0.025)
