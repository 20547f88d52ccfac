"""The side of the client: shards on the workers, round trips to all of them, and workers that are lost."""

from __future__ import annotations

import gc
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Thread
from traceback import clear_frames
from typing import Any

import numpy as np
from distributed import CancelledError, Client, wait

from hinge._dask_columns import SparseColumns, VectorAt
from hinge._dask_parts import Part, loaded, targets
from hinge._dask_shards import (
    Answer,
    Node,
    PartFacts,
    Question,
    Reply,
    Setup,
    ShardActor,
    describe,
    end_fit,
    joined_facts,
    reduced,
)

_PATIENCE = 30.0
"""Seconds for which a worker that does not answer is waited for, until the scheduler says what has become of it."""

_ATTEMPTS = 20
"""How often shards are loaded again at most in one round."""

_PAUSE = 0.1
"""Seconds before the second of these attempts; before each further one so much more."""

_TICK = 2.0
"""Seconds after which a worker that should have a shard by now is looked for."""

_OF_DATA = (ValueError, TypeError, MemoryError, NotImplementedError)
"""Errors that another worker would meet, too."""


Folds = list[tuple[np.ndarray, np.ndarray]]
"""Rows of a part that each fold trains on, and that it holds out."""


@dataclass
class Traffic:
    """What a fit or a search has sent and received.

    Attributes
    ----------
    n_workers, n_shards : int
        Workers that had shards, and shards.
    rounds : int
        Requests to all workers, each with its answers.
    bytes_sent, bytes_received : int
        Of vectors, all workers together.
    seconds : float
        Of the whole fit, loading the shards included.
    seconds_loading : float
        Until the first request.
    seconds_working : float
        Of the slowest worker in each round.
    seconds_waiting : float
        Of rounds, beyond the work of their slowest worker: transport and reduction.
    n_reloaded : int
        Shards that were loaded again because a worker was lost.
    """

    n_workers: int = 0
    n_shards: int = 0
    rounds: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    seconds: float = 0.0
    seconds_loading: float = 0.0
    seconds_working: float = 0.0
    seconds_waiting: float = 0.0
    n_reloaded: int = 0

    def line(self) -> str:
        """In one line."""
        sent, received = self.bytes_sent / 1e6, self.bytes_received / 1e6
        return (
            f"{self.n_shards} shards on {self.n_workers} workers: {self.rounds} rounds, {sent:.1f} MB sent, "
            f"{received:.1f} MB received, {self.seconds:.1f} s, of these {self.seconds_loading:.1f} loading, "
            f"{self.seconds_working:.1f} working, {self.seconds_waiting:.1f} waiting"
        )


@dataclass
class _Seat:
    """A shard and where it is."""

    part: Part
    number: int
    future: Any = None
    actor: Any = None
    address: str = ""
    facts: Sequence[float] = field(default_factory=list)
    folds: Folds | None = None


class LostShardError(RuntimeError):
    """The data of a shard were in the memory of a worker that is gone, and nowhere else."""


def described(
    client: Client, parts: Sequence[Part], data: Sequence[Any], *, has_labels: bool = False
) -> list[tuple[Part, PartFacts]]:
    """What is in each part, without those that have no rows. Checks them on the workers."""
    futures = [
        client.submit(describe, part.number, future, part.is_fixed, has_labels, pure=False)
        for part, future in zip(parts, data, strict=True)
    ]
    return [pair for pair in zip(parts, client.gather(futures), strict=True) if pair[1].n_rows]


def workers_of(client: Client) -> dict[str, Any]:
    """What the scheduler says of each worker, by address.

    ``client.scheduler_info`` hands out a field that updates of its own, which name no workers, may overwrite before.
    """
    return client.sync(client.scheduler.identity, n_workers=-1)["workers"]


def _lost(seat: _Seat) -> LostShardError:
    return LostShardError(
        f"shard {seat.number} ({seat.part.name}): its data were only in the memory of a worker that is gone. "
        "Give parts that can be loaded again: paths, delayed parts, or arrays that were not scattered"
    )


