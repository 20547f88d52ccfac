"""scikit-learn's own tests of its linear classifiers, run on ours.

The installed scikit-learn carries its tests. They are copied to a temporary folder, the imports of the copies are
changed so that ``LogisticRegression``, ``LogisticRegressionCV`` and ``LinearSVC`` are those of hinge, and pytest runs
them there, with scikit-learn's own ``conftest``. Nothing of them is kept.

    python tests/peers/suite.py                       # what passes, what does not, and why
    python tests/peers/suite.py -k warm_start         # any further arguments go to pytest, its output is shown
    python tests/peers/suite.py --theirs              # scikit-learn's own classes: how many tests there are
    python tests/peers/suite.py --write               # write tests/peers/passing.txt and failing.txt anew

``passing.txt`` has the tests that must pass, ``failing.txt`` the others, by reason.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import sklearn

HERE = Path(__file__).parent
PASSING = HERE / "passing.txt"
FAILING = HERE / "failing.txt"

UNSORTED = "Without a reason yet"

SECONDS_PER_TEST = 60
"""The slowest takes a few seconds; a test that hangs is a failure."""

ANY_LINEAR_SVC = (
    "linearsvc or linearsvm or linear_svm or lsvc or crammer_singer or dense_liblinear or set_coef or test_weight "
    "or auto_weight or bad_input"
)
"""Names of the tests that fit a LinearSVC among those of all support vector machines: 29 in scikit-learn 1.9."""


@dataclass(frozen=True)
class Peer:
    """A file of tests.

    Attributes
    ----------
    path : str
        In the package ``sklearn``.
    name : str
        Of the copy; the first part of the test's name in the lists.
    select : str
        Expression of ``pytest -k``; empty for all.
    ours : tuple of (str, str)
        Texts to replace, each there at least once.
    """

    path: str
    name: str
    select: str
    ours: tuple[tuple[str, str], ...]


PEERS = (
    Peer(
        "linear_model/tests/test_logistic.py",
        "test_logistic.py",
        "",
        (
            (
                "from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier\n",
                "from sklearn.linear_model import SGDClassifier\nfrom hinge import LogisticRegression, "
                "LogisticRegressionCV\n",
            ),
        ),
    ),
    Peer(
        "svm/tests/test_svm.py",
        "test_svm.py",
        ANY_LINEAR_SVC,
        (
            ("svm.LinearSVC(", "LinearSVC("),
            ("classifier=svm.LinearSVC", "classifier=LinearSVC"),
            (
                "from sklearn.svm import (\n    SVR,\n    LinearSVC,\n",
                "from hinge import LinearSVC\nfrom sklearn.svm import (\n    SVR,\n",
            ),
        ),
    ),
)


@dataclass(frozen=True)
class Result:
    """What became of a test: "passed", "failed" or "skipped", the first line of the failure, and its seconds."""

    outcome: str
    message: str
    seconds: float


def copy(peer: Peer, folder: Path, *, theirs: bool = False) -> Path:
    """Copy a file of tests, with our classes in place of theirs."""
    text = (Path(sklearn.__file__).parent / peer.path).read_text("utf-8")
    for old, new in () if theirs else peer.ours:
        if old not in text:
            raise ValueError(f"{peer.path} of scikit-learn {sklearn.__version__} has no {old!r} to replace")
        text = text.replace(old, new)
    target = folder / peer.name
    target.write_text(text, "utf-8")
    return target


def run(
    peer: Peer,
    *,
    theirs: bool = False,
    names: Collection[str] | None = None,
    arguments: tuple[str, ...] = (),
) -> dict[str, Result]:
    """The results of a file's tests, of those in ``names`` or of all; with arguments pytest's output is shown."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
        copy(peer, folder, theirs=theirs)
        select = ["-k", peer.select] if peer.select and "-k" not in arguments else []
        if names is not None:
            (folder / "conftest.py").write_text(_ONLY_NAMED, "utf-8")
            (folder / "names.txt").write_text("\n".join(names), "utf-8")
        plugins = ["-p", "sklearn.conftest", "-p", "no:cacheprovider", "--timeout", str(SECONDS_PER_TEST)]
        command = [sys.executable, "-m", "pytest", "-q", *plugins, "--junitxml=results.xml", *select, peer.name]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}
        shown = None if arguments else subprocess.DEVNULL
        subprocess.run([*command, *arguments], cwd=folder, env=environment, check=False, stdout=shown)
        return results(folder / "results.xml")


