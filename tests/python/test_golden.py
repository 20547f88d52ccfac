"""Old files are read, old bits are repeated: the golden cases of ``tests/golden`` against their record.

What to do about a failure is told in ``tests/golden/make.py``: to write the record anew is rarely right.
"""

import lzma

import hinge
import make
import numpy as np
import pytest
import scipy
import sklearn
from cases import CASES
from files import FILES, FOLDER, STORES, Shelf, search, stored_fit
from inputs import SETS, digest
from outcome import differences, library_digest


@pytest.fixture(scope="module")
def numbers():
    return make.numbers()


@pytest.fixture(scope="module")
def facts():
    return make.facts()


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path)


@pytest.mark.parametrize("name", SETS)
def test_input_is_that_of_the_record(facts, name):
    assert digest(name) == facts["inputs"][name]


def test_everything_has_its_record(numbers, facts):
    own = {name for name, case in CASES.items() if case.repeats is None}
    assert numbers.keys() == own
    assert {case.repeats for case in CASES.values()} - {None} <= own
    assert {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.xz")} == {f"{name}.xz" for name in FILES}
    assert (facts["inputs"].keys(), facts["stores"].keys()) == (SETS.keys(), STORES.keys())
    assert facts["library"].keys() == {name for name in own if CASES[name].uses_library}


@pytest.mark.parametrize("name", STORES)
def test_stores_hold_what_was_put_in(facts, shelf, name):
    (X, y, *weight), options = STORES[name]()
    store = shelf.store(name)
    store.verify()
    said, recorded = make.store_facts(store), facts["stores"][name]
    assert {key: said[key] for key in recorded} == recorded
    found, labels, *found_weight = store.to_csr()
    assert (found.dtype, found.shape) == (X.dtype if name != "binary" else np.float32, X.shape)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(X, part))
    np.testing.assert_array_equal(labels, y)
    assert labels.dtype.kind == y.dtype.kind
    np.testing.assert_array_equal(found_weight, weight)
    names = options.get("feature_names")
    assert (names is None) == (store.feature_names is None)
    assert names is None or list(store.feature_names) == names


def same_versions(facts):
    made_with = facts["made_with"]
    return (made_with["scipy"], made_with["sklearn"]) == (scipy.__version__, sklearn.__version__)


@pytest.mark.parametrize(("name", "n_threads"), [(name, n) for name, case in CASES.items() for n in case.n_threads])
def test_bits_are_those_of_the_record(numbers, facts, shelf, name, n_threads):
    case, key = CASES[name], CASES[name].repeats or name
    if case.is_fitted_elsewhere and not same_versions(facts):
        pytest.skip("SciPy or scikit-learn is another one than that of the record")
    if case.version not in (None, hinge.__version__):
        there = case.version.replace(".", r"\.")
        with pytest.raises(ValueError, match=rf"version is {there} there and \S+ here; use another path or delete"):
            case.run(n_threads, shelf)
        return
    found = case.run(n_threads, shelf)
    has_same_library = facts["library"].get(key, library_digest()) == library_digest()
    different = differences(found, numbers[key], has_same_library=has_same_library)
    note = f"\n(foreseen: {case.may_change})" if case.may_change else ""
    assert not different, "\n".join(different) + note


def test_journals_and_checkpoints_of_an_older_version_are_refused(shelf, tmp_path):
    for kind in ("journal", "checkpoint"):
        packed = FOLDER.parent / "refused" / f"{kind}-0.1.0.xz"
        (tmp_path / kind).write_bytes(lzma.decompress(packed.read_bytes()))
    refused = r"version is 0\.1\.0 there and \S+ here; use another path or delete"
    with pytest.raises(ValueError, match=refused):
        search("primal", shelf, resume=tmp_path / "journal")
    with pytest.raises(ValueError, match=refused):
        stored_fit("hinge", shelf, 1, checkpoint=tmp_path / "checkpoint")


def test_differences_are_found(numbers, shelf):
    """One bit in one number is enough; near numbers may differ in their last digits."""
    name = "fit/hinge/dual_cd/free"
    found, record = CASES[name].run(1, shelf), numbers[name]
    coef = found.bits["coef_"]
    changed, unseen = coef.copy(), coef.copy()
    changed[0, 6] = np.nextafter(coef[0, 6], 9.0)
    unseen[0, 7] = np.nextafter(coef[0, 7], 9.0)

    def lines(bits=None, near=None, *, has_same_library=True):
        other = found._replace(bits=found.bits | (bits or {}), near=found.near | (near or {}))
        return differences(other, record, has_same_library=has_same_library)

    assert lines() == []
    assert lines({"coef_": changed})[0].startswith("coef_: 1 of 50 recorded numbers differ")
    assert lines({"coef_": unseen}) == ["coef_: some number differs, not of those that are recorded"]
    assert lines({"coef_": -0.0 * coef})[0].startswith("coef_: ")
    assert lines({"coef_": changed}, has_same_library=False) == []
    assert len(lines({"coef_": 1.001 * coef, "n_iter_": 0}, has_same_library=False)) == 2
    assert len(lines({"coef_": coef[:, 9:]})) == 1
    assert lines(near={"primal": found.near["primal"] * (1 + 1e-10)}) == []
    assert len(lines(near={"primal": found.near["primal"] * (1 + 1e-6)})) == 1
