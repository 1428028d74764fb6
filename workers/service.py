"""One capability at work: its queue, its threads, its figures."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Container
from dataclasses import dataclass

from schemas.cards import Offer
from streams.delivery import Clock
from workers.backends import Answer, Backend
from workers.batching import Batcher
from workers.counters import Counters
from workers.engine import Engine
from workers.errors import WorkerError
from workers.expiry import Expiry, sifted
from workers.inference import late
from workers.payments import Errands, Till, is_paid
from workers.sizes import BatchSize, rows_one_by_one
from workers.work import Origin, Patient, Run, Work, kin_of_work, limit_of

log = logging.getLogger(__name__)

UNWRITTEN_POLL_S = 0.02
ROOM_POLL_S = 0.25
"""How often a waiting `handle` looks whether its lane is still alive."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one capability may hold: rows waiting for its model, decoded bytes that wait or run, bytes of
    answers that Kafka has not acknowledged, and the threads that run it."""

    max_rows: int = 4096
    max_bytes: int = 64 * 1024 * 1024
    max_unwritten: int = 64 * 1024 * 1024
    threads: int = 1


class Service:
    """Batches works, runs them in threads, and hands every finished run to `finish` on the event loop."""

    def __init__(
        self,
        backend: Backend,
        finish: Callable[[Run], None],
        clock: Clock,
        limits: Limits,
        till: Till | None = None,
        unwritten: Callable[[], int] = lambda: 0,
        cancelled: Container[str] = frozenset(),
    ) -> None:
        self._engine = Engine(backend, clock, self._returned, limits.threads)
        self._finish = finish
        self._clock = clock
        self._cancelled = cancelled
        self._till, self._unwritten, self._limits = till, unwritten, limits
        card = backend.card
        self._batcher: Batcher[Work] = Batcher(1, card.max_wait_ms, limits.max_rows, limits.max_bytes)
        self._fit()
        self.counters = Counters(card)
        self._done: deque[Run] = deque()
        self._crash: BaseException | None = None
        self._wake, self._roomy, self._quiet = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._errands = Errands(self._broke, self._wake.set)
        self._timer: asyncio.TimerHandle | None = None
        self._expiry = Expiry(clock, self._wake.set)
        self._stopped = False
        self.task: asyncio.Task[None] | None = None

    @property
    def backend(self) -> Backend:
        """The backend of now."""
        return self._engine.backend

    async def start(self) -> None:
        """Load the backend, then begin.

        Raises:
            LoadError: the backend cannot be made ready.
        """
        await self._engine.start()
        self._loop = asyncio.get_running_loop()
        self.task = asyncio.create_task(self._run(), name=f"service {self.backend.card.capability}")

    def switch(self, backend: Backend) -> None:
        """From the next batch on run `backend`, loaded already and of the same capability; what runs ends on
        the old one, which is closed then.

        Raises:
            WorkerError: it is of another capability.
        """
        self._engine.switch(backend)
        self._fit()
        # Of what waits the old backend said which may share a batch, and its card how many.
        for work in sorted(self._batcher.drop(lambda work: True), key=lambda work: work.arrived):
            work.key = kin_of_work(backend, work)
            work.limit = limit_of(backend.card, work.subtask)
            self._batcher.put(work)
        self._wake.set()

    def _fit(self) -> None:
        card = self.backend.card
        self._size = BatchSize(card.max_batch)
        self._batcher.max_batch = 1 if self._engine.one_by_one else card.max_batch
        self._batcher.max_wait_ms = card.max_wait_ms

    async def stop(self, deadline_s: float) -> None:
        """Finish what is here within `deadline_s`; drop the rest unfinished: it comes again elsewhere."""
        try:
            async with asyncio.timeout(deadline_s):
                while not self._stopped and (self.pending or self._done or self._errands):
                    self._quiet.clear()
                    await self._quiet.wait()
        except TimeoutError:
            log.warning("%s: dropping %d rows unfinished", self.backend.card.capability, self.pending)
        self._stopped = True
        await self._errands.stop()
        for work in self._batcher.drop(lambda work: True):
            if isinstance(work.lane, Patient):
                work.lane.lost()
        self._roomy.set()
        self._expiry.stop()
        if self._timer is not None:
            self._timer.cancel()
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait((self.task,), timeout=1.0)
        self._engine.close()

    @property
    def pending(self) -> int:
        """Rows that wait or run."""
        return self._batcher.rows + self._engine.rows

    @property
    def held(self) -> int:
        """About how many bytes the inputs take that wait or run."""
        return self._batcher.bytes + self._engine.bytes

    @property
    def stuck_since(self) -> float | None:
        """When the oldest run of now began (`time.monotonic()`), None where none runs: for the watchdog."""
        return self._engine.oldest

    def hung_s(self, now: float) -> float:
        """For how long the run that is worst off has been at it; see Engine."""
        return self._engine.hung_s(now)

    def offer(self) -> Offer:
        """The card and the live figures; asks no model."""
        return Offer(card=self.backend.card, live=self.counters.live(self._engine, self._batcher.rows))

    def room(self, size: int) -> bool:
        """Whether a row of `size` bytes fits beside what waits and runs; one always does where none waits."""
        return self._batcher.room(size + self._engine.bytes)

    async def wait_for_room(self, size: int, lane: Origin) -> bool:
        """Wait until `size` bytes fit; False where the lane went or the service stopped meanwhile."""
        while not self.room(size):
            if self._stopped or not lane.alive:
                return False
            self._roomy.clear()
            try:
                async with asyncio.timeout(ROOM_POLL_S):
                    await self._roomy.wait()
            except TimeoutError:
                continue
        return lane.alive and not self._stopped

    def put(self, work: Work) -> None:
        self._batcher.put(work)
        self._expiry.see(work.subtask.deadline)
        self._wake.set()

    def forget(self, lane: Origin) -> None:
        """Drop what waits for a revoked lane; what runs for it finishes silently."""
        self._batcher.drop(lambda work: work.lane is lane)
        self._roomy.set()
        self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            if self._crash is not None:
                raise WorkerError(f"a run of {self.backend.card.capability} broke") from self._crash
            # The next batch starts before the last one is written out, so that the model never waits for us.
            self._dispatch()
            if self._batcher.rows and (expired := self._expiry.taken(self._batcher)):
                self._roomy.set()
                self._unrun(expired, [late()] * len(expired))
            while self._done:
                self._done_with(self._done.popleft())
            if not self.pending and not self._errands:
                self._quiet.set()
            await self._wake.wait()

    def _dispatch(self) -> None:
        while self._batcher.rows and self._engine.free:
            if self._unwritten() > self._limits.max_unwritten:
                self._wake_in(UNWRITTEN_POLL_S)
                break
            batch = self._batcher.take(time.monotonic() * 1000.0, idle=self._engine.idle)
            if not batch:
                self._wake_when_due()
                break
            self._roomy.set()
            if works := self._fresh(batch):
                number = self._engine.claim(works)
                if self._till is not None and any(map(is_paid, works)):
                    self._errands.run(self._begin(self._till, number, works))
                else:
                    self._engine.run(number, works)

    async def _begin(self, till: Till, number: int, works: list[Work]) -> None:
        """Run the works for which may be paid, and answer the others."""
        paid = [work for work in works if is_paid(work)]
        try:
            begun = await till.payer.begin(paid)
        except BaseException:
            self._engine.give_up(number)
            raise
        refused = {
            id(work): Answer(error=failure, cost=0.0)
            for work, failure in zip(paid, begun, strict=True)
            if failure is not None
        }
        if refused:
            over = [work for work in works if id(work) in refused]
            self._unrun(over, [refused[id(work)] for work in over])
        going = [work for work in works if id(work) not in refused and work.lane.alive]
        gone = [work for work in works if work.nonce and not work.lane.alive]
        if going:
            self._engine.run(number, going)
        else:
            self._engine.give_up(number)
        if gone:
            await till.payer.settle(gone, [0.0] * len(gone))

    def _unrun(self, works: list[Work], answers: list[Answer]) -> None:
        """Answer works that reach no model."""
        self._done.append(Run(works, answers, self.backend.card, self._clock.now(), 0.0, ran=False))

    def _fresh(self, batch: list[Work]) -> list[Work]:
        """The works that are still worth computing; the expired and the cancelled are answered as such."""
        fresh, over, answers = sifted(batch, self._clock.now(), self._cancelled)
        if over:
            self._unrun(over, answers)
        return fresh

    def _wake_when_due(self) -> None:
        if (due := self._batcher.due()) is not None:
            self._wake_in(max(0.0, due / 1000.0 - time.monotonic()))

    def _wake_in(self, wait_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(wait_s, self._wake.set)

    def _returned(self, run: Run, backend: Backend, crash: BaseException | None) -> None:
        if backend is self.backend:
            self._learn(run)
        self._roomy.set()
        self._crash = self._crash or crash
        if crash is None and not self._stopped:
            self._done.append(run)
        self._wake.set()

    def _learn(self, run: Run) -> None:
        """How many rows the next batch may have."""
        rows = len(run.works)
        if self._engine.one_by_one:
            most = self.backend.card.max_batch
            self._batcher.max_batch = rows_one_by_one(most, rows, run.service_ms)
        elif run.answers and all(answer.error is None for answer in run.answers):
            # A row that is refused takes no time, and one that makes its batch fail much: neither says what
            # a batch costs.
            self._batcher.max_batch = self._size.learn(rows, run.service_ms)

    def _broke(self, error: BaseException) -> None:
        self._crash = self._crash or error

    def _done_with(self, run: Run) -> None:
        if self._till is not None and run.ran and any(work.nonce for work in run.works):
            self._errands.run(self._settle(self._till, run))
        else:
            self._record(run)

    async def _settle(self, till: Till, run: Run) -> None:
        works = zip(run.works, run.answers, strict=True)
        costs = [till.cost(work.subtask, answer, run.card) for work, answer in works]
        await till.payer.settle(run.works, costs)
        self._record(run)

    def _record(self, run: Run) -> None:
        self.counters.add(run)
        self._finish(run)
