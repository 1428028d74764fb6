"""What stands on `results`, followed by a plain consumer without a group."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from schemas.codec import decode
from schemas.messages import Result
from tests.faults.harness.cluster import PARTITIONS


@dataclass(frozen=True, slots=True)
class Answer:
    """One record of `results`; `at` is its append time in ms, `said` what must not differ between records,
    `side` that of a one-step answer, `why` the message of an error.
    """

    partition: int
    at: int
    status: str
    code: str | None
    approximate: bool
    said: int
    side: str | None = None
    why: str = ""


@dataclass(slots=True)
class Collector:
    """Every result by id, in the order of the log."""

    bootstrap: str
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    _next: dict[int, int] = field(default_factory=dict)
    _task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Collector:
        self._task = asyncio.create_task(self._follow(), name="collector")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, ids: Collection[str], wait_s: float) -> set[str]:
        """Wait until all of `ids` are answered, `wait_s` at most; those that are not."""
        until = time.monotonic() + wait_s
        while True:
            left = {name for name in ids if name not in self.answers}
            if not left or time.monotonic() > until:
                return left
            if self._task is not None and self._task.done():
                self._task.result()
            await asyncio.sleep(0.1)

    async def _follow(self) -> None:
        consumer: Any = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="earliest",
            metadata_max_age_ms=5_000,
            fetch_max_wait_ms=100,
        )
        await consumer.start()
        try:
            consumer.assign([TopicPartition("results", number) for number in range(PARTITIONS)])
            while True:
                try:
                    found = await consumer.getmany(timeout_ms=200)
                except KafkaError:
                    await asyncio.sleep(0.2)
                    continue
                for records in found.values():
                    for record in records:
                        self._take(record)
        finally:
            await asyncio.wait_for(consumer.stop(), 5.0)

    def _take(self, record: ConsumerRecord) -> None:
        # A consumer that lost its broker may read a record again; that is no duplicate in the log.
        if record.offset < self._next.get(record.partition, 0):
            return
        self._next[record.partition] = record.offset + 1
        result = decode(record.value or b"", Result)
        error = None if result.error is None else result.error.code
        said = hash((result.status, repr(result.output), error))
        side = next(iter(result.sides.values())) if len(result.sides) == 1 else None
        why = "" if result.error is None else result.error.message
        answer = Answer(
            record.partition, record.timestamp, result.status, error, result.approximate, said, side, why
        )
        self.answers.setdefault(result.id, []).append(answer)
