"""Kafka clients for commands: bounded waits, and one clear error where no broker answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from edgeway.errors import KafkaUnreachable, TopicsWrong
from edgeway.reasons import Reasons, gathering
from streams.delivery.drivers import aiokafka_client
from streams.settings import Settings, client_options

REQUEST_MS = 10_000
START_S = 12.0
STOP_S = 5.0
MAX_REQUEST_BYTES = 2 * 1024 * 1024
CLIENT_ID = "edgeway-cli"


@contextmanager
def reaching(settings: Settings) -> Iterator[None]:
    """Turns the many ways of not reaching Kafka into one `KafkaUnreachable` that says why."""
    reasons = Reasons()
    logger = logging.getLogger("aiokafka")
    logger.addHandler(reasons)
    gathering.append(reasons)
    try:
        yield
    except Exception as exc:
        if not aiokafka_client.is_away(exc):
            raise
        why = "; ".join(reasons.lines[-3:]) or str(exc) or "no answer in time"
        raise KafkaUnreachable(settings.bootstrap, _hinted(why, settings)) from exc
    finally:
        logger.removeHandler(reasons)
        gathering.remove(reasons)


def _hinted(why: str, settings: Settings) -> str:
    # TLS to a port without it, or the reverse, ends in a closed connection and no further word.
    if why.rstrip().endswith((" closed", ":")):
        return f"{why.rstrip()} (is {settings.security_protocol} what this port speaks?)"
    return why


async def stopped(stop: Any, what: str) -> None:
    """Await `stop()`, at most STOP_S: a client can hang in it when all brokers are away.

    What it raises then is logged only: the work is done, and its outcome must still be told.
    """
    await aiokafka_client.stopped(stop, f"the Kafka {what}", STOP_S)


@asynccontextmanager
async def admin(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    """A started admin client.

    Raises:
        KafkaUnreachable: also out of the block, where a request in it is not answered.
    """
    with reaching(settings):
        client = AIOKafkaAdminClient(
            **client_options(settings), client_id=CLIENT_ID, request_timeout_ms=REQUEST_MS
        )
        try:
            async with asyncio.timeout(START_S):
                await client.start()
            yield client
        finally:
            await stopped(client.close, "admin client")


@asynccontextmanager
async def producer(settings: Settings) -> AsyncIterator[AIOKafkaProducer]:
    """A started idempotent producer that waits for all replicas. Raises `KafkaUnreachable`."""
    client = AIOKafkaProducer(
        **client_options(settings),
        client_id=CLIENT_ID,
        request_timeout_ms=REQUEST_MS,
        acks="all",
        enable_idempotence=True,
        linger_ms=5,
        max_request_size=MAX_REQUEST_BYTES,
    )
    try:
        with reaching(settings):
            async with asyncio.timeout(START_S):
                await client.start()
        yield client
    finally:
        await stopped(client.stop, "producer")


async def partition_counts(settings: Settings, *names: str) -> dict[str, int]:
    """How many partitions each of these topics has.

    All topics are asked for, not these by name: a broker may make a topic that is asked for by name.

    Raises:
        KafkaUnreachable: no answer.
        TopicsWrong: one is missing.
    """
    async with admin(settings) as client:
        topics = await client.describe_topics()
    counts = {topic["topic"]: len(topic["partitions"]) for topic in topics}
    missing = [f"{name} is missing" for name in names if not counts.get(name)]
    if missing:
        raise TopicsWrong(missing, settings.bootstrap)
    return {name: counts[name] for name in names}
