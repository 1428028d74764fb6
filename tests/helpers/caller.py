"""A plain Kafka client that asks and waits: no code of the product between a test and the topics."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.helpers.kafka import from_beginning_to_end

ANSWER_S = 30.0
MAX_BYTES = 4 * 1024 * 1024
JSON = "application/json"
MSGPACK = "application/msgpack"
Headers = Sequence[tuple[str, bytes]]


class Answer(NamedTuple):
    """One record of `results`, decoded by its content type alone."""

    record: Any
    body: dict[str, Any]
    headers: dict[str, bytes]

    @property
    def status(self) -> str:
        return str(self.body["status"])

    @property
    def code(self) -> str | None:
        error = self.body.get("error")
        return None if error is None else str(error["code"])

    @property
    def message(self) -> str:
        return str(self.body["error"]["message"])


class Sent(NamedTuple):
    """Where a record lies and when the broker took it, in ms."""

    partition: int
    offset: int
    timestamp: int


def new_id(name: str = "t") -> str:
    mark = uuid.uuid4().hex
    # No long run of digits, which may be an account's number, and no word, which may be a name.
    return f"{name}-{mark[:5]}x{mark[5:10]}"


def read_answer(record: Any) -> Answer:
    headers = dict(record.headers)
    decode = json.loads if headers["content-type"].decode() == JSON else msgspec.msgpack.decode
    return Answer(record, decode(record.value), headers)


class Caller:
    """Sends to `requests` and keeps every answer on `results` since it was entered, by the caller's id."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._answers: dict[str, list[Answer]] = defaultdict(list)
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="latest",
            max_partition_fetch_bytes=MAX_BYTES,
        )
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap, acks="all", max_request_size=MAX_BYTES
        )
        await self._consumer.start()
        await self._producer.start()
        places = await _places(self._consumer, ["results"])
        self._consumer.assign(places)
        for place, end in (await self._consumer.end_offsets(places)).items():
            self._consumer.seek(place, end)
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._producer.stop()
        await self._consumer.stop()

    async def _listen(self) -> None:
        while True:
            for records in (await self._consumer.getmany(timeout_ms=500)).values():
                for record in records:
                    answer = read_answer(record)
                    self._answers[answer.body["id"]].append(answer)
                self._news.set()

    async def send(
        self,
        value: bytes,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        topic: str = "requests",
    ) -> Sent:
        """Append one record, acknowledged when this returns."""
        sent = await self._producer.send_and_wait(
            topic, value, key=key, headers=list(headers), partition=partition
        )
        return Sent(sent.partition, sent.offset, sent.timestamp)

    async def answer(self, request_id: str, within_s: float = ANSWER_S) -> Answer:
        """The first answer under an id."""
        try:
            async with asyncio.timeout(within_s):
                while not self._answers[request_id]:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{request_id!r} has no answer after {within_s:.0f} s") from None
        return self._answers[request_id][0]

    async def ask(self, request: dict[str, Any], **how: Any) -> Answer:
        """Send one request in JSON, under an id of its own where it has none; its answer."""
        request = {"id": new_id(), **request}
        await self.send(json.dumps(request).encode(), **how)
        return await self.answer(request["id"])

    def all_of(self, request_id: str) -> list[Answer]:
        """Every answer so far under an id."""
        return self._answers[request_id]

    def ids(self) -> set[str]:
        """All ids answered so far."""
        return {request_id for request_id, found in self._answers.items() if found}


async def read_topics(bootstrap: str, topics: Sequence[str], within_s: float = 30.0) -> list[Any]:
    """Every record of `topics`, from their beginnings to their ends as they are now."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", max_partition_fetch_bytes=MAX_BYTES
    )
    await consumer.start()
    try:
        places = await _places(consumer, topics)
        return await from_beginning_to_end(consumer, places, within_s)
    finally:
        await consumer.stop()


async def topic_names(bootstrap: str) -> set[str]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        return set(await consumer.topics())
    finally:
        await consumer.stop()


async def _places(consumer: Any, topics: Sequence[str]) -> list[TopicPartition]:
    # All topics are asked for: the public call for one leaves it in the client's metadata for ever.
    cluster = await consumer._client.fetch_all_metadata()
    places = []
    for topic in topics:
        partitions = cluster.partitions_for_topic(topic)
        assert partitions, f"there is no topic {topic}"
        places += [TopicPartition(topic, number) for number in sorted(partitions)]
    return places
