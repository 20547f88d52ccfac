"""Progress of long calls: to the log always, to the terminal on request."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

logger = logging.getLogger("hinge")

Progress = Callable[[str, int, float], None]

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


def reporter(verbose: int, what: str) -> Progress | None:
    """A callback for native calls that reports ``what`` twice a second, or None where nobody listens."""
    if not verbose and not logger.isEnabledFor(logging.INFO):
        return None
    last = 0.0

    def report(solver: str, iteration: int, accuracy: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < INTERVAL:
            return
        last = now
        announce(verbose, f"{what}: {solver} iteration {iteration}, {accuracy:.2e}")

    return report
