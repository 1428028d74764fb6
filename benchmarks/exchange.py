"""What the exchange costs: CPU per request sent and answered, memory of those who wait and of what is kept.

    python -m benchmarks.exchange [--requests 3000] [--rate 300] [--no-uvloop]

A broker of its own; another process writes an answer to each request. CPU is this process's alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from edgeway.embedded import BrokerSettings, EmbeddedKafka
from edgeway.exchange import KafkaExchange
from edgeway.exchange.answers import Answers, Wanted
from edgeway.exchange.expected import Expected
from edgeway.exchange.ports import Sent
from edgeway.exchange.remembered import Remembered
from schemas import codec
from schemas.messages import Request, Result, Timings
from schemas.topics import partition_for
from streams.router.admission import admit
from streams.settings import Settings
from tests.helpers.kafka import create_topics

PARTITIONS = 6
TEXT = "What countries are you currently in? " * 4


def result_of(name: str, digest: str | None) -> Result:
    return Result(
        id=name,
        status="ok",
        output={"label": "country_support", "probabilities": [0.1] * 20},
        confidence=0.99,
        digest=digest,
        timings={"intent": Timings(queue_ms=1.0, service_ms=2.0, total_ms=5.0)},
        sides={"intent": "local"},
        task="intent",
        rules="0123456789ab",
    )


async def _answer(bootstrap: str) -> None:
    places = [TopicPartition("requests", number) for number in range(PARTITIONS)]
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=0) as producer:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign(places)
        try:
            while True:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    for record in records:
                        found = admit(record)
                        raw = codec.encode(result_of(found.id, found.digest))
                        partition = partition_for(record.key, PARTITIONS)
                        await producer.send("results", raw, record.key, partition=partition)
        finally:
            await consumer.stop()


def _answer_until(bootstrap: str, stop: Event) -> None:
    async def run() -> None:
        task = asyncio.create_task(_answer(bootstrap))
        while not stop.is_set() and not task.done():
            await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    uvloop.run(run())


@contextmanager
def answerer(bootstrap: str) -> Iterator[None]:
    spawn = multiprocessing.get_context("spawn")
    stop = spawn.Event()
    child = spawn.Process(target=_answer_until, args=(bootstrap, stop))
    child.start()
    try:
        yield
    finally:
        stop.set()
        child.join(10)
        child.kill()


async def _ask(exchange: KafkaExchange, count: int, rate: float, times: list[float]) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()

    async def one() -> None:
        began = loop.time()
        sent = await exchange.send(Request(task="intent", inputs={"text": TEXT}))
        await exchange.answer(sent, 30.0)
        times.append(loop.time() - began)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            await asyncio.sleep(max(0.0, start + number / rate - loop.time()))
            group.create_task(one())


async def through_kafka(bootstrap: str, count: int, rate: float) -> None:
    await create_topics(
        bootstrap, {"requests": PARTITIONS, "results": PARTITIONS, "joins": PARTITIONS, "cancellations": 1}
    )
    with answerer(bootstrap):
        for remember_s in (0.0, 600.0):
            source = "edgeway/benchmark"
            async with KafkaExchange(
                Settings(kafka=bootstrap), source=source, remember_s=remember_s
            ) as exchange:
                await _ask(exchange, 200, rate, [])
                for _ in range(3):
                    times: list[float] = []
                    cpu, wall = time.process_time(), time.monotonic()
                    await _ask(exchange, count, rate, times)
                    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
                    times.sort()
                    print(
                        f"remember {remember_s:.0f} s: {count} requests in {wall:.1f} s, "
                        f"{1e6 * cpu / count:.0f} us of CPU each; there and back p50 "
                        f"{1e3 * times[count // 2]:.1f} ms, p99 {1e3 * times[count * 99 // 100]:.1f} ms"
                    )


@contextmanager
def _measured(said: str, count: int) -> Iterator[None]:
    """Print what was allocated in the block and is there at its end."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        gc.collect()
        took = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    print(f"{count} {said}: {took / 2**20:.1f} MiB, {took / count:.0f} bytes each")


async def waiters(count: int) -> None:
    answers = Answers(Remembered(10**9), Expected(), count, all_of_them=True)
    sent = [Sent(f"request-{number}", f"request-{number}", "0" * 32) for number in range(count)]
    with _measured("waiters (their keys, entries and futures)", count):
        futures = [answers.wait(Wanted(one)) for one in sent]
    answers.close()
    assert all(future.done() for future in futures)


async def waiting_callers(bootstrap: str, count: int) -> None:
    async with KafkaExchange(Settings(kafka=bootstrap), source="edgeway/benchmark") as exchange:
        with _measured("callers that wait (each a task with a timer as well)", count):
            tasks = [
                asyncio.create_task(exchange.answer(f"nobody-{number}", 10.0)) for number in range(count)
            ]
            await asyncio.sleep(1.0)
        cpu = time.process_time()
        await asyncio.sleep(2.0)
        print(f"meanwhile {(time.process_time() - cpu) / 2:.2%} of a core")
    await asyncio.gather(*tasks, return_exceptions=True)


def remembered(count: int) -> None:
    raws = [codec.encode(result_of(f"request-{number}", "0" * 32)) for number in range(count)]
    memory = Remembered(10**9)
    with _measured(f"answers of {len(raws[0])} bytes remembered", count):
        for number, raw in enumerate(raws):
            memory.add(f"request-{number}".encode(), bytes(bytearray(raw)), number)
    print(f"counted as {memory.bytes / 2**20:.1f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--rate", type=float, default=300.0)
    parser.add_argument("--uvloop", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    remembered(100_000)
    asyncio.run(waiters(10_000))
    run = uvloop.run if given.uvloop else asyncio.run
    broker = EmbeddedKafka(BrokerSettings())
    broker.start_sync()
    try:
        run(through_kafka(broker.bootstrap, given.requests, given.rate))
        run(waiting_callers(broker.bootstrap, 10_000))
    finally:
        broker.stop_sync()


if __name__ == "__main__":
    main()