_ONLY_NAMED = """
from pathlib import Path

def pytest_collection_modifyitems(items):
    names = set((Path(__file__).parent / "names.txt").read_text("utf-8").split("\\n"))
    items[:] = [item for item in items if item.nodeid in names]
"""


def results(path: Path) -> dict[str, Result]:
    """The results in a file of pytest's ``--junitxml``."""
    found = {}
    for case in ET.parse(path).iter("testcase"):
        name = f"{case.get('classname')}.py::{case.get('name')}"
        outcome, message = "passed", ""
        for kind in ("failure", "error", "skipped"):
            element = case.find(kind)
            if element is not None:
                outcome = "skipped" if kind == "skipped" else "failed"
                message = " ".join((element.get("message") or "").split())
        found[name] = Result(outcome, message, float(case.get("time") or 0))
    return found


def must_pass() -> tuple[str, list[str]]:
    """The version of scikit-learn that ``passing.txt`` is for, major and minor, and its tests."""
    head, *names = PASSING.read_text("utf-8").split("\n")
    return head.split()[-1], [name for name in names if name]


def failing() -> dict[str, list[str]]:
    """The tests that do not pass, by reason."""
    found: dict[str, list[str]] = {}
    for line in FAILING.read_text("utf-8").split("\n"):
        if line.startswith("# "):
            found[line[2:]] = []
        elif line:
            found[list(found)[-1]].append(line)
    return found


def version() -> str:
    """Major and minor number of the installed scikit-learn."""
    return ".".join(sklearn.__version__.split(".")[:2])


def write(passed: list[str], failed: list[str]) -> None:
    """Write both lists; a test that failed before keeps its reason, others go below :data:`UNSORTED`."""
    PASSING.write_text("\n".join([f"# of scikit-learn {version()}", *sorted(passed)]) + "\n", "utf-8")
    known = failing() if FAILING.exists() else {}
    kept = {reason: [name for name in names if name in failed] for reason, names in known.items()}
    new = sorted(set(failed) - {name for names in kept.values() for name in names})
    kept[UNSORTED] = [*kept.pop(UNSORTED, []), *new]
    parts = ["\n".join([f"# {reason}", *names]) for reason, names in kept.items() if names]
    FAILING.write_text("\n\n".join(parts) + "\n", "utf-8")


def main() -> None:
    """Run, print, and write the lists if asked to."""
    parser = argparse.ArgumentParser(description="scikit-learn's own tests on our classes")
    parser.add_argument("--theirs", action="store_true")
    parser.add_argument("--write", action="store_true")
    given, rest = parser.parse_known_args()
    passed: list[str] = []
    failed: list[str] = []
    for peer in PEERS:
        found = run(peer, theirs=given.theirs, arguments=tuple(rest))
        skipped = sum(result.outcome == "skipped" for result in found.values())
        good = [name for name, result in found.items() if result.outcome == "passed"]
        bad = [name for name, result in found.items() if result.outcome == "failed"]
        seconds = sum(result.seconds for result in found.values())
        print(f"{peer.path}: {len(good)} of {len(good) + len(bad)} pass, {skipped} are skipped, {seconds:.0f} s")
        for name in bad:
            print(f"  {name}: {found[name].message[:200]}")
        passed += good
        failed += bad
    if given.write:
        write(passed, failed)


if __name__ == "__main__":
    main()
