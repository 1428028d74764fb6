"""Those who follow the progress of requests: `joins` is read for them, and only while there are any."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable

from edgeway.errors import ExchangeClosed, ExchangeFull
from edgeway.exchange.following import Follower, Following
from edgeway.exchange.ports import Event
from edgeway.exchange.shadow import Shadow
from schemas import codec
from schemas.errors import SchemaError
from schemas.messages import JoinEvent
from schemas.topics import partition_for
from streams.delivery import Clock, Record, Unavailable

log = logging.getLogger(__name__)

TICK_S = 0.05
LINGER_S = 10.0
"""The reader stays so long after the last listener: a connection for each would cost more."""
MOST_EVENTS = 64


class Listener:
    """One who follows a request. Events wait in a queue of at most `most`: beyond that the oldest partial is
    dropped, or else the oldest escalation."""

    def __init__(self, key: str, since_ms: int, most: int = MOST_EVENTS) -> None:
        self.key = key.encode()
        self.since = since_ms
        self.shadow = Shadow()
        self.news = asyncio.Event()
        self.closed = False
        self.next = -1
        """The offset from which records are new: the reader goes back for others."""
        self.partition: int | None = None
        """Where its request lies; None until the reader has gone back for it."""
        self._most = most
        self._events: deque[Event] = deque()

    def add(self, events: list[Event]) -> None:
        """Queue `events`, and wake who waits for them."""
        for event in events:
            self._events.append(event)
            if len(self._events) > self._most:
                self._shorten()
        if events or self.shadow.is_over:
            self.news.set()

    def pop(self) -> Event | None:
        """The next event; None where none waits."""
        return self._events.popleft() if self._events else None

    def _shorten(self) -> None:
        for kind in ("partial", "escalated", "planned"):
            for index, event in enumerate(self._events):
                if event.kind == kind:
                    del self._events[index]
                    return


class Listeners:
    """Reads `joins` by `make()`, those partitions alone in which a listener's request lies."""

    def __init__(self, make: Callable[[], Follower], clock: Clock, most: int) -> None:
        self._make = make
        self._clock = clock
        self._most = most
        self._by_key: dict[bytes, list[Listener]] = {}
        self._new: list[Listener] = []
        self._placed: Counter[int] = Counter()
        self._opened = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.count = 0

    def add(self, listener: Listener) -> None:
        """Begin to feed it; end it by `remove`.

        Raises:
            ExchangeFull: as many listen as may.
            ExchangeClosed: closed.
        """
        if self._closed:
            raise ExchangeClosed
        if self.count >= self._most:
            raise ExchangeFull(self._most, "follow events")
        self.count += 1
        self._by_key.setdefault(listener.key, []).append(listener)
        self._new.append(listener)
        self._start()

    def remove(self, listener: Listener) -> None:
        """Feed it no more."""
        self.count -= 1
        listeners = self._by_key[listener.key]
        listeners.remove(listener)
        if not listeners:
            del self._by_key[listener.key]
        if listener.partition is None:
            self._new.remove(listener)
        else:
            self._placed[listener.partition] -= 1

    @property
    def is_reading(self) -> bool:
        """Whether `joins` is being read."""
        return self._task is not None and not self._task.done()

    async def close(self) -> None:
        """Wake all listeners, which find themselves closed, and stop reading."""
        self._closed = True
        for listeners in self._by_key.values():
            for listener in listeners:
                listener.closed = True
                listener.news.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="progress")
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            log.error("the reader of joins failed; the next listener starts another", exc_info=error)
        elif self._by_key and not self._closed:
            # Somebody came while it was leaving.
            self._start()

    async def _run(self) -> None:
        following = Following(self._make, None)
        loop = asyncio.get_running_loop()
        idle_since = loop.time()
        try:
            while self._by_key or loop.time() - idle_since < LINGER_S:
                if self._by_key:
                    idle_since = loop.time()
                self._hand_out(await following.poll(TICK_S))
                await self._place(following)
                self._tick()
                await asyncio.sleep(0)
        finally:
            await following.stop()

    async def _place(self, following: Following) -> None:
        """Go back for those who are new, and read where somebody listens."""
        follower = following.follower
        if follower is None:
            return
        if following.opened != self._opened:
            # There may be more partitions than before.
            self._opened = following.opened
            self._placed.clear()
            for listener in self._all():
                if listener.partition is not None:
                    listener.partition = partition_for(listener.key, following.partitions)
                    self._placed[listener.partition] += 1
        try:
            for listener in list(self._new):
                partition = partition_for(listener.key, following.partitions)
                if not self._placed[partition]:
                    # The reader stands where the last listener left it, which may be far back.
                    await follower.skip(partition)
                await follower.rewind(partition, listener.since)
                if listener in self._new:
                    self._new.remove(listener)
                    listener.partition = partition
                    self._placed[partition] += 1
            follower.only({partition for partition, count in self._placed.items() if count > 0})
        except Unavailable as error:
            await following.fail(error)

    def _all(self) -> list[Listener]:
        return [listener for listeners in self._by_key.values() for listener in listeners]

    def _hand_out(self, records: list[Record]) -> None:
        for record in records:
            listeners = self._by_key.get(record.key or b"")
            if not listeners:
                continue
            try:
                message: JoinEvent = codec.decode(record.value or b"", JoinEvent)
            except SchemaError as error:
                # The aggregator tells of it in its answer.
                log.debug("a record of joins cannot be read: %s", error)
                continue
            for listener in listeners:
                # Not to those who are new: what lies before this record is still to come for them.
                if record.offset >= listener.next and listener.partition is not None:
                    listener.next = record.offset + 1
                    listener.add(listener.shadow.take(message, record.timestamp))

    def _tick(self) -> None:
        now = self._clock.now()
        for listener in self._all():
            listener.add(listener.shadow.tick(now))
