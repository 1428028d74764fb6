"""The real drivers under the contracts, and what only they can get wrong."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from aiokafka import errors

from streams.delivery import Place, Source, TwinTookOver, Unavailable
from streams.delivery.drivers.aiokafka_reader import AiokafkaReader, Tail
from streams.delivery.drivers.aiokafka_sink import AiokafkaSink
from streams.delivery.drivers.aiokafka_source import AiokafkaSource
from tests.helpers.delivery_contracts import Listener, SinkContract, SourceContract
from tests.helpers.kafka import Kafka, create_topics, delete_topic, produce, read_all
from tests.helpers.redis import free_port

pytestmark = pytest.mark.integration


class RealSinkRig:
    too_large = b"x" * 1_200_000

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._partitions: dict[str, int] = {}
        self.sink = AiokafkaSink({"bootstrap_servers": bootstrap})

    async def topic(self, partitions: int) -> str:
        name = f"s{uuid.uuid4().hex[:10]}"
        await create_topics(self._bootstrap, {name: partitions}, config={"max.message.bytes": "1000000"})
        self._partitions[name] = partitions
        return name

    async def delete(self, topic: str) -> None:
        await delete_topic(self._bootstrap, topic)

    async def read(self, topic: str, partition: int) -> list[bytes]:
        found = await read_all(self._bootstrap, topic, self._partitions[topic])
        return [record.value for record in found if record.partition == partition]

    async def break_producer(self) -> None:
        # What aiokafka's sender does on OutOfOrderSequenceNumber.
        self.sink._producer._message_accumulator.fail_all(errors.OutOfOrderSequenceNumber())


@pytest.fixture
def sink_rig(embedded_kafka: Kafka) -> RealSinkRig:
    return RealSinkRig(embedded_kafka.bootstrap)


class TestAiokafkaSink(SinkContract):
    pass


class RealSourceRig:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self._bootstrap = bootstrap

    async def append(self, partition: int, *values: bytes) -> None:
        await produce(self._bootstrap, self.topic, [(None, value) for value in values], partition)

    def member(self, **options) -> AiokafkaSource:
        return AiokafkaSource(
            {"bootstrap_servers": self._bootstrap}, [self.topic], f"g-{self.topic}", **options
        )


@pytest.fixture
async def source_rig(embedded_kafka: Kafka) -> RealSourceRig:
    topic = f"r{uuid.uuid4().hex[:10]}"
    await create_topics(embedded_kafka.bootstrap, {topic: 3})
    return RealSourceRig(embedded_kafka.bootstrap, topic)


class TestAiokafkaSource(SourceContract):
    pass


async def polling(source: Source) -> None:
    while True:
        await source.poll(0.1, 100)


async def test_pauses_are_lost_at_a_rebalance(source_rig: RealSourceRig) -> None:
    first, listener = source_rig.member(), Listener()
    await first.start(listener)
    first.pause([Place(source_rig.topic, number) for number in range(3)])
    second = source_rig.member()
    await second.start(Listener())
    await second.stop(5)
    async with asyncio.timeout(20):
        while len(listener.told) < 6 or len(listener.owned) < 3:
            await asyncio.sleep(0.05)
    assert [what for what, _ in listener.told] == ["revoked", "assigned"] * 3
    await source_rig.append(0, b"a")
    async with asyncio.timeout(10):
        while not await first.poll(0.1, 10):
            pass
    await first.stop(5)


async def test_a_static_member_that_leaves_gives_up_at_once(source_rig: RealSourceRig) -> None:
    leaver, stays, listener = source_rig.member(slot="a"), source_rig.member(slot="b"), Listener()
    await leaver.start(Listener())
    await stays.start(listener)
    began = asyncio.get_running_loop().time()
    await leaver.leave()
    await leaver.stop(5)
    async with asyncio.timeout(10):
        while len(listener.owned) < 3:
            await asyncio.sleep(0.01)
    assert asyncio.get_running_loop().time() - began < 3.0  # the session is 6 s
    await stays.stop(5)


@pytest.mark.parametrize("partitions_each", ["some", "none"])
async def test_a_twin_is_noticed_and_not_thrown_out(source_rig: RealSourceRig, partitions_each: str) -> None:
    others = []
    if partitions_each == "none":
        # Three members hold all partitions, so that a fourth has nothing whose commit could fail.
        for name in ("o1", "o2", "o3"):
            others.append(source_rig.member(slot=name))
            await others[-1].start(Listener())

    class Waits(Listener):
        async def revoked(self, places: frozenset[Place]) -> None:
            await super().revoked(places)
            try:
                old.check()
            except TwinTookOver:
                await asyncio.Event().wait()

    old, new, listener = source_rig.member(slot="z"), source_rig.member(slot="z"), Listener()
    await old.start(Waits())
    await new.start(listener)
    async with asyncio.timeout(10):
        while True:
            try:
                old.check()
            except TwinTookOver:
                break
            await asyncio.sleep(0.05)
    told = list(listener.told)
    await asyncio.sleep(1.5)
    assert listener.told == told
    await asyncio.wait_for(old.stop(5), 7)
    await asyncio.sleep(1.0)
    new.check()
    assert listener.told == told
    for source in (new, *others):
        await source.stop(5)


async def test_no_broker_is_said_in_time() -> None:
    nowhere = {"bootstrap_servers": f"127.0.0.1:{free_port()}"}
    with pytest.raises(Unavailable):
        await asyncio.wait_for(AiokafkaSink(nowhere).start(), 20)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(AiokafkaSource(nowhere, ["t"], "g").start(Listener()), 35)
    with pytest.raises(Unavailable):
        async for _ in AiokafkaReader(nowhere).read("t", 0, 0):
            pass


async def test_a_reader_reads_from_a_time_to_the_end_as_it_was(
    source_rig: RealSourceRig, embedded_kafka: Kafka
) -> None:
    await source_rig.append(0, b"old")
    await asyncio.sleep(0.05)
    await source_rig.append(0, *[b"%d" % number for number in range(3000)])
    found = await read_all(embedded_kafka.bootstrap, source_rig.topic, 3)
    since = next(record.timestamp for record in found if record.value == b"0")
    reader = AiokafkaReader({"bootstrap_servers": embedded_kafka.bootstrap})
    values = [record.value async for records in reader.read(source_rig.topic, 0, since) for record in records]
    assert values == [b"%d" % number for number in range(3000)]
    assert [batch async for batch in reader.read(source_rig.topic, 1, 0)] == []
    assert [batch async for batch in reader.read(source_rig.topic, 0, since + 10**9)] == []


async def test_a_tail_catches_up_and_follows(source_rig: RealSourceRig, embedded_kafka: Kafka) -> None:
    await source_rig.append(1, b"a", b"b")
    seen: list[bytes | None] = []
    tail = Tail(
        {"bootstrap_servers": embedded_kafka.bootstrap}, source_rig.topic, 0, lambda r: seen.append(r.value)
    )
    task = asyncio.create_task(tail.run())
    await asyncio.wait_for(tail.caught_up.wait(), 20)
    assert seen == [b"a", b"b"]
    await source_rig.append(2, b"c")
    async with asyncio.timeout(10):
        while b"c" not in seen:
            await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_tail_of_a_missing_topic_says_so(embedded_kafka: Kafka) -> None:
    with pytest.raises(Unavailable, match="does not exist"):
        await Tail({"bootstrap_servers": embedded_kafka.bootstrap}, "nowhere", 0, lambda _: None).run()
