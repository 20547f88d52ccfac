"""Searches that do not come to their end: time limits, Ctrl-C, scorers that fail."""

import os
import signal
import subprocess
import sys
import time

import hinge
import numpy as np
import pytest
import scipy.sparse as sp
from problems import noisy_problem, sparse_problem
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from test_threads import PREPARE, interrupt


@pytest.fixture
def problem():
    return noisy_problem()


def slow(seconds):
    """A scorer that takes its time."""

    def score(model, X, y):
        time.sleep(seconds)
        return accuracy_score(y, model.predict(X))

    return score


def assert_same_rows(partial, whole):
    n = len(partial.Cs)
    np.testing.assert_array_equal(partial.Cs, whole.Cs[:n])
    np.testing.assert_array_equal(partial.scores, whole.scores[:n])
    np.testing.assert_array_equal(partial.objective, whole.objective[:n])
    np.testing.assert_array_equal(partial.n_iter, whole.n_iter[:n])


def test_a_time_limit_returns_what_is_finished(problem):
    # Six seconds of scoring in all; the trial of the scorer is not part of the search.
    with pytest.warns(hinge.PartialSearchWarning, match=r"stopped by time_limit after \d+ values of C") as caught:
        search = hinge.select_C(*problem, cv=2, scoring=slow(0.1), time_limit=0.5, keep_decisions=True)
    assert [warning.filename for warning in caught] == [__file__]
    assert (search.stopped_by, search.is_partial) == ("time_limit", True)
    whole = hinge.select_C(*problem, cv=2, keep_decisions=True)
    assert 1 <= len(search.Cs) <= 4 < len(whole.Cs)
    assert not whole.is_partial
    assert_same_rows(search, whole)
    assert search.best_C == search.Cs[search.mean.argmax()]
    assert np.isfinite(search.decisions).all()


def test_a_time_limit_that_is_not_reached_changes_nothing(problem):
    a, b = (hinge.select_C(*problem, cv=3, time_limit=limit) for limit in (None, 600))
    assert a.stopped_by == b.stopped_by
    np.testing.assert_array_equal(a.scores, b.scores)


def test_nothing_finished_in_time():
    # The first fit alone takes seconds.
    X, y = sparse_problem(28, n_rows=20_000, n_columns=300, noise=5.0)
    options = {"C_min": 1e4, "C_max": 1e5, "time_limit": 1e-3}
    with pytest.raises(TimeoutError, match=r"time_limit=0.001 s passed before the first value of C"):
        hinge.select_C(X, y, tol=1e-12, **options)
    model = hinge.LinearSVCCV(select_tol=1e-12, **options)
    with pytest.raises(TimeoutError, match="time_limit"):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(("share", "presolve"), [(0.1, True), (0.9, "auto")])
def test_a_limit_that_is_over_before_the_search_begins(share, presolve):
    # The rows are packed or filled up first.
    random = np.random.default_rng(0)
    X, y = sp.random(20_000, 100, share, "csr", rng=random), random.integers(0, 2, 20_000)
    with pytest.raises(TimeoutError, match="before the first value of C"):
        hinge.select_C(X, y, presolve=presolve, time_limit=1e-6)


def test_an_estimator_refits_at_the_best_so_far(problem):
    model = hinge.LogisticRegressionCV(cv=2, scoring=slow(0.1), time_limit=0.5)
    with pytest.warns(hinge.PartialSearchWarning, match="time_limit") as caught:
        model.fit(*problem)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.search_.is_partial
    assert model.search_.best_C == model.C_
    plain = hinge.LogisticRegression(C=model.C_).fit(*problem)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


@pytest.mark.parametrize("limit", [0, -1.0, np.nan, np.inf, "1", True])
def test_bad_time_limits(problem, limit):
    with pytest.raises(ValueError, match=r"^time_limit must be"):
        hinge.select_C(*problem, time_limit=limit)


# Ctrl-C. In this process: a scorer sends the signal, which the main thread takes up while the scorer goes on.


def interrupting(call):
    """A scorer that sends SIGINT when called for the given time (from 1)."""
    calls = []

    def score(model, X, y):
        calls.append(1)
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
            time.sleep(1.0)  # the main thread looks every 50 ms, on a busy machine later
        return accuracy_score(y, model.predict(X))

    return score


