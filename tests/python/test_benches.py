"""The scripts under benches run, and what they write hangs together."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHES = Path(__file__).parents[2] / "benches"


def run(script, *words):
    done = subprocess.run([sys.executable, BENCHES / script, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def needed():
    pytest.importorskip("liblinear")


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_chu15_on_generated_data(tmp_path, loss):
    pytest.importorskip("matplotlib")
    run("papers/chu15.py", "--sets", "generated", "--loss", loss, "--output", tmp_path, "--limit", "60")
    stem = "chu15" if loss == "logistic" else f"chu15-{loss}"
    for figure in (1, 2, 3):
        assert (tmp_path / f"{stem}-figure{figure}.png").stat().st_size > 10_000
    page = (tmp_path / f"{stem}.md").read_text("utf-8")
    assert page.count("generated: ") == 1 + 8
    assert "not measured" not in page
    study = json.loads((tmp_path / stem / "generated.json").read_text("utf-8"))
    for panel in study["figure2"]:
        for curve in panel["curves"].values():
            assert min(curve["distance"]) > -1e-9  # nobody is below the optimum
            assert min(curve["distance"]) < 1e-4
    for row in study["tables"]:
        assert 0 <= row["primal own"] < row["primal zero"]
        assert 0 <= row["dual own"] < 1  # below the optimum by weak duality, above the value at zero
    shortfalls = [row["dual own"] for row in study["tables"]]
    assert shortfalls[0] < 0.05  # doubling is exact as C goes to zero
    assert shortfalls == sorted(shortfalls)


def test_hsieh08_on_generated_data(tmp_path):
    pytest.importorskip("matplotlib")
    run("papers/hsieh08.py", "--sets", "generated", "--output", tmp_path, "--limit", "0.3")
    for figure in ("distance", "accuracy", "pegasos"):
        assert (tmp_path / f"hsieh08-{figure}.png").stat().st_size > 5_000
    study = json.loads((tmp_path / "hsieh08" / "generated.json").read_text("utf-8"))
    for found in study["curves"].values():
        for solver, curve in found.items():
            if solver != "optimum":
                assert min(curve["distance"]) > -1e-6  # nobody is below the optimum
                assert min(curve["distance"]) < 0.05
    assert study["batch"]["largest_norm"] <= 1 + 1e-9
    page = (tmp_path / "hsieh08.md").read_text("utf-8")
    assert "kept" in page
    assert "BROKEN" not in page


def test_chang10_on_generated_data(tmp_path):
    pytest.importorskip("matplotlib")
    run("papers/chang10.py", "--sets", "generated", "--output", tmp_path, "--limit", "60")
    rows = {row["method"]: row for row in read(tmp_path / "chang10.csv")}
    assert set(rows) == {"linear", "degree 2", "expansion", "sketch", "RBF"}
    # The rule is a product of two features.
    assert float(rows["linear"]["accuracy"]) < 0.75 < float(rows["degree 2"]["accuracy"])
    assert abs(float(rows["degree 2"]["accuracy"]) - float(rows["expansion"]["accuracy"])) < 0.03
    assert "| generated |" in (tmp_path / "chang10.md").read_text("utf-8")


def test_search_comparison_on_a_real_set(tmp_path, real):
    real("german")
    table = tmp_path / "search.csv"
    words = ["--sets", "german", "--losses", "logistic", "--repeat", "1", "--rivals", "liblinear,lbfgs", "--check"]
    run("compare/search.py", *words, "--output", table)
    rows = read(table)
    assert [row["tool"] for row in rows] == ["hinge", "hinge", "liblinear", "lbfgs"]
    accuracy = np.array([float(row["accuracy"]) for row in rows])
    assert np.ptp(accuracy) < 0.02
    assert float(rows[0]["passes"]) >= float(rows[0]["newton"]) > 0
    checked = read(table.with_stem("search-check"))
    assert [row["tool"] for row in checked] == ["hinge", "lbfgs"]
    assert {row["uncertified"] for row in checked} == {"0"}
    assert max(float(row["mean_off"]) for row in checked) < 0.1


def test_rivals_over_the_limit_say_so(real):
    real("w8a")
    words = ["--sets", "w8a", "--losses", "logistic", "--repeat", "1", "--rivals", "liblinear", "--limit", "0.2"]
    row = run("compare/search.py", *words).splitlines()[-1].split()
    assert row[2:5] == ["liblinear", "1", ">0.2"]
    assert "stopped after" in " ".join(row)


def read(path):
    with path.open(encoding="utf-8") as file:
        assert next(file).startswith("# ")
        return list(csv.DictReader(file))
