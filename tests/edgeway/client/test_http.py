"""What is HTTP's own: tokens, refusals, connections that break, gateways that come back."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from edgeway.client import GatewayRefused, NotSent, Unauthorized, UnknownRequest
from edgeway.client.over_http import WAIT_S
from schemas.messages import Request, Result
from tests.helpers.clients import FakeClock, served, to_port
from tests.helpers.exchange import MemoryExchange, echo
from tests.helpers.proxy import SlowProxy
from tests.helpers.redis import free_port

Respond = Callable[[int, bytes], bytes | None]


@asynccontextmanager
async def scripted(respond: Respond, port: int = 0) -> AsyncIterator[int]:
    """A server that answers its n-th request with bytes, or by closing the connection on None."""
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        head = await reader.readuntil(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        body = await reader.readexactly(int(length[0].split(b":")[1])) if length else b""
        count += 1
        raw = respond(count, head + body)
        if raw is not None:
            writer.write(raw)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


def response(status: int, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answer(output: Any) -> bytes:
    body = msgspec.json.encode(Result(id="a", status="ok", output=output))
    return response(200, body, "content-type: application/json")


async def test_the_same_request_is_sent_again_until_there_is_a_word() -> None:
    seen: list[bytes] = []

    def respond(number: int, raw: bytes) -> bytes | None:
        seen.append(raw)
        if number == 1:
            return None
        if number == 2:
            return response(503, b"", "retry-after: 2")
        return response(429) if number == 3 else answer(7)

    clock = FakeClock()
    async with scripted(respond) as port, to_port(port, clock) as client:
        result = await client.route("t", inputs={"a": 1}, id="a")
    assert result.output == 7
    assert len(set(seen)) == 1
    assert b"idempotency-key: a\r\n" in seen[0]
    assert clock.pauses == [0.01, 2.01, 0.02]


async def test_tries_end() -> None:
    async with scripted(lambda number, raw: None) as port, to_port(port) as client:
        with pytest.raises(NotSent, match=r"request a was not acknowledged in 4 tries.*id='a'") as caught:
            await client.route("t", id="a")
        assert caught.value.id == "a"
        with pytest.raises(NotSent):
            await client.submit("t")
        with pytest.raises(NotSent):
            await anext(client.stream("t"))
    full = response(429, b'{"code": "overloaded", "detail": "full"}', "content-type: application/json")
    async with scripted(lambda number, raw: full) as port, to_port(port) as client:
        with pytest.raises(GatewayRefused, match=r"429.*full"):
            await client.route("t")
        with pytest.raises(GatewayRefused, match=r"429.*full"):
            await anext(client.stream("t"))
    later = response(503, b"", "retry-after: 60")
    async with scripted(lambda number, raw: later) as port, to_port(port) as client:
        with pytest.raises(GatewayRefused, match="503"):
            await client.route("t")
    async with to_port(free_port()) as client:
        (result,) = [r async for r in client.map(["a"], "t")]
        assert result.error is not None
        assert (result.error.code, "ConnectError" in result.error.message) == ("unanswered", True)


async def test_a_long_wait_is_asked_for_in_pieces() -> None:
    seen: list[bytes] = []

    def respond(number: int, raw: bytes) -> bytes:
        seen.append(raw)
        return answer(7) if number == 3 else response(202, b"{}", "location: /requests/a?until=9")

    async with scripted(respond) as port, to_port(port) as client:
        assert (await client.route("t", id="a")).output == 7
    assert seen[0].startswith(b"POST /route ")
    assert all(raw.startswith(b"GET /requests/a?until=9 ") for raw in seen[1:])
    assert all(f"prefer: wait={WAIT_S}\r\n".encode() in raw for raw in seen)


async def test_a_stream_goes_on_after_its_connection_broke() -> None:
    events = [
        f'id: {n}-{n}\nevent: {kind}\ndata: {{"n":{n}}}\n\n' for n, kind in ((1, "accepted"), (2, "planned"))
    ]
    end = 'id: 3-3\nevent: result\ndata: {"type":"result","v":1,"id":"a","status":"ok"}\n\n'
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"

    def respond(number: int, raw: bytes) -> bytes:
        later = events[0].replace("id: 1-1", f"id: {number}-1")
        said = later if number == 1 else later + events[1] + (end if number == 3 else "data: cut")
        return (head + said).encode()

    async with scripted(respond) as port, to_port(port) as client:
        assert [e.kind async for e in client.stream("t", id="a")] == ["accepted", "planned", "result"]


async def test_a_gateway_that_is_killed_and_comes_back_answers_who_waited_once() -> None:
    ran = []

    async def script(request: Request) -> Result:
        ran.append(request.id)
        await asyncio.sleep(0.5)
        return await echo(request)

    exchange = MemoryExchange(script)
    async with (
        served(exchange) as first,
        served(exchange) as second,
        SlowProxy(first) as proxy,
        to_port(proxy.port) as client,
    ):
        calls = [asyncio.create_task(client.route("t", id=f"g{n}", inputs={"n": n})) for n in range(5)]
        submitted = await client.submit("t", id="g5", inputs={"n": 5})
        while len(exchange.sent) < 6:
            await asyncio.sleep(0.01)
        proxy.move(second)
        results = [await asyncio.wait_for(call, 10) for call in calls]
        results.append(await submitted.result(10))
    assert len(exchange.sent) > 6
    assert [result.output["n"] for result in results] == [0, 1, 2, 3, 4, 5]
    assert sorted(ran) == [f"g{n}" for n in range(6)]


async def test_tokens() -> None:
    token = "a-token-of-acme"
    digest = hashlib.sha256(token.encode()).hexdigest()
    rules = b'{"tenants": {"acme": {"tokens": ["sha256:%s"]}}}' % digest.encode()
    exchange = MemoryExchange()
    async with exchange, served(exchange, rules) as port:
        async with to_port(port, token=token) as client:
            assert (await client.route("t")).tenant == "acme"
        async with to_port(port) as client:
            with pytest.raises(Unauthorized, match="401"):
                await client.route("t")
            with pytest.raises(Unauthorized):
                await anext(client.stream("t"))
        async with to_port(port, token="wrong") as client:
            with pytest.raises(Unauthorized) as caught:
                await client.submit("t")
            assert "wrong" not in str(caught.value)


async def test_what_is_not_known_is_said() -> None:
    exchange = MemoryExchange()
    async with exchange, served(exchange) as port, to_port(port) as client:
        with pytest.raises(UnknownRequest, match="404"):
            await client.result("nothing")
        result = await client.route("t", inputs={"image_url": "http://host.example/..."})
        assert result.error is not None
        assert (result.error.code, "image_url" in result.error.message) == ("invalid_request", True)
        assert exchange.sent == []


async def test_a_gateway_that_is_away_for_longer_than_all_tries_has_its_answer_for_who_waited() -> None:
    clock = FakeClock()

    def respond(number: int, raw: bytes) -> bytes | None:
        if number == 1:
            return None
        return response(502 if number % 2 else 503) if number < 12 else answer(7)

    async with scripted(respond) as port, to_port(port, clock) as client:
        assert (await client.route("t", id="a")).output == 7
    assert len(clock.pauses) == 11
    assert max(clock.pauses) <= 1.0


async def test_a_request_that_was_acknowledged_is_followed_over_an_outage() -> None:
    port = free_port()
    async with to_port(port, SlowClock()) as client:
        async with scripted(lambda number, raw: response(202, b"{}"), port):
            pending = await client.submit("t", id="a")
        await asyncio.sleep(0.3)
        assert not pending.done()
        async with scripted(lambda number, raw: answer(7), port):
            assert (await pending).output == 7


class SlowClock(FakeClock):
    """Hardly waits: more looks than tries within half a second."""

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0.02)


async def test_an_outage_ends_some_day() -> None:
    class Late(FakeClock):
        def now(self) -> float:
            return super().now() + sum(self.pauses)

    clock = Late()

    def respond(number: int, raw: bytes) -> bytes | None:
        return None if number == 1 else response(503)

    async with scripted(respond) as port, to_port(port, clock) as client:
        with pytest.raises(NotSent, match="request a was not acknowledged"):
            await client.route("t", id="a", timeout_s=1e9)
    assert 50.0 <= sum(clock.pauses) < 65.0


async def test_a_tenants_rate_slows_a_map_and_fails_none_of_it() -> None:
    clock = FakeClock()
    later = response(429, b"", "retry-after: 1")

    async with (
        scripted(lambda n, raw: answer(7) if n % 8 == 0 else later) as port,
        to_port(port, clock) as client,
    ):
        results = [r.output async for r in client.map(["a", "b", "c"], "t", concurrency=3)]
    assert results == [7, 7, 7]
    assert set(clock.pauses) == {1.01}
