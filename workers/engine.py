"""The backend of a capability, the threads that run it, and what runs in them now."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from streams import metrics
from streams.delivery import Clock
from workers.backends import Answer, Backend, Call, RemoteBackend
from workers.crew import Crew
from workers.errors import LoadError, WorkerError
from workers.inference import infer
from workers.telemetry import model_context
from workers.work import Run, Work

log = logging.getLogger(__name__)

Back = Callable[[Run, Backend, BaseException | None], None]
"""Told on the event loop of a run that ended, on which backend, and of what broke the worker if something
did."""


class Running(NamedTuple):
    """A run under way: since when, its rows and bytes, the backend that has it, and until when that may take
    (-inf: nobody said). Times are those of `time.monotonic()`."""

    began: float
    rows: int
    bytes: int
    backend: Backend
    until: float = -math.inf


class Engine:
    """Runs batches on `backend`, each in a thread, and hands them back on the loop that called `start`.

    `switch` puts another backend in its place from the next batch on. What runs then ends on the old one,
    which is closed after its last run. `bytes` is what the rows under way hold.
    """

    def __init__(self, backend: Backend, clock: Clock, back: Back, threads: int) -> None:
        self.backend = backend
        self._clock = clock
        self._back = back
        self._threads = threads
        self._crew: Crew | None = None
        self._running: dict[int, Running] = {}
        self._claims = 0
        self.bytes = 0
        self._asked: Backend | None = None
        self._remote = False
        self._closed = False
        self.load_ms = 0.0

    async def start(self) -> None:
        """Load the backend and start the threads.

        Raises:
            LoadError: the backend cannot be made ready.
        """
        self.load_ms = await loaded(self.backend)
        self._loop = asyncio.get_running_loop()
        self._crew = Crew(self.backend.card.capability, self._threads)

    @property
    def free(self) -> bool:
        """Whether a thread is free."""
        return self._crew is not None and len(self._running) < self._crew.size

    @property
    def idle(self) -> bool:
        return not self._running

    @property
    def rows(self) -> int:
        """Rows under way."""
        return sum(run.rows for run in self._running.values())

    def hung_s(self, now: float) -> float:
        """For how long the run that is worst off has been running; one that asks elsewhere may until the last
        deadline of its rows, and counts from then on.
        """
        return max((now - max(run.began, run.until) for run in self._running.values()), default=0.0)

    @property
    def oldest(self) -> float | None:
        """When the oldest run of now began (`time.monotonic()`), None where none runs."""
        return min((run.began for run in self._running.values()), default=None)

    @property
    def one_by_one(self) -> bool:
        """Whether the backend of now runs its rows one after the other."""
        return bool(getattr(self.backend, "one_by_one", False))

    def claim(self, works: list[Work]) -> int:
        """Take a thread for `works` on the backend of now; `run` or `give_up` the number that is given."""
        self._claims += 1
        self._note(self._claims, _running(works, self.backend))
        return self._claims

    def run(self, number: int, works: list[Work]) -> None:
        """Run `works` under a claim; they may be fewer than were claimed."""
        assert self._crew is not None
        backend = self._running[number].backend
        calls = self._calls(works) if self._is_remote(backend) else None
        self._note(number, _running(works, backend, calls))
        self._crew.submit(partial(self._infer, number, backend, works, calls))

    def give_up(self, number: int) -> None:
        """A claim under which nothing is to run after all."""
        backend = self._running[number].backend
        self._note(number, None)
        self._let_go(backend)

    def switch(self, backend: Backend) -> None:
        """From the next batch on run `backend`, which is loaded already. Where this raises it stays the
        caller's, to be closed.

        Raises:
            WorkerError: it is of another capability or side, or nothing runs here yet or any more.
        """
        old, new = self.backend.card, backend.card
        if self._crew is None or self._closed:
            raise WorkerError(f"{old.side}/{old.capability} is not running: switch between start and stop")
        if (old.side, old.capability) != (new.side, new.capability):
            raise WorkerError(
                f"{new.side}/{new.capability} cannot take the place of {old.side}/{old.capability}"
            )
        replaced, self.backend = self.backend, backend
        if replaced is not backend:
            self._let_go(replaced)

    def close(self) -> None:
        """End the threads after what they have; close the backends that nothing runs on, and the others
        after their last run if the loop lives so long."""
        if self._closed:
            return
        self._closed = True
        if self._crew is not None:
            self._crew.close()
        busy = {id(run.backend) for run in self._running.values()}
        if busy:
            log.warning("%s is still running; its backend is left as it is", self.backend.card.capability)
        if id(self.backend) not in busy:
            _close(self.backend)

    def _note(self, number: int, run: Running | None) -> None:
        """What runs under a claim from now on."""
        before = self._running.pop(number, None)
        self.bytes += (run.bytes if run else 0) - (before.bytes if before else 0)
        if run is not None:
            self._running[number] = run

    def _is_remote(self, backend: Backend) -> bool:
        # Asked of each backend once: looking at a protocol takes as long as ten rows.
        if self._asked is not backend:
            self._asked, self._remote = backend, isinstance(backend, RemoteBackend)
        return self._remote

    def _let_go(self, backend: Backend) -> None:
        """Close a backend that was replaced, once nothing runs on it."""
        kept = backend is self.backend and not self._closed
        if kept or any(run.backend is backend for run in self._running.values()):
            return
        # In a thread of its own: letting go of a large model takes a while.
        threading.Thread(target=_close, args=(backend,), name="close", daemon=True).start()

    def _infer(self, number: int, backend: Backend, works: list[Work], calls: list[Call] | None) -> None:
        """In a thread: run the model, and bring the answers back to the loop."""
        began, started = self._clock.now(), time.perf_counter()
        crash: BaseException | None = None
        answers: list[Answer] = []
        try:
            rows = [work.row for work in works]
            paid = any(work.nonce for work in works)
            answers = infer(
                backend, rows, lambda i: works[i].subtask.deadline <= self._clock.now(), calls, paid=paid
            )
        except BaseException as error:  # noqa: BLE001 - raised again on the loop, where it ends the worker
            crash = error
        took_ms = (time.perf_counter() - started) * 1000.0
        run = Run(works, answers, backend.card, began, took_ms)
        try:
            self._loop.call_soon_threadsafe(self._returned, number, run, crash)
        except RuntimeError:
            log.info("%s finished after its event loop had closed", backend.card.capability)

    def _calls(self, works: list[Work]) -> list[Call]:
        now, steady = self._clock.now(), time.monotonic()
        return [
            Call(work.subtask.id, steady + (work.subtask.deadline - now) / 1000, model_context(work.subtask))
            for work in works
        ]

    def _returned(self, number: int, run: Run, crash: BaseException | None) -> None:
        backend = self._running[number].backend
        self._note(number, None)
        self._back(run, backend, crash)
        self._let_go(backend)


def _running(works: list[Work], backend: Backend, calls: list[Call] | None = None) -> Running:
    until = max((call.until for call in calls or ()), default=-math.inf)
    return Running(time.monotonic(), len(works), sum(work.size for work in works), backend, until)


async def loaded(backend: Backend) -> float:
    """Load `backend`; how long it took, in ms.

    Raises:
        LoadError: it cannot be made ready.
    """
    began = time.monotonic()
    try:
        await backend.load()
    except WorkerError:
        raise
    except (Exception, SystemExit) as error:
        raise LoadError(f"{backend.card.capability} cannot be loaded: {error}") from error
    took_s = time.monotonic() - began
    metrics.MODEL_LOAD_S.labels(backend.card.capability, backend.card.side).observe(took_s)
    return took_s * 1000.0


def _close(backend: Backend) -> None:
    try:
        backend.close()
    except Exception as error:  # noqa: BLE001 - a user's backend; whatever comes after it must go on
        log.warning("%s: a backend did not close: %s", backend.card.capability, type(error).__name__)
