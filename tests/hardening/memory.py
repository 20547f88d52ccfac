"""Memory: limits of the system at every step, and budgets measured from outside.

Usage: ``python tests/hardening/memory.py [--step 4] [--shapes 20] [--first 0] [--seed 0] [--only CALL]``;
a step of 0 leaves out the limits. Every call of
``tests/python/test_memory.py`` is made with ever more room, from 2 MB to 120 MB: it works, or raises a MemoryError,
most of which name the bytes, and the process lives on. Then fits on stores with a ``memory_budget``: the peak of the
process, less that of a process that does the same on next to nothing, is at most the budget and 5 % of it.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from test_memory import CALLS, PROGRAM

ENVIRONMENT = {**os.environ, "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}


def limits(step, only):
    """Counts of ends over all calls and rooms, and the failures."""
    counts, failures = Counter(), []
    rooms = [str(room) for room in range(2, 121, step)]
    for name in [only] if only else CALLS:
        call, before = CALLS[name], counts.copy()
        command = [sys.executable, "-c", PROGRAM, call, *rooms]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
        ends = done.stdout.splitlines()
        if done.returncode != 0 or len(ends) != len(rooms):
            failures.append(f"{name}: {len(ends)} ends of {len(rooms)}, {done.stderr[-300:]}")
        for room, end in zip(rooms, ends, strict=False):
            if end == "done":
                counts["done"] += 1
            elif re.match(r"MemoryError: .*allocate [0-9.]+ (bytes|[KMG]iB)", end):
                counts["MemoryError with the bytes"] += 1
            elif end.startswith("MemoryError"):
                counts["MemoryError of Python's"] += 1
            else:
                failures.append(f"{name} with {room} MB: {end}")
        print(f"{name}: {dict(counts - before)}, {len(failures)} failures so far", flush=True)
    return counts, failures


FIT = """
import json, re, sys, warnings
import hinge
warnings.simplefilter("ignore")
path, budget, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
def fit(budget):
    model = hinge.LinearSVC(memory_budget=budget, n_jobs=1, max_iter=3, tol=1e-9, **options)
    return model.set_params(block_options={"in_memory": False}).fit(hinge.BlockStore(path))
try:
    fit(budget)
except ValueError as error:
    needed = re.search("memory_budget must be at least ([0-9]+) bytes", str(error))
    if not needed:
        raise
    budget = int(int(needed[1]) * 1.1)
    fit(budget)
status = open("/proc/self/status").read()
print(budget, 1024 * int(re.search(r"VmHWM:\\s+([0-9]+) kB", status)[1]))
"""

BUILD = """
import json, sys
import numpy as np, scipy.sparse as sp
import hinge
path, n, d, per_row, classes, seed = sys.argv[1], *map(int, sys.argv[2:])
random = np.random.default_rng(seed)
columns = np.sort((random.random((n, per_row)) ** 2 * d).astype(np.int32), axis=1)
X = sp.csr_matrix((random.random(n * per_row, np.float32), columns.ravel(), np.arange(0, n * per_row + 1, per_row)),
    (n, d))
X.sum_duplicates()
hinge.BlockStore.build((X, random.integers(0, classes, n)), path, n_blocks=int(random.integers(4, 30)))
"""


def run(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], env=ENVIRONMENT, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout.split()


def budgets(shapes, seed):
    """Shares of budgets that were used, and the failures; every shape has random numbers of its own."""
    shares, failures = [], []
    with tempfile.TemporaryDirectory() as folder:
        for k in shapes:
            random = np.random.default_rng((seed, k))
            path = Path(folder) / "store"
            path.unlink(missing_ok=True)
            n, per_row = int(random.integers(20_000, 300_000)), int(random.integers(5, 60))
            d, classes = int(10 ** random.uniform(2, 6)), int(random.choice([2, 2, 2, 4]))
            options = {"loss": str(random.choice(["hinge", "squared_hinge", "modified_huber"]))}
            if classes > 2 and random.random() < 0.5:
                options["multi_class"] = "crammer_singer"
            tiny = Path(folder) / "tiny"
            tiny.unlink(missing_ok=True)
            run(BUILD, tiny, 40, 10, 3, classes, k)
            run(BUILD, path, n, d, per_row, classes, k)
            _, base = map(int, run(FIT, tiny, 10**9, json.dumps(options)))
            asked = int(n * per_row * 8 * random.uniform(0.2, 0.9)) + 20_000_000
            budget, peak = map(int, run(FIT, path, asked, json.dumps(options)))
            shares.append((peak - base) / budget)
            said = f"shape {k}, {n} x {d}, {per_row} a row, {classes} classes, {options}: {budget / 1e6:.1f} MB"
            print(f"{said}, used {(peak - base) / 1e6:.1f} MB, {shares[-1]:.3f} of it", flush=True)
            if shares[-1] > 1.05:
                failures.append(said)
    return shares, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--step", type=int, default=4)
    parser.add_argument("--only", choices=list(CALLS), help="the one call whose limits are tried")
    parser.add_argument("--shapes", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first shape")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    start = time.monotonic()
    counts, failures = limits(asked.step, asked.only) if asked.step else (Counter(), [])
    print(f"limits: {dict(counts)} in {time.monotonic() - start:.0f} s, {len(failures)} failures", flush=True)
    start = time.monotonic()
    shares, more = budgets(range(asked.first, asked.first + asked.shapes), asked.seed)
    most = f", {max(shares):.3f} used at most" if shares else ""
    print(f"budgets: {len(shares)} shapes in {time.monotonic() - start:.0f} s{most}")
    print("\n".join(failures + more))
    raise SystemExit(bool(failures + more))


if __name__ == "__main__":
    main()
