"""A token bucket: how many calls a second a target takes. Pure, time is an argument in ms."""

from __future__ import annotations

BURST_S = 1.0
"""A bucket holds the calls of so long, and one at least."""


class Pace:
    """Lets `rate` calls a second through, and after a pause those of BURST_S at once."""

    __slots__ = ("_at", "_tokens", "rate")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._tokens = self._most
        self._at: int | None = None

    def has_room(self, now: int) -> bool:
        """Whether one more call may go at `now`."""
        self._fill(now)
        return self._tokens >= 1.0

    def take(self, now: int) -> None:
        """A call goes. What goes without room is owed, a burst's worth at most."""
        self._fill(now)
        self._tokens = max(-self._most, self._tokens - 1.0)

    def next_room(self, now: int) -> int | None:
        """When there is room again, None where there is some, or never will be."""
        self._fill(now)
        if self._tokens >= 1.0 or self.rate <= 0.0:
            return None
        return now + 1 + int((1.0 - self._tokens) / self.rate * 1000.0)

    @property
    def _most(self) -> float:
        return max(1.0, self.rate * BURST_S) if self.rate > 0.0 else 0.0

    def _fill(self, now: int) -> None:
        if self._at is None:
            self._at = now
        elif now > self._at:
            self._tokens = min(self._most, self._tokens + (now - self._at) * self.rate / 1000.0)
            self._at = now
