from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeway.client.mapping import Windowed, total_of


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 3), max_size=30),
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
    st.integers(0, 40),
)
def test_every_input_has_its_result_and_none_is_read_too_early(
    turns: list[int], concurrency: int, ordered: bool, is_async: bool, broken_at: int
) -> None:
    read = given_out = 0

    def source() -> Iterator[tuple[int, int]]:
        nonlocal read
        for number, count in enumerate(turns):
            if number == broken_at:
                raise OSError("the source broke")
            read += 1
            assert read - given_out <= concurrency
            yield number, count

    async def async_source() -> AsyncIterator[tuple[int, int]]:
        for each in source():
            await asyncio.sleep(0)
            yield each

    async def work(item: tuple[int, int]) -> int:
        for _ in range(item[1]):
            await asyncio.sleep(0)
        return item[0]

    async def run() -> list[int]:
        nonlocal given_out
        found: list[int] = []
        window = Windowed(async_source() if is_async else source(), work, concurrency, ordered)
        try:
            async for result in window.results():
                given_out += 1
                found.append(result)
        except OSError:
            assert broken_at < len(turns)
        else:
            assert broken_at >= len(turns)
        return found

    found = asyncio.run(run())
    expected = list(range(min(broken_at, len(turns))))
    assert (found if ordered else sorted(found)) == expected


async def test_results_are_given_while_the_next_input_is_waited_for() -> None:
    gate = asyncio.Event()

    async def source() -> AsyncIterator[int]:
        yield 1
        await gate.wait()
        yield 2

    async def work(item: int) -> int:
        return item

    async with aclosing(Windowed(source(), work, 4, True).results()) as results:
        assert await asyncio.wait_for(anext(results), 1) == 1
        gate.set()
        assert [r async for r in results] == [2]


async def test_leaving_early_ends_the_work() -> None:
    ended = []

    async def work(item: int) -> int:
        try:
            await asyncio.sleep(60 if item else 0)
        except asyncio.CancelledError:
            ended.append(item)
            raise
        return item

    async with aclosing(Windowed(iter(range(9)), work, 4, True).results()) as results:
        assert await anext(results) == 0
    assert len(ended) == 3


def test_totals_and_bounds() -> None:
    assert (total_of([1, 2]), total_of(iter([1]))) == (2, None)
    with pytest.raises(ValueError, match="1 or more"):
        Windowed([], lambda item: asyncio.sleep(0), 0, True)
