"""The last release beside this version: its wheel, unpacked and not installed, or a Python that has it."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from process import this_python


@contextmanager
def installed(path: str | None) -> Iterator[Mapping[str, str] | None]:
    """Interpreter and folder of packages that have the release; None without a path."""
    if path is None:
        yield None
    elif not path.endswith(".whl"):
        yield {"python": path}
    else:
        with tempfile.TemporaryDirectory(prefix="hinge-release-") as folder:
            zipfile.ZipFile(Path(path)).extractall(folder)
            yield {"python": this_python(), "folder": folder}
