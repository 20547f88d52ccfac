"""Fits on a Dask cluster of processes on this machine beside the plain estimator, and what larger clusters would take.

    python benches/cluster.py measure --sets a9a covtype --out cluster.csv
    python benches/cluster.py search --sets a9a covtype --out search.csv
    python benches/cluster.py predict cluster.csv

``measure --stores`` gives the workers block stores, from which each reads its own rows, instead of delayed parts; the
set ``contents`` is every so-manieth row of that of ``benches/compare/contents.py``, ``--rows`` in all, its binary task.

``search`` writes a line for each search for C, five folds: by the plain search with as many threads as the largest
cluster has workers (workers = 0; once as it is, once by Newton, as the cluster does), and on the cluster; without a fit
at the chosen C.

``measure`` writes a line for each set, loss and number of workers (0 is the plain estimator, with as many threads as
the largest cluster has workers): objective, gap, seconds, rounds, bytes. ``predict`` fits the time model

    seconds = rounds * latency + bytes / bandwidth + passes * nonzeros * price / workers

to those lines by least squares, says how far off it is on them, and prints what it gives for clusters that nobody here
has: a prediction, not a result. Bytes are those of a star, whose centre takes one vector from each worker; where
that is what limits, the table says so.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "compare"))

FIELDS = [
    "set", "loss", "C", "tol", "workers", "n_rows", "n_columns", "nonzeros", "primal", "gap", "steps", "passes",
    "seconds", "loading", "working", "waiting", "rounds", "bytes",
]  # fmt: skip
SEARCH_FIELDS = [
    "set", "loss", "solver", "workers", "C", "score", "values", "passes", "steps", "products", "seconds", "loading",
    "working", "waiting", "rounds", "bytes", "load",
]  # fmt: skip
LOSSES = ("squared_hinge", "logistic", "hinge")
CONTENTS_ROWS = 7_316_650
PARTS = 2
"""Shards: with two workers one each, with one worker both, the same bits either way."""


def read(path: str) -> tuple[Any, Any]:
    """A part from its file."""
    import scipy.sparse as sp

    with np.load(path) as kept:
        X = sp.csr_matrix((kept["data"], kept["indices"], kept["indptr"]), shape=kept["shape"])
        return X, kept["y"]


def task_of(name: str, n_rows: int) -> Any:
    """The set of this name."""
    import tasks

    return tasks.Task(name, *contents_sample(n_rows)) if name == "contents" else tasks.load(name)


def contents_sample(n_rows: int) -> tuple[Any, np.ndarray]:
    """Rows from all over the largest set, n-grams of file names, and whether they are documentation."""
    import contents
    import problems
    from sklearn.feature_extraction.text import HashingVectorizer

    loader = problems._loader()
    lines = loader._tsv(loader.HERE / "debian_contents/debian_contents_paths.tsv.xz")
    sections, _, names = zip(*islice(lines, 0, None, CONTENTS_ROWS // n_rows), strict=True)
    options = {"analyzer": "char", "ngram_range": (3, 5), "n_features": 2**22, "alternate_sign": False, "binary": True}
    X = HashingVectorizer(dtype=np.float32, **options).transform(names)
    return X, np.where(np.array(sections) == contents.POSITIVE, 1.0, -1.0)


def write_parts(X: Any, y: np.ndarray, folder: Path, *, are_stores: bool) -> list[str]:
    """The rows in files for the workers, every second row in the second."""
    paths = []
    for k in range(PARTS):
        part, path = X[k::PARTS], folder / f"part{k}.{'store' if are_stores else 'npz'}"
        if are_stores:
            import hinge

            path.unlink(missing_ok=True)
            hinge.BlockStore.build((part, y[k::PARTS]), path)
            paths.append(str(path))
            continue
        arrays = {"data": part.data, "indices": part.indices, "indptr": part.indptr, "shape": part.shape}
        np.savez(path, y=y[k::PARTS], **arrays)
        paths.append(str(path))
    return paths


def estimator(module: Any, loss: str, C: float, tol: float, **more: Any) -> Any:
    """One of the plain module's or of the cluster's."""
    if loss == "logistic":
        return module.LogisticRegression(C=C, tol=tol, **more)
    return module.LinearSVC(loss=loss, C=C, tol=tol, **more)


def line(task: Any, model: Any, settings: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What is written of a fit."""
    proof = model.certificate_
    return settings | {
        "set": task.name,
        "n_rows": task.X.shape[0],
        "n_columns": task.X.shape[1],
        "nonzeros": task.X.nnz,
        "primal": repr(float(proof.primal.sum())),
        "gap": f"{proof.relative_gap.max():.3e}",
        "steps": int(model.n_iter_.max()),
        "passes": f"{proof.passes.max():.2f}",
        "seconds": f"{seconds:.3f}",
    }


