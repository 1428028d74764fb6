"""Delivery on real brokers: members join, leave, die and hang; brokers die; records fit nowhere."""

from __future__ import annotations

import asyncio
import signal
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from streams.delivery import Batch, Outgoing
from tests.helpers.echo import Echo, EchoProcess, Member
from tests.helpers.kafka import (
    Kafka,
    committed,
    create_topics,
    delete_topic,
    produce,
    read_all,
)
from tests.helpers.redis import free_port

pytestmark = pytest.mark.integration
PARTITIONS = 6


class Names:
    """Topics and a group of one test's own."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex[:10]
        self.topic = f"local.t{self.id}"
        self.out = f"out{self.id}"
        self.group = f"edgeway.{self.topic}"


@pytest.fixture
def names() -> Names:
    return Names()


def records(count: int, start: int = 0) -> list[tuple[bytes, bytes]]:
    return [(b"k%d" % number, b"v%d" % number) for number in range(start, start + count)]


async def counts(kafka: Kafka, names: Names, partitions: int = PARTITIONS) -> Counter[bytes]:
    return Counter(record.value for record in await read_all(kafka.bootstrap, names.out, partitions))


async def copied(
    kafka: Kafka, names: Names, count: int, within_s: float = 60.0, partitions: int = PARTITIONS
) -> Counter[bytes]:
    """The copies, once there are `count` different ones."""
    async with asyncio.timeout(within_s):
        while len(found := await counts(kafka, names, partitions)) < count:
            await asyncio.sleep(0.2)
    return found


async def prepared(kafka: Kafka, names: Names, partitions: int = PARTITIONS, replicas: int = 1) -> None:
    topics = {names.topic: partitions, names.out: partitions, "dead-letters": 3}
    await create_topics(kafka.bootstrap, topics, replicas)


async def settled(kafka: Kafka, names: Names, offset: int, within_s: float = 40.0) -> str:
    """The note of partition 0, once `offset` is committed."""
    async with asyncio.timeout(within_s):
        while (found := await committed(kafka.bootstrap, names.group, names.topic))[0] < offset:
            await asyncio.sleep(0.05)
    return found[1]


async def dead_letters(kafka: Kafka, names: Names) -> list[bytes]:
    found = await read_all(kafka.bootstrap, "dead-letters", 3)
    mine = names.topic.encode()
    return [record.value for record in found if dict(record.headers)["edgeway_dead_letter_topic"] == mine]


async def test_nothing_is_lost_while_members_join_and_leave(kafka: Kafka, names: Names) -> None:
    total = 20_000
    await prepared(kafka, names)
    await produce(kafka.bootstrap, names.topic, records(total // 4))
    async with Member(kafka.bootstrap, Echo(names.out, 0.02), names.topic, names.group):
        for part in range(1, 4):
            guest = Echo(names.out, 0.02)
            async with Member(kafka.bootstrap, guest, names.topic, names.group):
                await produce(kafka.bootstrap, names.topic, records(total // 4, part * total // 4))
            assert guest.lanes
        found = await copied(kafka, names, total)
    assert len(found) == total
    # Work in flight is waited for at each rebalance, so nothing is done again.
    assert sum(found.values()) == total
    for partition in range(PARTITIONS):
        assert (await committed(kafka.bootstrap, names.group, names.topic, partition))[1] == "clean"


@pytest.mark.faults
async def test_a_process_that_is_killed_amid_its_work_loses_nothing(
    embedded_kafka: Kafka, names: Names, tmp_path: Path
) -> None:
    kafka = embedded_kafka
    await prepared(kafka, names)
    told = {"kafka": kafka.bootstrap, "topic": names.topic, "out": names.out, "delay_s": 0.05, "slot": "a"}

    async def stream() -> None:
        for part in range(100):
            await produce(kafka.bootstrap, names.topic, records(20, part * 20))

    process = await EchoProcess(tmp_path, **told).start()
    streaming = asyncio.create_task(stream())
    for kills in range(1, 3):
        # Each life gets something done: one that dies without that a third time has a suspect.
        await copied(kafka, names, 150 * kills)
        await asyncio.sleep(0.5)
        await process.kill()
        process = await EchoProcess(tmp_path, **told).start()
    await streaming
    found = await copied(kafka, names, 2000)
    process.signal(signal.SIGTERM)
    assert await process.ended() == 0
    assert len(found) == 2000
    # What was in flight or not committed yet at two kills.
    assert sum(found.values()) - 2000 < 1000
    assert await dead_letters(kafka, names) == []


@pytest.mark.faults
async def test_a_broker_that_is_killed_and_comes_back_loses_nothing(own_kafka: Kafka, names: Names) -> None:
    await prepared(own_kafka, names)
    agent = Echo(names.out, 0.02)
    async with Member(own_kafka.bootstrap, agent, names.topic, names.group, send_timeout_s=5.0) as member:
        await produce(own_kafka.bootstrap, names.topic, records(3000))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(own_kafka.kill_sync, 1)
        await asyncio.sleep(2.0)
        await asyncio.to_thread(own_kafka.restart_sync, 1)
        await produce(own_kafka.bootstrap, names.topic, records(1000, 3000))
        found = await copied(own_kafka, names, 4000)
        assert not member.inlet.failed.done()
        assert not member.outlet.failed.done()
    assert len(found) == 4000


@pytest.mark.faults
async def test_a_stop_ends_in_time_although_the_broker_is_away(own_kafka: Kafka, names: Names) -> None:
    await prepared(own_kafka, names)
    member = Member(own_kafka.bootstrap, Echo(names.out, 0.2), names.topic, names.group)
    await member.start()
    await produce(own_kafka.bootstrap, names.topic, records(100))
    await asyncio.to_thread(own_kafka.kill_sync, 1)
    began = time.monotonic()
    await asyncio.wait_for(member.stop(2.0), 20)
    assert time.monotonic() - began < 12


@pytest.mark.faults
@pytest.mark.slow
async def test_one_broker_of_three_that_is_killed_for_good_loses_nothing(
    three_brokers: Kafka, names: Names
) -> None:
    await prepared(three_brokers, names, replicas=3)
    agent = Echo(names.out, 0.02)
    async with Member(three_brokers.bootstrap, agent, names.topic, names.group, send_timeout_s=5.0):
        await produce(three_brokers.bootstrap, names.topic, records(3000))
        await asyncio.to_thread(three_brokers.kill_sync, 2)
        await produce(three_brokers.bootstrap, names.topic, records(2000, 3000))
        found = await copied(three_brokers, names, 5000, 90)
    assert len(found) == 5000


async def test_outputs_that_fit_nowhere_cost_themselves_only(embedded_kafka: Kafka, names: Names) -> None:
    kafka = embedded_kafka
    await prepared(kafka, names)

    class Odd(Echo):
        async def handle(self, batch: Batch) -> None:
            for record in batch.records:
                number = int((record.value or b"v0")[1:])
                outputs = [Outgoing(self.out, record.key, record.value or b"")]
                if number % 100 == 7:
                    outputs.append(Outgoing("local.nowhere", record.key, b"x"))
                if number % 100 == 9:
                    outputs.append(Outgoing(self.out, record.key, b"x" * 2_500_000))
                batch.lane.settle((record.offset,), outputs)

    instead: list[str] = []

    def substitute(record: Outgoing, error) -> tuple[Outgoing, ...]:
        instead.append(error.code)
        return (Outgoing(names.out, record.key, b"instead of " + record.key),)

    await produce(kafka.bootstrap, names.topic, records(400))
    member = Member(kafka.bootstrap, Odd(names.out), names.topic, names.group, substitute=substitute)
    async with member:
        found = await copied(kafka, names, 408)
    assert sum(1 for value in found if value.startswith(b"instead")) == 8
    assert set(instead) == {"unknown_capability", "too_large"}
    assert len(found) == 408


async def test_a_topic_that_is_deleted_under_way_ends_nobody(embedded_kafka: Kafka, names: Names) -> None:
    kafka = embedded_kafka
    await prepared(kafka, names)
    agent = Echo(names.out)
    async with Member(kafka.bootstrap, agent, names.topic, names.group, send_timeout_s=2.0) as member:
        await produce(kafka.bootstrap, names.topic, records(100))
        await copied(kafka, names, 100)
        await delete_topic(kafka.bootstrap, names.out)
        await produce(kafka.bootstrap, names.topic, records(100))
        async with asyncio.timeout(40):
            while agent.handled < 200 or member.outlet.pending:
                await asyncio.sleep(0.1)
        assert not member.outlet.failed.done()


async def test_a_static_slot_is_back_in_about_two_seconds(
    embedded_kafka: Kafka, names: Names, tmp_path: Path
) -> None:
    kafka = embedded_kafka
    await prepared(kafka, names, 2)
    told = {"kafka": kafka.bootstrap, "topic": names.topic, "out": names.out}
    first = await EchoProcess(tmp_path, **told, slot="a").start()
    other = Echo(names.out)
    async with Member(kafka.bootstrap, other, names.topic, names.group, slot="b"):
        lanes = len(other.lanes)
        began = time.monotonic()
        await first.kill()
        again = await EchoProcess(tmp_path, **told, slot="a").start()
        took = time.monotonic() - began
        assert took < 5.0  # a session is 6 s; most of this is the start of an interpreter
        await produce(kafka.bootstrap, names.topic, records(50))
        await copied(kafka, names, 50, partitions=2)
        # Nobody else noticed: b kept what it had.
        assert len(other.lanes) == lanes
        again.signal(signal.SIGTERM)
        assert await again.ended() == 0


@pytest.mark.faults
@pytest.mark.parametrize("partitions", [2, pytest.param(1, marks=pytest.mark.slow)])
async def test_of_twins_one_exits_and_the_other_works_on(
    embedded_kafka: Kafka, names: Names, tmp_path: Path, partitions: int
) -> None:
    kafka = embedded_kafka
    await prepared(kafka, names, partitions)
    told = {"kafka": kafka.bootstrap, "topic": names.topic, "out": names.out}
    holder = await EchoProcess(tmp_path, **told, slot="h").start()
    first = await EchoProcess(tmp_path, **told, slot="a").start()
    second = await EchoProcess(tmp_path, **told, slot="a").start()
    assert await first.ended(15) == 1
    assert "belongs to another process" in first.said
    await produce(kafka.bootstrap, names.topic, records(100))
    await copied(kafka, names, 100, partitions=partitions)
    for process in (second, holder):
        process.signal(signal.SIGTERM)
        assert await process.ended() == 0


@pytest.mark.faults
async def test_a_record_that_kills_its_process_is_answered_at_the_third_try(
    embedded_kafka: Kafka, names: Names, tmp_path: Path
) -> None:
    kafka = embedded_kafka
    await prepared(kafka, names, 2)
    told = {
        "kafka": kafka.bootstrap,
        "topic": names.topic,
        "out": names.out,
        "slot": "a",
        "killers": ["v30"],
    }
    await produce(kafka.bootstrap, names.topic, records(60))
    said = []
    for _ in range(3):
        process = await EchoProcess(tmp_path, **told).start(until="")
        assert await process.ended() == -signal.SIGKILL
        said.append(process.said)
    process = await EchoProcess(tmp_path, **told).start()
    found = await copied(kafka, names, 59, partitions=2)
    process.signal(signal.SIGTERM)
    assert await process.ended() == 0
    assert "b'v30'" in said[2]
    assert "b'v30'" not in process.said
    assert await dead_letters(kafka, names) == [b"v30"]
    assert b"v30" not in found


async def test_a_stop_keeps_its_deadline_although_a_handler_hangs(
    embedded_kafka: Kafka, names: Names, tmp_path: Path
) -> None:
    kafka = embedded_kafka
    await prepared(kafka, names, 1)
    told = {"kafka": kafka.bootstrap, "topic": names.topic, "out": names.out, "hang": "v3", "stop_s": 1.0}
    await produce(kafka.bootstrap, names.topic, records(10))
    process = await EchoProcess(tmp_path, **told).start()
    await process.says("handles b'v3'")
    assert await settled(kafka, names, 3) == "f3"
    began = time.monotonic()
    process.signal(signal.SIGTERM)
    assert await process.ended(30) == 0
    assert time.monotonic() - began < 10
    assert await settled(kafka, names, 3) == "clean"


@pytest.mark.faults
async def test_a_process_that_hangs_is_ended_by_its_watchdog(
    embedded_kafka: Kafka, names: Names, tmp_path: Path
) -> None:
    kafka = embedded_kafka
    await prepared(kafka, names, 1)
    told = {"kafka": kafka.bootstrap, "topic": names.topic, "out": names.out, "hang": "v3", "watchdog_s": 2.0}
    await produce(kafka.bootstrap, names.topic, records(10))
    process = await EchoProcess(tmp_path, **told).start()
    assert await process.ended(30) == 1
    assert "hangs" in process.said
    # It counts as an unclean end: a record that hangs its process is found as one that kills it.
    assert await settled(kafka, names, 3) == "f3"


async def test_what_ends_an_agent_or_a_task_ends_the_process(
    embedded_kafka: Kafka, names: Names, tmp_path: Path
) -> None:
    kafka = embedded_kafka
    await prepared(kafka, names, 1)
    told = {"kafka": kafka.bootstrap, "topic": names.topic, "out": names.out, "stop_s": 1.0}
    await produce(kafka.bootstrap, names.topic, records(1))
    ends = [
        EchoProcess(tmp_path, **told, bug="v0"),
        EchoProcess(tmp_path, **told, task_ends=False),
        EchoProcess(tmp_path, **told, task_ends=True),
    ]
    for process in ends:
        await process.start(until="")
        assert await process.ended(40) not in (0, None), process.said


async def test_a_kafka_that_is_not_there_is_said_with_its_exit_code(tmp_path: Path) -> None:
    process = EchoProcess(tmp_path, kafka=f"127.0.0.1:{free_port()}", topic="local.x", out="out")
    began = time.monotonic()
    await process.start(until="")
    assert await process.ended(60) == 3
    assert "cannot be reached" in process.said
    assert time.monotonic() - began < 30


async def test_a_signal_during_the_start_is_heard(own_kafka: Kafka, names: Names, tmp_path: Path) -> None:
    # The topic is missing, so that the group never gives partitions and the start would take a minute.
    told = {"kafka": own_kafka.bootstrap, "topic": "local.missing", "out": names.out, "stop_s": 1.0}
    process = await EchoProcess(tmp_path, **told).start(until="")
    await asyncio.sleep(3.0)
    process.signal(signal.SIGTERM)
    assert await process.ended(20) == 0
