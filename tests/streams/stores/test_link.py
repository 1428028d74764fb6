"""The link to a Redis: what a server that hangs, is slow, starts or has gone costs its callers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from streams.stores import RedisLink, Script, StoreUnavailable, shared_link
from tests.helpers.redis import RedisServer, free_port
from tests.helpers.slow_redis import SlowProxy

ECHO = Script("return {KEYS[1], ARGV[1]}")


@pytest.fixture
async def link(redis_server: RedisServer) -> AsyncIterator[RedisLink]:
    link = RedisLink(redis_server.url, retry_after_s=0.2)
    yield link
    await link.close()


async def test_it_runs_scripts_and_commands_and_gives_bytes(link: RedisLink) -> None:
    assert await link.run(ECHO, ["k"], [b"\xff"]) == [b"k", b"\xff"]
    assert await link.run(ECHO, ["k"], [2]) == [b"k", b"2"]
    await link.call("SET", "a", b"\x00")
    assert await link.call("MGET", "a", "b") == [b"\x00", None]


async def test_a_restarted_server_learns_the_script_again(redis_server: RedisServer, link: RedisLink) -> None:
    await link.run(ECHO, ["k"], ["v"])
    redis_server.kill()
    redis_server.start()
    assert await link.run(ECHO, ["k"], ["v"]) == [b"k", b"v"]


async def test_an_error_of_the_server_is_unavailable_too(link: RedisLink) -> None:
    await link.call("SET", "text", "x")
    with pytest.raises(StoreUnavailable, match="WRONGTYPE"):
        await link.call("HGET", "text", "field")
    assert await link.look()


async def test_a_server_that_refuses_some_calls_is_not_away_and_does_not_fill_the_log(
    link: RedisLink, caplog: pytest.LogCaptureFixture
) -> None:
    await link.call("CONFIG", "SET", "maxmemory", 1)
    for _ in range(20):
        with pytest.raises(StoreUnavailable, match="refuses the call"):
            await link.call("SET", "text", "x")
        assert not link.away
        await link.call("GET", "text")
    (told,) = [record.getMessage() for record in caplog.records]
    assert "refuses calls (OutOfMemoryError: " in told
    assert "maxmemory" in told


async def test_a_server_slower_than_the_timeout_costs_one_timeout_and_not_one_a_call(
    redis_server: RedisServer,
) -> None:
    with SlowProxy(redis_server.url) as proxy:
        link = RedisLink(proxy.url, timeout_s=0.3, retry_after_s=1.0)
        await link.call("PING")
        proxy.delay_s = 0.5
        began, spent, calls = time.monotonic(), 0.0, 0
        while time.monotonic() - began < 3.0:
            asked = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await link.run(ECHO, ["k"], ["v"])
            spent, calls = spent + time.monotonic() - asked, calls + 1
            await asyncio.sleep(0.01)
        assert calls > 50
        assert spent < 0.8, "more than one timeout"
        proxy.delay_s = 0.0
        async with asyncio.timeout(4.0):
            while link.away:
                await asyncio.sleep(0.02)
        assert await link.run(ECHO, ["k"], ["v"]) == [b"k", b"v"]
        await link.close()


async def test_a_refused_connection_is_tried_by_every_call_and_costs_little() -> None:
    link = RedisLink(f"redis://127.0.0.1:{free_port()}/0")
    began = time.monotonic()
    for _ in range(20):
        with pytest.raises(StoreUnavailable):
            await link.call("PING")
    assert time.monotonic() - began < 1.0
    await link.close()


async def test_holders_of_one_address_share_a_link_until_the_last_one_closes(
    redis_server: RedisServer,
) -> None:
    one, two = shared_link(redis_server.url), shared_link(redis_server.url)
    assert one is two
    await one.close()
    assert await two.look()
    await two.close()
    three = shared_link(redis_server.url)
    assert three is not two
    await three.close()


async def test_closing_ends_the_asking(redis_server: RedisServer) -> None:
    link = RedisLink(redis_server.url, timeout_s=0.05)
    redis_server.pause()
    try:
        calls = [link.call("PING") for _ in range(5)]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in found] == [StoreUnavailable] * 5
        assert len([task for task in asyncio.all_tasks() if task.get_name().startswith("redis ")]) == 1
        await link.close()
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("redis ")]
    finally:
        redis_server.resume()


async def test_many_calls_at_once_wait_for_a_connection(redis_server: RedisServer) -> None:
    link = RedisLink(redis_server.url, timeout_s=10.0)
    replies = await asyncio.gather(*(link.run(ECHO, [str(n)], ["v"]) for n in range(300)))
    assert [int(key) for key, _ in replies] == list(range(300))
    clients = str((await link.call("INFO", "clients"))["connected_clients"])
    assert int(clients) <= 33
    await link.close()


async def test_a_caller_that_is_cancelled_ends_whenever_that_happens(link: RedisLink) -> None:
    async def ask_on() -> None:
        while True:
            await link.call("PING")

    for number in range(300):
        asking = asyncio.create_task(ask_on())
        await asyncio.sleep(number % 20 / 5000)
        asking.cancel()
        _, still = await asyncio.wait((asking,), timeout=1.0)
        assert not still
