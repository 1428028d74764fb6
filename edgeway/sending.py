"""Sending requests at a rate, and waiting for their results."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from aiokafka.errors import KafkaError

from edgeway import kafka
from edgeway.client_records import Awaited, Ready, Sender, ready
from edgeway.errors import KafkaUnreachable
from edgeway.request_lines import BadLine
from edgeway.tail import Tail
from schemas.errors import SchemaError
from schemas.messages import Format, Request, Result
from schemas.topics import REQUESTS, RESULTS
from streams.settings import Settings

FINISH_S = 15.0
SILENCE_S = 25.0
"""Without an acknowledgement for so long, no broker is there: the client gives a record up after 10 s."""
LOOK_BACK_MS = 3_600_000
FRESH_S = 2.0
"""A new answer, or the conflict of an id used for something else, is there by then; only after that are
earlier results looked for."""
Line = tuple[int, Request | BadLine]


@dataclass(frozen=True, slots=True)
class Manner:
    """How to send: `rate` in requests a second (None: at once), `wait_s` None where no result is awaited."""

    fmt: Format = "msgpack"
    rate: float | None = None
    wait_s: float | None = None


@dataclass(slots=True)
class Outcome:
    """What became of the requests; `unknown` were not acknowledged, `unanswered` had no result in time.

    `trouble` says what ended the sending or the listening early; empty where nothing did.
    """

    sent: int = 0
    bad: int = 0
    answered: int = 0
    errors: int = 0
    duplicates: int = 0
    unknown: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    trouble: str = ""
    earlier: list[str] = field(default_factory=list)
    """Ids among the answered whose result was there before they were sent."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Called on the way: with each request that was handed over, each bad line, each result, and each result
    that was there before its request."""

    sent: Callable[[Ready], None]
    bad: Callable[[BadLine], None]
    result: Callable[[Result], None]
    earlier: Callable[[Result], None]


async def send(
    settings: Settings, lines: AsyncIterator[Line], manner: Manner, tell: Listeners, outcome: Outcome
) -> None:
    """Send all requests of `lines`; with `manner.wait_s` wait so long for results after the last one.

    `outcome` is filled in on the way, so that it can be told of an interrupted sending too.

    Raises:
        KafkaUnreachable: no broker answers.
        TopicsWrong: a topic is missing.
    """
    awaited = Awaited.nothing()
    waits = manner.wait_s is not None
    async with AsyncExitStack() as stack:
        counts = await kafka.partition_counts(settings, *((REQUESTS, RESULTS) if waits else (REQUESTS,)))
        tail = await stack.enter_async_context(Tail(settings, RESULTS)) if waits else None
        sender = Sender(await stack.enter_async_context(kafka.producer(settings)), counts[REQUESTS])
        sent = asyncio.Event()
        collector = (
            asyncio.create_task(_collect(tail, awaited, sent, outcome, tell)) if tail is not None else None
        )
        try:
            await _send_all(lines, manner, sender, awaited, outcome, tell)
            await sender.finish(FINISH_S)
            sent.set()
            if (
                tail is not None
                and collector is not None
                and manner.wait_s is not None
                and not outcome.trouble
            ):
                until = asyncio.get_running_loop().time() + manner.wait_s
                await asyncio.wait([collector], timeout=min(FRESH_S, manner.wait_s / 2))
                if not collector.done() and awaited.may_be_old():
                    await _look_back(settings, tail, awaited, outcome, tell, until)
                left = until - asyncio.get_running_loop().time()
                await asyncio.wait([collector], timeout=max(0.0, left))
        finally:
            outcome.unknown = sender.unacknowledged
            outcome.duplicates = awaited.duplicates
            outcome.unanswered = list(awaited.open.values())
            if collector is not None:
                await _ended(collector)


async def _send_all(
    lines: AsyncIterator[Line],
    manner: Manner,
    sender: Sender,
    awaited: Awaited,
    outcome: Outcome,
    tell: Listeners,
) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    async for number, line in lines:
        if sender.silence_s() > SILENCE_S:
            outcome.trouble = "no broker acknowledges requests any more: the rest of the input was not sent"
            return
        record = line if isinstance(line, BadLine) else _ready(number, line, manner.fmt)
        if isinstance(record, BadLine):
            outcome.bad += 1
            tell.bad(record)
            continue
        if manner.rate is not None:
            await asyncio.sleep(start + outcome.sent / manner.rate - loop.time())
        if manner.wait_s is not None:
            awaited.expect(record, given=isinstance(line, Request) and line.id is not None)
        await sender.send(record)
        outcome.sent += 1
        tell.sent(record)


def _ready(number: int, request: Request, fmt: Format) -> Ready | BadLine:
    try:
        return ready(request, fmt, uuid.uuid4().hex)
    except SchemaError as exc:
        return BadLine(number, str(exc))


async def _collect(
    tail: Tail, awaited: Awaited, sent: asyncio.Event, outcome: Outcome, tell: Listeners
) -> None:
    """Take results until all are sent and answered, or the client gives up reading."""
    while not (sent.is_set() and not awaited.open):
        try:
            records = await tail.more()
        except KafkaError as exc:
            outcome.trouble = f"no more results could be read: {str(exc) or type(exc).__name__}"
            return
        for result in awaited.take(records):
            outcome.answered += 1
            outcome.errors += result.status == "error"
            tell.result(result)


async def _look_back(
    settings: Settings, tail: Tail, awaited: Awaited, outcome: Outcome, tell: Listeners, until: float
) -> None:
    """Take the results that were there before `tail`: an id used again with the same content is not answered
    again. Reads LOOK_BACK_MS, and no longer than `until`."""
    since = int(time.time() * 1000) - LOOK_BACK_MS
    try:
        async with asyncio.timeout_at(until), Tail(settings, RESULTS, since) as past:
            async for records in past.to_end():
                older = [record for record in records if record.offset < tail.began[record.partition]]
                for result in awaited.take_earlier(older):
                    outcome.answered += 1
                    outcome.errors += result.status == "error"
                    outcome.earlier.append(result.id)
                    tell.earlier(result)
                if not awaited.may_be_old():
                    return
    except TimeoutError:
        return
    except (KafkaError, KafkaUnreachable) as exc:
        outcome.trouble = f"earlier results could not be read: {str(exc) or type(exc).__name__}"


async def _ended(task: asyncio.Task[None]) -> None:
    """See the task end; its own error is raised."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
