"""The command line: standard input, and messages that name the argument."""

import gzip
import os
import subprocess
import sys

import numpy as np
import pytest
from hinge import BlockStore, cli

TEXT = "".join(f"{k % 2} {k % 5 + 1}:1 {k % 3 + 6}:{k % 2 + 1}.5\n" for k in range(60))


def run(*arguments, stdin):
    call = [sys.executable, "-m", "hinge", *map(os.fspath, arguments)]
    return subprocess.run(call, input=stdin, capture_output=True, timeout=120)


@pytest.mark.parametrize("text", [TEXT.encode(), gzip.compress(TEXT.encode())], ids=["plain", "gzip"])
def test_a_store_is_built_from_standard_input(tmp_path, text):
    (tmp_path / "a.svm").write_text(TEXT)
    assert cli.main(["blocks", "build", str(tmp_path / "a.svm"), str(tmp_path / "a")]) == 0
    done = run("blocks", "build", "-", tmp_path / "b", stdin=text)
    assert done.returncode == 0, done.stderr
    a, b = BlockStore(tmp_path / "a"), BlockStore(tmp_path / "b")
    assert (a.info()["fingerprint"], a.info()["source"]) == (b.info()["fingerprint"], "a.svm")
    assert b.info()["source"] == "standard input"


def test_a_store_does_not_go_to_standard_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.svm").write_text(TEXT)
    assert cli.main(["blocks", "build", "a.svm", "-"]) == 1
    assert "STORE must be the name of a file, got '-'" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["a.svm"]


def test_the_demonstration_reads_standard_input(tmp_path):
    done = run("demo", "-", "--no-compare", "--output", tmp_path / "x.png", stdin=TEXT.encode())
    assert done.returncode == 0, done.stderr
    assert b"standard input" in done.stdout


def test_standard_input_goes_on_where_it_is(tmp_path):
    (tmp_path / "a.svm").write_text("header\n" + TEXT)
    code = "import os, hinge; os.lseek(0, 7, 0); X, y = hinge.load_svmlight('-'); print(X.shape, X.sum(), len(y))"
    with (tmp_path / "a.svm").open() as file:
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, text=True, timeout=120)
    total = np.float64(60 + sum(k % 2 + 1.5 for k in range(60)))
    assert done.stdout.split("\n")[0] == f"(60, 8) {total} 60", done.stderr


def test_a_number_of_features_that_is_too_small_is_named(tmp_path, capsys):
    (tmp_path / "a.svm").write_text(TEXT)
    assert cli.main(["blocks", "build", str(tmp_path / "a.svm"), str(tmp_path / "a"), "--features", "5"]) == 1
    message = capsys.readouterr().err
    assert 'index of "6:1.5" is out of range; expected 0 to 4, or 1 to 5 where indices start at 1' in message
    assert "with n_features=5" in message
