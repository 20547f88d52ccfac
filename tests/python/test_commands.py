"""The commands train, predict, search, info and convert: LIBLINEAR's options, files and output."""

import bz2
import gzip
import os
import re
import subprocess
import sys

import hinge
import numpy as np
import pytest
from hinge import LinearSVC, LogisticRegression, cli
from hinge._commands import letters
from hinge._commands.plan import OPTIONS, Plan
from hypothesis import given
from hypothesis import strategies as st
from liblinear.liblinearutil import load_model, predict, save_model, svm_read_problem
from liblinear.liblinearutil import train as liblinear_train

DATA = "-1 1:1 3:0.5\n+1 2:2 3:-1\n-1 1:0.3 2:-1\n+1 2:1\n"
MODEL = """solver_type L2R_LR
nr_class 2
label 1 -1
nr_feature 3
bias 1
w
-0.40849149918888661\x20
0.84449140914592358\x20
-0.3022390713317411\x20
-0.12887166023329866\x20
"""
PROBABILITIES = "labels 1 -1\n-1 0.334371 0.665629\n1 0.865571 0.134429\n-1 0.250507 0.749493\n1 0.671642 0.328358\n"


def text_of(labels, n=90, d=10, seed=0):
    """Overlapping rows of some labels, in LIBLINEAR's format."""
    rng = np.random.default_rng(seed)
    lines = []
    for k in range(n):
        label = labels[k % len(labels)]
        entries = sorted({int(j) for j in rng.integers(1, d + 1, size=4)} | {label % d + 1})
        lines.append(f"{label} " + " ".join(f"{j}:{rng.random():.3f}" for j in entries))
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text(DATA)
    (tmp_path / "m").write_text(MODEL)
    (tmp_path / "two").write_text(text_of([1, 2]))
    (tmp_path / "three").write_text(text_of([7, -3, 4]))
    return tmp_path


def run(*arguments, stdin=None):
    """The command in a process of its own."""
    call = [sys.executable, "-m", "hinge", *map(str, arguments)]
    return subprocess.run(call, input=stdin, capture_output=True, timeout=120)


def succeed(*arguments):
    assert cli.main([*map(str, arguments)]) == 0