class Shards:
    """The shards of a fit; a context that gives their memory back."""

    def __init__(self, client: Client, parts: Sequence[Part], setup: Setup, folds: Sequence[Folds] | None = None):
        self._client = client
        self._setup = replace(setup, fit=uuid.uuid4().hex)
        self._seats = [_Seat(part, number) for number, part in enumerate(parts)]
        for seat, own in zip(self._seats, folds or (), strict=folds is not None):
            seat.folds = own
        self._request: np.ndarray = np.empty(0)
        self._columns: dict[tuple[int, ...], SparseColumns | None] = {}
        self._is_added = True
        self._nodes: dict[Node, Answer] = {}
        self._new: list[int] = []
        self._attempts = 0
        self.traffic = Traffic(n_shards=len(self._seats))

    def __enter__(self) -> Shards:
        try:
            self._place(self._seats)
        except BaseException as error:
            self.cancel(error)
            raise
        self.traffic.n_workers = len({seat.address for seat in self._seats})
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
            # Releasing futures is not enough: whatever still knows one of them would keep a shard in memory. Circles of
            # the calls of actors do, until Python collects them. What they keep then is an actor without its rows; to
            # collect them here took an eighth of a second, of a fit of 0.7 (covtype, two workers).
            Thread(target=self._end_everywhere, daemon=True).start()
        else:
            self.cancel(error)

    def cancel(self, error: BaseException) -> None:
        """Give up all shards because of an exception, whose traceback must not keep them. Does not wait."""
        if not isinstance(error, Exception):
            # Ctrl-C, which whoever catches it may hold for long, with the frames of all that was waited for.
            clear_frames(error.__traceback__)
        self.close()
        # Calls of actors leave circles behind that know them, and errors of lost workers have frames that do.
        gc.collect()
        Thread(target=self._end_everywhere, daemon=True).start()

    def _end_everywhere(self) -> None:
        with suppress(Exception):  # the client may be closed, the scheduler gone: then there is nothing to end
            self._client.run(end_fit, self._setup.fit, on_error="ignore")

    def close(self) -> None:
        """Give up all shards; does not wait."""
        for seat in self._seats:
            if seat.future is not None:
                seat.future.release()
            seat.future = seat.actor = None
        self._nodes = {}

    def facts(self) -> list[float]:
        """What the shards say of their rows."""
        return joined_facts([seat.facts for seat in self._seats])

    # Places.

    def _place(self, seats: Sequence[_Seat]) -> None:
        """Load parts where their data are, and make their shards there; again where workers are lost meanwhile."""
        for attempt in range(_ATTEMPTS):
            seats = self._try_to_place(seats)
            if not seats:
                return
            time.sleep(_PAUSE * attempt)
        raise LostShardError(f"workers were lost {_ATTEMPTS} times while shard {seats[0].number} was loaded")

    def _try_to_place(self, seats: Sequence[_Seat]) -> list[_Seat]:
        """One attempt; returns the shards whose worker was lost."""
        data = self._loaded(seats)
        where = self._client.who_has(list(data.values()))
        places = [(where.get(data[seat.number].key) or (None,))[0] for seat in seats]
        threads = self._client.nthreads()
        chosen = targets([seat.part for seat in seats], places, threads)
        held = Counter(chosen)
        for seat, address in zip(seats, chosen, strict=True):
            share = max(1, threads.get(address or "", 1) // held[address])
            # Not with other workers allowed: such a task is forgotten where no worker is left for a moment.
            pinned = {} if address is None else {"workers": [address]}
            seat.future = self._client.submit(
                ShardActor, data[seat.number], seat.number, self._setup, share, actor=True, pure=False, **pinned
            )
        return [seat for seat, address in zip(seats, chosen, strict=True) if not self._is_placed(seat, address)]

    def _is_placed(self, seat: _Seat, address: str | None) -> bool:
        """Whether a shard is there, once it should be."""
        try:
            while seat.future.status == "pending":
                with suppress(TimeoutError):
                    wait(seat.future, timeout=_TICK)
                if address is not None and address not in self._client.nthreads():
                    break
            seat.actor = seat.future.result(timeout=_TICK)
            seat.address, seat.facts, _ = seat.actor.place().result()
            if seat.folds is not None:
                seat.actor.split(seat.folds).result()
                self.traffic.bytes_sent += sum(rows.nbytes for fold in seat.folds for rows in fold)
        except _OF_DATA:
            raise
        except Exception:  # whatever the transport raises where a worker ends
            seat.future = seat.actor = None
            return False
        return True

    def _refuse_lost(self, seat: _Seat, future: Any) -> None:
        if future.status in ("lost", "cancelled"):
            raise _lost(seat)
        if future.status == "error":
            future.result()

    def _loaded(self, seats: Sequence[_Seat]) -> dict[int, Any]:
        """The data of shards, once they are all there."""
        found = loaded(self._client, [seat.part for seat in seats])
        data = {seat.number: future for seat, future in zip(seats, found, strict=True)}
        try:
            wait(list(data.values()))
        except CancelledError as error:
            gone = [seat for seat in seats if data[seat.number].status in ("lost", "cancelled")]
            raise _lost((gone or seats)[0]) from error
        for seat in seats:
            self._refuse_lost(seat, data[seat.number])
        return data

    # Rounds.

    def ask(self, request: np.ndarray, vectors: Sequence[VectorAt] = ()) -> Answer | None:
        """The answers of all shards to a request with vectors at these places, added; None where shards have begun
        anew and wait for :meth:`resume`.
        """
        return self._begin(request, vectors, is_added=True)

    def gather(self, request: np.ndarray, vectors: Sequence[VectorAt] = ()) -> list[np.ndarray] | None:
        """The same for answers that are not added: the first part of each shard's, in their order."""
        return self._begin(request, vectors, is_added=False)

    def _begin(self, request: np.ndarray, vectors: Sequence[VectorAt], *, is_added: bool) -> Any:
        self.traffic.rounds += 1
        self._request, self._nodes, self._attempts, self._is_added = request, {}, 0, is_added
        return self._round(self._seats, [request], vectors)

    def resume(self, restore: np.ndarray) -> Any:
        """What was asked for, after the shards that have begun anew have been told what the others know."""
        new = [self._seats[number] for number in self._new]
        return self._round(new, [restore, self._request] if len(restore) else [self._request])

    def _round(
        self, seats: Sequence[_Seat], requests: Sequence[np.ndarray], vectors: Sequence[VectorAt] | None = None
    ) -> Any:
        """Ask shards one request after the other. Without ``vectors`` whole ones are sent: to shards that begin anew,
        which have yet to be told what travels.
        """
        start = time.perf_counter()
        by_address: dict[str, list[_Seat]] = {}
        for seat in seats:
            by_address.setdefault(seat.address, []).append(seat)
        lost: list[_Seat] = []
        slowest = 0.0
        for request in requests:
            questions = {address: self._question(held, request, vectors) for address, held in by_address.items()}
            sent = {address: self._start(by_address[address], question) for address, question in questions.items()}
            slow = 0.0
            for address, future in sent.items():
                try:
                    reply = future.result()
                except Exception as error:  # whatever the transport raises where a worker ends
                    self._refuse_living(address, error)
                    lost += by_address.pop(address)
                    continue
                slow = max(slow, reply.seconds)
                if request is requests[-1]:
                    self._take(questions[address], reply)
            slowest += slow
        self.traffic.seconds_working += slowest
        self.traffic.seconds_waiting += time.perf_counter() - start - slowest
        self._new = [seat.number for seat in lost]
        if lost:
            self._replace(lost)
            return None
        if not self._is_added:
            return [_plain(self._nodes[0, seat.number][0]) for seat in self._seats]
        ((sums, maxima),) = reduced(self._nodes, len(self._seats)).values()
        return _plain(sums), _plain(maxima)

    def _question(self, held: Sequence[_Seat], request: np.ndarray, vectors: Sequence[VectorAt] | None) -> Question:
        """For a worker: with some of the columns where it is known which ones it has, else to be told."""
        numbers = tuple(seat.number for seat in held)
        columns = None if vectors is None else self._columns.get(numbers)
        if columns is not None:
            request = columns.sparse(request, vectors or ())
        return Question(
            numbers,
            len(self._seats),
            request,
            vectors or (),
            is_added=self._is_added,
            is_sparse=columns is not None,
            asks_columns=bool(vectors) and numbers not in self._columns,
        )

    def _start(self, held: Sequence[_Seat], question: Question) -> Any:
        self.traffic.bytes_sent += question.request.nbytes
        try:
            return held[0].actor.ask(question)
        except RuntimeError as error:  # an actor that is known to be lost
            return _Failed(error)

    def _take(self, question: Question, reply: Reply) -> None:
        self.traffic.bytes_received += sum(sums.nbytes + maxima.nbytes for sums, maxima in reply.nodes.values())
        if question.asks_columns:
            self._columns[question.numbers] = reply.columns
            self.traffic.bytes_received += 0 if reply.columns is None else reply.columns.columns.nbytes
        columns = self._columns[question.numbers] if question.is_sparse else None
        for node, (sums, maxima) in reply.nodes.items():
            whole = sums if columns is None else columns.whole(sums, reply.vectors)
            self._nodes[node] = whole, maxima

    def _refuse_living(self, address: str, error: Exception) -> None:
        """Raise the error of a worker that lives on."""
        if isinstance(error, _OF_DATA):
            raise error
        end = time.monotonic() + _PATIENCE
        while address in workers_of(self._client):
            if time.monotonic() > end:
                raise error
            time.sleep(0.1)

    def _replace(self, lost: Sequence[_Seat]) -> None:
        """Load the parts of lost shards again, on whatever workers there are."""
        self._attempts += 1
        if self._attempts > _ATTEMPTS:
            raise LostShardError(f"workers were lost {_ATTEMPTS} times within one step of the fit")
        for seat in lost:
            seat.future = seat.actor = None
        self._place(lost)
        self.traffic.n_reloaded += len(lost)


def _plain(numbers: np.ndarray) -> np.ndarray:
    """An array as the native module reads it."""
    return np.require(numbers, requirements=("C", "A"))


class _Failed:
    """A call that could not be made."""

    def __init__(self, error: Exception):
        self._error = error

    def result(self) -> Any:
        raise self._error
