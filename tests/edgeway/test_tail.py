"""Reading a topic without a group, where no broker is needed to see it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from edgeway.tail import Tail
from streams.settings import Settings


class Deaf:
    """A consumer in which records come just as the reader is cancelled."""

    async def getmany(self, timeout_ms: int) -> dict[Any, Any]:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(timeout_ms / 1000)
        return {}


async def test_a_reader_that_is_cancelled_ends_though_the_client_swallows_it() -> None:
    tail = Tail(Settings(), "results")
    tail._consumer = Deaf()

    async def follow() -> None:
        while True:
            await tail.more()

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
