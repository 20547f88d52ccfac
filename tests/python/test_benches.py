"""The scripts under benches run, and what they write hangs together."""

import csv
import importlib
import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from contextlib import ExitStack
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


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """Small versions of the pages of all papers, without data."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("papers")
    said = run("papers/all.py", "--generated", "--output", folder)
    assert said.count("== ") == said.count(": done in ") == 5
    return folder


def test_small_versions_are_not_for_the_record():
    command = [sys.executable, BENCHES / "papers" / "all.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--output is needed" in done.stderr


def test_every_page_says_what_was_done_and_what_differs(papers):
    pages = {path.stem: path.read_text("utf-8") for path in papers.glob("*.md")}
    assert set(pages) == {"chu15", "hsieh08", "wesierski16", "changroth11", "chang10"}
    for page in pages.values():
        head = page.split("\n## ")[0]
        places = [head.index(f"**{words}") for words in ("What the ", "What we did.", "What is different")]
        assert places == sorted(places)
        assert "**What agrees" in head
        pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", page)
        assert pictures
        for picture in pictures:
            assert (papers / picture).stat().st_size > 5_000, picture


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_chu15_on_generated_data(papers, tmp_path, loss):
    stem = "chu15" if loss == "logistic" else f"chu15-{loss}"
    folder = papers if loss == "logistic" else tmp_path
    if folder is tmp_path:
        run("papers/chu15.py", "--sets", "generated", "--loss", loss, "--output", folder, "--limit", "60")
    for figure in (1, 2, 3):
        assert (folder / f"{stem}-figure{figure}.png").stat().st_size > 10_000
    page = (folder / f"{stem}.md").read_text("utf-8")
    assert page.count("generated: ") == 1 + 15
    assert page.count("- claim ") == 15
    assert "not measured" not in page
    study = json.loads((folder / stem / "generated.json").read_text("utf-8"))
    for curve in study["figure2"]["curves"].values():
        assert min(curve["distance"]) > -1e-9  # nobody is below the optimum
        assert min(curve["distance"]) < 1e-4
    table = study["starts"]
    assert [row["C"] for row in table[1:]] == [2.0**k for k in (-4, 0, 4, 8)]
    for row in table:
        # Chu15, eq. (19): both starts together miss half the squared norm; a gap of r leaves w within sqrt(2 r).
        off = abs(row["primal"] - row["dual"] - row["half"])
        assert off <= 4 * np.sqrt(row["half"] * row["resolution"]) < 1e-2 * max(row["half"], 1e-3)
        assert row["dual"] < 0
    assert 0.4 < table[0]["gradient"] < 0.55
    gradients = [row["gradient"] for row in table]
    assert gradients == sorted(gradients, reverse=True)  # to 0 by theorem 8 of Chu15
    walks = study["walks"]
    assert [len(walks[kind]) for kind in ("K models", "one model")] == [len(walks["K models"])] * 2
    assert all(row["strict"] >= 2 * row["largest"] for row in walks["K models"])
    ends = {rule: study["rules"][rule]["C"][-1] for rule in ("gradient", "unchanged", "exact")}
    assert ends["gradient"] <= ends["unchanged"] <= 1024
    path = study["hinge"]
    assert path["short"] + path["beyond"] + path["margin"] == path["rows"] == 400
    assert max(path[name] for name in ("moved", "bend", "v1", "v2", "off")) < 1e-8


def test_changroth11_on_generated_data(papers):
    assert (papers / "changroth11-figure2.png").stat().st_size > 10_000
    page = (papers / "changroth11.md").read_text("utf-8")
    assert page.count("### generated") == 6 + 2
    assert page.count("### generated-classes") == 2
    assert page.count("| generated | hinge, a stream |") == page.count("| generated | logistic |") == 1
    assert page.count("| generated-classes | 6,000 |") == 2
    study = json.loads((papers / "changroth11" / "generated.json").read_text("utf-8"))
    curves = study["figure2"]["points"]
    for points in curves.values():
        distances = [point["distance"] for point in points]
        assert min(distances) > -1e-5  # nobody is above the optimum of the dual
        assert distances == sorted(distances, reverse=True)
    assert curves["SBM-1/2"][1]["distance"] < curves["BMD"][1]["distance"]
    caches = study["caches"]["points"]
    assert set(caches) == {"gradient", "projected", "steepest", "random", "none"}
    for score in ("gradient", "projected", "steepest"):
        assert -1e-5 < caches[score][3]["distance"] < caches["none"][2]["distance"], score
    support = study["caches"]["support"]
    assert 0 < support["unbounded"] + support["bounded"] <= support["rows"] == 25_000
    cached = study["cached"]
    assert cached["unbounded"] == support["unbounded"]
    assert 12 <= cached["blocks"] <= 40
    best, lot = (np.array(cached["shares"][score])[:, 0] for score in ("steepest", "random"))
    # From the second pass on gradients are those near the optimum, and choose what a lot does not.
    assert (best[1:] > 2 * lot[1:]).all()
    assert (best <= min(1, cached["cache"] / cached["unbounded"])).all()
    np.testing.assert_allclose(lot, cached["cache"] / cached["rows"], rtol=0.5)
    for row in study["losses"]:
        assert {"steepest", "random"} < set(row["points"])
        assert all(-1e-5 < last < first for first, last in row["points"].values())
    assert all(0.5 < dual <= 1 + 1e-5 for duals in study["streams"]["points"].values() for dual in duals)
    without = [p["distance"] for p in study["shares"] if p["cache"] == 0 and p["rounds"] == 10]
    np.testing.assert_allclose(without, [p["distance"] for p in caches["none"]][:2] + without[2:], rtol=1e-9)
    assert set(study["online"]["points"]) == {"SBM-1/2", "BMD-in-10", "BMD-in-1", "BM-Pegasos"}
    assert -10 < study["online"]["AROW"]["accuracy"] < 1
    study = json.loads((papers / "changroth11" / "generated-classes.json").read_text("utf-8"))
    single, runs, classes = study["single_classes"], study["runs"], study["classes"]
    assert set(single["accuracy"]) == {"Perceptron", "MIRA", "AROW", "BMD", "SBM-1/2, 3 rounds", "SBM-1/2, 10 rounds"}
    assert all(-10 < points < 2 for points in single["accuracy"].values())
    assert 0 < runs["entries"] < runs["rows"] * (runs["classes"] - 1)
    rest, at_once = classes["one_against_rest"]["points"], classes["all_at_once"]
    assert set(rest) == {"steepest", "gradient", "random", "none", "one for each class"}
    assert set(at_once) == {"projected", "gradient", "random", "none"}
    for points in (*rest.values(), *at_once.values()):
        assert points == sorted(points, reverse=True)
        assert min(points) > -1e-5
    for points in (rest, at_once):
        assert all(curve[2] < points["none"][2] for score, curve in points.items() if score != "none")


def test_hsieh08_on_generated_data(papers):
    for figure in ("distance", "accuracy", "pegasos"):
        assert (papers / f"hsieh08-{figure}.png").stat().st_size > 5_000
    study = json.loads((papers / "hsieh08" / "generated.json").read_text("utf-8"))
    for found in study["curves"].values():
        for solver, curve in found.items():
            if solver != "optimum":
                assert min(curve["distance"]) > -1e-6  # nobody is below the optimum
                assert min(curve["distance"]) < 0.05
    assert study["batch"]["largest_norm"] <= 1 + 1e-9
    assert 0 < study["batch"]["optimum_norm"] <= 1 + 1e-6
    lecture = study["lecture"]
    assert [draw["replace"] for draw in lecture["draws"]] == [True, False] * 2
    assert all(0 < found["distance"] < 100 for found in lecture["draws"])
    assert {stop["length"] for stop in lecture["stops"]} == {"whole", "loss"}
    page = (papers / "hsieh08.md").read_text("utf-8")
    assert "DCDL1 comes within 1 % before its rivals on" in page
    assert "OUTSIDE" not in page


def test_chang10_on_generated_data(papers):
    rows = {row["method"]: row for row in read(papers / "chang10.csv")}
    forms = {"degree 2", "degree 2, constant", "degree 2, gamma"}
    assert set(rows) == forms | {"linear", "expansion", "sketch", "polynomial", "RBF"}
    # The rule is a product of two features.
    assert float(rows["linear"]["accuracy"]) < 0.75 < float(rows["degree 2"]["accuracy"])
    for other in ("expansion", "polynomial", "degree 2, constant", "degree 2, gamma"):
        assert abs(float(rows["degree 2"]["accuracy"]) - float(rows[other]["accuracy"])) < 0.03
    assert "| generated |" in (papers / "chang10.md").read_text("utf-8")


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


COMPARE = BENCHES / "compare"


@pytest.fixture
def compare(monkeypatch):
    """Modules of the comparisons by name; one of them is named like one of these tests'."""
    for path in COMPARE.glob("*.py"):
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    monkeypatch.syspath_prepend(COMPARE)
    before = set(sys.modules)
    yield importlib.import_module
    for name in {path.stem for path in COMPARE.glob("*.py")} & set(sys.modules) - before:
        del sys.modules[name]


