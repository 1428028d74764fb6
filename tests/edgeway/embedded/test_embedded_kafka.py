"""The real broker: records, restarts, faults, orphans, conflicts."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from edgeway.embedded import BrokerSettings, EmbeddedKafka, EmbeddedKafkaError

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 60.0


async def create(bootstrap: str, topic: str, replicas: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 1, replicas)])
    finally:
        await admin.close()


async def produce(bootstrap: str, topic: str, values: list[bytes], stamp: int | None = None) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", max_request_size=4 * 1024 * 1024)
    await producer.start()
    try:
        for value in values:
            await asyncio.wait_for(producer.send_and_wait(topic, value, timestamp_ms=stamp), LIMIT)
    finally:
        await producer.stop()


async def consume(bootstrap: str, topic: str, count: int) -> list[tuple[bytes | None, int, int]]:
    """(value, timestamp in ms, timestamp type) of the first `count` records."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        found = []
        while len(found) < count:
            record = await asyncio.wait_for(consumer.getone(), LIMIT)
            found.append((record.value, record.timestamp, record.timestamp_type))
        return found
    finally:
        await consumer.stop()


def values(records: list[tuple[bytes | None, int, int]]) -> list[bytes | None]:
    return [value for value, _, _ in records]


async def test_records_go_in_and_out_with_the_brokers_time() -> None:
    async with EmbeddedKafka() as kafka:
        data = kafka.data
        await create(kafka.bootstrap, "t")
        before = int(time.time() * 1000)
        await produce(kafka.bootstrap, "t", [b"a", b"x" * 2_000_000], stamp=1)
        records = await consume(kafka.bootstrap, "t", 2)
        assert values(records) == [b"a", b"x" * 2_000_000]
        assert all(stamp >= before - 1000 and kind == 1 for _, stamp, kind in records)
        assert "Kafka Server started" in (data / "kafka-1.log").read_text()
    assert not data.exists()


async def test_a_missing_topic_is_not_created() -> None:
    async with EmbeddedKafka() as kafka:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, request_timeout_ms=2000)
        await producer.start()
        with pytest.raises(KafkaError):
            await asyncio.wait_for(producer.send_and_wait("nowhere", b"a"), LIMIT)
        await producer.stop()
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        await admin.start()
        try:
            assert "nowhere" not in await admin.list_topics()
        finally:
            await admin.close()


async def test_restart_and_second_start_keep_the_records(tmp_path: Path) -> None:
    settings = BrokerSettings(data=tmp_path / "data")
    async with EmbeddedKafka(settings) as kafka:
        address = kafka.bootstrap
        await create(address, "t")
        await produce(address, "t", [b"1"])
        await kafka.kill(1)
        assert kafka.pids == {}
        assert "exit code -9" in kafka.ended[1]
        await kafka.restart(1)
        assert kafka.bootstrap == address
        await produce(address, "t", [b"2"])
        await kafka.restart(1)
        assert values(await consume(address, "t", 2)) == [b"1", b"2"]
    async with EmbeddedKafka(settings) as kafka:
        assert values(await consume(kafka.bootstrap, "t", 2)) == [b"1", b"2"]
    assert (tmp_path / "data" / "cluster.json").exists()


async def test_three_brokers_go_on_without_one() -> None:
    async with EmbeddedKafka(BrokerSettings(brokers=3)) as kafka:
        assert sorted(kafka.pids) == [1, 2, 3]
        await create(kafka.bootstrap, "t", replicas=3)
        await produce(kafka.bootstrap, "t", [b"1"])
        await kafka.kill(2)
        await produce(kafka.bootstrap, "t", [b"2"])
        assert values(await consume(kafka.bootstrap, "t", 2)) == [b"1", b"2"]
        await kafka.restart(2)
        assert sorted(kafka.pids) == [1, 2, 3]


async def test_a_taken_port_is_an_error_that_names_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedKafkaError, match=f"port {port}"):
            await EmbeddedKafka(BrokerSettings(port=port)).start()


async def test_a_failed_start_shows_the_log_and_leaves_nothing(tmp_path: Path) -> None:
    kafka = EmbeddedKafka(BrokerSettings(data=tmp_path / "d", properties={"num.io.threads": "many"}))
    with pytest.raises(EmbeddedKafkaError, match=r"(?s)kafka-1\.log.*num\.io\.threads"):
        await kafka.start()
    assert kafka.pids == {}
    async with EmbeddedKafka(BrokerSettings(data=tmp_path / "d")) as again:
        assert sorted(again.pids) == [1]


async def test_a_cancelled_start_leaves_no_broker(tmp_path: Path) -> None:
    kafka = EmbeddedKafka(BrokerSettings(data=tmp_path / "d"))
    start = asyncio.create_task(kafka.start())
    while not kafka.pids:
        await asyncio.sleep(0.02)
    (pid,) = kafka.pids.values()
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not _running(pid)


def _running(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def _broker_command(data: Path) -> "subprocess.Popen[str]":
    code = f"from edgeway.embedded.command import broker; raise SystemExit(broker({str(data)!r}, None))"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def _brokers_of(data: Path) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if str(data).encode() in words and b"kafka.Kafka" in words:
            found.append(int(folder.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="parent-death signal and /proc are Linux's")
def test_the_broker_dies_with_a_killed_parent_and_the_folder_is_free(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with _broker_command(data) as command:
        assert command.stdout is not None
        assert command.stdout.readline().startswith("127.0.0.1:")
        (pid,) = _brokers_of(data)
        command.kill()
        command.communicate(timeout=10)
    deadline = time.monotonic() + 5
    while _running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _running(pid)
    kafka = EmbeddedKafka(BrokerSettings(data=data))
    kafka.start_sync()
    kafka.stop_sync()


def test_the_command_ends_cleanly_and_a_second_one_is_refused_meanwhile(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with _broker_command(data) as command:
        assert command.stdout is not None
        assert command.stdout.readline().startswith("127.0.0.1:")
        with _broker_command(data) as second:
            _, errors = second.communicate(timeout=LIMIT)
        assert second.returncode == 2
        assert f"{data} is in use by another Edgeway process" in errors
        command.send_signal(signal.SIGTERM)
        _, said = command.communicate(timeout=LIMIT)
    assert command.returncode == 0
    assert str(data) in said
    assert _brokers_of(data) == []
    assert "shut down" in (data / "kafka-1.log").read_text()


def test_the_command_reports_a_broker_that_ended_by_itself(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with _broker_command(data) as command:
        assert command.stdout is not None
        assert command.stdout.readline()
        os.kill(_brokers_of(data)[0], signal.SIGKILL)
        _, errors = command.communicate(timeout=LIMIT)
    assert command.returncode == 1
    assert "broker 1 ended by itself: exit code -9" in errors
