"""The text of the demo: docstrings of the packages that are installed beside this one.

The task is to tell from a docstring which package it comes from. What would make it too easy is taken out:
names of the packages are removed from all texts, and a text that occurs twice is kept once. The source file
of each docstring is kept, so that a split can put all docstrings of a file on one side.

Files are read, never imported. The order is that of sorted paths: an installation always gives the same data.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

MIN_LENGTH = 60
"""Characters of the shortest docstring that counts."""

MIN_DOCSTRINGS = 40
"""Docstrings of the smallest package that counts."""

MIN_FILES = 5
"""Files with docstrings of the smallest package that counts: one per part of a split into five."""

MAX_FILES = 60
"""Files read per package, evenly spaced in the sorted list."""

MAX_DOCSTRINGS = 250
"""Docstrings kept per package, evenly spaced in the order of reading."""

# Tests, and copies of other packages inside a package.
_SKIPPED = frozenset({"test", "tests", "vendor", "_vendor", "externals", "site-packages", "dist-packages"})

T = TypeVar("T")

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Docstrings:
    """Texts with the package and the file each comes from; three tuples of one length.

    Attributes
    ----------
    texts : tuple of str
        Docstrings without the names of packages.
    packages : tuple of str
        Name of the package.
    files : tuple of str
        Path of the source file.

    """

    texts: tuple[str, ...]
    packages: tuple[str, ...]
    files: tuple[str, ...]


def installed_folders() -> list[Path]:
    """Folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    return list(dict.fromkeys(Path(paths[name]) for name in ("stdlib", "purelib", "platlib")))


def collect(folders: Iterable[Path]) -> Docstrings:
    """Docstrings of all packages in the folders that have enough of them.

    A package is a folder with ``__init__.py``; a name that comes again in a later folder is passed over.
    """
    kept: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for package in _packages(folders):
        found = []
        for file in _files(package):
            new = [text for text in dict.fromkeys(_docstrings(file)) if text not in seen]
            seen.update(new)
            found += [(text, str(file)) for text in new]
        found = _evenly_spaced(found, MAX_DOCSTRINGS)
        if len(found) >= MIN_DOCSTRINGS and len({file for _, file in found}) >= MIN_FILES:
            kept[package.name] = found
    name = _name_pattern(kept)
    rows = [(name.sub(" ", text), package, file) for package, found in kept.items() for text, file in found]
    texts, packages, files = zip(*rows, strict=True) if rows else ((), (), ())
    return Docstrings(texts, packages, files)


def _packages(folders: Iterable[Path]) -> Iterator[Path]:
    seen: set[str] = set()
    for folder in folders:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.name not in _SKIPPED | seen and (path / "__init__.py").is_file():
                seen.add(path.name)
                yield path


def _files(package: Path) -> list[Path]:
    files = (path for path in package.rglob("*.py") if _SKIPPED.isdisjoint(path.relative_to(package).parts))
    return _evenly_spaced(sorted(files), MAX_FILES)


def _docstrings(file: Path) -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes in other people's strings
            tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return  # templates and files of other Python versions
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            text = ast.get_docstring(node) or ""
            if len(text) >= MIN_LENGTH:
                yield text


def _name_pattern(packages: Iterable[str]) -> re.Pattern[str]:
    """Matches any of the names as a word of its own, in any case."""
    names = "|".join(map(re.escape, packages))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9])", re.IGNORECASE)


def _evenly_spaced(items: list[T], at_most: int) -> list[T]:
    if len(items) <= at_most:
        return items
    return [items[k * len(items) // at_most] for k in range(at_most)]
