"""Calls that run out of memory raise MemoryError and leave the process alive."""

import os
import platform
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")

# Room in MiB beyond what the process has, from where next to nothing fits to where much does.
ROOM = (10, 18, 22, 30, 50)

# Prepares a call, makes it in forked processes with ever more room, and prints how each ended.
PROGRAM = """
import ctypes, gc, os, resource, sys, tempfile, warnings
import hinge, numpy as np, scipy.sparse as sp

# What a name brings with it at its first use is not the memory that is tested, and NumPy's own libraries do not
# survive without any.
for name in hinge.__all__:
    getattr(hinge, name)
warnings.simplefilter("ignore")
folder = tempfile.TemporaryDirectory()

def problem(n_rows, n_columns, n_classes=2):
    random = np.random.default_rng(0)
    columns = np.sort(random.integers(0, n_columns, (n_rows, 6)), axis=1).ravel()
    X = sp.csr_matrix((random.random(6 * n_rows), columns, np.arange(0, 6 * n_rows + 1, 6)), (n_rows, n_columns))
    X.sum_duplicates()
    return X, random.integers(0, n_classes, n_rows)

def fit(n_rows, n_columns, n_classes=2, **options):
    X, y = problem(n_rows, n_columns, n_classes)
    return lambda: hinge.LinearSVC(max_iter=2, n_jobs=1, **options).fit(X, y)

def fit_store(**options):
    path = folder.name + "/a"
    # Built by a child: its memory would be room for the fit.
    if os.fork() == 0:
        hinge.BlockStore.build(problem(60_000, 1_500_000), path)
        os._exit(0)
    os.wait()
    return lambda: hinge.LinearSVC(max_iter=2, n_jobs=1, **options).fit(hinge.BlockStore(path))

def search(estimator, **options):
    X, y = problem(30_000, 300_000)
    return lambda: estimator(cv=3, Cs=[0.01, 0.1], max_iter=2, n_jobs=1, **options).fit(X, y)

def fit_labels():
    X, y = problem(20_000, 300_000, 20)
    Y = sp.csr_matrix((np.ones(len(y)), (np.arange(len(y)), y)))
    return lambda: hinge.LinearSVC(sparse_coef=True, max_iter=2, n_jobs=1).fit(X, Y)

def transform():
    X, _ = problem(60_000, 2_000)
    return lambda: hinge.Poly2Map().fit(X).transform(X)

def load():
    from sklearn.datasets import dump_svmlight_file
    path = folder.name + "/text"
    dump_svmlight_file(*problem(60_000, 100_000), path)
    return lambda: hinge.load_svmlight(path, n_jobs=1)

def build():
    source = problem(60_000, 400_000)
    return lambda: hinge.BlockStore.build(source, folder.name + "/b", n_jobs=1)

def build_text():
    load()
    return lambda: hinge.BlockStore.build(folder.name + "/text", folder.name + "/c", n_jobs=1)

def learn():
    X, y = problem(60_000, 300_000, 4)
    return lambda: hinge.LinearSVC(n_jobs=1).partial_fit(X, y, classes=range(4))

def predict(sparse_coef):
    X, y = problem(30_000, 5_000, 150)
    model = hinge.LinearSVC(max_iter=1, sparse_coef=sparse_coef).fit(X[:3000], y[:3000])
    return lambda: model.decision_function(X)

def words(n_rows):
    random = np.random.default_rng(0)
    names = [f"word{k}" for k in range(50_000)]
    texts = [" ".join(names[k] for k in row) for row in random.integers(0, len(names), (n_rows, 8))]
    return {"text": texts, "name": [text[:9] for text in texts], "number": random.random(n_rows).tolist(),
        "numbers": random.random(n_rows)}

def encode(numbering):
    table = words(60_000)
    encoder = hinge.TableEncoder(numbering=numbering, n_jobs=1)
    if numbering == "counted":
        return lambda: encoder.fit(table)
    encoder.fit({name: values[:100] for name, values in table.items()})
    return lambda: encoder.transform(table)

def plane():
    X, y = problem(3_000, 40)
    return lambda: hinge.cost_path(X, y, max_regions=2000, on_limit="partial", n_jobs=1)

def attempt(call, room):
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (room << 20), hard))
    try:
        call()
        end = "done"
    except MemoryError as error:
        end = f"MemoryError: {error}"
    except Exception as error:
        end = f"{type(error).__name__}: {error}"
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    fit(100, 10)()
    os.write(1, f"{end}\\n".encode())
    os._exit(0)

call = eval(sys.argv[1])
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
for room in map(int, sys.argv[2:]):
    if os.fork() == 0:
        attempt(call, room)
    if status := os.wait()[1]:
        print("status", status, flush=True)
"""

CALLS = {
    "presolve": "fit(50_000, 400_000, presolve=True)",
    "newton": "fit(100_000, 400_000, solver='newton', presolve=False)",
    "classes": "fit(20_000, 60_000, n_classes=30)",
    "crammer_singer": "fit(20_000, 60_000, n_classes=30, loss='hinge', multi_class='crammer_singer')",
    "primal_cd": "fit(100_000, 400_000, solver='primal_cd')",
    "labels": "fit_labels()",
    "degree_2": "fit(10_000, 1500, degree=2)",
    "transform": "transform()",
    "search": "search(hinge.LinearSVCCV, loss='hinge')",
    "calibrated_search": "search(hinge.LogisticRegressionCV)",
    "load": "load()",
    "build": "build()",
    "build_text": "build_text()",
    "fit_store": "fit_store(memory_budget='80MB')",
    "partial_fit": "learn()",
    "predict": "predict(sparse_coef=False)",
    "predict_sparse": "predict(sparse_coef=True)",
    "plane": "plane()",
    "encode": "encode('hashed')",
    "encode_fit": "encode('counted')",
}


@pytest.mark.parametrize("name", CALLS)
def test_what_finds_no_memory_raises_and_the_process_lives_on(name):
    # Without arenas of threads, for which glibc sets address space aside that calls then find room in.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, CALLS[name], *map(str, ROOM)]
    ends = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(ends) == len(ROOM)
    assert all(end == "done" or end.startswith("MemoryError") for end in ends), ends
    assert any(re.search("allocate [0-9.]+ (bytes|[KMG]iB)", end) for end in ends), ends


# Searches for C twice, with vectors of 3 MB, and prints how many pages the second search took from the system per fit.
SHORT_FITS = """
import resource, warnings
import hinge, numpy as np, scipy.sparse as sp

warnings.simplefilter("ignore")
n = 400_000
X = sp.csr_matrix((np.ones(n), np.arange(n) % 20, np.arange(n + 1)))
y = np.where(np.arange(n) % 3, 1, -1)
options = {"Cs": np.geomspace(1e-5, 1e-3, 20), "cv": [(np.arange(n), np.arange(100))], "n_jobs": 1}
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    found = hinge.select_C(X, y, penalty="l1", fit_intercept=False, **options)
    pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(pages / len(found.Cs))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries keep memory in their own ways")
def test_short_fits_take_no_new_memory():
    """Sixteen thousand pages of 4 kB each, else."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    ran = subprocess.run([sys.executable, "-c", SHORT_FITS], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 4000
