"""A wheel as a stranger meets it: fresh environments without Rust, the first example of the README, and fast tests.

Usage: ``python tests/wheel.py dist/hinge-*.whl [interpreter ...]``; without interpreters, all from 3.11 on that are
on the path. Tests run from a copy, so that nothing of the checkout but them can be imported. A source distribution
(``dist/hinge-*.tar.gz``) is unpacked elsewhere and installed from there, which alone takes Rust; then the same.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ("cargo", "rustc", "rustup", "maturin")
CANDIDATES = ("python3", "python3.11", "python3.12", "python3.13", "python3.14")
# What these files need; the test extra has packages that are compiled where they have no wheel.
PACKAGES = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "pandas", "polars", "safetensors")
# Of these there are no wheels for Pythons without a lock; tests/python/test_estimators.py is then left out.
LOCKED_ONLY = ("polars",)
FAST = ("test_golden.py", "test_estimators.py", "test_serving.py", "test_model_file.py", "test_validate.py")


def without_rust():
    """The environment of a machine that has no Rust and knows nothing of this checkout."""
    folders = os.environ["PATH"].split(os.pathsep)
    usable = [folder for folder in folders if not any(shutil.which(tool, path=folder) for tool in TOOLS)]
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return kept | {"PATH": os.pathsep.join(usable)}


def version_of(interpreter):
    """Its version if it is 3.11 or later and can make environments, else None."""
    code = "import sys, venv, ensurepip; print(*sys.version_info[:3], sep='.')"
    try:
        done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True)
    except OSError:
        return None
    version = done.stdout.strip()
    return version if done.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 11) else None


def interpreters(given):
    """Version and path of each, one of a version."""
    found = {}
    for name in given or CANDIDATES:
        path = shutil.which(name)
        version = path and version_of(path)
        if version:
            found.setdefault(version, path)
        elif given:
            raise SystemExit(f"{name} is no Python of 3.11 or later that makes virtual environments")
    if not found:
        raise SystemExit(f"none of {', '.join(CANDIDATES)} is on the path")
    return found


def example():
    """The first block of Python of the README."""
    return re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[1]


def unpacked(source, folder):
    """The folder of a source distribution, unpacked within ``folder``."""
    with tarfile.open(source) as archive:
        archive.extractall(folder / "source", filter="data")
    (only,) = (folder / "source").iterdir()
    return only


def tried(interpreter, distribution, folder):
    """Install and use it in ``folder``; seconds until the example has run, and the last line of the tests."""
    start, environment = time.monotonic(), without_rust()
    with_rust = environment | {"PATH": os.environ["PATH"]}

    def run(*call, env=environment):
        done = subprocess.run(call, cwd=folder, env=env, text=True, stdout=subprocess.PIPE)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, call))} failed:\n{done.stdout}")
        return done.stdout

    run(interpreter, "-m", "venv", "env")
    python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    is_source = distribution.name.endswith(".tar.gz")
    what = unpacked(distribution, folder) if is_source else distribution
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*install, what, env=with_rust if is_source else environment)
    run(python, "-c", example())
    seconds = time.monotonic() - start
    has_lock = run(python, "-c", "import sysconfig; print(not sysconfig.get_config_var('Py_GIL_DISABLED'))") == "True\n"
    run(*install, *(name for name in PACKAGES if has_lock or name not in LOCKED_ONLY))
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("rust", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    files = [f"tests/python/{name}" for name in FAST if has_lock or name != "test_estimators.py"]
    said = run(python, "-m", "pytest", "-n", "2", *files)
    return seconds, said.splitlines()[-1]


def main(distribution, *given):
    """Try the wheel or the source distribution with every interpreter."""
    distribution = Path(distribution).resolve(strict=True)
    print(f"{distribution.name}: {distribution.stat().st_size / 1e6:.2f} MB")
    for version, path in interpreters(given).items():
        with tempfile.TemporaryDirectory() as folder:
            seconds, tests = tried(path, distribution, Path(folder))
        print(f"Python {version}: installed and the README's example run in {seconds:.0f} s; {tests}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
