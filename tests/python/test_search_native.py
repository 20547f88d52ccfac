"""The native search itself: steps, plans, time limits, progress, and journals that survive being killed."""

import os
import signal
import subprocess
import sys
import time

import hinge._native as native
import numpy as np
import pytest
from problems import LOSSES, sparse_problem
from sklearn.model_selection import StratifiedKFold

PLAN = {
    "Cs": None,
    "C_min": 2.0**-6,
    "C_max": 64.0,
    "ratio": 2.0,
    "refine": 0,
    "stop": "exact",
    "time_limit": None,
    "resume": None,
}
OPTIONS = {
    "solver": "auto",
    "intercept": 0.0,
    "tol": 1e-3,
    "max_iter": 10_000,
    "seed": 0,
    "n_threads": 1,
    "presolve": "auto",
}
FACTS = ("C", "objective", "passes", "n_iter", "inner", "unchanged", "converged", "unchanged_until")


def run(X, y, loss="logistic", plan=None, options=None, visit=None, progress=None, count=None):
    """Steps and reason of a search in three folds, scored by accuracy; ended after ``count`` steps."""
    folds = [(a.astype(np.uint32), b.astype(np.uint32)) for a, b in StratifiedKFold(3).split(X, y)]
    n_classes = int(y.max()) + 1
    steps = []

    def keep(step):
        steps.append(step)
        if visit is not None:
            return visit(step)
        if len(steps) > (count or np.inf):
            return None
        first = [values[:: 1 if n_classes == 2 else n_classes] for values in step["decisions"]]
        positive = 1 if n_classes == 2 else 0
        return np.mean([((d > 0) == (y[test] == positive)).mean() for d, (_, test) in zip(first, folds, strict=True)])

    matrix = (X.indptr, X.indices, X.data, X.shape[1])
    ids, weight = y.astype(np.uint32), np.ones(len(y))
    reason = native.search(
        matrix, ids, n_classes, weight, folds, OPTIONS | {"loss": loss} | (options or {}), PLAN | (plan or {}), keep,
        progress,
    )  # fmt: skip
    return steps, reason


def same(a, b):
    """Whether two searches took the same steps to the last bit."""
    assert len(a) == len(b)
    for one, two in zip(a, b, strict=True):
        for name in FACTS:
            np.testing.assert_array_equal(one[name], two[name], err_msg=name)
        for x, z in zip(one["decisions"], two["decisions"], strict=True):
            np.testing.assert_array_equal(x, z)


@pytest.fixture
def problem():
    X, y = sparse_problem(30, n_rows=150, n_columns=30, n_classes=3, noise=2.0)
    return X.tocsr(), y


@pytest.mark.parametrize("loss", LOSSES)
def test_step(problem, loss):
    X, y = problem
    steps, reason = run(X, y, loss)
    assert reason in ("C_max", "unchanged")
    for step in steps:
        assert set(step) == {*FACTS, "decisions", "seconds", "replayed"}
        assert [d.shape for d in step["decisions"]] == [(150,)] * 3
        assert step["objective"].shape == (3, 3)
        assert (step["objective"] > 0).all()
        assert step["unchanged_until"] >= step["C"]
        assert step["seconds"] >= 0
        assert not step["replayed"]
        assert (step["inner"] == 0) or loss != "hinge"
    if not any(step["unchanged"] for step in steps):
        assert sum(step["passes"] for step in steps) > 0


def test_unchanged_steps_cost_nothing_and_show_the_same_arrays():
    X, y = sparse_problem(22, noise=0.0, density=1.0)
    steps, reason = run(X.tocsr(), y, "squared_hinge", {"C_max": 1e12, "stop": "liblinear"})
    assert reason == "unchanged"
    assert [step["unchanged"] for step in steps[-6:]] == [False, True, True, True, True, True]
    for one, two in zip(steps[-6:], steps[-5:], strict=False):
        assert two["passes"] == two["n_iter"] == 0
        assert all(a is b for a, b in zip(one["decisions"], two["decisions"], strict=True))
    exact, reason = run(X.tocsr(), y, "squared_hinge", {"C_max": 1e12})
    assert reason == "unchanged"
    assert [step["unchanged_until"] >= 1e12 for step in exact[-2:]] == [False, True]


def test_values_and_reasons(problem):
    steps, reason = run(*problem, plan={"Cs": [0.1, 0.5, 3.0], "C_min": 7.0})
    assert ([step["C"] for step in steps], reason) == ([0.1, 0.5, 3.0], "Cs")
    steps, reason = run(*problem, plan={"C_max": 2.0**-4})
    assert ([step["C"] for step in steps], reason) == ([2.0**-6, 2.0**-5, 2.0**-4], "C_max")
    steps, reason = run(*problem, visit=lambda step: 0.0 if step["C"] < 0.1 else None)
    assert ([step["C"] for step in steps], reason) == ([2.0**-k for k in (6, 5, 4, 3)], "visit")


