"""Work that is killed at random moments, and what the disk, signals and other processes do to files.

Usage: ``python tests/hardening/kills.py [--kills 100] [--seed 0] [--only checkpoint]``. A child that was forked from
this process, which starts no thread, works and is killed with SIGKILL at a random moment of the time that the work
takes. Whatever is on disk then must be usable, and what a new process makes of it, bit for bit what comes out where
nothing was killed. Full and read-only disks are small tmpfs mounts, which take root; without, they are left out.
"""

import argparse
import contextlib
import errno
import hashlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import hinge
import numpy as np
import scipy.sparse as sp

BUDGET = 24_000_000


def rows(n, d=400, per_row=8, seed=0):
    """A CSR matrix, and noisy labels."""
    random = np.random.default_rng(seed)
    columns = np.sort(random.integers(0, d, (n, per_row)), axis=1)
    X = sp.csr_matrix((random.random(n * per_row), columns.ravel(), np.arange(0, n * per_row + 1, per_row)), (n, d))
    X.sum_duplicates()
    return X, (X @ random.standard_normal(d) + random.standard_normal(n) > 0).astype(int)


def digest(*parts):
    """A hash of arrays and bytes."""
    sum_of = hashlib.sha256()
    for part in parts:
        sum_of.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
    return sum_of.hexdigest()


class Build:
    """A block store over an old one."""

    name = "store build"

    def __init__(self, folder):
        self.path, self.data, self.old = folder / "x", rows(60_000), rows(50, seed=1)

    def prepare(self):
        hinge.BlockStore.build(self.old, self.path, n_jobs=1)

    def work(self):
        hinge.BlockStore.build(self.data, self.path, n_jobs=1)
        return digest(self.path.read_bytes())

    def check(self):
        store = hinge.BlockStore(self.path)
        store.verify(n_jobs=1)
        assert store.n_samples in (50, 60_000), store.n_samples


class Train:
    """Training on a store in blocks, with a checkpoint after every step."""

    name = "checkpoint"

    def __init__(self, folder):
        self.path = folder / "c"
        self.store = hinge.BlockStore.build(rows(60_000), folder / "rows", n_blocks=8, n_jobs=1)

    def prepare(self):
        self.path.unlink(missing_ok=True)

    def work(self):
        blocks = {"in_memory": False, "checkpoint_seconds": 0.0}
        model = hinge.LinearSVC(loss="hinge", C=0.05, tol=1e-3, memory_budget=BUDGET, block_options=blocks, n_jobs=1)
        model.set_params(checkpoint=self.path).fit(self.store)
        return digest(model.coef_, model.intercept_, model.certificate_.dual, model.n_iter_)

    def check(self):
        pass  # the work goes on from it


class Search:
    """A search with a journal."""

    name = "journal"

    def __init__(self, folder):
        self.path, self.data = folder / "j", rows(3000, 60)

    def prepare(self):
        self.path.unlink(missing_ok=True)

    def work(self):
        found = hinge.select_C(*self.data, cv=3, refine=2, loss="logistic", n_jobs=1, resume=self.path)
        return digest(found.Cs, found.scores, found.objective, found.n_iter, found.passes)

    def check(self):
        pass


class Plane:
    """A cost plane that is streamed to a file, over an old one."""

    name = "streamed plane"

    def __init__(self, folder):
        random = np.random.default_rng(0)
        self.path, self.X = folder / "p", random.standard_normal((150, 6))
        self.y = (self.X[:, 0] + random.standard_normal(150) > 0).astype(int)

    def plane(self, n):
        return hinge.cost_path(self.X[:n], self.y[:n], box=(2, 2), file=self.path, n_jobs=1)

    def prepare(self):
        self.plane(20)

    def work(self):
        self.plane(150)
        return digest(self.path.read_bytes())

    def check(self):
        assert hinge.CostPathFile(self.path).load().n_facets > 0


class Save:
    """A model that is saved over another."""

    name = "model save"

    def __init__(self, folder):
        self.path, self.n = folder / "m", 1_500_000
        self.models = [self.model(value) for value in (1.0, 2.0)]

    def model(self, value):
        model = hinge.LinearSVC().fit(np.array([[0.0], [1.0]]), [0, 1])
        model.coef_, model.intercept_, model.n_features_in_ = np.full((1, self.n), value), np.array([value]), self.n
        return model

    def prepare(self):
        self.models[0].save(self.path)

    def work(self):
        self.models[1].save(self.path)
        return digest(self.path.read_bytes())

    def check(self):
        served = hinge.load(self.path)
        value = float(np.ravel(served.decision_function(([0], [0.0])))[0])
        assert value in (1.0, 2.0), value
        assert float(np.ravel(served.decision_function(([self.n - 1], [1.0])))[0]) == 2 * value