def measure(arguments: argparse.Namespace) -> None:
    """Fits of all sets."""
    import dask
    import hinge
    import hinge.dask
    from distributed import Client, LocalCluster

    with open(arguments.out, "w", newline="") as file, tempfile.TemporaryDirectory() as folder:
        table = csv.DictWriter(file, FIELDS)
        table.writeheader()
        for name in arguments.sets:
            task = task_of(name, arguments.rows)
            paths = write_parts(task.X, task.y, Path(folder), are_stores=arguments.stores)
            for loss in arguments.losses:
                settings = {"loss": loss, "C": arguments.C, "tol": arguments.tol}
                start = time.perf_counter()
                model = estimator(hinge, n_jobs=max(arguments.workers), **settings).fit(task.X, task.y)
                table.writerow(line(task, model, settings | {"workers": 0}, time.perf_counter() - start))
                file.flush()
            for workers in arguments.workers:
                cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
                with cluster, Client(cluster, direct_to_workers=True) as client:
                    client.run(__import__, "hinge.dask")
                    for loss in arguments.losses:
                        settings = {"loss": loss, "C": arguments.C, "tol": arguments.tol}
                        parts = paths if arguments.stores else [dask.delayed(read)(path) for path in paths]
                        model = estimator(hinge.dask, **settings).fit(parts, client=client)
                        traffic = model.traffic_
                        found = line(task, model, settings | {"workers": workers}, traffic.seconds)
                        found |= {
                            "loading": f"{traffic.seconds_loading:.3f}",
                            "working": f"{traffic.seconds_working:.3f}",
                            "waiting": f"{traffic.seconds_waiting:.3f}",
                            "rounds": traffic.rounds,
                            "bytes": traffic.bytes_sent + traffic.bytes_received,
                        }
                        table.writerow(found)
                        file.flush()
                        print(name, loss, workers, traffic.line(), flush=True)


