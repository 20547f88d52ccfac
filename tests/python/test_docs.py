"""What is written about the package is so."""

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import itertools
import json
import os
import pkgutil
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import hinge
import numpy as np
import pytest
from hinge import _native
from hinge._linear import LinearClassifier

ROOT = Path(__file__).parents[2]

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

DOCUMENTED = [
    hinge.LinearSVC,
    hinge.LinearSVCCV,
    hinge.LogisticRegression,
    hinge.LogisticRegressionCV,
    hinge.PegasosClassifier,
    hinge.SubgradientSVC,
    hinge.Poly2Map,
    hinge.BlockOptions,
    hinge.select_C,
    hinge.load_svmlight,
]

# Parameter -> constant of the native module.
NATIVE = {
    "max_iter": "DEFAULT_MAX_ITER",
    "C_max": "DEFAULT_C_MAX",
    "ratio": "DEFAULT_RATIO",
    "select_tol": "DEFAULT_SEARCH_TOL",
}

CLASSES = DOCUMENTED[:4]

documented = pytest.mark.parametrize("what", DOCUMENTED, ids=lambda what: what.__name__)


def modules():
    found = pkgutil.iter_modules(hinge.__path__, "hinge.")
    return ["hinge", *(module.name for module in found if module.name not in ("hinge.__main__", "hinge._native"))]


@pytest.mark.parametrize("name", modules())
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@documented
def test_everything_public_has_an_example(what):
    assert ">>> " in inspect.getdoc(what)


