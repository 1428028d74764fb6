"""Sending requests in a closed loop and timing their answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from edgeway import kafka
from edgeway.client_records import read_result, ready
from edgeway.tail import Tail
from schemas import topics
from schemas.messages import Request, Result
from streams.settings import Settings

IN_FLIGHT = 4
"""Requests on their way at any time: enough to keep every role busy, few enough to time them and not the
queue."""
LATE_S = 40.0
STRAGGLERS_S = 1.0


@dataclass(slots=True)
class Traffic:
    """What was sent and what came back. `first` holds the first Result of an id, `seconds` how long it
    took."""

    sent: dict[str, float] = field(default_factory=dict)
    first: dict[str, Result] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    duplicated: int = 0
    began: float = 0.0
    ended: float = 0.0

    @property
    def lost(self) -> int:
        return len(self.sent) - len(self.first)

    def take(self, result: Result, now: float) -> bool:
        """Note one result; True where it is the first of an id that was sent."""
        if result.id not in self.sent:
            return False
        if result.id in self.first:
            self.duplicated += 1
            return False
        self.first[result.id] = result
        self.seconds[result.id] = now - self.sent[result.id]
        self.ended = now
        return True


async def drive(
    settings: Settings, requests: Sequence[Request], answered: Callable[[Result], None]
) -> Traffic:
    """Send `requests`, at most IN_FLIGHT at a time, and wait for all answers or LATE_S without one.

    Raises:
        KafkaUnreachable: no broker answers.
    """
    traffic = Traffic()
    slots = asyncio.Semaphore(IN_FLIGHT)
    async with Tail(settings, topics.RESULTS) as results, kafka.producer(settings) as producer:
        counts = await kafka.partition_counts(settings, topics.REQUESTS)
        partitions = counts[topics.REQUESTS]
        listening = asyncio.create_task(_listen(results, traffic, len(requests), slots, answered))
        traffic.began = time.perf_counter()
        try:
            for request in requests:
                if listening.done() or not await _free(slots):
                    break
                record = ready(request, "json", request.id or "")
                traffic.sent[record.id] = time.perf_counter()
                place = topics.partition_for(record.key, partitions)
                await producer.send(
                    topics.REQUESTS, record.value, record.key, partition=place, headers=record.headers
                )
            await listening
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
    return traffic


async def _free(slots: asyncio.Semaphore) -> bool:
    """Whether a slot came free in LATE_S."""
    try:
        await asyncio.wait_for(slots.acquire(), LATE_S)
    except TimeoutError:
        return False
    return True


async def _listen(
    results: Tail,
    traffic: Traffic,
    expected: int,
    slots: asyncio.Semaphore,
    answered: Callable[[Result], None],
) -> None:
    last = time.perf_counter()
    while True:
        records = await results.more(50)
        now = time.perf_counter()
        for record in records:
            result = read_result(record)
            if result is not None and traffic.take(result, now):
                last = now
                slots.release()
                answered(result)
        complete = len(traffic.first) == expected
        if now - last > (STRAGGLERS_S if complete else LATE_S):
            return
