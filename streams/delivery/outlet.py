"""The outlet: every write of a role goes here, and nothing counts as written before it is acknowledged."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from schemas.topics import is_cloud, partition_for
from streams import metrics
from streams.delivery.claimed import claims_allow
from streams.delivery.clock import BrokerClock
from streams.delivery.driver import Sink
from streams.delivery.errors import DeliveryError, Unavailable, Uncleared, Undeliverable
from streams.delivery.partitions import Partitions, missing
from streams.delivery.records import Cleared, Outgoing, Output, Place
from streams.delivery.tickets import Queue, Ticket

log = logging.getLogger(__name__)

MOST_A_BATCH = 2000
LEAST_A_SLICE = 32
LEAST_PAUSE_S = 0.05
MOST_PAUSE_S = 2.0

Substitute = Callable[[Outgoing, Undeliverable], Sequence[Output]]
"""What is written instead of a record that will never be accepted (for a subtask: an error partial)."""


class Outlet:
    """Writes records, batched per partition behind the request in flight; calls back on acknowledgement.

    A silence is an unknown outcome: the producer is replaced and the same records are written again. A
    record that will never be accepted is replaced by what `substitute` gives. The records of a partition are
    written in the order in which they were posted.
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
        self._partitions = Partitions(sink, send_timeout_s)
        self._waiting: dict[str, list[tuple[Outgoing, Ticket]]] = {}
        self._queues: dict[tuple[str, int], Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.in_cloud: Callable[[str], bool] = lambda _: False
        """Whether an object with this dataref lies in the cloud's store."""
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
        until = time.monotonic() + wait_s
        await self.flush(wait_s)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._sink.stop(max(1.0, until - time.monotonic()))

    async def flush(self, wait_s: float) -> bool:
        """Wait until everything posted is acknowledged; False where `wait_s` was not enough."""
        try:
            async with asyncio.timeout(wait_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def post(self, outputs: Sequence[Output], done: Callable[[], None]) -> None:
        """Write `outputs`; `done` is called when all are acknowledged. Never waits: windows bound what is
        in here.

        Raises:
            Uncleared: a record for `cloud.*` without a clearance for its value; then nothing is written.
        """
        records = [
            self._post_cloud(output) if isinstance(output, Cleared) else self._post_open(output)
            for output in outputs
        ]
        if not records:
            done()
            return
        ticket = Ticket(len(records), done)
        self.pending += len(records)
        self._idle.clear()
        for record in records:
            self._enqueue(record, ticket)

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

    def _post_open(self, record: Outgoing) -> Outgoing:
        if is_cloud(record.topic):
            raise Uncleared(f"{record.topic}: a cloud topic takes cleared records only")
        return record

    def _post_cloud(self, cleared: Cleared) -> Outgoing:
        # The one way into a cloud topic.
        record = cleared.record
        if not is_cloud(record.topic):
            raise Uncleared(f"{record.topic}: a clearance is for cloud topics")
        if not cleared.clearance.covers(record.value):
            raise Uncleared(f"{record.topic}: the clearance is for another payload")
        if not claims_allow(record.value, self.in_cloud):
            raise Uncleared(f"{record.topic}: a claim of an object that is not in the cloud's store")
        return record

    def _enqueue(self, record: Outgoing, ticket: Ticket) -> None:
        topic = record.topic
        if record.partition is not None:
            self._queue(topic, record.partition, record, ticket)
        elif topic in self._waiting:
            self._waiting[topic].append((record, ticket))
        elif count := self._partitions.known(topic):
            self._queue(topic, partition_for(record.key or b"", count), record, ticket)
        else:
            self._waiting[topic] = [(record, ticket)]
            self._own(self._look_up(topic))

    def _queue(self, topic: str, partition: int, record: Outgoing, ticket: Ticket) -> None:
        queue = self._queues.get((topic, partition))
        if queue is None:
            queue = self._queues[topic, partition] = Queue()
        queue.items.append((record, ticket))
        if not queue.sending:
            queue.sending = True
            self._own(self._drain(Place(topic, partition), queue))
            if self._partitions.is_stale(topic):
                self._own(self._look_up(topic))

    async def _look_up(self, topic: str) -> None:
        """Find out how many partitions a topic has, then queue what waits for that."""
        count = await self._partitions.ask(topic)
        for record, ticket in self._waiting.pop(topic, ()):
            if count:
                self._queue(topic, partition_for(record.key or b"", count), record, ticket)
            else:
                self._give_up(record, ticket, missing(topic))

    async def _drain(self, place: Place, queue: Queue) -> None:
        items = queue.items
        most, pause = MOST_A_BATCH, LEAST_PAUSE_S
        while items:
            generation = self._generation
            # One slice a round: what comes meanwhile forms the next batch.
            chunk = [record for record, _ in islice(items, most)]
            sent = self._clock.wall()
            try:
                count, stamp = await self._sink.write(place, chunk, self._timeout)
            except Unavailable as error:
                log.warning("%s: %s; writing again with a new producer", place.topic, error)
                await self._replace(generation)
                await self._drop_unless_there(place, items)
                await asyncio.sleep(pause)
                pause = min(2 * pause, MOST_PAUSE_S)
                continue
            except Undeliverable as error:
                if len(chunk) == 1:
                    self._give_up(*items.popleft(), error)
                    most = MOST_A_BATCH
                else:
                    # One record is at fault: halve until it is found, in order, for nothing may overtake.
                    most = (len(chunk) + 1) // 2
                continue
            self._clock.observe(sent, self._clock.wall(), stamp)
            # A slice of twice what fits: a backlog is not copied whole for each batch of it.
            most, pause = min(2 * max(count, LEAST_A_SLICE), MOST_A_BATCH), LEAST_PAUSE_S
            for _ in range(count):
                self._acknowledged(items.popleft()[1])
        queue.sending = False

    async def _drop_unless_there(self, place: Place, items: deque[tuple[Outgoing, Ticket]]) -> None:
        """A topic that was deleted is silent for ever, as a broker that is away."""
        if await self._partitions.ask(place.topic) > place.partition:
            return
        while items:
            self._give_up(*items.popleft(), missing(f"{place.topic}/{place.partition}"))

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
