"""The demonstration and its command line, on files small enough to be fast."""

import logging
import subprocess
import sys

import hinge
import numpy as np
import pytest
from hinge import _console, _docstrings, _tasks, cli, demo

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def svm_file(tmp_path):
    """Three classes that a linear model tells apart, and a fourth of one row."""
    random = np.random.default_rng(0)
    path = tmp_path / "small.svm"
    with path.open("w") as file:
        for k in range(90):
            values = random.normal(size=4)
            values[k % 3] += 4
            file.write(f"{k % 3} " + " ".join(f"{j + 1}:{v:.3f}" for j, v in enumerate(values)) + "\n")
        file.write("7 1:1\n")
    return path


@pytest.fixture(params=["rich", "plain"])
def look(request, monkeypatch):
    """Both consoles; rich only where it is installed."""
    if request.param == "rich":
        pytest.importorskip("rich")
    else:
        monkeypatch.setattr(_console.importlib.util, "find_spec", lambda name: None)
    return request.param


@pytest.fixture
def package(tmp_path):
    """Makes packages of files with documented functions."""

    def make(
        name,
        n_files=5,
        n_functions=8,
        text="what {name} is for, told at some length so that it counts: {k} {f}",
    ):
        folder = tmp_path / "installed" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        for f in range(n_files):
            functions = (f'def f{k}():\n    """{text.format(name=name, k=k, f=f)}"""\n' for k in range(n_functions))
            (folder / f"part{f}.py").write_text("\n".join(functions))
        return folder

    return make


def test_report_on_a_file(svm_file, tmp_path, capsys, look):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "curve.png"
    assert cli.main(["demo", str(svm_file), "--output", str(picture), "--jobs", "1", "--no-compare"]) == 0
    shown = capsys.readouterr()
    assert "72 rows to train and choose, 18 held out" in shown.out
    assert "4 features, 3 classes, 288 nonzeros (float64)" in shown.out
    assert "left out: classes of fewer than 5 rows (1)" in shown.out
    assert "chosen C" in shown.out
    assert "the most frequent class alone gives 0.3333" in shown.out
    assert "converged: at most" in shown.out
    assert "scikit-learn" not in shown.out
    assert f"Reading {svm_file} ..." in shown.err
    assert "searching C on 3 folds ..." in shown.err
    assert picture.read_bytes().startswith(PNG)


@pytest.mark.parametrize("loss", demo.LOSSES)
def test_comparison(svm_file, tmp_path, capsys, monkeypatch, loss):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", str(svm_file), "--loss", loss, "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert ("LogisticRegression(" if loss == "logistic" else f"LinearSVC(loss='{loss}')") in out
    assert "time ratio" in out
    ours, theirs = (_numbers(out, name) for name in ("hinge", "scikit-learn"))
    # The same problem on easy data: accuracy on folds, and on 18 rows held out.
    assert ours[2] == pytest.approx(theirs[2], abs=0.05)
    assert ours[3] == pytest.approx(theirs[3], abs=2 / 18)


def _numbers(out, name):
    """The numbers of the line of the last table that has this name."""
    lines = [line.replace("│", " ").split() for line in out.splitlines()]
    return [float(cell) for cell in next(cells[1:] for cells in lines if cells[:1] == [name])]


def test_progress_is_what_the_library_logs(capsys, monkeypatch):
    monkeypatch.setattr(_console, "_INTERVAL", 0.0)
    logger = logging.getLogger("hinge")
    before = logger.level, list(logger.handlers)
    with _console.PlainConsole().busy("working") as news, demo._log_to(news):
        logger.info("iteration 3")
    assert capsys.readouterr().err == "working ...\n  0 s, iteration 3\n"
    assert (logger.level, logger.handlers) == before


def test_rich_on_a_terminal(capsys):
    rich_console = pytest.importorskip("rich.console")
    show = _console.RichConsole()
    show._progress = rich_console.Console(stderr=True, force_terminal=True)
    with show.busy("working [on it]") as news:
        news("iteration [3]")
    assert "working [on it]: iteration [3]" in capsys.readouterr().err


