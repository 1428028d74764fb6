"""Waits for the answers that followers wait for, and hands the followers back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from streams.cache.entries import NOTHING
from streams.cache.flights import Flights, Landed
from streams.cache.keys import over_key
from streams.cache.ports import Cache
from streams.delivery.clock import Clock
from streams.stores import StoreUnavailable

T = TypeVar("T")

POLL_S = 0.02
"""How often a store without news is asked: one call for all keys."""
PATIENCE_S = 0.5


class Landing(Generic[T]):
    """Gives followers to `resume` once their answer is in the cache, or they can wait no longer.

    Its host runs `run` as a task of its own and guards it: what `resume` raises ends it. `wake` must be
    called after a `follow`. Where the store is away all followers are handed back at once. `is_old` says of
    an entry at a time (ms) that nobody waited for it: it was there before.
    """

    def __init__(
        self,
        cache: Cache,
        flights: Flights[T],
        clock: Clock,
        resume: Callable[[Sequence[Landed[T]]], Awaitable[None]],
        is_old: Callable[[bytes, int], bool] = lambda entry, now: False,
    ) -> None:
        self._cache = cache
        self._flights = flights
        self._clock = clock
        self._resume = resume
        self._is_old = is_old
        self._awaited = asyncio.Event()

    def wake(self) -> None:
        """Somebody follows."""
        self._awaited.set()

    async def run(self) -> None:
        """Look after the followers, until cancelled."""
        while True:
            if not self._flights.waiting:
                self._awaited.clear()
                await self._awaited.wait()
            await self._cache.changed(POLL_S)
            landed = await self.look()
            if landed:
                await self._resume(landed)

    async def look(self) -> list[Landed[T]]:
        """Ask once; the followers that wait no longer."""
        keys = self._flights.awaited()
        try:
            async with asyncio.timeout(PATIENCE_S):
                entries = await self._cache.get([*keys, *map(over_key, keys)]) if keys else []
        except (StoreUnavailable, TimeoutError):
            return self._flights.release()
        now, found = self._clock.now(), dict[str, bytes]()
        for key, entry, over in zip(keys, entries, entries[len(keys) :], strict=False):
            if entry is not None and not self._is_old(entry, now):
                found[key] = entry
            elif over is not None:
                found[key] = NOTHING
        return self._flights.land(found) + self._flights.expired(now)
