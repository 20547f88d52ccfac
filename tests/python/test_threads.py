"""Many threads, many fits, and interrupts."""

import contextlib
import gzip
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import hinge
import numpy as np
import pytest
from joblib import Parallel, delayed
from problems import LOSSES, estimator, sparse_problem

# From the signal to the handled exception; the promise is a second, the rest is for a busy machine.
LIMIT = 1.5


def fitted(seed, loss, n_jobs=None):
    """Everything that a fit of a random problem gives, as bytes."""
    X, y = sparse_problem(seed, n_rows=150, n_columns=20, n_classes=3)
    model = estimator(loss, n_jobs=n_jobs, random_state=seed).fit(X, y)
    certificate = model.certificate_
    arrays = (model.coef_, model.intercept_, model.n_iter_, certificate.primal, certificate.dual, certificate.passes)
    return b"".join(array.tobytes() for array in arrays)


def searched(seed, n_jobs=None):
    X, y = sparse_problem(seed, n_rows=90, n_columns=10)
    search = hinge.select_C(X, y, cv=3, n_jobs=n_jobs, C_max=1.0)
    return search.scores.tobytes() + search.passes.tobytes()


@pytest.mark.parametrize("n_jobs", [None, 1, 3])
def test_sixteen_threads_at_once(n_jobs):
    tasks = [(seed, LOSSES[seed % 3], n_jobs) for seed in range(48)]
    expected = [fitted(*task) for task in tasks]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda task: fitted(*task), tasks))
    assert found == expected


def test_sixteen_searches_at_once():
    expected = [searched(seed) for seed in range(16)]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(searched, range(16))) == expected


def test_one_matrix_for_all_threads():
    X, y = sparse_problem(1, n_rows=200)
    expected = hinge.LinearSVC().fit(X, y).coef_
    with ThreadPoolExecutor(16) as pool:
        models = list(pool.map(lambda _: hinge.LinearSVC().fit(X, y), range(32)))
        values = list(pool.map(lambda model: model.decision_function(X), models))
    assert all((model.coef_ == expected).all() for model in models)
    assert all((value == values[0]).all() for value in values)


def test_errors_stay_in_their_thread():
    X, y = sparse_problem(2)

    def fit(k):
        with contextlib.suppress(ValueError):
            return hinge.LinearSVC(C=1.0 if k % 2 else -1.0).fit(X, y).coef_.tobytes()

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(fit, range(32)))
    assert found[::2] == [None] * 16
    assert len(set(found[1::2])) == 1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "dual_cd", "dual_cd_permuted", "dual_cd_online", "newton"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_bits_do_not_depend_on_n_jobs(loss, solver, n_classes):
    # Enough rows that the work of one problem is divided.
    X, y = sparse_problem(3, n_rows=12_000, n_columns=30, n_classes=n_classes, noise=4.0)
    options = {"solver": solver, "tol": 1e-2, "max_iter": 3000}
    one, *others = (estimator(loss, n_jobs=n_jobs, **options).fit(X, y) for n_jobs in (1, 2, 3, -1, None))
    for other in others:
        np.testing.assert_array_equal(other.coef_, one.coef_)
        np.testing.assert_array_equal(other.intercept_, one.intercept_)
        np.testing.assert_array_equal(other.certificate_.dual, one.certificate_.dual)
        np.testing.assert_array_equal(other.n_iter_, one.n_iter_)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_inside_joblib(backend):
    expected = [fitted(seed, "hinge") for seed in range(4)]
    assert Parallel(n_jobs=2, backend=backend)(delayed(fitted)(seed, "hinge") for seed in range(4)) == expected


# Interrupts. Every program says "started", works for long, and must answer the signal. What a quick machine
# ends before the signal comes is done again, twenty times at most: an interrupt that is lost still shows.

PREPARE = """
import numpy as np, scipy.sparse as sp, hinge
hinge.LinearSVC, hinge.select_C  # what loads them is not interrupted here
random = np.random.default_rng(0)

def matrix(n, d, k, dtype=np.float64):
    indptr = np.arange(0, n * k + 1, k)
    return sp.csr_matrix((random.standard_normal(n * k).astype(dtype), random.integers(0, d, n * k), indptr), (n, d))

def sorted_matrix(*shape):
    X = matrix(*shape)
    X.sum_duplicates()
    return X

X = sorted_matrix(200_000, 2000, 20)
y = random.integers(0, 2, 200_000)
forever = {"tol": 1e-14, "max_iter": 10**6}

def waits_for_a_turn():
    # Another thread learns for ever, and is left behind at the end.
    import os, threading, time
    model = hinge.LinearSVC(block_options={"rounds": 10**6}).partial_fit(X[:10], y[:10], classes=[0, 1])
    threading.Thread(target=lambda: model.partial_fit(X, y), daemon=True).start()
    time.sleep(0.2)
    try:
        model.stream_.n_seen
    except KeyboardInterrupt:
        print("interrupted", "usable", sep="\\n", flush=True)
    os._exit(0)

def interrupted(search):
    # An interrupted search returns what it has.
    if search.stopped_by == "interrupt":
        raise KeyboardInterrupt
"""