KINDS = (Build, Train, Search, Plane, Save)


def forked(work):
    """A child that does the work; what it returns comes through the pipe."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = (True, work())
        except BaseException as error:
            result = (False, repr(error))
        with os.fdopen(writer, "wb") as file:
            pickle.dump(result, file)
        os._exit(0)
    os.close(writer)
    return child, os.fdopen(reader, "rb")


def done(work):
    """What the work returns in a process of its own."""
    child, pipe = forked(work)
    with pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"status {status}"
    is_right, result = pickle.loads(text)
    assert is_right, result
    return result


def killed(kind, seconds, random):
    """Whether a child was killed before its work was done."""
    child, pipe = forked(kind.work)
    time.sleep(random.uniform(0, seconds))
    os.kill(child, signal.SIGKILL)
    with pipe:
        is_done = bool(pipe.read())
    os.waitpid(child, 0)
    return not is_done


def kill_again_and_again(make, n_kills, seed):
    """Counts of kills, of works that were done before, and the failures."""
    random, failures = np.random.default_rng(seed), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kind = make(folder)
        done(lambda: (kind.prepare(), 0)[1])
        seconds = float("inf")
        for _ in range(3):
            done(lambda: (kind.prepare(), 0)[1])
            start = time.monotonic()
            expected = done(kind.work)
            seconds = min(seconds, time.monotonic() - start)
        kills = ended = 0
        kept = set(os.listdir(folder))
        while kills < n_kills:
            done(lambda: (kind.prepare(), 0)[1])
            # One to three kills of the same work, one after the other.
            for _ in range(random.integers(1, 4)):
                if killed(kind, 1.05 * seconds, random):
                    kills += 1
                else:
                    ended += 1
                done(lambda: (kind.check(), 0)[1])
            try:
                found = done(kind.work)
                assert found == expected, "other bits"
                left = set(os.listdir(folder)) - kept
                assert not left, f"files are left: {left}"
            except AssertionError as error:
                failures.append(f"{kind.name}, {kills} kills: {error}")
    return kills, ended, failures


# Disks.


@contextlib.contextmanager
def mounted(folder, size):
    """A small disk."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def refusal(work):
    """The error of the system, as (errno, whether it names a file)."""
    try:
        work()
    except OSError as error:
        return error.errno, error.filename is not None
    return None


def disks():
    """Every writer on a full disk and on a read-only one: what is there stays, the error is the system's."""
    failures, n = [], 0
    for make in KINDS:
        with tempfile.TemporaryDirectory() as name:
            disk, outside = Path(name) / "disk", Path(name) / "outside"
            disk.mkdir()
            outside.mkdir()
            kind = make(outside)
            old, there = kind.path, disk / kind.path.name
            with mounted(disk, "8m"):
                done(lambda: (kind.prepare(), 0)[1])
                if old.exists() and old.stat().st_size < 7 << 20:
                    shutil.copy(old, there)
                before = there.read_bytes() if there.exists() else None
                kind.path = there
                (disk / "filler").write_bytes(b"")
                with contextlib.suppress(OSError), (disk / "filler").open("ab") as file:
                    while True:
                        file.write(b"x" * 4096)
                        file.flush()
                for state, expected in (("full", errno.ENOSPC), ("read-only", errno.EROFS)):
                    if state == "read-only":
                        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
                    found = done(lambda: refusal(kind.work))
                    n += 1
                    if found != (expected, True):
                        failures.append(f"{kind.name}, {state} disk: {found}")
                    # An empty file under a name that was free is what a checkpoint and a journal begin as.
                    after = there.read_bytes() if there.exists() else None
                    if after != before and not (before is None and after == b""):
                        failures.append(f"{kind.name}, {state} disk: the file that was there has changed")
                subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
                (disk / "filler").unlink()
    return n, failures