def search_line(found: Any, settings: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What is written of a search."""
    return settings | {
        "C": found.C,
        "score": f"{found.best_score:.5f}",
        "values": len(found.Cs),
        "passes": f"{found.passes.sum():.1f}",
        "steps": int(found.n_iter.sum()),
        "products": int(found.n_inner.sum()),
        "seconds": f"{seconds:.2f}",
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def measure_searches(arguments: argparse.Namespace) -> None:
    """Searches on all sets; rows of the parts one after the other are those of the plain search."""
    import dask
    import hinge
    import hinge.dask
    import scipy.sparse as sp
    from distributed import Client, LocalCluster

    losses = [loss for loss in arguments.losses if loss != "hinge"]
    with open(arguments.out, "w", newline="") as file, tempfile.TemporaryDirectory() as folder:
        table = csv.DictWriter(file, SEARCH_FIELDS)
        table.writeheader()
        for name in arguments.sets:
            task = task_of(name, arguments.rows)
            paths = write_parts(task.X, task.y, Path(folder), are_stores=False)
            X = sp.vstack([task.X[k::PARTS] for k in range(PARTS)], format="csr")
            y = np.concatenate([task.y[k::PARTS] for k in range(PARTS)])
            for loss in losses:
                for solver in ("auto", "newton"):
                    start = time.perf_counter()
                    n_jobs = max(arguments.workers)
                    found = hinge.select_C(X, y, loss=loss, solver=solver, n_jobs=n_jobs, random_state=0)
                    settings = {"set": name, "loss": loss, "solver": solver, "workers": 0}
                    table.writerow(search_line(found, settings, time.perf_counter() - start))
                    file.flush()
            for workers in arguments.workers:
                cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
                with cluster, Client(cluster, direct_to_workers=True) as client:
                    client.run(__import__, "hinge.dask")
                    for loss in losses:
                        parts = [dask.delayed(read)(path) for path in paths]
                        found = hinge.dask.select_C(parts, client=client, loss=loss, random_state=0)
                        traffic = found.traffic
                        settings = {"set": name, "loss": loss, "solver": "newton", "workers": workers}
                        table.writerow(
                            search_line(found, settings, traffic.seconds)
                            | {
                                "loading": f"{traffic.seconds_loading:.2f}",
                                "working": f"{traffic.seconds_working:.2f}",
                                "waiting": f"{traffic.seconds_waiting:.2f}",
                                "rounds": traffic.rounds,
                                "bytes": traffic.bytes_sent + traffic.bytes_received,
                            }
                        )
                        file.flush()
                        print(name, loss, workers, found.C, traffic.line(), flush=True)


def model_of(lines: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Latency, seconds a byte and seconds a nonzero of a pass, none below 0; and the errors of the lines.

    The first two from what workers were waited for, the third from what they worked.
    """
    from scipy.optimize import nnls

    terms = np.array([_terms(line) for line in lines])
    waiting, working = (np.array([float(line[name]) for line in lines]) for name in ("waiting", "working"))
    # Relative errors count: fits of a second and of minutes alike.
    transport, _ = nnls(terms[:, :2] / waiting[:, None], np.ones(len(lines)))
    work, _ = nnls(terms[:, 2:] / working[:, None], np.ones(len(lines)))
    found = np.concatenate([transport, work])
    return found, terms @ found / (waiting + working) - 1


def _terms(line: dict[str, Any]) -> list[float]:
    workers = float(line["workers"])
    return [float(line["rounds"]), float(line["bytes"]), float(line["passes"]) * float(line["nonzeros"]) / workers]


def predict(arguments: argparse.Namespace) -> None:
    """The model, its errors, and larger clusters."""
    with open(arguments.lines, newline="") as file:
        lines = [line for line in csv.DictReader(file) if int(line["workers"]) > 0]
    (latency, byte, price), errors = model_of(lines)
    if byte == 0:
        raise SystemExit("these fits have moved too little to know a bandwidth: measure a set of many columns, too")
    bandwidth = 1 / byte
    print(f"latency {latency * 1e3:.2f} ms, bandwidth {bandwidth / 1e6:.0f} MB/s, {price * 1e9:.2f} ns a nonzero")
    print(f"off by {100 * np.median(np.abs(errors)):.0f} % in the median, {100 * np.abs(errors).max():.0f} % at most")
    rounds, passes = (np.median([float(line[name]) for line in lines]) for name in ("rounds", "passes"))
    print(f"Predicted, not measured, for {rounds:.0f} rounds and {passes:.0f} passes:")
    print("nonzeros columns workers seconds latency transport work limit")
    for nonzeros in (1e9, 1e10, 1e11):
        for columns in (1e4, 1e6):
            for workers in (64, 256, 1024):
                parts = {
                    "latency": rounds * latency,
                    "transport": rounds * 2 * 8 * columns * workers * byte,
                    "work": passes * nonzeros * price / workers,
                }
                limit = max(parts, key=lambda part: parts[part])
                numbers = " ".join(f"{seconds:.0f}" for seconds in (sum(parts.values()), *parts.values()))
                print(f"{nonzeros:.0e} {columns:.0e} {workers} {numbers} {limit}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("measure", measure), ("search", measure_searches)):
        command = commands.add_parser(name)
        command.add_argument("--sets", nargs="+", default=["covtype", "flights", "imdb", "phishing_urls"])
        command.add_argument("--losses", nargs="+", choices=LOSSES, default=LOSSES)
        command.add_argument("--workers", nargs="+", type=int, default=[1, 2])
        command.add_argument("--rows", type=int, default=200_000)
        command.add_argument("--out", required=True)
        command.set_defaults(run=run)
    command = commands.choices["measure"]
    command.add_argument("--C", type=float, default=1.0)
    command.add_argument("--tol", type=float, default=1e-4)
    command.add_argument("--stores", action="store_true")
    command = commands.add_parser("predict")
    command.add_argument("lines")
    command.set_defaults(run=predict)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
