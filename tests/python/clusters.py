"""Clusters of two processes on this machine for tests, some of which kill the workers."""

import contextlib
import time

from distributed import Client, LocalCluster
from hinge._dask_shards import n_shards_here


class Clusters(contextlib.ExitStack):
    """Clusters, closed together, of which the last is in use."""

    def __init__(self):
        super().__init__()
        self._client = None

    def client(self):
        """The client of a cluster of two workers, both of which are there. dask sometimes does not start a killed
        worker again, for which a test may have asked for a third: a new cluster then."""
        if self._client is not None and len(self._client.cluster.worker_spec) == 2:
            with contextlib.suppress(TimeoutError):
                self._client.wait_for_workers(2, timeout=20)
                return self._client
        cluster = self.enter_context(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0"))
        self._client = self.enter_context(Client(cluster))
        return self._client


def shards_left(client):
    """Shards in the memory of all workers, once they have had a moment to give it back."""
    end = time.monotonic() + 20
    while (left := sum(client.run(n_shards_here).values())) and time.monotonic() < end:
        time.sleep(0.1)
    return left
