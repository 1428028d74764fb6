"""What any cache must do, in memory and on Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from streams.aggregator import Errands
from streams.cache import (
    MAX_ENTRY_BYTES,
    NOTHING,
    Cache,
    Flights,
    Landed,
    Landing,
    MemoryCache,
    RedisCache,
    kept_at,
    stamped,
)
from streams.stores import StoreUnavailable
from streams.stores.link import RedisLink
from tests.helpers.lanes import FakeClock
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


async def test_an_older_answer_outlives_executions_that_fail(cache: Cache):
    """Those who wait for a failed one are told beside the older answer, which is not lost by that."""
    clock = FakeClock(1_000_000)
    errands = Errands(clock, cache, keep_s=1)
    errands.stale_s = 60
    errands.keep([("a:1", b"answer"), ("s:1", b"step")])
    await errands.rest()
    (old,) = await cache.get(["a:1"])
    assert old is not None
    assert kept_at(old) == clock.ms
    await asyncio.sleep(1.1)
    assert await cache.get(["a:1", "s:1"]) == [old, None], "a step is kept for cache_s, and no longer"
    clock.ms += 10_000

    flights = Flights[str]()
    landing = Landing(cache, flights, clock, _nobody, lambda entry, now: now - (kept_at(entry) or 0) > 1_000)
    assert flights.lead("a:1", clock.ms + 60_000, clock.ms)
    assert flights.follow("a:1", "waiter", clock.ms + 60_000, clock.ms)
    assert await landing.look() == [], "the older answer is not the one that is waited for"
    errands.keep([("a:1", NOTHING)])
    await errands.rest()
    assert await landing.look() == [Landed("waiter", NOTHING)]
    assert await cache.get(["a:1"]) == [old]

    assert not flights.waiting
    assert flights.lead("a:1", clock.ms + 60_000, clock.ms)
    assert flights.follow("a:1", "next", clock.ms + 60_000, clock.ms)
    errands.keep([("a:1", b"newer")])
    await errands.rest()
    assert await landing.look() == [Landed("next", stamped(b"newer", clock.ms))]
    await errands.close()


async def _nobody(landed: Sequence[Landed[str]]) -> None:
    raise AssertionError(landed)


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
