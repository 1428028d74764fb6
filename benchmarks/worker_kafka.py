"""One worker process on an embedded Kafka: subtasks in, partials out, nothing else of Edgeway."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer

from benchmarks.load import Load, Sent
from benchmarks.processes import Failed, Role
from benchmarks.worker_app import CAPABILITY
from edgeway.embedded import EmbeddedKafka
from edgeway.rules_of import rules_of
from edgeway.topics_admin import apply_topics
from schemas import codec, headers, topics
from schemas.messages import Partial, Subtask
from schemas.topics import TopicSpec, topics_for
from streams.settings import Settings

PARTITIONS = 6
WORK = topics.capability_topic("local", CAPABILITY)
STEP = "/classify/local/0"
WAIT_S = 120.0
BACKLOG = 30_000
CHUNK = 5_000
DEADLINE_MS = 3_600_000


@dataclass(slots=True)
class Bench:
    """What a measurement works with."""

    kafka: str
    folder: Path
    load: Load
    rules: Path

    def worker(self, name: str, environment: dict[str, str] | None = None, *flags: str) -> Role:
        """A worker process, not started."""
        app = str(Path(__file__).with_name("worker_app.py"))
        command = ["-m", "edgeway", "worker", "--kafka", self.kafka, "--rules", str(self.rules), "--app", app]
        return Role(name, [*command, *flags], self.folder, environment)


@contextlib.asynccontextmanager
async def bench(folder: Path, more: Sequence[TopicSpec] = ()) -> AsyncIterator[Bench]:
    """A broker with the topics."""
    rules = folder / "rules.json"
    tasks = {"bench": {"capability": CAPABILITY, "side": "local"}}
    rules.write_text(json.dumps({"builtin": False, "tasks": tasks}), encoding="utf-8")
    async with EmbeddedKafka() as kafka:
        settings = Settings(kafka=kafka.bootstrap, rules=rules, partitions=PARTITIONS)
        await apply_topics(settings, [*topics_for(rules_of(settings), PARTITIONS), *more])
        load = Load(kafka.bootstrap, PARTITIONS)
        await load.start()
        try:
            yield Bench(kafka.bootstrap, folder, load, rules)
        finally:
            await load.stop()


class Subtasks:
    """Subtasks of one form: ids of one length, inputs out of a pool, encoded once and patched."""

    def __init__(self, inputs: Sequence[dict[str, Any]]) -> None:
        name = self.name("x" * 8, 0)
        until = int(time.time() * 1000) + DEADLINE_MS
        forms = [
            codec.encode(Subtask(id=name + STEP, capability=CAPABILITY, deadline=until, inputs=each))
            for each in inputs
        ]
        self._parts = [value.split((name + STEP).encode(), 1) for value in forms]

    @staticmethod
    def name(prefix: str, number: int) -> str:
        return f"{prefix}-{number:08d}"

    def make(self, prefix: str, first: int, count: int) -> list[Sent]:
        """`prefix` has 8 characters."""
        made = []
        for number in range(first, first + count):
            key = (self.name(prefix, number) + STEP).encode()
            head, tail = self._parts[number % len(self._parts)]
            made.append(Sent(key, head + key + tail, headers.build("subtask", key.decode(), "edgeway/bench")))
        return made


async def stream(
    at: Bench,
    role: Role,
    subtasks: Subtasks,
    prefix: str,
    count: int,
    progress: Callable[[int], None],
    work: str = WORK,
    results: str = topics.JOINS,
) -> float:
    """Write `count` subtasks, BACKLOG ahead of the answers at most; seconds until the last answer.

    Raises:
        Failed: the worker ended, or the answers stay away.
    """
    before = sum((await at.load.ends(results)).values())
    began = time.monotonic()
    sent = done = 0
    moved = began
    while done < count:
        role.check()
        if sent < count and sent - done < BACKLOG:
            chunk = subtasks.make(prefix, sent, min(CHUNK, count - sent))
            await at.load.burst(work, chunk)
            sent += len(chunk)
        else:
            await asyncio.sleep(0.02)
        now = sum((await at.load.ends(results)).values()) - before
        moved = time.monotonic() if now > done else moved
        done = now
        progress(done)
        if time.monotonic() - moved > WAIT_S:
            raise Failed(f"{done} of {count} answers came, and none for {WAIT_S:.0f} s")
    return time.monotonic() - began


async def paced(
    at: Bench, role: Role, subtasks: Subtasks, prefix: str, rate: float, seconds: float
) -> list[float]:
    """Latencies in ms, append to append, of subtasks at a steady rate.

    Raises:
        Failed: an answer is missing, doubled or an error.
    """
    sent = subtasks.make(prefix, 0, int(rate * seconds))
    asked_from, since = await at.load.ends(WORK), await at.load.ends(topics.JOINS)
    await at.load.pace(WORK, sent, rate)
    until = time.monotonic() + WAIT_S
    while sum((await at.load.ends(topics.JOINS)).values()) - sum(since.values()) < len(sent):
        role.check()
        if time.monotonic() > until:
            raise Failed(f"{len(sent)} answers did not come within {WAIT_S:.0f} s")
        await asyncio.sleep(0.05)
    asked = {record.key: record.timestamp for record in await at.load.read(WORK, asked_from)}
    answered: dict[bytes, int] = {}
    for record in await at.load.read(topics.JOINS, since):
        partial = codec.decode(record.value, Partial)
        name = partial.subtask.encode()
        if partial.error is not None or name in answered:
            raise Failed(f"{partial.subtask} failed or was answered twice: {partial.error}")
        answered[name] = record.timestamp
    return [float(answered[each.key] - asked[each.key]) for each in sent]


async def verified(at: Bench, prefix: str, count: int) -> tuple[int, int, int]:
    """Of `count` subtasks: how many were not answered, answered again, or with an error."""
    seen = bytearray(count)
    again = errors = 0
    consumer: Any = AIOKafkaConsumer(
        bootstrap_servers=at.kafka, enable_auto_commit=False, max_partition_fetch_bytes=4 * 1024 * 1024
    )
    await consumer.start()
    try:
        ends = await at.load.ends(topics.JOINS)
        consumer.assign(list(ends))
        await consumer.seek_to_beginning()
        left = dict(ends)
        while left:
            for place, records in (await consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    partial = codec.decode(record.value, Partial)
                    name = partial.subtask
                    if not name.startswith(prefix):
                        continue
                    number = int(name[len(prefix) + 1 : -len(STEP)])
                    again += seen[number]
                    seen[number] = 1
                    errors += partial.error is not None
                if records[-1].offset + 1 >= left.get(place, 0):
                    left.pop(place, None)
            for place in list(left):
                if left[place] == 0:
                    del left[place]
    finally:
        await consumer.stop()
    return count - sum(seen), again, errors