def fail(capsys, *arguments):
    """The one line that a command complains with."""
    assert cli.main([*map(str, arguments)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("hinge: error: ")
    return lines[-1].removeprefix("hinge: error: ")


# Options.


def liblinear_reads(argv):
    """The loop of LIBLINEAR's train, step by step."""
    given, i = {}, 0
    while i < len(argv) and argv[i][0] == "-":
        i += 1
        letter = argv[i - 1][1]
        if letter in "qCR":
            given[letter] = True
            continue
        if letter == "w":
            label = int(argv[i - 1][2:])
            weights = given.setdefault("w", {})
            weights[label] = weights.get(label, 1.0) * float(argv[i])
        else:
            given[letter] = (int if letter in "sv" else float)(argv[i])
        i += 1
    return given, argv[i:]


KEYS = {"s": "solver", "c": "C", "p": "ignored", "e": "epsilon", "B": "bias", "v": "n_folds", "w": "class_weight"}
KEYS |= {"q": "is_quiet", "C": "searches", "R": "is_free"}

words = st.one_of(
    st.tuples(st.sampled_from(["-s", "-solver", "-s2"]), st.sampled_from("01234567")),
    st.tuples(st.sampled_from(["-c", "-cost", "-e", "-eps"]), st.sampled_from(["1", "0.5", "1e-3"])),
    st.tuples(st.sampled_from(["-B", "-p"]), st.sampled_from(["-1", "1", "2.5", "-0.5"])),
    st.tuples(st.sampled_from(["-w1", "-w-1", "-w3"]), st.sampled_from(["5", "0.5"])),
    st.tuples(st.sampled_from(["-v"]), st.sampled_from(["2", "10"])),
    st.tuples(st.sampled_from(["-q", "-C", "-R", "-quiet"])),
)


@given(st.lists(words, max_size=8), st.lists(st.sampled_from(["a", "b.svm"]), max_size=3))
def test_options_are_read_as_by_liblinear(options, files):
    arguments = [word for option in options for word in option] + files
    expected, rest = liblinear_reads(arguments)
    found, others = letters.read(arguments, OPTIONS, "train")
    assert (found, others) == ({KEYS[letter]: value for letter, value in expected.items()}, rest)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "11", "x"], "-s: 11 is support vector regression: hinge classifies only; 0 and 7 (logistic"),
        (["-s", "5", "--memory", "9KB", "two"], "--memory: the data may not fit 9000 bytes, and L1R_L2LOSS_SVC is not"),
        (["-s", "21", "x"], "21 is a one-class machine"),
        (["-s", "8", "x"], "8 is no such type"),
        (["-c", "0", "x"], "-c: expected a number above 0, got '0'"),
        (["-c", "x"], "-c: expected a number, got 'x'"),
        (["-c"], "-c needs a value: cost of training errors"),
        (["-w", "3", "x"], "-w: a class must stand behind -w, as in -w3"),
        (["-v", "1", "x"], "-v: expected a whole number of at least 2, got '1'"),
        (["-z", "1", "x"], "unknown option -z: 'hinge train --help' shows all"),
        (["--tool", "1", "x"], "unknown option --tool"),
        (["--force=1", "x"], "--force takes no value, got '1'"),
        (["--memory", "lots", "x"], "--memory: expected bytes such as 500MB"),
        (["--model-format", "text", "x"], "expected liblinear or hinge or onnx, got 'text'"),
        (["-R", "x"], "-R must come with -B 1"),
        ([], "no data: expected DATA"),
        (["a", "b", "c"], "expected DATA and perhaps MODEL, got 3 files: name the model by --model"),
        (["-"], "no name for the model"),
        (["x", "-"], "it cannot go to standard output"),
        (["none.svm"], "none.svm: No such file or directory"),
    ],
)
def test_unusable_options_are_one_line(folder, capsys, arguments, message):
    assert message in fail(capsys, "train", *arguments)
    assert sorted(os.listdir(folder)) == ["data", "m", "three", "two"]


def test_a_tolerance_becomes_a_gap():
    def gap(*arguments):
        return Plan.of(*letters.read([*arguments, "x"], OPTIONS, "train")).tol

    assert gap() == gap("-e", "0.1") == gap("-s", "7") == pytest.approx(1e-6)
    assert gap("-s", "0") == gap("-s", "2", "-e", "0.01") == gap("-s", "5") == gap("-s", "6") == pytest.approx(1e-5)
    assert gap("-s", "3") == gap("-s", "4") == pytest.approx(1e-4)
    assert gap("-e", "100") == hinge._native.DEFAULT_TOL
    assert gap("-e", "1e-9") == 1e-9
    assert gap("-e", "1e-4", "--tol", "0.5") == gap("--tol=0.5") == 0.5


@pytest.mark.parametrize("command", ["train", "predict", "search"])
def test_help_names_every_option(command, capsys):
    succeed(command, "--help")
    text = capsys.readouterr().out
    assert text.startswith(f"usage: hinge {command} [options]")
    assert max(map(len, text.splitlines())) <= 120
    if command == "train":
        assert all(f"  {option.names}" in text for option in OPTIONS)


# Training.


@pytest.mark.parametrize("solver", range(8))
@pytest.mark.parametrize("data", ["data", "two", "three"])
@pytest.mark.parametrize("bias", ["-1", "1"])
def test_liblinear_reads_the_models(folder, capsys, solver, data, bias):
    succeed("train", "-s", solver, "-B", bias, "-q", data)
    assert capsys.readouterr() == ("", "")
    path = folder / f"{data}.model"
    model = load_model(str(path))
    save_model("again", model)
    assert (folder / "again").read_bytes() == path.read_bytes()
    first = list(dict.fromkeys(int(line.split()[0]) for line in (folder / data).read_text().splitlines()))
    assert model.get_labels() == ([1, -1] if first == [-1, 1] else first)
    y, x = svm_read_problem(data, return_scipy=True)
    expected = predict(y, x, model, "-q")[0]
    succeed("predict", "-q", data, path, "out")
    assert [float(line) for line in (folder / "out").read_text().split()] == expected


