"""Parameters are declared once: signatures, help and checks agree with the tables."""

import copy
import inspect
import pickle

import hinge
import numpy as np
import pytest
from hinge import _declared
from problems import sparse_problem
from sklearn.base import clone

ESTIMATORS = [
    hinge.LinearSVC,
    hinge.LinearSVCCV,
    hinge.LogisticRegression,
    hinge.LogisticRegressionCV,
    hinge.PegasosClassifier,
    hinge.SubgradientSVC,
    hinge.Poly2Map,
]

DATA = {"X", "y", "sample_weight", "groups"}

EVERY_BLOCK_OPTION = {
    "cache": "projected",
    "cache_share": 0.25,
    "rounds": 3,
    "round_tol": 1e-3,
    "keep_compressed": False,
    "while_reading": "rest",
    "duals": "memory",
    "in_memory": False,
    "checkpoint_seconds": 5.0,
}

declaring = pytest.mark.parametrize("what", [*ESTIMATORS, hinge.select_C, hinge.BlockOptions], ids=lambda w: w.__name__)


@declaring
def test_defaults_of_signatures_are_those_of_the_tables(what):
    signature = {p.name: p.default for p in inspect.signature(what).parameters.values() if p.name not in DATA}
    assert signature == {p.name: p.default for p in what._parameters.values()}


@declaring
def test_entries_of_docstrings_are_those_of_the_tables(what):
    text = inspect.getdoc(what)
    assert "{parameters}" not in text
    for parameter in what._parameters.values():
        assert parameter.text.endswith("."), parameter.name
        assert text.count(parameter.entry()) == 1, parameter.name


@declaring
def test_defaults_pass_their_checks(what):
    given = _declared.checked(what, {})
    assert set(vars(given)) == set(what._parameters)


@pytest.mark.parametrize("make", ESTIMATORS, ids=lambda make: make.__name__)
def test_constructors_keep_what_they_are_given(make):
    given = {name: object() for name in make._parameters}
    model = make(**given)
    assert vars(model) == given
    assert all(model.get_params()[name] is value for name, value in given.items())


def test_a_pickle_from_before_a_parameter_has_its_default():
    X, y = sparse_problem(0)
    model = hinge.LinearSVC()
    del model.sparse_tol, model.presolve
    np.testing.assert_array_equal(model.fit(X, y).coef_, hinge.LinearSVC().fit(X, y).coef_)


@pytest.mark.parametrize("name", ["memory_budget", "checkpoint", "block_options", "coef0", "n_jobs"])
def test_checks_do_not_wait_for_the_value_to_be_used(name):
    X, y = sparse_problem(0)
    with pytest.raises(ValueError, match=name):
        hinge.LinearSVC(**{name: object()}).fit(X, y)


# Options of blocks.


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return hinge.BlockStore.build(sparse_problem(0), tmp_path_factory.mktemp("parameters") / "x")


def test_block_options_and_a_dict_of_them_are_the_same(store):
    dictionary, options = EVERY_BLOCK_OPTION, hinge.BlockOptions(**EVERY_BLOCK_OPTION)
    models = [hinge.LinearSVC(memory_budget="30MB", block_options=given) for given in (dictionary, options)]
    first, second = (model.fit(store) for model in models)
    assert first.certificate_.solver == second.certificate_.solver == ("block_cd",)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    search = hinge.select_C(store, cv=2, C_max=2**-6, block_options=hinge.BlockOptions(in_memory=True))
    assert len(search.Cs) > 0


def test_estimators_with_block_options_are_cloned_and_pickled():
    model = hinge.LogisticRegression(block_options=hinge.BlockOptions(rounds=3))
    for other in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.block_options == model.block_options == hinge.BlockOptions(rounds=3)
    assert "block_options=BlockOptions(" in repr(model)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cache", "best"),
        ("cache_share", 0.95),
        ("cache_share", "half"),
        ("rounds", 0),
        ("round_tol", -1.0),
        ("keep_compressed", 1),
        ("while_reading", "sleep"),
        ("duals", "disk"),
        ("in_memory", "no"),
        ("checkpoint_seconds", np.nan),
    ],
)
def test_wrong_block_options_are_refused(name, value, store):
    with pytest.raises(ValueError, match=rf"block_options\['{name}'\] must be"):
        hinge.BlockOptions(**{name: value})
    with pytest.raises(ValueError, match=rf"block_options\['{name}'\] must be"):
        hinge.LinearSVC(block_options={name: value}).fit(store)


def test_block_options_of_another_kind_are_refused(store):
    with pytest.raises(ValueError, match="block_options must be a dict, BlockOptions or None"):
        hinge.LinearSVC(block_options=3).fit(store)
    with pytest.raises(TypeError, match="caches"):
        hinge.BlockOptions(caches=1)
