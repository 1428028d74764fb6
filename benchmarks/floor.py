"""The floor: three bare aiokafka loops that move and join the same bytes as the three roles, without logic.

`python -m benchmarks.floor router|worker|aggregator --kafka HOST:PORT --templates FILE`. Tuned as Edgeway
is: no deserializers, batches made per partition, idempotent `acks=all`, linger 0, uvloop, background commits.
What they leave out is what Edgeway is for: nothing is decoded, decided, checked, retried, timed or explained.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import numpy as np
import onnxruntime as ort
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.shapes import Templates

MODEL = Path(__file__).resolve().parents[1] / "examples/demo/models/crayfish/1/model.onnx"
REQUESTS, WORK, JOINS, RESULTS = "floor-requests", "floor-work", "floor-joins", "floor-results"
TOPICS = (REQUESTS, WORK, JOINS, RESULTS)
PARTITIONS = 6
PIXELS = 784 * 4
STEP = b"/classify/local/0"
MOST_IN_HAND = 12_000
COMMIT_S = 0.2


class Out(NamedTuple):
    """One record to write."""

    place: TopicPartition
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


class Round:
    """What one poll brought: its positions may be committed once `waiting` records are acknowledged."""

    __slots__ = ("positions", "waiting")

    def __init__(self, positions: dict[TopicPartition, int], waiting: int) -> None:
        self.positions = positions
        self.waiting = waiting


class Writer:
    """Batches per partition, formed behind the request in flight."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self._queues: dict[TopicPartition, deque[tuple[Out, Round]]] = {}
        self._sending: set[TopicPartition] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.pending = 0

    def put(self, outs: Sequence[Out], of: Round) -> None:
        self.pending += len(outs)
        for out in outs:
            place = out.place
            queue = self._queues.get(place)
            if queue is None:
                queue = self._queues[place] = deque()
            queue.append((out, of))
            if place not in self._sending:
                self._sending.add(place)
                task = asyncio.create_task(self._drain(place, queue))
                self._tasks.add(task)
                task.add_done_callback(self._ended)

    async def _drain(self, place: TopicPartition, queue: deque[tuple[Out, Round]]) -> None:
        while queue:
            batch = self._producer.create_batch()
            taken: list[Round] = []
            while queue:
                out, of = queue[0]
                if batch.append(key=out.key, value=out.value, timestamp=None, headers=out.headers) is None:
                    break
                taken.append(of)
                queue.popleft()
            await (await self._producer.send_batch(batch, place.topic, partition=place.partition))
            for of in taken:
                of.waiting -= 1
            self.pending -= len(taken)
        self._sending.discard(place)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.result()


Handle = Callable[[TopicPartition, Sequence[Any]], list[Out]]


def _places(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def router(templates: Templates) -> Handle:
    """A request becomes a record on joins and one for the worker, with its image."""
    joins, work = _places(JOINS), _places(WORK)
    plan, subtask = templates.plan, templates.subtask
    at, to = templates.request_pixels, templates.subtask_pixels
    head, tail = subtask.value[:to], subtask.value[to + PIXELS :]

    def handle(_place: TopicPartition, records: Sequence[Any]) -> list[Out]:
        outs: list[Out] = []
        for record in records:
            key = record.key
            step = key + STEP
            value = head + record.value[at : at + PIXELS] + tail
            outs.append(Out(joins[crc32(key) % PARTITIONS], key, plan.value, plan.headers))
            outs.append(Out(work[crc32(step) % PARTITIONS], step, value, subtask.headers))
        return outs

    return handle


def worker(templates: Templates) -> Handle:
    """The images of a poll go through the model together."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
    joins = _places(JOINS)
    at, partial = templates.subtask_pixels, templates.partial
    head = partial.value[:-40]

    def handle(_place: TopicPartition, records: Sequence[Any]) -> list[Out]:
        images = b"".join([record.value[at : at + PIXELS] for record in records])
        scores = session.run(None, {"input": np.frombuffer(images, "<f4").reshape(-1, 1, 784)})[0]
        rows = scores.reshape(len(records), -1)
        outs: list[Out] = []
        for record, row in zip(records, rows, strict=True):
            key = record.key[: -len(STEP)]
            value = head + row.tobytes()
            outs.append(Out(joins[crc32(key) % PARTITIONS], key, value, partial.headers))
        return outs

    return handle


def aggregator(templates: Templates) -> Handle:
    """The second record of a key is answered."""
    results = _places(RESULTS)
    value, headers = templates.result.value, templates.result.headers
    opened: set[bytes] = set()

    def handle(place: TopicPartition, records: Sequence[Any]) -> list[Out]:
        outs: list[Out] = []
        for record in records:
            key = record.key
            if key in opened:
                opened.remove(key)
                outs.append(Out(results[place.partition], key, value, headers))
            else:
                opened.add(key)
        return outs

    return handle


ROLES: dict[str, tuple[str, Callable[[Templates], Handle]]] = {
    "router": (REQUESTS, router),
    "worker": (WORK, worker),
    "aggregator": (JOINS, aggregator),
}


async def loop(consumer: Any, writer: Writer, rounds: deque[Round], handle: Handle) -> None:
    """Read, handle, write; for ever."""
    while True:
        found = await consumer.getmany(timeout_ms=200, max_records=500)
        for place, records in found.items():
            outs = handle(place, records)
            of = Round({place: records[-1].offset + 1}, len(outs))
            writer.put(outs, of)
            rounds.append(of)
        while writer.pending > MOST_IN_HAND:
            await asyncio.sleep(0.001)


async def commit(consumer: Any, rounds: deque[Round]) -> None:
    """Commit what is acknowledged; for ever."""
    while True:
        await asyncio.sleep(COMMIT_S)
        positions: dict[TopicPartition, int] = {}
        while rounds and rounds[0].waiting == 0:
            positions.update(rounds.popleft().positions)
        if positions:
            await consumer.commit(positions)


async def run(role: str, kafka: str, templates: Templates) -> None:
    """Run one loop until SIGTERM."""
    topic, make = ROLES[role]
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=kafka,
        group_id=f"floor.{role}",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        fetch_max_wait_ms=500,
        max_partition_fetch_bytes=4 * 1024 * 1024,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=kafka,
        acks="all",
        enable_idempotence=True,
        linger_ms=0,
        max_batch_size=512 * 1024,
        max_request_size=3 * 1024 * 1024,
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    rounds: deque[Round] = deque()
    await producer.start()
    await consumer.start()
    while not consumer.assignment():
        await asyncio.sleep(0.05)
    print(f"{role} is ready", flush=True)
    tasks = [
        asyncio.create_task(loop(consumer, Writer(producer), rounds, make(templates))),
        asyncio.create_task(commit(consumer, rounds)),
    ]
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if task.done():
            task.result()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await consumer.stop()
    await producer.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="One bare loop of the floor.")
    parser.add_argument("role", choices=sorted(ROLES))
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--templates", required=True, type=Path)
    given = parser.parse_args()
    templates = msgspec.msgpack.decode(given.templates.read_bytes(), type=Templates)
    uvloop.run(run(given.role, given.kafka, templates))


if __name__ == "__main__":
    main()