posix = pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")

# Two trials before the search, then two calls per value of C.
IN_THE_THIRD_C = 2 + 2 * 2 + 1


@posix
def test_ctrl_c_returns_what_is_finished(problem):
    with pytest.warns(hinge.PartialSearchWarning, match="stopped by interrupt") as caught:
        search = hinge.select_C(*problem, cv=2, scoring=interrupting(IN_THE_THIRD_C))
    assert [warning.filename for warning in caught] == [__file__]
    assert (search.stopped_by, search.is_partial) == ("interrupt", True)
    assert 2 <= len(search.Cs) <= 3
    assert_same_rows(search, hinge.select_C(*problem, cv=2))


@posix
def test_ctrl_c_leaves_an_estimator_as_it_was(problem):
    X, y = problem
    model = hinge.LinearSVCCV(cv=2, C_max=1.0).fit(X, y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    model.set_params(scoring=interrupting(IN_THE_THIRD_C), C_max=1024.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :20], y)
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    fresh = clone(model).set_params(scoring=interrupting(IN_THE_THIRD_C))
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert vars(fresh).keys() == fresh.get_params().keys()


FIRST_C_TAKES_FOREVER = """
print("started", flush=True)
try:
    hinge.select_C(X, y, solver="dual_cd", C_min=1e6, C_max=1e6, tol=1e-15, max_iter=10**6)
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@posix
def test_ctrl_c_before_the_first_C(tmp_path):
    lines, seconds = interrupt(PREPARE + FIRST_C_TAKES_FOREVER, 0.5)
    assert lines == ["interrupted"]
    assert seconds < 1.5


MANY_CS = """
import logging, warnings

class Started(logging.Handler):
    def emit(self, record):
        print("started", flush=True)
        logging.getLogger("hinge").removeHandler(self)

logging.getLogger("hinge").setLevel(logging.INFO)
logging.getLogger("hinge").addHandler(Started())
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    search = hinge.select_C(X, y, ratio=1.001, C_max=1e9)
print(search.stopped_by, len(search.Cs) > 0, len(caught), search.is_partial, flush=True)
"""


@posix
def test_ctrl_c_in_a_process_of_its_own():
    lines, seconds = interrupt(PREPARE + MANY_CS, 0.5)
    assert lines == ["interrupt True 1 True"]
    assert seconds < 1.5


# A failing scorer.


def test_an_error_in_the_middle_is_raised_as_it_is(problem):
    calls = []

    def score(model, X, y):
        calls.append(1)
        if len(calls) > 8:
            raise ZeroDivisionError("mine")
        return 1.0

    with pytest.raises(ZeroDivisionError, match="mine"):
        hinge.select_C(*problem, cv=3, scoring=score)
    assert len(calls) == 9


# Journals.


@pytest.mark.parametrize("resume", ["", 3, b"x", True])
def test_bad_paths_of_a_journal(problem, resume):
    with pytest.raises(ValueError, match=r"^resume must be None or the path of a file"):
        hinge.select_C(*problem, resume=resume)


@pytest.mark.parametrize("as_path", [str, lambda path: path], ids=["str", "Path"])
def test_a_journal_continues_a_search(problem, tmp_path, as_path):
    path = as_path(tmp_path / "search.journal")
    options = {"cv": 2, "refine": 1, "keep_decisions": True}
    whole = hinge.select_C(*problem, **options)
    with pytest.warns(hinge.PartialSearchWarning):
        part = hinge.select_C(*problem, resume=path, scoring=slow(0.1), time_limit=0.5, **options)
    assert not part.replayed.any()
    rest = hinge.select_C(*problem, resume=path, **options)
    assert rest.replayed.sum() == len(part.Cs)
    assert rest.stopped_by == whole.stopped_by
    for name in ("Cs", "scores", "objective", "n_iter", "unchanged", "unchanged_until", "decisions"):
        np.testing.assert_array_equal(getattr(rest, name), getattr(whole, name), err_msg=name)
    again = hinge.select_C(*problem, resume=path, **options)
    assert again.replayed.all()
    assert "replayed" in repr(again)
    np.testing.assert_array_equal(again.decisions, whole.decisions)


KILLED = """
import os, signal, sys
import hinge
from problems import noisy_problem

