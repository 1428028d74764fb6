"""When a try is made again, and after how long. Pure but for `RealClock`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

Jitter = Callable[[], float]
"""A number in [0, 1), anew at each call."""


class Clock(Protocol):
    """Time as a client knows it."""

    def now(self) -> float:
        """Seconds, from any origin."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait so long."""
        ...


class RealClock:
    """The machine's own."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Retries(NamedTuple):
    """How often one request is handed over at most (`tries`, the first among them), and the waits between.

    Waits grow from `first_s` twofold to `most_s` and are drawn evenly from nothing to that ("full jitter":
    M. Brooker, Exponential Backoff And Jitter, 2015). A `Retry-After` is waited for in full, with up to
    `first_s` on top, where it is not above `most_s`; a longer one ends the tries.
    """

    tries: int = 5
    first_s: float = 0.2
    most_s: float = 10.0
    outage_s: float = 60.0
    """How long a gateway may be away over a request that it may have taken; no try counts meanwhile."""

    def wait_s(self, failed: int, retry_after_s: float | None, jitter: Jitter) -> float | None:
        """Seconds to wait after `failed` tries (1 or more); None where there is no further one."""
        if failed >= self.tries:
            return None
        if retry_after_s is not None:
            return None if retry_after_s > self.most_s else retry_after_s + jitter() * self.first_s
        return float(jitter() * min(self.most_s, self.first_s * 2.0 ** min(failed - 1, 30)))


RETRIES = Retries()
