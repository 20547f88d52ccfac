"""What is written about the package is so."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
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


def blocks(page):
    """Python blocks of a page, each with the number of its first line."""
    text = page.read_text() if page.is_file() else ""
    for match in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        line = text[: match.start(1)].count("\n") + 1
        yield pytest.param(page, match[1], id=f"{page.name} line {line}")


@pytest.mark.parametrize(("page", "code"), [block for page in PAGES for block in blocks(page)])
def test_blocks_of_pages(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    if code.lstrip().startswith(">>> "):
        test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), 0)
        assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0
    else:
        exec(compile(code, str(page), "exec"), names)


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
