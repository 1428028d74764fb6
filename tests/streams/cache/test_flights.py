from __future__ import annotations

import asyncio

import pytest

from streams.cache import NOTHING, Flights, Landed, Landing, MemoryCache
from streams.cache import flights as module
from streams.stores import StoreUnavailable


class Clock:
    time = 0

    def now(self) -> int:
        return self.time


def test_one_leads_and_others_follow():
    flights: Flights[str] = Flights()
    assert flights.lead("k", 10_000, 0)
    assert not flights.lead("k", 10_000, 1)
    assert flights.follow("k", "a", 9_000, 1)
    assert flights.awaited() == ["k"]
    assert flights.land({"k": b"x", "other": b"y"}) == [Landed("a", b"x")]
    assert flights.awaited() == []
    assert flights.waiting == 0
    assert flights.lead("k", 10_000, 2)


def test_nobody_waits_beyond_its_own_time_or_the_flights():
    flights: Flights[str] = Flights(patience_ms=1_000)
    flights.lead("k", 10_000, 0)
    assert not flights.follow("k", "late", 0, 0)
    assert flights.follow("k", "short", 200, 0)
    assert flights.follow("k", "long", 9_000, 0)
    assert flights.expired(199) == []
    assert flights.expired(200) == [Landed("short", None)]
    assert flights.expired(999) == []
    assert flights.expired(1_000) == [Landed("long", None)]
    assert flights.lead("k", 10_000, 1_000)


def test_a_flight_ends_with_its_leaders_deadline():
    flights: Flights[str] = Flights(patience_ms=1_000)
    flights.lead("k", 300, 0)
    assert flights.follow("k", "a", 9_000, 0)
    assert flights.expired(300) == [Landed("a", None)]


def test_followers_are_bounded_and_without_a_leader_nobody_follows():
    flights: Flights[int] = Flights(max_waiting=2)
    assert not flights.follow("k", 0, 9_000, 0)
    flights.lead("k", 9_000, 0)
    assert [flights.follow("k", number, 9_000, 0) for number in range(3)] == [True, True, False]
    assert flights.drop(lambda waiter: waiter == 0) == [0]
    assert flights.follow("k", 3, 9_000, 0)
    assert flights.abandon("k") == [Landed(1, None), Landed(3, None)]
    assert flights.waiting == 0


def test_flights_without_followers_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    flights: Flights[int] = Flights(patience_ms=10)
    for now in range(1_000):
        assert flights.lead(str(now), 9_000, now)
    assert len(flights) < 20
    monkeypatch.setattr(module, "MAX_FLIGHTS", len(flights))
    assert flights.lead("beyond", 9_000, 0)
    assert not flights.follow("beyond", 1, 9_000, 0)


class Away(MemoryCache):
    async def get(self, keys):
        raise StoreUnavailable("away")


async def landed_within(landing: Landing[str], got: list[Landed[str]], count: int) -> None:
    task = asyncio.create_task(landing.run())
    try:
        async with asyncio.timeout(5):
            while len(got) < count:
                await asyncio.sleep(0.005)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("value", [b"an entry", NOTHING])
async def test_a_follower_comes_back_with_the_entry(value: bytes):
    cache, flights, got = MemoryCache(lambda: 0.0), Flights[str](), []

    async def resume(landed):
        got.extend(landed)

    landing = Landing(cache, flights, Clock(), resume)
    flights.lead("k", 9_000, 0)
    flights.follow("k", "a", 9_000, 0)
    landing.wake()
    asyncio.get_running_loop().call_later(0.05, lambda: asyncio.ensure_future(cache.put([("k", value)], 9)))
    await landed_within(landing, got, 1)
    assert got == [Landed("a", value)]


async def test_with_the_store_away_nobody_waits():
    flights, got = Flights[str](), []

    async def resume(landed):
        got.extend(landed)

    landing = Landing(Away(lambda: 0.0), flights, Clock(), resume)
    for key in ("k", "l"):
        flights.lead(key, 9_000, 0)
        flights.follow(key, key, 9_000, 0)
    landing.wake()
    await landed_within(landing, got, 2)
    assert got == [Landed("k", None), Landed("l", None)]
    assert flights.lead("k", 9_000, 0)
