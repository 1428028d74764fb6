"""Seen ids in this process: the same contract as on Redis, gone with the process."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple


class _Entry(NamedTuple):
    mark: str
    expires: float


class MemorySeenStore:
    """A SeenStore of at most `limit` ids; above that, those that would expire first are forgotten.

    `clock` gives seconds and never goes back.
    """

    def __init__(self, clock: Callable[[], float], limit: int = 1_000_000) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        self._clock = clock
        self._limit = limit
        self._entries: dict[str, _Entry] = {}
        self._expiries: list[tuple[float, str]] = []  # one per entry, as a heap

    def __len__(self) -> int:
        return len(self._entries)

    async def first_seen(self, entries: Sequence[tuple[str, str]], ttl_s: int) -> list[str | None]:
        if ttl_s < 1:
            raise ValueError(f"ttl_s must be at least 1, not {ttl_s}")
        now = self._clock()
        self._forget(now)
        return [self._first(id_, mark, now + ttl_s) for id_, mark in entries]

    async def close(self) -> None:
        self._entries.clear()
        self._expiries.clear()

    def _first(self, id_: str, mark: str, expires: float) -> str | None:
        known = self._entries.get(id_)
        if known is not None:
            return known.mark
        if len(self._entries) >= self._limit:
            self._drop_next()
        self._entries[id_] = _Entry(mark, expires)
        heapq.heappush(self._expiries, (expires, id_))
        return None

    def _forget(self, now: float) -> None:
        while self._expiries and self._expiries[0][0] <= now:
            self._drop_next()

    def _drop_next(self) -> None:
        _, id_ = heapq.heappop(self._expiries)
        del self._entries[id_]
