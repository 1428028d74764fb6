"""Reading whole topics, and where a group stands."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from schemas.topics import group_of


@contextlib.asynccontextmanager
async def consumer_of(bootstrap: str, group: str | None = None) -> AsyncIterator[Any]:
    """A consumer that joins nothing."""
    consumer: Any = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await asyncio.wait_for(consumer.stop(), 10.0)


async def places_of(consumer: Any, topic: str) -> list[TopicPartition]:
    """The partitions of a topic, none where it does not exist."""
    metadata = await consumer._client.fetch_all_metadata()
    return [TopicPartition(topic, number) for number in sorted(metadata.partitions_for_topic(topic) or ())]


async def read_topic(bootstrap: str, topic: str) -> AsyncIterator[ConsumerRecord]:
    """Every record of `topic` up to its end at the call."""
    async with consumer_of(bootstrap) as consumer:
        places = await places_of(consumer, topic)
        if not places:
            return
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        while True:
            left = [place for place in places if await consumer.position(place) < ends[place]]
            if not left:
                return
            for records in (await consumer.getmany(*left, timeout_ms=200)).values():
                for record in records:
                    yield record


async def lag_of(bootstrap: str, topic: str, partition: int) -> tuple[int, int | None]:
    """(records between the committed offset and the end, append time in ms of the record at that offset)."""
    place = TopicPartition(topic, partition)
    async with consumer_of(bootstrap, group_of(topic)) as consumer:
        consumer.assign([place])
        committed = await consumer.committed(place) or 0
        end = (await consumer.end_offsets([place]))[place]
        if committed >= end:
            return 0, None
        consumer.seek(place, committed)
        found = await consumer.getmany(place, timeout_ms=5000, max_records=1)
        records = found.get(place)
        return end - committed, records[0].timestamp if records else None


async def ends_of(bootstrap: str, topic: str) -> dict[int, int]:
    """The end offset of each partition."""
    async with consumer_of(bootstrap) as consumer:
        ends = await consumer.end_offsets(await places_of(consumer, topic))
        return {place.partition: end for place, end in ends.items()}
