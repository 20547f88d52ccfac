"""Writes the golden files and the record of the golden cases.

    python tests/golden/make.py                  what is missing
    python tests/golden/make.py PATTERN ...      anew what has such a name, "fit/logistic/*" or "file/stores/two", say
    python tests/golden/make.py --keep PATTERN   the record of it alone; files that are there stay

**When to run it.** Only when a format or a bit changes on purpose, and then for nothing else than what changes: the
commit says which cases and why (a sum in another order, say), and shows that the certified gaps are as good as before.
A failing test is no reason to run it.

* A case that is new: run it without a pattern.
* Bits of a case that change on purpose: run it with the case's name. Cases that go on from a file (``file/...``) have
  the record of another one; their files stay. Where going on from an old file no longer ends at the same bits, its case
  gets a record of its own (``ENDED_ELSEWHERE``), written with ``--keep``.
* A format that changes: it gets a new version number, and the old files stay as they are, since what they are for is to
  be read; or the test says that they are refused, with which sentence. Files of the new format get names of their own.
* A new version of the package: journals and checkpoints belong to one version, and others refuse them, which is then
  tested with one of each in ``refused``. Write them anew with the new version ("file/journals/*" and
  "file/checkpoints/*"), and its name into ``WRITTEN_BY``.

``record.npz`` holds the numbers of every case; ``record.json`` the digests of the input and of the functions of the C
library, what the stores say of themselves, and what the record was last written with. All was first written by commit
8f60f44 of version 0.1.0; pickles with NumPy 1.26.0, SciPy 1.11.1 and scikit-learn 1.6.0, since newer versions read what
older ones have written, but not the other way round (that of "sigmoid" with those of the record).
"""

from __future__ import annotations

import argparse
import json
import lzma
import platform
import tempfile
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import hinge
import numpy as np
import scipy
import sklearn
from cases import CASES
from files import FILES, FOLDER, STORES, Shelf
from inputs import SETS, digest
from outcome import library_digest

HERE = Path(__file__).parent
NUMBERS, FACTS = HERE / "record.npz", HERE / "record.json"


Record = dict[str, tuple[np.ndarray, np.ndarray]]


def numbers() -> Record:
    """Bits and near numbers of each case that is recorded."""
    if not NUMBERS.exists():
        return {}
    with np.load(NUMBERS) as file:
        record = dict(file)
    parts = ((np.split(record[part], np.cumsum(record[f"{part}_sizes"])[:-1])) for part in ("bits", "near"))
    return {str(name): pair for name, *pair in zip(record["names"], *parts, strict=True)}


def _save_numbers(record: Record) -> None:
    parts = {part: [pair[k] for pair in record.values()] for k, part in enumerate(("bits", "near"))}
    arrays = {part: np.concatenate(pieces) for part, pieces in parts.items()}
    sizes = {f"{part}_sizes": np.array([len(piece) for piece in pieces]) for part, pieces in parts.items()}
    np.savez_compressed(NUMBERS, names=np.array(list(record)), **arrays, **sizes)


def facts() -> dict[str, Any]:
    """The rest of the record."""
    return (
        json.loads(FACTS.read_text("utf-8"))
        if FACTS.exists()
        else {"made_with": {}, "inputs": {}, "stores": {}, "library": {}}
    )


def store_facts(store: hinge.BlockStore) -> dict[str, Any]:
    """What a store says of itself, but for its path."""
    return {name: value for name, value in store.info().items() if name != "path"} | {
        "feature_names": None if store.feature_names is None else list(store.feature_names)
    }


def _versions() -> dict[str, str]:
    """What the record was last written with."""
    packages = {module.__name__: module.__version__ for module in (hinge, np, scipy, sklearn)}
    return packages | {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "vectors": ", ".join(
            sorted(set(_cpu_flags()) & {"avx2", "fma", "avx512f", "avx512vl", "avx512dq", "avx512bw"})
        ),
        "libc": " ".join(platform.libc_ver()),
    }


def _cpu_flags() -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text("ascii").splitlines()
    except OSError:
        return []
    return next((line.split() for line in lines if line.startswith("flags")), [])


def _wanted(names: Iterable[str], there: Iterable[str], patterns: list[str]) -> list[str]:
    """Those that are not there, and those that are asked for."""
    old = set(there)
    return [name for name in names if name not in old or any(fnmatchcase(name, pattern) for pattern in patterns)]


def _write_files(patterns: list[str], folder: Path) -> None:
    there = [f"file/{name}" for name in FILES if (FOLDER / f"{name}.xz").exists()]
    for name in _wanted([f"file/{name}" for name in FILES], there, patterns):
        path, target = folder / "file", FOLDER / f"{name.removeprefix('file/')}.xz"
        FILES[name.removeprefix("file/")](path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(lzma.compress(path.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
        path.unlink()
        print(f"{name}: {target.stat().st_size} bytes")


def _write_record(patterns: list[str], shelf: Shelf) -> None:
    record, other = numbers(), facts()
    own = {name: case for name, case in CASES.items() if case.repeats is None}
    wanted = _wanted(own, record, patterns)
    for name in wanted:
        record[name] = own[name].run(1, shelf).recorded()
        if own[name].uses_library:
            other["library"][name] = library_digest()
        print(f"{name}: {len(record[name][0])} numbers")
    _save_numbers({name: record[name] for name in own})
    other["inputs"] |= {name: digest(name) for name in _wanted(SETS, other["inputs"], patterns)}
    stores = _wanted(
        [f"file/stores/{name}" for name in STORES], (f"file/stores/{s}" for s in other["stores"]), patterns
    )
    for name in (path.removeprefix("file/stores/") for path in stores):
        other["stores"][name] = store_facts(shelf.store(name))
    if wanted or not other["made_with"]:
        other["made_with"] = _versions()
    FACTS.write_text(json.dumps(other, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the golden files and the record of the golden cases.")
    parser.add_argument("patterns", nargs="*", help="what to write although it is there")
    parser.add_argument("--keep", action="store_true", help="write no file that is there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _write_files([] if given.keep else given.patterns, Path(folder))
        _write_record(given.patterns, Shelf(Path(folder)))


if __name__ == "__main__":
    main()
