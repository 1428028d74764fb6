"""Single flight: of concurrent equal requests one is executed, and the others wait for its answer. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

PATIENCE_MS = 4_000
"""How long a follower waits at most; below entries.NOTHING_S."""
MAX_WAITING = 2_000
"""Most followers of one router process; what comes beyond is executed on its own."""
MAX_FLIGHTS = 50_000
"""Most executions that are known at a time (about 15 MB); what comes beyond is not shared."""
_SWEEP = 4


class Landed(NamedTuple, Generic[T]):
    """A follower that waits no longer: `entry` is what the cache holds (it may be NOTHING), None where the
    wait was in vain."""

    waiter: T
    entry: bytes | None


class _Waiting(NamedTuple, Generic[T]):
    waiter: T
    until: int


class _Flight(Generic[T]):
    __slots__ = ("followers", "until")

    def __init__(self, until: int) -> None:
        self.until = until
        self.followers: list[_Waiting[T]] = []


class Flights(Generic[T]):
    """Who waits for what, in one router process. Times are ms on the broker's clock.

    For each request that may be cached and for which the cache held nothing, the router does one of

        if flights.lead(key, deadline, now):          # nobody executes it: plan it
        elif flights.follow(key, waiter, until, now): # leave its record unfinished
        else:                                         # plan it, too

    where `until` is the deadline less what an execution of its own takes. If what leads is refused after all,
    `abandon(key)` lets its followers go. `land`, `expired` and `drop` give or take away followers; the
    router answers them from the entry where it can (answer_of), else it plans them without looking again. A
    lookup that found NOTHING plans at once and neither leads nor follows.
    """

    def __init__(self, max_waiting: int = MAX_WAITING, patience_ms: int = PATIENCE_MS) -> None:
        self._max_waiting = max_waiting
        self._patience_ms = patience_ms
        self._flights: dict[str, _Flight[T]] = {}
        self._waited: dict[str, None] = {}
        self.waiting = 0

    def __len__(self) -> int:
        return len(self._flights)

    def lead(self, key: str, deadline: int, now: int) -> bool:
        """Whether the caller executes `key`; from then on others may follow, up to `deadline`."""
        flight = self._flights.get(key)
        if flight is not None and (flight.followers or flight.until > now):
            return False
        self._flights.pop(key, None)
        self._sweep(now)
        if len(self._flights) < MAX_FLIGHTS:
            self._flights[key] = _Flight(min(deadline, now + self._patience_ms))
        return True

    def follow(self, key: str, waiter: T, until: int, now: int) -> bool:
        """Whether `waiter` now waits for `key`, up to `until` at the latest; False where nobody leads, too
        many wait, or no time is left to wait."""
        flight = self._flights.get(key)
        if flight is None or self.waiting >= self._max_waiting:
            return False
        until = min(until, flight.until)
        if until <= now:
            return False
        flight.followers.append(_Waiting(waiter, until))
        self._waited[key] = None
        self.waiting += 1
        return True

    def awaited(self) -> list[str]:
        """The keys that have followers."""
        return list(self._waited)

    def land(self, found: Mapping[str, bytes]) -> list[Landed[T]]:
        """The followers of the keys in `found`; these flights are over."""
        return [Landed(waiting.waiter, entry) for key, entry in found.items() for waiting in self._end(key)]

    def abandon(self, key: str) -> list[Landed[T]]:
        """The flight of `key` is over without an answer: its followers."""
        return [Landed(waiting.waiter, None) for waiting in self._end(key)]

    def expired(self, now: int) -> list[Landed[T]]:
        """The followers that cannot wait any longer."""
        return [Landed(waiter, None) for waiter in self._take(lambda waiting: waiting.until <= now)]

    def drop(self, gone: Callable[[T], bool]) -> list[T]:
        """Take out the followers that are `gone`: their records are another's now."""
        return self._take(lambda waiting: gone(waiting.waiter))

    def release(self) -> list[Landed[T]]:
        """Everything is over, as where the store is away: all followers."""
        followers = [Landed(waiter, None) for waiter in self._take(lambda waiting: True)]
        self._flights.clear()
        return followers

    def _end(self, key: str) -> list[_Waiting[T]]:
        flight = self._flights.pop(key, None)
        self._waited.pop(key, None)
        if flight is None:
            return []
        self.waiting -= len(flight.followers)
        return flight.followers

    def _take(self, goes: Callable[[_Waiting[T]], bool]) -> list[T]:
        taken: list[T] = []
        for key in list(self._waited):
            flight = self._flights[key]
            kept = []
            for waiting in flight.followers:
                if goes(waiting):
                    taken.append(waiting.waiter)
                else:
                    kept.append(waiting)
            flight.followers = kept
            if not kept:
                del self._waited[key]
        self.waiting -= len(taken)
        return taken

    def _sweep(self, now: int) -> None:
        # They stand in the order in which they began, so the first ones are over first.
        for _ in range(_SWEEP):
            key = next(iter(self._flights), None)
            if key is None or self._flights[key].followers or self._flights[key].until > now:
                return
            del self._flights[key]