WORK = """
print("started", flush=True)
try:
    for _ in range(20):
        %s
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
small = matrix(50, 5, 2)
model = hinge.LinearSVC().fit(small, np.arange(50) %% 2)
print("usable" if np.isfinite(model.coef_).all() else "broken", flush=True)
"""

PROGRAMS = {
    "dual_cd, squared hinge": "hinge.LinearSVC(solver='dual_cd', C=100.0, **forever).fit(X, y)",
    "dual_cd, hinge": "hinge.LinearSVC(loss='hinge', solver='dual_cd', C=100.0, **forever).fit(X, y)",
    "dual_cd, logistic": "hinge.LogisticRegression(solver='dual_cd', C=100.0, **forever).fit(X, y)",
    "dual_cd_online": "hinge.LinearSVC(loss='hinge', solver='dual_cd_online', C=100.0, **forever).fit(X, y)",
    "newton, hinge": "hinge.LinearSVC(loss='hinge', solver='newton', C=100.0, **forever).fit(X, y)",
    "newton, several classes": "hinge.LogisticRegression(solver='newton', C=100.0, **forever)"
    ".fit(X, random.integers(0, 200, 200_000))",
    "select_C": "interrupted(hinge.select_C(X, y, ratio=1.001, tol=1e-9, C_max=1e9))",
    "select_C, hinge": "interrupted(hinge.select_C(X, y, loss='hinge', solver='dual_cd', tol=1e-6, C_max=1e9))",
    "newton, dense": "hinge.LogisticRegression(solver='newton', C=1e6, **forever)"
    ".fit(random.standard_normal((3000, 6000)), y[:3000])",
    "presolve": "[hinge.LinearSVC(presolve=True, max_iter=1, tol=0.9).fit(wide, y[:80_000]) for wide in"
    " [sorted_matrix(80_000, 2_000_000, 60, np.float32)] * 1000]",
    "one thread, dual_cd": "hinge.LinearSVC(loss='hinge', solver='dual_cd', C=100.0, n_jobs=1, **forever).fit(X, y)",
    "one thread, newton": "hinge.LogisticRegression(solver='newton', C=100.0, n_jobs=1, **forever).fit(X, y)",
    "one thread, crammer_singer": "hinge.LinearSVC(multi_class='crammer_singer', C=100.0, n_jobs=1, **forever)"
    ".fit(X, random.integers(0, 20, 200_000))",
    "one thread, select_C": "interrupted(hinge.select_C(X, y, ratio=1.001, tol=1e-9, C_max=1e9, n_jobs=1))",
    "waiting for a turn": "waits_for_a_turn()",
    "LinearSVCCV": "hinge.LinearSVCCV(ratio=1.001, select_tol=1e-9, C_max=1e9).fit(X, y)",
}


