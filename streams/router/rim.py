"""Budget and cache as the router asks them: once a stage, in bounded time, and never by an exception."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from streams.budget.ports import Budget, Reservation, Spend
from streams.cache import Cache, Flights
from streams.router.constraints import Purse
from streams.stores import StoreUnavailable

log = logging.getLogger(__name__)

PATIENCE_S = 0.5
LEFT_FOR_MS = 5_000
"""How long what is left of the budget is believed, for the score alone."""
T = TypeVar("T")


class Purses:
    """What the budget says of each request."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._spend: Spend | None = None
        self._asked: int | None = None

    async def reserve(self, wanted: Mapping[int, Sequence[Reservation]], now: int) -> dict[int, Purse]:
        """Set aside all of a request's reservations, or none: `open`, else `spent`, or `away` for all where
        the budget does not answer."""
        flat = [each for reservations in wanted.values() for each in reservations]
        if not flat:
            return {}
        try:
            async with asyncio.timeout(PATIENCE_S):
                granted = await self.budget.reserve(flat, now)
        except (StoreUnavailable, TimeoutError) as error:
            # The store itself tells of it, once and not for each batch.
            log.debug("the budget is away (%s): what costs stays closed", type(error).__name__)
            return dict.fromkeys(wanted, "away")
        said = dict(zip([each.subtask for each in flat], granted, strict=True))
        purses: dict[int, Purse] = {}
        idle: list[str] = []
        for index, reservations in wanted.items():
            refused = [each.subtask for each in reservations if not said[each.subtask]]
            purses[index] = "spent" if refused else "open"
            if refused:
                idle += [each.subtask for each in reservations if said[each.subtask]]
        await self.release(idle, now)
        return purses

    async def release(self, subtasks: Sequence[str], now: int) -> None:
        """Free what was set aside for subtasks that are not sent; where that fails it expires."""
        if not subtasks:
            return
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self.budget.release(subtasks, now)
        except (StoreUnavailable, TimeoutError) as error:
            log.debug("reservations are left to expire (%s)", type(error).__name__)

    async def look(self, now: int) -> None:
        """Learn what is left, every LEFT_FOR_MS."""
        if self._asked is not None and now - self._asked < LEFT_FOR_MS:
            return
        self._asked = now
        try:
            async with asyncio.timeout(PATIENCE_S):
                self._spend = await self.budget.spend(now)
        except (StoreUnavailable, TimeoutError):
            self._spend = None

    def left(self, tenant: str | None) -> float | None:
        """What was left for `tenant` at the last look, None where nothing limits it or nobody knows."""
        if self._spend is None:
            return None
        mine = self._spend.tenants.get(tenant or "")
        known = [
            left for left in (self._spend.total.left, None if mine is None else mine.left) if left is not None
        ]
        return min(known, default=None)


class Shelf(Generic[T]):
    """The cache, and who waits for whom. `is_there` says whether it answered last time: without it nobody
    waits, because no answer would ever be seen."""

    def __init__(self, cache: Cache, flights: Flights[T]) -> None:
        self.cache = cache
        self.flights = flights
        self.is_there = True

    async def entries(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The entries that are there."""
        if not keys:
            return {}
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self.cache.get(keys)
        except (StoreUnavailable, TimeoutError) as error:
            log.debug("the cache is away (%s)", type(error).__name__)
            self.is_there = False
            return {}
        self.is_there = True
        return {key: entry for key, entry in zip(keys, found, strict=True) if entry is not None}