def runs(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def test_fits_of_all_packages_have_one_optimum(tmp_path):
    table = tmp_path / "fit.csv"
    sets = ["--sets", "generated,generated3", "--Cs", "0.5", "--output", table, "--limit", "20"]
    done = run("compare/fit.py", *sets)
    rows = runs(table)
    assert {"hinge", "liblinear", "sklearn"} <= {row["package"] for row in rows}
    assert {row["set"] for row in rows} == {"generated", "generated3"}
    for case in {(row["set"], row["loss"]) for row in rows}:
        mine = [row for row in rows if (row["set"], row["loss"]) == case]
        best = min(float(row["objective"]) for row in mine)
        for key in {(row["package"], row["threads"]) for row in mine}:
            values = [float(row["objective"]) for row in mine if (row["package"], row["threads"]) == key]
            assert min(values) <= best * (1 + 1e-4), (case, key)
        for row in mine:
            assert not row["status"].startswith("failed"), row
            if row["package"] == "hinge":
                # A share of the objective, as `standings.doubts` has it.
                assert float(row["claimed_gap"]) >= 1 - best / float(row["objective"]) - 1e-11
    assert "Geometric means" in done
    assert "No module" not in done or "takes no part" in done
    page = table.with_suffix(".md").read_text("utf-8")
    assert page.count("| generated3 | logistic | 0.5 |") == 3
    if importlib.util.find_spec("matplotlib"):
        assert table.with_suffix(".png").stat().st_size > 10_000
    run("compare/fit.py", *sets)  # everything is there: nothing is run, and nothing lost
    assert runs(table) == rows


def test_a_fit_over_the_limit_is_stopped_and_gives_a_lower_bound(tmp_path, compare):
    process, tasks, standings = compare("process"), compare("tasks"), compare("standings")
    with ExitStack() as stack:
        stored = stack.enter_context(process.Stored(tasks.load("zipf-1e6")))
        contestant = stack.enter_context(process.Contestant("sklearn", sys.executable, 1, "dual", stored))
        stopped = contestant.fit("hinge", "dual", 1000.0, 1e-12, 0.05)
        assert (stopped.status, stopped.W) == ("limit", None)
        assert 0.05 <= stopped.seconds < 1
        again = contestant.fit("squared_hinge", "dual", 1e-3, 0.1, 60)
        assert again.W.shape == (1, stored.task.X.shape[1])
    common = {"set": "s", "loss": "hinge", "C": "1", "threads": "1", "convert_s": "1", "problems": "1"}
    theirs = common | {"package": "rival", "seconds": "5", "objective": "", "status": "limit"}
    ours = common | {"package": "hinge", "seconds": "2", "objective": "100", "status": "converged"}
    case = standings.cases([theirs, ours])[0]
    assert str(case.time("rival", 1, 1e-2)) == ">6 (stopped)"
    assert str(standings.ratio(case, ("rival", 1), 1, 1e-2)) == ">2.00x"
    assert str(standings.ratio(case, ("rival", 1), 1, 1e-2, convert=False)) == ">2.50x"


def test_standings_take_the_fastest_run_within_the_gap_and_name_the_losses(compare):
    standings = compare("standings")

    def entry(package, seconds, objective):
        fixed = {"set": "s", "loss": "hinge", "C": "1", "threads": "1", "convert_s": "0.5", "problems": "1"}
        noted = {"status": "finished", "claimed_gap": "", "peak_bytes": "", "nnz": "10"}
        return fixed | noted | {"package": package, "seconds": str(seconds), "objective": str(objective)}

    rows = [entry("hinge", 1.5, 100.5), entry("hinge", 3.5, 100.0), entry("rival", 0.5, 100.9)]
    rows += [entry("rival", 0.2, 102.0), entry("rival", 9.5, 100.00001)]
    case = standings.cases(rows)[0]
    assert [case.time("rival", 1, gap).seconds for gap in (1e-2, 1e-4, 1e-6)] == [1.0, 10.0, 10.0]
    assert [case.time("rival", 1, gap).bound for gap in (1e-2, 1e-6, 1e-8)] == ["", "", "(never)"]
    assert [standings.ratio(case, ("rival", 1), 1, gap).value for gap in (1e-2, 1e-4)] == [0.5, 2.5]
    assert "  - s hinge 1, gap 0.01: 0.50x" in standings.losses([case], [("rival", 1)])
    assert standings.mean([r.value for r in standings.ratios([case], ("rival", 1), 1, 1e-2)]) == pytest.approx(0.5)


def wheel_of_ours(folder):
    """The package as it is imported here, packed as a wheel."""
    import hinge

    path, package = folder / "hinge-0.0.0-py3-none-any.whl", Path(hinge.__file__).parent
    with zipfile.ZipFile(path, "w") as wheel:
        for file in package.rglob("*"):
            if file.is_file() and file.suffix != ".pyc":
                wheel.write(file, Path("hinge") / file.relative_to(package))
        wheel.writestr("hinge-0.0.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hinge\nVersion: 0.0.0\n")
    return path


def test_the_last_release_is_a_rival_and_its_version_is_told(tmp_path):
    table = tmp_path / "bench" / "fit.csv"
    words = ["--release", wheel_of_ours(tmp_path), "--arenas", "fit", "--folder", table.parent]
    chosen = [
        "--sets",
        "generated",
        "--losses",
        "logistic",
        "--Cs",
        "1",
        "--packages",
        "hinge,release",
        "--threads",
        "1",
    ]
    run("compare/bench.py", *words, "--", *chosen)
    versions = {row["package"]: row["version"] for row in runs(table)}
    assert versions.keys() == {"hinge", "release"}
    assert versions["release"] == "0.0.0" != versions["hinge"]
    page = (table.parent / "bench.md").read_text("utf-8")
    assert "| arena | release, 1 thread |" in page
    assert "was not measured" not in page
    assert "no rival here: liblinear, multicore, sklearn, snapml" in page
    assert (table.parent / "fit.png").exists() or not importlib.util.find_spec("matplotlib")


FIT = "set,loss,C,package,threads,solver,tol,seconds,convert_s,objective,claimed_gap,status,problems,nnz,peak_bytes"


def arena_files(folder):
    """Files of three arenas; at the tightest gap the rival of the fits was stopped."""
    fits = [
        "s,hinge,1,hinge,1,auto,0.1,2.0,0.0,1.0,1e-7,converged,1,10,80",
        "s,hinge,1,liblinear,1,3,0.1,1.0,0.5,1.001,,finished,1,10,80",
        "s,hinge,1,liblinear,1,3,0.01,9.0,0.5,1.00001,,finished,1,10,80",
    ]
    search = ["set,loss,tool,threads,seconds", "s,logistic,hinge,1,2.0", "s,logistic,liblinear,1,>8"]
    reader = ["set,reader,seconds", "s,hinge 1,2.0", "s,hinge 2,1.0", "s,scikit-learn,5.0"]
    old = ["set,reader,seconds", "s,hinge 1,3.0", "s,hinge 2,0.5"]
    for name, lines in {"fit": [FIT, *fits], "search": search, "reader": reader, "reader-release": old}.items():
        (folder / f"{name}.csv").write_text("\n".join([f"# made of {name}", *lines]) + "\n")


def test_one_table_of_all_arenas(tmp_path, compare):
    bench = compare("bench")
    arena_files(tmp_path)
    found = {(f.arena, f.case, f.rival): str(f) for f in bench.publish(tmp_path)}
    assert found == {
        ("fit", "s hinge 1, gap 0.01", "liblinear, 1 thread"): "0.75x",
        ("fit", "s hinge 1, gap 0.0001", "liblinear, 1 thread"): "4.75x",
        ("fit", "s hinge 1, gap 1e-06", "liblinear, 1 thread"): ">4.75x",
        ("search", "s logistic", "liblinear, 1 thread"): ">4.00x",
        ("reader", "s", "sklearn, 1 thread"): "2.50x",
        ("reader", "s", "release, 1 thread"): "1.50x",
        ("reader", "s", "release, 2 threads"): "0.50x",
    }
    page = (tmp_path / "bench.md").read_text("utf-8")
    behind = page.split("## Cases below 1.0x")[1].split("##")[0].split("\n- ")[1:]
    assert [line.strip() for line in behind] == [
        "reader, s, release, 2 threads: 0.50x",
        "fit, s hinge 1, gap 0.01, liblinear, 1 thread: 0.75x",
    ]
    assert "| fit, gap 0.01 | 0.75x (1 cases) |" in page
    assert "- made of reader" in page
    assert "was not measured" not in page
    (tmp_path / "reader-release.csv").unlink()
    bench.publish(tmp_path)
    page = (tmp_path / "bench.md").read_text("utf-8")
    assert "the last release was not measured" in page
    assert "release, 1 thread" not in page


def test_cases_that_have_become_slower_are_flagged(tmp_path, compare):
    arena_files(tmp_path)
    compare("bench").publish(tmp_path)
    record, new = tmp_path / "bench.json", tmp_path / "new.json"
    figures = json.loads(record.read_text("utf-8"))["figures"]

    def regress(*words, **changes):
        changed = [{**f, "ratio": f["ratio"] * changes.get(f["arena"], 1.0)} for f in figures]
        new.write_text(json.dumps({"figures": changed}), encoding="utf-8")
        call = [sys.executable, COMPARE / "regress.py", new, record, *words]
        done = subprocess.run(call, capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()

    assert regress() == (0, ["7 cases compared, 0 worse; 0 new, 0 not run"])
    assert regress(reader=0.91) == (0, ["7 cases compared, 0 worse; 0 new, 0 not run"])
    code, said = regress(fit=0.89, reader=1.5)
    # The third figure of the fits is a lower bound, as is that of the search.
    assert (code, len(said)) == (1, 3)
    assert "worse: fit, s hinge 1, gap 0.01, liblinear, 1 thread: 0.67x instead of 0.75x" in said
    assert regress("--share", "0.2", fit=0.89)[0] == 0
    figures.clear()
    assert regress()[0] == 1


@pytest.mark.parametrize(("low", "high"), [(0.01, 0.02), (0.3, 0.4), (1e-3, 1e2), (0.011, 0.0115), (2.0, 3.0)])
def test_ticks_are_few_and_inside(compare, low, high):
    pytest.importorskip("matplotlib")
    picture = compare("picture")
    ticks = picture.ticks(low, high)
    assert 1 <= len(ticks) <= picture.MOST_TICKS
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))


