"""Processes beside the gateway: a cloud service that is 300 ms away, and the floor.

`python -m benchmarks.gateway_parts cloud PORT` answers every POST after 300 ms, network and model together.
`python -m benchmarks.gateway_parts echo KAFKA` copies topic `floor.in` to `floor.out`.
`python -m benchmarks.gateway_parts floor KAFKA PORT` is the least that can wait for an answer over Kafka: a
Starlette handler that writes a record and waits for its copy, with no checks, limits, joins or routing.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from typing import Any

import uvicorn
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

AWAY_S = 0.3
IN, OUT = "floor.in", "floor.out"
WAIT_S = 30.0


async def cloud(port: int) -> None:
    async def answer(request: Request) -> Response:
        await request.body()
        await asyncio.sleep(AWAY_S)
        return JSONResponse({"words": 3})

    await _served(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "HEAD", "POST"])]), port)


async def floor(kafka: str, port: int) -> None:
    waiting: dict[bytes, asyncio.Future[bytes]] = {}
    numbers = itertools.count()
    producer = await _producer(kafka)
    reader = await _reader(kafka, OUT, latest=True)

    async def follow() -> None:
        while True:
            for records in (await reader.getmany(timeout_ms=1000)).values():
                for record in records:
                    future = waiting.pop(record.key or b"", None)
                    if future is not None:
                        future.set_result(record.value or b"")

    async def route(request: Request) -> Response:
        raw = await request.body()
        key = b"%d" % next(numbers)
        waiting[key] = asyncio.get_running_loop().create_future()
        await producer.send(IN, raw, key)
        found = json.loads(await asyncio.wait_for(waiting[key], WAIT_S))
        return JSONResponse({"status": "ok", "output": found})

    following = asyncio.create_task(follow())
    await _served(Starlette(routes=[Route("/route", route, methods=["POST"])]), port)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def echo(kafka: str) -> None:
    producer, reader = await _producer(kafka), await _reader(kafka, IN, latest=True)
    print("echo is ready", flush=True)
    while True:
        for records in (await reader.getmany(timeout_ms=1000)).values():
            for record in records:
                await producer.send(OUT, record.value, record.key)


async def _producer(kafka: str) -> Any:
    producer: Any = AIOKafkaProducer(
        bootstrap_servers=kafka, acks="all", enable_idempotence=True, linger_ms=0
    )
    await producer.start()
    return producer


async def _reader(kafka: str, topic: str, *, latest: bool) -> Any:
    start = "latest" if latest else "earliest"
    reader: Any = AIOKafkaConsumer(
        topic, bootstrap_servers=kafka, auto_offset_reset=start, enable_auto_commit=False
    )
    await reader.start()
    await reader.getmany(timeout_ms=100)
    return reader


async def _served(app: Starlette, port: int) -> None:
    config = uvicorn.Config(app, port=port, log_level="warning", access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print("it is ready", flush=True)
    await serving


def main() -> None:
    what, *more = sys.argv[1:]
    if what == "cloud":
        uvloop.run(cloud(int(more[0])))
    elif what == "floor":
        uvloop.run(floor(more[0], int(more[1])))
    else:
        uvloop.run(echo(more[0]))


if __name__ == "__main__":
    main()
