"""Bounds on requests that are open here, on the bytes of their bodies, and on those of each tenant."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from edgeway.gateway.problems import refused
from streams import metrics

PRUNE_S = 0.1
"""Between looks at which of those left open have been answered: a look at all of them costs some ms."""


class _Left(NamedTuple):
    tenant: str | None
    until: float


class Lobby:
    """Who waits here, and what was sent for callers who did not wait.

    `answered` says whether the answer to a key is known; `now` is a steady clock in s.
    """

    def __init__(self, most: int, most_bytes: int, answered: Callable[[str], bool], now: Callable[[], float]):
        self._most, self._most_bytes = most, most_bytes
        self._answered, self._now = answered, now
        self._left: dict[str, _Left] = {}
        self._tenants: Counter[str] = Counter()
        self._pruned = 0.0
        self.seats = 0
        self.bytes = 0
        self.vacant = asyncio.Event()
        self.vacant.set()

    @property
    def open(self) -> int:
        """Calls under way, and requests left open."""
        return self.seats + len(self._left)

    def seat(self) -> Seat:
        """A place for one more call; it must be left.

        Raises:
            Refused: 503, all are taken.
        """
        if self.open >= self._most:
            self.prune()
        if self.open >= self._most:
            metrics.GATEWAY_SHED.labels("open").inc()
            raise refused(
                "overloaded", f"{self._most} requests are open here, which is all at once", retry_after_s=1.0
            )
        self.seats += 1
        self.vacant.clear()
        return Seat(self)

    def vacate(self) -> None:
        """A place is free again."""
        self.seats -= 1
        if not self.seats:
            self.vacant.set()

    def add_bytes(self, size: int) -> None:
        """A call holds `size` bytes more.

        Raises:
            Refused: 503, all together hold too many.
        """
        if self.bytes + size > self._most_bytes:
            metrics.GATEWAY_SHED.labels("bytes").inc()
            raise refused(
                "overloaded", "the bodies under way take all the memory for them", retry_after_s=1.0
            )
        self.bytes += size

    def join(self, tenant: str, most: int) -> None:
        """One more open request of `tenant`.

        Raises:
            Refused: 429, it has `most` already.
        """
        if self._tenants[tenant] >= most:
            self.prune()
        if self._tenants[tenant] >= most:
            metrics.GATEWAY_SHED.labels("tenant").inc()
            detail = f"this tenant may have {most} requests open at once"
            raise refused("overloaded", detail, status=429, title="Too much at once", retry_after_s=1.0)
        self._tenants[tenant] += 1

    def part(self, tenant: str) -> None:
        """One less."""
        self._tenants[tenant] -= 1
        if self._tenants[tenant] <= 0:
            del self._tenants[tenant]

    def leave_open(self, key: str, tenant: str | None, until: float) -> None:
        """Nobody waits for `key` any more, and it counts all the same until it is answered, or `until`."""
        if key in self._left:
            return
        self._left[key] = _Left(tenant, until)
        if tenant is not None:
            self._tenants[tenant] += 1

    def prune(self) -> None:
        """Forget those left open that are answered, or that nobody can wait for any more."""
        now = self._now()
        if now - self._pruned < PRUNE_S:
            return
        self._pruned = now
        done = [key for key, left in self._left.items() if left.until <= now or self._answered(key)]
        for key in done:
            left = self._left.pop(key)
            if left.tenant is not None:
                self.part(left.tenant)


class Seat:
    """One call under way, the bytes of its body, and the tenant it counts for."""

    def __init__(self, lobby: Lobby) -> None:
        self._lobby = lobby
        self._tenant: str | None = None
        self._taken = True
        self.bytes = 0
        self.handed_over = False
        """Whether another than the handler leaves it: a stream that outlives it."""

    def add(self, size: int) -> None:
        """`size` more bytes were read.

        Raises:
            Refused: 503.
        """
        self._lobby.add_bytes(size)
        self.bytes += size

    def drop_body(self) -> None:
        """The body has been read and sent on."""
        self._lobby.bytes -= self.bytes
        self.bytes = 0

    def join(self, tenant: str | None, most: int | None) -> None:
        """It counts for `tenant`, of which `most` may be open (None: any number).

        Raises:
            Refused: 429.
        """
        if tenant is not None and most is not None:
            self._lobby.join(tenant, most)
            self._tenant = tenant

    def leave_open(self, key: str, until: float) -> None:
        """The call ends before its request is answered."""
        self._lobby.leave_open(key, self._tenant, until)

    def leave(self) -> None:
        """The call is over. Harmless when repeated."""
        if not self._taken:
            return
        self._taken = False
        self.drop_body()
        self._lobby.vacate()
        if self._tenant is not None:
            self._lobby.part(self._tenant)