BLOCK = re.compile(r"^```(python|output|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LOOSE = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page):
    """Blocks of a page: language, text, number of the first line; what a block has to print, or None."""
    text = page.read_text("utf-8")
    found = [(match[1], match[2], text[: match.start(2)].count("\n") + 1) for match in BLOCK.finditer(text)]
    for (kind, code, line), following in itertools.pairwise([*found, ("", "", 0)]):
        if kind != "output":
            yield kind, code, line, following[1] if following[0] == "output" else None


def printed_by_python(page, code, line, names):
    """What a block prints; an error of hinge's or a warning that ends it is the last line, as in a traceback."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
        except Exception as error:
            return printed.getvalue() + f"{type(error).__name__}: {error}\n", error
    return printed.getvalue(), None


def run_by_shell(code, environment):
    """A block of shell, if all it calls can be had here: hinge, and what every Unix has."""
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith("#")]
    if not all(re.match(r"(hinge|python -m hinge|printf|zcat|head|cat|gzip|mkdir) ", line) for line in lines):
        return ""
    command = ["bash", "-euo", "pipefail", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, f"{code}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def shell(tmp_path_factory):
    """The environment of a shell in which hinge is installed."""
    folder = tmp_path_factory.mktemp("bin")
    for name, call in {"hinge": "-m hinge", "python": ""}.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        path.chmod(0o755)
    package = str(Path(hinge.__file__).parents[1])
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": package}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_of_pages(page, tmp_path, monkeypatch, shell):
    """Every block runs, one after the other in one folder, and prints what stands below it."""
    monkeypatch.chdir(tmp_path)
    run_blocks(page, shell)


def run_blocks(page, shell):
    """All blocks of a page; returns the names they leave."""
    names = {"__name__": "page"}
    for kind, code, line, expected in blocks(page):
        where, error = f"{page.name}, line {line}", None
        if kind == "sh":
            printed = run_by_shell(code, shell)
        elif code.lstrip().startswith(">>> "):
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), 0)
            assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0
            continue
        else:
            printed, error = printed_by_python(page, code, line, names)
        if expected is not None:
            assert doctest.OutputChecker().check_output(expected, printed, LOOSE), f"{where} printed:\n{printed}"
        elif error is not None:
            raise error
    return names


def test_server_of_the_first_page_answers(tmp_path, monkeypatch, shell):
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "first-steps.md"
    names = run_blocks(page, shell)
    question = re.search(r"curl --data '(.*)' ", page.read_text("utf-8"))[1]
    server = names["ThreadingHTTPServer"](("127.0.0.1", 0), names["Answer"])
    names["Answer"].log_message = lambda *_: None
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        port = server.server_address[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}", question.encode(), timeout=30) as answer:
            assert json.load(answer) == {"came back": "yes"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_every_page_is_found_from_the_first_one():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    listed = {line.split("<")[-1].strip(" >") for line in index.splitlines()}
    missing = [page.name for page in PAGES if page.parent.name == "docs" and page.stem not in {*listed, "index"}]
    assert not missing, f"docs/index.md does not list: {', '.join(missing)}"


def test_reference_has_every_public_name():
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    listed = re.findall(r"^   (\w+)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(set(hinge.__all__) - {"__version__"})


def test_table_of_routes_has_every_constant_and_its_value():
    source = (ROOT / "src" / "fit" / "routes.rs").read_text("utf-8")
    numbers = dict(re.findall(r"^pub const (\w+): (?:f64|usize) = (.+);$", source, re.MULTILINE))
    patience = re.findall(
        r"^pub const (\w+): Patience = Patience { before: (.+), further: (.+) };$", source, re.MULTILINE
    )
    stop = r"share: (.+), epochs: (.+), between_jumps: (.+), noise: (.+)"
    inner = re.findall(rf"^pub const (\w+): InnerStop = InnerStop {{ {stop} }};$", source, re.MULTILINE)
    known = {name: number(text) for name, text in numbers.items()}
    known |= {name: tuple(map(number, texts)) for name, *texts in [*patience, *inner]}
    page = (ROOT / "docs" / "which-solver.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \|", page, re.MULTILINE)
    parts = {name: tuple(map(number, re.split(", | and ", text))) for name, text in rows}
    said = {name: values if len(values) > 1 else values[0] for name, values in parts.items()}
    assert said == known
    assert len(re.findall(r"^pub const ", source, re.MULTILINE)) == len(known)


def number(text):
    """A number as Rust and as people write it."""
    left, _, shift = text.replace("_", "").replace(",", "").partition("<<")
    return float(left) * 2 ** int(shift or 0)


@pytest.fixture
def performance(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "tools")
    return importlib.import_module("performance")


def test_tables_of_the_page_on_speed_are_those_of_the_record(performance, tmp_path):
    record = ROOT / "benches" / "record"
    performance.write(record, tmp_path)
    figures = json.loads((record / "bench.json").read_text("utf-8"))["figures"]
    behind = [figure for figure in figures if figure["ratio"] < 1]
    lines = (tmp_path / "behind.md").read_text("utf-8").splitlines()
    assert lines[0] == f"{len(behind)} of {len(figures)} cases are below 1."
    assert len(lines) == len(behind) + 4
    ratios = [f["ratio"] for f in figures if (f["arena"], f["rival"]) == ("search", "liblinear, 1 thread")]
    assert f"{np.exp(np.log(ratios).mean()):.1f}x ({len(ratios)})" in (tmp_path / "means.md").read_text("utf-8")
    included = re.findall(r"^```{include} generated/(\w+)\.md", (ROOT / "docs/performance.md").read_text("utf-8"), re.M)
    assert set(included) == {path.stem for path in tmp_path.iterdir()}


@pytest.mark.parametrize("look", ["light", "dark"])
def test_picture_of_the_read_me_is_of_the_record(performance, look):
    """Else run ``python docs/tools/figures.py``."""
    picture = (ROOT / "docs" / "pictures" / f"speed-{look}.svg").read_text("utf-8")
    found = performance.groups(performance.read(ROOT / "benches" / "record")["figures"])
    drawn = re.findall(r">(\d+\.\d)x<", picture)
    means = [f"{performance.mean(ratios):.1f}" for group in found.values() for ratios in group.values()]
    assert len(drawn) == 6
    assert set(drawn) <= set(means)
    assert "{:.1f}".format(performance.mean(found["the search for C"]["liblinear, 1 thread"])) in drawn


def test_targets_of_make_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = page.read_text("utf-8")
        named = set(re.findall(r"(?:^|`)make ([\w-]+)", text, re.MULTILINE))
        assert named <= targets, page.name


def test_names_of_the_page_for_users_of_scikit_learn_exist():
    text = (ROOT / "docs" / "coming-from-scikit-learn.md").read_text()
    options = set(re.findall(r"`(?:\w+\()?(\w+)=", text))
    known = {name for what in DOCUMENTED for name in signature_defaults(what)}
    theirs = {"refit", "dual", "penalty", "positive", "loss"}
    assert options <= known | theirs


# Parameters and defaults.


def sections(what):
    """The sections of a numpydoc text."""
    parts = re.split(r"^(.+)\n-+$", inspect.getdoc(what), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(what):
    """Names of the documented parameters, and the default of each that has one."""
    lines = re.findall(r"^(\w[\w, ]*?)(?: : (.*))?$", sections(what)["Parameters"], re.MULTILINE)
    names = [name for line, _ in lines for name in line.split(", ")]
    defaults = {}
    for name, kind in lines:
        if match := re.search(r"default=(.+)$", kind):
            defaults[name] = value(match[1])
    return names, defaults


def value(text):
    return getattr(np, text.removeprefix("numpy.")) if text.startswith("numpy.") else ast.literal_eval(text)


def signature_defaults(what):
    parameters = inspect.signature(what).parameters.values()
    return {p.name: p.default for p in parameters if p.name != "self"}


@documented
def test_every_parameter_is_described_once(what):
    names, _ = described(what)
    assert sorted(names) == sorted(signature_defaults(what))


@documented
def test_described_defaults_are_those_of_the_signature(what):
    _, defaults = described(what)
    signature = signature_defaults(what)
    assert defaults == {name: signature[name] for name in defaults}


@documented
def test_defaults_are_described_here_or_in_the_place_named(what):
    """Every parameter has its default written, or its line says which class describes it, and that agrees."""
    _, defaults = described(what)
    elsewhere = described(hinge.LinearSVC)[1]
    for name, default in signature_defaults(what).items():
        if default is not inspect.Parameter.empty and name not in defaults:
            assert not isinstance(what, type), name
            assert elsewhere[name] == default, name


ESTIMATORS = [what for what in DOCUMENTED if isinstance(what, type) and issubclass(what, LinearClassifier)]


@pytest.mark.parametrize("what", ESTIMATORS)
def test_help_of_an_estimator_explains_everything_itself(what):
    text = inspect.getdoc(what)
    assert "As in" not in text
    for section in ("Parameters", "Attributes"):
        lines = sections(what)[section].strip("\n").split("\n")
        headers = [line for line in lines if line and not line.startswith(" ")]
        assert all(re.match(r"\w+ : ", line) for line in headers), headers
    parameters = re.split(r"^(?=\w)", sections(what)["Parameters"].strip("\n"), flags=re.MULTILINE)
    silent = [entry for entry in parameters if entry and "\n    " not in entry]
    assert not silent or silent == [entry for entry in silent if entry.startswith("loss : ")]


@pytest.mark.parametrize("what", ESTIMATORS)
def test_methods_say_what_they_raise(what):
    for name in ("fit", "predict", "decision_function", "score", "predict_proba", "predict_log_proba"):
        if hasattr(what, name):
            assert "ValueError" in sections(getattr(what, name))["Raises"], name


@documented
def test_defaults_are_those_of_the_native_module(what):
    descents = (hinge.PegasosClassifier, hinge.SubgradientSVC)
    tol = "DEFAULT_DESCENT_TOL" if what in descents else "DEFAULT_TOL"
    tol = "DEFAULT_SEARCH_TOL" if what is hinge.select_C else tol
    constants = {**NATIVE, "tol": tol}
    for name, default in signature_defaults(what).items():
        if name in constants:
            assert default == getattr(_native, constants[name]), name


@pytest.mark.parametrize("what", CLASSES)
def test_methods_describe_their_parameters(what):
    for name in ("fit", "predict", "decision_function"):
        method = getattr(what, name)
        names, _ = described(method)
        assert names == list(signature_defaults(method))


@pytest.mark.filterwarnings("ignore::hinge.NoSkillWarning")
@pytest.mark.parametrize("what", [*CLASSES, hinge.PegasosClassifier, hinge.SubgradientSVC])
def test_fitted_attributes_are_described(what):
    X, y = np.eye(9, 3), np.arange(9) % 3
    few = {"cv": 3} if what.__name__.endswith("CV") else {"C": 0.01, "tol": 0.1} if what is hinge.SubgradientSVC else {}
    model = what(**few).fit(X, y)
    text = sections(what)["Attributes"]
    names = {name for line in re.findall(r"^(\w[\w, ]*?)(?: :|$)", text, re.MULTILINE) for name in line.split(", ")}
    properties = {"Cs_", "scores_"} if few == {"cv": 3} else set()
    assert all(hasattr(model, name) for name in properties)
    assert {name for name in vars(model) if name.endswith("_")} == names - properties - {
        "feature_names_in_",
        "coefs_paths_",
        "l1_ratio_",
        "l1_ratios_",
        "calibration_",
        "threshold_",
    }


# The package.


def test_public_names_exist():
    assert hinge.__all__ == sorted(hinge.__all__, key=lambda name: (not name[0].isupper(), name))
    assert all(hasattr(hinge, name) for name in hinge.__all__)
    public = {name for name, thing in vars(hinge).items() if not name.startswith("_") and not inspect.ismodule(thing)}
    assert public == set(hinge.__all__) - {"__version__"}


def test_names_of_the_stub_are_those_of_the_native_module():
    stub = Path(hinge.__file__).with_name("_native.pyi")
    tree = ast.parse(stub.read_text())
    listed = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    variables = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    defined |= {node.target.id for node in variables if ast.unparse(node.annotation) != "TypeAlias"}
    assert set(listed) == defined
    assert defined == {name for name in vars(_native) if name == "__version__" or not name.startswith("__")}


def test_import_is_silent():
    done = subprocess.run([sys.executable, "-W", "error", "-c", "import hinge"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_version():
    from importlib.metadata import version

    assert hinge.__version__ == _native.__version__ == version("hinge")
