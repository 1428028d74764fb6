"""The gateway on a real port: callers who leave, who are too many, and a stop while they wait."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from edgeway.gateway import reading
from schemas.messages import Result
from streams.settings import Settings
from tests.edgeway.gateway.test_route import never
from tests.helpers.gateway import Served, gateway


async def until(true: Callable[[], bool], within_s: float = 5.0) -> None:
    """Wait for it."""
    async with asyncio.timeout(within_s):
        while not true():
            await asyncio.sleep(0.005)


def answer_all(served: Served) -> None:
    for sent in served.exchange.sent:
        served.exchange.reply(Result(id=sent.id or "", tenant=sent.tenant, status="ok", output=1))


async def test_a_caller_who_leaves_frees_the_place() -> None:
    async with gateway(never, socket=True) as served:
        waiting = asyncio.create_task(served.route({"task": "summarize", "tenant": "acme", "id": "r"}))
        await until(lambda: bool(served.exchange.sent))
        assert served.gateway.lobby.open == 1
        waiting.cancel()
        await until(lambda: served.gateway.lobby.open == 0)
        assert served.exchange.cancelled == [], "another call with its id may still wait"
        assert served.exchange.is_open("\x1facme\x1fr")
        served.exchange.reply(Result(id="r", tenant="acme", status="ok", output=1))
        assert (await served.client.get("/requests/r?tenant=acme")).json()["output"] == 1


async def test_a_reader_of_events_who_leaves_frees_the_place() -> None:
    async with gateway(never, socket=True) as served:
        body, accept = {"task": "summarize", "id": "r"}, {"Accept": "text/event-stream"}
        async with served.client.stream("POST", "/route", json=body, headers=accept) as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == ": edgeway"
            while not (await anext(lines)).startswith("event: accepted"):
                continue
            assert served.gateway.lobby.open == 1
        await until(lambda: served.gateway.lobby.open == 0)


async def test_events_come_as_they_happen() -> None:
    async with gateway(never, socket=True) as served:
        body, accept = {"task": "summarize", "id": "r"}, {"Accept": "text/event-stream"}
        async with served.client.stream("POST", "/route", json=body, headers=accept) as stream:
            lines = stream.aiter_lines()
            for kind in ("accepted", "planned", "partial"):
                if kind != "accepted":
                    served.exchange.tell("r", kind, {})
                async with asyncio.timeout(2.0):
                    while await anext(lines) != f"event: {kind}":
                        continue
            served.exchange.reply(Result(id="r", status="ok"))
            rest = [line async for line in lines]
            assert "event: result" in rest


async def test_more_than_may_be_open_are_shed_and_the_others_answered() -> None:
    async with gateway(never, socket=True, settings=Settings(gateway_open=50)) as served:
        calls = [asyncio.create_task(served.route({"task": "summarize", "n": n})) for n in range(120)]
        await until(lambda: sum(call.done() for call in calls) == 70)
        shed = [call.result() for call in calls if call.done()]
        assert {answer.status_code for answer in shed} == {503}
        assert {answer.headers["retry-after"] for answer in shed} == {"1"}
        assert served.gateway.lobby.open == 50
        answer_all(served)
        done = await asyncio.gather(*calls)
        assert sum(answer.status_code == 200 for answer in done) == 50
        assert served.gateway.lobby.open == 0
        assert (
            await served.route({"task": "summarize"}, headers={"Prefer": "respond-async"})
        ).status_code == 202


async def test_requests_left_open_make_room_once_they_are_answered() -> None:
    async with gateway(never, socket=True, settings=Settings(gateway_open=3)) as served:
        later = {"Prefer": "respond-async"}
        for number in range(3):
            sent = await served.route({"task": "summarize", "id": f"r{number}"}, headers=later)
            assert sent.status_code == 202
        assert (await served.route({"task": "summarize"}, headers=later)).status_code == 503
        answer_all(served)
        await asyncio.sleep(0.12)
        assert (await served.route({"task": "summarize"}, headers=later)).status_code == 202


async def test_bodies_have_a_bound_together() -> None:
    settings = Settings(gateway_bytes=1024 * 1024)
    async with gateway(socket=True, settings=settings) as served:

        async def slow() -> Any:
            yield b'{"task": "a", "text": "' + b"x" * 900_000
            await gate.wait()
            yield b'"}'

        gate = asyncio.Event()
        first = asyncio.create_task(served.client.post("/route", content=slow()))
        await until(lambda: served.gateway.lobby.bytes > 800_000)
        full = await served.route({"task": "a", "text": "x" * 300_000})
        assert (full.status_code, full.headers["retry-after"]) == (503, "1")
        gate.set()
        assert (await first).status_code == 200
        assert served.gateway.lobby.bytes == 0
        assert (await served.route({"task": "a", "text": "x" * 300_000})).status_code == 200


async def test_a_body_that_never_ends_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BODY_S", 0.2)
    async with gateway(socket=True) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"POST /route HTTP/1.1\r\nHost: g\r\nContent-Length: 100\r\n\r\n{")
        async with asyncio.timeout(5):
            assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()
        await until(lambda: served.gateway.lobby.open == 0)


async def test_a_stop_answers_those_who_wait_and_lets_nobody_in() -> None:
    async with gateway(never, socket=True) as served:
        waiting = [asyncio.create_task(served.route({"task": "summarize", "n": n})) for n in range(5)]
        await until(lambda: len(served.exchange.sent) == 5)
        stopping = asyncio.create_task(served.gateway.drain(5.0))
        await asyncio.sleep(0.05)
        refused = await served.route({"task": "summarize"})
        assert (refused.status_code, refused.headers["connection"]) == (503, "close")
        assert (await served.client.get("/healthz")).status_code == 200
        assert not stopping.done()
        answer_all(served)
        done = await asyncio.gather(*waiting)
        assert [(answer.status_code, answer.headers["connection"]) for answer in done] == [(200, "close")] * 5
        await asyncio.wait_for(stopping, 1.0)


async def test_a_stop_waits_no_longer_than_it_may() -> None:
    async with gateway(never, socket=True) as served:
        waiting = asyncio.create_task(served.route({"task": "summarize"}))
        await until(lambda: bool(served.exchange.sent))
        began = time.monotonic()
        await served.gateway.drain(0.2)
        assert 0.15 < time.monotonic() - began < 2.0
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_what_is_no_http_is_told_so_as_a_problem() -> None:
    async with gateway(socket=True) as served:
        for head in ("GET /requests/漢 HTTP/1.1", "nonsense", "POST /route HTTP/1.1\r\nContent-Length: -1"):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(f"{head}\r\n\r\n".encode())
            said, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
            assert said.startswith(b"HTTP/1.1 400 "), head
            assert b"application/problem+json" in said
            assert json.loads(body)["code"] == "malformed"
            writer.close()


async def test_connections_beyond_the_bound_are_cut() -> None:
    async with gateway(socket=True, connections=2) as served:
        kept = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(httpx.TransportError):
            await served.route({"task": "summarize"})
        for _, writer in kept:
            writer.close()


async def test_slots_are_free_after_a_storm_of_callers_who_leave() -> None:
    async with gateway(never, socket=True) as served:
        for _ in range(3):
            calls = [asyncio.create_task(served.route({"task": "summarize"})) for _ in range(40)]
            await until(lambda: served.gateway.lobby.open == 40)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            await until(lambda: served.gateway.lobby.open == 0)
        assert served.gateway.lobby.bytes == 0
