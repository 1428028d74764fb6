"""When works that wait expire: they are answered then, not when a thread is free again."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Container, Sequence

from streams import metrics
from streams.delivery import Clock
from workers.backends import Answer
from workers.batching import Batcher
from workers.inference import CANCELLED, late
from workers.work import Work

LEAST_S = 0.05
"""Between two looks at least."""
SHARE = 20.0
"""And so many times as long as the last look took: looking through thousands of rows takes 5 % of a core at
most."""
LONGEST_S = 1.0
"""A timer is set for no longer: the broker's clock may be put forward meanwhile."""


def sifted(
    batch: Sequence[Work], now: int, cancelled: Container[str]
) -> tuple[list[Work], list[Work], list[Answer]]:
    """The works that are still worth computing, those that have expired or are `cancelled`, and the answers
    to these. What nobody waits for any more is in neither."""
    fresh, over, answers = list[Work](), list[Work](), list[Answer]()
    for work in batch:
        if not work.lane.alive:
            continue
        if work.join.decode() in cancelled:
            metrics.CANCELLED.labels("queue").inc()
            over.append(work)
            answers.append(Answer(error=CANCELLED, cost=0.0))
        elif work.subtask.deadline <= now:
            over.append(work)
            answers.append(late())
        else:
            fresh.append(work)
    return fresh, over, answers


class Expiry:
    """Takes expired works out of a batcher, looking no earlier than the first deadline in it.

    While works wait, `taken` keeps one timer that calls `wake` when it is worth asking again. Without it the
    rows behind a model that hangs were answered after its restart, long after anybody waited for them.
    """

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._earliest = math.inf
        self._rest = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def see(self, deadline: int) -> None:
        """A work of this deadline begins to wait; ask `taken` soon."""
        if deadline < self._earliest:
            self._earliest = deadline
            self.stop()

    def taken(self, batcher: Batcher[Work]) -> list[Work]:
        """The expired works, which wait no longer; empty where it is not yet time to look."""
        if self._timer is not None:
            return []
        now, began = self._clock.now(), time.monotonic()
        expired: list[Work] = []
        if self._earliest <= now and self._rest <= began:
            expired = batcher.drop(lambda work: work.subtask.deadline <= now)
            self._earliest = min((work.subtask.deadline for work in batcher), default=math.inf)
            took = time.monotonic() - began
            self._rest = began + took + max(LEAST_S, SHARE * took)
        if self._earliest < math.inf:
            wait_s = max((self._earliest - now) / 1000.0, self._rest - time.monotonic(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(min(wait_s, LONGEST_S), self._fire)
        return expired

    def stop(self) -> None:
        """Set no timer any more until `taken` is called."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._wake()