def test_synthetic_documents(compare):
    X, y = compare("zipf").zipf(3e5)
    again, _ = compare("zipf").zipf(3e5)
    assert abs(X - again).max() == 0
    assert X.nnz == pytest.approx(3e5, rel=0.1)
    assert X.has_canonical_format
    assert X.indices.dtype == np.int32
    assert X.data.dtype == np.float32
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0, rtol=1e-5)
    assert set(y) == {-1.0, 1.0}
    # Share of documents with the word of rank r, drawn 82 times on average: 1 - exp(-82 p), p as 1 / (r + 2).
    frequency = np.sort(np.bincount(X.indices))[::-1]
    drawn = 1.0 / (np.arange(X.shape[1]) + 2.0)
    expected = X.shape[0] * -np.expm1(-82 * drawn / drawn.sum())
    np.testing.assert_allclose(frequency[:200:20], expected[:200:20], rtol=0.1)


@pytest.mark.parametrize(
    ("script", "words", "count"),
    [
        ("growth.py", ["--largest", "1e6", "--losses", "squared_hinge"], 4),
        ("reader.py", ["--sets", "zipf-1e5", "--repeat", "1"], 4),
        ("presolve_cost.py", ["--sets", "zipf-1e6", "--repeat", "1"], 2),
        ("dense.py", ["--sets", "generated", "--scales", "10"], 4),
        ("store_solvers.py", ["--sets", "generated", "--losses", "logistic", "--tols", "1e-2"], 2),
        ("store_solvers.py", ["--sets", "generated", "--losses", "logistic", "--search"], 1),
        ("search_solvers.py", ["--sets", "generated", "--limit", "60"], 3),
    ],
)
def test_smaller_measurements(tmp_path, script, words, count):
    table = tmp_path / "table.csv"
    run(f"compare/{script}", *words, "--output", table)
    rows = read(table)
    assert len(rows) == count
    timed = {"presolve_cost.py": "copy_s", "store_solvers.py": "newton"}.get(script, "seconds")
    assert all(float(row[timed]) > 0 for row in rows)


