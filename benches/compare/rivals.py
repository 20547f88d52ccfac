"""Other packages' searches for C, each run in a process of its own under a time limit.

A process can be stopped in the middle of a call that never looks at signals, as LIBLINEAR's search is; it
keeps two packages that own the same module name apart; and what it spawns ends with it. Only the searching
itself is timed, not the start of the process or the reading of the data.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from problems import REPOSITORY, Problem

HERE = Path(__file__).resolve().parent
LIBLINEAR_SOLVERS = {"squared_hinge": 2, "logistic": 0}
SKLEARN_SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky")
# newton-cholesky keeps a dense Hessian of the features: at most this many bytes of it for each process.
LARGEST_HESSIAN = 4e9
# What a child says when its data are read and the clock may start.
READY = "ready"
MULTICORE_PYTHON = REPOSITORY / ".venv-multicore" / "bin" / "python"


@dataclass(frozen=True)
class Outcome:
    """What a search of another package came to."""

    # Of a run that was stopped these are the limit, and what it had done by then.
    seconds: float
    finished: bool = True
    convert: float | None = None
    C: float | None = None
    accuracy: float | None = None
    count: int | None = None
    # Of shape (n_Cs, n_folds), where the package tells.
    scores: np.ndarray | None = None
    note: str = ""


class Stored:
    """A problem written where other processes find it; a context manager that removes it again."""

    def __init__(self, problem: Problem, folds: Sequence[tuple[np.ndarray, np.ndarray]]):
        self.problem, self.folds = problem, folds
        self._folder = tempfile.TemporaryDirectory(prefix="hinge-bench-")
        self.folder = Path(self._folder.name)

    def __enter__(self) -> Stored:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def write(self, Cs: np.ndarray) -> Path:
        """The problem in float64 with the values of C to visit."""
        X = self.problem.exact
        fold_of = np.empty(X.shape[0], dtype=np.int64)
        for k, (_, test) in enumerate(self.folds):
            fold_of[test] = k
        path = self.folder / "problem.npz"
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        np.savez(path, **arrays, y=self.problem.y, Cs=Cs, fold=fold_of)
        return path


def read(path: str) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray, np.ndarray]:
    """What :meth:`Stored.write` wrote: the matrix, the labels, the values of C, the fold of each row."""
    with np.load(path) as stored:
        parts = (stored["data"], stored["indices"], stored["indptr"])
        X = sp.csr_matrix(parts, shape=tuple(stored["shape"]))
        return X, stored["y"], stored["Cs"], stored["fold"]


def search_liblinear(stored: Stored, path: Path, python: str, loss: str, eps: float, threads: int, limit: float):
    """LIBLINEAR's option -C under the given Python."""
    log = stored.folder / "liblinear.log"
    log.write_text("")
    words = [LIBLINEAR_SOLVERS[loss], len(stored.folds), repr(eps), threads, log]
    answer = _run(limit, python, HERE / "rival_liblinear.py", path, *words)
    count = len(re.findall(r"log2c=", log.read_text()))
    if answer is None:
        return Outcome(limit, finished=False, count=count, note=f"stopped after {count} values of C")
    return Outcome(answer["seconds"], True, answer["convert"], answer["C"], answer["accuracy"], count)


def search_sklearn(path: Path, solver: str, n_features: int, Cs: np.ndarray, threads: int, limit: float) -> Outcome:
    """LogisticRegressionCV with one of its solvers."""
    if solver == "newton-cholesky" and 8.0 * n_features**2 > LARGEST_HESSIAN:
        return Outcome(np.inf, finished=False, note=f"a Hessian of {8e-9 * n_features**2:.0f} GB, not run")
    answer = _run(limit, sys.executable, HERE / "rival_sklearn.py", path, solver, threads)
    if answer is None:
        return Outcome(limit, finished=False, note="stopped")
    scores = np.array(answer["scores"])
    mean = scores.mean(axis=1)
    best = int(mean.argmax())
    limited = answer["limited"]
    note = f"{limited} of {scores.size} fits ended at its limit of iterations" if limited else ""
    return Outcome(answer["seconds"], True, 0.0, float(Cs[best]), float(mean[best]), len(Cs), scores, note)


def has_liblinear(python: str) -> bool:
    """Whether this Python runs and finds a module of that name."""
    try:
        done = subprocess.run([python, "-c", "import liblinear, scipy"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def _run(limit: float, *command: object) -> dict | None:
    """The line of JSON that the command prints, or None if that took too long after its line READY."""
    child = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        # Nothing, at the end of its output, if it failed before.
        child.stdout.readline()
        out, err = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # Its whole session, so that worker processes end too.
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    if child.returncode != 0:
        raise RuntimeError(f"{Path(str(command[1])).name} failed:\n{err}")
    return json.loads(out)
