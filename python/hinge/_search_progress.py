"""Progress of a search: one record per value of C to the log, a bar or lines to the terminal on request.

``verbose=1`` is a bar where standard error is a terminal (drawn by rich where that is installed, else rewritten in
place), and a line per value of C elsewhere; ``verbose=2`` is lines everywhere, also from within a value of C.
"""

from __future__ import annotations

import importlib.util
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hinge._progress import INTERVAL, logger, show
from hinge._steps import Step

NativeProgress = Callable[[str, float, int, int, float, float], None]


class Silent:
    """Nothing on the terminal; what the others draw."""

    def start(self, total: int) -> None:
        """At most ``total`` values of C will come."""

    def step(self, line: str) -> None:
        """A value of C is finished."""

    def inside(self, line: str) -> None:
        """News from within a value of C."""

    def finish(self) -> None:
        """No further values of C will come: the search has come to its end."""

    def close(self) -> None:
        """The search has ended in one way or another."""


class Lines(Silent):
    """A line per value of C; with ``detailed`` also from within one."""

    def __init__(self, detailed: bool):
        self._detailed = detailed

    def step(self, line: str) -> None:
        """Write the line."""
        show(line)

    def inside(self, line: str) -> None:
        """Write the line, if details are wanted."""
        if self._detailed:
            show(line)


class PlainBar(Silent):
    """A bar of characters and the latest news, rewritten in place."""

    WIDTH = 20

    def __init__(self) -> None:
        self._total, self._done, self._longest, self._line = 1, 0, 0, ""

    def start(self, total: int) -> None:
        """Set the length."""
        self._total = max(total, 1)

    def step(self, line: str) -> None:
        """Move on."""
        self._done += 1
        self.inside(line)

    def inside(self, line: str) -> None:
        """Show news."""
        self._line = line
        filled = min(self.WIDTH, self.WIDTH * self._done // self._total)
        text = f"[hinge] {'#' * filled}{'.' * (self.WIDTH - filled)} {line}"
        text = text[: shutil.get_terminal_size().columns - 1]  # a longer one would not be overwritten
        self._longest = max(self._longest, len(text))
        sys.stderr.write("\r" + text.ljust(self._longest))
        sys.stderr.flush()

    def finish(self) -> None:
        """Fill the bar."""
        self._total = self._done
        self.inside(self._line)

    def close(self) -> None:
        """Leave the last state on the screen."""
        if self._longest:
            sys.stderr.write("\n")
            sys.stderr.flush()


class RichBar(Silent):
    """The bar of rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        columns = (
            TextColumn("hinge", table_column=Column(min_width=5)),
            BarColumn(bar_width=20, table_column=Column(min_width=20)),
            TimeElapsedColumn(table_column=Column(min_width=7)),
            TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        )
        self._bar = Progress(*columns, console=Console(stderr=True, highlight=False, markup=False), expand=True)
        self._task: Any = None

    def start(self, total: int) -> None:
        """Draw the bar."""
        self._task = self._bar.add_task("", total=max(total, 1))
        self._bar.start()

    def step(self, line: str) -> None:
        """Move on."""
        self._bar.update(self._task, advance=1, description=line)

    def inside(self, line: str) -> None:
        """Show news."""
        if self._task is not None:
            self._bar.update(self._task, description=line)

    def finish(self) -> None:
        """Fill the bar."""
        self._bar.update(self._task, total=self._bar.tasks[0].completed)

    def close(self) -> None:
        """Leave the last state on the screen."""
        self._bar.stop()


def view(verbose: int) -> Silent:
    """What ``verbose`` means where standard error leads."""
    if not verbose:
        return Silent()
    if verbose > 1 or not sys.stderr.isatty():
        return Lines(detailed=verbose > 1)
    return RichBar() if importlib.util.find_spec("rich") else PlainBar()


class SearchProgress:
    """Hands the news of one search to the log and to a view."""

    def __init__(self, shown: Silent):
        self._shown = shown
        self._is_started = False
        self._last = 0.0
        self._best = ""
        self._finished = set[float]()

    def step(self, step: Step, best: Step, total: int) -> None:
        """A value of C is finished, one of at most ``total``."""
        line = step.line()
        self._finished.add(step.C)
        self._best = f" (best {best.mean:.4f} at {best.C:.6g})"
        if not self._is_started:
            self._is_started = True
            self._shown.start(total)
        logger.info("search: %s", line)
        self._shown.step(line)

    def finish(self) -> None:
        """The search has come to its end."""
        if self._is_started:
            self._shown.finish()

    @property
    def native(self) -> NativeProgress | None:
        """The callback of the native search; None where nobody listens."""
        silent = type(self._shown) is Silent and not logger.isEnabledFor(logging.DEBUG)
        return None if silent else self._inside

    def _inside(self, kind: str, C: float, iteration: int, lanes_left: int, passes: float, accuracy: float) -> None:
        now = time.monotonic()
        # News are handed over now and then, the last of a value of C maybe after its result.
        if now - self._last < INTERVAL or C in self._finished:
            return
        self._last = now
        state = f"{kind} {iteration}, {lanes_left} fits left, {passes:.0f} passes, {accuracy:.1e}"
        line = f"C = {C:.6g}{self._best}: {state}"
        logger.debug("search: %s", line)
        self._shown.inside(line)


@contextmanager
def search_progress(verbose: int) -> Iterator[SearchProgress]:
    """The progress of one search, closed at its end however it ends."""
    shown = view(verbose)
    try:
        yield SearchProgress(shown)
    finally:
        shown.close()