@pytest.mark.parametrize(
    ("arena", "name", "loss"),
    [("memory", "generated", "logistic"), ("shards", "generated", "hinge"), ("store", "generated4", "multinomial")],
)
def test_gaps_of_every_arena_are_not_below_the_distance(tmp_path, arena, name, loss):
    path = tmp_path / "table.csv"
    words = ["--arena", arena, "--sets", name, "--losses", loss, "--Cs", "1", "--tols", "1e-2", "--repeat", "1"]
    said = run("compare/tightness.py", *words, "--output", path)
    rows = runs(path)
    assert len(rows) == 2
    for row in rows:
        assert row["status"] == "converged"
        assert float(row["gap"]) <= 1e-2
        assert 1 - 1e-6 <= float(row["ratio"]) < 100
    assert f"above it 0 of {len(rows)})" in said


def test_sparse_models_are_compared_at_the_same_distance():
    words = ["--sets", "generated", "--losses", "logistic", "--rivals", "liblinear", "--repeat", "1"]
    said = run("compare/l1.py", *words, "--shares", "0.1", "0.5")
    for target, mean in re.findall(r"(\S+): (\S+)", said[said.index("geometric means at") :]):
        assert float(target) in {1e-2, 1e-4, 1e-6}
        assert float(mean) > 0
    assert said.count("best / hinge") == 2
    for way, gap, count in (("--path", 1e-4, 6), ("--search", 1e-3, None)):
        said = run("compare/l1.py", *words, way, "--values", "6")
        told = re.search(r"liblinear +(\S+) s, (\S+)x, tolerance (\S+), up to (\S+) above", said)
        assert float(told[4]) <= gap
        assert count is None or f"{way[2:]} of {count} values" in said


