"""Real Kafka for tests: Apache Kafka from its jars or in a container; brokers can be killed and restarted."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from edgeway.embedded import BrokerSettings, EmbeddedKafka
from tests.helpers.docker import need_docker
from tests.helpers.redis import free_port

IMAGE = "apache/kafka:4.1.1"
READY_S = 60.0


class Kafka(Protocol):
    """A cluster. Brokers are numbered from 1."""

    @property
    def bootstrap(self) -> str: ...
    def kill_sync(self, number: int) -> None: ...
    def restart_sync(self, number: int) -> None: ...


class ContainerKafka:
    """One broker in a container, on a port that stays the same over a restart."""

    def __init__(self) -> None:
        os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
        from testcontainers.core.container import DockerContainer

        port = free_port()
        self.bootstrap = f"localhost:{port}"
        self._container = DockerContainer(IMAGE).with_bind_ports(9092, port)
        for name, value in _variables(port).items():
            self._container.with_env(name, value)

    def start(self) -> None:
        self._container.start()
        self._wait(1)

    def stop(self) -> None:
        self._container.stop()

    def kill_sync(self, number: int) -> None:
        self._container.get_wrapped_container().kill()

    def restart_sync(self, number: int) -> None:
        starts = self._starts()
        self._container.get_wrapped_container().start()
        self._wait(starts + 1)

    def _starts(self) -> int:
        return b"".join(self._container.get_logs()).count(b"Kafka Server started")

    def _wait(self, starts: int) -> None:
        until = time.monotonic() + READY_S
        while self._starts() < starts:
            if time.monotonic() > until:
                raise TimeoutError(f"{IMAGE} was not ready within {READY_S:.0f} s")
            time.sleep(0.2)


def _variables(port: int) -> dict[str, str]:
    # With a single variable set the image forgets all its defaults, so these are all there are.
    return {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_HEAP_OPTS": "-Xmx512m",
        "KAFKA_LISTENERS": "EXTERNAL://:9092,INTERNAL://:19092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"EXTERNAL://localhost:{port},INTERNAL://localhost:19092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS": "1000",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
        "KAFKA_BROKER_SESSION_TIMEOUT_MS": "3000",
        "KAFKA_BROKER_HEARTBEAT_INTERVAL_MS": "1000",
    }


KINDS = [
    pytest.param("embedded"),
    pytest.param("container", marks=pytest.mark.containers),
]


def serve(kind: str) -> Iterator[Kafka]:
    """A started cluster of one kind (`embedded`, `embedded3`, `container`), stopped at the end."""
    if kind == "container":
        need_docker()
        container = ContainerKafka()
        try:
            container.start()
            yield container
        finally:
            container.stop()
        return
    cluster = EmbeddedKafka(BrokerSettings(brokers=3 if kind == "embedded3" else 1))
    cluster.start_sync()
    try:
        yield cluster
    finally:
        cluster.stop_sync()


@pytest.fixture(scope="session")
def embedded_kafka() -> Iterator[Kafka]:
    """One broker for the whole run: tests use topics and groups of their own, and do not kill it."""
    yield from serve("embedded")


@pytest.fixture(scope="session")
def _container_kafka() -> Iterator[Kafka]:
    yield from serve("container")


@pytest.fixture(params=KINDS)
def kafka(request: pytest.FixtureRequest) -> Kafka:
    """A shared cluster, embedded and in a container by turns. Not to be killed."""
    name = "embedded_kafka" if request.param == "embedded" else "_container_kafka"
    found: Kafka = request.getfixturevalue(name)
    return found


@pytest.fixture
def own_kafka() -> Iterator[Kafka]:
    """One broker of this test's own, to be killed."""
    yield from serve("embedded")


@pytest.fixture
def three_brokers() -> Iterator[Kafka]:
    """Three brokers of this test's own, to be killed."""
    yield from serve("embedded3")


async def create_topics(
    bootstrap: str, topics: Mapping[str, int], replicas: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Make topics (name -> partitions) that broker time stamps; wait until their partitions have leaders."""
    settings = {"message.timestamp.type": "LogAppendTime", **(config or {})}
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        new = [NewTopic(name, count, replicas, topic_configs=settings) for name, count in topics.items()]
        answer = await admin.create_topics(new)
        assert all(error[1] in (0, 36) for error in answer.topic_errors), answer
        async with asyncio.timeout(READY_S):
            while True:
                found = await admin.describe_topics(list(topics))
                ready = [
                    t for t in found if t["partitions"] and all(p["leader"] >= 0 for p in t["partitions"])
                ]
                if len(ready) == len(topics):
                    return
                await asyncio.sleep(0.05)
    finally:
        await admin.close()


async def delete_topic(bootstrap: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.delete_topics([topic])
    finally:
        await admin.close()


async def produce(
    bootstrap: str, topic: str, records: Sequence[tuple[bytes | None, bytes]], partition: int | None = None
) -> None:
    """Append (key, value) records, acknowledged when this returns."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
    await producer.start()
    try:
        sent = [await producer.send(topic, value, key=key, partition=partition) for key, value in records]
        await asyncio.wait_for(asyncio.gather(*sent), READY_S)
    finally:
        await producer.stop()


async def from_beginning_to_end(consumer: Any, places: list[TopicPartition], within_s: float) -> list[Any]:
    """Every record of `places`, up to their ends as they are now."""
    consumer.assign(places)
    await consumer.seek_to_beginning()
    ends = await consumer.end_offsets(places)
    found: list[Any] = []
    async with asyncio.timeout(within_s):
        while any([await consumer.position(place) < end for place, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                found += records
    return found


async def read_all(bootstrap: str, topic: str, partitions: int) -> list[Any]:
    """Every record of a topic, up to its end as it is now."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    places = [TopicPartition(topic, number) for number in range(partitions)]
    await consumer.start()
    try:
        return await from_beginning_to_end(consumer, places, READY_S)
    finally:
        await consumer.stop()


async def committed(bootstrap: str, group: str, topic: str, partition: int = 0) -> tuple[int, str]:
    """The group's committed offset (-1: none) and its note."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        place = TopicPartition(topic, partition)
        async with asyncio.timeout(READY_S):
            while True:
                found = await admin.list_consumer_group_offsets(group, partitions=[place])
                if place in found:
                    return found[place].offset, found[place].metadata
                await asyncio.sleep(0.1)
    finally:
        await admin.close()
