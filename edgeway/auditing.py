"""The shell of `edgeway audit`: reads the log without a group, has the aggregator answer what it must."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from edgeway import kafka
from edgeway.audit import Asked, Ledger, answer
from edgeway.client_records import Awaited, Ready, Sender
from edgeway.tail import Tail
from schemas import codec, headers
from schemas.topics import JOINS, REQUESTS, RESULTS
from streams.settings import Settings

SOURCE = "edgeway/audit"
SEND_S = 15.0


@dataclass(frozen=True, slots=True)
class Window:
    """Append times in ms: requests from `start` to before `end`; `now` is when deadlines are judged."""

    start: int
    end: int
    now: int
    grace_ms: int


@dataclass(frozen=True, slots=True)
class Found:
    """The counts of a window, and its requests without an answer whose deadline is past."""

    ledger: Ledger
    waiting: int
    unanswered: list[Asked] = field(default_factory=list)


async def find(settings: Settings, window: Window, progress: Callable[[int], None]) -> Found:
    """Read the window's requests, then all results since its start.

    Raises:
        KafkaUnreachable: no broker answers.
        TopicsWrong: a topic is missing.
    """
    ledger = Ledger()
    async with Tail(settings, REQUESTS, window.start) as tail:
        async for records in tail.to_end():
            progress(len(records))
            for record in records:
                if window.start <= record.timestamp < window.end:
                    ledger.request(record)
    async with Tail(settings, RESULTS, window.start) as tail:
        async for records in tail.to_end():
            progress(len(records))
            for record in records:
                ledger.result(record)
    late = ledger.unanswered(window.now, window.grace_ms)
    return Found(ledger, ledger.waiting(window.now, window.grace_ms), late)


async def answer_all(settings: Settings, unanswered: Sequence[Asked], wait_s: float) -> list[str]:
    """Have each answered with an error; the ids whose result did not show within `wait_s`.

    Raises:
        KafkaUnreachable, TopicsWrong: as `find`.
    """
    counts = await kafka.partition_counts(settings, JOINS, RESULTS)
    awaited = Awaited.nothing()
    async with Tail(settings, RESULTS) as tail, kafka.producer(settings) as producer:
        sender = Sender(producer, counts[JOINS], JOINS)
        for asked in unanswered:
            record = _plan(asked)
            awaited.expect(record)
            await sender.send(record)
        await sender.finish(SEND_S)
        try:
            async with asyncio.timeout(wait_s):
                while awaited.open:
                    awaited.take(await tail.more())
        except TimeoutError:
            return list(awaited.open.values())
    return []


def _plan(asked: Asked) -> Ready:
    value = codec.encode(answer(asked))
    made = headers.build("plan", asked.id, SOURCE)
    return Ready(asked.scoped, asked.id, asked.scoped.encode(), value, made)
