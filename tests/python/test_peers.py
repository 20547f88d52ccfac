"""scikit-learn's own tests, run on our classes: those in tests/peers/passing.txt must pass."""

import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[1] / "peers"
sys.path.insert(0, str(PEERS))

import suite  # noqa: E402

LEAST = {"test_logistic.py": 170, "test_svm.py": 16}

VERSION, NAMES = suite.must_pass()

same_version = pytest.mark.skipif(
    suite.version() != VERSION, reason=f"the list is for scikit-learn {VERSION}, installed is {suite.version()}"
)


@same_version
@pytest.mark.parametrize("peer", suite.PEERS, ids=lambda peer: peer.name)
def test_what_passed_passes(peer):
    names = [name for name in NAMES if name.startswith(f"{peer.name}::")]
    found = suite.run(peer, names=names)
    assert set(found) == set(names)
    failed = {name: result.message for name, result in found.items() if result.outcome != "passed"}
    assert not failed


@pytest.mark.parametrize("name", LEAST)
def test_the_list_is_long_enough(name):
    assert sum(line.startswith(f"{name}::") for line in NAMES) >= LEAST[name]
    assert len(NAMES) == len(set(NAMES))


def test_what_fails_has_a_reason():
    failing = suite.failing()
    assert suite.UNSORTED not in failing
    names = [name for group in failing.values() for name in group]
    assert len(names) == len(set(names))
    assert not set(names) & set(NAMES)
