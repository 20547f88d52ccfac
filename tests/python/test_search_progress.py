"""What is told of a search while it runs: log, lines, bars, scikit-learn's callbacks."""

import io
import logging
import subprocess
import sys

import hinge
import numpy as np
import pytest
from hinge import _search_progress
from problems import noisy_problem
from sklearn.model_selection import GridSearchCV


@pytest.fixture
def problem():
    return noisy_problem()


class Terminal(io.StringIO):
    """Standard error that says it is a terminal."""

    def isatty(self):
        return True


# The log.


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_a_record_per_C(problem, caplog, verbose):
    with caplog.at_level(logging.INFO, logger="hinge"):
        search = hinge.select_C(*problem, cv=3, refine=1, verbose=verbose)
    told = [record.getMessage() for record in caplog.records if record.name == "hinge"]
    assert len(told) == len(search.Cs)
    assert {record.levelno for record in caplog.records} == {logging.INFO}
    in_order = sorted(search.Cs.tolist())
    assert sorted(float(line.split("C = ")[1].split(",")[0]) for line in told) == pytest.approx(in_order, rel=1e-5)
    assert f"score {search.mean[0]:.4f}" in told[0]


def test_estimators_log_their_search(problem, caplog):
    with caplog.at_level(logging.INFO, logger="hinge"):
        model = hinge.LogisticRegressionCV(cv=3).fit(*problem)
    told = [record for record in caplog.records if record.getMessage().startswith("search: C = ")]
    assert len(told) == len(model.search_.Cs)


# The terminal.


@pytest.mark.parametrize("verbose", [0, False, 1, True, 2])
def test_lines_where_there_is_no_terminal(problem, verbose, capfd):
    search = hinge.select_C(*problem, cv=3, verbose=verbose)
    shown = capfd.readouterr()
    assert shown.out == ""
    lines = [line for line in shown.err.splitlines() if "iterations," in line or "unchanged," in line]
    assert len(lines) == (len(search.Cs) if verbose else 0)
    assert all(line.startswith("[hinge] C = ") for line in lines)


def slow_news(progress):
    """News as the native search gives them, half a second apart."""
    progress._last = 0.0
    progress.native("newton", 0.5, 7, 3, 12.0, 0.01)


def test_details_are_for_two(capfd, caplog):
    for verbose in (1, 2):
        with _search_progress.search_progress(verbose) as progress:
            slow_news(progress)
    lines = capfd.readouterr().err.splitlines()
    assert lines == ["[hinge] C = 0.5: newton 7, 3 fits left, 12 passes, 1.0e-02"]
    with _search_progress.search_progress(0) as progress:
        assert progress.native is None
        with caplog.at_level(logging.DEBUG, logger="hinge"):
            slow_news(progress)
    assert "3 fits left" in caplog.text


def test_late_news_do_not_hide_a_result(problem, capfd, monkeypatch):
    heard = []

    def step(progress, step, best, total):
        original(progress, step, best, total)
        progress._last = 0.0
        progress.native("newton", step.C, 4, 1, 12.0, 0.01)
        progress._last = 0.0
        progress.native("newton", 2 * step.C, 1, 3, 12.0, 0.01)
        heard.append(f"C = {step.C:.6g}")

    original = _search_progress.SearchProgress.step
    monkeypatch.setattr(_search_progress.SearchProgress, "step", step)
    hinge.select_C(*problem, cv=3, verbose=2, Cs=[0.25, 1.0])
    assert heard == ["C = 0.25", "C = 1"]
    lines = [line.removeprefix("[hinge] ") for line in capfd.readouterr().err.splitlines()]
    assert [line.partition(",")[0].partition(" (")[0] for line in lines] == ["C = 0.25", "C = 0.5", "C = 1", "C = 2"]
    assert ["score" if "score" in line else "news" for line in lines] == ["score", "news"] * 2


@pytest.mark.parametrize("rich", [True, False])
def test_a_bar_on_a_terminal(problem, rich, monkeypatch):
    if rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setattr(_search_progress, "RichBar", _search_progress.PlainBar)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    search = hinge.select_C(*problem, cv=3, verbose=1, Cs=[0.25, 0.5, 1.0])
    shown = terminal.getvalue()
    assert shown.removesuffix("\x1b[?25h").endswith("\n")
    assert "hinge" in shown
    assert f"C = 1, score {search.mean[-1]:.4f}" in shown
    if not rich:
        lengths = [state.count("#") for state in shown.strip().split("\r")]
        assert list(dict.fromkeys(lengths)) == [6, 13, 20]


