"""What only a store on another machine can do: go away, hang and come back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from streams.stores import RedisSeenStore, StoreUnavailable, seen_store
from streams.stores.link import address_of
from tests.helpers.redis import SERVERS, RedisServer, free_port, serve


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisServer]:
    yield from serve(request.param, tmp_path)


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[RedisSeenStore]:
    store = RedisSeenStore(server.url)
    yield store
    await store.close()


async def test_a_killed_server_is_unavailable_and_a_restarted_one_serves_at_once(
    server: RedisServer, store: RedisSeenStore
) -> None:
    await asyncio.gather(*(store.first_seen([(str(i), "m")], 60) for i in range(5)))
    server.kill()
    with pytest.raises(StoreUnavailable, match="Redis is away"):
        await store.first_seen([("a", "m")], 60)
    server.start()
    # Every pooled connection is dead now; none of them may cost a caller its answer.
    assert await asyncio.gather(*(store.first_seen([(f"b{i}", "m")], 60) for i in range(5))) == [[None]] * 5
    assert await store.first_seen([("b0", "n")], 60) == ["m"]


async def test_a_hanging_server_costs_the_timeout_and_never_blocks_the_loop(
    server: RedisServer, store: RedisSeenStore
) -> None:
    await store.first_seen([("a", "m")], 60)
    server.pause()
    try:
        ticks = asyncio.create_task(_longest_gap(for_s=0.5))
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await store.first_seen([("b", "m")], 60)
        assert time.monotonic() - began < 1.0
        assert await ticks < 0.25
    finally:
        server.resume()
    # The late answers of the calls given up belong to nobody: the next caller gets its own.
    assert await _once_back(store, [("a", "n"), ("c", "m")]) == ["m", None]


async def test_a_server_that_was_never_there_is_unavailable() -> None:
    store = RedisSeenStore(f"redis://127.0.0.1:{free_port()}/0")
    with pytest.raises(StoreUnavailable):
        await store.first_seen([("a", "m")], 60)
    await store.close()


async def test_stores_of_one_server_share_and_prefixes_part(redis_server: RedisServer) -> None:
    one, two = seen_store(redis_server.url), seen_store(redis_server.url)
    other = RedisSeenStore(redis_server.url, prefix="other:")
    assert await one.first_seen([("a", "one")], 60) == [None]
    assert await two.first_seen([("a", "two")], 60) == ["one"]
    assert await other.first_seen([("a", "other")], 60) == [None]
    for store in (one, two, other):
        await store.close()


async def test_an_error_names_no_password() -> None:
    store = RedisSeenStore(f"redis://:hunter2@127.0.0.1:{free_port()}/0")
    with pytest.raises(StoreUnavailable) as caught:
        await store.first_seen([("a", "m")], 60)
    assert "hunter2" not in str(caught.value)
    await store.close()


async def _once_back(store: RedisSeenStore, entries: list[tuple[str, str]]) -> list[str | None]:
    """What the store says as soon as it knows that the server is back: within 2 s."""
    async with asyncio.timeout(2.0):
        while True:
            try:
                return await store.first_seen(entries, 60)
            except StoreUnavailable:
                await asyncio.sleep(0.05)


async def _longest_gap(for_s: float) -> float:
    """The longest time, in seconds, that the loop did not come round."""
    longest, last = 0.0, time.monotonic()
    until = last + for_s
    while last < until:
        await asyncio.sleep(0.01)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    return longest


async def test_it_tells_of_an_absent_server_at_once_then_rarely_and_of_its_return(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    store = RedisSeenStore(f"redis://:hunter2@127.0.0.1:{free_port()}/0", clock=lambda: now)
    await store.look()
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await store.first_seen([("a", "m")], 60)
    await store.look()
    assert len(caplog.messages) == 1
    assert "redis://:***@127.0.0.1:" in caplog.messages[0]
    assert "hunter2" not in caplog.text
    now = 10.0
    await store.look()
    assert len(caplog.messages) == 2
    other = RedisSeenStore(redis_server.url)
    store._link._redis = other._link._redis
    await store.first_seen([("back", "m")], 60)
    await store.first_seen([("back", "m")], 60)
    assert [message.endswith("is back") for message in caplog.messages] == [False, False, True]
    await store.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:1/2", "redis://h:1/2"),
        ("rediss://me:secret@h:1/2?password=secret", "rediss://me:***@h:1/2"),
        ("unix:///run/redis.sock?password=secret", "unix:///run/redis.sock"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert address_of(url) == shown
