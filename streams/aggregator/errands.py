"""What is written beside the log once an answer is out: cached answers and released reservations."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from streams import metrics
from streams.aggregator.background import Background
from streams.budget.ports import Budget
from streams.cache.entries import NOTHING, NOTHING_S, stamped
from streams.cache.keys import is_of_answer, over_key
from streams.cache.ports import Cache
from streams.delivery.clock import Clock
from streams.stores import StoreError

MIB = 2**20
MAX_ENTRIES = 2_000
MAX_BYTES = 16 * MIB
MAX_RELEASES = 20_000
_BATCH = 256
_BATCH_BYTES = 2 * MIB
_TIMEOUT_S = 1.0
CLOSE_S = 1.0


class Errands:
    """Best effort, in the background: what finds the queue full or the store away is dropped and counted. An
    answer that is not kept is computed again, a reservation that is not released expires by itself.

    `keep_s` is how long answers are kept, `stale_s` how long whole ones are, so that they may stand in where
    there is no other; 0: not at all.
    """

    def __init__(
        self, clock: Clock, cache: Cache | None = None, budget: Budget | None = None, keep_s: float = 0.0
    ) -> None:
        self.keep_s = keep_s
        self.stale_s = 0.0
        self._clock = clock
        self._cache = cache
        self._budget = budget
        self._entries: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._releases: deque[str] = deque()
        self._background = Background("errands", self._run)

    @property
    def keeps(self) -> bool:
        """Whether answers are kept at all."""
        return self._cache is not None and max(self.keep_s, self.stale_s) > 0

    @property
    def releases(self) -> bool:
        """Whether there is a budget."""
        return self._budget is not None

    def keep(self, entries: Iterable[tuple[str, bytes]]) -> None:
        """Put `entries` into the cache, whole answers as given now."""
        if not self.keeps:
            return
        now = self._clock.now()
        for key, plain in entries:
            entry = stamped(plain, now) if is_of_answer(key) and plain != NOTHING else plain
            if len(self._entries) >= MAX_ENTRIES or self._bytes + len(entry) > MAX_BYTES:
                metrics.ERRANDS_DROPPED.labels("cache", "full").inc()
                continue
            self._entries.append((key, entry))
            self._bytes += len(entry)
        if self._entries:
            self._background.wake()

    def release(self, subtasks: Iterable[str]) -> None:
        """Give back what was reserved for `subtasks` and not begun."""
        if self._budget is None:
            return
        for subtask in subtasks:
            if len(self._releases) >= MAX_RELEASES:
                metrics.ERRANDS_DROPPED.labels("release", "full").inc()
                continue
            self._releases.append(subtask)
        if self._releases:
            self._background.wake()

    async def rest(self) -> None:
        """Wait until nothing is left to do."""
        await self._background.rest()

    async def close(self) -> None:
        """Finish what is left, as far as the time allows."""
        await self._background.close(CLOSE_S)

    async def _run(self) -> None:
        while self._entries or self._releases:
            await self._put()
            await self._give_back()

    async def _put(self) -> None:
        batch: list[tuple[str, bytes]] = []
        size = 0
        while self._entries and len(batch) < _BATCH and size < _BATCH_BYTES:
            batch.append(self._entries.popleft())
            size += len(batch[-1][1])
        self._bytes -= size
        if not batch or self._cache is None:
            return
        by_life: dict[float, list[tuple[str, bytes]]] = {}
        for key, entry in batch:
            by_life.setdefault(self._life_s(key, entry), []).append((key, entry))
            if entry == NOTHING and self.stale_s:
                by_life[NOTHING_S].append((over_key(key), NOTHING))
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                for life_s, entries in by_life.items():
                    if life_s > 0:
                        await self._cache.put(entries, life_s)
        except (StoreError, TimeoutError):
            # The link to the store tells that it is away.
            metrics.ERRANDS_DROPPED.labels("cache", "away").inc(len(batch))

    def _life_s(self, key: str, entry: bytes) -> float:
        if entry == NOTHING:
            return NOTHING_S
        return max(self.keep_s, self.stale_s) if is_of_answer(key) else self.keep_s

    async def _give_back(self) -> None:
        batch = [self._releases.popleft() for _ in range(min(_BATCH, len(self._releases)))]
        if not batch or self._budget is None:
            return
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await self._budget.release(batch, self._clock.now())
        except (StoreError, TimeoutError):
            metrics.ERRANDS_DROPPED.labels("release", "away").inc(len(batch))