def test_the_optimum_is_that_of_liblinear(folder):
    """Of the manual's example, to what LIBLINEAR itself is off."""
    succeed("train", "-s", "0", "-B", "1", "-q", "--tol", "1e-10", "data", "ours")
    ours, theirs = ([float(w) for w in (folder / name).read_text().split("\nw\n")[1].split()] for name in ("ours", "m"))
    np.testing.assert_allclose(ours, theirs, atol=1e-2)
    assert (folder / "ours").read_text().split("\nw\n")[0] == MODEL.split("\nw\n")[0]
    X, y = hinge.load_svmlight("data")
    model = LogisticRegression(intercept_scaling=1.0, tol=1e-10).fit(X, y)
    np.testing.assert_array_equal([*model.coef_[0], *model.intercept_], ours)


@pytest.mark.parametrize("solver", [5, 6])
@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("two", ""),
        ("two", "-B 1"),
        ("two", "-B 2.5 -c 0.3"),
        ("two", "-B 1 -R"),
        ("two", "-w1 3 -w2 0.5 -c 0.3"),
        ("three", "-B 1"),
        ("three", "-B 1 -R -c 0.5"),
    ],
)
def test_absolute_values_have_the_weights_of_liblinear(folder, solver, options, data):
    succeed("train", "-s", solver, *options.split(), "-q", "--tol", 1e-11, data, "ours")
    y, x = svm_read_problem(data, return_scipy=True)
    theirs = liblinear_train(y, x, f"-s {solver} -e 1e-9 -q {options}")
    save_model("theirs", theirs)
    texts = [(folder / name).read_text().split("\nw\n") for name in ("ours", "theirs")]
    assert texts[0][0] == texts[1][0]
    ours, weights = ([float(w) for w in text.split()] for _, text in texts)
    np.testing.assert_allclose(ours, weights, atol=1e-4)
    assert [w == 0.0 for w in ours] == [w == 0.0 for w in weights]
    assert 0.0 in ours
    succeed("predict", "-q", data, "ours", "out")
    assert [float(line) for line in (folder / "out").read_text().split()] == predict(y, x, theirs, "-q")[0]


def test_the_search_for_C_with_absolute_values(folder, capsys):
    """LIBLINEAR's -C knows -s 0 and 2 only."""
    succeed("train", "-C", "-s", "5", "-v", "3", "two")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    assert re.fullmatch(r"Best C = \S+  CV accuracy = [\d.]+%", lines[-1])
    X, y = hinge.load_svmlight("two")
    table = hinge.select_C(X, y, loss="squared_hinge", penalty="l1", fit_intercept=False, cv=3, scoring="accuracy")
    assert lines[-1].startswith(f"Best C = {table.best_C:g} ")
    assert [f"{np.log2(C):7.2f}" for C in table.Cs] == [line[6:13] for line in lines[1:-1]]
    succeed("search", "-s", "6", "-v", "3", "-q", "two")
    assert "best C = " in capsys.readouterr().out


def test_a_free_intercept(folder):
    succeed("train", "-s", "2", "-B", "1", "-R", "-q", "two", "free")
    X, y = hinge.load_svmlight("two")
    model = LinearSVC(tol=1e-5).fit(X, y)
    assert hinge.load_liblinear("free").decision_function(X).tolist() == model.decision_function(X).tolist()


def test_weights_of_classes(folder, capsys):
    succeed("train", "-s", "3", "-w1", "5", "-w1", "2", "-w9", "3", "-q", "two")
    assert capsys.readouterr().err == "WARNING: class label 9 specified in weight is not found\n"
    X, y = hinge.load_svmlight("two")
    model = LinearSVC(loss="hinge", fit_intercept=False, class_weight={1: 10.0}, tol=1e-4).fit(X, y)
    assert hinge.load_liblinear("two.model").decision_function(X).tolist() == model.decision_function(X).tolist()


def test_a_summary_with_the_certificate(folder, capsys):
    succeed("train", "-c", "2", "two")
    out, err = capsys.readouterr()
    assert out == ""
    assert "[hinge] 90 rows, 10 features, 2 classes, L2R_L2LOSS_SVC_DUAL, C = 2\n" in err
    assert re.search(r"converged by \w+ in [\d.]+ s: objective [\d.]+, at most a share of \S+ above the optimum", err)


