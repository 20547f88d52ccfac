"""What the command line shows: results on standard output, progress on standard error."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

# Seconds between two lines of progress where they stay on the screen.
_INTERVAL = 2.0

News = Callable[[str], None]


class PlainConsole:
    """Lines of text."""

    def line(self, text: str = "") -> None:
        """Write a line of the result."""
        print(text, flush=True)

    def heading(self, text: str) -> None:
        """Write a line that starts a part of the result."""
        self.line()
        self.line(text)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], *, marked: int | None = None) -> None:
        """Write columns aligned to the right, perhaps with one row marked."""
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        for k, row in enumerate((header, *rows)):
            cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            mark = "*" if marked is not None and k == marked + 1 else " "
            self.line(f"{mark} {'  '.join(cells)}".rstrip())

    @contextmanager
    def busy(self, what: str) -> Iterator[News]:
        """Announce a long step; the function it gives takes news of it, of which some are shown."""
        print(f"{what} ...", file=sys.stderr, flush=True)
        started = last = time.monotonic()

        def news(text: str) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _INTERVAL:
                last = now
                print(f"  {now - started:.0f} s, {text}", file=sys.stderr, flush=True)

        yield news


class RichConsole(PlainConsole):
    """The same with colours, a drawn table and a moving sign of life on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console

        self._out = Console(highlight=False, markup=False, soft_wrap=True)
        self._progress = Console(stderr=True, highlight=False, markup=False)

    def line(self, text: str = "") -> None:
        """Write a line of the result."""
        self._out.print(text)

    def heading(self, text: str) -> None:
        """Write a line that starts a part of the result."""
        self._out.print()
        self._out.print(text, style="bold")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], *, marked: int | None = None) -> None:
        """Write columns aligned to the right, perhaps with one row marked."""
        from rich.table import Table

        table = Table(header_style="bold")
        mark = () if marked is None else ("",)
        for name in (*mark, *header):
            table.add_column(name, justify="right")
        for k, row in enumerate(rows):
            is_marked = k == marked
            table.add_row(*(("*" if is_marked else "") for _ in mark), *row, style="bold" if is_marked else None)
        self._out.print(table, soft_wrap=False)

    @contextmanager
    def busy(self, what: str) -> Iterator[News]:
        """Announce a long step; the function it gives takes news of it, of which some are shown."""
        if not self._progress.is_terminal:
            with super().busy(what) as news:
                yield news
            return
        from rich.text import Text

        with self._progress.status(Text(what)) as status:
            yield lambda text: status.update(Text(f"{what}: {text}"))


def console() -> PlainConsole:
    """A rich console if rich is installed, else a plain one."""
    return RichConsole() if importlib.util.find_spec("rich") else PlainConsole()