def test_missing_matplotlib_is_explained(svm_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    picture = tmp_path / "curve.png"
    assert cli.main(["demo", str(svm_file), "--output", str(picture), "--no-compare"]) == 0
    assert "not drawn: matplotlib is missing, try pip install 'hinge[plot]'" in capsys.readouterr().out
    assert not picture.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file or directory"),
        ("1 1:1\n2 1:x\n", 'line 2, column 5: value "x" is not a number'),
        ("1 1:1\n2 1:1\n", "expected 2 or more labels with at least 5 rows each"),
        ("1 1:1\n" * 20, "expected 2 or more labels with at least 5 rows each"),
    ],
)
def test_bad_file_is_one_line(tmp_path, capsys, text, message):
    path = tmp_path / "bad.svm"
    if text is not None:
        path.write_text(text)
    assert cli.main(["demo", str(path), "--output", str(tmp_path / "curve.png")]) == 1
    shown = capsys.readouterr()
    errors = [line for line in shown.err.splitlines() if line.startswith("hinge: error: ")]
    assert len(errors) == 1
    assert shown.err.splitlines()[-1] == errors[0]
    assert str(path) in errors[0]
    assert message in errors[0]
    assert shown.out == ""


def test_missing_folder_is_found_before_the_work(svm_file, tmp_path, capsys):
    output = tmp_path / "missing" / "curve.png"
    assert cli.main(["demo", str(svm_file), "--output", str(output)]) == 1
    assert capsys.readouterr().err == f"hinge: error: {output.parent}: no such folder\n"


def test_unusable_jobs(svm_file, capsys):
    assert cli.main(["demo", str(svm_file), "--jobs", "0"]) == 1
    assert "n_jobs must be" in capsys.readouterr().err


def test_interrupt(svm_file, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "fit", interrupted)
    assert cli.main(["demo", str(svm_file)]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "hinge: interrupted"


def test_help(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["demo", "--help"])
    assert caught.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    for part in ("FILE", "--output PNG", "--loss", "--jobs N", "--no-compare", "default: hinge-demo.png"):
        assert part in out


def test_module_runs():
    command = [sys.executable, "-m", "hinge", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"hinge {hinge.__version__}\n"


def test_collects_packages_with_enough_docstrings(package, tmp_path):
    alpha, beta = package("alpha"), package("beta")
    package("few_files", n_files=4, n_functions=20)
    package("few_docstrings", n_functions=3)
    package("short", text="{name} {k} {f}")
    (tmp_path / "installed" / "single.py").write_text(f'"""{"x" * 100}"""')
    (beta / "broken.py").write_text("def (")
    tests = alpha / "tests"
    tests.mkdir()
    (tests / "part.py").write_text('"""Not read, however long it is: a test says little about its package."""')
    data = _docstrings.collect([tmp_path / "installed", tmp_path / "missing"])
    assert data.packages == ("alpha",) * 40 + ("beta",) * 40
    assert len(set(data.files)) == 10
    assert not any("Not read" in text for text in data.texts)


def test_names_and_copies_are_removed(package, tmp_path):
    package("alpha", text="alpha, Alpha.beta and alphabet: many words to be long enough, then {k} {f}")
    package("beta", text="for all k the very same sentence in {name}, of sixty characters and a few more {f}")
    package("gamma", text="is about gamma_rays and (BETA): many words to be long enough, then {k} {f}")
    data = _docstrings.collect([tmp_path / "installed"])
    # What beta says is written once per file, so it is too small.
    assert set(data.packages) == {"alpha", "gamma"}
    assert data.texts[0].startswith(" ,  .beta and alphabet")
    assert data.texts[-1].startswith("is about  _rays and (BETA)")


def test_collection_is_limited_and_repeatable(package, tmp_path, monkeypatch):
    monkeypatch.setattr(_docstrings, "MAX_FILES", 6)
    monkeypatch.setattr(_docstrings, "MAX_DOCSTRINGS", 45)
    package("alpha", n_files=20, n_functions=12)
    data = _docstrings.collect([tmp_path / "installed"])
    assert len(data.texts) == 45
    assert len(set(data.files)) <= 6
    assert data == _docstrings.collect([tmp_path / "installed"])


def test_no_source_file_is_on_two_sides(package, tmp_path, monkeypatch):
    for name in ("alpha", "beta", "gamma"):
        package(name, n_files=15)
    monkeypatch.setattr(_docstrings, "installed_folders", lambda: [tmp_path / "installed"])
    data = _docstrings.collect([tmp_path / "installed"])
    files, y = np.array(data.files), np.array(data.packages)
    splits = _tasks._split_by_file(y, files, _tasks.HOLD_OUT)
    for train, test in splits:
        assert not set(files[train]) & set(files[test])
    task = _tasks.docstring_task()
    assert len(task.y) + len(task.y_test) == 3 * 15 * 8
    assert set(task.y) == set(task.y_test) == {"alpha", "beta", "gamma"}
    assert task.X.dtype == np.float32
