"""Clients of a cluster in processes of their own, which fit until somebody ends them."""

import subprocess
import sys
import time
from contextlib import contextmanager

from hinge._dask_shards import n_shards_here

_HEAD = """
import sys, time
import dask, numpy as np
from distributed import Client
import hinge.dask

def rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20000, 60)) * np.logspace(0, 3, 60)
    return X, (X[:, 0] + rng.standard_normal(20000) > 0).astype(int)

if __name__ == "__main__":
    client = Client(sys.argv[1])
    parts = [dask.delayed(rows)(k) for k in range(2)]
"""


@contextmanager
def endless(client, folder, before, loop, after=""):
    """The process of a client that does ``loop`` after ``before`` until Ctrl-C, says so, and then does ``after``; when
    it has shards on the workers.
    """
    lines = ["print('ready', flush=True)", "try:", "    while True:", f"        {loop}", "except KeyboardInterrupt:"]
    lines = [before, *lines, "    print('interrupted', flush=True)", f"    {after}", "    time.sleep(60)"]
    script = folder / "endless.py"
    script.write_text(_HEAD + "".join(f"    {line}\n" for line in lines))
    command = [sys.executable, str(script), client.scheduler.address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        end = time.monotonic() + 40
        while not sum(client.run(n_shards_here).values()):
            assert time.monotonic() < end
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
