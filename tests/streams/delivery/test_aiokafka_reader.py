"""Following a topic without a group, where no broker is needed to see it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streams.delivery import Record
from streams.delivery.drivers import aiokafka_reader
from streams.delivery.drivers.aiokafka_reader import Tail
from tests.helpers.delivery import LogRecord


class Deaf:
    """A consumer in which records come just as the reader is cancelled."""

    def __init__(self) -> None:
        self._client = self
        self.polls = 0
        self.has_swallowed = False

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def assign(self, places: Any) -> None: ...
    def seek(self, place: Any, offset: int) -> None: ...
    async def fetch_all_metadata(self) -> Deaf:
        return self

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0}

    async def end_offsets(self, places: Any) -> dict[Any, int]:
        return dict.fromkeys(places, 0)

    async def offsets_for_times(self, times: Any) -> dict[Any, None]:
        return dict.fromkeys(times)

    async def position(self, place: Any) -> int:
        return self.polls

    async def getmany(self, timeout_ms: int, max_records: int) -> dict[Any, list[Record]]:
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            if self.has_swallowed:
                raise
            self.has_swallowed = True
        self.polls += 1
        return {"place": [LogRecord("t", 0, self.polls, 0)]}


async def test_a_tail_that_is_cancelled_ends_though_the_client_swallows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aiokafka_reader, "_consumer", lambda options: Deaf())
    taken: list[Record] = []
    tail = Tail({}, "t", 0, taken.append)
    task = asyncio.create_task(tail.run())
    await asyncio.wait_for(tail.caught_up.wait(), 5)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=2)
    assert done, "it reads on"
    assert task.cancelled()
    assert taken
