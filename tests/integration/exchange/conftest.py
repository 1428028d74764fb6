"""Exchanges of both kinds, and the one who answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from aiokafka import AIOKafkaProducer

from edgeway.exchange import Exchange, KafkaExchange
from schemas import codec, ids
from schemas.messages import Failure, Request, Result
from schemas.topics import partition_for
from streams.settings import Settings
from tests.helpers.exchange import MemoryExchange
from tests.helpers.kafka import create_topics, serve

PARTITIONS = 3
TOPICS = {"requests": PARTITIONS, "results": PARTITIONS, "joins": PARTITIONS, "cancellations": 1}


class Answerer:
    """Writes results as the aggregator does: it looks at no request."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer

    async def reply(self, result: Result) -> None:
        key = ids.scoped(result.tenant, result.id).encode()
        partition = partition_for(key, PARTITIONS)
        await self._producer.send_and_wait("results", codec.encode(result), key, partition=partition)

    async def refuse(self, request: Request) -> None:
        """Answer that the id of `request` stands for other content."""
        digest = codec.digest_of(request)
        failure = Failure(code="id_conflict", message="used")
        await self.reply(
            Result(
                id=ids.conflicting(request.id or "", digest),
                tenant=request.tenant,
                status="error",
                digest=digest,
                error=failure,
            )
        )


class MemoryAnswerer:
    def __init__(self, exchange: MemoryExchange) -> None:
        self._exchange = exchange

    async def reply(self, result: Result) -> None:
        self._exchange.reply(result)

    async def refuse(self, request: Request) -> None:
        """It has done so itself."""


@dataclass(frozen=True)
class Face:
    """An exchange and the one who answers."""

    exchange: Exchange
    answerer: Answerer | MemoryAnswerer


@pytest.fixture(scope="package")
def topics() -> Iterator[str]:
    """Where a Kafka of this folder's own listens that has the topics and no roles."""
    clusters = serve("embedded")
    try:
        bootstrap = next(clusters).bootstrap
        with ThreadPoolExecutor(1) as pool:  # a loop may run in this thread already
            pool.submit(asyncio.run, create_topics(bootstrap, TOPICS)).result()
        yield bootstrap
    finally:
        next(clusters, None)


async def never(request: Request) -> Result | None:
    return None


@pytest.fixture(params=["memory", "kafka", "remembering"])
async def face(request: pytest.FixtureRequest) -> AsyncIterator[Face]:
    if request.param == "memory":
        async with MemoryExchange(never) as exchange:
            yield Face(exchange, MemoryAnswerer(exchange))
        return
    settings = Settings(kafka=request.getfixturevalue("topics"))
    remember_s = 600.0 if request.param == "remembering" else 0.0
    async with (
        AIOKafkaProducer(bootstrap_servers=settings.bootstrap, acks="all") as producer,
        KafkaExchange(settings, source="edgeway/test", remember_s=remember_s) as exchange,
    ):
        yield Face(exchange, Answerer(producer))
