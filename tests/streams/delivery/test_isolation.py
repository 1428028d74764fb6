"""While one record is handled alone, nothing else is handed out in the process, whichever inlet has it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from streams.delivery.isolation import Isolation


@dataclass
class BusyLane:
    busy: bool

    def is_busy(self) -> bool:
        return self.busy


def test_a_record_of_any_inlet_counts() -> None:
    isolation = Isolation()
    first, second = {"a": BusyLane(False)}, {"b": BusyLane(False)}
    isolation.add(first)  # type: ignore[arg-type]
    isolation.add(second)  # type: ignore[arg-type]
    assert not isolation.is_busy()
    second["b"].busy = True
    assert isolation.is_busy()
    second.clear()
    assert not isolation.is_busy()


async def test_others_wait_until_the_lone_record_is_done() -> None:
    isolation = Isolation()
    async with isolation.alone():
        waiting = asyncio.create_task(isolation.opened())
        await asyncio.sleep(0.01)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 1.0)


async def test_two_are_never_alone_at_once() -> None:
    isolation, inside = Isolation(), 0

    async def alone() -> None:
        nonlocal inside
        async with isolation.alone():
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.001)
            inside -= 1

    await asyncio.gather(*(alone() for _ in range(5)))
    await asyncio.wait_for(isolation.opened(), 1.0)


async def test_an_end_by_an_error_opens_again() -> None:
    isolation = Isolation()
    with pytest.raises(ValueError, match="boom"):
        async with isolation.alone():
            raise ValueError("boom")
    await asyncio.wait_for(isolation.opened(), 1.0)
