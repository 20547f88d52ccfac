"""Workers of a Dask cluster that are killed at random moments of fits and searches, and clients that are killed.

    python tests/hardening/cluster.py --kills 20 --clients 3
    python tests/hardening/cluster.py --kills 20 --clients 0 --rows 1000 --columns 60000 --density 0.0005

Each fit reads its rows from block stores and loses workers to ``kill -9`` at moments drawn at random, until so many
were killed while a fit was running; every answer must have the bits of the one without kills. With the second line
columns are so many, and so empty, that those which are proportional travel as one. Then clients are
killed in the middle of a fit: the workers must give the memory of all shards back, and the seconds until they have
are printed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import hinge
import hinge.dask
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster
from hinge._dask_shards import n_shards_here

PARTS = 4
FITS = (
    (hinge.dask.LinearSVC, {}),
    (hinge.dask.LinearSVC, {"loss": "hinge"}),
    (hinge.dask.LogisticRegression, {"C": 10.0}),
    (hinge.dask.LogisticRegressionCV, {"cv": 3, "C_max": 8.0}),
)
MINUTE = 60.0


def write_stores(folder: Path, n_rows: int, n_columns: int, density: float) -> list[str]:
    """Rows that a hyperplane separates badly, in a block store for each part."""
    rng = np.random.default_rng(0)
    weights, paths = rng.standard_normal(n_columns), []
    for k in range(PARTS):
        drawn = {"density": density, "random_state": rng, "data_rvs": rng.standard_normal}
        X = sp.random(n_rows, n_columns, format="csr", **drawn)
        y = (X @ weights + rng.standard_normal(n_rows) > 0).astype(int)
        paths.append(str(folder / f"part{k}.store"))
        hinge.BlockStore.build((X, y), paths[-1])
    return paths


def answer(estimator: Any, parameters: dict[str, Any], paths: list[str], client: Client) -> tuple[Any, tuple[Any, ...]]:
    """The model, and everything in it that must be the same."""
    model = estimator(tol=1e-7, **parameters).fit(paths, client=client)
    proof = model.certificate_
    return model, (model.coef_.tobytes(), model.intercept_.tobytes(), proof.primal.tobytes(), proof.dual.tobytes())


class Killer:
    """Kills a worker at random moments while a fit runs; nobody is killed before all workers are there."""

    def __init__(self, client: Client, n_workers: int, mean: float, random: np.random.Generator):
        self._client, self._n_workers, self._mean, self._random = client, n_workers, mean, random
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._kill)
        self.killed = 0

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _kill(self) -> None:
        while not self._ended.wait(self._random.exponential(self._mean)):
            pids = self._client.run(os.getpid, on_error="ignore")
            if len(pids) < self._n_workers or self._ended.is_set():
                continue
            os.kill(int(self._random.choice(list(pids.values()))), signal.SIGKILL)
            self.killed += 1


class Kills:
    """Fits in turns until so many workers were killed."""

    def __init__(self, paths: list[str], n_workers: int, seed: int):
        self._paths, self._n_workers, self._random = paths, n_workers, np.random.default_rng(seed)
        self._quiet: list[tuple[tuple[Any, ...], float]] = []
        self.killed = self.fits = self.reloaded = self.failures = 0

    def run(self, client: Client, n_kills: int) -> bool:
        """Whether all kills are done; else Dask has not brought back a worker, and another cluster goes on."""
        if not self._quiet:
            for estimator, parameters in FITS:
                start = time.perf_counter()
                self._quiet.append((answer(estimator, parameters, self._paths, client)[1], time.perf_counter() - start))
        while self.killed < n_kills:
            turn = self.fits % len(FITS)
            (estimator, parameters), (expected, seconds) = FITS[turn], self._quiet[turn]
            with Killer(client, self._n_workers, seconds / 2, self._random) as killer:
                model, found = answer(estimator, parameters, self._paths, client)
            self.killed, self.fits = self.killed + killer.killed, self.fits + 1
            self.reloaded += model.traffic_.n_reloaded
            name = f"{estimator.__name__} {parameters}"
            print(f"{name}: {killer.killed} kills, the same bits: {found == expected}", flush=True)
            self.failures += found != expected
            try:
                if self.killed < n_kills:
                    client.wait_for_workers(self._n_workers, timeout=MINUTE)
            except TimeoutError:
                print("a worker has not been started again within a minute: another cluster", flush=True)
                return False
        return True


def kill_workers(paths: list[str], n_kills: int, n_workers: int, seed: int) -> int:
    """Returns how many answers were other ones."""
    kills, is_done = Kills(paths, n_workers, seed), False
    while not is_done:
        with new_cluster(n_workers) as cluster, Client(cluster) as client:
            is_done = kills.run(client, n_kills)
    print(
        f"{kills.killed} workers killed in {kills.fits} fits, {kills.reloaded} shards loaded again, "
        f"{kills.failures} other answers"
    )
    return kills.failures


def new_cluster(n_workers: int) -> LocalCluster:
    """Processes of one thread on this machine."""
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")


ENDLESS = """
import sys
from distributed import Client
import hinge.dask

if __name__ == "__main__":
    client = Client(sys.argv[1])
    while True:
        hinge.dask.LogisticRegression(C=1e5, tol=1e-10).fit(sys.argv[2:], client=client)
"""


def shards(client: Client) -> int:
    """In the memory of all workers."""
    return sum(client.run(n_shards_here).values())


def kill_clients(client: Client, paths: list[str], n_kills: int, seed: int) -> int:
    """Kill clients in the middle of a fit; returns how often a shard was still there after a minute."""
    random, failures, waits = np.random.default_rng(seed), 0, []
    for _ in range(n_kills):
        command = [sys.executable, "-c", ENDLESS, client.scheduler.address, *paths]
        with subprocess.Popen(command) as process:
            # Fits follow each other: the moment is one at which all shards are there.
            time.sleep(random.exponential(5.0))
            while shards(client) < PARTS:
                if process.poll() is not None:
                    raise SystemExit(f"the client has ended by itself: {process.returncode}")
                time.sleep(0.01)
            process.kill()
            start = time.monotonic()
        while (left := shards(client)) and time.monotonic() - start < MINUTE:
            time.sleep(0.01)
        waits.append(time.monotonic() - start)
        failures += left > 0
    print(f"{n_kills} clients killed, memory back after {', '.join(f'{wait:.2f}' for wait in waits)} s")
    return failures


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = write_stores(Path(folder), given.rows, given.columns, given.density)
        failures = kill_workers(paths, given.kills, given.workers, given.seed)
        if given.clients:
            with new_cluster(given.workers) as cluster, Client(cluster) as client:
                failures += kill_clients(client, paths, given.clients, given.seed)
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