@pytest.fixture
def rounds(monkeypatch):
    """The driver that counts rounds without a cluster."""
    monkeypatch.syspath_prepend(BENCHES)
    monkeypatch.syspath_prepend(BENCHES / "compare")
    return importlib.import_module("cluster_rounds")


@pytest.mark.parametrize(("loss", "n_shards"), [("squared_hinge", 2), ("logistic", 3), ("hinge", 2)])
def test_rounds_of_shards_are_those_of_a_cluster(rounds, loss, n_shards):
    distributed = pytest.importorskip("distributed")
    import dask
    import hinge.dask

    random = np.random.default_rng(1)
    X = random.standard_normal((600, 12)).astype(np.float32)
    y = np.where(X[:, 0] + random.standard_normal(600) > 0, "yes", "no")
    parts = [(X[k::n_shards], y[k::n_shards]) for k in range(n_shards)]
    plain = rounds.plain_estimator(loss, 0.5, 1e-4)
    found = rounds.fit_over_shards(parts, plain, loss, 60.0)
    options = {"processes": False, "dashboard_address": ":0"}
    cluster = distributed.LocalCluster(n_workers=n_shards, threads_per_worker=1, **options)
    with cluster, distributed.Client(cluster) as client:
        more = {} if loss == "logistic" else {"loss": loss}
        estimator = hinge.dask.LogisticRegression if loss == "logistic" else hinge.dask.LinearSVC
        model = estimator(C=0.5, tol=1e-4, **more).fit([dask.delayed(part) for part in parts], client=client)
    np.testing.assert_array_equal(found.result["coef"], model.coef_)
    assert found.shards.rounds == model.traffic_.rounds > found.shards.vectors > 0
    # A request goes to each worker once, however many of the shards it has.
    assert model.traffic_.n_workers == n_shards
    assert (found.shards.sent, found.shards.received) == (model.traffic_.bytes_sent, model.traffic_.bytes_received)