def test_several_files_compressed_and_standard_input(folder):
    lines = (folder / "two").read_text().splitlines(keepends=True)
    (folder / "a.gz").write_bytes(gzip.compress("".join(lines[:30]).encode()))
    (folder / "b.bz2").write_bytes(bz2.compress("".join(lines[30:60]).encode()))
    (folder / "c").write_text("".join(lines[60:]))
    succeed("train", "-q", "two", "whole")
    succeed("train", "-q", "--model", "parts", "a.gz", "b.bz2", "c")
    done = run("train", "-q", "-", "piped", stdin="".join(lines).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    whole = (folder / "whole").read_bytes()
    assert (folder / "parts").read_bytes() == whole == (folder / "piped").read_bytes()
    succeed("predict", "-q", "--model", "whole", "--output", "out", "a.gz", "b.bz2", "c")
    succeed("predict", "-q", "two", "whole", "out2")
    assert (folder / "out").read_bytes() == (folder / "out2").read_bytes()


def test_little_memory_trains_from_a_store(folder, capsys):
    succeed("train", "-s", "2", "--tol", "1e-6", "-q", "three", "whole")
    (folder / "three.gz").write_bytes(gzip.compress((folder / "three").read_bytes()))  # only reading tells how much
    succeed("train", "-s", "2", "--tol", "1e-6", "--memory", "20MB", "--model", "stored", "three.gz")
    assert "building a block store" in capsys.readouterr().err
    assert sorted(os.listdir(folder)) == ["data", "m", "stored", "three", "three.gz", "two", "whole"]
    message = "memory_budget must be at least 13635642 bytes for this task, got 9000"
    assert message in fail(capsys, "train", "-s", "2", "--memory", "9KB", "three")
    heads, weights = zip(*((folder / name).read_text().split("\nw\n") for name in ("whole", "stored")), strict=True)
    assert heads[0] == heads[1]
    np.testing.assert_allclose(*([float(w) for w in part.split()] for part in weights), atol=1e-3)


def test_cross_validation(folder, capsys):
    succeed("train", "-v", "3", "-q", "two")
    assert re.fullmatch(r"Cross Validation Accuracy = [\d.]+%\n", capsys.readouterr().out)
    succeed("train", "-v", "99", "-q", "-s", "2", "data")
    out, err = capsys.readouterr()
    assert re.fullmatch(r"Cross Validation Accuracy = [\d.]+%\n", out)
    assert err == (
        "WARNING: # folds > # data. Will use # folds = # data instead (i.e., leave-one-out cross validation)\n"
    )
    assert sorted(os.listdir(folder)) == ["data", "m", "three", "two"]


def test_the_search_for_C(folder, capsys):
    succeed("train", "-C", "-v", "3", "two")
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "Doing parameter search with 3-fold cross validation."
    assert all(re.fullmatch(r"log2c= *-?\d+\.\d\d\trate=[\d.]+", line) for line in lines[1:-1])
    assert re.fullmatch(r"Best C = \S+  CV accuracy = [\d.]+%", lines[-1])
    assert "Solver not specified. Using -s 2\n" in err
    succeed("train", "-C", "-s", "0", "-q", "two")
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert sorted(os.listdir(folder)) == ["data", "m", "three", "two"]


def test_a_search_is_resumed(folder, capsys):
    succeed("train", "-C", "-s", "2", "-q", "--resume", "journal", "two")
    first = capsys.readouterr().out
    assert (folder / "journal").exists()
    succeed("train", "-C", "-s", "2", "-q", "--resume", "journal", "two")
    assert capsys.readouterr().out == first


def test_the_table_of_a_search(folder, capsys):
    succeed("search", "-s", "0", "-v", "3", "-q", "--scoring", "roc_auc", "two")
    out = capsys.readouterr().out
    assert re.search(r"best C = \S+, roc_auc 0\.\d+ \(3 folds\)", out)
    assert "std. error" in out


def test_a_file_of_another_kind_is_kept(folder, capsys):
    assert "data: the file there is not a LIBLINEAR model and is kept" in fail(capsys, "train", "-q", "two", "data")
    assert (folder / "data").read_text() == DATA
    succeed("train", "-q", "--force", "two", "data")
    assert (folder / "data").read_text().startswith("solver_type")


def test_labels_that_are_no_whole_numbers(folder, capsys):
    (folder / "half").write_text("0.5 1:1\n1 2:1\n")
    assert "row 1 has the label 0.5" in fail(capsys, "train", "-q", "half")


# Prediction.


def test_the_output_of_predict_to_the_byte(folder, capsys):
    succeed("predict", "data", "m", "out")
    assert capsys.readouterr() == ("Accuracy = 100% (4/4)\n", "")
    assert (folder / "out").read_text() == "-1\n1\n-1\n1\n"
    succeed("predict", "-b", "1", "data", "m", "out")
    assert (folder / "out").read_text() == PROBABILITIES
    capsys.readouterr()
    succeed("predict", "-q", "-b", "0", "data", "m", "out")
    assert capsys.readouterr() == ("", "")
    (folder / "wrong").write_text(DATA.replace("+1", "2").replace("-1 1:1", "7 1:1"))
    succeed("predict", "wrong", "m", "out")
    assert capsys.readouterr().out == "Accuracy = 25% (1/4)\n"


def test_probabilities_of_several_classes(folder):
    succeed("train", "-s", "0", "-q", "three")
    succeed("predict", "-q", "-b", "1", "three", "three.model", "out")
    y, x = svm_read_problem("three", return_scipy=True)
    model = load_model("three.model")
    labels, _, probabilities = predict(y, x, model, "-q -b 1")
    lines = ["labels 7 -3 4", *(f"{y:g} " + " ".join(f"{v:g}" for v in p) for y, p in zip(labels, probabilities))]
    assert (folder / "out").read_text().splitlines() == lines


def test_unknown_features_are_not_looked_at(folder, capsys):
    (folder / "wide").write_text("-1 1:1 3:0.5 4:100 9:1e9\n+1 2:2 3:-1\n")
    succeed("predict", "wide", "m", "out")
    assert capsys.readouterr().out == "Accuracy = 100% (2/2)\n"


def test_ties_are_answered_as_by_liblinear(folder):
    for labels in ([1, 2], [2, 1], [7, -3, 4], [4, 7, -3]):
        for solver in (2, 4):
            (folder / "x").write_text(text_of(labels) + f"{labels[0]}\n")
            succeed("train", "-s", solver, "-q", "x")
            succeed("predict", "-q", "x", "x.model", "out")
            y, x = svm_read_problem("x", return_scipy=True)
            expected = predict(y, x, load_model("x.model"), "-q")[0]
            assert [float(line) for line in (folder / "out").read_text().split()] == expected


def test_predictions_stream_through_pipes(folder):
    done = run("predict", "-b", "1", "-", "m", "-", stdin=gzip.compress(DATA.encode()))
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, PROBABILITIES, b"Accuracy = 100% (4/4)\n")


