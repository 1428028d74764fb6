"""The outlet: every write of a role goes through here, and nothing counts as written before it is
acknowledged."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from schemas.topics import is_cloud, partition_for
from streams import metrics
from streams.delivery.clock import BrokerClock
from streams.delivery.driver import Sink
from streams.delivery.errors import DeliveryError, Unavailable, Uncleared, Undeliverable
from streams.delivery.records import Cleared, Outgoing, Output, Place

log = logging.getLogger(__name__)

MOST_A_BATCH = 2000

Substitute = Callable[[Outgoing, Undeliverable], Sequence[Output]]
"""What is written instead of a record that will never be accepted (for a subtask: an error partial)."""


@dataclass(slots=True)
class Ticket:
    """The writes of one settlement: `done` is called once, when all of them are acknowledged."""

    waiting: int
    done: Callable[[], None]

    def acknowledge(self) -> None:
        self.waiting -= 1
        if self.waiting == 0:
            self.done()


@dataclass(slots=True)
class _Queue:
    items: deque[tuple[Outgoing, Ticket]] = field(default_factory=deque)
    sending: bool = False


class Outlet:
    """Writes records, batched per partition behind the request in flight, and calls back when they are
    acknowledged.

    A silence is an unknown outcome: the producer is replaced and the same records are written again. A
    record that will
    never be accepted is replaced by what `substitute` gives.
    """

    def __init__(
        self,
        sink: Sink,
        clock: BrokerClock,
        *,
        send_timeout_s: float = 20.0,
        substitute: Substitute | None = None,
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._timeout = send_timeout_s
        self._substitute = substitute
        self._counts: dict[str, int] = {}
        self._queues: dict[Place, _Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._replacing = asyncio.Lock()
        self._generation = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.pending = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        await self._sink.start()

    async def stop(self, wait_s: float) -> None:
        """Flush for at most `wait_s`, then let go; what is still open was never finished and comes again."""
        await self.flush(wait_s)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._sink.stop(wait_s)

    async def flush(self, wait_s: float) -> bool:
        """Wait until everything posted is acknowledged; False where `wait_s` was not enough."""
        try:
            await asyncio.wait_for(self._idle.wait(), wait_s)
        except TimeoutError:
            return False
        return True

    def post(self, outputs: Sequence[Output], done: Callable[[], None]) -> None:
        """Write `outputs`; `done` is called when all are acknowledged. Never waits: windows bound what is
        in here.

        Raises:
            Uncleared: a record for `cloud.*` without a clearance for its value.
        """
        ticket = Ticket(len(outputs), done)
        for output in outputs:
            if isinstance(output, Cleared):
                self._post_cloud(output, ticket)
            else:
                self._post_open(output, ticket)
        if not outputs:
            done()

    async def send(self, *outputs: Output, wait_s: float | None = None) -> None:
        """Write and wait for the acknowledgement.

        Raises:
            Unavailable: after `wait_s` (the outlet goes on trying).
        """
        acknowledged = asyncio.get_running_loop().create_future()

        def done() -> None:
            if not acknowledged.done():
                acknowledged.set_result(None)

        self.post(outputs, done)
        try:
            await asyncio.wait_for(acknowledged, wait_s if wait_s is not None else self._timeout)
        except TimeoutError as error:
            raise Unavailable(
                f"no acknowledgement from Kafka within {wait_s or self._timeout:g} s"
            ) from error

    def _post_open(self, record: Outgoing, ticket: Ticket) -> None:
        if is_cloud(record.topic):
            raise Uncleared(f"{record.topic}: a cloud topic takes cleared records only")
        self._enqueue(record, ticket)

    def _post_cloud(self, cleared: Cleared, ticket: Ticket) -> None:
        # The one way into a cloud topic.
        record = cleared.record
        if not is_cloud(record.topic):
            raise Uncleared(f"{record.topic}: a clearance is for cloud topics")
        if not cleared.clearance.covers(record.value):
            raise Uncleared(f"{record.topic}: the clearance is for another payload")
        self._enqueue(record, ticket)

    def _enqueue(self, record: Outgoing, ticket: Ticket) -> None:
        self.pending += 1
        self._idle.clear()
        count = self._counts.get(record.topic)
        if record.partition is not None:
            self._queue(Place(record.topic, record.partition), record, ticket)
        elif count:
            self._queue(Place(record.topic, partition_for(record.key or b"", count)), record, ticket)
        else:
            self._own(self._look_up(record, ticket))

    def _queue(self, place: Place, record: Outgoing, ticket: Ticket) -> None:
        queue = self._queues.get(place)
        if queue is None:
            queue = self._queues[place] = _Queue()
        queue.items.append((record, ticket))
        if not queue.sending:
            queue.sending = True
            self._own(self._drain(place, queue))

    async def _look_up(self, record: Outgoing, ticket: Ticket) -> None:
        """Find out how many partitions a topic has, then queue."""
        while True:
            try:
                count = await self._sink.partitions(record.topic, self._timeout)
            except Unavailable:
                await asyncio.sleep(0.5)
                continue
            break
        if count == 0:
            gone = Undeliverable(
                "unknown_capability", f"topic {record.topic} does not exist; run `edgeway topics apply`"
            )
            self._give_up(record, ticket, gone)
            return
        self._counts[record.topic] = count
        self._queue(Place(record.topic, partition_for(record.key or b"", count)), record, ticket)

    async def _drain(self, place: Place, queue: _Queue) -> None:
        items = queue.items
        while items:
            generation = self._generation
            # One slice a round: what comes meanwhile forms the next batch.
            chunk = [record for record, _ in islice(items, MOST_A_BATCH)]
            sent = self._clock.wall()
            try:
                count, stamp = await self._sink.write(place, chunk, self._timeout)
            except Unavailable as error:
                log.warning("%s: %s; writing again with a new producer", place.topic, error)
                await self._replace(generation)
                continue
            except Undeliverable as error:
                self._isolate(place, items, len(chunk), error)
                continue
            self._clock.observe(sent, self._clock.wall(), stamp)
            for _ in range(count):
                self._acknowledged(items.popleft()[1])
        queue.sending = False

    def _isolate(
        self, place: Place, items: deque[tuple[Outgoing, Ticket]], tried: int, error: Undeliverable
    ) -> None:
        """One record of a refused batch is at fault: part the batch until it is found."""
        if tried == 1:
            record, ticket = items.popleft()
            self._give_up(record, ticket, error)
            return
        lone = _Queue(deque(items.popleft() for _ in range((tried + 1) // 2)), sending=True)
        self._own(self._drain(place, lone))

    def _give_up(self, record: Outgoing, ticket: Ticket, error: Undeliverable) -> None:
        metrics.UNDELIVERABLE.labels(error.code).inc()
        log.error("a record for %s was given up: %s", record.topic, error)
        instead = self._substitute(record, error) if self._substitute else ()
        if instead:
            self.post(instead, lambda: self._acknowledged(ticket))
        else:
            self._acknowledged(ticket)

    def _acknowledged(self, ticket: Ticket) -> None:
        self.pending -= 1
        if self.pending == 0:
            self._idle.set()
        ticket.acknowledge()

    async def _replace(self, generation: int) -> None:
        async with self._replacing:
            if generation != self._generation:
                return
            metrics.PRODUCERS_REPLACED.inc()
            while True:
                try:
                    await self._sink.replace()
                except Unavailable as error:
                    log.warning("no new producer yet: %s", error)
                    await asyncio.sleep(0.5)
                    continue
                self._generation += 1
                return

    def _own(self, work: asyncio._CoroutineLike[None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is None:
            return
        error = task.exception()
        if not self.failed.done():
            self.failed.set_exception(error if error is not None else DeliveryError("a writer ended"))
