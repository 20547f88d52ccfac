"""How many round trips a fit over shards takes beside the passes of the plain estimator: no Dask, no processes.

    python benches/cluster_rounds.py --sets a9a covtype --losses squared_hinge logistic

The shards are those of workers, in this process; the fit is the one that ``hinge.dask`` calls, which asks them as it
would ask workers that have one shard each. What is counted does not depend on how busy the machine is. Rows go to the
shards in turn: the first to the first shard, the second to the second. A line of the table for each set, loss and C:

    rounds       requests to all shards, each with its answers
    passes       readings of the rows by the plain estimator, whatever solver it takes: passes of its certificate
    ratio        rounds / passes
    bytes/round  of the vectors, down and up, all shards together
    vectors      rounds with at least one vector of the columns in the request or the answers, bytes/vector its bytes:
                 what travels over columns x 8 x shards; where columns travel as one, a tenth as many numbers as there
                 are columns count as a vector
    own          readings of the rows by the shards
    seconds      of the fit over shards

A fit that reaches ``--limit`` is ended and has ``> rounds so far`` in its line. Sets are named as in
``benches/compare/tasks.py``: those of ``HINGE_DATA``, ``generated`` needs none.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "compare"))

LOSSES = ("squared_hinge", "logistic", "hinge")
SETS = ("a9a", "covtype", "flights", "imdb")
COLUMNS = (
    "set", "loss", "C", "rounds", "passes", "ratio", "bytes/round", "vectors", "bytes/vector", "own", "gap", "seconds",
)  # fmt: skip
WIDTHS = (10, 13, 6, 7, 7, 6, 11, 7, 12, 7, 9, 8)


class TooLongError(Exception):
    """A fit has reached the limit of its time."""


class Counted:
    """Shards in this process in place of those on workers, for the native fit; what travels is counted."""

    def __init__(self, shards: Sequence[Any], n_columns: int, limit: float):
        self._shards = shards
        self._least = n_columns if n_columns < 40_000 else n_columns // 10
        self._end = time.perf_counter() + limit
        self._pool = ThreadPoolExecutor(len(shards))
        self.rounds = self.vectors = 0
        self.sent = self.received = self.bytes_of_vectors = 0

    def ask(self, request: np.ndarray, _: Any = ()) -> Any:
        """The answers of all shards, added."""
        from hinge._dask_shards import reduced

        nodes = {(0, number): answer for number, answer in enumerate(self._round(request))}
        ((sums, maxima),) = reduced(nodes, len(self._shards)).values()
        return sums, maxima

    def gather(self, request: np.ndarray, _: Any = ()) -> list[np.ndarray]:
        """The answers of all shards, each for itself."""
        return [sums for sums, _ in self._round(request)]

    def resume(self, restore: np.ndarray) -> Any:
        """For shards that were lost: there are none."""
        raise AssertionError("no shard here begins anew")

    def _round(self, request: np.ndarray) -> list[Any]:
        if time.perf_counter() > self._end:
            raise TooLongError
        answers = list(self._pool.map(lambda shard: shard.answer(request), self._shards))
        sent = request.nbytes * len(self._shards)
        received = sum(sums.nbytes + maxima.nbytes for sums, maxima in answers)
        self.rounds += 1
        self.sent, self.received = self.sent + sent, self.received + received
        if max(request.size, *(sums.size for sums, _ in answers)) >= self._least:
            self.vectors += 1
            self.bytes_of_vectors += sent + received
        return answers


@dataclass
class Rounds:
    """What a fit over shards took."""

    shards: Counted
    seconds: float
    result: dict[str, Any] | None
    """None where the limit was reached."""


def plain_estimator(loss: str, C: float, tol: float) -> Any:
    """The estimator in memory."""
    import hinge

    if loss == "logistic":
        return hinge.LogisticRegression(C=C, tol=tol, n_jobs=1)
    return hinge.LinearSVC(loss=loss, C=C, tol=tol, n_jobs=1)


def parts_of(X: Any, y: np.ndarray, n_shards: int) -> list[tuple[Any, np.ndarray]]:
    """Rows for each shard, in turn."""
    return [(X[k::n_shards], y[k::n_shards]) for k in range(n_shards)]


def fit_over_shards(parts: Sequence[tuple[Any, np.ndarray]], model: Any, loss: str, limit: float) -> Rounds:
    """The fit of ``model``'s parameters over a shard for each part, on one thread each."""
    from hinge import _native
    from hinge._dask_shards import Setup, ShardActor, joined_facts
    from hinge._options import fit_options

    given = model._checked()
    options = {**fit_options(given, loss), "solver": "newton", "multi_class": "ovr"}
    classes, n_columns = np.unique(np.concatenate([y for _, y in parts])), parts[0][0].shape[1]
    setup = Setup("rounds", given.C, classes, np.ones(len(classes)), n_columns, options)
    shards = [ShardActor(part, number, setup, 1) for number, part in enumerate(parts)]
    facts = joined_facts([shard.facts for shard in shards])
    counted, start, result = Counted(shards, n_columns, limit), time.perf_counter(), None
    try:
        result = _native.fit_shards(counted, facts, n_columns, len(classes), options)
    except TooLongError:
        pass
    finally:
        for shard in shards:
            shard.close()
    return Rounds(counted, time.perf_counter() - start, result)


def line_of(settings: tuple[str, str, float], passes: float, found: Rounds) -> tuple[str, ...]:
    """A line of the table."""
    name, loss, C = settings
    shards, is_ended = found.shards, found.result is not None
    at_least = "" if is_ended else ">"
    return (
        name,
        loss,
        f"{C:g}",
        f"{at_least}{shards.rounds}",
        f"{passes:.1f}",
        f"{at_least}{shards.rounds / passes:.2f}",
        f"{(shards.sent + shards.received) / shards.rounds:.0f}",
        str(shards.vectors),
        f"{shards.bytes_of_vectors / max(shards.vectors, 1):.0f}",
        f"{found.result['passes'].max():.1f}" if is_ended else "-",
        f"{gap_of(found.result):.1e}" if is_ended else "-",
        f"{at_least}{found.seconds:.1f}",
    )


def gap_of(result: dict[str, Any]) -> float:
    """The largest relative gap of a fit."""
    return float(((result["primal"] - result["dual"]) / result["primal"]).max())


def printed(cells: Sequence[str]) -> None:
    """Print cells below those of the lines before."""
    words, numbers = (
        [f"{cell:{side}{width}}" for cell, width in zip(cells, WIDTHS, strict=True)] for side in ("<", ">")
    )
    print(" ".join(words[:2] + numbers[2:]), flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("--C", nargs="+", type=float, default=[1.0])
    parser.add_argument("--gap", type=float, default=1e-4, help="relative duality gap (1e-4)")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of a fit over shards (300)")
    arguments = parser.parse_args()
    import tasks

    printed(COLUMNS)
    for name in arguments.sets:
        task = tasks.load(name)
        parts = parts_of(task.X, task.y, arguments.shards)
        for loss in arguments.losses:
            for C in arguments.C:
                model = plain_estimator(loss, C, arguments.gap).fit(task.X, task.y)
                found = fit_over_shards(parts, model, loss, arguments.limit)
                printed(line_of((name, loss, C), model.certificate_.passes.max(), found))


if __name__ == "__main__":
    main()
