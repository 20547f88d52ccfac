"""To import the package is light: a name brings its module at its first use, and some names never bring SciPy."""

import ast
import importlib
import os
import pickle
import statistics
import subprocess
import sys
import types
from pathlib import Path

import hinge
import numpy as np
import pytest
from source_code import python_files

HEAVY = ("sklearn", "scipy", "pandas", "polars", "matplotlib", "joblib", "threadpoolctl", "rich", "pyarrow")

LOADED = f"""
import sys
print(*sorted(set({HEAVY}) & set(sys.modules)))
"""


def python(code, *options, arguments=()):
    """What a new interpreter prints."""
    call = [sys.executable, "-W", "error", *options, "-c", code, *map(os.fspath, arguments)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def svmlight_file(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("+1 1:0.5 3:2\n-1 2:1 3:1 3:2\n")  # column 3 twice
    return path


# What is loaded.


def test_the_package_loads_the_extension_and_nothing_else():
    code = "import hinge, sys; print(*sorted(name for name in sys.modules if name.partition('.')[0] == 'hinge'))"
    assert python(code + LOADED) == "hinge hinge._native\n\n"


@pytest.mark.parametrize(
    "code",
    [
        "hinge.load_svmlight(sys.argv[1], matrix='arrays')",
        "hinge.load_svmlight(sys.argv[1], matrix='arrays', n_jobs=2, dtype='float32')",
        "hinge.BlockOptions(rounds=5); hinge.Presolve; hinge.Certificate; hinge.InconsistentVersionWarning",
        "hinge.BlockFileError; dir(hinge); hasattr(hinge, 'nothing')",
    ],
)
def test_light_names_load_neither_scipy_nor_scikit_learn(code, svmlight_file):
    assert python(f"import hinge, sys\n{code}\n{LOADED}", arguments=[svmlight_file]) == "\n"


def test_a_matrix_of_scipy_does_not_need_scikit_learn(svmlight_file):
    code = "import hinge, sys; hinge.load_svmlight(sys.argv[1])" + LOADED
    assert python(code, arguments=[svmlight_file]) == "scipy\n"


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_command_line_is_light(option):
    code = f"""
import sys
from hinge import cli
try:
    cli.main([{option!r}])
except SystemExit as end:
    print(end.code)
print("numpy" in sys.modules)
"""
    lines = python(code + LOADED).splitlines()
    assert lines[-3:] == ["0", "False", ""]


# Names.


def declared_imports():
    """Module of each name, as the imports for type checkers say."""
    tree = ast.parse(Path(hinge.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test).endswith("CHECKING"))
    assert all(isinstance(node, ast.ImportFrom) for node in block.body)
    return {alias.name: node.module.removeprefix("hinge.") for node in block.body for alias in node.names}


def test_the_lists_of_names_agree():
    assert declared_imports() == hinge._MODULES
    assert sorted({*hinge._MODULES, "BlockFileError", "ModelFileError", "__version__"}) == sorted(hinge.__all__)


def test_every_name_comes_from_its_module():
    for name, module in hinge._MODULES.items():
        thing = getattr(hinge, name)
        assert thing is getattr(importlib.import_module(f"hinge.{module}"), name)
        assert thing.__module__ == f"hinge.{module}"
        assert vars(hinge)[name] is thing  # found without __getattr__ from now on
    assert all(hasattr(hinge, name) for name in hinge.__all__)


def test_no_module_has_the_name_of_something_else():
    """``import hinge.name`` would put the module in its place."""
    files = {path.stem for path in Path(hinge.__file__).parent.glob("*.py")}
    assert not files & set(hinge.__all__) - {"__init__"}


def test_names_are_listed_before_they_are_loaded():
    code = "import hinge; print(set(hinge.__all__) <= set(dir(hinge)), 'LinearSVC' in vars(hinge))"
    assert python(code) == "True False\n"
    assert dir(hinge) == sorted(set(dir(hinge)))


def test_a_star_brings_all_names():
    code = "from hinge import *; import hinge; print(all(name in globals() for name in hinge.__all__))"
    assert python(code) == "True\n"


def test_public_modules_are_attributes():
    assert python("import hinge; print(hinge.blocks.BlockStore is hinge.BlockStore)") == "True\n"
    public = {module for module in hinge._MODULES.values() if not module.startswith("_")}
    assert all(isinstance(getattr(hinge, name), types.ModuleType) for name in public)


def test_an_unknown_name_is_an_attribute_error():
    for name in ("LinearSVM", "_nothing", "sklearn"):
        with pytest.raises(AttributeError, match=f"^module 'hinge' has no attribute '{name}'$"):
            getattr(hinge, name)
    with pytest.raises(ImportError, match="cannot import name 'LinearSVM' from 'hinge'"):
        from hinge import LinearSVM  # noqa: F401


THREADS = """
import hinge, threading
names = [name for name in hinge.__all__ if name not in vars(hinge)] * 2 + ["blocks", "svm"]
gate, found = threading.Barrier(len(names)), {}
def load(k):
    gate.wait()
    found[k] = getattr(hinge, names[k])
threads = [threading.Thread(target=load, args=(k,)) for k in range(len(names))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(100)
print([name for k, name in enumerate(names) if found.get(k) is not getattr(hinge, name)])
"""


@pytest.mark.parametrize("run", range(3))
def test_threads_may_load_names_at_once(run):
    assert python(THREADS) == "[]\n"


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("delay", [0.02, 0.1, 0.3])
def test_a_load_that_is_interrupted_is_finished_first(delay):
    """Python cannot import a package again that was left half imported."""
    code = f"""
import hinge, os, signal, threading, time
def interrupt():
    time.sleep({delay})
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    hinge.LinearSVC
    time.sleep(5)
except KeyboardInterrupt:
    print("interrupted", "sklearn.base" in sys.modules)
hinge.LogisticRegression().fit([[0.0], [1.0]], [0, 1])
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    assert python("import sys" + code) == "interrupted True\nTrue\n"


def test_no_module_asks_the_package_for_what_is_loaded_at_first_use():
    """A thread that loads such a module could wait for another one that waits for it."""
    lazy = {*hinge._MODULES, *(name for name in hinge._MODULES.values() if not name.startswith("_"))}
    for path in python_files("python/hinge"):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        named = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "hinge"]
        assert not {alias.name for node in named for alias in node.names} & lazy, path
        assert "hinge" not in whole, path


def test_pickles_load_before_any_name_was_used():
    model = hinge.LinearSVC().fit(np.eye(4), [0, 1, 0, 1])
    written = pickle.dumps((model, model.certificate_, hinge.BlockOptions())).hex()
    code = f"import hinge, pickle; print(*[type(k).__name__ for k in pickle.loads(bytes.fromhex('{written}'))])"
    assert python(code) == "LinearSVC Certificate BlockOptions\n"


# Time and memory beyond NumPy's: bounds far above what they are, but below what scikit-learn or SciPy would add.

COST = """
import sys, time
import numpy
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
memory, start = resident(), time.perf_counter()
import hinge
print(time.perf_counter() - start, resident() - memory)
"""


@pytest.mark.skipif(not os.path.isfile("/proc/self/statm"), reason="memory by /proc")
def test_to_import_is_quick_and_small():
    seconds, memory = zip(*(map(float, python(COST).split()) for _ in range(5)), strict=True)
    assert statistics.median(seconds) < 0.15
    assert statistics.median(memory) < 20e6