@pytest.mark.skipif(os.name != "posix", reason="signals of pipes")
def test_a_reader_may_leave(folder):
    (folder / "long").write_text(DATA * 300_000)  # more than a piece and a pipe hold
    call = f"{sys.executable} -m hinge predict long m - | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", call], capture_output=True, timeout=120)
    assert (done.stdout, done.stderr) == (b"-1\n141\n", b"")


def test_predict_loads_neither_scipy_nor_scikit_learn(folder):
    code = """
import sys
from hinge import cli
assert cli.main(["predict", "-b", "1", "data", "m", "out"]) == 0
print(*sorted({"sklearn", "scipy", "pandas", "joblib", "rich"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("Accuracy = 100% (4/4)\n\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "m"], "expected TEST, MODEL and OUT, got 2 files"),
        (["data", "data", "out"], "data: no model file; expected one of LIBLINEAR, or one that hinge saved"),
        (["data", "m", "data"], "data: the file to be written is one that is read, data"),
        (["data", "m", "m"], "m: the file to be written is one that is read, m"),
        (["none", "m", "out"], "none: No such file or directory"),
        (["-b", "2", "data", "m", "out"], "-b must be 0 or 1"),
        (["--model", "m", "data"], "--model, --output and TEST come together"),
        (["-c", "2", "data", "m", "out"], "unknown option -c"),
        (["m", "m", "out"], "m, line 1, column 1: "),
    ],
)
def test_predict_complains_in_one_line(folder, capsys, arguments, message):
    assert message in fail(capsys, "predict", *arguments)
    assert (folder / "data").read_text() == DATA
    assert (folder / "m").read_text() == MODEL


def test_probabilities_of_a_machine_are_refused(folder, capsys):
    succeed("train", "-q", "two")
    assert "only supported for logistic regression" in fail(capsys, "predict", "-b", "1", "two", "two.model", "out")


# Model files.


def test_what_a_model_file_says(folder, capsys):
    succeed("info", "m")
    lines = capsys.readouterr().out.splitlines()
    facts = dict(line.split(None, 1) for line in lines)
    assert facts["format"] == "LIBLINEAR"
    assert facts["classes"] == "2: -1, 1"
    assert facts["features"] == "3"
    assert facts["probabilities"] == "logistic"
    assert '"solver_type": "L2R_LR"' in facts["liblinear"]


def test_a_file_of_liblinear_is_written_anew(folder):
    succeed("convert", "m", "n")
    assert (folder / "n").read_text() == MODEL


def test_the_command_is_installed_under_its_name():
    import tomllib
    from pathlib import Path

    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert pyproject["project"]["scripts"] == {"hinge": "hinge.cli:main"}


def test_models_of_hinge_from_the_command_line(folder, capsys):
    succeed("train", "-s", "0", "-B", "1", "-q", "three", "three.hinge")
    succeed("train", "-s", "0", "-B", "1", "-q", "three", "three.model")
    capsys.readouterr()
    for options in ([], ["-b", "1"]):
        succeed("predict", "-q", *options, "three", "three.hinge", "ours")
        succeed("predict", "-q", *options, "three", "three.model", "theirs")
        ours, theirs = ((folder / name).read_text().splitlines() for name in ("ours", "theirs"))
        assert len(ours) == len(theirs)
        assert [line.split()[0] for line in ours] == [line.split()[0] for line in theirs]
    assert ours[0] == "labels -3 4 7"
    succeed("info", "three.hinge")
    facts = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert (facts["format"], facts["classes"], facts["status"]) == (
        "hinge",
        "3: -3, 4, 7",
        '["converged", "converged", "converged"]',
    )
    succeed("convert", "three.hinge", "again")
    X, _ = hinge.load_svmlight("three")
    assert hinge.load_liblinear("again").predict(X).tolist() == hinge.load("three.hinge").predict(X).tolist()
    succeed("convert", "again", "again.hinge")
    assert hinge.load("again.hinge").predict(X).tolist() == hinge.load("three.hinge").predict(X).tolist()


def test_labels_and_probabilities_beyond_liblinear(folder, capsys):
    X, y = hinge.load_svmlight("two")
    names = np.array(["ham", "spam"])[y.astype(int) - 1]
    hinge.LinearSVCCV(cv=3, probability="sigmoid").fit(X, names).save("m.hinge")
    succeed("predict", "-b", "1", "two", "m.hinge", "out")
    lines = (folder / "out").read_text().splitlines()
    assert lines[0] == "labels spam ham"
    assert {line.split()[0] for line in lines[1:]} <= {"ham", "spam"}
    assert capsys.readouterr().out == ""
    assert "cannot be written as a LIBLINEAR model: its probabilities" in fail(capsys, "convert", "m.hinge", "n")


def test_a_graph_of_onnx(folder, capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    succeed("train", "-s", "2", "-q", "three", "three.onnx")
    succeed("train", "-s", "2", "-q", "three", "three.onnx")
    assert onnxruntime.InferenceSession("three.onnx").get_inputs()
    (folder / "taken.onnx").write_text("mine")
    assert "kept" in fail(capsys, "train", "-q", "three", "taken.onnx")
