"""Reading a topic without a group: from its end, or from a time, all partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaConnectionError

from edgeway import kafka
from streams.delivery.drivers import aiokafka_client
from streams.settings import Settings, client_options

WAIT_MS = 250
STUCK_S = 20.0
FETCH_BYTES = 4 * 1024 * 1024


class Tail:
    """An open reader of one topic. Its place is fixed once it is entered: nothing written later is missed.

    `since_ms` is an append time in ms; None is the end of the topic.
    """

    def __init__(self, settings: Settings, topic: str, since_ms: int | None = None) -> None:
        self._settings = settings
        self._topic = topic
        self._since = since_ms
        self._consumer: Any = None
        self._places: list[TopicPartition] = []
        self.began: dict[int, int] = {}
        """The offset at which each partition is read first."""

    async def __aenter__(self) -> Self:
        counts = await kafka.partition_counts(self._settings, self._topic)
        self._places = [TopicPartition(self._topic, number) for number in range(counts[self._topic])]
        self._consumer = AIOKafkaConsumer(
            **client_options(self._settings),
            client_id=kafka.CLIENT_ID,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            request_timeout_ms=kafka.REQUEST_MS,
            max_partition_fetch_bytes=FETCH_BYTES,
        )
        try:
            with kafka.reaching(self._settings):
                async with asyncio.timeout(kafka.START_S):
                    await self._consumer.start()
                    await self._seek()
        except BaseException:
            await kafka.stopped(self._consumer.stop, "consumer")
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await kafka.stopped(self._consumer.stop, "consumer")

    async def _seek(self) -> None:
        self._consumer.assign(self._places)
        ends = await self._consumer.end_offsets(self._places)
        found = {}
        if self._since is not None:
            found = await self._consumer.offsets_for_times(dict.fromkeys(self._places, self._since))
        for place in self._places:
            at = found.get(place)
            self.began[place.partition] = at.offset if at is not None else ends[place]
            self._consumer.seek(place, self.began[place.partition])

    async def more(self, wait_ms: int = WAIT_MS) -> list[Any]:
        """The records that came, each partition's in order; empty where none came in `wait_ms`.

        Raises:
            KafkaUnreachable: this one will read no more.
        """
        with kafka.reaching(self._settings):
            batches = await self._consumer.getmany(timeout_ms=wait_ms)
        # Records that come at that moment make the client swallow a cancellation: Ctrl-C was without effect.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        if not batches and (cause := aiokafka_client.ended(self._consumer)) is not None:
            with kafka.reaching(self._settings):
                raise KafkaConnectionError(aiokafka_client.said(cause)) from cause
        return [record for records in batches.values() for record in records]

    async def to_end(self) -> AsyncIterator[list[Any]]:
        """Batches from here to the end of the topic as it is now.

        Raises:
            KafkaUnreachable: no progress for STUCK_S.
        """
        with kafka.reaching(self._settings):
            async with asyncio.timeout(kafka.START_S):
                ends = await self._consumer.end_offsets(self._places)
                behind = await self._behind(ends)
        last = asyncio.get_running_loop().time()
        while behind:
            records = await self.more()
            now = asyncio.get_running_loop().time()
            if records:
                last = now
                yield [record for record in records if record.offset < ends[_place(record)]]
            elif now - last > STUCK_S:
                with kafka.reaching(self._settings):
                    raise TimeoutError(f"no record of {self._topic} came for {STUCK_S:.0f} s")
            behind = await self._behind(ends)

    async def _behind(self, ends: dict[TopicPartition, int]) -> bool:
        # By position, not by the last record: a control record takes an offset and is never handed out.
        return any([await self._consumer.position(place) < end for place, end in ends.items()])


def _place(record: Any) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