def test_rounds_of_shards_in_one_process(rounds):
    words = ["--sets", "generated", "--C", "0.5", "2", "--shards", "3"]
    header, *lines = run("cluster_rounds.py", *words).splitlines()
    rows = [dict(zip(header.split(), line.split(), strict=True)) for line in lines]
    assert [(row["loss"], row["C"]) for row in rows] == [(loss, C) for loss in rounds.LOSSES for C in ("0.5", "2")]
    for row in rows:
        assert float(row["ratio"]) == pytest.approx(int(row["rounds"]) / float(row["passes"]), abs=0.05)
        assert 0 < int(row["vectors"]) < int(row["rounds"])
        assert float(row["gap"]) <= 1e-4
        # A vector of 41 columns to each shard and back, a triangle of them at most.
        assert 8 * 41 * 3 < float(row["bytes/vector"]) < 2 * 8 * 41 * 42 * 3
        assert float(row["bytes/round"]) < float(row["bytes/vector"])


def test_rounds_of_a_fit_over_the_limit_are_at_least_those_so_far(rounds):
    import tasks

    task = tasks.load("generated")
    found = rounds.fit_over_shards([(task.X, task.y)], rounds.plain_estimator("hinge", 1.0, 1e-4), "hinge", 0.0)
    assert (found.result, found.shards.rounds) == (None, 0)
    found.shards.rounds, found.shards.sent = 7, 700
    assert {">7", ">3.50", "100", "-"} < set(rounds.line_of(("generated", "hinge", 1.0), 2.0, found))


def read(path):
    with path.open(encoding="utf-8") as file:
        assert next(file).startswith("# ")
        return list(csv.DictReader(file))


def test_the_page_of_the_cost_plane_is_that_of_its_record():
    sys.path.insert(0, str(BENCHES / "papers"))
    try:
        import wesierski16_page
    finally:
        sys.path.pop(0)
    record = BENCHES / "record"
    found = json.loads((record / "wesierski16.json").read_text("utf-8"))
    names = {name: "wesierski16-" + name.replace(",", "").replace(" ", "-") + ".png" for name in found["settings"]}
    assert wesierski16_page.page(found, names) == (record / "wesierski16.md").read_text("utf-8")
    assert all((record / picture).stat().st_size > 10_000 for picture in [*names.values(), "wesierski16-errors.png"])
    assert all(row["facets"] == row["PPOPT facets"] for row in found["ppopt"])
