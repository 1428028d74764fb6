"""Requests in, and what the broker's log says of them and their answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from schemas import codec, headers
from schemas.messages import MAX_DEADLINE_MS, Request
from schemas.topics import partition_for

READ_S = 60.0


class Sent(NamedTuple):
    """A request as it is written."""

    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


def requests(prefix: str, count: int, pool: int = 64) -> list[Sent]:
    """`count` requests for the Crayfish model; ids of one length, images of `pool` different ones."""
    random = np.random.default_rng(7)
    images = [random.random(784, dtype=np.float32).astype("<f4").tobytes() for _ in range(pool)]
    made = []
    for number in range(count):
        name = f"{prefix}-{number:08d}"
        inputs = {"pixels": images[number % pool]}
        # A busy machine may take long for all of them; none is to run into its deadline.
        request = Request(id=name, task="image_class", inputs=inputs, deadline_ms=MAX_DEADLINE_MS)
        made.append(
            Sent(name.encode(), codec.encode(request), headers.build("request", name, "edgeway/bench"))
        )
    return made


class Load:
    """A producer and a reader without a group on one broker."""

    def __init__(self, bootstrap: str, partitions: int) -> None:
        self._partitions = partitions
        self._producer: Any = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=True,
            linger_ms=0,
            max_batch_size=512 * 1024,
            max_request_size=3 * 1024 * 1024,
        )
        self._reader: Any = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=4 * 1024 * 1024,
        )

    async def start(self) -> None:
        await self._producer.start()
        await self._reader.start()

    async def stop(self) -> None:
        await self._producer.stop()
        await self._reader.stop()

    def places(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(self._partitions)]

    async def ends(self, topic: str) -> dict[TopicPartition, int]:
        """The end offsets now."""
        return dict(await asyncio.wait_for(self._reader.end_offsets(self.places(topic)), 30.0))

    async def burst(self, topic: str, records: Sequence[Sent]) -> None:
        """Write all as fast as the broker takes them."""
        parts: list[list[Sent]] = [[] for _ in range(self._partitions)]
        for record in records:
            parts[partition_for(record.key, self._partitions)].append(record)
        await asyncio.gather(*(self._burst(topic, number, part) for number, part in enumerate(parts)))

    async def _burst(self, topic: str, partition: int, records: Sequence[Sent]) -> None:
        at = 0
        while at < len(records):
            batch = self._producer.create_batch()
            for record in records[at:]:
                if (
                    batch.append(key=record.key, value=record.value, timestamp=None, headers=record.headers)
                    is None
                ):
                    break
                at += 1
            await (await self._producer.send_batch(batch, topic, partition=partition))

    async def pace(self, topic: str, records: Sequence[Sent], rate: float) -> None:
        """Write at `rate` a second, whatever comes back (open loop)."""
        began = time.perf_counter()
        waiting = []
        for number, record in enumerate(records):
            pause = began + number / rate - time.perf_counter()
            if pause > 0:
                await asyncio.sleep(pause)
            place = partition_for(record.key, self._partitions)
            waiting.append(
                await self._producer.send(
                    topic, record.value, record.key, partition=place, headers=record.headers
                )
            )
        await asyncio.gather(*waiting)

    async def loop(
        self, topic: str, records: Iterator[Sent], answers: str, window: int, seconds: float
    ) -> tuple[list[bytes], float]:
        """Keep `window` records unanswered for so long: the keys that were sent, and answers a second. Each
        record on `answers` lets the next one go."""
        ends = await self.ends(answers)
        self._reader.assign(list(ends))
        for place, offset in ends.items():
            self._reader.seek(place, offset)
        began = time.perf_counter()
        sent: list[bytes] = []
        answered, last = 0, began
        while answered < len(sent) or not sent:
            while len(sent) - answered < window and time.perf_counter() - began < seconds:
                record = next(records)
                place = partition_for(record.key, self._partitions)
                await self._producer.send(
                    topic, record.value, record.key, partition=place, headers=record.headers
                )
                sent.append(record.key)
            found = await self._reader.getmany(timeout_ms=100)
            count = sum(map(len, found.values()))
            if count:
                answered, last = answered + count, time.perf_counter()
            elif time.perf_counter() - last > READ_S:
                raise TimeoutError(f"{len(sent) - answered} of {len(sent)} answers did not come")
        return sent, answered / max(last - began, 1e-3)

    async def read(self, topic: str, since: dict[TopicPartition, int]) -> list[Any]:
        """The records of `topic` from those offsets to its end as it is now."""
        ends = await self.ends(topic)
        self._reader.assign(list(ends))
        for place, offset in since.items():
            self._reader.seek(place, offset)
        found: list[Any] = []
        async with asyncio.timeout(READ_S):
            while any([await self._reader.position(place) < end for place, end in ends.items()]):
                for records in (await self._reader.getmany(timeout_ms=500)).values():
                    found.extend(records)
        return found
