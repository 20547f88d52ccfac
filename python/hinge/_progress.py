"""Progress of long calls: to the log always, to the terminal on request."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable

logger = logging.getLogger("hinge")

Progress = Callable[..., None]

INTERVAL = 0.5
"""Seconds between two lines of one call."""


def announce(verbose: int, line: str) -> None:
    """One line to the log and, if ``verbose``, to standard error."""
    logger.info(line)
    if verbose:
        show(line)


def show(line: str) -> None:
    """One line to standard error."""
    print(f"[hinge] {line}", file=sys.stderr, flush=True)


def reporter(verbose: int, what: str, tol: float = 0.0) -> Progress | None:
    """A callback for native calls that reports ``what`` twice a second, or None where nobody listens."""
    if not verbose and not logger.isEnabledFor(logging.INFO):
        return None
    reading = Reading(tol)
    last = 0.0

    def report(solver: str, iteration: float, accuracy: float, *read: int) -> None:
        nonlocal last
        now = time.monotonic()
        line = reading.line(now, iteration, accuracy, *read) if read else f"iteration {iteration}, {accuracy:.2e}"
        if now - last < INTERVAL:
            return
        last = now
        announce(verbose, f"{what}: {solver} {line}")

    return report


class Reading:
    """The news of a fit over a store, with an estimate of its end."""

    def __init__(self, tol: float):
        self._tol = tol
        self._started = time.monotonic()
        self._gaps: list[tuple[float, float, float]] = []
        """Passes, gap and time whenever the gap was new."""

    def line(self, now: float, passes: float, gap: float, rows: int, bytes_read: int) -> str:
        """Passes, rate, bytes, gap and the seconds that are left."""
        seconds = max(now - self._started, 1e-9)
        text = f"{passes:.2f} passes, {rows / seconds:.0f} rows/s, {bytes_read / 1e6:.0f} MB read"
        if not math.isfinite(gap):
            return text
        if not self._gaps or self._gaps[-1][1] != gap:
            self._gaps.append((passes, gap, now))
        left = self._seconds_left(now)
        return f"{text}, gap {gap:.2e}" + ("" if left is None else f", about {left:.0f} s left")

    def _seconds_left(self, now: float) -> float | None:
        """By the rate at which the logarithm of the gap fell between the last two gaps."""
        if len(self._gaps) < 2 or not self._tol > 0:
            return None
        (_, before, then), (_, gap, since) = self._gaps[-2:]
        if not 0 < gap < before or since <= then:
            return None
        total = (since - then) * math.log(max(gap / self._tol, 1.0)) / math.log(before / gap)
        return max(total - (now - since), 0.0)
