"""One contract, held by the store in memory and by the one on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from streams.stores import MemorySeenStore, RedisSeenStore, SeenStore
from tests.helpers.redis import SERVERS, RedisServer, serve


class World:
    """A store and the passing of time around it."""

    def __init__(self, url: str | None) -> None:
        self.now = 0.0
        self.store: SeenStore = (
            MemorySeenStore(lambda: self.now) if url is None else RedisSeenStore(url, timeout_s=5)
        )
        self._real = url is not None

    async def wait(self, seconds: float) -> None:
        self.now += seconds
        if self._real:
            await asyncio.sleep(seconds)


@pytest.fixture(scope="module", params=["memory", *SERVERS])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str | None]:
    if request.param == "memory":
        yield None
        return
    folder: Path = tmp_path_factory.mktemp("redis")
    servers: Iterator[RedisServer] = serve(request.param, folder)
    yield next(servers).url
    assert next(servers, None) is None


@pytest.fixture
async def world(url: str | None) -> AsyncIterator[World]:
    world = World(url)
    yield world
    await world.store.close()


async def test_the_first_mark_of_an_id_is_kept(world: World) -> None:
    assert await world.store.first_seen([("kept", "a")], 60) == [None]
    assert await world.store.first_seen([("kept", "b")], 60) == ["a"]
    assert await world.store.first_seen([("kept", "a")], 60) == ["a"]


async def test_answers_come_in_the_order_of_the_entries(world: World) -> None:
    await world.store.first_seen([("o2", "two"), ("o4", "four")], 60)
    asked = [(f"o{i}", "new") for i in range(1, 6)]
    assert await world.store.first_seen(asked, 60) == [None, "two", None, "four", None]


async def test_a_repetition_within_one_call_gets_the_first_mark(world: World) -> None:
    assert await world.store.first_seen([("twice", "a"), ("twice", "b")], 60) == [None, "a"]


async def test_no_entries_no_answers(world: World) -> None:
    assert await world.store.first_seen([], 60) == []


async def test_an_empty_mark_is_a_mark(world: World) -> None:
    assert await world.store.first_seen([("empty", "")], 60) == [None]
    assert await world.store.first_seen([("empty", "b")], 60) == [""]


@pytest.mark.parametrize("id_", ["a b", "请求", "a\x00b", "{x}", "tenant/1", "x" * 128])
async def test_any_text_is_an_id(world: World, id_: str) -> None:
    assert await world.store.first_seen([(id_, "m"), (id_ + "'", "n")], 60) == [None, None]
    assert await world.store.first_seen([(id_ + "'", "o"), (id_, "o")], 60) == ["n", "m"]


async def test_an_entry_expires_and_asking_does_not_prolong_it(world: World) -> None:
    await world.store.first_seen([("short", "a")], 1)
    await world.store.first_seen([("long", "a")], 60)
    await world.wait(0.6)
    assert await world.store.first_seen([("short", "b")], 60) == ["a"]
    await world.wait(0.6)
    assert await world.store.first_seen([("short", "b"), ("long", "b")], 60) == [None, "a"]


async def test_a_life_below_a_second_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="ttl_s"):
        await world.store.first_seen([("x", "a")], 0)


async def test_one_of_many_callers_is_first(world: World) -> None:
    calls = [world.store.first_seen([("race", str(i)), (f"race{i}", "m")], 60) for i in range(50)]
    answers = await asyncio.gather(*calls)
    firsts = [i for i, (mark, _) in enumerate(answers) if mark is None]
    assert len(firsts) == 1
    assert {mark for mark, _ in answers} == {None, str(firsts[0])}


async def test_a_large_batch_is_one_call(world: World) -> None:
    batch = [(f"big{i}", str(i)) for i in range(5000)]
    assert await world.store.first_seen(batch, 60) == [None] * 5000
    assert await world.store.first_seen(batch, 60) == [mark for _, mark in batch]


async def test_closing_twice_is_harmless(url: str | None) -> None:
    store = World(url).store
    await store.first_seen([("closed", "a")], 1)
    await store.close()
    await store.close()
