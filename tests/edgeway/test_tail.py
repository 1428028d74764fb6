"""Reading a topic without a group, where no broker is needed to see it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from edgeway.errors import KafkaUnreachable
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


async def test_a_reader_whose_client_ended_says_so() -> None:
    class Ended:
        """A consumer whose fetcher died, which every empty poll hides."""

        _closed = False
        _client = type("Client", (), {"_sync_task": None})

        def __init__(self) -> None:
            fetcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            fetcher.set_exception(KafkaError("Unexpected error during data retrieval"))
            self._fetcher = type("Fetcher", (), {"error_future": fetcher})

        async def getmany(self, timeout_ms: int) -> dict[Any, Any]:
            return {}

    tail = Tail(Settings(), "results")
    tail._consumer = Ended()
    with pytest.raises(KafkaUnreachable, match="data retrieval"):
        await tail.more()


async def test_a_connection_that_was_reset_is_told_as_an_unreachable_kafka() -> None:
    class Reset:
        async def getmany(self, timeout_ms: int) -> dict[Any, Any]:
            raise ConnectionResetError(104, "Connection reset by peer")

    tail = Tail(Settings(), "results")
    tail._consumer = Reset()
    with pytest.raises(KafkaUnreachable, match="reset by peer"):
        await tail.more()
