"""Those who follow the progress of requests: `joins` is read for them, and only while there are any."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
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
        self._most = most
        self._events: deque[Event] = deque()

    def add(self, events: list[Event]) -> None:
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
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="progress")

    def remove(self, listener: Listener) -> None:
        self.count -= 1
        listeners = self._by_key[listener.key]
        listeners.remove(listener)
        if not listeners:
            del self._by_key[listener.key]
        if listener in self._new:
            self._new.remove(listener)

    @property
    def is_reading(self) -> bool:
        """Whether `joins` is being read."""
        return self._task is not None and not self._task.done()

    async def close(self) -> None:
        self._closed = True
        for listeners in self._by_key.values():
            for listener in listeners:
                listener.closed = True
                listener.news.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        following = Following(self._make, None)
        loop = asyncio.get_running_loop()
        idle_since = loop.time()
        opened = 0
        try:
            while self._by_key or loop.time() - idle_since < LINGER_S:
                if self._by_key:
                    idle_since = loop.time()
                records = await following.poll(TICK_S)
                if following.opened != opened and following.follower is not None:
                    # A successor reads all partitions; what was missed meanwhile it still has.
                    opened = following.opened
                    following.follower.only(self._partitions(following.partitions))
                self._hand_out(records)
                await self._place(following)
                self._tick()
        finally:
            await following.stop()

    async def _place(self, following: Following) -> None:
        """Go back for those who are new."""
        if following.follower is None:
            return
        wanted = self._partitions(following.partitions)
        try:
            while self._new:
                listener = self._new[0]
                partition = partition_for(listener.key, following.partitions)
                others = [one for one in self._all() if one not in self._new]
                if not any(partition_for(one.key, following.partitions) == partition for one in others):
                    # Nobody has listened here, so the reader may stand far back.
                    await following.follower.skip(partition)
                await following.follower.rewind(partition, listener.since)
                if listener in self._new:
                    self._new.remove(listener)
            following.follower.only(wanted)
        except Unavailable as error:
            await following.fail(error)

    def _all(self) -> list[Listener]:
        return [listener for listeners in self._by_key.values() for listener in listeners]

    def _partitions(self, count: int) -> set[int]:
        return {partition_for(key, count) for key in self._by_key}

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
                if record.offset >= listener.next and listener not in self._new:
                    listener.next = record.offset + 1
                    listener.add(listener.shadow.take(message, record.timestamp))

    def _tick(self) -> None:
        now = self._clock.now()
        for listener in self._all():
            listener.add(listener.shadow.tick(now))
