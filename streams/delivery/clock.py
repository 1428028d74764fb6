"""Time as the broker sees it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """A clock in ms since the epoch."""

    def now(self) -> int: ...


def _wall() -> float:
    return time.time() * 1000.0


class BrokerClock:
    """The broker's clock, estimated from acknowledged sends.

    A record stamped `stamp` by the broker was appended between `sent` and `acked` of the local clock, so
    the offset between
    the clocks is within half a round trip of `stamp - (sent + acked) / 2`. The estimate with the shortest
    round trip wins;
    it grows stale by 1 ms every 2 s, so that a clock that drifts or is set anew is followed.
    """

    _STALE_PER_MS = 1 / 2000.0

    def __init__(self, wall: Callable[[], float] = _wall) -> None:
        self._wall = wall
        self._offset = 0.0
        self._error = float("inf")
        self._at = wall()

    def now(self) -> int:
        return int(self._wall() + self._offset)

    def wall(self) -> float:
        """The local clock, in ms: what `observe` takes."""
        return self._wall()

    def at_least(self, stamp: int) -> None:
        """A record appended at `stamp` was read: the broker's clock is not behind that."""
        behind = stamp - (self._wall() + self._offset)
        if behind > 0:
            self._offset += behind

    def observe(self, sent: float, acked: float, stamp: int) -> None:
        """Learn from one acknowledged send: local ms before and after, and the append time that the broker
        gave."""
        if stamp <= 0:
            return
        error = max(0.0, acked - sent) / 2.0
        known = self._error + max(0.0, acked - self._at) * self._STALE_PER_MS
        if error <= known:
            self._offset = stamp - (sent + acked) / 2.0
            self._error, self._at = error, acked
