"""Contestants seen from the bench: worker processes that are asked for fits, and stopped at a time limit.

LIBLINEAR's calls look at no signal, so the only way to stop one is to end its process; the next fit starts another.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from tasks import Task

HERE = Path(__file__).resolve().parent
START_LIMIT = 300.0


@dataclass(frozen=True)
class Run:
    """A fit that was asked for: stopped and failed ones have no weights, and ``seconds`` is how long they had."""

    status: str
    seconds: float
    convert: float = 0.0
    peak: float | None = None
    W: np.ndarray | None = None
    claimed: float | None = None


class Stored:
    """A task written where worker processes find it; a context manager that removes it again."""

    def __init__(self, task: Task):
        self.task = task
        self._folder = tempfile.TemporaryDirectory(prefix="hinge-bench-")
        self.folder = Path(self._folder.name)

    def __enter__(self) -> Stored:
        X = self.task.X
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape), "y": self.task.y}
        for name, values in parts.items():
            np.save(self.folder / f"{name}.npy", values)
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


class Contestant:
    """A package with a number of threads, under the Python that has it; a context manager that ends its process."""

    def __init__(self, name: str, python: str, threads: int, warm_solver: object, stored: Stored, folder: str = ""):
        self.name, self.python, self.threads, self.stored, self.folder = name, python, threads, stored, folder
        self.warm_solver = warm_solver
        self.version = ""
        self.convert = 0.0
        self._child: subprocess.Popen | None = None
        self._errors: IO[str] | None = None

    def __enter__(self) -> Contestant:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._forget_errors()

    def fit(self, loss: str, solver: object, C: float, tol: float, limit: float) -> Run:
        """One fit; conversion is done before and told beside it."""
        if self._child is None:
            self._start()
        request = {"loss": loss, "solver": solver, "C": C, "tol": tol}
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        started = time.perf_counter()
        answer = self._answer(limit)
        if isinstance(answer, str):
            return Run(answer, time.perf_counter() - started, self.convert)
        W = np.load(self.stored.folder / f"weights-{self._child.pid}.npy")
        status = answer["status"] or "finished"
        return Run(status, answer["seconds"], self.convert, answer["peak"], W, answer["claimed"])

    def _start(self) -> None:
        words = [HERE / "worker.py", self.name, self.stored.folder, self.threads, json.dumps(self.warm_solver)]
        pools = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(self.threads))
        self._forget_errors()
        self._errors = tempfile.TemporaryFile("w+", dir=self.stored.folder)  # noqa: SIM115
        self._child = subprocess.Popen(
            [self.python, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
            env=os.environ | pools | packages(self.folder),
        )
        answer = self._answer(START_LIMIT)
        if isinstance(answer, str):
            raise RuntimeError(f"{self.name} did not start: {answer}")
        self.version, self.convert = answer["version"], answer["convert"]

    def _forget_errors(self) -> None:
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _answer(self, limit: float) -> dict | str:
        """The next line of the child, or in words why there is none; then the child is gone."""
        child = self._child
        if not select.select([child.stdout], [], [], limit)[0]:
            self._stop()
            return "limit"
        line = child.stdout.readline()
        if line:
            return json.loads(line)
        self._stop()
        self._errors.seek(0)
        return "failed: " + (self._errors.read().strip().splitlines() or ["no message"])[-1]

    def _stop(self) -> None:
        """End the whole session of the child, so that its own workers end too."""
        if self._child is not None:
            if self._child.poll() is None:
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.communicate()
            self._child = None


def packages(folder: str) -> dict[str, str]:
    """The variable of the environment that lets the packages of a folder, if there is one, come first."""
    return {"PYTHONPATH": folder} if folder else {}


def missing(module: str, python: str, folder: str = "") -> str:
    """Why this Python cannot import the module, in its own words; empty if it can."""
    words, environment = [python, "-c", f"import {module}, scipy"], os.environ | packages(folder)
    try:
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it fails"])[-1]


def this_python() -> str:
    """The interpreter that runs the bench."""
    return sys.executable