calls = []

def score(model, X, y):
    calls.append(1)
    if len(calls) == {call}:
        os.kill(os.getpid(), signal.SIGKILL)
    return float((model.predict(X) == y).mean())

hinge.select_C(*noisy_problem(), cv=2, refine=2, scoring=score, resume={path!r})
"""


@posix
def test_a_search_that_is_killed_again_and_again(problem, tmp_path):
    path = tmp_path / "search.journal"
    # Two trials, then two calls per C; the record of the C that is being scored is already on disk, or not.
    for call in (4, 7, 20, 41):
        program = KILLED.format(call=call, path=str(path))
        done = subprocess.run([sys.executable, "-c", program], cwd=os.path.dirname(__file__))
        assert done.returncode == -signal.SIGKILL
    rest = hinge.select_C(*problem, cv=2, refine=2, resume=path)
    whole = hinge.select_C(*problem, cv=2, refine=2)
    assert 15 < rest.replayed.sum() < len(whole.Cs)
    for name in ("Cs", "scores", "objective", "n_iter", "passes", "unchanged", "unchanged_until"):
        np.testing.assert_array_equal(getattr(rest, name), getattr(whole, name), err_msg=name)


def test_a_journal_serves_any_scorer(problem, tmp_path):
    path = tmp_path / "search.journal"
    hinge.select_C(*problem, cv=3, resume=path)
    replayed = hinge.select_C(*problem, cv=3, resume=path, scoring="roc_auc")
    assert replayed.replayed.all()
    np.testing.assert_array_equal(replayed.scores, hinge.select_C(*problem, cv=3, scoring="roc_auc").scores)


CHANGES = {
    "rows": lambda X, y: ((X[::-1], y[::-1]), {}),
    "one value": lambda X, y: ((X + (X != 0) * 1e-12, y), {}),
    "one label": lambda X, y: ((X, np.concatenate([[1 - y[0]], y[1:]])), {}),
    "folds": lambda X, y: ((X, y), {"random_state": 1}),
    "number of folds": lambda X, y: ((X, y), {"cv": 4}),
    "loss": lambda X, y: ((X, y), {"loss": "squared_hinge"}),
    "tol": lambda X, y: ((X, y), {"tol": 1e-3}),
    "weights": lambda X, y: ((X, y), {"sample_weight": np.arange(1.0, 241)}),
    "class weight": lambda X, y: ((X, y), {"class_weight": {0: 2.0}}),
    "intercept": lambda X, y: ((X, y), {"fit_intercept": False}),
    "scale of the intercept": lambda X, y: ((X, y), {"intercept_scaling": 2.0}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_journal_of_another_search_is_refused(problem, tmp_path, change):
    path = tmp_path / "search.journal"
    hinge.select_C(*problem, cv=3, resume=path)
    before = path.read_bytes()
    data, options = CHANGES[change](*problem)
    with pytest.raises(ValueError, match=r"search\.journal"):
        hinge.select_C(*data, **({"cv": 3, "resume": path} | options))
    assert path.read_bytes() == before


def test_a_file_that_is_no_journal_is_refused(problem, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my only copy")
    with pytest.raises(ValueError, match=r"notes\.txt"):
        hinge.select_C(*problem, resume=path)
    assert path.read_text() == "my only copy"


def test_a_journal_in_a_folder_that_is_not_there(problem, tmp_path):
    with pytest.raises(OSError, match="missing") as caught:
        hinge.select_C(*problem, resume=tmp_path / "missing" / "search.journal")
    assert isinstance(caught.value, FileNotFoundError)


def test_a_journal_of_an_estimator(problem, tmp_path):
    path = tmp_path / "search.journal"
    first = hinge.LinearSVCCV(cv=3, resume=path).fit(*problem)
    second = hinge.LinearSVCCV(cv=3, resume=path).fit(*problem)
    assert second.search_.replayed.all()
    np.testing.assert_array_equal(first.coef_, second.coef_)
