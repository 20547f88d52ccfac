"""A wheel as a stranger meets it: fresh environments without Rust, the first example of the README, and fast tests.

Usage: ``python tests/wheel.py dist/hinge-*.whl [interpreter ...]``; without interpreters, all from 3.11 on that are
on the path. Tests run from a copy, so that nothing of the checkout but them can be imported.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ("cargo", "rustc", "rustup", "maturin")
CANDIDATES = ("python3", "python3.11", "python3.12", "python3.13", "python3.14")
# What these files need; the test extra has packages that are compiled where they have no wheel.
PACKAGES = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "pandas", "polars", "safetensors")
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


def tried(interpreter, wheel, folder):
    """Install and use the wheel in ``folder``; seconds until the example has run, and the last line of the tests."""
    start, environment = time.monotonic(), without_rust()

    def run(*call, **options):
        done = subprocess.run(call, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, **options)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, call))} failed:\n{done.stdout}")
        return done.stdout

    run(interpreter, "-m", "venv", "env")
    python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    run(python, "-c", example())
    seconds = time.monotonic() - start
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("rust", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    files = [f"tests/python/{name}" for name in FAST]
    said = run(python, "-m", "pytest", "-n", "2", *files)
    return seconds, said.splitlines()[-1]


def main(wheel, *given):
    """Try the wheel with every interpreter."""
    wheel = Path(wheel).resolve(strict=True)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
    for version, path in interpreters(given).items():
        with tempfile.TemporaryDirectory() as folder:
            seconds, tests = tried(path, wheel, Path(folder))
        print(f"Python {version}: installed and the README's example run in {seconds:.0f} s; {tests}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