def test_a_bar_ends_full(problem, monkeypatch):
    """The search may end before its last value."""
    monkeypatch.setattr(_search_progress, "RichBar", _search_progress.PlainBar)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    search = hinge.select_C(*problem, cv=3, verbose=1, C_max=1e12)
    assert search.stopped_by == "unchanged"
    lengths = [state.count("#") for state in terminal.getvalue().strip().split("\r")]
    assert lengths == sorted(lengths)
    assert lengths[-2] < lengths[-1] == 20


def test_a_bar_is_closed_by_an_error(problem, monkeypatch):
    monkeypatch.setattr(_search_progress, "RichBar", _search_progress.PlainBar)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    calls = []

    def score(model, X, y):
        calls.append(1)
        if len(calls) > 6:
            raise ZeroDivisionError
        return 1.0

    with pytest.raises(ZeroDivisionError):
        hinge.select_C(*problem, cv=3, verbose=1, scoring=score)
    assert terminal.getvalue().endswith("\n")


@pytest.mark.parametrize("verbose", [-1, 1.5, "1", None])
def test_bad_verbose(problem, verbose):
    with pytest.raises(ValueError, match=r"^verbose must be"):
        hinge.select_C(*problem, verbose=verbose)


# scikit-learn's callbacks.


class Recorder:
    """Writes down what it is told; may ask to stop at the n-th task."""

    def __init__(self, stop_at=None):
        self.told = []
        self.stop_at = stop_at

    def setup(self, estimator, context):
        self.told.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.told.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.told.append(("end", context.task_name))
        return len(self.told) == self.stop_at


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")


@pytest.mark.parametrize("kind", [hinge.LinearSVCCV, hinge.LogisticRegressionCV])
def test_a_task_per_C(problem, callbacks, kind):
    recorder = Recorder()
    model = kind(cv=3).set_callbacks(recorder).fit(*problem)
    tasks = [*(f"C = {C:g}" for C in model.search_.Cs), "refit"]
    middle = [(what, task) for task in tasks for what in ("begin", "end")]
    assert recorder.told == [("setup", "fit"), ("begin", "fit"), *middle, ("end", "fit"), ("teardown", "fit")]
    assert not hasattr(model, "_callback_fit_ctx")


def test_a_callback_may_end_the_search(problem, callbacks):
    # setup, begin, then two entries per C: the sixth ends the second C.
    model = hinge.LinearSVCCV(cv=3).set_callbacks(Recorder(stop_at=6))
    with pytest.warns(hinge.PartialSearchWarning, match="stopped by callback after 2 values"):
        model.fit(*problem)
    assert model.search_.stopped_by == "callback"
    assert len(model.search_.Cs) == 2
    assert model.search_.best_C == model.C_


def test_without_callbacks():
    """With a scikit-learn that has none."""
    code = """
import sys
import numpy as np, sklearn.model_selection  # uses callbacks itself, where it has them
sys.modules["sklearn.callback"] = None
import hinge
X, y = np.eye(12, 4), np.arange(12) % 2
for model in (hinge.LinearSVC(), hinge.LogisticRegressionCV(cv=3)):
    assert not hasattr(model.fit(X, y), "set_callbacks")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", [hinge.LinearSVC, hinge.LogisticRegression])
def test_a_plain_fit_is_a_task(problem, callbacks, kind):
    recorder = Recorder()
    kind().set_callbacks(recorder).fit(*problem)
    assert recorder.told == [(what, "fit") for what in ("setup", "begin", "end", "teardown")]
    recorder.told.clear()
    with pytest.raises(ValueError, match="C must be"):
        kind(C=-1.0).set_callbacks(recorder).fit(*problem)
    assert recorder.told == []


def test_scikit_learns_own_callbacks(problem, callbacks, capsys):
    pytest.importorskip("rich")
    X, y = problem
    monitor = callbacks.ScoringMonitor(scoring="accuracy")
    model = hinge.LogisticRegressionCV(cv=3).set_callbacks(monitor, callbacks.ProgressBar()).fit(X, y)
    (log,) = monitor.get_logs().data
    assert log["accuracy"] == model.score(X, y)
    assert "LogisticRegressionCV" in capsys.readouterr().out
    grid = GridSearchCV(hinge.LinearSVC(), {"C": [0.1, 1.0]}, cv=2).set_callbacks(callbacks.ProgressBar())
    grid.fit(X, y)
    assert "LinearSVC" in capsys.readouterr().out
    np.testing.assert_array_equal(grid.best_estimator_.coef_, hinge.LinearSVC(**grid.best_params_).fit(X, y).coef_)