def test_refinement_goes_to_the_peak(problem):
    steps, _ = run(*problem, plan={"refine": 4, "C_max": 4.0}, visit=lambda step: -abs(np.log2(step["C"]) + 1.3))
    values = np.log2([step["C"] for step in steps])
    assert np.abs(values + 1.3).min() <= 2.0**-5
    assert len(values) == 9 + 8


@pytest.mark.parametrize(
    ("name", "value"),
    [("stop", "soon"), ("time_limit", 0.0), ("time_limit", np.nan), ("Cs", []), ("Cs", [2.0, 1.0]), ("C_min", -1.0)],
)
def test_bad_plans(problem, name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        run(*problem, plan={name: value})


# Time limit and progress.


def slow_problem():
    """Minutes of work at tolerances far below its reach in seconds."""
    X, y = sparse_problem(31, n_rows=6000, n_columns=3000, noise=3.0)
    return X.tocsr(), y


def test_time_limit_stops_a_long_fit():
    X, y = slow_problem()
    started = time.perf_counter()
    _, reason = run(X, y, "hinge", {"time_limit": 0.5, "C_max": 1e6}, {"tol": 1e-11, "solver": "dual_cd"})
    assert time.perf_counter() - started < 2.5
    assert reason == "time_limit"


def test_time_limit_ends_with_what_is_finished(problem):
    whole, _ = run(*problem)
    steps, reason = run(*problem, plan={"time_limit": 0.5}, visit=lambda step: time.sleep(0.2) or 0.0)
    assert reason == "time_limit"
    assert 1 <= len(steps) <= 3
    same(steps, whole[: len(steps)])


def test_progress_says_where_the_search_is():
    X, y = slow_problem()
    seen = []
    plan = {"time_limit": 1.5, "C_max": 1e6}
    run(X, y, "hinge", plan, {"tol": 1e-11, "solver": "dual_cd"}, progress=lambda *report: seen.append(report))
    assert 1 <= len(seen) <= 31
    for kind, C, iteration, lanes_left, passes, accuracy in seen:
        assert kind in ("dual_cd", "newton")
        assert np.log2(C) % 1 == 0
        assert iteration >= 0
        assert 1 <= lanes_left <= 3
        assert passes >= 0
        assert accuracy >= 0


def test_ctrl_c_stops_the_search():
    def press(*_):
        os.kill(os.getpid(), signal.SIGINT)

    X, y = slow_problem()
    with pytest.raises(KeyboardInterrupt):
        run(X, y, "hinge", {"C_max": 1e6}, {"tol": 1e-11, "solver": "dual_cd"}, progress=press)


# Journals.


@pytest.mark.parametrize(("loss", "solver"), [("logistic", "newton"), ("hinge", "auto"), ("squared_hinge", "dual_cd")])
@pytest.mark.parametrize("refine", [0, 2])
def test_an_interrupted_search_goes_on_to_the_same_bits(problem, tmp_path, loss, solver, refine):
    options = {"solver": solver}
    whole, reason = run(*problem, loss, {"refine": refine}, options)
    for count in {1, 2, len(whole) // 2, len(whole) - 2}:
        plan = {"refine": refine, "resume": str(tmp_path / f"{count}")}
        first, ended = run(*problem, loss, plan, options, count=count)
        assert ended == "visit"
        again, ended = run(*problem, loss, plan, options | {"n_threads": 2})
        assert ended == reason
        same(again, whole)
        assert [step["replayed"] for step in again] == [k < len(first) for k in range(len(again))]
        assert [step["seconds"] for step in again[: len(first)]] == [step["seconds"] for step in first]


def test_resume_after_a_time_limit(tmp_path):
    X, y = sparse_problem(31, n_rows=1500, n_columns=1000, noise=3.0)
    X, options = X.tocsr(), {"tol": 1e-7, "solver": "dual_cd"}
    whole, reason = run(X, y, "hinge", {"C_max": 2.0}, options)
    ended, limit = "time_limit", 0.02
    while ended == "time_limit":
        steps, ended = run(X, y, "hinge", {"C_max": 2.0, "time_limit": limit, "resume": str(tmp_path / "j")}, options)
        limit *= 2
    assert ended == reason
    same(steps, whole)


def test_a_finished_journal_is_only_shown(problem, tmp_path):
    plan = {"resume": str(tmp_path / "journal"), "refine": 1}
    first, reason = run(*problem, plan=plan)
    size = os.path.getsize(plan["resume"])
    again, ended = run(*problem, plan=plan)
    assert ended == reason
    assert all(step["replayed"] for step in again)
    same(first, again)
    assert os.path.getsize(plan["resume"]) == size


def test_journals_of_other_searches_are_refused(problem, tmp_path):
    X, y = problem
    path = str(tmp_path / "journal")
    run(X, y, plan={"resume": path})
    other = X.copy()
    other.data[3] += 1e-9
    swapped = y.copy()
    swapped[[0, 1]] = swapped[[1, 0]] + (swapped[0] == swapped[1])
    for arguments, part in [
        ({"X": other}, "X differs"),
        ({"y": (y + 1) % 3}, "y differs"),
        ({"loss": "hinge"}, "loss is Logistic there and Hinge here"),
        ({"options": {"tol": 1e-4}}, "tol is 0.001 there and 0.0001 here"),
        ({"options": {"seed": 3}}, "seed is 0 there and 3 here"),
        ({"plan": {"C_max": 32.0}}, "range of C"),
        ({"plan": {"refine": 2}}, "refine is 0 there and 2 here"),
    ]:
        call = {"X": X, "y": y} | arguments
        call["plan"] = {"resume": path} | call.get("plan", {})
        with pytest.raises(ValueError, match=part):
            run(**call)
    text = tmp_path / "notes.txt"
    text.write_text("nothing of ours")
    with pytest.raises(ValueError, match=r"notes.txt cannot be resumed: it is not the journal of a search"):
        run(X, y, plan={"resume": str(text)})
    assert text.read_text() == "nothing of ours"
    with pytest.raises(FileNotFoundError):
        run(X, y, plan={"resume": str(tmp_path / "no" / "journal")})


def test_damage_is_computed_again(problem, tmp_path):
    path = tmp_path / "journal"
    whole, _ = run(*problem, plan={"resume": str(path), "refine": 1})
    bytes_ = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(1000, len(bytes_), 10):
        damaged = bytearray(bytes_)
        damaged[at] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        again, _ = run(*problem, plan={"resume": str(path), "refine": 1})
        same(again, whole)


CHILD = """
import sys
import numpy as np
sys.path.insert(0, {tests!r})
from test_search_native import killed_problem, run
X, y = killed_problem()
steps, reason = run(X, y, {loss!r}, {{"refine": 2, "resume": {path!r}}}, {{"tol": 1e-6, "solver": {solver!r}}})
np.savez({out!r}, reason=reason, C=[s["C"] for s in steps], objective=[s["objective"] for s in steps],
    passes=[s["passes"] for s in steps], decisions=[np.concatenate(s["decisions"]) for s in steps])
"""


def killed_problem():
    X, y = sparse_problem(32, n_rows=900, n_columns=500, noise=3.0)
    return X.tocsr(), y


def killed_search(folder, loss, solver, kills, rng):
    """Runs a search in processes that are killed, until one of them ends by itself; returns its table and the kills."""
    tests = os.path.dirname(__file__)
    path, out = str(folder / "journal"), str(folder / "out.npz")
    code = CHILD.format(tests=tests, loss=loss, solver=solver, path=path, out=out)
    done = 0
    while True:
        child = subprocess.Popen([sys.executable, "-c", code])
        if done < kills:
            # Loading takes about a second; the search begins when the journal grows.
            size, patience = journal_size(path), time.monotonic() + 60
            while child.poll() is None and journal_size(path) == size and time.monotonic() < patience:
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.05))
            child.kill()
        if child.wait() == 0:
            break
        done += 1
    with np.load(out) as table:
        return dict(table), done


def journal_size(path):
    return os.path.getsize(path) if os.path.exists(path) else -1


@pytest.mark.parametrize(("loss", "solver"), [("logistic", "newton"), ("hinge", "dual_cd")])
def test_killed_searches_end_with_the_same_bits(tmp_path, loss, solver):
    X, y = killed_problem()
    whole, reason = run(X, y, loss, {"refine": 2}, {"tol": 1e-6, "solver": solver})
    table, done = killed_search(tmp_path, loss, solver, 4, np.random.default_rng(5))
    assert done > 0
    assert table["reason"] == reason
    for name in ("C", "objective", "passes"):
        np.testing.assert_array_equal(table[name], [step[name] for step in whole])
    np.testing.assert_array_equal(table["decisions"], [np.concatenate(step["decisions"]) for step in whole])
    assert set(os.listdir(tmp_path)) <= {"journal", "journal.new", "out.npz"}