def vanishing(folder):
    """A store and a text that are cut short, or removed, while they are read."""
    failures = []
    X, y = rows(60_000)
    path = folder / "store"
    hinge.BlockStore.build((X, y), path, n_blocks=8, n_jobs=1)
    whole = path.read_bytes()
    blocks = {"in_memory": False, "keep_compressed": False}
    options = {"loss": "hinge", "tol": 1e-9, "max_iter": 30, "memory_budget": BUDGET, "n_jobs": 1}

    def fit_while(change):
        store = hinge.BlockStore(path)
        calls = []

        def log(record):
            if not calls:
                calls.append(1)
                change()
            return True

        import logging

        logger = logging.getLogger("hinge")
        logger.setLevel(logging.INFO)
        logger.addFilter(log)
        try:
            hinge.LinearSVC(**options, block_options=blocks).fit(store)
        except Exception as error:
            return type(error).__name__
        return "fitted" if calls else "fitted before the change"

    changes = {
        "cut": (lambda: os.truncate(path, len(whole) // 3), ("BlockFileError", "OSError")),
        "emptied": (lambda: os.truncate(path, 0), ("BlockFileError", "OSError")),
        "removed": (path.unlink, ("fitted",)),
        "overwritten": (lambda: path.write_bytes(b"x" * len(whole)), ("BlockFileError",)),
    }
    for what, (change, allowed) in changes.items():
        path.unlink(missing_ok=True)
        path.write_bytes(whole)
        found = done(lambda: fit_while(change))
        if found not in allowed:
            failures.append(f"a store that is {what} while it is read: {found}")
    return len(changes), failures


READER = """
import os, signal, sys
import hinge
def nothing(*_): pass
signal.signal(signal.SIGALRM, nothing)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
X, y = hinge.load_svmlight("-", n_jobs=1)
signal.setitimer(signal.ITIMER_REAL, 0)
import hashlib
print(hashlib.sha256(X.data.tobytes() + X.indices.tobytes() + X.indptr.tobytes() + y.tobytes()).hexdigest())
"""


def interrupted_reads(folder, n):
    """A pipe that hands over a few bytes at a time, to a reader whose every system call is interrupted."""
    import io

    from sklearn.datasets import dump_svmlight_file

    failures, random = [], np.random.default_rng(0)
    X, y = rows(4000, 50)
    text = io.BytesIO()
    dump_svmlight_file(X, y, text, zero_based=False)
    text = text.getvalue()
    (folder / "t").write_bytes(text)
    read, labels = hinge.load_svmlight(folder / "t", n_jobs=1)
    expected = digest(read.data, read.indices, read.indptr, labels)
    for k in range(n):
        process = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        at = 0
        while at < len(text):
            count = int(random.integers(1, 20_000))
            process.stdin.write(text[at : at + count])
            process.stdin.flush()
            at += count
            time.sleep(random.uniform(0, 0.003))
        process.stdin.close()
        process.stdin = None
        found = process.communicate(timeout=100)[0].decode().strip()
        if found != expected:
            failures.append(f"interrupted reading {k}: {found or process.returncode}")
    return n, failures


def rivals(folder, n):
    """Two processes that want one journal at the same moment: one works, the other is told so, or waits its turn."""
    failures = []
    for k in range(n):
        kind = Search(folder)
        kind.prepare()
        children = [forked(kind.work) for _ in range(2)]
        ends = []
        for child, pipe in children:
            with pipe:
                ends.append(pickle.loads(pipe.read()))
            os.waitpid(child, 0)
        right = [text for is_right, text in ends if is_right]
        wrong = [text for is_right, text in ends if not is_right]
        if not right or len(set(right)) > 1 or not all("another search is using it" in text for text in wrong):
            failures.append(f"rivals {k}: {ends}")
    return n, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in hinge.__all__:
        getattr(hinge, name)  # what a name brings with it at its first use, children need not load again
    all_failures = []

    def say(what, counts, failures, start):
        print(f"{what}: {counts} in {time.monotonic() - start:.0f} s, {len(failures)} failures", flush=True)
        all_failures.extend(failures)

    for make in KINDS:
        if asked.only in (None, make.name):
            start = time.monotonic()
            kills, ended, failures = kill_again_and_again(make, asked.kills, asked.seed)
            say(make.name, f"{kills} kills, {ended} works done before", failures, start)
    with tempfile.TemporaryDirectory() as name:
        if asked.only in (None, "disks") and os.geteuid() == 0:
            start = time.monotonic()
            n, failures = disks()
            say("full and read-only disks", f"{n} writings", failures, start)
        for what, test in (
            ("vanishing", lambda: vanishing(Path(name))),
            ("interrupted reads", lambda: interrupted_reads(Path(name), max(1, asked.kills // 5))),
            ("rivals", lambda: rivals(Path(name), max(1, asked.kills // 5))),
        ):
            if asked.only in (None, what):
                start = time.monotonic()
                n, failures = test()
                say(what, f"{n} cases", failures, start)
    print("\n".join(all_failures))
    raise SystemExit(bool(all_failures))


if __name__ == "__main__":
    main()
