"""What any cache must do, in memory and on Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest

from streams.cache import MAX_ENTRY_BYTES, NOTHING, Cache, MemoryCache, RedisCache
from streams.stores import StoreUnavailable
from streams.stores.link import RedisLink
from tests.helpers.redis import RedisServer, serve

NUMBERS = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    yield from serve("wheel", tmp_path_factory.mktemp("redis"))


@pytest.fixture(params=["memory", "redis"])
async def cache(request: pytest.FixtureRequest) -> AsyncIterator[Cache]:
    if request.param == "memory":
        made = MemoryCache(time.monotonic)
        yield made
        await made.close()
        await made.close()
        return
    link = RedisLink(request.getfixturevalue("server").url)
    kept = RedisCache(link, f"test{next(NUMBERS)}:")
    yield kept
    await kept.close()
    await link.close()


async def test_what_is_put_is_found_in_the_order_asked(cache: Cache):
    await cache.put([("a", b"1"), ("b", b"\x00\xff\x80")], 60)
    assert await cache.get(["b", "gone", "a", "a"]) == [b"\x00\xff\x80", None, b"1", b"1"]
    await cache.put([("a", b"2")], 60)
    assert await cache.get(["a"]) == [b"2"]


async def test_nothing_asked_and_nothing_put(cache: Cache):
    await cache.put([], 60)
    assert await cache.get([]) == []


async def test_entries_expire(cache: Cache):
    await cache.put([("a", b"1")], 0.2)
    await cache.put([("b", b"1")], 60)
    await asyncio.sleep(0.3)
    assert await cache.get(["a", "b"]) == [None, b"1"]


async def test_large_entries_are_left_out(cache: Cache):
    await cache.put([("a", b"x" * (MAX_ENTRY_BYTES + 1)), ("b", b"x" * MAX_ENTRY_BYTES)], 60)
    assert await cache.get(["a", "b"]) == [None, b"x" * MAX_ENTRY_BYTES]


async def test_nothing_replaces_no_answer(cache: Cache):
    await cache.put([("a", b"1")], 60)
    await cache.put([("a", NOTHING), ("b", NOTHING)], 60)
    assert await cache.get(["a", "b"]) == [b"1", NOTHING]
    await cache.put([("b", b"2")], 60)
    assert await cache.get(["b"]) == [b"2"]


async def test_waiting_for_news_ends(cache: Cache):
    began = time.monotonic()
    await cache.changed(0.05)
    await cache.changed(0.05)
    assert time.monotonic() - began < 2


class TestMemory:
    async def test_it_wakes_who_waits(self):
        cache = MemoryCache(lambda: 0.0)
        waiting = asyncio.create_task(cache.changed(60))
        await asyncio.sleep(0)
        await cache.put([("a", b"1")], 60)
        await asyncio.wait_for(waiting, 5)

    async def test_it_forgets_what_was_used_longest_ago(self):
        cache = MemoryCache(lambda: 0.0, limit=2)
        await cache.put([("a", b"1"), ("b", b"1")], 60)
        await cache.get(["a"])
        await cache.put([("c", b"1")], 60)
        assert await cache.get(["a", "b", "c"]) == [b"1", None, b"1"]

    async def test_its_bytes_are_bounded(self):
        cache = MemoryCache(lambda: 0.0, limit_bytes=10_000)
        for number in range(100):
            await cache.put([(str(number), b"x" * 1_000)], 60)
            await cache.put([(str(number), b"x" * 900)], 60)
            assert cache.size <= 10_000
        assert 5 <= len(cache) < 10
        await cache.close()
        assert (len(cache), cache.size) == (0, 0)


async def test_a_killed_redis_is_away_and_comes_back(tmp_path: Path):
    servers = serve("wheel", tmp_path)
    server = next(servers)
    link = RedisLink(server.url, retry_after_s=0.05)
    cache = RedisCache(link)
    try:
        await cache.put([("a", b"1")], 60)
        server.kill()
        with pytest.raises(StoreUnavailable):
            await cache.get(["a"])
        with pytest.raises(StoreUnavailable):
            await cache.put([("a", b"1")], 60)
        server.start()
        async with asyncio.timeout(10):
            while True:
                try:
                    await cache.put([("b", b"2")], 60)
                    break
                except StoreUnavailable:
                    await asyncio.sleep(0.02)
        assert await cache.get(["a", "b"]) == [None, b"2"]
    finally:
        await link.close()
        next(servers, None)
