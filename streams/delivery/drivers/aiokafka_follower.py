"""A reader without a group that can be put anywhere and asked how it does; on aiokafka."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka import errors as kafka

from streams.delivery.drivers.aiokafka_client import Options, ended, is_away, said, within
from streams.delivery.errors import Unavailable
from streams.delivery.records import Record

WAIT_S = 10.0
STOP_S = 5.0
MOST_RECORDS = 2000
FETCH_BYTES = 4 * 1024 * 1024
log = logging.getLogger(__name__)


class AiokafkaFollower:
    """Follows all partitions of one topic. Broker restarts and changes of leaders are survived in here; where
    a call raises Unavailable, open another one at `positions`."""

    def __init__(self, options: Options, topic: str, fetch_wait_ms: int = 500) -> None:
        self._topic = topic
        self._options = {
            **options,
            "group_id": None,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "fetch_max_wait_ms": fetch_wait_ms,
            "max_partition_fetch_bytes": FETCH_BYTES,
            "metadata_max_age_ms": 30_000,
        }
        self._consumer: Any = None
        self._places: dict[int, TopicPartition] = {}
        self._active: frozenset[int] = frozenset()
        self._ends: dict[TopicPartition, int] = {}
        self._opened = 0.0
        self.positions: dict[int, int] = {}
        """The offset that is read next, by partition."""

    async def open(self, at: Mapping[int, int], since_ms: int | None) -> None:
        """Connect and start at the offsets `at`; partitions without one at the first record appended at
        `since_ms` or later, None being the end.

        Raises:
            Unavailable: Kafka does not answer, or the topic is missing.
        """
        self._consumer = AIOKafkaConsumer(**self._options)
        try:
            await _asked(self._consumer.start(), "connecting")
            numbers = await self._numbers()
            self._places = {number: TopicPartition(self._topic, number) for number in numbers}
            self._active = frozenset(numbers)
            self._consumer.assign(list(self._places.values()))
            await self._seek(at, since_ms)
        except BaseException:
            await self.close()
            raise
        self._opened = time.time() * 1000

    async def _seek(self, at: Mapping[int, int], since_ms: int | None) -> None:
        places = list(self._places.values())
        self._ends = dict(await _asked(self._consumer.end_offsets(places), "reading end offsets"))
        unknown = [place for place in places if place.partition not in at]
        found = {}
        if since_ms is not None and unknown:
            times = dict.fromkeys(unknown, max(0, since_ms))
            found = await _asked(self._consumer.offsets_for_times(times), "looking up a time")
        for place in places:
            known = at.get(place.partition)
            if known is None:
                entry = found.get(place)
                known = entry.offset if entry is not None else self._ends[place]
            self._put(place, known)

    def _put(self, place: TopicPartition, offset: int) -> None:
        self.positions[place.partition] = offset
        self._consumer.seek(place, offset)

    async def _numbers(self) -> list[int]:
        # All topics are asked for: a broker may make a topic that is asked for by name.
        metadata = await _asked(self._consumer._client.fetch_all_metadata(), "asking for metadata")
        numbers = metadata.partitions_for_topic(self._topic)
        if not numbers:
            raise Unavailable(f"topic {self._topic} does not exist; run `edgeway topics apply`")
        return sorted(numbers)

    @property
    def partitions(self) -> int:
        return len(self._places)

    async def poll(self, wait_s: float) -> list[Record]:
        """What came, each partition's in order; empty where nothing came in `wait_s`.

        Raises:
            Unavailable: this one will read no more.
        """
        try:
            batches = await self._consumer.getmany(timeout_ms=int(wait_s * 1000), max_records=MOST_RECORDS)
        except Exception as error:
            if not (isinstance(error, kafka.KafkaError) or is_away(error)):
                raise
            raise Unavailable(f"reading {self._topic}: {said(error)}") from error
        if not batches and (cause := ended(self._consumer)) is not None:
            raise Unavailable(f"reading {self._topic}: {said(cause)}") from cause
        # Records that come at that moment make the client swallow a cancellation.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        found: list[Record] = []
        for place, records in batches.items():
            if records:
                self.positions[place.partition] = records[-1].offset + 1
                found += records
        return found

    def only(self, partitions: Collection[int]) -> None:
        """Read these partitions alone; the others stay where they are."""
        wanted = frozenset(partitions) & self._places.keys()
        if paused := [self._places[number] for number in self._active - wanted]:
            self._consumer.pause(*paused)
        if resumed := [self._places[number] for number in wanted - self._active]:
            self._consumer.resume(*resumed)
        if wanted - self._active:
            self._opened = time.time() * 1000
        self._active = wanted

    async def rewind(self, partition: int, since_ms: int) -> None:
        """Go back to the first record of `partition` appended at `since_ms` or later; never forward.

        Raises:
            Unavailable: no answer.
        """
        place = self._places[partition]
        times = {place: max(0, since_ms)}
        entry = (await _asked(self._consumer.offsets_for_times(times), "looking up a time")).get(place)
        if entry is not None and entry.offset < self.positions[partition]:
            self._put(place, entry.offset)

    async def skip(self, partition: int) -> None:
        """Go to the end of `partition`.

        Raises:
            Unavailable: no answer.
        """
        place = self._places[partition]
        self._put(place, (await _asked(self._consumer.end_offsets([place]), "reading end offsets"))[place])

    async def is_caught_up(self) -> bool:
        """Whether all that was there when it was opened has been read."""
        # By position, not by the last record: a control record takes an offset and is never handed out.
        for place, end in self._ends.items():
            if await _asked(self._consumer.position(place), "reading a position") < end:
                return False
        return True

    async def has_grown(self) -> bool:
        """Whether the topic has got more partitions since.

        Raises:
            Unavailable: no answer.
        """
        return len(await self._numbers()) > len(self._places)

    def silent_s(self) -> float:
        """How long ago the brokers last answered for the partition for which they have been silent longest.
        Without a broker every poll is empty, as it is where nothing happens."""
        if not self._active:
            return 0.0
        answered = [self._consumer.last_poll_timestamp(self._places[number]) for number in self._active]
        oldest = min(max(at or 0, self._opened) for at in answered)
        return max(0.0, time.time() - oldest / 1000)

    def lag(self) -> int:
        """How many records have not been read, as of the last answers."""
        highs = {number: self._consumer.highwater(self._places[number]) for number in self._active}
        return sum(max(0, (high or 0) - self.positions[number]) for number, high in highs.items())

    async def close(self) -> None:
        """Disconnect. Whatever comes of it is logged only."""
        # In a task of its own: with the brokers away the client's stop ends in the CancelledError of another
        # task of the client's, which would end whoever awaits it.
        stopping = asyncio.ensure_future(self._consumer.stop())
        try:
            await asyncio.wait({stopping}, timeout=STOP_S)
        finally:
            stopping.cancel()
        if not stopping.done():
            log.warning("a reader of %s did not stop within %g s and is left", self._topic, STOP_S)
        elif stopping.cancelled() or stopping.exception() is not None:
            error = None if stopping.cancelled() else stopping.exception()
            log.warning("a reader of %s did not stop in order: %s", self._topic, type(error).__name__)


async def _asked(work: Any, what: str) -> Any:
    try:
        return await within(WAIT_S, work, what)
    except kafka.KafkaError as error:
        raise Unavailable(f"{what}: {error or type(error).__name__}") from error
