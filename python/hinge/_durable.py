"""Files that Python writes and reads: written whole or not at all, and never over a file of another kind."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from hinge import _native


class _Raw(io.RawIOBase):
    """Hands what is written to a draft."""

    def __init__(self, draft: _native.Draft):
        self._draft = draft

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        given = bytes(data)
        self._draft.write(given)
        return len(given)


@contextmanager
def drafted(path: str | os.PathLike[str], kind: str, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name when the block ends without an exception.

    Raises
    ------
    FileExistsError
        At ``path`` is something that is not of the kind, one of those of the native module, and ``overwrite`` is
        false; or it is no file.
    """
    draft = _native.Draft(os.fspath(path), kind, overwrite)
    try:
        with io.BufferedWriter(_Raw(draft), 1 << 20) as file:
            yield file
        draft.publish()
    finally:
        draft.abort()


@contextmanager
def reading(path: str, kind: str) -> Iterator[None]:
    """Turn whatever the reading of a damaged file raises into one ValueError that names the file.

    NumPy and zipfile raise what the parsers below them raise: of zlib, tokenize, struct, ast.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        reason = f"no array {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise ValueError(f"{path} is not {kind}: {reason}") from error