@contextlib.contextmanager
def running(program):
    process = subprocess.Popen([sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def interrupt(program, seconds_of_work):
    """Lines after the signal, and seconds until the first of them."""
    with running(program) as process:
        assert process.stdout.readline() == "started\n"
        time.sleep(seconds_of_work)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        first = process.stdout.readline().strip()
        seconds = time.monotonic() - sent
        return [first, *process.stdout.read().split()], seconds


def assert_quick_interrupt(program, seconds_of_work):
    """A busy machine only adds time, so one of three tries has to be within the limit; all must end well."""
    for _ in range(3):
        lines, seconds = interrupt(program, seconds_of_work)
        assert lines == ["interrupted", "usable"]
        if seconds < LIMIT:
            return
    raise AssertionError(f"{seconds} seconds, and more than {LIMIT} in two tries before")


posix = pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")


@posix
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fit_is_interrupted_within_a_second(name):
    assert_quick_interrupt(PREPARE + WORK % PROGRAMS[name], 0.8)


@posix
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("compressed", [False, True])
def test_reading_is_interrupted_within_a_second(tmp_path, n_jobs, compressed):
    path = tmp_path / "long.svm"
    write_long_file(path, compressed)
    program = PREPARE.split("X = sorted")[0] + WORK % f"hinge.load_svmlight({str(path)!r}, n_jobs={n_jobs})"
    assert_quick_interrupt(program, 0.15)


def write_long_file(path, compressed):
    """Takes seconds to read and no memory to hold: rows, then comments."""
    block = b"1 1:0.5 2:0.25\n" * 1000 + (b"# " + b"x" * 98 + b"\n") * 20_000
    block = gzip.compress(block, 1) if compressed else block
    with path.open("wb") as file:
        for _ in range(1500 if compressed else 300):
            file.write(block)


@posix
def test_an_error_in_a_logging_handler_ends_the_fit():
    """What a handler of progress raises is raised by the fit, and soon."""
    program = (
        PREPARE
        + """
import logging
class Stop(Exception): pass
class Handler(logging.Handler):
    def emit(self, record): raise Stop
logger = logging.getLogger("hinge")
logger.setLevel(logging.INFO)
logger.addHandler(Handler())
print("started", flush=True)
try:
    hinge.LinearSVC(loss='hinge', solver='dual_cd', C=100.0, **forever).fit(X, y)
except Stop:
    print("stopped", flush=True)
"""
    )
    with running(program) as process:
        assert process.stdout.readline() == "started\n"
        sent = time.monotonic()
        assert process.stdout.readline() == "stopped\n"
        assert time.monotonic() - sent < 3


# Threads of a call.

ALONE = """
import os, threading, time, warnings
import numpy as np, hinge
warnings.filterwarnings("ignore")
random = np.random.default_rng(0)
X = random.standard_normal((4000, 20))
y = (X[:, 0] + random.standard_normal(4000) > 0).astype(int)
counts, is_over = [], False

def count():
    while not is_over:
        counts.append(len(os.listdir("/proc/self/task")))
        time.sleep(0.001)

watcher = threading.Thread(target=count, daemon=True)
watcher.start()
hinge.LinearSVC, hinge.BlockStore, hinge.cost_path  # loads SciPy, whose BLAS has threads of its own
counts.clear()
time.sleep(0.1)
usual = max(counts)
path = os.path.join(os.environ["FOLDER"], "rows.blocks")
store = hinge.BlockStore.build((X, y), path, n_jobs=1)
hinge.LinearSVC(loss="hinge", C=100.0, n_jobs=1, max_iter=200).fit(X, y)
hinge.LinearSVC(multi_class="crammer_singer", n_jobs=1, max_iter=20).fit(X, np.arange(4000) % 5)
hinge.LinearSVC(n_jobs=1, max_iter=50).fit(X, np.eye(4, dtype=int)[np.arange(4000) % 4])
hinge.LinearSVC(n_jobs=1, memory_budget="16MB", block_options={"in_memory": False}).fit(store).predict(store)
hinge.LogisticRegressionCV(n_jobs=1, cv=3, C_max=1.0).fit(X, y).predict(X)
hinge.LinearSVC(n_jobs=1).partial_fit(X, y, classes=[0, 1])
hinge.PegasosClassifier(n_jobs=1, max_iter=20).fit(X, y)
hinge.cost_path(X[:60], y[:60], box=(0.1, 0.1), n_jobs=1).predict(X, 0.05, 0.05)
is_over = True
watcher.join()
print(max(counts) - usual)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads by /proc")
def test_one_job_starts_no_thread(tmp_path):
    environment = os.environ | {"FOLDER": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, env=environment, timeout=300)
    assert done.stdout == "0\n", done.stderr


NO_ROOM = """
import resource, numpy as np, hinge, hinge._threads
hinge._threads.threads = lambda n_jobs: n_jobs  # also on a machine of one core
X, y = np.random.default_rng(0).standard_normal((300, 5)), np.arange(300) % 2
expected = hinge.LinearSVC(n_jobs=1).fit(X, y).coef_
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (1 << 20),) * 2)  # half of the stack of a thread
try:
    hinge.LinearSVC(n_jobs=3).fit(X, y)
except RuntimeError as error:
    print(error)
print((hinge.LinearSVC(n_jobs=1).fit(X, y).coef_ == expected).all())
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="limits the address space")
def test_threads_that_cannot_be_started():
    done = subprocess.run([sys.executable, "-c", NO_ROOM], capture_output=True, text=True, timeout=100)
    error, same = done.stdout.splitlines()
    assert error.startswith("cannot start 3 threads: ")
    assert same == "True"


def test_progress_of_one_thread():
    """The thread that works hands over its own progress."""
    program = PREPARE + (
        "import logging\n"
        "logging.basicConfig(level=logging.INFO, stream=__import__('sys').stdout, format='%(threadName)s')\n"
        "hinge.LinearSVC(loss='hinge', solver='dual_cd', C=100.0, n_jobs=1, tol=1e-14, max_iter=200).fit(X, y)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=100)
    assert set(done.stdout.split()) == {"MainThread"}
    assert len(done.stdout.split()) > 3


READERS = """
import os, threading, hinge
path = os.path.join(os.environ["FOLDER"], "text.svm")
with open(path, "w") as file:
    file.write("1 1:0.5 2:0.25 3:0.125\\n" * 1_500_000)
reader, rows = hinge._native.TextReader(path, None, None), []

def read():
    while (parts := reader.next("float64", 2)) is not None:
        rows.append(len(parts[4]))

threads = [threading.Thread(target=read) for _ in range(3)]
[thread.start() for thread in threads]
while any(thread.is_alive() for thread in threads):
    assert reader.zero_based in (None, False)
print(sum(rows), len(rows) > 3)
"""


def test_threads_take_turns_at_a_reader(tmp_path):
    environment = os.environ | {"FOLDER": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", READERS], capture_output=True, text=True, env=environment, timeout=100)
    assert done.stdout == "1500000 True\n", done.stderr
