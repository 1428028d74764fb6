"""A topic in memory, and followers of it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from schemas.topics import partition_for
from streams.delivery import Record, Unavailable
from tests.helpers.aggregation import Entry


class Log:
    """A topic in memory; each follower of it can be made to fail."""

    def __init__(self, partitions: int = 2) -> None:
        self.records: list[list[Entry]] = [[] for _ in range(partitions)]
        self.followers: list[Memory] = []
        self.away = False

    def append(self, key: str, value: bytes, at: int) -> None:
        number = partition_for(key.encode(), len(self.records))
        log = self.records[number]
        log.append(Entry("joins", number, len(log), at, key.encode(), value))

    def make(self) -> Memory:
        self.followers.append(Memory(self))
        return self.followers[-1]


class Memory:
    def __init__(self, log: Log) -> None:
        self._log = log
        self.positions: dict[int, int] = {}
        self.active: set[int] = set()
        self.closed = False

    @property
    def partitions(self) -> int:
        return len(self._log.records)

    async def open(self, at: Mapping[int, int], since_ms: int | None) -> None:
        if self._log.away:
            raise Unavailable("away")
        self.active = set(range(self.partitions))
        for number, log in enumerate(self._log.records):
            later = [entry.offset for entry in log if since_ms is not None and entry.timestamp >= since_ms]
            self.positions[number] = at.get(number, min(later, default=len(log)))

    async def poll(self, wait_s: float) -> list[Record]:
        if self._log.away:
            raise Unavailable("away")
        found: list[Record] = []
        for number in self.active:
            found += self._log.records[number][self.positions[number] :]
            self.positions[number] = len(self._log.records[number])
        if not found:
            await asyncio.sleep(min(wait_s, 0.005))
        return found

    def only(self, partitions: Collection[int]) -> None:
        self.active = set(partitions)

    async def rewind(self, partition: int, since_ms: int) -> None:
        for record in self._log.records[partition]:
            if record.timestamp >= since_ms:
                self.positions[partition] = min(self.positions[partition], record.offset)
                return

    async def skip(self, partition: int) -> None:
        self.positions[partition] = len(self._log.records[partition])

    async def is_caught_up(self) -> bool:
        return True

    async def has_grown(self) -> bool:
        return False

    def silent_s(self) -> float:
        return 0.0

    def lag(self) -> int:
        return 0

    async def close(self) -> None:
        self.closed = True
