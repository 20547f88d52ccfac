"""A contestant in a process of its own: fits on request, timed, with the peak of its memory.

It reads the stored task, converts it, and answers requests, a line of JSON each, until its input ends. Weights go
into a file beside the task. Time and memory of the start and of reading the task are not counted; the package
has fitted a tiny task before, so that what it loads or compiles on first use is not counted either.

    python worker.py CONTESTANT FOLDER THREADS
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

# Short runs are repeated, so many times at most, for so many seconds, and the quickest counts: others use the machine.
REPEATS, REPEAT_SECONDS = 5, 0.1


def resident(field: str) -> int:
    """Bytes of a field of this process's memory status, such as VmRSS or VmHWM; 0 where there is none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), 0)


def settle() -> None:
    """Return freed memory to the system and reset the peak."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (AttributeError, OSError):
        pass


def timed(call, threads: int):
    """The result of a call, and the least of its seconds if it was worth repeating.

    On one thread the process's own time counts, which others on the machine lengthen least.
    """
    clock = time.process_time if threads == 1 else time.perf_counter
    seconds = []
    while len(seconds) < REPEATS and sum(seconds) < REPEAT_SECONDS:
        started = clock()
        result = call()
        seconds.append(clock() - started)
    return result, min(seconds)


def read(folder: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    """The task that :class:`process.Stored` wrote."""
    parts = {name: np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr", "shape", "y")}
    X = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
    return X, parts["y"]


def warm_up(contestant, threads: int) -> None:
    """A tiny task with every loss."""
    X = sp.csr_matrix(np.eye(8, dtype=np.float32))
    data = contestant.convert(X, np.where(np.arange(8) % 2, 1.0, -1.0))
    contestant.train(data, "squared_hinge", json.loads(sys.argv[4]), 1.0, 0.1, threads)


def main() -> None:
    """Command line."""
    name, folder, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    # Packages print: only answers go to the standard output.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    contestant = importlib.import_module(f"contestants.with_{name}")
    warm_up(contestant, threads)
    X, y = read(folder)
    settle()
    before = resident("VmRSS")
    data, convert = timed(lambda: contestant.convert(X, y), threads)
    answers.write(json.dumps({"version": contestant.VERSION, "convert": convert}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        settle()
        trained, seconds = timed(lambda request=request: contestant.train(data, **request, threads=threads), threads)
        peak = resident("VmHWM") - before
        np.save(folder / f"weights-{os.getpid()}.npy", trained.W)
        answer = {"seconds": seconds, "peak": peak, "status": trained.status, "claimed": trained.claimed}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
