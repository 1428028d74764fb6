"""Reading without a group on aiokafka: from a time to the end, or for as long as one likes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from streams.delivery.drivers.aiokafka_client import Options, ended, said, stopped, within
from streams.delivery.errors import Unavailable
from streams.delivery.records import Record

WAIT_S = 10.0
STOP_S = 5.0


def _consumer(options: Options) -> Any:
    return AIOKafkaConsumer(
        **options,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=500,
        metadata_max_age_ms=30_000,
    )


@asynccontextmanager
async def _started(options: Options) -> AsyncIterator[Any]:
    """A consumer, stopped whatever happens: one whose start failed has open connections too.

    Raises:
        Unavailable: Kafka does not answer.
    """
    consumer = _consumer(options)
    try:
        await within(WAIT_S, consumer.start(), "connecting")
        yield consumer
    finally:
        await stopped(consumer.stop, "a reader", STOP_S)


async def seek_to_time(
    consumer: Any, places: Sequence[TopicPartition], since_ms: int
) -> dict[TopicPartition, int]:
    """Seek `places` to the first record appended at `since_ms` or later; the end offsets as they are now."""
    ends = await within(WAIT_S, consumer.end_offsets(places), "reading end offsets")
    found = await within(
        WAIT_S, consumer.offsets_for_times(dict.fromkeys(places, max(0, since_ms))), "looking up a time"
    )
    for place in places:
        at = found.get(place)
        consumer.seek(place, at.offset if at is not None else ends[place])
    return dict(ends)


class AiokafkaReader:
    """The Reader: one short-lived consumer a call."""

    def __init__(self, options: Options) -> None:
        self._options = options

    async def read(self, topic: str, partition: int, since_ms: int) -> AsyncIterator[list[Record]]:
        """Records from that append time to the end as it was at the call.

        Raises:
            Unavailable: Kafka does not answer.
        """
        place = TopicPartition(topic, partition)
        async with _started(self._options) as consumer:
            consumer.assign([place])
            end = (await seek_to_time(consumer, [place], since_ms))[place]
            silent_since, last = time.monotonic(), -1
            # The position and not the last offset + 1: control records have offsets too.
            while (at := await within(WAIT_S, consumer.position(place), "reading a position")) < end:
                if at != last:
                    silent_since, last = time.monotonic(), at
                elif time.monotonic() - silent_since > WAIT_S:
                    # Without a leader every poll is empty, for ever.
                    raise Unavailable(f"{topic}/{partition}: nothing could be read for {WAIT_S:g} s")
                found = await within(
                    WAIT_S, consumer.getmany(place, timeout_ms=500, max_records=2000), "reading"
                )
                if records := found.get(place):
                    yield records


class Tail:
    """Follows all partitions of a topic without a group, from an append time on.

    `take` gets every record; `reached` is told, in ms, how long ago the whole topic had been read: silence
    on the topic and a reader that lags look alike otherwise.
    """

    def __init__(
        self,
        options: Options,
        topic: str,
        since_ms: int,
        take: Callable[[Record], None],
        reached: Callable[[float], None] | None = None,
    ) -> None:
        self._options = options
        self._topic = topic
        self._since = since_ms
        self._take = take
        self._reached = reached
        self.caught_up = asyncio.Event()

    async def run(self) -> None:
        """Follow until cancelled. `caught_up` is set once what was there at the start has been read.

        Raises:
            Unavailable: the topic is missing, Kafka did not answer at the start, or the consumer ended.
        """
        async with _started(self._options) as consumer:
            places = await self._places(consumer)
            consumer.assign(places)
            ends = await seek_to_time(consumer, places, self._since)
            while True:
                found = await consumer.getmany(timeout_ms=200, max_records=2000)
                # Records that come at that moment make the client swallow a cancellation: who waits for our
                # end would wait for ever.
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise asyncio.CancelledError
                for records in found.values():
                    for record in records:
                        self._take(record)
                if not found:
                    self._look_at(consumer, places)
                if not self.caught_up.is_set() and await self._is_at(consumer, ends):
                    self.caught_up.set()

    def _look_at(self, consumer: Any, places: Sequence[TopicPartition]) -> None:
        if (cause := ended(consumer)) is not None:
            raise Unavailable(f"reading {self._topic}: {said(cause)}") from cause
        # Only a fetch that was answered tells: without a broker every poll is empty too.
        answered = [consumer.last_poll_timestamp(place) for place in places]
        if self._reached is not None and all(answered):
            self._reached(max(0.0, time.time() * 1000 - min(answered)))

    async def _places(self, consumer: Any) -> list[TopicPartition]:
        metadata = await within(WAIT_S, consumer._client.fetch_all_metadata(), "asking for metadata")
        partitions = metadata.partitions_for_topic(self._topic)
        if not partitions:
            raise Unavailable(f"topic {self._topic} does not exist; run `edgeway topics apply`")
        return [TopicPartition(self._topic, number) for number in sorted(partitions)]

    async def _is_at(self, consumer: Any, ends: dict[TopicPartition, int]) -> bool:
        for place, end in ends.items():
            if await within(WAIT_S, consumer.position(place), "reading a position") < end:
                return False
        return True
