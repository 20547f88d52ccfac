"""Threads of Python, forks, pools of processes and signals: the same bits as alone, and nothing hangs.

Usage: ``python tests/hardening/processes.py [--rounds 200]``. 16 threads take 16 different fits, searches and
predictions in turn, so that every pair meets; then the same in children that were forked after threads had been in
use, in processes that were spawned or came from a fork server, in joblib's workers, and in a thread while the main
thread handles a signal every millisecond.
"""

import argparse
import hashlib
import multiprocessing
import os
import pickle
import select
import signal
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hinge
import numpy as np
import scipy.sparse as sp

PATIENCE = 120.0  # seconds after which a child hangs


def data(seed, n=150, d=20, classes=2):
    random = np.random.default_rng(seed)
    X = sp.csr_matrix(random.standard_normal((n, d)) * (random.random((n, d)) < 0.3))
    y = (X @ random.standard_normal((d, classes)) + 0.5 * random.standard_normal((n, classes))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    return X, y


def bits(*parts):
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def of_model(model):
    return bits(model.coef_, model.intercept_, model.certificate_.dual)


def predicted(X, y):
    model = hinge.LogisticRegression().fit(X, y)
    return bits(model.decision_function(X), model.predict_proba(X.toarray()), model.predict(X))


def served(X, y):
    with tempfile.TemporaryDirectory() as folder:
        hinge.LinearSVC().fit(X, y).save(Path(folder) / "m")
        return bits(hinge.load(Path(folder) / "m").decision_function(X))


def planned(X, y):
    return bits(hinge.cost_path(X, y, box=(1, 1), n_jobs=2).decision_function(X, 0.5, 0.5))


def stored(X, y, **options):
    with tempfile.TemporaryDirectory() as folder:
        store = hinge.BlockStore.build((X, y), Path(folder) / "s", n_blocks=2)
        return of_model(hinge.LinearSVC(memory_budget="30MB", **options).fit(store))


TASKS = (
    lambda: of_model(hinge.LinearSVC().fit(*data(0))),
    lambda: of_model(hinge.LinearSVC(loss="hinge", n_jobs=1).fit(*data(1))),
    lambda: of_model(hinge.LinearSVC(loss="modified_huber", n_jobs=3).fit(*data(2))),
    lambda: of_model(hinge.LogisticRegression().fit(*data(3))),
    lambda: of_model(hinge.LogisticRegression().fit(*data(4, classes=4))),
    lambda: of_model(hinge.LinearSVC(multi_class="crammer_singer", n_jobs=2).fit(*data(5, classes=4))),
    lambda: of_model(hinge.LinearSVC(solver="newton", loss="hinge").fit(*data(6))),
    lambda: of_model(hinge.LinearSVC(degree=2).fit(*data(7, d=8))),
    lambda: of_model(hinge.LinearSVC(presolve=True, n_jobs=2).fit(*data(8, d=300))),
    lambda: bits(hinge.select_C(*data(9), cv=3, C_max=1.0).scores),
    lambda: of_model(hinge.LinearSVCCV(cv=3, Cs=[0.1, 1.0], n_jobs=2).fit(*data(10))),
    lambda: predicted(*data(11, classes=3)),
    lambda: served(*data(12)),
    lambda: stored(*data(13)),
    lambda: stored(*data(14), loss="hinge", block_options={"in_memory": False}),
    lambda: bits(
        hinge.cost_path(*data(15, n=30, d=4), box=(1, 1), n_jobs=2).decision_function(data(15, 30, 4)[0], 0.5, 0.5)
    ),
)


def task(k):
    """The bits of task ``k``; a function by name, for processes that are not forked."""
    warnings.simplefilter("ignore")
    return TASKS[k]()


def threads(expected, rounds):
    """Every thread has another task in every round."""
    failures = []
    barrier = threading.Barrier(16)

    def work(number):
        for turn in range(rounds):
            barrier.wait()
            k = (number * (turn % 15 + 1) + turn) % 16
            if task(k) != expected[k]:
                failures.append(f"thread {number}, round {turn}: other bits of task {k}")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    return 16 * rounds, failures


def forks(expected, n):
    """Children of a process whose threads have worked, some of them while other threads are working."""
    failures = []
    is_over = threading.Event()

    def busy():
        while not is_over.is_set():
            task(4)

    for turn in range(n):
        if turn == n // 2:
            threading.Thread(target=busy, daemon=True).start()
        k = turn % 16
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads
            child = os.fork()
        if child == 0:
            try:
                found = task(k)
            except BaseException as error:
                found = repr(error)
            os.write(writer, pickle.dumps(found))
            os._exit(0)
        os.close(writer)
        ready = select.select([reader], [], [], PATIENCE)[0]
        found = pickle.loads(os.read(reader, 1 << 16)) if ready else "it hangs"
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if found != expected[k]:
            failures.append(f"fork {turn}, task {k}: {found}")
    is_over.set()
    return n, failures


def pools(expected):
    """Processes of multiprocessing and joblib."""
    from joblib import Parallel, delayed

    failures = []
    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            found = pool.map_async(task, range(16)).get(PATIENCE)
        failures += [f"{method}, task {k}" for k in range(16) if found[k] != expected[k]]
    found = Parallel(n_jobs=2, backend="loky", timeout=PATIENCE)(delayed(task)(k) for k in range(16))
    failures += [f"loky, task {k}" for k in range(16) if found[k] != expected[k]]
    return 48, failures


def signals(expected, n):
    """Fits in a thread while the main thread handles signals."""
    failures, count = [], [0]

    def count_one(*_):
        count[0] += 1

    old = signal.signal(signal.SIGALRM, count_one)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for turn in range(n):
            k, found = turn % 16, []
            thread = threading.Thread(target=lambda: found.append(task(k)))
            thread.start()
            thread.join(PATIENCE)
            if found != [expected[k]] or task(k) != expected[k]:
                failures.append(f"signals, task {k}: {found}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
    if count[0] < n:
        failures.append(f"only {count[0]} signals came")
    return n, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    asked = parser.parse_args()
    expected, all_failures = [task(k) for k in range(16)], []
    spawned = ("spawn, forkserver, loky", lambda: pools(expected))
    for what, test in (
        ("16 threads", lambda: threads(expected, asked.rounds)),
        ("forks after use", lambda: forks(expected, max(4, asked.rounds // 2))),
        *([spawned] if asked.rounds > 3 else []),  # importing takes the most of it
        ("signals", lambda: signals(expected, max(4, asked.rounds // 2))),
    ):
        start = time.monotonic()
        n, failures = test()
        print(f"{what}: {n} tasks in {time.monotonic() - start:.0f} s, {len(failures)} failures", flush=True)
        all_failures += failures
    print("\n".join(all_failures))
    raise SystemExit(bool(all_failures))


if __name__ == "__main__":
    main()
