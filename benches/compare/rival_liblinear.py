"""LIBLINEAR's own search for C on a stored problem, in a process of its own: prints one line of JSON.

Runs under any Python that has numpy, scipy and a module ``liblinear``: the multi-core edition owns the same
module name as the plain one, so each lives in an environment of its own. The values of C are counted in what
the library prints, and written down as they are done, so that a run that is stopped says how far it came.

    python rival_liblinear.py PROBLEM.npz SOLVER FOLDS EPS THREADS LOG
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from pathlib import Path

import rivals
from liblinear import liblinear, liblinearutil


def main() -> None:
    """Command line."""
    path, solver, folds, eps, threads, log = sys.argv[1:]
    X, y, _, _ = rivals.read(path)
    print(rivals.READY, flush=True)
    started = time.perf_counter()
    converted = liblinearutil.problem(y, X)
    convert = time.perf_counter() - started
    options = f"-C -s {solver} -v {folds} -e {eps}" + (f" -m {threads}" if int(threads) > 1 else "")
    parameter = liblinearutil.parameter(options)
    with Path(log).open("w", encoding="utf-8", buffering=1) as lines:
        parameter.print_func = liblinear.PRINT_STRING_FUN(lambda text: lines.write(text.decode()) and None)
        with contextlib.redirect_stdout(io.StringIO()):
            started = time.perf_counter()
            C, _, accuracy = liblinearutil.train(converted, parameter)
            seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "convert": convert, "C": C, "accuracy": accuracy}))


if __name__ == "__main__":
    main()
