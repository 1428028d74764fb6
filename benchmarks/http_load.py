"""Load over HTTP: requests at a steady rate on connections that are kept, each timed from when it was due."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

ANSWER_S = 60.0


class Reply(NamedTuple):
    """What one request met: `ms` from when it was due, `status` 0 where the connection broke; `wait_s` what
    Retry-After said."""

    number: int
    ms: float
    status: int
    body: bytes
    wait_s: float | None = None


class Caller(NamedTuple):
    """Where to: `path` and the body of request NUMBER, with `headers` of every one."""

    host: str
    port: int
    path: Callable[[int], str]
    body: Callable[[int], dict[str, Any]]
    headers: Callable[[int], str] = lambda _number: ""


async def paced(caller: Caller, rate: float, count: int, first: int = 0) -> list[Reply]:
    """Send `count` requests at `rate` a second, whatever comes back (open loop); the replies by number."""
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    began = time.perf_counter()
    tasks = []
    for place in range(count):
        due = began + place / rate
        pause = due - time.perf_counter()
        if pause > 0:
            await asyncio.sleep(pause)
        tasks.append(asyncio.create_task(_ask(caller, idle, first + place, due)))
    replies = await asyncio.gather(*tasks)
    for _, writer in idle:
        writer.close()
    return list(replies)


async def at_once(caller: Caller, count: int, first: int = 0) -> list[Reply]:
    """Send `count` requests together, each on a connection of its own."""
    now = time.perf_counter()
    replies = await asyncio.gather(*(_ask(caller, [], first + place, now) for place in range(count)))
    return list(replies)


async def _ask(
    caller: Caller,
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]],
    number: int,
    due: float,
) -> Reply:
    raw = json.dumps(caller.body(number)).encode()
    head = (
        f"POST {caller.path(number)} HTTP/1.1\r\nHost: {caller.host}:{caller.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n{caller.headers(number)}\r\n"
    ).encode()
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await _connection(caller, idle)
            writer.write(head + raw)
            status, found, body = await _answer(reader)
    except (OSError, EOFError, TimeoutError, ValueError):
        return Reply(number, (time.perf_counter() - due) * 1000.0, 0, b"")
    took = (time.perf_counter() - due) * 1000.0
    if found.get("connection", "").lower() == "close":
        writer.close()
    else:
        idle.append((reader, writer))
    wait = found.get("retry-after", "")
    return Reply(number, took, status, body, float(wait) if wait.isdigit() else None)


async def _connection(
    caller: Caller, idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """One that is open: what the server has closed for being idle is not used again."""
    while idle:
        reader, writer = idle.pop(0)
        if not reader.at_eof() and not writer.is_closing():
            return reader, writer
        writer.close()
    return await asyncio.open_connection(caller.host, caller.port)


async def _answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:] if line)
    found = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(found.get("content-length", "0")))
    return int(lines[0].split(" ", 2)[1]), found, body
